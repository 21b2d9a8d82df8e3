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

from fkl.basics.errors import FklError, shortened
from fkl.data.encoder import BOOLEANS, LIKE_NUMBER, Reading, codes

NAMES_SHOWN = 40
LETTERS_SHOWN = 60
PADDED = re.compile(r"0\d\d+")


class CellsOnDemand(Sequence[Any]):
    """Cells that are read only when one is needed; most columns of numbers never need theirs."""

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


class WholeNumbers(Sequence[str]):
    """Cells of a column of integers without signs or leading zeros."""

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, row: Any) -> Any:
        return str(int(self._numbers[row]))

    def __iter__(self) -> Iterator[str]:
        return map(str, self._numbers.astype(np.int64).tolist())


class Coded(Sequence[Any]):
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
    def of(cls, cells: Iterable[Any]) -> "Coded":
        """Find the distinct cells among these."""
        places: dict[Any, int] = {}
        code = np.array([places.setdefault(cell, len(places)) for cell in cells], np.int32)
        return cls(list(places), code)

    def map(self, change: Callable[[Any], Any]) -> "Coded":
        """Each cell changed in the same way."""
        merged = Coded.of(map(change, self.different))
        return Coded(merged.different, merged.code[self.code])

    def among(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> list[Any]:
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
class Column:
    """One column.

    Parameters
    ----------
    cells : sequence
        The cells as they are in the file.
    holes : (n,) bool
        Whether each cell is missing.
    numbers : (n,) float64
        NaN where a cell is missing or not a number.
    text : bool
        Whether it holds words, see `of_text`.
    padded : int or None
        The first row with an integer of three digits or more and a leading 0, which ids have and numbers do not.
    """

    cells: Sequence[Any] | NDArray[Any]
    holes: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    text: bool
    padded: int | None = None

    @classmethod
    def of_text(cls, cells: Coded, reading: Reading) -> "Column":
        """A column of these cells: of numbers if half of the cells, or most of the distinct cells, are numbers.

        If all cells are true or false, they become 1 and 0.
        """
        empty = [reading.is_hole(cell) for cell in cells.different]
        read = [None if hole else reading.number(cell) for cell, hole in zip(cells.different, empty, strict=True)]
        if all(hole or cell.lower() in BOOLEANS for cell, hole in zip(cells.different, empty, strict=True)):
            read = [BOOLEANS.get(cell.lower()) for cell in cells.different]
        holes, numbers = np.array(empty, np.bool_)[cells.code], np.array(read, np.float64)[cells.code]
        ids = np.array([PADDED.fullmatch(cell) is not None for cell in cells.different], np.bool_)
        padded = int(ids[cells.code].argmax()) if ids.any() else None
        return cls(cells, holes, numbers, _are_words(cells, holes, numbers), padded)

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.float64]) -> "Column":
        """A column of these numbers, without missing cells."""
        return cls(numbers, np.zeros(len(numbers), np.bool_), numbers, text=False)

    def word(self, row: int) -> str:
        """A cell as text, in Unicode's form NFC: words that differ only in form are the same word."""
        return normalize("NFC", str(self.cells[row]))

    @cached_property
    def coded(self) -> Coded:
        """All cells as text, in the form that `word` returns."""
        cells = self.cells if isinstance(self.cells, Coded) else Coded.of(self.cells)
        return cells.map(lambda cell: normalize("NFC", str(cell)))

    def words(self, rows: NDArray[np.bool_]) -> list[str]:
        """The distinct cells of some rows as text, in the order in which they first appear, without missing ones."""
        return self.coded.among(rows & ~self.holes)

    def codes(self, rows: NDArray[np.int64], words: Sequence[str]) -> NDArray[np.float64]:
        """Indices of the cells of some rows in a list of words, see `fkl.data.encoder.codes`."""
        return codes(self.coded.different, words)[self.coded.code[rows]]

    @property
    def first(self) -> int:
        """The first row with a cell that is neither missing nor a number; 0 if no row has one."""
        return int((~self.holes & np.isnan(self.numbers)).argmax())

    @property
    def like_number(self) -> int | None:
        """The first row of a text column with a number in another notation, if most of its cells are such numbers."""
        if not self.text:
            return None
        alike = np.array([LIKE_NUMBER.fullmatch(cell) is not None for cell in self.coded.different])[self.coded.code]
        alike &= ~self.holes
        return int(alike.argmax()) if 2 * alike.sum() > len(self.holes) - self.holes.sum() else None

    def followed_by(self, other: "Column") -> "Column":
        """A column with the other one below this one."""
        both = chain(self.cells, other.cells)
        words = isinstance(self.cells, Coded) and isinstance(other.cells, Coded)
        cells = Coded.of(both) if words else CellsOnDemand(len(self.holes) + len(other.holes), lambda: list(both))
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
class Place:
    """Where a row of a file is, for messages.

    Parameters
    ----------
    path : str
    unit : {"line", "row"}
    numbers : sequence of int
        The number of each row's line, or of the row.
    """

    path: str
    unit: str
    numbers: Sequence[int] | NDArray[np.int64]

    def __call__(self, row: int) -> str:  # noqa: D102 - see the class
        return f"{self.path}, {self.unit} {self.numbers[row]}"


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
        Whether a missing column is one of zeros, as in LIBSVM's format. The target is then `LABEL`.
    """

    path: str
    by_name: Mapping[str, Column]
    place: Callable[[int], str]
    rows: int
    zeros_left_out: bool = False

    def without(self, names: Collection[str]) -> "Columns":
        """A copy without the columns that have these names, if any."""
        kept = {name: column for name, column in self.by_name.items() if name not in names}
        return replace(self, by_name=kept)

    def with_zeros(self, names: Iterable[str]) -> "Columns":
        """A copy with a column of zeros for each of these names that is missing, if the format omits zeros."""
        zeros = Column.of_numbers(np.zeros(self.rows))
        lacking = [name for name in names if name not in self.by_name] if self.zeros_left_out else []
        return replace(self, by_name={**self.by_name, **dict.fromkeys(lacking, zeros)})

    def followed_by(self, other: "Columns") -> "Columns":
        """Rows of a second file below these.

        Raises
        ------
        FklError
            If its columns are not the same.
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
    """Whether neither half of all cells nor most of the distinct cells are numbers."""
    is_word = ~holes & np.isnan(numbers)
    if 2 * is_word.sum() <= (~holes).sum():
        return False
    coded = cells if isinstance(cells, Coded) else Coded.of(cells)
    return 2 * len(coded.among(is_word)) >= len(coded.among(~holes))


def checked_names(names: Sequence[str], where: str, use: str = "") -> list[str]:
    """Names of columns without line breaks; the name of a nameless column is its number, counted from 1.

    Raises
    ------
    FklError
        If a name occurs twice; `use` says what to do.
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
    """A cell as a message shows it, cut because the wrong delimiter can turn a whole line into one cell."""
    return shortened(cell, LETTERS_SHOWN)


def listed(names: Sequence[str]) -> str:
    """Names as a message lists them: the first ones, and the number of the others."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(map(short, names[:NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")
