"""A printed number with our number by each reading of the paper, and whether they agree.

For example, a table prints 4.2 in units of 1e-3. Our runs of the paper's text have the mean 4.25e-3, and those of a
variant 5.1e-3. The cell then has two answers, 4.25 and 5.1, and the mark is ✓ if the first test finds that 4.25 agrees
with 4.2. If only 5.1 agreed, the mark would be that of another reading, v.

A `PublishedCell` is processed in four steps: `published_cells` reads it, `add_answers` adds our answers and tests them,
`fkl.papers.evidence.Evidence` judges it together with the paper's other cells, and `fkl.papers.tables` shows it. The
terms: a *reading* is one interpretation of the paper's text, an *answer* our number by one reading, a *verdict* the
result of an answer's test, and the *mark* the outcome of the cell over all answers that are evidence.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fkl.screen.units import RAISED, cell_text
from fkl.screen.units import number_text as with_digits
from fkl.statistics import equivalence
from fkl.statistics.equivalence import AGREES, CANNOT_TELL, DIFFERS, Equivalence
from fkl.statistics.intervals import half_width

KEY = ["dataset", "algorithm", "setting", "metric"]
"""Columns whose values together identify a cell of a table."""
COLUMNS = [*KEY, "unit", "published", "ours", "spread", "n"]
COLUMNS += ["difference_percent", "verdict", "within_percent", "why", "reading", "switch", "rounding"]
COLUMNS += ["of", "published_n", "follows_from", "published_spread"]
"""Columns of a table of published cells, for programs.

verdict, within_percent, why
    Results of `fkl.statistics.equivalence`; all points of a curve have the curve's verdict.
of, published_n
    Number of all replicates, with or without a value (n counts those with one), and of runs in the printed mean.
follows_from
    The other cell that determines a cell without its own evidence.
"""

TIMES = ("s", "min")
"""Units of times. They have no verdict, because times depend on the machine and the implementation."""
AS_STATED, AS_PUBLISHED = "as stated", "as published"
"""Readings of a paper: its literal text, and its text with all changes that its numbers are known to require."""
PREVIEW = "preview, "
"""Prefix of the reading if a run has fewer replicates than the paper; such a run is shown but is not evidence."""
NOT_RUN = "not run"


@dataclass(frozen=True)
class Mark:
    """A mark of an answer or a cell: its name in the style sheet, a sign that needs no colour, and its meaning."""

    name: str
    sign: str
    words: str


ANSWERS = {
    AGREES: Mark("near", "✓", AGREES),
    DIFFERS: Mark("far", "✗", DIFFERS),
    CANNOT_TELL: Mark("inside", "?", CANNOT_TELL),
}
"""Marks of an answer, by verdict."""

AGREES_BY_CHOSEN = Mark("near", "✓", "agrees by the one reading")
AGREES_OTHERWISE = Mark("close", "v", "agrees by another reading only")
UNCLEAR = Mark("inside", "?", "cannot tell")
WITHIN_SPREAD = Mark("inside", "∈", "cannot tell: only inside a variant's spread")
DIFFERENT = Mark("far", "✗", "differs by every reading that was run")
FOLLOWS = Mark("time", "=", "follows from other cells or from the method")
EARLY = Mark("preview", "p", "preview: fewer replicates than the paper's")
MISSING = Mark("missing", "–", "not run")
TIME = Mark("time", "t", "run time, no verdict")

COUNTED = (AGREES_BY_CHOSEN, AGREES_OTHERWISE, UNCLEAR, WITHIN_SPREAD, DIFFERENT)
"""Outcomes that are evidence: our replicates are not fewer than the paper's, and another outcome was possible."""
OUTCOMES = (*COUNTED, FOLLOWS, EARLY, MISSING, TIME)
"""Possible outcomes of a cell."""


@dataclass(frozen=True)
class CellAnswer:
    """Our result for a cell with one setting.

    Parameters
    ----------
    switch : str
        Settings of the run that differ between readings.
    ours, spread : float
        Mean and standard deviation, in units of 1, or of the cell as soon as the answer belongs to one.
    n : int
        Number of values.
    reading : str
        `AS_STATED` for the paper's text, or the name of a variant; an empty reading is shown but is not evidence.
    preview : bool
        Whether there are fewer replicates or splits than in the paper.
    values : tuple of float
        Values of the replicates, or lower bounds for those that never reach the target.
    replicates : int
        Number of replicates, with and without a value; 0 if all have one.
    runs : int
        Number of runs in the printed mean; 1 if the paper does not say.
    exact : bool
        Whether nothing is random, so one replicate is enough.
    run : str
        Digest of the run.
    more : mapping
        Additional columns of the table.
    test : Equivalence, optional
        Test of agreement with the printed number; None for run times and bounds.
    of_curve : str
        Verdict on the whole curve, if the cell is a point of one.
    """

    switch: str
    ours: float = np.nan
    spread: float = np.nan
    n: int = 0
    reading: str = ""
    preview: bool = False
    values: tuple[float, ...] = ()
    replicates: int = 0
    runs: int = 1
    exact: bool = False
    run: str = ""
    more: Mapping[str, float] = field(default_factory=dict)
    test: Equivalence | None = None
    of_curve: str = ""

    @classmethod
    def from_values(
        cls,
        switch: str,
        values: "pd.Series[float]",
        reading: str = "",
        replicates: int = 1,
        of: int | None = None,
        run: str = "",
    ) -> "CellAnswer":
        """Make an answer with the mean and standard deviation of some values.

        Parameters
        ----------
        switch, reading : str
        values : Series
        replicates : int
            The paper's number of replicates, or of splits.
        of : int, optional
            Number of our replicates, if it differs from the number of values.
        run : str
            Digest of the run.
        """
        preview = (len(values) if of is None else of) < replicates
        moments = float(values.mean()), float(values.std(ddof=1)), len(values)
        return cls(switch, *moments, reading, preview, tuple(map(float, values)), runs=replicates, run=run)

    @property
    def ran(self) -> bool:
        """Whether there is a result."""
        return not np.isnan(self.ours)

    @property
    def label(self) -> str:
        """The reading, with a prefix if it is a preview."""
        return PREVIEW * self.preview + self.reading if self.reading else ""

    @property
    def evidence(self) -> bool:
        """Whether the answer is evidence: its reading has a name, and it is not a preview."""
        return bool(self.reading) and not self.preview

    @property
    def verdict(self) -> str:
        """`AGREES`, `DIFFERS` or `CANNOT_TELL`; empty without a test."""
        return self.of_curve or (self.test.outcome if self.test is not None else "")

    @property
    def why(self) -> str:
        """The verdict in words."""
        if self.test is None:
            return ""
        return f"this point {self.test.outcome}: {self.test.why}" if self.of_curve else self.test.why


@dataclass(frozen=True)
class PublishedCell:
    """A printed number with our answers.

    Parameters
    ----------
    paper, table : str
    dataset, algorithm, setting, metric : str
        Position in the table.
    unit : str
        A power of ten such as 1e-3, a unit of time, %, or empty.
    value : float or str
        The printed number; a bound, such as >900, keeps its printed form.
    spread : float
        Printed spread; NaN if none is printed.
    rounding : float
        Half a unit of the last digit.
    sd : float, optional
        Printed standard deviation over runs, if it differs from the spread.
    curve : str
        Name of a curve, if the cell is a point of one; all points of a curve share its verdict.
    follows_from : str
        The other cell that determines this one, which is then no evidence.
    answers : tuple of Answer
        Our answers, beginning with that of the paper's text; empty if nothing was run.
    verdicts : mapping of str to str
        Verdicts of the runs that are evidence, by reading.
    mark : Mark, optional
        Outcome of the cell; None for a bound.
    one_reading, decided_by : str
        The reading of this cell that belongs to the paper's one reading, and the reading that decided its mark.
    """

    paper: str
    table: str
    dataset: str
    algorithm: str
    setting: str
    metric: str
    unit: str
    value: float | str
    spread: float = np.nan
    rounding: float = 0.0
    sd: float | None = None
    curve: str = ""
    follows_from: str = ""
    answers: tuple[CellAnswer, ...] = ()
    verdicts: Mapping[str, str] = field(default_factory=dict)
    mark: Mark | None = None
    one_reading: str = AS_STATED
    decided_by: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Values of the columns `KEY`."""
        return self.dataset, self.algorithm, self.setting, self.metric

    @property
    def claim(self) -> tuple[str, ...]:
        """Key of the claim: all points of a curve share one, and every other printed number has its own."""
        return self.table, self.dataset, self.algorithm, self.metric, self.curve, "" if self.curve else self.setting

    @property
    def number(self) -> float:
        """The printed number; NaN for a bound."""
        return self.value if isinstance(self.value, float) else np.nan

    @property
    def is_bound(self) -> bool:
        """Whether only a bound is printed."""
        return isinstance(self.value, str)

    @property
    def is_time(self) -> bool:
        """Whether it is a run time."""
        return self.unit in TIMES

    @property
    def why_not_counted(self) -> Mark | None:
        """The mark that explains why the cell is not counted; None if it is counted."""
        # Why the cell is not counted: no verdict for times, or no finished run with enough replicates
        if self.is_time:
            return TIME if self.answers else MISSING
        if self.verdicts:
            return FOLLOWS if self.follows_from else None
        return EARLY if any(one.preview and one.reading for one in self.answers) else MISSING

    def read_as(self, reading: str, builds_on: Mapping[str, str]) -> str:
        """The reading itself, or the one on which it builds if it has no run for this cell."""
        while reading not in self.verdicts and reading != AS_STATED:
            reading = builds_on.get(reading, AS_STATED)
        return reading

    def verdict_under(self, reading: str, builds_on: Mapping[str, str]) -> str:
        """The verdict by a reading; empty if there is none."""
        return self.verdicts.get(self.read_as(reading, builds_on), "")

    def outcome(self, reading: str, builds_on: Mapping[str, str]) -> Mark:
        """Outcome of the cell if this is the paper's one reading."""
        # Not counted, or the verdict by the one reading, and only then those of the others
        if self.why_not_counted is not None:
            return self.why_not_counted
        if self.verdict_under(reading, builds_on) == AGREES:
            return AGREES_BY_CHOSEN
        found = {*self.verdicts.values()}
        # Another reading agrees, or one is undecided: because of the text's reading, or by a variant only
        if AGREES in found:
            return AGREES_OTHERWISE
        if CANNOT_TELL in found:
            return UNCLEAR if self.verdicts.get(AS_STATED) == CANNOT_TELL else WITHIN_SPREAD
        return DIFFERENT

    def judged_by(self, reading: str, builds_on: Mapping[str, str], order: Sequence[str]) -> "PublishedCell":
        """The cell with its mark by this one reading, and with the first reading in `order` that decides the mark."""
        # A bound is shown, but cannot agree or differ
        if self.is_bound and not self.is_time:
            return replace(self, one_reading=reading)
        # The verdict that decided the mark, and the first reading that gave it
        mark, reading_used = self.outcome(reading, builds_on), self.read_as(reading, builds_on)
        wanted = AGREES if mark == AGREES_OTHERWISE else CANNOT_TELL if mark in (WITHIN_SPREAD, UNCLEAR) else None
        names = sorted(self.verdicts, key=[*order, *self.verdicts].index)
        decided = next((name for name in names if self.verdicts[name] == wanted), reading_used)
        return replace(self, mark=mark, one_reading=reading_used, decided_by=decided)

    @property
    def shown(self) -> CellAnswer | None:
        """Our number by the reading that decided the mark, or by another one; None if nothing was run."""
        # The answer that decided the mark comes first
        ran = [one for one in self.answers if one.ran]
        return next((one for one in ran if one.label == self.decided_by), ran[0] if ran else None)

    def answer_by_reading(self, reading: str) -> CellAnswer | None:
        """Our number by a reading, or its preview if there is nothing else."""
        # A finished run before a preview, which has too few replicates
        for like in (reading, PREVIEW + reading):
            for candidate in self.answers:
                if candidate.ran and candidate.label == like:
                    return candidate
        return None

    @property
    def answer_to_text(self) -> CellAnswer | None:
        """Our number by the paper's text."""
        return self.answer_by_reading(AS_STATED)

    @property
    def answer_by_chosen(self) -> CellAnswer | None:
        """Our number by the paper's one reading."""
        return self.answer_by_reading(self.one_reading)

    @property
    def published(self) -> str:
        """The number as printed."""
        return self.value if isinstance(self.value, str) else self.printed_number(self.value)

    def printed_number(self, value: float, ours: bool = False) -> str:
        """A number with the decimals of the printed one; our run times, which may be much smaller, with two digits."""
        if np.isnan(value):
            return ""
        if ours and self.is_time:
            return with_digits(value, 2)
        return cell_text(value) if self._decimals is None else f"{value:,.{self._decimals}f}"

    def half_interval(self, answer: CellAnswer) -> str:
        """Half width of the 95 % interval of our number over replicates; empty for one value or if nothing varies."""
        if len(answer.values) < 2 or not answer.spread > 0:
            return ""
        # With the decimals of the printed number, or with one digit if it is smaller than these
        half = half_width(np.array(answer.values))
        return self.printed_number(half) if half >= 10.0 ** -(self._decimals or 0) else f"{half:.1g}"

    @property
    def place(self) -> str:
        """Setting and metric in words."""
        return ", ".join(filter(None, (setting_in_words(self.setting), metric_in_words(self.metric))))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each answer, with `COLUMNS` and the additional columns of answers."""
        there: Any = self.answers or [CellAnswer(f"{NOT_RUN}: no finished run on {self.dataset}")]
        return [{**self._answer_row(one), **one.more} for one in there]

    def _answer_row(self, one: CellAnswer) -> dict[str, Any]:
        # no difference can be computed for a bound such as ">900"
        has_number = not isinstance(self.value, str) and self.value
        return dict(zip(KEY, self.key, strict=True)) | {
            "unit": self.unit,
            "published": self.value,
            "ours": one.ours,
            "spread": one.spread,
            "n": one.n,
            "difference_percent": 100 * (one.ours / float(self.value) - 1) if has_number else np.nan,
            "verdict": one.verdict,
            "within_percent": one.test.within if one.test is not None else np.nan,
            "why": one.why,
            "reading": one.label,
            "switch": one.switch,
            "rounding": self.rounding,
            "of": one.replicates or one.n,
            "published_n": one.runs,
            "follows_from": self.follows_from,
            "published_spread": self.spread,
        }

    def compare_answer(self, answer: CellAnswer, tried: int) -> Equivalence | None:
        """Test one of the cell's answers; None for run times, bounds and missing runs.

        Parameters
        ----------
        answer : Answer
        tried : int
            Number of readings of the paper that were tried.
        """
        # Without values, or for a bound or a time, there is no test
        values = np.array(answer.values)
        if not len(values) or isinstance(self.value, str) or self.is_time:
            return None
        # The spread of our values; a single value has none, unless nothing is random
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0 if answer.exact else np.nan
        whole = 100 - self.value if (self.metric, self.unit) == ("accuracy", "%") else None  # the share of errors
        # The printed number with its spread, and how many of our replicates have no value
        theirs = self.value, self.rounding, answer.runs, self.spread if self.sd is None else self.sd
        failed = (answer.replicates or answer.n) - answer.n
        return Equivalence(*theirs, float(values.mean()), deviation, len(values), tried, whole, failed)

    @property
    def _decimals(self) -> int | None:
        """Number of decimals of the printed number, from half a unit of its last digit."""
        return max(0, round(-np.log10(2 * self.rounding))) if self.rounding > 0 else None


def published_cells(paper: str, table: str | None = None) -> list[PublishedCell]:
    """Cells of one table or of all tables, from a paper's published.csv; empty without this file."""
    return [cell for cell in _read_published(paper) if table in (None, cell.table)]


@cache
def _read_published(paper: str) -> tuple[PublishedCell, ...]:
    file = Path(__file__).parent / paper / "published.csv"
    if not file.exists():
        return ()
    rows: Any = pd.read_csv(file, dtype={"table": str, "value": str}, keep_default_na=False).to_dict("records")
    return tuple(
        PublishedCell(
            **row
            | {
                "value": row["value"] if row["value"].startswith(("<", ">")) else float(row["value"]),
                "spread": float(row["spread"] or "nan"),
                "rounding": rounding_of(row["value"]),
            }
        )
        for row in rows
    )


def rounding_of(printed: str) -> float:
    """Half a unit of a printed number's last digit, e.g. 0.05 for ``1.2``, which may be from 1.15 to 1.25."""
    # An integer has no decimals, so it may be half a unit off; a number in other notations is exact
    digits = re.fullmatch(r"[+-]?\d+(?:\.(\d*))?", printed)
    return 0.5 * 10.0 ** -len(digits[1] or "") if digits else 0.0


def add_answers(
    cells: Iterable[PublishedCell], answers: Callable[[PublishedCell], list[CellAnswer]], tried: int = 1
) -> list[PublishedCell]:
    """Add our answers to cells, in the unit of each cell, and test them.

    Parameters
    ----------
    cells : iterable of Cell
    answers : callable
        Returns our answers for a cell, beginning with that of the paper's text.
    tried : int
        Number of readings of the paper that were tried.
    """
    # Answers are in units of 1; the printed number may be in units of 1e-3
    made = []
    for cell in cells:
        scale = float(cell.unit) if cell.unit.startswith("1e") else 1.0
        ours = [
            replace(
                one,
                ours=one.ours / scale,
                spread=one.spread / scale,
                values=tuple(np.array(one.values, dtype=float) / scale),
            )
            for one in answers(cell)
        ]
        made.append(replace(cell, answers=tuple(ours)))
    return judge_answers(made, tried)


def judge_answers(cells: Sequence[PublishedCell], tried: int) -> list[PublishedCell]:
    """Test all answers of cells, and add the verdicts by reading."""
    # Test each answer alone
    tests = [
        [replace(one, test=cell.compare_answer(one, tried), of_curve="") for one in cell.answers] for cell in cells
    ]
    # Points of one curve by one run are tested together, because of many points some would differ by chance
    curves = defaultdict(list)
    for at, cell in enumerate(cells):
        for number, one in enumerate(cell.answers if cell.curve else ()):
            curves[cell.claim, one.label, one.switch].append((at, number))
    for points in curves.values():
        several = [tests[at][number] for at, number in points]
        compared = [one.test for one in several if one.test is not None]
        # All points must have a test
        if len(compared) == len(several):
            outcome = equivalence.outcome_of_curve(compared, np.column_stack([one.values for one in several]))
            for at, number in points:
                tests[at][number] = replace(tests[at][number], of_curve=outcome)
    # Verdicts of a claim by reading, for all its cells; previews and unnamed readings are no evidence
    verdicts: dict[object, dict[str, str]] = {}
    for at, cell in enumerate(cells):
        mine = verdicts.setdefault(cell.claim, {})
        for one in tests[at]:
            if one.verdict and one.evidence:
                mine.setdefault(one.reading, one.verdict)
    return [replace(cell, answers=tuple(tests[at]), verdicts=verdicts[cell.claim]) for at, cell in enumerate(cells)]


def cells_frame(cells: Iterable[PublishedCell]) -> pd.DataFrame:
    """A data frame of cells, with one row for each cell and answer."""
    rows = [row for cell in cells for row in cell.rows]
    more = dict.fromkeys(name for row in rows for name in row if name not in COLUMNS)
    return pd.DataFrame(rows, columns=[*COLUMNS, *more])


def metric_in_words(metric: str) -> str:
    """Name of a metric in papers.

    Examples
    --------
    >>> metric_in_words("test_mse"), metric_in_words("runtime_per_client")
    ('test MSE', 'run time per client')
    """
    parts = metric.replace("runtime", "run time").split("_")
    return " ".join(one.upper() if one in ("mse", "rse") else one for part in parts for one in part.split(" "))


def setting_in_words(setting: str) -> str:
    """A setting in the notation of papers.

    Examples
    --------
    >>> setting_in_words("M=1;D=100"), setting_in_words("train_mse<=18e-4")
    ('M=1, D=100', 'train MSE ≤ 18 × 10⁻⁴')
    """
    # Semicolons and underscores of the files become plain text; powers of ten get raised digits
    text = setting.replace(";", ", ").replace("<=", " ≤ ").replace("_", " ")
    text = re.sub(r"\bmse\b", "MSE", text)
    return re.sub(r"(?<=\d)(e-?\d+)\b", lambda power: f" {unit_in_words('1' + power[1])}", text)


def unit_in_words(unit: str) -> str:
    """A power of ten as papers print it; other units are unchanged."""
    return f"× 10{str(int(unit[2:])).translate(RAISED)}" if unit.startswith("1e") else unit
