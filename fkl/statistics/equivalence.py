"""Test whether a printed number or curve agrees with ours: equivalence within a margin (Schuirmann 1987).

A printed number agrees if a difference of `MARGIN` is excluded, and differs if a difference of 0 is excluded. If
neither is excluded, because our runs or theirs are too few or vary too much, the result is undecided.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import fdtri

from fkl.basics.arrays import Array
from fkl.statistics.intervals import LEVEL, student_quantile

MARGIN = 0.10
"""Largest difference of numbers that agree, as a share of the printed number."""
DRAWS = 2000
"""Number of random curves for the test of a curve's largest deviation."""
MOST_REPLICATES = 1 << 20
"""Largest number of replicates in the search for a sufficient number."""

AGREES, DIFFERS, CANNOT_TELL = "agrees", "differs", "cannot tell"


@dataclass(frozen=True)
class Equivalence:
    """A printed number and the mean of ours.

    Parameters
    ----------
    m, h : float
        The printed number, and half a unit of its last digit.
    n : int
        Number of runs in its mean; 1 if the paper does not say.
    s_p : float
        Printed standard deviation of these runs; NaN if it is not printed, in which case ours is used.
    x, s : float
        Our mean and standard deviation.
    R : int
        Number of our replicates.
    J : int
        Number of interpretations of the paper that were tried.
    whole : float, optional
        Number to which the margin refers; by default |m|.
    failed : int
        Number of replicates without a value, whose lower bounds are part of the mean `x`.
    """

    m: float
    h: float
    n: int
    s_p: float
    x: float
    s: float
    R: int
    J: int = 1
    whole: float | None = None
    failed: int = 0

    @property
    def D(self) -> float:
        """Difference of our mean and the printed number."""
        return self.x - self.m

    @property
    def size(self) -> float:
        """Number to which percentages refer."""
        return abs(self.m) if self.whole is None else self.whole

    @property
    def theirs(self) -> float:
        """Variance of the printed mean."""
        return (self.s if np.isnan(self.s_p) else self.s_p) ** 2 / self.n

    @property
    def SE(self) -> float:
        """Standard error of the difference."""
        return float(np.sqrt(self.s**2 / self.R + self.theirs))

    @cached_property
    def u(self) -> float:
        """The largest difference that is not excluded."""
        return abs(self.D) + self.h + _half_width(1 - LEVEL / self.J, self._degrees_of_freedom(self.R), self.SE)

    @cached_property
    def l(self) -> float:  # noqa: E743  the specification's name
        """The smallest difference that is not excluded, below 0 if 0 is not excluded."""
        return abs(self.D) - self.h - _half_width(1 - LEVEL / 2, self._degrees_of_freedom(self.R), self.SE)

    @property
    def agrees(self) -> bool:
        """Whether a difference of the margin is excluded."""
        return self.failed == 0 and self.u <= MARGIN * self.size

    @property
    def outcome(self) -> str:
        """`AGREES`, `DIFFERS` or `CANNOT_TELL`."""
        if self.agrees:
            return AGREES
        # a mean of lower bounds decides nothing if it is below the printed number
        return DIFFERS if self.l > 0 and not (self.failed and self.D < 0) else CANNOT_TELL

    @property
    def off(self) -> str:
        """The difference with its 95 % interval, in words."""
        reach = _half_width(1 - LEVEL / 2, self._degrees_of_freedom(self.R), self.SE)
        low, high = (self._in_percent(self.D + side * reach) for side in (-1, 1))
        return f"off by {self._in_percent(self.D)}{' %' * (self.size > 0)} [{low}, {high}]"

    @property
    def within(self) -> float:
        """The largest difference that is not excluded, in percent; NaN for a printed 0."""
        return 100 * self.u / self.size if self.size else np.nan

    @property
    def why(self) -> str:
        """The outcome in words."""
        if self.outcome == AGREES:
            sentence = f"to within {self.within:.1f} %" + f", though not the same, {self.off}" * (self.l > 0)
        else:
            sentence = self.off if self.outcome == DIFFERS else f"{self.off}; {self.needed}"
        if np.isnan(self.s_p) or min(self.n, self.R) < 2:
            return sentence
        # If the ratio of both variances is outside its 95 % range, this is reported but decides nothing.
        low, high = fdtri(self.R - 1, self.n - 1, [LEVEL / 2, 1 - LEVEL / 2])
        differ = not low * self.s_p**2 <= self.s**2 <= high * self.s_p**2
        return sentence + f"; spreads differ, theirs {self.s_p:.3g}, ours {self.s:.3g}" * differ

    @property
    def needed(self) -> str:
        """How many replicates would let both numbers agree, or why no number of them would."""
        margin = MARGIN * self.size
        if self.failed:
            return f"{self.failed} of {self.R} replicates have no value"
        if self.h > margin:
            return "one digit is printed"
        if np.isnan(self.SE):
            return "one replicate shows no spread"
        if self.h + self._reach_with(np.inf) > margin:
            return "never: their interval alone is too wide"
        if abs(self.D) + self.h + self._reach_with(np.inf) > margin:
            return "never: too far off to agree"
        low, high = self.R, 2 * self.R
        while abs(self.D) + self.h + self._reach_with(high) > margin and high < MOST_REPLICATES:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if abs(self.D) + self.h + self._reach_with(middle) <= margin else (middle, high)
        return f"{high} replicates would suffice"

    def _reach_with(self, R: float) -> float:
        """Half width of the interval of `agrees` with this many replicates."""
        SE = float(np.sqrt(self.s**2 / R + self.theirs))
        return _half_width(1 - LEVEL / self.J, self._degrees_of_freedom(R), SE)

    def _degrees_of_freedom(self, R: float) -> float:
        """Degrees of freedom: Welch's if both sides have a standard deviation."""
        if np.isnan(self.s_p) or self.n == 1:
            return R - 1
        ours, theirs = self.s**2 / R, self.s_p**2 / self.n
        within = theirs**2 / (self.n - 1) + (ours**2 / (R - 1) if R > 1 else 0.0)
        return (ours + theirs) ** 2 / within if within else R - 1

    def _in_percent(self, value: float) -> str:
        return f"{100 * value / self.size:+.1f}" if self.size else f"{value:+.4g}"


def outcome_of_curve(points: list[Equivalence], values: Array) -> str:
    """Outcome for a whole curve.

    A curve agrees if every point does, each at `LEVEL`, because all must agree (Berger 1982). It differs if its largest
    deviation exceeds that of random curves that vary as ours, for any dependence between points.

    Parameters
    ----------
    points : list of Equivalence
    values : array of shape (R, points)
        Our values, with one row per replicate.
    """
    if all(point.agrees for point in points):
        return AGREES
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = [
            np.float64(abs(point.D) - point.h) / point.SE for point in points if not (point.failed and point.D < 0)
        ]
    return DIFFERS if np.nanmax([*deviations, -np.inf]) > largest_deviation(values) else CANNOT_TELL


def largest_deviation(values: Array) -> float:
    """95 % quantile of the largest |t| over a curve's points, for random curves that vary as ours.

    Parameters
    ----------
    values : array of shape (R, points)
    """
    R = len(values)
    if R < 2:
        return np.inf
    sd = values.std(axis=0, ddof=1)
    residuals = (values - values.mean(axis=0)) / np.where(sd > 0, sd, np.inf)
    random = np.random.default_rng(0)
    z = random.standard_normal((DRAWS, R)) @ residuals / np.sqrt(R - 1)
    z /= np.sqrt(random.chisquare(R - 1, (DRAWS, 1)) / (R - 1))
    return float(np.quantile(abs(z).max(axis=1), 1 - LEVEL))


def _half_width(level: float, nu: float, SE: float) -> float:
    """Half width of an interval; 0 if nothing varies."""
    return student_quantile(level, nu) * SE if SE else 0.0
