"""LIBSVM: the support vector machine on pooled data, the reference for the private methods."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.vertical.messages import Array, Count
from fkl.algorithms.vertical.parties import Held, Learning
from fkl.basics.errors import FklError, require
from fkl.basics.memory import require_memory
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.functions import Function, Linear, OnPoints

BLOCK = 1 << 22
"""Kernel values that are held at a time for predictions."""
LEAST_TOLERANCE = 1e-9
"""Smaller tolerances may be impossible because of rounding."""
MOST_MIB = 1e6


@dataclass(frozen=True)
class Machine:
    """f(x) = sum_s weight_s K(support_s, x) + bias.

    Parameters
    ----------
    support : (s, d)
    weight : (s,)
    bias : float
    gamma : float or None
        gamma of the RBF kernel exp(-gamma |x - x'|^2); None for the linear kernel x'x'.
    """

    support: Array
    weight: Array
    bias: float
    gamma: float | None

    def decision(self, x: Array) -> Array:
        """Values f of samples (n, d), shape (n,); a sample is of class 1 where it is above 0."""
        if self.gamma is None:
            return x @ (self.weight @ self.support) + self.bias
        norms = np.square(self.support).sum(axis=1)
        values = []
        for rows in row_blocks(len(x), len(norms), BLOCK):  # a loose tolerance may end with no support vector
            block = x[rows]
            kernel = rbf(block @ self.support.T, np.square(block).sum(axis=1), norms, self.gamma)
            values.append(kernel @ self.weight)
        return np.concatenate(values) + self.bias if values else np.zeros(0)

    @property
    def function(self) -> Function:
        """As arrays of a stored model."""
        if self.gamma is None:
            return Linear(self.weight @ self.support, np.array(self.bias))
        scales = np.array([np.sqrt(2 * self.gamma)])
        return OnPoints.gaussian(self.support, scales, self.weight[None, None], np.array([self.bias]))


def rbf(products: Array, rows: Array, columns: Array, gamma: float) -> Array:
    """RBF kernel from inner products (n, m) and squared norms (n,) and (m,); overwrites and returns the products."""
    products *= -2
    products += rows[:, None]
    products += columns
    np.maximum(products, 0, out=products)
    products *= -gamma
    return np.exp(products, out=products)


def require_stopping(tolerance: float, cache_mib: float) -> None:
    """Refuse values with which LIBSVM would not end, or would use up the memory."""
    require(LEAST_TOLERANCE <= tolerance < np.inf, "tolerance", tolerance, f"a number from {LEAST_TOLERANCE:g}")
    require(0 < cache_mib <= MOST_MIB, "cache_mib", cache_mib, f"a number > 0, at most {MOST_MIB:g}")


def require_cache(cache_mib: float, samples: int) -> None:
    """Refuse a cache that does not fit; it holds no more than all kernel values, four bytes each."""
    needed = min(int(cache_mib * 2**20), 4 * samples**2)
    require_memory(needed, "LIBSVM's cache of kernel values", f"algo.cache_mib={cache_mib:g}")


def require_two_classes(y: Array) -> None:
    """Raise FklError unless labels are -1 and 1, and both occur."""
    if not np.array_equal(np.unique(y), (-1, 1)):
        raise FklError("the labels of the training samples must be -1 and 1, and both must occur")


@dataclass(frozen=True)
class LibsvmSvc(Learning):
    """scikit-learn's SVC, which is LIBSVM, with the RBF kernel.

    Chang and Lin, "LIBSVM: a library for support vector machines" (2011).

    Parameters
    ----------
    C : float
        Penalty of a sample on the wrong side.
    gamma : float
        The kernel is exp(-gamma |x - x'|^2).
    tolerance : float
        LIBSVM's stopping criterion.
    cache_mib : float
        Memory for kernel values, without influence on results. 200 is scikit-learn's default; 500 took longer on
        cod_rna.
    """

    label: ClassVar[str] = "LIBSVM"
    pooled: ClassVar[bool] = True

    C: float = 1.0
    gamma: float = 1.0
    tolerance: float = 1e-3
    cache_mib: float = 200.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.C < np.inf, "C", self.C, "a number > 0")
        require(0 < self.gamma < np.inf, "gamma", self.gamma, "a number > 0")
        require_stopping(self.tolerance, self.cache_mib)

    def begin(self, held: Held, rng: np.random.Generator) -> None:
        """There is no state, because there is one round.

        Raises
        ------
        fkl.basics.errors.FklError
            If the cache may grow larger than the memory, which would end LIBSVM.
        """
        require_cache(self.cache_mib, len(held.x))

    def advance(self, held: Held, learned: None, count: Count) -> tuple[None, Machine]:
        """Learn from x and y, without other inputs or messages."""
        from sklearn.svm import SVC

        require_two_classes(held.y)
        svc = SVC(C=self.C, gamma=self.gamma, tol=self.tolerance, cache_size=self.cache_mib).fit(held.x, held.y)
        return None, Machine(svc.support_vectors_, svc.dual_coef_[0], float(svc.intercept_[0]), self.gamma)
