"""Exact kernels on a stream: the triangular systems of online kernel regression, one for each kernel."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from fkl.kernels.dictionary import FAMILIES, Dictionary
from fkl.kernels.threads import wake_for

Array = NDArray[np.floating]

TILE = 256
"""Earlier samples that are taken together: their distances to one sample and their coefficients stay in the cache."""

RBF, LAPLACIAN, POLYNOMIAL = range(3)  # as in FAMILIES, for compiled code


def substitute(dictionary: Dictionary, x: Array, y: Array, eta: Array, a: Array) -> NDArray[np.float64]:
    """Play a block of B rounds: f_i(x_t) = sum_{s<t} a_is k_i(x_t, x_s), a_it = -eta_t (f_i(x_t) - y_t).

    Parameters
    ----------
    dictionary : Dictionary
        Its N kernels, exact.
    x : (n + B, d)
        All samples up to the block's last.
    y, eta : (B,)
        Targets and step sizes of the block.
    a : (N, T) float64
        Coefficients; those of samples n to n + B - 1 are written.

    Returns
    -------
    (B, N)
        Predictions, each made before its target was used.
    """
    samples = np.ascontiguousarray(x, np.float64)
    families = np.array([FAMILIES.index(name) for name in dictionary.families])
    scales = dictionary.scales
    rates = np.where(families == RBF, scales**2 / 2, scales)
    wake_for(len(y) * len(x) * dictionary.N)
    blocks = []
    for family in np.unique(families):
        some = np.flatnonzero(families == family)
        f = np.zeros((len(y), len(some)))
        _substitute(family, rates[some], samples, np.ascontiguousarray(y), eta, a[some[0] : some[-1] + 1], f)
        blocks.append(f)
    return np.concatenate(blocks, axis=1)


@njit(error_model="numpy")
def _separation(family, x, others, out):
    """What a family's kernels see of two samples: |x - x'|_2^2, |x - x'|_1, or x'x'."""
    for s in range(out.size):
        out[s] = 0.0
        for k in range(x.size):
            if family == RBF:
                out[s] += (x[k] - others[s, k]) ** 2
            elif family == LAPLACIAN:
                out[s] += abs(x[k] - others[s, k])
            else:
                out[s] += x[k] * others[s, k]


@njit(fastmath={"reassoc", "contract", "nsz"})
def _owed(family, rate, separation, a):
    """sum_s k(x, x_s) a_s of one kernel."""
    total = 0.0
    if family == POLYNOMIAL:
        for s in range(a.size):
            total += separation[s] ** rate * a[s]
    else:
        for s in range(a.size):
            total += np.exp(-rate * separation[s]) * a[s]
    return total


@njit(parallel=True, cache=True)
def _substitute(family, rate, x, y, eta, a, f):
    """`substitute` for the kernels of one family."""
    B, N = f.shape
    n = x.shape[0] - B
    for b in prange(B):  # what the block owes to the samples before it
        separation = np.empty(TILE)
        for start in range(0, n, TILE):
            tile = slice(start, min(start + TILE, n))
            some = separation[: tile.stop - start]
            _separation(family, x[n + b], x[tile], some)
            for i in range(N):
                f[b, i] += _owed(family, rate[i], some, a[i, tile])
    within = np.empty((B, B))
    for b in prange(B):
        _separation(family, x[n + b], x[n : n + b], within[b, :b])
    for i in prange(N):  # what it owes to itself
        for b in range(B):
            f[b, i] += _owed(family, rate[i], within[b, :b], a[i, n : n + b])
            a[i, n + b] = -eta[b] * (f[b, i] - y[b])
