"""Fed-POE: its literal transcription, its limiting cases, and what theory says of its weights."""

from typing import Any

import numpy as np
import pytest
from literal import fed_poe
from literal.worlds import Size, assert_close, make_dictionary, make_problem, run

from fkl.algorithms.federated.descent import OfmklAvg
from fkl.algorithms.federated.fed_poe import FedPoe
from fkl.basics.errors import BadValue

TOLERANCE = {"float64": 1e-9, "float32": 1e-5}


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("keys", "size", "absent"),
    [
        ({}, Size(R=3), 0.0),
        ({"eta": 0.3, "eta_k": 2.0, "lam": 0.1}, Size(N=7, T=20), 0.3),
        ({"step_factor": 2.0, "local_steps": 3, "eta": 0.1, "eta_k": 5.0}, Size(K=6, T=20), 0.3),
        ({"lam": 0.0}, Size(N=1, K=1), 0.0),
    ],
    ids=repr,
)
def test_it_is_its_literal(keys: dict[str, Any], size: Size, absent: float, precision: str) -> None:
    """Predictions, losses, norms, traffic, all theta and all weights."""
    problem, own = make_problem(size, seed=3, absent=absent, precision=precision), FedPoe(**keys)
    trace = run(own, problem, make_dictionary(size), seed=5, replicates=tuple(range(size.R)), precision=precision)
    bank, tolerance, rate, here = trace.world.bank, TOLERANCE[precision], size.T**-0.5, problem.present
    for r in range(size.R):
        literal, thetas, log_ab = fed_poe.run(
            problem.x, problem.y, here, bank.rho[r], bank.scale, eta=own.eta or rate, eta_k=own.eta_k or rate,
            lam=own.lam, step_factor=own.step_factor, local_steps=own.local_steps,
        )  # fmt: skip
        assert trace.loss is not None
        for name, found in (("y_hat", trace.y_hat), ("loss", trace.loss), ("squared_norm", trace.squared_norm)):
            assert_close(found[r][here], getattr(literal, name)[here], tolerance, name)
        for direction, scalars in (("uplink", literal.uplink), ("downlink", literal.downlink)):
            np.testing.assert_array_equal(trace.ledger.tallies[direction].by_client[r, :, 1], scalars.sum(axis=0))
        client = trace.state.client
        assert_close(trace.state.server.theta[r], literal.theta, tolerance, "theta")
        assert_close(client.theta[r].astype(np.float64), thetas, tolerance, "own theta")
        assert_close(client.log_w[r], literal.log_w, tolerance, "log w")
        assert_close(client.log_ab[r], log_ab, tolerance, "log a and b")


def test_one_client_learns_the_same_together_and_alone() -> None:
    """So both mixtures are one, and a = b."""
    size = Size(K=1, T=30)
    state = run(FedPoe(eta_k=3.0), make_problem(size, seed=1), make_dictionary(size)).state
    assert_close(state.server.theta, state.client.theta[:, :, 0], 1e-12, "theta")
    assert_close(state.client.log_ab[..., 0], state.client.log_ab[..., 1], 1e-12, "log a")


def test_what_is_learned_together_does_not_know_what_is_learned_alone() -> None:
    """The server's theta are OFMKL-Avg's, bit for bit."""
    size = Size(T=20)
    mine, plain = (run(method, make_problem(size, seed=2, absent=0.3), make_dictionary(size)).state.server.theta
                   for method in (FedPoe(eta_k=4.0), OfmklAvg()))  # fmt: skip
    assert mine.tobytes() == plain.tobytes()


@pytest.mark.parametrize("eta_k", [0.1, 1.0, 10.0])
def test_no_client_does_much_worse_than_the_better_of_both(eta_k: float) -> None:
    """Exponential weights: sum (f - y)^2 <= min over both + ln 2 / eta_k + eta_k / 2 sum of the larger loss squared.

    And both mixtures hold the same against each of their own kernels, with ln N.
    """
    size = Size(T=150, K=5)
    problem = make_problem(size, seed=4)
    own = FedPoe(eta_k=eta_k, lam=0.0)
    trace = run(own, problem, make_dictionary(size), replicates=(0,))
    assert trace.loss is not None
    weights, errors, of_both = np.zeros((size.K, 2, size.N)), [], []
    for t in range(size.T):
        losses = trace.loss[0, t].reshape(size.K, 2, size.N)
        bank = trace.world.bank
        assert losses.shape[-1] == bank.kernels
        errors.append((trace.y_hat[0, t] - problem.y[t]) ** 2)
        p = np.exp(-eta_k * weights)
        of_both.append((p / p.sum(axis=-1, keepdims=True) * losses).sum(axis=-1))  # no less than the mixtures' own
        weights += losses
    learned, either = np.sum(errors, axis=0), np.sum(of_both, axis=0)
    most = trace.loss[0].max(axis=-1) ** 2
    slack = eta_k / 2 * most.sum(axis=0)
    assert (either <= weights.min(axis=-1) + np.log(size.N) / eta_k + slack[:, None]).all()
    assert (learned <= either.min(axis=-1) + np.log(2) / eta_k + slack).all()


@pytest.mark.parametrize("key", ["eta", "eta_k", "step_factor"])
def test_bad_keys_are_named(key: str) -> None:
    with pytest.raises(BadValue) as error:
        FedPoe(**{key: -1.0})
    assert error.value.key == key
