"""Interior-point method for (PC) of Peifer and Ribeiro, which ends at a given duality gap.

(PC) has no duality gap (their Theorem 1), so its value is that of its bidual: the same problem with the largest convex
function below alpha^2 / 2 + gamma 1(alpha != 0) in the integral,

    B(alpha) = sqrt(2 gamma) |alpha| where |alpha| <= sqrt(2 gamma),  alpha^2 / 2 + gamma elsewhere.

It is a convex programme in finitely many numbers. The dual g is not smooth where |alpha_bar| of (9) passes
sqrt(2 gamma), so a variable s with s >= 0 and s >= alpha_bar^2 / 2 - gamma replaces its integrand. These constraints
and lambda >= 0 have logarithmic barriers, and Newton's method follows the minimisers as the barriers' weight t goes to
0. Every step gives a function that is feasible after scaling, which gives the gap.

B is between alpha^2 / 2 and alpha^2 / 2 + gamma, so the cost of the optimum at gamma = 0 differs by at most gamma. If
the dual is large compared with that, this optimum is the solution; otherwise the path begins there. Samples with lambda
= 0 have no effect (their Proposition 2). The method therefore uses only samples whose constraints are nearly active,
and adds those with violated constraints until there are none.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from fkl.algorithms.parsimonious.active import Samples, without_gamma
from fkl.kernels.cached_njit import njit_cached

Array = NDArray[np.float64]

NEAR = 1.02
"""Samples are used if their y f at gamma = 0, in units of 1 - eps, is at most this."""
ACTIVE = tuple(10.0**-power for power in range(9))
"""Shares of the largest lambda, for a slack of 1 - eps, below which a lambda may be set to 0."""

JITTER = 1e-13
FALL = 0.03  # of the barriers' weight, once Newton's step is short
SHORT = 100.0  # squared Newton decrement
NODE_BARRIER = 0.1  # of a node, in units of that of lambda_n times the number of nodes
LEAST_SLACK = 0.1  # of a constraint at the start, in units of 1 - eps
TO_BORDER = 0.99
FLAT = 0.1  # slope at which the line search ends, in units of the first
_SUM = {"reassoc", "contract", "nsz"}  # sums in vector registers; nothing here asks for an order


class Optimum(NamedTuple):
    """Result of the method.

    Attributes
    ----------
    mu : (n,)
        lambda / N; 0 where the constraint is not active.
    cost : float
        Cost in the bidual of values at the nodes that meet all constraints; infinite if no such values are known.
    steps : int
        Number of linear systems solved, including those at gamma = 0.
    """

    mu: Array
    cost: float
    steps: int


def bidual(alpha: Array, gamma: float) -> Array:
    """Largest convex function below alpha^2 / 2 + gamma 1(alpha != 0)."""
    size, knee = np.abs(alpha), np.sqrt(2 * gamma)
    return np.where(size <= knee, knee * size, size * size / 2 + gamma)


def optimum(samples: Samples, level: float, gamma: float, tolerance: float, steps: int) -> Optimum:
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
        Maximum number of Newton steps; at 0 nothing is solved.
    """
    n, weights = len(samples.y), samples.quadrature.weights
    if not n or not steps:
        return Optimum(np.zeros(n), np.inf if n else 0.0, 0)
    mu, margin, solves = without_gamma(samples, level, tolerance)
    inside = np.flatnonzero((mu > 0) | (margin <= NEAR * level))
    rows, left = samples.rows(inside), steps
    cost = _bidual_cost(mu[inside] @ rows, margin.min(), weights, level, gamma)
    value = _dual_value(mu[inside], rows, weights, level, gamma)
    while 0 < value < cost * (1 - tolerance) and left:
        # On the path the gap is t for each sample and about 2 NODE_BARRIER t for each node. This is the initial gap.
        t = (cost - value if cost < np.inf else value) / (len(inside) + 2 * NODE_BARRIER * len(weights))
        start = np.maximum(mu[inside], t / np.maximum(margin[inside] - level, LEAST_SLACK * level))
        found, alpha, taken = _follow_central_path(rows, start, t, weights, level, gamma, tolerance / 2, left)
        left -= taken
        margin = samples.margin(alpha)
        cost = _bidual_cost(alpha, margin.min(), weights, level, gamma)
        # Barriers keep every lambda above 0. A constraint is not active, eq. (13), if lambda is small compared with the
        # slack. The limit is the largest that keeps the dual function within the tolerance.
        slack = (margin[inside] - margin[inside].min()) / level
        for share in (*ACTIVE, 0.0):
            mu[inside] = np.where(found > share * slack * found.max(), found, 0.0)
            value = _dual_value(mu[inside], rows, weights, level, gamma)
            if value >= cost * (1 - tolerance):
                break
        broken = np.setdiff1d(np.flatnonzero(margin < margin[inside].min()), inside)
        if not len(broken):
            break
        inside = np.union1d(inside, broken)
        rows = samples.rows(inside)
    return Optimum(mu, cost, solves + steps - left)


def _dual_value(mu: Array, rows: Array, weights: Array, level: float, gamma: float) -> float:
    """Dual function, eq. (5)."""
    return float(level * mu.sum() - weights @ np.maximum((mu @ rows) ** 2 / 2 - gamma, 0.0))


@njit(fastmath=_SUM)  # type: ignore[untyped-decorator]
def _share_let_through(z: float, gamma: float, t: float) -> tuple[float, float]:
    """Share of the smoothed threshold, eq. (8), that lets z pass: 0 far below sqrt(2 gamma), 1 far above.

    Also returns 1 minus this share. It is the multiplier of s >= z^2 / 2 - gamma on the central path.
    """
    if gamma == 0:
        return 1.0, 0.0
    below = gamma - z * z / 2
    less = 2 * t / (abs(below) + np.sqrt(below * below + 4 * t * t))
    low, high = less / (1 + less), 1 / (1 + less)
    return (low, high) if below > 0 else (high, low)


@njit_cached(fastmath=_SUM, error_model="numpy")
def _write_smooth_threshold(z: Array, gamma: float, t: float, alpha: Array, slope: Array) -> None:
    """Write the smoothed alpha of eq. (8) and its slope in z."""
    for m in range(len(z)):
        passed, stopped = _share_let_through(z[m], gamma, t)
        alpha[m] = passed * z[m]
        slope[m] = passed * (1 + z[m] * z[m] / (t / passed + t * passed / (stopped * stopped)))


@njit_cached(fastmath=_SUM, error_model="numpy")
def _slope_of_nodes(z: Array, along: Array, length: float, weights: Array, gamma: float, t: float) -> float:
    """Slope of the nodes' part of the barrier function at this step length."""
    pull = 0.0
    for m in range(len(z)):
        at = z[m] + length * along[m]
        pull += weights[m] * _share_let_through(at, gamma, t)[0] * at * along[m]
    return pull


def _follow_central_path(
    rows: Array, mu: Array, t: float, weights: Array, level: float, gamma: float, tolerance: float, steps: int
) -> tuple[Array, Array, int]:
    """Follow the central path for the samples of `rows`, from mu and the barriers' weight t.

    Returns
    -------
    mu : (n,)
        Every entry is above 0.
    alpha : (M,)
        The feasible alpha with the least cost; 0 if there was none.
    steps : int
    """
    slack = t / mu
    best_alpha, cost, best_mu, value = np.zeros(len(weights)), np.inf, mu, -np.inf
    scaled, normal = np.empty_like(rows), np.empty((len(mu), len(mu)))
    alpha, slope = np.empty_like(weights), np.empty_like(weights)
    diagonal = np.diag_indices(len(mu))
    taken = 0
    while taken < steps:
        taken += 1
        z = mu @ rows  # eq. (9)
        of_node = NODE_BARRIER * len(weights) * t
        _write_smooth_threshold(z, gamma, of_node, alpha, slope)
        np.multiply(rows, np.sqrt(weights * slope), out=scaled)
        np.matmul(scaled, scaled.T, out=normal)  # one matrix, so BLAS computes only half of the product
        normal[diagonal] += slack / mu
        normal[diagonal] *= 1 + JITTER
        gradient = level - rows @ (weights * alpha) + t / mu
        factor, failed = dpotrf(normal, lower=1)
        if failed:
            break
        move = dpotrs(factor, gradient, lower=1)[0]
        along = move @ rows
        candidate = alpha + slope * along
        its_cost = _bidual_cost(candidate, (rows @ (weights * candidate)).min(), weights, level, gamma)
        if its_cost < cost:
            best_alpha, cost = candidate, its_cost
        its_value = _dual_value(mu, rows, weights, level, gamma)
        if its_value > value:
            best_mu, value = mu, its_value
        if cost < np.inf and cost * (1 - tolerance) <= value:
            break
        decrement = gradient @ move / t
        length = _line_search(mu, move, z, along, weights, level, gamma, t, of_node)
        change = (t - slack * mu - slack * move) / mu
        mu = mu + length * move
        slack = slack + min(1.0, TO_BORDER * _steps_to_border(slack, change)) * change
        if decrement < SHORT:
            t *= FALL
    return best_mu, best_alpha, taken


def _bidual_cost(alpha: Array, least: float, weights: Array, level: float, gamma: float) -> float:
    """Cost of alpha in the bidual after scaling until all constraints hold; infinite if that is impossible.

    `least` is the smallest y f of all samples.
    """
    return float(weights @ bidual(alpha * max(1.0, level / least), gamma)) if least > 0 else np.inf


def _steps_to_border(values: Array, change: Array) -> float:
    """Step length at which the first of the values is 0."""
    falls = change < 0
    return float((-values[falls] / change[falls]).min(initial=np.inf))


def _line_search(
    mu: Array, move: Array, z: Array, along: Array, weights: Array, level: float, gamma: float, t: float, of_node: float
) -> float:
    """Step length, at most 1, at which the concave barrier function is nearly stationary along the step."""
    up = level * move.sum()

    def slope(length: float) -> float:
        pull = _slope_of_nodes(z, along, length, weights, gamma, of_node)
        return float(up - pull + t * (move / (mu + length * move)).sum())

    first = slope(0.0)
    low, high = 0.0, min(1.0, TO_BORDER * _steps_to_border(mu, move))
    length = high
    for _ in range(20):
        here = slope(length)
        if here >= -FLAT * first and (length == high or here <= FLAT * first):
            break
        low, high = (length, high) if here > 0 else (low, length)
        length = (low + high) / 2
    return length
