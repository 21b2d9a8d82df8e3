"""A table of the user's own, as text."""

import csv
import hashlib
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.data.problem import Table
from fkl.data.store import DAMAGE, OPENERS, DataFile, Store
from fkl.errors import BadValue, FklError, require

DELIMITERS = ",;\t| "
MISSING = {"", "na", "nan", "?", "null"}


@dataclass(frozen=True)
class CsvFile:
    """A delimited text file, plain or compressed with .xz, .gz or .bz2: one row a sample, in the order of the stream.

    Empty cells, NA, NaN, ? and null are missing. A column is text when its first cell that is not missing is no number.

    Parameters
    ----------
    path : str
        The file.
    target : str
        Name of the target's column, or its number counted from 1.
    delimiter : str or None
        Between cells; None to find out among , ; tab | and blank.
    header : bool or None
        Whether the first line holds names; None to find out: it does unless all its cells are numbers or missing.
    missing : {"refuse", "drop", "mean"}
        What happens to rows with missing cells: an error, left out, or the column's mean put in (left out where the
        target itself is missing).
    text : {"refuse", "drop", "code"}
        What happens to columns of text: an error, left out, or coded 0, 1, 2, ... in order of appearance.

    Raises
    ------
    fkl.errors.BadValue
    """

    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "a table of your own: dataset.path=FILE dataset.target=COLUMN"
    files: ClassVar[tuple[DataFile, ...]] = ()
    licence: ClassVar[str] = "your own"
    shape: ClassVar[str] = "any"

    path: str = field(default="")
    target: str = field(default="")
    delimiter: str | None = None
    header: bool | None = None
    missing: str = "refuse"
    text: str = "refuse"

    def __post_init__(self) -> None:
        require(self.path != "", "path", self.path, "a file")
        require(self.target != "", "target", self.target, "the name or number of a column")
        one = self.delimiter is None or len(self.delimiter) == 1
        require(one, "delimiter", self.delimiter, "one character, or null to find out")
        require(self.missing in ("refuse", "drop", "mean"), "missing", self.missing, "refuse, drop or mean")
        require(self.text in ("refuse", "drop", "code"), "text", self.text, "refuse, drop or code")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the file as it lies, so that a changed file is another run."""
        return hashlib.sha256(self._bytes(Path.read_bytes)).hexdigest()

    def load(self, store: Store, rng: np.random.Generator) -> Table:
        """Read the file; neither argument is used.

        Returns
        -------
        Table
            All columns but the target as features, in the order of the file.

        Raises
        ------
        FklError
            For whatever the file has that it should not; names the file, and line and column where there are any.
        """
        lines, rows = self._rows()
        names, lines, rows = self._named(lines, rows)
        target = self._target(names)
        found = {name: self._column(name, [row[i] for row in rows], lines) for i, name in enumerate(names)}
        columns = {name: column for name, column in found.items() if column is not None}
        if target not in columns:
            raise BadValue("target", self.target, f"a column of numbers; {self.path} has text there")
        features = tuple(name for name in columns if name != target)
        if not features:
            raise FklError(f"{self.path}: no column of numbers is left beside the target")
        x = np.column_stack([columns[name] for name in features])
        return Table.of_one_site(*self._complete(x, columns[target], (*features, target), lines), features)

    def _bytes(self, read) -> bytes:  # type: ignore[no-untyped-def]  # a way to open a path
        path = Path(self.path)
        if not path.is_file():
            raise BadValue("path", self.path, "a file that is there")
        try:
            return bytes(read(path))
        except DAMAGE as error:
            raise FklError(f"{self.path}: cannot be read ({error})") from None

    def _rows(self) -> tuple[list[int], list[list[str]]]:
        """Line numbers and cells of all lines that are not blank, all of one length."""
        opener = OPENERS.get(Path(self.path).suffix)
        raw = self._bytes(Path.read_bytes if opener is None else lambda path: opener(path).read())  # type: ignore[attr-defined]
        try:
            words = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FklError(f"{self.path}: not text in UTF-8 (byte {error.start + 1})") from None
        delimiter = self.delimiter or _sniffed(words)
        reader = csv.reader(io.StringIO(words, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
        lines, rows = [], []
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    lines.append(reader.line_num)
                    rows.append([cell.strip() for cell in cells])
        except csv.Error as error:
            raise FklError(f"{self.path}, line {reader.line_num}: {error}") from None
        if not rows:
            raise FklError(f"{self.path}: no rows")
        for line, cells in zip(lines, rows, strict=True):
            if len(cells) != len(rows[0]):
                raise FklError(f"{self.path}, line {line}: {len(cells)} columns where {len(rows[0])} are expected")
        return lines, rows

    def _named(self, lines: list[int], rows: list[list[str]]) -> tuple[list[str], list[int], list[list[str]]]:
        """Names of the columns (their numbers where there is no header), and the rows below it."""
        header = self.header
        if header is None:
            header = not all(_is_missing(cell) or _number(cell) is not None for cell in rows[0])
        names = rows[0] if header else [str(number + 1) for number in range(len(rows[0]))]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise FklError(f"{self.path}, line {lines[0]}: two columns are named {name!r}")
        below = slice(1 if header else 0, None)
        if len(rows[below]) < 2:
            raise FklError(f"{self.path}: {len(rows[below])} rows where 2 are needed")
        return names, lines[below], rows[below]

    def _target(self, names: list[str]) -> str:
        if self.target in names:
            return self.target
        number = int(self.target) if self.target.isdecimal() else 0
        require(1 <= number <= len(names), "target", self.target, f"one of {', '.join(names)}, or a number from 1")
        return names[number - 1]

    def _column(self, name: str, cells: list[str], lines: list[int]) -> NDArray[np.float64] | None:
        """Values of a column, NaN where missing; None for text that is left out."""
        there = [cell for cell in cells if not _is_missing(cell)]
        if there and _number(there[0]) is None:
            if self.text == "refuse":
                at = lines[cells.index(there[0])]
                raise FklError(
                    f"{self.path}, line {at}, column {name}: {there[0]!r} is not a number; "
                    "dataset.text=drop leaves columns of text out, dataset.text=code codes them"
                )
            codes = {cell: float(code) for code, cell in enumerate(dict.fromkeys(there))}
            return None if self.text == "drop" else np.array([codes.get(cell, np.nan) for cell in cells])
        values = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells):
            if not _is_missing(cell):
                number = _number(cell)
                if number is None or not np.isfinite(number):
                    raise FklError(f"{self.path}, line {lines[row]}, column {name}: {cell!r} is not a finite number")
                values[row] = number
        return values

    def _complete(
        self, x: NDArray[np.float64], y: NDArray[np.float64], names: tuple[str, ...], lines: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Features and target without holes."""
        holes = np.isnan(np.column_stack([x, y]))
        if holes.any() and self.missing == "refuse":
            row, column = np.argwhere(holes)[0]
            raise FklError(
                f"{self.path}, line {lines[row]}, column {names[column]}: missing; dataset.missing=drop leaves such "
                "rows out, dataset.missing=mean puts the column's mean in"
            )
        if self.missing == "mean":
            for column in np.flatnonzero(holes[:, :-1].all(axis=0)):
                raise FklError(f"{self.path}, column {names[column]}: no value to take a mean of")
            x = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
        keep = ~(holes[:, -1] if self.missing == "mean" else holes.any(axis=1))
        if keep.sum() < 2:
            raise FklError(f"{self.path}: {keep.sum()} rows without holes where 2 are needed")
        return x[keep], y[keep]


def _sniffed(words: str) -> str:
    """Delimiter that the first lines agree on; a comma where there is but one column."""
    first = [line for line in words.splitlines()[:20] if line.strip()]
    for delimiter in DELIMITERS:
        counts = {len(next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))) for line in first}
        if len(counts) == 1 and counts != {1}:
            return delimiter
    inside = [delimiter for delimiter in DELIMITERS if first and delimiter in first[0]]
    return inside[0] if inside else ","


def _is_missing(cell: str) -> bool:
    return cell.lower() in MISSING


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
