"""Ridge regression, from sums over blocks of samples."""

import numpy as np
from scipy.linalg import LinAlgError, solve
from scipy.linalg.blas import dsyr, dsyrk

from fkl.algorithms.vertical.messages import Array
from fkl.basics.errors import FklError

BLOCK = 1024
"""Samples that are processed at a time."""


class NormalEquations:
    """Sums that determine the minimum of (1/N) sum_i (theta'phi_i + bias - y_i)^2 + lam |theta|^2.

    Parameters
    ----------
    size : int
        P, features of a sample.
    """

    def __init__(self, size: int) -> None:
        self.samples = 0
        self.products, self.features = np.zeros((size, size), order="F"), np.zeros(size)  # only the lower triangle
        self.target, self.both = 0.0, np.zeros(size)

    def add(self, phi: Array, y: Array, times: int = 1) -> None:
        """Add some samples, phi (n, P) and y (n,); times=-1 removes them again."""
        self.samples += times * len(y)
        self.products = dsyrk(times, phi.T, beta=1, c=self.products, lower=True, overwrite_c=True)
        self.features += times * phi.sum(axis=0)
        self.target += times * float(y.sum())
        self.both += times * (y @ phi)

    def solve(self, lam: float) -> tuple[Array, float]:
        """Theta (P,) and bias, which is not regularised; overwrites the sums.

        Raises
        ------
        fkl.basics.errors.FklError
            If the equations have no unique solution in double precision, as with lam=0 and more features than samples.
        """
        mean, mean_y = self.features / self.samples, self.target / self.samples
        covariance = dsyr(-self.samples, mean, a=self.products, lower=True, overwrite_a=True)
        covariance.flat[:: len(covariance) + 1] += self.samples * lam
        right = self.both - self.samples * mean_y * mean
        theta = _solved(covariance, right, lam)
        return theta, mean_y - float(mean @ theta)


def ridge(phi: Array, y: Array, lam: float) -> tuple[Array, float]:
    """Theta (P,) and bias with the least (1/N) sum_i (theta'phi_i + bias - y_i)^2 + lam |theta|^2.

    Parameters
    ----------
    phi : (N, P)
    y : (N,)
    lam : float
    """
    equations = NormalEquations(phi.shape[1])
    equations.add(phi, y)
    return equations.solve(lam)


def kernel_ridge(kernel: Array, y: Array, lam: float) -> tuple[Array, float]:
    """Weights a (N,) and bias with the least (1/N) |K a + bias - y|^2 + lam a'K a: (K + N lam I) a = y - bias, 1'a = 0.

    Parameters
    ----------
    kernel : (N, N)
        K; overwritten.
    y : (N,)
    lam : float

    Raises
    ------
    fkl.basics.errors.FklError
        If the equations have no unique solution in double precision.
    """
    kernel.flat[:: len(y) + 1] += len(y) * lam
    right = np.stack([y, np.ones(len(y))], axis=1)
    of_y, of_ones = _solved(kernel.T, right, lam).T  # K' is K, in the order that LAPACK overwrites
    bias = float(of_y.sum() / of_ones.sum())
    return of_y - bias * of_ones, bias


def _solved(matrix: Array, right: Array, lam: float) -> Array:
    """Solution by Cholesky's method, from the lower triangle, which is overwritten."""
    try:
        return solve(matrix, right, assume_a="pos", lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise FklError(f"lam={lam:g}: the equations of ridge regression are singular; raise algo.lam") from None
