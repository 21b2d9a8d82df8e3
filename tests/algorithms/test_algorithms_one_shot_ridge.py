"""One-shot ridge: exact, whatever the partition, and what noise on its sums is."""

from typing import Any

import numpy as np
import pytest
from literal import one_shot
from literal.worlds import assert_close

from fkl.algorithms.federated.one_shot_ridge import _solve_ridge
from fkl.conditions import accountant
from fkl.conformance import scenario
from fkl.contract.world import World
from fkl.engines.base import make_world
from fkl.runs import api
from fkl.runs.prepare import prepare

LAM = 0.05
WORDS = ("algo=one_shot_ridge", f"algo.lam={LAM}", "precision=float64")
UNEVEN = ("partition=quantity_skew", "partition.clients=5", "partition.rounds=60")


def learned(*words: str) -> tuple[World, Any]:
    """The world of one replicate, and the theta (K, P) that clients show."""
    experiment = prepare(scenario(*WORDS, *words))
    world, _ = make_world(experiment, (0,))
    world.channel.open_round(0, world.problem.present[0])
    _, theta = experiment.algorithm.step(world, experiment.algorithm.init(world), 0)
    return world, theta[0]


@pytest.mark.parametrize("words", [UNEVEN, ("kernels.D=200",)], ids=str)
def test_it_is_its_literal_and_the_optimum(words: tuple[str, ...]) -> None:
    """From sums sample by sample, with clients of few and of many samples, and with more features than samples."""
    world, theta = learned(*words)
    x, y, client = world.problem.part(True)
    phi = world.bank.features(x)[0, 0]
    if phi.shape[1] < 100:
        parts = [client == k for k in range(world.problem.clients)]
        literal = one_shot.ridge([phi[part] for part in parts], [y[part] for part in parts], LAM)
        assert_close(theta, np.broadcast_to(literal, theta.shape), 1e-9, "theta")
    assert_close(theta, np.broadcast_to(world.loss.optimum(world.training, LAM)[0], theta.shape), 1e-8, "optimum")


def test_a_message_is_no_longer_than_is_said() -> None:
    """With features of norm 1 and targets of at most 1, the root of 2: to clip there changes nothing."""
    _, plain = learned()
    _, clipped = learned("privacy=central", "privacy.clip=1.4143")
    assert_close(clipped, plain, 1e-12, "theta")
    _, shorter = learned("privacy=central", "privacy.clip=0.1")
    assert np.abs(shorter - plain).max() > 1e-3


def test_noise_is_told_of_as_one_mechanism() -> None:
    """One message a client is one Gaussian mechanism, which a sample moves twice as far as a client."""
    words = (*WORDS, "dataset=diabetes", "privacy.clip=1.5", "privacy.noise=2", "replicates=1")
    for where in ("central", "local"):
        rounds = api.run(*words, f"privacy={where}").rounds
        for name, sigma in (("epsilon_client", 2.0), ("epsilon_sample", 1.0)):
            assert rounds[name].tolist() == pytest.approx(accountant.epsilons(sigma, np.array([1]), 1e-5))


def test_sums_that_noise_has_made_indefinite_still_have_a_ridge() -> None:
    """As if their negative eigenvalues were 0; of those that are not, it is the plain solution."""
    random = np.random.default_rng(0)
    vectors, _ = np.linalg.qr(random.standard_normal((4, 4)))
    values, pull = np.array([-3.0, -0.1, 0.5, 2.0]), random.standard_normal(4)
    expected = vectors @ np.diag(1 / (np.maximum(values, 0) + LAM)) @ vectors.T @ pull
    np.testing.assert_allclose(_solve_ridge((vectors * values) @ vectors.T, pull, LAM), expected, rtol=1e-10)
    np.testing.assert_allclose(
        _solve_ridge((vectors * values**2) @ vectors.T, pull, LAM),
        np.linalg.solve((vectors * values**2) @ vectors.T + LAM * np.eye(4), pull),
    )


def test_absent_clients_are_left_out() -> None:
    """Theta is the optimum of those who are there; the others keep what they have, nothing."""
    words = ("participation=share", "participation.share=0.5")
    world, theta = learned(*words)
    here = world.problem.present[0]
    assert 0 < here.sum() < len(here)
    x, y, client = world.problem.part(True)
    phi = world.bank.features(x)[0, 0]
    parts = [client == k for k in np.flatnonzero(here)]
    literal = one_shot.ridge([phi[part] for part in parts], [y[part] for part in parts], LAM)
    assert_close(theta[here], np.broadcast_to(literal, theta[here].shape), 1e-9, "theta")
    assert (theta[~here] == 0).all()
