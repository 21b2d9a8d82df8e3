"""Compiled loops for one learner that sees a stream, one sample after another.

Everything here works in the precision of theta: features of float32 or float64, sums in float64. Angles in float64
(heavy-tailed frequencies) are reduced in float64 before they become float32 features.

numba's cache of a compiled caller does not notice changes of a function that it calls: after editing this file or
`compiled.py`, `make clean` removes compiled code.
"""

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  numba's np.dot calls it; loaded here to let threads be capped
from numba import njit

from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.compiled_bank import feature_map

_SUM = {"reassoc", "contract", "nsz"}  # sums may use vector lanes


@njit(fastmath=_SUM)
def sums(theta, z, b):
    """theta'z_b and |theta|^2 for theta (maps, D) and the features z (maps, B, D) of sample b."""
    along, size = theta[0, 0] * z[0, b, 0], theta[0, 0] * theta[0, 0]
    for m in range(theta.shape[0]):
        for j in range(0 if m else 1, theta.shape[1]):
            along += theta[m, j] * z[m, b, j]
            size += theta[m, j] * theta[m, j]
    return along, size


@njit
def project(x, omega, angle):
    """Write angle = omega'x of one sample x (d,) and omega (d, D)."""
    for j in range(angle.size):
        angle[j] = x[0] * omega[0, j]
    for k in range(1, x.size):
        for j in range(angle.size):
            angle[j] += x[k] * omega[k, j]


@njit
def descend(theta, z, b, pull, decay):
    """Theta <- decay * theta - pull * z_b, in theta's precision."""
    for m in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            theta[m, j] = decay * theta[m, j] - pull * z[m, b, j]


@njit(error_model="numpy")
def _follow_one_kernel(x, omega, phase, norm, y, eta, lam, theta, f, squared_norm):
    """One kernel of one replicate; see `FeatureBank.follow`."""
    angle = np.dot(x, omega)
    z = np.empty((theta.shape[0], angle.shape[0], angle.shape[1]), theta.dtype)
    feature_map(angle, angle.dtype.type(1), phase, z)
    narrow = theta.dtype.type
    for b in range(y.size):
        along, squared_norm[b] = sums(theta, z, b)
        f[b] = norm * along
        pull, decay = narrow(2 * eta[b] * norm * (f[b] - y[b])), narrow(1 - 2 * eta[b] * lam)
        descend(theta, z, b, pull, decay)


@njit_cached(nogil=True)
def follow(begin, end, x, omega, first, phase, norm, y, eta, lam, theta, f, squared_norm):
    """Kernels first, first + 1, ... of every replicate follow the stream; see `FeatureBank.follow`.

    Parameters
    ----------
    begin, end : int
        Part of the R * n recursions, replicate by replicate.
    x : (B, d), in omega's precision
    omega : (R, n, d, D) float32 or float64
        Frequencies of these kernels; all other arrays are those of all N.
    first : int
    phase : (R, N, D or 0)
    norm : float
    y, eta : (B,) float64
    lam : float
    theta : (R, N, maps, D), written
    f, squared_norm : (R, B, N) float64, written
    """
    kernels = omega.shape[1]
    for task in range(begin, end):
        r, j = task // kernels, task % kernels
        i = first + j
        _follow_one_kernel(
            x, omega[r, j], phase[r, i], norm, y, eta, lam, theta[r, i], f[r, :, i], squared_norm[r, :, i]
        )


# Compiled with parts of other modules: d65e9718, see tests/test_compiled.py
