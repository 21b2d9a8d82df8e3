"""FOMD-OMS and NCO-OMS: their literal transcriptions, their limiting cases, and what theory says of both."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from literal import fomd_oms, nco_oms
from literal.worlds import Size, Trace, assert_close, draws, make_dictionary, make_problem, run

from fkl.algorithms.federated.fomd_oms import FomdOms, ModelSelection, NcoOms, mirror_step, project_into_balls
from fkl.basics.errors import BadValue
from fkl.conditions.compression import Uniform
from fkl.conditions.late import LateUpdates
from fkl.conditions.wrapped import wrap

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
    ({"J": 1, "step_size": 0.5}, Size(N=1), 0.0),
    ({"J": 2, "norms": [0.4, 0.2, 1.0, 0.8], "eta": 20.0, "step_size": 0.4}, Size(N=4, T=30), 0.0),
    ({"J": 2, "norms": [0.4, 0.3, 1.0, 0.8]}, Size(N=4, T=20, K=1), 0.3),
]


def both(method: type[ModelSelection], keys: dict[str, Any], size: Size, absent: float, **how: Any) -> Trace:
    problem = make_problem(size, seed=3, absent=absent, precision=how.get("precision", "float64"))
    return run(method(**keys), problem, make_dictionary(size), seed=5, replicates=tuple(range(size.R)), **how)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("keys", "size", "absent"), CASES, ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_it_is_its_literal(
    method: type[ModelSelection], keys: dict[str, Any], size: Size, absent: float, precision: str
) -> None:
    """Predictions, losses, norms, traffic, parameters and p, in every replicate."""
    trace, own, tolerance = both(method, keys, size, absent, precision=precision), method(**keys), TOLERANCE[precision]
    bank, problem = trace.world.bank, trace.world.problem
    here, state = problem.present, trace.state.server or trace.state.client
    for r in range(size.R):
        uniform = draws(trace, r, size.K * (1 + size.N)).reshape(size.T, size.K, 1 + size.N)
        literal = PLAIN[method](
            problem.x, problem.y, here, bank.rho[r], bank.scale, uniform, J=own.J, U=own.bounds(size.N).tolist(),
            lam=own.lam, eta=own.eta, step_size=own.step_size, Y=own.Y,
        )  # fmt: skip
        assert trace.loss is not None
        for name, found in (("y_hat", trace.y_hat), ("loss", trace.loss), ("squared_norm", trace.squared_norm)):
            assert_close(found[r][here], getattr(literal, name)[here], tolerance, name)
        for direction, scalars in (("uplink", literal.uplink), ("downlink", literal.downlink)):
            tally = trace.ledger.tallies[direction]
            np.testing.assert_array_equal(tally.by_client[r, :, 1], scalars.sum(axis=0))
            np.testing.assert_array_equal(tally.by_round[:, r, 1], scalars.sum(axis=1))
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
    odds = method.chances(log_p)
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


def test_theta_never_leaves_its_ball() -> None:
    """However far a step goes: so |f| <= U, and no error exceeds (U + Y)^2."""
    for method in METHODS:
        trace = both(method, {"J": 2, "U": 0.3, "step_size": 1e6}, Size(T=30), 0.0)
        theta = (trace.state.server or trace.state.client).theta
        assert np.sqrt((theta**2).sum(axis=-1)).max() <= 0.3 * (1 + 1e-12)
        assert np.abs(trace.y_hat).max() <= 0.3 * (1 + 1e-12)
    inside = np.random.default_rng(0).standard_normal((4, 3)) / 100
    assert project_into_balls(inside, np.full(4, 1.0)).tobytes() == inside.tobytes()


@pytest.mark.parametrize("method", METHODS)
def test_regret_stays_below_its_bound(method: type[ModelSelection]) -> None:
    """Against each kernel's best theta in its ball: what mirror descent promises of p, and of theta, in expectation.

    Of p C ln(N T) / eta + eta T C (1 + a / K), with a = (N - J) / (J - 1); of theta U^2 / (2 lambda_T) and
    sum_t lambda_t G^2 (1 + a / K) / 2. Theory's rates; ten replicates are averaged.
    """
    size = Size(R=10, K=4, N=5, T=200)
    trace, own = both(method, {"J": 2}, size, 0.0), method(J=2)
    assert trace.loss is not None
    K, T = (size.K if method is FomdOms else 1), size.T
    a, C, G = own.spread(size.N), 4.0, 4.0
    eta, lam = own.rate(size.N, T, K), np.array([own.steps(size.N, t, K)[0] for t in range(T)])
    of_p = C * np.log(size.N * T) / eta + eta * T * C * (1 + a / K)
    of_theta = 1 / (2 * lam[-1]) + (lam * G**2 * (1 + a / K)).sum() / 2
    y, z = trace.world.problem.y, [trace.world.bank.features(trace.world.problem.x[t]) for t in range(T)]
    gaps = []
    for r in range(size.R):
        learned = ((trace.y_hat[r] - y) ** 2).mean(axis=1).sum()
        for i in range(size.N):
            features = np.concatenate([of[r, i] for of in z])
            best = project_into_balls(np.linalg.lstsq(features, y.ravel(), rcond=1e-8)[0][None], np.ones(1))[0]
            gaps.append(learned - ((features @ best - y.ravel()) ** 2).reshape(T, size.K).mean(axis=1).sum())
    regret = np.array(gaps).reshape(size.R, size.N).mean(axis=0)
    assert (regret <= of_p + of_theta).all()


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


@pytest.mark.parametrize(
    ("keys", "N", "key"),
    [
        ({"J": 0}, 5, "J"),
        ({"J": 1}, 5, "J"),
        ({"J": 6}, 5, "J"),
        ({"U": 0.0}, 5, "U"),
        ({"norms": [1.0, 2.0]}, 5, "norms"),
        ({"norms": [1.0, -2.0]}, 2, "norms"),
        ({"Y": -1.0}, 5, "Y"),
        ({"eta": 0.0}, 5, "eta"),
        ({"step_size": 0.0}, 5, "step_size"),
        ({"lam": -1.0}, 5, "lam"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_bad_keys_are_named(method: type[ModelSelection], keys: dict[str, Any], N: int, key: str) -> None:
    with pytest.raises(BadValue) as error:
        both(method, keys, Size(N=N), 0.0)
    assert error.value.key == key


def test_what_a_draw_of_the_round_or_silence_cannot_have_is_refused() -> None:
    """Answers that come when other kernels were drawn, few bits to all alike, and any condition on no message."""
    with pytest.raises(BadValue, match="labels or null for FOMD-OMS, whose server weighs"):
        wrap(FomdOms(), {"late": LateUpdates()})
    with pytest.raises(BadValue, match="false for FOMD-OMS, whose server sends each its own"):
        wrap(FomdOms(), {"compression": Uniform(down=True)})
    assert wrap(FomdOms(), {"compression": replace(Uniform(), down=False)}).label == "FOMD-OMS"
    with pytest.raises(BadValue, match="null for NCO-OMS"):
        wrap(NcoOms(), {"compression": Uniform()})
