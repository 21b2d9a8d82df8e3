"""Second moments of features as a payload, stored as the samples from which they are computed."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fkl.kernels import FeatureBank
from fkl.kernels.bank import eigh
from fkl.kernels.client_tiles import tiles
from fkl.kernels.traceable import namespace, of_each
from fkl.wire.payloads import Array, Axes, PerClient, Size, Summable, require_leading


def lower_triangle(gram: Array) -> Array:
    """The lower triangles of matrices (..., P, P), row by row: (..., P (P + 1) / 2)."""
    P = gram.shape[-1]
    return namespace(gram).take(gram.reshape(*gram.shape[:-2], P * P), _places(P)[0], axis=-1)


def from_lower_triangle(packed: Array) -> Array:
    """Lower triangular matrices from the rows that `lower_triangle` returned."""
    return namespace(packed).tril(symmetric_matrix(packed))


def symmetric_matrix(packed: Array) -> Array:
    """Symmetric matrices from the rows that `lower_triangle` returned."""
    P = int(np.sqrt(2 * packed.shape[-1]))
    return namespace(packed).take(packed, _places(P)[1], axis=-1)


@lru_cache(maxsize=8)
def _places(P: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place of each entry of `lower_triangle` in the matrix, and of each entry (P, P) of the matrix in those."""
    rows, columns = np.tril_indices(P)
    low, high = np.sort(np.indices((P, P)), axis=0)
    return rows * P + columns, high * (high + 1) // 2 + low


def sum_of_outer_products(samples: Array, share: Array) -> Array:
    """Sum of share_k a a' over clients and their samples a, (R, K, N, r, m) and (K,): (R, N, m, m)."""
    R, _, N, _, m = samples.shape
    rows = (np.sqrt(share)[:, None, None, None] * samples).swapaxes(1, 2).reshape(R, N, -1, m)
    return np.matmul(rows.swapaxes(2, 3), rows)


@dataclass(frozen=True)
class Moments(Summable):
    """Every client's sum_b w_b z_i z_i' and sum_b w_b y_b z_i of each kernel, over the samples that it holds.

    On a wire it is dense, L = P (P + 1) / 2 + P scalars per kernel: the lower triangle row by row, and then the vector.
    A simulation never forms the sums of one client, unless a condition needs them.

    Parameters
    ----------
    bank : FeatureBank
    x : (R or 1, K, B, d)
    y, weight : (R or 1, K, B)
        Weights are >= 0, and 0 in places without a sample.
    chosen : (R, N) bool, or None
        Kernels whose moments travel, the same for all clients; None for all.
    """

    bank: FeatureBank
    x: Array
    y: Array
    weight: Array
    chosen: NDArray[np.bool_] | None = None

    leading = {"chosen": "R"}  # noqa: RUF012

    def as_received(self, axes: Axes, width: int) -> "Moments":
        """Unchanged: the samples stay, and only their sums travel."""
        shape = self.bank.replicates, *self.x.shape[1:]
        require_leading(shape[:2], "RK", axes, "Moments")
        return super().as_received(axes, width)

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes of each client's sums, (R, K)."""
        bank, P = self.bank, self.bank.width
        shape = bank.replicates, self.x.shape[1], bank.kernels, P * (P + 1) // 2 + P
        return PerClient(np.broadcast_to(0.0, shape), self._chosen_by_client()).wire_size(width)

    def dense(self) -> PerClient:
        """The moments themselves, (R, K, N, L)."""
        every = of_each(self._sums_of_client, self.x, self.y, self.weight)
        return PerClient(namespace(every).moveaxis(every, 0, 1), self._chosen_by_client())

    def tile_sums(self, share: Array) -> tuple[Array]:
        """As `Summable.tile_sums`, of (R, N, L): the tiles are of samples, and a tile of clients has whole ones."""
        x, y, weight = self.times(share)._samples()
        return (np.stack([self._sums(x[:, rows], y[:, rows], weight[:, rows]) for rows in tiles(x.shape[1])]),)

    def sums(self, share: Array) -> tuple[Array]:
        """As `Summable.sums`; the bank goes through the tiles by itself."""
        return (self.times(share)._sums_of_samples(),)

    def squared_norm(self) -> NDArray[np.float64]:
        """Squared length of each client's sums, one client after another, because all at once may not fit in memory."""

        def of_client(*samples: Array) -> Array:
            return PerClient(self._sums_of_client(*samples)[:, None]).squared_norm()[:, 0]

        return of_each(of_client, self.x, self.y, self.weight).T

    def times(self, factor: Array) -> "Moments":
        """Each client's sums times a factor >= 0, (K,) or (R, K): the samples' weights are multiplied."""
        return replace(self, weight=factor[..., None] * self.weight)

    def client(self, k: int) -> "Moments":
        """The moments of client k alone."""
        mine = slice(k, k + 1)
        return replace(self, x=self.x[:, mine], y=self.y[:, mine], weight=self.weight[:, mine])

    def low_rank_samples(self, rank: int) -> PerClient:
        """Samples (R, K, N, rank, P + 1) whose outer products add up to those of (z, y), or to what is nearest.

        They belong to the largest eigenvalues of sum_b w_b (z, y) (z, y)'. No other matrix of this rank is as near in
        any unitarily invariant norm (Eckart and Young). The last entry, the target's, is >= 0.
        """
        R, P = self.bank.replicates, self.bank.width
        square = (self.weight * self.y**2).sum(axis=-1)  # (R or 1, K)
        samples = np.zeros((R, self.x.shape[1], self.bank.kernels, rank, P + 1))
        matrix = np.empty((R, self.bank.kernels, P + 1, P + 1))
        for k in range(self.x.shape[1]):
            packed = self.client(k)._sums_of_samples()
            matrix[..., :P, :P], matrix[..., :P, P], matrix[..., P, P] = (
                symmetric_matrix(packed[..., :-P]), packed[..., -P:], square[:, k, None],
            )  # fmt: skip
            matrix[..., P, :P] = matrix[..., :P, P]
            values, vectors = eigh(matrix)
            few = min(rank, P + 1)
            made = np.sqrt(np.maximum(values[..., -few:], 0))[..., None] * vectors.swapaxes(-1, -2)[..., -few:, :]
            samples[:, k, :, :few] = np.where(made[..., -1:] < 0, -made, made)
        chosen = self._chosen_by_client()
        return PerClient(samples if chosen is None else samples * chosen[..., None, None], chosen)

    def _chosen_by_client(self) -> NDArray[np.bool_] | None:
        """Kernels that travel, (R, K, N), the same for every client; None for all."""
        if self.chosen is None:
            return None
        R, N = self.chosen.shape
        return np.broadcast_to(self.chosen[:, None], (R, self.x.shape[1], N))

    def _sums_of_client(self, x: Array, y: Array, weight: Array) -> NDArray[np.float64]:
        return replace(self, x=x, y=y, weight=weight)._sums_of_samples()

    def _sums_of_samples(self) -> NDArray[np.float64]:
        """Sum over all clients and samples, (R, N, L)."""
        return self._sums(*self._samples())

    def _samples(self) -> list[Array]:
        """x, y and weight with all samples of all clients along the second axis."""
        rows = self.x.shape[1] * self.x.shape[2]
        return [part.reshape(len(part), rows, *part.shape[3:]) for part in (self.x, self.y, self.weight)]

    def _sums(self, x: Array, y: Array, weight: Array) -> NDArray[np.float64]:
        """Over these samples, (R, N, L)."""
        gram, pull = self.bank.moments(x, y, weight, self.chosen)
        return namespace(gram).concatenate([lower_triangle(gram), pull], axis=-1)
