"""Vertical random-feature ridge: the parties' shares of all angles travel once, then one party solves one ridge.

The features are Rahimi and Recht's, "Random features for large-scale kernel machines" (2007), which FDSKL draws in
every iteration; a ring as in PP-SVMV (Yu et al. 2006) sums the shares.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.libsvm_svc import require_two_classes
from fkl.algorithms.vertical.messages import Array, Count, Integers, Letter
from fkl.algorithms.vertical.parties import Actor, Held, Learning, Own, Wire
from fkl.algorithms.vertical.ridge import BLOCK, NormalEquations
from fkl.algorithms.vertical.ring import Words, book_ring, masked_sum, ring_order
from fkl.algorithms.vertical.sums import round_the_ring
from fkl.basics.errors import require
from fkl.basics.memory import require_memory
from fkl.kernels import FeatureBank
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.functions import OnFeatures

TURN = 2 * np.pi
PIO2 = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""pi/2 as a sum; the first two parts are short enough for exact multiples (Cody and Waite 1980)."""
SINE = (
    1.58962301576546568060e-10,
    -2.50507477628578072866e-8,
    2.75573136213857245213e-6,
    -1.98412698295895385996e-4,
    8.33333333332211858878e-3,
    -1.66666666666666307295e-1,
)
COSINE = (
    -1.13585365213876817300e-11,
    2.08757008419747316778e-9,
    -2.75573141792967388112e-7,
    2.48015872888517045348e-5,
    -1.38888888888730564116e-3,
    4.16666666666665929218e-2,
)
"""Minimax polynomials on [-pi/4, pi/4], from Cephes."""


class Angles(Letter, kind="angles", dtype="u4"):
    """Sums of shares of all samples' angles so far, masked: multiples of 2^-32 turns."""


@dataclass(frozen=True)
class Features:
    """f(x) = theta'[cos(x w), sin(x w)] + bias.

    Parameters
    ----------
    w : (d, D)
        Directions; each party draws and holds the rows of its own features.
    theta : (2 D,)
    bias : float
    """

    w: Array
    theta: Array
    bias: float

    def decision(self, x: Array) -> Array:
        """Values f of samples (n, d), shape (n,); a sample is of class 1 where it is above 0."""
        values = [
            _cosines_of_angles(x[rows] @ self.w) @ self.theta + self.bias for rows in row_blocks(len(x), 1, BLOCK)
        ]
        return np.concatenate(values) if values else np.zeros(0)

    @property
    def function(self) -> OnFeatures:
        """As arrays of a stored model, whose pairs have the sines first."""
        D = self.w.shape[1]
        bank = FeatureBank(self.w[None, None], np.ones(1), np.zeros((1, 1, 0)))
        theta = np.concatenate([self.theta[D:], self.theta[:D]])[None, None]
        return replace(OnFeatures.from_bank(bank, 0, theta, np.ones((1, 1))), bias=np.array(self.bias))


@dataclass(frozen=True)
class FeatureRidge(Learning):
    """Minimise (1/N) sum_i (f(x_i) - y_i)^2 + lam |theta|^2 over f = theta'[cos(w'x), sin(w'x)] / sqrt(D) + bias.

    Each party knows its own share of an angle w'x, w ~ N(0, 2 gamma I), with secret directions that it draws itself.
    Shares are whole multiples of 2^-32 turns. They are added modulo one turn round a ring, once for all samples and D
    angles, so the active party's uniform mask hides them perfectly from all others. The active party sees the sums. The
    others' directions are Gaussian and unknown to it, so the sums depend on their features only through the inner
    products of samples, which PP-SVMV gives it directly.

    Parameters
    ----------
    angles : int
        D; there are 2 D features.
    gamma : float
        The approximated kernel is exp(-gamma |x - z|^2).
    lam : float
        Regularisation; the bias is not regularised.
    """

    label: ClassVar[str] = "RFF ridge"

    angles: int = 500
    gamma: float = 1.0
    lam: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.angles <= 10**6, "angles", self.angles, "an integer from 1 to 1000000")
        for key in ("gamma", "lam"):
            require(0 < getattr(self, key) < np.inf, key, getattr(self, key), "a number > 0")

    def begin(self, held: Held, rng: np.random.Generator) -> np.random.Generator:
        """Keep the generator from which the parties' generators are spawned.

        Raises
        ------
        fkl.basics.errors.FklError
            If the equations do not fit in memory.
        """
        require_memory(3 * 8 * (2 * self.angles) ** 2, f"equations of {2 * self.angles} features", "algo.angles")
        return rng

    def advance(self, held: Held, learned: np.random.Generator, count: Count) -> tuple[np.random.Generator, Features]:
        """Sum the angles, solve; the first active party does so."""
        x, y, ring = held.x, held.y, ring_order(held.groups, held.active[0])
        require_two_classes(y)
        own = learned.spawn(len(held.groups))
        what = f"{self.angles} directions in {x.shape[1]} features"
        require_memory(2 * 8 * x.shape[1] * self.angles, what, "algo.angles")
        w = np.empty((x.shape[1], self.angles))
        for rng, features in zip(own, held.groups, strict=True):
            w[features] = self._directions(rng, features)
        parts = [(np.ascontiguousarray(x[:, held.groups[j]], np.float64), w[held.groups[j]]) for j in ring]
        book_ring(count, Angles, ring, len(x) * self.angles)

        def turns(rows: slice) -> Words:
            return masked_sum((_turns_of_angles(part[rows] @ directions) for part, directions in parts), own[ring[0]])

        theta, bias = self._solve_from_turns(turns, y)
        return learned, Features(w, theta, bias)

    def generators(self, rng: np.random.Generator, parties: int, root: int) -> list[np.random.Generator | None]:
        """One generator per party for directions; the first active party's also draws the mask."""
        return list(rng.spawn(parties))

    def party(self, own: Own, wire: Wire) -> Actor:
        """One party's part of the ring, and its directions; the first active one solves."""
        assert own.rng is not None
        w, x = self._directions(own.rng, own.features), np.ascontiguousarray(own.x, np.float64)
        words = yield from round_the_ring(ring_order(own.groups, own.root), own, wire, Angles, _turns_of_angles(x @ w))
        return w, None if words is None else self._solve_from_turns(words.__getitem__, own.labels)

    def assembled(self, parts: list[tuple[Array, tuple[Array, float]]], held: Held) -> Features:
        """All parties' directions, and the first active party's solution."""
        w = np.empty((held.x.shape[1], self.angles))
        for features, (own, _) in zip(held.groups, parts, strict=True):
            w[features] = own
        return Features(w, *parts[held.active[0]][1])

    def _directions(self, rng: np.random.Generator, features: Integers) -> Array:
        """Directions of a party's own features, (d_j, D)."""
        return np.sqrt(2 * self.gamma) * rng.standard_normal((len(features), self.angles))

    def _solve_from_turns(self, turns: Callable[[slice], Words], y: Array) -> tuple[Array, float]:
        """Theta and bias, from the sums of angles of some rows at a time."""
        equations = NormalEquations(2 * self.angles)
        for rows in row_blocks(len(y), 1, BLOCK):
            equations.add(_cosines_of_angles(turns(rows).astype(np.float64) * (TURN * 2.0**-32)), y[rows])
        return equations.solve(self.lam)


@njit_cached(nogil=True)
def _turns_of_angles(angle: Array) -> NDArray[np.uint32]:
    """Angles (n, D) as multiples of 2^-32 turns, modulo one turn."""
    words = np.empty(angle.shape, np.uint32)
    for i in range(len(angle)):
        for k in range(angle.shape[1]):
            turns = angle[i, k] / TURN
            words[i, k] = np.uint32(np.int64(np.rint((turns - np.floor(turns)) * 2.0**32)))  # one turn is none
    return words


@njit_cached(nogil=True, fastmath={"contract", "nsz"})
def _cosines_of_angles(angle: Array) -> Array:
    """Features (n, 2 D) of angles (n, D), in double precision, as Cephes' sin.c and cos.c.

    numpy computes one value after another and takes several times as long.
    """
    samples, D = angle.shape
    features, scale = np.empty((samples, 2 * D)), 1 / np.sqrt(D)
    for i in range(samples):
        for k in range(D):
            x = angle[i, k]
            quadrant = np.rint(x * (2 / np.pi))
            r = ((x - quadrant * PIO2[0]) - quadrant * PIO2[1]) - quadrant * PIO2[2]
            z = r * r
            s, c = SINE[0], COSINE[0]
            for power in range(1, 6):
                s, c = s * z + SINE[power], c * z + COSINE[power]
            s, c = r + r * z * s, 1 - 0.5 * z + z * z * c
            quadrant -= 4 * np.floor(quadrant / 4)  # 0, 1, 2 or 3
            odd = (quadrant == 1) | (quadrant == 3)
            features[i, D + k] = (c if odd else s) * (-scale if quadrant >= 2 else scale)
            features[i, k] = (s if odd else c) * (-scale if (quadrant == 1) | (quadrant == 2) else scale)
    return features
