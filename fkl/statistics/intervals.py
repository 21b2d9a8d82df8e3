"""Intervals of a mean and of a rate, signed ranks, and Holm's correction."""

import numpy as np
from pandas import Series
from scipy.special import ndtr, ndtri, stdtrit  # scipy.stats also has them, but takes half a second to import

from fkl.basics.arrays import Array

LEVEL = 0.05
"""Level of all tests."""
CONFIDENCE = 1 - LEVEL
MOST_EXACT = 50
"""Largest number of differences for which p is exact, from all combinations of signs."""


def student_quantile(level: float, nu: float) -> float:
    """Quantile of Student's t; of the normal distribution for infinite degrees of freedom."""
    return float(ndtri(level) if np.isinf(nu) else stdtrit(nu, level))


def half_width(values: Array) -> float:
    """Half width of Student's interval of a mean, at level `CONFIDENCE`.

    Parameters
    ----------
    values : (n,)

    Returns
    -------
    float
        NaN if there are fewer than two values or one is not finite.

    Examples
    --------
    >>> round(half_width(np.array([1.0, 2.0, 3.0])), 4)
    2.4841
    """
    n = len(values)
    if n < 2 or not np.isfinite(values).all():
        return np.nan
    return float(student_quantile((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))


def student_interval(values: Array) -> tuple[float, float]:
    """Student's interval of a mean, at level `CONFIDENCE`; NaN for fewer than two values."""
    half = half_width(values)
    return float(np.mean(values) - half), float(np.mean(values) + half)


def wilson_interval(k: int, S: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval (1927) for a rate that was k of S.

    Its centre is (k + z^2/2)/(S + z^2), and its half width z sqrt(k(S-k)/S + z^2/4)/(S + z^2).

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(1, 10)]
    [0.018, 0.404]
    """
    z = ndtri((1 + level) / 2)
    half = z * np.sqrt(k * (S - k) / S + z**2 / 4)
    low, high = ((k + z**2 / 2 + side * half) / (S + z**2) for side in (-1, 1))
    return max(0.0, float(low)), min(1.0, float(high))


def signed_ranks(difference: Array) -> tuple[float, float]:
    """Wilcoxon's signed-rank test, two-sided: the null hypothesis is that differences are symmetric around 0.

    Parameters
    ----------
    difference : (n,)
        Zeros are ignored, infinite differences have the highest rank, and equal ones their mean rank.

    Returns
    -------
    favour : float
        Sum of the signed ranks, above 0 if differences tend to be above 0.
    p : float
        Exact for up to `MOST_EXACT` differences, from the sums of all combinations of signs; the normal approximation
        for more. 1 if all differences are 0. NaN if there are fewer than two, or all are the same finite number,
        because repetitions without chance are no evidence.
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


def holm_correction(p: Array) -> Array:
    """P values after Holm's correction for the number of tests.

    Parameters
    ----------
    p : (n,)
        NaN for missing tests, which are not counted.

    Examples
    --------
    >>> holm_correction(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    corrected = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return corrected
