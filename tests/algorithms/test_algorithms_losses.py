"""Losses of methods of streams: against scikit-learn step by step, limiting cases, and what a run shows of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import ALGORITHMS, class_of, conformance, small
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from literal.worlds import Size, make_dictionary, make_problem, play_experiment, run
from sklearn.linear_model import SGDClassifier, SGDRegressor

import fkl
from fkl.algorithms.base import WithLoss
from fkl.algorithms.online.learners import Raker
from fkl.basics.errors import BadValue, FklError
from fkl.basics.pointwise import KINDS, pointwise_loss
from fkl.config.compose import compose_config
from fkl.config.loading import load_run
from fkl.conformance import PROMISES
from fkl.engines.per_world import OneAgainstRest
from fkl.kernels.compiled_losses import loss_of_one, slope_of_one
from fkl.runs.prepare import prepare_run

NUMBERS = st.floats(-5, 5)
ALONE = Size(R=1, K=1, N=1, D=4, T=40)
ETA, LAM, LEVEL, DELTA = 0.7, 0.01, 0.5, 0.1
WITH_LOSSES = [algo for algo in ALGORITHMS if issubclass(class_of(algo), WithLoss)]
WITH_CLASSES = [algo for algo in WITH_LOSSES if algo != "domkl"]


def signs(size: Size) -> Any:
    """A small world of two classes."""
    return replace(make_problem(size, 3), y=np.sign(make_problem(size, 3).y - 0.6))


@pytest.mark.parametrize("name", KINDS)
@given(arrays(float, 9, elements=NUMBERS), NUMBERS, st.floats(0.1, 0.9))
def test_a_derivative_is_the_slope_of_a_convex_loss(name: str, f: np.ndarray, y: float, at: float) -> None:
    """Each value lies above all tangents; compiled loops see the same numbers."""
    loss = pointwise_loss(name, at, at)
    y = float(np.sign(y) or 1.0) if loss.classes else y
    value, slope = loss.value(f, y), loss.derivative(f, y)
    assert (value[:, None] >= value + slope * (f[:, None] - f) - 1e-9).all()
    for one, own, rises in zip(f, value, slope, strict=True):
        assert slope_of_one(loss, one, y) == pytest.approx(rises, abs=1e-12)
        assert name == "smooth_hinge" or loss_of_one(loss, one, y) == pytest.approx(own, abs=1e-12)
    if name in ("hinge", "quantile"):
        lower, _ = loss.moreau_envelope(f, y, 0.01)
        assert ((lower <= value + 1e-12) & (value <= lower + 0.005)).all()


@pytest.mark.parametrize(
    ("loss", "theirs", "factor"),
    [
        ("square", SGDRegressor(loss="squared_error"), 2),
        ("huber", SGDRegressor(loss="huber", epsilon=DELTA), 2),
        ("quantile", SGDRegressor(loss="epsilon_insensitive", epsilon=0), 0.5),
        ("logistic", SGDClassifier(loss="log_loss"), 1),
        ("hinge", SGDClassifier(loss="hinge"), 1),
        ("least_squares", SGDClassifier(loss="squared_error"), 2),
    ],
)
def test_one_kernel_learns_as_scikit_learn_step_by_step(loss: str, theirs: Any, factor: float) -> None:
    """Their losses are divided by a factor; alpha |w|^2 / 2 is lam |theta|^2."""
    problem = signs(ALONE) if pointwise_loss(loss).classes else make_problem(ALONE, 3)
    keys = {"level": LEVEL} if loss == "quantile" else {"delta": DELTA} if loss == "huber" else {}
    method = Raker(eta=ETA, lam=LAM, loss=loss, **keys)
    trace = run(method, replace(problem, loss=method.pointwise), make_dictionary(ALONE), replicates=(0,))
    theirs.set_params(alpha=2 * LAM / factor, eta0=ETA * factor, learning_rate="invscaling", power_t=0.5)
    theirs.set_params(fit_intercept=False, shuffle=False)
    z = trace.world.bank.features(problem.x[:, 0])[0, 0]
    more = {"classes": [-1, 1]} if method.pointwise.classes else {}
    for t in range(ALONE.T):
        f = 0.0 if t == 0 else float(z[t] @ theirs.coef_.ravel())
        assert trace.y_hat[0, t, 0] == pytest.approx(f, abs=1e-10)
        theirs.partial_fit(z[t : t + 1], problem.y[t], **more)


def of_three_classes(problem: Any, method: Any) -> Any:
    """The problem with the thirds of its targets as classes."""
    thirds = np.searchsorted(np.quantile(problem.y, (1 / 3, 2 / 3)), problem.y)
    return replace(problem, y=thirds).of_classes(method.loss, method.pointwise)


def test_one_kernel_learns_several_classes_as_scikit_learn() -> None:
    method = Raker(eta=ETA, lam=LAM, loss="logistic")
    problem = of_three_classes(make_problem(ALONE, 3), method)
    trace = run(OneAgainstRest(method), problem, make_dictionary(ALONE), replicates=(0,))
    theirs = SGDClassifier(
        loss="log_loss", alpha=2 * LAM, eta0=ETA, learning_rate="invscaling", power_t=0.5, fit_intercept=False
    )
    z = trace.world.bank.features(problem.x[:, 0])[0, 0]
    for t in range(ALONE.T):
        f = np.zeros(3) if t == 0 else theirs.coef_ @ z[t]
        signs = np.where(problem.y[t] == [-2, 0, 2], 1, -1)
        size = 0.0 if t == 0 else (theirs.coef_**2).sum()
        assert trace.y_hat[0, t, 0] == ((-2, 0, 2)[f.argmax()] if t else 3)  # 3 names none of three
        assert trace.loss[0, t, 0, 0] == pytest.approx(np.logaddexp(0, -signs * f).sum() + LAM * size, abs=1e-9)
        theirs.partial_fit(z[t : t + 1], problem.y[t], classes=[-2, 0, 2])


@pytest.mark.parametrize("algo", WITH_CLASSES)
def test_the_largest_function_against_the_rest_names_the_class(algo: str) -> None:
    """As when the method learns each class in a run of its own, and sends the messages of these runs."""
    words = "algo.loss=logistic", "dataset=digits", "partition.rounds=20", "replicates=1"
    given = prepare_run(load_run(compose_config(*small(algo), *words)))
    together, classes = play_experiment(given), given.problem.loss.class_values
    each = [
        play_experiment(replace(given, algorithm=given.algorithm.method, problem=world.problem))
        for world in given.algorithm.worlds_made(together.world)
    ]
    f = np.stack([one.stacked("y_hat") for one in each])
    named = np.where(f.max(axis=0) > f.min(axis=0), classes[f.argmax(axis=0)], len(classes))
    np.testing.assert_array_equal(together.stacked("y_hat"), named)
    for direction, tally in together.ledger.tallies.items():
        sent = sum(one.ledger.tallies[direction].by_round for one in each)
        np.testing.assert_array_equal(tally.by_round, sent)


def predictions(algo: str, *words: str) -> np.ndarray:
    """All predictions of a method's small run."""
    return play_experiment(prepare_run(load_run(compose_config(*small(algo), *words)))).stacked("y_hat")


@pytest.mark.parametrize("algo", WITH_CLASSES)
def test_a_huber_loss_with_a_large_delta_is_the_squared_one(algo: str) -> None:
    """To the bit; and another loss predicts otherwise."""
    square = predictions(algo)
    np.testing.assert_array_equal(predictions(algo, "algo.loss=huber", "algo.delta=1e9"), square)
    assert not np.allclose(predictions(algo, "algo.loss=quantile"), square, atol=1e-4)


@pytest.mark.parametrize(
    "algo", ["raker", *(pytest.param(one, marks=pytest.mark.slow) for one in ("pof_mkl", "odkla"))]
)
@pytest.mark.parametrize("promise", PROMISES)
def test_a_method_keeps_its_promises_with_another_loss(algo: str, promise: Any) -> None:
    few = "kernels.N=9" if algo == "pof_mkl" else "seed=0"
    promise(conformance("dataset=ellipses", "partition=iid", *small(algo)[1:], few, "algo.loss=logistic"))


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
def test_a_method_keeps_its_promises_with_several_classes(promise: Any) -> None:
    promise(conformance("dataset=digits", *small("odkla")[1:], "algo.loss=logistic", "partition.rounds=30"))


def test_a_run_shows_mistakes_and_predicts_classes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("dataset=ellipses", "partition=iid", "partition.clients=3", "kernels.N=9", "replicates=2", "algo.eta=0.5")
    done = fkl.run(*words, "algo.loss=logistic", "save_model=true", quiet=True)
    summary = done.summary.mean()
    assert summary["error"] < min(summary["error_majority"], summary["error_last_class"])
    assert 0 < summary["loss"] < np.log(2)
    assert summary["regret_best_kernel"] < summary["regret_hindsight"]
    assert {*np.unique(done.predict(np.zeros((3, 2))))} <= {*fkl.load_model(done.folder / "model.npz").classes}
    with pytest.raises(FklError, match=r"algo\.loss=logistic: must be square: the target has"):
        fkl.run("dataset=diabetes", "algo.loss=logistic", quiet=True)


def test_a_run_learns_digits(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Better than the most frequent digit; what needs one function of numbers is refused."""
    monkeypatch.chdir(tmp_path)
    words = ("dataset=digits", "kernels=auto", "kernels.N=5", "kernels.D=20", "replicates=1", "algo.loss=logistic")
    alone = ("algo=raker", "partition=stream", "partition.rounds=600", "algo.eta=2")
    summary = fkl.run(*words, *alone, quiet=True).summary.mean()
    assert summary["error"] < 0.75 * min(summary["error_majority"], summary["error_last_class"])
    assert summary["regret_hindsight"] > 0
    for more in ("save_model=true", "engine=jax", "privacy=local", "intervals=adaptive"):
        with pytest.raises(FklError, match=more.partition("=")[0] + r".*(of 10 classes|predicts a class)$"):
            fkl.run(*words, more, quiet=True)


def test_a_quantile_is_above_its_share_of_drifting_targets(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("algo=raker", "dataset=drift", "partition=stream", "replicates=2", "algo.loss=quantile", "algo.eta=3")
    for level in (0.2, 0.9):
        summary = fkl.run(*words, f"algo.level={level}", "kernels.N=3", "kernels.laplacians=0", quiet=True).summary
        assert summary["below"].mean() == pytest.approx(level, abs=0.05)
        assert (summary["pinball"] < summary["pinball_last_value"]).all()


@pytest.mark.parametrize("dataset", ["diabetes", "drift"])
def test_hubers_default_is_not_the_squared_error(dataset: str, request) -> None:
    """Where no error was above delta, a run says so."""
    words = (
        "run",
        "algo=raker",
        f"dataset={dataset}",
        "algo.eta=0.5",
        "partition=stream",
        "kernels.D=4",
        "replicates=1",
        "figures=none",
    )
    told, fkl = {}, request.getfixturevalue("fkl")  # a module here has the same name
    for keys in (("algo.loss=square",), ("algo.loss=huber",), ("algo.loss=huber", "algo.delta=9")):
        answer = fkl(*words, *keys, f"out={len(told)}")
        assert answer.code == 0
        told[keys] = pd.read_csv(f"{len(told)}/summary.csv"), "no error was above it" in " ".join(answer.err.split())
    (square, _), (default, silent), (wide, said) = told.values()
    assert default.mse[0] != square.mse[0] and default.loss[0] < default.mse[0] and not silent
    assert wide.mse[0] == square.mse[0] == wide.loss[0] and said


def test_configurations_of_older_runs_are_still_read() -> None:
    """They name the older default of delta, which their loss does not use."""
    Raker(loss="square", delta=1.0)
    with pytest.raises(BadValue, match=r"0\.1 unless algo\.loss=huber"):
        Raker(loss="square", delta=0.2)
