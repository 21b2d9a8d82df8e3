"""With one client to talk to nobody, an algorithm is what theory says of it: mostly a centralized method."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import ALGORITHMS, LOCAL_BATCHES, words_of
from literal.worlds import assert_close

from fkl.conformance import quick_run
from fkl.conformance.played import method_outcomes
from fkl.contract.world import World
from fkl.engines.base import make_world
from fkl.runs.prepare import prepare_run
from fkl.tasks.stream import ALONE

Shown = tuple[World, list[dict[str, Any]]]


def shown(*overrides: str) -> Shown:
    """What one replicate shows in every round, in doubles."""
    experiment = prepare_run(quick_run(*overrides, "precision=float64"))
    world, _ = make_world(experiment, (0,))
    return world, [
        experiment.task.values_to_show(world, outcome) for outcome in method_outcomes(experiment.algorithm, world)
    ]


def gradient_descent(one: Shown) -> None:
    """Online gradient descent on (theta'z - y)^2 + lam |theta|^2."""
    world, rounds = one
    problem, eta, lam = world.problem, 1 / np.sqrt(world.problem.rounds), 1e-3
    theta, expected = np.zeros(world.bank.width), []
    for x, y in zip(problem.x[:, 0], problem.y[:, 0], strict=True):
        z = world.bank.features(x[None])[0, 0, 0]
        expected.append(theta @ z)
        theta = theta - eta * (2 * (theta @ z - y) * z + 2 * lam * theta)
    found = np.array([told["y_hat"][0, 0] for told in rounds])
    assert_close(found, np.array(expected), 1e-10, "y_hat")


def closed_form(one: Shown) -> None:
    """The minimiser of the mean loss of all samples, with its regularisation."""
    world, rounds = one
    assert_close(rounds[-1]["theta"][0], world.loss.optimum(world.training, LAM), 1e-9, "theta")


def alike(overrides: tuple[str, ...], one: Shown) -> None:
    """Another algorithm's predictions."""
    _, other = shown(*overrides)
    mine, theirs = (np.array([told["y_hat"][0, 0] for told in rounds]) for rounds in (one[1], other))
    assert_close(mine, theirs, 1e-10, "y_hat")


LAM = 0.1
KERNEL = ("kernels.N=1", "kernels.smallest=1", "kernels.largest=1")
ONE = ("partition.clients=1",)
AGENT = (*ONE, f"algo.lam={LAM}")
Theory = tuple[tuple[str, ...], Callable[[Shown], None]]
STREAM = (*KERNEL, *ONE)
DESCENT: Theory = ((*AGENT, "algo.eta=0.5", "algo.iterations=400"), closed_form)
THEORY: dict[str, Theory] = {
    **dict.fromkeys(("pof_mkl", "ofmkl_avg", "ofskl", "vm_kofl", "em_kofl", "fed_poe"), (STREAM, gradient_descent)),
    **dict.fromkeys(("fedavg", "fedprox", "scaffold"), ((*STREAM, "algo.local_steps=1"), gradient_descent)),
    "fedavgm": ((*STREAM, "algo.local_steps=1", "algo.beta=0"), gradient_descent),
    "ditto": ((*STREAM, "algo.local_steps=1", "algo.lam_k=0"), gradient_descent),
    **dict.fromkeys(("odkla", "qc_odkla"), (ONE, gradient_descent)),
    **dict.fromkeys([f"{name}_batches" for name in ("fedavg", "fedavgm", "fedprox", "scaffold", "ditto")], DESCENT),
    **dict.fromkeys(("cta", "push_cta"), DESCENT),
    **dict.fromkeys(("dkla", "one_shot_ridge", "link_dkla"), (AGENT, closed_form)),
    "coke": ((*AGENT, "algo.v=0.5", "algo.mu=0.8"), closed_form),
    **{f"pooled_{name}": (ALONE, partial(alike, (f"algo={name}",))) for name in ("raker", "ada_raker", "omkl_gf")},
}
"""Overrides that leave one client, and what it then is."""
THEIR_OWN_TESTS_SAY = """
    q_fedavg pfedme q_fedavg_batches pfedme_batches fedadagrad fedadam fedyogi fedadagrad_batches fedadam_batches
    fedyogi_batches fomd_oms nco_oms rf_gp fed3r dkrr_ny_cm falkon dekrr_ddrf consensus_rf_gp d_rf_gp domkl
    parsimonious_federated cascade_svm fdskl fd_svrg pp_svmv secureboost vertical_nystroem vertical_ridge
"""
NOTHING_TO_SAY = """
    perfedavg dsg libsvm parsimonious_centralized pooled_svm ada_raker omkl_gf omkl_sfg omkl_sfg_r omkr poly_2 raker
    rbf_1 rfomkr
"""
"""A step of meta-learning has no centralized counterpart; the others are one learner, or have all samples."""


@pytest.mark.parametrize("algo", THEORY)
def test_one_client_is_the_centralized_case(algo: str) -> None:
    overrides, holds = THEORY[algo]
    holds(shown(*words_of(algo), *overrides))


def test_every_method_says_what_one_client_is() -> None:
    others = f"{THEIR_OWN_TESTS_SAY} {NOTHING_TO_SAY}".split()
    assert sorted((*THEORY, *others)) == sorted((*ALGORITHMS, *LOCAL_BATCHES))
