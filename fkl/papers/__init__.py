"""Published numbers compared with ours: one module per paper, with `table(number, runs)` and `figure(number, runs)`."""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import click
import pandas as pd

from fkl.basics.errors import FklError, did_you_mean, in_one_line, require
from fkl.basics.files import whole_file, write_text
from fkl.papers.printed import DEFAULT, grids, latex
from fkl.papers.published import HIDDEN, wide
from fkl.papers.shown import show_grids
from fkl.papers.verdicts import Judged
from fkl.report.figures import STYLES, rendered, styled
from fkl.runs.finished_runs import Collected, FinishedRun, collect
from fkl.screen.messages import say
from fkl.screen.sheet import Sheet

Made = TypeVar("Made")

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
    module = _module_with(paper, number, "table", "TABLES")
    found = collect(outputs)
    try:
        judged = judge(paper, found)
        frame = judged.frames[number] if number in judged.frames else make_frame(paper, number, found)
    finally:
        found.warn()
    table = as_table(paper, number, frame)
    files = save_table(table, paper, number, outputs, judged)
    if format != "table":
        table.show(format)
        return
    layout = getattr(module, "WIDE", {}).get(number, DEFAULT)
    if shown := grids(judged, number, layout):
        show_grids(table.title, judged, number, shown, getattr(module, "UNOBTAINABLE", {}))
    else:
        say(click.style(table.title, bold=True), "")
        table.show()
    names = ", ".join(file.name for file in files)
    say(click.style(f"files: {files[0].parent}: {names}", dim=True))


def make_frame(paper: str, number: str, found: Collected) -> pd.DataFrame:
    """A paper's table with its hidden columns; parameters and errors as for `write_table`."""
    module = _module_with(paper, number, "table", "TABLES")
    return made_of(f"{paper}/{number}", lambda runs: module.table(number, runs), found)


def judge(paper: str, found: Collected) -> Judged:
    """The cells of all tables of a paper that can be made from these runs, see `fkl.papers.printed.grids`."""
    frames = {}
    for number in paper_module(paper).TABLES:
        with suppress(FklError):  # the line about what to run first
            frames[number] = make_frame(paper, number, found)
    return Judged(paper, frames)


def as_table(paper: str, number: str, frame: pd.DataFrame) -> Sheet:
    """A paper's table for display."""
    module = paper_module(paper)
    title = f"{module.TITLE}, table {number}: {module.TABLES[number]}"
    return Sheet.from_frame(frame.drop(columns=HIDDEN, errors="ignore"), title, differences(module))


def save_table(table: Sheet, paper: str, number: str, outputs: Path, judged: Judged | None = None) -> list[Path]:
    """Write a paper's table as .csv, .md and .tex, also in the paper's layout, and print the file names.

    Parameters
    ----------
    table : Sheet
    paper, number : str
    outputs : Path
    judged : Judged, optional
        The cells of the whole paper; with them, LaTeX has the paper's layout.
    """
    path = outputs / "tables" / paper / f"table{number}"
    layout = getattr(paper_module(paper), "WIDE", {}).get(number)
    in_print = [] if judged is None else grids(judged, number, layout or DEFAULT)
    files = table.write(path, latex(in_print, paper_module(paper).TITLE, f"{paper}-{number}"))
    if layout is not None:
        assert table.frame is not None
        for suffix, text in Sheet.from_frame(wide(table.frame, layout), table.title).texts.items():
            if suffix != ".tex":
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
    module = _module_with(paper, number, "figure", "FIGURES")
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


def differences(module: ModuleType) -> str:
    """The paper's differences.md: which of its numbers fkl reproduces."""
    return (Path(str(module.__file__)).parent / "differences.md").read_text(encoding="utf-8")


def paper_module(paper: str) -> ModuleType:
    """Module of a paper, with TITLE, TABLES, FIGURES, `table`, and optionally `figure`."""
    if paper not in PAPERS:
        near = did_you_mean(paper, PAPERS, f"papers: {', '.join(PAPERS)}")
        raise FklError(f"{in_one_line(paper)}: no such paper", help=near)
    return import_module(f"fkl.papers.{paper}")


def _module_with(paper: str, number: str, what: str, numbers: str) -> ModuleType:
    """Module of a paper with this table or figure."""
    module = paper_module(paper)
    choices = getattr(module, numbers)
    if number not in choices:
        there = ", ".join(f"{paper}/{one}" for one in choices) or "none"
        raise FklError(f"{in_one_line(f'{paper}/{number}')}: no such {what}", help=[f"{what}s of this paper: {there}"])
    return module
