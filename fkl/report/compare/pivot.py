"""Methods by data sets: means with their intervals, the best in bold, as text, CSV, Markdown and LaTeX."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tabulate import tabulate

from fkl.basics.files import write_text
from fkl.report.compare.cells import Cell
from fkl.report.compare.statistics import LEVEL, half_width
from fkl.report.compare.units import ONE_SPLIT, Unit
from fkl.report.latex import Column, Float, escaped
from fkl.screen.messages import say
from fkl.screen.tables import show_table

Value = TypeVar("Value")
BOLD, UNDERLINED, PLAIN = "\x1b[1m", "\x1b[4m", "\x1b[0m"
MARKS = {
    "plain": ("*{}*", "_{}_", " ▲"),
    "terminal": (BOLD + "{}" + PLAIN, UNDERLINED + "{}" + PLAIN, " ▲"),
    "markdown": ("**{}**", "<ins>{}</ins>", " ▲"),
    "html": ("<b>{}</b>", "<u>{}</u>", " ▲"),
    "latex": (r"\textbf{{{}}}", r"\underline{{{}}}", r" $\triangle$"),
}
"""Marks of the best and the second of a column, and of a method that does not beat the baselines."""
DIGITS = 4
"""Significant digits of the smallest mean in a column; all numbers of a column have the same decimals."""
SMALL, LARGE = 0.1, 1e5
"""Limits of means outside which a column has a common power of ten."""


@dataclass(frozen=True)
class Pivot:
    """A metric by method and data set.

    Parameters
    ----------
    metric : str
    values : dict of Cell to Series
        Indexed by seed and replicate; infinite, in the worse direction, for a diverged replicate.
    methods, datasets : list of str
        Rows and columns.
    larger_is_better : bool
    baselines : dict of Cell to Series
        Errors of baselines without learning, by name and data set, with the same index.
    setup : list of str
        The user's settings of all runs.
    """

    metric: str
    values: dict[Cell, "pd.Series[float]"]
    methods: list[str]
    datasets: list[str]
    larger_is_better: bool = False
    baselines: dict[Cell, "pd.Series[float]"] = field(default_factory=dict)
    setup: list[str] = field(default_factory=list)

    @cached_property
    def units(self) -> dict[str, Unit]:
        """Unit of replication on each data set."""
        return {name: Unit.from_values(_on(name, self.values), _on(name, self.baselines)) for name in self.datasets}

    @cached_property
    def judged(self) -> dict[Cell, NDArray[np.float64]]:
        """The values per unit, one per seed or replicate."""
        return {cell: self.units[cell.dataset].values(series) for cell, series in self.values.items()}

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """(methods, data sets), NaN without runs, infinite if a value diverged."""
        return self._of_each(lambda values: float(values.mean()))

    @cached_property
    def halves(self) -> NDArray[np.float64]:
        """Half of the interval of each mean; NaN for one value, and if one diverged."""
        return self._of_each(lambda values: half_width(values) if np.isfinite(values).all() else np.nan)

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """Rank of each mean in its column, 1 for the best; ties have the same rank. NaN if no unit is shared."""
        signed = -self.means if self.larger_is_better else self.means
        ranked = np.array([self.units[name].shared is not None for name in self.datasets])
        return pd.DataFrame(np.where(ranked, signed, np.nan)).rank(method="dense").to_numpy()

    @cached_property
    def baseline_means(self) -> dict[Cell, float]:
        """Error of each baseline on each data set."""
        return {cell: float(self.units[cell.dataset].values(series).mean()) for cell, series in self.baselines.items()}

    def diverged(self, method: str, dataset: str) -> tuple[int, int]:
        """Number of a cell's diverged values, and of all its values."""
        values = self.judged[Cell(method, dataset)]
        return int(np.isinf(values).sum()), len(values)

    def beaten(self, i: int, j: int) -> bool:
        """Whether a method fails to beat some baseline."""
        return bool(self.means[i, j] >= min(_on(self.datasets[j], self.baseline_means).values(), default=np.inf))

    @property
    def several(self) -> bool:
        """Whether means have more than one value."""
        return any(unit.n > 1 for unit in self.units.values())

    @property
    def over(self) -> str:
        """Unit of the means, with data sets if it differs between them."""
        by_words: dict[str, list[str]] = {}
        for name, unit in self.units.items():
            by_words.setdefault(unit.words, []).append(name)
        return "; ".join(words + f" ({', '.join(names)})" * (len(by_words) > 1) for words, names in by_words.items())

    @property
    def caption(self) -> str:
        """Description of the numbers, in one or two sentences."""
        spread = f" and half of its {LEVEL:.0%} interval (Student's t)".replace("%", " %") if self.several else ""
        better = "larger" if self.larger_is_better else "smaller"
        said = [f"{self.metric}: mean{spread} over {self.over}; {better} is better."]
        if one := [name for name, unit in self.units.items() if unit.one_split]:
            said.append(f"{ONE_SPLIT} ({', '.join(one)})." if len(one) < len(self.units) else f"{ONE_SPLIT}.")
        if self.setup:
            said.append(f"Set in all runs: {', '.join(self.setup)}.")
        return " ".join(said)

    def legend(self, marks: str) -> str:
        """Meanings of the marks in a table."""
        best, second, beaten = MARKS[marks]
        used = any(self.beaten(i, j) for i, j in np.argwhere(np.isfinite(self.means)))
        words = f"{best.format('Best')}, {second.format('second')}"
        return f"{words},{beaten}: does not beat every baseline." if used else f"{words}."

    @cached_property
    def conclusions(self) -> list[str]:
        """Facts in the table that a reader could overlook, in sentences."""
        said = []
        for j, name in enumerate(self.datasets):
            said += self.units[name].left_out(name, _on(name, self.values))
            means = self.means[np.isfinite(self.means[:, j]), j]
            for baseline, mean in _on(name, self.baseline_means).items():
                if len(means) and (means >= mean).all():
                    said.append(f"No method beats {baseline.method} on {name}.")
        return said

    def frame(self) -> pd.DataFrame:
        """For programs: one row per method and data set with runs, and per baseline and data set."""
        rows = []
        for j, dataset in enumerate(self.datasets):
            unit = self.units[dataset]
            about = {"dataset": dataset, "metric": self.metric, "unit": unit.kind}
            for i, method in enumerate(self.methods):
                if Cell(method, dataset) in self.values:
                    failed, n = self.diverged(method, dataset)
                    spread = np.std(self.judged[Cell(method, dataset)], ddof=1) if n > 1 and not failed else np.nan
                    row = {"method": method, "kind": "method", **about, "mean": np.nan if failed else self.means[i, j]}
                    row |= {"half_of_interval": self.halves[i, j], "sd": spread, "n": n, "diverged": failed}
                    rows.append(row | {"place": self.places[i, j], "beats_baselines": not self.beaten(i, j)})
            for baseline, mean in _on(dataset, self.baseline_means).items():
                rows.append({"method": baseline.method, "kind": "baseline", **about, "mean": mean, "n": unit.n})
        return pd.DataFrame(rows).astype({"place": "Int64", "diverged": "Int64"})

    def show(self, most: int | None = None, format: str = "table", order: Sequence[str] = ()) -> None:
        """Print the table with at most this many methods, in this order or best first."""
        marks = "terminal" if sys.stdout.isatty() and format == "table" else "plain"
        places = ([self.methods.index(name) for name in order] or self.best_first)[:most]
        rows = [[name, *cells] for name, cells in self._rows(marks, "±", places)]
        show_table([self.metric, *self.headings], rows, format, numbers=range(1, 1 + len(self.datasets)))
        if left := len(self.methods) - len(places):
            say(f"... and {left} methods more")
        if format == "table":
            say(f"{self.caption} {self.legend(marks)}")

    def markdown(self) -> str:
        """A Markdown table, below its caption."""
        lines = [[name, *cells] for name, cells in self._rows("markdown", "±")]
        table = tabulate(lines, ["method", *self.headings], "pipe", disable_numparse=True, colalign=self._sides)
        return f"{self.caption} {self.legend('markdown')}\n\n{table}\n"

    def latex(self) -> str:
        """A float that needs booktabs, for pasting; several if it is too wide for a line."""
        rows = self._rows("latex", r"{\scriptsize$\pm$")
        cells = zip(*(cells for _, cells in rows), strict=True)
        headings = self._headings(r"$\times10^{{{}}}$", escaped)
        columns = [Column("method", [escaped(name) for name, _ in rows])]
        columns += [Column(name, [*column], number=True) for name, column in zip(headings, cells, strict=True)]
        caption = f"{escaped(self.caption)} {self.legend('latex')}"
        first_baseline = len(rows) - len(self._baseline_names)
        return str(Float(columns, caption, self.metric.replace("_", "-"), ruled=(first_baseline,)))

    def html(self) -> list[tuple[str, list[str]]]:
        """For a page: the rows, best first, each with its plain name and its cells as HTML."""
        return self._rows("html", "±", self.best_first)

    def write(self, path: Path, conclusions: Sequence[str] = ()) -> list[Path]:
        """Write `path`.csv, .md and .tex, and return their names; in Markdown the conclusions are below the table."""
        said = "".join(f"\n- {line}" for line in conclusions)
        texts = {
            ".csv": self.frame().to_csv(index=False, float_format="%.6g"),
            ".md": f"# {self.metric}\n\n{self.markdown()}{said}".rstrip() + "\n",
            ".tex": self.latex(),
        }
        files = [path.with_suffix(suffix) for suffix in texts]
        for file, text in zip(files, texts.values(), strict=True):
            write_text(file, text)
        return files

    @property
    def _sides(self) -> list[str]:
        return ["left", *["right"] * len(self.datasets)]

    def _of_each(self, number: Callable[[NDArray[np.float64]], float]) -> NDArray[np.float64]:
        made = np.full((len(self.methods), len(self.datasets)), np.nan)
        for i, method in enumerate(self.methods):
            for j, dataset in enumerate(self.datasets):
                if (values := self.judged.get(Cell(method, dataset))) is not None:
                    made[i, j] = number(values)
        return made

    @property
    def best_first(self) -> list[int]:
        """Rows by their mean rank over their own data sets."""
        return [int(i) for i in pd.DataFrame(self.places).mean(axis=1).argsort(kind="stable")]

    @property
    def _baseline_names(self) -> list[str]:
        return [*dict.fromkeys(cell.method for cell in self.baselines)]

    def _powers(self) -> list[int]:
        """Power of ten above each column."""
        smallest = [self._smallest(j) for j in range(len(self.datasets))]
        return [3 * math.floor(math.log10(one) / 3) if one and not SMALL <= one < LARGE else 0 for one in smallest]

    def _smallest(self, j: int) -> float:
        """Smallest finite magnitude of a mean in a column; that of a baseline if all methods diverged."""
        known = self.means[np.isfinite(self.means[:, j]), j]
        others = _on(self.datasets[j], self.baseline_means).values()
        return float(np.min(np.abs(known))) if len(known) else min(others, default=0.0)

    @property
    def headings(self) -> list[str]:
        """Data sets, with the common power of ten of each column."""
        return self._headings("×10^{}")

    def _headings(self, power: str, name: Callable[[str], str] = str) -> list[str]:
        return [
            f"{name(dataset)} {power.format(exponent)}" if exponent else name(dataset)
            for dataset, exponent in zip(self.datasets, self._powers(), strict=True)
        ]

    def _rows(self, marks: str, pm: str, order: list[int] | None = None) -> list[tuple[str, list[str]]]:
        """Names and cells of the methods, and of the baselines below them."""
        powers = self._powers()
        rows = []
        for i in range(len(self.methods)) if order is None else order:
            rows.append((self.methods[i], [self._cell(i, j, marks, pm, power) for j, power in enumerate(powers)]))
        for name in self._baseline_names:
            means = [self.baseline_means.get(Cell(name, dataset), np.nan) for dataset in self.datasets]
            rows.append((name, [self._number(mean, j, powers[j]) for j, mean in enumerate(means)]))
        return rows

    def _number(self, value: float, j: int, power: int) -> str:
        """A number with the decimals of its column; empty for NaN."""
        smallest = self._smallest(j) / 10.0**power
        decimals = max(0, DIGITS - 1 - math.floor(math.log10(smallest))) if smallest else DIGITS - 1
        return "" if np.isnan(value) else f"{value / 10.0**power:.{decimals}f}"

    def _cell(self, i: int, j: int, marks: str, pm: str, power: int) -> str:
        """A mean with its interval, or the number of diverged values."""
        mean, half = self.means[i, j], self.halves[i, j]
        if np.isinf(mean):
            failed, of = self.diverged(self.methods[i], self.datasets[j])
            return f"{failed} of {of} diverged"
        best, second, beaten = MARKS[marks]
        words = self._number(mean, j, power)
        words = {1.0: best, 2.0: second}.get(self.places[i, j], "{}").format(words) if words else words
        close = "}" if pm.startswith("{") else ""
        spread = "" if np.isnan(half) else f" {pm} {self._number(half, j, power)}{close}"
        return words + spread + beaten * (bool(words) and self.beaten(i, j))


def _on(dataset: str, found: dict[Cell, Value]) -> dict[Cell, Value]:
    """Entries of one data set."""
    return {cell: value for cell, value in found.items() if cell.dataset == dataset}
