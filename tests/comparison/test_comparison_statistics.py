"""Statistics of a comparison against SciPy, by hand, and against what must hold whatever the numbers."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fkl.comparison.cells import Cell
from fkl.comparison.pairs import average_ranks, nemenyi, paired_tests, why_no_diagram
from fkl.comparison.pivot import Pivot
from fkl.comparison.statistics import half_width, holm, paired_p, student_interval

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)


def pivot_of(values: dict[tuple[str, str], list[float]], larger: bool = False, seed: int = 0) -> Pivot:
    """A pivot of values by method and data set, replicates 0, 1, ... of one seed."""
    series = {}
    for (method, dataset), numbers in values.items():
        index = pd.MultiIndex.from_product([[seed], range(len(numbers))], names=["seed", "replicate"])
        series[Cell(method, dataset)] = pd.Series(numbers, index)
    methods, datasets = ([*dict.fromkeys(names)] for names in zip(*values, strict=True))
    return Pivot("mse", series, methods, datasets, larger)


def test_holm_by_hand() -> None:
    """The example of Holm (1979) in words: the least times n, the next times n - 1, never less than the one before."""
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.6, np.nan, 0.9]))[[0, 2]].tolist() == [1.0, 1.0]
    assert holm(np.array([0.02, np.nan]))[0] == 0.02, "what was not tested counts for nothing"


@given(P_VALUES)
def test_holm_lies_between_no_correction_and_bonferronis(p: np.ndarray) -> None:
    corrected = holm(p)
    assert (corrected >= p).all()
    assert (corrected <= np.minimum(len(p) * p, 1) + 1e-15).all()
    assert (np.diff(corrected[np.argsort(p, kind="stable")]) >= 0).all()


@given(P_VALUES, st.randoms())
def test_holm_does_not_depend_on_the_order(p: np.ndarray, random: "object") -> None:
    order = np.array(random.sample(range(len(p)), len(p)))  # type: ignore[attr-defined]
    assert holm(p[order]).tolist() == holm(p)[order].tolist()


def test_intervals_are_scipys() -> None:
    values = np.random.default_rng(0).normal(size=9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert student_interval(values) == pytest.approx([expected.low, expected.high])
    assert half_width(values) == pytest.approx((expected.high - expected.low) / 2)
    assert np.isnan(half_width(values[:1]))


def test_pairs_are_tested_as_scipy_does() -> None:
    """All pairs of a data set, Wilcoxon's p of each, and Holm's correction over them."""
    random = np.random.default_rng(1)
    values = {(name, "air"): list(random.normal(shift, 1, 12)) for name, shift in (("a", 0), ("b", 1), ("c", 3))}
    tests, notes = paired_tests(pivot_of(values))
    assert notes == []
    expected = [
        stats.wilcoxon(np.subtract(values[worse, "air"], values[better, "air"])).pvalue
        for better, worse in zip(tests["better"], tests["worse"], strict=True)
    ]
    assert tests["p"].tolist() == pytest.approx(expected)
    assert {frozenset(pair) for pair in zip(tests["better"], tests["worse"], strict=True)} == {
        frozenset(pair) for pair in combinations("abc", 2)
    }
    assert tests["p_holm"].tolist() == pytest.approx(holm(np.array(expected)).tolist())
    assert (tests["difference"] > 0).all() and (tests["low"] < tests["difference"]).all()


def test_only_shared_replicates_are_paired_and_what_no_chance_decides_is_not_tested() -> None:
    one = pivot_of({("a", "air"): [1.0, 2.0, 3.0], ("b", "air"): [2.0, 4.0, 7.0, 9.0]})
    tests, notes = paired_tests(one)
    assert notes == [
        "air: 1 of 1 pairs share fewer than the 6 replicates that the first step of Holm's correction takes."
    ], "2 / 2^6 is the first p below 5 %"
    [row] = tests.to_dict("records")
    assert (row["n"], row["difference"]) == (3, pytest.approx((1 + 2 + 4) / 3))
    fixed = pivot_of({("a", "air"): [1.0] * 9, ("b", "air"): [2.0] * 9})
    assert np.isnan(paired_tests(fixed)[0]["p"]).all()
    assert paired_p(np.zeros(4)) == 1
    apart = pivot_of({("a", "air"): [1.0, 2.0]})
    apart.values.update(pivot_of({("b", "air"): [1.0, 2.0]}, seed=1).values)
    tests, notes = paired_tests(Pivot("mse", apart.values, ["a", "b"], ["air"]))
    assert tests.empty
    assert notes == ["air: 1 of 1 pairs of methods share no seed and replicate: not compared."]


def test_ranks_and_nemenyi() -> None:
    """Ranks by hand; Nemenyi's p is that of the studentized range of the rank difference over sqrt(k (k+1) / 12 N)."""
    means = np.array([[1, 2, 3], [1, 3, 2], [2, 1, 3], [1, 2, 3], [1, 2, 3], [1, 2, 2]], float)
    values = {(m, f"d{i}"): [row[j]] for i, row in enumerate(means) for j, m in enumerate("abc")}
    placed, notes = average_ranks(pivot_of(values))
    assert (notes, list(placed)) == ([], ["a", "b", "c"])
    assert placed.mean().tolist() == pytest.approx(
        [7 / 6, (2 + 3 + 1 + 2 + 2 + 2.5) / 6, (3 + 2 + 3 + 3 + 3 + 2.5) / 6]
    )
    assert why_no_diagram(placed) == ""
    statistic = (placed["c"].mean() - placed["a"].mean()) / np.sqrt(3 * 4 / (6 * 6))
    expected = stats.studentized_range.sf(statistic * np.sqrt(2), 3, np.inf)
    assert nemenyi(placed).loc["a", "c"] == pytest.approx(expected, rel=1e-3)


def test_who_is_best_where_more_is_better() -> None:
    values = {("a", "air"): [0.2], ("b", "air"): [0.9], ("a", "sea"): [0.4], ("b", "sea"): [0.3]}
    pivot = pivot_of(values, larger=True)
    assert pivot.places.tolist() == [[2, 1], [1, 2]]
    assert average_ranks(pivot)[0].loc["air"].to_dict() == {"a": 2, "b": 1}


def test_too_few_data_sets_and_methods_that_are_not_everywhere_are_said() -> None:
    values = {("a", "air"): [1.0], ("b", "air"): [2.0], ("c", "air"): [3.0], ("a", "sea"): [1.0], ("b", "sea"): [2.0]}
    placed, notes = average_ranks(pivot_of(values))
    assert list(placed) == ["a", "b"]
    assert notes == ["Ranks are of the 2 methods that were run on all data, and leave out 1."]
    assert "5 data sets or more" in why_no_diagram(placed)
