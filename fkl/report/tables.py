"""Tables from one data frame: as CSV, Markdown and LaTeX files, and word by word for the page."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import LATEX_ESCAPE_RULES, tabulate

from fkl.basics.files import write_text

HEADINGS = {
    "spread": "± sd", "difference_percent": "difference %", "published_spread": "published ± sd",
    "rounding": "published ± rounding", "of": "of replicates", "within_percent": "agrees within %",
    "published_n": "published n",
}  # fmt: skip
"""Columns whose names are not the words that people read."""


@dataclass(frozen=True)
class Table:
    """A data frame with what people read beside it.

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
        """Names of the columns for people."""
        return [HEADINGS.get(name, name.replace("_", " ")) for name in map(str, self.frame)]

    @cached_property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, some of them maybe beside bounds such as ``>900``."""
        return [any(isinstance(value, Real) for value in column) for _, column in self.frame.items()]

    @cached_property
    def rows(self) -> list[list[str]]:
        """All cells for people."""
        columns = [
            [percent(value) if str(name).endswith("difference_percent") else word(value) for value in column]
            for name, column in self.frame.items()
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    @property
    def csv(self) -> str:
        """For programs: the names of the columns, six digits."""
        return self.frame.to_csv(index=False, float_format="%.6g")

    @property
    def markdown(self) -> str:
        """The table alone, under its title."""
        return f"# {self.title}\n\n{self._rendered('pipe')}\n"

    @property
    def latex(self) -> str:
        """A float that wants booktabs."""
        body = self._rendered("latex_booktabs")
        return f"% {self.title}\n\\begin{{table}}\n\\caption{{{escaped(self.title)}}}\n{body}\n\\end{{table}}\n"

    def as_text(self, format: str) -> str:
        """The table alone, for a pipe: "markdown", "csv" or "json"."""
        if format == "json":
            return f"{self.frame.to_json(orient='records', force_ascii=False, indent=1)}\n"
        return self.csv if format == "csv" else self.markdown

    def write(self, path: Path) -> list[Path]:
        """Write `path`.csv, .md and .tex, and name them."""
        texts = {".csv": self.csv, ".md": f"{self.markdown}\n{self.notes}".rstrip() + "\n", ".tex": self.latex}
        files = [path.with_suffix(suffix) for suffix in texts]
        for file, text in zip(files, texts.values(), strict=True):
            write_text(file, text)
        return files

    def _rendered(self, style: str) -> str:
        alignment = ["right" if numeric else "left" for numeric in self.numeric]
        return tabulate(
            self.rows, headers=self.headings, tablefmt=style, colalign=alignment if self.rows else None,
            disable_numparse=True,
        )  # fmt: skip


def escaped(words: str) -> str:
    r"""Text as LaTeX shows it.

    Examples
    --------
    >>> print(escaped("95 % of test_mse"))
    95 \% of test\_mse
    """
    return "".join(LATEX_ESCAPE_RULES.get(letter, letter) for letter in words)


def word(value: object) -> str:
    """A cell as people read it: four significant digits, whole thousands in groups, nothing where nothing is known."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return f"{value:,}"
    number = float(value)
    if np.isnan(number):
        return ""
    return f"{number:,.0f}" if 1e3 <= abs(number) < 1e15 else f"{number:.4g}"


def percent(value: float) -> str:
    """A difference in percent with its sign, to a hundredth where it is small."""
    if np.isnan(value):
        return ""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{round(value, digits) + 0.0:+,.{digits}f}"
