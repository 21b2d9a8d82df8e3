"""Ridge regression in random features as a regressor."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from fkl.algorithms.vertical.ridge import BLOCK, NormalEquations
from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, require
from fkl.basics.random_streams import Streams
from fkl.estimators.base import IncrementalRegressor, chosen_kernels, seed_of_random_state
from fkl.kernels import Dictionary
from fkl.kernels.functions import OnFeatures

KERNELS = Dictionary(N=3, smallest=1.0, largest=10.0, bandwidth_convention="deviation", D=60)


class RffRidgeRegressor(IncrementalRegressor):
    """Ridge regression in random features: the best function for all samples so far, in any order.

    It minimises (1/n) sum_t (f(x_t) - y_t)^2 + lam |theta|^2 over f = theta'z + bias, with z the concatenated random
    features of all kernels, so its kernel is their sum. It stores sums over samples, P^2 numbers for P features, but no
    samples. Its bandwidths are suitable for features of standard deviation 1, so scale the samples first.

    Parameters
    ----------
    kernels : fkl.kernels.Dictionary or None
        By default Gaussian kernels of deviation 1, 3.2 and 10, with 60 random frequencies each.
    lam : float
        Regularisation parameter; the bias is not regularised.
    random_state : int, RandomState or None

    Attributes
    ----------
    n_samples_seen_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from fkl.estimators import RffRidgeRegressor
    >>> X, y = make_friedman1(400, random_state=0)
    >>> model = RffRidgeRegressor().fit(X[:200], y[:200])
    >>> model.partial_fit(X[200:300], y[200:300]).n_samples_seen_
    300
    >>> model.score(X[300:], y[300:]) > 0.7
    True
    """

    def __init__(self, kernels: Dictionary | None = None, lam: float = 1e-3, random_state: Any = 0) -> None:
        self.kernels, self.lam, self.random_state = kernels, lam, random_state

    def _begin_learning(self, x: Array) -> None:
        require(0 < self.lam < np.inf, "lam", self.lam, "a number > 0")
        kernels = chosen_kernels(self.kernels, KERNELS, x)
        self._bank = kernels.bank(x.shape[1], Streams(seed_of_random_state(self.random_state), (0,)), "float64")
        self._state = NormalEquations(self._bank.kernels * self._bank.width)

    def _learn_samples(self, x: Array, y: Array) -> int:
        for start in range(0, len(x), BLOCK):
            [z] = self._bank.features(x[start : start + BLOCK])
            self._state.add(np.concatenate([*z], axis=1), y[start : start + BLOCK])
        theta, bias = deepcopy(self._state).solve(self._parameters.lam)
        if not (np.isfinite(theta).all() and np.isfinite(bias)):
            raise FklError("ridge regression overflowed: divide X and y by about their largest values")
        of_kernels, equal = theta.reshape(1, self._bank.kernels, -1), np.ones((1, self._bank.kernels))
        self._function = replace(OnFeatures.from_bank(self._bank, 0, of_kernels, equal), bias=np.array(bias))
        return int(self._state.samples)

    def _function_values(self, x: Array) -> Array:
        return self._function.predict(x)[0]
