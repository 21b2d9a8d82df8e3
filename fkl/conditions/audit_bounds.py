"""Lower bounds of epsilon from one run with canaries, each in or out by a fair coin, and their scores.

A score is mu for a canary that is in, else 0, plus noise with a common variance. With independent normal noise, the
bound of `bound_gaussian` is exact. The bound of `guesses_bound` needs no normal noise: Mahloujifar, Melis and
Chaudhuri, Auditing f-Differential Privacy in One Run (ICML 2025), for the trade-off function of a Gaussian mechanism.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtr, ndtr, ndtri
from scipy.stats import chi2, norm, normaltest
from scipy.stats import f as f_distribution

from fkl.basics.arrays import Array
from fkl.conditions import accountant

FEWEST = 8
"""Smallest numbers of canaries in, and out, for a bound."""
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
"""Shares of all canaries for which guesses may be made."""
NO_NOISE = 1e-5
"""Standard deviation of scores, in units of the canaries' length, below which it comes only from rounding."""
STEPS = 64
OBJECTION = 0.001
"""p-value of the checks below which the bound by guesses is used."""


def bound_gaussian(scores: Array, inside: NDArray[np.bool_], alpha: float) -> Array:
    """Lower bounds of mu for normal scores (..., m), each with confidence 1 - alpha; 0 for too few canaries.

    t = (mean in - mean out) / (s a), with the pooled deviation s and a = sqrt(1/n_in + 1/n_out), has the noncentral t
    distribution with m - 2 degrees of freedom and noncentrality mu / a. A NaN is no score.
    """
    # Scores of the canaries that are in, and of those that are out
    is_known = ~np.isnan(scores)
    sides = [is_known & inside, is_known & ~inside]
    # Counts, means, and squared deviations from the means of both sides
    counts = [side.sum(axis=-1) for side in sides]
    means = [np.where(side, scores, 0).sum(axis=-1) / np.maximum(side.sum(axis=-1), 1) for side in sides]
    squares = [
        (np.where(side, scores - mean[..., None], 0) ** 2).sum(axis=-1) for side, mean in zip(sides, means, strict=True)
    ]
    return _of_moments(counts, means[0] - means[1], squares[0] + squares[1], alpha)


def _of_moments(counts: Sequence[Any], difference: Any, squares: Any, alpha: float) -> Array:
    """The bound of `bound_gaussian`, from two counts, the difference of means, and the squares around the means."""
    count_in, count_out = counts
    df = np.maximum(count_in + count_out - 2, 1)
    deviation = np.sqrt(squares / df)
    a = np.sqrt(1 / np.maximum(count_in, 1) + 1 / np.maximum(count_out, 1))
    t = difference / np.maximum(deviation * a, 1e-300)
    bound = np.maximum(a * noncentrality_bound(t, df, alpha), 0)
    bound = np.where(deviation < NO_NOISE, np.where(difference > NO_NOISE, np.inf, 0), bound)
    return np.where(np.minimum(count_in, count_out) >= FEWEST, bound, 0)


def of_replicates(moments: Sequence[Array], alpha: float) -> tuple[float, float, float, float]:
    """Standard deviation of all replicates' scores, the ends of its interval, and `bound_gaussian` of all.

    Replicates have independent coins and noise, so their scores can be combined like those of one audit.

    Parameters
    ----------
    moments : five arrays (R,)
        Number of canaries and of those in, mean scores of those in and out, and deviation, of each replicate.
    alpha : float
    """
    # Pool the replicates: deviations within them, and of their means from the common mean
    count, count_in, mean_in, mean_out, deviation = moments
    squares, means, counts = float((deviation**2 * (count - 2)).sum()), [], []
    for n, mean in ((count_in, mean_in), (count - count_in, mean_out)):
        counts.append(n.sum())
        means.append((n * mean).sum() / n.sum())
        squares += float((n * (mean - means[-1]) ** 2).sum())
    # Interval of the standard deviation by chi squared, and the bound of the difference of means
    df = sum(counts) - 2
    low, high = np.sqrt(squares / chi2.isf([alpha / 2, 1 - alpha / 2], df))
    mu = float(_of_moments(counts, means[0] - means[1], squares, alpha))
    return float(np.sqrt(squares / df)), float(low), float(high), mu


def noncentrality_bound(t: Array, df: NDArray[np.integer] | np.integer, alpha: float) -> Array:
    """The noncentrality at which a noncentral t is at most `t` with probability 1 - alpha; 0 if it would be negative.

    Above 400 degrees of freedom, a normal approximation is used, whose error for 28 at df 500 is 0.004.
    """
    # A normal approximation, and where scipy is exact, bisection
    t, df = np.broadcast_arrays(np.asarray(t, np.float64), df)
    g = 1 - 1 / (4 * df)
    exact = (df <= 400) & (np.abs(t) < 1e3)
    approximate: Array = g * t - norm.isf(alpha) * np.hypot(1, t * np.sqrt(1 - g**2))
    # Bisection, since the distribution function falls as the noncentrality grows
    low, high = np.zeros(t.shape), np.maximum(t, 0) + 10  # scipy returns NaN for some negative noncentralities
    for _ in range(STEPS):
        middle = (low + high) / 2
        below = nctdtr(df, middle, np.where(exact, t, 0)) > 1 - alpha  # it falls with the noncentrality
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(exact, low, np.maximum(approximate, 0))


def guesses_bound(canaries: int, made: int, right: int, alpha: float) -> float:
    """The largest mu that this many right guesses of those made reject with confidence 1 - alpha; 0 for none."""
    low, high = 0.0, 30.0
    for _ in range(3):  # each pass divides the interval's length by STEPS
        tried = np.linspace(low, high, STEPS + 1)
        rejected = _rejects_mu(tried, canaries, made, right, alpha)
        if not rejected[0]:
            return low
        last = int(np.nonzero(rejected)[0][-1])
        low, high = float(tried[last]), float(tried[min(last + 1, STEPS)])
    return low


def _rejects_mu(mu: Array, canaries: int, made: int, right: int, alpha: float) -> NDArray[np.bool_]:
    """Whether these guesses contradict the trade-off function of mu, by the recursion of the paper's algorithm."""
    r = np.full(mu.shape, alpha * right / canaries)
    h = np.full(mu.shape, alpha * (made - right) / canaries)
    for i in range(right - 1, -1, -1):
        above = np.maximum(h, ndtr(ndtri(r) - mu))
        r, h = np.minimum(1, r + i / (made - i) * (above - h)), above
    return r + h > made / canaries


def right_of(scores: Array, inside: NDArray[np.bool_], made: int) -> int:
    """Number of right guesses, if the largest scores are guessed in, and as many of the smallest out."""
    order = inside[np.argsort(scores)]
    half = made // 2
    return int((~order[:half]).sum() + order[len(order) - half :].sum())


@cache  # the same for all replicates
def guesses_to_make(canaries: int, mu: float, alpha: float) -> int:
    """The number of guesses with the largest bound, from the 30 % quantile of 24 simulated audits of the stated mu."""
    rng = np.random.default_rng(0)
    inside = rng.random((24, canaries)) < 0.5
    scores = mu * inside + rng.normal(size=inside.shape)
    best = (-1.0, 2)
    for share in SHARES:
        made = max(2, 2 * int(share * canaries / 2))
        right = [right_of(*one, made) for one in zip(scores, inside, strict=True)]
        best = max(best, (guesses_bound(canaries, made, int(np.quantile(right, 0.3)), alpha), made))
    return best[1]


def check_scores(scores: Array, inside: NDArray[np.bool_]) -> float:
    """Three times the smallest p-value of three checks of scores (G, K), in the order of rounds; at most 1.

    The checks test for a normal distribution (skewness and kurtosis), for equal variances in and out, and for no
    correlation between a client's successive scores. Each client's means, in and out, are subtracted first, so clients
    may have different means.
    """
    # Deviations from the mean of each canary's scores, in or out, scaled to equal variance
    is_known = ~np.isnan(scores)
    rest, size = np.full(scores.shape, np.nan), np.ones(scores.shape)
    for side in (is_known & inside, is_known & ~inside):
        count = side.sum(axis=0)
        means = np.where(side, scores, 0).sum(axis=0) / np.maximum(count, 1)
        scale = np.sqrt(count / np.maximum(count - 1, 1))  # a deviation from a mean has 1 - 1/n of the variance
        several = side & (count > 1)
        rest, size = np.where(several, (scores - means) * scale, rest), np.where(several, count, size)
    # Too few scores, or no noise at all, cannot be checked
    is_known &= ~np.isnan(rest)
    sides = is_known & inside, is_known & ~inside
    if min(side.sum() for side in sides) < 2 * FEWEST or rest[is_known].std() < NO_NOISE:
        return 1.0
    # 1. Are the scores normal?
    p = [float(normaltest(rest[is_known]).pvalue)]
    # 2. Have both sides the same variance?
    squares = [((rest[side] ** 2 * (1 - 1 / size[side])).sum(), (1 - 1 / size[side]).sum()) for side in sides]
    variances = [total / max(df, 1) for total, df in squares]
    tail = f_distribution.sf(variances[0] / max(variances[1], NO_NOISE**2), squares[0][1], squares[1][1])
    p.append(2 * float(min(tail, 1 - tail)))
    # 3. Are scores of consecutive rounds independent?
    both = is_known[1:] & is_known[:-1]
    if both.sum() >= FEWEST:
        # Deviations from a common mean have a correlation of -1 / (n - 1)
        expected = -np.where(inside[1:] == inside[:-1], 1 / (size[1:] - 1 + (size[1:] == 1)), 0)[both].mean()
        correlation = (rest[1:] * rest[:-1])[both].mean() / (rest[is_known] ** 2).mean()
        p.append(2 * float(norm.sf(abs(correlation - expected) * np.sqrt(both.sum()))))
    return min(1.0, 3 * min(p))


@dataclass(frozen=True)
class Scores:
    """Scores of the canaries of one replicate.

    Parameters
    ----------
    scores : (G, K)
        Score of each client in each round, or in the whole run (G = 1), in clipping norms; NaN for no score.
    inside : (G, K) bool
        Coins of the canaries.
    once : bool
        Whether a coin holds for only one round.
    mu : float
        Stated distance by which a canary moves its score, in standard deviations.
    delta : float
    """

    scores: NDArray[np.float64]
    inside: NDArray[np.bool_]
    once: bool
    mu: float
    delta: float

    @cached_property
    def known(self) -> NDArray[np.float64]:
        """The scores that exist, in one array."""
        return self.scores[~np.isnan(self.scores)]

    @cached_property
    def coins(self) -> NDArray[np.bool_]:
        """The coins of the known scores."""
        return self.inside[~np.isnan(self.scores)]

    @cached_property
    def enough(self) -> bool:
        """Whether enough canaries are in, and enough out, for a bound."""
        return bool(min(self.coins.sum(), (~self.coins).sum()) >= FEWEST)

    @cached_property
    def p(self) -> float:
        """p-value of the checks that scores are normal, see `check_scores`."""
        one_group = (-1, self.scores.shape[1] if self.once else 1)  # a client with one score has no separate mean
        return check_scores(self.scores.reshape(one_group), self.inside.reshape(one_group))

    def at_least(self, alpha: float) -> float:
        """Lower bound of epsilon with confidence 1 - alpha."""
        if self.p < OBJECTION:
            return self.bound_by_guesses(alpha)
        return accountant.epsilon_of(float(bound_gaussian(self.known, self.coins, alpha)), self.delta)

    def bound_by_guesses(self, alpha: float) -> float:
        """Lower bound of epsilon by guesses which canaries are in."""
        if not self.enough:
            return 0.0
        count, made = len(self.known), guesses_to_make(len(self.known), self.mu, alpha)
        right = right_of(self.known, self.coins, made)
        return accountant.epsilon_of(guesses_bound(count, made, right, alpha), self.delta)

    def moments(self, noise: float) -> tuple[float, ...]:
        """Numbers of canaries and of those in; mean scores in and out and deviation, in stated noises."""
        count, sides = len(self.known), [self.known[self.coins], self.known[~self.coins]]
        means = [float(side.mean()) if len(side) else np.nan for side in sides]
        squares = sum(float(((side - mean) ** 2).sum()) for side, mean in zip(sides, means, strict=True))
        deviation = np.sqrt(squares / (count - 2)) / noise if self.enough else np.nan
        return count, int(self.coins.sum()), means[0] / noise, means[1] / noise, float(deviation)
