"""Exact kernels on a stream: online kernel regression as triangular systems, one for each kernel."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.pointwise import SQUARED, PointwiseLoss
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.compiled_losses import slope_of_one
from fkl.kernels.dictionary import FAMILIES, Dictionary
from fkl.kernels.threads import share_work

TILE = 256
"""Earlier samples that are processed together: their distances to one sample and their coefficients fit in the
cache."""

RBF, LAPLACIAN, POLYNOMIAL = range(3)  # as in FAMILIES, for compiled code

_LEAST = -708.0  # below it, exp is subnormal and set to 0
_WHOLE = 1.5 * 2.0**52  # adding a number to it rounds the number to an integer in the lowest bits
_ONE_OVER_LN2 = 1 / np.log(2)
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # ln 2, with a short first part
_BIAS, _MANTISSA = 1023, 52  # bias of a float64's exponent, and number of bits below it


def substitute_block(
    dictionary: Dictionary, x: Array, y: Array, eta: Array, a: Array, loss: PointwiseLoss = SQUARED
) -> NDArray[np.float64]:
    """Run a block of B rounds: f_i(x_t) = sum_{s<t} a_is k_i(x_t, x_s), a_it = -eta_t l'(f_i(x_t), y_t) / 2.

    Parameters
    ----------
    dictionary : Dictionary
        Dictionary of N exact kernels.
    x : (n + B, d)
        All samples up to the last of the block.
    y, eta : (B,)
        Targets and step sizes of the block.
    a : (N, T) float64
        Coefficients; those of samples n to n + B - 1 are written.
    loss : PointwiseLoss
        l.

    Returns
    -------
    (B, N)
        Predictions, each made before its target was used.
    """
    # Contiguous samples, and a rate per kernel: Gaussians have exp(-rate |.|^2), Laplacians exp(-rate |.|_1)
    samples = np.ascontiguousarray(x, np.float64)
    families = np.array([FAMILIES.index(name) for name in dictionary.families])
    scales = dictionary.scales
    rates = np.where(families == RBF, scales**2 / 2, scales)
    y, elements, blocks = np.ascontiguousarray(y), len(y) * len(x) * dictionary.N, []
    # Kernels of one family at a time, because a family has one distance
    for family in np.unique(families):
        some = np.flatnonzero(families == family)
        f, within, weights = np.zeros((len(y), len(some))), np.empty((len(y), len(y))), a[some[0] : some[-1] + 1]
        # First the contribution of all samples before the block, for all of the block's samples at once
        share_work(_add_earlier, len(y), elements, family, rates[some], samples, weights, within, f)
        # Then within the block, sample by sample, because each coefficient depends on the predictions before it
        share_work(
            _substitute_kernels,
            len(some),
            elements,
            family,
            rates[some],
            y,
            eta,
            loss,
            len(x) - len(y),
            within,
            weights,
            f,
        )
        blocks.append(f)
    return np.concatenate(blocks, axis=1)


@njit(error_model="numpy")
def _kernel_argument(family, x, others, out):
    """Argument of a family's kernels for two samples: |x - x'|_2^2, |x - x'|_1, or x'x'."""
    for s in range(out.size):
        out[s] = 0.0
        for k in range(x.size):
            if family == RBF:
                out[s] += (x[k] - others[s, k]) ** 2
            elif family == LAPLACIAN:
                out[s] += abs(x[k] - others[s, k])
            else:
                out[s] += x[k] * others[s, k]


@njit(fastmath={"contract", "nsz"})  # no reassociation, which would undo the rounding
def _negative_exponential(x):
    """exp(x) for x <= 0, with relative error 4e-16: 2^k exp(r) with |r| <= ln 2 / 2, exp(r) by its series.

    It has no branches or calls, so loops that sum it are vectorised.
    """
    # k = round(x / ln 2), by adding and subtracting a large number
    shifted = x * _ONE_OVER_LN2 + _WHOLE
    k = shifted - _WHOLE
    # r = x - k ln 2, with ln 2 in two parts, so r keeps its digits
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    # exp(r) by its series, in three parts that do not wait for each other
    low = (1 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800)) + r4 * (1 / 479001600)
    # 2^k from the bits of k
    power = np.int64((np.float64(shifted).view(np.int64) + _BIAS) << _MANTISSA).view(np.float64)
    return 0.0 if x < _LEAST else power * (low + r4 * (middle + r4 * high))


@njit(fastmath={"reassoc", "contract", "nsz"})
def _weighted_kernel_sum(family, rate, separation, a):
    """sum_s k(x, x_s) a_s of one kernel."""
    total = 0.0
    if family == POLYNOMIAL:
        for s in range(a.size):
            total += separation[s] ** rate * a[s]
    else:
        for s in range(a.size):
            total += _negative_exponential(-rate * separation[s]) * a[s]
    return total


@njit_cached(nogil=True)
def _add_earlier(begin, end, family, rate, x, a, within, f):
    """For some of a block's samples, the contribution to f of the samples before the block, and arguments within it."""
    # B samples of the block, n samples before it
    B, N = f.shape
    n = x.shape[0] - B
    separation = np.empty(TILE)
    for b in range(begin, end):
        # Tile by tile, so distances stay in the cache and are used for all kernels
        for start in range(0, n, TILE):
            tile = slice(start, min(start + TILE, n))
            some = separation[: tile.stop - start]
            _kernel_argument(family, x[n + b], x[tile], some)
            for i in range(N):
                f[b, i] += _weighted_kernel_sum(family, rate[i], some, a[i, tile])
        # Distances within the block, which `_substitute_kernels` needs
        _kernel_argument(family, x[n + b], x[n : n + b], within[b, :b])


@njit_cached(nogil=True)
def _substitute_kernels(begin, end, family, rate, y, eta, loss, n, within, a, f):
    """For some kernels of one family, the contribution of the block itself, and its n + b-th coefficients."""
    for i in range(begin, end):
        for b in range(y.size):
            f[b, i] += _weighted_kernel_sum(family, rate[i], within[b, :b], a[i, n : n + b])
            a[i, n + b] = -eta[b] * slope_of_one(loss, f[b, i], y[b]) / 2


# Compiled with parts of other modules: cb6b2b81, see tests/test_compiled.py
