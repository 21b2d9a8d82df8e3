"""How a user's file is read and how its cells become numbers; a model keeps both to read new rows."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BadValue, FklError, count_of, cut_text, in_one_line, require
from fkl.data.notation import MINUS, number_inside, plain_number

if TYPE_CHECKING:
    from pandas import DataFrame

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
"""Delimiters by their names on a command line; if two fit equally well, the earlier one is used."""
NO_DELIMITER = '"+-.\r\n\0'
HOLES = ("na", "nan", "?", "null")
"""Words that mark missing cells in text, in upper or lower case, unless the user gives others."""
DECIMALS = {"point": ".", "comma": ","}
THOUSANDS = {"comma": ",", "point": r"\.", "space": "[ \u00a0\u202f]", "apostrophe": "['\u2019]"}
"""Patterns of the sign between groups of three digits."""
WORDS_SHOWN = 20
NAME_SHOWN = 60
"""Letters of a column's name in a message."""
OTHER = "other"
"""This word in a list represents all words that are not in the list."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXACT = 2.0**53
"""Up to this number, float64 holds every integer exactly."""
WHOLE = re.compile(r"-?(?:0|[1-9]\d*)(?:\.0+)?")
"""A whole number, as a column of floats has it in a file."""
MIDNIGHT = " 00:00:00"
"""End of a typed date that has no time of the day."""
BOOLEANS = {"true": 1.0, "false": 0.0}
"""Numbers for booleans in text, in lower case; typed files and frames have the same numbers."""


@dataclass(frozen=True)
class FileFormat:
    """How a file is read. A model keeps it, and reads new rows in the same way.

    Parameters
    ----------
    delimiter, header, decimal, thousands, encoding
        As in `fkl.data.table_file.TableFile`.
    hole : sequence of str or None
        Cells that count as missing, in addition to empty ones; None for `HOLES` in text.
    skip : int
        Lines above the header that are no part of the table.
    of_file : str
        Name of the file whose keys these are in ``dataset.files``; empty for keys of all files. Messages need it.
    """

    delimiter: str | None = None
    header: bool | None = None
    decimal: str = "point"
    thousands: str | None = None
    encoding: str | None = None
    hole: Sequence[Any] | None = None
    skip: int = 0
    of_file: str = ""

    def __post_init__(self) -> None:
        # Check the keys one after another; each message says what is allowed
        allowed = f"one of {', '.join(DELIMITERS)}, a single character that no number contains, or null to detect it"
        require(self.delimiter is None or _is_delimiter(self.delimiter), "delimiter", self.delimiter, allowed)
        require(self.decimal in DECIMALS, "decimal", self.decimal, "point or comma")
        comma = self.decimal == "comma" and self.delimiter in ("comma", ",")
        require(not comma, "decimal", self.decimal, "point, because dataset.delimiter is a comma")
        others = [sign for sign in THOUSANDS if sign != self.decimal]
        require(self.thousands in (None, *others), "thousands", self.thousands, f"{', '.join(others)}, or null")
        known = self.encoding is None or _is_encoding(self.encoding)
        require(known, "encoding", self.encoding, "one of Python's text encodings, such as latin-1 or cp1252, or null")
        fits = type(self.header) is bool or self.header is None
        require(fits, "header", self.header, "true, false, or null to detect it")
        fits = type(self.skip) is int and self.skip >= 0
        require(fits, "skip", self.skip, "the number of lines above the header, 0 or more")
        # Markers as words, because cells are words
        if self.hole is not None:
            fits = all(isinstance(marker, str | int | float | None) for marker in self.hole)
            require(fits, "hole", self.hole, "a list of words and numbers, such as [N/A,-200], or null")
            markers = tuple("null" if marker is None else str(marker).strip() for marker in self.hole)
            object.__setattr__(self, "hole", markers)

    def as_plain(self) -> dict[str, Any]:
        """Keys that are not their default, for JSON."""
        return {key: getattr(self, key) for key in FORMAT_KEYS if getattr(self, key) != getattr(FileFormat, key)}

    def as_typed(self, **values: object) -> str:
        """Keys with these values as a command line has them: those of one file are in ``dataset.files``."""
        if self.of_file:
            keys = ",".join(f"{key}:{value}" for key, value in values.items())
            return f"dataset.files={{{in_brackets(self.of_file)}:{{{keys}}}}}"
        return " ".join(f"dataset.{key}={value}" for key, value in values.items())

    @classmethod
    def of_plain(cls, told: Mapping[str, Any]) -> Self:
        """The format again, from the keys that `as_plain` returned, also after JSON."""
        return cls(**told)

    def is_hole(self, cell: str) -> bool:
        """Whether a cell of text is missing."""
        if not cell or cell.lower() in self._words:
            return True
        return bool(self.numbers_missing) and self.number(cell) in self.numbers_missing

    @cached_property
    def numbers_missing(self) -> frozenset[float]:
        """Numbers that mark missing cells, in any notation."""
        found = (_finite_float(word) for word in self.hole or ())
        return frozenset(number for number in found if number is not None and number == number)

    @property
    def words_missing(self) -> list[str]:
        """Common spellings of words that mark missing cells, and the empty one."""
        markers = [word for word in self._words if _finite_float(word) is None or word == "nan"]
        spellings = [
            spelt for word in markers for spelt in (word, word.upper(), word.title(), "NaN" if word == "nan" else word)
        ]
        return ["", *spellings]

    def number(self, cell: str) -> float | None:
        """The number in a cell of text; None if it is not a number."""
        cell = cell.replace(MINUS, "-")
        if self.thousands is not None and self._groups.fullmatch(cell):
            cell = re.sub(THOUSANDS[self.thousands], "", cell)
        if self.decimal == "comma":
            cell = cell.replace(".", "_").replace(",", ".")  # numbers have no points here
        return _finite_float(cell)

    def advice_on_cell(self, cell: str) -> str:
        """Advice on a cell that is no number: keys with which it would be one, or how to write it; empty for a word."""
        # Try other signs: a number that becomes readable shows which key is wrong
        read: dict[float, str] = {}
        for decimal in (self.decimal, *DECIMALS):
            for thousands in (self.thousands, None, *THOUSANDS):
                with suppress(BadValue):
                    number = (other := replace(self, decimal=decimal, thousands=thousands)).number(cell)
                    changed = [key for key in ("decimal", "thousands") if getattr(other, key) != getattr(self, key)]
                    if number is not None and math.isfinite(number) and changed:
                        read.setdefault(
                            number, self.as_typed(**{key: getattr(other, key) or "null" for key in changed})
                        )
        if read:
            return ", ".join(f"{keys} reads it as {number:.12g}" for number, keys in read.items())
        # Otherwise show how to write the number that the cell contains
        if number_inside(cell) is None:
            return ""
        shown = plain_number(cell, DECIMALS[self.decimal])
        return f"write plain numbers, all in one unit, such as {shown} for this one"

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(HOLES if self.hole is None else (word.lower() for word in self.hole))

    @cached_property
    def _groups(self) -> re.Pattern[str]:
        sign, decimal = THOUSANDS[str(self.thousands)], re.escape(DECIMALS[self.decimal])
        return re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:{sign}\d{{3}})+(?:{decimal}\d*)?")


FORMAT_KEYS = tuple(one.name for one in fields(FileFormat) if one.name != "of_file")
"""Keys of a data set that are those of a `FileFormat`."""


def in_brackets(name: str) -> str:
    """A name or cell as a word in a list on a command line."""
    tidy = cut_text(name, NAME_SHOWN)
    return tidy if re.fullmatch(r"[\w./-]+", name) else json.dumps(tidy, ensure_ascii=False)


def _finite_float(cell: str) -> float | None:
    if "_" in cell:  # Python reads 1_000 as a number, but it is a name
        return None
    try:
        return float(cell) + 0.0  # no negative zero, which readers of integers do not know
    except ValueError:
        return None


def _is_delimiter(sign: str) -> bool:
    """Whether a word or a character can be a delimiter."""
    return sign in DELIMITERS or (len(sign) == 1 and not sign.isalnum() and sign not in NO_DELIMITER)


def _is_encoding(name: str) -> bool:
    try:
        b"a".decode(name)
    except (LookupError, ValueError) as error:
        return isinstance(error, UnicodeError)  # such as half a letter: the encoding exists
    return True


def word_of(cell: object) -> str:
    """A cell as a word, in Unicode's form NFC: a typed whole number is ``1``, never ``1.0``; a date at midnight a day.

    Text, typed files and data frames give the same word for the same cell.
    """
    if isinstance(cell, float | np.floating | Decimal) and abs(float(cell)) < EXACT and cell == int(cell):
        return str(int(cell))
    return normalize("NFC", str(cell).strip().removesuffix(MIDNIGHT if isinstance(cell, date) else "\0"))


def days_of_date(cell: object, date_format: str) -> float:
    """Days from 1970-01-01 to a date, hours as fractions of a day; NaN if the cell is not a date in this format.

    A cell that is a date already needs no format.
    """
    # A date of a typed file, or text in the format; NaN if it is none
    try:
        if isinstance(cell, date):  # including dates of pandas, and its NaT
            moment = datetime.fromisoformat(cell.isoformat())
        else:  # %f reads six digits of a second; nanoseconds have nine
            moment = datetime.strptime(re.sub(r"(\.\d{6})\d{1,3}(?!\d)", r"\1", str(cell).strip()), date_format)
    except (ValueError, re.error):  # the latter if a format names a part twice
        return float("nan")
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) / timedelta(days=1)


def codes_of_words(cells: Iterable[str], words: Sequence[str]) -> NDArray[np.float64]:
    """Indices of cells in a list of words, compared in Unicode's form NFC.

    A cell that is not in the list has the index of a word that is the same whole number, as 1.0 is 1; else of the word
    ``other``; else NaN.
    """
    # Words in one Unicode form; 3.0 and 3 are the same whole number
    code = {normalize("NFC", word): float(number) for number, word in enumerate(words)}
    whole = {whole_number(word): number for word, number in reversed(code.items())}
    other = code.get(OTHER, np.nan)
    cells_read = list(cells)
    # Each different cell once
    spelt = {cell: normalize("NFC", cell) for cell in dict.fromkeys(cells_read)}
    of = {cell: code.get(word, whole.get(whole_number(word), other)) for cell, word in spelt.items()}
    return np.array([of[cell] for cell in cells_read], np.float64)


def whole_number(word: str) -> str:
    """A word, where a file has 1.0 for a whole number ``1``."""
    return re.sub(r"(?<=\d)\.0+$", "", word) if WHOLE.fullmatch(word) else word


def require_learned_classes(
    y: NDArray[np.float64], training: NDArray[Any], label_of: Callable[[float], object], where: str = ""
) -> None:
    """Refuse a class that no training row has: it cannot be learned, and is often a label that is spelt otherwise.

    Parameters
    ----------
    y : (n,) float64
        The number of each row's class.
    training : (n,) bool, or (m,) int
        The training rows.
    label_of : callable
        The label of a class, by its number.
    where : str
        What the message begins with.
    """
    lacking = np.setdiff1d(y, y[training])
    if len(lacking):
        label, mend = in_one_line(label_of(float(lacking[0]))), "correct the label, or give training rows of its class"
        raise FklError(f"{where}no training row has the class {label!r}; {mend}")


@dataclass(frozen=True)
class Encoder:
    """How columns of a table become features, and words of its target become numbers.

    Parameters
    ----------
    columns : tuple of str
        Columns from which features are made, in their order.
    words : mapping of str to tuple of str
        Known words of each column of text, in the order of their codes.
    labels : tuple of str
        Words of the target in the order of their numbers 0, 1, ...; empty for a numeric target.
    one_hot : bool
        Whether each word is a feature, 1 in rows with the word; else a column's words are coded 0, 1, ... .
    fill : mapping of str to float
        Value of a column's missing cells, for a column of text the code of a word; columns without a value must have
        no missing cells.
    file_format : FileFormat
        How the file was read; new rows are read in the same way.
    dates : mapping of str to str
        Formats of columns of dates, which become days since 1970-01-01.
    new_words : tuple of str
        Columns in which a row may have a word that is not in `words`, with all of the column's features 0.
    """

    columns: tuple[str, ...]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    one_hot: bool = False
    fill: Mapping[str, float] = field(default_factory=dict)
    file_format: FileFormat = field(default_factory=FileFormat)
    dates: Mapping[str, str] = field(default_factory=dict)
    new_words: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the resulting features."""
        names: list[str] = []
        for column in self.columns:
            words = self.words.get(column, ()) if self.one_hot else ()
            names += [f"{column}={word}" for word in words] or [column]
        return tuple(names)

    def as_json(self) -> str:
        """The encoder as text, for a file, without entries that most tables do not have."""
        # Files of models call the format "reading"
        told = {"reading" if name == "file_format" else name: value for name, value in asdict(self).items()}
        told["reading"] = self.file_format.as_plain()
        left_out = [name for name in ("reading", "dates", "new_words") if not told[name]]
        return json.dumps({name: value for name, value in told.items() if name not in left_out})

    @classmethod
    def of_json(cls, text: str) -> "Encoder":
        """The encoder whose text `as_json` wrote."""
        values = json.loads(text)
        words = {column: tuple(words) for column, words in values["words"].items()}
        file_format = values.get(
            "reading", {"decimal": values.get("decimal", "point")}
        )  # older models have only the sign
        new = values.get("new_words", ())
        new = tuple(words) if new is True else tuple(new or ())  # older models have one fact for all columns of words
        later = FileFormat.of_plain(file_format), dict(values.get("dates", {})), new
        return cls(tuple(values["columns"]), words, tuple(values["labels"]), values["one_hot"], values["fill"], *later)

    def x(self, frame: "DataFrame") -> NDArray[np.float64]:
        """Features (n, d) of rows, not scaled; columns that are not needed are ignored.

        Raises
        ------
        fkl.basics.errors.FklError
            If a column is missing, or a cell is neither a finite number nor a known word.
        """
        # Numbers and codes of all columns; the first cell that is none is an error
        values_of = self._values_by_column(frame)
        for column, values in values_of.items():
            words = self.words.get(column, ())
            bad = ~np.isfinite(values)
            if bad.any():
                row = int(bad.argmax())
                more = f" and {len(words) - WORDS_SHOWN} more" if len(words) > WORDS_SHOWN else ""
                written = f"a date like {self.dates[column]}" if column in self.dates else "a finite number"
                allowed = f"one of {', '.join(words[:WORDS_SHOWN])}{more}" if words else written
                cell = "an empty cell" if frame[column].isna().iloc[row] else in_one_line(frame[column].iloc[row])
                raise FklError(f"row {row + 1}, column {in_one_line(column)}: {cell} must be {allowed}")
        return self.features(values_of)

    def features(self, found: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Features (n, d) of the numbers or codes (n,) of all columns."""
        # All features in one array, filled column by column
        rows = len(next(iter(found.values()), ()))
        x, begin = np.empty((rows, len(self.feature_names))), 0
        for column, values in found.items():
            words = self.words.get(column, ()) if self.one_hot else ()
            end = begin + (len(words) or 1)
            # Many words in many rows would fill the memory twice, if each column's features were an array of their own.
            for j in range(begin, end):
                x[:, j] = values == j - begin if words else values
            begin = end
        return x

    def passed_over(self, frame: "DataFrame") -> str:
        """A warning with the number of rows whose words no training row had; empty if no row has one."""
        # Rows with words that no training row had, by column
        new = {}
        for name, values in self._values_by_column(frame).items():
            words, cells = self.words.get(name, ()), frame[name]
            as_other = cells.notna() & (cells.map(word_of) != OTHER) & (OTHER in words)
            place = words.index(OTHER) if OTHER in words else len(words)
            if words and (rows := (values == place) & (as_other | (place == len(words)))).any():
                new[name] = rows.to_numpy()
        if not new:
            return ""
        # Show the first such row, and count all of them
        column, rows = next(iter(new.items()))
        row, count = int(rows.argmax()), int(np.logical_or.reduce([*new.values()]).sum())
        cell = f"row {row + 1}, column {in_one_line(column)}: {in_one_line(frame[column].iloc[row])}"
        means = f"which counts as {OTHER}" if OTHER in self.words[column] else "so all its features are 0"
        return f"{count_of(count, 'row')} with a word that no training row had, {means}; {cell}"

    def readable_rows(self, frame: "DataFrame") -> NDArray[np.bool_]:
        """Rows (n,) in which `x` can read every cell; raises an error if a column is missing."""
        return np.logical_and.reduce([np.isfinite(values) for values in self._values_by_column(frame).values()])

    def _values_by_column(self, frame: "DataFrame") -> dict[str, NDArray[np.float64]]:
        """Numbers or codes by column, NaN for cells that cannot be read."""
        # Every column is needed, and only once
        lacking = [column for column in self.columns if column not in frame]
        if lacking:
            raise FklError(f"no column {in_one_line(lacking[0])}; needed: {in_one_line(', '.join(self.columns))}")
        twice = [column for column in self.columns if list(frame.columns).count(column) > 1]
        if twice:
            raise FklError(f"two columns are named {in_one_line(twice[0])}")
        from pandas import to_numeric
        from pandas.api.types import is_numeric_dtype

        # Words become codes, dates become days, and the rest must be numbers
        values_of = {}
        for column in self.columns:
            cells, words, date_format = frame[column], self.words.get(column, ()), self.dates.get(column)
            if self.file_format.hole is not None:
                cells = cells.mask(cells.map(self._is_hole).astype(bool))
            if words:
                values = codes_of_words(map(word_of, cells), words)
                if column in self.new_words:
                    values[np.isnan(values)] = len(words)
            elif date_format:
                values = np.array([days_of_date(cell, date_format) for cell in cells], np.float64)
            else:
                numbers = cells if is_numeric_dtype(cells) else cells.map(self._number_of_text)
                values = to_numeric(numbers, errors="coerce").to_numpy(np.float64, na_value=np.nan)
            # A missing cell gets the column's fill, or NaN
            values_of[column] = np.where(cells.isna(), self.fill.get(column, np.nan), values)
        return values_of

    def _is_hole(self, cell: object) -> bool:
        """Whether a cell is one that the user declared to mark missing values."""
        return self.file_format.is_hole(cell) if isinstance(cell, str) else cell in self.file_format.numbers_missing

    def _number_of_text(self, cell: object) -> object:
        """The number in a cell of text; other cells are unchanged."""
        if not isinstance(cell, str):
            return cell
        return BOOLEANS.get(cell.strip().lower(), self.file_format.number(cell.strip()))


@dataclass(frozen=True)
class UserRows:
    """Rows of a user's table before words and means are taken from training rows.

    Parameters
    ----------
    values : (n, c) float64
        A column of text has the index of each cell's word in `encoder.words`; NaN will become a mean.
    y : (n,) float64
        Target.
    number : (n,) int64
        Number of each row in the file.
    encoder : Encoder
        Encoder with the words of all rows, and the values that the user gives for missing cells.
    listed : frozenset of str
        Columns whose words are the user's list, and not to be taken from training rows.
    means : bool
        Whether missing numbers become the mean of their column.
    """

    values: NDArray[np.float64]
    y: NDArray[np.float64]
    number: NDArray[np.int64]
    encoder: Encoder
    listed: frozenset[str] = frozenset()
    means: bool = False

    def of_rows(self, rows: NDArray[np.bool_]) -> "UserRows":
        """Some of the rows, with only their classes."""
        y, labels = self.y[rows], self.encoder.labels
        if labels:
            classes, place = np.unique(y, return_inverse=True)
            y, labels = place.astype(np.float64), tuple(labels[int(one)] for one in classes)
        encoder = replace(self.encoder, labels=labels)
        return replace(self, values=self.values[rows], y=y, number=self.number[rows], encoder=encoder)

    def new_words(self, rows: NDArray[np.bool_]) -> str:
        """A note about words that none of these rows has, where such words get no feature; empty if there are none."""
        # Words whose code no training row has
        new, first = np.zeros(len(self.y), np.bool_), ""
        for column, values in zip(self.encoder.columns, self.values.T, strict=True):
            if self.encoder.one_hot and column in self.encoder.words and column not in self.listed:
                there = ~np.isin(values, values[rows])
                if there.any() and not first:
                    word = self.encoder.words[column][int(values[there.argmax()])]
                    first = f"{in_one_line(word)!r} in column {cut_text(column, NAME_SHOWN)}"
                new |= there
        if not first:
            return ""
        unknown = count_of(int(new.sum()), "test row")
        return f"{unknown} with a word that no training row has, which gets no feature: {first}"

    def encoded_by(self, encoder: Encoder, where: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Features (n, d) and targets (n,) of all rows, with the words, classes and fill values of another encoder.

        Raises
        ------
        fkl.basics.errors.FklError
            If columns differ, or a word or class is not one of the encoder's.
        """
        mine = self.encoder
        if (
            mine.columns != encoder.columns
            or {*mine.words} != {*encoder.words}
            or bool(mine.labels) != bool(encoder.labels)
        ):
            raise FklError(f"{where}: its columns, or those of words, are not those of the run that like names")
        values_of = {}
        for column, values in zip(mine.columns, self.values.T, strict=True):
            known = encoder.words.get(column, ())
            if known:
                code = codes_of_words(mine.words[column], known)
                code[np.isnan(code)] = len(known) if column in encoder.new_words else np.nan
                values = code[values.astype(np.int64)]
                if np.isnan(values).any():
                    word = in_one_line(
                        mine.words[column][int(self.values[:, mine.columns.index(column)][np.isnan(values)][0])]
                    )
                    allowed = f"the run that like names knows only {in_one_line(', '.join(known[:WORDS_SHOWN]))}"
                    raise FklError(f"{where}, column {cut_text(column, NAME_SHOWN)}: {word!r} is new; {allowed}")
            elif column in encoder.fill:
                values = np.where(np.isnan(values), encoder.fill[column], values)
            values_of[column] = values
        if not mine.labels:
            return encoder.features(values_of), self.y
        number = codes_of_words(mine.labels, encoder.labels)
        if np.isnan(number).any():
            label = in_one_line(mine.labels[int(np.isnan(number).argmax())])
            raise FklError(f"{where}: the class {label!r} is new; the run that like names does not know it")
        return encoder.features(values_of), number[self.y.astype(np.int64)]

    def learned(self, rows: NDArray[np.bool_], where: str) -> tuple[Encoder, NDArray[np.float64]]:
        """An encoder with the words and means of these rows only, and the features (n, d) of all rows.

        Raises
        ------
        fkl.basics.errors.FklError
            If a column has no number in these rows, or a row has a word without a code or a class that they lack.
        """
        # A class that no training row has cannot be learned
        if self.encoder.labels:
            require_learned_classes(self.y, rows, lambda number: self.encoder.labels[int(number)], f"{where}: ")
        if not self.encoder.words and not self.means:
            return self.encoder, self.values
        # Words count in the order of the file, which may differ from that of the rows
        in_file = np.flatnonzero(rows)[np.argsort(self.number[rows])]
        words, fill, values_of = dict(self.encoder.words), dict(self.encoder.fill), {}
        new_words = tuple(column for column in words if self.encoder.one_hot and column not in self.listed)
        encoder = replace(self.encoder, words=words, fill=fill, new_words=new_words)
        # Codes of training rows' words only; with one_hot, a new word has no feature
        for column, values in zip(encoder.columns, self.values.T, strict=True):
            place = f"{where}, column {cut_text(column, NAME_SHOWN)}"
            if column in words and column not in self.listed:
                codes_found, first = np.unique(values[in_file], return_index=True)
                places = codes_found[np.argsort(first)].astype(np.int64)  # in the order in which they first appear
                code = np.full(len(words[column]), len(places) if encoder.one_hot else np.nan)
                code[places] = np.arange(len(places))
                coded = code[values.astype(np.int64)]
                if np.isnan(coded).any():
                    word = in_one_line(words[column][int(values[np.isnan(coded).argmax()])])
                    mend = "dataset.text=one_hot gives it no feature, dataset.words lists all words"
                    raise FklError(f"{place}: no training row has the word {word!r}; {mend}")
                # The fill is a code too, and must be a known word
                if column in fill and np.isfinite(given := float(code[int(fill[column])])):
                    fill[column] = given
                elif column in fill:  # no training row has the word, so a new row with a missing cell is refused
                    del fill[column]
                words[column] = tuple(words[column][known] for known in places)
                values = coded
            # A missing number becomes the mean of the training rows
            elif self.means and column not in fill and column not in words:
                known = values[rows & ~np.isnan(values)]
                if not len(known):
                    raise FklError(f"{place}: no training row has a value, so there is no mean")
                fill[column] = float(known.mean())
                values = np.where(np.isnan(values), fill[column], values)
            values_of[column] = values
        return encoder, encoder.features(values_of)
