"""Agreement with a paper: by its text, by one reading for all of it, by some reading, and by chance.

A cell is a printed number, or a curve: the points of one run. `fkl.statistics.equivalence` decides whether each
reading of a cell agrees; here the cells of a paper are counted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pandas as pd

from fkl.config import experiments
from fkl.papers.published import AS_STATED, KEY, NOT_RUN, ONE_CURVE, PREVIEW, TIMES, tested
from fkl.statistics.equivalence import AGREES, CANNOT_TELL, DIFFERS
from fkl.statistics.intervals import LEVEL


@dataclass(frozen=True)
class Mark:
    """A mark of a row or of a cell.

    Parameters
    ----------
    name : str
        Name in the style sheet.
    sign : str
        Distinguishes it without colours.
    words : str
    """

    name: str
    sign: str
    words: str


ROWS = {
    AGREES: Mark("near", "✓", AGREES),
    DIFFERS: Mark("far", "✗", DIFFERS),
    CANNOT_TELL: Mark("inside", "?", CANNOT_TELL),
}
"""Marks of a row, by verdict."""

ONE = Mark("near", "✓", "agrees by the one reading")
OTHER = Mark("close", "v", "agrees by another reading only")
UNCLEAR = Mark("inside", "?", "cannot tell")
SPREAD = Mark("inside", "∈", "cannot tell: only inside a variant's spread")
DIFFERENT = Mark("far", "✗", "differs by every reading that was run")
FOLLOWS = Mark("time", "=", "follows from other cells or from the method")
EARLY = Mark("preview", "p", "preview: fewer replicates than the paper's")
MISSING = Mark("missing", "–", "not run")
TIME = Mark("time", "t", "run time, no verdict")

COUNTED = (ONE, OTHER, UNCLEAR, SPREAD, DIFFERENT)
"""Evidence: data are available, there are as many runs as in the paper, and another outcome was possible."""
OUTCOMES = (*COUNTED, FOLLOWS, EARLY, MISSING, TIME)
"""Possible outcomes of a cell."""

FACTORS = (0.9, 1.1)
"""False numbers: the printed ones times these."""
SHARES = ("as_described", "by_one_reading", "by_some_reading")
"""Counts of cells that agree; each also has the count with false numbers."""


@dataclass(frozen=True)
class Cell:
    """A printed number, or a curve, with our numbers for each reading of the paper.

    Parameters
    ----------
    table : str
        Number of its table.
    rows : DataFrame
        From `fkl.papers.published.beside`.
    """

    table: str
    rows: pd.DataFrame

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """Rows by reading, if its run is evidence."""
        evidence = self.rows["reading"].ne("") & ~self.rows["reading"].str.startswith(PREVIEW)
        rows = self.rows[self.rows["verdict"].ne("") & evidence].drop_duplicates("reading")
        return dict(zip(rows["reading"], rows["verdict"], strict=True))

    @cached_property
    def first(self) -> dict[str, Any]:
        """Its first row, with what all its rows share."""
        return dict(self.rows.iloc[0])

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The printed number, by setting."""
        rows = self.rows.drop_duplicates("setting")
        return dict(zip(rows["setting"], rows["published"], strict=True))

    @property
    def apart(self) -> Mark | None:
        """Why it is not counted; None if it is."""
        if self.first["unit"] in TIMES:
            return MISSING if str(self.first["switch"]).startswith(NOT_RUN) else TIME
        if self.verdicts:
            return FOLLOWS if self.first["follows_from"] else None
        return EARLY if self.rows["reading"].str.startswith(PREVIEW).any() else MISSING

    def read_as(self, reading: str, builds_on: Mapping[str, str]) -> str:
        """A reading; if it has no run of its own here, the one on which it builds."""
        while reading not in self.verdicts and reading != AS_STATED:
            reading = builds_on.get(reading, AS_STATED)
        return reading

    def by(self, reading: str, builds_on: Mapping[str, str]) -> str:
        """The verdict by one reading."""
        return self.verdicts.get(self.read_as(reading, builds_on), "")

    def outcome(self, reading: str, builds_on: Mapping[str, str]) -> Mark:
        """Its outcome with this reading of the paper."""
        if self.apart is not None:
            return self.apart
        if self.by(reading, builds_on) == AGREES:
            return ONE
        found = {*self.verdicts.values()}
        if AGREES in found:
            return OTHER
        if CANNOT_TELL in found:
            return UNCLEAR if self.verdicts.get(AS_STATED) == CANNOT_TELL else SPREAD
        return DIFFERENT


def cells(frames: Mapping[str, pd.DataFrame]) -> Iterator[Cell]:
    """The cells of some tables, without those that are only a bound."""
    for number, frame in frames.items():
        if not {*KEY, "verdict"} <= {*frame}:
            continue
        numbers = frame[~frame["published"].map(lambda value: isinstance(value, str)) | frame["unit"].isin(TIMES)]
        one_cell = numbers["setting"].where(numbers["curve"] == "", "")
        for _, rows in numbers.groupby([numbers[key] for key in ONE_CURVE] + [one_cell], sort=False):
            yield Cell(number, rows)


@dataclass(frozen=True)
class Judged:
    """The cells of one paper.

    Parameters
    ----------
    paper : str
    frames : mapping of str to DataFrame
        Its tables, by number.
    """

    paper: str
    frames: Mapping[str, pd.DataFrame]

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells."""
        return [*cells(self.frames)]

    @cached_property
    def counted(self) -> list[Cell]:
        """Cells that are evidence."""
        return [cell for cell in self.cells if cell.apart is None]

    @property
    def tried(self) -> int:
        """Number of tried readings, named or not."""
        return experiments.readings_tried(self.paper)

    @property
    def readings(self) -> list[str]:
        """Named readings, the text first."""
        return [AS_STATED, *experiments.variants(self.paper)]

    @cached_property
    def builds_on(self) -> dict[str, str]:
        """By reading, the one whose runs it shares if it has none of its own."""
        return experiments.builds_on(self.paper)

    @cached_property
    def reading(self) -> str:
        """The reading with the most agreeing cells; among several the first."""
        return max(self.readings, key=self.agree)

    @property
    def only_times(self) -> bool:
        """Whether all printed numbers are run times; no cell can then be counted."""
        return bool(self.cells) and all(cell.first["unit"] in TIMES for cell in self.cells)

    @cached_property
    def outcomes(self) -> list[tuple[Cell, Mark]]:
        """Outcome of each cell."""
        return [(cell, cell.outcome(self.reading, self.builds_on)) for cell in self.cells]

    def tally(self, table: str | None = None) -> dict[Mark, int]:
        """Number of cells, in one table or in all, by outcome; without outcomes that do not occur."""
        found = [outcome for cell, outcome in self.outcomes if table in (None, cell.table)]
        return {outcome: found.count(outcome) for outcome in OUTCOMES if outcome in found}

    @cached_property
    def shares(self) -> dict[str, Any]:
        """Number of cells that agree, and that would agree with other printed numbers: a row of `shares_table`."""
        outcomes = [outcome for _, outcome in self.outcomes]
        by_one = [cell.by(self.reading, self.builds_on) for cell in self.counted]
        false = {f"times_{factor}": self._false(partial(_times, factor)) for factor in FACTORS}
        false["another_methods"] = self._false(self._of_others)
        unclear = outcomes.count(UNCLEAR) + outcomes.count(SPREAD)
        return {
            "paper": self.paper,
            "cells": len(self.counted),
            "as_described": self.agree(AS_STATED),
            "by_one_reading": self.agree(self.reading),
            "reading": self.reading,
            "readings_tried": self.tried,
            "by_some_reading": outcomes.count(ONE) + outcomes.count(OTHER),
            "not": outcomes.count(DIFFERENT),
            "cannot_tell": unclear,
            "differ_by_one_reading": by_one.count(DIFFERS),
            "differ_by_chance": LEVEL * len(self.counted),
            **{f"{share}_if_{null}": agree for null, (found, _) in false.items() for share, agree in found.items()},
            "of_cells": false["another_methods"][1],
        }

    def agree(self, reading: str) -> int:
        """Number of cells that agree by one reading."""
        return sum(cell.by(reading, self.builds_on) == AGREES for cell in self.counted)

    def _false(self, numbers: "Callable[[Cell], list[dict[str, float]]]") -> tuple[dict[str, float], int]:
        """Number of cells that would agree with false numbers, by `SHARES`, and the total.

        The one reading is then the best one.

        Parameters
        ----------
        numbers : callable
            False numbers of a cell by setting; several have equal weights; a cell without any is left out.
        """
        false = [
            [replace(cell, rows=tested(_with(cell.rows, other), self.tried)) for other in numbers(cell)]
            for cell in self.counted
        ]
        of = [several for several in false if several]

        def count(agrees: "Callable[[Cell], bool]") -> float:
            return sum(sum(map(agrees, several)) / len(several) for several in of)

        by_reading = {
            reading: count(lambda cell, reading=reading: cell.by(reading, self.builds_on) == AGREES)  # type: ignore[misc]
            for reading in self.readings
        }
        some = count(lambda cell: AGREES in cell.verdicts.values())
        return dict(zip(SHARES, (by_reading[AS_STATED], max(by_reading.values()), some), strict=True)), len(of)

    def _of_others(self, cell: Cell) -> list[dict[str, float]]:
        """Printed numbers of other methods: in the same setting, otherwise on the same data in the same table."""
        like = [
            other
            for other in self.cells
            if other.first["algorithm"] != cell.first["algorithm"]
            and all(other.first[name] == cell.first[name] for name in ("dataset", "metric", "curve"))
        ]
        settings = [*cell.numbers]
        same = [{at: other.numbers[at] for at in settings} for other in like if {*settings} <= {*other.numbers}]
        if not same and len(settings) == 1:
            same = [{settings[0]: n} for other in like if other.table == cell.table for n in other.numbers.values()]
        unique = {tuple(other.values()): other for other in same}
        return [other for values, other in unique.items() if values != tuple(cell.numbers.values())]


def shares_table(judged: Iterable[Judged]) -> pd.DataFrame:
    """One row for each paper with a counted cell, and their sum."""
    rows = [one.shares for one in judged if one.counted]
    table = pd.DataFrame(rows)
    if len(rows) > 1:
        total = {**table.sum(numeric_only=True).to_dict(), "paper": "all", "reading": "one a paper"}
        table = pd.concat([table, pd.DataFrame([total])], ignore_index=True).astype(table.dtypes.to_dict())
    return table


def _times(factor: float, cell: Cell) -> list[dict[str, float]]:
    return [{setting: factor * number for setting, number in cell.numbers.items()}]


def _with(rows: pd.DataFrame, numbers: Mapping[str, float]) -> pd.DataFrame:
    """Rows with other printed numbers."""
    return rows.assign(published=rows["setting"].map(numbers))
