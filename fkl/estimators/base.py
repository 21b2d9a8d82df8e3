"""Base classes of all of fkl's estimators, with scikit-learn's conventions and the common parameters."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from fkl.basics.arrays import Array, logistic_function
from fkl.basics.errors import require
from fkl.kernels import Dictionary
from fkl.kernels.dictionary import AroundMedian

MOST_SEEDS = 2**31


class Incremental(BaseEstimator):  # type: ignore[misc]
    """An estimator that can continue with `partial_fit`; a subclass implements `_begin`, `_learn` and `_values`.

    Attributes
    ----------
    n_samples_seen_ : int
    """

    def _begin(self, x: Array) -> None:
        """Forget all samples, and prepare to learn from the first samples x (n, d)."""
        raise NotImplementedError

    def _learn(self, x: Array, y: Array) -> int:
        """Learn from samples (n, d) and targets (n,); return the number of samples so far."""
        raise NotImplementedError

    def _values(self, x: Array) -> Array:
        """Values of the function, (n,)."""
        raise NotImplementedError

    def _numbers(self, y: Array) -> NDArray[np.float64]:
        """The targets as numbers, (n,)."""
        return np.asarray(y, np.float64)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget earlier samples, and learn from each of these samples once, in order.

        Parameters
        ----------
        X : (n, d)
        y : (n,)

        Returns
        -------
        self

        Raises
        ------
        fkl.basics.errors.FklError
            For parameters that are not allowed, or if the method diverges.
        """
        x, target = validate_data(self, X, y, dtype=np.float64, y_numeric=is_regressor(self))
        target = self._numbers(target)
        self._begin(x)
        self.n_samples_seen_ = self._learn(x, target)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from more samples after the earlier ones; parameters that changed have no effect until `fit`.

        Parameters
        ----------
        X : (n, d)
        y : (n,)

        Returns
        -------
        self

        Raises
        ------
        fkl.basics.errors.FklError
            For parameters that are not allowed, or if the method diverges.
        """
        begin = not hasattr(self, "n_samples_seen_")
        x: Any = X
        target: Any = y
        # scikit-learn's checks of a row take longer than learning from it. They are skipped for finite float64 arrays
        # with these shapes, which `validate_data` would return unchanged.
        clean = (
            not begin
            and type(x) is type(target) is np.ndarray
            and x.dtype == target.dtype == np.float64
            and x.shape == (len(target), self.n_features_in_)
            and target.ndim == 1
            and len(target) > 0
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(x).all())
            and bool(np.isfinite(target).all())
        )
        if not clean:
            x, target = validate_data(self, X, y, reset=begin, dtype=np.float64, y_numeric=is_regressor(self))
        target = self._numbers(target)
        if begin:
            self._begin(x)
        self.n_samples_seen_ = self._learn(x, target)
        return self

    def _checked_values(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return self._values(validate_data(self, X, reset=False, dtype=np.float64))


class IncrementalRegressor(RegressorMixin, Incremental):  # type: ignore[misc]
    """A regressor that continues with `partial_fit`."""

    def predict(self, X: ArrayLike) -> Array:
        """Predict samples; a learner of a stream predicts each of them as if it were the next sample.

        Parameters
        ----------
        X : (n, d)

        Returns
        -------
        (n,)
        """
        return self._checked_values(X)


class IncrementalClassifier(ClassifierMixin, Incremental):  # type: ignore[misc]
    """A classifier of two classes that continues with `partial_fit`; for more, `sklearn.multiclass` has a wrapper.

    Attributes
    ----------
    classes_ : (2,)
    """

    loss: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """As `Incremental.fit`, for targets of two classes."""
        if hasattr(self, "classes_"):
            del self.classes_
        return super().fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """As `Incremental.partial_fit`; the first call needs both `classes`, unless y has them."""
        if classes is not None and not hasattr(self, "classes_"):
            self.classes_ = _two(np.unique(classes))
        return super().partial_fit(X, y)

    def _numbers(self, y: Array) -> NDArray[np.float64]:
        """-1 and 1."""
        check_classification_targets(y)
        if not hasattr(self, "classes_"):
            self.classes_ = _two(np.unique(y))
        known = np.isin(y, self.classes_)
        require(bool(known.all()), "y", next(iter(y[~known]), ""), f"a class: {' or '.join(map(str, self.classes_))}")
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def decision_function(self, X: ArrayLike) -> Array:
        """F of samples X (n, d), (n,): above 0 for the second class."""
        return self._checked_values(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The classes of samples X (n, d), (n,)."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(np.int64)]

    @available_if(lambda self: self.loss == "logistic")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of both classes of samples X (n, d), (n, 2), 1 / (1 + exp(-f)) for the second."""
        second = logistic_function(self.decision_function(X))
        return np.stack([1 - second, second], axis=1)


def _two(classes: NDArray[Any]) -> NDArray[Any]:
    """Both classes; a ValueError in scikit-learn's words for another number."""
    if len(classes) > 2:
        kind = type_of_target(classes)
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    if len(classes) < 2:
        raise ValueError("y: has one class, where two classes are needed")
    return classes


def chosen_kernels(kernels: Dictionary | None, default: Dictionary, x: Array) -> Dictionary:
    """The kernels that a parameter specifies; some need the median distance of these samples (n, d)."""
    if kernels is None:
        return replace(default)
    require(isinstance(kernels, Dictionary), "kernels", kernels, "a fkl.kernels.Dictionary, or None")
    if isinstance(kernels, AroundMedian):
        return kernels.fitted(x[: kernels.samples])
    return replace(kernels)  # a copy, because a parameter and its cached attributes must not change


def seed_of_random_state(random_state: Any) -> int:
    """The seed: an integer itself, as in `fkl run`, or a number drawn by scikit-learn's rule."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(MOST_SEEDS))
