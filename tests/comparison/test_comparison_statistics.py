"""Statistics of a comparison against SciPy, by hand, and against what must hold whatever the numbers."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fkl.report.compare.cells import CellPosition
from fkl.report.compare.courses import pareto_front
from fkl.report.compare.pairs import average_ranks, nemenyi_test, pair_verdicts, why_no_diagram
from fkl.report.compare.pivot import Pivot
from fkl.statistics.intervals import holm_correction
from fkl.statistics.verdicts import as_table

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


def pivot_of(values: dict[tuple[str, str], list[float]], larger: bool = False, seed: int = 0) -> Pivot:
    """A pivot of values by method and data set, replicates 0, 1, ... of one seed."""
    series = {}
    for (method, dataset), numbers in values.items():
        index = pd.MultiIndex.from_product([[seed], range(len(numbers))], names=["seed", "replicate"])
        series[CellPosition(method, dataset)] = pd.Series(numbers, index)
    methods, datasets = ([*dict.fromkeys(names)] for names in zip(*values, strict=True))
    return Pivot("mse", series, methods, datasets, larger)


@given(POINTS)
def test_pareto_front_against_brute_force(points: list[tuple[int, int]]) -> None:
    """On the front is who is beaten by nobody; points that coincide do not beat each other."""

    def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
        return one != other and one[0] <= other[0] and one[1] <= other[1]

    expected = [not any(beats(other, point) for other in points) for point in points]
    assert pareto_front(*np.array(points, np.float64).T).tolist() == expected


def test_pairs_have_a_studys_verdicts() -> None:
    """Student's p of each pair, and Holm's correction over all of them."""
    random = np.random.default_rng(1)
    shifts = {"a": 0, "b": 1, "c": 3}
    values = {(name, "air"): list(np.exp(random.normal(shift, 1, 12))) for name, shift in shifts.items()}
    found, notes = pair_verdicts(pivot_of(values))
    assert notes == []
    apart = {pair: np.subtract(*(np.log(values[name, "air"]) for name in pair)) for pair in combinations("abc", 2)}
    expected = np.array([stats.ttest_1samp(one, 0).pvalue for one in apart.values()])
    assert [(one.a, one.b) for one in found["air"]] == [*apart]
    assert [one.difference.p for one in found["air"]] == pytest.approx(expected.tolist())
    assert [one.p for one in found["air"]] == pytest.approx(holm_correction(expected).tolist())
    table = as_table(found)
    assert table["percent"].tolist() == pytest.approx([100 * np.expm1(one.mean()) for one in apart.values()])
    assert (table["low"] < table["percent"]).all() and set(table["better"]) == {"a", "b"}


def test_what_has_no_ratio_or_no_spread_has_no_verdict() -> None:
    found, notes = pair_verdicts(pivot_of({("a", "air"): [-1.0, 2.0, 3.0], ("b", "air"): [1.0, 4.0, 6.0]}))
    assert (found, [note.partition(": an error of -1")[0] for note in notes]) == ({}, ["air: not compared in pairs"])
    zero = {("a", "air"): [0.0, 0.1], ("b", "air"): [1.0, 2.0], ("c", "air"): [1.0, 2.5], ("d", "air"): [0.0, 0.1]}
    found, [note] = pair_verdicts(pivot_of(zero))  # only pairs without a ratio are left out; equal errors of 0 tie
    assert [(one.a, one.b) for one in found["air"]] == [("a", "d"), ("b", "c")]
    tied = "tied, with the same errors in every replicate: what differs between them changed nothing"
    assert found["air"][0].words == f"a and d: {tied}"
    assert note.startswith("air: not compared in pairs with a and d: an error of 0 has no log ratio")
    assert "one replicate shows no spread" in pair_verdicts(pivot_of({("a", "air"): [1.0], ("b", "air"): [2.0]}))[1][0]
    assert pair_verdicts(pivot_of({("a", "air"): [0.1], ("b", "air"): [0.2]}, larger=True))[0] == {}


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
    assert nemenyi_test(placed).loc["a", "c"] == pytest.approx(expected, rel=1e-3)


def test_too_few_data_sets_and_methods_that_are_not_everywhere_are_said() -> None:
    values = {("a", "air"): [1.0], ("b", "air"): [2.0], ("c", "air"): [3.0], ("a", "sea"): [1.0], ("b", "sea"): [2.0]}
    placed, notes = average_ranks(pivot_of(values))
    assert list(placed) == ["a", "b"]
    assert notes == ["Ranks include the 2 methods that were run on all data, and omit 1."]
    assert "5 data sets or more" in why_no_diagram(placed)
