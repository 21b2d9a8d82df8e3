"""Agreement with a paper: by its text, by one reading for all of it, by some reading, and by chance.

A claim is a printed number, or a curve: the points of one run. `fkl.statistics.equivalence` decides whether each
reading of a claim agrees; here the claims of a paper are counted.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from fkl.config import experiments
from fkl.papers.cells import AS_STATED, DIFFERENT, ONE, OTHER, OUTCOMES, SPREAD, UNCLEAR, Cell, Mark, tested
from fkl.statistics.equivalence import AGREES, DIFFERS
from fkl.statistics.intervals import LEVEL

Claim = list[Cell]
"""A printed number alone, or all points of a curve, which share their verdicts and count once."""

FACTORS = (0.9, 1.1)
"""False numbers: the printed ones times these."""
SHARES = ("as_described", "by_one_reading", "by_some_reading")
"""Counts of claims that agree; each also has the count with false numbers."""


@dataclass(frozen=True)
class Evidence:
    """The cells of one paper.

    Parameters
    ----------
    paper : str
    cells : sequence of Cell
        Of all its tables.
    """

    paper: str
    cells: Sequence[Cell]

    @cached_property
    def claims(self) -> list[Claim]:
        """All claims, without numbers that are only a bound."""
        claims: dict[tuple[str, ...], Claim] = {}
        for cell in self.cells:
            if not cell.is_bound or cell.is_time:
                claims.setdefault(cell.claim, []).append(cell)
        return [*claims.values()]

    @cached_property
    def counted(self) -> list[Claim]:
        """Claims that are evidence."""
        return [claim for claim in self.claims if claim[0].apart is None]

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
        """The reading whose runs a reading shares if it has none of its own."""
        return experiments.builds_on(self.paper)

    @cached_property
    def reading(self) -> str:
        """The reading with the most agreeing claims; among several the first."""
        return max(self.readings, key=self.agree)

    @property
    def only_times(self) -> bool:
        """Whether all printed numbers are run times; no claim can then be counted."""
        return bool(self.claims) and all(claim[0].is_time for claim in self.claims)

    @cached_property
    def _judged(self) -> list[Cell]:
        return [cell.judged(self.reading, self.builds_on, self.readings) for cell in self.cells]

    def judged(self, table: str) -> list[Cell]:
        """The cells of one table with their marks, by the one reading."""
        return [cell for cell in self._judged if cell.table == table]

    @cached_property
    def outcomes(self) -> list[tuple[Claim, Mark]]:
        """Outcome of each claim."""
        return [(claim, claim[0].outcome(self.reading, self.builds_on)) for claim in self.claims]

    def tally(self, table: str | None = None) -> dict[Mark, int]:
        """Number of claims, in one table or in all, by outcome; without outcomes that do not occur."""
        found = [mark for claim, mark in self.outcomes if table in (None, claim[0].table)]
        return {outcome: found.count(outcome) for outcome in OUTCOMES if outcome in found}

    @cached_property
    def shares(self) -> dict[str, Any]:
        """Number of claims that agree, and that would agree with other printed numbers: a row of `shares_table`."""
        outcomes = [outcome for _, outcome in self.outcomes]
        by_one = [claim[0].by(self.reading, self.builds_on) for claim in self.counted]
        false = {
            f"times_{factor}": self._false(lambda claim, factor=factor: [[factor * cell.number for cell in claim]])  # type: ignore[misc]
            for factor in FACTORS
        }
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
        """Number of claims that agree by one reading."""
        return sum(claim[0].by(reading, self.builds_on) == AGREES for claim in self.counted)

    def _false(self, numbers: "Callable[[Claim], list[list[float]]]") -> tuple[dict[str, float], int]:
        """Number of claims that would agree with false numbers, by `SHARES`, and the total.

        The one reading is then the best one.

        Parameters
        ----------
        numbers : callable
            False numbers of a claim's cells; several have equal weights; a claim without any is omitted.
        """
        false = [
            [
                tested([replace(cell, value=other) for cell, other in zip(claim, others, strict=True)], self.tried)[0]
                for others in numbers(claim)
            ]
            for claim in self.counted
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

    def _of_others(self, claim: Claim) -> list[list[float]]:
        """Printed numbers of other methods: in the same setting, otherwise on the same data in the same table."""
        first, settings = claim[0], [cell.setting for cell in claim]
        like = [
            {cell.setting: cell for cell in other}
            for other in self.claims
            if other[0].algorithm != first.algorithm
            and (other[0].dataset, other[0].metric, other[0].curve) == (first.dataset, first.metric, first.curve)
        ]
        same = [[other[at].number for at in settings] for other in like if {*settings} <= {*other}]
        if not same and len(claim) == 1:
            same = [[cell.number] for other in like for cell in other.values() if cell.table == first.table]
        unique = {tuple(other): other for other in same}
        return [other for values, other in unique.items() if [*values] != [cell.number for cell in claim]]


def shares_table(evidence: Iterable[Evidence]) -> pd.DataFrame:
    """One row for each paper with a counted claim, and their sum."""
    rows = [one.shares for one in evidence if one.counted]
    table = pd.DataFrame(rows)
    if len(rows) > 1:
        total = {**table.sum(numeric_only=True).to_dict(), "paper": "all", "reading": "one a paper"}
        table = pd.concat([table, pd.DataFrame([total])], ignore_index=True).astype(table.dtypes.to_dict())
    return table
