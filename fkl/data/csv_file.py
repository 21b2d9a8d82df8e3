"""A table of the user's own, as text."""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.data import own_file
from fkl.data.encoder import Encoder
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store
from fkl.errors import FklError, require
from fkl.memory import require_memory

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
"""By the words that a command line takes where it does not take the sign; the earlier wins where two fit as well."""
MISSING = frozenset({"", "na", "nan", "?", "null"})
NO_DELIMITER = '"+-.\r\n\0'
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
SNIFFED_LINES = 50
LEAST_ROWS = 2
PER_CELL = 72
"""Bytes of memory that a cell takes beside its text."""
NAMES_SHOWN = 40
LETTERS_SHOWN = 60


@dataclass(frozen=True)
class CsvFile:
    """A delimited text file in UTF-8, plain or compressed as .xz, .gz or .bz2: one row a sample, in file order.

    All columns but the target are features. Empty cells, NA, NaN, ? and null, in any case, are missing. A column is
    text when its first cell that is not missing is no number; from then on a column of numbers holds numbers only.

    Parameters
    ----------
    path : str
        The file.
    target : str
        Name of the target's column; without a header its number, counted from 1.
    delimiter : str or None
        Sign between cells, or comma, semicolon, tab, pipe or space; None to find out which of these five. Several
        spaces count as one.
    header : bool or None
        Whether the first line holds names; None to find out: it does unless all its cells are numbers or missing.
    missing : {"refuse", "drop", "mean"}
        What becomes of rows with missing cells: an error, left out, or the mean of the column's other cells put in.
        A missing target is never made up: ``mean`` leaves its row out.
    text : {"refuse", "drop", "code"}
        What becomes of feature columns of text: an error, left out, or their words coded 0, 1, ... in the order in
        which they first appear in the rows used.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "a table of your own: dataset.path=FILE dataset.target=COLUMN"
    files: ClassVar[tuple[DataFile, ...]] = ()
    licence: ClassVar[str] = "your own"
    shape: ClassVar[str] = "any"

    path: str = ""
    target: str = ""
    delimiter: str | None = None
    header: bool | None = None
    missing: str = "refuse"
    text: str = "refuse"

    def __post_init__(self) -> None:
        allowed = f"one of {', '.join(DELIMITERS)}, a single sign that is no part of a number, or null to find out"
        require(self.delimiter is None or _is_delimiter(self.delimiter), "delimiter", self.delimiter, allowed)
        require(self.missing in ("refuse", "drop", "mean"), "missing", self.missing, "refuse, drop or mean")
        require(self.text in ("refuse", "drop", "code"), "text", self.text, "refuse, drop or code")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the file as it lies, so that a run with a changed file is another run.

        Taken once: a run's digest stays what it was when the run began.

        Raises
        ------
        FklError
            If there is no such file, or it cannot be read.
        """
        return own_file.fingerprint(self.path)

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; neither argument is used.

        Returns
        -------
        Table
            Features in the order of the file's columns; without a header they are named by their numbers.

        Raises
        ------
        FklError
            For whatever the file has that it should not; names the file, and line and column where there are any.
        """
        names, lines, rows = self._read()
        require(self.target in names, "target", self.target, f"a column of {self.path}, which has {_listed(names)}")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        words = {name for name, cells in columns.items() if self._is_text(name, cells, lines)}
        if self.text == "drop":
            columns = {name: cells for name, cells in columns.items() if name not in words}
        features = tuple(name for name in columns if name != self.target)
        if not features:
            raise FklError(f"{self.path}: no column is left beside the target {_short(self.target)}")
        holes = {name: np.array([cell.lower() in MISSING for cell in cells]) for name, cells in columns.items()}
        keep = self._complete(columns, holes, lines)
        values = {
            name: _codes(cells, keep) if name in words else self._numbers(name, cells, holes[name], lines)[keep]
            for name, cells in columns.items()
        }
        if self.missing == "mean":
            for name in features:
                self._put_mean(name, values[name], name in words)
        x = np.column_stack([values[name] for name in features])
        table = Table.of_one_site(x, values[self.target], features, self.path)
        coded = {name: tuple(_words(columns[name], keep)) for name in features if name in words}
        return replace(table, encoder=Encoder(features, coded))

    def _words(self) -> str:
        """The file's content."""
        raw = own_file.read(self.path)
        if hashlib.sha256(raw).hexdigest() != self.fingerprint:
            raise FklError(f"{self.path}: has changed since this run began; start it again")
        return own_file.text(self.path, own_file.unpacked(self.path, raw))

    def _read(self) -> tuple[list[str], list[int], list[list[str]]]:
        """Names of the columns, and of every row below them its line and its cells, all of one number."""
        words = self._words()
        delimiter = DELIMITERS.get(self.delimiter or "", self.delimiter) or _sniffed(words)
        count = words.count(delimiter) + words.count("\n")
        needed = own_file.PER_BYTE * len(words) + PER_CELL * count
        require_memory(needed, f"{self.path}, {count:,} cells", own_file.LOWER)
        lines: list[int] = []
        rows: list[list[str]] = []
        try:
            for line, cells in _records(words, delimiter):
                if rows and len(cells) != len(rows[0]):
                    raise FklError(
                        f"{self.path}, line {line}: {len(cells)} cells where line {lines[0]} has {len(rows[0])} "
                        f"(between cells: {_called(delimiter)})"
                    )
                lines.append(line)
                rows.append(cells)
        except csv.Error as error:
            raise FklError(f"{self.path}, {error}") from None
        if not rows:
            raise FklError(f"{self.path}: empty; must be a table of at least {LEAST_ROWS} rows")
        header = self.header
        if header is None:
            header = any(not _is_missing(cell) and _number(cell) is None for cell in rows[0])
        names = self._names(rows[0], lines[0]) if header else [str(number + 1) for number in range(len(rows[0]))]
        first = 1 if header else 0
        self._require_rows(len(rows) - first, "rows")
        return names, lines[first:], rows[first:]

    def _names(self, cells: list[str], line: int) -> list[str]:
        names = [" ".join(cell.split()) for cell in cells]  # a name may be quoted over two lines, a message may not
        seen: set[str] = set()
        for number, name in enumerate(names):
            # Most often a column that was not meant: row numbers, or a delimiter at the line's end.
            if not name:
                raise FklError(f"{self.path}, line {line}: column {number + 1} has no name")
            if name in seen:
                raise FklError(f"{self.path}, line {line}: two columns are named {_short(name)}")
            seen.add(name)
        return names

    def _require_rows(self, count: int, what: str) -> None:
        if count < LEAST_ROWS:
            raise FklError(f"{self.path}: {count} {what} where at least {LEAST_ROWS} are needed")

    def _is_text(self, name: str, cells: Sequence[str], lines: list[int]) -> bool:
        """Whether a column holds words, refusing those that cannot be."""
        row, first = next(((row, cell) for row, cell in enumerate(cells) if not _is_missing(cell)), (0, ""))
        if not first or _number(first) is not None:
            return False
        where = f"{self.path}, line {lines[row]}, column {_short(name)}: {_short(first)!r} is not a number"
        if DECIMAL_COMMA.fullmatch(first):  # coded as a word it would be nonsense that nobody notices
            raise FklError(f"{where}; decimals are written with a point")
        if name == self.target:
            raise FklError(f"{where}, and the target must be one")
        if self.text == "refuse":
            raise FklError(
                f"{where}; dataset.text=drop leaves columns of text out, dataset.text=code numbers their words"
            )
        return True

    def _complete(
        self, columns: dict[str, tuple[str, ...]], holes: dict[str, NDArray[np.bool_]], lines: list[int]
    ) -> NDArray[np.bool_]:
        """Rows that are used."""
        holed = np.any(list(holes.values()), axis=0)
        if self.missing == "refuse" and holed.any():
            row = int(holed.argmax())
            name = next(name for name in columns if holes[name][row])
            use = "dataset.missing=drop leaves such rows out"
            if name != self.target:
                use += ", dataset.missing=mean puts the column's mean in"
            raise FklError(
                f"{self.path}, line {lines[row]}, column {_short(name)}: {columns[name][row]!r} is missing; {use}"
            )
        keep: NDArray[np.bool_] = ~(holes[self.target] if self.missing == "mean" else holed)
        what = "target" if self.missing == "mean" else "cell"
        self._require_rows(int(keep.sum()), f"rows without a missing {what}")
        return keep

    def _numbers(
        self, name: str, cells: Sequence[str], holes: NDArray[np.bool_], lines: list[int]
    ) -> NDArray[np.float64]:
        """Values of a column, NaN where missing."""
        found = [np.nan if hole else _number(cell) for cell, hole in zip(cells, holes.tolist(), strict=True)]
        values = np.array(found, dtype=np.float64)  # NaN for None, too
        bad = ~holes & ~np.isfinite(values)
        if bad.any():
            row = int(bad.argmax())
            cell = _short(cells[row])
            raise FklError(f"{self.path}, line {lines[row]}, column {_short(name)}: {cell!r} is not a finite number")
        return values

    def _put_mean(self, name: str, values: NDArray[np.float64], words: bool) -> None:
        """Fill a column's holes in place."""
        holes = np.isnan(values)
        if not holes.any():
            return
        if words:
            drop = "dataset.missing=drop leaves such rows out"
            raise FklError(f"{self.path}, column {_short(name)}: cells are missing, and words have no mean; {drop}")
        if holes.all():
            raise FklError(f"{self.path}, column {_short(name)}: all cells are missing, so there is no mean")
        values[holes] = values[~holes].mean()


def _is_delimiter(sign: str) -> bool:
    return sign in DELIMITERS or (len(sign) == 1 and not sign.isalnum() and sign not in NO_DELIMITER)


def _called(delimiter: str) -> str:
    return next((word for word, sign in DELIMITERS.items() if sign == delimiter), delimiter)


def _listed(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(map(_short, names[:NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _short(cell: str) -> str:
    """What a message shows of a cell: the wrong delimiter can make a whole line one."""
    return cell if len(cell) <= LETTERS_SHOWN else cell[:LETTERS_SHOWN] + "..."


def _records(words: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every record; blank lines are passed over.

    Raises
    ------
    csv.Error
        Whose words start with the line.
    """
    # Spaces at a line's end would be one more cell where spaces delimit, and are nothing elsewhere.
    tidy = (line.rstrip(" \n") + "\n" for line in io.StringIO(words, newline=None))
    reader = csv.reader(tidy, delimiter=delimiter, skipinitialspace=True, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, list(map(str.strip, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise csv.Error(f"line {line}: {error}") from None


def _sniffed(words: str) -> str:
    """The delimiter that cuts most of the first lines as it cuts the very first, then the one that makes most numbers.

    A comma where none cuts the first line at all.
    """
    best, delimiter = (0, 0.0), ","
    for sign in DELIMITERS.values():
        try:
            rows = [cells for _, cells in islice(_records(words, sign), SNIFFED_LINES)]
        except csv.Error:
            continue
        if rows and len(rows[0]) > 1:
            cells = [cell for row in rows for cell in row]
            numbers = sum(_is_missing(cell) or _number(cell) is not None for cell in cells)
            score = (sum(len(row) == len(rows[0]) for row in rows), numbers / len(cells))
            if score > best:
                best, delimiter = score, sign
    return delimiter


def _is_missing(cell: str) -> bool:
    return cell.lower() in MISSING


def _number(cell: str) -> float | None:
    if "_" in cell:  # a name to everybody but Python
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _codes(cells: Sequence[str], keep: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Numbers of a column's words in the rows kept, NaN where missing."""
    codes = {word: float(code) for code, word in enumerate(_words(cells, keep))}
    return np.array([codes.get(cell, np.nan) for cell, used in zip(cells, keep, strict=True) if used])


def _words(cells: Sequence[str], keep: NDArray[np.bool_]) -> list[str]:
    """Words of the rows kept, in the order in which they first appear."""
    kept = (cell for cell, used in zip(cells, keep, strict=True) if used)
    return list(dict.fromkeys(cell for cell in kept if not _is_missing(cell)))
