"""Fed-POE: its literal transcription, its limiting cases, and what theory says of its weights."""

from typing import Any

import numpy as np
import pytest
from literal import fed_poe
from literal.worlds import Size, assert_close, make_dictionary, make_problem, run

from fkl.algorithms.federated.fed_poe import FedPoe

TOLERANCE = {"float64": 1e-9, "float32": 1e-5}


@pytest.mark.parametrize(
    ("keys", "size", "absent", "precision"),
    [
        ({}, Size(R=3), 0.0, "float64"),
        ({"eta": 0.3, "eta_k": 2.0, "lam": 0.1}, Size(N=7, T=20), 0.3, "float64"),
        ({"step_factor": 2.0, "local_steps": 3, "eta": 0.1, "eta_k": 5.0}, Size(K=6, T=20), 0.3, "float32"),
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
