"""What Hydra's grammar has no place for, quoted, so that a user need not: ``out=größe``, ``out=a,日本``."""

import re

from hydra.core.override_parser.types import Quote, QuotedString

PIECE = re.compile(
    r"""
    \s*+(?:
        (?P<quoted>'(?:\\.|[^'\\])*+' | "(?:\\.|[^"\\])*+")(?=\s*+(?:[,\[\]{})]|$))
      | (?P<sign>[,\[\]{})] | (?:bool|choice|float|glob|int|interval|range|shuffle|sort|str|tag)\s*\()
      | (?P<text>(?:\$\{[^}]*+\} | \\. | \([^()]*+\) | [^,\[\]{}()\\] | \\$)++)
      | (?P<other>.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
"""Parts of a value: quoted text, what lists, sweeps and functions are written with, and text without quotes."""
INTERPOLATION = re.compile(r"\$\{[^}]*+\}")
ESCAPED = re.compile(r"\\([\\()\[\]{}:=, \t])")
ODD = re.compile(r"[^A-Za-z0-9_/\-\\+.$%*@?|:= \t]")
"""What text without quotes may not hold."""


def quoted(word: str) -> str:
    """A word of the command line as Hydra can read it; most are what they were."""
    key, equals, value = word.partition("=")
    return key + equals + PIECE.sub(_quoted_piece, value) if ODD.search(value) else word


def _quoted_piece(piece: re.Match[str]) -> str:
    text = piece["text"]
    if text is None or text[0] in "'\"" or not ODD.search(ESCAPED.sub("", INTERPOLATION.sub("", text))):
        return piece[0]
    return QuotedString(ESCAPED.sub(r"\1", text.strip()), Quote.single).with_quotes()
