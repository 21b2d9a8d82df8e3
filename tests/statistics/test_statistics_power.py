"""Numbers of seeds, looks and rates beside tables and simulations (rows 15 to 18 of section 8 of comparing.md)."""

import numpy as np
import pytest
from scipy.stats import chi2, ttest_1samp

from fkl.statistics.differences import Difference, from_rows, from_seeds
from fkl.statistics.intervals import wilson_interval
from fkl.statistics.power import LOOKS, least_effect, more_seeds_will_not_tell, seeds_needed, upper_limit

SIGMAS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20)
NEEDED = {
    0.02: ((5, 11, 21, 52, 203, 803), (5, 13, 27, 69, 270, 1074)),
    0.05: ((3, 4, 6, 11, 35, 134), (3, 5, 7, 14, 47, 179)),
    0.10: ((3, 3, 4, 5, 11, 37), (3, 3, 4, 6, 14, 49)),
}
"""As printed, but for sigma 1 %, effect 5 %: 4 (4) there, although 3 seeds have power 0.97."""


@pytest.mark.parametrize(("k", "expected"), [(0, (0, 0.278)), (1, (0.018, 0.404)), (10, (0.722, 1))])
def test_rates_have_wilsons_interval(k: int, expected: tuple[float, float]) -> None:
    """Row 15."""
    assert wilson_interval(k, 10) == pytest.approx(expected, abs=0.0005)


@pytest.mark.parametrize("effect", NEEDED)
def test_seeds_needed_are_those_of_the_table(effect: float) -> None:
    """Row 16, for power 0.8 and 0.9."""
    for power, expected in zip((0.8, 0.9), NEEDED[effect], strict=True):
        assert tuple(seeds_needed(sigma, effect, power) for sigma in SIGMAS) == expected
    assert seeds_needed(0.05, effect, pairs=10) > seeds_needed(0.05, effect)


def test_so_many_seeds_have_the_power() -> None:
    """Row 17; and one seed less has not."""
    d = np.random.default_rng(1).normal(np.log(1.05), 0.05, (4000, 11))
    power = np.mean([from_seeds(np.exp(one), np.ones(11)).p < 0.05 for one in d])
    assert 0.8 - 0.02 <= power <= 0.83 + 0.02
    less = ttest_1samp(np.random.default_rng(2).normal(np.log(1.05), 0.05, (50_000, 10)), 0, axis=1).pvalue < 0.05
    assert less.mean() < 0.8


def test_four_looks_hold_the_level_by_their_levels_alone() -> None:
    """Row 18."""
    d = np.random.default_rng(3).normal(0, 1, (10_000, 40))
    p = {seeds: ttest_1samp(d[:, :seeds], 0, axis=1).pvalue for seeds in LOOKS}
    stopped = np.any([p[seeds] < level for seeds, level in LOOKS.items()], axis=0)
    assert 0.03 <= stopped.mean() <= 0.05 + 0.007
    anyway = np.any([p[seeds] < 0.05 for seeds in LOOKS], axis=0)
    assert anyway.mean() == pytest.approx(0.15, abs=0.011)
    assert [*LOOKS] == [5, 10, 20, 40] and sum(LOOKS.values()) == pytest.approx(0.05)


@pytest.mark.parametrize(("seeds", "factor"), [(5, 1.56), (10, 1.29)])
def test_a_pilots_spread_is_put_in_at_its_upper_limit(seeds: int, factor: float) -> None:
    """With it some nine of ten studies have a power of 0.7, where 0.8 was asked; with s itself 56 to 72 %."""
    assert upper_limit(1.0, seeds) == pytest.approx(factor, abs=0.005)
    random = np.random.default_rng(4)
    pilots = 0.05 * np.sqrt(chi2.rvs(seeds - 1, size=500, random_state=random) / (seeds - 1))
    enough = seeds_needed(0.05, 0.05, power=0.7)
    asked = np.array([[seeds_needed(s, 0.05), seeds_needed(upper_limit(s, seeds), 0.05)] for s in pilots])
    as_found, with_limit = (asked >= enough).mean(axis=0)
    assert 0.50 <= as_found <= 0.78  # 500 pilots: the table's range and 0.06 on either side
    assert 0.81 <= with_limit <= 0.99


def test_what_could_have_been_seen_is_what_seeds_are_needed_for() -> None:
    """The effect that 11 seeds see with power 0.8 is about the one that needs 11."""
    d = np.random.default_rng(5).normal(0, 1, 11)
    found = from_seeds(np.exp(0.05 * (d - d.mean()) / d.std(ddof=1)), np.ones(11))
    assert np.sqrt(11 * found.V) == pytest.approx(0.05)
    least = least_effect(found)
    assert seeds_needed(0.05, np.expm1(least)) in (10, 11, 12)
    assert least_effect(found, 44) < least / 2
    assert least_effect(found, np.inf) == 0


def test_more_seeds_do_not_help_beyond_the_rows() -> None:
    random = np.random.default_rng(6)
    a, b = random.chisquare(1, (2, 10, 50)) + 3 * random.chisquare(1, (2, 1, 50))
    found = from_rows(a, b, np.arange(50))
    assert isinstance(found, Difference)
    assert least_effect(found, 10) == pytest.approx(least_effect(found))
    floor = least_effect(found, np.inf)
    assert floor == pytest.approx((2.093024 + 0.860951) * np.sqrt(found.V_rows), rel=1e-5)  # t of 19 degrees
    assert least_effect(found) > least_effect(found, 20) > least_effect(found, 1e6) > floor * (1 - 1e-9)
    assert more_seeds_will_not_tell(found, 0.9 * np.expm1(floor))
    assert not more_seeds_will_not_tell(found, 1.1 * np.expm1(floor))
