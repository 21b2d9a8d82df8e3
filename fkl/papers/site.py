"""`fkl reproduce --site`: all published cells on a separate page, each with the runs that gave our numbers."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fkl import __version__, papers
from fkl.basics.errors import FklError, count_of
from fkl.basics.files import write_text
from fkl.config.digest import NOT_RESULTS
from fkl.data.store import Store
from fkl.papers.cells import EARLY, KEY, MISSING, PublishedCell, published_cells
from fkl.papers.evidence import shares_table
from fkl.papers.page import PaperView, added_up, paper_view, table_view
from fkl.report.html import TEMPLATES
from fkl.report.markdown import inline_html
from fkl.runs.finished_runs import Collected, FinishedRun, collect_runs

PAGE, CELLS = "index.html", "cells.csv"


def write_site(folder: Path, names: Sequence[str], outputs: Path, store: Store) -> str:
    """Write a folder that works with any web server or without one, and return a line about its content.

    Parameters
    ----------
    folder : Path
        Folder for the page and for `CELLS`, the same cells for programs; other files in it are not changed.
    names : sequence of str
        Papers; all if empty.
    outputs : Path
        Runs are read from it, and nothing is written to it.
    store : Store
        Folder of data files, to find missing files.
    """
    # Papers that have published cells
    names = [name for name in names or papers.PAPERS if papers.declared_paper(name) and published_cells(name)]
    collected = collect_runs(outputs)
    known = None
    while known != len(collected.broken):  # a run that fails in one table is in none
        known = len(collected.broken)
        views = [_paper_view(name, collected, store) for name in names]
    collected.warn_about_runs()
    total = added_up(views)
    if {*total} <= {MISSING}:
        raise FklError(f"--site: no run in {outputs / 'runs'} answers a published cell", help=["run fkl reproduce"])
    # Cells with their runs, and the command of each run
    flat = [cell for view in views for table in view.tables for cell in view.evidence.judged_cells(table.number)]
    by_digest = {run.digest: run for run in collected.runs}
    cited = [by_digest[digest] for digest in dict.fromkeys(digest for cell in flat for digest in _run_digests(cell))]
    commands = {run.digest: _run_command(run) for run in cited}
    # All that the template shows
    context = {
        "papers": views,
        "total": total,
        "shares": {row["paper"]: row for row in shares_table(view.evidence for view in views).to_dict("records")},
        "of_papers": bool({*total} - {MISSING, EARLY}),
        "runs": sorted(cited, key=lambda run: (run.dataset, run.algorithm, run.digest)),
        "commands": commands,
        "cells_file": CELLS,
        "inline": inline_html,
        "details": "",
        "version": __version__,
        "now": datetime.now(UTC),
    }
    # The page, and the cells as a table for programs
    page = TEMPLATES.get_template("site.html").render(context)
    write_text(folder / PAGE, page)
    write_text(
        folder / CELLS, _program_table(flat, commands).to_csv(index=False, lineterminator="\n", float_format="%.10g")
    )
    answered = sum(bool(_run_digests(cell)) for cell in flat)
    cells, runs = count_of(len(flat), "published cell"), count_of(len(cited), "run")
    return f"{folder / PAGE}: {cells}, {answered} with {runs} of ours"


def _paper_view(name: str, found: Collected, store: Store) -> PaperView:
    """A paper with its tables of published cells."""
    views = [table_view(name, number, found) for number in papers.declared_paper(name)["tables"]]
    for run in found.runs:
        run.forget_tables()
    return paper_view(name, [view for view in views if view.instead or view.cells], [], store)


def _run_digests(cell: PublishedCell) -> list[str]:
    """Digests of the runs that gave our numbers; the run by the one reading is last."""
    return [
        *dict.fromkeys(
            ours.run for ours in (cell.answer_to_text, cell.answer_by_chosen) if ours is not None and ours.run
        )
    ]


def _run_command(run: FinishedRun) -> str:
    """The command of a run, without words that change none of its numbers; empty if it is unknown."""
    words = [word for word in run.words if word.lstrip("+~").split("=")[0].split(".")[0] not in NOT_RESULTS]
    return shlex.join(["fkl", "run", *words]) if words else ""


def _program_table(cells: Sequence[PublishedCell], commands: dict[str, str]) -> pd.DataFrame:
    """The cells for programs, with the command of the run by the one reading, or of the run as described."""
    rows = []
    for cell in cells:
        row: dict[str, Any] = {"paper": cell.paper, "table": cell.table, **dict(zip(KEY, cell.key, strict=True))}
        row |= {"unit": cell.unit, "published": cell.published}
        for name, ours in (("as_described", cell.answer_to_text), ("by_one_reading", cell.answer_by_chosen)):
            our_columns = (ours.ours, ours.spread, ours.n, ours.run) if ours is not None else (np.nan, np.nan, 0, "")
            row |= dict(zip((name, f"{name}_spread", f"{name}_n", f"{name}_run"), our_columns, strict=True))
        last = ["", *_run_digests(cell)][-1]
        outcome = cell.mark.words if cell.mark is not None else ""
        rows.append({**row, "outcome": outcome, "command": commands.get(last, "")})
    return pd.DataFrame(rows)
