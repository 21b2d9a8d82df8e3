"""PP-SVMV: a support vector machine on the sum of the parties' local matrices.

Yu, Vaidya and Jiang, "Privacy-preserving SVM classification on vertically partitioned data" (2006).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.libsvm_svc import Machine, rbf, require_cache, require_stopping, require_two_classes
from fkl.algorithms.vertical.messages import SCALAR, Array, Count, Groups, Letter, uncounted
from fkl.algorithms.vertical.parties import Actor, Held, Learning, Own, Wire
from fkl.algorithms.vertical.ring import LARGEST, book_ring, from_fixed_point, masked_sum, ring_order, to_fixed_point
from fkl.algorithms.vertical.sums import round_the_ring
from fkl.basics.errors import FklError, require
from fkl.basics.memory import require_memory
from fkl.kernels.client_tiles import row_blocks

BLOCK = 1 << 19
"""Entries of the matrix that are computed at a time."""
GIB = 2**30


class Matrix(Letter, kind="matrix", dtype="u8"):
    """The different entries of the matrix so far, masked."""


class Trained(NamedTuple):
    """The first active party's machine: the indices of support vectors, and the rest of `Machine`."""

    support: NDArray[np.integer]
    weight: Array
    bias: float
    gamma: float | None


@dataclass(frozen=True)
class PpSvmv(Learning):
    """Inner products of all samples are summed round a ring under a random mask, then an SVM learns from the sum.

    The ring begins and ends with the active party. Entries are whole multiples of 2^-40, added modulo 2^64, so the
    mask, uniform on all 64-bit numbers, hides them perfectly and is removed exactly. With two parties the active one
    learns the other's matrix, so the paper requires three. A party sends the N (N + 1) / 2 different entries.

    Parameters
    ----------
    kernel : {"rbf", "linear"}
        exp(-gamma |x - x'|^2), or x'x'.
    C : float
        Penalty of a sample on the wrong side.
    gamma : float
        gamma of the rbf kernel.
    tolerance : float
        LIBSVM's stopping criterion.
    cache_mib : float
        Memory for kernel values.
    memory_gib : float
        Largest allowed matrix of all inner products.
    """

    label: ClassVar[str] = "PP-SVMV"

    kernel: str = "rbf"
    C: float = 1.0
    gamma: float = 1.0
    tolerance: float = 1e-3
    cache_mib: float = 500.0
    memory_gib: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.kernel in ("rbf", "linear"), "kernel", self.kernel, "rbf or linear")
        for key in ("C", "gamma", "memory_gib"):
            value = getattr(self, key)
            require(0 < value < np.inf, key, value, "a number > 0")
        require_stopping(self.tolerance, self.cache_mib)

    def begin(self, held: Held, rng: np.random.Generator) -> np.random.Generator:
        """Keep the mask's generator."""
        self.require_room(len(held.x))
        require_cache(self.cache_mib, len(held.x))
        return rng

    def advance(self, held: Held, learned: np.random.Generator, count: Count) -> tuple[np.random.Generator, Machine]:
        """Merge, then learn; the first active party draws the mask and learns.

        Raises
        ------
        fkl.basics.errors.FklError
            If the matrix does not fit, or inner products are too large to be coded.
        """
        gram = self.merged(held.x, held.groups, held.active, learned, count)
        support, weight, bias, gamma = self._trained(gram, held.y)
        return learned, Machine(held.x[support], weight, bias, gamma)

    def party(self, own: Own, wire: Wire) -> Actor:
        """One party's part of the ring; the first active one learns."""
        x = np.ascontiguousarray(own.x, np.float64)
        upper = np.triu_indices(len(x))
        words = yield from round_the_ring(
            ring_order(own.groups, own.root), own, wire, Matrix, to_fixed_point((x @ x.T)[upper])
        )
        if words is None:
            return None
        gram = np.empty((len(x), len(x)))
        gram[upper] = from_fixed_point(words)
        gram.T[upper] = gram[upper]
        return self._trained(gram, own.labels)

    def assembled(self, parts: list["Trained"], held: Held) -> Machine:
        """The first active party's solution on the support vectors; each party has its own features of these."""
        support, weight, bias, gamma = parts[held.active[0]]
        return Machine(held.x[support], weight, bias, gamma)

    def _trained(self, gram: Array, y: Array) -> "Trained":
        """A machine from the inner products (N, N), which are overwritten."""
        from sklearn.svm import SVC

        require_two_classes(y)
        gamma = self.gamma if self.kernel == "rbf" else None
        if gamma is not None:
            squares = gram.diagonal().copy()
            for block in row_blocks(len(gram), len(gram), BLOCK):
                rbf(gram[block], squares[block], squares, gamma)
        svc = SVC(C=self.C, kernel="precomputed", tol=self.tolerance, cache_size=self.cache_mib).fit(gram, y)
        return Trained(svc.support_, svc.dual_coef_[0], float(svc.intercept_[0]), gamma)

    def merged(
        self, x: Array, groups: Groups, active: tuple[int, ...], rng: np.random.Generator, count: Count = uncounted
    ) -> Array:
        """Inner products (N, N) of samples (N, d), as the first active party holds them after the ring."""
        self.require_room(len(x))
        if np.square(x).sum(axis=1).max() >= LARGEST:
            raise FklError(f"PP-SVMV codes inner products below {LARGEST:g} only: normalise the features")
        samples, ring = len(x), ring_order(groups, active[0])
        parts = [np.ascontiguousarray(x[:, groups[party]], np.float64) for party in ring]
        gram = np.empty((samples, samples))
        for block in row_blocks(samples, samples, BLOCK):
            rest = slice(block.start, samples)  # the matrix is symmetric
            merged = masked_sum((to_fixed_point(part[block] @ part[rest].T) for part in parts), rng)
            from_fixed_point(merged, out=gram[block, rest])
            gram[rest, block] = gram[block, rest].T
        book_ring(count, Matrix, ring, samples * (samples + 1) // 2)
        return gram

    def require_room(self, samples: int) -> None:
        """Refuse a matrix that would be larger than `memory_gib`, or than the memory."""
        needed = SCALAR * samples**2 / GIB
        if needed > self.memory_gib:
            raise FklError(
                f"algo.memory_gib={self.memory_gib:g}: PP-SVMV's matrix of {samples} x {samples} samples takes "
                f"{needed:.1f} GiB; raise it, or take fewer samples"
            )
        matrix = f"PP-SVMV's matrix of {samples} x {samples} samples"
        require_memory(SCALAR * samples**2, matrix, "the number of samples, as by dataset.rows")
