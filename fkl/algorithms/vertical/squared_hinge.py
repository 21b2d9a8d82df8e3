"""A linear classifier by Newton's method: Chapelle, "Training a support vector machine in the primal" (2007)."""

import numpy as np

from fkl.algorithms.vertical.messages import Array
from fkl.algorithms.vertical.ridge import ridge
from fkl.errors import FklError

MOST_STEPS = 50
"""Newton's method ends after about ten."""
SHORTEST = 2.0**-20
"""A step that must be shorter to make the objective smaller gains nothing but rounding."""


def squared_hinge(phi: Array, y: Array, lam: float) -> tuple[Array, float]:
    """Theta (P,) and bias with the least (1/N) sum_i max(0, 1 - y_i f_i)^2 + lam |theta|^2, f_i = theta'phi_i + bias.

    As y_i is -1 or 1, the loss of samples with y_i f_i < 1 is (f_i - y_i)^2: a step leads to the ridge regression on
    them (Chapelle, eq. (8)), and where the same samples are left, that is the minimum.

    Parameters
    ----------
    phi : (N, P)
    y : (N,)
    lam : float

    Raises
    ------
    fkl.errors.FklError
        If that does not end.
    """
    theta, bias, f = np.zeros(phi.shape[1]), 0.0, np.zeros(len(y))
    value = _value(f, y, theta, lam)
    for _ in range(MOST_STEPS):
        inside = y * f < 1
        target, target_bias = ridge(phi, y, lam, inside)
        target_f = phi @ target + target_bias
        if np.array_equal(y * target_f < 1, inside):
            return target, target_bias
        length = 1.0
        while True:
            step = length * (target - theta), length * (target_bias - bias), length * (target_f - f)
            found = _value(f + step[2], y, theta + step[0], lam)
            if found < value:
                break
            length /= 2
            if length < SHORTEST:
                return theta, bias
        theta, bias, f, value = theta + step[0], bias + step[1], f + step[2], found
    raise FklError(f"lam={lam:g}: Newton's method did not end in {MOST_STEPS} steps; raise algo.lam")


def _value(f: Array, y: Array, theta: Array, lam: float) -> float:
    return float(np.mean(np.square(np.maximum(0, 1 - y * f))) + lam * (theta @ theta))
