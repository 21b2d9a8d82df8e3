"""The test of equivalence beside simulations with a known truth: printed numbers that are right, and 10 % off."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import f, t, ttest_1samp, ttest_ind_from_stats

from fkl.statistics.equivalence import AGREES, CANNOT_TELL, DIFFERS, Equivalence, largest_deviation, outcome_of_curve

Array = NDArray[np.float64]
TIMES = 2000


def beside(printed: float, ours: Array, n: int = 1, J: int = 1, h: float = 0.0) -> Equivalence:
    return Equivalence(printed, h, n, np.nan, float(ours.mean()), float(ours.std(ddof=1)), len(ours), J)


def outcomes(sd: float, R: int, off: float) -> dict[str, float]:
    """Shares of the outcomes where a paper prints the mean of R runs in three digits and ours are `off` beside it."""
    random = np.random.default_rng(round(1e4 * sd) + R)
    printed = [float(f"{mean:.3g}") for mean in random.normal(100, 100 * sd, (TIMES, R)).mean(axis=1)]
    ours = random.normal(100 * (1 + off), 100 * sd, (TIMES, R))
    found = [beside(m, own, R, h=0.5 if m >= 100 else 0.05).outcome for m, own in zip(printed, ours, strict=True)]
    return {outcome: found.count(outcome) / TIMES for outcome in (AGREES, DIFFERS, CANNOT_TELL)}


@pytest.mark.parametrize(("sd", "R"), [(0.01, 5), (0.05, 10), (0.20, 20)])
def test_few_numbers_that_are_off_by_the_margin_agree(sd: float, R: int) -> None:
    """Whatever the spread and the replicates; and few that are right differ."""
    assert outcomes(sd, R, 0.10)[AGREES] <= 0.07
    right = outcomes(sd, R, 0.0)
    assert right[DIFFERS] <= 0.06
    if (sd, R) == (0.05, 10):
        assert right[AGREES] == pytest.approx(0.975, abs=0.01)


def test_the_best_of_several_readings_is_no_likelier_to_agree() -> None:
    """Of five that are all 10 % off; without the division of the level it would be."""
    random = np.random.default_rng(0)
    agree = {1: 0, 5: 0}
    for _ in range(TIMES):
        printed, ours = random.normal(100, 5, 20).mean(), random.normal(110, 5, (5, 20))
        for J in agree:
            agree[J] += any(beside(printed, own, 20, J).agrees for own in ours)
    assert agree[5] / TIMES <= 0.065
    assert agree[1] / TIMES == pytest.approx(0.185, abs=0.02)


def curves(random: np.random.Generator, rows: int) -> Array:
    """Of ten points, each correlated with its neighbour by 0.95, with a mean of 100 and an sd of 5."""
    noise = random.standard_normal((rows, 10))
    for point in range(1, 10):
        noise[:, point] = 0.95 * noise[:, point - 1] + np.sqrt(1 - 0.95**2) * noise[:, point]
    return 100 + 5 * noise


def curve_outcome(printed: Array, ours: Array) -> str:
    return outcome_of_curve([beside(m, own, 10) for m, own in zip(printed, ours.T, strict=True)], ours)


def test_a_curve_is_one_verdict() -> None:
    """One point that is 10 % off is enough for it not to agree; one that is right hardly ever differs."""
    random, times = np.random.default_rng(1), 500
    agree = differ = 0
    for _ in range(times):
        printed, ours = curves(random, 10).mean(axis=0), curves(random, 10)
        differ += curve_outcome(printed, ours) == DIFFERS
        ours[:, 5] += 10
        agree += curve_outcome(printed, ours) == AGREES
    assert agree / times <= 0.07
    assert differ / times <= 0.05


def test_one_number() -> None:
    """The specification's first example."""
    ours = 23.40, 0.62, 20
    told = Equivalence(22.76, 0.005, 20, np.nan, *ours)
    assert (told.outcome, told.why) == (AGREES, "to within 4.3 %, though not the same, off by +2.8 % [+1.0, +4.6]")
    assert f"{100 * told.l / told.m:.1f}" == "1.0"
    untold = Equivalence(22.76, 0.005, 1, np.nan, *ours)
    assert (untold.outcome, f"{untold.within:.1f}") == (AGREES, "7.7")
    far = Equivalence(22.76, 0.005, 20, np.nan, 26.10, 0.62, 20)
    assert (far.outcome, far.why) == (DIFFERS, "off by +14.7 % [+12.9, +16.5]")
    assert f"{far.within:.1f}" == "16.2"
    digit = Equivalence(4, 0.5, 10, np.nan, 4.12, 0.05, 10)
    assert digit.outcome == CANNOT_TELL and digit.why.endswith("; one digit is printed")
    digits = Equivalence(4, 0.05, 10, np.nan, 4.12, 0.05, 10)
    assert (digits.outcome, f"{digits.within:.1f}") == (AGREES, "5.3")


def test_a_curve() -> None:
    """The specification's third example: deviations and standard errors as printed there."""
    m, h, R = np.array([120.0, 81, 64, 55, 50]), 0.5, 10
    D, SE = np.array([1.4, 2.1, 2.8, 3.0, 1.9]) / 100, np.array([1.5, 1.3, 1.2, 1.4, 1.4]) / 100
    points = [
        Equivalence(m, h, R, np.nan, m * (1 + d), m * se / np.sqrt(2 / R), R) for m, d, se in zip(m, D, SE, strict=True)
    ]
    assert [point.within for point in points] == pytest.approx(
        [4.5, 5.1, 5.9, 6.5, 5.4],
        abs=0.05 + 1.833 * 0.05,  # D and SE are printed to a tenth
    )
    assert outcome_of_curve(points, np.random.default_rng(0).standard_normal((R, 5))) == AGREES
    assert (
        outcome_of_curve([Equivalence(4.0, 0.5, R, np.nan, 4.4, 0.1, R)], np.eye(R)) == CANNOT_TELL
    )  # 4.4 is printed as 4
    # Points that all move together are one; the quantile is Student's for two sides
    together = np.random.default_rng(0).standard_normal((10, 1)) + np.zeros((1, 10))
    assert largest_deviation(together) == pytest.approx(2.262, abs=0.15)
    assert 2.6 < largest_deviation(np.random.default_rng(0).standard_normal((200, 10))) < 3.0


def test_intervals_and_spreads_are_scipy_s() -> None:
    """Student's, Welch's, and F's, just inside and just outside both of its ends."""
    ours = np.array([103.0, 101.0, 108.0])
    assert 100 + beside(100.0, ours, 10**12).u == pytest.approx(ttest_1samp(ours, 0).confidence_interval(0.9).high)
    ratios = [side * end for end in f.interval(0.95, 9, 14) for side in (0.99, 1.01)]
    found = [Equivalence(100.0, 0.0, 15, 3.0, 103.0, 3.0 * np.sqrt(ratio), 10) for ratio in ratios]
    assert ["spreads differ, theirs 3" in one.why for one in found] == [True, False, False, True]
    for one in found:
        welch = ttest_ind_from_stats(103, one.s, 10, 100, 3, 15, equal_var=False)
        assert 2 * t.sf(one.D / one.SE, one._degrees_of_freedom(10)) == pytest.approx(welch.pvalue)


def test_what_would_help_is_told() -> None:
    """As many replicates as are named are enough, and one fewer is not."""
    near = Equivalence(100.0, 0.05, 100, np.nan, 103.0, 20.0, 10)
    assert near.outcome == CANNOT_TELL
    number = int(near.why.rpartition("; ")[2].removesuffix(" replicates would suffice"))
    assert [Equivalence(100.0, 0.05, 100, np.nan, 103.0, 20.0, R).agrees for R in (number - 1, number)] == [False, True]
    assert Equivalence(100.0, 0.05, 10**6, np.nan, 109.99, 20.0, 10).why.endswith("; never: too far off to agree")
    assert Equivalence(100.0, 0.05, 1, np.nan, 100.0, np.nan, 1).why.endswith("; one replicate shows no spread")


def test_nothing_is_drawn_and_nothing_is_unsure() -> None:
    exact = 100.0, 0.5, 1, np.nan
    assert [Equivalence(*exact, x, 0.0, 1).outcome for x in (100.0, 109.0, 110.0)] == [AGREES, AGREES, DIFFERS]
    assert Equivalence(4.0, 0.5, 1, np.nan, 4.5, 0.0, 1).outcome == CANNOT_TELL  # it may be printed as 4
    assert Equivalence(0.0, 0.5, 1, np.nan, 3.0, 0.0, 1).outcome == DIFFERS
    sure = 100.0, 0.05, 1, np.nan  # replicates that never get so far: their lower bounds tell a difference only above
    found = [Equivalence(*sure, x, 0.1, 20, failed=1).outcome for x in (100.0, 150.0, 50.0)]
    assert found == [CANNOT_TELL, DIFFERS, CANNOT_TELL]
