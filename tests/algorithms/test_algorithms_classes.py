"""Several classes: Fed3R is pooled ridge, losses are those of each class and of scikit-learn; digits are learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from literal.worlds import assert_close, play_experiment
from sklearn.linear_model import LogisticRegression, Ridge

from fkl.conformance import quick_run
from fkl.contract.world import World
from fkl.report import api
from fkl.runs.prepare import prepare_run

DIGITS = ("dataset=digits", "kernels.D=20", "kernels.smallest=0.5", "precision=float64")
FEDAVG = ("algo=fedavg", "algo.iterations=200", "algo.eta=0.5", "kernels=coke")
UNEVEN = ("partition=quantity_skew", "partition.clients=5", "partition.rounds=200")


def world_of(*words: str) -> tuple[World, Any]:
    """The world of one replicate, and the theta (K, C P) that clients show after the first round."""
    found = play_experiment(prepare_run(quick_run(*DIGITS, *words, "replicates=1")))
    return found.world, found.theta[0, 0]


@pytest.mark.parametrize("words", [UNEVEN, ("partition=dirichlet", "partition.rounds=80")], ids=str)
def test_fed3r_is_pooled_ridge_however_samples_are_divided(words: tuple[str, ...]) -> None:
    """By scikit-learn, on targets of 0 and 1 for each class."""
    world, theta = world_of("algo=fed3r", *words)
    x, y, _ = world.problem.part(True)
    phi, one_hot = world.bank.bank.features(x)[0, 0], np.eye(10)[(y.astype(int) + 9) // 2]  # type: ignore[attr-defined]
    pooled = Ridge(alpha=0.01, fit_intercept=False, solver="cholesky").fit(phi, one_hot).coef_.ravel()
    assert_close(theta, np.broadcast_to(pooled, theta.shape), 1e-10, "theta")


def test_the_optimum_of_softmax_is_scikit_learn_s_and_no_gradient_is_left_there() -> None:
    """Of samples with the same weight in equal clients, by another of its solvers."""
    lam = 0.01
    world, _ = world_of(*FEDAVG, "algo.loss=softmax", "algo.iterations=1")
    x, y, _ = world.problem.part(True)
    phi, K = world.bank.bank.features(x)[0, 0], world.problem.clients  # type: ignore[attr-defined]
    model = LogisticRegression(C=K / len(y) / (2 * lam), fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    theta = model.fit(phi, y, np.ones(len(y))).coef_.ravel()
    slope = world.loss.gradient(world.training, np.broadcast_to(theta, (1, K, theta.size)))[0].sum(axis=0)
    assert np.abs(slope + 2 * lam * theta).max() < 1e-10
    assert_close(world.loss.optimum(world.training, lam)[0], theta, 1e-5, "optimum")


@pytest.mark.parametrize("loss", ["softmax", "one_vs_rest"])
def test_gradients_are_slopes_of_mean_losses(loss: str) -> None:
    """By central differences, at clients with different numbers of samples."""
    world, _ = world_of(*FEDAVG, f"algo.loss={loss}", "algo.iterations=1", *UNEVEN, "kernels.D=3")
    random, rows = np.random.default_rng(0), world.training
    theta = random.standard_normal((1, len(rows.count), world.bank.width))
    for _ in range(5):
        step = 1e-5 * random.standard_normal(theta.shape)
        ends = [world.loss.mean(rows, theta + sign * step) for sign in (1, -1)]
        along = (world.loss.gradient(rows, theta) * step).sum(axis=-1)
        assert_close((ends[0] - ends[1]) / 2, along, 1e-6, "slope")


def test_digits_are_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fed3R misses few of them, and FedAvg with one local step descends to the optimum of each loss."""
    monkeypatch.chdir(tmp_path)
    assert prepare_run(quick_run(*FEDAVG, "algo.loss=one_vs_rest", "dataset=ellipses")).problem.classes == 2
    words = (*DIGITS, "kernels.D=100", "replicates=2")
    assert api.run("algo=fed3r", *words, quiet=True).summary["test_error"].mean() < 0.05
    for loss in ("softmax", "one_vs_rest"):
        steps = "algo.local_steps=1", "algo.eta=2" if loss == "softmax" else "algo.eta=0.5", "algo.iterations=300"
        found = api.run(*FEDAVG, f"algo.loss={loss}", *steps, "algo.lam=0.1", *words, quiet=True).summary.mean()
        assert found["test_error"] < 0.15
        assert found["train_loss"] == pytest.approx(found["train_loss_at_optimum"], rel=0.02)
        assert found["test_error_majority"] > 0.8
