"""What federated methods promise besides what all do (`fkl.conformance`): budgets, PerFedAvg's networks, refusals."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from literal.worlds import Size, make_dictionary, make_problem, run

from fkl.algorithms.base import Algorithm
from fkl.algorithms.federated.descent import Ofskl
from fkl.algorithms.federated.perfedavg import PerFedAvg
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.basics.errors import BadValue, FklError
from fkl.network import Network

SIZE = Size(N=5, D=6, K=4, T=10)


@pytest.mark.parametrize(("algorithm", "up"), [(PofMkl(M=1), 12), (PerFedAvg(neurons=4, parameters=60), 41)], ids=repr)
def test_uplink_budget(algorithm: Algorithm, up: int) -> None:
    """The exact budget passes; one scalar less stops the first round in which someone is present, by name."""
    problem = make_problem(SIZE, seed=1)
    problem.present[:2] = False
    problem.present[2:] = True
    run(algorithm, problem, make_dictionary(SIZE), network=Network(uplink_budget=up))
    with pytest.raises(FklError, match=rf"uplink_budget={up - 1}: {algorithm.label} .*round 3"):
        run(algorithm, problem, make_dictionary(SIZE), network=Network(uplink_budget=up - 1))


@pytest.mark.parametrize(
    ("dimension", "widths", "parameters"), [(15, [15, 20, 20, 1], 761), (48, [48, 19, 1], 951), (520, [520, 1, 1], 523)]
)
def test_perfedavg_networks(dimension: int, widths: list[int], parameters: int) -> None:
    """As many hidden layers of 20 as stay under 1000 parameters, or one narrower layer; that many scalars travel.

    Biases start from 0; weights fill [-b, b] with b^2 = 6 / (inputs + outputs), as Glorot has it.
    """
    algorithm, size = PerFedAvg(), Size(R=2, K=2, T=3, d=dimension)
    assert algorithm.widths(dimension) == widths
    trace = run(algorithm, make_problem(size, seed=8), make_dictionary(size))
    layers = algorithm.init(trace.world).server.layers
    assert [layer.shape[1:] for layer in layers] == [(outputs, inputs + 1) for inputs, outputs in pairwise(widths)]
    for direction in ("uplink", "downlink"):
        assert (trace.ledger.tallies[direction].by_client[..., 1] == 3 * parameters).all()
    bound = np.sqrt(6 / (dimension + widths[1]))
    assert (layers[0][..., -1] == 0).all()
    assert 0.95 * bound < np.abs(layers[0][..., :-1]).max() <= bound
    assert np.abs(layers[0][0] - layers[0][1]).max() > 0.1 * bound


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: run(PofMkl(M=6), make_problem(SIZE, 0), make_dictionary(SIZE)), "M"),
        (lambda: run(Ofskl(), make_problem(SIZE, 0), make_dictionary(SIZE)), "kernels.N"),
        (lambda: PerFedAvg(parameters=523).widths(520), "parameters"),
    ],
)
def test_bad_values_are_named(make: Any, key: str) -> None:
    with pytest.raises(BadValue) as caught:
        make()
    assert caught.value.key == key
