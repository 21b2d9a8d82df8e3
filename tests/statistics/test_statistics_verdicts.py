"""Verdicts beside simulations with a known truth, and their words (rows 10 to 12 of section 8 of comparing.md)."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit

from fkl.statistics.differences import Difference, from_seeds
from fkl.statistics.verdicts import (
    BETTER,
    BEYOND,
    CANNOT_TELL,
    EQUAL,
    PairVerdict,
    about_best,
    about_power,
    of_data_set,
    over_data_sets,
)

Array = NDArray[np.float64]
RHO = np.log(1.02)


def difference(m: float, half: float, n: int = 10, unit: str = "seed", V_rows: float = 0.0) -> Difference:
    """One with a 95 % interval of this half-width."""
    V = (half / stdtrit(n - 1, 0.975)) ** 2
    return Difference(m, V, n - 1.0, np.linspace(-1, 1, n), unit, V_rows * V, 1000 * (V_rows > 0), n)


def one(m: float, half: float, **others: float) -> PairVerdict:
    return of_data_set({("A", "B"): difference(m, half, **others)})[0]


def test_equal_methods_are_seldom_called_better_over_data_sets() -> None:
    """Row 10, of five methods."""
    N, times = 6, 500
    random, d = np.random.default_rng(N), np.zeros(10)
    alarms, bare = 0, 0
    for _ in range(times):
        effects = random.normal(0, 0.05, (N, 5))
        sets = {
            str(j): {
                (str(a), str(b)): Difference(row[a] - row[b], 1e-4, 9.0, d, "seed")
                for a, b in combinations(range(5), 2)
            }
            for j, row in enumerate(effects)
        }
        verdicts = over_data_sets(sets)
        assert len(verdicts) == 10
        alarms += any(verdict.outcome in (BETTER, BEYOND) for verdict in verdicts)
        bare += any(verdict.difference.p < 0.05 for verdict in verdicts)
    assert alarms / times <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)
    assert bare / times > 0.2  # without Holm


@pytest.mark.parametrize("sd", [0.01, 0.05])
def test_a_difference_of_the_margin_is_seldom_called_less_or_more(sd: float) -> None:
    """Row 12, of one pair on ten data sets; the mean alone is inside the margin half of the times."""
    d = np.random.default_rng(1).normal(RHO, sd, (2000, 10))
    found = [PairVerdict("A", "B", each, each.p) for each in (from_seeds(np.exp(row), np.ones(10)) for row in d)]
    outcomes = [verdict.outcome for verdict in found]
    assert outcomes.count(EQUAL) / 2000 <= 0.065
    assert outcomes.count(BEYOND) / 2000 <= 0.04
    assert np.mean([verdict.difference.m < RHO for verdict in found]) == pytest.approx(0.5, abs=0.035)


@pytest.mark.parametrize(
    ("m", "half", "outcome"),
    [
        (0.005, 0.01, EQUAL),
        (0.012, 0.008, EQUAL),  # although its interval holds no 0
        (0.03, 0.009, BEYOND),
        (-0.03, 0.009, BEYOND),
        (0.03, 0.02, BETTER),
        (0.03, 0.033, CANNOT_TELL),  # p = 0.07
    ],
)
def test_outcomes_are_those_of_the_table(m: float, half: float, outcome: str) -> None:
    assert one(m, half).outcome == outcome


def test_words_name_the_better_method_and_how_much_larger_the_others_error_is() -> None:
    low, high = np.log(1.019), np.log(1.064)
    m, half = (low + high) / 2, (high - low) / 2
    for sign, better, worse in ((1, "B", "A"), (-1, "A", "B")):
        verdict = one(sign * m, half)
        assert verdict.words == f"{better} is better than {worse} by 4.1 % [1.9, 6.4], p {verdict.p:.2g}"
    assert one(-0.03, 0.009).words == "A is better than B by 3.0 % [2.1, 4.0], beyond the margin, p < 0.0001"
    assert "; one data set decides this: the signed ranks" in one(0.03, 0.009, unit="data set").words
    assert one(0.003, 0.01).words == "A and B are practically equal, within 2 %: 0.3 % [−0.5, 1.1] at 90 %"


def test_one_sentence_says_what_undecided_pairs_could_have_shown_and_what_would_help() -> None:
    shared, wide = one(-0.008, 0.032, V_rows=0.6), one(-0.008, 0.09, V_rows=0.6)
    assert shared.words == "A and B: cannot tell, −0.8 % [−3.9, 2.4]"
    said = about_power([shared])
    assert said.startswith(
        "Errors that differ by 4.6 % would be told apart here in four studies of five; with 20 seeds, by"
    )
    assert said.endswith("; no number of seeds shows less than 3.1 %, more rows or data sets may.")
    assert "differ by 4.6 to 13.3 % would" in about_power([shared, wide])
    # A large difference that more seeds would show, in a study of few: no such advice
    assert "more rows" not in about_power([one(0.52, 1.2, n=3, V_rows=0.015)])
    units = {"portion": "with 20 portions as large", "client": "with 20 clients", "block": "with twice as many rounds"}
    assert all(words in about_power([one(-0.008, 0.032, unit=unit)]) for unit, words in units.items())
    assert about_power([one(-0.03, 0.009)]) == about_power([one(0.003, 0.01)]) == "", "what is decided needs no power"


def test_holms_p_decides_and_is_said_where_the_interval_alone_would_mislead() -> None:
    pairs = [("A", "B"), ("A", "C"), ("B", "C")]
    verdicts = of_data_set({pair: difference(0.03, 0.028) for pair in pairs})
    assert [verdict.outcome for verdict in verdicts] == [CANNOT_TELL] * 3
    assert "3.0 % [0.2, 6.0], p 0.12 corrected for 3 pairs" in verdicts[0].words
    assert one(0.03, 0.028).outcome == BETTER


@pytest.mark.parametrize("n", [2, 7])
def test_exactly_the_same_errors_are_a_tie(n: int) -> None:
    same = np.random.default_rng(n).lognormal(size=n)
    tied = of_data_set({("A", "B"): from_seeds(same, same), ("A", "C"): from_seeds([0.5] * n, [1.0] * n)})
    assert tied[0].outcome == EQUAL
    nothing = "tied, with the same errors in every seed: what differs between them changed nothing"
    assert tied[0].words == f"A and B: {nothing}"
    assert "practically equal to B" in about_best(tied)
    assert tied[1].outcome == CANNOT_TELL  # the same difference in all seeds is none of chance, but not 0
    assert "cannot tell, the same difference, −50.0 %, in every seed" in tied[1].words


def test_a_widened_variance_is_said() -> None:
    wide = Difference(0.5, 1e-4, 4.0, np.zeros(3), "seed", 5e-5, 20, 3, widened=2.1)
    assert "; variance times 2.1, because neighbouring rows are correlated" in PairVerdict("A", "B", wide, wide.p).words


def test_failures_are_told_with_their_rate() -> None:
    random = np.random.default_rng(2)
    a, d = np.exp(random.normal(0, 0.1, 10)), np.exp(random.normal(0.5, 0.1, 10))
    d[:2] = np.inf
    verdict = of_data_set({("A", "D"): from_seeds(a, d)})[0]
    rate = "D failed in 2 of 10 seeds [6 %, 51 %], so there is no interval"
    assert verdict.words == f"{rate}; A is better than D by ranks, p 0.002"
    a[:3], d[:2] = np.inf, 2.0
    assert of_data_set({("A", "D"): from_seeds(a[:9], d[:9])})[0].words.endswith(
        "A and D: cannot tell by ranks, p 0.91"
    )


def test_who_fails_more_often_is_not_called_better() -> None:
    a, b = np.exp(np.random.default_rng(3).normal([[-1.0], [0.0]], 0.1, (2, 20)))
    a[0] = np.inf
    verdict = of_data_set({("A", "B"): from_seeds(a, b)})[0]
    assert verdict.p < 0.05
    assert verdict.outcome == CANNOT_TELL
    assert "A has the better ranks, but fails more often" in verdict.words


def test_who_is_at_the_end_of_its_range_may_be_better_but_not_worse() -> None:
    differences = {("E", "A"): difference(0.05, 0.01), ("E", "B"): difference(-0.05, 0.01)}
    against, in_favour = of_data_set(differences, at_end={"E": "step"})
    assert against.outcome == CANNOT_TELL
    assert against.words.startswith("E and A: no verdict against E, whose step lies at the end of its range; 5.1 %")
    assert in_favour.outcome == BEYOND


def test_a_look_has_its_own_level_and_interval() -> None:
    pair = {("A", "B"): difference(0.03, 0.028), ("A", "C"): difference(0.06, 0.028)}
    first, second = of_data_set(pair, look=10)
    assert (first.outcome, second.outcome) == (CANNOT_TELL, BETTER)
    assert second.p == pytest.approx(2 * second.difference.p)
    low, high = pair["A", "C"].confidence_interval(0.99)
    assert f"[{100 * np.expm1(low):.1f}, {100 * np.expm1(high):.1f}], p" in second.words


def sets_of(values: Array) -> dict[str, dict[tuple[str, str], Difference]]:
    return {str(j): {("A", "B"): difference(m, 0.01)} for j, m in enumerate(values)}


def test_fewer_than_five_data_sets_are_not_tested() -> None:
    sets = sets_of(np.array([0.05, 0.001, 0.05, -0.05]))
    assert over_data_sets(sets) == []
    five = over_data_sets(sets_of(np.array([0.05, 0.051, 0.05, 0.06, 0.04])))
    assert five[0].words.startswith("B is better than A by 5.1 % [4.2, 6.1], beyond the margin")
    alike = over_data_sets(sets_of(np.full(5, 0.05) + np.arange(5) / 1e3), sources={"0": "g", "1": "g"})
    assert alike == []


def test_no_method_is_called_best_that_is_not_distinguished() -> None:
    pairs = {("A", "B"): difference(-0.004, 0.01), ("A", "C"): difference(-0.01, 0.04), ("B", "C"): difference(0, 0.04)}
    verdicts = of_data_set(pairs)
    assert about_best(verdicts) == "A leads, practically equal to B, but cannot be distinguished from C"
    assert about_best(verdicts, "ABCD").startswith("A leads among 3 methods, practically"), "D is not compared"
    pairs |= {(name, "D"): difference(-0.1, 0.01) for name in "ABC"} | {("A", "A (alone)"): difference(0.06, 0.01)}
    said = about_best(of_data_set(pairs), "ABCD")
    assert said == (
        "A leads among 4 methods, practically equal to B, but cannot be distinguished from C; worse than A (alone) by"
        " 6.2 % [5.1, 7.3]; better than D by 10.5 % [9.4, 11.6]"
    )
    fails = of_data_set({("A", "B"): from_seeds([1.0, 1.1, np.inf], [2.0, 2.1, 2.3])})
    assert about_best(fails) == "B is best; no verdict against A, which failed in 1 of 3 seeds"
