"""Columns of a user's table, as text or typed files have them, before any choice is made about them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, shortened
from fkl.data.encoder import BOOLEANS
from fkl.data.how_read import LIKE_NUMBER, Reading

NAMES_SHOWN = 40
LETTERS_SHOWN = 60
PADDED = re.compile(r"0\d\d+")


class CellsOnDemand(Sequence[Any]):
    """Cells that are read when one is asked for: of most columns of numbers none is."""

    def __init__(self, count: int, read: Callable[[], Sequence[Any]]) -> None:
        self._count, self._read = count, read

    @cached_property
    def _cells(self) -> Sequence[Any]:
        return self._read()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        return self._cells[row]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cells)


@dataclass(frozen=True)
class Column:
    """One column.

    Parameters
    ----------
    cells : sequence
        As they are written.
    holes : (n,) bool
        Where a cell is missing.
    numbers : (n,) float64
        NaN where a cell is missing or no number.
    text : bool
        Whether it holds words, see `of_text`.
    padded : int or None
        The first row with an integer of three digits or more that begins with 0, as ids do and numbers do not.
    """

    cells: Sequence[Any] | NDArray[Any]
    holes: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    text: bool
    padded: int | None = None

    @classmethod
    def of_text(cls, cells: Sequence[str], reading: Reading) -> "Column":
        """A column of these cells: of numbers if half of the cells, or most of the different ones, are numbers.

        Cells of nothing but true and false are 1 and 0.
        """
        of = {cell: None if reading.is_hole(cell) else reading.number(cell) for cell in dict.fromkeys(cells)}
        empty = {cell for cell in of if of[cell] is None and reading.is_hole(cell)}
        if all(cell in empty or cell.lower() in BOOLEANS for cell in of):
            of = {cell: BOOLEANS.get(cell.lower()) for cell in of}
        holes = np.array([cell in empty for cell in cells], np.bool_)
        numbers = np.array([of[cell] for cell in cells], np.float64)
        ids = {cell for cell in of if PADDED.fullmatch(cell)}
        padded = next((row for row, cell in enumerate(cells) if cell in ids), None) if ids else None
        return cls(cells, holes, numbers, _are_words(cells, holes, numbers), padded)

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.float64]) -> "Column":
        """A column of these numbers, without missing cells."""
        return cls(numbers, np.zeros(len(numbers), np.bool_), numbers, text=False)

    def word(self, row: int) -> str:
        """A cell as text, in Unicode's form NFC: words that differ only in the form are one word."""
        return normalize("NFC", str(self.cells[row]))

    def words(self, rows: NDArray[np.bool_]) -> Iterator[str]:
        """Cells of some rows as text, without what is missing."""
        chosen = np.flatnonzero(rows & ~self.holes).tolist()
        return map(self.word, chosen)

    @property
    def first(self) -> int:
        """The first row with a cell that is neither missing nor a number; 0 where there is none."""
        return int((~self.holes & np.isnan(self.numbers)).argmax())

    @property
    def like_number(self) -> int | None:
        """The first row of a text column that is a number in another notation, if most of its cells are."""
        alike = {cell for cell in dict.fromkeys(self.cells) if self.text and LIKE_NUMBER.fullmatch(str(cell))}
        there = [row for row, cell in enumerate(self.cells) if cell in alike and not self.holes[row]] if alike else []
        return there[0] if 2 * len(there) > len(self.holes) - self.holes.sum() else None

    def followed_by(self, other: "Column") -> "Column":
        """Both, one below the other."""
        cells = CellsOnDemand(len(self.holes) + len(other.holes), lambda: list(chain(self.cells, other.cells)))
        holes, numbers = (np.concatenate([getattr(self, key), getattr(other, key)]) for key in ("holes", "numbers"))
        text = self.text if self.text == other.text else _are_words(cells, holes, numbers)
        return Column(
            cells,
            holes,
            numbers,
            text,
            self.padded if self.padded is not None or other.padded is None else len(self.holes) + other.padded,
        )


@dataclass(frozen=True)
class Columns:
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
        Whether a column that is not there is one of zeros, as in LIBSVM's format. The target is then `LABEL`.
    """

    path: str
    by_name: Mapping[str, Column]
    place: Callable[[int], str]
    rows: int
    zeros_left_out: bool = False

    def without(self, names: Collection[str]) -> "Columns":
        """The same without columns of these names, where there are any."""
        kept = {name: column for name, column in self.by_name.items() if name not in names}
        return replace(self, by_name=kept)

    def with_zeros(self, names: Iterable[str]) -> "Columns":
        """The same with columns of zeros of these names, where zeros were left out."""
        zeros = Column.of_numbers(np.zeros(self.rows))
        lacking = [name for name in names if name not in self.by_name] if self.zeros_left_out else []
        return replace(self, by_name={**self.by_name, **dict.fromkeys(lacking, zeros)})

    def followed_by(self, other: "Columns") -> "Columns":
        """Rows of a second file below these.

        Raises
        ------
        FklError
            If it has not the same columns.
        """
        above, below = self.with_zeros(other.by_name), other.with_zeros(self.by_name)
        for one, two in ((above, below), (below, above)):
            lacking = [name for name in one.by_name if name not in two.by_name]
            if lacking:
                raise FklError(f"{two.path}: has no column {short(lacking[0])}, which {one.path} has")
        columns = {name: column.followed_by(below.by_name[name]) for name, column in above.by_name.items()}
        count = self.rows

        def place(row: int) -> str:
            return self.place(row) if row < count else other.place(row - count)

        return replace(self, by_name=columns, place=place, rows=count + other.rows)


def _are_words(cells: Sequence[Any], holes: NDArray[np.bool_], numbers: NDArray[np.float64]) -> bool:
    """Whether neither half of all cells nor most of the different ones are numbers."""
    is_word = ~holes & np.isnan(numbers)
    if 2 * is_word.sum() <= (~holes).sum():
        return False
    words = {cells[row] for row in np.flatnonzero(is_word).tolist()}
    return 2 * len(words) >= len({cells[row] for row in np.flatnonzero(~holes).tolist()})


def checked_names(names: Sequence[str], where: str, use: str = "") -> list[str]:
    """Names of columns in one line each; a column without a name is called by its number, counted from 1.

    Raises
    ------
    FklError
        If one is there twice; `use` says what to do.
    """
    tidy = [" ".join(name.split()) for name in names]  # a name may be quoted over two lines, a message may not
    seen: set[str] = set()
    for name in filter(None, tidy):
        if name in seen:
            raise FklError(f"{where}: two columns are named {short(name)}{use}")
        seen.add(name)
    numbered = [f"column {number}" if str(number) in seen else str(number) for number in range(1, len(tidy) + 1)]
    return [name or number for name, number in zip(tidy, numbered, strict=True)]


def short(cell: str) -> str:
    """What a message shows of a cell: the wrong delimiter can make a whole line one."""
    return shortened(cell, LETTERS_SHOWN)


def listed(names: Sequence[str]) -> str:
    """What a message shows of all names."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(map(short, names[:NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")
