"""A table of the user's own: CSV, Parquet, Feather or npz."""

import hashlib
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BadValue, FklError, require
from fkl.data import csv_file, own_file, typed_file
from fkl.data.columns import Column, Columns, listed, short
from fkl.data.csv_file import DELIMITERS, require_rows
from fkl.data.encoder import Encoder
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store

INTEGER = re.compile(r"[+-]?\d+")
EXACT = 2.0**53
"""Up to here float64 holds every integer."""
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
TEXTS = ("refuse", "drop", "code", "one_hot")


@dataclass(frozen=True)
class TableFile:
    """A file with one row a sample: text in UTF-8, plain or compressed (.xz, .gz, .bz2), or .parquet, .feather, .npz.

    All columns but those that are named here are features. In text empty cells, NA, NaN, ? and null, in any case, are
    missing, and a column is text when its first cell that is not missing is no number; from then on a column of numbers
    holds numbers only. An npz holds arrays: of one axis a column each; one of two axes named x is columns x1, x2, ...

    Parameters
    ----------
    path : str
        The file.
    target : str
        Name of the target's column; in text without a header its number, counted from 1.
    site : str or None
        Column that says where a row comes from: clients of partition=sites. Not a feature.
    time : str or None
        Column of numbers or dates that says when a row comes; rows are taken in its order, else in the file's. Not a
        feature.
    test_path : str or None
        A second file of the same columns, whose rows are tested on and never learned from.
    delimiter : str or None
        Sign between cells of text, or comma, semicolon, tab, pipe or space; None to find out which of these five.
        Several spaces count as one.
    header : bool or None
        Whether the first line of text holds names; None to find out: it does unless all its cells are numbers or
        missing.
    missing : {"refuse", "drop", "mean"}
        What becomes of rows with missing cells: an error, left out, or the mean of the column's other cells put in.
        A missing target, site or time is never made up: ``mean`` leaves its row out.
    text : {"refuse", "drop", "code", "one_hot"}
        What becomes of feature columns of text: an error, left out, their words coded 0, 1, ... in the order in which
        they first appear in the rows used, or a feature for each word, 1 where a row has it.
    labels : {"refuse", "code"}
        What becomes of a target of text: an error, or its words, sorted, are the classes 0, 1, ... .
    """

    name: ClassVar[str] = "file"
    title: ClassVar[str] = "a table of your own: dataset.path=FILE dataset.target=COLUMN"
    files: ClassVar[tuple[DataFile, ...]] = ()
    licence: ClassVar[str] = "your own"
    shape: ClassVar[str] = "any"

    path: str = ""
    target: str = ""
    site: str | None = None
    time: str | None = None
    test_path: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    missing: str = "refuse"
    text: str = "refuse"
    labels: str = "refuse"

    def __post_init__(self) -> None:
        allowed = f"one of {', '.join(DELIMITERS)}, a single sign that is no part of a number, or null to find out"
        fits = self.delimiter is None or csv_file.is_delimiter(self.delimiter)
        require(fits, "delimiter", self.delimiter, allowed)
        require(self.missing in ("refuse", "drop", "mean"), "missing", self.missing, "refuse, drop or mean")
        require(self.text in TEXTS, "text", self.text, "refuse, drop, code or one_hot")
        require(self.labels in ("refuse", "code"), "labels", self.labels, "refuse or code")
        for key in ("site", "time"):
            named = getattr(self, key)
            require(named is None or named != self.target, key, named, "a column beside the target, or null")
        require(self.site is None or self.site != self.time, "time", self.time, "another column than site, or null")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the file as it lies, and of that with rows to be tested on: a run with changed files is another.

        Taken once: a run's digest stays what it was when the run began.

        Raises
        ------
        FklError
            If there is no such file, or it cannot be read.
        """
        return " ".join(self._fingerprints.values())

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        found = {}
        for key in ("path", "test_path"):
            path = getattr(self, key)
            if path is not None:
                try:
                    found[path] = hashlib.sha256(own_file.read(path)).hexdigest()
                except BadValue as error:
                    raise BadValue(key, error.value, error.allowed) from None
        return found

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; neither argument is used.

        Returns
        -------
        Table
            Features in the order of the file's columns; in text without a header they are named by their numbers.

        Raises
        ------
        FklError
            For whatever the file has that it should not; names the file, and line or row and column where there are
            any.
        """
        file = self._read(self.path)
        count = file.rows
        if self.test_path is not None:
            file = file.followed_by(self._read(self.test_path))
        for name, key in self._columns_beside_features.items():
            allowed = f"a column of {self.path}, which has {listed(list(file.by_name))}"
            require(name in file.by_name, key, name, allowed)
        columns = dict(file.by_name)
        words = {name for name, column in columns.items() if self._is_text(name, column, file)}
        if self.text == "drop":
            columns = {
                name: column
                for name, column in columns.items()
                if name not in words or name in self._columns_beside_features
            }
        features = tuple(name for name in columns if name not in self._columns_beside_features)
        if not features:
            raise FklError(f"{self.path}: no column is left beside the target {short(self.target)}")
        keep = self._complete_rows(columns, file)
        rows = np.flatnonzero(keep)
        if self.time is not None:
            rows = rows[np.argsort(self._times_of_rows(columns[self.time], file)[keep], kind="stable")]
        parts, fill, learned = [], {}, {}
        for name in features:
            column = columns[name]
            if name in words:
                learned[name] = tuple(dict.fromkeys(column.words(keep)))
                if (column.holes & keep).any():
                    drop = "dataset.missing=drop leaves such rows out"
                    raise FklError(
                        f"{self.path}, column {short(name)}: cells are missing, and words have no mean; {drop}"
                    )
                codes = _codes_of_words(column, rows, learned[name])
                parts += [codes == i for i in range(len(learned[name]))] if self.text == "one_hot" else [codes]
                continue
            values = self._numbers_of_column(name, column, file)[rows]
            if self.missing == "mean":
                holes = np.isnan(values)
                if holes.all():
                    raise FklError(f"{self.path}, column {short(name)}: all cells are missing, so there is no mean")
                fill[name] = float(values[~holes].mean())
                values[holes] = fill[name]
            parts.append(values)
        column = columns[self.target]
        if column.text:  # its words are classes
            labels = tuple(sorted(set(column.words(keep))))
            y = _codes_of_words(column, rows, labels)
        else:
            labels, y = (), self._numbers_of_column(self.target, column, file)[rows]
        encoder = Encoder(features, learned, labels, self.text == "one_hot", fill)
        table = Table.of_one_site(np.column_stack(parts).astype(np.float64), y, encoder.feature_names, self.path)
        tested = None if self.test_path is None else rows >= count
        table = replace(table, encoder=encoder, tested=tested)
        if self.site is None:
            return table
        column = columns[self.site]
        names = tuple(dict.fromkeys(column.words(keep)))  # sites in the order in which they first appear
        return replace(table, site=_codes_of_words(column, rows, names).astype(np.int64), site_names=names)

    @property
    def _columns_beside_features(self) -> dict[str, str]:
        """Key of each column that is no feature."""
        named = {getattr(self, key): key for key in ("time", "site", "target")}
        return {column: key for column, key in named.items() if column is not None}

    def _read(self, path: str) -> Columns:
        raw = own_file.read(path)
        if hashlib.sha256(raw).hexdigest() != self._fingerprints[path]:
            raise FklError(f"{path}: has changed since this run began; start it again")
        if Path(path).suffix.lower() not in typed_file.FORMATS:
            return csv_file.read(path, raw, self.delimiter, self.header)
        columns = typed_file.read(path, raw)
        require_rows(path, columns.rows, "rows")
        return columns

    def _is_text(self, name: str, column: Column, file: Columns) -> bool:
        """Whether a column holds words, refusing those that cannot be."""
        if not column.text or self._columns_beside_features.get(name) in ("site", "time"):
            return False
        first = column.word(column.first)
        where = f"{file.place(column.first)}, column {short(name)}: {short(first)!r} is not a number"
        if DECIMAL_COMMA.fullmatch(first):  # coded as a word, it would be a silent error
            raise FklError(f"{where}; decimals are written with a point")
        if name == self.target:
            if self.labels == "refuse":
                raise FklError(f"{where}, and the target must be one; dataset.labels=code makes classes of its words")
        elif self.text == "refuse":
            raise FklError(
                f"{where}; dataset.text=drop leaves columns of text out, dataset.text=code numbers their words, "
                "dataset.text=one_hot makes a feature of each"
            )
        return True

    def _complete_rows(self, columns: dict[str, Column], file: Columns) -> NDArray[np.bool_]:
        """Rows that are used."""
        holed = np.any([column.holes for column in columns.values()], axis=0)
        if self.missing == "refuse" and holed.any():
            row = int(holed.argmax())
            name, column = next((name, column) for name, column in columns.items() if column.holes[row])
            use = "dataset.missing=drop leaves such rows out"
            if name not in self._columns_beside_features:
                use += ", dataset.missing=mean puts the column's mean in"
            cell = f"{file.place(row)}, column {short(name)}: {column.word(row)!r}"
            raise FklError(f"{cell} is missing; {use}")
        if self.missing == "mean":
            holed = np.any([columns[name].holes for name in self._columns_beside_features], axis=0)
        what = "target" if self.missing == "mean" else "cell"
        require_rows(self.path, int((~holed).sum()), f"rows without a missing {what}")
        return ~holed

    def _numbers_of_column(self, name: str, column: Column, file: Columns) -> NDArray[np.float64]:
        """Values of a column, NaN where missing."""
        bad = ~column.holes & ~np.isfinite(column.numbers)
        if bad.any():
            row = int(bad.argmax())
            cell = short(column.word(row))
            raise FklError(f"{file.place(row)}, column {short(name)}: {cell!r} is not a finite number")
        # Refuse an integer that float64 would round, except for times, whose order alone counts.
        large = np.flatnonzero(np.abs(column.numbers) > EXACT).tolist() if name != self.time else []
        for row in large:
            cell = column.word(row)
            if INTEGER.fullmatch(cell) and int(cell) != int(column.numbers[row]):
                where = f"{file.place(row)}, column {short(name)}"
                rounded = f"an integer above 2^53, which would be rounded to {int(column.numbers[row])}"
                raise FklError(f"{where}: {short(cell)} is {rounded}; subtract a constant, or leave the column out")
        return column.numbers

    def _times_of_rows(self, column: Column, file: Columns) -> NDArray[np.float64]:
        """When each row comes; NaN where it is missing."""
        from pandas import to_datetime

        if not column.text:
            return self._numbers_of_column(str(self.time), column, file)
        there = np.flatnonzero(~column.holes)
        dates = to_datetime([column.word(row) for row in there.tolist()], format="ISO8601", errors="coerce", utc=True)
        if dates.isna().any():
            row = int(there[dates.isna().argmax()])
            where = f"{file.place(row)}, column {short(str(self.time))}: {short(column.word(row))!r}"
            raise FklError(f"{where} is no time; must be a number, or a date like 2024-01-31 or 2024-01-31 12:30")
        times = np.full(len(column.holes), np.nan)
        times[there] = dates.as_unit("us").asi8
        return times


def _codes_of_words(column: Column, rows: NDArray[np.int64], words: tuple[str, ...]) -> NDArray[np.float64]:
    """Numbers of a column's words in these rows."""
    code = {word: float(number) for number, word in enumerate(words)}
    return np.array([code[column.word(row)] for row in rows.tolist()])
