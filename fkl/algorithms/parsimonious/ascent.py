"""The compiled inner loops of the dual ascent, in float64, for one problem.

Sums over a grid of nodes are two BLAS products of small matrices per width; the first one skips samples with lambda =
0. With few samples a step needs neither product: f at the samples is the Gram matrix of the active nodes, those where
alpha is not 0, times lambda y / N, and few nodes become active or inactive from step to step (`Held`). A problem is
solved independently of its padding and of other problems, so neither changes a bit of its result.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  numba's np.dot calls it; loaded here to let threads be capped
from numba import njit
from numpy.typing import NDArray

from fkl.kernels.cached_njit import njit_cached

Array = NDArray[np.float64]

NODES_PER_SAMPLE = 4
"""Number of nodes per sample from which steps use the Gram matrix of the active nodes."""
WATCHED = 1024
"""Most nodes that are watched; if more could cross, the next step checks all nodes."""
HORIZON = 64
"""Most steps until all nodes are checked again."""
STRAY = 0.3
"""How far coefficients may deviate from a straight line until then, in units of their move in a step."""
FEW = 16
"""Nodes of one pass over the Gram matrix that changes it, a multiple of four."""
POWER_STEPS = 200
POWER_TOLERANCE = 1e-3
_SUM = {"reassoc", "contract", "nsz"}  # sums in vector registers; the order of additions does not matter here


class Kernel(NamedTuple):
    """Kernel between a problem's samples and the nodes, as the factors of `Quadrature`, one row for each sample.

    Attributes
    ----------
    first : (W, n, G)
    rest : (W, n, H)
        Empty if `columns` < H: it is then computed in every step, this many columns at a time.
    points : (H, d2)
        `Quadrature.rest`.
    x : (n, d2)
        The samples in the coordinates of `points`.
    width : (W,)
    weights : (W, G, H)
        Weights of the nodes in the integral.
    columns : int
    """

    first: Array
    rest: Array
    points: Array
    x: Array
    width: Array
    weights: Array
    columns: int


@njit_cached(fastmath=_SUM)
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
                away = x[n, axis] - points[p, axis]
                squared += away * away
            out[n, p] = np.exp(scale * squared)


@njit(fastmath=False)
def _copy_rows(matrix, kept, room):
    """Copy some rows of a matrix to `room`."""
    rows = room[: len(kept) * matrix.shape[1]].reshape((len(kept), matrix.shape[1]))
    for row, n in enumerate(kept):
        for column in range(matrix.shape[1]):
            rows[row, column] = matrix[n, column]
    return rows


@njit(fastmath=False)
def _copy_scaled_rows(matrix, kept, scale, room):
    """Copy some rows of a matrix to `room`, each times its scale."""
    rows = _copy_rows(matrix, kept, room)
    for row, n in enumerate(kept):
        for column in range(matrix.shape[1]):
            rows[row, column] *= scale[n]
    return rows


@njit(fastmath=_SUM)
def _apply_threshold(alpha, gamma):
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
def _weigh_nodes(alpha, weights):
    """Integrals of alpha^2 / 2, and of 1 where alpha is not 0; multiplies alpha by the nodes' weights."""
    square, measure = 0.0, 0.0
    for g in range(alpha.shape[0]):
        for h in range(alpha.shape[1]):
            square += weights[g, h] * alpha[g, h] * alpha[g, h] / 2
            measure += weights[g, h] if alpha[g, h] != 0 else 0.0
            alpha[g, h] *= weights[g, h]
    return square, measure


@njit
def _write_function(kernel, coefficients, gamma, f, alpha, room):
    """Write f and alpha, and return the integrals of alpha^2 / 2 and of 1 where alpha is not 0."""
    square, measure = 0.0, 0.0
    kept = np.flatnonzero(coefficients)
    f[:] = 0.0
    alpha[:] = 0.0
    G, H = kernel.first.shape[2], len(kernel.points)
    for w in range(len(kernel.width) if len(kept) else 0):
        first = kernel.first[w]
        scaled = _copy_scaled_rows(first, kept, coefficients, room[0])
        for start in range(0, H, kernel.columns):
            width = min(kernel.columns, H - start)
            if kernel.columns < H:
                rest = room[1][: len(f) * width].reshape((len(f), width))
                factor(kernel.points[start : start + width], kernel.x, kernel.width[w], rest)
            else:
                rest = kernel.rest[w]
            same = rest if len(kept) == len(f) else _copy_rows(rest, kept, room[2])
            part = room[3][: G * width].reshape((G, width))
            np.dot(scaled.T, same, part)  # eq. (9)
            _apply_threshold(part, gamma)
            # entry by entry: numba needs seconds to compile an assignment of arrays
            for g in range(G if alpha.size else 0):
                for h in range(width):
                    alpha[w, g, start + h] = part[g, h]
            integrals = _weigh_nodes(part, kernel.weights[w, :, start : start + width])
            square, measure = square + integrals[0], measure + integrals[1]
            sums = room[4][: len(f) * G].reshape((len(f), G))
            np.dot(rest, part.T, sums)
            _add_products(first, sums, f)  # eq. (11)
    return square, measure


@njit
def _scratch_memory(kernel):
    """Memory for `_write_function`, reused in every step."""
    n, G = kernel.first.shape[1:]
    tile = n * kernel.columns
    made = tile if kernel.columns < len(kernel.points) else 0
    return np.empty(n * G), np.empty(made), np.empty(tile), np.empty(G * kernel.columns), np.empty(n * G)


class Held(NamedTuple):
    """State between steps: the set of nodes with alpha != 0 changes at few nodes, so only few are checked.

    Attributes
    ----------
    first, rest : (W, G, n), (W, H, n)
        The kernel's factors, one row for each coordinate of the nodes.
    gram : (n, n)
        Sum over the active nodes, those with alpha != 0, of weight k(x_n) k(x_m), for m <= n; the rest is not used.
    active : (M,)
    z : (M,)
        alpha_bar of eq. (9) at the last check of all nodes.
    reach : (M,)
        Euclidean norm of a node's kernel values: how much a move of the coefficients by 1 can change its alpha_bar.
    at, way : (n,)
        Coefficients at that check, and their mean move per step since the check before.
    node, row : (WATCHED,), (WATCHED, n)
        Nodes that can cross sqrt(2 gamma) before the next check of all nodes, and their kernel values.
    counts : (4,)
        Numbers of active and of watched nodes; steps since the last check of all nodes, and until the next.
    stray : (1,)
        As long as the coefficients are no farther than this from their line, no other node crosses.
    """

    first: Array
    rest: Array
    gram: Array
    active: NDArray[np.bool_]
    z: Array
    reach: Array
    at: Array
    way: Array
    node: NDArray[np.int64]
    row: Array
    counts: NDArray[np.int64]
    stray: Array


_ACTIVE, _WATCHED, _SINCE, _UNTIL = range(4)


@njit(fastmath=_SUM)
def _write_function_by_gram(kernel, held, coefficients, gamma, f, room):
    """Write f, and return the two integrals of `_write_function`, from the Gram matrix of the active nodes."""
    if gamma > 0:
        held.counts[_SINCE] += 1
        stray = _distance_strayed(held, coefficients)
        if held.counts[_SINCE] > held.counts[_UNTIL] or stray > held.stray[0]:
            _look_at_all(kernel, held, coefficients, gamma, room)
        else:
            _look_at_watched(kernel, held, coefficients, gamma)
    _multiply_by_gram(held.gram, coefficients, f)
    square = 0.0
    for n in range(len(f)):
        square += coefficients[n] * f[n] / 2
    return square, held.counts[_ACTIVE] * kernel.weights[0, 0, 0]


@njit(fastmath=_SUM)
def _multiply_by_gram(gram, coefficients, f):
    """Write the product, using only the lower half of the Gram matrix."""
    for n in range(len(f)):
        total, of_row = 0.0, coefficients[n]
        for m in range(n):
            total += gram[n, m] * coefficients[m]
            f[m] += gram[n, m] * of_row
        f[n] = total + gram[n, n] * of_row


@njit(fastmath=_SUM)
def _look_at_all(kernel, held, coefficients, gamma, room):
    """Find the active nodes, and those that may cross the threshold in the next steps.

    alpha_bar is linear in the coefficients. It moves on a line as long as they do; otherwise its deviation is at most
    its reach times theirs.
    """
    before, since = held.z.copy(), held.counts[_SINCE]
    _write_alpha_bar(kernel, coefficients, held.z, room)
    changed = np.zeros(len(before), np.bool_)
    for m in range(len(before)):
        changed[m] = (held.z[m] * held.z[m] > 2 * gamma) != held.active[m]
    crossed = np.flatnonzero(changed)
    if len(crossed):
        rows = np.empty((len(crossed), len(coefficients)))
        for place in range(len(crossed)):
            _kernel_row(held, crossed[place], rows[place])
        _flip_active_nodes(kernel, held, crossed, rows)
    for n in range(len(coefficients)):
        held.way[n], held.at[n] = (coefficients[n] - held.at[n]) / since, coefficients[n]
    held.stray[0] = STRAY * _euclidean_length(held.way) + 1e-9 * _euclidean_length(coefficients)
    until = min(2 * since, HORIZON)
    knee, watched = np.sqrt(2 * gamma), 0
    for m in range(len(before)):
        here, there = held.z[m], held.z[m] + (held.z[m] - before[m]) * until / since
        low = min(here, there) - held.stray[0] * held.reach[m]
        high = max(here, there) + held.stray[0] * held.reach[m]
        if (low <= knee and knee <= high) or (low <= -knee and -knee <= high):
            if watched < WATCHED:
                held.node[watched] = m
            watched += 1
    some = watched <= WATCHED
    for place in range(watched if some else 0):
        _kernel_row(held, held.node[place], held.row[place])
    held.counts[_WATCHED], held.counts[_SINCE], held.counts[_UNTIL] = watched, 0, until if some else 0


@njit(fastmath=_SUM)
def _look_at_watched(kernel, held, coefficients, gamma):
    """Find the active nodes among those that are watched."""
    crossed = np.zeros(held.counts[_WATCHED], np.bool_)
    for place in range(len(crossed)):
        z = 0.0
        for n in range(len(coefficients)):
            z += held.row[place, n] * coefficients[n]
        crossed[place] = (z * z > 2 * gamma) != held.active[held.node[place]]
    places = np.flatnonzero(crossed)
    if len(places):
        _flip_active_nodes(
            kernel, held, held.node[places], _copy_rows(held.row, places, np.empty(len(places) * len(coefficients)))
        )


@njit(fastmath=_SUM)
def _flip_active_nodes(kernel, held, nodes, rows):
    """Switch nodes: active ones become inactive, and the others active."""
    n = rows.shape[1]
    scale, some = np.zeros(FEW), np.zeros((FEW, n))
    for start in range(0, len(nodes), FEW):
        scale[:] = 0.0
        for place in range(min(FEW, len(nodes) - start)):
            node = nodes[start + place]
            sign = -1 if held.active[node] else 1
            held.active[node] = sign > 0
            held.counts[_ACTIVE] += sign
            scale[place] = sign * kernel.weights[0, 0, 0]
            for m in range(n):
                some[place, m] = rows[start + place, m]
        _add_squares(held.gram, scale, some, min(FEW, len(nodes) - start))


@njit(fastmath=_SUM)
def _add_squares(gram, scale, rows, count):
    """Add each row's product with itself, times its scale, to the lower half: four in a pass, the last ones of 0."""
    for n in range(len(gram)):
        for place in range(0, count, 4):
            a, b = scale[place] * rows[place, n], scale[place + 1] * rows[place + 1, n]
            c, d = scale[place + 2] * rows[place + 2, n], scale[place + 3] * rows[place + 3, n]
            for m in range(n + 1):
                two = a * rows[place, m] + b * rows[place + 1, m]
                gram[n, m] += two + c * rows[place + 2, m] + d * rows[place + 3, m]


@njit(fastmath=_SUM)
def _kernel_row(held, m, row):
    """Kernel values of a node."""
    G, H = held.first.shape[1], held.rest.shape[1]
    w, g, h = m // (G * H), m // H % G, m % H
    for n in range(len(row)):
        row[n] = held.first[w, g, n] * held.rest[w, h, n]


@njit(fastmath=_SUM)
def _euclidean_length(vector):
    squared = 0.0
    for entry in vector:
        squared += entry * entry
    return np.sqrt(squared)


@njit(fastmath=_SUM)
def _distance_strayed(held, coefficients):
    """How far the coefficients are from their line."""
    squared = 0.0
    for n in range(len(coefficients)):
        away = coefficients[n] - held.at[n] - held.counts[_SINCE] * held.way[n]
        squared += away * away
    return np.sqrt(squared)


@njit(fastmath=_SUM)
def _write_alpha_bar(kernel, coefficients, z, room):
    """Write alpha_bar of eq. (9)."""
    kept = np.flatnonzero(coefficients)
    block = z.reshape(kernel.weights.shape)
    z[:] = 0.0
    for w in range(len(kernel.width) if len(kept) else 0):
        scaled = _copy_scaled_rows(kernel.first[w], kept, coefficients, room[0])
        same = kernel.rest[w] if len(kept) == len(coefficients) else _copy_rows(kernel.rest[w], kept, room[2])
        np.dot(scaled.T, same, block[w])


@njit_cached(nogil=True)
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
        Without widths if alpha is not needed.
    """
    _write_function(kernel, coefficients, gamma, f, alpha, _scratch_memory(kernel))


@njit_cached(nogil=True)
def smoothness(kernel):
    """Upper bound of the largest eigenvalue of the integral of k(x_n, s; w) k(x_m, s; w).

    The matrix is positive, so the largest ratio of (Q v)_n / v_n bounds the eigenvalue for any v > 0 (Collatz and
    Wielandt), and converges to it for v = Q^t 1.
    """
    v = np.ones(kernel.first.shape[1])
    q, bound = np.empty_like(v), np.inf
    room, none = _scratch_memory(kernel), np.empty((0, 0, 0))
    for _ in range(POWER_STEPS if len(v) else 0):
        _write_function(kernel, v, 0.0, q, none, room)
        bound = min(bound, (q / v).max())
        if bound <= (1 + POWER_TOLERANCE) * (v * q).sum() / (v * v).sum():
            break
        v = np.maximum(q / q.max(), 1e-100)  # any v > 0 is allowed, but not 0
    return bound if len(v) else np.finfo(np.float64).tiny


def ascend(
    kernel: Kernel,
    sign: Array,
    start: Array,
    per_slack: float,
    level: float,
    gamma: float,
    steps: int,
    tolerance: float,
    accelerated: bool,
) -> tuple[Array, int]:
    """Raise lambda along the slack of the constraints, as described in `fkl.algorithms.parsimonious.dual.solve`.

    Parameters
    ----------
    kernel : Kernel
    sign, start : (n,)
        Labels, and lambda(0).
    per_slack : float
        Increase of lambda in a step per unit of slack.
    level : float
        1 - eps.
    gamma : float
    steps : int
    tolerance : float
        Tolerance of the duality gap, in units of the cost; checked in every step.
    accelerated : bool

    Returns
    -------
    lam : (n,)
    taken : int
        Steps.
    """
    by_gram = NODES_PER_SAMPLE * len(start) <= kernel.weights.size and kernel.columns == len(kernel.points)
    # Initial state, as if lambda were 0; at gamma = 0 all nodes are always active.
    n, M = len(start) if by_gram else 0, kernel.weights.size
    first, rest = (np.ascontiguousarray(factor[:, :n].swapaxes(1, 2)) for factor in (kernel.first, kernel.rest))
    gram, reach = np.zeros((n, n)), np.zeros(kernel.weights.shape)
    for w in range(len(kernel.width) if n else 0):
        reach[w] = np.sqrt((first[w] * first[w]) @ (rest[w] * rest[w]).T)
        if gamma == 0:
            gram += kernel.weights[0, 0, 0] * (first[w].T @ first[w]) * (rest[w].T @ rest[w])
    counts = np.zeros(4, np.int64)
    counts[_ACTIVE] = M if gamma == 0 else 0
    active, node = np.full(M, gamma == 0), np.empty(WATCHED, np.int64)
    row, at = np.empty((WATCHED if gamma > 0 else 0, n)), np.zeros(n)
    held = Held(first, rest, gram, active, np.zeros(M), reach.ravel(), at, at.copy(), node, row, counts, np.zeros(1))
    # All steps, in a compiled loop.
    return _take_all_steps(kernel, held, by_gram, sign, start, per_slack, level, gamma, steps, tolerance, accelerated)


@njit_cached(nogil=True)
def _take_all_steps(kernel, held, by_gram, sign, start, per_slack, level, gamma, steps, tolerance, accelerated):
    """All steps of `ascend`; no sample state is held if steps do not use the Gram matrix."""
    lam, point, momentum = start.copy(), start.copy(), 1.0
    f, room, none = np.empty_like(start), _scratch_memory(kernel), np.empty((0, 0, 0))
    per_lambda = sign / max(len(sign), 1)
    for taken in range(steps):
        if by_gram:
            square, measure = _write_function_by_gram(kernel, held, point * per_lambda, gamma, f, room)
        else:
            square, measure = _write_function(kernel, point * per_lambda, gamma, f, none, room)
        slack = level - sign * f
        value = level * point.mean() - square + gamma * measure if len(point) else 0.0  # eq. (5)
        if tolerance > 0 and _scaled_cost(level, slack, square, gamma * measure) * (1 - tolerance) <= value:
            return point, taken
        risen = np.maximum(point + per_slack * slack, 0.0)  # eq. (12)
        if not accelerated:
            lam = point = risen
            continue
        way = risen - lam
        if (slack * way).sum() < 0:  # it turned: restart from the last point
            point, momentum = lam, 1.0
            continue
        before, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        point = np.maximum(risen + (before - 1) / momentum * way, 0.0)
        lam = risen
    return lam, steps


@njit
def _scaled_cost(level, slack, square, support):
    """Cost of alpha after scaling until all constraints hold; infinite if that is impossible."""
    least = level - slack.max() if len(slack) else level
    if least <= 0:
        return np.inf
    return max(1.0, level / least) ** 2 * square + support
