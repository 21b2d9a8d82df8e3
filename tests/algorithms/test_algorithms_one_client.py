"""With one client to talk to nobody, an algorithm is what theory says of it: mostly a centralized method."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import ALGORITHMS, LOCAL_BATCHES, is_a_test, words_of
from literal.worlds import assert_close

from fkl.conformance import scenario
from fkl.conformance.played import outcomes
from fkl.contract.world import World
from fkl.engines.base import make_world
from fkl.runs.prepare import prepare
from fkl.tasks.stream import ALONE

Shown = tuple[World, list[dict[str, Any]]]


def shown(*overrides: str) -> Shown:
    """What one replicate shows in every round, in doubles."""
    experiment = prepare(scenario(*overrides, "precision=float64"))
    world, _ = make_world(experiment, (0,))
    return world, [experiment.task.shown(world, outcome) for outcome in outcomes(experiment.algorithm, world)]


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
Theory = tuple[tuple[str, ...], Callable[[Shown], None]] | str
THEORY: dict[str, Theory] = {
    "pof_mkl": ((*KERNEL, *ONE), gradient_descent),
    "ofmkl_avg": ((*KERNEL, *ONE), gradient_descent),
    "ofskl": ((*KERNEL, *ONE), gradient_descent),
    "vm_kofl": ((*KERNEL, *ONE), gradient_descent),
    "em_kofl": ((*KERNEL, *ONE), gradient_descent),
    "fed_poe": ((*KERNEL, *ONE), gradient_descent),
    **dict.fromkeys(("fedavg", "fedprox", "scaffold"), ((*KERNEL, *ONE, "algo.local_steps=1"), gradient_descent)),
    "fedavgm": ((*KERNEL, *ONE, "algo.local_steps=1", "algo.beta=0"), gradient_descent),
    "ditto": ((*KERNEL, *ONE, "algo.local_steps=1", "algo.lam_k=0"), gradient_descent),
    **dict.fromkeys(("q_fedavg", "pfedme"), "test_algorithms_local_training.py::test_limiting_cases"),
    **dict.fromkeys(
        [f"{name}_batches" for name in ("fedavg", "fedavgm", "fedprox", "scaffold", "ditto")],
        ((*AGENT, "algo.eta=0.5", "algo.iterations=400"), closed_form),
    ),
    "q_fedavg_batches": "test_algorithms_local_training.py::test_it_is_its_literal",
    "pfedme_batches": "test_algorithms_local_training.py::test_pfedme_is_its_authors",
    **dict.fromkeys(
        [f"{name}{data}" for name in ("fedadagrad", "fedadam", "fedyogi") for data in ("", "_batches")],
        "test_algorithms_local_training.py::test_the_server_is_flower_s",
    ),
    "fomd_oms": "test_algorithms_model_selection.py::test_one_kernel_is_projected_gradient_descent_on_the_mean_loss",
    "nco_oms": "test_algorithms_model_selection.py::test_one_client_has_nobody_to_collaborate_with",
    "rf_gp": "test_algorithms_rf_gp.py::test_told_in_every_round_it_is_ridge_regression_on_pooled_samples",
    "perfedavg": "a step of meta-learning has no centralized counterpart, of one client either",
    "cta": ((*AGENT, "algo.eta=0.5", "algo.iterations=400"), closed_form),
    "push_cta": ((*AGENT, "algo.eta=0.5", "algo.iterations=400"), closed_form),
    "dkla": (AGENT, closed_form),
    "one_shot_ridge": (AGENT, closed_form),
    "fed3r": "test_algorithms_classes.py::test_fed3r_is_pooled_ridge_however_samples_are_divided",
    **dict.fromkeys(("dkrr_ny_cm", "falkon"), "test_algorithms_nystroem.py::test_one_client_is_nystroem_s_closed_form"),
    "link_dkla": (AGENT, closed_form),
    "coke": ((*AGENT, "algo.v=0.5", "algo.mu=0.8"), closed_form),
    "dekrr_ddrf": "test_algorithms_decentralized.py::test_without_others_it_is_ridge_on_its_own_features",
    "odkla": (ONE, gradient_descent),
    "consensus_rf_gp": "test_algorithms_rf_gp.py::test_one_agent_is_one_client",
    "d_rf_gp": "test_algorithms_rf_gp.py::test_one_agent_is_one_client",
    "domkl": "test_algorithms_decentralized.py::test_domkl_alone_takes_proximal_steps_and_hedges",
    "qc_odkla": (ONE, gradient_descent),
    "pooled_raker": (ALONE, partial(alike, ("algo=raker",))),
    "pooled_ada_raker": (ALONE, partial(alike, ("algo=ada_raker",))),
    "pooled_omkl_gf": (ALONE, partial(alike, ("algo=omkl_gf",))),
    "parsimonious_federated": "test_algorithms_parsimonious_learners.py::test_one_agent_is_the_centralized_learner",
    "cascade_svm": "test_algorithms_parsimonious_learners.py::test_machines_send_all_or_their_support_vectors",
    "fdskl": "test_algorithms_vertical_fdskl.py::test_literal_protocol_fast_path_and_dsg_are_one",
    "fd_svrg": "test_algorithms_vertical_baselines.py::test_fd_svrg_is_its_messages",
    "pp_svmv": "test_algorithms_vertical_baselines.py::test_pp_svmv_is_the_pooled_machine",
    "secureboost": "test_algorithms_vertical_baselines.py::test_secureboost_loses_nothing",
    "vertical_nystroem": "test_algorithms_vertical_baselines.py::test_nystroem_does_not_depend_on_the_partition",
    "vertical_ridge": (
        "test_algorithms_vertical_baselines.py::test_feature_ridge_is_the_pooled_ridge_on_the_kernel_s_features"
    ),
    **dict.fromkeys(("dsg", "libsvm", "parsimonious_centralized", "pooled_svm"), "is a centralized case itself"),
    **dict.fromkeys(
        ("ada_raker", "omkl_gf", "omkl_sfg", "omkl_sfg_r", "omkr", "poly_2", "raker", "rbf_1", "rfomkr"),
        "is one learner alone",
    ),
}
"""Overrides that leave one client, and what it then is; or the test that says so, or why there is nothing to say."""


@pytest.mark.parametrize("algo", [*ALGORITHMS, *LOCAL_BATCHES])
def test_one_client_is_the_centralized_case(algo: str) -> None:
    """Whatever theory says of an algorithm without others to talk to."""
    assert algo in THEORY, f"say in THEORY what {algo} is with one client, or why there is nothing to say"
    theory = THEORY[algo]
    if isinstance(theory, str):
        assert "::" not in theory or is_a_test(f"algorithms/{theory}")
        return
    overrides, holds = theory
    holds(shown(*words_of(algo), *overrides))
