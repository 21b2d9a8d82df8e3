"""The methods of one learner on a stream: against their literal transcriptions, and what they promise besides."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from literal import ada_raker, omkl_gf, omkl_sfg, omkr, raker
from literal.common import draw, draw_next, frequencies
from literal.divergence import divergences
from literal.feedback_graph import dominating_set
from literal.online import OnlineRun
from literal.worlds import Size, Trace, assert_close, make_dictionary, make_problem, run

from fkl.algorithms.base import Algorithm
from fkl.algorithms.federated.pooled import PooledAdaRaker, PooledOmklGf, PooledRaker
from fkl.algorithms.online.learners import AdaRaker, Omkr, OnlineLearner, Poly2, Raker, Rbf1, Rfomkr
from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.algorithms.online.omkl_sfg import OmklSfg, OmklSfgR
from fkl.kernels import Dictionary

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
SIZE = Size(R=3, K=1, N=7, D=6, T=30)
MIXED: dict[str, Any] = {"laplacians": 3}
DRAWS = {"exact": draw, "next": draw_next}
PUBLISHED: dict[str, Any] = {"draw": "next", "graph": "lowest", "q_floor": 0.1, "p_floor": 0.2}

METHODS: list[OnlineLearner] = [
    Raker(eta=0.5, lam=0.1),
    Rfomkr(),
    Rfomkr(eta=0.5, normalised=False),
    AdaRaker(eta=0.9, lam=0.1, restart=True),
    AdaRaker(eta=0.3),
    OmklGf(M=3, exploring=12),
    OmklGf(M=1, J=3, exploring=12, draw="next", q_floor=0.05, eta=0.5),
    OmklGf(M=3, exploring=12, q_floor=0.05, divide_by="observed"),
    OmklSfg(M=3, exploring=12),
    OmklSfg(M=1, exploring=12, draw="next", settle="first", q_floor=0.1, p_floor=0.2, eta=0.5),
    OmklSfg(M=3, exploring=12, divide_by="observed", graph="line"),
    OmklSfg(M=3, exploring=12, settle="never", **PUBLISHED),
    OmklSfgR(M=2, exploring=12, rank=2, eta=0.5, q_floor=0.1, p_floor=0.2),
    OmklSfgR(M=3, exploring=12, rank=3, divide_by="observed", settle="first"),
    OmklSfgR(M=3, rank=3, settle="never", **PUBLISHED),
]
EXACT: list[tuple[OnlineLearner, Dictionary, list[omkr.Kernel]]] = [
    (
        Omkr(),
        Dictionary(N=5, laplacians=2, smallest=0.1, largest=10, bandwidth_convention="divisor"),
        [*(omkr.rbf(g) for g in (0.1, 1, 10)), *(omkr.laplacian(g) for g in (0.1, 10))],
    ),
    (Rbf1(eta=0.5), Dictionary(N=1, smallest=1, largest=1, bandwidth_convention="divisor"), [omkr.rbf(1)]),
    (Poly2(), Dictionary(family="polynomial", N=1, smallest=2, largest=2), [omkr.polynomial(2)]),
]


def literal_run(method: OnlineLearner, trace: Trace, r: int) -> OnlineRun:
    """Run the literal method on replicate r of the world that fkl ran in."""
    world, state = trace.world, trace.state
    x, y = np.asarray(world.problem.x[:, 0], float), world.problem.y[:, 0]
    omega = frequencies(world.bank.rho[r], world.bank.scale)
    if isinstance(method, Raker):
        return raker.run(x, y, omega, eta=method.eta, lam=method.lam)
    if isinstance(method, AdaRaker):
        return ada_raker.run(x, y, omega, eta=method.eta, lam=method.lam, restart=method.restart)
    if isinstance(method, Rfomkr):
        return raker.rfomkr(x, y, omega, eta=method.eta, normalise=method.normalised)
    if isinstance(method, OmklGf):
        draws = state.graph_draws[r], state.node_draws[r]
        how = {"eta": method.eta, "lam": method.lam, "floor": method.q_floor, "draw_kernel": DRAWS[method.draw]}
        how["divide_by"] = method.divide_by
        return omkl_gf.run(x, y, omega, *draws, **how)
    assert isinstance(method, OmklSfg)
    keys = {"eta", "lam", "q_floor", "p_floor", "settle", "rank", "divide_by"} & set(vars(method))
    how = {key: getattr(method, key) for key in keys} | {"draw_node": DRAWS[method.draw]}
    if isinstance(method, OmklSfgR):
        how["delta"] = np.zeros(state.A.shape)
        if method.graph != "lowest":
            dimension = 1 if method.graph == "line" else world.problem.dimension
            delta = divergences(world.dictionary.families, world.dictionary.scales.tolist(), dimension, 60)
            how["delta"] = np.array(delta)
    dominating = dominating_set(state.A)
    return omkl_sfg.run(
        x, y, omega, state.node_draws[r], state.A, dominating, explore_rounds=method.exploring, **how
    )  # fmt: skip


def compare(method: OnlineLearner, trace: Trace, tolerance: float) -> None:
    """Predictions, norms, losses of all rounds, and what is known after them."""
    for r in range(len(trace.y_hat)):
        literal = literal_run(method, trace, r)
        assert_close(trace.y_hat[r, :, 0], literal.y_hat, tolerance, "y_hat")
        assert_close(trace.squared_norm[r, :, 0], literal.squared_norm, tolerance, "squared_norm")
        if trace.loss is not None:
            assert_close(trace.loss[r, :, 0], literal.loss, tolerance, "loss")
        assert_close(np.asarray(trace.state.theta[r], float), literal.theta, tolerance, "theta")
        assert_close(trace.state.log_w[r], literal.log_w, tolerance, "log_w")
        for name in {"log_u", "log_h"} & vars(trace.state).keys():
            assert_close(getattr(trace.state, name)[r], literal.log_u, tolerance, name)


@pytest.mark.parametrize(
    ("method", "options", "precision"),
    [
        *((method, MIXED, "float64") for method in METHODS),
        *((method, {}, "float32") for method in (METHODS[i] for i in (0, 3, 5, 8, 11, 14))),
        (METHODS[8], {"laplacians": 7}, "float64"),
    ],
    ids=repr,
)
def test_feature_method_is_its_literal(method: OnlineLearner, options: dict[str, Any], precision: str) -> None:
    """Every round and every replicate, in dictionaries of one and of two families."""
    size = replace(SIZE, T=150) if isinstance(method, AdaRaker) else SIZE  # in blocks that no interval keeps to
    problem = make_problem(size, seed=3, precision=precision)
    dictionary = make_dictionary(size, **options)
    trace = run(method, problem, dictionary, seed=5, replicates=(0, 1, 2), precision=precision)
    compare(method, trace, TOLERANCE[precision])


@pytest.mark.parametrize(("method", "dictionary", "kernels"), EXACT, ids=lambda value: type(value).__name__)
def test_exact_method_is_its_literal(method: OnlineLearner, dictionary: Dictionary, kernels: list[omkr.Kernel]) -> None:
    """Over several blocks; every replicate is the same."""
    problem = make_problem(replace(SIZE, T=600), seed=3)
    trace = run(method, problem, dictionary)
    literal = omkr.run(problem.x[:, 0], problem.y[:, 0], kernels, eta=method.eta)
    assert trace.loss is not None
    for r in (0, 1):
        assert_close(trace.y_hat[r, :, 0], literal.y_hat, 1e-10, "y_hat")
        assert_close(trace.loss[r, :, 0], literal.loss, 1e-10, "loss")
    assert_close(trace.state.a, literal.theta, 1e-10, "coefficients")
    assert_close(trace.state.log_w[0], literal.log_w, 1e-10, "log_w")


@pytest.mark.parametrize("method", [METHODS[0], METHODS[5], METHODS[8], Omkr()], ids=repr)
def test_the_block_size_changes_nothing_beyond_rounding(method: OnlineLearner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1, of 7 rounds and of more rounds than there are."""
    problem, dictionary = make_problem(SIZE, seed=3), make_dictionary(SIZE, **MIXED)
    whole = run(method, problem, dictionary)
    for block in (1, 7, 1000):
        monkeypatch.setattr(type(method), "block", block)
        assert_close(run(method, problem, dictionary).y_hat, whole.y_hat, 1e-12, f"blocks of {block}")


@pytest.mark.parametrize("method", [Raker(eta=2), OmklSfgR(M=5, rank=3, eta=2, q_floor=0.1, p_floor=0.2)], ids=repr)
def test_weights_stay_finite_over_50000_rounds_at_unit_loss(method: OnlineLearner) -> None:
    """Labels that jump between 0 and 2 at random keep every loss near 1: weights fall below what exp can hold."""
    T = 50_000
    size = Size(R=1, K=1, N=5, D=3, T=T, d=2)
    coins = np.random.default_rng(0).integers(0, 2, (T, 1)) * 2.0
    problem = replace(make_problem(size, seed=1, precision="float32"), y=coins)
    trace = run(method, problem, make_dictionary(size, laplacians=2), replicates=(0,), precision="float32")
    assert np.isfinite(trace.y_hat).all()
    assert ((trace.y_hat - coins.T[..., None]) ** 2).mean() == pytest.approx(1, abs=0.1)
    assert np.isfinite(trace.state.log_w).all()
    assert trace.state.log_w.min() < -745  # where exp underflows
    assert np.isfinite(getattr(trace.state, "log_u", 0)).all()


# --- learners at a server that all samples are sent to

CLIENTS = Size(N=5, D=6, K=4, T=40)
LEARNERS: list[tuple[Algorithm, Algorithm]] = [
    (PooledRaker(eta=0.2), Raker(eta=0.2)),
    (PooledAdaRaker(eta=0.2), AdaRaker(eta=0.2)),
    (PooledAdaRaker(eta=0.2, restart=True), AdaRaker(eta=0.2, restart=True)),
    (PooledOmklGf(M=2, exploring=70), OmklGf(M=2, exploring=70)),
]


@pytest.mark.parametrize(("pooled", "alone"), LEARNERS, ids=lambda algorithm: algorithm.label)
def test_a_pooled_learner_is_the_learner_on_one_stream_client_after_client(pooled: Algorithm, alone: Algorithm) -> None:
    """Rounds of four clients, or blocks of 64 rounds of one: the same numbers up to rounding."""
    problem = make_problem(CLIENTS, seed=1)
    size = CLIENTS.T * CLIENTS.K
    stream = replace(
        problem, x=problem.x.reshape(size, 1, CLIENTS.d), y=problem.y.reshape(size, 1),
        present=problem.present.reshape(size, 1), site=np.zeros(1, np.int64),
    )  # fmt: skip
    at_the_server, by_itself = (
        run(pooled, problem, make_dictionary(CLIENTS)),
        run(alone, stream, make_dictionary(CLIENTS)),
    )
    np.testing.assert_allclose(at_the_server.y_hat.reshape(CLIENTS.R, size, 1), by_itself.y_hat, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        at_the_server.squared_norm.reshape(CLIENTS.R, size, 1), by_itself.squared_norm, rtol=1e-9, atol=1e-12
    )
