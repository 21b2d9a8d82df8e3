"""How unequal errors are: the mean of the worst tenth of clients, the Gini coefficient, and both for sites."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def worst_tenth(errors: Array) -> Array:
    """Mean error of the worst 10 % of clients, rounded down, one at least: (R,) of (R, K)."""
    worst = max(1, errors.shape[1] // 10)
    return np.sort(errors, axis=1)[:, -worst:].mean(axis=1)


def gini(errors: Array) -> Array:
    """Gini coefficient sum_ij |e_i - e_j| / (2 K sum_i e_i), (R,) of (R, K): 0 of equal errors, below 1 of any.

    Of e_1 <= ... <= e_K it is 2 sum_i i e_i / (K sum_i e_i) - (K + 1) / K.
    """
    K = errors.shape[1]
    total = errors.sum(axis=1)
    weighted = (np.sort(errors, axis=1) * np.arange(1.0, K + 1)).sum(axis=1)  # no product, whose bits depend on R
    share = 2 * weighted / (K * np.where(total > 0, total, 1)) - (K + 1) / K
    return np.where((total == 0) | (errors == errors[:, :1]).all(axis=1), 0.0, share)


def fairness(name: str, sums: Array, count: NDArray[np.int64], site: NDArray[np.int64]) -> dict[str, Array]:
    """Columns of a summary: both figures of clients and, where there are several sites, of sites.

    Parameters
    ----------
    name : str
        Of the error.
    sums : (R, K)
        Over each client's samples.
    count : (K,)
        Samples of each client; a client that has none has no error.
    site : (K,)
        Of each client.
    """
    told = _worst_and_gini(name, "", sums, count)
    if len(set(site.tolist())) > 1:
        belongs = [site == one for one in np.unique(site)]
        by_site = np.stack([np.ascontiguousarray(sums[:, own]).sum(axis=1) for own in belongs], axis=1)
        told |= _worst_and_gini(name, "_sites", by_site, np.array([count[own].sum() for own in belongs]))
    return told


def _worst_and_gini(name: str, what: str, sums: Array, count: NDArray[np.int64]) -> dict[str, Array]:
    judged = count > 0
    if not judged.any():
        return {f"{name}_{figure}{what}": np.full(len(sums), np.nan) for figure in ("worst_tenth", "gini")}
    errors = np.ascontiguousarray(sums[:, judged] / count[judged])
    return {f"{name}_worst_tenth{what}": worst_tenth(errors), f"{name}_gini{what}": gini(errors)}
