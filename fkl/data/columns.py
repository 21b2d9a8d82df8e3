"""Columns of a user's table as they are in text or typed files, before any choice is made about them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, cut_text
from fkl.data.encoder import BOOLEANS, FileFormat, codes_of_words, word_of
from fkl.data.notation import first_in_other_notation, number_inside

NAMES_SHOWN = 40
LETTERS_SHOWN = 60
PADDED, LEADING_ZERO = re.compile(r"0\d\d+"), re.compile(r"0\d+")
HALF_QUOTED = re.compile(r"['`‘“„«][^'`’”»]*")
"""The first cell of several that a quote other than the double one should hold together."""
UNNAMED = re.compile(r"\s*|Unnamed: \d+")
"""Names of nameless columns, also as pandas writes them when it saves a table again."""
ROWS_SEARCHED = 50
"""Number of first rows among which the names of columns are looked for."""


class CellsOnDemand(Sequence[str]):
    """Text of cells that is made only when one is needed; most columns of numbers never need theirs."""

    def __init__(self, count: int, read: Callable[[], Sequence[str]]) -> None:
        self._count, self._read = count, read

    @cached_property
    def _cells(self) -> Sequence[str]:
        return self._read()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        return self._cells[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)


class WholeNumbers(Sequence[str]):
    """Text of a column of integers that are written without signs or leading zeros."""

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, row: Any) -> Any:
        return str(int(self._numbers[row]))

    def __iter__(self) -> Iterator[str]:
        return map(str, self._numbers.astype(np.int64).tolist())


class CodedCells(Sequence[Any]):
    """Cells by their codes: each distinct cell is stored once, in order of first appearance.

    Parameters
    ----------
    different : sequence of (m,)
    code : (n,) int
        Index of each cell in `different`.
    """

    def __init__(self, different: Sequence[Any], code: NDArray[np.integer[Any]]) -> None:
        self.different, self.code = different, code

    @classmethod
    def from_cells(cls, cells: Iterable[Any]) -> "CodedCells":
        """Find the distinct cells among these."""
        places: dict[Any, int] = {}
        code = np.array([places.setdefault(cell, len(places)) for cell in cells], np.int32)
        return cls(list(places), code)

    def map(self, change: Callable[[Any], Any]) -> "CodedCells":
        """Each cell changed in the same way."""
        merged = CodedCells.from_cells(map(change, self.different))
        return CodedCells(merged.different, merged.code[self.code])

    def distinct_in_rows(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> list[Any]:
        """The distinct cells of some rows, in the order in which they first appear there."""
        from pandas import unique

        return [self.different[place] for place in unique(self.code[rows]).tolist()]

    def __len__(self) -> int:
        return len(self.code)

    def __getitem__(self, row: Any) -> Any:
        return self.different[self.code[row]]

    def __iter__(self) -> Iterator[Any]:
        return map(self.different.__getitem__, self.code.tolist())


@dataclass(frozen=True)
class FileColumn:
    """One column, and what is decided about it from all of its cells.

    Parameters
    ----------
    cells : sequence of str
        The file's own text of each cell; of a typed cell, its word (see `fkl.data.encoder.word_of`).
    holes : (n,) bool
        Whether each cell is missing.
    numbers : (n,) float64
        NaN where a cell is missing or not a number.
    text : bool
        Whether it holds words, see `of_text`.
    padded : int or None
        The first row with an integer of three digits or more and a leading 0, which ids have and numbers do not.
    dates : (n,) object, or None
        Dates of a typed file, None in other cells; None if no cell has the type of a date.
    fault : str
        Why the column cannot be read; empty if it can. It matters only if the column is used.
    """

    cells: Sequence[str]
    holes: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    text: bool
    padded: int | None = None
    dates: NDArray[np.object_] | None = None
    fault: str = ""

    @classmethod
    def of_text(cls, cells: CodedCells, file_format: FileFormat) -> "FileColumn":
        """A column of these cells: of numbers if half of the cells, or most of the distinct cells, are numbers.

        If all cells are true or false, they become 1 and 0.
        """
        # Read each different cell once
        empty = [file_format.is_hole(cell) for cell in cells.different]
        read = [None if hole else file_format.number(cell) for cell, hole in zip(cells.different, empty, strict=True)]
        # A column of only true and false has numbers, too
        if all(hole or cell.lower() in BOOLEANS for cell, hole in zip(cells.different, empty, strict=True)):
            read = [BOOLEANS.get(cell.lower()) for cell in cells.different]
        # Back to one entry per row, by the code of its cell
        holes, numbers = np.array(empty, np.bool_)[cells.code], np.array(read, np.float64)[cells.code]
        # Ids such as 007 look like numbers, but their zeros matter
        ids = np.array([PADDED.fullmatch(cell) is not None for cell in cells.different], np.bool_)
        padded = int(ids[cells.code].argmax()) if ids.any() else None
        return cls(cells, holes, numbers, _are_words(cells, holes, numbers), padded)

    @classmethod
    def of_numbers(
        cls, numbers: NDArray[np.float64], cells: Sequence[Any] | None = None, missing: Collection[float] = ()
    ) -> "FileColumn":
        """A column of typed numbers; NaN and the numbers in `missing` are missing, and `cells` has them as typed."""
        # The words of numeric cells are needed for messages only, so they are made on demand
        holes = np.isnan(numbers) | np.isin(numbers, list(missing))
        typed = numbers if cells is None else cells

        def words() -> list[str]:
            return [
                "" if hole and number != number else word_of(cell)
                for cell, hole, number in zip(typed, holes, numbers, strict=True)
            ]

        return cls(CellsOnDemand(len(numbers), words), holes, np.where(holes, np.nan, numbers), text=False)

    @classmethod
    def unreadable_column(cls, count: int, fault: str) -> "FileColumn":
        """A column of so many cells that cannot be read."""
        none = np.zeros(count, np.bool_)
        return cls([""] * count, none, np.full(count, np.nan), text=False, fault=fault)

    def with_typed(self, dates: NDArray[np.object_]) -> "FileColumn":
        """A copy with dates of a typed file; what it holds is decided again, after numbers got the typed ones."""
        text = _are_words(self.cells, self.holes, self.numbers)
        return replace(self, text=text, dates=dates if any(date is not None for date in dates) else None)

    def word_of_cell(self, row: int) -> str:
        """A cell as text, in Unicode's form NFC: words that differ only in form are the same word."""
        return normalize("NFC", self.cells[row])

    def as_cells(self, typed_numbers: bool) -> list[Any]:
        """All cells as text, or typed numbers as such; dates are dates, and None is missing."""
        cells: list[Any] = [None if hole else cell for cell, hole in zip(self.cells, self.holes, strict=True)]
        for row, number in enumerate(self.numbers.tolist() if typed_numbers else ()):
            cells[row] = number if number == number else cells[row]
        for row, date in enumerate(self.dates if self.dates is not None else ()):
            cells[row] = cells[row] if date is None else date
        return cells

    @cached_property
    def coded(self) -> CodedCells:
        """All cells as text, in the form that `word_of_cell` returns."""
        cells = self.cells if isinstance(self.cells, CodedCells) else CodedCells.from_cells(self.cells)
        return cells.map(lambda cell: normalize("NFC", cell))

    def words(self, rows: NDArray[np.bool_]) -> list[str]:
        """The distinct cells of some rows as text, in the order in which they first appear, without missing ones."""
        return self.coded.distinct_in_rows(rows & ~self.holes)

    def codes_in(self, rows: NDArray[np.int64], words: Sequence[str]) -> NDArray[np.float64]:
        """Indices of the cells of some rows in a list of words, see `fkl.data.encoder.codes_of_words`."""
        return codes_of_words(self.coded.different, words)[self.coded.code[rows]]

    @property
    def has_leading_zeros(self) -> bool:
        """Whether a cell is a whole number with a leading 0, which a class may have and a number does not."""
        return any(LEADING_ZERO.fullmatch(cell) for cell in self.coded.different)

    @property
    def first_odd_row(self) -> int | None:
        """The first row with a cell that is neither missing nor a number; None if no row has one."""
        odd = ~self.holes & np.isnan(self.numbers)
        return int(odd.argmax()) if odd.any() else None

    def row_in_other_notation(self, of_classes: bool) -> int | None:
        """The first row of a text column with a number in another notation, if most of its cells are numbers."""
        if not self.text:
            return None
        rows = np.flatnonzero(~self.holes)
        code, first, count = np.unique(self.coded.code[rows], return_index=True, return_counts=True)
        order = np.argsort(first)
        cells = [self.coded.different[place] for place in code[order].tolist()]
        plain = np.isfinite(self.numbers[rows[first[order]]])
        cell = first_in_other_notation(cells, count[order], plain, of_classes)
        return None if cell is None else int(rows[first[order][cell]])

    def followed_by(self, others: Sequence["FileColumn"]) -> "FileColumn":
        """A column with the other ones below this one; what it holds is decided from all of their cells."""
        # Parts one below the other; each part's words are read only when needed
        parts = [self, *others]
        both = chain.from_iterable(part.cells for part in parts)
        holes, numbers = (np.concatenate([getattr(part, key) for part in parts]) for key in ("holes", "numbers"))
        coded = all(isinstance(part.cells, CodedCells) for part in parts)
        cells = CodedCells.from_cells(both) if coded else CellsOnDemand(len(holes), lambda: list(both))
        starts = np.cumsum([0, *(len(part.holes) for part in parts)])
        # Row numbers of the first padded cells continue from part to part
        padded = [
            start + part.padded for start, part in zip(starts.tolist(), parts, strict=False) if part.padded is not None
        ]
        # Dates of typed files, None in the other rows
        dates = None
        if any(part.dates is not None for part in parts):
            none = [np.full(len(part.holes), None, object) if part.dates is None else part.dates for part in parts]
            dates = np.concatenate(none)
        # If the parts disagree about words or numbers, decide again from all cells
        alike = all(part.text == self.text for part in parts)
        text = self.text if alike else _are_words(cells, holes, numbers)
        fault = next((part.fault for part in parts if part.fault), "")
        return FileColumn(cells, holes, numbers, text, padded[0] if padded else None, dates, fault)


@dataclass(frozen=True)
class Place:
    """Where a row of a file is, for messages.

    Parameters
    ----------
    path : str
    unit : {"line", "row", "sheet row"}
    numbers : sequence of int
        The number of each row's line, of its row in a sheet, or of the row.
    """

    path: str
    unit: str
    numbers: Sequence[int] | NDArray[np.int64]

    def __call__(self, row: int) -> str:  # noqa: D102 - see the class
        return f"{self.path}, {self.unit} {self.numbers[row]}"

    def lines_above(self, row: int) -> int | None:
        """Number of lines, or rows of a sheet, above a row; None where no lines can be above."""
        return None if self.unit == "row" else int(self.numbers[row]) - 1


@dataclass(frozen=True)
class FileColumns:
    """All columns of a file.

    Parameters
    ----------
    path : str
        The file.
    by_name : mapping of str to Column
        In the order of the file.
    place : callable
        Where a row is, for messages: the file, and the line or the row.
    rows : int
    zeros_left_out : bool
        Whether a missing column is one of zeros, as in LIBSVM's format. The target is then `LABEL`.
    row_names : str or None
        The column that only names rows, and is no feature; None if there is none.
    """

    path: str
    by_name: Mapping[str, FileColumn]
    place: Callable[[int], str]
    rows: int
    zeros_left_out: bool = False
    row_names: str | None = None

    def without_columns(self, names: Collection[str]) -> "FileColumns":
        """A copy without the columns that have these names, if any."""
        kept = {name: column for name, column in self.by_name.items() if name not in names}
        return replace(self, by_name=kept)

    def with_row_names(self, names: Sequence[str]) -> "FileColumns":
        """A copy that knows its row names, and has no empty column without a name.

        Row names are a first column without a name, as R and pandas write it.
        """
        nameless = [column for column, name in zip(self.by_name, names, strict=True) if UNNAMED.fullmatch(name)]
        left_out = [column for column in nameless if not any(self.by_name[column].cells)]
        first = next(iter(self.by_name), "")
        names_rows = first in nameless and first not in left_out
        return replace(self.without_columns(left_out), row_names=first if names_rows else None)

    def with_names(self, names: Sequence[str]) -> "FileColumns":
        """A copy in which the columns, in their order, have these names."""
        return replace(self, by_name=dict(zip(names, self.by_name.values(), strict=True)))

    def with_holes(self, names: Iterable[str]) -> "FileColumns":
        """A copy with a column without a value for each of these names that is missing."""
        none = FileColumn([""] * self.rows, np.ones(self.rows, np.bool_), np.full(self.rows, np.nan), text=False)
        lacking = [name for name in names if name not in self.by_name]
        return replace(self, by_name={**self.by_name, **dict.fromkeys(lacking, none)}) if lacking else self

    def with_zeros(self, names: Iterable[str]) -> "FileColumns":
        """A copy with a column of zeros for each of these names that is missing, if the format omits zeros."""
        zeros = FileColumn.of_numbers(np.zeros(self.rows))
        lacking = [name for name in names if name not in self.by_name] if self.zeros_left_out else []
        return replace(self, by_name={**self.by_name, **dict.fromkeys(lacking, zeros)})

    def followed_by(self, others: Sequence["FileColumns"]) -> "FileColumns":
        """Rows of other files below these; the first file sets the order of the columns.

        Raises
        ------
        FklError
            If their columns are not the same.
        """
        if not others:
            return self
        # All names in the order of the first file; in LIBSVM's format, a lacking index is a column of zeros
        names = list(dict.fromkeys(name for part in (self, *others) for name in part.by_name))
        first, *rest = parts = [part.with_zeros(names) for part in (self, *others)]
        # Any other lacking column is an error
        for other in rest:
            for left, right in ((first, other), (other, first)):
                lacking = [name for name in left.by_name if name not in right.by_name]
                if lacking:
                    raise FklError(f"{right.path}: has no column {cut_cell(lacking[0])}, which {left.path} has")
        columns = {
            name: column.followed_by([other.by_name[name] for other in rest]) for name, column in first.by_name.items()
        }
        # A row's place is a file and the row in it
        ends = np.cumsum([part.rows for part in parts])

        def place(row: int) -> str:
            number = int(np.searchsorted(ends, row, side="right"))
            return parts[number].place(row - int(ends[number] - parts[number].rows))

        row_names = self.row_names if all(part.row_names == self.row_names for part in others) else None
        return replace(self, by_name=columns, place=place, rows=int(ends[-1]), row_names=row_names)

    def row_with(self, word: str) -> int | None:
        """The first row, among those at the beginning, that has this cell; None if none has it."""
        rows = range(min(self.rows, ROWS_SEARCHED))
        return next((row for row in rows if any(column.cells[row] == word for column in self.by_name.values())), None)


def _are_words(cells: Sequence[Any], holes: NDArray[np.bool_], numbers: NDArray[np.float64]) -> bool:
    """Whether neither half of all cells nor most of the distinct cells are numbers."""
    is_word = ~holes & np.isnan(numbers)
    if 2 * is_word.sum() <= (~holes).sum():
        return False
    coded = cells if isinstance(cells, CodedCells) else CodedCells.from_cells(cells)
    return 2 * len(coded.distinct_in_rows(is_word)) >= len(coded.distinct_in_rows(~holes))


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names of columns without line breaks: the second ``a`` is ``a.1``; a nameless one is its number, from 1."""
    # Repeated names get a number that no other name has
    tidy = [" ".join(name.split()) for name in names]  # a name may be quoted over two lines, a message may not
    given, repeats, taken = set(tidy), dict.fromkeys(tidy, 0), dict[str, None]()
    for name in tidy:
        spelt = name
        while name and (spelt in taken or (spelt != name and spelt in given)):
            repeats[name] += 1
            spelt = f"{name}.{repeats[name]}"
        taken[spelt or f"\0{len(taken)}"] = None
    # A nameless column is named by its number, unless a column has that name
    numbered = [f"column {number}" if str(number) in taken else str(number) for number in range(1, len(taken) + 1)]
    return [number if name.startswith("\0") else name for name, number in zip(taken, numbered, strict=True)]


def only_name_rows(cells: Sequence[str], quoted: bool, sign: str = "") -> bool:
    """Whether cells before those that have a name in the header can be names of rows, as R writes them.

    They are all different, and text, quoted, or whole numbers. If commas are between the cells, whole numbers must
    count the rows: they might be the first halves of decimal commas.
    """
    if not cells or len(set(cells)) < len(cells):
        return False
    whole = all(map(str.isdecimal, cells))
    counts = whole and all(int(cell) == number for number, cell in enumerate(cells, int(cells[0] == "1")))
    return quoted or counts or (whole and sign != ",") or not any(map(_is_half_a_cell, cells))


def _is_half_a_cell(cell: str) -> bool:
    """Whether a cell may be the beginning of a longer one: it begins with a quote, or is a number in any notation."""
    return bool(HALF_QUOTED.fullmatch(cell)) or (
        not cell[:1].isalpha() and (not cell or number_inside(cell) is not None)
    )


def cut_cell(cell: str) -> str:
    """A cell as a message shows it, cut because the wrong delimiter can turn a whole line into one cell."""
    return cut_text(cell, LETTERS_SHOWN)


def list_names(names: Sequence[str], shown: int = NAMES_SHOWN) -> str:
    """Names or words as a message lists them: the first ones, and the number of the others."""
    more = len(names) - shown
    return ", ".join(map(cut_cell, names[:shown])) + (f" and {more} more" if more > 0 else "")
