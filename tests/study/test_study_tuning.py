"""Tuning once, or anew in each seed, beside simulations of a known truth (row 9 of section 8 of comparing.md).

The model is section 2's: error grows by 10 % for a factor of 3 off the best key, keys are sought over 10^4, half of the
trials blindly and the rest around the best so far. How far around is not told there; `AROUND` gives its table's excess.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from fkl.statistics.differences import from_seeds

Array = NDArray[np.float64]
CURVATURE = np.log(1.1) / np.log(3) ** 2
HALF_RANGE = np.log(1e4) / 2
AROUND = 2.5
"""Standard deviation of a trial around the best so far, in logarithms of the key."""
NOISE = 0.03
"""Of a trial, and of a seed's log ratio."""
TIMES, SEEDS = 2000, 10


def searched(random: np.random.Generator, best: Array, trials: int) -> Array:
    """Key that each search chooses, by noisy errors, where `best` (...) is the best one; in logarithms."""
    least, chosen = np.full(best.shape, np.inf), np.zeros(best.shape)
    for trial in range(trials):
        blind = random.uniform(-HALF_RANGE, HALF_RANGE, best.shape)
        near = np.clip(chosen + random.normal(0, AROUND, best.shape), -HALF_RANGE, HALF_RANGE)
        key = blind if trial < trials // 2 else near
        error = CURVATURE * (key - best) ** 2 + random.normal(0, NOISE, best.shape)
        better = error < least
        least, chosen = np.where(better, error, least), np.where(better, key, chosen)
    return chosen


def judged(random: np.random.Generator, key: Array, best: Array) -> float:
    """Share of claims that the one of two equal methods is better; keys of shape (TIMES, 2, SEEDS or 1)."""
    excess = CURVATURE * (key - best) ** 2
    errors = np.exp(excess + random.normal(0, NOISE / np.sqrt(2), (TIMES, 2, SEEDS)))
    return float(np.mean([from_seeds(a, b).p < 0.05 for a, b in errors]))


def test_a_search_in_each_seed_holds_the_level_and_one_search_does_not() -> None:
    """Row 9: one key, 12 trials."""
    random = np.random.default_rng(1)
    shape = (TIMES, 2, SEEDS)
    assert judged(random, searched(random, np.zeros(shape), 12), np.zeros(shape)) <= 0.065
    once = searched(random, np.zeros((TIMES, 2, 1)), 12)
    assert judged(random, once, np.zeros((TIMES, 2, 1))) == pytest.approx(0.44, abs=0.04)
