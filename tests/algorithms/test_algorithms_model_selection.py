"""FOMD-OMS and NCO-OMS: their literal transcriptions, their limiting cases, and what theory says of both."""

from typing import Any

import numpy as np
import pytest
from literal import fomd_oms, nco_oms
from literal.worlds import Size, Trace, assert_close, draws, make_dictionary, make_problem, run

from fkl.algorithms.federated.fomd_oms import FomdOms, ModelSelection, NcoOms, mirror_step

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
"""Gradients of few kernels weigh 1 / P_i, and so do roundings of single precision."""
METHODS = (FomdOms, NcoOms)
PLAIN: dict[type, Any] = {FomdOms: fomd_oms.run, NcoOms: nco_oms.run}
AUTHORS = {"eta": 32.0, "step_size": 0.3}
CASES: list[tuple[dict[str, Any], Size, float]] = [
    ({}, Size(R=3), 0.0),
    ({"J": 2, **AUTHORS}, Size(N=7, T=30), 0.3),
    ({"J": 3, "U": 0.1, "Y": 2.0, **AUTHORS}, Size(K=6), 0.3),
    ({"J": 5, "eta": 3.0}, Size(N=5), 0.3),
    ({"J": 2, "norms": [0.4, 0.3, 1.0, 0.8]}, Size(N=4, T=20, K=1), 0.3),
]


def both(method: type[ModelSelection], keys: dict[str, Any], size: Size, absent: float, **how: Any) -> Trace:
    problem = make_problem(size, seed=3, absent=absent, precision=how.get("precision", "float64"))
    return run(method(**keys), problem, make_dictionary(size), seed=5, replicates=tuple(range(size.R)), **how)


@pytest.mark.parametrize(
    ("keys", "size", "absent", "precision"), [*((*case, "float64") for case in CASES), (*CASES[0], "float32")], ids=repr
)
@pytest.mark.parametrize("method", METHODS)
def test_it_is_its_literal(
    method: type[ModelSelection], keys: dict[str, Any], size: Size, absent: float, precision: str
) -> None:
    """Predictions, losses, norms, traffic, parameters and p, in every replicate."""
    trace, own, tolerance = both(method, keys, size, absent, precision=precision), method(**keys), TOLERANCE[precision]
    state = trace.state.server or trace.state.client
    for r in range(size.R):
        uniform = draws(trace, r, size.K * (1 + size.N)).reshape(size.T, size.K, 1 + size.N)
        literal = PLAIN[method](
            trace.data(r), uniform, J=own.J, U=own.bounds(size.N).tolist(),
            lam=own.lam, eta=own.eta, step_size=own.step_size, Y=own.Y,
        )  # fmt: skip
        trace.require_literal(literal, r, tolerance)
        assert_close(state.theta[r].astype(np.float64), literal.theta, tolerance, "theta")
        assert_close(state.log_p[r], literal.log_w, tolerance, "log p")


def test_one_client_has_nobody_to_collaborate_with() -> None:
    """Then FOMD-OMS is NCO-OMS, with theory's rates too."""
    size = Size(K=1, T=40)
    for keys in ({}, {"J": 3, **AUTHORS}):
        one, other = (both(method, keys, size, 0.0) for method in METHODS)
        assert_close(one.y_hat, other.y_hat, 1e-12, "y_hat")
        assert_close(one.state.server.theta, other.state.client.theta[:, :, 0], 1e-12, "theta")


def test_one_kernel_is_projected_gradient_descent_on_the_mean_loss() -> None:
    size = Size(N=1, T=20)
    trace = both(FomdOms, {"J": 1, "step_size": 0.3, "U": 0.5}, size, 0.0)
    bank, problem, theta = trace.world.bank, trace.world.problem, np.zeros(2 * size.D)
    for t in range(size.T):
        z = bank.features(problem.x[t])[0, 0]
        assert_close(trace.y_hat[0, t], z @ theta, 1e-12, "y_hat")
        theta = theta - 0.3 * (2 * (z @ theta - problem.y[t]) @ z) / size.K
        theta *= min(1, 0.5 / np.linalg.norm(theta))


def test_estimates_of_what_is_looked_at_have_no_bias() -> None:
    """Over many draws 1[i is looked at] / P_i has mean 1, whatever p."""
    method, N, many = FomdOms(J=3), 6, 200_000
    log_p = np.log(np.array([0.5, 0.3, 0.1, 0.05, 0.04, 0.01]))
    index, chosen = method.draw(log_p[None, None], np.random.default_rng(0).random((1, many, 1 + N)))
    assert (chosen.sum(axis=-1) == 3).all()
    assert np.take_along_axis(chosen, index[..., None], axis=-1).all()
    odds = method.draw_probabilities(log_p)
    assert odds.sum() == pytest.approx(3)
    deviation = np.sqrt((1 - odds) / odds / many)
    assert (np.abs(chosen.mean(axis=(0, 1)) / odds - 1) < 5 * deviation).all()
    assert np.bincount(index[0]) / many == pytest.approx(np.exp(log_p), abs=0.005)


def test_the_mirror_step_is_hedge_where_all_spaces_are_as_large() -> None:
    """And in any case minimises <p, c> + D(p, p_t): its derivative is the same for every kernel."""
    random = np.random.default_rng(1)
    log_p = np.log(random.dirichlet(np.ones(7), size=(3, 2)))
    c = random.exponential(size=(3, 2, 7)) * 10
    p = np.exp(mirror_step(log_p, c, 0.7, np.full(7, 4.0)))
    weights = np.exp(log_p - 0.7 * c / 4)
    assert_close(p, weights / weights.sum(axis=-1, keepdims=True), 1e-12, "p")
    C, eta = np.linspace(1, 4, 7), 0.7
    found = mirror_step(log_p, c, eta, C)
    assert np.exp(found).sum(axis=-1) == pytest.approx(1, abs=1e-12)
    slope = c + C / eta * (found - log_p)
    assert np.ptp(slope, axis=-1) == pytest.approx(0, abs=1e-9)
    assert ((slope <= c.max(axis=-1, keepdims=True) + 1e-9) & (slope >= -1e-9)).all()  # -mu lies in [0, max c]
    far = mirror_step(np.array([-1e6, 0.0, -50.0]), np.array([0.0, 1e5, 1e5]), 3.0, np.array([1.0, 2.0, 3.0]))
    assert np.exp(far).sum() == pytest.approx(1)


def test_the_ledger_books_J_kernels() -> None:
    """Down J theta, the number of the one that predicts and N bits; up J gradients and losses, and N bits for each."""
    size = Size(N=11, D=6)
    trace = both(FomdOms, {"J": 3}, size, 0.0, precision="float32")
    for direction, scalars, masks in (("downlink", 3 * 12 + 1, 1), ("uplink", 3 * (12 + 1), 2)):
        tally = trace.ledger.tallies[direction]
        assert (tally.by_client[..., 1] == size.T * scalars).all()
        assert (tally.by_client[..., 2] == size.T * (4 * scalars + masks * 2)).all()
    silent = both(NcoOms, {"J": 3}, size, 0.0)
    assert not any(tally.by_client.any() for tally in silent.ledger.tallies.values())
