"""Which published cells come out: classes of their differences, and what a table's classes add up to."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fkl.papers.beside import KEY, NOT_RUN


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
FAR = Verdict("far", "✗", "more than 5 % off")
MISSING = Verdict("missing", "–", "not run")
TIME = Verdict("time", "t", "run time, not compared")
"""On another machine and another implementation, a time is nothing to reproduce."""

VERDICTS = (NEAR, CLOSE, FAR, MISSING, TIME)
TIMES = ("s", "min")
LIMITS = {NEAR: 1.0, CLOSE: 5.0}


def judge(table: pd.DataFrame) -> pd.DataFrame:
    """A table with two more columns.

    Parameters
    ----------
    table : DataFrame

    Returns
    -------
    DataFrame
        With `verdict`, None where there is no published number to compare with, and `counts`: whether the row is the
        first of its published cell.
    """
    if not {*KEY, "published", "ours"} <= set(table):
        return table.assign(verdict=None, counts=True)
    verdicts = pd.Series([_verdict(row) for row in table.to_dict("records")], table.index, dtype=object)
    return table.assign(verdict=verdicts, counts=~table.duplicated(KEY))


def cells(judged: pd.DataFrame, verdict: Verdict) -> pd.DataFrame:
    """The rows that count of one class."""
    return judged[judged["counts"] & (judged["verdict"] == verdict)]


def tally(judged: Iterable[pd.DataFrame]) -> dict[Verdict, int]:
    """How many published cells of some tables are of each class; nothing of classes without one."""
    tables = list(judged)
    found = {verdict: sum(len(cells(table, verdict)) for table in tables) for verdict in VERDICTS}
    return {verdict: number for verdict, number in found.items() if number}


def _verdict(row: dict[Hashable, Any]) -> Verdict | None:
    published, ours = row["published"], float(row["ours"])
    if np.isnan(ours):  # a run that never gets as far as the published one was run all the same
        return MISSING if str(row["switch"]).startswith(NOT_RUN) else FAR
    if row["unit"] in TIMES:
        return TIME
    if isinstance(published, str):  # a bound, such as >900, is no number to be near
        return None
    off = 100 * abs(ours - published)
    return next((verdict for verdict, limit in LIMITS.items() if off <= limit * abs(published)), FAR)
