"""Compiled products of random features: second moments of samples, and each kernel's Gaussian prediction.

As in `fkl.kernels.compiled_bank`, work is divided into tiles of fixed shape, features of a tile stay in the cache and
never travel through main memory, and no result depends on the number of threads. Features are computed in the bank's
precision and multiplied in float64, because the sums are inverted later.
"""

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  numba's np.dot calls it; loaded here to let threads be capped
from numba import njit

from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.compiled_bank import feature_map

ROW_TILE = 256
_SUM = {"reassoc", "contract", "nsz"}  # sums may use vector lanes


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
    """Add a tile's moments over the samples with non-zero weight."""
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
    if count:
        z = np.empty((count, pull.size))
        _tile_features(sample[:count], rho, scale, phase, norm, like, maps, z)
        for b in range(count):
            for j in range(pull.size):
                z[b, j] *= root[b]
        product, along = np.dot(z.T, z), np.dot(target[:count], z)
        for j in range(pull.size):
            pull[j] += along[j]
            for k in range(pull.size):
                gram[j, k] += product[j, k]


@njit_cached(nogil=True)
def moments(begin, end, x, y, weight, rho, scale, phase, norm, like, chosen, gram, pull):
    """gram[r, i] = sum_b weight_b z z', pull[r, i] = sum_b weight_b y_b z of the chosen kernels.

    Parameters
    ----------
    begin, end : int
        As in `fkl.kernels.compiled_bank.accumulate`.
    x : (R or 1, B, d), in rho's precision
    y, weight : (R or 1, B) float64
        Weights are >= 0.
    rho, scale, phase, norm : as in `fkl.kernels.compiled_bank.predict`
    like : (0,)
        Its precision is that of the features.
    chosen : (R, N) bool
    gram : (R, N, P, P) float64, written
    pull : (R, N, P) float64, written
    """
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
def gaussian(begin, end, x, rho, scale, phase, norm, like, theta, root, mean, spread):
    """mean[r, k, i] = theta[r, i]'z_i(x_k) and spread[r, k, i] = |root[r, i] z_i(x_k)|^2.

    Parameters
    ----------
    begin, end : int
        As in `moments`.
    x : (K, d), in rho's precision
    rho, scale, phase, norm, like : as in `moments`
    theta : (R, N, P) float64
    root : (R, N, P, P) float64
    mean, spread : (R, K, N) float64, written
    """
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
    """`posterior` for one kernel; returns log det, and whether every pivot is at least noise / 2."""
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
    theta[:] = 0.0
    for j in range(P):
        along = 0.0
        for k in range(j + 1):
            along += root[j, k] * pull[k]
        for k in range(j + 1):
            theta[k] += along * root[j, k]
    return logdet, whole


@njit_cached(nogil=True)
def posterior(begin, end, gram, pull, noise, root, theta, logdet, whole):
    """For A = gram + noise I = L L': root = L^-1, theta = A^-1 pull, log det A.

    Parameters
    ----------
    begin, end : int
        As in `moments`.
    gram : (R, N, P, P) float64
        Symmetric; the lower triangle is read.
    pull : (R, N, P) float64
    noise : (R, N) float64
    root : (R, N, P, P) float64, written
    theta : (R, N, P) float64, written
    logdet : (R, N) float64, written
    whole : (R, N) bool, written
        False if a pivot is below noise / 2, as for a gram with negative eigenvalues: the other outputs are then
        invalid.
    """
    kernels = pull.shape[1]
    for task in range(begin, end):
        r, i = task // kernels, task % kernels
        logdet[r, i], whole[r, i] = _cholesky_inverse(gram[r, i], pull[r, i], noise[r, i], root[r, i], theta[r, i])


# Compiled with parts of other modules: d65e9718, see tests/test_compiled.py
