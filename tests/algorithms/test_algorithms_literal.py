"""Every federated method against its slow literal transcription in `tests/literal`."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from literal import em_kofl, fed_poe, ofmkl_avg, perfedavg, pof_mkl, vm_kofl
from literal.common import Array, Run
from literal.pof_mkl import bins_and_pmf
from literal.worlds import Size, Trace, assert_close, draws, make_dictionary, make_problem, run

from fkl.algorithms.base import Algorithm
from fkl.algorithms.federated.descent import EmKofl, OfmklAvg, Ofskl, VmKofl
from fkl.algorithms.federated.fed_poe import FedPoe
from fkl.algorithms.federated.perfedavg import PerFedAvg
from fkl.algorithms.federated.pof_mkl import PofMkl, choose_bin
from fkl.basics.errors import FklError
from fkl.network import Network

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
PLAIN: dict[type, Callable[..., Run]] = {OfmklAvg: ofmkl_avg.run, Ofskl: ofmkl_avg.run, VmKofl: vm_kofl.run}

KERNEL_CASES = [
    (PofMkl(M=3, xi=1, step_factor=2.0, eta=0.05, lam=0.1), Size(N=7, D=8), 0.3),
    (PofMkl(M=3, xi=0.5, eta_k=1.0), Size(R=3, N=7, d=5), 0.3),
    (PofMkl(M=2, xi=0.01, eta=0.002, eta_k=3.0, lam=0.0), Size(N=5, T=15), 0.0),
    (PofMkl(M=1, xi=0.01), Size(N=1), 0.3),
    (PofMkl(M=1, xi=0.5, eta_k=2.0, eta=0.03, bins_by="updated"), Size(N=4, T=20), 0.3),
    (OfmklAvg(eta=0.3, step_factor=2.0, lam=0.1), Size(N=7, d=5), 0.3),
    (Ofskl(eta=0.3, step_factor=2.0, lam=0.1), Size(N=1, D=3, T=20), 0.3),
    (VmKofl(eta=0.5, step_factor=0.5, lam=0.1), Size(N=7, d=2), 0.3),
    (EmKofl(eta=0.5, step_factor=0.5, lam=0.1), Size(N=7, T=20), 0.3),
    (EmKofl(losses="sum", weight_factor=2.0), Size(N=5, K=6), 0.3),
    (EmKofl(predictor="copy", lam=0.1), Size(N=5, K=6), 0.3),
]


def literal_run(algorithm: Algorithm, trace: Trace, r: int) -> Run:
    """Run the literal method on replicate r of the world that fkl ran in."""
    problem, data = trace.world.problem, trace.data(r)
    rate = problem.rounds**-0.5
    keys: dict[str, Any] = {"lam": algorithm.lam, "eta": algorithm.eta or rate, "step_factor": algorithm.step_factor}
    if isinstance(algorithm, PofMkl):
        keys |= {"M": algorithm.M, "xi": algorithm.xi, "eta_k": algorithm.eta_k or rate, "bins_by": algorithm.bins_by}
        return pof_mkl.run(data, draws(trace, r, problem.clients), **keys)
    if isinstance(algorithm, EmKofl):
        keys |= {key: getattr(algorithm, key) for key in ("losses", "predictor", "weight_factor")}
        return em_kofl.run(data, draws(trace, r, 1)[:, 0], **keys)
    return PLAIN[type(algorithm)](data, **keys)


def held(trace: Trace) -> dict[str, Any]:
    """What the server and the clients hold in the end, by name."""
    return vars(trace.state.server) | (vars(trace.state.client) if trace.state.client else {})


@pytest.mark.parametrize(("shared", "precision"), [(False, "float64"), (True, "float32")])
@pytest.mark.parametrize(("algorithm", "size", "absent"), KERNEL_CASES, ids=repr)
def test_kernel_method_is_its_literal(
    algorithm: Algorithm, size: Size, absent: float, shared: bool, precision: str
) -> None:
    """Predictions, losses, norms, traffic, final parameters and weights agree in every replicate."""
    tolerance = TOLERANCE[precision]
    problem = make_problem(size, seed=3, absent=absent, precision=precision)
    replicates = tuple(range(size.R))
    trace = run(
        algorithm, problem, make_dictionary(size, shared=shared), seed=5, replicates=replicates, precision=precision
    )
    for r in replicates:
        literal = literal_run(algorithm, trace, r)
        trace.require_literal(literal, r, tolerance)
        state = held(trace)
        assert_close(np.asarray(state["theta"][r], np.float64), literal.theta, tolerance, "theta")
        if "log_w" in state:
            assert_close(state["log_w"][r], literal.log_w, tolerance, "log_w")


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("algorithm", "size", "absent", "hidden"),
    [
        (PerFedAvg(neurons=4, parameters=60, eta=0.1, alpha=0.02), Size(T=20, K=6), 0.3, 2),
        (PerFedAvg(neurons=3, parameters=70, alpha=0.4), Size(d=5), 0.3, 4),
    ],
    ids=repr,
)
def test_perfedavg_is_its_literal(algorithm: PerFedAvg, size: Size, absent: float, hidden: int, precision: str) -> None:
    """Predictions, traffic and the final network agree with personal networks that are really formed."""
    problem = make_problem(size, seed=4, absent=absent, precision=precision)
    replicates = tuple(range(size.R))
    trace = run(algorithm, problem, make_dictionary(size), seed=6, replicates=replicates, precision=precision)
    initial = algorithm.init(trace.world).server.layers
    assert len(initial) == hidden + 1
    rate = size.T**-0.5
    for r in replicates:
        literal, network = perfedavg.run(
            problem.x,
            problem.y,
            problem.present,
            [layer[r] for layer in initial],
            eta=algorithm.eta or rate,
            alpha=algorithm.alpha or rate,
        )
        trace.require_literal(literal, r, TOLERANCE[precision])
        for number, layer in enumerate(network):
            assert trace.state.server.layers[number].dtype == precision
            actual = trace.state.server.layers[number][r].astype(np.float64)
            assert_close(actual, layer, TOLERANCE[precision], f"layer {number}")


def test_literal_backpropagation_is_the_derivative() -> None:
    """The hand-written gradient agrees with central differences in every parameter."""
    random = np.random.default_rng(3)
    network = [random.standard_normal(shape) for shape in ((5, 4), (4, 6), (1, 5))]
    x, y, width = random.standard_normal(3), 0.7, 1e-6

    def loss_at(number: int, where: tuple[int, ...], change: float) -> float:
        moved = [layer.copy() for layer in network]
        moved[number][where] += change
        return (perfedavg.predict(moved, x) - y) ** 2

    for number, slope in enumerate(perfedavg.gradient(network, x, y)):
        for where in np.ndindex(*slope.shape):
            difference = (loss_at(number, where, width) - loss_at(number, where, -width)) / (2 * width)
            assert slope[where] == pytest.approx(difference, rel=1e-6, abs=1e-7)
        assert np.count_nonzero(slope) >= slope.size // 4, "dead units test nothing"


@pytest.mark.parametrize(
    ("keys", "size", "absent", "precision"),
    [
        ({}, Size(R=3), 0.0, "float64"),
        ({"eta": 0.3, "eta_k": 2.0, "lam": 0.1}, Size(N=7, T=20), 0.3, "float64"),
        ({"step_factor": 2.0, "local_steps": 3, "eta": 0.1, "eta_k": 5.0}, Size(K=6, T=20), 0.3, "float32"),
    ],
    ids=repr,
)
def test_fed_poe_is_its_literal(keys: dict[str, Any], size: Size, absent: float, precision: str) -> None:
    """Predictions, losses, norms, traffic, all theta and all weights."""
    problem, own = make_problem(size, seed=3, absent=absent, precision=precision), FedPoe(**keys)
    trace = run(own, problem, make_dictionary(size), seed=5, replicates=tuple(range(size.R)), precision=precision)
    tolerance, rate = {"float64": 1e-9, "float32": 1e-5}[precision], size.T**-0.5
    for r in range(size.R):
        literal, thetas, log_ab = fed_poe.run(
            trace.data(r), eta=own.eta or rate, eta_k=own.eta_k or rate,
            lam=own.lam, step_factor=own.step_factor, local_steps=own.local_steps,
        )  # fmt: skip
        trace.require_literal(literal, r, tolerance)
        client = trace.state.client
        assert_close(trace.state.server.theta[r], literal.theta, tolerance, "theta")
        assert_close(client.theta[r].astype(np.float64), thetas, tolerance, "own theta")
        assert_close(client.log_w[r], literal.log_w, tolerance, "log w")
        assert_close(client.log_ab[r], log_ab, tolerance, "log a and b")


def test_one_client_of_fed_poe_learns_the_same_together_and_alone() -> None:
    """So both mixtures are one, and a = b."""
    size = Size(K=1, T=30)
    state = run(FedPoe(eta_k=3.0), make_problem(size, seed=1), make_dictionary(size)).state
    assert_close(state.server.theta, state.client.theta[:, :, 0], 1e-12, "theta")
    assert_close(state.client.log_ab[..., 0], state.client.log_ab[..., 1], 1e-12, "log a")


# --- Algorithm 1 of POF-MKL

EXPLORATION = st.one_of(st.just(1.0), st.floats(0.01, 1.0))


@st.composite
def selections(draw: st.DrawFn) -> tuple[Array, int, float]:
    """Log weights (N,), some of them equal, with M and xi."""
    kernels = draw(st.integers(1, 12))
    log_w = draw(arrays(np.float64, kernels, elements=st.integers(-40, 0).map(lambda value: value / 4)))
    return log_w, draw(st.integers(1, kernels)), draw(EXPLORATION)


@given(selections())
def test_bins_partition_the_kernels(selection: tuple[Array, int, float]) -> None:
    """Drawing in the middle of each bin's share of [0, 1) gives every bin of Algorithm 1 with its q, once.

    So bins have M kernels but for the last, hold each kernel once, and their probabilities sum to 1.
    """
    log_w, M, xi = selection
    bins, q = bins_and_pmf(log_w, M, xi)
    middle = np.cumsum(q) - np.array(q) / 2
    chosen, p = choose_bin(np.tile(log_w, (2, len(bins), 1)), M, xi, np.tile(middle, (2, 1)))
    assert chosen.shape == (2, len(bins), len(log_w))
    assert p.shape == (2, len(bins), 1)
    for r in range(2):
        assert [list(np.flatnonzero(row)) for row in chosen[r]] == [sorted(members) for members in bins]
        np.testing.assert_allclose(p[r, :, 0], q, rtol=1e-12)
        assert (chosen[r].sum(axis=0) == 1).all()
        assert chosen[r, :-1].sum(axis=1).tolist() == [M] * (len(bins) - 1)
        assert 1 <= chosen[r, -1].sum() <= M
        assert p[r].sum() == pytest.approx(1, rel=1e-12)


# --- What federated methods promise besides what all do (`fkl.conformance`): budgets, PerFedAvg's networks, refusals.

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
