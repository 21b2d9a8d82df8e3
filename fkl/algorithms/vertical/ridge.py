"""Least squares and squared hinge from sums over blocks of samples; RFF ridge, whose angles are sums over parties.

`squared_hinge` uses Newton's method: Chapelle, "Training a support vector machine in the primal" (2007). The features
of `FeatureRidge` are Rahimi and Recht's, "Random features for large-scale kernel machines" (2007); FDSKL draws such
features in every iteration. The parties' shares of all angles are sent once, along a ring as in PP-SVMV (Yu et al.
2006). Then one party solves one ridge regression.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve
from scipy.linalg.blas import dsyr, dsyrk

from fkl.algorithms.vertical.parties import Actor, LearningWithKeys, Letter, PartyData, PartyRows, Wire
from fkl.algorithms.vertical.sums import Words, round_the_ring
from fkl.basics.arrays import Array
from fkl.basics.errors import FklError
from fkl.basics.keys import key
from fkl.basics.memory import require_memory
from fkl.kernels import FeatureBank
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.client_tiles import row_blocks
from fkl.kernels.functions import OnFeatures

BLOCK = 1024
"""Number of samples that are processed at a time."""


class NormalEquations:
    """Sums that determine the minimum of (1/N) sum_i (theta'phi_i + bias - y_i)^2 + lam |theta|^2.

    Parameters
    ----------
    size : int
        Number P of features.
    """

    def __init__(self, size: int) -> None:
        self.samples = 0
        self.products, self.features = np.zeros((size, size), order="F"), np.zeros(size)  # only the lower triangle
        self.target, self.both = 0.0, np.zeros(size)

    def add(self, phi: Array, y: Array, times: int = 1) -> None:
        """Add some samples, phi (n, P) and y (n,); times=-1 removes them again."""
        self.samples += times * len(y)
        self.products = dsyrk(times, phi.T, beta=1, c=self.products, lower=True, overwrite_c=True)
        self.features += times * phi.sum(axis=0)
        self.target += times * float(y.sum())
        self.both += times * (y @ phi)

    def solve(self, lam: float) -> tuple[Array, float]:
        """Theta (P,) and bias, which is not regularised; overwrites the sums.

        Raises
        ------
        fkl.basics.errors.FklError
            If the equations have no unique solution in double precision, as with lam=0 and more features than samples.
        """
        # Centre: the bias takes the means, so it is not regularised
        mean, mean_y = self.features / self.samples, self.target / self.samples
        covariance = dsyr(-self.samples, mean, a=self.products, lower=True, overwrite_a=True)
        covariance.flat[:: len(covariance) + 1] += self.samples * lam
        right = self.both - self.samples * mean_y * mean
        theta = _solve_cholesky(covariance, right, lam)
        return theta, mean_y - float(mean @ theta)


def fit_ridge(phi: Array, y: Array, lam: float) -> tuple[Array, float]:
    """Theta (P,) and bias that minimise (1/N) sum_i (theta'phi_i + bias - y_i)^2 + lam |theta|^2.

    Parameters
    ----------
    phi : (N, P)
    y : (N,)
    lam : float
    """
    equations = NormalEquations(phi.shape[1])
    equations.add(phi, y)
    return equations.solve(lam)


def kernel_ridge(kernel: Array, y: Array, lam: float) -> tuple[Array, float]:
    """Weights a (N,) and bias: minimise |K a + bias - y|^2 / N + lam a'K a, by (K + N lam I) a = y - bias, 1'a = 0.

    Parameters
    ----------
    kernel : (N, N)
        K; overwritten.
    y : (N,)
    lam : float

    Raises
    ------
    fkl.basics.errors.FklError
        If the equations have no unique solution in double precision.
    """
    # (K + N lam I) with the targets and with ones as right sides
    kernel.flat[:: len(y) + 1] += len(y) * lam
    right = np.stack([y, np.ones(len(y))], axis=1)
    of_y, of_ones = _solve_cholesky(kernel.T, right, lam).T  # K' = K, in the order that LAPACK can overwrite
    # The bias is chosen so the weights sum to 0
    bias = float(of_y.sum() / of_ones.sum())
    return of_y - bias * of_ones, bias


def _solve_cholesky(matrix: Array, right: Array, lam: float) -> Array:
    """Solution by Cholesky's method, from the lower triangle, which is overwritten."""
    try:
        return solve(matrix, right, assume_a="pos", lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise FklError(f"lam={lam:g}: the equations of ridge regression are singular; raise algo.lam") from None


MOST_STEPS = 50
"""Maximum number of Newton steps; about ten are usual."""
SHORTEST = 2.0**-20
"""If a step must be shorter than this to decrease the objective, only rounding is left."""
PARTS = 4
"""The first fit uses one of this many parts of the samples."""


def squared_hinge(phi: Array, y: Array, lam: float) -> tuple[Array, float]:
    """Theta (P,) and bias: minimise (1/N) sum_i max(0, 1 - y_i f_i)^2 + lam |theta|^2, f_i = theta'phi_i + bias.

    As y_i is -1 or 1, the loss of samples with y_i f_i < 1 is (f_i - y_i)^2: a full step is ridge regression on them
    (Chapelle, eq. (8)). If the step does not change which samples these are, it has reached the minimum.

    Parameters
    ----------
    phi : (N, P)
    y : (N,)
    lam : float

    Raises
    ------
    fkl.basics.errors.FklError
        If Newton's method does not end.
    """
    # Chapelle, Algorithm 1: fit a part first; then few of the other samples have y f < 1.
    equations, bias = _Equations(phi, y, lam), 0.0
    theta: Array = np.zeros(phi.shape[1])
    for samples in (len(y) // PARTS, len(y)):
        if len(np.unique(y[:samples])) > 1:  # with one class the bias alone makes the loss zero
            theta, bias = _newton_steps(equations, phi[:samples], y[:samples], lam, (theta, bias))
    return theta, bias


def _newton_steps(
    equations: "_Equations", phi: Array, y: Array, lam: float, start: tuple[Array, float]
) -> tuple[Array, float]:
    """Minimise over these samples, which are the first ones in the equations."""
    # Newton's method: a least squares problem over the samples with y f < 1
    theta, bias = start
    f = phi @ theta + bias
    value = _objective_value(f, y, theta, lam)
    for _ in range(MOST_STEPS):
        inside = y * f < 1
        target, target_bias = equations.solve(inside)
        target_f = phi @ target + target_bias
        # These samples stay the same, so the step leads to the minimum
        if np.array_equal(y * target_f < 1, inside):
            return target, target_bias
        # Otherwise halve the step until the objective falls
        length = 1.0
        while True:
            step = length * (target - theta), length * (target_bias - bias), length * (target_f - f)
            shorter_value = _objective_value(f + step[2], y, theta + step[0], lam)
            if shorter_value < value:
                break
            length /= 2
            if length < SHORTEST:
                return theta, bias
        theta, bias, f, value = theta + step[0], bias + step[1], f + step[2], shorter_value
    raise FklError(f"lam={lam:g}: Newton's method did not end in {MOST_STEPS} steps; raise algo.lam")


class _Equations:
    """Ridge regressions on changing sets of samples; sums are reused, because most samples are in the next set too."""

    def __init__(self, phi: Array, y: Array, lam: float) -> None:
        self._phi, self._y, self._lam = phi, y, lam
        self._among, self._sums = np.zeros(len(y), np.bool_), NormalEquations(phi.shape[1])

    def solve(self, inside: NDArray[np.bool_]) -> tuple[Array, float]:
        """Theta (P,) and bias for the summed loss of the samples in the mask (N,), with lam N."""
        # Sums for another set of samples: add or remove rows, unless starting anew is less work
        among = np.zeros(len(self._y), np.bool_)
        among[: len(inside)] = inside
        if np.count_nonzero(among != self._among) > np.count_nonzero(among):
            self._among, self._sums = np.zeros(len(self._y), np.bool_), NormalEquations(self._phi.shape[1])
        for changed, times in ((among & ~self._among, 1), (self._among & ~among, -1)):
            rows = np.flatnonzero(changed)
            # Blocks of rows, since a copy of all of them may not fit in memory
            for some in row_blocks(len(rows), 1, BLOCK):
                self._sums.add(self._phi[rows[some]], self._y[rows[some]], times)
        self._among = among
        return deepcopy(self._sums).solve(self._lam * len(inside) / max(1, self._sums.samples))


def _objective_value(f: Array, y: Array, theta: Array, lam: float) -> float:
    return float(np.mean(np.square(np.maximum(0, 1 - y * f))) + lam * (theta @ theta))


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
    """Masked partial sums of all samples' angles, in multiples of 2^-32 turns."""


@dataclass(frozen=True)
class RidgeOnFeatures:
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
        """Values f of samples (n, d), shape (n,): estimates, or above 0 for class 1."""
        values = [
            _cosines_of_angles(x[rows] @ self.w) @ self.theta + self.bias for rows in row_blocks(len(x), 1, BLOCK)
        ]
        return np.concatenate(values) if values else np.zeros(0)

    @property
    def function(self) -> OnFeatures:
        """The model as arrays of a stored model, which has the sines first."""
        D = self.w.shape[1]
        bank = FeatureBank(self.w[None, None], np.ones(1), np.zeros((1, 1, 0)))
        theta = np.concatenate([self.theta[D:], self.theta[:D]])[None, None]
        return replace(OnFeatures.from_bank(bank, 0, theta, np.ones((1, 1))), bias=np.array(self.bias))


@dataclass(frozen=True)
class FeatureRidge(LearningWithKeys):
    """Minimise (1/N) sum_i (f(x_i) - y_i)^2 + lam |theta|^2 over f = theta'[cos(w'x), sin(w'x)] / sqrt(D) + bias.

    Each party computes its share of an angle w'x, w ~ N(0, 2 gamma I), with secret directions that it draws itself.
    Shares are whole multiples of 2^-32 turns. They are added modulo one turn along a ring, once for all samples and D
    angles, so the active party's uniform mask hides them perfectly from all others. The active party sees the sums. The
    others' directions are Gaussian and unknown to it, so the sums depend on their features only through the inner
    products of samples, which PP-SVMV gives it directly.
    """

    label: ClassVar[str] = "RFF ridge"

    angles: int = key(500, "Number D of angles; each gives two features.", min=1, max=1_000_000)
    gamma: float = key(1.0, "The approximated kernel is exp(-gamma |x - z|^2).", above=0)
    lam: float = key(1e-6, "Regularisation; the bias is not regularised.", above=0)

    def begin(self, held: PartyRows, rng: np.random.Generator) -> Any:
        """Refuse sizes that do not fit in memory."""
        samples, d = held.x.shape
        for needed, what in (
            (3 * 8 * (2 * self.angles) ** 2, f"equations of {2 * self.angles} features"),
            (2 * 8 * d * self.angles, f"{self.angles} directions in {d} features"),
            (2 * 4 * samples * self.angles, f"{self.angles} angles of {samples} samples"),
        ):
            require_memory(needed, what, "algo.angles")
        return super().begin(held, rng)

    def generators(self, rng: np.random.Generator, parties: int, root: int) -> list[np.random.Generator | None]:
        """One generator per party, for its directions; that of the first active party also draws the mask."""
        return list(rng.spawn(parties))

    def play(self, own: PartyData, memory: None, wire: Wire) -> Actor:
        """One party's part in the ring, and its directions; the first active party solves."""
        assert own.rng is not None
        x, samples = np.ascontiguousarray(own.x, np.float64), len(own.x)
        w = np.sqrt(2 * self.gamma) * own.rng.standard_normal((x.shape[1], self.angles))
        shares = ((rows, _turns_of_angles(x[rows] @ w)) for rows in row_blocks(samples, 1, BLOCK))
        summed = yield from round_the_ring(own, wire, Angles, (samples, self.angles), shares)
        return w, None if summed is None else self._solve_from_turns(summed, own.labels)

    def assembled(self, parts: list[tuple[Array, tuple[Array, float]]], held: PartyRows) -> RidgeOnFeatures:
        """The model from all parties' directions and the first active party's solution."""
        w = np.empty((held.x.shape[1], self.angles))
        for features, (own, _) in zip(held.groups, parts, strict=True):
            w[features] = own
        return RidgeOnFeatures(w, *parts[held.active[0]][1])

    def _solve_from_turns(self, turns: Words, y: Array) -> tuple[Array, float]:
        """Theta and bias, from the sums of angles (N, D)."""
        equations = NormalEquations(2 * self.angles)
        for rows in row_blocks(len(y), 1, BLOCK):
            equations.add(_cosines_of_angles(turns[rows].astype(np.float64) * (TURN * 2.0**-32)), y[rows])
        return equations.solve(self.lam)


@njit_cached(nogil=True)
def _turns_of_angles(angle: Array) -> NDArray[np.uint32]:
    """Angles (n, D) as multiples of 2^-32 turns, modulo one turn."""
    coded = np.empty(angle.shape, np.uint32)
    for i in range(len(angle)):
        for k in range(angle.shape[1]):
            turns = angle[i, k] / TURN
            coded[i, k] = np.uint32(np.int64(np.rint((turns - np.floor(turns)) * 2.0**32)))  # a full turn becomes 0
    return coded


@njit_cached(nogil=True, fastmath={"contract", "nsz"})
def _cosines_of_angles(angle: Array) -> Array:
    """Features (n, 2 D) of angles (n, D), in double precision, computed as in Cephes' sin.c and cos.c.

    numpy computes one value at a time and takes several times as long.
    """
    samples, D = angle.shape
    features, scale = np.empty((samples, 2 * D)), 1 / np.sqrt(D)
    for i in range(samples):
        for k in range(D):
            x = angle[i, k]
            # Reduce the angle to [-pi/4, pi/4], with pi / 2 in three parts
            quadrant = np.rint(x * (2 / np.pi))
            r = ((x - quadrant * PIO2[0]) - quadrant * PIO2[1]) - quadrant * PIO2[2]
            z = r * r
            # Polynomials for sine and cosine, then the signs of the quadrant
            s, c = SINE[0], COSINE[0]
            for power in range(1, 6):
                s, c = s * z + SINE[power], c * z + COSINE[power]
            s, c = r + r * z * s, 1 - 0.5 * z + z * z * c
            quadrant -= 4 * np.floor(quadrant / 4)  # 0, 1, 2 or 3
            odd = (quadrant == 1) | (quadrant == 3)
            features[i, D + k] = (c if odd else s) * (-scale if quadrant >= 2 else scale)
            features[i, k] = (s if odd else c) * (-scale if (quadrant == 1) | (quadrant == 2) else scale)
    return features
