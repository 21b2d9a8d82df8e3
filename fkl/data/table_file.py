"""A user's table: CSV, Parquet, Feather, npz or an Excel workbook.

For example, a CSV file with 100 rows and the columns age (numbers), city (3 different words) and income (the target).
With text=one_hot, `TableFile.load` returns a `Table` with the features age, city=Bonn, city=Jena, city=Ulm. Its steps:

1. `read_file` parses each file to `FileColumns`, or finds them in the store's cache; `with_used_columns` omits columns
   that keys drop, and `with_dates` converts dates to days. Files of a pattern then follow one another in one
   `FileColumns`.
2. `is_of_words` decides for each column whether it has words or numbers, and refuses words that no key allows.
3. `_complete_rows` chooses the rows without missing cells; a column of times sorts them.
4. Each feature becomes an array (rows,): numbers, or codes 0, 1, 2 of its words. An `Encoder` remembers the words.
5. The target, the sites and the test rows follow, and notes about what a user may have overlooked.

All faults are errors of one line, with the file, the row and the column, and with the key that would allow the cell.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BadValue, FklError, count_of, require
from fkl.basics.keys import Keys, key, require_words
from fkl.basics.memory import shown_bytes
from fkl.data import csv_file, own_file, parsed_tables, typed_file
from fkl.data.columns import CodedCells, FileColumn, FileColumns, Place, cut_cell, list_names
from fkl.data.csv_file import require_rows
from fkl.data.encoder import (
    DECIMALS,
    EPOCH,
    EXACT,
    FORMAT_KEYS,
    OTHER,
    THOUSANDS,
    WORDS_SHOWN,
    Encoder,
    FileFormat,
    UserRows,
    days_of_date,
    in_brackets,
    word_of,
)
from fkl.data.libsvm import LABEL
from fkl.data.problem import Incomplete, Table
from fkl.data.sites_apart import sites_apart
from fkl.data.store import OPENERS, DataFile, Store
from fkl.screen.messages import print_note

INTEGER = re.compile(r"[+-]?\d+")
PER_FEATURE = 10
"""Bytes of memory that one feature of a word takes in one row."""
LONGEST_NAME = 60
MANY_ROWS = 10
"""With at least this many rows, a different word in each row is no coincidence."""
WHOLE_DAY = "%Y-%m-%d"
ROWS_LOOKED_AT = 50
"""Number of rows by which a column of dates is recognised."""
PATTERN = re.compile(r"[*?[]")
MOST_COMPARED = 2000
"""Most columns times sites that a run compares; `fkl data describe` compares all."""
LONGEST_ID = 1e21
"""Numbers from here on have more digits than ids."""
MICROSECONDS_OF_DAY = 86_400e6
ROUNDED = "numbers above 2^53, so ids that were saved like this have lost their last digits"
TEXTS = ("refuse", "drop", "code", "one_hot")


@dataclass(frozen=True)
class TableFile(Keys):
    """A file with one row per sample: text, plain or compressed (.xz, .gz, .bz2), or .parquet, .feather, .npz.

    All columns that no key names are features. A column is numeric if half of its cells, or most of its distinct
    cells, are numbers; its other cells are refused. A column with integers of three digits or more and a leading 0,
    such as ids, holds words. A column of only true and false, in upper or lower case, holds the numbers 1 and 0. Words
    that differ only in Unicode's form, NFC or NFD, are the same word. The name of a nameless column is its number; it
    is dropped if all its cells are empty. Text in LIBSVM's format has a column for each index, which is its name; an
    index that a file lacks is a column of zeros. In an npz, an array with one axis is a column, and an array x with
    two axes is the columns x1, x2, ...
    """

    title: ClassVar[str] = "a table of your own: dataset.path=FILE dataset.target=COLUMN"
    data_files: ClassVar[tuple[DataFile, ...]] = ()
    licence: ClassVar[str] = "your own"
    shape: ClassVar[str] = "any"

    path: str = key(
        "",
        "The file, or a pattern of several files, such as ``sites/*.csv``. Each file of a pattern is a site, named "
        "after the file without its suffix; files are sorted by name. All must have the same columns; the first "
        "file sets their order.",
    )
    target: str = key(
        "",
        "Name of the target's column; in text without a header its number, counted from 1. Omit it for a file in "
        "LIBSVM's format, whose target is ``label``.",
    )
    site: str | None = key(
        None,
        "Column with the site of each row; sites are the clients of partition=sites. Not a feature.",
        must="a column other than the target, or null",
    )
    time: str | list[str] | None = key(
        None,
        "Column of numbers or dates with the time of each row, or several columns that give it together, such as "
        "[date, hour]. Rows are used in this order, otherwise in the file's. Not a feature.",
        must="the name of a column, a list of several, or null",
    )
    test_path: str | None = key(
        None, "A second file with the same columns; its rows are test rows and never used for training."
    )
    delimiter: str | None = key(
        None,
        "Delimiter in text: a character, or comma, semicolon, tab, pipe or space; None to detect which of these "
        "five. Several spaces count as one.",
    )
    header: bool | None = key(
        None,
        "Whether the first line of text has names; None to detect it: it has names unless all its cells are "
        "numbers or missing.",
    )
    decimal: str = key(
        "point",
        "Decimal sign in text. ``comma`` needs another delimiter, and refuses numbers with a point.",
        choices=DECIMALS,
    )
    thousands: str | None = key(
        None, "Sign between groups of three digits, as in 6,733,000; None for no such sign.", choices=THOUSANDS
    )
    encoding: str | None = key(
        None, "Encoding of text, such as ``latin-1``; None for UTF-8, and for UTF-16 with its byte order mark."
    )
    hole: list[str | float | None] | None = key(
        None,
        "Words and numbers that mark missing cells, in addition to empty ones; None for NA, NaN, ? and null, in "
        "text only. A list replaces these: with ``[]``, NA is a word. A number matches all ways to write it.",
    )
    date_format: str | dict[str, str | None] | None = key(
        None,
        "Format of dates in Python's codes, such as ``%d.%m.%Y``, or a format for each column. A feature of dates "
        "becomes days since 1970-01-01, with hours as fractions of a day; a month, ``%Y-%m``, is its first day. A "
        "single format applies to all text columns whose first cells are mostly such dates, and to `time`, whose "
        "columns are joined by spaces. Without a format, `time` is written as 2024-01-31 or 2024-01-31 12:30. "
        "Dates that have a date type in a Parquet file, a Feather file or an Excel workbook need no format.",
    )
    drop: list[str] | None = key(None, "Columns to drop. They need not be in every file.")
    missing: str = key(
        "refuse",
        "Treatment of rows with missing cells: an error, dropping them, or filling in the mean of the column's "
        "training rows. A missing target, site or time is never filled in: ``mean`` drops its row.",
        choices=("refuse", "drop", "mean"),
    )
    fill: dict[str, str | float] | None = key(
        None,
        "By column, a value for its missing cells: a number, days for a date, or for a column of text a word. "
        "`missing` treats all other columns.",
    )
    skip: int = key(0, "Number of lines above the header, or of rows of a sheet, that are no part of the table.")
    files: dict[str, Any] | None = key(
        None,
        "Keys for one file of several, by its name: ``{aalen.csv: {decimal: comma, header: false}}``. Allowed are "
        "delimiter, header, decimal, thousands, encoding, hole, skip and date_format. A file without a header has "
        "the columns of the first file that has names, in its order.",
    )
    text: str = key(
        "refuse",
        "Treatment of feature columns of text: an error, dropping them, coding their words as 0, 1, ... in the order "
        "of first appearance in training rows, or a feature for each word, which is 1 in rows with the word.",
        choices=TEXTS,
    )
    words: dict[str, list[str] | None] | None = key(
        None,
        "By column, a list of its words in the order of their codes or features. A word that is not in the list is "
        "refused, unless the list has the word ``other``: then it counts as that. Null instead of a list takes all "
        "cells as words, and lists those of the training rows. If one column of text is named here, all must be.",
    )
    labels: str = key(
        "refuse",
        "Treatment of a target of text: an error, or its sorted words become the classes 0, 1, ... .",
        choices=("refuse", "code"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Keys of reading, such as the delimiter, are checked where they are used
        _ = self.file_format  # refuses wrong values of its keys
        # Columns with tasks other than features must differ from one another
        several = self.time if isinstance(self.time, list) else [self.time or ""]
        fits = bool(several) and all(isinstance(one, str | int) for one in several)
        self.require(fits, "time")
        self.require(self.site is None or self.site != self.target, "site")
        require(self.target not in self.times, "time", self.time, "a column other than the target, or null")
        require(self.site not in self.times, "time", self.site, "another column than site, or null")
        # Each date format must write and read back a date; the parts of a time in several columns cannot be tested
        # alone
        written = "a format of days or months in Python's codes, for example %d.%m.%Y or %Y-%m-%d %H:%M, or null"
        formats = self.date_format if isinstance(self.date_format, dict) else {"": self.date_format}
        for name, one in formats.items():
            place, part = (
                f".date_format.{name}" if name else "date_format",
                name in self.times and len(self.times) > 1,
            )
            fits = one is None or (isinstance(one, str) and (part or _is_format(one)))
            require(fits, place, one, written)
            require(not name or name not in (self.site, self.target), place, one, "a column other than target or site")
        # Keys for features must not name the target, the site or the time
        for one in ("drop", "fill", "words"):
            named = [name for name in getattr(self, one) or () if name in self.columns_beside_features]
            require(not named, one, ", ".join(named), "columns other than target, site and time")
        # Values of `fill` and lists of `words`
        for name, value in (self.fill or {}).items():
            fits = isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))
            require(fits, f".fill.{name}", value, "a finite number, or a word of a column of text")
        for name, words in (self.words or {}).items():
            distinct = words is None or len({normalize("NFC", word) for word in words}) == len(words) > 0
            require(distinct, f".words.{name}", words, "a list of different words, or null")
        # Keys for single files: only keys of reading, and each file's combination of them is checked as well
        for name, keys in (self.files or {}).items():
            allowed = {*FORMAT_KEYS, "date_format"}
            one = f"keys for this file: {', '.join(sorted(allowed))}"
            require(isinstance(keys, dict) and {*keys} <= allowed, f".files.{name}", keys, one)
            with key_prefix_of_file(name):
                _ = self._format_of(name)
        # Words must be allowed: either by `text`, or by a list for each column
        coded = self.text in ("code", "one_hot") or not self.words
        require(coded, "text", self.text, "code or one_hot with dataset.words")

    @property
    def name(self) -> str:
        """The file's name without its suffix, or the folder's name for a pattern; ``file`` for an empty path."""
        path = Path(self.path)
        folder_or_site = path.parent.name if PATTERN.search(path.name) else site_of(self.path)
        return re.sub(r"[^\w.-]+", "_", folder_or_site)[:LONGEST_NAME].strip("._-") or "file"

    @property
    def file_format(self) -> FileFormat:
        """How the file is read, to read other files in the same way."""
        return self._format_of("")

    def _keys_of(self, path: str) -> dict[str, Any]:
        """Keys that `files` gives for one file."""
        found: dict[str, Any] = (self.files or {}).get(Path(path).name, {})
        return found

    def _format_of(self, path: str) -> FileFormat:
        """How one file is read."""
        keys = {name: getattr(self, name) for name in FORMAT_KEYS}
        own = {name: value for name, value in self._keys_of(path).items() if name in keys}
        return FileFormat(**keys | own, of_file=Path(path).name if path and self.is_pattern else "")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of each raw file, including the one with test rows: a run with changed files is another run.

        Computed once, so a run's digest does not change while the run goes on.

        Raises
        ------
        FklError
            If a file does not exist, or cannot be read.
        """
        return " ".join(self._fingerprints.values())

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        # Hash every file once: `read_file` later compares, so a file must not change during a run
        digests = {}
        for key_name, paths in {"path": self.paths, "test_path": self.test_paths}.items():
            for path in paths:
                try:
                    digests[path] = hashlib.sha256(own_file.read_bytes(path)).hexdigest()
                except BadValue as error:
                    raise BadValue(key_name, error.value, error.allowed) from None
        return digests

    @cached_property
    def paths(self) -> list[str]:
        """The file, or those of a pattern."""
        if not self.is_pattern:
            return [self.path]
        # The files of the pattern, sorted, because the first one sets the order of columns
        matches = glob(self.path)  # noqa: PTH207 - Path.glob takes no absolute one
        files_found = sorted(path for path in matches if Path(path).is_file())
        require(bool(files_found), "path", self.path, "a pattern that matches files")
        # Each file is a site, so keys that name sites or test rows in another way are refused
        for key_name in ("site", "test_path"):
            value = getattr(self, key_name)
            require(value is None, key_name, value, f"null: each file of dataset.path={self.path} is a site")
        # Two files such as a.csv and a.csv.gz would be one site
        sites: dict[str, str] = {}
        for path in files_found:
            other = sites.setdefault(site_of(path), path)
            allowed = f"a pattern with one file per site: {other} and {path} are both {site_of(path)}"
            require(other == path, "path", self.path, allowed)
        return files_found

    @property
    def test_paths(self) -> list[str]:
        """The file with test rows, if there is one."""
        return [] if self.test_path is None else [self.test_path]

    @property
    def is_pattern(self) -> bool:
        """Whether the path names several files; then each file is a site."""
        return PATTERN.search(self.path) is not None and not Path(self.path).is_file()

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file, or find it in the store's cache of tables; `rng` is not used.

        Returns
        -------
        Table
            Features in the order of the file's columns; in text without a header they are named by their numbers.

        Raises
        ------
        FklError
            If the file has any fault. The message names the file, and the line or row and the column if the fault is in
            a cell.
        """
        # 1. Read all files, and check that keys name files and columns that exist
        paths = [*self.paths, *self.test_paths]
        self.require_files_of_keys()
        parts = [self.read_file(path, store.tables) for path in paths]
        if parts[0].zeros_left_out and self.target != LABEL:
            label = f"{LABEL}, or omitted: {self.path} is in LIBSVM's format"
            require(not self.target, "target", self.target, label)
            return replace(self, target=LABEL).load(store, rng)
        # The file of each row, which is its site if the path is a pattern
        site_of_row = np.repeat(np.arange(len(parts)), [one.rows for one in parts])
        for _ in self.names_of_rows(parts):
            print_note(f"{self.path}: the first column has no name and only names rows, so it is no feature")
        parts = self.with_used_columns(parts)
        # 2. Times before dates become days: a time may consist of several columns, such as date and hour
        times = np.concatenate([self.times_of_rows(one) for one in parts]) if self.times else None
        # 3. Dates become days, and all files follow one another as one table
        dated = [self.with_dates(one) for one in parts]
        file = dated[0][0].followed_by([one for one, _ in dated[1:]])
        dates = {name: written for _, formats in dated for name, written in formats.items()}
        self._require_dates(file, dates)
        # 4. Decide for each column whether it has words or numbers
        columns = dict(file.by_name)
        of_words = {name for name, column in columns.items() if self.is_of_words(name, column, file)}
        if self.text == "drop":
            columns = {
                name: column
                for name, column in columns.items()
                if name not in of_words or name in self.columns_beside_features
            }
        # 5. Features are all columns without another task; rows with missing cells are dropped, and the others sorted
        # by time
        features = tuple(name for name in columns if name not in self.columns_beside_features)
        if not features:
            raise FklError(f"{self.path}: no column is left except the target {cut_cell(self.target)}")
        keep, incomplete = self._complete_rows(columns, file)
        rows = np.flatnonzero(keep)
        if times is not None:
            rows = rows[np.argsort(times[keep], kind="stable")]
        values_of, fill, learned = [], {}, {}
        # 6. Each feature becomes an array of numbers, or of codes of its words in the order of `learned`
        for name in features:
            column = columns[name]
            holes = column.holes[rows]
            if name in of_words:
                given = [normalize("NFC", word) for word in (self.words or {}).get(name) or ()]
                learned[name] = tuple(given or column.words(keep))
                values = self._codes_of_words(name, column, rows, learned[name], file)
            else:
                values = self.numbers_of_column(name, column, file)[rows]
            # The value of missing cells: from the key, or NaN, which the mean of training rows replaces later
            if self.fill and name in self.fill:
                fill[name] = self._fill_value(name, self.fill[name], learned.get(name))
            elif name in of_words and holes.any():
                drop = "dataset.missing=drop drops such rows, dataset.fill fills in a word"
                raise FklError(
                    f"{self.path}, column {cut_cell(name)}: cells are missing, and words have no mean; {drop}"
                )
            values[holes] = fill.get(name, np.nan)
            # Notes about columns of ids, which fit the training rows and predict nothing
            if name in of_words and not (self.words or {}).get(name) and MANY_ROWS <= len(learned[name]) == len(rows):
                out = f"dataset.drop=[{in_brackets(name)}] leaves ids out"
                print_note(
                    f"{self.path}, column {cut_cell(name)}: each row has its own word, so nothing can be learned; {out}"
                )
            elif name not in of_words and self.holds_rounded_ids(column):
                out = f"{ROUNDED}; dataset.drop=[{in_brackets(name)}] leaves ids out"
                print_note(f"{self.path}, column {cut_cell(name)}: {out}")
            if name in of_words and self.text == "one_hot":
                self._require_room_for_words(name, len(rows), learned)
            values_of.append(values)
        # 7. The target: classes 0, 1, ... for words, otherwise numbers
        column = columns[self.target]
        if self.target in of_words:  # they are classes
            labels = tuple(sorted(column.words(keep)))
            y = column.codes_in(rows, labels)
        else:
            labels, y = (), self.numbers_of_column(self.target, column, file)[rows]
        # 8. The table. Words and means are learned from its training rows only, so test rows cannot leak
        encoder = Encoder(features, learned, labels, self.text == "one_hot", fill, self.file_format, dates)
        listed = frozenset(name for name, given in (self.words or {}).items() if given)
        cells = UserRows(np.column_stack(values_of), y, rows, encoder, listed, self.missing == "mean")
        tested = None if self.test_path is None else site_of_row[rows] == len(parts) - 1
        table = Table.of_one_site(cells.values, y, features, self.path)
        table = replace(table, cells=cells, tested=tested, incomplete=incomplete)
        table = table.learned_from(np.ones(len(y), np.bool_) if tested is None else ~tested)
        # 9. Sites: the files of a pattern, or the words of a column
        if self.is_pattern:
            for path, count in zip(paths, np.bincount(site_of_row[keep], minlength=len(parts)), strict=True):
                require_rows(path, int(count), " without a missing cell", 1)
            table = replace(table, site=site_of_row[rows], site_names=tuple(map(site_of, paths)))
        elif self.site is not None:
            column = columns[self.site]
            names = tuple(column.words(keep))  # sites in the order in which they first appear
            table = replace(table, site=column.codes_in(rows, names).astype(np.int64), site_names=names)
        # 10. Compare the sites' numbers: a file in other units, for example, is a usual fault of pooled data
        numeric = [name for name in (*features, self.target) if not columns[name].text and name not in of_words]
        numbers = {name: columns[name].numbers[rows] for name in numeric}
        sites = len(table.site_names)
        compared = sites > 1 and sites * len(numeric) <= MOST_COMPARED
        for line in sites_apart(numbers, table.site, table.site_names) if compared else ():
            print_note(f"{self.path}: {line}")
        return table

    def require_files_of_keys(self) -> None:
        """Refuse a name in `files` that no file of the table has."""
        names = [Path(path).name for path in [*self.paths, *self.test_paths]]
        for name in self.files or ():
            require(name in names, "files", name, f"the name of a file of {self.path}: {list_names(names)}")

    def with_used_columns(self, parts: list[FileColumns]) -> list[FileColumns]:
        """The columns of each file that are used; one that a file lacks is filled if `fill` has a value for it.

        Raises
        ------
        FklError
            If a key names a column that no file has, or a column that is used cannot be read.
        """
        # Columns that a key names must be in some file; the message lists those that exist
        parts = self.named_like_the_first(parts)
        there = list(dict.fromkeys(column for part in parts for column in part.by_name))
        for name in self.drop or ():
            require(name in there, "drop", name, f"a column of {self.path}, which has {list_names(there)}")
        for name, role in self.columns_beside_features.items():
            begins = "" if name in there else self._where_table_begins(name, parts)
            require(name in there, role, name, f"a column of {self.path}, which has {list_names(there)}{begins}")
        for key_name in ("fill", "words", "date_format"):
            for name in part if isinstance(part := getattr(self, key_name), dict) else ():
                require(name in there, key_name, name, f"of a column of {self.path}, which has {list_names(there)}")
        # Drop columns, and refuse unreadable ones that are used
        parts_used = []
        for part in parts:
            kept = part.without_columns([*(self.drop or ()), *self.names_of_rows(parts)])
            for name, column in kept.by_name.items():
                if column.fault:
                    out = f"dataset.drop=[{in_brackets(name)}] leaves it out"
                    raise FklError(f"{kept.path}, column {cut_cell(name)}: {column.fault}; {out}")
            parts_used.append(kept)
        # A column that only some files have is missing in the others, which needs a value in `fill`
        names = dict.fromkeys(name for part in parts_used for name in part.by_name if name in (self.fill or ()))
        return [part.with_holes(names) for part in parts_used]

    def names_of_rows(self, parts: Sequence[FileColumns]) -> list[str]:
        """The column that only names rows in all files, if no key names it; it is no feature."""
        by_key = [part for one in ("fill", "words", "date_format") if isinstance(part := getattr(self, one), dict)]
        [name, *others] = {part.row_names for part in parts}
        named = name in self.columns_beside_features or any(name in part for part in by_key)
        return [] if others or name is None or named else [name]

    def named_like_the_first(self, parts: list[FileColumns]) -> list[FileColumns]:
        """Files that `files` says to have no header get the names of the first file that has one."""
        without = [self._keys_of(part.path).get("header") is False for part in parts]
        # The first file with names decides the order of columns
        named = next((part for part, none in zip(parts, without, strict=True) if not none), None)
        if named is None or self.header is False:
            return parts
        renamed_parts = []
        for part, none in zip(parts, without, strict=True):
            if none and len(part.by_name) != len(named.by_name):
                has = count_of(len(part.by_name), "column")
                raise FklError(f"{part.path}: {has} where {named.path}, whose names it takes, has {len(named.by_name)}")
            renamed_parts.append(part.with_names(list(named.by_name)) if none else part)
        return renamed_parts

    def _where_table_begins(self, name: str, parts: list[FileColumns]) -> str:
        """Advice if a row has the name of a column that no file has."""
        # Such a row exists if titles stand above the table; the advice is to skip them, or to read a header
        row, file = next(((row, file) for file in parts if (row := file.row_with(name)) is not None), (None, None))
        if row is None or file is None or not isinstance(file.place, Place):
            return ""
        skip, file_format = file.place.lines_above(row), self._format_of(file.path)
        if skip is None:
            return ""
        key = file_format.as_typed(skip=skip) if skip > file_format.skip else file_format.as_typed(header="true")
        return f"; {file.place(row)} has it: {key} if the table begins there"

    @cached_property
    def columns_beside_features(self) -> dict[str, str]:
        """Key of each column that is not a feature."""
        named: dict[str | None, str] = {**dict.fromkeys(self.times, "time"), self.site: "site", self.target: "target"}
        return {column: key for column, key in named.items() if column is not None}

    @property
    def times(self) -> tuple[str, ...]:
        """Columns with the time of each row."""
        several = self.time if isinstance(self.time, list) else [self.time]
        return tuple(str(one) for one in several if one is not None)

    def _date_format_of(self, name: str, path: str) -> str | None:
        """Format of the dates of a column in a file."""
        formats = self._keys_of(path).get("date_format", self.date_format)
        found: str | None = formats.get(name) if isinstance(formats, dict) else formats
        return found

    def read_file(self, path: str, cache: Path | None) -> FileColumns:
        """All columns of one file, as they are decided from its cells."""
        # A file that changes while a run reads it would give a model of two different data sets
        raw = own_file.read_bytes(path)
        if hashlib.sha256(raw).hexdigest() != self._fingerprints[path]:
            raise FklError(f"{path}: has changed since this run began; start it again")
        least = 1 if self.is_pattern or path in self.test_paths else csv_file.LEAST_ROWS
        typed, file_format = Path(path).suffix.lower() in typed_file.FORMATS, self._format_of(path)

        # The parser by the suffix; small files are parsed faster than a cache is read
        def parse() -> FileColumns:
            return (
                typed_file.read_typed_file(path, raw, file_format)
                if typed
                else csv_file.read_csv_file(path, raw, file_format)
            )

        if cache is None or len(raw) < parsed_tables.LEAST:
            columns = parse()
        else:
            columns = parsed_tables.read_cached(path, self._fingerprints[path], file_format, parse, cache)
        require_rows(path, columns.rows, least=least)
        return columns

    def is_of_words(self, name: str, column: FileColumn, file: FileColumns) -> bool:
        """Whether a column holds words; raises an error if its words are not allowed."""
        # By a key the column has words, or it has ids in a target of classes
        if self.words and name in self.words:
            return True
        if name == self.target and self.labels == "code" and not column.text and column.has_leading_zeros:
            return True
        # Numbers without padding are numbers; sites and times are read by their own rules
        padded = None if column.text else column.padded
        if (not column.text and padded is None) or self.columns_beside_features.get(name) in ("site", "time"):
            return False
        # The first cell that is no number, for the message
        odd = (column.first_odd_row or 0) if padded is None else padded
        first = column.word_of_cell(odd)
        where = f"{file.place(odd)}, column {cut_cell(name)}: {cut_cell(first)!r} "
        where += "is not a number" if padded is None else "begins with 0, as ids do"
        row = column.row_in_other_notation(of_classes=name == self.target and self.labels == "code")
        if row is not None:  # coded as a word, it would be a silent error
            raise FklError(self._not_a_number(name, column, row, file))
        # The target must be numeric unless its words may become classes; a feature's words need the key `text`
        if name == self.target:
            if self.labels == "refuse":
                raise FklError(f"{where}, and the target must be one; dataset.labels=code makes classes of its words")
        elif self.text == "refuse":
            use = "dataset.text=drop leaves columns of text out, "
            use += "" if _is_of_ids(column) else "dataset.text=code numbers their words, "
            use += "dataset.text=one_hot makes a feature of each, dataset.date_format reads dates"
            raise FklError(f"{where}; {self._of_ids_or_sites(name, column)}{use}")
        elif self.words and self.text != "drop":
            null = f"{in_brackets(name)}:null in it takes those of the training rows"
            raise FklError(f"{where}; dataset.words must list its words, {null}, or dataset.drop leave it out")
        return True

    def _complete_rows(self, columns: dict[str, FileColumn], file: FileColumns) -> tuple[NDArray[np.bool_], Incomplete]:
        """The rows that are used, and facts about the dropped rows."""
        # A column without any value cannot be filled in from its own cells
        for name, column in columns.items():
            if column.holes.all() and name not in (self.fill or ()):
                out = f"; dataset.drop=[{in_brackets(name)}] leaves it out"
                beside = name in self.columns_beside_features
                raise FklError(f"{self.path}, column {cut_cell(name)}: no row has a value{'' if beside else out}")
        # With missing=refuse, the first missing cell is an error
        holed = np.any([column.holes for name, column in columns.items() if name not in (self.fill or ())], axis=0)
        if self.missing == "refuse" and holed.any():
            row = int(holed.argmax())
            holed_there = ((name, column) for name, column in columns.items() if column.holes[row])
            name, column = next(one for one in holed_there if one[0] not in (self.fill or ()))
            raise FklError(self.missing_cell(name, column, row, file))
        # With missing=mean, only a missing target, site or time drops its row
        needed = {name: column for name, column in columns.items() if name not in (self.fill or ())}
        if self.missing == "mean":
            needed = {name: columns[name] for name in self.columns_beside_features}
        holed = np.any([column.holes for column in needed.values()], axis=0)
        what = "target" if self.missing == "mean" else "cell"
        require_rows(self.path, int((~holed).sum()), f" without a missing {what}")
        # For the note about dropped rows: the column that is missing most often
        count = {name: int(column.holes.sum()) for name, column in needed.items()}
        worst = max(count, key=lambda name: count[name])
        return ~holed, Incomplete(int(holed.sum()), len(holed), cut_cell(worst), count[worst] == holed.sum())

    def missing_cell(self, name: str, column: FileColumn, row: int, file: FileColumns) -> str:
        """Message about a missing cell, with the keys that say what to do with it."""
        use = "dataset.missing=drop drops such rows"
        if name not in self.columns_beside_features:
            mean = "dataset.missing=mean fills in the mean of the training rows, "
            use += f", {'' if column.text else mean}dataset.fill a value"
        if column.word_of_cell(row) and column.text:
            use += ", dataset.hole=[] makes a word of it"
        return f"{file.place(row)}, column {cut_cell(name)}: {column.word_of_cell(row)!r} is missing; {use}"

    def _of_ids_or_sites(self, name: str, column: FileColumn) -> str:
        """Advice for a column of text that may hold ids or sites; empty if it does not seem to."""
        different, given = len(column.words(~column.holes)), int((~column.holes).sum())
        if _is_of_ids(column):
            return f"each row has its own word: dataset.drop=[{in_brackets(name)}] leaves ids out; "
        if self.site is None and not self.is_pattern and 2 <= different <= given / 2:
            return f"dataset.site={in_brackets(name)} makes a client of each of its {different} words; "
        return ""

    def numbers_of_column(self, name: str, column: FileColumn, file: FileColumns) -> NDArray[np.float64]:
        """Values of a column, NaN where missing.

        Raises
        ------
        FklError
            For the first cell that is no finite number, or an integer that float64 would round.
        """
        # First cells that are not numbers, then integers that float64 cannot hold
        bad = ~(np.isfinite(column.numbers) | column.holes)
        if bad.any():
            raise FklError(self._not_a_number(name, column, int(bad.argmax()), file))
        for row in np.flatnonzero(np.abs(column.numbers) >= EXACT).tolist():
            cell = column.word_of_cell(row)
            if INTEGER.fullmatch(cell) and int(cell) != int(column.numbers[row]):
                where = f"{file.place(row)}, column {cut_cell(name)}"
                rounded = f"an integer above 2^53, which would be rounded to {int(column.numbers[row])}"
                out = f"subtract a constant, or dataset.drop=[{in_brackets(name)}] leaves ids out"
                raise FklError(f"{where}: {cut_cell(cell)} is {rounded}; {out}")
        return column.numbers

    def holds_rounded_ids(self, column: FileColumn) -> bool:
        """Whether the numbers of a column are like ids that were saved as floats, and so lost their last digits."""
        large = (np.abs(column.numbers) >= EXACT) & (np.abs(column.numbers) < LONGEST_ID)
        if not large.any():
            return False
        there = column.numbers[~column.holes]
        return MANY_ROWS <= len(there) == large.sum() and len(np.unique(there)) > len(there) / 2

    def _not_a_number(self, name: str, column: FileColumn, row: int, file: FileColumns) -> str:
        """Message about a cell that is not a number, with the key that would read it."""
        cell, is_feature = column.word_of_cell(row), name not in self.columns_beside_features
        place = file.place(row)
        path = next((path for path in self.paths if place.startswith(f"{path}, ")), "") if self.is_pattern else ""
        # A reader's hint comes first: another decimal sign or delimiter explains most such cells
        use = self._format_of(path).advice_on_cell(cell)
        if not use:
            use = self._as_missing(cell)
        if is_feature:
            null = f"{in_brackets(name)}:null"
            null = f"{null} in dataset.words" if self.words else f"dataset.words={{{null}}}"
            text = "" if self.text in ("code", "one_hot") else " dataset.text=one_hot"
            use += f", or {null}{text} takes all its cells as words"
        return f"{place}, column {cut_cell(name)}: {cut_cell(cell)!r} is not a finite number; {use}"

    def _as_missing(self, cell: str) -> str:
        """The key with which such a cell counts as missing."""
        markers = map(in_brackets, [*(self.file_format.hole or ()), cell])
        return f"dataset.hole=[{','.join(markers)}] counts such cells as missing"

    def with_dates(self, file: FileColumns) -> tuple[FileColumns, dict[str, str]]:
        """All columns of a file, with dates as days, and the formats of the columns of dates."""
        columns, dates = dict(file.by_name), dict[str, str]()
        by_column = isinstance(self._keys_of(file.path).get("date_format", self.date_format), dict)
        # Formats by column apply as they are; a single format applies to the columns that it fits
        for name, column in file.by_name.items():
            if name in self.columns_beside_features or name in (self.words or ()):
                continue
            date_format = self._date_format_of(name, file.path)
            if column.dates is not None:  # dates of a typed file need no format
                date_format = date_format or WHOLE_DAY
            elif not by_column and date_format and not _are_dates(column, date_format):
                continue
            if date_format:
                numbers = self._days_of_column(name, column, date_format, file)
                columns[name] = replace(column, numbers=numbers, text=False, padded=None, dates=None)
                dates[name] = date_format
        return replace(file, by_name=columns), dates

    def _require_dates(self, file: FileColumns, dates: Mapping[str, str]) -> None:
        """Refuse a format of dates that no column has, and a column that has dates in some files only."""
        for name in dates:
            if odd := self.not_a_date(name, dates[name], file):
                raise FklError(odd)
        in_time = any(file.by_name[name].text for name in self.times)
        written = f"the format of dates in {self.path}; no column has such dates"
        used = not isinstance(self.date_format, str) or dates or in_time
        require(bool(used), "date_format", self.date_format, written)

    def not_a_date(self, name: str, date_format: str, file: FileColumns) -> str:
        """Message about the first cell that is no date, in a column of dates; empty if all are."""
        column = file.by_name[name]
        if (row := column.first_odd_row) is None:
            return ""
        place = file.place(row)
        path = next(path for path in [*self.paths, *self.test_paths] if place.startswith(f"{path}, "))
        own = self._format_of(path).as_typed(date_format="FORMAT")
        where = f"{place}, column {cut_cell(name)}: {cut_cell(column.word_of_cell(row))!r}"
        return f"{where} is not a date in dataset.date_format={date_format}, as in other files; {own} gives it its own"

    def _days_of_column(
        self, name: str, column: FileColumn, date_format: str, file: FileColumns
    ) -> NDArray[np.float64]:
        """Days since 1970-01-01 of a column of dates; NaN where a cell is missing."""
        # Parse each different cell once, because dates often repeat
        cells = column.cells if isinstance(column.cells, CodedCells) else CodedCells.from_cells(column.cells)
        numbers = np.array([days_of_date(cell, date_format) for cell in cells.different], np.float64)[cells.code]
        # Dates that a typed file stores as dates need no format
        if column.dates is not None:
            typed = [row for row, cell in enumerate(column.dates) if cell is not None]
            numbers[typed] = [days_of_date(column.dates[row], date_format) for row in typed]
        numbers[column.holes] = np.nan
        bad = np.isnan(numbers) & ~column.holes
        if bad.any():
            row = int(bad.argmax())
            word = column.word_of_cell(row)
            where = f"{file.place(row)}, column {cut_cell(name)}: {cut_cell(word)!r}"
            raise FklError(f"{where} is not a date in dataset.date_format={date_format}; {self._as_missing(word)}")
        return numbers

    def _fill_value(self, name: str, value: Any, words: tuple[str, ...] | None) -> float:
        """The value of a feature's missing cells: a number, or the code of one of its words."""
        if words is None:
            with suppress(ValueError):
                if math.isfinite(number := float(value)):
                    return number
            raise BadValue(f"dataset.fill.{name}", value, "a number, like the column's others")
        require_words(f"dataset.fill.{name}", value, str)
        word = word_of(value)
        require(
            word in words, f"dataset.fill.{name}", value, f"one of the column's words: {list_names(words, WORDS_SHOWN)}"
        )
        return float(words.index(word))

    def _codes_of_words(
        self, name: str, column: FileColumn, rows: NDArray[np.int64], words: tuple[str, ...], file: FileColumns
    ) -> NDArray[np.float64]:
        """Codes of a column's words in these rows; those of missing cells are arbitrary."""
        codes = column.codes_in(rows, words)
        bad = np.isnan(codes) & ~column.holes[rows]
        if bad.any():
            row = int(rows[bad.argmax()])
            where = f"{file.place(row)}, column {cut_cell(name)}: {cut_cell(column.word_of_cell(row))!r}"
            allowed = f"none of dataset.words.{name}: {list_names(words, WORDS_SHOWN)}"
            raise FklError(f"{where} is {allowed}; add it there, or the word {OTHER} for all other words")
        return codes

    def _require_room_for_words(self, name: str, rows: int, learned: dict[str, tuple[str, ...]]) -> None:
        """Raise an error if one feature per word takes more memory than files of this size should."""
        size = sum(Path(path).stat().st_size for path in [*self.paths, *self.test_paths])
        needed = PER_FEATURE * rows * sum(map(len, learned.values()))
        if needed > own_file.memory_room(size):
            # One feature per word would need far more memory than the file
            many = f"{len(learned[name]):,} words in {rows:,} rows make features of {shown_bytes(needed)}"
            mend = "dataset.text=code numbers them, dataset.drop leaves the column out"
            raise FklError(f"{self.path}, column {cut_cell(name)}: {many}; {mend}")

    def times_of_rows(self, file: FileColumns) -> NDArray[np.float64]:
        """The time of each row, for dates in microseconds; NaN where it is missing."""
        from pandas import to_datetime

        names, columns = self.times, [file.by_name[name] for name in self.times]
        # A single column of numbers needs no format, and is used as it is
        formats, name, column = (
            [self._date_format_of(name, file.path) for name in names],
            " and ".join(names),
            columns[0],
        )
        by_column = isinstance(self._keys_of(file.path).get("date_format", self.date_format), dict)
        if len(names) == 1 and not column.text and not (formats[0] and by_column):
            bad = ~column.holes & ~np.isfinite(column.numbers)
            if bad.any():
                raise FklError(self._not_a_number(name, column, int(bad.argmax()), file))
            return column.numbers
        # Several columns are joined by spaces and read by their joined formats
        if len(names) > 1:
            cells = list(map(" ".join, zip(*(one.cells for one in columns), strict=True)))
            holes = np.logical_or.reduce([one.holes for one in columns])
            column = FileColumn(CodedCells.from_cells(cells), holes, np.full(file.rows, np.nan), True)
        if any(formats):
            formats_given = formats if by_column else formats[:1]
            lacking = [one for one, written in zip(names, formats_given, strict=False) if written is None]
            require(not lacking, "date_format", self.date_format, f"with a format of {', '.join(lacking)}, too")
            return self._days_of_column(name, column, " ".join(map(str, formats_given)), file) * MICROSECONDS_OF_DAY
        # Without a format, times must be in ISO 8601
        there = np.flatnonzero(~column.holes)
        dates = to_datetime(
            [column.word_of_cell(row) for row in there.tolist()], format="ISO8601", errors="coerce", utc=True
        )
        if dates.isna().any():
            row = int(there[dates.isna().argmax()])
            where = f"{file.place(row)}, column {cut_cell(name)}: {cut_cell(column.word_of_cell(row))!r}"
            written = "a date like 2024-01-31 or 2024-01-31 12:30, or in dataset.date_format"
            raise FklError(f"{where} is not a time; must be a number, or {written}")
        times = np.full(len(column.holes), np.nan)
        times[there] = dates.as_unit("us").asi8
        return times


@contextmanager
def key_prefix_of_file(name: str) -> Iterator[None]:
    """Add the file to the name of a key that is wrong."""
    try:
        yield
    except BadValue as error:
        raise BadValue(f".files.{name}.{error.key}", error.value, error.allowed) from None


def site_of(path: str) -> str:
    """Name of a file without its suffix, and without that of its compression."""
    file = Path(path)
    return Path(file.stem).stem if file.suffix.lower() in OPENERS else file.stem


def _is_of_ids(column: FileColumn) -> bool:
    """Whether each of many rows has its own word, which no other row can teach."""
    given = int((~column.holes).sum())
    return given >= MANY_ROWS and len(column.words(~column.holes)) == given


def _are_dates(column: FileColumn, date_format: str) -> bool:
    """Whether most of a column's first distinct cells are dates in this format.

    Whole numbers are dates only if the format writes them in the same way: 20240131 is one in %Y%m%d, 123456 is none.
    """
    # Only the first cells are read, because most columns are not dates
    there = np.flatnonzero(~column.holes)[:ROWS_LOOKED_AT].tolist()
    if not column.text:  # whether their text is worth reading
        digits, first = len(datetime(2001, 12, 31, tzinfo=UTC).strftime(date_format)), column.numbers[there]
        fits = (first % 1 == 0) & (first >= 10.0 ** (digits - 2)) & (first < 10.0**digits)
        if 2 * fits.sum() <= len(first):
            return False
    # Compare distinct cells, so one frequent word does not decide
    cells = list(dict.fromkeys(column.cells[row] for row in there))
    read = [days_of_date(cell, date_format) for cell in cells]
    # A number is a date only if the format writes it in the same way, so 123456 is none in %Y%m%d
    if not column.text:
        dates = [EPOCH + timedelta(one) if one == one else None for one in read]
        read = [
            one if date and date.strftime(date_format) == cell else np.nan
            for one, date, cell in zip(read, dates, cells, strict=True)
        ]
    return 2 * int(np.isnan(read).sum()) < len(read)


def _is_format(date_format: str) -> bool:
    """Whether a day or a month written in this format can be read back."""
    try:
        read = [days_of_date(datetime(2001, 12, day, tzinfo=UTC).strftime(date_format), date_format) for day in (1, 31)]
        first = days_of_date("2001-12-01", "%Y-%m-%d")
        return read in ([first, first + 30], [first, first])
    except ValueError:
        return False
