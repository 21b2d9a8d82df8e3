"""Methods by data sets: means with their intervals, the best in bold, as text, CSV, Markdown and LaTeX."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tabulate import tabulate

from fkl.comparison.cells import Cell
from fkl.comparison.statistics import LEVEL, half_width
from fkl.files import write_text
from fkl.report.tables import escaped

BOLD, UNDERLINED, PLAIN = "\x1b[1m", "\x1b[4m", "\x1b[0m"
MARKS = {
    "plain": ("*{}*", "_{}_"),
    "terminal": (BOLD + "{}" + PLAIN, UNDERLINED + "{}" + PLAIN),
    "markdown": ("**{}**", "<ins>{}</ins>"),
    "html": ("<b>{}</b>", "<u>{}</u>"),
    "latex": (r"\textbf{{{}}}", r"\underline{{{}}}"),
}
"""How the best and the second of a column are shown."""
DIGITS = 4
"""Significant ones of the smallest mean of a column; all of a column have as many decimals."""
SMALL, LARGE = 0.1, 1e5
"""Means beyond which a column has a power of ten above it."""


@dataclass(frozen=True)
class Pivot:
    """A metric by method and data set.

    Parameters
    ----------
    metric : str
    values : dict of Cell to Series
        Indexed by seed and replicate.
    methods, datasets : list of str
        Rows and columns.
    larger_is_better : bool
    """

    metric: str
    values: dict[Cell, "pd.Series[float]"]
    methods: list[str]
    datasets: list[str]
    larger_is_better: bool = False

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """(methods, data sets), NaN where nothing was run."""
        return self._of_each(lambda values: float(values.mean()))

    @cached_property
    def halves(self) -> NDArray[np.float64]:
        """Half of the interval of each mean; NaN of one value."""
        return self._of_each(lambda values: half_width(values.to_numpy(float)))

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """Place of each mean in its column, 1 for the best; those that tie have the same."""
        signed = -self.means if self.larger_is_better else self.means
        return pd.DataFrame(signed).rank(method="dense").to_numpy()

    @property
    def caption(self) -> str:
        """What the numbers are, in a sentence or two."""
        counts = sorted({len(values) for values in self.values.values()})
        over = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        spread = f" and half of its {LEVEL:.0%} interval (Student's t)".replace("%", " %") if counts[-1] > 1 else ""
        of = "1 replicate" if counts == [1] else f"{over} replicates"
        better = "larger" if self.larger_is_better else "smaller"
        return f"{self.metric}: mean{spread} over {of}; the {better}, the better."

    def frame(self) -> pd.DataFrame:
        """For programs: one row a method and data set that was run."""
        rows = [
            {
                "method": method,
                "dataset": dataset,
                "metric": self.metric,
                "mean": self.means[i, j],
                "half_of_interval": self.halves[i, j],
                "sd": self.values[Cell(method, dataset)].std(ddof=1),
                "n": len(self.values[Cell(method, dataset)]),
                "place": int(self.places[i, j]),
            }
            for j, dataset in enumerate(self.datasets)
            for i, method in enumerate(self.methods)
            if Cell(method, dataset) in self.values
        ]
        return pd.DataFrame(rows)

    def text(self, terminal: bool = False, most: int | None = None) -> str:
        """A table for a terminal, its marks as it shows them, or as letters; at most so many rows, the best first."""
        order = self.best_first[:most]
        body, left = self._cells("terminal" if terminal else "plain", "±"), len(self.methods) - len(order)
        lines = [[self.methods[i], *body[i]] for i in order]
        table = tabulate(lines, ["", *self.headings], "simple", disable_numparse=True, colalign=self._sides)
        more = f"\n... and {left} methods more" if left else ""
        best, second = (mark.format(word) for mark, word in zip(self._marks(terminal), ("best", "second"), strict=True))
        return f"{table}{more}\n{self.caption} {best}, {second}."

    def markdown(self) -> str:
        """A table of Markdown, below its caption."""
        lines = [[method, *cells] for method, cells in zip(self.methods, self._cells("markdown", "±"), strict=True)]
        table = tabulate(lines, ["method", *self.headings], "pipe", disable_numparse=True, colalign=self._sides)
        return f"{self.caption} **Best**, <ins>second</ins>.\n\n{table}\n"

    def latex(self) -> str:
        """A float that wants booktabs, to be pasted."""
        columns = "l" + "r" * len(self.datasets)
        head = " & ".join(["method", *self._headings(r"$\times10^{{{}}}$", escaped)])
        rows = [
            " & ".join([escaped(method), *cells])
            for method, cells in zip(self.methods, self._cells("latex", r"{\scriptsize$\pm$"), strict=True)
        ]
        lines = [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(self.caption)} Best in bold, second underlined.}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            *(rf"{row} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def html(self) -> list[tuple[str, list[str]]]:
        """For a page: the rows, best first, each with its name as it is, and its cells as HTML."""
        body = self._cells("html", "±")
        return [(self.methods[i], body[i]) for i in self.best_first]

    def write(self, path: Path) -> list[Path]:
        """Write `path`.csv, .md and .tex, and name them."""
        texts = {
            ".csv": self.frame().to_csv(index=False, float_format="%.6g"),
            ".md": f"# {self.metric}\n\n{self.markdown()}",
            ".tex": self.latex(),
        }
        files = [path.with_suffix(suffix) for suffix in texts]
        for file, text in zip(files, texts.values(), strict=True):
            write_text(file, text)
        return files

    @property
    def _sides(self) -> list[str]:
        return ["left", *["right"] * len(self.datasets)]

    def _marks(self, terminal: bool) -> tuple[str, str]:
        return MARKS["terminal" if terminal else "plain"]

    def _of_each(self, number: Callable[["pd.Series[float]"], float]) -> NDArray[np.float64]:
        made = np.full((len(self.methods), len(self.datasets)), np.nan)
        for i, method in enumerate(self.methods):
            for j, dataset in enumerate(self.datasets):
                if (values := self.values.get(Cell(method, dataset))) is not None:
                    made[i, j] = number(values)
        return made

    @property
    def best_first(self) -> list[int]:
        """Rows by their mean place; those that are on few data sets have few places to be behind at."""
        return list(np.argsort(np.nanmean(self.places, axis=1), kind="stable"))

    def _powers(self) -> list[int]:
        """Power of ten above each column."""
        smallest = [np.nanmin(np.abs(column)) for column in self.means.T]
        return [3 * math.floor(math.log10(one) / 3) if one and not SMALL <= one < LARGE else 0 for one in smallest]

    @property
    def headings(self) -> list[str]:
        """Data sets, with the power of ten that is common to a column."""
        return self._headings("×10^{}")

    def _headings(self, power: str, name: Callable[[str], str] = str) -> list[str]:
        return [
            f"{name(dataset)} {power.format(exponent)}" if exponent else name(dataset)
            for dataset, exponent in zip(self.datasets, self._powers(), strict=True)
        ]

    def _cells(self, marks: str, pm: str) -> list[list[str]]:
        best, second = MARKS[marks]
        close = "}" if pm.startswith("{") else ""
        columns = []
        for j, exponent in enumerate(self._powers()):
            means, halves = self.means[:, j] / 10.0**exponent, self.halves[:, j] / 10.0**exponent
            smallest = np.nanmin(np.abs(means))
            decimals = max(0, DIGITS - 1 - math.floor(math.log10(smallest))) if smallest else DIGITS - 1
            column = []
            for mean, half, place in zip(means, halves, self.places[:, j], strict=True):
                words = "" if np.isnan(mean) else f"{mean:.{decimals}f}"
                words = {1.0: best, 2.0: second}.get(place, "{}").format(words) if words else words
                column.append(words if np.isnan(half) else f"{words} {pm} {half:.{decimals}f}{close}")
            columns.append(column)
        return [list(row) for row in zip(*columns, strict=True)]
