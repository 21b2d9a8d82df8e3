"""A linear classifier by Newton's method: Chapelle, "Training a support vector machine in the primal" (2007)."""

from copy import deepcopy

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.messages import Array
from fkl.algorithms.vertical.ridge import BLOCK, NormalEquations
from fkl.basics.errors import FklError
from fkl.kernels.client_tiles import row_blocks

MOST_STEPS = 50
"""Maximum number of Newton steps; about ten are usual."""
SHORTEST = 2.0**-20
"""If a step must be shorter than this to decrease the objective, only rounding is left."""
PARTS = 4
"""The first fit uses one of this many parts of the samples."""


def squared_hinge(phi: Array, y: Array, lam: float) -> tuple[Array, float]:
    """Theta (P,) and bias with the least (1/N) sum_i max(0, 1 - y_i f_i)^2 + lam |theta|^2, f_i = theta'phi_i + bias.

    As y_i is -1 or 1, the loss of samples with y_i f_i < 1 is (f_i - y_i)^2: a step leads to the ridge regression on
    them (Chapelle, eq. (8)). If these samples do not change, it is the minimum.

    Parameters
    ----------
    phi : (N, P)
    y : (N,)
    lam : float

    Raises
    ------
    fkl.basics.errors.FklError
        If the method does not end.
    """
    # Chapelle, Algorithm 1: a part first; then few of the other samples are inside.
    equations, theta, bias = _Equations(phi, y, lam), np.zeros(phi.shape[1]), 0.0
    for samples in (len(y) // PARTS, len(y)):
        if len(np.unique(y[:samples])) > 1:  # with one class the bias alone makes the loss zero
            theta, bias = _newton_steps(equations, phi[:samples], y[:samples], lam, (theta, bias))
    return theta, bias


def _newton_steps(
    equations: "_Equations", phi: Array, y: Array, lam: float, start: tuple[Array, float]
) -> tuple[Array, float]:
    """The minimum for these samples, the first ones in the equations."""
    theta, bias = start
    f = phi @ theta + bias
    value = _objective_value(f, y, theta, lam)
    for _ in range(MOST_STEPS):
        inside = y * f < 1
        target, target_bias = equations.solve(inside)
        target_f = phi @ target + target_bias
        if np.array_equal(y * target_f < 1, inside):
            return target, target_bias
        length = 1.0
        while True:
            step = length * (target - theta), length * (target_bias - bias), length * (target_f - f)
            found = _objective_value(f + step[2], y, theta + step[0], lam)
            if found < value:
                break
            length /= 2
            if length < SHORTEST:
                return theta, bias
        theta, bias, f, value = theta + step[0], bias + step[1], f + step[2], found
    raise FklError(f"lam={lam:g}: Newton's method did not end in {MOST_STEPS} steps; raise algo.lam")


class _Equations:
    """The ridge regression on some samples; their sums are reused in the next one, since most samples are in both."""

    def __init__(self, phi: Array, y: Array, lam: float) -> None:
        self._phi, self._y, self._lam = phi, y, lam
        self._among, self._sums = np.zeros(len(y), np.bool_), NormalEquations(phi.shape[1])

    def solve(self, inside: NDArray[np.bool_]) -> tuple[Array, float]:
        """Theta (P,) and bias for the loss of those of the first N samples (N,) that are inside, and lam N."""
        among = np.zeros(len(self._y), np.bool_)
        among[: len(inside)] = inside
        if np.count_nonzero(among != self._among) > np.count_nonzero(among):
            self._among, self._sums = np.zeros(len(self._y), np.bool_), NormalEquations(self._phi.shape[1])
        for changed, times in ((among & ~self._among, 1), (self._among & ~among, -1)):
            rows = np.flatnonzero(changed)
            for some in row_blocks(len(rows), 1, BLOCK):
                self._sums.add(self._phi[rows[some]], self._y[rows[some]], times)
        self._among = among
        return deepcopy(self._sums).solve(self._lam * len(inside) / max(1, self._sums.samples))


def _objective_value(f: Array, y: Array, theta: Array, lam: float) -> float:
    return float(np.mean(np.square(np.maximum(0, 1 - y * f))) + lam * (theta @ theta))
