"""Losses L(f, y) of FDSKL's Table 1 and their derivatives by f; labels are -1 and 1, or any number for the square."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fkl.basics.arrays import Array, logistic_function

Elementwise = Callable[[Array, Array], Any]
"""A function of predictions and targets with the same shape."""


class Loss(NamedTuple):
    """A loss, its derivative by f, and whether it is a loss for classification."""

    value: Elementwise
    derivative: Elementwise
    classes: bool


def _logistic_slope(f: Array, y: Array) -> Array:
    return -y * logistic_function(-y * f)


def _hinge(f: Array, y: Array) -> Array:
    z = y * f
    return np.where(z <= 0, 0.5 - z, 0.5 * np.maximum(1 - z, 0) ** 2)


LOSSES = {
    "square": Loss(lambda f, y: (f - y) ** 2, lambda f, y: 2 * (f - y), False),
    "logistic": Loss(lambda f, y: np.logaddexp(0, -y * f), _logistic_slope, True),
    "smooth_hinge": Loss(_hinge, lambda f, y: -y * np.clip(1 - y * f, 0, 1), True),
}
"""By name: (f - y)^2; log(1 + exp(-y f)); and with z = y f, 1/2 - z up to 0, (1 - z)^2 / 2 up to 1, then 0."""
