"""Tables for LaTeX that need only booktabs; each part fits the line and the page of an article."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil

from tabulate import LATEX_ESCAPE_RULES

LINE = 345.0
"""Width in points of a line in LaTeX's article."""
GAP = 6.0
"""Points between two columns."""
LONGEST_TEXT = 110.0
"""Width in points of a text column; longer texts are wrapped."""
PAGE = 42
"""Number of table lines on a page."""
RULE = 0.9
"""Height of a rule in lines."""
KEYS = 2
"""Maximum number of row headings that are repeated in each part."""

RAGGED = r"\raggedright\let\\\tabularnewline "
LETTER, CAPITAL, BOLD = 4.8, 6.4, 1.16
WIDTHS = {
    letter: points
    for letters, points in {
        " .,:;'|!ijl": 2.9,
        "()[]/-ftrsI": 3.5,
        "0123456789aceovxyz": 4.4,
        "mwMW@%+=<>~": 8.4,
    }.items()
    for letter in letters
}
"""Points of letters at \\footnotesize; other capitals have `CAPITAL` and the rest `LETTER`; bold is wider."""

SIGNS = {
    "±": r"$\pm$", "×": r"$\times$", "−": r"$-$", "≤": r"$\le$", "≥": r"$\ge$", "▲": r"$\triangle$", "∈": r"$\in$",
    "≈": r"$\approx$", "†": r"\textdagger{}", "–": "--", "’": "'", "²": r"\textsuperscript{2}", "→": r"$\to$",
}  # fmt: skip
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
COMMANDS = re.compile(r"\\(?:textbf|underline|scriptsize|textsuperscript|hspace\{[^}]*\})|\\(?=[%&#$_{}])|[{}$]")
"""Characters without width."""
BREAKS, ALLOWED = re.compile(r"(\\_|[=/;,.])(?=[^\s\\\d])"), r"\allowbreak{}"


@dataclass(frozen=True)
class Column:
    """A column of cells in LaTeX.

    Parameters
    ----------
    heading : str
    cells : list of str
    number : bool
        Whether to align it to the right.
    """

    heading: str
    cells: list[str]
    number: bool = False

    @cached_property
    def width(self) -> float:
        """Width of its widest cell in points; text longer than `LONGEST_TEXT` is wrapped."""
        widest = max(map(width, [*self._words, *self.cells]), default=0.0)
        return widest if self.number else min(widest, LONGEST_TEXT)

    @cached_property
    def wrapped(self) -> bool:
        """Whether some cell has more than one line."""
        return not self.number and max(map(width, self.cells), default=0.0) > LONGEST_TEXT

    @property
    def style(self) -> str:
        """Its column type for tabular."""
        return "r" if self.number else f"p{{{self.width:.0f}pt}}" if self.wrapped else "l"

    @cached_property
    def head(self) -> str:
        """Its heading, with several lines if it is wider than the cells."""
        cells = max(map(width, self.cells), default=0.0)
        if width(self.heading) <= max(cells, 30.0) or len(self._words) == 1:
            return self.heading
        side, lines = "r" if self.number else "l", r" \\ ".join(self._words)
        return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{lines}\end{{tabular}}"

    def cell(self, row: int) -> str:
        """A cell; if it is wrapped, it may be broken after each sign."""
        words = self.cells[row]
        if not self.wrapped or not words:
            return words
        return RAGGED + BREAKS.sub(lambda sign: sign[0] + ALLOWED, words)

    @property
    def _words(self) -> list[str]:
        return self.heading.split(" ")


@dataclass(frozen=True)
class Float:
    """A table with a caption, divided into floats that fit lines and pages.

    Parameters
    ----------
    columns : list of Column
        Columns, with the row headings first.
    caption : str
        LaTeX.
    label : str
        Its label after ``tab:``.
    ruled : tuple of int
        Rows above which there is a rule.
    line : float
        Width in points of a text line.
    """

    columns: list[Column]
    caption: str
    label: str
    ruled: tuple[int, ...] = field(default=())
    line: float = LINE

    def __str__(self) -> str:
        parts = [(columns, rows) for columns in self._columns() for rows in self._rows(columns)]
        made = [self._part(k, len(parts), *part) for k, part in enumerate(parts)]
        return "\n".join([r"% \usepackage{booktabs}", *made])

    def _columns(self) -> Iterator[list[Column]]:
        """Groups of columns that fit a line, each with the row headings."""
        keys = next((k for k, column in enumerate(self.columns) if column.number), 1)
        names, rest = self.columns[: min(keys, KEYS)], self.columns[min(keys, KEYS) :]
        used = sum(column.width + GAP for column in names)
        group: list[Column] = []
        for column in rest:
            if group and used + sum(one.width + GAP for one in [*group, column]) > self.line:
                yield [*names, *group]
                group = []
            group.append(column)
        yield [*names, *group]

    def _rows(self, columns: list[Column]) -> Iterator[range]:
        """Groups of rows that fit a page."""
        start, lines = 0, 0.0
        total = len(columns[0].cells)
        for row in range(total):
            needed = max(_lines(column, row) for column in columns) + RULE * (row in self.ruled)
            if lines and lines + needed > PAGE:
                yield range(start, row)
                start, lines = row, 0.0
            lines += needed
        yield range(start, total)

    def _part(self, k: int, of: int, columns: list[Column], rows: range) -> str:
        stop = "" if self.caption.endswith(".") else "."
        part, label = (f"{stop} Part {k + 1} of {of}.", f"{self.label}-{k + 1}") if of > 1 else ("", self.label)
        body = []
        for row in rows:
            if row in self.ruled and row != rows.start:
                body.append(r"\midrule")
            body.append(rf"{' & '.join(column.cell(row) for column in columns)} \\")
        return "\n".join([
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{self.caption}{part}}}",
            rf"\label{{tab:{label}}}",
            r"\vspace{4pt}",
            r"\footnotesize",
            rf"\setlength{{\tabcolsep}}{{{GAP / 2:g}pt}}",
            rf"\begin{{tabular}}{{@{{}}{''.join(column.style for column in columns)}@{{}}}}",
            r"\toprule",
            rf"{' & '.join(column.head for column in columns)} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ])  # fmt: skip


def escaped(words: str) -> str:
    r"""Text escaped for LaTeX.

    Examples
    --------
    >>> print(escaped("95 % of test_mse × 10⁻³"))
    95 \% of test\_mse $\times$ 10$^{-3}$
    """
    plain = "".join(LATEX_ESCAPE_RULES.get(letter, letter) for letter in words)
    digits = str.maketrans(RAISED, "-0123456789")
    plain = re.sub(f"[{RAISED}]+", lambda power: f"$^{{{power[0].translate(digits)}}}$", plain)
    return "".join(SIGNS.get(letter, letter) for letter in plain)


@lru_cache(maxsize=1 << 16)
def width(latex: str) -> float:
    """Approximate maximum width of a cell in points."""
    factor = BOLD if r"\textbf" in latex else 0.95 if r"\scriptsize" in latex else 1.0
    shown = COMMANDS.sub("", re.sub(r"\\(?:pm|times|triangle|le|ge|in|to|approx|text[a-z]+\{\})", "N", latex))
    return factor * sum(WIDTHS.get(letter, CAPITAL if letter.isupper() else LETTER) for letter in shown)


def _lines(column: Column, row: int) -> int:
    """Number of lines in a cell; breaks are between words, so lines are not full."""
    return ceil(1.3 * width(column.cells[row]) / column.width) if column.wrapped else 1
