"""Every federated method against its slow literal transcription in `tests/literal`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from literal import em_kofl, ofmkl_avg, ofskl, perfedavg, pof_mkl, vm_kofl
from literal.common import Run
from literal.worlds import Size, Trace, assert_close, draws, make_dictionary, make_problem, run

from fkl.algorithms.base import Algorithm
from fkl.algorithms.federated.descent import EmKofl, OfmklAvg, Ofskl, VmKofl
from fkl.algorithms.federated.perfedavg import PerFedAvg
from fkl.algorithms.federated.pof_mkl import PofMkl

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
PLAIN: dict[type, Callable[..., Run]] = {OfmklAvg: ofmkl_avg.run, Ofskl: ofskl.run, VmKofl: vm_kofl.run}

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
    bank, problem = trace.world.bank, trace.world.problem
    data = (problem.x, problem.y, problem.present, bank.rho[r], bank.scale)
    rate = problem.rounds**-0.5
    keys: dict[str, Any] = {"lam": algorithm.lam, "eta": algorithm.eta or rate, "step_factor": algorithm.step_factor}
    if isinstance(algorithm, PofMkl):
        keys |= {"M": algorithm.M, "xi": algorithm.xi, "eta_k": algorithm.eta_k or rate, "bins_by": algorithm.bins_by}
        return pof_mkl.run(*data, draws(trace, r, problem.clients), **keys)
    if isinstance(algorithm, EmKofl):
        keys |= {key: getattr(algorithm, key) for key in ("losses", "predictor", "weight_factor")}
        return em_kofl.run(*data, draws(trace, r, 1)[:, 0], **keys)
    return PLAIN[type(algorithm)](*data, **keys)


def held(trace: Trace) -> dict[str, Any]:
    """What the server and the clients hold in the end, by name."""
    return vars(trace.state.server) | (vars(trace.state.client) if trace.state.client else {})


def compare_rounds(trace: Trace, literal: Run, r: int, tolerance: float) -> None:
    """Compare every round: predictions, losses, norms and scalars sent, of the clients that were present."""
    here = trace.world.problem.present
    assert_close(trace.y_hat[r][here], literal.y_hat[here], tolerance, "y_hat")
    assert_close(trace.squared_norm[r][here], literal.squared_norm[here], tolerance, "squared_norm")
    if trace.loss is not None:
        assert_close(trace.loss[r][here], literal.loss[here], tolerance, "loss")
    for direction, scalars in (("uplink", literal.uplink), ("downlink", literal.downlink)):
        tally = trace.ledger.tallies[direction]
        np.testing.assert_array_equal(tally.by_client[r, :, 1], scalars.sum(axis=0))
        np.testing.assert_array_equal(tally.by_round[:, r, 1], scalars.sum(axis=1))


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
        compare_rounds(trace, literal, r, tolerance)
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
        compare_rounds(trace, literal, r, TOLERANCE[precision])
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


@pytest.mark.parametrize(("M", "xi", "absent"), [(3, 1, 0.3), (1, 0.5, 0.3)])
def test_per_client_loop_is_the_literal(M: int, xi: float, absent: float) -> None:
    """The loop that the benchmark runs does what the literal loop over kernels does."""
    size = Size(N=7)
    problem = make_problem(size, seed=8, absent=absent)
    bank = run(OfmklAvg(), problem, make_dictionary(size)).world.bank
    uniform = np.random.default_rng(1).random(problem.y.shape)
    arguments = (problem.x, problem.y, problem.present, bank.rho[0], bank.scale, uniform)
    keys = {"M": M, "xi": xi, "eta": 0.05, "eta_k": 0.8, "lam": 0.01, "step_factor": 2.0}
    slow, fast = pof_mkl.run(*arguments, **keys), pof_mkl.per_client(*arguments, **keys)
    assert_close(fast.y_hat[problem.present], slow.y_hat[problem.present], 1e-12, "y_hat")
    assert_close(fast.theta, slow.theta, 1e-12, "theta")
    assert_close(fast.log_w, slow.log_w, 1e-12, "log_w")
    np.testing.assert_array_equal(fast.uplink, slow.uplink)
    np.testing.assert_array_equal(fast.downlink, slow.downlink)
