"""Which rows of a data set a run has: all, or a part that another run does not see.

Neighbouring rows are often alike, so that parts are made of blocks of `BLOCK` of them.
"""

import re

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require

BLOCK = 50
"""Neighbouring rows that a part has all or none of, at least."""
LEAST_BLOCKS = 4
"""Fewest blocks of a group; where it has few rows, they are shorter than `BLOCK`."""
FIXED = ("all", "even", "odd", "early", "late")
ALLOWED = f"{', '.join(FIXED)}, or dealt by number: tune_0, judge_0, tune_0_of_10, judge_0_of_10"
DEALT = re.compile(r"(tune|judge)_(\d{1,9})(?:_of_(\d{1,9}))?")


def require_part(rows: str) -> None:
    """Refuse what names no part of the rows, by a `BadValue`."""
    dealt = DEALT.fullmatch(rows)
    known = rows in FIXED or (dealt is not None and (dealt[3] is None or int(dealt[2]) < int(dealt[3])))
    require(known, "rows", rows, ALLOWED)


def is_judged(rows: str) -> bool:
    """Whether these rows are dealt to be judged: a run then keeps the loss of each."""
    return rows.startswith("judge_")


def in_part(rows: str, group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows a part has.

    Parameters
    ----------
    rows : str
        ``even``, ``odd``
            The blocks with an even or an odd number.
        ``early``, ``late``
            The first half of the blocks of each group; the second half, without its first block.
        ``tune_N``, ``judge_N``
            One half of the blocks of each group, and the other. Each number N deals them anew.
        ``tune_N_of_G``, ``judge_N_of_G``
            The same of portion N of G portions that have no row in common.
    group : (n,) int64
        Of each row: its site, and whether the data set itself sets it apart to be tested on.

    Returns
    -------
    (n,) bool
    """
    if rows == "all":
        return np.ones(len(group), np.bool_)
    if rows in ("even", "odd"):
        return np.arange(len(group)) // BLOCK % 2 == ("even", "odd").index(rows)
    dealt = DEALT.fullmatch(rows)
    number, portions = (int(dealt[2]), int(dealt[3] or 1)) if dealt is not None else (0, 1)
    of_portions = np.random.default_rng([BLOCK, portions])
    anew = np.random.default_rng([BLOCK, portions, number])
    chosen = np.zeros(len(group), np.bool_)
    for one in np.unique(group):
        mine = np.flatnonzero(group == one)
        # As many blocks of equal size in each half of each portion; more than 50 rows each, where there are enough
        even = 2 * portions
        blocks = np.arange(max(len(mine) // BLOCK // even * even, LEAST_BLOCKS * portions))
        block = np.arange(len(mine)) * len(blocks) // len(mine)
        if dealt is None:
            middle = len(blocks) // 2
            chosen[mine] = block < middle if rows == "early" else block > middle
            continue
        portion = of_portions.permutation(blocks)[number % portions :: portions] if portions > 1 else blocks
        half = anew.permutation(portion)[(dealt[1] == "judge") :: 2]
        chosen[mine] = np.isin(block, half)
    return chosen


def parts_of_all(rows: object) -> int:
    """The share of all rows that a part has: 1 for all, 2 for a half, 2 G for half of a portion."""
    dealt = DEALT.fullmatch(str(rows))
    return 1 if rows == "all" else 2 * int(dealt[3] or 1) if dealt is not None else 2
