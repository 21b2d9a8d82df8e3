"""Intervals, signed ranks and Holm's correction against SciPy, by hand, and against what must hold for any numbers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fkl.statistics.intervals import half_width, holm_correction, signed_ranks, student_interval

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)


def test_holm_by_hand() -> None:
    """The example of Holm (1979) in words: the least times n, the next times n - 1, never less than the one before."""
    assert holm_correction(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_correction(np.array([0.6, np.nan, 0.9]))[[0, 2]].tolist() == [1.0, 1.0]
    assert holm_correction(np.array([0.02, np.nan]))[0] == 0.02, "what was not tested counts for nothing"


@given(P_VALUES, st.randoms())
def test_holm_lies_between_no_correction_and_bonferronis(p: np.ndarray, random: "object") -> None:
    """In whatever order."""
    corrected = holm_correction(p)
    assert (corrected >= p).all()
    assert (corrected <= np.minimum(len(p) * p, 1) + 1e-15).all()
    assert (np.diff(corrected[np.argsort(p, kind="stable")]) >= 0).all()
    order = np.array(random.sample(range(len(p)), len(p)))  # type: ignore[attr-defined]
    assert holm_correction(p[order]).tolist() == corrected[order].tolist()


def test_intervals_are_scipys() -> None:
    values = np.random.default_rng(0).normal(size=9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert student_interval(values) == pytest.approx([expected.low, expected.high])
    assert half_width(values) == pytest.approx((expected.high - expected.low) / 2)
    assert np.isnan(half_width(values[:1]))


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=9).map(lambda some: np.array(some, float)))
def test_signed_ranks_are_exact_with_ties(difference: np.ndarray) -> None:
    """P is the share of all signs whose sum of ranks is as far from 0: counted one by one."""
    favour, p = signed_ranks(difference)
    moved = difference[difference != 0]
    if np.ptp(difference) == 0:
        assert p == 1 if not difference.any() else np.isnan(p)
        return
    rank = stats.rankdata(np.abs(moved))
    sums = np.array([np.dot(signs, rank) for signs in product((-1, 1), repeat=len(moved))])
    assert favour == np.sign(moved) @ rank
    assert p == pytest.approx(np.mean(np.abs(sums) >= abs(favour)))


def test_signed_ranks_are_scipys_and_take_infinite_differences_as_the_largest() -> None:
    difference = np.random.default_rng(2).normal(0.5, 1, 12)
    assert signed_ranks(difference)[1] == pytest.approx(stats.wilcoxon(difference, method="exact").pvalue)
    many = np.random.default_rng(2).normal(0.2, 1, 300)
    assert signed_ranks(many)[1] == pytest.approx(stats.wilcoxon(many, correction=False).pvalue)
    failed, large = difference.copy(), difference.copy()
    failed[3], large[3] = np.inf, 1e9
    assert signed_ranks(failed) == signed_ranks(large)
    assert signed_ranks(np.zeros(4)) == (0, 1)
