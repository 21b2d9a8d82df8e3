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
        Symmetric, 0 on the diagonal, above 0 where two kernels differ; all but the last digits are right.

    Raises
    ------
    fkl.errors.BadValue
        For a kernel that is not integrable.
    """
    for family in families:
        require(family in ("rbf", "laplacian"), "kernels.family", family, "rbf or laplacian: divergences are integrals")
    rbf = np.array([family == "rbf" for family in families])
    delta = np.empty((scales.size, scales.size))
    s, r = scales[rbf], scales[~rbf]
    # Within a family, as products: neighbours on a fine grid differ by less than their integrals' rounding.
    a, b = s[:, None], s
    root, product = np.hypot(a, b), a * b
    excess = (a - b) ** 2 * (a**2 + b**2 + 4 * product)  # ((a + b) root)^2 - 8 product^2
    delta[np.ix_(rbf, rbf)] = np.sqrt(np.pi) * excess / (product * root * ((a + b) * root + np.sqrt(8) * product))
    delta[np.ix_(~rbf, ~rbf)] = (r[:, None] - r) ** 2 / (r[:, None] * r * (r[:, None] + r))
    # Between families it is never below 3 % of the kernels' own integrals.
    cross = np.sqrt(2 * np.pi) / s[:, None] * erfcx(r / (np.sqrt(2) * s[:, None]))
    mixed = np.sqrt(np.pi) / s[:, None] + 1 / r - 2 * cross
    delta[np.ix_(rbf, ~rbf)] = mixed
    delta[np.ix_(~rbf, rbf)] = mixed.T
    return delta
