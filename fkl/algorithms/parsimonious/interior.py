"""Interior-point method for (PC) of Peifer and Ribeiro, which ends at a duality gap that was asked for.

(PC) has no duality gap (their Theorem 1), so its value is that of its bidual: the same problem with the largest convex
function below alpha^2 / 2 + gamma 1(alpha != 0) in the integral,

    B(alpha) = sqrt(2 gamma) |alpha| where |alpha| <= sqrt(2 gamma),  alpha^2 / 2 + gamma elsewhere.

It is a convex programme in finitely many numbers. The dual g is not smooth where |alpha_bar| of (9) passes
sqrt(2 gamma), so (s >= 0 and s >= alpha_bar^2 / 2 - gamma) stands for its integrand, with a logarithmic barrier for
both and for lambda >= 0, and Newton's method follows the minimisers as the barriers' weight t goes to 0. Every step
gives a function that is feasible after scaling, and so the gap.

Samples of lambda = 0 change nothing (their Proposition 2). So it starts with some of them and takes in those whose
constraints are broken, until none is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fkl.algorithms.parsimonious.quadrature import Quadrature

Array = NDArray[np.float64]

FIRST_SAMPLES = 100
NEW_SHARE = 1.0
"""Samples that are taken in at a time, of those at hand."""
ACTIVE = tuple(10.0**-power for power in range(9))
"""Shares of the largest lambda, for a slack of 1 - eps, below which a lambda may be set to 0."""
SMALLEST = 1e-40
"""Kernel values below it count as 0: their products are numbers that processors are slow with."""

RIDGE = 1e-2  # of the start's linear system, in units of its mean diagonal
JITTER = 1e-13
FALL = 0.03  # of the barriers' weight, once Newton's step is short
SHORT = 100.0  # squared Newton decrement
NODE_BARRIER = 0.1  # of a node, in units of that of lambda_n times the number of nodes
TO_BORDER = 0.99
FLAT = 0.1  # slope at which the line search ends, in units of the first


class Optimum(NamedTuple):
    """Where it came to.

    Attributes
    ----------
    mu : (n,)
        lambda / N; 0 where the constraint is not active.
    cost : float
        In the bidual, of values at the nodes that meet all constraints; infinite where none are known.
    steps : int
        Newton steps.
    """

    mu: Array
    cost: float
    steps: int


def bidual(alpha: Array, gamma: float) -> Array:
    """Largest convex function below alpha^2 / 2 + gamma 1(alpha != 0)."""
    size, knee = np.abs(alpha), np.sqrt(2 * gamma)
    value: Array = np.where(size <= knee, knee * size, size * size / 2 + gamma)
    return value


def optimum(
    quadrature: Quadrature, x: Array, y: Array, level: float, gamma: float, tolerance: float, steps: int
) -> Optimum:
    """Solve (PC) for samples x (n, d) and labels y (n,).

    Parameters
    ----------
    quadrature : Quadrature
    x, y : array
    level : float
        1 - eps.
    gamma : float
    tolerance : float
        Of the duality gap, relative to the cost.
    steps : int
        Most Newton steps.
    """
    weights = quadrature.weights
    n = len(y)
    inside = np.unique(np.linspace(0, n - 1, min(n, FIRST_SAMPLES)).astype(np.int64))
    mu, cost, taken = np.zeros(n), np.inf if n else 0.0, 0
    while len(inside) and taken < steps:
        rows = _rows(quadrature, x[inside], y[inside])
        found, alpha, more = _followed(rows, weights, level, gamma, tolerance / 2, steps - taken)
        taken += more
        margin = y * quadrature.function(alpha * weights, x)
        own = margin[inside].min()
        if not own > 0:
            return Optimum(mu, np.inf, taken)
        least = margin.min()
        scale = level / least if least > 0 else np.inf
        cost = float(weights @ bidual(alpha * scale, gamma)) if least > 0 else np.inf
        wanted = cost * (1 - tolerance)
        mu[:] = 0.0
        mu[inside] = _active(found, margin[inside], rows, weights, level, gamma, wanted)
        if _value(mu[inside], rows, weights, level, gamma) >= wanted:
            return Optimum(mu, cost, taken)
        broken = np.setdiff1d(np.flatnonzero(margin < own), inside)
        if not len(broken):
            return Optimum(mu, cost, taken)
        worst = broken[np.argsort(margin[broken], kind="stable")]
        inside = np.union1d(inside, worst[: max(int(NEW_SHARE * len(inside)), 1)])
    return Optimum(mu, cost, taken)


def _rows(quadrature: Quadrature, x: Array, y: Array) -> Array:
    """y_n k(x_n, s_m; w_m), (n, M)."""
    factors = quadrature.kernel(x)
    rows: Array = np.einsum("wng,wnh->nwgh", factors.first, factors.rest).reshape(len(x), -1)
    rows[rows < SMALLEST] = 0.0
    rows *= y[:, None]
    return rows


def _value(mu: Array, rows: Array, weights: Array, level: float, gamma: float) -> float:
    """Dual function, eq. (5)."""
    return float(level * mu.sum() - weights @ np.maximum((mu @ rows) ** 2 / 2 - gamma, 0.0))


def _active(mu: Array, margin: Array, rows: Array, weights: Array, level: float, gamma: float, wanted: float) -> Array:
    """Set lambda of constraints that are not active to 0, as (13) has it; barriers keep all of them above.

    A constraint is active where lambda is large beside the slack; how large, is the most that leaves the dual function
    as high as is wanted.
    """
    slack = (margin - margin.min()) / level
    for share in (*ACTIVE, 0.0):
        kept: Array = np.where(mu > share * slack * mu.max(), mu, 0.0)
        if _value(kept, rows, weights, level, gamma) >= wanted:
            break
    return kept


def _share(z: Array, gamma: float, t: float) -> Array:
    """Share of the smoothed threshold, eq. (8), that lets z pass: 0 far below sqrt(2 gamma), 1 far above, (2, M).

    Beside it what is missing to 1. It is the multiplier of s >= z^2 / 2 - gamma on the central path.
    """
    if gamma == 0:
        return np.stack([np.ones_like(z), np.zeros_like(z)])
    below = gamma - z * z / 2
    less = 2 * t / (np.abs(below) + np.hypot(below, 2 * t))
    low, high = less / (1 + less), 1 / (1 + less)
    return np.stack([np.where(below > 0, low, high), np.where(below > 0, high, low)])


def _followed(
    rows: Array, weights: Array, level: float, gamma: float, tolerance: float, steps: int
) -> tuple[Array, Array, int]:
    """Follow the central path for the samples of `rows`.

    Returns
    -------
    mu : (n,)
        All above 0.
    alpha : (M,)
        The feasible one of the least cost; 0 where there was none.
    steps : int
    """
    mu, slack = _start(rows, weights, level)
    t = float(slack @ mu) / len(mu)
    best_alpha, cost, best_mu, value = np.zeros(len(weights)), np.inf, mu, -np.inf
    scaled, normal = np.empty_like(rows), np.empty((len(mu), len(mu)))
    diagonal = np.diag_indices(len(mu))
    taken = 0
    while taken < steps:
        taken += 1
        z = mu @ rows  # eq. (9)
        of_node = NODE_BARRIER * len(weights) * t
        passed, stopped = _share(z, gamma, of_node)
        alpha = passed * z
        slope = weights.copy()
        if gamma > 0:
            slope *= passed * (1 + z * z / (of_node / passed + of_node * passed / stopped**2))
        np.multiply(rows, np.sqrt(slope), out=scaled)
        np.matmul(scaled, scaled.T, out=normal)  # one matrix, so that BLAS makes only half of it
        normal[diagonal] += slack / mu
        normal[diagonal] *= 1 + JITTER
        gradient = level - rows @ (weights * alpha) + t / mu
        try:
            factor = cho_factor(normal, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            break
        move = cho_solve(factor, gradient, check_finite=False)
        along = move @ rows
        candidate, its_cost = _feasible(alpha + slope / weights * along, rows, weights, level, gamma)
        if its_cost < cost:
            best_alpha, cost = candidate, its_cost
        its_value = _value(mu, rows, weights, level, gamma)
        if its_value > value:
            best_mu, value = mu, its_value
        if cost < np.inf and cost * (1 - tolerance) <= value:
            break
        decrement = gradient @ move / t
        length = _length(mu, move, z, along, weights, level, gamma, t, of_node)
        change = (t - slack * mu - slack * move) / mu
        mu = mu + length * move
        slack = slack + min(1.0, TO_BORDER * _border(slack, change)) * change
        if decrement < SHORT:
            t *= FALL
    return best_mu, best_alpha, taken


def _start(rows: Array, weights: Array, level: float) -> tuple[Array, Array]:
    """A point of the size that a linear system suggests, all lambda alike, and a slack for each constraint."""
    gram = (rows * weights) @ rows.T
    diagonal = np.diag_indices(len(gram))
    gram[diagonal] += RIDGE * gram[diagonal].mean()
    solved = cho_solve(cho_factor(gram, lower=True), np.full(len(gram), level))
    mu = np.full(len(gram), np.abs(solved).mean())
    return mu, np.maximum(rows @ (weights * (mu @ rows)) - level, level)


def _feasible(alpha: Array, rows: Array, weights: Array, level: float, gamma: float) -> tuple[Array, float]:
    """The values scaled up until every constraint holds, and their cost."""
    least = (rows @ (weights * alpha)).min()
    if not least > 0:
        return alpha, np.inf
    alpha = alpha * max(1.0, level / least)
    return alpha, float(weights @ bidual(alpha, gamma))


def _border(values: Array, change: Array) -> float:
    """Steps to where the first of the values is 0."""
    falls = change < 0
    return float((-values[falls] / change[falls]).min(initial=np.inf))


def _length(
    mu: Array, move: Array, z: Array, along: Array, weights: Array, level: float, gamma: float, t: float, of_node: float
) -> float:
    """Length of the step along which the barrier function, which is concave, rises to a flat place; at most 1."""
    up = level * move.sum()

    def slope(length: float) -> float:
        at = z + length * along
        passed = _share(at, gamma, of_node)[0]
        return float(up - (weights * passed * at) @ along + t * (move / (mu + length * move)).sum())

    first = slope(0.0)
    low, high = 0.0, min(1.0, TO_BORDER * _border(mu, move))
    length = high
    for _ in range(20):
        here = slope(length)
        if here >= -FLAT * first and (length == high or here <= FLAT * first):
            break
        low, high = (length, high) if here > 0 else (low, length)
        length = (low + high) / 2
    return length
