"""Inequality of errors: the mean of the worst tenth of clients, the Gini coefficient, and both for sites."""

import numpy as np
from numpy.typing import NDArray

from fkl.basics.large_arrays import blocks, empty

Array = NDArray[np.floating]


def worst_tenth(errors: Array) -> Array:
    """Mean error of the worst 10 % of clients, rounded down, at least one: (R,) from (R, K)."""
    worst = max(1, errors.shape[1] // 10)
    return _in_order(errors)[:, -worst:].mean(axis=1)


def gini(errors: Array) -> Array:
    """Gini coefficient sum_ij |e_i - e_j| / (2 K sum_i e_i), (R,) from (R, K): 0 for equal errors, always below 1.

    For e_1 <= ... <= e_K it is 2 sum_i i e_i / (K sum_i e_i) - (K + 1) / K.
    """
    K = errors.shape[1]
    total, ordered = errors.sum(axis=1), _in_order(errors)
    equal = ordered[:, 0] == ordered[:, -1]
    for some in blocks(K):
        ordered[:, some] *= np.arange(some.start + 1.0, some.stop + 1.0)
    weighted = ordered.sum(axis=1)  # bits of a product would depend on R
    share = 2 * weighted / (K * np.where(total > 0, total, 1)) - (K + 1) / K
    return np.where((total == 0) | equal, 0.0, share)


def _in_order(errors: Array) -> Array:
    """The errors of each replicate (R, K), the smallest first."""
    ordered = empty(errors.shape)
    ordered[...] = errors
    ordered.sort(axis=1)
    return ordered


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
    if (site != site[0]).any():
        belongs = [site == one for one in np.unique(site)]
        by_site = np.stack([np.ascontiguousarray(sums[:, own]).sum(axis=1) for own in belongs], axis=1)
        told |= _worst_and_gini(name, "_sites", by_site, np.array([count[own].sum() for own in belongs]))
    return told


def _worst_and_gini(name: str, what: str, sums: Array, count: NDArray[np.int64]) -> dict[str, Array]:
    judged = count > 0
    if not judged.any():
        return {f"{name}_{figure}{what}": np.full(len(sums), np.nan) for figure in ("worst_tenth", "gini")}
    errors, every = empty((len(sums), int(judged.sum()))), judged.all()
    for of_one, sums_of_one in zip(errors, sums, strict=True):
        np.divide(sums_of_one if every else sums_of_one[judged], count if every else count[judged], out=of_one)
    return {f"{name}_worst_tenth{what}": worst_tenth(errors), f"{name}_gini{what}": gini(errors)}
