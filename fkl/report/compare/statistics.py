"""Statistics of comparisons: the Pareto front, ranks, paired tests, and Student's intervals."""

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series
from scipy.special import ndtr, stdtrit  # scipy.stats has the same functions, and takes half a second to import

from fkl.basics.arrays import Array

LEVEL = 0.95
MOST_EXACT = 50
"""Largest number of differences for an exact p, from all combinations of signs."""


def pareto_front(cost: Array, error: Array) -> NDArray[np.bool_]:
    """Points on the Pareto front: no other point is as good in both values and better in one.

    Parameters
    ----------
    cost, error : (n,)
        Smaller is better in both.

    Returns
    -------
    (n,) bool
        Points that coincide are on the front together.
    """
    as_good = (cost <= cost[:, None]) & (error <= error[:, None])
    better = (cost < cost[:, None]) | (error < error[:, None])
    beaten = (as_good & better).any(axis=1)
    return np.logical_not(beaten)


def ranks(error: Array) -> Array:
    """Rank of each column in its row, 1 for the least; ties share their mean rank."""
    return DataFrame(error).rank(axis=1).to_numpy()


def half_width(values: Array) -> float:
    """Half of Student's interval of a mean, at `LEVEL`.

    Parameters
    ----------
    values : (n,)

    Returns
    -------
    float
        NaN for fewer than two values.

    Examples
    --------
    >>> round(half_width(np.array([1.0, 2.0, 3.0])), 4)
    2.4841
    """
    n = len(values)
    return float(stdtrit(n - 1, (1 + LEVEL) / 2) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def student_interval(values: Array) -> tuple[float, float]:
    """Student's interval of a mean, at `LEVEL`; NaN for fewer than two values."""
    half = half_width(values)
    return float(np.mean(values) - half), float(np.mean(values) + half)


def signed_ranks(difference: Array) -> tuple[float, float]:
    """Wilcoxon's signed-rank test, two-sided: the null hypothesis is that differences are symmetric around 0.

    Parameters
    ----------
    difference : (n,)
        Zeros do not count; infinite ones have the highest rank, and ties their mean rank.

    Returns
    -------
    favour : float
        Sum of the signed ranks, above 0 where differences are.
    p : float
        Exact up to `MOST_EXACT` differences, by the distribution of the sum over all signs; the normal approximation
        for more. 1 if all are 0. NaN if there are fewer than two, or all are the same finite number: nothing is then
        random, and repetitions are no evidence.
    """
    moved = difference[difference != 0]
    if not len(moved):
        return 0.0, 1.0 if len(difference) > 1 else np.nan
    rank = Series(np.abs(moved)).rank().to_numpy()
    favour = float(np.sign(moved) @ rank)
    if len(difference) < 2 or (np.isfinite(difference).all() and np.ptp(difference) == 0):
        return favour, np.nan
    if len(moved) > MOST_EXACT:
        return favour, float(2 * ndtr(-abs(favour) / np.sqrt(np.square(rank).sum())))
    sums = np.ones(1)  # probability of each sum of the ranks of positive signs, in halves of a rank
    for doubled in np.rint(2 * rank).astype(int):
        longer = np.zeros(len(sums) + doubled)
        longer[: len(sums)] += sums / 2
        longer[doubled:] += sums / 2
        sums = longer
    least = round(rank.sum() - abs(favour))  # twice the smaller sum of ranks
    return favour, min(1.0, 2 * float(sums[: least + 1].sum()))


def holm(p: Array) -> Array:
    """P values after Holm's correction for this number of tests.

    Parameters
    ----------
    p : (n,)
        NaN for missing tests, which do not count.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    corrected = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return corrected
