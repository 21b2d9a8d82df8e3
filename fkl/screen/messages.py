"""Messages: results on stdout, warnings and errors on stderr.

rich detects the terminal: its width and colours, NO_COLOR and TERM=dumb. A pipe gets plain text, one line per message.
A caller in Python gets Python warnings. The streams are not redirected for this, because all threads share them.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from functools import partial
from io import StringIO
from shutil import get_terminal_size
from typing import NamedTuple, TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fkl.basics.errors import FklError, printable_text

WIDEST = 120
"""Maximum width of text, in columns of a terminal."""
UNLIMITED = 100_000
"""Width for a pipe or a file, where nothing is wrapped."""
LONGEST = 1500
"""Maximum length of a message, which may quote a hostile file."""
LABEL, WIDEST_LABEL = re.compile(r" *(error|warning|help|files|pictures): | {2,}\S+ +(?=\S)|[✓▲✗] *(\d+/\d+ +)?"), 16
"""Beginning of a line: ``"error: "``, a mark, or an indented word before its description."""
STYLES = {"error:": "bold red", "warning:": "bold yellow", "help:": "cyan", "✓": "green", "▲": "yellow", "✗": "red"}
"""Colours of the first word of a line."""


class Shown(NamedTuple):
    """Messages that a block shows: results, notes, and warnings as lines on stderr instead of Python warnings."""

    results: bool = True
    notes: bool = True
    warning_lines: bool = True


_EVERYTHING = Shown()
_SHOWN: ContextVar[Shown] = ContextVar("shown", default=_EVERYTHING)
"""Messages that the current thread shows."""


@contextmanager
def show_messages(**shown: bool) -> Iterator[None]:
    """Change which messages this block and this thread show; parameters as for `Shown`."""
    before = _SHOWN.set(_SHOWN.get()._replace(**shown))
    try:
        yield
    finally:
        _SHOWN.reset(before)


def make_console(stream: TextIO) -> Console:
    """A console that writes to a stream."""
    make = partial(Console, file=stream, highlight=False, markup=False, emoji=False)
    return make(width=min(make().width, WIDEST) if stream.isatty() else UNLIMITED)


def text_width() -> int:
    """Width of text on stdout; also in a pipe, where a table may be wider."""
    return min(get_terminal_size().columns, WIDEST)


def print_lines(*lines: str | Text) -> None:
    """Print lines on stdout, with a coloured mark at the beginning of a line."""
    if not _SHOWN.get().results:
        return
    out = make_console(sys.stdout)
    for line in lines:
        _print_wrapped(out, style_line(line) if isinstance(line, str) else line)


@contextmanager
def page_output() -> Iterator[None]:
    """Show the output of this block page by page if it is longer than the terminal."""
    text = StringIO()
    text.isatty = sys.stdout.isatty  # type: ignore[method-assign]
    with redirect_stdout(text):
        yield
    if text.getvalue().count("\n") < get_terminal_size().lines:
        print(text.getvalue(), end="")
    else:
        click.echo_via_pager(text.getvalue())


def show_warning(message: str) -> None:
    """Print a warning on stderr, or warn the caller of fkl in Python."""
    if not _SHOWN.get().warning_lines:
        frame, level, ours = sys._getframe().f_back, 2, 1
        while frame is not None:  # the outermost frame of fkl is the function that the caller called
            ours = level if frame.f_globals.get("__name__", "").startswith("fkl.") else ours
            frame, level = frame.f_back, level + 1
        warnings.warn(_one_line(message), stacklevel=ours + 1)
        return
    _print_wrapped(make_console(sys.stderr), style_line(f"warning: {_one_line(message)}"))


def print_note(message: str) -> None:
    """Print information that needs no action by the user on stderr."""
    if not _SHOWN.get().notes:
        return
    _print_wrapped(make_console(sys.stderr), style_line(_one_line(message)))


def print_refusal(error: FklError) -> int:
    """Print an error that the user can correct, with help, and return its exit code."""
    out = make_console(sys.stderr)
    _print_wrapped(out, style_line(f"error: {_one_line(str(error))}"))
    for line in error.help:
        _print_wrapped(out, style_line(f"  help: {_one_line(line)}"))
    return 2


def _print_wrapped(out: Console, text: Text) -> None:
    """Print a line outside any progress bar; wrapped lines are aligned with the text after the label."""
    bars = sys.modules.get("tqdm")
    with nullcontext() if bars is None else bars.tqdm.external_write_mode(out.file):
        _print_aligned(out, text)


def _print_aligned(out: Console, text: Text) -> None:
    if cell_len(text.plain) <= out.width or "\n" in text.plain:
        out.print(text)
        return
    label = LABEL.match(text.plain)
    start = label.end() if label and label.end() <= WIDEST_LABEL else 0
    for at, part in enumerate(text[start:].wrap(out, out.width - start)):
        out.print(text[:start] + part if at == 0 else Text(" " * start) + part)


def style_line(line: str) -> Text:
    """A line with a coloured first word, with or without ANSI codes."""
    text = Text.from_ansi(line)
    first = text.plain.split(maxsplit=1)[:1]
    if first and first[0] in STYLES:
        start = text.plain.index(first[0])
        text.stylize(STYLES[first[0]], start, start + len(first[0]))
    return text


def _one_line(message: str) -> str:
    words = printable_text(" ".join(message.split()))
    return words if len(words) <= LONGEST else words[:LONGEST] + "..."
