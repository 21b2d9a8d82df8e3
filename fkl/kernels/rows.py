"""The clients' samples in feature space, as few rows as the loss can tell apart."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.kernels.flow import namespace, traced
from fkl.kernels.threads import in_parts, share, wake_for

Array = NDArray[np.floating]
BLOCK_ROWS = 2048
TRIANGLE_ROWS = 50
"""Rows of a triangular factor that are multiplied at once, without the columns that are 0 in all of them."""
PRODUCTS_A_FEATURE = 16
"""Products of a matrix with a vector that take as long as one feature."""


class Space(Protocol):
    """What samples are mapped to: a bank of one kernel's random features, or what centres span."""

    @property
    def replicates(self) -> int:
        """R."""
        ...

    @property
    def width(self) -> int:
        """P."""
        ...

    def features(self, x: Array) -> Array:
        """Phi of x (n, d), (R, 1, n, P)."""
        ...


@dataclass(frozen=True)
class Rows:
    """Feature rows and targets of K clients in R replicates, float64.

    A client with more samples than features P may be compressed to P rows that lose nothing of its squared error:
    |y - Phi theta|^2 = |Q'y - U theta|^2 + rest with Phi = QU.

    Parameters
    ----------
    phi : (R, K, r, P)
        Zero where a client has fewer than r rows.
    y : (R, K, r)
        Zero there too.
    rest : (R, K)
        Squared error that no theta can mend; 0 unless compressed.
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
    def of(cls, bank: Space, x: Array, y: Array, count: NDArray[np.int64], compressed: bool) -> "Rows":
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
            Whether only squared errors will be asked for.
        """
        R, P = bank.replicates, bank.width
        most = int(min(count.max(initial=0), P)) if compressed else int(count.max(initial=0))
        phi, target = np.zeros((R, len(count), most, P)), np.zeros((R, len(count), most))
        rest = np.zeros((R, len(count)))
        ends = np.cumsum(count)
        for k, (start, end) in enumerate(zip(ends - count, ends, strict=True)):
            size = end - start
            if compressed and size > P:
                triangle = _triangle(bank, x[start:end], y[start:end])
                phi[:, k], target[:, k], rest[:, k] = triangle[:, :P, :P], triangle[:, :P, P], triangle[:, P, P] ** 2
            else:
                phi[:, k, :size], target[:, k, :size] = bank.features(x[start:end])[:, 0], y[start:end]
        return cls(phi, target, rest, count.astype(np.float64), compressed and bool((count > P).all()))

    def predict(self, theta: Array) -> Array:
        """Phi_i theta for theta (R, K, P, B), B candidates a client: shape (R, K, r, B)."""
        if traced(theta):
            return namespace(theta).matmul(self.phi, theta)  # type: ignore[no-any-return]
        out = np.empty((*self.phi.shape[:3], theta.shape[3]))
        phi, candidates, f = _flat(self.phi), _flat(theta), _flat(out)
        step = TRIANGLE_ROWS if self.triangular else max(1, phi.shape[1])

        def work(begin: int, end: int) -> None:
            for row in range(0, phi.shape[1], step):
                some = slice(begin, end), slice(row, row + step)
                np.matmul(phi[some][..., row:], candidates[begin:end, row:], out=f[some])

        in_parts(work, len(f), out.size)
        return out

    def weigh(self, weight: Array) -> Array:
        """Phi_i'weight_i for weight (R, K, r): shape (R, K, P)."""
        return namespace(weight).matmul(weight[:, :, None], self.phi)[:, :, 0]  # type: ignore[no-any-return]

    def gram(self, k: int) -> Array:
        """Phi_k'Phi_k, (R, P, P)."""
        phi = self.phi[:, k]
        return np.matmul(phi.swapaxes(1, 2), phi)

    @property
    def few(self) -> bool:
        """Whether two products with Phi_i are less work than one with a matrix (P, P)."""
        return 2 * self.phi.shape[2] < self.phi.shape[3]

    @cached_property
    def normal(self) -> tuple[Array, Array]:
        """Phi_i'Phi_i, (R, K, P, P), and Phi_i'y_i, (R, K, P), made once: large."""
        R, K, _, P = self.phi.shape
        grams = np.empty((R, K, P, P))

        def work(begin: int, end: int) -> None:
            for k in range(begin, end):
                grams[:, k] = self.gram(k)

        in_parts(work, K)
        return grams, self.weigh(self.y)


def _triangle(bank: Space, x: Array, y: Array) -> Array:
    """Triangular factor of [Phi y], (R, P + 1, P + 1), for more than P rows, taken in block after block."""
    width = bank.width + 1
    triangle: Array = np.zeros((bank.replicates, 0, width))
    for start in range(0, len(y), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        features = bank.features(x[block])[:, 0]
        target = np.broadcast_to(y[block, None], (*features.shape[:2], 1))
        triangle = _qr(np.concatenate([triangle, np.concatenate([features, target], axis=2)], axis=1))
    return triangle


def _qr(a: Array) -> Array:
    out = np.empty((a.shape[0], min(a.shape[1:]), a.shape[2]))

    def work(begin: int, end: int) -> None:
        out[begin:end] = np.linalg.qr(a[begin:end], mode="r")

    in_parts(work, len(a))
    return out


@dataclass(frozen=True)
class Ridge:
    """(w Phi_i'Phi_i / T_i + 2 c_i I)^-1 of every client.

    Parameters
    ----------
    matrix : (R, K, P, P), or (R, K, r, P)
        The inverse; or, for clients of so few rows that this is cheaper, C^-1 Phi of the Cholesky factor C in
        Woodbury's formula.
    c : (K,)
    """

    matrix: Array
    c: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Rows, weight: float, c: NDArray[np.float64]) -> "Ridge":
        """Factor the samples of every client, for w and c (K,), above 0."""
        R, K, r, P = rows.phi.shape
        matrix = np.empty((R, K, r if rows.few else P, P))
        factor = _woodbury if rows.few else _inverse

        def work(begin: int, end: int) -> None:
            for k in range(begin, end):
                matrix[:, k] = factor(rows, k, weight, c[k])

        in_parts(work, K)
        return cls(matrix, c)

    def solve(self, v: Array) -> Array:
        """The inverse applied to v (R, K, P)."""
        if traced(v):
            matmul, matrix = namespace(v).matmul, self.matrix
            inner = matmul(matrix, v[..., None])
            if matrix.shape[2] < matrix.shape[3]:
                inner = (v[..., None] - matmul(matrix.swapaxes(2, 3), inner)) / (2 * self.c[:, None, None])
            return inner[..., 0]  # type: ignore[no-any-return]
        if self.matrix.shape[2] == self.matrix.shape[3]:
            return symmetric(self.matrix, v)
        inner = _products(self.matrix, v)
        return (v - _products(self.matrix.swapaxes(2, 3), inner)) / (2 * self.c[:, None])


def symmetric(matrix: Array, v: Array) -> Array:
    """Symmetric matrices (R, K, P, P) times vectors (R, K, P), of which half of the entries are read."""
    from fkl.kernels.symmetric import symmetric_products  # and with it numba, which few need

    out = np.empty(v.shape)
    wake_for(matrix.size // PRODUCTS_A_FEATURE)
    share(symmetric_products, v.shape[0] * v.shape[1], _flat(matrix), np.ascontiguousarray(_flat(v)), _flat(out))
    return out


def _products(matrix: Array, v: Array) -> Array:
    """Matrices (R, K, m, n) times vectors (R, K, n), (R, K, m)."""
    out = np.empty(matrix.shape[:3])
    into, of, flat = _flat(out)[..., None], _flat(v)[..., None], _flat(matrix)

    def work(begin: int, end: int) -> None:
        np.matmul(flat[begin:end], of[begin:end], out=into[begin:end])

    in_parts(work, len(of), matrix.size // PRODUCTS_A_FEATURE)
    return out


def _flat(a: Array) -> Array:
    """Replicates and clients as one axis."""
    return a.reshape(a.shape[0] * a.shape[1], *a.shape[2:])


def _inverse(rows: Rows, k: int, weight: float, c: float) -> Array:
    return np.linalg.inv(weight / rows.count[k] * rows.gram(k) + 2 * c * np.eye(rows.phi.shape[3]))


def _woodbury(rows: Rows, k: int, weight: float, c: float) -> Array:
    phi = rows.phi[:, k]
    small = np.matmul(phi, phi.swapaxes(1, 2)) + 2 * c * rows.count[k] / weight * np.eye(phi.shape[1])
    return np.linalg.solve(np.linalg.cholesky(small), phi)
