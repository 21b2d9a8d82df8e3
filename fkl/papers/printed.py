"""A table in the paper's layout: a grid for each metric, with the published number, ours, and a mark in each cell."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fkl.papers.published import AS_STATED, KEY, TIMES, Layout
from fkl.papers.verdicts import OTHER, SPREAD, UNCLEAR, Cell, Judged, Mark
from fkl.screen.sheet import BEST, Column, Sheet
from fkl.screen.sheet import Cell as Shown
from fkl.screen.units import number as with_digits
from fkl.screen.units import word
from fkl.statistics.equivalence import AGREES, CANNOT_TELL
from fkl.statistics.intervals import half_width

DEFAULT: Layout = (("dataset", "algorithm", "setting"), ("metric",))
"""Layout of a table that the paper does not print as one."""
LARGER_IS_BETTER = ("accuracy", "communication_reduction_vs_centralized")


@dataclass(frozen=True)
class PrintedCell:
    """A published number and its outcome.

    Parameters
    ----------
    published, ours : str
        With the decimals of the printed number, except for our times; ours is empty if nothing was run.
    half : str
        Half of our 95 % interval, over replicates; empty for one value.
    reading : str
        The reading that decided the cell; ours is from its run.
    mark : Mark, optional
        None for a bound, which is not a cell.
    n : int
        Number of replicates in our mean.
    dataset : str
    value : float
        Our number; NaN if nothing was run.
    """

    published: str
    ours: str
    half: str
    reading: str
    mark: Mark | None
    n: int
    dataset: str
    value: float


@dataclass(frozen=True)
class Grid:
    """The cells of one metric in the rows and columns of the printed table.

    Parameters
    ----------
    metric, unit : str
        For people, such as ``test MSE`` and ``× 10⁻³``.
    corner : str
        Heading of the rows.
    rows, columns : list of str
        For people.
    cells : list of list of PrintedCell or None
        By row and column; None if nothing is printed.
    of_times : bool
        Whether the cells are run times, which have no verdict.
    smaller_is_better : bool
    best_of_columns : bool
        Whether methods are rows, so the best is that of a column; otherwise it is that of a row.
    """

    metric: str
    unit: str
    corner: str
    rows: list[str]
    columns: list[str]
    cells: list[list[PrintedCell | None]]
    of_times: bool
    smaller_is_better: bool
    best_of_columns: bool

    @property
    def title(self) -> str:
        """Metric and unit."""
        return f"{self.metric} ({self.unit})" if self.unit else self.metric

    @property
    def all_cells(self) -> list[PrintedCell]:
        """Printed cells, row by row."""
        return [cell for row in self.cells for cell in row if cell is not None]

    @property
    def run_part(self) -> "Grid":
        """The rows and columns with runs."""
        ran = np.array([[cell is not None and bool(cell.ours) for cell in row] for row in self.cells])
        rows, columns = (np.flatnonzero(ran.any(axis=axis)) for axis in (1, 0))
        return replace(
            self,
            rows=[self.rows[i] for i in rows],
            columns=[self.columns[j] for j in columns],
            cells=[[self.cells[i][j] for j in columns] for i in rows],
        )

    @property
    def not_run(self) -> dict[str, int]:
        """Number of cells without runs, by data set."""
        names = [cell.dataset for cell in self.all_cells if not cell.ours]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    def best(self) -> set[tuple[int, int]]:
        """Positions of our best number in each column, or row, with more than one."""
        values = np.array([[np.nan if cell is None else cell.value for cell in row] for row in self.cells])
        lines = values.T if self.best_of_columns else values
        found = set()
        for k, line in enumerate(lines):
            if np.isfinite(line).sum() > 1:
                at = int(np.nanargmin(line) if self.smaller_is_better else np.nanargmax(line))
                found.add((at, k) if self.best_of_columns else (k, at))
        return found


def grids(judged: Judged, number: str, layout: Layout = DEFAULT) -> list[Grid]:
    """The grids of one table, errors first and run times last; empty if no number is published.

    Parameters
    ----------
    judged : Judged
        The cells of the whole paper, whose one reading is shown; see `fkl.papers.judge`.
    number : str
        Number of the table.
    layout : (rows, columns)
        Printed rows and columns.
    """
    frame = judged.frames.get(number, pd.DataFrame())
    if not {*KEY, "verdict"} <= {*frame}:
        return []
    settled = {at: (cell, mark) for cell, mark in judged.outcomes if cell.table == number for at in cell.rows.index}
    cells: dict[str, dict[tuple[str, ...], PrintedCell]] = {}
    units: dict[str, str] = {}
    for key, rows in frame.groupby(KEY, sort=False):
        cell, mark = settled.get(rows.index[0], (None, None))
        named = dict(zip(KEY, map(str, key), strict=True))
        units.setdefault(named["metric"], str(rows["unit"].iloc[0]))
        shown = _printed(rows, mark, "" if cell is None or mark is None else _settled_by(cell, mark, judged))
        cells.setdefault(named["metric"], {})[tuple(named.values())] = shown
    order = sorted(cells, key=lambda metric: units[metric] in TIMES)
    return [_grid(metric, units[metric], cells[metric], layout) for metric in order]


def _grid(metric: str, unit: str, cells: dict[tuple[str, ...], PrintedCell], layout: Layout) -> Grid:
    names = [[name for name in side if name != "metric"] for side in layout]
    placed = {tuple(tuple(key[KEY.index(name)] for name in side) for side in names): one for key, one in cells.items()}
    rows, columns = ([*dict.fromkeys(place[side] for place in placed)] for side in (0, 1))
    return Grid(
        metric=metric_in_words(metric),
        unit=_unit_in_words(unit),
        corner=", ".join(_varying(names[0], rows)).replace("_", " "),
        rows=_in_words(rows),
        columns=[one or metric_in_words(metric) for one in _in_words(columns)],
        cells=[[placed.get((row, column)) for column in columns] for row in rows],
        of_times=unit in TIMES,
        smaller_is_better=metric not in LARGER_IS_BETTER,
        best_of_columns="algorithm" in names[0],
    )


def _varying(names: Sequence[str], keys: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns that some row has."""
    return [name for k, name in enumerate(names) if any(key[k] for key in keys)]


def _in_words(keys: Sequence[tuple[str, ...]]) -> list[str]:
    return [", ".join(setting_in_words(part) for part in key if part) for key in keys]


def _settled_by(cell: Cell, mark: Mark, judged: Judged) -> str:
    """The reading behind a cell's mark."""
    agreeing = AGREES if mark == OTHER else CANNOT_TELL if mark in (SPREAD, UNCLEAR) else None
    if agreeing is not None:
        return next(name for name in _in_order(cell, judged) if cell.verdicts[name] == agreeing)
    return cell.read_as(judged.reading, judged.builds_on)


def _in_order(cell: Cell, judged: Judged) -> Iterator[str]:
    yield from sorted(cell.verdicts, key=[*judged.readings, *cell.verdicts].index)


def _printed(rows: pd.DataFrame, mark: Mark | None, reading: str) -> PrintedCell:
    ran = rows[rows["ours"].notna()]
    chosen = ran[ran["reading"] == reading] if reading else ran
    first: dict[Hashable, Any] = (chosen if len(chosen) else ran if len(ran) else rows).iloc[0].to_dict()
    decimals = _decimals(float(first["rounding"]))
    values = np.array(first["values"], dtype=float)
    half = half_width(values) if len(values) > 1 else np.nan
    published = first["published"]
    return PrintedCell(
        published=published if isinstance(published, str) else _with_decimals(float(published), decimals),
        ours=_ours(float(first["ours"]), decimals, first["unit"] in TIMES),
        half=_with_decimals(float(half), decimals) if half >= 10.0 ** -(decimals or 0) else f"{half:.1g}" * (half >= 0),
        reading=str(first["reading"] or AS_STATED) if len(ran) else "",
        mark=mark,
        n=len(values),
        dataset=str(first["dataset"]),
        value=float(first["ours"]),
    )


def with_decimals_of(row: Mapping[Hashable, Any] | pd.Series, value: Any, ours: bool = False) -> str:
    """A number with the decimals of the printed one in its row; a bound as printed.

    Parameters
    ----------
    row : mapping
        Row of a table of published cells.
    value : float or str
    ours : bool
        Whether it is our number; our times have two digits.
    """
    if isinstance(value, str):
        return value
    decimals = _decimals(float(row["rounding"]))
    return _ours(float(value), decimals, ours and row["unit"] in TIMES)


def _ours(value: float, decimals: int | None, is_time: bool) -> str:
    """Our number with the decimals of the printed one; a time, which may be far smaller, with two digits."""
    return with_digits(value, 2) if is_time and not np.isnan(value) else _with_decimals(value, decimals)


def _decimals(rounding: float) -> int | None:
    """Decimals of a printed number, from half a unit of its last digit."""
    return max(0, round(-np.log10(2 * rounding))) if rounding > 0 else None


def _with_decimals(value: float, decimals: int | None) -> str:
    """A number in the paper's format; empty for NaN."""
    if np.isnan(value):
        return ""
    return word(value) if decimals is None else f"{value:,.{decimals}f}"


def latex(grids: Sequence[Grid], title: str, label: str) -> str:
    """A float for each grid with runs, without run times if there are other grids.

    Parameters
    ----------
    grids : sequence of Grid
        Grids of one table.
    title, label : str
        Title of its paper, and the prefix of the floats' labels.
    """
    ran = [grid.run_part for grid in grids if any(cell.ours for cell in grid.all_cells)]
    shown = [grid for grid in ran if not grid.of_times] or ran
    left_out = ", ".join(sorted({name for grid in grids for name in grid.not_run}))
    return "\n".join(_sheet(grid, title, label, left_out).latex() for grid in shown)


def _sheet(grid: Grid, title: str, label: str, left_out: str) -> Sheet:
    """Two rows for each printed one: the printed numbers, and ours."""
    best, rows = grid.best(), []
    for i, (name, cells) in enumerate(zip(grid.rows, grid.cells, strict=True)):
        first, second = (*name.split(", ", 1), "")[:2]
        rows.append([Shown(first), Shown("printed"), *(Shown(cell.published if cell else "") for cell in cells)])
        ours = [
            Shown(cell.ours, BEST * ((i, j) in best), small=cell.half) if cell else Shown("")
            for j, cell in enumerate(cells)
        ]
        rows.append([Shown(second), Shown("ours"), *ours])
    numbers = sorted({cell.n for cell in grid.all_cells if cell.ours})
    several = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
    said = f"{title}: {grid.title}. Printed, and below it ours: the mean over {several} "
    said += "replicates and half of its 95 % interval (Student's t), by the reading that decides whether it agrees."
    said += f" Not run: {left_out}." * bool(left_out)
    metric = re.sub("[^a-z]+", "-", grid.metric.lower()).strip("-")
    columns = [Column(grid.corner), Column(""), *(Column(heading, number=True) for heading in grid.columns)]
    ruled = range(2, len(rows), 2)
    return Sheet(columns, rows, title, said, label=f"{label}-{metric}", ruled=ruled)


def metric_in_words(metric: str) -> str:
    """A metric with its name in papers.

    Examples
    --------
    >>> metric_in_words("test_mse"), metric_in_words("runtime_per_client")
    ('test MSE', 'run time per client')
    """
    words = metric.replace("runtime", "run time").split("_")
    return " ".join(one.upper() if one in ("mse", "rse") else one for part in words for one in part.split(" "))


def setting_in_words(setting: str) -> str:
    """A setting in the notation of papers.

    Examples
    --------
    >>> setting_in_words("M=1;D=100"), setting_in_words("train_mse<=18e-4")
    ('M=1, D=100', 'train MSE ≤ 18 × 10⁻⁴')
    """
    words = setting.replace(";", ", ").replace("<=", " ≤ ").replace("_", " ")
    words = re.sub(r"\bmse\b", "MSE", words)
    return re.sub(r"(?<=\d)(e-?\d+)\b", lambda power: f" {_unit_in_words('1' + power[1])}", words)


def _unit_in_words(unit: str) -> str:
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"× 10{str(int(unit[2:])).translate(raised)}" if unit.startswith("1e") else unit
