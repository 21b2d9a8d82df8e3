"""Messages: results on stdout, warnings and errors on stderr.

rich knows the terminal: its width and colours, NO_COLOR and TERM=dumb. A pipe gets plain text, one line a message.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from io import StringIO
from shutil import get_terminal_size
from typing import TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fkl.basics.errors import FklError, printable

WIDEST = 120
"""Columns of a terminal that text fills at most."""
UNLIMITED = 100_000
"""Columns of a pipe or a file, where nothing is wrapped."""
LONGEST = 1500
"""Letters of a message, which a hostile file may be in."""
LABEL, WIDEST_LABEL = re.compile(r" *(error|warning|help|files|pictures): | {2,}\S+ +(?=\S)|[✓▲✗] *(\d+/\d+ +)?"), 16
"""What a line begins with: ``"error: "``, a mark, or an indented word in front of what is told of it."""
STYLES = {"error:": "bold red", "warning:": "bold yellow", "help:": "cyan", "✓": "green", "▲": "yellow", "✗": "red"}
"""Of the first word of a line."""


def console(stream: TextIO) -> Console:
    """How to write to a stream."""
    make = partial(Console, file=stream, highlight=False, markup=False, emoji=False)
    return make(width=min(make().width, WIDEST) if stream.isatty() else UNLIMITED)


def width() -> int:
    """Columns that text on stdout fills; also in a pipe, where a table may be wider."""
    return min(get_terminal_size().columns, WIDEST)


def say(*lines: str | Text) -> None:
    """Print lines on stdout; a mark at the beginning of a line is coloured."""
    out = console(sys.stdout)
    for line in lines:
        _print(out, styled(line) if isinstance(line, str) else line)


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed in this block a page at a time, where it is longer than the terminal."""
    text = StringIO()
    text.isatty = sys.stdout.isatty  # type: ignore[method-assign]
    with redirect_stdout(text):
        yield
    if text.getvalue().count("\n") < get_terminal_size().lines:
        print(text.getvalue(), end="")
    else:
        click.echo_via_pager(text.getvalue())


def warning(message: str) -> None:
    """Print a warning on stderr."""
    _print(console(sys.stderr), styled(f"warning: {_one_line(message)}"))


def note(message: str) -> None:
    """Print on stderr what a user should know, and need not act on."""
    _print(console(sys.stderr), styled(_one_line(message)))


def refuse(error: FklError) -> int:
    """Print what the user can correct, and how, and return the exit code for it."""
    out = console(sys.stderr)
    _print(out, styled(f"error: {_one_line(str(error))}"))
    for line in error.help:
        _print(out, styled(f"  help: {_one_line(line)}"))
    return 2


def _print(out: Console, text: Text) -> None:
    """Print a line; where it is wrapped, what follows stands below what comes behind its label."""
    if cell_len(text.plain) <= out.width or "\n" in text.plain:
        out.print(text)
        return
    label = LABEL.match(text.plain)
    start = label.end() if label and label.end() <= WIDEST_LABEL else 0
    for at, part in enumerate(text[start:].wrap(out, out.width - start)):
        out.print(text[:start] + part if at == 0 else Text(" " * start) + part)


def styled(line: str) -> Text:
    """A line, with ANSI codes or none, whose first word has its colour."""
    text = Text.from_ansi(line)
    first = text.plain.split(maxsplit=1)[:1]
    if first and first[0] in STYLES:
        start = text.plain.index(first[0])
        text.stylize(STYLES[first[0]], start, start + len(first[0]))
    return text


def _one_line(message: str) -> str:
    words = printable(" ".join(message.split()))
    return words if len(words) <= LONGEST else words[:LONGEST] + "..."
