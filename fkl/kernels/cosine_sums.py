"""Sums of cosines over many samples, for methods whose features have a phase and are drawn once.

This is a separate file because importing it compiles these loops, and other methods should not wait for that.
"""

import numpy as np
from numba import njit

from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.compiled import _FAR

_CONTRACT = {"contract", "nsz"}  # FMA allowed; no reassociation, which would undo the range reduction

_F = np.float32
# pi in three parts, like pi/2 in `compiled`, and a minimax polynomial in squares on [-pi/2, pi/2] (error 2.4e-10)
_ONE_OVER_PI = _F(1 / np.pi)
_PI_HIGH, _PI_MIDDLE, _PI_LOW = _F(2 * 1.5703125), _F(2 * 4.837512969970703125e-4), _F(2 * 7.549789948768648e-8)
_K1, _K2, _K3 = _F(-4.99999995e-1), _F(4.16666407e-2), _F(-1.38884035e-3)
_K4, _K5 = _F(2.47618862e-5), _F(-2.60771051e-7)
_ONE = _F(1)


@njit(fastmath=_CONTRACT)
def _fast_cosine(x):
    """Cosine by one polynomial over half a turn, in 2/3 of `_sincos`'s time; errors up to 1.4e-7, mostly 3e-8."""
    halves = np.rint(x * _ONE_OVER_PI)
    r = ((x - halves * _PI_HIGH) - halves * _PI_MIDDLE) - halves * _PI_LOW
    r2 = r * r
    c = _ONE + r2 * (_K1 + r2 * (_K2 + r2 * (_K3 + r2 * (_K4 + r2 * _K5))))
    return -c if (np.int32(halves) & 1) != 0 else c


@njit(fastmath=False)
def _sum_with_far(angle, phase, alpha):
    """sum_k alpha[k] cos(angle[k] + phase[k]) for large angles, by the C library, which is exact for all angles."""
    total = _F(0)
    for k in range(alpha.size):
        total += alpha[k] * _F(np.cos(np.float64(angle[k] + phase[k])))
    return total


@njit_cached(
    "void(float32[:, ::1], float32[::1], float32[::1], float64, float64[::1])",  # compiled now, not inside a clock
    fastmath=_CONTRACT | {"reassoc"},
    nogil=True,
)
def add_cosines(angle, phase, alpha, factor, out):
    """out[i] <- factor out[i] + sum_k alpha[k] cos(angle[i, k] + phase[k]), in place.

    Parameters
    ----------
    angle : (n, D) float32
    phase, alpha : (D,) float32
    factor : float
    out : (n,) float64
    """
    for i in range(angle.shape[0]):
        # The squares show whether any angle is so large that the fast cosine would be wrong
        total, squares = _F(0), _F(0)
        for k in range(phase.size):
            x = angle[i, k] + phase[k]
            squares += x * x
            total += alpha[k] * _fast_cosine(x)
        # Then this row's sum is computed again, with exact cosines
        if not squares <= _FAR * _FAR:
            total = _sum_with_far(angle[i], phase, alpha)
        out[i] = factor * out[i] + total


@njit_cached(
    "void(float32[::1], int32[::1], int64[::1], float32[:, ::1], float32[::1], float32[::1], float64, float64[::1])",
    fastmath=_CONTRACT | {"reassoc"},
    nogil=True,
)
def add_sparse_cosines(data, indices, indptr, w, phase, alpha, factor, out):
    """out[i] <- factor out[i] + sum_k alpha[k] cos(w[:, k]'x_i + phase[k]) for sparse rows x_i, in place.

    The angles of one row at a time are computed here, so they stay in the innermost cache.

    Four entries are added at a time, so angles are read and written a quarter as often.

    Parameters
    ----------
    data, indices, indptr : (nnz,) float32, (nnz,) int32, (n + 1,) int64
        Rows as in a `csr_array`.
    w : (d, D) float32
    phase, alpha : (D,) float32
    factor : float
    out : (n,) float64
    """
    angle, nothing = np.empty_like(phase), np.zeros_like(phase)
    for i in range(out.size):
        # Angles phase + w'x of one row
        for k in range(angle.size):  # entry by entry, which compiles faster
            angle[k] = phase[k]
        # Four entries at a time, then the remaining ones
        p, end = indptr[i], indptr[i + 1]
        while p + 4 <= end:
            x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            w0, w1, w2, w3 = w[indices[p]], w[indices[p + 1]], w[indices[p + 2]], w[indices[p + 3]]
            for k in range(angle.size):
                angle[k] += x0 * w0[k] + x1 * w1[k] + x2 * w2[k] + x3 * w3[k]
            p += 4
        for q in range(p, end):
            x0, w0 = data[q], w[indices[q]]
            for k in range(angle.size):
                angle[k] += x0 * w0[k]
        # Sum of the cosines; with a far angle, again by the exact cosines
        total, squares = _F(0), _F(0)
        for k in range(angle.size):
            squares += angle[k] * angle[k]
            total += alpha[k] * _fast_cosine(angle[k])
        if not squares <= _FAR * _FAR:
            total = _sum_with_far(angle, nothing, alpha)
        out[i] = factor * out[i] + total


# Compiled with parts of other modules: 4dcc709a, see tests/test_compiled.py
