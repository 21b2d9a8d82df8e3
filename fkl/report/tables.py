"""Tables from one data frame: as CSV, Markdown and LaTeX files, and cell by cell for the page."""

import re
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

from fkl.basics.files import write_text
from fkl.report.latex import Column, Float, escaped
from fkl.screen.tables import show_table

HEADINGS = {
    "spread": "± sd", "difference_percent": "difference %", "published_spread": "published ± sd",
    "rounding": "published ± rounding", "of": "of replicates", "within_percent": "agrees within %",
    "published_n": "published n",
}  # fmt: skip
"""Columns whose displayed names differ from their names."""

LONGEST_LABEL = 40


@dataclass(frozen=True)
class Table:
    """A data frame with its title and notes.

    Parameters
    ----------
    frame : DataFrame
    title : str
        Heading in Markdown, caption in LaTeX and on the page.
    notes : str
        Markdown that follows the Markdown table.
    """

    frame: pd.DataFrame
    title: str
    notes: str = ""

    @property
    def headings(self) -> list[str]:
        """Displayed names of the columns."""
        return [HEADINGS.get(name, name.replace("_", " ")) for name in map(str, self.frame)]

    @cached_property
    def numeric(self) -> list[bool]:
        """Columns of numbers, which may also contain bounds such as ``>900``."""
        return [any(isinstance(value, Real) for value in column) for _, column in self.frame.items()]

    @cached_property
    def rows(self) -> list[list[str]]:
        """All cells as text."""
        columns = [
            [percent(value) if str(name).endswith("difference_percent") else word(value) for value in column]
            for name, column in self.frame.items()
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    @property
    def csv(self) -> str:
        """For programs: the original column names, six digits."""
        return self.frame.to_csv(index=False, float_format="%.6g")

    @property
    def markdown(self) -> str:
        """Only the table, under its title."""
        sides = ["right" if numeric else "left" for numeric in self.numeric]
        alignment = sides if self.rows else None
        table = tabulate(self.rows, headers=self.headings, tablefmt="pipe", colalign=alignment, disable_numparse=True)
        return f"# {self.title}\n\n{table}\n"

    @property
    def latex(self) -> str:
        """Floats that need booktabs."""
        cells = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.headings)
        columns = [
            Column(escaped(heading), [escaped(cell) for cell in column], number)
            for heading, column, number in zip(self.headings, cells, self.numeric, strict=True)
        ]
        label = re.sub("[^a-z0-9]+", "-", self.title.lower())[:LONGEST_LABEL].strip("-")
        return str(Float(columns, escaped(self.title), label))

    @property
    def texts(self) -> dict[str, str]:
        """Contents of its files, by suffix."""
        return {".csv": self.csv, ".md": f"{self.markdown}\n{self.notes}".rstrip() + "\n", ".tex": self.latex}

    def as_text(self, format: str) -> str:
        """Only the table, for a pipe: "markdown", "csv" or "json"."""
        if format == "json":
            return f"{self.frame.to_json(orient='records', force_ascii=False, indent=1)}\n"
        return self.csv if format == "csv" else self.markdown

    def show(self) -> None:
        """Print only the table."""
        show_table(self.headings, self.rows, numbers=[at for at, numeric in enumerate(self.numeric) if numeric])

    def write(self, path: Path, latex: str = "") -> list[Path]:
        """Write `path`.csv, .md and .tex, and print their names; with this LaTeX instead of its own, if given."""
        texts = self.texts | ({".tex": latex} if latex else {})
        files = [path.with_suffix(suffix) for suffix in texts]
        for file, text in zip(files, texts.values(), strict=True):
            write_text(file, text)
        return files


def word(value: object) -> str:
    """A cell as text: four significant digits, grouped thousands, empty if unknown."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return f"{value:,}"
    number = float(value)
    if np.isnan(number):
        return ""
    return f"{number:,.0f}" if 1e3 <= abs(number) < 1e15 else f"{number:.4g}"


def percent(value: float) -> str:
    """A difference in percent with its sign, with two decimals if it is small."""
    if np.isnan(value):
        return ""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{round(value, digits) + 0.0:+,.{digits}f}"
