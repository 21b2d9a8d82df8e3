"""Rows dealt to tuning and to judging: no row on both sides, whole blocks, and portions that share nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import BadValue
from fkl.data.dealt_rows import BLOCK, in_part, one_in, parts_of_all, require_part

SITES = st.lists(st.integers(4, 400), min_size=1, max_size=4)


@given(rows=SITES, number=st.integers(0, 50), portions=st.integers(2, 5))
def test_each_row_is_in_one_portion_and_is_tuned_on_or_judged_never_both(rows, number, portions):
    site = np.repeat(np.arange(len(rows)), rows)
    tune, judge = in_part(f"tune_{number}", site), in_part(f"judge_{number}", site)
    assert (tune ^ judge).all()
    for one in range(len(rows)):  # at every site there is something on both sides
        assert tune[site == one].any() and judge[site == one].any()
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


@given(rows=SITES, number=st.integers(0, 50), data=st.data())
def test_blocks_are_drawn_from_a_part_and_hold_the_rows_that_are_needed(rows, number, data):
    site = np.repeat(np.arange(len(rows)), rows)
    part = f"judge_{data.draw(st.sampled_from([f'{number}', f'{number % 3}_of_3']))}"
    there = np.bincount(site[in_part(part, site)], minlength=len(rows))
    of_each = np.array([data.draw(st.integers(min(1, count), count)) for count in there])
    for needed in (of_each, int(of_each.sum())):
        if np.sum(needed):
            name = one_in(part, site, needed)
            require_part(name)
            drawn = in_part(name, site)
            assert not (drawn & ~in_part(part, site)).any()
            found = np.bincount(site[drawn], minlength=len(rows))
            assert (found >= needed).all() if np.ndim(needed) else found.sum() >= needed


def test_blocks_that_are_drawn_come_from_the_whole_source():
    site = np.zeros(20_000, int)
    drawn = [in_part(one_in(f"judge_{number}", site, np.array([1000])), site) for number in range(10)]
    assert all(one.sum() == 1000 for one in drawn)
    assert np.any(drawn, axis=0).reshape(-1, 2000).any(axis=1).all()
    assert all(one.reshape(2, -1).any(axis=1).all() for one in drawn)


@pytest.mark.parametrize(
    "rows", ["tune", "judge_", "tune_-1", "judge_10_of_10", "both", "judge_1_of_2_of_3", "tune_1_one_in_0.5"]
)
def test_what_names_no_part_is_refused(rows):
    with pytest.raises(BadValue, match="drawn by number"):
        require_part(rows)


def test_shares():
    assert [parts_of_all(rows) for rows in ("all", "odd", "judge_3", "tune_3_of_10")] == [1, 2, 2, 20]
    assert parts_of_all("tune_3_one_in_2.5") == 5
