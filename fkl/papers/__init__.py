"""Published numbers beside ours: one module a paper, with `table(number, runs)` and `figure(number, runs)`."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd

from fkl.errors import require
from fkl.report.figures import save
from fkl.report.tables import Table
from fkl.results.collect import FinishedRun, collect
from fkl.results.files import write_text

PAPERS = ("pof_mkl", "graph_omkl", "coke", "parsimonious", "fdskl", "frontier")


def write_table(paper: str, number: str, outputs: Path) -> str:
    """Make a paper's table from the finished runs, and say where it lies.

    Parameters
    ----------
    paper, number : str
    outputs : Path
        Runs are read below it, tables written to tables/<paper>/.

    Raises
    ------
    fkl.errors.FklError
        When there is no such paper or table, or no run for any of its cells.
    """
    table, files = make_table(paper, number, list(collect(outputs)), outputs)
    return f"{table.markdown}\nfiles: {', '.join(map(str, files))}"


def make_table(paper: str, number: str, runs: list[FinishedRun], outputs: Path) -> tuple[Table, list[Path]]:
    """Make a paper's table from these runs and write its files; parameters and errors as for `write_table`."""
    module = paper_module(paper)
    require(number in module.TABLES, "table", f"{paper}/{number}", _choices(paper, module.TABLES))
    title = f"{module.TITLE}, table {number}: {module.TABLES[number]}"
    table = Table(module.table(number, runs), title, differences(module))
    return table, table.write(outputs / "tables" / paper / f"table{number}")


def write_figure(paper: str, number: str, outputs: Path) -> str:
    """Draw a paper's figure from the finished runs, and say where it lies; parameters as for `write_table`."""
    return f"files: {', '.join(map(str, draw_figure(paper, number, list(collect(outputs)), outputs)))}"


def draw_figure(paper: str, number: str, runs: list[FinishedRun], outputs: Path) -> list[Path]:
    """Draw a paper's figure from these runs: its .png, .pdf, and .csv with the curves."""
    module = paper_module(paper)
    require(number in module.FIGURES, "figure", f"{paper}/{number}", _choices(paper, module.FIGURES))
    path = outputs / "figures" / paper / f"figure{number}"
    figure, replicates = module.figure(number, runs)
    curves = [
        {"panel": axes.get_title(), "curve": line.get_label(), "x": x, "y": y}
        for axes in figure.axes
        for line in axes.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    write_text(path.with_suffix(".csv"), pd.DataFrame(curves).to_csv(index=False, float_format="%.6g"))
    save(figure, path, replicates)
    return [path.with_suffix(suffix) for suffix in (".png", ".pdf", ".csv")]


def differences(module: ModuleType) -> str:
    """What of a paper comes out and what does not, in Markdown."""
    return (Path(str(module.__file__)).parent / "differences.md").read_text(encoding="utf-8")


def paper_module(paper: str) -> ModuleType:
    """Module of a paper, with TITLE, TABLES, FIGURES, `table` and `figure`."""
    require(paper in PAPERS, "paper", paper, f"one of {', '.join(PAPERS)}")
    return import_module(f"fkl.papers.{paper}")


def _choices(paper: str, numbers: dict[str, str]) -> str:
    return "one of " + ", ".join(f"{paper}/{number}" for number in numbers)
