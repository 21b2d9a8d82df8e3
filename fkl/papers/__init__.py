"""Published numbers compared with ours, one package for each paper.

Each package's experiments.yaml declares its title, tables and figures. `table(number, runs)` returns a list of
`PublishedCell`, or a data frame if the paper prints no numbers; `figure(number, runs)` draws a figure. Begin with
`cells`.
"""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import click
import pandas as pd

from fkl.basics.errors import FklError, did_you_mean, in_one_line, require
from fkl.basics.files import whole_file, write_text
from fkl.config import experiments
from fkl.papers import tables
from fkl.papers.cells import PublishedCell, cells_frame
from fkl.papers.evidence import Evidence
from fkl.report.figures import STYLES, render_figure, style_figures
from fkl.runs.finished_runs import Collected, FinishedRun, collect_runs
from fkl.screen.messages import print_lines
from fkl.screen.sheet import Sheet

Made = TypeVar("Made")
Table = list[PublishedCell] | pd.DataFrame
"""Printed numbers with our answers, or only our numbers."""

PAPERS = ("pof_mkl", "graph_omkl", "coke", "parsimonious", "fdskl", "fomd_oms", "fed_poe", "dekrr")


def write_table(paper: str, number: str, outputs: Path, format: str = "table") -> None:
    """Make a paper's table from finished runs, print it, and write its files.

    Parameters
    ----------
    paper, number : str
    outputs : Path
        Folder with the runs; tables are written to tables/<paper>/ in it.
    format : str
        One of `fkl.screen.sheet.FORMATS`: "table" prints the paper's layout, and the others print all readings.

    Raises
    ------
    fkl.basics.errors.FklError
        If the paper or table is unknown, or none of its cells has a run.
    """
    # Runs that a table cannot use are named once, even after an error
    collected = collect_runs(outputs)
    try:
        table = make_table(paper, number, collected)
        evidence = judge_paper(paper, collected)
    finally:
        collected.warn_about_runs()
    # The sheet, its files, and what is printed
    sheet = as_sheet(paper, number, table)
    files = save_table(sheet, evidence, number, outputs)
    if format != "table":
        sheet.print_sheet(format)
        return
    if isinstance(table, list):
        tables.print_table(sheet.title, evidence, number)
    else:
        print_lines(click.style(sheet.title, bold=True), "")
        sheet.print_sheet()
    names = ", ".join(file.name for file in files)
    print_lines(click.style(f"files: {files[0].parent}: {names}", dim=True))


def make_table(paper: str, number: str, found: Collected) -> Table:
    """Make a paper's table from these runs; for parameters and errors see `write_table`."""
    module = _module_with(paper, number, "table")
    return made_of(f"{paper}/{number}", lambda runs: module.table(number, runs), found)


def make_frame(paper: str, number: str, found: Collected) -> pd.DataFrame:
    """Make the same table as a data frame, with one row for each cell and reading."""
    table = make_table(paper, number, found)
    return cells_frame(table) if isinstance(table, list) else table


def judge_paper(paper: str, found: Collected) -> Evidence:
    """Collect the cells of all tables of a paper that can be made from these runs."""
    cells: list[PublishedCell] = []
    for number in declared_paper(paper)["tables"]:
        with suppress(FklError):  # no run belongs to this table
            table = make_table(paper, number, found)
            cells += table if isinstance(table, list) else []
    return Evidence(paper, cells)


def as_sheet(paper: str, number: str, table: Table) -> Sheet:
    """A paper's complete table, as in its CSV file."""
    told = declared_paper(paper)
    title = f"{told['title']}, table {number}: {told['tables'][number]['title']}"
    return Sheet.from_frame(cells_frame(table) if isinstance(table, list) else table, title, differences_text(paper))


def save_table(sheet: Sheet, evidence: Evidence, number: str, outputs: Path) -> list[Path]:
    """Write a paper's table as .csv, .md and .tex, also in the paper's layout; return the files.

    Parameters
    ----------
    sheet : Sheet
        Result of `as_sheet`.
    evidence : Evidence
        Cells of the whole paper.
    number : str
    outputs : Path
    """
    # Each table in the form for programs, for pages and for LaTeX; some also as the paper prints them
    path = outputs / "tables" / evidence.paper / f"table{number}"
    files = sheet.write(path, tables.latex_floats(evidence, number))
    layout = tables.table_layout(evidence.paper, number)
    if layout is not None:
        wide = Sheet.from_frame(tables.wide_frame(evidence.judged_cells(number), layout), sheet.title)
        for suffix, text in ((".csv", wide.csv), (".md", wide.markdown)):
            files.append(path.with_name(f"{path.name}_wide{suffix}"))
            write_text(files[-1], text)
    return files


def write_figure(paper: str, number: str, outputs: Path, style: str = "screen") -> str:
    """Draw and save a paper's figure from finished runs; return a line with its files. See `draw_figure`."""
    collected = collect_runs(outputs)
    try:
        contents = draw_figure(paper, number, collected, style)
    finally:
        collected.warn_about_runs()
    return f"files: {', '.join(map(str, save_figure(contents, paper, number, outputs)))}"


def draw_figure(paper: str, number: str, found: Collected, style: str = "screen") -> dict[str, bytes]:
    """Draw a paper's figure; return its .png, its .pdf, a .csv of the curves, and for papers a .txt, by suffix.

    Below a figure without published values are the paper's claims and our results, from CLAIMS in its module.

    Parameters
    ----------
    paper, number : str
    found : Collected
        Finished runs.
    style : {"screen", "paper", "column"}
    """
    # The module of the paper that draws this figure
    module = _module_with(paper, number, "figure")
    require(style in STYLES, "style", style, " or ".join(STYLES))
    claim = getattr(module, "CLAIMS", {}).get(number)

    def draw(runs: list[FinishedRun]) -> dict[str, bytes]:
        figure, replicates = module.figure(number, runs)
        # The curves as numbers, for programs
        curves = [
            {"panel": axes.get_title(), "curve": line.get_label(), "x": x, "y": y}
            for axes in figure.axes
            for line in axes.lines
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        ]
        numbers = pd.DataFrame(curves).to_csv(index=False, float_format="%.6g")
        return {**render_figure(figure, replicates, claim(runs) if claim else ""), ".csv": numbers.encode()}

    with style_figures(style):
        return made_of(f"{paper}/{number}", draw, found)


def save_figure(contents: dict[str, bytes], paper: str, number: str, outputs: Path) -> list[Path]:
    """Write the files of a paper's figure; return their paths."""
    path = outputs / "figures" / paper / f"figure{number}"
    files = [path.with_suffix(suffix) for suffix in contents]
    for file, content in zip(files, contents.values(), strict=True):
        with whole_file(file) as stream:
            stream.write(content)
    return files


def made_of(what: str, make: Callable[[list[FinishedRun]], Made], found: Collected) -> Made:
    """Make a table or figure from all usable runs.

    A run whose checksums are right, but which lacks data that `make` needs, counts as broken.
    """
    # Try all runs; if that fails, find the runs with which it fails alone
    try:
        return make(found.runs)
    except (FklError, MemoryError):
        raise
    except Exception:
        troubles = []
        for run in found.runs:
            try:
                make([run])
            except FklError:  # it needs other runs as well
                pass
            except Exception as error:
                troubles.append((run, f"{type(error).__name__}: {in_one_line(error)}"))
        if not troubles:
            raise
    # Leave them out, and try again
    for run, trouble in troubles:
        found.leave_out(run, f"{what} cannot be made with it ({trouble})")
    return made_of(what, make, found)


def declared_paper(paper: str) -> dict[str, Any]:
    """Title, tables and figures of a paper, from its experiments.yaml."""
    paper_module(paper)  # raises an error for an unknown name
    return experiments.of_paper(paper)


def differences_text(paper: str) -> str:
    """Text of the paper's differences.md, which explains which numbers fkl reproduces."""
    return (Path(__file__).parent / paper / "differences.md").read_text(encoding="utf-8")


def paper_module(paper: str) -> ModuleType:
    """Module of a paper, with a function `table`, and with `figure` if it has figures."""
    if paper not in PAPERS:
        near = did_you_mean(paper, PAPERS, f"papers: {', '.join(PAPERS)}")
        raise FklError(f"{in_one_line(paper)}: no such paper", help=near)
    return import_module(f"fkl.papers.{paper}")


def _module_with(paper: str, number: str, what: str) -> ModuleType:
    """Module of a paper, after a check that it has this table or figure."""
    choices = declared_paper(paper)[f"{what}s"]
    if number not in choices:
        there = ", ".join(f"{paper}/{one}" for one in choices) or "none"
        raise FklError(f"{in_one_line(f'{paper}/{number}')}: no such {what}", help=[f"{what}s of this paper: {there}"])
    return paper_module(paper)
