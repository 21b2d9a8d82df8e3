"""Losses of one prediction: value, derivative, and what is shown of them.

A method asks its `PointwiseLoss` for `value` and `derivative`, and compiled loops ask `loss_of_one` and `slope_of_one`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, logistic_function

SQUARE, LOGISTIC, SMOOTH_HINGE, HINGE, QUANTILE, HUBER = range(6)


class PointwiseLoss(NamedTuple):
    """A convex loss of a prediction f and a target y; for two classes y is -1 or 1, and z = y f.

    Parameters
    ----------
    kind : int
        SQUARE, (f - y)^2, also of classes. LOGISTIC, log(1 + exp(-z)). SMOOTH_HINGE, 1/2 - z up to z = 0, (1 - z)^2 / 2
        up to 1, then 0. HINGE, max(0, 1 - z). QUANTILE, (1 - level) (f - y) above the target and level (y - f) below
        it. HUBER, (f - y)^2 up to |f - y| = delta, then delta (2 |f - y| - delta).
    at : float
        The level of QUANTILE, the delta of HUBER; 1 for SQUARE of two classes.
    several : int
        The number C of classes if it is above 2, else 0. Targets and predictions are then `class_values`, and the loss
        is the sum over classes of that of f_c, whose target is 1 in class c and -1 in all others.
    """

    kind: int
    at: float = 0.0
    several: int = 0

    @property
    def classes(self) -> bool:
        """Whether targets are two classes."""
        return self.kind in (LOGISTIC, SMOOTH_HINGE, HINGE) or (self.kind == SQUARE and self.at > 0)

    @property
    def of_one_class(self) -> "PointwiseLoss":
        """The loss of one class against the rest."""
        return self._replace(several=0)

    @property
    def class_values(self) -> Array:
        """The targets of several classes, -(C - 1), -(C - 3), ..., C - 1."""
        return 2.0 * np.arange(self.several) - (self.several - 1)

    def signs(self, y: Array) -> list[NDArray[np.float64]]:
        """For each of several classes, 1 where it is the target and -1 elsewhere."""
        return [np.where(y == one, 1.0, -1.0) for one in self.class_values]

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each prediction."""
        if self.kind == SQUARE:
            return (f - y) ** 2
        xp, z = array_namespace(f), y * f if self.classes else f - y
        if self.kind == LOGISTIC:
            return xp.logaddexp(0, -z)
        if self.kind == SMOOTH_HINGE:
            return xp.where(z <= 0, 0.5 - z, 0.5 * xp.maximum(1 - z, 0) ** 2)
        if self.kind == HINGE:
            return xp.maximum(0, 1 - z)
        if self.kind == QUANTILE:
            return xp.maximum((1 - self.at) * z, -self.at * z)
        return xp.where(abs(z) <= self.at, z**2, self.at * (2 * abs(z) - self.at))

    def derivative(self, f: Array, y: Array) -> Array:
        """Derivative in f; at a kink, the smaller one-sided derivative in absolute value, or 0."""
        xp = array_namespace(f)
        if self.kind == SQUARE:
            return 2 * (f - y)
        if self.kind == LOGISTIC:
            return -y * logistic_function(-y * f)
        if self.kind == SMOOTH_HINGE:
            return -y * xp.clip(1 - y * f, 0, 1)
        if self.kind == HINGE:
            return xp.where(y * f < 1, -y, 0.0)
        if self.kind == QUANTILE:
            return xp.where(f > y, 1 - self.at, 0.0) - xp.where(f < y, self.at, 0.0)
        return 2 * xp.clip(f - y, -self.at, self.at)

    def largest_values(self, U: NDArray[np.float64], Y: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The largest loss and |derivative| for |f| <= U and |y| <= Y; a convex loss has them at the corners."""
        f = np.stack([-U, -U, U, U])
        y = np.multiply.outer([-1.0, 1.0, -1.0, 1.0], np.full(U.shape, 1.0 if self.classes else Y))
        return self.value(f, y).max(axis=0), np.abs(self.derivative(f, y)).max(axis=0)

    def moreau_envelope(self, f: Array, y: Array, width: float) -> tuple[Array, Array]:
        """The Moreau envelope of HINGE or QUANTILE, at most width / 2 below it, and its derivative by f."""
        xp = array_namespace(f)
        low, high, u, sign = (-self.at, 1 - self.at, f - y, 1.0) if self.kind == QUANTILE else (0, 1, 1 - y * f, -y)
        s = xp.clip(u / width, low, high)
        return s * u - width * s**2 / 2, s * sign

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns about predictions: first the error by which methods are compared."""
        if self.classes:
            return "error", "loss"
        if self.kind == QUANTILE:
            return "pinball", "below"
        return ("mse",) if self.kind == SQUARE else ("mse", "loss")

    @property
    def column(self) -> str:
        """The column of the loss itself."""
        return "loss" if "loss" in self.columns else self.columns[0]

    def errors_of_predictions(self, f: Array, y: Array, value: Any = None) -> dict[str, Any]:
        """What each prediction adds to the columns; one that names no class is right by chance.

        For two classes f = 0 names none, and is half a mistake. For C classes f is the class, or C if it names none,
        which is a mistake of 1 - 1 / C; `value` is the loss.
        """
        if self.several:
            xp = array_namespace(f)
            return {"error": xp.where(f == self.several, 1 - 1 / self.several, 1.0 * (f != y)), "loss": value}
        value = self.value(f, y)
        if self.classes:
            return {"error": 0.5 * (1 - array_namespace(f).sign(y * f)), "loss": value}
        if self.kind == QUANTILE:
            return {"pinball": value, "below": 1.0 * (y <= f)}
        return {"mse": value} if self.kind == SQUARE else {"mse": (f - y) ** 2, "loss": value}

    @property
    def words(self) -> str:
        """Its name for people."""
        name = next(name for name, kind in KINDS.items() if kind == self.kind)
        return {"square": "squared error", "quantile": "pinball loss"}.get(name, f"{name.replace('_', ' ')} loss")


KINDS = {
    "square": SQUARE,
    "least_squares": SQUARE,
    "logistic": LOGISTIC,
    "smooth_hinge": SMOOTH_HINGE,
    "hinge": HINGE,
    "quantile": QUANTILE,
    "huber": HUBER,
}
ON_STREAMS = ("square", "huber", "quantile", "logistic", "hinge", "least_squares")
"""Losses that methods of streams minimise."""
OF_PARTIES = ("square", "logistic", "smooth_hinge")
"""Losses that methods of parties with different features minimise."""


def pointwise_loss(name: str, level: float = 0.5, delta: float = 0.1) -> PointwiseLoss:
    """The loss of this name; `level` is of quantile, `delta` of huber. least_squares is square, of two classes."""
    return PointwiseLoss(KINDS[name], {"quantile": level, "huber": delta, "least_squares": 1.0}.get(name, 0.0))


SQUARED = pointwise_loss("square")
