"""Published numbers compared with ours, one package for each paper.

Its experiments.yaml declares title, tables and figures. `table(number, runs)` returns `fkl.papers.cells.Cell` objects
with our answers, or a data frame where nothing is printed; `figure(number, runs)` draws. Begin with `cells`.
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
from fkl.papers.cells import Cell, frame
from fkl.papers.evidence import Evidence
from fkl.report.figures import STYLES, rendered, styled
from fkl.runs.finished_runs import Collected, FinishedRun, collect
from fkl.screen.messages import say
from fkl.screen.sheet import Sheet

Made = TypeVar("Made")
Table = list[Cell] | pd.DataFrame
"""Cells with our answers, or numbers of ours alone."""

PAPERS = ("pof_mkl", "graph_omkl", "coke", "parsimonious", "fdskl", "fomd_oms", "fed_poe", "dekrr")


def write_table(paper: str, number: str, outputs: Path, format: str = "table") -> None:
    """Make a paper's table from the finished runs, print it, and write its files.

    Parameters
    ----------
    paper, number : str
    outputs : Path
        Runs are read below it, tables written to tables/<paper>/.
    format : str
        One of `fkl.screen.sheet.FORMATS`: "table" has the paper's layout, the others have all readings.

    Raises
    ------
    fkl.basics.errors.FklError
        If there is no such paper or table, or no run for any of its cells.
    """
    found = collect(outputs)
    try:
        table = make_table(paper, number, found)
        evidence = judge(paper, found)
    finally:
        found.warn()
    sheet = as_sheet(paper, number, table)
    files = save_table(sheet, evidence, number, outputs)
    if format != "table":
        sheet.show(format)
        return
    if isinstance(table, list):
        tables.show(sheet.title, evidence, number)
    else:
        say(click.style(sheet.title, bold=True), "")
        sheet.show()
    names = ", ".join(file.name for file in files)
    say(click.style(f"files: {files[0].parent}: {names}", dim=True))


def make_table(paper: str, number: str, found: Collected) -> Table:
    """A paper's table from these runs; parameters and errors as for `write_table`."""
    module = _module_with(paper, number, "table")
    return made_of(f"{paper}/{number}", lambda runs: module.table(number, runs), found)


def make_frame(paper: str, number: str, found: Collected) -> pd.DataFrame:
    """The same as a data frame, with a row for each cell and reading."""
    table = make_table(paper, number, found)
    return frame(table) if isinstance(table, list) else table


def judge(paper: str, found: Collected) -> Evidence:
    """The cells of all tables of a paper that can be made from these runs."""
    cells: list[Cell] = []
    for number in declared(paper)["tables"]:
        with suppress(FklError):  # the line about what to run first
            table = make_table(paper, number, found)
            cells += table if isinstance(table, list) else []
    return Evidence(paper, cells)


def as_sheet(paper: str, number: str, table: Table) -> Sheet:
    """All of a paper's table, as in its CSV file."""
    told = declared(paper)
    title = f"{told['title']}, table {number}: {told['tables'][number]['title']}"
    return Sheet.from_frame(frame(table) if isinstance(table, list) else table, title, differences(paper))


def save_table(sheet: Sheet, evidence: Evidence, number: str, outputs: Path) -> list[Path]:
    """Write a paper's table as .csv, .md and .tex, also in the paper's layout, and return the files.

    Parameters
    ----------
    sheet : Sheet
        From `as_sheet`.
    evidence : Evidence
        The cells of the whole paper.
    number : str
    outputs : Path
    """
    path = outputs / "tables" / evidence.paper / f"table{number}"
    files = sheet.write(path, tables.latex(evidence, number))
    layout = tables.layout(evidence.paper, number)
    if layout is not None:
        wide = Sheet.from_frame(tables.wide(evidence.judged(number), layout), sheet.title)
        for suffix, text in ((".csv", wide.csv), (".md", wide.markdown)):
            files.append(path.with_name(f"{path.name}_wide{suffix}"))
            write_text(files[-1], text)
    return files


def write_figure(paper: str, number: str, outputs: Path, style: str = "screen") -> str:
    """Draw a paper's figure from the finished runs, and print its path; parameters as for `draw_figure`."""
    found = collect(outputs)
    try:
        contents = draw_figure(paper, number, found, style)
    finally:
        found.warn()
    return f"files: {', '.join(map(str, save_figure(contents, paper, number, outputs)))}"


def draw_figure(paper: str, number: str, found: Collected, style: str = "screen") -> dict[str, bytes]:
    """Draw a paper's figure from these runs: its .png, .pdf, and .csv with the curves; for a paper, also .txt.

    A figure without published values has the paper's claims and our results below it, from the module's CLAIMS.

    Parameters
    ----------
    paper, number : str
    found : Collected
        The runs.
    style : {"screen", "paper", "column"}
    """
    module = _module_with(paper, number, "figure")
    require(style in STYLES, "style", style, " or ".join(STYLES))
    claim = getattr(module, "CLAIMS", {}).get(number)

    def draw(runs: list[FinishedRun]) -> dict[str, bytes]:
        figure, replicates = module.figure(number, runs)
        curves = [
            {"panel": axes.get_title(), "curve": line.get_label(), "x": x, "y": y}
            for axes in figure.axes
            for line in axes.lines
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        ]
        numbers = pd.DataFrame(curves).to_csv(index=False, float_format="%.6g")
        return {**rendered(figure, replicates, claim(runs) if claim else ""), ".csv": numbers.encode()}

    with styled(style):
        return made_of(f"{paper}/{number}", draw, found)


def save_figure(contents: dict[str, bytes], paper: str, number: str, outputs: Path) -> list[Path]:
    """Write a paper's drawn figure, and print the file names."""
    path = outputs / "figures" / paper / f"figure{number}"
    files = [path.with_suffix(suffix) for suffix in contents]
    for file, content in zip(files, contents.values(), strict=True):
        with whole_file(file) as stream:
            stream.write(content)
    return files


def made_of(what: str, make: Callable[[list[FinishedRun]], Made], found: Collected) -> Made:
    """Make a table or figure from all usable runs.

    A run with right checksums, but without the data that `make` reads, counts as broken.
    """
    try:
        return make(found.runs)
    except (FklError, MemoryError):
        raise
    except Exception:
        troubles = []
        for run in found.runs:
            try:
                make([run])
            except FklError:  # it needs other runs too
                pass
            except Exception as error:
                troubles.append((run, f"{type(error).__name__}: {in_one_line(error)}"))
        if not troubles:
            raise
    for run, words in troubles:
        found.leave_out(run, f"{what} cannot be made with it ({words})")
    return made_of(what, make, found)


def declared(paper: str) -> dict[str, Any]:
    """What a paper's experiments.yaml says of it: title, tables, figures."""
    paper_module(paper)  # refuses an unknown name
    return experiments.of_paper(paper)


def differences(paper: str) -> str:
    """The paper's differences.md: which of its numbers fkl reproduces."""
    return (Path(__file__).parent / paper / "differences.md").read_text(encoding="utf-8")


def paper_module(paper: str) -> ModuleType:
    """Module of a paper, with `table`, and where it has figures `figure`."""
    if paper not in PAPERS:
        near = did_you_mean(paper, PAPERS, f"papers: {', '.join(PAPERS)}")
        raise FklError(f"{in_one_line(paper)}: no such paper", help=near)
    return import_module(f"fkl.papers.{paper}")


def _module_with(paper: str, number: str, what: str) -> ModuleType:
    """Module of a paper with this table or figure."""
    choices = declared(paper)[f"{what}s"]
    if number not in choices:
        there = ", ".join(f"{paper}/{one}" for one in choices) or "none"
        raise FklError(f"{in_one_line(f'{paper}/{number}')}: no such {what}", help=[f"{what}s of this paper: {there}"])
    return paper_module(paper)
