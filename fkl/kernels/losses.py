"""Samples in feature space, and their losses: values, gradients and the minimisers that clients need.

With several classes, each class has its own theta in the same features. The theta of C classes form one vector of
length C P, class after class, so messages and methods need not know C. The target of class c = 0, ..., C - 1 is 2 c -
(C - 1), so it is -1 or 1 for two classes, and -1 times a target is the target of a class again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, is_traced
from fkl.basics.errors import FklError
from fkl.basics.pointwise import pointwise_loss
from fkl.kernels.bank import FeatureBank
from fkl.kernels.dictionary import CentreBank
from fkl.kernels.threads import in_parts, share_work

BLOCK_ROWS = 2048
TRIANGLE_ROWS = 50
"""Number of rows of a triangular factor in one product, which leaves out the columns that are 0 in all of them."""
ROWS = 4
"""Rows of a symmetric matrix that are stored together: `fkl.kernels.symmetric` is unrolled for this number."""
PRODUCTS_A_FEATURE = 16
"""Number of multiplications in a matrix-vector product that take as long as computing one feature."""


Space = FeatureBank | CentreBank
"""Feature space of samples: a bank of one kernel's random features, or the span of centres."""


@dataclass(frozen=True)
class Rows:
    """Feature rows and targets of K clients in R replicates, float64.

    The samples of a client with more than P samples may be compressed to P rows, which does not change its squared
    error: |y - Phi theta|^2 = |Q'y - U theta|^2 + rest with Phi = QU.

    Parameters
    ----------
    phi : (R, K, r, P)
        Zero in rows beyond a client's number of rows.
    y : (R, K, r)
        Also zero there.
    rest : (R, K)
        Squared error that no theta can reduce; 0 unless compressed.
    count : (K,)
        Number T_i of samples of each client.
    triangular : bool
        Whether all clients were compressed, to upper triangular matrices.
    """

    phi: Array
    y: Array
    rest: Array
    count: NDArray[np.float64]
    triangular: bool = False

    @classmethod
    def from_samples(cls, bank: Space, x: Array, y: Array, count: NDArray[np.int64], compressed: bool) -> "Rows":
        """Map samples with a bank of one kernel.

        Parameters
        ----------
        bank : Space
        x : (n, d)
            Client after client.
        y : (n,)
        count : (K,) int
            Samples of each client.
        compressed : bool
            Whether to compress, which is enough for squared errors.
        """
        R, P = bank.replicates, bank.width
        # Rows per client: as many as samples, or at most P after compression
        most = int(min(count.max(initial=0), P)) if compressed else int(count.max(initial=0))
        phi, target = np.zeros((R, len(count), most, P)), np.zeros((R, len(count), most))
        rest = np.zeros((R, len(count)))
        ends = np.cumsum(count)
        # Client by client; its samples are consecutive
        for k, (start, end) in enumerate(zip(ends - count, ends, strict=True)):
            size = end - start
            if compressed and size > P:
                # Triangular factor of [Phi y], (R, P + 1, P + 1), updated block by block
                triangle: Array = np.zeros((R, 0, P + 1))
                for first in range(start, end, BLOCK_ROWS):
                    block = slice(first, min(first + BLOCK_ROWS, end))
                    features = bank.features(x[block])[:, 0]
                    column = np.broadcast_to(y[block, None], (*features.shape[:2], 1))
                    triangle = _triangular_factor(
                        np.concatenate([triangle, np.concatenate([features, column], axis=2)], axis=1)
                    )
                phi[:, k], target[:, k], rest[:, k] = triangle[:, :P, :P], triangle[:, :P, P], triangle[:, P, P] ** 2
            else:
                # Few samples are stored as they are, padded with zeros
                phi[:, k, :size], target[:, k, :size] = bank.features(x[start:end])[:, 0], y[start:end]
        return cls(phi, target, rest, count.astype(np.float64), compressed and bool((count > P).all()))

    def predict(self, theta: Array) -> Array:
        """Phi_i theta for theta (R, K, P, B), B candidates per client: shape (R, K, r, B)."""
        # Traced arrays multiply as a whole
        if is_traced(theta):
            return array_namespace(theta).matmul(self.phi, theta)
        out = np.empty((*self.phi.shape[:3], theta.shape[3]))
        # Triangular rows start with zeros, so each block of rows skips the columns before it
        phi, candidates, f = _joined_axes(self.phi), _joined_axes(theta), _joined_axes(out)
        step = TRIANGLE_ROWS if self.triangular else max(1, phi.shape[1])

        def work(begin: int, end: int) -> None:
            for row in range(0, phi.shape[1], step):
                some = slice(begin, end), slice(row, row + step)
                np.matmul(phi[some][..., row:], candidates[begin:end, row:], out=f[some])

        in_parts(work, len(f), out.size)
        return out

    def weigh(self, weight: Array) -> Array:
        """Phi_i'weight_i for weight (R, K, r): shape (R, K, P)."""
        return array_namespace(weight).matmul(weight[:, :, None], self.phi)[:, :, 0]

    def gram(self, k: int) -> Array:
        """Phi_k'Phi_k, (R, P, P)."""
        phi = self.phi[:, k]
        return np.matmul(phi.swapaxes(1, 2), phi)

    @property
    def targets(self) -> Array:
        """The targets by which features are weighed for a squared loss: y."""
        return self.y

    @property
    def few(self) -> bool:
        """Whether two products with Phi_i are less work than one with a matrix (P, P)."""
        return 2 * self.phi.shape[2] < self.phi.shape[3]

    @cached_property
    def normal(self) -> tuple["Symmetric", Array]:
        """Phi_i'Phi_i of all clients, and Phi_i'y_i, (R, K, P), computed once; they need much memory."""
        R, K, _, P = self.phi.shape
        return Symmetric.from_matrices(self.gram, R, K, P), self.weigh(self.y)


def _triangular_factor(a: Array) -> Array:
    out = np.empty((a.shape[0], min(a.shape[1:]), a.shape[2]))

    def work(begin: int, end: int) -> None:
        out[begin:end] = np.linalg.qr(a[begin:end], mode="r")

    in_parts(work, len(a))
    return out


@dataclass(frozen=True)
class Symmetric:
    """Symmetric matrices (R, K, P, P), stored as halves, for products that take as long as reading them.

    Parameters
    ----------
    half : (R, K, S)
        Blocks of `ROWS` rows, each up to the diagonal of its last row, in one array.
    P : int
    """

    half: Array
    P: int

    @classmethod
    def from_matrices(cls, matrix: Callable[[int], Array], R: int, K: int, P: int) -> "Symmetric":
        """Matrices of K clients, from `matrix(k)`, (R, P, P), whose half above the diagonal is not used."""
        places = _places_of_half(P)
        half = np.empty((R, K, len(places)))

        def work(begin: int, end: int) -> None:
            for k in range(begin, end):
                np.take(matrix(k).reshape(R, P * P), places, axis=1, out=half[:, k])

        in_parts(work, K)
        return cls(half, P)

    def times(self, v: Array) -> Array:
        """Products of the matrices with vectors v (R, K, P): shape (R, K, P)."""
        from fkl.kernels.symmetric import symmetric_products  # imports numba, which few methods need

        out = np.empty(v.shape)
        vectors, elements = np.ascontiguousarray(_joined_axes(v)), 2 * self.half.size // PRODUCTS_A_FEATURE
        share_work(symmetric_products, len(vectors), elements, _joined_axes(self.half), vectors, _joined_axes(out))
        return out

    @property
    def as_arrays(self) -> Array:
        """The matrices, (R, K, P, P)."""
        lower = np.zeros((*self.half.shape[:2], self.P * self.P))
        lower[..., _places_of_half(self.P)] = self.half
        lower = np.tril(lower.reshape(*self.half.shape[:2], self.P, self.P))
        return lower + np.tril(lower, -1).swapaxes(2, 3)


@cache
def _places_of_half(P: int) -> NDArray[np.int64]:
    """Positions in a matrix (P, P) of the entries that `Symmetric` stores."""
    row, column = np.indices((P, P)).reshape(2, -1)
    until = row // ROWS * ROWS + ROWS
    return np.flatnonzero(column < until)


@dataclass(frozen=True)
class Ridge:
    """(w Phi_i'Phi_i / T_i + 2 c_i I)^-1 for every client.

    Parameters
    ----------
    matrix : Symmetric, (R, K, P, P) or (R, K, r, P)
        The inverse, or its `as_arrays`; or, if few rows make this cheaper, C^-1 Phi with the Cholesky factor C in
        Woodbury's formula.
    c : (K,)
    """

    matrix: Symmetric | Array
    c: NDArray[np.float64]

    @classmethod
    def from_rows(cls, rows: Rows, weight: float, c: NDArray[np.float64]) -> "Ridge":
        """Factor the samples of every client, for w and c (K,), both above 0."""
        # Many rows: store the inverse of the P x P matrix of each client
        R, K, r, P = rows.phi.shape
        if not rows.few:

            def inverse(k: int) -> Array:
                return np.linalg.inv(weight / rows.count[k] * rows.gram(k) + 2 * c[k] * np.eye(P))

            return cls(Symmetric.from_matrices(inverse, R, K, P), c)
        # Few rows: the inverse is I minus a product of r x P matrices (Woodbury), so store only that factor
        matrix = np.empty((R, K, r, P))

        def work(begin: int, end: int) -> None:
            for k in range(begin, end):
                phi = rows.phi[:, k]
                small = np.matmul(phi, phi.swapaxes(1, 2)) + 2 * c[k] * rows.count[k] / weight * np.eye(r)
                matrix[:, k] = np.linalg.solve(np.linalg.cholesky(small), phi)

        in_parts(work, K)
        return cls(matrix, c)

    @property
    def as_arrays(self) -> "Ridge":
        """Unpack the symmetric matrix to plain arrays, for engines that trace the products."""
        return Ridge(self.matrix.as_arrays, self.c) if isinstance(self.matrix, Symmetric) else self

    def solve(self, v: Array) -> Array:
        """The inverse applied to v (R, K, P)."""
        if isinstance(self.matrix, Symmetric):
            return self.matrix.times(v)
        if self.matrix.shape[2] == self.matrix.shape[3]:
            return _products_with_vectors(self.matrix, v)
        inner = _products_with_vectors(self.matrix, v)
        return (v - _products_with_vectors(self.matrix.swapaxes(2, 3), inner)) / (2 * self.c[:, None])


def _products_with_vectors(matrix: Array, v: Array) -> Array:
    """Matrices (R, K, m, n) times vectors (R, K, n), (R, K, m)."""
    # Traced arrays multiply as a whole
    if is_traced(v):
        return array_namespace(v).matmul(matrix, v[..., None])[..., 0]
    out = np.empty(matrix.shape[:3])
    # One large BLAS call per thread, over replicates and clients as one axis
    into, of, flat = _joined_axes(out)[..., None], _joined_axes(v)[..., None], _joined_axes(matrix)

    def work(begin: int, end: int) -> None:
        np.matmul(flat[begin:end], of[begin:end], out=into[begin:end])

    in_parts(work, len(of), matrix.size // PRODUCTS_A_FEATURE)
    return out


def _joined_axes(a: Array) -> Array:
    """Replicates and clients as one axis."""
    return a.reshape(a.shape[0] * a.shape[1], *a.shape[2:])


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
        """Whether a row is a sample and not padding, (K, r)."""
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
        if not is_traced(theta):
            columns = np.ascontiguousarray(columns)  # the last bits of a product depend on the order in memory
        return super().predict(columns).reshape(R, K, -1, B)

    def weigh(self, weight: Array) -> Array:
        """The weighted sums of features for weight (R, K, r, C), (R, K, C P)."""
        weighed = array_namespace(weight).matmul(weight.swapaxes(2, 3), self.phi)
        return weighed.reshape(*weighed.shape[:2], -1)


def rows_in(space: Space | ClassBank, x: Array, y: Array, count: NDArray[np.int64], compressed: bool) -> Rows:
    """Map samples to rows of features, for one target or for several classes."""
    if not isinstance(space, ClassBank):
        return Rows.from_samples(space, x, y, count, compressed)
    plain = Rows.from_samples(space.bank, x, y, count, False)
    return ClassRows(plain.phi, plain.y, plain.rest, plain.count, classes=space.classes)


class OfClasses:
    """A loss of f (R, K, r, C, ...), the predictions for all classes, averaged over each client's samples.

    All `rows` are `ClassRows`.
    """

    compressed: ClassVar[bool] = False

    def value(self, f: Array, target: Array) -> Array:
        """Loss of each sample, without the axis of classes."""
        raise NotImplementedError

    def slope(self, f: Array, target: Array) -> Array:
        """Derivative with respect to f, for f (R, K, r, C)."""
        raise NotImplementedError

    def optimum(self, rows: Any, lam: float) -> Array:
        """Minimiser of the sum over clients of the mean losses + lam |theta|^2, (R, C P)."""
        raise NotImplementedError

    def of_each(self, rows: Any, f: Array) -> Array:
        """1 for a misclassified sample (another class has the largest prediction), else 0, (R, K, r)."""
        return (f.reshape(rows.targets.shape).argmax(axis=3) != rows.number).astype(np.float64)

    def sums_of_errors(self, rows: Any, f: Array) -> dict[str, Array]:
        """Numbers of misclassified samples, and sums of losses."""
        f, there = f.reshape(*rows.targets.shape, -1), rows.there[..., None]
        wrong = (f.argmax(axis=3) != rows.number[..., None]) & there
        loss = (there * self.value(f, rows.targets[..., None])).sum(axis=2)
        return {"error": wrong.sum(axis=2).astype(np.float64), "loss": loss}

    def mean(self, rows: Any, theta: Array) -> Array:
        """Each client's mean loss at theta (R, K, C P): (R, K)."""
        return self.sums_of_errors(rows, rows.predict(theta[..., None]))["loss"][..., 0] / rows.count

    def gradient(self, rows: Any, theta: Array) -> Array:
        """Gradient of each client's mean loss at theta (R, K, C P)."""
        f = rows.predict(theta[..., None]).reshape(rows.targets.shape)
        return rows.weigh(rows.there[..., None] * self.slope(f, rows.targets)) / rows.count[:, None]


class OneVsRest(OfClasses):
    """|y - f|^2, where y has 1 for the sample's class and 0 for the others."""

    def value(self, f: Array, target: Array) -> Array:
        """Sum of squared errors over the classes."""
        return np.square(f - target).sum(axis=3)

    def slope(self, f: Array, target: Array) -> Array:
        """2 (f - y)."""
        return 2 * (f - target)

    def optimum(self, rows: Any, lam: float) -> Array:
        """The solution of C ridge regressions with the same matrix."""
        R, K, _, P = rows.phi.shape
        gram = sum(rows.gram(k) / rows.count[k] for k in range(K)) + lam * np.eye(P)
        pull = (rows.weigh(rows.targets) / rows.count[:, None]).sum(axis=1).reshape(R, -1, P)
        return np.linalg.solve(gram, pull.swapaxes(1, 2)).swapaxes(1, 2).reshape(R, -1)


class Softmax(OfClasses):
    """-log p_y, where p = exp(f) / sum exp(f): multinomial logistic regression."""

    def value(self, f: Array, target: Array) -> Array:
        """Logarithm of sum exp(f), minus f_y."""
        xp, most = array_namespace(f), f.max(axis=3, keepdims=True)
        return xp.log(xp.exp(f - most).sum(axis=3)) + most[:, :, :, 0] - (f * target).sum(axis=3)

    def slope(self, f: Array, target: Array) -> Array:
        """Probabilities p of all classes, minus y."""
        p = array_namespace(f).exp(f - f.max(axis=3, keepdims=True))
        return p / p.sum(axis=3, keepdims=True) - target

    def optimum(self, rows: Any, lam: float) -> Array:
        """The minimiser that scikit-learn's Newton method finds."""
        from sklearn.linear_model import LogisticRegression

        there, weight = rows.there, np.broadcast_to(1 / rows.count[:, None], rows.there.shape)
        model = LogisticRegression(C=1 / (2 * lam), solver="newton-cg", fit_intercept=False, tol=1e-8)
        fits = [
            model.fit(phi[there], y[there], sample_weight=weight[there]).coef_.ravel()
            for phi, y in zip(rows.phi, rows.y, strict=True)
        ]
        return np.stack(fits)


LOGISTIC = pointwise_loss("logistic")
TOLERANCE = 1e-10
MOST_STEPS = 1000


class Square:
    """(y - f)^2, averaged over the samples of a client."""

    compressed: ClassVar[bool] = True
    """Whether `Rows` may be compressed."""

    def of_each(self, rows: Rows, f: Array) -> Array:
        """Loss of each sample, (R, K, r), for predictions f (R, K, r): squared errors."""
        return np.square(f - rows.y)

    def sums_of_errors(self, rows: Rows, f: Array) -> dict[str, Array]:
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
        if rows.few or is_traced(theta):
            residual = rows.predict(theta[..., None])[..., 0] - rows.y
            return 2 / rows.count[:, None] * rows.weigh(residual)
        grams, pull = rows.normal
        return 2 / rows.count[:, None] * (grams.times(theta) - pull)

    def minimiser(self, rows: Rows, c: NDArray[np.float64]) -> "SquareMinimiser":
        """Minimiser of R_i(theta) = (mean loss of client i) + c_i |theta|^2, c (K,) above 0; factors samples once."""
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
        """1 for a misclassified sample, 1/2 for f = 0, else 0, (R, K, r), for predictions f (R, K, r)."""
        mistakes: Array = 0.5 * (1 - np.sign(rows.y * f))
        return mistakes

    def sums_of_errors(self, rows: Rows, f: Array) -> dict[str, Array]:
        """Numbers of misclassified samples (f = 0 is half a mistake), and sums of logistic losses."""
        y = rows.y[..., None]
        return {
            "error": (0.5 * (np.abs(y) - np.sign(y * f))).sum(axis=2),
            "loss": (np.abs(y) * LOGISTIC.value(f, y)).sum(axis=2),
        }

    def mean(self, rows: Rows, theta: Array) -> Array:
        """Mean logistic loss of each client; rows of padding are excluded, because each would add log(2)."""
        f, xp = rows.predict(theta[..., None])[..., 0], array_namespace(theta)
        return (xp.abs(rows.y) * xp.logaddexp(0, -rows.y * f)).sum(axis=-1) / rows.count

    def gradient(self, rows: Rows, theta: Array) -> Array:
        """-Phi'(y / (1 + exp(y Phi theta))) / T."""
        f = rows.predict(theta[..., None])[..., 0]
        return rows.weigh(LOGISTIC.derivative(f, rows.y)) / rows.count[:, None]

    def minimiser(self, rows: Rows, c: NDArray[np.float64]) -> "LogisticMinimiser":
        """A minimiser by descent steps, which share one factored matrix."""
        return LogisticMinimiser(self, rows, c, Ridge.from_rows(rows, 0.25, c))

    def optimum(self, rows: Rows, lam: float) -> Array:
        """Theta that minimises the mean loss plus lam |theta|^2, by scikit-learn's Newton method."""
        from sklearn.linear_model import LogisticRegression

        # scikit-learn's loss is C sum_j weight_j l_j + |theta|^2 / 2, so C = 1 / (2 lam) for weights 1 / n
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
    """Newton steps with the largest curvature of a logistic loss, 1/4, until the gradient vanishes.

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
            # A client that has converged stops, so its result does not depend on the clients computed with it.
            moving = np.abs(slope).max(axis=-1, keepdims=True) > TOLERANCE
            if not moving.any():
                return theta
            theta = np.where(moving, theta - self.ridge.solve(slope), theta)
        raise FklError(f"the minimum of a client's loss is not found in {MOST_STEPS} steps: raise algo.rho or algo.lam")


OfNumbers = Square | Logistic
Loss = OfNumbers | OfClasses
Minimiser = SquareMinimiser | LogisticMinimiser
OF_CLASSES: dict[str, OfClasses] = {"one_vs_rest": OneVsRest(), "softmax": Softmax()}
LOSSES: dict[str, Any] = {"square": Square(), "logistic": Logistic(), **OF_CLASSES}
