"""The compiled inner loops of the dual ascent, in float64, for one problem.

Sums over a grid of nodes are two BLAS products of small matrices a width, and samples with lambda = 0 stay out of the
first. A problem is solved on its own whatever it is padded to and whatever runs beside it, so neither decides a bit.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  numba's np.dot calls it; loaded here so that threads can be capped
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

POWER_STEPS = 200
POWER_TOLERANCE = 1e-3
_SUM = {"reassoc", "contract", "nsz"}  # sums in vector registers; nothing here asks for an order


class Kernel(NamedTuple):
    """Kernel between a problem's samples and the nodes, as the factors of `Quadrature`, a row for each sample.

    Attributes
    ----------
    first : (W, n, G)
    rest : (W, n, H)
        Empty where `columns` < H: it is then made anew in every step, so many columns at a time.
    points : (H, d2)
        `Quadrature.rest`.
    x : (n, d2)
        The samples in the coordinates of `points`.
    width : (W,)
    weights : (W, G, H)
        Of the nodes in the integral.
    columns : int
    """

    first: Array
    rest: Array
    points: Array
    x: Array
    width: Array
    weights: Array
    columns: int


@njit(cache=True, fastmath=_SUM)
def factor(points, x, width, out):
    """Write exp(-||x_n - s_p||^2 / (2 w^2)) in some of the coordinates, eq. (37).

    Parameters
    ----------
    points : (P, d)
    x : (n, d)
    width : float
    out : (n, P)
    """
    scale = -1 / (2 * width * width)
    for n in range(len(x)):
        for p in range(len(points)):
            squared = 0.0
            for axis in range(points.shape[1]):
                squared += (x[n, axis] - points[p, axis]) ** 2
            out[n, p] = np.exp(scale * squared)


@njit
def _rows(matrix, kept, room):
    """Some rows of a matrix, one after the other in `room`."""
    rows = room[: len(kept) * matrix.shape[1]].reshape((len(kept), matrix.shape[1]))
    for row, n in enumerate(kept):
        for column in range(matrix.shape[1]):
            rows[row, column] = matrix[n, column]
    return rows


@njit
def _scaled(matrix, kept, scale, room):
    """The same, each times its scale."""
    rows = _rows(matrix, kept, room)
    for row, n in enumerate(kept):
        for column in range(matrix.shape[1]):
            rows[row, column] *= scale[n]
    return rows


@njit(fastmath=_SUM)
def _threshold(alpha, gamma):
    """Eq. (8)."""
    for g in range(alpha.shape[0]):
        for h in range(alpha.shape[1]):
            if alpha[g, h] * alpha[g, h] <= 2 * gamma:
                alpha[g, h] = 0.0


@njit(fastmath=_SUM)
def _add_products(first, part, f):
    for n in range(len(f)):
        total = 0.0
        for g in range(first.shape[1]):
            total += first[n, g] * part[n, g]
        f[n] += total


@njit(fastmath=_SUM)
def _support(alpha, weights):
    """Integrals of alpha^2 / 2, and of 1 where alpha is not 0."""
    square, measure = 0.0, 0.0
    for g in range(alpha.shape[0]):
        for h in range(alpha.shape[1]):
            square += weights[g, h] * alpha[g, h] * alpha[g, h] / 2
            measure += weights[g, h] if alpha[g, h] != 0 else 0.0
    return square, measure


@njit
def _evaluate(kernel, coefficients, gamma, f, alpha, room):
    """As `evaluate`; returns the integrals of alpha^2 / 2 and of 1 where alpha is not 0."""
    square, measure = 0.0, 0.0
    kept = np.flatnonzero(coefficients)
    f[:] = 0.0
    alpha[:] = 0.0
    G, H = kernel.first.shape[2], len(kernel.points)
    for w in range(len(kernel.width) if len(kept) else 0):
        first = kernel.first[w]
        scaled = _scaled(first, kept, coefficients, room[0])
        for start in range(0, H, kernel.columns):
            width = min(kernel.columns, H - start)
            if kernel.columns < H:
                rest = room[1][: len(f) * width].reshape((len(f), width))
                factor(kernel.points[start : start + width], kernel.x, kernel.width[w], rest)
            else:
                rest = kernel.rest[w]
            same = rest if len(kept) == len(f) else _rows(rest, kept, room[2])
            part = room[3][: G * width].reshape((G, width))
            np.dot(scaled.T, same, part)  # eq. (9)
            _threshold(part, gamma)
            if alpha.size:
                alpha[w, :, start : start + width] = part
            integrals = _support(part, kernel.weights[w, :, start : start + width])
            square, measure = square + integrals[0], measure + integrals[1]
            part *= kernel.weights[w, :, start : start + width]
            sums = room[4][: len(f) * G].reshape((len(f), G))
            np.dot(rest, part.T, sums)
            _add_products(first, sums, f)  # eq. (11)
    return square, measure


@njit
def _room(kernel):
    """Memory that `_evaluate` writes to, the same in every step."""
    n, G = kernel.first.shape[1:]
    tile = n * kernel.columns
    made = tile if kernel.columns < len(kernel.points) else 0
    return np.empty(n * G), np.empty(made), np.empty(tile), np.empty(G * kernel.columns), np.empty(n * G)


@njit(nogil=True, cache=True)
def evaluate(kernel, coefficients, gamma, f, alpha):
    """Write alpha of eq. (8) and the function f at the samples, eq. (11).

    Parameters
    ----------
    kernel : Kernel
    coefficients : (n,)
        lambda_n y_n / N.
    gamma : float
    f : (n,)
    alpha : (W, G, H)
        Or of no width, where alpha is not wanted.
    """
    _evaluate(kernel, coefficients, gamma, f, alpha, _room(kernel))


@njit(nogil=True, cache=True)
def smoothness(kernel):
    """Upper bound of the largest eigenvalue of the integral of k(x_n, s; w) k(x_m, s; w).

    The matrix is positive, so the largest ratio of (Q v)_n / v_n bounds the eigenvalue for any v > 0 (Collatz and
    Wielandt), and comes down to it for v = Q^t 1.
    """
    v = np.ones(kernel.first.shape[1])
    q, bound = np.empty_like(v), np.inf
    room, none = _room(kernel), np.empty((0, 0, 0))
    for _ in range(POWER_STEPS if len(v) else 0):
        _evaluate(kernel, v, 0.0, q, none, room)
        bound = min(bound, (q / v).max())
        if bound <= (1 + POWER_TOLERANCE) * (v * q).sum() / (v * v).sum():
            break
        v = np.maximum(q / q.max(), 1e-100)  # any v > 0 will do, and 0 would not
    return bound if len(v) else np.finfo(np.float64).tiny


@njit(nogil=True, cache=True)
def ascend(kernel, sign, start, per_slack, level, gamma, steps, tolerance, accelerated):
    """Raise lambda along the slack of the constraints, as `fkl.algorithms.parsimonious.dual.solve` tells.

    Parameters
    ----------
    kernel : Kernel
    sign, start : (n,)
        Labels, and lambda(0).
    per_slack : float
        What lambda gains in a step for each unit of slack.
    level : float
        1 - eps.
    gamma : float
    steps : int
    tolerance : float
        Of the duality gap, in units of the cost; it is looked at in every step.
    accelerated : bool

    Returns
    -------
    lam : (n,)
    taken : int
        Steps.
    """
    lam, point, momentum = start.copy(), start.copy(), 1.0
    f, room, none = np.empty_like(start), _room(kernel), np.empty((0, 0, 0))
    per_lambda = sign / max(len(sign), 1)
    for taken in range(steps):
        square, measure = _evaluate(kernel, point * per_lambda, gamma, f, none, room)
        slack = level - sign * f
        value = level * point.mean() - square + gamma * measure if len(point) else 0.0  # eq. (5)
        if tolerance > 0 and _cost(level, slack, square, gamma * measure) * (1 - tolerance) <= value:
            return point, taken
        risen = np.maximum(point + per_slack * slack, 0.0)  # eq. (12)
        if not accelerated:
            lam = point = risen
            continue
        way = risen - lam
        if (slack * way).sum() < 0:  # it turned: restart from where it was
            point, momentum = lam, 1.0
            continue
        before, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        point = np.maximum(risen + (before - 1) / momentum * way, 0.0)
        lam = risen
    return lam, steps


@njit
def _cost(level, slack, square, support):
    """What alpha costs once it is scaled up until all constraints hold; infinite where that cannot be."""
    least = level - slack.max() if len(slack) else level
    if least <= 0:
        return np.inf
    return max(1.0, level / least) ** 2 * square + support
