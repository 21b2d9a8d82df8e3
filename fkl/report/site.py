"""`fkl reproduce --site`: all published cells on a separate page, each with the runs behind our numbers."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from fkl import __version__, papers
from fkl.basics.errors import FklError, plural
from fkl.basics.files import write_text
from fkl.data.store import Store
from fkl.papers.traced import TracedCell, command, traced
from fkl.papers.verdicts import EARLY, MISSING, shares_table
from fkl.report.page import HELPERS, MARKUP, PaperView, added_up, frame_of, paper_view, table_view
from fkl.runs.finished_runs import Collected, collect

PAGE, CELLS = "index.html", "cells.csv"


def write_site(folder: Path, names: Sequence[str], outputs: Path, store: Store) -> str:
    """Write a folder that works with any web server, or without one, and print its content.

    Parameters
    ----------
    folder : Path
        Folder for the page and `CELLS`, the same cells for programs; other files in it are not changed.
    names : sequence of str
        Papers; all if empty.
    outputs : Path
        Runs are read below it, and nothing is written there.
    store : Store
        Place of data files, to find the missing ones.
    """
    names = [name for name in names or papers.PAPERS if _has_cells(name)]
    found = collect(outputs)
    known = None
    while known != len(found.broken):  # a run that one table cannot use is in none
        known = len(found.broken)
        views = [_paper(name, found, store) for name in names]
    found.warn()
    total = added_up(views)
    if {*total} <= {MISSING}:
        raise FklError(f"--site: no run in {outputs / 'runs'} answers a published cell", help=["first fkl reproduce"])
    cells = {view.name: {one.number: [*traced(view.judged, one.number)] for one in view.tables} for view in views}
    flat = [cell for tables in cells.values() for several in tables.values() for cell in several]
    by_digest = {run.digest: run for run in found.runs}
    cited = [by_digest[digest] for digest in dict.fromkeys(digest for cell in flat for digest in cell.runs)]
    commands = {run.digest: command(run) for run in cited}
    words = {
        "papers": views,
        "total": total,
        "shares": {row["paper"]: row for row in shares_table(view.judged for view in views).to_dict("records")},
        "of_papers": bool({*total} - {MISSING, EARLY}),
        "cells": cells,
        "runs": sorted(cited, key=lambda run: (run.dataset, run.algorithm, run.digest)),
        "commands": commands,
        "cells_file": CELLS,
        "details": "",
        "version": __version__,
        "now": datetime.now(UTC),
        **HELPERS,
    }
    page = MARKUP.get_template("site.html").render(words)
    write_text(folder / PAGE, page)
    write_text(folder / CELLS, _table(flat, commands).to_csv(index=False, lineterminator="\n", float_format="%.10g"))
    answered = sum(bool(cell.runs) for cell in flat)
    return (
        f"{folder / PAGE}: {plural(len(flat), 'published cell')}, {answered} with {plural(len(cited), 'run')} of ours"
    )


def _has_cells(name: str) -> bool:
    """Whether a paper prints numbers for comparison with ours."""
    return Path(str(papers.paper_module(name).__file__)).with_name("published.csv").exists()


def _paper(name: str, found: Collected, store: Store) -> PaperView:
    """A paper with its tables of published cells."""
    titles = papers.paper_module(name).TABLES
    views = [table_view(name, number, title, frame_of(name, number, found)) for number, title in titles.items()]
    for run in found.runs:
        run.forget()
    return paper_view(name, [view for view in views if view.instead or view.published], [], store)


def _table(cells: Sequence[TracedCell], commands: dict[str, str]) -> pd.DataFrame:
    """The cells for programs, with the command of the run by the one reading, or of the run as described."""
    rows = []
    for cell in cells:
        last = cell.runs[-1] if cell.runs else ""
        rows.append({**cell.row(), "command": commands.get(last, "")})
    return pd.DataFrame(rows)
