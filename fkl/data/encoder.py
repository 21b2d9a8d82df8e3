"""From a table's cells to numbers: the codes of words, for encoding later rows in the same way."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line

if TYPE_CHECKING:
    from pandas import DataFrame

WORDS_SHOWN = 20
OTHER = "other"
"""The word that stands for all words that are not in a list, if it is in the list."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOOLEANS = {"true": 1.0, "false": 0.0}
"""Numbers of booleans that are written as text, in small letters; typed files and frames have the same."""


def with_point(cell: str, decimal: str) -> str:
    """A number as Python writes it; with ``decimal=comma`` a cell that has a point is no number afterwards."""
    return cell if decimal == "point" else cell.replace(".", "_").replace(",", ".")


def days(cell: object, date_format: str) -> float:
    """Days from 1970-01-01 to a date, hours as fractions of a day; NaN where the cell is no date in this format.

    A cell that is a date already needs no format.
    """
    try:
        if isinstance(cell, date):  # as those of pandas are, also its NaT
            moment = datetime.fromisoformat(cell.isoformat())
        else:
            moment = datetime.strptime(str(cell).strip(), date_format)
    except (ValueError, re.error):  # the latter of a format that names a part twice
        return float("nan")
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) / timedelta(days=1)


def codes(cells: Iterable[str], words: Sequence[str]) -> NDArray[np.float64]:
    """Places of cells in a list of words, compared in Unicode's form NFC.

    A cell that is not in the list has the place of the word ``other``, or NaN if the list has no such word.
    """
    code = {normalize("NFC", word): float(number) for number, word in enumerate(words)}
    other = code.get(OTHER, np.nan)
    return np.array([code.get(normalize("NFC", cell), other) for cell in cells], np.float64)


@dataclass(frozen=True)
class Encoder:
    """How columns of a table become features, and words of its target become numbers.

    Parameters
    ----------
    columns : tuple of str
        Columns that features are made of, in their order.
    words : mapping of str to tuple of str
        Words that each column of text was learned with, in the order of their codes.
    labels : tuple of str
        Words of the target in the order of their numbers 0, 1, ...; none where it is a number itself.
    one_hot : bool
        A feature a word, which is 1 where the row has it; else a column's words are numbered 0, 1, ... .
    fill : mapping of str to float
        What a missing cell of a column becomes, for a column of text the code of a word; where none is given there may
        be none.
    decimal : {"point", "comma"}
        How numbers that are text write decimals.
    dates : mapping of str to str
        Formats of columns of dates, which become days since 1970-01-01.
    """

    columns: tuple[str, ...]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    one_hot: bool = False
    fill: Mapping[str, float] = field(default_factory=dict)
    decimal: str = "point"
    dates: Mapping[str, str] = field(default_factory=dict)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that come out."""
        names: list[str] = []
        for column in self.columns:
            words = self.words.get(column, ()) if self.one_hot else ()
            names += [f"{column}={word}" for word in words] or [column]
        return tuple(names)

    def as_json(self) -> str:
        """All of it as text, for a file; what tables without decimal commas and dates have not is left out."""
        told = asdict(self)
        left_out = [name for name in ("decimal", "dates") if told[name] == getattr(Encoder(()), name)]
        return json.dumps({name: value for name, value in told.items() if name not in left_out})

    @classmethod
    def of_json(cls, text: str) -> "Encoder":
        """What `as_json` wrote."""
        told = json.loads(text)
        words = {column: tuple(words) for column, words in told["words"].items()}
        later = told.get("decimal", "point"), dict(told.get("dates", {}))
        return cls(tuple(told["columns"]), words, tuple(told["labels"]), told["one_hot"], told["fill"], *later)

    def x(self, frame: "DataFrame") -> NDArray[np.float64]:
        """Features (n, d) of rows, not scaled; columns that are not needed are passed over.

        Raises
        ------
        fkl.basics.errors.FklError
            If a column is not there, or a cell is no finite number or no word that was learned with.
        """
        parts = []
        for column, values in self._values(frame).items():
            words = self.words.get(column, ())
            bad = ~np.isfinite(values)
            if bad.any():
                row = int(bad.argmax())
                more = f" and {len(words) - WORDS_SHOWN} more" if len(words) > WORDS_SHOWN else ""
                written = f"a date as {self.dates[column]}" if column in self.dates else "a finite number"
                allowed = f"one of {', '.join(words[:WORDS_SHOWN])}{more}" if words else written
                cell = in_one_line(frame[column].iloc[row])
                raise FklError(f"row {row + 1}, column {in_one_line(column)}: {cell} must be {allowed}")
            one_hot = words and self.one_hot
            parts.append((values[:, None] == np.arange(len(words))).astype(np.float64) if one_hot else values[:, None])
        return np.concatenate(parts, axis=1)

    def readable(self, frame: "DataFrame") -> NDArray[np.bool_]:
        """Rows (n,) in which `x` can read every cell; raises if a column is not there."""
        return np.logical_and.reduce([np.isfinite(values) for values in self._values(frame).values()])

    def _values(self, frame: "DataFrame") -> dict[str, NDArray[np.float64]]:
        """By column its numbers or codes, NaN of cells that cannot be read."""
        lacking = [column for column in self.columns if column not in frame]
        if lacking:
            raise FklError(f"no column {in_one_line(lacking[0])}; needed are {in_one_line(', '.join(self.columns))}")
        twice = [column for column in self.columns if list(frame.columns).count(column) > 1]
        if twice:
            raise FklError(f"two columns are named {in_one_line(twice[0])}")
        from pandas import to_numeric
        from pandas.api.types import is_numeric_dtype

        found = {}
        for column in self.columns:
            cells, words, date_format = frame[column], self.words.get(column, ()), self.dates.get(column)
            if words:
                values = codes((str(cell).strip() for cell in cells), words)
            elif date_format:
                values = np.array([days(cell, date_format) for cell in cells], np.float64)
            else:
                if not is_numeric_dtype(cells):
                    cells = cells.map(self._number_of_text)
                values = to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
            found[column] = np.where(cells.isna(), self.fill.get(column, np.nan), values)
        return found

    def _number_of_text(self, cell: object) -> object:
        """A cell whose text, if it is text, is a number as Python writes it."""
        if not isinstance(cell, str):
            return cell
        return BOOLEANS.get(cell.strip().lower(), with_point(cell, self.decimal))
