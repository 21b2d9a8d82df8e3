"""Each published cell, our number for it as described in the paper and by one reading, and the runs behind it."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fkl.config.digest import NOT_RESULTS
from fkl.papers.printed import metric_in_words, setting_in_words, with_decimals_of
from fkl.papers.published import AS_STATED, KEY, PREVIEW
from fkl.papers.verdicts import Cell, Judged, Mark
from fkl.runs.finished_runs import FinishedRun


@dataclass(frozen=True)
class Ours:
    """Our number for a published cell by one reading of the paper.

    Parameters
    ----------
    value, spread : float
        Mean and standard deviation over n values; the spread of one value is NaN.
    shown, shown_spread : str
        The same with the decimals of the printed number.
    n : int
    reading : str
        As in the tables; with fewer replicates than in the paper it begins with "preview".
    run : str
        Digest of the run; empty if the number is not from a single run.
    """

    value: float
    spread: float
    shown: str
    shown_spread: str
    n: int
    reading: str
    run: str


@dataclass(frozen=True)
class TracedCell:
    """A published number, and the sources of ours.

    Parameters
    ----------
    paper, table : str
    key : dict of str to str
        Data set, algorithm, setting and metric.
    unit, published : str
    described : Ours, optional
        From the text of the paper; None if it was not run.
    by_one : Ours, optional
        From the one reading of the whole paper.
    mark : Mark, optional
        None for a bound.
    """

    paper: str
    table: str
    key: Mapping[str, str]
    unit: str
    published: str
    described: Ours | None
    by_one: Ours | None
    mark: Mark | None

    @property
    def setting(self) -> str:
        """Setting and metric for people."""
        return ", ".join(filter(None, (setting_in_words(self.key["setting"]), metric_in_words(self.key["metric"]))))

    @property
    def runs(self) -> list[str]:
        """Digests of the runs behind it."""
        return [*dict.fromkeys(ours.run for ours in (self.described, self.by_one) if ours is not None and ours.run)]

    def row(self) -> dict[str, Any]:
        """A row of a machine-readable table."""
        row: dict[str, Any] = {"paper": self.paper, "table": self.table, **self.key}
        row |= {"unit": self.unit, "published": self.published}
        for name, ours in (("as_described", self.described), ("by_one_reading", self.by_one)):
            told = (ours.value, ours.spread, ours.n, ours.run) if ours is not None else (np.nan, np.nan, 0, "")
            row |= dict(zip((name, f"{name}_spread", f"{name}_n", f"{name}_run"), told, strict=True))
        return row | {"outcome": self.mark.words if self.mark is not None else ""}


def traced(judged: Judged, number: str) -> Iterator[TracedCell]:
    """The published cells of one table of a paper, in the order of the table; empty if no number is published."""
    frame = judged.frames.get(number, pd.DataFrame())
    if not {*KEY, "verdict"} <= {*frame}:
        return
    settled = {at: (cell, mark) for cell, mark in judged.outcomes if cell.table == number for at in cell.rows.index}
    for key, rows in frame.groupby(KEY, sort=False):
        cell, mark = settled.get(rows.index[0], (None, None))
        first = rows.iloc[0]
        yield TracedCell(
            paper=judged.paper,
            table=number,
            key=dict(zip(KEY, map(str, key), strict=True)),
            unit=str(first["unit"]),
            published=with_decimals_of(first, first["published"]),
            described=_ours(rows, AS_STATED),
            by_one=_ours(rows, _one_reading(cell, judged)),
            mark=mark,
        )


def command(run: FinishedRun) -> str:
    """The command that plays a run, without words that change none of its numbers; empty if it is unknown."""
    words = [word for word in run.words if word.lstrip("+~").split("=")[0].split(".")[0] not in NOT_RESULTS]
    return shlex.join(["fkl", "run", *words]) if words else ""


def _one_reading(cell: Cell | None, judged: Judged) -> str:
    """The reading for the whole paper, or for this cell the one on which it builds."""
    return judged.reading if cell is None else cell.read_as(judged.reading, judged.builds_on)


def _ours(rows: pd.DataFrame, reading: str) -> Ours | None:
    """The first of our answers by a reading; a preview if there is nothing else."""
    ran = rows[rows["ours"].notna()]
    for like in (reading, PREVIEW + reading):
        chosen = ran[ran["reading"] == like]
        if len(chosen):
            row = chosen.iloc[0]
            shown, spread = (with_decimals_of(row, row[name], ours=True) for name in ("ours", "spread"))
            numbers = float(row["ours"]), float(row["spread"]), shown, spread, int(row["n"])
            return Ours(*numbers, reading=like, run=str(row["run"]))
    return None
