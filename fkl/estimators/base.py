"""Base class of all of fkl's regressors, with scikit-learn's conventions and the common parameters."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.kernels import Dictionary
from fkl.kernels.dictionary import AroundMedian

MOST_SEEDS = 2**31


class IncrementalRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that can continue with `partial_fit`; a subclass implements `_begin`, `_learn` and `_predict`.

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

    def _predict(self, x: Array) -> Array:
        raise NotImplementedError

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
        x, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._begin(x)
        self.n_samples_seen_ = self._learn(x, np.asarray(target, np.float64))
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
            x, target = validate_data(self, X, y, reset=begin, dtype=np.float64, y_numeric=True)
        if begin:
            self._begin(x)
        self.n_samples_seen_ = self._learn(x, np.asarray(target, np.float64))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict samples; a learner of a stream predicts each of them as if it were the next sample.

        Parameters
        ----------
        X : (n, d)

        Returns
        -------
        (n,)
        """
        check_is_fitted(self)
        return self._predict(validate_data(self, X, reset=False, dtype=np.float64))


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
