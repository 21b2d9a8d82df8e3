"""The compiled inner loops of the feature bank, in float32 and float64, and those of a single learner on a stream.

Work is divided into tiles of fixed shape: one replicate, one kernel, at most `CLIENT_TILE` clients. One small BLAS
product projects a tile; then sine and cosine are computed, and the tile is reduced to the caller's result while it is
still in the cache. Features never go through main memory. Tiles do not depend on the number of threads or of replicates
that run together, so neither do the results, to the last bit.

Features are computed in the bank's precision, sums in float64; second moments are multiplied in float64, too, because
they are inverted later. Angles in float64 (heavy-tailed frequencies) are reduced in float64 before they become float32
features.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  numba's np.dot calls it; loaded here to let threads be capped
from numba import njit
from numpy.typing import NDArray

from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.client_tiles import CLIENT_TILE, WIDE
from fkl.kernels.compiled_losses import slope_of_one

KERNEL_RUN = 8

FEW = 8
"""In such samples, at most one in this many features has another value."""

_CONTRACT = {"contract", "nsz"}  # FMA allowed; no reassociation, which would undo the range reduction

_F = np.float32
_TWO_OVER_PI = _F(2 / np.pi)
_TWO_PI, _TURN = 2 * np.pi, 1 / (2 * np.pi)
# pi/2 in three parts, the first two short enough for exact multiples (Cody and Waite 1980)
_PIO2_HIGH, _PIO2_MIDDLE, _PIO2_LOW = _F(1.5703125), _F(4.837512969970703125e-4), _F(7.549789948768648e-8)
# minimax polynomials on [-pi/4, pi/4] (Cephes, sinf and cosf)
_S1, _S2, _S3 = _F(-1.6666654611e-1), _F(8.3321608736e-3), _F(-1.9515295891e-4)
_C1, _C2, _C3 = _F(4.166664568298827e-2), _F(-1.388731625493765e-3), _F(2.443315711809948e-5)
_HALF, _ONE = _F(0.5), _F(1)
_FAR, _FAR_DOUBLE = _F(2.0**20), 2.0**28
"""Largest angles, in float32 and in float64, that these reductions serve to the last digit of a float32 sine."""


@njit(fastmath=_CONTRACT)
def _sincos_reduced(x):
    quadrant = np.rint(x * _TWO_OVER_PI)
    r = ((x - quadrant * _PIO2_HIGH) - quadrant * _PIO2_MIDDLE) - quadrant * _PIO2_LOW
    n = np.int32(quadrant)
    r2 = r * r
    s = r + r * r2 * (_S1 + r2 * (_S2 + r2 * _S3))
    c = _ONE - _HALF * r2 + r2 * r2 * (_C1 + r2 * (_C2 + r2 * _C3))
    odd = (n & 1) != 0
    sine = c if odd else s
    cosine = s if odd else c
    return (-sine if (n & 2) != 0 else sine), (-cosine if ((n + 1) & 2) != 0 else cosine)


@njit(fastmath=_CONTRACT)
def _within_a_turn(angle, scale):
    turns = np.rint(angle * scale * _TURN)
    return angle * scale - _TWO_PI * turns


@njit(fastmath=False)
def _sincos_of_far(angle, scale, far, sine, cosine):
    """Replace the results for angles larger than `far` by the C library's, which is exact for angles of any size."""
    for j in range(angle.size):
        x = np.float64(angle[j] * scale)
        if abs(x) > far:
            sine[j], cosine[j] = np.sin(x), np.cos(x)


@njit(fastmath=_CONTRACT | {"reassoc"})
def sine_and_cosine(angle, scale, sine, cosine):
    """Sine and cosine of scale * angle, flat arrays; float64 angles are first reduced to one turn in float64.

    The error is below 2e-7 for every finite angle.

    Parameters
    ----------
    angle : (n,) float32 or float64
    scale : float of the same precision
    sine, cosine : (n,) float32
        Overwritten; must not share memory with each other.
    """
    # Sum the squares of all angles, instead of testing each: the loop stays vectorised
    squares, far = angle.dtype.type(0), _FAR_DOUBLE if angle.itemsize == 8 else _FAR
    for j in range(angle.size):
        x = angle[j] * scale
        squares += x * x
        sine[j], cosine[j] = _sincos_reduced(_F(_within_a_turn(angle[j], scale) if angle.itemsize == 8 else x))
    if not squares <= far * far:  # otherwise no angle is larger than far; the sum costs almost nothing
        _sincos_of_far(angle, scale, far, sine, cosine)


@njit
def feature_map(projection, scale, phase, z):
    """Unnormalised map of some samples: z[0] = sin, z[1] = cos; with a phase, z[0] = cos(. + phase) alone.

    Parameters
    ----------
    projection : (B, D)
    scale : float of the same precision
        Factor of the projection.
    phase : (D,) or (0,)
    z : (maps, B, D) float32 or float64
        Written.
    """
    # float64: numpy's own sine and cosine, which have all digits
    if z.itemsize == 8:
        for k in range(projection.shape[0]):
            for j in range(projection.shape[1]):
                if phase.size:
                    z[0, k, j] = np.cos(projection[k, j] * scale + phase[j])
                else:
                    z[0, k, j] = np.sin(projection[k, j] * scale)
                    z[1, k, j] = np.cos(projection[k, j] * scale)
    # float32 with phases: one map, the cosine of angle + phase
    elif phase.size:
        angle = np.empty(projection.shape, projection.dtype)
        for k in range(projection.shape[0]):
            for j in range(projection.shape[1]):
                angle[k, j] = projection[k, j] * scale + phase[j]
        sine_and_cosine(angle.reshape(-1), scale / scale, np.empty(angle.size, np.float32), z[0].reshape(-1))
    else:
        # float32 pairs: sine and cosine in one pass
        sine_and_cosine(projection.reshape(-1), scale, z[0].reshape(-1), z[1].reshape(-1))


class Usual(NamedTuple):
    """Samples whose features nearly all have one value; that value enters a product through the sums of frequencies.

    Whether a sample is handled like this depends only on the sample. If all samples have many other values, the
    argument is None, and the code that reads it is not compiled.

    Attributes
    ----------
    value : (K,)
        Each sample's usual value.
    other : (K, 1 or more) int32
        Number of features with another value, and their indices; the first entry is -1 if there are many.
    sums : (R, N or 1, D)
        Sums of rho over features.
    """

    value: NDArray[Any]
    other: NDArray[np.int32]
    sums: NDArray[Any]


def usual_values(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]] | None:
    """`Usual.value` and `Usual.other` of samples (K, d); None if all of them have many other values."""
    # Narrow samples are not worth a search for repeated values
    K, d = x.shape
    if d < WIDE or not K:
        return None
    # The median of a row is its usual value if the row has one
    value = np.partition(x, d // 2, axis=1)[:, d // 2]
    differs = x != value[:, None]
    count = np.count_nonzero(differs, axis=1)
    if count.min() > d // FEW:
        return None
    # Row k of `other`: the number of other values, or -1 if there are too many, and then their places
    other = np.zeros((K, 1 + d // FEW), np.int32)
    other[:, 0] = np.where(count > d // FEW, -1, count)
    for row, which in zip(other, differs, strict=True):
        if row[0] > 0:
            row[1 : 1 + row[0]] = np.flatnonzero(which)
    return value, other


@njit
def _project_samples(x, few, clients, r, b, rho, out):
    """Write x rho to out; from few features per sample if all of these samples, `clients` in `few`, allow it."""
    if few is None:  # noqa: SIM114  separate, because numba then does not compile the rest
        np.dot(x, rho, out)
    elif few.other[clients, 0].min() < 0:
        np.dot(x, rho, out)
    else:
        _project_few(x, few, clients, few.sums[r, b], rho, out)


@njit(fastmath=_CONTRACT)
def _project_few(x, few, clients, sums, rho, out):
    # x'rho = value * (sum of rho's rows) + sum over the other entries of (x - value) rho
    for k in range(x.shape[0]):
        value, other = few.value[clients[k]], few.other[clients[k]]
        for j in range(sums.size):
            out[k, j] = value * sums[j]
        end = 1 + other[0]
        p = 1
        while p + 4 <= end:  # four at a time, to read and write a row of the product a quarter as often
            a, b, c, d = other[p], other[p + 1], other[p + 2], other[p + 3]
            xa, xb, xc, xd = x[k, a] - value, x[k, b] - value, x[k, c] - value, x[k, d] - value
            for j in range(sums.size):
                out[k, j] += xa * rho[a, j] + xb * rho[b, j] + xc * rho[c, j] + xd * rho[d, j]
            p += 4
        for q in range(p, end):
            a = other[q]
            xa = x[k, a] - value
            for j in range(sums.size):
                out[k, j] += xa * rho[a, j]


@njit
def _number_range(start, count):
    """Start, start + 1, ...; np.arange takes longer to compile."""
    numbers = np.empty(count, np.int64)
    for k in range(count):
        numbers[k] = start + k
    return numbers


@njit(error_model="numpy")
def _predict_tile(x, few, start, r, rho, scale, phase, theta, norm, first, out):
    """Predictions of consecutive kernels, starting at `first`, in one replicate for one tile of clients.

    One function per tile, not a loop inside the loop over tasks, because the compiler vectorises only this well.
    """
    # Arrays of one tile, used for all of its kernels, so they stay in the cache
    draws = rho.shape[0]
    kernels, maps, features = theta.shape
    projection = np.empty((x.shape[0], features), rho.dtype)
    z, f = np.empty((maps, x.shape[0], features), theta.dtype), np.empty((maps, x.shape[0]), theta.dtype)
    clients = _number_range(start, x.shape[0])
    # Kernel by kernel: project the tile, take sine and cosine, and multiply with theta
    for j in range(kernels):
        i = first + j
        if draws > 1 or j == 0:  # a draw shared by all kernels is projected once
            _project_samples(x, few, clients, r, i % draws, rho[i % draws], projection)
        feature_map(projection, scale[j], phase[i % draws], z)
        for m in range(maps):
            np.dot(z[m], theta[j, m], f[m])
        # With pairs, the prediction has a part from the sine and one from the cosine
        for k in range(x.shape[0]):
            out[k, i] = norm * (f[0, k] + f[1, k] if maps == 2 else f[0, k])


@njit_cached(nogil=True)
def predict_kernels(begin, end, x, few, rho, scale, phase, theta, norm, out):
    """out[r, k, i] = norm * theta[r, i]' z_i(x_k) for every client, for some replicates and runs of kernels.

    Parameters
    ----------
    begin, end : int
        Range of the R ceil(N / `KERNEL_RUN`) parts, which `fkl.kernels.threads.share_work` divides among threads.
    x : (K, d), in rho's precision
    few : Usual or None
    rho : (R, N or 1, d, D) float32, or float64 if angles are too large for float32
    scale : (N,) in rho's precision
    phase : (R, N or 1, D), or (R, N or 1, 0) for the pair map
    theta : (R, N, maps, D), in the precision of the features
    norm : float
    out : (R, K, N) float64, written
    """
    # A task is one replicate and a run of kernels; tiles of clients inside it
    kernels = theta.shape[1]
    runs = (kernels + KERNEL_RUN - 1) // KERNEL_RUN
    for task in range(begin, end):
        r, first = task // runs, (task % runs) * KERNEL_RUN
        some = slice(first, min(first + KERNEL_RUN, kernels))
        for start in range(0, x.shape[0], CLIENT_TILE):
            tile = slice(start, start + CLIENT_TILE)
            _predict_tile(
                x[tile], few, start, r, rho[r], scale[some], phase[r], theta[r, some], norm, first, out[r, tile]
            )


@njit(error_model="numpy")
def _accumulate_tile(x, few, start, r, b, rho, scale, phase, update, share, norm, like, out):
    """Add one tile of clients to the sum of one replicate and kernel."""
    # Copy only clients whose update is not 0, so the work is proportional to their number
    maps, features = out.shape
    sample, clients = np.empty_like(x), np.empty(x.shape[0], np.int64)
    weight = np.empty(x.shape[0], like.dtype)
    count = 0
    for k in range(x.shape[0]):
        if update[k] * share[k] != 0.0:
            weight[count] = update[k] * share[k]
            for q in range(x.shape[1]):  # entry by entry: numba needs five seconds to compile an assignment of arrays
                sample[count, q] = x[k, q]
            clients[count] = start + k
            count += 1
    # Then the features of these clients, and their weighted sum
    if count:
        projection = np.empty((count, features), rho.dtype)
        _project_samples(sample[:count], few, clients[:count], r, b, rho, projection)
        z = np.empty((maps, count, features), like.dtype)
        feature_map(projection, scale, phase, z)
        total = np.empty(features, like.dtype)
        for m in range(maps):
            np.dot(weight[:count], z[m], total)
            for q in range(features):
                out[m, q] += norm * total[q]


@njit_cached(nogil=True)
def accumulate_gradients(begin, end, x, few, rho, scale, phase, update, share, norm, like, out):
    """out[r, i] = norm * sum_k share_k update[r, k, i] z_i(x_k), reading only clients with a non-zero update.

    Parameters
    ----------
    begin, end : int
        Range of the R N sums, one for each replicate and kernel.
    x, few, rho, scale, phase, norm : as in `predict_kernels`
    update : (R, K, N) float64
    share : (K,) float64
    like : (0,)
        An empty array with the precision of the features and of a tile's sum.
    out : (R, N, maps, D) float64, written
    """
    # A task is one replicate and kernel, so no two threads write to the same sum
    kernels = out.shape[1]
    draws = rho.shape[1]
    for task in range(begin, end):
        r, i = task // kernels, task % kernels
        b = i % draws
        out[r, i] = 0.0
        for start in range(0, x.shape[0], CLIENT_TILE):
            tile = slice(start, start + CLIENT_TILE)
            _accumulate_tile(
                x[tile], few, start, r, b, rho[r, b], scale[i], phase[r, b],
                update[r, tile, i], share[tile], norm, like, out[r, i],
            )  # fmt: skip


@njit(error_model="numpy")
def _learn_kernel(x, y, share, rho, scale, phase, norm, weight, decay, step, loss, whole, like, theta, out, thetas):
    """Let one kernel of one replicate learn in several rounds, whose features stay in the cache."""
    # Features of all rounds; a round keeps the arrays of `_predict_tile`, and so its bits
    rounds, clients, width = x.shape
    maps, features = theta.shape
    projection = np.empty((rounds, clients, features), rho.dtype)
    z = np.empty((rounds, maps, clients, features), like.dtype)
    if whole:
        np.dot(x.reshape(rounds * clients, width), rho, projection.reshape(rounds * clients, features))
    for b in range(rounds):
        if not whole:
            np.dot(x[b], rho, projection[b])
        feature_map(projection[b], scale, phase, z[b])
    f, total = np.empty((maps, clients), like.dtype), np.empty(features, like.dtype)
    pull, by = np.empty(clients), np.empty(clients, like.dtype)
    narrow, pulled = np.empty((maps, features), like.dtype), np.empty((maps, features))
    for b in range(rounds):
        # Predict with theta as clients receive it
        for m in range(maps):
            for q in range(features):
                narrow[m, q], pulled[m, q] = theta[m, q], 0.0
                thetas[b, m, q] = narrow[m, q]
            np.dot(z[b, m], narrow[m], f[m])
        count = 0
        for k in range(clients):
            out[b, k] = norm * (f[0, k] + f[1, k] if maps == 2 else f[0, k])
            pull[k] = slope_of_one(loss, out[b, k], y[b, k]) * weight[b, k]
            by[k] = pull[k] * share[b, k]
            count += pull[k] * share[b, k] != 0.0
        # Gradients of all clients have the features above; those of some are computed as in `accumulate_gradients`
        if count == clients:
            for m in range(maps):
                np.dot(by, z[b, m], total)
                for q in range(features):
                    pulled[m, q] += norm * total[q]
        elif count:
            _accumulate_tile(x[b], None, 0, 0, 0, rho, scale, phase, pull, share[b], norm, like, pulled)
        for m in range(maps):
            for q in range(features):
                theta[m, q] -= step * (pulled[m, q] + decay[b] * thetas[b, m, q])


@njit_cached(nogil=True)
def learn_rounds(
    begin, end, x, y, share, rho, scale, phase, norm, weight, decay, step, loss, whole, like, theta, out, thetas
):
    """Let kernels learn in several rounds, each kernel of each replicate by itself.

    Parameters
    ----------
    begin, end, rho, scale, phase, norm : as in `accumulate_gradients`
    x : (B, K, d), in rho's precision
        Samples of B rounds; K is at most `CLIENT_TILE`.
    y, share : (B, K) float64
    weight : (R, N, B, K) float64
        Factor of each client's gradient.
    decay : (R, N, B) float64
        Factor of theta in the mean gradient.
    step : float
    loss : PointwiseLoss
    whole : bool
        Whether one product serves all rounds, see `same_product` of the bank.
    like : as in `accumulate_gradients`
    theta : (R, N, maps, D) float64
        Read, and written: theta <- theta - step * (sum_k share_k weight_k l'(f, y) z_k + decay theta) in each round.
    out : (R, N, B, K) float64, written
        Predictions.
    thetas : (R, N, B, maps, D) float64, written
        Theta before each round's step, rounded to the precision of the features.
    """
    # A task is one replicate and kernel
    kernels, draws = theta.shape[1], rho.shape[1]
    for task in range(begin, end):
        r, i = task // kernels, task % kernels
        b = i % draws
        _learn_kernel(
            x, y, share, rho[r, b], scale[i], phase[r, b], norm, weight[r, i], decay[r, i], step, loss, whole, like,
            theta[r, i], out[r, i], thetas[r, i],
        )  # fmt: skip


@njit(error_model="numpy")
def _descend_tile(x, few, start, r, b, y, share, rho, scale, phase, norm, step, lam, loss, theta, out, size):
    """Take a gradient step for a tile of clients on one kernel of one replicate."""
    # Features of the tile, (maps, clients, features)
    _, maps, features = theta.shape
    projection = np.empty((x.shape[0], features), rho.dtype)
    _project_samples(x, few, _number_range(start, x.shape[0]), r, b, rho, projection)
    z = np.empty((maps, x.shape[0], features), theta.dtype)
    feature_map(projection, scale, phase, z)
    # Steps are computed in float64 and rounded once to the precision of theta
    narrow = theta.dtype.type
    # Each client: predict with its own theta, then step unless it is absent
    for k in range(x.shape[0]):
        decay = narrow(1 - 2 * step[k] * lam)
        f = 0.0
        size[k] = 0.0
        for m in range(maps):
            product, square = _product_and_square(z[m, k], theta[k, m])
            f += norm * product
            size[k] += square
        out[k] = f
        # theta <- (1 - 2 step lam) theta - step l'(f, y) z
        if share[k] > 0:
            pull = narrow(step[k] * norm * slope_of_one(loss, f, y[k]))
            for m in range(maps):
                for q in range(features):
                    theta[k, m, q] = decay * theta[k, m, q] - pull * z[m, k, q]


@njit(fastmath={"contract", "nsz", "reassoc"})
def _product_and_square(z, theta):
    """The products theta'z and theta'theta, in one pass over theta."""
    product = square = z.dtype.type(0)
    for q in range(theta.size):
        product += theta[q] * z[q]
        square += theta[q] * theta[q]
    return product, square


@njit_cached(nogil=True)
def descend_clients(begin, end, x, few, y, share, rho, scale, phase, norm, step, lam, loss, theta, out, size):
    """Let every client take one gradient step on its own copy of every kernel; write the values before the step.

    Parameters
    ----------
    begin, end : int
        As in `accumulate_gradients`.
    x, few, rho, scale, phase, norm : as in `predict_kernels`
    y, share : (K,) float64
        A client with share 0 is absent and takes no step.
    step : (R, K, N) float64
    lam : float
    loss : PointwiseLoss
    theta : (R, N, K, maps, D), in the precision of the features
        Read, and written: theta <- theta - step * (l'(f, y) z + 2 lam theta).
    out, size : (R, K, N) float64, written
        Predictions and |theta|^2 before the step.
    """
    # A task is one replicate and kernel
    kernels = theta.shape[1]
    draws = rho.shape[1]
    for task in range(begin, end):
        r, i = task // kernels, task % kernels
        b = i % draws
        for start in range(0, x.shape[0], CLIENT_TILE):
            tile = slice(start, start + CLIENT_TILE)
            _descend_tile(
                x[tile], few, start, r, b, y[tile], share[tile], rho[r, b], scale[i], phase[r, b],
                norm, step[r, tile, i], lam, loss, theta[r, i, tile], out[r, tile, i], size[r, tile, i],
            )  # fmt: skip


_SUM = {"reassoc", "contract", "nsz"}  # sums may use vector lanes


@njit(fastmath=_SUM)
def feature_sums(theta, z, b):
    """theta'z_b and |theta|^2 for theta (maps, D) and the features z (maps, B, D) of sample b."""
    along, size = theta[0, 0] * z[0, b, 0], theta[0, 0] * theta[0, 0]
    for m in range(theta.shape[0]):
        for j in range(0 if m else 1, theta.shape[1]):
            along += theta[m, j] * z[m, b, j]
            size += theta[m, j] * theta[m, j]
    return along, size


@njit
def project_sample(x, omega, angle):
    """Write angle = omega'x of one sample x (d,) and omega (d, D)."""
    for j in range(angle.size):
        angle[j] = x[0] * omega[0, j]
    for k in range(1, x.size):
        for j in range(angle.size):
            angle[j] += x[k] * omega[k, j]


@njit
def descend_by_sample(theta, z, b, pull, decay):
    """Theta <- decay * theta - pull * z_b, in theta's precision."""
    for m in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            theta[m, j] = decay * theta[m, j] - pull * z[m, b, j]


@njit(error_model="numpy")
def _follow_one_kernel(x, omega, phase, norm, y, eta, lam, loss, theta, f, squared_norm):
    """One kernel of one replicate; see `FeatureBank.follow`."""
    angle = np.dot(x, omega)
    z = np.empty((theta.shape[0], angle.shape[0], angle.shape[1]), theta.dtype)
    feature_map(angle, angle.dtype.type(1), phase, z)
    narrow = theta.dtype.type
    for b in range(y.size):
        along, squared_norm[b] = feature_sums(theta, z, b)
        f[b] = norm * along
        pull, decay = narrow(eta[b] * norm * slope_of_one(loss, f[b], y[b])), narrow(1 - 2 * eta[b] * lam)
        descend_by_sample(theta, z, b, pull, decay)


@njit_cached(nogil=True)
def follow_stream(begin, end, x, omega, first, phase, norm, y, eta, lam, loss, theta, f, squared_norm):
    """Let kernels first, first + 1, ... of every replicate learn from the stream; see `FeatureBank.follow`.

    Parameters
    ----------
    begin, end : int
        Part of the R * n recursions, replicate by replicate.
    x : (B, d), in omega's precision
    omega : (R, n, d, D) float32 or float64
        Frequencies of these kernels; all other arrays have all N kernels.
    first : int
    phase : (R, N, D or 0)
    norm : float
    y, eta : (B,) float64
    lam : float
    loss : PointwiseLoss
    theta : (R, N, maps, D), written
    f, squared_norm : (R, B, N) float64, written
    """
    # A task is one replicate and kernel, which learns the whole stream
    kernels = omega.shape[1]
    for task in range(begin, end):
        r, j = task // kernels, task % kernels
        i = first + j
        _follow_one_kernel(
            x, omega[r, j], phase[r, i], norm, y, eta, lam, loss, theta[r, i], f[r, :, i], squared_norm[r, :, i]
        )


ROW_TILE = 256


@njit(error_model="numpy", fastmath=False)
def _tile_features(x, rho, scale, phase, norm, like, maps, z):
    """Features (B, P) of a tile of samples, normalised, in float64."""
    features = rho.shape[1]
    raw = np.empty((maps, x.shape[0], features), like.dtype)
    feature_map(np.dot(x, rho), scale, phase, raw)
    for m in range(maps):
        for b in range(x.shape[0]):
            for j in range(features):
                z[b, m * features + j] = norm * raw[m, b, j]


@njit(error_model="numpy")
def _add_tile(x, y, weight, rho, scale, phase, norm, like, gram, pull):
    """Add the moments of a tile, over its samples with non-zero weight."""
    # Copy the samples with weight; sqrt(weight) goes into both factors of z z'
    maps = 1 if phase.size else 2
    sample = np.empty_like(x)
    root = np.empty(x.shape[0])
    target = np.empty(x.shape[0])
    count = 0
    for b in range(x.shape[0]):
        if weight[b] != 0.0:
            root[count] = np.sqrt(weight[b])
            target[count] = root[count] * y[b]
            for q in range(x.shape[1]):
                sample[count, q] = x[b, q]
            count += 1
    # Features of the tile, and their products by BLAS
    if count:
        z = np.empty((count, pull.size))
        _tile_features(sample[:count], rho, scale, phase, norm, like, maps, z)
        for b in range(count):
            for j in range(pull.size):
                z[b, j] *= root[b]
        product, along = np.dot(z.T, z), np.dot(target[:count], z)
        # Add the tile's products to the sums
        for j in range(pull.size):
            pull[j] += along[j]
            for k in range(pull.size):
                gram[j, k] += product[j, k]


@njit_cached(nogil=True)
def accumulate_moments(begin, end, x, y, weight, rho, scale, phase, norm, like, chosen, gram, pull):
    """gram[r, i] = sum_b weight_b z z', pull[r, i] = sum_b weight_b y_b z of the chosen kernels.

    Parameters
    ----------
    begin, end : int
        As in `fkl.kernels.compiled.accumulate_gradients`.
    x : (R or 1, B, d), in rho's precision
    y, weight : (R or 1, B) float64
        Weights are >= 0.
    rho, scale, phase, norm : as in `fkl.kernels.compiled.predict_kernels`
    like : (0,)
        An empty array with the precision of the features.
    chosen : (R, N) bool
    gram : (R, N, P, P) float64, written
    pull : (R, N, P) float64, written
    """
    # A task is one replicate and kernel. Samples, targets or weights that all replicates share have one row, hence %
    # below
    kernels = pull.shape[1]
    draws = rho.shape[1]
    for task in range(begin, end):
        r, i = task // kernels, task % kernels
        b, s, u, v = i % draws, r % x.shape[0], r % y.shape[0], r % weight.shape[0]
        gram[r, i] = 0.0
        pull[r, i] = 0.0
        if chosen[r, i]:
            for start in range(0, x.shape[1], ROW_TILE):
                rows = slice(start, start + ROW_TILE)
                _add_tile(
                    x[s, rows], y[u, rows], weight[v, rows], rho[r, b], scale[i], phase[r, b], norm, like, gram[r, i],
                    pull[r, i],
                )  # fmt: skip


@njit(error_model="numpy", fastmath=_SUM)
def _gaussian_tile(x, rho, scale, phase, norm, like, theta, root, mean, spread):
    """Means and spreads of one kernel for a tile of samples."""
    z = np.empty((x.shape[0], theta.size))
    _tile_features(x, rho, scale, phase, norm, like, 1 if phase.size else 2, z)
    along, f = np.dot(z, root.T), np.dot(z, theta)
    for b in range(x.shape[0]):
        mean[b] = f[b]
        total = 0.0
        for j in range(theta.size):
            total += along[b, j] * along[b, j]
        spread[b] = total


@njit_cached(nogil=True)
def predict_gaussian(begin, end, x, rho, scale, phase, norm, like, theta, root, mean, spread):
    """mean[r, k, i] = theta[r, i]'z_i(x_k) and spread[r, k, i] = |root[r, i] z_i(x_k)|^2.

    Parameters
    ----------
    begin, end : int
        As in `accumulate_moments`.
    x : (K, d), in rho's precision
    rho, scale, phase, norm, like : as in `accumulate_moments`
    theta : (R, N, P) float64
    root : (R, N, P, P) float64
    mean, spread : (R, K, N) float64, written
    """
    # A task is one replicate and kernel; rows in tiles
    kernels = theta.shape[1]
    draws = rho.shape[1]
    for task in range(begin, end):
        r, i = task // kernels, task % kernels
        b = i % draws
        for start in range(0, x.shape[0], ROW_TILE):
            rows = slice(start, start + ROW_TILE)
            _gaussian_tile(
                x[rows], rho[r, b], scale[i], phase[r, b], norm, like, theta[r, i], root[r, i], mean[r, rows, i],
                spread[r, rows, i],
            )  # fmt: skip


@njit(error_model="numpy", fastmath=_SUM)
def _cholesky_inverse(gram, pull, noise, root, theta):
    """`factor_posterior` for one kernel; returns log det, and whether every pivot exceeds noise / 2."""
    # L, row by row; a pivot below noise / 2 is replaced, and `whole` reports it
    P = pull.size
    L = np.empty((P, P))
    logdet, whole = 0.0, True
    for j in range(P):
        for k in range(j + 1):
            total = gram[j, k]
            for q in range(k):
                total -= L[j, q] * L[k, q]
            if k < j:
                L[j, k] = total / L[k, k]
            else:
                total += noise
                whole = whole and total > 0.5 * noise
                L[j, j] = np.sqrt(total if total > 0.5 * noise else 0.5 * noise)
                logdet += 2 * np.log(L[j, j])
    for j in range(P):  # row j of L^-1: -(sum_{q < j} L_jq L^-1_q.) / L_jj
        for k in range(P):
            root[j, k] = 0.0
        for q in range(j):
            for k in range(q + 1):
                root[j, k] -= L[j, q] * root[q, k]
        for k in range(j):
            root[j, k] /= L[j, j]
        root[j, j] = 1 / L[j, j]
    # theta = root'(root pull) = A^-1 pull
    theta[:] = 0.0
    for j in range(P):
        along = 0.0
        for k in range(j + 1):
            along += root[j, k] * pull[k]
        for k in range(j + 1):
            theta[k] += along * root[j, k]
    return logdet, whole


@njit_cached(nogil=True)
def factor_posterior(begin, end, gram, pull, noise, root, theta, logdet, whole):
    """For A = gram + noise I = L L': root = L^-1, theta = A^-1 pull, log det A.

    Parameters
    ----------
    begin, end : int
        As in `accumulate_moments`.
    gram : (R, N, P, P) float64
        Symmetric; the lower triangle is read.
    pull : (R, N, P) float64
    noise : (R, N) float64
    root : (R, N, P, P) float64, written
    theta : (R, N, P) float64, written
    logdet : (R, N) float64, written
    whole : (R, N) bool, written
        False if a pivot is at most noise / 2, because gram has negative eigenvalues; the other outputs are then
        invalid.
    """
    # A task is one replicate and kernel
    kernels = pull.shape[1]
    for task in range(begin, end):
        r, i = task // kernels, task % kernels
        logdet[r, i], whole[r, i] = _cholesky_inverse(gram[r, i], pull[r, i], noise[r, i], root[r, i], theta[r, i])


# Compiled with parts of other modules: a0749585, see tests/test_compiled.py
