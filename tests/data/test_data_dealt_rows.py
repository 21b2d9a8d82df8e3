"""Rows dealt to tuning and to judging: no row on both sides, whole blocks, and portions that share nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import BadValue
from fkl.data.dealt_rows import BLOCK, in_part, parts_of_all, require_part

SITES = st.lists(st.integers(4, 400), min_size=1, max_size=4)


@given(rows=SITES, number=st.integers(0, 50))
def test_each_row_is_tuned_on_or_judged_never_both(rows, number):
    site = np.repeat(np.arange(len(rows)), rows)
    tune, judge = in_part(f"tune_{number}", site), in_part(f"judge_{number}", site)
    assert (tune ^ judge).all()
    for one in range(len(rows)):  # at every site there is something on both sides
        assert tune[site == one].any() and judge[site == one].any()


@given(rows=SITES, portions=st.integers(2, 5))
def test_portions_share_no_row_and_leave_none(rows, portions):
    site = np.repeat(np.arange(len(rows)), rows)
    sides = [in_part(f"{side}_{n}_of_{portions}", site) for n in range(portions) for side in ("tune", "judge")]
    assert (np.sum(sides, axis=0) == 1).all()


def test_blocks_stay_whole_and_each_number_deals_anew():
    site = np.zeros(1000, int)
    first, second = (in_part(f"judge_{number}", site).reshape(-1, BLOCK) for number in (0, 1))
    assert (first.all(axis=1) | ~first.any(axis=1)).all()
    assert first[:, 0].sum() == second[:, 0].sum() == 10
    assert (first != second).any()


def test_early_and_late_have_a_block_between_them():
    site = np.zeros(1000, int)
    early, late = (np.flatnonzero(in_part(part, site)) for part in ("early", "late"))
    assert early.max() + BLOCK < late.min()
    assert len(early) == 500


@pytest.mark.parametrize("rows", ["tune", "judge_", "tune_-1", "judge_10_of_10", "both", "judge_1_of_2_of_3"])
def test_what_names_no_part_is_refused(rows):
    with pytest.raises(BadValue, match="dealt by number"):
        require_part(rows)


def test_shares():
    assert [parts_of_all(rows) for rows in ("all", "odd", "judge_3", "tune_3_of_10")] == [1, 2, 2, 20]


def test_halves_have_as_many_rows():
    site = np.repeat([0, 1], [442, 61])
    judged = in_part("judge_5", site)
    assert abs(judged[site == 0].sum() - 221) <= 4
    assert abs(judged[site == 1].sum() - 30.5) <= 2
