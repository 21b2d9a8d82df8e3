"""Nystroem methods of a star against their literal transcriptions, their limits, and what they refuse."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from literal import one_shot
from literal.common import Array
from literal.worlds import assert_close, by_agent, play_experiment

from fkl.algorithms.federated.nystroem import _without_replacement
from fkl.algorithms.sums import _solve_ridge
from fkl.conditions import accountant
from fkl.conformance import quick_run
from fkl.contract.world import World
from fkl.report import api
from fkl.runs.prepare import prepare_run

LAM, WIDTH = 0.2, 0.25
WORDS = (f"algo.lam={LAM}", "algo.centres=3", f"kernels.smallest={WIDTH}", "precision=float64")
UNEVEN = ("partition=quantity_skew", "partition.clients=3", "partition.rounds=60")
POINTS = np.random.default_rng(8).uniform(-0.3, 0.3, (6, 10))


def kernel(a: Array, b: Array) -> float:
    return float(np.exp(-((a - b) @ (a - b)) / (2 * WIDTH**2)))


def learned(algo: str, iterations: int, *words: str) -> tuple[World, Array, Array]:
    """The world of one replicate, the centres, and f at the points, (K, 6)."""
    given = prepare_run(quick_run(f"algo={algo}", *WORDS, f"algo.iterations={iterations}", *words, "replicates=1"))
    found = play_experiment(given)
    state: Any = found.states[-1]
    [function] = given.algorithm.functions(found.world, state, iterations)  # type: ignore[attr-defined]
    return found.world, state.client.centres[0], function.sums(POINTS)


def parts(world: World) -> tuple[list[Array], list[Array]]:
    """Each client's samples."""
    x, y, client = world.problem.part(True)
    own = [client == k for k in range(world.problem.clients)]
    return [x[one] for one in own], [y[one] for one in own]


@pytest.mark.parametrize(("steps", "words"), [(1, ()), (5, UNEVEN)], ids=str)
def test_falkon_is_its_literal(steps: int, words: tuple[str, ...]) -> None:
    """In coefficients, with the paper's T and A, where ours are in the space of the centres."""
    world, centres, f = learned("falkon", 1 + steps, *words)
    literal = one_shot.falkon(kernel, *parts(world), centres, LAM, steps, POINTS)
    assert_close(f, np.broadcast_to(literal, f.shape), 1e-9, "f")


@pytest.mark.parametrize(("communications", "words"), [(0, UNEVEN), (4, UNEVEN)], ids=str)
def test_dkrr_ny_cm_is_its_literal(communications: int, words: tuple[str, ...]) -> None:
    """Its first round is DKRR-NY, the mean of what clients find alone."""
    world, centres, f = learned("dkrr_ny_cm", 1 + communications, *words)
    lam = LAM / world.problem.clients
    literal = one_shot.dkrr_ny_cm(kernel, *parts(world), centres, lam, communications, POINTS)
    assert_close(f, np.broadcast_to(literal, f.shape), 1e-9, "f")


@pytest.mark.parametrize(("algo", "iterations"), [("falkon", 30), ("dkrr_ny_cm", 1)])
def test_one_client_is_nystroem_s_closed_form(algo: str, iterations: int) -> None:
    """Of one client its own solution is that of all, without a communication."""
    world, centres, f = learned(algo, iterations, "partition.clients=1", "algo.centres=8")
    exact = one_shot.nystroem(kernel, *parts(world), centres, LAM, POINTS)
    assert_close(f, exact[None], 1e-8, "f")


def test_centres_are_drawn_without_replacement_and_uniformly() -> None:
    u = np.random.default_rng(0).random((20000, 3))
    drawn = np.array([_without_replacement(one, 5) for one in u])
    assert all(len(set(one)) == 3 for one in drawn[:1000])
    np.testing.assert_allclose(np.bincount(drawn.ravel(), minlength=5) / len(u), 0.6, atol=0.02)
    assert sorted(_without_replacement(u[0], 2)) == [0, 1], "all there are"


# --- One-shot ridge: exact, whatever the partition, and what noise on its sums is.

RIDGE = 0.05
ONE_SHOT = ("algo=one_shot_ridge", f"algo.lam={RIDGE}", "precision=float64")
OF_FIVE = ("partition=quantity_skew", "partition.clients=5", "partition.rounds=60")


def one_shot_of(*words: str) -> tuple[World, Any]:
    """The world of one replicate, and the theta (K, P) that clients show."""
    found = play_experiment(prepare_run(quick_run(*ONE_SHOT, *words, "replicates=1")))
    return found.world, found.theta[0, 0]


@pytest.mark.parametrize("words", [OF_FIVE, ("kernels.D=200",)], ids=str)
def test_one_shot_ridge_is_its_literal_and_the_optimum(words: tuple[str, ...]) -> None:
    """From sums sample by sample, with clients of few and of many samples, and with more features than samples."""
    world, theta = one_shot_of(*words)
    if world.bank.width < 100:
        literal = one_shot.ridge(*by_agent(world, 0), RIDGE)
        assert_close(theta, np.broadcast_to(literal, theta.shape), 1e-9, "theta")
    assert_close(theta, np.broadcast_to(world.loss.optimum(world.training, RIDGE)[0], theta.shape), 1e-8, "optimum")


def test_a_message_is_no_longer_than_is_said() -> None:
    """With features of norm 1 and targets of at most 1, the root of 2: to clip there changes nothing."""
    _, plain = one_shot_of()
    _, clipped = one_shot_of("privacy=central", "privacy.clip=1.4143")
    assert_close(clipped, plain, 1e-12, "theta")
    _, shorter = one_shot_of("privacy=central", "privacy.clip=0.1")
    assert np.abs(shorter - plain).max() > 1e-3


def test_noise_is_told_of_as_one_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message a client is one Gaussian mechanism, which a sample moves twice as far as a client."""
    monkeypatch.chdir(tmp_path)
    words = (*ONE_SHOT, "dataset=diabetes", "privacy.clip=1.5", "privacy.noise=2", "replicates=1")
    for where in ("central", "local"):
        rounds = api.run(*words, f"privacy={where}").rounds
        for name, sigma in (("epsilon_client", 2.0), ("epsilon_sample", 1.0)):
            assert rounds[name].tolist() == pytest.approx(accountant.gaussian_epsilons(sigma, np.array([1]), 1e-5))


def test_sums_that_noise_has_made_indefinite_still_have_a_ridge() -> None:
    """As if their negative eigenvalues were 0; of those that are not, it is the plain solution."""
    random = np.random.default_rng(0)
    vectors, _ = np.linalg.qr(random.standard_normal((4, 4)))
    values, pull = np.array([-3.0, -0.1, 0.5, 2.0]), random.standard_normal(4)
    expected = vectors @ np.diag(1 / (np.maximum(values, 0) + RIDGE)) @ vectors.T @ pull
    np.testing.assert_allclose(_solve_ridge((vectors * values) @ vectors.T, pull, RIDGE), expected, rtol=1e-10)
    np.testing.assert_allclose(
        _solve_ridge((vectors * values**2) @ vectors.T, pull, RIDGE),
        np.linalg.solve((vectors * values**2) @ vectors.T + RIDGE * np.eye(4), pull),
    )


def test_absent_clients_are_left_out_of_the_ridge() -> None:
    """Theta is the optimum of those who are there; the others keep what they have, nothing."""
    words = ("participation=share", "participation.share=0.5")
    world, theta = one_shot_of(*words)
    here = world.problem.present[0]
    assert 0 < here.sum() < len(here)
    those = ([parts[k] for k in np.flatnonzero(here)] for parts in by_agent(world, 0))
    literal = one_shot.ridge(*those, RIDGE)
    assert_close(theta[here], np.broadcast_to(literal, theta[here].shape), 1e-9, "theta")
    assert (theta[~here] == 0).all()
