"""The rows of a data set that a run uses: all, or a part that other runs do not use.

Neighbouring rows are often similar, so parts consist of blocks of `BLOCK` rows.
"""

import math
import re
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require

BLOCK = 50
"""Minimum size of a block; a part has all or none of its rows."""
LEAST_BLOCKS = 4
"""Minimum number of blocks in a group; with few rows, they are shorter than `BLOCK`."""
FIXED = ("all", "even", "odd", "early", "late")
DEALT_BY_NUMBER = "tune_0, judge_0, tune_0_of_10, judge_0_of_10, judge_0_one_in_2.5"
ALLOWED = f"{', '.join(FIXED)}, or drawn by number: {DEALT_BY_NUMBER}"
DEALT = re.compile(r"(tune|judge)_(\d{1,9})(?:_of_(\d{1,9}))?(?:_one_in_(\d{1,9}(?:\.\d{1,9})?))?")


class _Dealt(NamedTuple):
    """The fields of a name such as tune_3_of_10 or judge_3_one_in_2.5: half, number, portions, and share of blocks."""

    side: str
    number: int = 0
    portions: int = 1
    one_in: Fraction = Fraction(1)


def _parse_part_name(rows: str) -> _Dealt | None:
    """The fields of a part's name; None for a name without a number."""
    if (match := DEALT.fullmatch(rows)) is None:
        return None
    side, number, portions, one_in = match.groups()
    return _Dealt(side, int(number), int(portions or 1), Fraction(one_in or 1))


def require_part(rows: str) -> None:
    """Refuse an unknown part of the rows, with a `BadValue`."""
    dealt = _parse_part_name(rows)
    fits = dealt is not None and ("_of_" not in rows or dealt.number < dealt.portions) and dealt.one_in >= 1
    is_known = rows in FIXED or fits
    require(is_known, "rows", rows, ALLOWED)


def is_judged(rows: str) -> bool:
    """Whether these rows are for judging: a run then stores the loss of each."""
    return rows.startswith("judge_")


def in_part(rows: str, group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row belongs to a part.

    Parameters
    ----------
    rows : str
        ``even``, ``odd``
            The blocks with an even or an odd number.
        ``early``, ``late``
            The first half of the blocks of each group; the second half, without its first block.
        ``tune_N``, ``judge_N``
            One half of the blocks of each group, and the other, with a new split for each number N.
        ``tune_N_of_G``, ``judge_N_of_G``
            The same for portion N of G disjoint portions.
        ``judge_N_one_in_2.5``, ``tune_N_of_G_one_in_2.5``
            One in 2.5 of the blocks of the part before ``_one_in_``, drawn anew for each number N.
    group : (n,) int64
        Group of each row: its site, and whether the data set marks it as a test row.

    Returns
    -------
    (n,) bool
    """
    # Names without a number
    if rows == "all":
        return np.ones(len(group), np.bool_)
    if rows in ("even", "odd"):
        return np.arange(len(group)) // BLOCK % 2 == ("even", "odd").index(rows)
    # One generator deals the portions, the same for all seeds; the other divides the portion, anew for each number
    side, number, portions, one_in = _parse_part_name(rows) or _Dealt(rows)
    of_portions = np.random.default_rng([BLOCK, portions])
    anew = np.random.default_rng([BLOCK, portions, number])
    chosen = np.zeros(len(group), np.bool_)
    # Group by group, so every site is in both halves
    for group_number in np.unique(group):
        mine = np.flatnonzero(group == group_number)
        blocks = np.arange(_count_blocks(len(mine), portions))
        block = np.arange(len(mine)) * len(blocks) // len(mine)
        # The first and the second half, without the block in the middle, whose rows are similar to both
        if side in ("early", "late"):
            middle = len(blocks) // 2
            chosen[mine] = block < middle if side == "early" else block > middle
            continue
        # The portion's blocks, half of them for each side, and of these the wanted share
        portion = of_portions.permutation(blocks)[number % portions :: portions] if portions > 1 else blocks
        portion = anew.permutation(portion)[(side == "judge") :: 2]
        chosen[mine] = np.isin(block, portion[: math.ceil(len(portion) / one_in)])
    return chosen


def parts_of_all(rows: object) -> Fraction:
    """Ratio of all rows to those of a part: 1 for all, 2 for a half, 2 G for half of a portion."""
    side, _, portions, one_in = _parse_part_name(str(rows)) or _Dealt(str(rows))
    return portions * one_in * (1 if side == "all" else 2)


def one_in(rows: str, group: NDArray[np.int64], needed: int | NDArray[np.int64]) -> str:
    """Name for as many random blocks of a part as a run needs; the part's own name if it has too few.

    Parameters
    ----------
    rows : str
        The part, such as judge_3 or tune_3_of_10.
    group : (n,) int64
        Group of each row of the data set, as in `in_part`.
    needed : int or (groups,) int64
        Number of rows that a run reads, in total or from each group.
    """
    dealt = _parse_part_name(rows) or _Dealt(rows)
    # How many blocks each group's part has, and how many rows the smallest of them
    blocks, size = np.zeros((2, group.max() + 1), np.int64)  # of each group's part: blocks, and their least size
    for group_number in np.unique(group):
        count = int(np.sum(group == group_number))
        whole = _count_blocks(count, dealt.portions)
        blocks[group_number], size[group_number] = whole // dealt.portions // 2, count // whole
    # The blocks that each group needs, and the largest share 1 / ratio that gives no group fewer
    if isinstance(needed, int):  # a share of it from each group
        needed = np.ceil(needed * blocks * size / max(blocks @ size, 1)).astype(np.int64)
    least = np.where(size > 0, np.minimum(-(-needed // np.maximum(size, 1)), blocks), blocks)
    ratio = np.min(blocks / np.maximum(least, 1), where=least > 0, initial=np.max(blocks))
    # As a decimal number of four digits, rounded to keep enough blocks
    up, down = np.ceil(1e4 * ratio) / 1e4, np.floor(1e4 * ratio) / 1e4  # up: no block too many where exact
    enough = (np.ceil(blocks / up) >= least).all()
    share = f"{up if enough else down:.4f}".rstrip("0").rstrip(".")
    return f"{rows}_one_in_{share}" if down > 1 else rows


def _count_blocks(rows: int, portions: int) -> int:
    """Number of blocks of a group: the same in each half of each portion, with 50 rows or more each if possible."""
    return max(rows // BLOCK // (2 * portions) * 2 * portions, LEAST_BLOCKS * portions)
