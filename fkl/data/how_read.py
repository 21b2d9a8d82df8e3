"""How a file of the user's own is read: what training, predicting and each site of a federation share."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self

from fkl.basics.errors import BadValue, require

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
"""Signs by the words that a command line accepts for them; where two fit equally well, the earlier one wins."""
NO_DELIMITER = '"+-.\r\n\0'
HOLES = ("na", "nan", "?", "null")
"""Words of missing cells in text, in any case, unless others are given."""
DECIMALS = {"point": ".", "comma": ","}
THOUSANDS = {"comma": ",", "point": r"\.", "space": "[ \u00a0\u202f]", "apostrophe": "['\u2019]"}
"""Patterns of the sign between groups of three digits."""
SIGNS = re.compile(r"^([+-]?)\s*[$€£¥]\s*|\s*[$€£¥%‰]$")
"""Signs beside a number."""
LIKE_NUMBER = re.compile(
    r"[+-]?\s*[$€£¥]?\s*[+-]?(\d{1,3}([.,'’ \u00a0\u202f]\d{3})+|\d+)?(?<=\d)([.,]\d*)?([eE][+-]?\d+)?\s*[$€£¥%‰]?"
)
"""Cells that would be numbers with other keys, or without a sign."""


@dataclass(frozen=True)
class Reading:
    """How a file is read. A model keeps it, and reads new rows in the same way.

    Parameters
    ----------
    delimiter, header, decimal, thousands, encoding
        As in `fkl.data.table_file.TableFile`.
    hole : sequence of str or None
        Cells that are missing, beside empty ones; None for `HOLES` in text.
    """

    delimiter: str | None = None
    header: bool | None = None
    decimal: str = "point"
    thousands: str | None = None
    encoding: str | None = None
    hole: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        allowed = f"one of {', '.join(DELIMITERS)}, a single sign that is no part of a number, or null to find out"
        require(self.delimiter is None or _is_delimiter(self.delimiter), "delimiter", self.delimiter, allowed)
        require(self.decimal in DECIMALS, "decimal", self.decimal, "point or comma")
        comma = self.decimal == "comma" and self.delimiter in ("comma", ",")
        require(not comma, "decimal", self.decimal, "point where dataset.delimiter is a comma, too")
        others = [sign for sign in THOUSANDS if sign != self.decimal]
        require(self.thousands in (None, *others), "thousands", self.thousands, f"{', '.join(others)}, or null")
        known = self.encoding is None or _is_encoding(self.encoding)
        require(known, "encoding", self.encoding, "one of Python's encodings of text, as latin-1 or cp1252, or null")
        if self.hole is not None:
            fits = all(isinstance(marker, str | int | float | None) for marker in self.hole)
            require(fits, "hole", self.hole, "a list of words and numbers, as [N/A,-200], or null")
            words = tuple("null" if marker is None else str(marker).strip() for marker in self.hole)
            object.__setattr__(self, "hole", words)

    def as_plain(self) -> dict[str, Any]:
        """Keys that are not their default, for JSON."""
        return {key: value for key, value in asdict(self).items() if value != getattr(Reading, key)}

    @classmethod
    def of_plain(cls, told: Mapping[str, Any]) -> Self:
        """What `as_plain` made, also after JSON."""
        return cls(**told)

    def is_hole(self, cell: str) -> bool:
        """Whether a cell of text is missing."""
        if not cell or cell.lower() in self._words:
            return True
        return bool(self.numbers_missing) and self.number(cell) in self.numbers_missing

    @cached_property
    def numbers_missing(self) -> frozenset[float]:
        """Numbers that stand for missing cells, however they are written."""
        found = (_float(word) for word in self.hole or ())
        return frozenset(number for number in found if number is not None and number == number)

    @property
    def words_missing(self) -> list[str]:
        """Common spellings of words that stand for missing cells, and the empty one."""
        words = [word for word in self._words if _float(word) is None or word == "nan"]
        found = [
            spelt for word in words for spelt in (word, word.upper(), word.title(), "NaN" if word == "nan" else word)
        ]
        return ["", *found]

    def number(self, cell: str) -> float | None:
        """The number that a cell of text holds; None where it is no number."""
        if self.thousands is not None and self._groups.fullmatch(cell):
            cell = re.sub(THOUSANDS[self.thousands], "", cell)
        if self.decimal == "comma":
            cell = cell.replace(".", "_").replace(",", ".")  # a point is no part of a number here
        return _float(cell)

    def hint(self, cell: str) -> str:
        """What would make a number of a cell, or nothing."""
        read: dict[float, str] = {}
        for decimal in (self.decimal, *DECIMALS):
            for thousands in (self.thousands, None, *THOUSANDS):
                with suppress(BadValue):
                    number = (other := replace(self, decimal=decimal, thousands=thousands)).number(cell)
                    changed = [key for key in ("decimal", "thousands") if getattr(other, key) != getattr(self, key)]
                    if number is not None and math.isfinite(number) and changed:
                        read.setdefault(
                            number, " ".join(f"dataset.{key}={getattr(other, key) or 'null'}" for key in changed)
                        )
        if read:
            return ", ".join(f"{keys} reads it as {number:.12g}" for number, keys in read.items())
        bare = SIGNS.sub(r"\1", cell)
        return (
            "" if bare == cell or not LIKE_NUMBER.fullmatch(bare) else "take the signs beside numbers out of the file"
        )

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(HOLES if self.hole is None else (word.lower() for word in self.hole))

    @cached_property
    def _groups(self) -> re.Pattern[str]:
        sign, decimal = THOUSANDS[str(self.thousands)], re.escape(DECIMALS[self.decimal])
        return re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:{sign}\d{{3}})+(?:{decimal}\d*)?")


def _float(cell: str) -> float | None:
    if "_" in cell:  # Python reads 1_000 as a number, but it is a name
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _is_delimiter(sign: str) -> bool:
    """Whether cells may be set apart by this sign, or by the one that this word is for."""
    return sign in DELIMITERS or (len(sign) == 1 and not sign.isalnum() and sign not in NO_DELIMITER)


def _is_encoding(name: str) -> bool:
    try:
        b"a".decode(name)
    except (LookupError, ValueError) as error:
        return isinstance(error, UnicodeError)  # such as half a letter: the encoding is there
    return True
