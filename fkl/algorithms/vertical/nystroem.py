"""Vertical Nystroem: a kernel classifier in the span of some of the samples, the landmarks.

The approximation is that of Williams and Seeger, "Using the Nystroem method to speed up kernel machines" (2000); the
sums go round the ring of PP-SVMV (Yu et al. 2006), N M numbers instead of N (N + 1) / 2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from fkl.algorithms.vertical.libsvm_svc import Machine, require_two_classes
from fkl.algorithms.vertical.messages import Array, Count, Integers, Letter
from fkl.algorithms.vertical.parties import Actor, Held, Learning, Own, Wire
from fkl.algorithms.vertical.ridge import kernel_ridge, ridge
from fkl.algorithms.vertical.ring import LARGEST, book_ring, from_fixed_point, masked_sum, ring_order, to_fixed_point
from fkl.algorithms.vertical.squared_hinge import squared_hinge
from fkl.algorithms.vertical.sums import round_the_ring, values_of_letter
from fkl.basics.errors import FklError, require
from fkl.basics.memory import require_memory
from fkl.kernels.client_tiles import row_blocks

LOSSES = {"square": ridge, "squared_hinge": squared_hinge}
BLOCK = 1 << 19
"""Distances that are computed at a time."""
JITTER = 1e-9
"""Added to the landmarks' own kernel values, K(z, z) = 1, because landmarks may be equal."""


class Landmarks(Letter, kind="landmarks", dtype="i8"):
    """Numbers of the samples that are landmarks."""


class Distances(Letter, kind="distances", dtype="u8"):
    """Squared distances of all samples to all landmarks so far, masked."""


@dataclass(frozen=True)
class Nystroem(Learning):
    """Minimise (1/N) sum_i L(f(x_i), y_i) + lam |f|^2 over f = sum_m a_m K(z_m, .) + bias; |f| is the kernel's norm.

    The active party names M of the samples. Squared distances |x_i - z_m|^2 are sums over the parties, so they go round
    a ring once under a uniform mask, and only the active party sees the sums. As in PP-SVMV they reveal inner products
    of samples, here of N M pairs, and therefore the others' features up to a rotation.

    Parameters
    ----------
    landmarks : int
        M; all samples if there are at most M, which is exact kernel ridge regression.
    loss : {"square", "squared_hinge"}
        L = (f - y)^2, kernel ridge regression, or max(0, 1 - y f)^2, a support vector machine.
    gamma : float
        K(x, z) = exp(-gamma |x - z|^2).
    lam : float
        Regularisation; the bias is not regularised.
    """

    label: ClassVar[str] = "Nystroem"

    landmarks: int = 1000
    loss: str = "square"
    gamma: float = 1.0
    lam: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.landmarks <= 10**6, "landmarks", self.landmarks, "an integer from 1 to 1000000")
        require(self.loss in LOSSES, "loss", self.loss, " or ".join(LOSSES))
        for key in ("gamma", "lam"):
            require(0 < getattr(self, key) < np.inf, key, getattr(self, key), "a number > 0")

    def begin(self, held: Held, rng: np.random.Generator) -> np.random.Generator:
        """Keep the active party's generator for landmarks and masks.

        Raises
        ------
        fkl.basics.errors.FklError
            If the equations do not fit into memory.
        """
        size = min(self.landmarks, len(held.x))
        require_memory(8 * size * (3 * size + len(held.x)), f"equations of {size} landmarks", "algo.landmarks")
        return rng

    def advance(self, held: Held, learned: np.random.Generator, count: Count) -> tuple[np.random.Generator, Machine]:
        """Name the landmarks, sum the distances, solve; the first active party does so.

        With L L' = K(z, z) the features phi(x) = L^-1 K(z, x) make |f| = |theta| of f = theta'phi, and a = L^-T theta.
        If all samples are landmarks, the square loss needs no features: it is kernel ridge regression.

        Raises
        ------
        fkl.basics.errors.FklError
            If the labels are not two classes, or distances are too large to be coded.
        """
        x, y, ring = held.x, held.y, ring_order(held.groups, held.active[0])
        require_two_classes(y)
        if 4 * np.square(x).sum(axis=1).max() >= LARGEST:
            raise FklError(f"squared distances are coded below {LARGEST:g} only: normalise the features")
        size = min(self.landmarks, len(x))
        chosen = np.sort(learned.choice(len(x), size, replace=False))
        for party in ring[1:]:
            Landmarks.book(count, ring[0], party, size)
        book_ring(count, Distances, ring, len(x) * size)
        parts = [np.ascontiguousarray(x[:, held.groups[party]], np.float64) for party in ring]

        def distances(rows: slice) -> Array:
            return from_fixed_point(
                masked_sum((to_fixed_point(_squared_distances(part[rows], part[chosen])) for part in parts), learned)
            )

        weight, bias = self._solve_from_distances(distances, chosen, y)
        return learned, Machine(x[chosen], weight, bias, self.gamma)

    def party(self, own: Own, wire: Wire) -> Actor:
        """One party's part of the ring; the first active one names the landmarks, and solves."""
        ring, x = ring_order(own.groups, own.root), np.ascontiguousarray(own.x, np.float64)
        if own.number != own.root:
            chosen = values_of_letter((yield own.root), Landmarks)
        else:
            assert own.rng is not None
            chosen = np.sort(own.rng.choice(len(x), min(self.landmarks, len(x)), replace=False))
            for party in ring[1:]:
                wire.send(party, Landmarks(chosen))
        words = yield from round_the_ring(ring, own, wire, Distances, to_fixed_point(_squared_distances(x, x[chosen])))
        if words is None:
            return None
        squares = from_fixed_point(words)
        return chosen, *self._solve_from_distances(squares.__getitem__, chosen, own.labels)

    def assembled(self, parts: list[tuple[Integers, Array, float]], held: Held) -> Machine:
        """The first active party's solution on the landmarks; each party has its own features of these."""
        chosen, weight, bias = parts[held.active[0]]
        return Machine(held.x[chosen], weight, bias, self.gamma)

    def _solve_from_distances(
        self, distances: Callable[[slice], Array], chosen: Integers, y: Array
    ) -> tuple[Array, float]:
        """Weights of the landmarks and bias, from squared distances (rows, M) of some rows at a time."""
        kernel = np.empty((len(y), len(chosen)))
        for rows in row_blocks(len(y), len(chosen), BLOCK):
            squares = distances(rows)
            squares *= -self.gamma
            kernel[rows] = np.exp(squares, out=squares)
        if self.loss == "square" and len(chosen) == len(y):
            return kernel_ridge(kernel, y, self.lam)
        among = kernel[chosen]
        among.flat[:: len(chosen) + 1] += JITTER
        root = cholesky(among, lower=True, overwrite_a=True, check_finite=False)
        phi = solve_triangular(root, kernel.T, lower=True, overwrite_b=True, check_finite=False).T
        theta, bias = LOSSES[self.loss](phi, y, self.lam)
        return solve_triangular(root, theta, lower=True, trans="T", check_finite=False), bias


def _squared_distances(x: Array, z: Array) -> Array:
    """|x_i - z_m|^2 of one party's own features (n, d_j) and (M, d_j): [-2 x_i, |x_i|^2, 1]'[z_m, 1, |z_m|^2]."""
    rows, columns = np.square(x).sum(axis=1), np.square(z).sum(axis=1)
    return np.column_stack([-2 * x, rows, np.ones(len(x))]) @ np.column_stack([z, np.ones(len(z)), columns]).T
