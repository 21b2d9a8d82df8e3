"""Published cells beside ours."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fkl.results.collect import FinishedRun

COLUMNS = ["dataset", "algorithm", "setting", "metric", "unit", "published", "ours", "spread", "n"]
COLUMNS += ["difference_percent", "switch"]

KEY = ["dataset", "algorithm", "setting", "metric"]
"""Columns that name a published cell; its rows follow each other, first that in the setting the paper agrees with."""

NOT_RUN = "not run"
"""What the switch of a row begins with where nothing was run."""

Cell = dict[str, Any]
"""A row of a published.csv: paper, table, dataset, algorithm, setting, metric, unit, value, spread."""


@dataclass(frozen=True)
class Answer:
    """What one of our settings gives for a published cell.

    Parameters
    ----------
    switch : str
        Which reading of the protocol was run.
    ours, spread : float
        Mean and standard deviation, in units of 1; NaN where nothing was run.
    n : int
        How many values they are over.
    """

    switch: str
    ours: float = np.nan
    spread: float = np.nan
    n: int = 0

    @classmethod
    def of(cls, switch: str, values: "pd.Series[float]") -> "Answer":
        """Mean and standard deviation of some values."""
        return cls(switch, float(values.mean()), float(values.std(ddof=1)), len(values))


def following(runs: Iterable[FinishedRun], protocol: Callable[[FinishedRun], bool]) -> list[FinishedRun]:
    """Runs that follow a protocol; one without a key that it names, as with a user's own class, does not."""

    def follows(run: FinishedRun) -> bool:
        try:
            return protocol(run)
        except (KeyError, TypeError, AttributeError):
            return False

    return [run for run in runs if follows(run)]


def newest(
    runs: Iterable[FinishedRun],
    cell: Callable[[FinishedRun], tuple[str, str, str]],
    switch: Callable[[FinishedRun], str],
) -> dict[tuple[tuple[str, str, str], str], FinishedRun]:
    """One run for each cell and switch: the one with the most replicates, of these the newest."""
    best: dict[tuple[tuple[str, str, str], str], FinishedRun] = {}
    for run in runs:
        key = cell(run), switch(run)
        if key not in best or run.replicates >= best[key].replicates:
            best[key] = run
    return best


def published(paper_file: str, number: str) -> list[Cell]:
    """Cells of one table from the published.csv beside a paper's module, given as its ``__file__``."""
    table = pd.read_csv(Path(paper_file).parent / "published.csv", dtype={"table": str}, keep_default_na=False)
    table["value"] = [_bound_or_number(value) for value in table["value"]]
    table["spread"] = pd.to_numeric(table["spread"])
    return [
        {str(key): value for key, value in row.items()} for row in table[table["table"] == number].to_dict("records")
    ]


def _bound_or_number(value: object) -> str | float:
    """A published value: a number, or as it is printed where it is only a bound, for example ``>900``."""
    is_bound = isinstance(value, str) and value.startswith(("<", ">"))
    return str(value) if is_bound else float(pd.to_numeric(value))  # type: ignore[call-overload]


def beside(cells: Iterable[Cell], answers: Callable[[Cell], list[Answer]]) -> pd.DataFrame:
    """One row for each published cell and answer, in the published unit.

    Parameters
    ----------
    cells : iterable of dict
    answers : callable
        Our answers to a cell; a cell without one is shown as not run.

    Returns
    -------
    DataFrame
        Columns `COLUMNS` and published_spread.
    """
    rows = []
    for cell in cells:
        scale = float(cell["unit"]) if cell["unit"].startswith("1e") else 1.0
        for answer in answers(cell) or [Answer(f"{NOT_RUN}: no finished run on {cell['dataset']}")]:
            ours = answer.ours / scale
            row = {key: cell[key] for key in ("dataset", "algorithm", "setting", "metric", "unit")}
            row |= {"published": cell["value"], "ours": ours, "spread": answer.spread / scale, "n": answer.n}
            bound = isinstance(cell["value"], str)  # nothing is known of how far ours is from ">900"
            difference = 100 * (ours / cell["value"] - 1) if cell["value"] and not bound else np.nan
            row |= {"difference_percent": difference, "switch": answer.switch}
            rows.append({**row, "published_spread": cell["spread"]})
    return pd.DataFrame(rows, columns=[*COLUMNS, "published_spread"])
