"""Ridge regression, from sums over blocks of samples."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve

from fkl.algorithms.vertical.messages import Array
from fkl.errors import FklError

BLOCK = 1024
"""Samples that are worked on at a time."""


class NormalEquations:
    """Sums that the minimum of (1/N) sum_i (theta'phi_i + bias - y_i)^2 + lam |theta|^2 is found from.

    Parameters
    ----------
    size : int
        P, features of a sample.
    """

    def __init__(self, size: int) -> None:
        self.samples = 0
        self.products, self.features = np.zeros((size, size)), np.zeros(size)
        self.target, self.both = 0.0, np.zeros(size)

    def add(self, phi: Array, y: Array) -> None:
        """Take in some samples, phi (n, P) and y (n,)."""
        self.samples += len(y)
        self.products += phi.T @ phi
        self.features += phi.sum(axis=0)
        self.target += float(y.sum())
        self.both += y @ phi

    def solve(self, lam: float) -> tuple[Array, float]:
        """Theta (P,) and bias, which is not regularised; overwrites the sums.

        Raises
        ------
        fkl.errors.FklError
            If the equations have no one solution in double precision, as with lam=0 and more features than samples.
        """
        mean, mean_y = self.features / self.samples, self.target / self.samples
        covariance = self.products
        covariance -= self.samples * np.outer(mean, mean)
        covariance.flat[:: len(covariance) + 1] += self.samples * lam
        right = self.both - self.samples * mean_y * mean
        try:
            theta = solve(covariance, right, assume_a="pos", overwrite_a=True, check_finite=False)
        except LinAlgError:
            raise FklError(f"lam={lam:g}: the equations of ridge regression are singular; raise algo.lam") from None
        return theta, mean_y - float(mean @ theta)


def ridge(phi: Array, y: Array, lam: float, among: NDArray[np.bool_] | None = None) -> tuple[Array, float]:
    """Theta (P,) and bias with the least (1/N) sum_i (theta'phi_i + bias - y_i)^2 + lam |theta|^2.

    Parameters
    ----------
    phi : (N, P)
    y : (N,)
    lam : float
    among : (N,) bool, optional
        Samples that the sum is over; N stays that of all.
    """
    equations = NormalEquations(phi.shape[1])
    for start in range(0, len(y), BLOCK):
        rows = slice(start, start + BLOCK)
        block, target = phi[rows], y[rows]
        equations.add(*((block, target) if among is None else (block[among[rows]], target[among[rows]])))
    return equations.solve(lam * len(y) / max(1, equations.samples))
