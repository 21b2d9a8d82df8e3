"""LaTeX of tables: a real LaTeX compiles each, and none is wider than a line or page."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fkl.papers import PAPERS
from fkl.papers.cells import AS_STATED, CellAnswer, PublishedCell, add_answers, published_cells
from fkl.papers.evidence import Evidence
from fkl.papers.tables import latex_floats
from fkl.screen.sheet import Sheet, SheetColumn, escape_latex
from fkl.screen.sheet import SheetCell as Shown

WIDTH = "a_b" * 9
PAGE = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}%s\end{document}"
TOO_LARGE = re.compile("Overfull|Float too large|multiply defined|^!", re.MULTILINE)


def answers(cell: PublishedCell) -> list[CellAnswer]:
    """Ten replicates near the printed number; nothing on one data set."""
    if cell.dataset == "wec":
        return []
    value = float(str(cell.value).strip("<>")) * (float(cell.unit) if cell.unit[:2] == "1e" else 1)
    return [CellAnswer.from_values("", value * pd.Series(np.linspace(0.95, 1.05, 10)), AS_STATED, 10)]


def of_papers() -> dict[str, str]:
    """LaTeX of every table with published numbers."""
    made = {}
    for paper in PAPERS:
        evidence = Evidence(paper, add_answers(published_cells(paper), answers))
        for number in dict.fromkeys(cell.table for cell in evidence.cells):
            made[f"{paper}-{number}"] = latex_floats(evidence, number)
    return made


def others() -> dict[str, str]:
    """Tables of long words, of many columns, and of many rows."""
    words = {"method": [f"POF-MKL, eta=0.1, {WIDTH}", "B & C"], "why": ["# 100 % of x_1 ^ 2 " * 20, "{}\\"]}
    columns = {"method": ["A"], **{f"data set {k}": [1000.5 * k] for k in range(30)}}
    rows = {"method": [f"method {k}" for k in range(200)], "test mse": np.arange(200) / 7}
    tables = {"words": words, "columns": columns, "rows": rows}
    title = "Means of {}, ± 95 % × 10⁻³"
    return {
        name: Sheet.from_frame(pd.DataFrame(made), title.format(name)).latex_floats() for name, made in tables.items()
    }


def test_a_papers_floats_are_split_by_metric_without_times() -> None:
    made = of_papers()["pof_mkl-1"]
    assert made.count(r"\begin{table}") == made.count(r"\centering") == made.count(r"\label{tab:pof_mkl-1-mse}") == 1
    assert "run time" not in made and r"\textbf{" in made and r"{\scriptsize$\pm$" in made
    assert "Not run: wec." in made
    assert "run time" in of_papers()["graph_omkl-2"], "where there is nothing else"


def test_what_does_not_fit_loses_columns_by_priority_and_stays_one_table() -> None:
    columns = [SheetColumn("method"), *(SheetColumn(f"data {k}", True, k % 3) for k in range(9))]
    rows = [[Shown(name), *[Shown("1234.5", "best", small="2.0")] * 9] for name in "AB"]
    sheet = Sheet(columns, rows, "Means.", label="mine", groups={1: "air"})
    for line, left in ((900, 9), (460, 6), (100, 3)):
        latex = sheet.latex_floats(line)
        assert latex.count(r"\begin{table}") == latex.count(r"\resizebox") == 1
        assert latex.count(r"\textbf{1234.5} {\scriptsize$\pm$ 2.0}") == 2 * left
        assert rf"\multicolumn{{{left + 1}}}{{@{{}}l}}{{\emph{{air}}}}" in latex
    assert escape_latex("≤ 10⁻³") == r"$\le$ 10$^{-3}$"


def test_latex_compiles_all_and_finds_nothing_too_wide(tmp_path: Path) -> None:
    """All in one document, since the engine takes seconds to begin; its log says which table it is at."""
    engine = next(filter(None, map(shutil.which, ("pdflatex", "tectonic"))), None)
    if engine is None:
        pytest.skip("no LaTeX on this machine: neither pdflatex nor tectonic")
    tables = of_papers() | others()
    body = "\n".join(f"\\typeout{{at {name}}}\n{text}\\clearpage" for name, text in tables.items())
    (tmp_path / "all.tex").write_text(PAGE % body, encoding="utf-8")
    arguments = ["-interaction=nonstopmode", "-halt-on-error"] if engine.endswith("pdflatex") else ["--keep-logs"]
    done = subprocess.run([engine, *arguments, "all.tex"], cwd=tmp_path, capture_output=True, check=False)
    log = (tmp_path / "all.log").read_text(errors="replace")
    assert done.returncode == 0, log[-2000:]
    assert [line for line in log.splitlines() if line.startswith("at ")] == [f"at {name}" for name in tables]
    assert not [part[:2000] for part in log.split("\nat ") if TOO_LARGE.search(part)]
