"""Published cells with our numbers."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fkl.statistics import equivalence
from fkl.statistics.equivalence import Equivalence

COLUMNS = ["dataset", "algorithm", "setting", "metric", "unit", "published", "ours", "spread", "n"]
COLUMNS += ["difference_percent", "verdict", "within_percent", "why", "reading", "switch", "rounding"]
COLUMNS += ["of", "published_n", "follows_from", "published_spread"]
"""Columns of a table of published cells.

verdict, within_percent, why
    From `fkl.statistics.equivalence`; all points of a curve have the curve's verdict.
of, published_n
    Number of replicates, where n counts those with a value, and number of runs in the printed mean.
follows_from
    The other cell from which a cell without its own evidence follows.
"""
HIDDEN = ["values", "sd", "curve", "exact", "run"]
"""Columns that the verdicts need, but no table shows."""

KEY = ["dataset", "algorithm", "setting", "metric"]
"""Columns that identify a published cell. Its rows are adjacent, and the first is the reading of the paper's text."""
ONE_CURVE = ["dataset", "algorithm", "metric", "curve"]
"""Columns that name a curve, whose points are cells."""

TIMES = ("s", "min")
"""Units of times. They have no verdict, because times depend on the machine and the implementation."""

AS_STATED, AS_PUBLISHED = "as stated", "as published"
"""Readings of a paper: its literal text, and its text with every change that its numbers are known to need."""
PREVIEW = "preview, "
"""Prefix of the reading of a run with fewer replicates than the paper's. It is shown, but is not evidence."""

NOT_RUN = "not run"
"""Beginning of a row's switch if nothing was run."""

Cell = dict[str, Any]
"""A row of a published.csv: paper, table, dataset, algorithm, setting, metric, unit, value, spread.

A paper's module may add `follows_from`; `curve`, a name, to cells that are points of one run; and `sd`, if `spread` is
not a standard deviation over runs.
"""


@dataclass(frozen=True)
class Answer:
    """Our result with one setting for a published cell.

    Parameters
    ----------
    switch : str
        Settings of the run where the protocol has more than one reading.
    ours, spread : float
        Mean and standard deviation, in units of 1; NaN if nothing was run.
    n : int
        Number of values.
    reading : str
        `AS_STATED` for the paper's text, a name of its variants, or empty, which is shown but not evidence.
    preview : bool
        Whether there are fewer replicates or splits than in the paper.
    values : tuple of float
        Values of the replicates; a replicate that never reaches the target has a lower bound.
    replicates : int
        Number of replicates, with and without a value; 0 if all have one.
    runs : int
        Number of runs in the printed mean; 1 if the paper does not say.
    exact : bool
        Whether nothing is random; one replicate is then complete.
    run : str
        Digest of its run.
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

    @classmethod
    def from_values(
        cls,
        switch: str,
        values: "pd.Series[float]",
        reading: str = "",
        replicates: int = 1,
        of: int | None = None,
        run: str = "",
    ) -> "Answer":
        """Mean and standard deviation of some values.

        Parameters
        ----------
        switch, reading : str
        values : Series
        replicates : int
            The paper's own number of them, or of splits.
        of : int, optional
            Number of our replicates behind the values, if it is not one each.
        run : str
            Digest of their run.
        """
        preview = (len(values) if of is None else of) < replicates
        moments = float(values.mean()), float(values.std(ddof=1)), len(values)
        return cls(switch, *moments, reading, preview, tuple(map(float, values)), runs=replicates, run=run)


def published(paper_file: str, number: str) -> list[Cell]:
    """Cells of one table from the published.csv next to a paper's module, given as its ``__file__``."""
    dtype = {"table": str, "value": str}
    table = pd.read_csv(Path(paper_file).parent / "published.csv", dtype=dtype, keep_default_na=False)
    table["rounding"] = [rounding(str(value)) for value in table["value"]]
    # A bound, for example ``>900``, keeps its printed form
    table["value"] = [
        value if value.startswith(("<", ">")) else float(pd.to_numeric(value)) for value in table["value"]
    ]
    table["spread"] = pd.to_numeric(table["spread"])
    records: list[Any] = table[table["table"] == number].to_dict("records")
    return records


def rounding(printed: str) -> float:
    """Half a unit of the last digit of a printed number: 0.05 of ``1.2``, which may be all from 1.15 to 1.25."""
    digits = re.fullmatch(r"[+-]?\d+(?:\.(\d*))?", printed)
    return 0.5 * 10.0 ** -len(digits[1] or "") if digits else 0.0


def beside(cells: Iterable[Cell], answers: Callable[[Cell], list[Answer]], tried: int = 1) -> pd.DataFrame:
    """One row for each published cell and answer, in the published unit.

    Parameters
    ----------
    cells : iterable of dict
    answers : callable
        Our answers for a cell, that of the paper's text first; a cell without one is shown as not run.
    tried : int
        Readings of the paper that were tried.

    Returns
    -------
    DataFrame
        Columns `COLUMNS` and `HIDDEN`.
    """
    rows = []
    for cell in cells:
        scale = float(cell["unit"]) if cell["unit"].startswith("1e") else 1.0
        for answer in answers(cell) or [Answer(f"{NOT_RUN}: no finished run on {cell['dataset']}")]:
            ours = answer.ours / scale
            row = {key: cell[key] for key in ("dataset", "algorithm", "setting", "metric", "unit")}
            row |= {"published": cell["value"], "ours": ours, "spread": answer.spread / scale, "n": answer.n}
            bound = isinstance(cell["value"], str)  # the difference of ours to ">900" is unknown
            difference = 100 * (ours / cell["value"] - 1) if cell["value"] and not bound else np.nan
            reading = PREVIEW * answer.preview + answer.reading if answer.reading else ""
            row |= {"difference_percent": difference, "reading": reading, "switch": answer.switch}
            row |= {"rounding": cell.get("rounding", 0.0), "of": answer.replicates or answer.n}
            row |= {"published_n": answer.runs, "follows_from": cell.get("follows_from", "")}
            row |= {"published_spread": cell["spread"], "values": tuple(np.array(answer.values) / scale)}
            row |= {"sd": cell.get("sd", cell["spread"]), "curve": cell.get("curve", ""), "exact": answer.exact}
            row |= {"run": answer.run}
            rows.append(row)
    return tested(pd.DataFrame(rows, columns=[*COLUMNS, *HIDDEN]), tried)


def tested(table: pd.DataFrame, tried: int) -> pd.DataFrame:
    """A table of published cells with the verdict on each row: "" for run times, bounds and missing runs."""
    rows = dict(zip(table.index, table.to_dict("records"), strict=True))
    points = {}
    for at, row in rows.items():
        values, printed = np.array(row["values"]), row["published"]
        if not len(values) or isinstance(printed, str) or row["unit"] in TIMES:
            continue
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0 if row["exact"] else np.nan
        whole = 100 - printed if (row["metric"], row["unit"]) == ("accuracy", "%") else None  # the share of errors
        theirs = printed, row["rounding"], row["published_n"], row["sd"]
        ours = float(values.mean()), deviation, len(values)
        points[at] = Equivalence(*theirs, *ours, tried, whole, row["of"] - row["n"])
    verdict = {at: point.outcome for at, point in points.items()}
    why = {at: point.why for at, point in points.items()}
    curves = table[table["curve"] != ""].groupby([*ONE_CURVE, "reading", "switch"], sort=False)
    for at in curves.groups.values():
        if {*at} <= {*points}:
            outcome = equivalence.curve([points[i] for i in at], np.column_stack([rows[i]["values"] for i in at]))
            why |= {i: f"this point {verdict[i]}: {why[i]}" for i in at}
            verdict |= dict.fromkeys(at, outcome)
    return table.assign(
        verdict=[verdict.get(at, "") for at in table.index],
        within_percent=[points[at].within if at in points else np.nan for at in table.index],
        why=[why.get(at, "") for at in table.index],
    )


Layout = tuple[tuple[str, ...], tuple[str, ...]]
"""Columns of `KEY` that form the rows of a printed table, and those that form its columns."""
PUBLISHED = "published"


def wide(table: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """A table of cells in the paper's layout, with our numbers below the published ones.

    Parameters
    ----------
    table : DataFrame
        From `beside`.
    layout : (rows, columns)

    Returns
    -------
    DataFrame
        One row for each printed row and reading: first `PUBLISHED`, then each named reading with runs. Among answers
        with the same reading only the first is shown.
    """
    rows, columns = layout
    grid: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for cell in table.to_dict("records"):
        of_row = grid.setdefault(tuple(str(cell[key]) for key in rows), {PUBLISHED: {}})
        name = " ".join(str(cell[key]) for key in columns if cell[key])
        column = f"{name} ({cell['unit']})" if cell["unit"] else name
        of_row[PUBLISHED].setdefault(column, cell["published"])
        if cell["reading"] and not np.isnan(cell["ours"]):
            of_row.setdefault(str(cell["reading"]), {}).setdefault(column, cell["ours"])
    lines = [
        {**dict(zip(rows, row, strict=True)), "reading": reading, **numbers}
        for row, readings in grid.items()
        for reading, numbers in readings.items()
    ]
    return pd.DataFrame(lines)
