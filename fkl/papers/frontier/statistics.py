"""Who is beaten by whom: the Pareto front, ranks, and intervals that know the replicates only."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap, rankdata

LEVEL = 0.95
RESAMPLES = 9999
SEED = 0

Array = NDArray[np.float64]


def pareto_front(cost: Array, error: Array) -> NDArray[np.bool_]:
    """Which of n points are beaten by none: none is as good in both and better in one.

    Parameters
    ----------
    cost, error : (n,)
        Both the smaller, the better.

    Returns
    -------
    (n,) bool
        Points that coincide are on the front together.
    """
    as_good = (cost <= cost[:, None]) & (error <= error[:, None])
    better = (cost < cost[:, None]) | (error < error[:, None])
    beaten = (as_good & better).any(axis=1)
    return np.logical_not(beaten)


def interval(values: Array) -> tuple[float, float]:
    """Bootstrap interval of a mean: bias-corrected and accelerated, `RESAMPLES` resamples of the n values.

    The same values give the same interval: the resamples are drawn from a seed of their own.

    Parameters
    ----------
    values : (n,)

    Returns
    -------
    low, high : float
        Both the value itself where all are the same; NaN for fewer than two.
    """
    if len(values) < 2:
        return np.nan, np.nan
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    rng = np.random.default_rng(SEED)
    drawn = bootstrap(  # `random_state` is called `rng` from scipy 1.15 on, and goes on under its old name
        (values,), np.mean, confidence_level=LEVEL, n_resamples=RESAMPLES, method="BCa", random_state=rng
    )
    low, high = drawn.confidence_interval
    return float(low), float(high)


def ranks(error: Array) -> Array:
    """Rank of each column in its row, 1 for the least; those that tie share the mean of their places."""
    return rankdata(error, method="average", axis=1)
