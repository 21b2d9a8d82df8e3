"""Base classes of all of fkl's estimators, with scikit-learn's conventions and the common parameters."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
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
    """An estimator that can continue with `partial_fit`.

    A subclass implements `_begin_learning`, `_learn_samples` and `_function_values`. `_learn_samples` may change arrays
    of `_state`, which is a copy of its own, and replaces every other attribute that it changes. It reads parameters
    from `_parameters`, which are those of the last `fit`.

    Attributes
    ----------
    n_samples_seen_ : int
    """

    _state: Any
    _parameters: SimpleNamespace

    def _begin_learning(self, x: Array) -> None:
        """Forget all samples, and prepare to learn from the first samples x (n, d)."""
        raise NotImplementedError

    def _learn_samples(self, x: Array, y: Array) -> int:
        """Learn from samples (n, d) and targets (n,); return the number of samples so far."""
        raise NotImplementedError

    def _function_values(self, x: Array) -> Array:
        """Values of the function, (n,)."""
        raise NotImplementedError

    def _targets_as_numbers(self, y: Array) -> NDArray[np.float64]:
        """The targets as numbers, (n,)."""
        return np.asarray(y, np.float64)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget earlier samples, and learn from each of these samples once, in order; an error changes nothing.

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
        with self._unchanged_by_errors():
            x, target = validate_data(self, X, y, dtype=np.float64, y_numeric=is_regressor(self))
            self._continue_learning(True, x, target)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from more samples after the earlier ones; an error changes nothing.

        Parameters of the estimator that changed have no effect until `fit`.

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
        with self._unchanged_by_errors():
            if not clean:
                x, target = validate_data(self, X, y, reset=begin, dtype=np.float64, y_numeric=is_regressor(self))
            self._continue_learning(begin, x, target)
        return self

    def _continue_learning(self, begin: bool, x: Array, y: Array) -> None:
        """Learn from valid samples, as the first ones or after the earlier ones."""
        target = self._targets_as_numbers(y)
        if begin:
            self._parameters = SimpleNamespace(**self.get_params(deep=False))
            self._begin_learning(x)
        else:
            self._state = deepcopy(self._state)
        self.n_samples_seen_ = self._learn_samples(x, target)

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """Give the estimator, and its generator of random numbers, their state from before a block that raises."""
        before, generator = dict(vars(self)), getattr(self, "random_state", None)
        drawn = generator.get_state(legacy=True) if isinstance(generator, np.random.RandomState) else ()
        try:
            yield
        except BaseException:  # also of an interrupted call
            self.__dict__.clear()
            self.__dict__.update(before)
            if isinstance(generator, np.random.RandomState):
                generator.set_state(drawn)  # type: ignore[arg-type]
            raise

    def _checked_values(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return self._function_values(validate_data(self, X, reset=False, dtype=np.float64))


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
        """Learn anew from samples whose targets are two classes."""
        with self._unchanged_by_errors():
            if hasattr(self, "classes_"):
                del self.classes_
            return super().fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Continue to learn from more samples; the first call needs both `classes`, unless y has them.

        Raises
        ------
        ValueError
            If a later call gives other classes.
        """
        with self._unchanged_by_errors():
            if classes is not None:
                both = _both_classes(np.unique(np.asarray(classes)))
                known = getattr(self, "classes_", both)
                if both.tolist() != known.tolist():
                    raise ValueError(f"classes={classes} is not the same as on the last call, which was {known}")
                self.classes_ = known
            return super().partial_fit(X, y)

    def _targets_as_numbers(self, y: Array) -> NDArray[np.float64]:
        """-1 and 1."""
        check_classification_targets(y)
        if not hasattr(self, "classes_"):
            self.classes_ = _both_classes(np.unique(y))
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

    def _has_probabilities(self) -> bool:
        """Whether the loss is logistic; after `fit`, that of `fit`."""
        given: Any = getattr(self, "_parameters", self)
        return bool(given.loss == "logistic")

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of both classes of samples X (n, d), (n, 2), 1 / (1 + exp(-f)) for the second."""
        second = logistic_function(self.decision_function(X))
        return np.stack([1 - second, second], axis=1)


def _both_classes(classes: NDArray[Any]) -> NDArray[Any]:
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
