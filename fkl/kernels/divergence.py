"""How much two kernels differ: Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023), eq. (27)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from fkl.errors import require

Array = NDArray[np.float64]


def divergence(families: Sequence[str], scales: Array) -> Array:
    """Delta(k_i, k_j) = integral of |k_i(rho) - k_j(rho)|^2 over the real line, in closed form.

    Parameters
    ----------
    families : sequence of N str
        "rbf" for exp(-scale^2 rho^2 / 2), "laplacian" for exp(-scale |rho|).
    scales : (N,)

    Returns
    -------
    (N, N)
        Symmetric, 0 on the diagonal.

    Raises
    ------
    fkl.errors.BadValue
        For a kernel that is not integrable.
    """
    for family in families:
        require(family in ("rbf", "laplacian"), "kernels.family", family, "rbf or laplacian: divergences are integrals")
    rbf = np.array([family == "rbf" for family in families])
    own = np.where(rbf, np.sqrt(np.pi) / scales, 1 / scales)  # integral of k_i^2
    cross = np.empty((scales.size, scales.size))  # integral of k_i k_j
    s, r = scales[rbf], scales[~rbf]
    cross[np.ix_(rbf, rbf)] = np.sqrt(2 * np.pi) / np.hypot(s[:, None], s)
    cross[np.ix_(~rbf, ~rbf)] = 2 / (r[:, None] + r)
    mixed = np.sqrt(2 * np.pi) / s[:, None] * erfcx(r / (np.sqrt(2) * s[:, None]))
    cross[np.ix_(rbf, ~rbf)] = mixed
    cross[np.ix_(~rbf, rbf)] = mixed.T
    delta = own[:, None] + own - 2 * cross
    np.fill_diagonal(delta, 0)
    return np.maximum(delta, 0)  # neighbours on a fine grid differ by less than their integrals' rounding
