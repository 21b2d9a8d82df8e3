"""Several classes: one theta for each class in the same features, and losses of all classes together.

The theta of C classes are one vector of length C P, class after class, so messages and methods need not know C. The
target of class c = 0, ..., C - 1 is 2 c - (C - 1), so -1 and 1 for two classes, and a target times -1 is another class.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.kernels.bank import FeatureBank
from fkl.kernels.feature_rows import Rows, Space
from fkl.kernels.traceable import namespace, traced

Array = NDArray[np.floating]


@dataclass(frozen=True)
class ClassBank:
    """Features with a theta for each class.

    Parameters
    ----------
    bank : FeatureBank
    classes : int
        C.
    """

    bank: FeatureBank
    classes: int

    @property
    def replicates(self) -> int:
        """R."""
        return self.bank.replicates

    @property
    def kernels(self) -> int:
        """N."""
        return self.bank.kernels

    @property
    def width(self) -> int:
        """Length of the theta of all classes, C P."""
        return self.classes * self.bank.width


@dataclass(frozen=True)
class ClassRows(Rows):
    """Feature rows and classes; `phi` is (R, K, r, P), and theta has length C P.

    Parameters
    ----------
    classes : int
        C.
    """

    classes: int = 2

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """Whether a row is a sample, (K, r)."""
        return np.arange(self.y.shape[2]) < self.count[:, None]

    @cached_property
    def number(self) -> Array:
        """The class of each row, from 0 to C - 1, (R, K, r)."""
        return (self.y + (self.classes - 1)) / 2

    @cached_property
    def targets(self) -> Array:
        """1 for a sample's class, 0 for the others, (R, K, r, C)."""
        return ((self.number[..., None] == np.arange(self.classes)) & self.there[..., None]).astype(np.float64)

    def predict(self, theta: Array) -> Array:
        """Predictions for all classes of each row, (R, K, r C, B)."""
        R, K, _, B = theta.shape
        columns = theta.reshape(R, K, self.classes, -1, B).swapaxes(2, 3).reshape(R, K, -1, self.classes * B)
        if not traced(theta):
            columns = np.ascontiguousarray(columns)  # the last bits of a product depend on the order in memory
        return super().predict(columns).reshape(R, K, -1, B)

    def weigh(self, weight: Array) -> Array:
        """For weight (R, K, r, C): (R, K, C P)."""
        weighed = namespace(weight).matmul(weight.swapaxes(2, 3), self.phi)
        return weighed.reshape(*weighed.shape[:2], -1)


def rows_in(space: Space | ClassBank, x: Array, y: Array, count: NDArray[np.int64], compressed: bool) -> Rows:
    """As `Rows.from_samples`, also for several classes."""
    if not isinstance(space, ClassBank):
        return Rows.from_samples(space, x, y, count, compressed)
    plain = Rows.from_samples(space.bank, x, y, count, False)
    return ClassRows(plain.phi, plain.y, plain.rest, plain.count, classes=space.classes)


class OfClasses:
    """A loss of f (R, K, r, C, ...), the predictions for all classes, averaged over the samples of a client.

    All `rows` are `ClassRows`.
    """

    compressed: ClassVar[bool] = False

    def value(self, f: Array, target: Array) -> Array:
        """Loss of each sample, without the axis of classes."""
        raise NotImplementedError

    def slope(self, f: Array, target: Array) -> Array:
        """Derivative by f, for f (R, K, r, C)."""
        raise NotImplementedError

    def optimum(self, rows: Any, lam: float) -> Array:
        """Minimiser of the sum over clients of the mean losses + lam |theta|^2, (R, C P)."""
        raise NotImplementedError

    def of_each(self, rows: Any, f: Array) -> Array:
        """1 for a sample whose class does not have the largest prediction, (R, K, r)."""
        return (f.reshape(rows.targets.shape).argmax(axis=3) != rows.number).astype(np.float64)

    def measures(self, rows: Any, f: Array) -> dict[str, Array]:
        """Samples whose class does not have the largest prediction, and losses."""
        f, there = f.reshape(*rows.targets.shape, -1), rows.there[..., None]
        wrong = (f.argmax(axis=3) != rows.number[..., None]) & there
        loss = (there * self.value(f, rows.targets[..., None])).sum(axis=2)
        return {"error": wrong.sum(axis=2).astype(np.float64), "loss": loss}

    def mean(self, rows: Any, theta: Array) -> Array:
        """Each client's mean loss at theta (R, K, C P): (R, K)."""
        return self.measures(rows, rows.predict(theta[..., None]))["loss"][..., 0] / rows.count

    def gradient(self, rows: Any, theta: Array) -> Array:
        """Gradient of each client's mean loss at theta (R, K, C P)."""
        f = rows.predict(theta[..., None]).reshape(rows.targets.shape)
        return rows.weigh(rows.there[..., None] * self.slope(f, rows.targets)) / rows.count[:, None]


class OneVsRest(OfClasses):
    """|y - f|^2, where y has 1 for the sample's class and 0 for the others."""

    def value(self, f: Array, target: Array) -> Array:
        """Squared errors of all classes."""
        return np.square(f - target).sum(axis=3)

    def slope(self, f: Array, target: Array) -> Array:
        """2 (f - y)."""
        return 2 * (f - target)

    def optimum(self, rows: Any, lam: float) -> Array:
        """Ridge regressions with the same matrix."""
        R, K, _, P = rows.phi.shape
        gram = sum(rows.gram(k) / rows.count[k] for k in range(K)) + lam * np.eye(P)
        pull = (rows.weigh(rows.targets) / rows.count[:, None]).sum(axis=1).reshape(R, -1, P)
        return np.linalg.solve(gram, pull.swapaxes(1, 2)).swapaxes(1, 2).reshape(R, -1)


class Softmax(OfClasses):
    """-log p_y, where p = exp(f) / sum exp(f): multinomial logistic regression."""

    def value(self, f: Array, target: Array) -> Array:
        """Log of sum exp(f), minus f_y."""
        xp, most = namespace(f), f.max(axis=3, keepdims=True)
        return xp.log(xp.exp(f - most).sum(axis=3)) + most[:, :, :, 0] - (f * target).sum(axis=3)

    def slope(self, f: Array, target: Array) -> Array:
        """Shares p of all classes, minus y."""
        p = namespace(f).exp(f - f.max(axis=3, keepdims=True))
        return p / p.sum(axis=3, keepdims=True) - target

    def optimum(self, rows: Any, lam: float) -> Array:
        """By scikit-learn's Newton method."""
        from sklearn.linear_model import LogisticRegression

        there, weight = rows.there, np.broadcast_to(1 / rows.count[:, None], rows.there.shape)
        model = LogisticRegression(C=1 / (2 * lam), solver="newton-cg", fit_intercept=False, tol=1e-8)
        fits = [
            model.fit(phi[there], y[there], sample_weight=weight[there]).coef_.ravel()
            for phi, y in zip(rows.phi, rows.y, strict=True)
        ]
        return np.stack(fits)
