"""Stdout and stderr of a command; neither their encoding nor their reader can make a run fail."""

import codecs
import io
import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fkl.basics.errors import FklError

SIGNS = str.maketrans({
    "✓": "+", "▲": "!", "✗": "x", "†": "*", "·": "|", "±": "+-", "×": "x", "−": "-", "–": "-", "≤": "<=", "≥": ">=",
    "≈": "~", "→": "->", "∈": "in", "’": "'", "“": '"', "”": '"', "₁": "1", "₂": "2", "γ": "gamma", "ξ": "xi",
    "¼": "1/4", "½": "1/2", "¾": "3/4", "⅐": "1/7", "⅞": "7/8", "‘": "'", "«": '"', "»": '"',
    "„": '"', "₹": "INR", "—": "-", "―": "-",
    **dict.fromkeys("\u2010\u2011\u2012\ufe63\uff0d", "-"),
    "\u00a0": " ", "\u202f": " ", "\ufffd": "?", "€": "EUR", "£": "GBP", "¥": "JPY", "‰": "per mille",
})  # fmt: skip
"""Signs that fkl prints, and their replacements for encodings that lack them."""
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
"""Signs of exponents: 10³ is printed as 10^3."""


def _replace_signs(error: UnicodeError) -> tuple[str, int]:
    """Replace what a stream cannot encode: fkl's signs by similar ones, letters of names by their numbers."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    text = re.sub(f"[{RAISED}]+", lambda power: "^" + power[0].translate(str.maketrans(RAISED, "0123456789+-")), text)
    return text.translate(SIGNS).encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error("fkl.signs", _replace_signs)


class _Screen(io.RawIOBase):
    """A stream that writes bytes until a write fails; then it discards the rest, and the command goes on.

    Parameters
    ----------
    raw : io.RawIOBase
        The stream.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.failure: OSError | None = None

    def writable(self) -> bool:
        """Whether it can be written: always."""
        return True

    def fileno(self) -> int:
        """The stream's descriptor."""
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return bool(self._raw.isatty())

    def write(self, data: Any) -> int:
        """Write at least the first of these bytes."""
        while self.failure is None:
            try:
                if (written := self._raw.write(data)) is not None:
                    return int(written)
                select.select([], [self._raw], [])  # the stream is full, and another process made it non-blocking
            except OSError as error:
                self.failure = error
        return len(data)


@contextmanager
def guard_streams() -> Iterator[None]:
    """In this block, write to stdout and stderr as far as they can encode it and as long as someone reads them."""
    given = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    try:
        for name, stream in given.items():
            if stream is None:  # closed by the caller, for example with >&-
                setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
                continue
            buffer = getattr(stream, "buffer", None)
            raw = getattr(buffer, "raw", buffer)
            if isinstance(raw, io.RawIOBase) and not isinstance(raw, _Screen):
                stream.flush()
                at_once = stream.line_buffering or stream.write_through
                screen = io.BufferedWriter(_Screen(raw))
                setattr(sys, name, io.TextIOWrapper(screen, stream.encoding, "fkl.signs", line_buffering=at_once))
        yield
    finally:
        for name, stream in given.items():
            getattr(sys, name).flush()
            setattr(sys, name, stream)


def require_written() -> None:
    """Raise an error if the output of a command is not complete, unless its reader has stopped reading.

    Raises
    ------
    fkl.basics.errors.FklError
        The message names the stream, for example if it is a file on a full disk.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        stream.flush()
        failure = getattr(getattr(getattr(stream, "buffer", None), "raw", None), "failure", None)
        if failure is not None and not isinstance(failure, ConnectionError):
            raise FklError(f"{name}: cannot be written ({failure.strerror})")
