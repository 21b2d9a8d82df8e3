"""Mean losses of all samples at once: their values, their gradients and the minimisers that clients need."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.kernels import pointwise_losses as losses
from fkl.kernels.feature_rows import Array, Ridge, Rows
from fkl.kernels.traceable import namespace, traced

TOLERANCE = 1e-10
MOST_STEPS = 1000


class Square:
    """(y - f)^2, averaged over the samples of a client."""

    compressed: ClassVar[bool] = True
    """Whether `Rows` may be compressed."""

    def of_each(self, rows: Rows, f: Array) -> Array:
        """Loss of each sample, (R, K, r), for predictions f (R, K, r): squared errors."""
        return np.square(f - rows.y)

    def measures(self, rows: Rows, f: Array) -> dict[str, Array]:
        """Sums over each client's samples, (R, K, B), by name, for predictions f (R, K, r, B): squared errors."""
        off = f - rows.y[..., None]
        return {"mse": np.einsum("rkib,rkib->rkb", off, off) + rows.rest[..., None]}

    def mean(self, rows: Rows, theta: Array) -> Array:
        """Each client's mean loss at theta (R, K, P): (R, K)."""
        residual = rows.predict(theta[..., None])[..., 0] - rows.y
        return ((residual**2).sum(axis=-1) + rows.rest) / rows.count

    def gradient(self, rows: Rows, theta: Array) -> Array:
        """Gradient of each client's mean loss at theta (R, K, P), 2 Phi'(Phi theta - y) / T.

        It uses Phi'Phi and Phi'y if that is less work and not traced.
        """
        if rows.few or traced(theta):
            residual = rows.predict(theta[..., None])[..., 0] - rows.y
            return 2 / rows.count[:, None] * rows.weigh(residual)
        grams, pull = rows.normal
        return 2 / rows.count[:, None] * (grams.times(theta) - pull)

    def minimiser(self, rows: Rows, c: NDArray[np.float64]) -> "SquareMinimiser":
        """Minimiser of R_i(theta) = (mean loss of client i) + c_i |theta|^2, c (K,) above 0; factored once."""
        return SquareMinimiser(Ridge.from_rows(rows, 2.0, c), 2 / rows.count[:, None] * rows.weigh(rows.y))

    def optimum(self, rows: Rows, lam: float) -> Array:
        """Minimiser of the sum over clients of the mean losses + lam |theta|^2, (R, P), eq. (26) of COKE."""
        clients = range(len(rows.count))
        gram = sum(rows.gram(k) / rows.count[k] for k in clients) + lam * np.eye(rows.phi.shape[3])
        pull = (rows.weigh(rows.y) / rows.count[:, None]).sum(axis=1)
        return np.linalg.solve(gram, pull[..., None])[..., 0]


class Logistic:
    """log(1 + exp(-y f)) for labels y of -1 and 1; rows with label 0 are padding."""

    compressed: ClassVar[bool] = False

    def of_each(self, rows: Rows, f: Array) -> Array:
        """1 for a sample on the wrong side, (R, K, r), for predictions f (R, K, r)."""
        return (rows.y * f <= 0).astype(np.float64)

    def measures(self, rows: Rows, f: Array) -> dict[str, Array]:
        """Samples on the wrong side (0 counts as wrong), and logistic losses."""
        y = rows.y[..., None]
        return {
            "error": ((y * f <= 0) & (y != 0)).sum(axis=2).astype(np.float64),
            "loss": (np.abs(y) * losses.LOSSES["logistic"].value(f, y)).sum(axis=2),
        }

    def mean(self, rows: Rows, theta: Array) -> Array:
        """As `Square.mean`; a row of padding would add log(2)."""
        f, xp = rows.predict(theta[..., None])[..., 0], namespace(theta)
        return (xp.abs(rows.y) * xp.logaddexp(0, -rows.y * f)).sum(axis=-1) / rows.count

    def gradient(self, rows: Rows, theta: Array) -> Array:
        """-Phi'(y / (1 + exp(y Phi theta))) / T."""
        f = rows.predict(theta[..., None])[..., 0]
        return rows.weigh(losses.LOSSES["logistic"].derivative(f, rows.y)) / rows.count[:, None]

    def minimiser(self, rows: Rows, c: NDArray[np.float64]) -> "LogisticMinimiser":
        """Maximum number of descent steps, which share one factored matrix."""
        return LogisticMinimiser(self, rows, c, Ridge.from_rows(rows, 0.25, c))

    def optimum(self, rows: Rows, lam: float) -> Array:
        """Minimiser of all clients' losses, by scikit-learn's Newton method."""
        from sklearn.linear_model import LogisticRegression

        weight = np.broadcast_to(1 / rows.count[:, None], rows.y.shape[1:])
        real = rows.y[0] != 0
        model = LogisticRegression(C=1 / (2 * lam), solver="newton-cholesky", fit_intercept=False, tol=1e-10)
        fits = [
            model.fit(phi[real], y[real], sample_weight=weight[real]).coef_[0]
            for phi, y in zip(rows.phi, rows.y, strict=True)
        ]
        return np.stack(fits)


@dataclass
class SquareMinimiser:
    """theta = (2 Phi'Phi / T + 2 c I)^-1 (2 Phi'y / T + v)."""

    ridge: Ridge
    pull: Array

    def __call__(self, v: Array, start: Array) -> Array:
        """Minimiser of R_i(theta) - v_i'theta, for v (R, K, P); `start` is not needed."""
        return self.ridge.solve(self.pull + v)


@dataclass
class LogisticMinimiser:
    """Newton's step with the largest curvature of a logistic loss, 1/4, until the gradient vanishes.

    Every step descends (Boehning and Lindsay, "Monotonicity of quadratic-approximation algorithms", 1988).
    """

    loss: Logistic
    rows: Rows
    c: NDArray[np.float64]
    ridge: Ridge

    def __call__(self, v: Array, start: Array) -> Array:
        """Minimiser of R_i(theta) - v_i'theta, for v (R, K, P), searched from start (R, K, P)."""
        theta = start
        for _ in range(MOST_STEPS):
            slope = self.loss.gradient(self.rows, theta) + 2 * self.c[:, None] * theta - v
            # A client that has converged does not move any more, whatever other clients are computed with it.
            moving = np.abs(slope).max(axis=-1, keepdims=True) > TOLERANCE
            if not moving.any():
                return theta
            theta = np.where(moving, theta - self.ridge.solve(slope), theta)
        raise FklError(f"a client's minimum is not found in {MOST_STEPS} steps: raise algo.rho or algo.lam")


Loss = Square | Logistic
Minimiser = SquareMinimiser | LogisticMinimiser
LOSSES: dict[str, Loss] = {"square": Square(), "logistic": Logistic()}
