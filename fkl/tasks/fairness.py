"""Inequality of errors: the mean of the worst tenth of clients, the Gini coefficient, and both for sites."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def worst_tenth(errors: Array) -> Array:
    """Mean error of the worst 10 % of clients, rounded down, at least one: (R,) from (R, K)."""
    worst = max(1, errors.shape[1] // 10)
    return np.sort(errors, axis=1)[:, -worst:].mean(axis=1)


def gini(errors: Array) -> Array:
    """Gini coefficient sum_ij |e_i - e_j| / (2 K sum_i e_i), (R,) from (R, K): 0 for equal errors, always below 1.

    For e_1 <= ... <= e_K it is 2 sum_i i e_i / (K sum_i e_i) - (K + 1) / K.
    """
    K = errors.shape[1]
    total = errors.sum(axis=1)
    weighted = (np.sort(errors, axis=1) * np.arange(1.0, K + 1)).sum(axis=1)  # bits of a product would depend on R
    share = 2 * weighted / (K * np.where(total > 0, total, 1)) - (K + 1) / K
    return np.where((total == 0) | (errors == errors[:, :1]).all(axis=1), 0.0, share)


def fairness(name: str, sums: Array, count: NDArray[np.int64], site: NDArray[np.int64]) -> dict[str, Array]:
    """Columns of a summary: both figures for clients and, if there are several sites, for sites.

    Parameters
    ----------
    name : str
        Name of the error.
    sums : (R, K)
        Sums over each client's samples.
    count : (K,)
        Samples of each client; a client without samples has no error.
    site : (K,)
        Site of each client.
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
