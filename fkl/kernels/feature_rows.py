"""The clients' samples in feature space, with as few rows as the loss needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, namespace, traced
from fkl.kernels.bank import FeatureBank
from fkl.kernels.dictionary import CentreBank
from fkl.kernels.threads import in_parts, share, wake_for

BLOCK_ROWS = 2048
TRIANGLE_ROWS = 50
"""Rows of a triangular factor in one product, without the columns that are 0 in all of them."""
ROWS = 4
"""Rows of a symmetric matrix that are stored together: `fkl.kernels.symmetric` is unrolled for this number."""
PRODUCTS_A_FEATURE = 16
"""Products of a matrix with a vector that take as long as computing one feature."""


Space = FeatureBank | CentreBank
"""Feature space of samples: a bank of one kernel's random features, or the span of centres."""


@dataclass(frozen=True)
class Rows:
    """Feature rows and targets of K clients in R replicates, float64.

    A client with more samples than features P may be compressed to P rows without a change of its squared error: |y -
    Phi theta|^2 = |Q'y - U theta|^2 + rest with Phi = QU.

    Parameters
    ----------
    phi : (R, K, r, P)
        Zero in rows beyond a client's number of rows.
    y : (R, K, r)
        Also zero there.
    rest : (R, K)
        Squared error that no theta can reduce; 0 unless compressed.
    count : (K,)
        T_i, samples of each client.
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
            Whether only squared errors will be needed.
        """
        R, P = bank.replicates, bank.width
        most = int(min(count.max(initial=0), P)) if compressed else int(count.max(initial=0))
        phi, target = np.zeros((R, len(count), most, P)), np.zeros((R, len(count), most))
        rest = np.zeros((R, len(count)))
        ends = np.cumsum(count)
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
                phi[:, k, :size], target[:, k, :size] = bank.features(x[start:end])[:, 0], y[start:end]
        return cls(phi, target, rest, count.astype(np.float64), compressed and bool((count > P).all()))

    def predict(self, theta: Array) -> Array:
        """Phi_i theta for theta (R, K, P, B), B candidates per client: shape (R, K, r, B)."""
        if traced(theta):
            return namespace(theta).matmul(self.phi, theta)
        out = np.empty((*self.phi.shape[:3], theta.shape[3]))
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
        return namespace(weight).matmul(weight[:, :, None], self.phi)[:, :, 0]

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
        """Phi_i'Phi_i of all clients, and Phi_i'y_i, (R, K, P), computed once; these are large."""
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
    """Symmetric matrices (R, K, P, P), stored as one half, for products that take as long as reading them.

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
        """Products with vectors (R, K, P), (R, K, P)."""
        from fkl.kernels.symmetric import symmetric_products  # imports numba, which few need

        out = np.empty(v.shape)
        wake_for(2 * self.half.size // PRODUCTS_A_FEATURE)
        vectors = np.ascontiguousarray(_joined_axes(v))
        share(symmetric_products, len(vectors), _joined_axes(self.half), vectors, _joined_axes(out))
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
        """Factor the samples of every client, for w and c (K,), above 0."""
        R, K, r, P = rows.phi.shape
        if not rows.few:

            def inverse(k: int) -> Array:
                return np.linalg.inv(weight / rows.count[k] * rows.gram(k) + 2 * c[k] * np.eye(P))

            return cls(Symmetric.from_matrices(inverse, R, K, P), c)
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
        """Its arrays, for engines that trace the products."""
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
    if traced(v):
        return namespace(v).matmul(matrix, v[..., None])[..., 0]
    out = np.empty(matrix.shape[:3])
    into, of, flat = _joined_axes(out)[..., None], _joined_axes(v)[..., None], _joined_axes(matrix)

    def work(begin: int, end: int) -> None:
        np.matmul(flat[begin:end], of[begin:end], out=into[begin:end])

    in_parts(work, len(of), matrix.size // PRODUCTS_A_FEATURE)
    return out


def _joined_axes(a: Array) -> Array:
    """Replicates and clients as one axis."""
    return a.reshape(a.shape[0] * a.shape[1], *a.shape[2:])
