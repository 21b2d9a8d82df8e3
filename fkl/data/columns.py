"""Columns of a user's table, as text or typed files have them, before any choice is made about them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, shortened

NAMES_SHOWN = 40
LETTERS_SHOWN = 60


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
        Whether the first cell that is not missing is no number.
    """

    cells: Sequence[Any] | NDArray[Any]
    holes: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    text: bool

    def word(self, row: int) -> str:
        """A cell as text, in Unicode's form NFC: words that differ only in the form are one word."""
        return normalize("NFC", str(self.cells[row]))

    def words(self, rows: NDArray[np.bool_]) -> Iterator[str]:
        """Cells of some rows as text, without what is missing."""
        chosen = np.flatnonzero(rows & ~self.holes).tolist()
        return map(self.word, chosen)

    @property
    def first(self) -> int:
        """The first row that is not missing; 0 where all are."""
        return int((~self.holes).argmax())

    def followed_by(self, other: "Column") -> "Column":
        """Both, one below the other."""
        return Column(
            list(chain(self.cells, other.cells)),
            np.concatenate([self.holes, other.holes]),
            np.concatenate([self.numbers, other.numbers]),
            other.text if self.holes.all() else self.text,
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
    """

    path: str
    by_name: Mapping[str, Column]
    place: Callable[[int], str]
    rows: int

    def without(self, names: Collection[str]) -> "Columns":
        """The same without columns of these names, where there are any."""
        kept = {name: column for name, column in self.by_name.items() if name not in names}
        return replace(self, by_name=kept)

    def followed_by(self, other: "Columns") -> "Columns":
        """Rows of a second file below these.

        Raises
        ------
        FklError
            If it has not the same columns.
        """
        for one, two in ((self, other), (other, self)):
            lacking = [name for name in one.by_name if name not in two.by_name]
            if lacking:
                raise FklError(f"{two.path}: has no column {short(lacking[0])}, which {one.path} has")
        columns = {name: column.followed_by(other.by_name[name]) for name, column in self.by_name.items()}
        count = self.rows

        def place(row: int) -> str:
            return self.place(row) if row < count else other.place(row - count)

        return Columns(self.path, columns, place, count + other.rows)


def checked_names(names: Sequence[str], where: str) -> list[str]:
    """Names of columns in one line each.

    Raises
    ------
    FklError
        If one is empty or there twice: most often a column that was not meant, row numbers or a sign at a line's end.
    """
    tidy = [" ".join(name.split()) for name in names]  # a name may be quoted over two lines, a message may not
    seen: set[str] = set()
    for number, name in enumerate(tidy):
        if not name:
            raise FklError(f"{where}: column {number + 1} has no name")
        if name in seen:
            raise FklError(f"{where}: two columns are named {short(name)}")
        seen.add(name)
    return tidy


def short(cell: str) -> str:
    """What a message shows of a cell: the wrong delimiter can make a whole line one."""
    return shortened(cell, LETTERS_SHOWN)


def listed(names: Sequence[str]) -> str:
    """What a message shows of all names."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(map(short, names[:NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")
