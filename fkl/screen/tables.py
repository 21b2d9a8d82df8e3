"""Tables: for a terminal in the width there is, and as Markdown, CSV or JSON."""

import csv
import json
import sys
from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fkl.screen.messages import console, styled

FORMATS = ("table", "markdown", "csv", "json")


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], format: str = "table", numbers: Sequence[int] = ()
) -> None:
    """Print a table on stdout.

    Parameters
    ----------
    headings : sequence of str
    rows : sequence of sequences
        What a cell shows; text may have ANSI codes, which only a terminal shows.
    format : str
        One of `FORMATS`.
    numbers : sequence of int
        Columns that are aligned to the right.
    """
    if format == "table":
        console(sys.stdout).print(_for_terminal(headings, rows, numbers))
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


def _for_terminal(headings: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for at, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if at in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(styled(str(cell)) for cell in row))
    return table
