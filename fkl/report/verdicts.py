"""Which published cells come out: how near a row is to its published cell, and what settles the cell."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fkl.papers import beside
from fkl.papers.beside import AS_STATED, CENTRAL, KEY, NOT_RUN


@dataclass(frozen=True)
class Verdict:
    """A class of differences.

    Parameters
    ----------
    name : str
        What the style sheet calls it.
    mark : str
        Tells it apart where colours do not.
    words : str
    """

    name: str
    mark: str
    words: str


NEAR = Verdict("near", "✓", "within 1 %")
CLOSE = Verdict("close", "≈", "1 to 5 % off")
INSIDE = Verdict("inside", "∈", "inside our spread")
FAR = Verdict("far", "✗", "more than 5 % off")
PARTLY = Verdict("far", "n", "not all replicates reach it, so their mean is not compared")
LIMITS = {NEAR: 1.0, CLOSE: 5.0}

STATED = Verdict("near", "✓", "as stated")
VARIANT = Verdict("close", "v", "by a named variant")
UNEXPLAINED = Verdict("far", "✗", "not explained")
PREVIEW = Verdict("preview", "p", "preview: fewer replicates than the paper's")
MISSING = Verdict("missing", "–", "not run")
TIME = Verdict("time", "t", "run time, not compared")
"""On another machine and another implementation, a time is nothing to reproduce."""
FOLLOWS = Verdict("time", "=", "follows from other cells or from the method, no evidence")
"""What cannot come out otherwise once others do is counted apart."""

OUTCOMES = (STATED, INSIDE, VARIANT, UNEXPLAINED, FOLLOWS, PREVIEW, MISSING, TIME)
"""What can become of a published cell."""
EXPLAINED = (STATED, INSIDE, VARIANT)
COUNTED = (*EXPLAINED, UNEXPLAINED)
"""What is evidence: data are at hand, runs as many as the paper's, and it could have come out otherwise."""
TIMES = ("s", "min")


def judge(table: pd.DataFrame) -> pd.DataFrame:
    """A table with two more columns.

    Parameters
    ----------
    table : DataFrame

    Returns
    -------
    DataFrame
        With `verdict` on each row, None where there is no published number to compare with; and `outcome` of its
        published cell, on the row that decides it and None on the others.
    """
    if not {*KEY, "published", "ours"} <= set(table):
        return table.assign(verdict=None, outcome=None)
    verdicts = [_verdict(row) for row in table.to_dict("records")]
    judged = table.assign(verdict=pd.Series(verdicts, table.index, dtype=object))
    decided = dict(
        _outcome([*zip(rows.index, rows["reading"], rows["verdict"], strict=True)])
        for _, rows in judged.groupby(KEY, sort=False, dropna=False)
    )
    if "follows_from" in table:
        ran = {at: outcome for at, outcome in decided.items() if outcome not in (None, MISSING, PREVIEW)}
        decided |= dict.fromkeys((at for at in ran if table.at[at, "follows_from"]), FOLLOWS)
    return judged.assign(outcome=pd.Series([decided.get(at) for at in table.index], table.index, dtype=object))


def cells(judged: pd.DataFrame, outcome: Verdict) -> pd.DataFrame:
    """The rows that decide the cells with one outcome."""
    return judged[judged["outcome"] == outcome]


def tally(judged: Iterable[pd.DataFrame]) -> dict[Verdict, int]:
    """How many published cells of some tables have each outcome; nothing of outcomes without one."""
    tables = list(judged)
    found = {outcome: sum(len(cells(table, outcome)) for table in tables) for outcome in OUTCOMES}
    return {outcome: number for outcome, number in found.items() if number}


def explained(tally: dict[Verdict, int]) -> tuple[int, int]:
    """How many published cells are explained, and of how many."""
    return sum(tally.get(outcome, 0) for outcome in EXPLAINED), sum(tally.get(outcome, 0) for outcome in COUNTED)


def _verdict(row: dict[Hashable, Any]) -> Verdict | None:
    """How near a row is to the published number, which is all that would be printed like it."""
    published, ours = row["published"], float(row["ours"])
    if np.isnan(ours):  # a run that never gets as far as the published one was run all the same
        return MISSING if str(row["switch"]).startswith(NOT_RUN) else FAR
    if row["unit"] in TIMES:
        return TIME
    if isinstance(published, str):  # a bound, such as >900, is no number to be near
        return None
    if str(row["reading"]).startswith(beside.PREVIEW):
        return PREVIEW
    off = 100 * max(0.0, abs(ours - published) - row["rounding"])
    near = next((verdict for verdict, limit in LIMITS.items() if off <= limit * abs(published)), None)
    partly = row["n"] < row.get("of", 0)  # those that reach an error are the lucky ones
    low, high = (float(row.get(end, np.nan)) for end in CENTRAL)
    inside = low - row["rounding"] <= published <= high + row["rounding"]
    if inside and (partly or not near):
        return INSIDE
    return PARTLY if partly else near or FAR


def _outcome(rows: list[tuple[Hashable, str, Verdict | None]]) -> tuple[Hashable, Verdict | None]:
    """The row of a cell that decides what becomes of it, and that: the text first, then variants in their order."""
    first, _, verdict = rows[0]
    if verdict in (None, TIME):
        return first, verdict
    evidence = [row for row in rows if row[1] and row[2] not in (PREVIEW, MISSING)]
    stated = [row for row in evidence if row[1] == AS_STATED]
    variants = [row for row in evidence if row[1] != AS_STATED]
    for among, good, outcome in (
        (stated, (NEAR, CLOSE), STATED),
        (stated, (INSIDE,), INSIDE),
        (variants, (NEAR, CLOSE), VARIANT),
        (variants, (INSIDE,), VARIANT),
    ):
        for at, _, verdict in among:
            if verdict in good:
                return at, outcome
    if evidence:
        return (stated or variants)[0][0], UNEXPLAINED
    previews = [at for at, _, verdict in rows if verdict == PREVIEW]
    return (previews[0], PREVIEW) if previews else (first, MISSING)
