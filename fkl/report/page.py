"""One HTML page with everything: reproduced numbers, every table and figure, the differences, the runs."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import click
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fkl import __version__, papers
from fkl.basics.errors import FklError, plural
from fkl.basics.files import whole_file, write_text
from fkl.config import experiments
from fkl.data.store import Store
from fkl.papers.our_runs import of_a_paper
from fkl.papers.printed import DEFAULT, Grid, grids
from fkl.papers.published import KEY, Layout
from fkl.papers.verdicts import DIFFERENT, EARLY, MISSING, OUTCOMES, ROWS, TIME, Cell, Judged, Mark, shares_table
from fkl.report import markdown as prose
from fkl.report.compare import Comparison, compare_runs
from fkl.report.embedded_images import Picture, embedded
from fkl.report.run_rows import DataSource, add_pictures, data_source, environments, failures, run_views
from fkl.runs.finished_runs import Collected, DivergedRun, FinishedRun, collect, legible
from fkl.runs.metrics import main_metric
from fkl.screen import units
from fkl.screen.messages import say, warning
from fkl.screen.sheet import Sheet

SHOWN = {
    "paper": "paper", "cells": "cells", "as_described": "stated", "by_one_reading": "by one",
    "by_some_reading": "by some", "not": "not", "cannot_tell": "unclear",
}  # fmt: skip
"""Columns of the shares in the terminal, with headings for a width of 80; their file has all columns."""

MARKUP = Environment(
    loader=PackageLoader("fkl.report"),
    autoescape=True,
    finalize=lambda value: value if hasattr(value, "__html__") else legible(str(value)),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class View:
    """A table or figure of a paper on the page.

    Parameters
    ----------
    anchor, number, title : str
    instead : str
        What to do, in Markdown, if nothing was run for it.
    """

    anchor: str
    number: str
    title: str
    instead: str = ""


@dataclass(frozen=True)
class TableView(View):
    """A table with the verdict of each row.

    Parameters
    ----------
    frame : DataFrame
        The table with its hidden columns.
    table : Sheet, optional
    files : tuple of str
    """

    kind: ClassVar[str] = "Table"
    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    table: Sheet | None = None
    files: tuple[str, ...] = ()

    @property
    def published(self) -> bool:
        """Whether it is a table of published cells."""
        return {*KEY, "unit", "verdict"} <= {*self.frame}

    @property
    def rows(self) -> list[tuple[list[str], Mark | None, bool]]:
        """Cells of each row as text, its verdict, and whether it is below the first row of its published cell.

        Rows without runs are left out.
        """
        assert self.table is not None
        frame = self.frame
        ran = frame["ours"].notna() if self.published else pd.Series(True, frame.index)
        below = frame.duplicated(KEY) if {*KEY} <= set(frame) else pd.Series(False, frame.index)
        verdicts = frame["verdict"] if "verdict" in frame else pd.Series("", frame.index)
        texts = [[cell.text for cell in row] for row in self.table.rows]
        rows = zip(texts, verdicts, below, ran, strict=True)
        return [(row, ROWS.get(verdict), b) for row, verdict, b, has_run in rows if has_run]

    @property
    def named_by(self) -> int:
        """Number of first columns that identify a row."""
        assert self.table is not None
        return len(KEY) + 1 if self.published else 1


@dataclass(frozen=True)
class FigureView(View):
    """A figure."""

    kind: ClassVar[str] = "Figure"
    picture: Picture | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class PaperView:
    """A paper on the page.

    Parameters
    ----------
    name, title : str
    about : str
        Authors and journal.
    tables : list of TableView
    figures : list of FigureView
    differences : Prose
    variants : dict of str to str
        Changes of its named variants.
    tried : dict of str to str
        `experiments.tried`.
    store : Store
        Place of data files.
    no_cells : str
        Why there are no numbers to compare; empty if there are some.
    layouts : dict of str to Layout
        Rows and columns of its printed tables, by number.
    """

    name: str
    title: str
    about: str
    tables: list[TableView]
    figures: list[FigureView]
    differences: prose.Prose
    variants: dict[str, str]
    tried: dict[str, str]
    store: Store
    no_cells: str
    layouts: dict[str, Layout]

    @property
    def short(self) -> str:
        """Its title without authors and year."""
        return self.title.partition(" (")[0]

    @cached_property
    def judged(self) -> Judged:
        """Its cells."""
        return Judged(self.name, {table.number: table.frame for table in self.tables})

    @property
    def sentence(self) -> str:
        """The result, or why there is nothing to compare, in one sentence of HTML."""
        return f"No cells to compare: {self.no_cells}" if self.no_cells else self.differences.sentence

    def grids(self, number: str) -> list[Grid]:
        """A table in its printed layout."""
        return grids(self.judged, number, self.layouts.get(number, DEFAULT))

    @property
    def differing(self) -> dict[str, list[tuple[str, str, int, str]]]:
        """Cells that differ by every reading, by algorithm: metric, data set, number, range of differences."""
        several: dict[tuple[str, str, str], list[Cell]] = {}
        for cell in self._cells(DIFFERENT):
            algorithm, metric, dataset = (cell.first[name] for name in ("algorithm", "metric", "dataset"))
            several.setdefault((algorithm, metric, dataset), []).append(cell)
        found: dict[str, list[tuple[str, str, int, str]]] = {}
        for (algorithm, metric, dataset), those in several.items():
            rows = pd.concat([cell.rows[cell.rows["reading"] == self._read_as(cell)] for cell in those])
            words = metric.replace("_", " "), dataset, len(those), _range(rows["difference_percent"])
            found.setdefault(algorithm, []).append(words)
        return found

    def tried_at(self, algorithm: str, dataset: str) -> str:
        """Anchor of attempts for cells that differ: an item of the differences, or all of them."""
        words = self.tried.get(f"{algorithm} on {dataset}", self.tried.get(algorithm))
        anchors = {words: anchor for group in self.differences.groups for anchor, words in group.items}
        return anchors.get(str(words), f"{self.name}-differences")

    @property
    def not_run(self) -> list[tuple[DataSource, int]]:
        """Data sets of published cells without runs, with the number of these cells."""
        counts = Counter(str(cell.first["dataset"]) for cell in self._cells(MISSING))
        return [(data_source(name, self.store), number) for name, number in counts.items()]

    @property
    def remedies(self) -> dict[str, tuple[list[str], int]]:
        """What to do for the cells without runs: names of their data sets, and their number."""
        found: dict[str, tuple[list[str], int]] = {}
        for source, number in self.not_run:
            here = source.title and not source.missing
            remedy = f"the data are here; `fkl reproduce {self.name}` runs them" if here else source.remedy
            names, cells_so_far = found.get(remedy, ([], 0))
            found[remedy] = [*names, source.name], cells_so_far + number
        return found

    @property
    def lacks(self) -> bool:
        """Whether some cells have no runs."""
        return bool(self.not_run or self.left_out)

    @property
    def left_out(self) -> dict[str, list[TableView | FigureView]]:
        """Tables and figures without runs, by what to do."""
        found: dict[str, list[TableView | FigureView]] = {}
        views: list[TableView | FigureView] = [*self.tables, *self.figures]
        for view in views:
            if view.instead:
                found.setdefault(view.instead, []).append(view)
        return found

    def _cells(self, outcome: Mark) -> list[Cell]:
        return [cell for cell, of_cell in self.judged.outcomes if of_cell == outcome]

    def _read_as(self, cell: Cell) -> str:
        return cell.read_as(self.judged.reading, self.judged.builds_on)


@dataclass(frozen=True)
class ComparedView:
    """A comparison of runs on the page."""

    made: Comparison
    pictures: dict[str, Picture]
    files: tuple[str, ...]

    @property
    def sheet(self) -> Sheet:
        """Its table, the best method first."""
        return self.made.pivot.sheet(self.made.pivot.best_first)

    @property
    def said(self) -> list[str]:
        """Methods that differ from the best, and notes for the reader."""
        return [*self.made.verdicts, *self.made.remarks]


class Beside:
    """Files next to the page, in the folder ``report``; none if the page is a single file.

    Parameters
    ----------
    folder : Path
        Folder of the page.
    single : bool
        Whether the page contains pictures and runs.
    """

    def __init__(self, folder: Path, single: bool) -> None:
        self.folder, self.single = folder, single
        self.pictures: dict[str, bytes] = {}

    def source(self, picture: Picture, above: str = "report/") -> str:
        """Address of a picture, for a page with the folder below ``above``."""
        if self.single:
            return picture.uri
        self.pictures[picture.name] = picture.png
        return above + picture.name

    def write(self, details: str) -> None:
        """Write the pictures and the page of the runs, and remove pictures of former pages."""
        if self.single:
            return
        for name, png in self.pictures.items():
            with whole_file(self.folder / name, durable=False) as stream:
                stream.write(png)
        write_text(self.folder / "runs.html", details)
        for file in self.folder.glob("[!.]*.png"):
            if file.name not in self.pictures:
                file.unlink(missing_ok=True)


def write_page(outputs: Path, store: Store, single: bool = False) -> None:
    """Make all tables and figures again, and the page with them; print its path and the number of agreeing cells.

    Parameters
    ----------
    outputs : Path
        Runs are read below it; tables, figures and report.html are written there, with report/ next to it.
    store : Store
        Place of data files, to find the missing ones.
    single : bool
        Whether to embed pictures and runs in report.html.
    """
    found = collect(outputs)
    pictures: dict[Path, list[Picture]] = {}
    known = None
    while known != len(found.broken):  # what one table cannot be made of is in none
        known = len(found.broken)
        add_pictures(pictures, found)
        views = [_paper(paper, found, outputs, store) for paper in papers.PAPERS]
        total = added_up(views)
        of_papers = bool({*total} - {MISSING, EARLY}) or any(_shows(view) for view in views)
        compared = _compared(found, of_papers, outputs)
    found.warn()
    runs = found.runs
    shown = (
        views if of_papers or EARLY in total or not runs else []
    )  # only own runs: missing runs of papers do not matter
    names = sorted({run.dataset for run in runs} | {source.name for view in shown for source, _ in view.not_run})
    shares = shares_table(view.judged for view in shown)
    beside = Beside(outputs / "report", single)
    words = {
        "papers": shown,
        "outcomes": [outcome for outcome in OUTCOMES if outcome != TIME],
        "total": total,
        "shares": {row["paper"]: row for row in shares.to_dict("records")},
        "of_papers": of_papers,
        "compared": compared,
        "environments": environments(runs),
        "sources": [data_source(name, store) for name in names],
        "runs": run_views(runs, pictures),
        "details": "" if single else "report/runs.html",
        "broken": found.broken,
        "older": found.older,
        "failures": failures(outputs),
        "version": __version__,
        "now": datetime.now(UTC),
        "source": beside.source,
        **HELPERS,
    }
    page = MARKUP.get_template("page.html").render(words)
    beside.write(MARKUP.get_template("runs.html").render(words))
    path = outputs / "report.html"
    write_text(path, page)
    if not (outputs / "runs").exists():
        warning(f"{outputs / 'runs'}: no such folder, so there is no run to show; fkl run makes it")
    said = f"{path}: {plural(len(runs), 'run')}, {units.bytes_of(len(page.encode()))}"
    if not single:
        said += f"; pictures and details of runs in {beside.folder}"
    say(said)
    if not shares.empty:
        title = "Printed numbers and curves that agree with ours"
        Sheet.from_frame(shares, title).write(outputs / "tables" / "shares")
        say("", click.style(title, bold=True), "")
        Sheet.from_frame(shares[[*SHOWN]].rename(columns=SHOWN), title).show()


def _shows(view: PaperView) -> bool:
    """Whether the paper has a result without a published cell."""
    return any(table.table is not None and not table.published for table in view.tables)


def added_up(views: list[PaperView]) -> dict[Mark, int]:
    """Number of cells of all papers by outcome."""
    total = sum((Counter(view.judged.tally()) for view in views), Counter[Mark]())
    return {outcome: total[outcome] for outcome in OUTCOMES if outcome in total}


def _compared(found: Collected, of_papers: bool, outputs: Path) -> list[ComparedView]:
    """A comparison of the runs with one metric, without the papers' runs if these are shown with published numbers."""
    runs, lost = found.runs, found.lost
    if of_papers:
        runs = [run for run in runs if not of_a_paper(run, papers.PAPERS)]
        lost = [run for run in lost if not of_a_paper(run, papers.PAPERS)]
    by_metric: dict[str, list[FinishedRun]] = {}
    for run in runs:
        by_metric.setdefault(main_metric(run.summary), []).append(run)
    views = []
    for metric, several in by_metric.items():
        if len(several) > 1:
            folder = outputs / "comparison" / metric
            make = partial(_written, folder, lost)
            made, files = papers.made_of(f"comparison by {metric}", make, Collected(several))
            about = f"{metric} of {', '.join(made.pivot.methods)} on {', '.join(made.pivot.datasets)}"
            shown = {file.stem: embedded(file, f"{file.stem}: {about}") for file in files if file.suffix == ".png"}
            views.append(ComparedView(made, shown, _below(outputs, files)))
    for run in runs:
        run.forget()
    return views


def _written(folder: Path, lost: list[DivergedRun], runs: list[FinishedRun]) -> tuple[Comparison, list[Path]]:
    made = compare_runs(Collected(runs, lost))
    return made, made.write(folder)


def _paper(paper: str, found: Collected, outputs: Path, store: Store) -> PaperView:
    """Make a paper's tables and figures; the runs' tables are released again, because their rounds are large."""
    module = papers.paper_module(paper)
    frames = {number: frame_of(paper, number, found) for number in module.TABLES}
    judged = Judged(paper, {number: frame for number, frame in frames.items() if isinstance(frame, pd.DataFrame)})
    tables = [_table(judged, number, title, frames[number], outputs) for number, title in module.TABLES.items()]
    figures = [_figure(paper, number, title, found, outputs) for number, title in module.FIGURES.items()]
    for run in found.runs:
        run.forget()
    return paper_view(paper, tables, figures, store)


def paper_view(paper: str, tables: list[TableView], figures: list[FigureView], store: Store) -> PaperView:
    """A paper with these tables and figures, and facts from its module and files."""
    module = papers.paper_module(paper)
    differences = prose.render(papers.differences(module), f"{paper}-differences", level=4)
    settled, tried = experiments.variants(paper), experiments.tried(paper)
    about, layouts = str(module.__doc__), getattr(module, "WIDE", {})
    no_cells = getattr(module, "NO_CELLS", "")
    whole = paper, module.TITLE, about, tables, figures, differences, settled, tried, store, no_cells, layouts
    return PaperView(*whole)


def frame_of(paper: str, number: str, found: Collected) -> pd.DataFrame | FklError:
    """A table, or the reason why there is none."""
    try:
        return papers.make_frame(paper, number, found)
    except FklError as error:
        return error


def _table(judged: Judged, number: str, title: str, frame: pd.DataFrame | FklError, outputs: Path) -> TableView:
    view = table_view(judged.paper, number, title, frame)
    if view.table is None:
        return view
    return replace(view, files=_below(outputs, papers.save_table(view.table, judged.paper, number, outputs, judged)))


def table_view(paper: str, number: str, title: str, frame: pd.DataFrame | FklError) -> TableView:
    """A table without a file, or the reason why there is none."""
    anchor = f"{paper}-table-{number}"
    if isinstance(frame, FklError):
        return TableView(anchor, number, title, _instead(frame))
    return TableView(anchor, number, title, "", frame, papers.as_table(paper, number, frame))


def _figure(paper: str, number: str, title: str, found: Collected, outputs: Path) -> FigureView:
    anchor = f"{paper}-figure-{number}"
    try:
        contents = papers.draw_figure(paper, number, found)
    except FklError as error:
        return FigureView(anchor, number, title, _instead(error))
    files = papers.save_figure(contents, paper, number, outputs)
    picture = embedded(files[0], f"{title}. {_curves(files[-1])}")
    return FigureView(anchor, number, title, "", picture, _below(outputs, files))


def _instead(error: FklError) -> str:
    """An error's text, with its command marked as code."""
    words = str(error).partition(": ")[2] or str(error)
    return re.sub(r"(?<!`)(fkl run .*)", r"`\1`", words)


def _curves(file: Path) -> str:
    """Description of a figure, from its numbers."""
    curves = pd.read_csv(file, keep_default_na=False, dtype=str) if file.stat().st_size > 1 else pd.DataFrame()
    if not len(curves):
        return ""
    named = [name for name in curves["curve"].unique() if not name.startswith("_")]
    panels = [name for name in curves["panel"].unique() if name]
    return f"Panels: {', '.join(panels) or 'one'}. Curves: {', '.join(named)}."


HELPERS = {
    "typeset": units.typeset,
    "inline": lambda markdown: Markup(prose.inline(markdown)),
    "units": units,
}
"""Template filters for numbers and Markdown."""


def _below(outputs: Path, files: list[Path]) -> tuple[str, ...]:
    return tuple(file.relative_to(outputs).as_posix() for file in files)


def _range(differences: "pd.Series[float]") -> str:
    """Smallest and largest difference; empty if no run reaches the published value."""
    known = differences.dropna()
    if not len(known):
        return "no percentage"
    ends = list(dict.fromkeys(units.percent(value) for value in (known.min(), known.max())))
    return " to ".join(ends) + " %"
