"""Words of a command line, KEY=VALUE, in Hydra's grammar; most are simple and do not need an import of Hydra."""

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import yaml

from fkl.basics.errors import LETTERS_SHOWN, FklError, in_one_line

LONGEST = 8192
"""Maximum length of a word; Hydra's parser takes seconds for longer ones."""
PLAIN = re.compile(
    r"""
    (?P<sign>\+{0,2})
    (?P<key>[a-z_]\w*(?:\.[a-z_]\w*)* | [a-z_]\w*(?:/[a-z_]\w*)+)=
    (?:
        (?P<text>(?!(?:true|false|null|nan|inf)$)[a-z_][\w./-]*)
      | (?P<int>[+-]?(?:0|[1-9]\d{0,17}))
      | (?P<float>[+-]?(?:0|[1-9]\d*)(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+))
    )
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""Words that can be parsed without Hydra: names, paths and numbers."""
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
"""Parts of a value: quoted text, the characters of lists, sweeps and functions, and text without quotes."""
INTERPOLATION = re.compile(r"\$\{[^}]*+\}")
ESCAPED = re.compile(r"\\([\\()\[\]{}:=, \t])")
AROUND = re.compile(r"^[ \t]+|(?<!\\)[ \t]+$")
TAKEN = frozenset("=[]{}")
"""Characters of lists, mappings and keys, which text has only in quotes."""
KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w.]*(/\w+)*")
ODD = re.compile(r"[^A-Za-z0-9_/\-\\+.$%*@?|:= \t]")
"""Characters that text without quotes must not contain."""


class Word(NamedTuple):
    """One word.

    Parameters
    ----------
    sign : {"", "+", "++", "~"}
        Change, add, change or add, remove.
    key : str
        Key of the configuration, or a group.
    value : object
    text : str
        The word as the user wrote it.
    """

    sign: str
    key: str
    value: Any
    text: str


def read_words(words: Iterable[str]) -> list[Word]:
    """Read words that each have one value.

    Raises
    ------
    fkl.basics.errors.FklError
        If one cannot be parsed, or has several values, as in a sweep.
    """
    read = []
    for word in words:
        match = PLAIN.fullmatch(word) if len(word) <= LONGEST else None
        if match is not None:
            kind = str(match.lastgroup)
            make = {"text": str, "int": int, "float": float}[kind]
            read.append(Word(match["sign"], match["key"], make(match[kind]), word))
            continue
        [override] = parsed([word])
        if not override.key_or_group:
            raise _not_understood(word)
        if override.package is not None:
            raise FklError(f"{word}: a group is named without @")
        if override.is_sweep_override():
            several = "several values are for fkl run -m, a run for each; a list is written [1,2], text '\"a,b\"'"
            raise FklError(f"{in_one_line(word)}: {several}")
        sign = override.get_key_element().removesuffix(override.key_or_group)
        read.append(Word(sign, override.key_or_group, override.value(), word))
    return read


def each_value(word: str, names: Callable[[str], list[str]]) -> list[str]:
    """One word for each value of a swept word; `names` returns a group's choices, for glob(*)."""
    from hydra.core.override_parser.types import Glob

    [override] = parsed([word])
    if not override.is_sweep_override():
        return [word]
    glob = override.value()
    values = glob.filter(names(override.key_or_group)) if isinstance(glob, Glob) else override.sweep_string_iterator()
    return [f"{override.get_key_element()}={value}" for value in values]


def parsed(words: Iterable[str]) -> list[Any]:
    """Words parsed by Hydra.

    Raises
    ------
    fkl.basics.errors.FklError
        If one cannot be parsed.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    found = []
    for word in words:
        if len(word) > LONGEST:
            many = "numbers in a row are written range(FIRST,END), and other long lists are given in parts"
            raise FklError(f"{in_one_line(word)}: longer than {LONGEST} letters; {many}")
        try:
            found += parser.parse_overrides([quoted(word)])
        except (HydraException, RecursionError):
            key, _, value = word.partition("=")
            if (named := _with_quoted_names(value)) is None:
                raise _not_understood(word) from None
            [override] = parsed([f"{key}=null"])
            found.append(replace(override, _value=named, input_line=word))
        except ValueError as error:  # a number of 5000 digits
            raise FklError(f"{in_one_line(word)}: {error}") from None
    return found


def _with_quoted_names(value: str) -> dict[str, Any] | None:
    """Names in quotes with values, {"CO(GT)":3}, which Hydra cannot parse; None for anything else."""
    try:
        found = yaml.safe_load(value) if value.startswith("{") and '"' in value else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and None not in found.values() else None


def _not_understood(word: str) -> FklError:
    """The error about a word, with its value in quotes if it may be meant as text."""
    key, _, value = word.partition("=")
    may_be = ""
    if value.startswith("{") and ":" in value:
        may_be = """, with names of other signs in double quotes, as 'dataset.fill={"CO(GT)":3}'"""
    elif set(value) & TAKEN and KEY.fullmatch(key):
        from hydra.core.override_parser.types import Quote, QuotedString

        in_quotes = shlex.quote(QuotedString(value, Quote.double).with_quotes())
        may_be = f", or {key}={in_quotes} if it is text" if len(word) <= LETTERS_SHOWN else ""
    return FklError(f"{in_one_line(word)}: not understood; write KEY=VALUE{may_be}")


def quoted(word: str) -> str:
    """A word in a form that Hydra can parse: the user does not need to quote ``out=größe``. Most do not change."""
    key, equals, value = word.partition("=")
    return key + equals + PIECE.sub(_quoted_piece, value) if ODD.search(value) else word


def _quoted_piece(piece: re.Match[str]) -> str:
    from hydra.core.override_parser.types import Quote, QuotedString

    text = piece["text"]
    if text is None or text[0] in "'\"" or not ODD.search(ESCAPED.sub("", INTERPOLATION.sub("", text))):
        return piece[0]
    return QuotedString(ESCAPED.sub(r"\1", AROUND.sub("", text)), Quote.single).with_quotes()
