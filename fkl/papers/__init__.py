"""Published numbers beside ours: one module a paper, with `table(number, runs)` and `figure(number, runs)`."""

from importlib import import_module
from pathlib import Path

import pandas as pd

from fkl.errors import require
from fkl.report.figures import save
from fkl.report.tables import write_table as write_files
from fkl.results.collect import collect
from fkl.results.folder import replacing_file

PAPERS = ("pof_mkl", "graph_omkl", "coke", "parsimonious")


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
    module = _paper(paper)
    require(number in module.TABLES, "table", f"{paper}/{number}", _choices(paper, module.TABLES))
    table = module.table(number, list(collect(outputs)))
    title = f"{module.TITLE}, table {number}: {module.TABLES[number]}"
    notes = (Path(module.__file__).parent / "differences.md").read_text(encoding="utf-8")
    files = write_files(table, outputs / "tables" / paper / f"table{number}", title, notes)
    return files[1].read_text(encoding="utf-8").split("\n## ")[0] + f"\nfiles: {', '.join(map(str, files))}"


def write_figure(paper: str, number: str, outputs: Path) -> str:
    """Draw a paper's figure from the finished runs, and say where it lies; parameters as for `write_table`."""
    module = _paper(paper)
    require(number in module.FIGURES, "figure", f"{paper}/{number}", _choices(paper, module.FIGURES))
    path = outputs / "figures" / paper / f"figure{number}"
    figure, replicates = module.figure(number, list(collect(outputs)))
    curves = [
        {"panel": axes.get_title(), "curve": line.get_label(), "x": x, "y": y}
        for axes in figure.axes
        for line in axes.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    replacing_file(path.with_suffix(".csv"), pd.DataFrame(curves).to_csv(index=False, float_format="%.6g"))
    save(figure, path, replicates)
    return f"files: {path}.png, {path}.pdf, {path}.csv"


def _paper(paper: str):  # type: ignore[no-untyped-def]  # a module with the four names used here
    require(paper in PAPERS, "paper", paper, f"one of {', '.join(PAPERS)}")
    return import_module(f"fkl.papers.{paper}")


def _choices(paper: str, numbers: dict[str, str]) -> str:
    return "one of " + ", ".join(f"{paper}/{number}" for number in numbers)
