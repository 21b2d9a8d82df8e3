"""Learners at a server that all samples are sent to: the learner alone, and what its clients send."""

from dataclasses import replace

import numpy as np
import pytest
from literal.worlds import Size, make_dictionary, make_problem, run

from fkl.algorithms.base import Algorithm
from fkl.algorithms.federated.pooled import PooledAdaRaker, PooledOmklGf, PooledRaker
from fkl.algorithms.online.learners import AdaRaker, Raker
from fkl.algorithms.online.omkl_gf import OmklGf

SIZE = Size(N=5, D=6, K=4, T=40)
LEARNERS: list[tuple[Algorithm, Algorithm]] = [
    (PooledRaker(eta=0.2), Raker(eta=0.2)),
    (PooledAdaRaker(eta=0.2), AdaRaker(eta=0.2)),
    (PooledAdaRaker(eta=0.2, restart=True), AdaRaker(eta=0.2, restart=True)),
    (PooledOmklGf(M=2, exploring=70), OmklGf(M=2, exploring=70)),
]


@pytest.mark.parametrize(("pooled", "alone"), LEARNERS, ids=lambda algorithm: algorithm.label)
def test_is_the_learner_on_one_stream_client_after_client(pooled: Algorithm, alone: Algorithm) -> None:
    """Rounds of four clients, or blocks of 64 rounds of one: the same numbers up to rounding."""
    problem = make_problem(SIZE, seed=1)
    size = SIZE.T * SIZE.K
    stream = replace(
        problem, x=problem.x.reshape(size, 1, SIZE.d), y=problem.y.reshape(size, 1),
        present=problem.present.reshape(size, 1), site=np.zeros(1, np.int64),
    )  # fmt: skip
    at_the_server, by_itself = run(pooled, problem, make_dictionary(SIZE)), run(alone, stream, make_dictionary(SIZE))
    np.testing.assert_allclose(at_the_server.y_hat.reshape(SIZE.R, size, 1), by_itself.y_hat, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        at_the_server.squared_norm.reshape(SIZE.R, size, 1), by_itself.squared_norm, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("pooled", [pooled for pooled, _ in LEARNERS], ids=lambda algorithm: algorithm.label)
def test_traffic_is_the_samples(pooled: Algorithm) -> None:
    """The d features and the target up, a prediction down."""
    ledger = run(pooled, make_problem(SIZE, seed=2), make_dictionary(SIZE)).ledger
    assert (ledger.tallies["uplink"].by_client[..., 1] == SIZE.T * (SIZE.d + 1)).all()
    assert (ledger.tallies["downlink"].by_client[..., 1] == SIZE.T).all()
    assert set(ledger.kinds) == {("uplink", "features"), ("uplink", "target"), ("downlink", "prediction")}
