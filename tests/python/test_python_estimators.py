"""fkl's learners as scikit-learn's regressors: the numbers of `fkl run`, and all conventions."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import check_estimator
from small_estimators import EVERY, FEW, REGRESSORS

from fkl.algorithms.online.learners import Raker
from fkl.basics.errors import FklError
from fkl.config.compose import compose_config
from fkl.config.loading import Run, load_run
from fkl.engines.base import make_world
from fkl.estimators import (
    OmklGfRegressor,
    OmkrRegressor,
    RakerClassifier,
    RakerRegressor,
    RffRidgeRegressor,
)
from fkl.kernels import Dictionary
from fkl.runs.prepare import prepare_run

LONG_ENOUGH = 150
"""Samples: more than two blocks that a run plays at once."""
METHODS = ("raker", "omkl_gf", "omkr")
Array = NDArray[np.floating]


def run(algo: str, precision: str) -> Run:
    """A run on a stream of 442 samples, with the parameters of the small estimators."""
    keys = ["dataset=diabetes", "partition=stream", "replicates=1", "seed=3", f"precision={precision}"]
    keys += [f"algo={algo}", "algo.eta=0.5", "kernels.N=7", "kernels.laplacians=2", "kernels.D=6"]
    return load_run(compose_config(*keys, *(["algo.M=2", "algo.exploring=40"] if algo == "omkl_gf" else [])))


def played(algo: str, precision: str = "float64") -> tuple[Array, Array, Array]:
    """The samples that the run's method sees, and what it predicts for each before it is told."""
    experiment = prepare_run(run(algo, precision))
    world, _ = make_world(experiment, (0,))
    state, shown = experiment.algorithm.init(world), []
    for t in range(world.problem.rounds):
        state, outcome = experiment.algorithm.step(world, state, t)
        shown.append(outcome.y_hat[0, 0])
    return world.problem.x[:, 0], world.problem.y[:, 0], np.array(shown)


def one_by_one(model: object, x: Array, y: Array) -> Array:
    """What an estimator predicts for each sample before it is given it."""
    shown = [0.0]
    model.partial_fit(x[:1], y[:1])
    for t in range(1, len(y)):
        shown += [*model.predict(x[t : t + 1])]
        model.partial_fit(x[t : t + 1], y[t : t + 1])
    return np.array(shown)


@pytest.mark.parametrize("algo", METHODS)
@pytest.mark.parametrize(("precision", "off"), [("float64", 1e-12), ("float32", 1e-5)])
def test_sample_after_sample_it_predicts_what_fkl_run_predicts(algo: str, precision: str, off: float) -> None:
    x, y, y_hat = played(algo, precision)
    model = clone(REGRESSORS[algo]).set_params(precision=precision)
    if algo != "omkr":
        model.set_params(random_state=3)
    if algo == "omkl_gf":
        model.set_params(horizon=len(y))
    shown = one_by_one(pickle.loads(pickle.dumps(model)), x[:LONG_ENOUGH], y[:LONG_ENOUGH])
    np.testing.assert_allclose(shown, y_hat[:LONG_ENOUGH], rtol=0, atol=off)


@pytest.mark.parametrize("algo", METHODS)
def test_its_parameters_are_those_of_fkl_run(algo: str) -> None:
    given = load_run(compose_config(f"algo={algo}", "dataset=diabetes", "partition=stream", "replicates=1"))
    model = {"raker": RakerRegressor, "omkl_gf": OmklGfRegressor, "omkr": OmkrRegressor}[algo]()
    assert model._make_method() == given.algo
    assert model._kernels == given.kernels
    assert (model.precision, model.random_state) == (given.settings.precision, given.settings.seed)


@pytest.mark.parametrize("name", REGRESSORS)
@settings(max_examples=5)
@given(cuts=st.sets(st.integers(1, 149), max_size=4), horizon=st.sampled_from([60, None]))
def test_how_samples_come_in_does_not_matter(name: str, cuts: set[int], horizon: int | None) -> None:
    """Beyond rounding; a stream whose end was not foreseen goes on with the numbers that follow."""
    x, y = make_friedman1(150, random_state=0)
    y = y / 30
    whole, parts = (fresh(name) for _ in range(2))
    if name == "omkl_gf":
        whole, parts = (model.set_params(horizon=horizon) for model in (whole, parts))
    whole.fit(x, y)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(y)], strict=True):
        parts.partial_fit(x[start:end], y[start:end])
    assert whole.n_samples_seen_ == parts.n_samples_seen_ == 150
    np.testing.assert_allclose(parts.predict(x), whole.predict(x), rtol=0, atol=1e-8)


def fresh(name: str) -> object:
    """A small estimator in float64; OMKL-GF's draws end after 60 of its samples, and go on."""
    model = pickle.loads(pickle.dumps(REGRESSORS[name]))
    if name != "ridge":
        model.set_params(precision="float64")
    return model.set_params(horizon=60) if name == "omkl_gf" else model


def test_ridge_is_scikit_learn_s_on_the_same_features() -> None:
    x, y = make_friedman1(80, random_state=0)
    model = clone(REGRESSORS["ridge"]).fit(x, y)
    z = np.concatenate([*model._bank.features(x)[0]], axis=1)
    theirs = Ridge(alpha=len(y) * model.lam).fit(z, y).predict(z)
    np.testing.assert_allclose(model.predict(x), theirs, rtol=1e-8)


@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
def test_scikit_learn_s_own_checks(model: object) -> None:
    """A classifier's probabilities are those of the class that it predicts."""
    check_estimator(model)


def test_a_quantile_and_two_classes_are_those_of_fkl_run() -> None:
    x, y = make_friedman1(80, random_state=0)
    model = RakerRegressor(FEW, loss="quantile", level=0.9).fit(x, y / 30)
    assert model._make_method() == Raker(loss="quantile", level=0.9)
    words = np.array(["no", "yes"])[(y > y.mean()).astype(int)]
    classes = RakerClassifier(FEW, eta=2.0).fit(x, words)
    assert (classes.predict_proba(x)[:, 1] > 0.5).tolist() == (classes.predict(x) == "yes").tolist()
    with pytest.raises(FklError, match="loss=hinge: must be square or huber or quantile"):
        RakerRegressor(FEW, loss="hinge").fit(x, y)


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (RakerRegressor(eta=0), "eta=0: must be a number > 0"),
        (RakerRegressor(kernels="rbf"), "kernels=rbf: must be a fkl.kernels.Dictionary, or None"),
        (RakerRegressor(precision="half"), "precision=half: must be float32 or float64"),
        (RakerRegressor(FEW, eta=1e6), "Raker diverged by sample 64 with eta=1000000.0: lower it"),
        (OmklGfRegressor(horizon=0), "horizon=0: must be an integer >= 1, or None"),
        (RffRidgeRegressor(kernels=Dictionary("polynomial", 1, smallest=2, largest=2)), "kernels.family=polynomial: "),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_in_one_line(model: object, line: str) -> None:
    with pytest.raises(FklError) as error:
        model.fit(*make_friedman1(80, random_state=0))
    assert str(error.value).startswith(line)
