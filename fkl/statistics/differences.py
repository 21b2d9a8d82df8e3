"""Difference of two methods on one data set, with its variance for the study's claim.

Errors are compared as log ratios, ln e_A - ln e_B, which are below 0 if A is better. The claim decides the unit of
replication: seeds, portions of the rows, rows that all seeds share, clients, or blocks of rounds.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit

from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, count_of
from fkl.statistics.intervals import signed_ranks

ROW_BLOCKS = 20
"""Number of blocks of neighbouring rows, the unit of V_rows, because errors of neighbouring rows are correlated."""
OF_TRAINING = 1.5
"""Factor of V_rows for the variance by training rows, because blocks only show that by judged rows; calibrated.

The factor keeps the level of 5 % for splits, and for streams with a step near the best one. With a quarter of that
step, the level was 10 % for different methods on 500 rows, which needed 2.5 (`tests/study/test_study_learners.py`).
"""
MOST_SEEDS = 20
"""Maximum number of seeds that share rows, because more splits of few rows do not average out lucky tuning."""
LEAST_CLIENTS = 4
BLOCKS = 10
"""Number of blocks of rounds of a stream in its own order."""
PARTS = 4
"""Parts of a block, whose correlation shows whether blocks are independent; there are too few blocks to show it."""
MOST_CORRELATION = 0.3
"""Largest correlation of neighbouring parts of blocks with which blocks count as independent."""
HIGHEST = 0.999
"""Largest correlation for which the factor is computed; it is far beyond `WIDEST`."""
WIDEST = 3.0
"""Largest factor of a variance for correlated blocks; beyond it, the data cannot show the variance."""


@dataclass(frozen=True)
class Difference:
    """Difference of methods A and B as one number with its uncertainty, or as signed ranks if a run failed.

    Parameters
    ----------
    m : float
        ln e_A - ln e_B, below 0 if A is better; NaN if a run failed.
    V, nu : float
        Variance of m, and its degrees of freedom; NaN if a run failed.
    d : (n,) float64
        Difference in each unit: infinite if only A failed, minus infinity if only B failed, 0 if both failed.
    unit : str
        Name of the unit, in the singular.
    V_rows : float
        Part of V that more units do not reduce: by rows that seeds share, or by the seeds in which clients were judged;
        otherwise 0.
    blocks : int
        Number of blocks of judged rows if seeds share rows; otherwise 0.
    seeds : int
        Number of seeds of each method.
    failed_a, failed_b : int
        Number of seeds in which the method failed.
    """

    m: float
    V: float
    nu: float
    d: Array = field(repr=False, compare=False)
    unit: str
    V_rows: float = 0.0
    blocks: int = 0
    seeds: int = 1
    failed_a: int = 0
    failed_b: int = 0
    factor: float = 1.0
    """V_rows divided by the variance over rows if these were independent."""
    widened: float = 1.0
    """Factor of the variance over blocks because neighbouring blocks are correlated, see `widening_factor`."""

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.d)

    @property
    def runs(self) -> str:
        """Number of runs of each method, in words."""
        return count_of(self.seeds, "replicate" if self.unit == "replicate" else "seed")

    @property
    def failed(self) -> bool:
        """Whether a run of either method failed, which leaves no mean difference."""
        return self.failed_a + self.failed_b > 0

    @cached_property
    def ranks(self) -> tuple[float, float]:
        """Sum of the signed ranks of d, above 0 if A is worse, and its p value."""
        return signed_ranks(self.d)

    @property
    def side(self) -> float:
        """The better method: -1 for A, 1 for B, 0 for neither."""
        return float(np.sign(self.ranks[0] if self.failed else self.m))

    @cached_property
    def p(self) -> float:
        """P value for no difference: 2 P(t_nu > |m| / sqrt V), or that of the signed ranks if a run failed.

        NaN if all units have the same finite difference, because nothing was random.
        """
        if self.failed:
            return self.ranks[1]
        return float(2 * stdtr(self.nu, -abs(self.m) / np.sqrt(self.V))) if self.V > 0 else np.nan

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of m, as log ratios; NaN if a run failed."""
        reach = stdtrit(self.nu, (1 + level) / 2) * np.sqrt(self.V)
        return float(self.m - reach), float(self.m + reach)


def from_seeds(errors_a: ArrayLike, errors_b: ArrayLike, unit: str = "seed") -> Difference:
    """Difference for claim `seeds` on these rows, or for claim `rows` with portions that each have their own run.

    V = var(d) / S, nu = S - 1.

    Parameters
    ----------
    errors_a, errors_b : (S,)
        Errors above 0; not finite if the run failed.
    unit : {"seed", "portion", "replicate"}

    Raises
    ------
    fkl.basics.errors.FklError
        For fewer than two seeds, or for an error that is not above 0.
    """
    a, b = (np.asarray(errors, np.float64)[:, None] for errors in (errors_a, errors_b))
    failed_a, failed_b = (_failed_seeds(errors) for errors in (a, b))
    d = _log_ratios(a, b)[:, 0]
    return _of_units(d, unit, len(d), failed_a, failed_b)


def from_rows(losses_a: ArrayLike, losses_b: ArrayLike, rows: ArrayLike) -> Difference:
    """Difference for claim `rows`, other rows of this source, if all seeds share rows (crossed).

    With D_is = q_A,is/e_A - q_B,is/e_B, the first-order form of the log ratio (q: loss of row i in seed s; e: mean of
    all losses), z_is = (D_is - mean)/N, and the judged rows in B = `ROW_BLOCKS` blocks of neighbours, or in blocks of
    one row if there are fewer rows:

        V_rows  = OF_TRAINING B/(B-1) sum_b (sum_{i in b} sum_s z_is)^2
        V_seeds = S/(S-1) sum_s (sum_i z_is)^2      (Cameron, Gelbach and Miller 2011; Owen 2007)
        V       = V_rows + V_seeds
        nu      = V^2 / (V_rows^2/(B-1) + V_seeds^2/(S-1))      (Satterthwaite 1946)

    With correlated blocks, V_rows is multiplied by `widening_factor`, and B - 1 is divided by it. The factor compared
    with independent rows is computed from the data: V_rows / (n/(n-1) sum_i (sum_s z_is)^2).

    Parameters
    ----------
    losses_a, losses_b : (S, J)
        Loss of each row, NaN if it was not judged. A seed has failed if a loss is infinite or all are NaN.
    rows : (J,) or (S, J)
        Number of each row in the data set.

    Raises
    ------
    fkl.basics.errors.FklError
        For fewer than two seeds or rows, for more than `MOST_SEEDS` seeds, if both methods were judged on different
        rows, for an error that is not above 0, or for a widening above `WIDEST`.
    """
    a, b = (np.asarray(losses, np.float64) for losses in (losses_a, losses_b))
    S = len(a)
    if S > MOST_SEEDS:
        raise FklError(
            f"{S} seeds share their rows, and the claim is about other rows: at most {MOST_SEEDS} seeds may, "
            "or each seed needs its own portion"
        )
    judged = ~np.isnan(a)
    failed_a, failed_b = (
        np.logical_or(np.isinf(losses).any(axis=1), np.isnan(losses).all(axis=1)) for losses in (a, b)
    )
    ended = ~failed_a & ~failed_b
    if (judged != ~np.isnan(b))[ended].any():
        raise FklError("the two methods were judged on different rows: judge both on the same rows in each seed")
    errors_a, errors_b = (
        np.array([np.inf if lost else np.nanmean(row) for row, lost in zip(losses, failed, strict=True)])[:, None]
        for losses, failed in ((a, failed_a), (b, failed_b))
    )
    d = _log_ratios(errors_a, errors_b)[:, 0]
    if not ended.all() or S < 2:
        return _of_units(d, "seed", S, failed_a, failed_b)
    e_a, e_b = a[judged].mean(), b[judged].mean()
    _, row = np.unique(np.broadcast_to(np.asarray(rows), a.shape)[judged], return_inverse=True)
    n = int(row.max()) + 1
    if n < 2:
        raise FklError("one row was judged: it shows no spread over rows, at least two are needed")
    z = (_relative_errors(a, e_a) - _relative_errors(b, e_b))[judged] / judged.sum()  # D has mean 0
    B = min(n, ROW_BLOCKS)
    parts = min(n, PARTS * B)
    widened = widening_factor(np.bincount(row * parts // n, z), B, "row") if n >= ROW_BLOCKS else 1.0
    V_rows = widened * OF_TRAINING * _of_sums(row * B // n, z)
    V_seeds = _of_sums(np.nonzero(judged)[0], z)
    independent = _of_sums(row, z)
    nu = satterthwaite_freedom(V_rows, 1 + (B - 1) / widened, V_seeds, S)
    factor = V_rows / independent if independent else 1.0
    m = float(_log_ratios(e_a, e_b))
    return Difference(m, V_rows + V_seeds, nu, d, "seed", V_rows, B, S, factor=factor, widened=widened)


def from_clients(errors_a: ArrayLike, errors_b: ArrayLike) -> Difference:
    """Difference for claim `clients`, other clients like these: natural clients, or sites if clients belong to sites.

    With d_k the log ratio of client k's mean errors over seeds, m the mean of d_k, and D_ks = q_A,ks/e_A,k -
    q_B,ks/e_B,k (q: errors in seed s; e: their means over seeds), the first-order change of d_k with the seed:

        V_clients = var(d) / K
        V_seeds   = S/(S-1) sum_s (sum_k D_ks / (K S))^2
        V         = V_clients + V_seeds, nu as in `from_rows`

    Parameters
    ----------
    errors_a, errors_b : (S, K) or (K,)
        Mean error of each client in each seed; not finite if the run failed.

    Raises
    ------
    fkl.basics.errors.FklError
        For fewer than `LEAST_CLIENTS` clients, or for an error that is not above 0.
    """
    a, b = (np.atleast_2d(np.asarray(errors, np.float64)) for errors in (errors_a, errors_b))
    K = a.shape[1]
    if K < LEAST_CLIENTS:
        raise FklError(
            f"the claim is about other clients; there are {count_of(K, 'natural client')}: {LEAST_CLIENTS} are needed"
        )
    failed_a, failed_b = (_failed_seeds(errors) for errors in (a, b))
    if (failed_a | failed_b).any():
        return _of_units(_median_over_seeds(_log_ratios(a, b)), "client", len(a), failed_a, failed_b)
    d = _log_ratios(a.mean(axis=0, keepdims=True), b.mean(axis=0, keepdims=True))[0]
    S, V_clients = len(a), _mean_variance(d)
    by_seed = (_relative_errors(a, a.mean(axis=0)) - _relative_errors(b, b.mean(axis=0))).sum(axis=1) / (K * S)
    V_seeds = float(S / (S - 1) * np.square(by_seed).sum()) if S > 1 else 0.0
    nu = satterthwaite_freedom(V_clients, K, V_seeds, max(S, 2))
    return Difference(float(d.mean()), V_clients + V_seeds, nu, d, "client", V_seeds, seeds=S)


def from_time(losses_a: ArrayLike, losses_b: ArrayLike) -> Difference:
    """Difference for claim `time`, the same stream later in its order: blocks of rounds (Ibragimov, Mueller 2010).

    V = w var(D) / BLOCKS, nu = (BLOCKS - 1) / w, D a block's mean of q_A/e_A - q_B/e_B as in `from_rows`, w the
    `widening_factor`.

    Parameters
    ----------
    losses_a, losses_b : (S, T) or (T,)
        Mean loss of the present clients in each round and seed; not finite if the run failed.

    Raises
    ------
    fkl.basics.errors.FklError
        For fewer rounds than blocks, for an error that is not above 0, or for a widening above `WIDEST`.
    """
    a, b = (np.atleast_2d(np.asarray(losses, np.float64)) for losses in (losses_a, losses_b))
    T = a.shape[1]
    if T < BLOCKS:
        raise FklError(f"the claim is about time: {count_of(T, 'round')} cannot be divided into {BLOCKS} blocks")
    by_round = a, b
    starts = np.arange(BLOCKS) * T // BLOCKS
    lengths = np.diff(starts, append=T)
    a, b = (np.add.reduceat(losses, starts, axis=1) / lengths for losses in by_round)
    failed_a, failed_b = (_failed_seeds(losses) for losses in (a, b))
    if (failed_a | failed_b).any():
        return _of_units(_median_over_seeds(_log_ratios(a, b)), "block", len(a), failed_a, failed_b)
    e_a, e_b = ((losses @ lengths).mean(keepdims=True) / T for losses in (a, b))
    m = float(_log_ratios(e_a[None], e_b[None])[0, 0])
    D = _relative_errors(a.mean(axis=0), e_a) - _relative_errors(b.mean(axis=0), e_b)
    apart = _relative_errors(by_round[0].mean(axis=0), e_a) - _relative_errors(by_round[1].mean(axis=0), e_b)
    parts = min(T, PARTS * BLOCKS)
    part = np.arange(T) * parts // T
    widened = widening_factor(np.bincount(part, apart) / np.bincount(part), BLOCKS, "round")
    nu = (BLOCKS - 1) / widened
    return Difference(m, widened * _mean_variance(D), nu, D, "block", seeds=len(a), widened=widened)


def widening_factor(parts: ArrayLike, blocks: int, unit: str) -> float:
    """Factor by which the variance over blocks is too small because neighbouring blocks are correlated.

    1 if neighbouring parts of blocks have a correlation up to `MOST_CORRELATION`. Otherwise the correlation is that of
    the means of a stationary process whose correlation falls exponentially: with a the length of a part divided by the
    process's correlation length, it is (1 - e^-a)^2 / (2 (a - 1 + e^-a)). With A the same for a block, the variance
    over blocks is too small by the factor A / (A - 1 + e^-A). The correlation is the estimate without its bias
    (Marriott and Pope 1954) plus its standard error. `docs/findings/correlated.md` shows the level of 5 %.

    Parameters
    ----------
    parts : (n,)
        Values of equal parts of the blocks, in order.
    blocks : int
    unit : {"row", "round"}
        Used in the error.

    Raises
    ------
    fkl.basics.errors.FklError
        For a factor above `WIDEST`.

    Examples
    --------
    >>> widening_factor([1, -1, -1, 1, -1, 1, 1, -1], 2, "row")
    1.0
    """
    away = np.asarray(parts, np.float64)
    away = away - away.mean()
    n = len(away)
    correlation = away[1:] @ away[:-1] / max(away @ away, np.finfo(float).tiny)
    correlation += (1 + 3 * max(correlation, 0)) / n
    if correlation <= MOST_CORRELATION:
        return 1.0
    upper = min(correlation + np.sqrt(max(1 - correlation**2, 0) / n), HIGHEST)
    a = brentq(lambda a: np.expm1(-a) ** 2 / (2 * (a + np.expm1(-a))) - upper, 1e-3, 10)
    A = a * n / blocks
    factor = float(A / (A + np.expm1(-A)))
    if factor > WIDEST:
        raise FklError(
            f"cannot be told from these {unit}s: the differences of neighbouring {unit}s are correlated over more than "
            f"a block, one of {blocks} (correlation {min(correlation, 1):.2f} of quarters of blocks); "
            + ("more rows are needed" if unit == "row" else "a longer stream is needed")
        )
    return factor


def from_data_sets(differences: Sequence[Difference], sources: Sequence[Hashable] | None = None) -> Difference:
    """Difference over data sets; each data set is a unit and has one mean log ratio.

    V = var(m) / N, nu = N - 1. A data set with failed runs has the sign of its rank test and the largest magnitude.

    Parameters
    ----------
    differences : (N,)
        Differences of one pair of methods, one per data set.
    sources : (N,), optional
        Source of each data set. Data sets of one source count as one unit, with their mean.

    Raises
    ------
    fkl.basics.errors.FklError
        For fewer than two units.
    """
    m = np.array([one.m if not one.failed else one.side * np.inf if one.side else 0.0 for one in differences])
    if sources is not None and len(set(sources)) < len(m):
        places = [[place for place, source in enumerate(sources) if source == one] for one in dict.fromkeys(sources)]
        m = np.array([_finite_mean(m[some]) for some in places])
    if len(m) < 2:
        raise FklError("one data set shows no spread: at least two are needed")
    failures = [sum(one.failed_a for one in differences), sum(one.failed_b for one in differences)]
    seeds = sum(one.seeds for one in differences)
    if any(failures):
        return Difference(np.nan, np.nan, np.nan, m, "data set", 0.0, 0, seeds, *failures)
    return Difference(float(m.mean()), _mean_variance(m), len(m) - 1.0, m, "data set", seeds=seeds)


def satterthwaite_freedom(of_rows: float, blocks: float, of_seeds: float, seeds: float) -> float:
    """Degrees of freedom of the sum of two variances, from these numbers of blocks and of seeds."""
    below = of_rows**2 / (blocks - 1) + of_seeds**2 / (seeds - 1)
    return (of_rows + of_seeds) ** 2 / below if below > 0 else seeds - 1.0


def _of_units(d: Array, unit: str, seeds: int, failed_a: NDArray[np.bool_], failed_b: NDArray[np.bool_]) -> Difference:
    """Difference over units of equal weight; without mean and variance if a run failed."""
    if len(d) < 2:
        raise FklError(f"one {unit} shows no spread: at least two are needed")
    failures: dict[str, Any] = {"failed_a": int(failed_a.sum()), "failed_b": int(failed_b.sum()), "seeds": seeds}
    if (failed_a | failed_b).any():
        return Difference(np.nan, np.nan, np.nan, d, unit, **failures)
    return Difference(float(d.mean()), _mean_variance(d), len(d) - 1.0, d, unit, **failures)


def _of_sums(unit: NDArray[np.int64], z: Array) -> float:
    """Variance of the sum of z, whose terms may depend on each other only within a unit."""
    sums = np.bincount(unit, z)
    return float(len(sums) / (len(sums) - 1) * np.square(sums).sum())


def _finite_mean(m: Array) -> float:
    """Mean of m, or 0 (a tie) if it has infinite values of both signs."""
    return 0.0 if np.isinf(m).any() and np.ptp(np.sign(m)) == 2 else float(m.mean())


def _failed_seeds(errors: Array) -> NDArray[np.bool_]:
    """Whether each of S seeds has an error that is not finite, from errors (S, n)."""
    return np.logical_not(np.isfinite(errors).all(axis=1))


def _mean_variance(d: Array) -> float:
    """Variance of the mean of d; exactly 0 if all values are equal."""
    return float(d.var(ddof=1) / len(d)) if np.ptp(d) > 0 else 0.0


def _log_ratios(a: Array, b: Array) -> Array:
    """Log ratios, 0 for equal errors, even of 0; a failed run counts as worst, and two failed runs as equal."""
    a, b = (np.where(np.isfinite(errors), errors, np.inf) for errors in (a, b))
    tie = a == b
    for errors in (a, b):
        if (errors[~tie] <= 0).any() or (errors < 0).any():
            raise FklError(f"an error of {errors.min():g} has no log ratio: only errors above 0 can be compared")
    return np.log(np.where(tie, 1, a)) - np.log(np.where(tie, 1, b))


def _relative_errors(errors: Array, mean: Array) -> Array:
    """Errors divided by their mean; 0 if all are 0."""
    return errors / np.where(mean == 0, 1, mean)


def _median_over_seeds(d: Array) -> Array:
    """Median over seeds for each unit, because one failed run must not make all units infinite."""
    order = np.sort(d, axis=0)
    lower, upper = order[(len(d) - 1) // 2], order[len(d) // 2]
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(lower) & np.isposinf(upper), 0.0, lower / 2 + upper / 2)
