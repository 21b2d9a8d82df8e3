"""A paper's table in the printed layout: a sheet for each metric, with our number below each printed number."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from fkl.basics.environment import environment_variable
from fkl.basics.errors import count_of
from fkl.config import experiments
from fkl.data import registry
from fkl.data.store import Store
from fkl.papers.cells import (
    ANSWERS,
    AS_STATED,
    COUNTED,
    DIFFERENT,
    EARLY,
    KEY,
    MISSING,
    TIME,
    Mark,
    PublishedCell,
    cells_frame,
    metric_in_words,
    setting_in_words,
    unit_in_words,
)
from fkl.papers.evidence import Evidence
from fkl.papers.our_runs import find_paper_runs, require_found
from fkl.runs.finished_runs import FinishedRun
from fkl.screen.messages import print_lines
from fkl.screen.sheet import BEST, Sheet, SheetColumn
from fkl.screen.sheet import SheetCell as Shown
from fkl.statistics.equivalence import AGREES

Layout = tuple[Sequence[str], Sequence[str]]
"""Columns of `KEY` that form the rows of a printed table, and columns of `KEY` that form its columns."""
DEFAULT: Layout = (("dataset", "algorithm", "setting"), ("metric",))
"""Layout of numbers that the paper does not print as a table."""
LARGER_IS_BETTER = ("accuracy", "communication_reduction_vs_centralized")
PUBLISHED = "published"
SCRIPT_KEY = ["dataset", "algorithm", "setting", "metric"]
SCRIPT_METRICS = ("mse", "client_sd")
"""Key columns and metrics of script.csv, the output of a paper's public script."""


def declared_table(paper: str, number: str) -> dict[str, Any]:
    """Declaration of a table in the paper's experiments.yaml."""
    found: dict[str, Any] = experiments.of_paper(paper).get("tables", {}).get(number, {})
    return found


def table_layout(paper: str, number: str) -> Layout | None:
    """Rows and columns of a printed table; None if the paper does not print it as a table."""
    told = declared_table(paper, number)
    return (told["rows"], told["columns"]) if "rows" in told else None


def table_sheets(evidence: Evidence, number: str, times: bool = False) -> list[Sheet]:
    """Sheets of one table's numbers, or of its run times, that were run: one sheet per metric in the printed layout."""
    cells = [cell for cell in evidence.judged_cells(number) if cell.is_time == times]
    metrics = dict.fromkeys(cell.metric for cell in cells if cell.shown is not None)
    return [_metric_sheet(evidence, number, [cell for cell in cells if cell.metric == metric]) for metric in metrics]


def _metric_sheet(evidence: Evidence, number: str, cells: list[PublishedCell]) -> Sheet:
    """Sheet of one metric, with the rows and columns that have runs."""
    # Rows and columns as in the paper, without those that have no run
    first, ran = cells[0], [cell for cell in cells if cell.shown is not None]
    sides = table_layout(evidence.paper, number) or DEFAULT

    def place(cell: PublishedCell) -> tuple[str, str]:
        row, column = (
            ", ".join(setting_in_words(part) for name in side if name != "metric" and (part := getattr(cell, name)))
            for side in sides
        )
        return row, column

    rows, columns = (
        [side for side in dict.fromkeys(place(cell)[k] for cell in cells) if side in {place(cell)[k] for cell in ran}]
        for k in (0, 1)
    )
    # The best number of each column or row is bold
    best = _best_in_lines(ran, lambda cell: place(cell)["algorithm" in sides[0]])
    shown = {place(cell): _shown_cell(cell, cell in best) for cell in cells}
    metric = metric_in_words(first.metric)
    heading = f"{metric} ({unit_in_words(first.unit)})" if first.unit else metric
    title = experiments.of_paper(evidence.paper).get("title", evidence.paper)
    # The caption explains both numbers of a cell
    about = f"{title}, table {number}, {heading}. The printed number is above ours, the mean over"
    about += (
        f" {_replicates_text(ran)} replicates ± half of its 95 % interval (Student's t), by the reading that decides"
    )
    about += " whether it agrees."
    missing = ", ".join(sorted(not_run(evidence, number)))
    return Sheet(
        [SheetColumn(heading), *(SheetColumn(column or metric, number=True) for column in columns)],
        [[Shown(row), *(shown.get((row, column), Shown("")) for column in columns)] for row in rows],
        heading,
        about + f" Not run: {missing}." * bool(missing),
        label=f"{evidence.paper}-{number}-{re.sub('[^a-z]+', '-', metric.lower()).strip('-')}",
        ruled=range(1, len(rows)),
    )


def _shown_cell(cell: PublishedCell, best: bool) -> Shown:
    """The printed number above ours, with a mark unless it is a run time or a bound."""
    if cell.shown is None:
        return Shown("–", above=cell.published)
    mark = cell.mark if cell.mark not in (None, TIME) else Mark("", "", "")
    ours, half = cell.printed_number(cell.shown.ours, ours=True), cell.half_interval(cell.shown)
    return Shown(ours, BEST * best, mark.sign, half, cell.published, mark.name)


def _best_in_lines(ran: list[PublishedCell], line: Callable[[PublishedCell], str]) -> list[PublishedCell]:
    """The cell with our best number in each line that has several."""
    lines: dict[str, list[PublishedCell]] = {}
    for cell in ran:
        lines.setdefault(line(cell), []).append(cell)
    largest = ran[0].metric in LARGER_IS_BETTER
    return [(max if largest else min)(cells, key=_our_number) for cells in lines.values() if len(cells) > 1]


def _our_number(cell: PublishedCell) -> float:
    return np.nan if cell.shown is None else cell.shown.ours


def _replicates_text(ran: list[PublishedCell]) -> str:
    counts = sorted({len(cell.shown.values) for cell in ran if cell.shown is not None})
    return " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def not_run(evidence: Evidence, number: str) -> Counter[str]:
    """Number of a table's cells without runs, by data set."""
    return Counter(cell.dataset for cell in evidence.judged_cells(number) if cell.shown is None)


def latex_floats(evidence: Evidence, number: str) -> str:
    """LaTeX floats, one for each metric; with run times only if there is nothing else."""
    return "\n".join(
        sheet.latex_floats() for sheet in table_sheets(evidence, number) or table_sheets(evidence, number, times=True)
    )


def readings_sheet(cells: Sequence[PublishedCell]) -> Sheet:
    """Sheet with one row for each answer to the cells, and its verdict."""
    # All answers of all cells, one row each
    ran = [(cell, one, row) for cell in cells for one, row in zip(cell.answers, cell.rows, strict=False) if one.ran]
    shown_columns = [name for name in cells_frame(cells) if name not in (*KEY, "unit")]
    sheet = Sheet.from_frame(pd.DataFrame([row for *_, row in ran], columns=shown_columns), "")
    at, rows = shown_columns.index("difference_percent"), []
    # The verdict as a coloured sign
    for (cell, one, _), texts in zip(ran, sheet.rows, strict=True):
        row = [Shown(f"{cell.algorithm} on {cell.dataset}, {cell.place}"), *texts]
        if one.verdict:
            mark = ANSWERS[one.verdict]
            row[1 + at] = row[1 + at]._replace(mark=mark.sign, kind=mark.name)
        rows.append(row)
    return Sheet([SheetColumn("published cell"), *sheet.columns], rows)


def wide_frame(cells: Sequence[PublishedCell], layout: Layout) -> pd.DataFrame:
    """Data frame of cells in the paper's layout, with our numbers below the published ones.

    Parameters
    ----------
    cells : sequence of Cell
    layout : (rows, columns)

    Returns
    -------
    DataFrame
        One row for each printed row and reading: first `PUBLISHED`, then each named reading with runs. If several
        answers have the same reading, only the first is shown.
    """
    # The grid of the paper's layout, with one line for printed numbers and one for each reading
    rows, columns = layout
    grid: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for cell in cells:
        of_row = grid.setdefault(tuple(getattr(cell, key) for key in rows), {PUBLISHED: {}})
        name = " ".join(getattr(cell, key) for key in columns if getattr(cell, key))
        column = f"{name} ({cell.unit})" if cell.unit else name
        of_row[PUBLISHED].setdefault(column, cell.value)
        for answer in cell.answers:
            if answer.reading and answer.ran:
                of_row.setdefault(answer.label, {}).setdefault(column, answer.ours)
    lines = [
        {**dict(zip(rows, row, strict=True)), "reading": reading, **numbers}
        for row, by_reading in grid.items()
        for reading, numbers in by_reading.items()
    ]
    return pd.DataFrame(lines)


def print_table(title: str, evidence: Evidence, number: str) -> None:
    """Print a paper's table in its layout: its verdict, the sheets, the meaning of marks, and missing numbers."""
    print_lines(click.style(title, bold=True), table_verdict(evidence, number))
    for sheet in [*table_sheets(evidence, number), *table_sheets(evidence, number, times=True)]:
        print_lines("")
        sheet.print_sheet()
    print_lines(
        "",
        *(click.style(line, dim=True) for line in _legend_lines(evidence, number)),
        *_missing_lines(evidence, number),
    )


def table_verdict(evidence: Evidence, number: str) -> str:
    """A sentence with the share of a table's numbers that agree as described, among those that were run.

    All points of a curve share one verdict, and count once.
    """
    # Without counted claims, say why
    marks = evidence.tally_outcomes(number)
    counted = _counted_cells(evidence, number)
    if not counted:
        if EARLY in marks:
            return "No verdict: our runs have fewer replicates than the paper's."
        if {*marks} <= {MISSING}:
            return "No verdict: nothing was run."
        return "No verdict: only run times." if {*marks} <= {TIME, MISSING} else "No verdict: nothing to compare."
    # How many agree as described, by another reading, by none, or are undecided
    described = sum(cell.verdict_under(AS_STATED, evidence.builds_on) == AGREES for cell in counted)
    some = sum(AGREES in cell.verdicts.values() for cell in counted)
    differ = marks.get(DIFFERENT, 0)
    rest = {
        "by another reading": some - described,
        "by none that was run": differ,
        "undecided": len(counted) - some - differ,
    }
    others = "; ".join(f"{count} {words}" for words, count in rest.items() if count)
    what = "curve" if all(cell.curve for cell in counted) else "number"
    first = f"{described} of {count_of(len(counted), what)} that were run come out as described"
    return f"{first}{'; ' * bool(others)}{others}."


def _counted_cells(evidence: Evidence, number: str) -> list[PublishedCell]:
    """One cell for each claim of a table that is evidence."""
    return [claim[0] for claim, mark in evidence.outcomes if claim[0].table == number and mark in COUNTED]


def _legend_lines(evidence: Evidence, number: str) -> Iterator[str]:
    """Lines that explain which numbers are printed and which are ours, and the meaning of each mark."""
    # Only marks that occur
    ran = [cell for cell in evidence.judged_cells(number) if cell.shown is not None]
    if ran:
        marks = dict.fromkeys(cell.mark for cell in ran if cell.mark not in (None, TIME))
        below = "our number is below the published one, ± half of its 95 % interval"
        yield " · ".join([below, *(f"{mark.sign} {mark.words}" for mark in marks)])
    # Which readings were run
    if counted := _counted_cells(evidence, number):
        run = {reading for cell in counted for reading in cell.verdicts}
        many = _replicates_text(ran)
        yield f"{len(run)} of {count_of(len(evidence.readings), 'reading')} were run, with {many} replicates"
        if evidence.reading != AS_STATED:
            yield f"the one reading is “{evidence.reading}”: all readings are in the files"


def _missing_lines(evidence: Evidence, number: str) -> Iterator[str]:
    """Lines with the count of missing numbers by data set, and the reason if the data are not available."""
    counts = not_run(evidence, number)
    unobtainable = experiments.of_paper(evidence.paper).get("unobtainable", {})
    why = {name: unobtainable.get(name) or _to_fetch(name) for name in counts}
    if at_hand := [f"{count} of {name}" for name, count in counts.items() if not why[name]]:
        yield f"not run: {', '.join(at_hand)}"
    for name, count in counts.items():
        if why[name]:
            yield f"not run: {count} of {name} ({why[name]})"


def _to_fetch(name: str) -> str:
    """How to get a data set that is not available; empty if it is."""
    store = Store(Path(environment_variable("FKL_DATA", "data")))
    lacking = name in registry.dataset_names() and any(
        store.find_file(file) is None for file in registry.named_dataset(name).data_files
    )
    return f"data not available: fkl data fetch {name}" if lacking else ""


def table_beside_script(paper_file: str, number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """All runs of a paper without printed numbers, beside the output of its public script where that was run.

    Parameters
    ----------
    paper_file : str
        File of the paper's module, next to script.csv.
    number : str
        Number of the table.
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Errors in units of 1e-3; script_sd and script_n are over repetitions of the script.
    """
    paper = Path(paper_file).parent.name
    found = find_paper_runs(paper, runs)
    require_found(found, "table", next(iter(experiments.paper_experiments(paper))))
    text = {"table": str, "setting": str}
    printed = pd.read_csv(Path(paper_file).with_name("script.csv"), dtype=text).fillna({"setting": ""})
    printed = printed[printed["table"] == number].set_index(SCRIPT_KEY)
    rows = []
    for one in found:
        for metric in (name for name in SCRIPT_METRICS if name in printed.index.get_level_values("metric")):
            if metric == "mse":
                values = one.run.summary["mse"]
                ours, spread = float(values.mean()), float(values.std(ddof=1))
            else:  # standard deviation over clients, of each client's mean MSE over replicates
                ours, spread = float(one.run.clients.groupby("client")["mse"].mean().std(ddof=0)), np.nan
            key = (*one.key, metric)
            row: dict[str, object] = dict(zip(SCRIPT_KEY, key, strict=True))
            for name in ("script", "script_sd", "script_n"):
                row[name] = printed.at[key, name] if key in printed.index else np.nan
            rows.append({**row, "ours": 1e3 * ours, "ours_sd": 1e3 * spread, "n": one.run.replicates})
    return pd.DataFrame(rows)
