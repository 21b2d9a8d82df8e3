"""Published numbers beside ours: one module a paper, with `table(number, runs)` and `figure(number, runs)`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pandas as pd

from fkl.basics.errors import FklError, in_one_line, require
from fkl.basics.files import whole_file
from fkl.papers.published import HIDDEN, wide
from fkl.report.figures import STYLES, rendered, styled
from fkl.report.tables import Table
from fkl.results.finished_runs import Collected, FinishedRun, collect

Made = TypeVar("Made")

PAPERS = ("pof_mkl", "graph_omkl", "coke", "parsimonious", "fdskl", "fomd_oms", "fed_poe", "dekrr", "frontier")


def write_table(paper: str, number: str, outputs: Path) -> str:
    """Make a paper's table from the finished runs, and say where it lies.

    Parameters
    ----------
    paper, number : str
    outputs : Path
        Runs are read below it, tables written to tables/<paper>/.

    Raises
    ------
    fkl.basics.errors.FklError
        When there is no such paper or table, or no run for any of its cells.
    """
    found = collect(outputs)
    try:
        table = make_table(paper, number, found)
    finally:
        found.warn()
    return f"{table.markdown}\nfiles: {', '.join(map(str, save_table(table, paper, number, outputs)))}"


def make_table(paper: str, number: str, found: Collected) -> Table:
    """Make a paper's table from these runs; parameters and errors as for `write_table`."""
    return as_table(paper, number, make_frame(paper, number, found))


def make_frame(paper: str, number: str, found: Collected) -> pd.DataFrame:
    """A paper's table with the columns that it does not show; parameters and errors as for `write_table`."""
    module = paper_module(paper)
    require(number in module.TABLES, "table", f"{paper}/{number}", _choices(paper, module.TABLES))
    return made_of(f"{paper}/{number}", lambda runs: module.table(number, runs), found)


def as_table(paper: str, number: str, frame: pd.DataFrame) -> Table:
    """A paper's table as it is shown."""
    module = paper_module(paper)
    title = f"{module.TITLE}, table {number}: {module.TABLES[number]}"
    return Table(frame.drop(columns=HIDDEN, errors="ignore"), title, differences(module))


def save_table(table: Table, paper: str, number: str, outputs: Path) -> list[Path]:
    """Write a paper's table as .csv, .md and .tex, also in the layout of the printed one, and name the files."""
    path = outputs / "tables" / paper / f"table{number}"
    files = table.write(path)
    if (layout := getattr(paper_module(paper), "WIDE", {}).get(number)) is not None:
        files += Table(wide(table.frame, layout), table.title).write(path.with_name(f"{path.name}_wide"))
    return files


def write_figure(paper: str, number: str, outputs: Path, style: str = "screen") -> str:
    """Draw a paper's figure from the finished runs, and say where it lies; parameters as for `draw_figure`."""
    found = collect(outputs)
    try:
        contents = draw_figure(paper, number, found, style)
    finally:
        found.warn()
    return f"files: {', '.join(map(str, save_figure(contents, paper, number, outputs)))}"


def draw_figure(paper: str, number: str, found: Collected, style: str = "screen") -> dict[str, bytes]:
    """Draw a paper's figure from these runs: its .png, .pdf, and .csv with the curves.

    Below one that has no published value there is what the paper claims, and what came out, as the module's CLAIMS say.

    Parameters
    ----------
    paper, number : str
    found : Collected
        The runs.
    style : {"screen", "paper"}
    """
    module = paper_module(paper)
    require(number in module.FIGURES, "figure", f"{paper}/{number}", _choices(paper, module.FIGURES))
    claim = getattr(module, "CLAIMS", {}).get(number)

    def draw(runs: list[FinishedRun]) -> dict[str, bytes]:
        drawn, told = module.figure(number, runs)
        return _drawn(drawn, told, claim(runs) if claim else "")

    require(style in STYLES, "style", style, " or ".join(STYLES))
    with styled(style):
        return made_of(f"{paper}/{number}", draw, found)


def save_figure(contents: dict[str, bytes], paper: str, number: str, outputs: Path) -> list[Path]:
    """Write a paper's figure as it was drawn, and name the files."""
    path = outputs / "figures" / paper / f"figure{number}"
    files = [path.with_suffix(suffix) for suffix in contents]
    for file, content in zip(files, contents.values(), strict=True):
        with whole_file(file) as stream:
            stream.write(content)
    return files


def _drawn(figure: Any, replicates: int | str, claim: str) -> dict[str, bytes]:
    """Draw a figure, and write down its curves: contents of files by suffix."""
    curves = [
        {"panel": axes.get_title(), "curve": line.get_label(), "x": x, "y": y}
        for axes in figure.axes
        for line in axes.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    numbers = pd.DataFrame(curves).to_csv(index=False, float_format="%.6g")
    return {**rendered(figure, replicates, claim), ".csv": numbers.encode()}


def made_of(what: str, make: Callable[[list[FinishedRun]], Made], found: Collected) -> Made:
    """What is made of all runs that it can be made of.

    A run that holds what its checksums promise, and yet not what `make` reads, is counted among the broken ones.
    """
    try:
        return make(found.runs)
    except (FklError, MemoryError):
        raise
    except Exception:
        trouble = [(run, _trouble(make, run)) for run in found.runs]
        if not any(words for _, words in trouble):
            raise
    for run, words in trouble:
        if words:
            found.leave_out(run, f"{what} cannot be made with it ({words})")
    return made_of(what, make, found)


def _trouble(make: Callable[[list[FinishedRun]], object], run: FinishedRun) -> str | None:
    """Tell why something cannot be made of one run; None where it can, or where that takes other runs beside it."""
    try:
        make([run])
    except FklError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {in_one_line(error)}"
    return None


def differences(module: ModuleType) -> str:
    """What of a paper comes out and what does not, in Markdown."""
    return (Path(str(module.__file__)).parent / "differences.md").read_text(encoding="utf-8")


def paper_module(paper: str) -> ModuleType:
    """Module of a paper, with TITLE, TABLES, FIGURES, `table` and `figure`."""
    require(paper in PAPERS, "paper", paper, f"one of {', '.join(PAPERS)}")
    return import_module(f"fkl.papers.{paper}")


def _choices(paper: str, numbers: dict[str, str]) -> str:
    return "one of " + ", ".join(f"{paper}/{number}" for number in numbers)
