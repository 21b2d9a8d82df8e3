"""A solver of Peifer and Ribeiro's problem (PC): integrals as sums, an active set, and an interior-point method.

Peifer and Ribeiro, Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces.

For example, 400 samples with two features, 900 centres and 2 widths: centres are a grid of 30 x 30, so there are M =
2 x 30 x 30 = 1,800 nodes. A Gaussian kernel is a product over the axes, so `ProblemSamples` stores 2 x 400 x 30 values
for each axis, 48,000 in total, and not all 400 x 1,800 = 720,000. The parts in order: `Quadrature` has the nodes,
`ProblemSamples` the kernel between samples and nodes, `without_gamma` solves (PC) at gamma = 0, and
`solve_sparse_problem` starts from there and solves it at any gamma, by `_follow_central_path`.

**Integrals** over kernel centres S and widths W are finite sums (`Quadrature`). The paper writes ds dw, but states no
quadrature rule, S or W. Here the measure on S x W is NORMALIZED to a total of 1. With a literal ds dw, one kernel with
|alpha| > sqrt(2 gamma) would outweigh every label.

**At gamma = 0**, an active-set method ends at the exact optimum (`without_gamma`). The dual function (5) is then
quadratic in mu = lambda / N,

    g(mu) = (1 - eps) sum mu_n - mu' Q mu / 2,   Q_nm = integral y_n y_m k(x_n, s; w) k(x_m, s; w) ds dw,   mu >= 0,

with the Q of eq. (22), and few mu are above 0 at the optimum. As in Lawson and Hanson (1974) for least squares, samples
enter one at a time, those with the most violated constraint first. Samples whose mu falls to 0 leave.

**At other gamma**, an interior-point method ends at a given duality gap (`solve_sparse_problem`). (PC) has no duality
gap (their Theorem 1), so its value is that of its bidual, which is the same problem with the largest convex function
below alpha^2 / 2 + gamma 1(alpha != 0) in the integral,

    B(alpha) = sqrt(2 gamma) |alpha| where |alpha| <= sqrt(2 gamma),  alpha^2 / 2 + gamma elsewhere.

This is a convex programme in finitely many numbers. The dual g is not smooth where |alpha_bar| of (9) crosses sqrt(2
gamma), so a variable s with s >= 0 and s >= alpha_bar^2 / 2 - gamma replaces its integrand. These constraints and
lambda >= 0 have logarithmic barriers, and Newton's method follows the minimisers as the barriers' weight t goes to 0.
Every step gives a function that is feasible after scaling, and with it the gap.

B is between alpha^2 / 2 and alpha^2 / 2 + gamma, so the cost of the optimum at gamma = 0 differs by at most gamma. If
the dual is large compared with gamma, this optimum is the solution; otherwise the path starts there. Samples with
lambda = 0 have no effect (their Proposition 2). The method therefore uses only samples whose constraints are nearly
active, and adds samples with violated constraints until there are none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.client_tiles import row_blocks

PREDICTED_AT_A_TIME = 1 << 22
"""Number of kernel values in memory at a time when a function is evaluated."""
GRID_DIMENSIONS = 3
"""Largest number of features with a grid of centres; with more features, centres are drawn."""


class Kernel(NamedTuple):
    """The kernel between samples and nodes, k(x_n, s_gh; w) = first[w, n, g] rest[w, n, h].

    Attributes
    ----------
    first : (W, n, G)
    rest : (W, n, H)
    """

    first: Array
    rest: Array


@dataclass(frozen=True)
class Quadrature:
    """Nodes (s, w) and their weights: the integral of h is approximately sum_m weights_m h(nodes_m, widths_m).

    Every centre has every width, and consists of a point of `first` and a point of `rest`. A Gaussian kernel is then a
    product of a factor for each point, so sums over a grid of centres are products of small matrices.

    Parameters
    ----------
    first : (G, d1)
        The leading coordinates of the centres; d1 = 0 and G = 1 if centres are not a grid.
    rest : (H, d - d1)
        The other coordinates of the centres.
    width : (W,)
        Widths w, ascending.
    shape : tuple of int
        (W, points along axis 1, ..., points along axis d) of a grid; empty if centres are not a grid.
    """

    first: Array
    rest: Array
    width: Array
    shape: tuple[int, ...] = ()

    @classmethod
    def over_box(
        cls, box: Array, centres: int, widths: Sequence[float], rng: np.random.Generator | None = None
    ) -> "Quadrature":
        """A quadrature over a box of centres and a list of widths.

        In up to three dimensions, the box is divided into equal cells, the same number along each axis, and centres are
        their midpoints. In more dimensions, a grid would be far too coarse, so centres are drawn uniformly (Monte
        Carlo).

        Parameters
        ----------
        box : (2, d)
            Lower and upper corner, as from `smallest_box`.
        centres : int
            Number of centres per width; on a grid, it becomes the nearest d-th power.
        widths : sequence of float
            Widths, which all have the same weight.
        rng : Generator, optional
            Generator for drawn centres; needed above three dimensions.
        """
        # Check the arguments: centres, widths, and a box with a volume
        low, high = np.asarray(box, np.float64)
        width = np.unique(np.asarray(widths, np.float64))
        require(centres >= 1, "centres", centres, "an integer >= 1")
        usable = len(width) == len(widths) > 0 and bool(((width > 0) & np.isfinite(width)).all())
        require(usable, "widths", widths, "different finite numbers > 0, at least one")
        require(
            bool((low < high).all()),
            "box",
            box,
            "a lower corner, and an upper corner that is above it in every feature",
        )
        d = len(low)
        # Many features: a grid would have side^d points, so draw the centres
        if d > GRID_DIMENSIONS:
            if rng is None:
                raise ValueError(f"centres in {d} dimensions are drawn, which needs rng")
            return cls(np.empty((1, 0)), rng.uniform(low, high, (centres, d)), width)
        # Few features: a grid of midpoints; the first axis is kept apart from the rest, so the kernel is a product
        side = max(round(centres ** (1 / d)), 1)
        middles = low[:, None] + (high - low)[:, None] * (np.arange(side) + 0.5) / side
        rest = np.stack(np.meshgrid(*middles[1:], indexing="ij"), axis=-1).reshape(-1, d - 1) if d > 1 else None
        return cls(middles[0][:, None], np.empty((1, 0)) if rest is None else rest, width, (len(width), *(side,) * d))

    @property
    def block(self) -> tuple[int, int, int]:
        """Shape (W, G, H) of the nodes as an array."""
        return len(self.width), len(self.first), len(self.rest)

    @property
    def size(self) -> int:
        """Number M of nodes."""
        return int(np.prod(self.block))

    @property
    def dimension(self) -> int:
        """Number d of features."""
        return self.first.shape[1] + self.rest.shape[1]

    @cached_property
    def nodes(self) -> Array:
        """Centre of each node, (M, d)."""
        W, G, H = self.block
        first = np.broadcast_to(self.first[None, :, None], (W, G, H, self.first.shape[1]))
        rest = np.broadcast_to(self.rest[None, None], (W, G, H, self.rest.shape[1]))
        return np.concatenate([first, rest], axis=-1).reshape(self.size, self.dimension)

    @cached_property
    def widths(self) -> Array:
        """Width of each node, (M,)."""
        return np.repeat(self.width, self.size // len(self.width))

    @cached_property
    def weights(self) -> Array:
        """Weight of each node, (M,); all are equal and sum to 1."""
        return np.full(self.size, 1 / self.size)

    def kernel_values(self, x: Array) -> Kernel:
        """The kernel between samples (n, d) and nodes."""
        d1 = self.first.shape[1]
        first = self._kernel_factors(self.first, np.ascontiguousarray(x[:, :d1]))
        return Kernel(first, self._kernel_factors(self.rest, np.ascontiguousarray(x[:, d1:])))

    def function(self, coefficients: Array, x: Array) -> Array:
        """Values (n,) at points (n, d) of the sum of the nodes' kernels times coefficients (M,)."""
        # Centres without a coefficient add nothing, so omit their columns
        block = coefficients.reshape(self.block)
        columns = np.flatnonzero(block.any(axis=(0, 1)))
        nodes, block = replace(self, rest=self.rest[columns], shape=()), block[:, :, columns]
        f = np.zeros(len(x))
        for here in row_blocks(len(x) if len(columns) else 0, len(block) * len(columns), PREDICTED_AT_A_TIME):
            # Sum over the second factor by a matrix product, then over the first; n x M kernel values are never stored
            kernel = nodes.kernel_values(np.asarray(x[here], np.float64))
            f[here] = np.einsum("wng,wng->n", kernel.first, kernel.rest @ block.swapaxes(1, 2))
        return f

    def _kernel_factors(self, points: Array, x: Array) -> Array:
        """The kernel's factor in some of the coordinates, at every width, (W, n, points)."""
        out = np.empty((len(self.width), len(x), len(points)))
        for width, of_width in zip(self.width, out, strict=True):
            _write_kernel_factor(points, x, width, of_width)
        return out


def smallest_box(x: Array, margin: float = 0.0) -> Array:
    """The smallest box around samples, with each side moved outwards by a share of its length.

    Parameters
    ----------
    x : (N, d)
    margin : float
        Share of a side's length. A constant feature gets a side of length 1.

    Returns
    -------
    (2, d)
        Lower and upper corner.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    # A constant feature has no length, so its side gets the length 1
    length = high - low
    out = np.where(length > 0, margin * length, 0.5)
    return np.stack([low - out, high + out])


@njit_cached(fastmath={"reassoc", "contract", "nsz"})  # vectorised sums; the order of additions does not matter
def _write_kernel_factor(points: Array, x: Array, width: float, out: Array) -> None:
    """Write exp(-||x_n - s_p||^2 / (2 w^2)) in some of the coordinates, eq. (37), for x (n, d) and points (P, d)."""
    scale = -1 / (2 * width * width)
    for n in range(len(x)):
        for p in range(len(points)):
            squared = 0.0
            # Entry by entry: numba vectorises these loops, and no (n, P, d) array of differences is stored
            for axis in range(points.shape[1]):
                away = x[n, axis] - points[p, axis]
                squared += away * away
            out[n, p] = np.exp(scale * squared)


Numbers = NDArray[np.int64]

SMALLEST = 1e-40
"""Smaller kernel values are set to 0, because their products are denormal numbers, which are slow."""
BREACH = 1 / 8
"""Allowed violation of a constraint, as a share of the tolerance; removing it by scaling costs twice as much."""
COLUMNS = 32
"""Initial number of columns of Q."""
FACTORS = 1 << 25
"""Largest number of values in a problem's kernel factors that are stored; more values are recomputed in parts."""


@dataclass(frozen=True)
class ProblemSamples:
    """Samples of one problem, with products of the kernel between samples and nodes.

    Parameters
    ----------
    quadrature : Quadrature
    x : (n, d)
    y : (n,)
    """

    quadrature: Quadrature
    x: Array
    y: Array

    def rows(self, numbers: Numbers) -> Array:
        """Values y_n k(x_n, s_m; w_m) for some samples, (samples, M)."""
        # The product of the two factors for each node, without denormal numbers
        first, rest = self._kernel_factors(numbers)
        rows: Array = np.einsum("wng,wnh->nwgh", first, rest).reshape(len(numbers), -1)
        rows[rows < SMALLEST] = 0.0
        rows *= self.y[numbers, None]
        return rows

    def gram(self, numbers: Numbers) -> Array:
        """Columns of Q, (n, samples); sums over nodes with equal weights are products of two sums."""
        # A sum over nodes of a product is a product of two sums, one over each factor's points
        first, rest = (factor.swapaxes(1, 2) for factor in self._kernel_factors(numbers))
        columns = np.empty((len(self.y), len(numbers)))
        for here in self._parts_of_samples(len(self.y)):
            # Sums over the points of `first` and of `rest`, multiplied, and summed over widths
            all_first, all_rest = self._kernel_factors(here)
            columns[here] = np.einsum("wnm,wnm->nm", all_first @ first, all_rest @ rest)
        columns *= self.quadrature.weights[0] * self.y[:, None] * self.y[numbers]
        return columns

    def margins_at(self, alpha: Array) -> Array:
        """Margins y_n f(x_n), (n,), at values alpha (M,) of the nodes, eq. (11)."""
        # f(x_n) = sum_m weights_m alpha_m k(x_n, s_m; w_m), again by the two factors
        block = (alpha * self.quadrature.weights).reshape(self.quadrature.block).swapaxes(1, 2)
        f = np.empty(len(self.y))
        for here in self._parts_of_samples(len(self.y)):
            first, rest = self._kernel_factors(here)
            f[here] = np.einsum("wng,wng->n", first, rest @ block)
        return self.y * f

    def alpha(self, mu: Array, gamma: float) -> Array:
        """Values of alpha at the nodes, (W, G, H), for mu = lambda / N, eqs. (8) and (9)."""
        # Samples with mu = 0 add nothing, and few have mu > 0
        kept = np.flatnonzero(mu)
        alpha = np.zeros(self.quadrature.block)
        for here in self._parts_of_samples(len(kept)):
            first, rest = self._kernel_factors(kept[here])
            alpha += (first * (mu * self.y)[kept[here], None]).swapaxes(1, 2) @ rest
        # The threshold of eq. (8): where alpha^2 / 2 <= gamma, alpha is 0
        alpha[alpha * alpha <= 2 * gamma] = 0.0
        return alpha

    def _kernel_factors(self, numbers: Numbers | slice) -> Kernel:
        """The kernel's two factors for some samples."""
        if self._kept is None:
            return self.quadrature.kernel_values(self.x[numbers])
        return Kernel(self._kept.first[:, numbers], self._kept.rest[:, numbers])

    def _parts_of_samples(self, count: int) -> Iterator[slice]:
        """Samples in parts whose kernel factors fit in memory."""
        return row_blocks(count, self._factors_of_sample, FACTORS)

    @cached_property
    def _kept(self) -> Kernel | None:
        """The kernel's two factors for all samples, if they are small enough to be stored."""
        return self.quadrature.kernel_values(self.x) if len(self.y) * self._factors_of_sample <= FACTORS else None

    @property
    def _factors_of_sample(self) -> int:
        W, _, H = self.quadrature.block
        return W * H


class SolverPoint(NamedTuple):
    """The optimum at gamma = 0, or the last point if rounding stops progress.

    Attributes
    ----------
    mu : (n,)
    margin : (n,)
        Margins y_n f(x_n).
    steps : int
        Number of linear systems solved.
    """

    mu: Array
    margin: Array
    steps: int


def without_gamma(samples: ProblemSamples, level: float, tolerance: float) -> SolverPoint:
    """Solve (PC) at gamma = 0.

    Parameters
    ----------
    samples : Samples
    level : float
        1 - eps.
    tolerance : float
        Tolerance of the duality gap, relative to the cost.
    """
    # Start from f = 0: no sample is inside, and all margins are 0
    n = len(samples.y)
    columns, place = np.empty((COLUMNS, n)), np.full(n, -1)  # transposed, because whole columns are read
    mu, margin, value, steps = np.zeros(n), np.zeros(n), 0.0, 0
    barred = np.zeros(n, np.bool_)
    while True:
        # The sample outside with the smallest margin; end if its constraint is nearly met
        outside = np.where((mu > 0) | barred, np.inf, margin)
        worst = int(outside.argmin())
        if outside[worst] >= level * (1 - BREACH * tolerance):
            break
        if place[worst] < 0:  # columns of Q are computed once, even if samples leave and come back
            place[worst] = place.max() + 1
            if place[worst] == len(columns):
                columns = np.concatenate([columns, np.empty_like(columns)])
            columns[place[worst]] = samples.gram(np.array([worst]))[:, 0]
        # Let it enter, and solve for the samples inside; some of them may leave
        inside = np.append(np.flatnonzero(mu), worst)
        risen, more = _rise_inside(columns[np.ix_(place[inside], inside)].T, mu[inside], level)
        steps += more
        if not level * risen.sum() > value:  # twice g, which increases in each step except for rounding errors or NaN
            barred[worst] = True
            continue
        # New margins need only the columns of samples inside
        value = level * float(risen.sum())
        mu[inside] = risen
        kept = inside[risen > 0]
        margin = columns[place[kept]].T @ mu[kept]
    return SolverPoint(mu, margin, steps)


def _rise_inside(gram: Array, mu: Array, level: float) -> tuple[Array, int]:
    """The optimum for the samples inside, starting from their mu (the last sample is new), and the number of systems.

    Returns zeros if rounding errors prevent an optimum.
    """
    # Solve Q mu = level for the samples that are kept
    mu, kept, steps = mu.copy(), np.arange(len(mu)), 0
    while True:
        steps += 1
        factor, failed = dpotrf(gram[np.ix_(kept, kept)], lower=1, overwrite_a=1)
        if failed:
            return np.zeros_like(mu), steps
        # The unconstrained solution is the optimum if all its mu are positive
        to = dpotrs(factor, np.full(len(kept), level), lower=1)[0]
        falls = to <= 0
        if not falls.any():
            mu[kept] = to
            return mu, steps
        # Stop at the first mu that falls to 0, and remove its sample
        shares = mu[kept][falls] / (mu[kept][falls] - to[falls])
        first = kept[falls][shares.argmin()]
        mu[kept] += shares.min() * (to - mu[kept])
        mu[first] = 0.0
        kept = kept[mu[kept] > 0]


NEAR = 1.02
"""Samples are used if their margin y f at gamma = 0, in units of 1 - eps, is at most this."""
ACTIVE = tuple(10.0**-power for power in range(9))
"""Shares of the largest lambda, at a slack of 1 - eps, below which a lambda may be set to 0."""

JITTER = 1e-13
FALL = 0.03  # factor of the barriers' weight when a Newton step is short
SHORT = 100.0  # squared Newton decrement
NODE_BARRIER = 0.1  # a node's barrier, in units of lambda_n's times the number of nodes
LEAST_SLACK = 0.1  # least slack of a constraint at the start, in units of 1 - eps
TO_BORDER = 0.99
FLAT = 0.1  # slope at which the line search ends, in units of the first slope
_SUM = {"reassoc", "contract", "nsz"}  # vectorised sums; the order of additions does not matter


class Optimum(NamedTuple):
    """Result of the interior-point method.

    Attributes
    ----------
    mu : (n,)
        lambda / N; 0 if the constraint is not active.
    cost : float
        Cost in the bidual of node values that meet all constraints; infinite if no such values are known.
    steps : int
        Number of linear systems solved, including those at gamma = 0.
    """

    mu: Array
    cost: float
    steps: int


def convex_minorant(alpha: Array, gamma: float) -> Array:
    """The largest convex function below alpha^2 / 2 + gamma 1(alpha != 0)."""
    size, knee = np.abs(alpha), np.sqrt(2 * gamma)
    return np.where(size <= knee, knee * size, size * size / 2 + gamma)


def solve_sparse_problem(samples: ProblemSamples, level: float, gamma: float, tolerance: float, steps: int) -> Optimum:
    """Solve (PC).

    Parameters
    ----------
    samples : Samples
    level : float
        1 - eps.
    gamma : float
    tolerance : float
        Tolerance of the duality gap, relative to the cost.
    steps : int
        Maximum number of Newton steps; with 0, nothing is solved.
    """
    # Without samples there is nothing to fit; without steps no solution is known
    n, weights = len(samples.y), samples.quadrature.weights
    if not n or not steps:
        return Optimum(np.zeros(n), np.inf if n else 0.0, 0)
    # At gamma = 0 few constraints are active; only these and nearly active ones are used from here on
    mu, margin, solves = without_gamma(samples, level, tolerance)
    inside = np.flatnonzero((mu > 0) | (margin <= NEAR * level))
    rows, left = samples.rows(inside), steps
    # Bounds of the optimal cost: `cost` from a feasible function, `value` from the dual function
    cost = _bidual_cost(mu[inside] @ rows, margin.min(), weights, level, gamma)
    value = _dual_value(mu[inside], rows, weights, level, gamma)
    while 0 < value < cost * (1 - tolerance) and left:
        # On the path, the gap is t per sample and about 2 NODE_BARRIER t per node; solve for the initial gap
        t = (cost - value if cost < np.inf else value) / (len(inside) + 2 * NODE_BARRIER * len(weights))
        start = np.maximum(mu[inside], t / np.maximum(margin[inside] - level, LEAST_SLACK * level))
        mu_on_path, alpha, taken = _follow_central_path(rows, start, t, weights, level, gamma, tolerance / 2, left)
        left -= taken
        margin = samples.margins_at(alpha)
        cost = _bidual_cost(alpha, margin.min(), weights, level, gamma)
        # Barriers keep every lambda above 0. A constraint is not active, eq. (13), if lambda is small compared with the
        # slack. Use the largest limit that keeps the dual function within the tolerance
        slack = (margin[inside] - margin[inside].min()) / level
        for share in (*ACTIVE, 0.0):
            mu[inside] = np.where(mu_on_path > share * slack * mu_on_path.max(), mu_on_path, 0.0)
            value = _dual_value(mu[inside], rows, weights, level, gamma)
            if value >= cost * (1 - tolerance):
                break
        # Samples outside whose constraints are violated more than any inside: add them and continue
        broken = np.setdiff1d(np.flatnonzero(margin < margin[inside].min()), inside)
        if not len(broken):
            break
        inside = np.union1d(inside, broken)
        rows = samples.rows(inside)
    return Optimum(mu, cost, solves + steps - left)


def _dual_value(mu: Array, rows: Array, weights: Array, level: float, gamma: float) -> float:
    """Value of the dual function, eq. (5)."""
    return float(level * mu.sum() - weights @ np.maximum((mu @ rows) ** 2 / 2 - gamma, 0.0))


@njit(fastmath=_SUM)  # type: ignore[untyped-decorator]
def _share_let_through(z: float, gamma: float, t: float) -> tuple[float, float]:
    """Factor of z after the smoothed threshold, eq. (8): 0 far below sqrt(2 gamma), 1 far above.

    Also returns 1 minus this factor. The factor is the multiplier of s >= z^2 / 2 - gamma on the central path.
    """
    # Without gamma there is no threshold: the whole z passes
    if gamma == 0:
        return 1.0, 0.0
    # A form without cancellation, also far from the threshold
    below = gamma - z * z / 2
    less = 2 * t / (abs(below) + np.sqrt(below * below + 4 * t * t))
    low, high = less / (1 + less), 1 / (1 + less)
    return (low, high) if below > 0 else (high, low)


@njit_cached(fastmath=_SUM, error_model="numpy")
def _write_smooth_threshold(z: Array, gamma: float, t: float, alpha: Array, slope: Array) -> None:
    """Write the smoothed alpha of eq. (8) and its derivative by z."""
    for m in range(len(z)):
        passed, stopped = _share_let_through(z[m], gamma, t)
        alpha[m] = passed * z[m]
        slope[m] = passed * (1 + z[m] * z[m] / (t / passed + t * passed / (stopped * stopped)))


@njit_cached(fastmath=_SUM, error_model="numpy")
def _slope_of_nodes(z: Array, along: Array, length: float, weights: Array, gamma: float, t: float) -> float:
    """Derivative of the nodes' part of the barrier function at this step length."""
    pull = 0.0
    for m in range(len(z)):
        at = z[m] + length * along[m]
        pull += weights[m] * _share_let_through(at, gamma, t)[0] * at * along[m]
    return pull


def _follow_central_path(
    rows: Array, mu: Array, t: float, weights: Array, level: float, gamma: float, tolerance: float, steps: int
) -> tuple[Array, Array, int]:
    """Follow the central path for the samples of `rows`, starting from mu and the barriers' weight t.

    Returns
    -------
    mu : (n,)
        Solution with all entries above 0.
    alpha : (M,)
        The feasible alpha with the least cost; 0 if none was found.
    steps : int
    """
    # Start: slacks on the path, and no function that is known to be feasible
    slack = t / mu
    best_alpha, cost, best_mu, value = np.zeros(len(weights)), np.inf, mu, -np.inf
    scaled, normal = np.empty_like(rows), np.empty((len(mu), len(mu)))
    alpha, slope = np.empty_like(weights), np.empty_like(weights)
    diagonal = np.diag_indices(len(mu))
    taken = 0
    while taken < steps:
        taken += 1
        # Newton's step: z at the nodes, eq. (9), and the smoothed threshold with its slope
        z = mu @ rows  # eq. (9)
        of_node = NODE_BARRIER * len(weights) * t
        _write_smooth_threshold(z, gamma, of_node, alpha, slope)
        # Normal equations: sum over nodes of weights slope y_n k y_m k, plus the barriers' diagonal
        np.multiply(rows, np.sqrt(weights * slope), out=scaled)
        np.matmul(scaled, scaled.T, out=normal)  # with one matrix, BLAS computes only half of the product
        normal[diagonal] += slack / mu
        normal[diagonal] *= 1 + JITTER
        # Derivative of the barrier function by mu
        gradient = level - rows @ (weights * alpha) + t / mu
        factor, failed = dpotrf(normal, lower=1)
        if failed:
            break
        # The step, and the linearised alpha after it, which is a candidate for a feasible function
        move = dpotrs(factor, gradient, lower=1)[0]
        along = move @ rows
        candidate = alpha + slope * along
        its_cost = _bidual_cost(candidate, (rows @ (weights * candidate)).min(), weights, level, gamma)
        if its_cost < cost:
            best_alpha, cost = candidate, its_cost
        # Keep the best primal and dual values seen so far; end at the wanted gap
        its_value = _dual_value(mu, rows, weights, level, gamma)
        if its_value > value:
            best_mu, value = mu, its_value
        if cost < np.inf and cost * (1 - tolerance) <= value:
            break
        # Move along the step, so all mu and slacks stay above 0; lower the barriers when the step is short
        decrement = gradient @ move / t
        length = _line_search(mu, move, z, along, weights, level, gamma, t, of_node)
        change = (t - slack * mu - slack * move) / mu
        mu = mu + length * move
        slack = slack + min(1.0, TO_BORDER * _steps_to_border(slack, change)) * change
        if decrement < SHORT:
            t *= FALL
    return best_mu, best_alpha, taken


def _bidual_cost(alpha: Array, least: float, weights: Array, level: float, gamma: float) -> float:
    """Cost of alpha in the bidual, scaled so all constraints hold; infinite if that is impossible.

    `least` is the smallest margin y f of all samples.
    """
    return float(weights @ convex_minorant(alpha * max(1.0, level / least), gamma)) if least > 0 else np.inf


def _steps_to_border(values: Array, change: Array) -> float:
    """Step length at which the first of the values becomes 0."""
    falls = change < 0
    return float((-values[falls] / change[falls]).min(initial=np.inf))


def _line_search(
    mu: Array, move: Array, z: Array, along: Array, weights: Array, level: float, gamma: float, t: float, of_node: float
) -> float:
    """A step length, at most 1, at which the concave barrier function is nearly stationary along the step."""
    # The derivative of the barrier function along the step; it falls as the step length grows
    up = level * move.sum()

    def slope(length: float) -> float:
        pull = _slope_of_nodes(z, along, length, weights, gamma, of_node)
        return float(up - pull + t * (move / (mu + length * move)).sum())

    # Bisection between 0 and the border, from the longest step, which is usually right
    first = slope(0.0)
    low, high = 0.0, min(1.0, TO_BORDER * _steps_to_border(mu, move))
    length = high
    for _ in range(20):
        # End if the slope is small, or if the longest allowed step is still uphill
        here = slope(length)
        if here >= -FLAT * first and (length == high or here <= FLAT * first):
            break
        low, high = (length, high) if here > 0 else (low, length)
        length = (low + high) / 2
    return length
