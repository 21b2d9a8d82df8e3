"""Delimited text: the columns of a user's table."""

import csv
import io
from collections.abc import Iterator
from itertools import islice

import numpy as np

from fkl.basics.errors import FklError, plural
from fkl.data import own_file
from fkl.data.columns import Column, Columns, checked_names
from fkl.data.encoder import BOOLEANS
from fkl.data.how_read import DELIMITERS, Reading

SNIFFED_LINES = 50
LEAST_ROWS = 2
PER_CELL = 72
"""Bytes of memory that a cell takes beside its text."""
PER_ROW = 150
"""Bytes of memory that a row takes beside its cells."""


def read(path: str, raw: bytes, reading: Reading, least: int = LEAST_ROWS) -> Columns:
    """Columns of a text file, plain or compressed as its name says.

    Parameters
    ----------
    path : str
    raw : bytes
        The file's content.
    reading : Reading
    least : int
        Rows that there must be.

    Raises
    ------
    FklError
        Names the file, and the line where there is one.
    """
    words = own_file.text(path, own_file.unpacked(path, raw), reading.encoding)
    lines_there = words.count("\n")
    needed = own_file.PER_BYTE * len(words) + PER_ROW * lines_there
    own_file.require_room(path, raw, needed, f"{lines_there:,} lines")
    sign = DELIMITERS.get(reading.delimiter or "", reading.delimiter) or _sniff_delimiter(words, reading)
    if reading.decimal == "comma" and sign == ",":
        between = "semicolon, tab, pipe or space between cells, as dataset.decimal=comma needs it"
        raise FklError(f"{path}: has no {between}")
    count = words.count(sign) + lines_there
    needed += PER_CELL * count + own_file.PER_COLUMN * (words.lstrip().partition("\n")[0].count(sign) + 1)
    own_file.require_room(path, raw, needed, f"{count:,} cells")
    lines: list[int] = []
    rows: list[list[str]] = []
    try:
        for line, cells in _read_records(words, sign):
            if rows and len(cells) != len(rows[0]):
                called = next((word for word, known in DELIMITERS.items() if known == sign), sign)
                raise FklError(
                    f"{path}, line {line}: {len(cells)} cells where line {lines[0]} has {len(rows[0])} "
                    f"(between cells: {called})"
                )
            lines.append(line)
            rows.append(cells)
    except csv.Error as error:
        raise FklError(f"{path}, {error}") from None
    if not rows:
        raise FklError(f"{path}: empty; must be a table of at least {plural(least, 'row')}")
    header = reading.header
    if header is None:
        header = any(not reading.is_hole(cell) and reading.number(cell) is None for cell in rows[0])
    if header:
        names = checked_names(rows[0], f"{path}, line {lines[0]}")
        lines, rows = lines[1:], rows[1:]
    else:
        names = [str(number + 1) for number in range(len(rows[0]))]
    require_rows(path, len(rows), "rows", least)
    by_name = zip(names, zip(*rows, strict=True), strict=True)
    columns = {name: _convert_column(cells, reading) for name, cells in by_name}
    return Columns(path, columns, lambda row: f"{path}, line {lines[row]}", len(rows))


def require_rows(path: str, count: int, what: str, least: int = LEAST_ROWS) -> None:
    """Refuse a table of too few rows."""
    if count < least:
        raise FklError(f"{path}: {count} {what} where at least {least} are needed")


def _convert_column(cells: tuple[str, ...], reading: Reading) -> Column:
    # A separate function, to release one column's lists before the next one's are made
    holes = np.array([reading.is_hole(cell) for cell in cells], np.bool_)
    found = [None if hole else reading.number(cell) for cell, hole in zip(cells, holes.tolist(), strict=True)]
    text = found[int((~holes).argmax())] is None and not holes.all()
    booleans = [BOOLEANS.get(cell.lower()) for cell in cells] if text else found
    if text and all(hole or number is not None for hole, number in zip(holes.tolist(), booleans, strict=True)):
        found, text = booleans, False
    return Column(cells, holes, np.array(found, dtype=np.float64), text)


def _read_records(words: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
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


def _sniff_delimiter(words: str, reading: Reading) -> str:
    """The delimiter that cuts most of the first lines as it cuts the very first, then the one that makes most numbers.

    A comma where none cuts the first line at all; a comma between cells is not looked for where decimals have one.
    """
    best, delimiter = (0, 0.0), ","
    for sign in [sign for sign in DELIMITERS.values() if (reading.decimal, sign) != ("comma", ",")]:
        try:
            rows = [cells for _, cells in islice(_read_records(words, sign), SNIFFED_LINES)]
        except csv.Error:
            continue
        if rows and len(rows[0]) > 1:
            cells = [cell for row in rows for cell in row]
            numbers = sum(reading.is_hole(cell) or reading.number(cell) is not None for cell in cells)
            score = (sum(len(row) == len(rows[0]) for row in rows), numbers / len(cells))
            if score > best:
                best, delimiter = score, sign
    return delimiter
