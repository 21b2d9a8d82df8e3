"""What all of fkl's regressors share: scikit-learn's conventions, and parameters that several have."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fkl.basics.errors import require
from fkl.kernels import Dictionary
from fkl.kernels.around_median import AroundMedian

Array = NDArray[np.float64]
MOST_SEEDS = 2**31


class IncrementalRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that learns on with `partial_fit`; a subclass says in `_begin`, `_learn` and `_predict` what it does.

    Attributes
    ----------
    n_samples_seen_ : int
    """

    def _begin(self, x: Array, whole: bool) -> None:
        """Forget everything before the first samples x (n, d), which are the whole stream or its beginning."""
        raise NotImplementedError

    def _learn(self, x: Array, y: Array) -> int:
        """Learn from samples (n, d) and targets (n,); return how many samples were seen so far."""
        raise NotImplementedError

    def _predict(self, x: Array) -> Array:
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, and learn from these samples, once and in their order.

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
            For parameters that are not allowed, or where the method diverges.
        """
        x, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._begin(x, whole=True)
        self.n_samples_seen_ = self._learn(x, np.asarray(target, np.float64))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from more samples, after those before; parameters that are set meanwhile count from `fit` on.

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
            For parameters that are not allowed, or where the method diverges.
        """
        begin = not hasattr(self, "n_samples_seen_")
        x: Any = X
        target: Any = y
        # scikit-learn's checks of a row take longer than learning from it: what `validate_data` would return as it is,
        # finite arrays of float64 with these shapes, does not pass through it.
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
            self._begin(x, whole=False)
        self.n_samples_seen_ = self._learn(x, np.asarray(target, np.float64))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict samples; a learner of a stream predicts as it would predict the next sample.

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
    """The kernels that a parameter asks for, around the median distance of these samples (n, d) if it does so."""
    if kernels is None:
        return replace(default)
    require(isinstance(kernels, Dictionary), "kernels", kernels, "a fkl.kernels.Dictionary, or None")
    if isinstance(kernels, AroundMedian):
        return kernels.fitted(x[: kernels.samples])
    return replace(kernels)  # a parameter stays as it was given, also what it has remembered of itself


def seed_of_random_state(random_state: Any) -> int:
    """The seed: an integer is taken as it is, as by `fkl run`; of anything else one is drawn by scikit-learn's rule."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(MOST_SEEDS))
