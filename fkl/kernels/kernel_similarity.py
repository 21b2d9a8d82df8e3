"""Kernel divergences: Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023), eqs. (26), (27).

Delta(k_i, k_j) = integral of |k_i(rho) - k_j(rho)|^2 over R^d is <k_i, k_i> + <k_j, k_j> - 2 <k_i, k_j>. Both families
are products over the coordinates, so each inner product is the d-th power of one over the line.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from fkl.basics.errors import require

Array = NDArray[np.float64]


def log_inner_products(families: Sequence[str], scales: Array, dimension: int) -> Array:
    """Logarithm of <k_i, k_j> = integral of k_i(rho) k_j(rho) over R^d, in closed form.

    Parameters
    ----------
    families : sequence of N str
        "rbf" for exp(-scale^2 |rho|_2^2 / 2), "laplacian" for exp(-scale |rho|_1).
    scales : (N,)
    dimension : int
        d; from about 60 on the powers overflow a float64, but their logarithms do not.

    Returns
    -------
    (N, N)
        Symmetric.

    Raises
    ------
    fkl.basics.errors.BadValue
        For a kernel that is not integrable.
    """
    for family in families:
        require(family in ("rbf", "laplacian"), "kernels.family", family, "rbf or laplacian: divergences are integrals")
    rbf = np.array([family == "rbf" for family in families])
    line = np.empty((scales.size, scales.size))
    s, r = scales[rbf], scales[~rbf]
    line[np.ix_(rbf, rbf)] = np.log(2 * np.pi) / 2 - np.log(np.hypot(s[:, None], s))
    line[np.ix_(~rbf, ~rbf)] = np.log(2) - np.log(r[:, None] + r)
    mixed = np.log(2 * np.pi) / 2 - np.log(s[:, None]) + np.log(erfcx(r / (np.sqrt(2) * s[:, None])))
    line[np.ix_(rbf, ~rbf)] = mixed
    line[np.ix_(~rbf, rbf)] = mixed.T
    return dimension * line


def farthest_first(log_inner: Array, log_total: Array, members: int) -> tuple[NDArray[np.int64], Array]:
    """Order kernels by their total divergence to a set S, without the digits that all of them share.

    The sum over m in S of Delta(k_m, k_j) is that of <k_m, k_m>, the same for every j, and |S| <k_j, k_j> - 2 sum_m
    <k_m, k_j>. With bandwidths from 0.01 to 100, and d of at least 8, the first sum exceeds the difference between two
    j by more digits than a float64 has. It is therefore left out, and the rest is compared by sign and logarithm.

    Parameters
    ----------
    log_inner : (N, N)
        Logarithms of the inner products.
    log_total : (..., N)
        Logarithm of the sum over S of <k_m, k_j>.
    members : int
        |S|.

    Returns
    -------
    sign : (..., N) int
        Sign of that rest, -1, 0 or 1.
    size : (..., N)
        Between two rests with the same sign, the one with the larger `size` is larger.
    """
    own = np.log(members) + np.diag(log_inner)
    twice = np.log(2) + log_total
    apart = np.subtract(own, twice, where=np.isfinite(twice), out=np.zeros(twice.shape))
    sign = np.sign(apart).astype(np.int64)
    shrunk = np.log(-np.expm1(-np.abs(apart)), where=sign != 0, out=np.zeros(twice.shape))
    size = np.multiply(sign, np.maximum(own, twice) + shrunk, where=sign != 0, out=np.zeros(twice.shape))
    return sign, size
