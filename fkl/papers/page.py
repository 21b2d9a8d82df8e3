"""An HTML page with all results: reproduced numbers, every table and figure, the differences, the runs."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import click
import pandas as pd

from fkl import __version__, papers
from fkl.basics.errors import FklError, count_of
from fkl.basics.files import write_text
from fkl.config import experiments
from fkl.data.store import Store
from fkl.papers import Table, tables
from fkl.papers.cells import DIFFERENT, EARLY, MISSING, OUTCOMES, TIME, Mark, PublishedCell
from fkl.papers.evidence import Claim, Evidence, shares_table
from fkl.papers.our_runs import of_a_paper
from fkl.report import markdown as prose
from fkl.report.compare import Comparison, Function, by_function, compare_runs
from fkl.report.html import TEMPLATES, HtmlPicture, picture_of_png
from fkl.report.run_rows import DataSource, add_pictures, data_source, run_environments, run_failures, run_views
from fkl.runs.finished_runs import Collected, DivergedRun, FinishedRun, collect_runs
from fkl.runs.metrics import main_metric
from fkl.screen import units
from fkl.screen.messages import print_lines, show_warning
from fkl.screen.sheet import Sheet

SHOWN = {
    "paper": "paper", "cells": "cells", "as_described": "stated", "by_one_reading": "by one",
    "by_some_reading": "by some", "not": "not", "cannot_tell": "unclear",
}  # fmt: skip
"""Columns of the shares in a terminal, with headings that fit 80 letters; the file has all columns."""


@dataclass(frozen=True)
class View:
    """A table or figure of a paper on the page.

    Parameters
    ----------
    anchor, number, title : str
    instead : str
        What to do, in Markdown, if it has no runs.
    """

    anchor: str
    number: str
    title: str
    instead: str = ""


@dataclass(frozen=True)
class TableView(View):
    """A table; it has no cells if the paper does not print its numbers.

    Parameters
    ----------
    cells : list of Cell
    sheet : Sheet, optional
        The whole table; None if it has no runs.
    files : tuple of str
    """

    kind: ClassVar[str] = "Table"
    cells: list[PublishedCell] = field(default_factory=list)
    sheet: Sheet | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureView(View):
    """A figure of a page, with its caption."""

    kind: ClassVar[str] = "Figure"
    picture: HtmlPicture | None = None
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
        Keys that its named variants change.
    tried : dict of str to str
        `experiments.differences_tried`.
    store : Store
        Folder of data files.
    no_cells : str
        Why the paper has no numbers to compare; empty if it has some.
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

    @property
    def short(self) -> str:
        """Its title without authors and year."""
        return self.title.partition(" (")[0]

    @cached_property
    def evidence(self) -> Evidence:
        """The paper's cells with their verdicts."""
        return Evidence(self.name, [cell for table in self.tables for cell in table.cells])

    @property
    def sentence(self) -> str:
        """One sentence of HTML with the result, or with the reason why nothing can be compared."""
        return f"No cells to compare: {self.no_cells}" if self.no_cells else self.differences.sentence

    def sheets(self, number: str, times: bool = False) -> list[Sheet]:
        """A table in its printed layout."""
        return tables.table_sheets(self.evidence, number, times)

    def readings(self, number: str) -> Sheet:
        """All answers to the cells of a table."""
        return tables.readings_sheet(self.evidence.judged_cells(number))

    def cells_not_run(self, number: str) -> Counter[str]:
        """Number of cells of a table without runs, by data set."""
        return tables.not_run(self.evidence, number)

    @property
    def differing(self) -> dict[str, list[tuple[str, str, int, str]]]:
        """Claims that differ by every reading, by algorithm: metric, data set, number, range of differences."""
        several: dict[tuple[str, str, str], list[Claim]] = {}
        for claim in self._claims(DIFFERENT):
            first = claim[0]
            several.setdefault((first.algorithm, first.metric, first.dataset), []).append(claim)
        rows_of: dict[str, list[tuple[str, str, int, str]]] = {}
        for (algorithm, metric, dataset), claims in several.items():
            row = metric.replace("_", " "), dataset, len(claims), _range_text(self._percents(claims))
            rows_of.setdefault(algorithm, []).append(row)
        return rows_of

    def tried_at(self, algorithm: str, dataset: str) -> str:
        """Anchor of the attempts on cells that differ: an item of the differences, or their beginning."""
        words = self.tried.get(f"{algorithm} on {dataset}", self.tried.get(algorithm))
        anchors = {words: anchor for group in self.differences.groups for anchor, words in group.items}
        return anchors.get(str(words), f"{self.name}-differences")

    @property
    def not_run(self) -> list[tuple[DataSource, int]]:
        """Data sets of published cells without runs, with the number of these cells."""
        counts = Counter(claim[0].dataset for claim in self._claims(MISSING))
        return [(data_source(name, self.store), number) for name, number in counts.items()]

    @property
    def remedies(self) -> dict[str, tuple[list[str], int]]:
        """Names of data sets, and number of their cells without runs, by what to do about them."""
        cells_of: dict[str, tuple[list[str], int]] = {}
        for source, number in self.not_run:
            here = source.title and not source.missing
            remedy = f"the data are here; `fkl reproduce {self.name}` runs them" if here else source.remedy
            names, cells_so_far = cells_of.get(remedy, ([], 0))
            cells_of[remedy] = [*names, source.name], cells_so_far + number
        return cells_of

    @property
    def lacks(self) -> bool:
        """Whether some cells, tables or figures have no runs."""
        return bool(self.not_run or self.left_out)

    @property
    def left_out(self) -> dict[str, list[TableView | FigureView]]:
        """Tables and figures without runs, by what to do about them."""
        views_of: dict[str, list[TableView | FigureView]] = {}
        views: list[TableView | FigureView] = [*self.tables, *self.figures]
        for view in views:
            if view.instead:
                views_of.setdefault(view.instead, []).append(view)
        return views_of

    def _claims(self, outcome: Mark) -> list[Claim]:
        return [claim for claim, mark in self.evidence.outcomes if mark == outcome]

    def _percents(self, claims: list[Claim]) -> list[float]:
        """Differences in percent of our numbers, by the one reading, from the printed numbers."""
        builds_on, reading = self.evidence.builds_on, self.evidence.reading
        return [
            100 * (one.ours / cell.number - 1)
            for claim in claims
            for cell in claim
            for one in cell.answers
            if cell.number and one.label == cell.read_as(reading, builds_on)
        ]


@dataclass(frozen=True)
class ComparedView:
    """A comparison of runs on the page."""

    made: Comparison
    pictures: dict[str, HtmlPicture]
    files: tuple[str, ...]

    @property
    def sheet(self) -> Sheet:
        """Its table, the best method first."""
        return self.made.pivot.table_sheet(self.made.pivot.best_first)

    @property
    def said(self) -> list[str]:
        """Methods that differ from the best, and notes for the reader."""
        return [*self.made.verdicts, *self.made.remarks]


def write_page(outputs: Path, store: Store, single: bool = False) -> None:
    """Make all tables, figures and the page again; print its path and the numbers of agreeing cells.

    Parameters
    ----------
    outputs : Path
        Runs are read from it; tables, figures, report.html and report/ are written to it.
    store : Store
        Folder of data files, to find missing files.
    single : bool
        Whether to embed pictures and runs in report.html.
    """
    # Read all runs; a run that some table cannot use is left out of all of them
    collected = collect_runs(outputs)
    pictures: dict[Path, list[HtmlPicture]] = {}
    known = None
    while known != len(collected.broken):  # a run that fails in one table is in none
        known = len(collected.broken)
        add_pictures(pictures, collected)
        # if all runs are the user's own, the papers' missing runs do not matter
        wanted = not collected.runs or any(of_a_paper(run, papers.PAPERS) for run in collected.runs)
        views = [_paper_view(paper, collected, outputs, store) for paper in papers.PAPERS] if wanted else []
        total = added_up(views)
        of_papers = bool({*total} - {MISSING, EARLY}) or any(_has_results(view) for view in views)
        compared = _compare_by_metric(collected, of_papers, outputs)
    collected.warn_about_runs()
    runs = collected.runs
    shown = views if of_papers or EARLY in total or not runs else []
    # Data sets of the runs, and those that the page says are missing
    names = sorted({run.dataset for run in runs} | {source.name for view in shown for source, _ in view.not_run})
    shares = shares_table(view.evidence for view in shown)
    # All that the templates show
    context = {
        "papers": shown,
        "outcomes": [outcome for outcome in OUTCOMES if outcome != TIME],
        "total": total,
        "shares": {row["paper"]: row for row in shares.to_dict("records")},
        "of_papers": of_papers,
        "compared": compared,
        "environments": run_environments(runs),
        "sources": [data_source(name, store) for name in names],
        "runs": run_views(runs, pictures),
        "details": "" if single else "report/runs.html",
        "broken": collected.broken,
        "older": collected.older,
        "failures": run_failures(outputs),
        "version": __version__,
        "now": datetime.now(UTC),
        "inline": prose.inline_html,
        "source": lambda one: one.source(None if single else outputs),
    }
    page = TEMPLATES.get_template("page.html").render(context)
    # The page, and the details of runs in a second file unless all should be in one
    path, details = outputs / "report.html", outputs / "report"
    write_text(path, page)
    if not single:
        context |= {"source": lambda one: one.source(details)}
        write_text(details / "runs.html", TEMPLATES.get_template("runs.html").render(context))
    # Say where it is, and what is missing
    if not (outputs / "runs").exists():
        show_warning(f"{outputs / 'runs'}: no such folder, so the page has no runs; fkl run makes it")
    said = f"{path}: {count_of(len(runs), 'run')}, {units.bytes_of(len(page.encode()))}"
    if not single:
        said += f"; details of runs in {details}"
    print_lines(said)
    # The shares of agreeing cells also as a table
    if not shares.empty:
        title = "Printed numbers and curves that agree with ours"
        Sheet.from_frame(shares, title).write(outputs / "tables" / "shares")
        print_lines("", click.style(title, bold=True), "")
        Sheet.from_frame(shares[[*SHOWN]].rename(columns=SHOWN), title).print_sheet()


def _has_results(view: PaperView) -> bool:
    """Whether the paper has a result without a published cell."""
    return any(table.sheet is not None and not table.cells for table in view.tables)


def added_up(views: list[PaperView]) -> dict[Mark, int]:
    """Number of cells of all papers by outcome."""
    total = sum((Counter(view.evidence.tally_outcomes()) for view in views), Counter[Mark]())
    return {outcome: total[outcome] for outcome in OUTCOMES if outcome in total}


def _compare_by_metric(found: Collected, of_papers: bool, outputs: Path) -> list[ComparedView]:
    """A comparison of the runs for each metric, without the papers' runs if these are shown with published numbers.

    A metric that is several functions, such as pinball losses of several levels, has a comparison for each.
    """
    # Papers' runs are shown with their printed numbers instead
    runs, lost = found.runs, found.lost
    if of_papers:
        runs = [run for run in runs if not of_a_paper(run, papers.PAPERS)]
        lost = [run for run in lost if not of_a_paper(run, papers.PAPERS)]
    # Runs by metric and the function that it is
    by_metric: dict[tuple[str, Function], list[FinishedRun]] = {}
    for run in runs:
        metric = main_metric(run.summary)
        [function] = by_function([run], metric)
        by_metric.setdefault((metric, function), []).append(run)
    views = []
    # A comparison of each group with its figures
    for (metric, function), several in by_metric.items():
        if len(several) > 1:
            folder = outputs / "comparison" / "-".join([metric, *(f"{key}={value}" for key, value in function)])
            make = partial(_write_comparison, folder, lost)
            made, files = papers.made_of(f"comparison by {metric}", make, Collected(several))
            about = f"{metric} of {', '.join(made.pivot.methods)} on {', '.join(made.pivot.datasets)}"
            shown = {
                file.stem: picture_of_png(file, f"{file.stem}: {about}") for file in files if file.suffix == ".png"
            }
            views.append(ComparedView(made, shown, _files_below(outputs, files)))
    # Rounds were read for figures only
    for run in runs:
        run.forget_tables()
    return views


def _write_comparison(folder: Path, lost: list[DivergedRun], runs: list[FinishedRun]) -> tuple[Comparison, list[Path]]:
    made = compare_runs(Collected(runs, lost))
    return made, made.write(folder)


def _paper_view(paper: str, found: Collected, outputs: Path, store: Store) -> PaperView:
    """Make a paper's tables and figures; then drop the runs' tables from memory, because their rounds are large."""
    declared = papers.declared_paper(paper)
    views = [table_view(paper, number, found) for number in declared["tables"]]
    evidence = Evidence(paper, [cell for view in views for cell in view.cells])
    views = [_save_table(view, evidence, outputs) for view in views]
    figures = [_figure_view(paper, number, one["title"], found, outputs) for number, one in declared["figures"].items()]
    for run in found.runs:
        run.forget_tables()
    return paper_view(paper, views, figures, store)


def paper_view(paper: str, tables: list[TableView], figures: list[FigureView], store: Store) -> PaperView:
    """A paper with these tables and figures, and with facts from its module and files."""
    declared, about = papers.declared_paper(paper), str(papers.paper_module(paper).__doc__)
    differences = prose.render_markdown(papers.differences_text(paper), f"{paper}-differences", level=4)
    settled, tried = experiments.paper_variants(paper), experiments.differences_tried(paper)
    no_cells = declared.get("no_cells", "")
    return PaperView(paper, declared["title"], about, tables, figures, differences, settled, tried, store, no_cells)


def table_view(paper: str, number: str, found: Collected) -> TableView:
    """A table without its files, or the reason why it cannot be made."""
    anchor, title = f"{paper}-table-{number}", papers.declared_paper(paper)["tables"][number]["title"]
    try:
        made: Table = papers.make_table(paper, number, found)
    except FklError as error:
        return TableView(anchor, number, title, _error_html(error))
    cells = made if isinstance(made, list) else []
    return TableView(anchor, number, title, "", cells, papers.as_sheet(paper, number, made))


def _save_table(view: TableView, evidence: Evidence, outputs: Path) -> TableView:
    if view.sheet is None:
        return view
    return replace(view, files=_files_below(outputs, papers.save_table(view.sheet, evidence, view.number, outputs)))


def _figure_view(paper: str, number: str, title: str, found: Collected, outputs: Path) -> FigureView:
    anchor = f"{paper}-figure-{number}"
    try:
        contents = papers.draw_figure(paper, number, found)
    except FklError as error:
        return FigureView(anchor, number, title, _error_html(error))
    files = papers.save_figure(contents, paper, number, outputs)
    shown = picture_of_png(files[0], f"{title}. {_describe_figure(files[-1])}")
    return FigureView(anchor, number, title, "", shown, _files_below(outputs, files))


def _error_html(error: FklError) -> str:
    """An error's text, with its command marked as code."""
    words = str(error).partition(": ")[2] or str(error)
    return re.sub(r"(?<!`)(fkl run .*)", r"`\1`", words)


def _describe_figure(file: Path) -> str:
    """Description of a figure, from its numbers."""
    curves = pd.read_csv(file, keep_default_na=False, dtype=str) if file.stat().st_size > 1 else pd.DataFrame()
    if not len(curves):
        return ""
    named = [name for name in curves["curve"].unique() if not name.startswith("_")]
    panels = [name for name in curves["panel"].unique() if name]
    return f"Panels: {', '.join(panels) or 'one'}. Curves: {', '.join(named)}."


def _files_below(outputs: Path, files: list[Path]) -> tuple[str, ...]:
    return tuple(file.relative_to(outputs).as_posix() for file in files)


def _range_text(differences: list[float]) -> str:
    """Smallest and largest difference."""
    numbers = [one for one in differences if one == one]
    if not numbers:
        return "no percentage"
    ends = list(dict.fromkeys(units.percent_text(value) for value in (min(numbers), max(numbers))))
    return " to ".join(ends) + " %"
