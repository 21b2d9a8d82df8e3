"""`python docs/figures/correlated.py [PAIRS]`: the table of docs/findings/correlated.md, level and coverage of claims.

Two equal methods, 2000 correlated rows or rounds: a row's losses are exp of AR(1) processes, one of each method and one
of both. Rows: ten seeds, each with other features, are judged on half of the blocks of 50 rows.
"""

import sys
from contextlib import suppress

import numpy as np
from scipy.signal import lfilter

from fkl.basics.errors import FklError
from fkl.statistics.differences import Difference, from_rows, from_time

N, SEEDS = 2000, 10
CORRELATIONS = (0, 0.5, 0.9, 0.95, 0.98, 0.99, 0.995)


def losses(rng: np.random.Generator, correlation: float, *shape: int) -> np.ndarray:
    """Losses (..., N) whose logarithms are stationary AR(1) processes."""
    shocks = rng.normal(size=(*shape, N))
    shocks[..., 0] /= np.sqrt(1 - correlation**2)
    return np.exp(0.5 * lfilter([np.sqrt(1 - correlation**2)], [1, -correlation], shocks, axis=-1))


def of_rows(rng: np.random.Generator, correlation: float) -> Difference:
    """A difference of two equal methods for the claim `rows`."""
    pair = losses(rng, correlation, 2) * losses(rng, correlation)
    seeds = np.exp(0.05 * rng.normal(size=(2, SEEDS, 1)) + 0.3 * rng.normal(size=(2, SEEDS, N)))
    a, b = pair[:, None] * seeds
    unseen = np.argsort(rng.random((SEEDS, N // 50)), axis=1).repeat(50, axis=1) < N // 100
    a[unseen] = b[unseen] = np.nan
    return from_rows(a, b, np.arange(N))


def of_rounds(rng: np.random.Generator, correlation: float) -> Difference:
    """A difference of two equal methods for the claim `time`, in five seeds."""
    a, b = losses(rng, correlation, 2, 5) * losses(rng, correlation, 2, 1)
    return from_time(a, b)


def with_error(share: float, n: int) -> str:
    """A share with two standard errors."""
    return f"{share:.3f} ± {2 * np.sqrt(share * (1 - share) / max(n, 1)):.3f}"


def cells(claim: str, correlation: float, pairs: int) -> list[str]:
    """False verdicts, coverage, and the share of pairs without a verdict."""
    rng, found = np.random.default_rng(1), []
    for _ in range(pairs):
        with suppress(FklError):
            found.append({"rows": of_rows, "time": of_rounds}[claim](rng, correlation))
    level = sum(one.p < 0.05 for one in found) / pairs
    covered = np.mean([low <= 0 <= high for low, high in (one.confidence_interval() for one in found)])
    return [with_error(level, pairs), with_error(covered, len(found)), f"{1 - len(found) / pairs:.2f}"]


if __name__ == "__main__":
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print("| correlation | rows: false | coverage | refused | time: false | coverage | refused |")
    print("|---|---|---|---|---|---|---|")
    for correlation in CORRELATIONS:
        row = [str(correlation), *cells("rows", correlation, pairs), *cells("time", correlation, pairs)]
        print("|", " | ".join(row), "|", flush=True)
