"""What federated methods promise besides what all do (`fkl.conformance`): traffic, budgets, absences, refusals."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from literal.worlds import Size, make_dictionary, make_problem, run

from fkl.algorithms.base import Algorithm
from fkl.algorithms.federated.descent import EmKofl, OfmklAvg, Ofskl, VmKofl
from fkl.algorithms.federated.perfedavg import PerFedAvg
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.basics.errors import BadValue, FklError
from fkl.network import Network

SIZE = Size(N=5, D=6, K=4, T=10)
ONE = Size(N=1, D=6, K=4, T=10)
WIDTH = 2 * SIZE.D
METHODS: list[tuple[Algorithm, Size]] = [(PofMkl(M=2, xi=0.3), SIZE), (EmKofl(), SIZE), (PerFedAvg(neurons=4), SIZE)]
TRAFFIC = [
    (PofMkl(M=5, xi=0.5), SIZE, 5 * WIDTH, SIZE.N * WIDTH),
    (OfmklAvg(), SIZE, SIZE.N * WIDTH, SIZE.N * WIDTH),
    (Ofskl(), ONE, WIDTH, WIDTH),
    (VmKofl(), SIZE, SIZE.N * WIDTH + SIZE.N, SIZE.N * WIDTH + SIZE.N),
    (EmKofl(), SIZE, WIDTH + SIZE.N, WIDTH + 1),
    (PerFedAvg(neurons=4, parameters=60), SIZE, 41, 41),
]
KINDS = {
    "POF-MKL": {("downlink", "theta"), ("uplink", "theta")},
    "OFMKL-Avg": {("downlink", "theta"), ("uplink", "theta")},
    "OFSKL": {("downlink", "theta"), ("uplink", "theta")},
    "vM-KOFL": {("downlink", "theta"), ("downlink", "weights"), ("uplink", "theta"), ("uplink", "losses")},
    "eM-KOFL": {("downlink", "index"), ("downlink", "theta"), ("uplink", "theta"), ("uplink", "losses")},
    "PerFedAvg": {("downlink", "network"), ("uplink", "network")},
}


def state_bytes(state: Any, r: int) -> list[bytes]:
    """Return the bytes of replicate r of what server and clients have learned: parameters and weights."""
    held = [vars(party) for party in (state.server, state.client) if party is not None]
    values = [party[name] for party in held for name in ("theta", "log_w", "layers") if name in party]
    assert values
    arrays = [array for value in values for array in (value if isinstance(value, list) else [value])]
    return [array[r].tobytes() for array in arrays]


@pytest.mark.parametrize(("absent", "precision", "width"), [(0.0, "float64", 8), (0.4, "float32", 4)])
@pytest.mark.parametrize(("algorithm", "size", "up", "down"), TRAFFIC, ids=repr)
def test_traffic_is_the_protocols_formula(
    algorithm: Algorithm, size: Size, up: int, down: int, precision: str, width: int, absent: float
) -> None:
    """A client that is present sends and receives the stated scalars a round; one that is absent, nothing."""
    problem = make_problem(size, seed=1, absent=absent, precision=precision)
    ledger = run(algorithm, problem, make_dictionary(size), precision=precision).ledger
    for direction, scalars in (("uplink", up), ("downlink", down)):
        tally = ledger.tallies[direction]
        which = -(-size.N // 8) if (algorithm.label, direction) == ("POF-MKL", "uplink") else 0  # a bit for each kernel
        for unit, each in ((1, scalars), (2, scalars * width + which)):
            by_client, by_round = each * problem.present.sum(axis=0), each * problem.present.sum(axis=1)
            np.testing.assert_array_equal(tally.by_client[..., unit], np.tile(by_client, (size.R, 1)))
            np.testing.assert_array_equal(tally.by_round[..., unit], np.tile(by_round[:, None], size.R))
    assert set(ledger.kinds) == KINDS[algorithm.label]


@pytest.mark.parametrize(("algorithm", "size", "up", "down"), [TRAFFIC[0], TRAFFIC[-1]], ids=repr)
def test_uplink_budget(algorithm: Algorithm, size: Size, up: int, down: int) -> None:
    """The exact budget passes; one scalar less stops the first round in which someone is present, by name."""
    problem = make_problem(size, seed=1)
    problem.present[:2] = False
    problem.present[2:] = True
    run(algorithm, problem, make_dictionary(size), network=Network(uplink_budget=up))
    with pytest.raises(FklError, match=rf"uplink_budget={up - 1}: {algorithm.label} .*round 3") as caught:
        run(algorithm, problem, make_dictionary(size), network=Network(uplink_budget=up - 1))
    assert not isinstance(caught.value, BadValue)
    assert str(up) in str(caught.value)


@pytest.mark.parametrize(("algorithm", "size"), METHODS, ids=repr)
def test_absent_clients_teach_nothing(algorithm: Algorithm, size: Size) -> None:
    """Whatever stands in the samples of absent clients, nothing that the present ones see changes."""
    problem = make_problem(size, seed=5, absent=0.4)
    before = run(algorithm, problem, make_dictionary(size))
    problem.x[~problem.present] = 0.5
    problem.y[~problem.present] = 9.0
    after = run(algorithm, problem, make_dictionary(size))
    assert before.y_hat[:, problem.present].tobytes() == after.y_hat[:, problem.present].tobytes()
    for r in range(size.R):
        assert state_bytes(before.state, r) == state_bytes(after.state, r)


@pytest.mark.parametrize(
    ("dimension", "widths", "parameters"),
    [
        (15, [15, 20, 20, 1], 761),
        (48, [48, 19, 1], 951),
        (520, [520, 1, 1], 523),
    ],
)
def test_perfedavg_networks(dimension: int, widths: list[int], parameters: int) -> None:
    """As many hidden layers of 20 as stay under 1000 parameters, or one narrower layer; that many scalars travel."""
    algorithm, size = PerFedAvg(), Size(R=2, K=2, T=3, d=dimension)
    assert algorithm.widths(dimension) == widths
    problem = make_problem(size, seed=8)
    problem.present[:] = True
    trace = run(algorithm, problem, make_dictionary(size))
    assert [layer.shape[1:] for layer in trace.state.server.layers] == [
        (outputs, inputs + 1) for inputs, outputs in pairwise(widths)
    ]
    for direction in ("uplink", "downlink"):
        assert (trace.ledger.tallies[direction].by_client[..., 1] == 3 * parameters).all()


def test_perfedavg_starts_with_glorots_weights() -> None:
    """Biases are 0; weights fill [-b, b] with b^2 = 6 / (inputs + outputs), and differ between replicates."""
    trace = run(PerFedAvg(), make_problem(Size(d=15), seed=9), make_dictionary(Size(d=15)))
    layers = PerFedAvg().init(trace.world).server.layers
    for layer in layers[:2]:
        bound = np.sqrt(6 / sum(layer[0, :, :-1].shape))
        assert (layer[..., -1] == 0).all()
        assert 0.95 * bound < np.abs(layer[..., :-1]).max() <= bound
        assert abs(layer[..., :-1].mean()) < 0.1 * bound
        assert np.abs(layer[0] - layer[1]).max() > 0.1 * bound


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
