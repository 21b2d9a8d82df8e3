"""A `fkl.basics.pointwise.PointwiseLoss` in compiled loops: its value and its derivative at one prediction."""

import numpy as np
from numba import njit

from fkl.basics.pointwise import HINGE, LOGISTIC, QUANTILE, SMOOTH_HINGE, SQUARE


@njit(fastmath=False)
def loss_of_one(loss, f, y):
    """`PointwiseLoss.value` of one prediction, without SMOOTH_HINGE."""
    if loss.kind == SQUARE:
        return (f - y) ** 2
    # Without overflow: log(1 + exp(-z)) for z of any sign
    r, z = f - y, y * f
    if loss.kind == LOGISTIC:
        return max(0.0, -z) + np.log1p(np.exp(-abs(z)))
    if loss.kind == HINGE:
        # Pinball loss: above the target weighs 1 - at, below it weighs at
        return max(0.0, 1 - z)
    if loss.kind == QUANTILE:
        return max((1 - loss.at) * r, -loss.at * r)
    # Huber: quadratic within `at`, then linear
    return r**2 if abs(r) <= loss.at else loss.at * (2 * abs(r) - loss.at)


@njit(fastmath=False)
def slope_of_one(loss, f, y):
    """`PointwiseLoss.derivative` of one prediction."""
    if loss.kind == SQUARE:
        return 2 * (f - y)
    r, z = f - y, y * f
    # The remaining losses in the order of the kinds
    if loss.kind == LOGISTIC:
        return -y / (1 + np.exp(z))
    if loss.kind == SMOOTH_HINGE:
        return -y * min(max(1 - z, 0.0), 1.0)
    if loss.kind == HINGE:
        return -y if z < 1 else 0.0
    if loss.kind == QUANTILE:
        return 1 - loss.at if r > 0 else -loss.at if r < 0 else 0.0
    # Huber: the slope is limited to 2 at
    return 2 * min(max(r, -loss.at), loss.at)


# Compiled with parts of other modules: 652eae95, see tests/test_compiled.py
