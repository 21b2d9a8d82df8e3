"""Count the claims of a paper that agree: by its text, by one reading for all, by any reading, and by chance.

A claim is a printed number, or a curve whose points are from one run. `fkl.statistics.equivalence` decides whether a
claim agrees by a reading, and this module counts the claims.

For example, of 10 claims 6 agree by the text, 7 by a variant, and 8 by either of the two. The paper's one reading is
then the variant: 7 agree. To see how many would agree by chance, the count is repeated with false printed numbers: all
multiplied by 0.9 or by 1.1, or exchanged for those of the paper's other methods. If 6 of 10 false numbers agree as
well, the 7 are no evidence.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from fkl.config import experiments
from fkl.papers.cells import (
    AGREES_BY_CHOSEN,
    AGREES_OTHERWISE,
    AS_STATED,
    DIFFERENT,
    OUTCOMES,
    UNCLEAR,
    WITHIN_SPREAD,
    Mark,
    PublishedCell,
    judge_answers,
)
from fkl.statistics.equivalence import AGREES, DIFFERS
from fkl.statistics.intervals import LEVEL

Claim = list[PublishedCell]
"""One printed number, or all points of a curve, which share their verdicts and count once."""

FACTORS = (0.9, 1.1)
"""Factors that turn printed numbers into false ones."""
SHARES = ("as_described", "by_one_reading", "by_some_reading")
"""Names of the counts of agreeing claims, which are also made with false numbers."""


@dataclass(frozen=True)
class Evidence:
    """Cells of one paper, and their verdicts.

    Parameters
    ----------
    paper : str
    cells : sequence of Cell
        Cells of all its tables.
    """

    paper: str
    cells: Sequence[PublishedCell]

    @cached_property
    def claims(self) -> list[Claim]:
        """All claims, except bounds."""
        # All points of a curve are one claim; every other number is its own
        claims: dict[tuple[str, ...], Claim] = {}
        for cell in self.cells:
            if not cell.is_bound or cell.is_time:
                claims.setdefault(cell.claim, []).append(cell)
        return [*claims.values()]

    @cached_property
    def counted(self) -> list[Claim]:
        """Claims that are evidence."""
        return [claim for claim in self.claims if claim[0].why_not_counted is None]

    @property
    def tried(self) -> int:
        """Number of readings that were tried, with or without a name."""
        return experiments.readings_tried(self.paper)

    @property
    def readings(self) -> list[str]:
        """Names of readings, beginning with the text."""
        return [AS_STATED, *experiments.paper_variants(self.paper)]

    @cached_property
    def builds_on(self) -> dict[str, str]:
        """For each reading, the reading whose runs it uses if it has none of its own."""
        return experiments.builds_on(self.paper)

    @cached_property
    def reading(self) -> str:
        """The one reading: the first of those with the most agreeing claims."""
        return max(self.readings, key=self.count_agreeing)

    @property
    def only_times(self) -> bool:
        """Whether all printed numbers are run times, so no claim can be counted."""
        return bool(self.claims) and all(claim[0].is_time for claim in self.claims)

    @cached_property
    def _judged(self) -> list[PublishedCell]:
        return [cell.judged_by(self.reading, self.builds_on, self.readings) for cell in self.cells]

    def judged_cells(self, table: str) -> list[PublishedCell]:
        """Cells of one table, with their marks by the one reading."""
        return [cell for cell in self._judged if cell.table == table]

    @cached_property
    def outcomes(self) -> list[tuple[Claim, Mark]]:
        """Outcome of each claim."""
        return [(claim, claim[0].outcome(self.reading, self.builds_on)) for claim in self.claims]

    def tally_outcomes(self, table: str | None = None) -> dict[Mark, int]:
        """Number of claims by outcome, in one table or in all tables, without outcomes that do not occur."""
        found = [mark for claim, mark in self.outcomes if table in (None, claim[0].table)]
        return {outcome: found.count(outcome) for outcome in OUTCOMES if outcome in found}

    @cached_property
    def shares(self) -> dict[str, Any]:
        """A row of `shares_table`: numbers of claims that agree, and that would agree with false numbers."""
        # Verdicts by the one reading, and how many would agree if the printed numbers were false
        outcomes = [outcome for _, outcome in self.outcomes]
        by_one = [claim[0].verdict_under(self.reading, self.builds_on) for claim in self.counted]
        false = {
            f"times_{factor}": self._false_numbers(lambda claim, by=factor: [[by * cell.number for cell in claim]])  # type: ignore[misc]
            for factor in FACTORS
        }
        false["another_methods"] = self._false_numbers(self._numbers_of_other_methods)
        # Undecided claims count neither as agreeing nor as differing
        unclear = outcomes.count(UNCLEAR) + outcomes.count(WITHIN_SPREAD)
        return {
            "paper": self.paper,
            "cells": len(self.counted),
            "as_described": self.count_agreeing(AS_STATED),
            "by_one_reading": self.count_agreeing(self.reading),
            "reading": self.reading,
            "readings_tried": self.tried,
            "by_some_reading": outcomes.count(AGREES_BY_CHOSEN) + outcomes.count(AGREES_OTHERWISE),
            "not": outcomes.count(DIFFERENT),
            "cannot_tell": unclear,
            "differ_by_one_reading": by_one.count(DIFFERS),
            "differ_by_chance": LEVEL * len(self.counted),
            **{f"{share}_if_{null}": agree for null, (found, _) in false.items() for share, agree in found.items()},
            "of_cells": false["another_methods"][1],
        }

    def count_agreeing(self, reading: str) -> int:
        """Number of claims that agree by this reading."""
        return sum(claim[0].verdict_under(reading, self.builds_on) == AGREES for claim in self.counted)

    def _false_numbers(self, numbers: "Callable[[Claim], list[list[float]]]") -> tuple[dict[str, float], int]:
        """Number of claims that would agree with false numbers, by `SHARES`, and number of claims with such numbers.

        The one reading is the one that is best with the false numbers.

        Parameters
        ----------
        numbers : callable
            Returns lists of false numbers for a claim's cells, with equal weights; claims without any are omitted.
        """
        # For each claim: the tests of our answers against each of its false numbers
        false = [
            [
                judge_answers(
                    [replace(cell, value=other) for cell, other in zip(claim, others, strict=True)], self.tried
                )[0]
                for others in numbers(claim)
            ]
            for claim in self.counted
        ]
        # Claims that have false numbers; several false numbers of a claim share its weight
        of = [several for several in false if several]

        def count(agrees: "Callable[[PublishedCell], bool]") -> float:
            return sum(sum(map(agrees, several)) / len(several) for several in of)

        # Even with false numbers, the best reading may be chosen, so this is the fair comparison
        by_reading = {
            reading: count(lambda cell, reading=reading: cell.verdict_under(reading, self.builds_on) == AGREES)  # type: ignore[misc]
            for reading in self.readings
        }
        some = count(lambda cell: AGREES in cell.verdicts.values())
        return dict(zip(SHARES, (by_reading[AS_STATED], max(by_reading.values()), some), strict=True)), len(of)

    def _numbers_of_other_methods(self, claim: Claim) -> list[list[float]]:
        """Printed numbers of other methods in the same setting, or else on the same data in the same table."""
        # The other methods' claims on the same data and metric
        first, settings = claim[0], [cell.setting for cell in claim]
        like = [
            {cell.setting: cell for cell in other}
            for other in self.claims
            if other[0].algorithm != first.algorithm
            and (other[0].dataset, other[0].metric, other[0].curve) == (first.dataset, first.metric, first.curve)
        ]
        # Their numbers in the same settings, or for a single number all those of the table
        same = [[other[at].number for at in settings] for other in like if {*settings} <= {*other}]
        if not same and len(claim) == 1:
            same = [[cell.number] for other in like for cell in other.values() if cell.table == first.table]
        # Each list of numbers once, and not the claim's own numbers
        unique = {tuple(other): other for other in same}
        return [other for values, other in unique.items() if [*values] != [cell.number for cell in claim]]


def shares_table(evidence: Iterable[Evidence]) -> pd.DataFrame:
    """One row for each paper with counted claims, and a row with their sum."""
    rows = [one.shares for one in evidence if one.counted]
    # The sum of all papers below
    table = pd.DataFrame(rows)
    if len(rows) > 1:
        total = {**table.sum(numeric_only=True).to_dict(), "paper": "all", "reading": "one per paper"}
        table = pd.concat([table, pd.DataFrame([total])], ignore_index=True).astype(table.dtypes.to_dict())
    return table
