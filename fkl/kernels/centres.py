"""The span of some samples: features whose products are the kernel's projection on it (Nystroem)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fkl.kernels.dictionary import Dictionary

Array = NDArray[np.floating]
JITTER = 1e-10
"""Added to the kernel matrix of the centres, times their number: duplicate samples make it singular."""


@dataclass(frozen=True)
class CentreBank:
    """phi(x) = L^-1 k(centres, x), L L' = k(centres, centres): phi(x)'phi(x') is kappa if x or x' is a centre.

    So theta'phi(x) = sum_i alpha_i kappa(c_i, x) with alpha = L'^-1 theta, and |theta| is the norm of this function.

    Parameters
    ----------
    dictionary : Dictionary
        With one exact kernel.
    centres : (R, m, d)
    """

    dictionary: Dictionary
    centres: Array

    @property
    def replicates(self) -> int:
        """R."""
        return self.centres.shape[0]

    @property
    def width(self) -> int:
        """Length of phi(x): m."""
        return self.centres.shape[1]

    @cached_property
    def root(self) -> NDArray[np.float64]:
        """L of each replicate, (R, m, m)."""
        more = JITTER * self.width * np.eye(self.width)
        return np.stack([np.linalg.cholesky(self._gram(one, one) + more) for one in self.centres])

    def features(self, x: Array) -> NDArray[np.float64]:
        """Phi of samples x (n, d), (R, 1, n, m)."""
        from scipy.linalg import solve_triangular  # slower to import than most of fkl

        made = np.empty((self.replicates, 1, len(x), self.width))
        for r, centres in enumerate(self.centres):
            made[r, 0] = solve_triangular(self.root[r], self._gram(centres, x), lower=True).T
        return made

    def of_centres(self) -> NDArray[np.float64]:
        """Phi of the centres themselves, (R, m, m): L."""
        return self.root

    def coefficients(self, theta: Array) -> NDArray[np.float64]:
        """Alpha (R, K, m) of theta (R, K, m)."""
        from scipy.linalg import solve_triangular  # slower to import than most of fkl

        pairs = zip(self.root, theta, strict=True)
        return np.stack([solve_triangular(root, own.T, lower=True, trans="T").T for root, own in pairs])

    def _gram(self, a: Array, b: Array) -> NDArray[np.float64]:
        return self.dictionary.gram(0, np.asarray(a, np.float64), np.asarray(b, np.float64))
