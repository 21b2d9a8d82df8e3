"""Kernel machines: LIBSVM on pooled data, and two methods whose parties sum their shares along a ring.

`PpSvmv` is that of Yu, Vaidya and Jiang (2006). `VerticalNystroem` is a machine in the span of some of the samples, the
landmarks: Williams and Seeger, "Using the Nystroem method to speed up kernel machines" (2000). It uses the ring of
PP-SVMV for sums of N M numbers instead of N (N + 1) / 2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from fkl.algorithms.vertical.parties import (
    SCALAR,
    Actor,
    Count,
    Integers,
    LearningWithKeys,
    Letter,
    PartyData,
    PartyRows,
    Wire,
    are_signs,
    require_two_classes,
    target_deviation,
)
from fkl.algorithms.vertical.ridge import fit_ridge, kernel_ridge, squared_hinge
from fkl.algorithms.vertical.sums import (
    LARGEST,
    Part,
    Words,
    from_fixed_point,
    round_the_ring,
    to_fixed_point,
    values_of_letter,
)
from fkl.basics.arrays import Array
from fkl.basics.errors import FklError
from fkl.basics.keys import key
from fkl.basics.memory import require_memory
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.functions import Linear, OnPoints, SavedFunction

PREDICTED = 1 << 22
"""Number of kernel values in memory at a time for predictions."""
LEAST_TOLERANCE = 1e-9
"""Smaller tolerances may be impossible because of rounding."""
MOST_MIB = 1e6


@dataclass(frozen=True)
class KernelExpansion:
    """f(x) = sum_s weight_s K(support_s, x) + bias.

    Parameters
    ----------
    support : (s, d)
    weight : (s,)
    bias : float
    gamma : float or None
        gamma of the RBF kernel exp(-gamma |x - x'|^2); None for the linear kernel x'x'.
    """

    support: Array
    weight: Array
    bias: float
    gamma: float | None

    def decision(self, x: Array) -> Array:
        """Values f of samples (n, d), shape (n,): estimates, or above 0 for class 1."""
        if self.gamma is None:
            return x @ (self.weight @ self.support) + self.bias
        norms = np.square(self.support).sum(axis=1)
        values = []
        for rows in row_blocks(len(x), len(norms), PREDICTED):  # a loose tolerance may end with no support vector
            block = x[rows]
            kernel = rbf_from_products(block @ self.support.T, np.square(block).sum(axis=1), norms, self.gamma)
            values.append(kernel @ self.weight)
        return np.concatenate(values) + self.bias if values else np.zeros(0)

    @property
    def function(self) -> SavedFunction:
        """The model as arrays of a stored model."""
        if self.gamma is None:
            return Linear(self.weight @ self.support, np.array(self.bias))
        scales = np.array([np.sqrt(2 * self.gamma)])
        return OnPoints.gaussian(self.support, scales, self.weight[None, None], np.array([self.bias]))


def rbf_from_products(products: Array, rows: Array, columns: Array, gamma: float) -> Array:
    """RBF kernel from inner products (n, m) and squared norms (n,) and (m,); overwrites and returns the products."""
    products *= -2
    products += rows[:, None]
    products += columns
    np.maximum(products, 0, out=products)
    products *= -gamma
    return np.exp(products, out=products)


class SupportVectors(NamedTuple):
    """The indices of support vectors, their weights, and the bias."""

    support: NDArray[np.integer]
    weight: Array
    bias: float


@dataclass(frozen=True)
class SupportVectorMachine(LearningWithKeys):
    """Keys and solver of the two methods that solve LIBSVM's problem, by scikit-learn.

    Two classes are learned by SVC, real targets by SVR. For SVR, C, epsilon and the tolerance are in standard
    deviations of the training targets, so they do not depend on the unit: each is multiplied by this deviation.
    """

    C: float = key(
        1.0,
        "Penalty of a sample on the wrong side; for real targets, of a standardised error above epsilon.",
        above=0,
    )
    epsilon: float = key(
        0.1,
        "Errors of real targets that cost nothing, in standard deviations of the training targets; no effect on two "
        "classes.",
        min=0,
    )
    gamma: float = key(1.0, "The RBF kernel is exp(-gamma |x - x'|^2).", above=0)
    tolerance: float = key(1e-3, "LIBSVM's stopping criterion.", min=LEAST_TOLERANCE)
    cache_mib: float = key(
        200.0,
        "Memory for kernel values; it does not change results. 200 is scikit-learn's default; 500 took longer "
        "on cod_rna.",
        above=0,
        max=MOST_MIB,
    )

    def require_cache(self, samples: int) -> None:
        """Refuse a cache (four bytes per kernel value) that may not fit in memory, which would crash LIBSVM."""
        needed = min(int(self.cache_mib * 2**20), 4 * samples**2)
        require_memory(needed, "LIBSVM's cache of kernel values", f"algo.cache_mib={self.cache_mib:g}")

    def solve_machine(self, x: Array, y: Array, **kernel: Any) -> SupportVectors:
        """The machine for samples (N, d), or for kernel values (N, N) if the kernel is precomputed."""
        from sklearn.svm import SVC, SVR

        # Two classes or a regression; the keys of a regression are in units of the target's deviation
        if are_signs(y):
            require_two_classes(y)
            machine = SVC(C=self.C, tol=self.tolerance, cache_size=self.cache_mib, **kernel)
        else:
            C, epsilon, tolerance = (value * target_deviation(y) for value in (self.C, self.epsilon, self.tolerance))
            machine = SVR(C=C, epsilon=epsilon, tol=tolerance, cache_size=self.cache_mib, **kernel)
        machine.fit(x, y)
        return SupportVectors(machine.support_, machine.dual_coef_[0], float(machine.intercept_[0]))


@dataclass(frozen=True)
class Libsvm(SupportVectorMachine):
    """scikit-learn's SVC or SVR, which are LIBSVM, with the RBF kernel.

    Chang and Lin, "LIBSVM: a library for support vector machines" (2011).
    """

    label: ClassVar[str] = "LIBSVM"
    pooled: ClassVar[bool] = True

    def begin(self, held: PartyRows, rng: np.random.Generator) -> None:
        """Check the cache; there is no state, because there is only one round."""
        self.require_cache(len(held.x))

    def advance(self, held: PartyRows, learned: None, count: Count) -> tuple[None, KernelExpansion]:
        """Learn from x and y, without other inputs or messages."""
        support, weight, bias = self.solve_machine(held.x, held.y, gamma=self.gamma)
        return None, KernelExpansion(held.x[support], weight, bias, self.gamma)


BLOCK = 1 << 19
"""Number of entries of the matrix that are computed at a time."""
GIB = 2**30


class Matrix(Letter, kind="matrix", dtype="u8"):
    """Masked partial sums of the matrix's distinct entries."""


@dataclass(frozen=True)
class PpSvmv(SupportVectorMachine):
    """Inner products of all samples are summed along a ring under a random mask; then an SVM learns from the sum.

    The ring begins and ends with the active party. Entries are whole multiples of 2^-40, added modulo 2^64, so the
    mask, uniform on all 64-bit numbers, hides them perfectly and is removed exactly. With two parties the active one
    learns the other's matrix, so the paper requires three. A party sends the N (N + 1) / 2 distinct entries. They do
    not depend on the target, and nothing about it is sent: real targets change only the active party's problem.
    """

    label: ClassVar[str] = "PP-SVMV"

    kernel: str = key("rbf", "Kernel: exp(-gamma |x - x'|^2), or x'x'.", choices=("rbf", "linear"))
    cache_mib: float = key(500.0, "Memory for kernel values.", above=0, max=MOST_MIB)
    memory_gib: float = key(4.0, "Largest allowed matrix of all inner products.", above=0)

    def begin(self, held: PartyRows, rng: np.random.Generator) -> Any:
        """Refuse a matrix that does not fit in memory, and inner products that are too large to be coded."""
        self.require_room(len(held.x))
        self.require_cache(len(held.x))
        if np.square(held.x).sum(axis=1).max() >= LARGEST:
            raise FklError(f"PP-SVMV codes inner products below {LARGEST:g} only: normalise the features")
        return super().begin(held, rng)

    def play(self, own: PartyData, memory: None, wire: Wire) -> Actor:
        """Sum the matrix, then learn; the first active party draws the mask and learns."""
        gram = yield from self.merge_products(own, wire)
        return None if gram is None else self._train_on_products(gram, own.labels)

    def assembled(self, parts: list[SupportVectors], held: PartyRows) -> KernelExpansion:
        """The first active party's solution on the support vectors; each party has its own features of these."""
        support, weight, bias = parts[held.active[0]]
        return KernelExpansion(held.x[support], weight, bias, self.gamma if self.kernel == "rbf" else None)

    def _train_on_products(self, gram: Array, y: Array) -> SupportVectors:
        """Train a machine on the inner products (N, N), which are overwritten."""
        if self.kernel == "rbf":
            squares = gram.diagonal().copy()
            for block in row_blocks(len(gram), len(gram), BLOCK):
                rbf_from_products(gram[block], squares[block], squares, self.gamma)
        return self.solve_machine(gram, y, kernel="precomputed")

    def merge_products(self, own: PartyData, wire: Wire) -> Part:
        """Inner products (N, N) at the first active party, summed along the ring; None at any other party."""
        # This party's part of the matrix, row block by row block, in whole numbers that wrap around
        x, samples = np.ascontiguousarray(own.x, np.float64), len(own.x)
        shares = (
            (place, to_fixed_point((x[rows] @ x[rows.start :].T)[upper]))
            for rows, upper, place in _upper_triangle_blocks(samples)
        )
        # Send it along the ring; only the first party gets the sum
        summed = yield from round_the_ring(own, wire, Matrix, (samples * (samples + 1) // 2,), shares)
        if summed is None:
            return None
        # Unpack the triangle to both halves
        gram = np.empty((samples, samples))
        for rows, upper, place in _upper_triangle_blocks(samples):
            for half in (gram, gram.T):
                half[rows, rows.start :][upper] = from_fixed_point(summed[place])
        return gram

    def require_room(self, samples: int) -> None:
        """Refuse a matrix that would be larger than `memory_gib` or than the free memory."""
        needed = SCALAR * samples**2 / GIB
        if needed > self.memory_gib:
            raise FklError(
                f"algo.memory_gib={self.memory_gib:g}: PP-SVMV's matrix of {samples} x {samples} samples takes "
                f"{needed:.1f} GiB; raise it, or take fewer samples"
            )
        matrix = f"PP-SVMV's matrix of {samples} x {samples} samples"
        require_memory(SCALAR * samples**2 * 3 // 2, matrix, "the number of samples, as by dataset.rows")


def _upper_triangle_blocks(samples: int) -> Iterator[tuple[slice, NDArray[np.bool_], slice]]:
    """The upper triangle of a matrix by blocks of rows: the rows, a mask of their entries, and the entries' place.

    The mask covers the columns from the block's first row on; the place is a slice of the message of all entries.
    """
    begin = 0
    for rows in row_blocks(samples, samples, BLOCK):
        upper = ~np.tri(rows.stop - rows.start, samples - rows.start, -1, np.bool_)
        end = begin + int(np.count_nonzero(upper))
        yield rows, upper, slice(begin, end)
        begin = end


LOSSES = {"square": fit_ridge, "squared_hinge": squared_hinge}
JITTER = 1e-9
"""Number that is added to the kernel's diagonal, K(z, z) = 1, because landmarks may be equal."""


class Landmarks(Letter, kind="landmarks", dtype="i8"):
    """Numbers of the samples that are landmarks."""


class Distances(Letter, kind="distances", dtype="u8"):
    """Masked partial sums of squared distances between all samples and all landmarks."""


@dataclass(frozen=True)
class VerticalNystroem(LearningWithKeys):
    """Minimise (1/N) sum_i L(f(x_i), y_i) + lam |f|^2 over f = sum_m a_m K(z_m, .) + bias; |f| is the kernel's norm.

    The active party chooses M of the samples. Squared distances |x_i - z_m|^2 are sums over the parties: they are
    summed along a ring once under a uniform mask, and only the active party sees the sums. As in PP-SVMV they reveal
    inner products of samples, here of N M pairs, and therefore the others' features up to a rotation.
    """

    label: ClassVar[str] = "Nystroem"

    landmarks: int = key(
        1000, "Number M; M samples or fewer are all landmarks: exact kernel ridge regression.", min=1, max=1_000_000
    )
    loss: str = key(
        "square",
        "Loss L: (f - y)^2, kernel ridge regression; or, for two classes, max(0, 1 - y f)^2, a support vector machine.",
        choices=LOSSES,
    )
    gamma: float = key(1.0, "The kernel is K(x, z) = exp(-gamma |x - z|^2).", above=0)
    lam: float = key(1e-6, "Regularisation; the bias is not regularised.", above=0)

    @property
    def loss_of_classes(self) -> str | None:
        """Name of a loss that needs two classes; None for the squared loss."""
        return None if self.loss == "square" else self.loss

    def begin(self, held: PartyRows, rng: np.random.Generator) -> Any:
        """Refuse equations that do not fit in memory, a single class, and distances that are too large to be coded."""
        size = min(self.landmarks, len(held.x))
        require_memory(8 * size * (3 * size + 2 * len(held.x)), f"equations of {size} landmarks", "algo.landmarks")
        if self.loss_of_classes:
            require_two_classes(held.y)
        if 4 * np.square(held.x).sum(axis=1).max() >= LARGEST:
            raise FklError(f"squared distances are coded below {LARGEST:g} only: normalise the features")
        return super().begin(held, rng)

    def play(self, own: PartyData, memory: None, wire: Wire) -> Actor:
        """One party's part in the ring; the first active party chooses the landmarks, and solves.

        With L L' = K(z, z) the features phi(x) = L^-1 K(z, x) make |f| = |theta| of f = theta'phi, and a = L^-T theta.
        If all samples are landmarks, the square loss needs no features: it is kernel ridge regression.
        """
        # The first active party draws the landmarks' rows, and tells all others
        x, samples = np.ascontiguousarray(own.x, np.float64), len(own.x)
        if own.number == own.root:
            assert own.rng is not None
            chosen = np.sort(own.rng.choice(samples, min(self.landmarks, samples), replace=False))
            for party in range(own.parties):
                if party != own.root:
                    wire.send(party, Landmarks(chosen))
        else:
            chosen = values_of_letter((yield own.root), Landmarks)
        # Squared distances to the landmarks, which are sums over the parties
        blocks = row_blocks(samples, len(chosen), BLOCK)
        shares = ((rows, to_fixed_point(_squared_distances(x[rows], x[chosen]))) for rows in blocks)
        # The first party has the sum and the targets, and solves
        summed = yield from round_the_ring(own, wire, Distances, (samples, len(chosen)), shares)
        return None if summed is None else (chosen, *self._solve_from_distances(summed, chosen, own.labels))

    def assembled(self, parts: list[tuple[Integers, Array, float]], held: PartyRows) -> KernelExpansion:
        """The first active party's solution on the landmarks; each party has its own features of these."""
        chosen, weight, bias = parts[held.active[0]]
        return KernelExpansion(held.x[chosen], weight, bias, self.gamma)

    def _solve_from_distances(self, distances: Words, chosen: Integers, y: Array) -> tuple[Array, float]:
        """Weights of the landmarks and bias, from the coded squared distances (N, M)."""
        # Gaussian kernel of the summed squared distances
        kernel = np.empty((len(y), len(chosen)))
        for rows in row_blocks(len(y), len(chosen), BLOCK):
            squares = from_fixed_point(distances[rows])
            squares *= -self.gamma
            kernel[rows] = np.exp(squares, out=squares)
        # All samples are landmarks: the exact solution
        if self.loss == "square" and len(chosen) == len(y):
            return kernel_ridge(kernel, y, self.lam)
        # Otherwise with features phi = L^-1 k(landmarks, x)
        among = kernel[chosen]
        among.flat[:: len(chosen) + 1] += JITTER
        root = cholesky(among, lower=True, overwrite_a=True, check_finite=False)
        phi = solve_triangular(root, kernel.T, lower=True, overwrite_b=True, check_finite=False).T
        theta, bias = LOSSES[self.loss](phi, y, self.lam)
        return solve_triangular(root, theta, lower=True, trans="T", check_finite=False), bias


def _squared_distances(x: Array, z: Array) -> Array:
    """|x_i - z_m|^2 over one party's features (n, d_j) and (M, d_j): [-2 x_i, |x_i|^2, 1]'[z_m, 1, |z_m|^2]."""
    rows, columns = np.square(x).sum(axis=1), np.square(z).sum(axis=1)
    return np.column_stack([-2 * x, rows, np.ones(len(x))]) @ np.column_stack([z, np.ones(len(z)), columns]).T
