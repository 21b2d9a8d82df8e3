"""Tables: for a terminal with its width, and as Markdown, CSV or JSON."""

import csv
import json
import sys
from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from fkl.screen.messages import console, styled

GAP = 3
"""Blanks between columns."""
FORMATS = ("table", "markdown", "csv", "json")


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], format: str = "table", numbers: Sequence[int] = ()
) -> None:
    """Print a table on stdout.

    Parameters
    ----------
    headings : sequence of str
    rows : sequence of sequences
        Content of the cells; text may have ANSI codes, which only a terminal shows.
    format : str
        One of `FORMATS`.
    numbers : sequence of int
        Columns that are aligned to the right.
    """
    if format == "table":
        out = console(sys.stdout)
        for at, columns in enumerate(_parts(headings, rows, out.width)):
            some = [[row[column] for column in columns] for row in rows]
            aligned = [place for place, column in enumerate(columns) if column in numbers]
            if at:
                out.print()
            out.print(_for_terminal([headings[column] for column in columns], some, aligned))
        return
    plain = [[Text.from_ansi(str(cell)).plain for cell in row] for row in rows]
    if format == "markdown":
        from tabulate import tabulate

        sides = ["right" if at in numbers else "left" for at in range(len(headings))]
        text = tabulate(plain, headings, "pipe", disable_numparse=True, colalign=sides if plain else None)
    elif format == "csv":
        stream = StringIO()
        csv.writer(stream, lineterminator="\n").writerows([headings, *plain])
        text = stream.getvalue().rstrip("\n")
    else:
        text = json.dumps([dict(zip(headings, row, strict=True)) for row in plain], ensure_ascii=False, indent=1)
    print(text)


def _parts(headings: Sequence[str], rows: Sequence[Sequence[object]], room: int) -> list[list[int]]:
    """Columns of the parts into which a too wide table is divided; each part begins with the first column.

    Text can be wrapped: columns are as wide as their words need.
    """

    def width(column: int) -> int:
        return GAP + _longest_word(headings, rows, column)

    parts: list[list[int]] = [[]]
    used = 0
    for column in range(len(headings)):
        if len(parts[-1]) > 1 and used + width(column) > room + GAP:
            parts.append([0])
            used = width(0)
        parts[-1].append(column)
        used += width(column)
    return parts


def _longest_word(headings: Sequence[str], rows: Sequence[Sequence[object]], column: int) -> int:
    words = [word for row in [headings, *rows] for word in Text.from_ansi(str(row[column])).plain.split()]
    return max(map(cell_len, words), default=0)


def _for_terminal(headings: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for at, heading in enumerate(headings):
        longest = _longest_word(headings, rows, at)
        table.add_column(
            Text(heading), justify="right" if at in numbers else "left", overflow="fold", min_width=longest
        )
    for row in rows:
        table.add_row(*(styled(str(cell)) for cell in row))
    return table
