"""Seeds that an effect needs, smallest detectable effects, and looks at an unfinished study."""

import numpy as np
from scipy.special import nctdtr, stdtrit
from scipy.stats import chi2

from fkl.statistics.differences import Difference, satterthwaite_freedom
from fkl.statistics.intervals import LEVEL, student_quantile

POWER = 0.8
PILOT = 5
"""Number of seeds in a pilot, and minimum number of judged seeds."""
LOOKS = {5: 0.005, 10: 0.010, 20: 0.015, 40: 0.020}
"""Level for each number of seeds at which a study may stop; the sum is 5 %, which bounds any test (Bonferroni)."""
MOST_SEEDS_SOUGHT = 1 << 30


def seeds_needed(sigma: float, effect: float, power: float = POWER, level: float = LEVEL, pairs: int = 1) -> int:
    """Smallest number S of seeds that detects an effect with this power.

    P(|T| > t_{1-level/2, S-1}) >= power, T noncentral t, nu = S - 1, ncp = L sqrt(S)/sigma, L = ln(1 + effect).

    Parameters
    ----------
    sigma : float
        Standard deviation over seeds of the paired log ratio. With a pilot, use `upper_limit`.
    effect : float
        Relative difference, e.g. 0.05 for 5 %.
    pairs : int
        Number of tests, by which the level is divided.

    Examples
    --------
    >>> seeds_needed(0.05, 0.05)
    11
    """
    L = np.log1p(effect)

    def enough(S: int) -> bool:
        nu, ncp = S - 1, L * np.sqrt(S) / sigma
        quantile = stdtrit(nu, 1 - level / pairs / 2)
        above, below = np.nan_to_num(nctdtr(nu, ncp, [quantile, -quantile]))  # NaN if it is below the smallest float
        return bool(1 - (above - below) >= power)

    if sigma == 0:
        return 2
    low, high = 1, 2
    while not enough(high) and high < MOST_SEEDS_SOUGHT:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def upper_limit(s: float, seeds: int, sure: float = 0.8) -> float:
    """Upper limit of sigma, from the standard deviation s of a pilot's seeds (Browne 1995).

    The limit is s sqrt((S0 - 1) / chi2_{1-sure, S0-1}). With s itself, almost half of the studies would have less power
    than planned.

    Examples
    --------
    >>> round(upper_limit(1.0, 5), 2)
    1.56
    """
    return float(s * np.sqrt((seeds - 1) / chi2.ppf(1 - sure, seeds - 1)))


def least_effect(
    difference: Difference, units: float | None = None, power: float = POWER, level: float = LEVEL
) -> float:
    """Smallest log ratio that is detected with this power: (t_{1-level/2, nu} + t_{power, nu}) sqrt V.

    Parameters
    ----------
    difference : Difference
    units : float or None
        Hypothetical number of seeds or of other units; None for the actual number. An infinite number gives the limit
        from V_rows alone, which no number of seeds can lower.

    Returns
    -------
    float
        NaN if a run failed.
    """
    V, nu, n = difference.V, difference.nu, difference.n
    if units is not None:
        of_rows = difference.V_rows
        of_seeds = (V - of_rows) * n / units
        V = of_rows + of_seeds
        nu = satterthwaite_freedom(
            of_rows, 1 + (difference.blocks - 1) / difference.widened if difference.blocks else np.inf, of_seeds, units
        )
    return float((student_quantile(1 - level / 2, nu) + student_quantile(power, nu)) * np.sqrt(V))


def more_seeds_will_not_tell(difference: Difference, effect: float) -> bool:
    """Whether no number of seeds can detect the relative effect, but more rows or data sets could."""
    return least_effect(difference, np.inf) > np.log1p(effect)
