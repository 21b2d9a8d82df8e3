"""Conversion of raw numbers to the scaled numbers of methods, and back."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Scale:
    """One map of every feature and one of the target, ``(raw - low) / unit``; by default nothing changes.

    Parameters
    ----------
    x_low, x_unit : (d,) float64
        Values for each feature; with shape () for all features together.
    y_low, y_unit : float
        Values for the target: in its own units a squared error is `y_unit` squared times as large.
    """

    x_low: NDArray[np.float64] = field(default_factory=lambda: np.zeros(()))
    x_unit: NDArray[np.float64] = field(default_factory=lambda: np.ones(()))
    y_low: float = 0.0
    y_unit: float = 1.0

    def x(self, raw: NDArray[np.floating]) -> NDArray[np.float64]:
        """Features (n, d) as methods see them."""
        scaled: NDArray[np.float64] = np.subtract(raw, self.x_low, dtype=np.float64)
        scaled /= self.x_unit
        return scaled

    def y(self, raw: NDArray[np.floating]) -> NDArray[np.float64]:
        """Targets as methods see them."""
        scaled: NDArray[np.float64] = (np.asarray(raw, np.float64) - self.y_low) / self.y_unit
        return scaled

    def y_back(self, scaled: NDArray[np.floating]) -> NDArray[np.float64]:
        """Predictions in the target's own units."""
        raw: NDArray[np.float64] = np.asarray(scaled, np.float64) * self.y_unit + self.y_low
        return raw

    def after(self, first: "Scale") -> "Scale":
        """Both scalings in one, the other before this."""
        return Scale(
            first.x_low + first.x_unit * self.x_low,
            first.x_unit * self.x_unit,
            first.y_low + first.y_unit * self.y_low,
            first.y_unit * self.y_unit,
        )

    def to_signs(self, low: float, high: float) -> "Scale":
        """The same with a target of -1 and 1 instead of these two values."""
        return Scale(y_low=(low + high) / 2, y_unit=(high - low) / 2).after(self)
