"""A call that raises changes nothing, and parameters are those of the last `fit`."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from small_estimators import CLASSIFIERS, EVERY, REGRESSORS

from fkl.basics.errors import FklError
from fkl.kernels import Dictionary

OTHER = {
    "kernels": Dictionary(N=3, D=4),
    "eta": 1e-3,
    "lam": 7.0,
    "precision": "float64",
    "random_state": 9,
    "loss": "least_squares",
    "level": 0.9,
    "delta": 1e-3,
    "M": 1,
    "J": 4,
    "exploring": 3,
    "horizon": 7,
}
"""For each parameter a value that no small estimator has."""
X, Y = make_friedman1(120, random_state=0)
Y = Y / 30


def new_copy(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def targets(model: Any) -> Any:
    return np.array(["no", "yes"])[(Y.mean() < Y).astype(int)] if is_classifier(model) else Y


def said(model: Any) -> bytes:
    """What an estimator says of samples, and knows."""
    told = [getattr(model, name)(X).tolist() for name in ("predict", "predict_proba") if hasattr(model, name)]
    known = [np.asarray(getattr(model, name, 0)).tolist() for name in ("weights_", "classes_", "n_samples_seen_")]
    return repr((told, known)).encode()


def contents(model: Any) -> bytes:
    """The same, and all else that it holds."""
    return said(model) + pickle.dumps(model)


def spoilt(model: Any, reason: str, rows: slice) -> tuple[Any, Any, dict[str, Any]]:
    """Arguments of a `partial_fit` that has to raise."""
    x, y = X[rows].copy(), targets(model)[rows].copy()
    more: dict[str, Any] = {}
    at = len(y) // 2
    if reason in ("nan", "inf"):
        x[at, 1] = float(reason)
    elif reason == "shape":
        x = x[:, :-1]
    elif reason == "huge":
        x, y = x * 1e300, y if is_classifier(model) else y * 1e300
    elif reason == "label":
        y = y.astype(object) if is_classifier(model) else y.astype(str)
        y[at] = "maybe"
    elif reason == "target":
        y = np.array([*y[:-1], None], object)
    elif reason == "classes":
        more["classes"] = ["a", "b"]
    return x, y, more


@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
@settings(max_examples=12)
@given(
    reason=st.sampled_from(["nan", "inf", "shape", "huge", "label", "target", "classes"]),
    call=st.sampled_from(["partial_fit", "fit"]),
    seen=st.sampled_from([0, 1, 40]),
    size=st.integers(1, 80),
)
def test_a_call_that_raises_changes_nothing(model: Any, reason: str, call: str, seen: int, size: int) -> None:
    model, good = new_copy(model), targets(model)
    if is_classifier(model) and seen == 1:
        model.partial_fit(X[:1], good[:1], classes=["no", "yes"])
    elif seen:
        model.partial_fit(X[:seen], good[:seen])
    x, y, more = spoilt(model, reason, slice(40, 40 + size))
    if more and (call == "fit" or not is_classifier(model)):
        return
    before = contents(model) if seen else None
    try:
        getattr(model, call)(x if seen else x[:, 1:], y, **more)
    except (FklError, ValueError, TypeError):
        pass
    else:  # this is no fault of a first call, or of this estimator
        assert reason in ("huge", "label", "shape")
        return
    if seen:
        assert contents(model) == before
        return
    with pytest.raises(NotFittedError):
        model.predict(X)
    clean, other = clone(model), (Y.mean() < Y) if is_classifier(model) else Y
    assert said(model.partial_fit(X[:50], other[:50])) == said(clean.partial_fit(X[:50], other[:50]))


@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("size", [1, 30])
def test_a_target_that_breaks_the_model_is_refused(model: Any, size: int) -> None:
    """By the call that has it, also as its last row, after whose prediction the method learns."""
    model = new_copy(model).fit(X[:60], targets(model)[:60])
    x, y = X[60 : 60 + size].copy(), targets(model)[60 : 60 + size].copy()
    if is_classifier(model):
        x[-1] = 1e308
    else:
        y[-1] = 1e307
    before = contents(model)
    try:
        model.partial_fit(x, y)
    except FklError:
        assert contents(model) == before
    assert np.isfinite(getattr(model, "decision_function", model.predict)(X)).all()


def test_a_generator_of_the_user_goes_on_from_where_it_was() -> None:
    generator = np.random.RandomState(3)
    model = new_copy(REGRESSORS["raker"]).set_params(random_state=generator, eta=1e6)
    before = generator.get_state()[1].tolist(), generator.get_state()[2]
    with pytest.raises(FklError, match="diverged"):
        model.partial_fit(X, Y)
    assert (generator.get_state()[1].tolist(), generator.get_state()[2]) == before


@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
def test_parameters_that_changed_have_no_effect_until_fit(model: Any) -> None:
    """For each parameter by itself, in what is learned and in what can be asked."""
    y = targets(model)
    for name in model.get_params(deep=False):
        changed, kept = (new_copy(model).fit(X[:60], y[:60]) for _ in range(2))
        changed.set_params(**{name: OTHER[name]})
        assert hasattr(changed, "predict_proba") == hasattr(kept, "predict_proba"), name
        changed.partial_fit(X[60:], y[60:])
        kept.partial_fit(X[60:], y[60:])
        ask = "decision_function" if is_classifier(model) else "predict"
        assert (getattr(changed, ask)(X) == getattr(kept, ask)(X)).all(), name
        assert hasattr(changed, "predict_proba") == hasattr(kept, "predict_proba"), name
    ridge = new_copy(REGRESSORS["ridge"]).fit(X[:60], Y[:60]).set_params(lam=-1.0).partial_fit(X[60:], Y[60:])
    with pytest.raises(FklError, match=r"^lam=-1"):
        ridge.fit(X, Y)


@pytest.mark.parametrize("other", [["a", "b"], ["no"], ["no", "yes", "perhaps"], [0, 1], ["no", "Yes"]], ids=str)
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=lambda model: type(model).__name__)
def test_other_classes_later_raise(model: Any, other: list[Any]) -> None:
    y = targets(model)
    for known in (new_copy(model).fit(X, y), new_copy(model).partial_fit(X, y, classes=["yes", "no"])):
        before = contents(known)
        with pytest.raises(ValueError):
            known.partial_fit(X, y, classes=other)
        assert contents(known) == before
        known.partial_fit(X, y, classes=["yes", "no", "no"])
