"""A table, and all its formats: for a terminal, Markdown, CSV, JSON, LaTeX and HTML."""

import csv
import html
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from math import ceil
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from fkl.screen.messages import make_console, style_line
from fkl.screen.units import cell_text, percent_text, typeset_number

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("table", "markdown", "csv", "json")
BEST, SECOND = "best", "second"
"""Weights of a cell."""

HEADINGS = {
    "spread": "± sd", "difference_percent": "difference %", "published_spread": "published ± sd",
    "rounding": "published ± rounding", "of": "of replicates", "within_percent": "agrees within %",
    "published_n": "published n",
}  # fmt: skip
"""Columns of data frames whose headings differ from their names."""

GAP = 3
"""Blanks between columns in a terminal."""
LINE = 345.0
"""Width in points of a line in LaTeX's article."""
LETTER, LATEX_GAP = 4.05, 6.0
"""Average width in points of a letter at \\footnotesize, and space between two columns."""
LONGEST_TEXT, WRAPPED = 28, 110
"""Longest text of a LaTeX column in letters; longer texts are wrapped to this width in points."""
PAGE = 42
"""Lines of a table on a page."""
LONGEST_LABEL = 40

ESCAPED = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "^": r"\^{}", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "<": r"\ensuremath{<}", ">": r"\ensuremath{>}",
    "±": r"$\pm$", "×": r"$\times$", "−": r"$-$", "≤": r"$\le$", "≥": r"$\ge$", "▲": r"$\triangle$", "∈": r"$\in$",
    "≈": r"$\approx$", "†": r"\textdagger{}", "–": "--", "’": "'", "²": r"\textsuperscript{2}", "→": r"$\to$",
}  # fmt: skip
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
BREAKS, ALLOWED = re.compile(r"(\\_|[=/;,.])(?=[^\s\\\d])"), r"\allowbreak{}"
FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Shrinks a table that is wider than a line; every LaTeX has graphicx, but not adjustbox."""


def escape_latex(words: str) -> str:
    r"""Text escaped for LaTeX.

    Examples
    --------
    >>> print(escape_latex("95 % of test_mse × 10⁻³"))
    95 \% of test\_mse $\times$ 10$^{-3}$
    """
    digits = str.maketrans(RAISED, "-0123456789")
    parts = re.split(f"([{RAISED}]+)", words)
    plain = ("".join(ESCAPED.get(letter, letter) for letter in part) for part in parts[::2])
    powers = [f"$^{{{part.translate(digits)}}}$" for part in parts[1::2]]
    return "".join(one + power for one, power in zip(plain, [*powers, ""], strict=True))


class CellLook(NamedTuple):
    """How a writer shows the parts of a cell."""

    best: str
    second: str
    small: str = "± {}"
    escape: Callable[[str], str] = str
    above: str = "{}\n{}"
    marked: Mapping[str, str] = {}
    """Format of a mark by its kind; marks of other kinds are plain."""


KINDS = ("near", "close", "inside", "far", "time", "preview", "missing")
"""Kinds of marks, by which the style sheet of a page colours cells."""
PLAIN = CellLook("*{}*", "_{}_")
TERMINAL = CellLook(
    "\x1b[1m{}\x1b[0m", "\x1b[4m{}\x1b[0m", above="\x1b[2m{}\x1b[0m\n{}",
    marked={kind: f"\x1b[{30 + colour}m{{}}\x1b[0m" for kind, colour in zip(KINDS, (2, 3, 6, 1), strict=False)},
)  # fmt: skip
MARKDOWN = CellLook("**{}**", "<ins>{}</ins>", escape=lambda text: text.replace("|", "\\|"), above="{}<br>{}")
LATEX = CellLook(
    r"\textbf{{{}}}", r"\underline{{{}}}", r"{{\scriptsize$\pm$ {}}}", escape_latex,
    r"\begin{{tabular}}[t]{{@{{}}r@{{}}}}{}\\{}\end{{tabular}}", dict.fromkeys(KINDS, ""),
)  # fmt: skip
HTML = CellLook(
    "<b>{}</b>", "<u>{}</u>", "<small>± {}</small>", html.escape, '<span class="above">{}</span> {}',
    {kind: f'<span class="mark {kind}">{{}}</span>' for kind in KINDS},
)  # fmt: skip


class SheetColumn(NamedTuple):
    """A column.

    Parameters
    ----------
    heading : str
    number : bool
        Whether it is aligned to the right.
    priority : int
        Columns with the largest priority are dropped first if a table is too wide; those with 0 never are.
    """

    heading: str
    number: bool = False
    priority: int = 0


class SheetCell(NamedTuple):
    """A cell.

    Parameters
    ----------
    text : str
    weight : {"", "best", "second"}
        The best cell is bold, the second underlined.
    mark : str
        A sign after the text.
    small : str
        Half of an interval, in small print after a ±.
    above : str
        A line above the text, such as the printed number above ours.
    kind : str
        One of `KINDS`, which colours the mark; LaTeX leaves such marks out.
    """

    text: str
    weight: str = ""
    mark: str = ""
    small: str = ""
    above: str = ""
    kind: str = ""

    @property
    def typeset(self) -> "SheetCell":
        """The cell with its numbers as they are printed."""
        return self._replace(text=typeset_number(self.text), above=typeset_number(self.above))

    def cell_as_text(self, look: CellLook) -> str:
        """All parts of the cell as text, in the style of `look`."""
        text = look.escape(self.text)
        if text:
            text = {BEST: look.best, SECOND: look.second}.get(self.weight, "{}").format(text)
        small = look.small.format(look.escape(self.small)) if self.small else ""
        mark = look.marked.get(self.kind, "{}").format(look.escape(self.mark)) if self.mark else ""
        line = " ".join(filter(None, (text, small, mark)))
        return look.above.format(look.escape(self.above), line) if self.above else line


@dataclass(frozen=True, repr=False)
class Sheet:
    """A table.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence of sequences of Cell
    title : str
        Heading in Markdown.
    caption : str
        Meaning of the numbers; if it is empty, LaTeX has the title instead.
    notes : str
        Markdown below the table in a file.
    label : str
        Its label in LaTeX, after ``tab:``; if it is empty, the label is made from the title.
    groups : mapping of int to str
        Subheadings, by the number of the row that they are above.
    ruled : collection of int
        Rows with a rule above them in LaTeX.
    frame : DataFrame, optional
        The numbers for programs; without it, CSV and JSON contain the text.
    """

    columns: Sequence[SheetColumn]
    rows: Sequence[Sequence[SheetCell]]
    title: str = ""
    caption: str = ""
    notes: str = ""
    label: str = ""
    groups: Mapping[int, str] = field(default_factory=dict)
    ruled: Collection[int] = ()
    frame: "pd.DataFrame | None" = None

    @classmethod
    def from_rows(
        cls, headings: Sequence[str], rows: Sequence[Sequence[object]], numbers: Collection[int] = (), title: str = ""
    ) -> "Sheet":
        """A table of plain text.

        Parameters
        ----------
        headings : sequence of str
        rows : sequence of sequences
        numbers : collection of int
            Columns that are aligned to the right.
        title : str
        """
        columns = [SheetColumn(heading, at in numbers) for at, heading in enumerate(headings)]
        return cls(columns, [[SheetCell(str(value)) for value in row] for row in rows], title)

    @classmethod
    def from_frame(cls, frame: "pd.DataFrame", title: str, notes: str = "") -> "Sheet":
        """A data frame with its numbers formatted for readers; columns of numbers may also have bounds such as >900."""
        names = [str(name) for name in frame]
        columns = [
            SheetColumn(HEADINGS.get(name, name.replace("_", " ")), any(isinstance(value, Real) for value in values))
            for name, (_, values) in zip(names, frame.items(), strict=True)
        ]
        cells = [
            [
                SheetCell(percent_text(value) if name.endswith("difference_percent") else cell_text(value))
                for value in values
            ]
            for name, (_, values) in zip(names, frame.items(), strict=True)
        ]
        return cls(columns, [*zip(*cells, strict=True)], title, notes=notes, frame=frame)

    @property
    def headings(self) -> list[str]:
        """Headings of the columns."""
        return [column.heading for column in self.columns]

    def print_sheet(self, format: str = "table") -> None:
        """Print the table without its caption, in one of `FORMATS`."""
        if format != "table":
            print(self.text(format), end="")
            return
        out = make_console(sys.stdout)
        for at, columns in enumerate(self._parts_of_columns(out.width)):
            if at:
                out.print()
            out.print(self._for_terminal(columns, out.width))

    def text(self, format: str) -> str:
        """The table for a pipe: markdown, csv or json."""
        return {"markdown": self.markdown, "csv": self.csv, "json": self.json}[format]

    @property
    def csv(self) -> str:
        """Numbers with six digits and the names of the frame's columns, if there is a frame."""
        if self.frame is not None:
            return self.frame.to_csv(index=False, float_format="%.6g")
        stream = StringIO()
        csv.writer(stream, lineterminator="\n").writerows([self.headings, *self._written_cells(PLAIN)])
        return stream.getvalue()

    @property
    def json(self) -> str:
        """An object for each row."""
        if self.frame is not None:
            return f"{self.frame.to_json(orient='records', force_ascii=False, indent=1)}\n"
        rows = [dict(zip(self.headings, row, strict=True)) for row in self._written_cells(PLAIN)]
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"

    @property
    def markdown(self) -> str:
        """The table below its title and caption."""
        rows = [[MARKDOWN.escape(heading) for heading in self.headings]]
        for at, row in enumerate(self._written_cells(MARKDOWN)):
            if at in self.groups:
                rows.append([f"**{MARKDOWN.escape(self.groups[at])}**", *[""] * (len(self.columns) - 1)])
            rows.append(row)
        widths = [max(3, *map(cell_len, cells)) for cells in zip(*rows, strict=True)]
        sides = [
            f"{'-' * (wide + 1)}:" if column.number else f":{'-' * (wide + 1)}"
            for wide, column in zip(widths, self.columns, strict=True)
        ]
        lines = [
            "| " + " | ".join(_pad_cell(*one) for one in zip(row, widths, self.columns, strict=True)) + " |"
            for row in rows
        ]
        lines.insert(1, f"|{'|'.join(sides)}|")
        above = [f"# {self.title}" * bool(self.title), self.described_caption(MARKDOWN)]
        return "\n\n".join([*filter(None, above), "\n".join(lines)]) + "\n"

    @property
    def html(self) -> str:
        """The table without its caption; the first cell of a row is its heading."""
        heads = "".join(
            f'<th scope="col"{_html_class(column)}>{html.escape(column.heading)}</th>' for column in self.columns
        )
        lines = [f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>"]
        for at, row in enumerate(self.rows):
            if at in self.groups:
                wide = len(self.columns)
                lines.append(
                    f'<tr class="group"><th scope="rowgroup" colspan="{wide}">{html.escape(self.groups[at])}</th></tr>'
                )
            cells = [
                (cell.typeset if column.number else cell).cell_as_text(HTML)
                for cell, column in zip(row, self.columns, strict=True)
            ]
            rest = "".join(
                f"<td{_html_class(column, cell)}>{text}</td>"
                for text, cell, column in zip(cells[1:], row[1:], self.columns[1:], strict=True)
            )
            lines.append(f'<tr><th scope="row">{cells[0]}</th>{rest}</tr>')
        return "\n".join([*lines, "</tbody>\n</table>"])

    def _repr_html_(self) -> str:
        return f"<p>{self.html_caption}</p>\n{self.html}"

    def __repr__(self) -> str:
        return self.markdown

    def latex_floats(self, line: float = LINE) -> str:
        """Floats that need booktabs and graphicx, for a line of this width in points.

        A table with too many rows for a page continues in another float. A table that is too wide for a line loses
        columns by their priority, and then shrinks to the line.
        """
        columns = self._fitting_columns(line, LETTER, LATEX_GAP)
        parts = [*self._rows_of_pages()]
        made = [self._latex_float(columns, rows, k, len(parts)) for k, rows in enumerate(parts)]
        return "\n".join([r"% \usepackage{booktabs,graphicx}", *made])

    @property
    def texts(self) -> dict[str, str]:
        """Contents of its files, by suffix."""
        return {".csv": self.csv, ".md": f"{self.markdown}\n{self.notes}".rstrip() + "\n", ".tex": self.latex_floats()}

    def write(self, path: Path, latex: str = "") -> list[Path]:
        """Write `path`.csv, .md and .tex, and return their paths; `latex` replaces the table's own LaTeX if given."""
        from fkl.basics.files import write_text  # its import also imports numpy

        texts = self.texts | ({".tex": latex} if latex else {})
        files = [path.with_suffix(suffix) for suffix in texts]
        for file, text in zip(files, texts.values(), strict=True):
            write_text(file, text)
        return files

    @property
    def html_caption(self) -> str:
        """The caption as HTML."""
        return self.described_caption(HTML)

    @property
    def about(self) -> str:
        """The caption for a terminal."""
        return self.described_caption(_for_screen())

    def described_caption(self, look: CellLook) -> str:
        """The caption, and the meaning of the weights."""
        weights = {cell.weight for row in self.rows for cell in row}
        meanings = [look.best.format("Best")] * (BEST in weights) + [look.second.format("second")] * (SECOND in weights)
        return " ".join(filter(None, (look.escape(self.caption), f"{', '.join(meanings)}." if meanings else "")))

    @cached_property
    def _plain(self) -> list[list[str]]:
        return self._written_cells(PLAIN)

    def _written_cells(self, look: CellLook) -> list[list[str]]:
        return [[cell.cell_as_text(look) for cell in row] for row in self.rows]

    def _longest_cell(self, column: int, wrapped: bool = True) -> int:
        """Letters of the widest cell, or of the widest word if text can be wrapped; the heading is always wrapped."""
        cells = [Text.from_ansi(row[column]).plain for row in self._plain]
        whole = not wrapped or self.columns[column].number
        lines = [one for cell in cells for one in (cell.splitlines() if whole else cell.split())]
        return max(map(cell_len, [*self.columns[column].heading.split(), *lines]), default=0)

    def _unwrapped_width(self, column: int) -> int:
        """Letters of a column in which only the heading and long texts are wrapped."""
        return max(self._longest_cell(column), min(self._longest_cell(column, wrapped=False), LONGEST_TEXT))

    def _fitting_columns(self, room: float, letter: float, gap: float) -> list[int]:
        """Columns without those that are dropped by their priority to fit this room, before any text is wrapped."""
        kept = [*range(len(self.columns))]
        wide = {at: letter * self._unwrapped_width(at) + gap for at in kept}
        while sum(wide[at] for at in kept) > room + gap and (most := max(self.columns[at].priority for at in kept)):
            kept.remove(next(at for at in reversed(kept) if self.columns[at].priority == most))
        return kept

    def _parts_of_columns(self, room: int) -> Iterator[list[int]]:
        """Columns of each part of a table that is too wide; each part begins with the first column."""
        first, *rest = self._fitting_columns(room, 1, GAP)
        part, used = [first], GAP + self._longest_cell(first)
        for column in rest:
            width = GAP + self._longest_cell(column)
            if len(part) > 1 and used + width > room + GAP:
                yield part
                part, used = [first], GAP + self._longest_cell(first)
            part.append(column)
            used += width
        yield part

    def _for_terminal(self, columns: Sequence[int], room: int) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        snug = [self._longest_cell(at, wrapped=False) for at in columns]
        headed = [max(wide, cell_len(self.columns[at].heading)) for wide, at in zip(snug, columns, strict=True)]
        tight = sum(headed) + GAP * len(columns) > room >= sum(snug) + GAP * (len(columns) - 1)  # it fits, if exactly
        for place, at in enumerate(columns):
            side = "right" if self.columns[at].number else "left"
            wide = {"width": snug[place]} if tight else {"min_width": self._longest_cell(at)}
            table.add_column(Text(self.columns[at].heading), justify=side, overflow="fold", **wide)  # type: ignore[arg-type]
        look = _for_screen()
        for number, row in enumerate(self._written_cells(look)):
            if number in self.groups:
                if number:
                    table.add_row()
                table.add_row(
                    style_line(look.best.format(self.groups[number]) if look is TERMINAL else self.groups[number])
                )
            table.add_row(*(style_line(row[at]) for at in columns))
        return table

    def _rows_of_pages(self) -> Iterator[range]:
        """Rows of each page."""
        start, lines = 0, 0
        for at, row in enumerate(self.rows):
            texts = [len(cell.text) for cell, column in zip(row, self.columns, strict=True) if not column.number]
            needed = max([1, *(ceil(1.3 * LETTER * text / WRAPPED) for text in texts if text > LONGEST_TEXT)])
            needed += (at in self.groups) + (at in self.ruled) + any(cell.above for cell in row)
            if lines and lines + needed > PAGE:
                yield range(start, at)
                start, lines = at, 0
            lines += needed
        yield range(start, len(self.rows))

    def _latex_float(self, columns: Sequence[int], rows: range, k: int, of: int) -> str:
        name = re.sub("[^a-z0-9]+", "-", self.title.lower())[:LONGEST_LABEL].strip("-")
        caption, label = self.described_caption(LATEX) or escape_latex(self.title), self.label or name
        if of > 1:
            stop = "" if caption.endswith(".") else "."
            caption, label = f"{caption}{stop} Part {k + 1} of {of}.", f"{label}-{k + 1}"
        wrapped = {
            at for at in columns if not self.columns[at].number and self._longest_cell(at, wrapped=False) > LONGEST_TEXT
        }
        styles = ["r" if self.columns[at].number else f"p{{{WRAPPED}pt}}" if at in wrapped else "l" for at in columns]
        body = []
        for row in rows:
            if row in self.ruled and row != rows.start:
                body.append(r"\midrule")
            if row in self.groups:
                space, above = r"\addlinespace " * (row != rows.start), escape_latex(self.groups[row])
                body.append(rf"{space}\multicolumn{{{len(columns)}}}{{@{{}}l}}{{\emph{{{above}}}}} \\")
            cells = [
                r"\raggedright\let\\\tabularnewline " + BREAKS.sub(lambda sign: sign[0] + ALLOWED, text)
                if at in wrapped and text
                else text
                for at, text in ((at, self.rows[row][at].cell_as_text(LATEX)) for at in columns)
            ]
            body.append(rf"{' & '.join(cells)} \\")
        return "\n".join([
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            r"\vspace{4pt}",
            r"\footnotesize",
            rf"\setlength{{\tabcolsep}}{{{LATEX_GAP / 2:g}pt}}",
            FITTED,
            rf"\begin{{tabular}}{{@{{}}{''.join(styles)}@{{}}}}",
            r"\toprule",
            rf"{' & '.join(self._wrapped_heading(at) for at in columns)} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ])  # fmt: skip

    def _wrapped_heading(self, column: int) -> str:
        """A heading, with a line for each word if it is wider than the cells."""
        heading, parts = self.columns[column].heading, self.columns[column].heading.split(" ")
        if len(heading) <= max(6, max((len(row[column]) for row in self._plain), default=0)) or len(parts) == 1:
            return escape_latex(heading)
        side = "r" if self.columns[column].number else "l"
        lines = r" \\ ".join(map(escape_latex, parts))
        return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{lines}\end{{tabular}}"


def _for_screen() -> CellLook:
    return TERMINAL if sys.stdout.isatty() else PLAIN


def _pad_cell(text: str, width: int, column: SheetColumn) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if column.number else text + blanks


def _html_class(column: SheetColumn, cell: SheetCell | None = None) -> str:
    names = ["number"] * column.number
    if cell is not None:
        names += [f"cell {cell.kind}"] * bool(cell.kind) + ["words"] * (len(cell.text) > LONGEST_TEXT)
    return f' class="{" ".join(names)}"' if names else ""
