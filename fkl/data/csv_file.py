"""Delimited text: the columns of a user's table."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np

from fkl.basics.errors import FklError, plural
from fkl.data import own_file
from fkl.data.columns import Column, Columns, checked_names, short
from fkl.data.how_read import DELIMITERS, Reading

COMMENTS = re.compile(r"(?:(?:[ \t]*\n)*[ \t]*#.*(?:\n|\Z))*")
"""Lines above a table that begin with #."""
SNIFFED_LINES = 50
LEAST_ROWS = 2
NAMES_SHOWN = 4
"""Names that are shown of a first line that looks like data."""
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
    end = above.end() if (above := COMMENTS.match(words)) else 0
    comments, words = words[:end], words[end:]
    sign = DELIMITERS.get(reading.delimiter or "", reading.delimiter) or _sniff_delimiter(words, reading)
    if reading.decimal == "comma" and sign == ",":
        between = "semicolon, tab, pipe or space between cells, as dataset.decimal=comma needs it"
        raise FklError(f"{path}: has no {between}")
    count = words.count(sign) + lines_there
    needed += PER_CELL * count + own_file.PER_COLUMN * (words.lstrip().partition("\n")[0].count(sign) + 1)
    own_file.require_room(path, raw, needed, f"{count:,} cells")
    try:
        words = _header_in(comments, words, sign, reading) + words
        return _read_columns(path, words, lines_there - words.count("\n") + 1, sign, reading, least)
    except csv.Error as error:
        raise FklError(f"{path}, {error}") from None


def _header_in(comments: str, words: str, sign: str, reading: Reading) -> str:
    """The last line of comments if it has the names of columns, as numpy writes them."""
    _, _, last = comments.rstrip().rpartition("\n")
    rows = [cells for _, cells in islice(_read_records(words, sign), 2)]
    numbers = [any(reading.number(cell) is not None for cell in cells) for cells in rows]
    if not last or not rows or reading.header is False or numbers == [False, True]:  # the first row has the names
        return ""
    named = last.lstrip("# \t") if last.lstrip().startswith(("# ", "#\t")) else last
    return named + "\n" if len(next(_read_records(named, sign))[1]) == len(rows[0]) else ""


def _read_columns(path: str, words: str, line: int, sign: str, reading: Reading, least: int) -> Columns:
    records = _read_records(words, sign, line)
    head = list(islice(records, 2))
    if not head:
        raise FklError(f"{path}: empty; must be a table of at least {plural(least, 'row')}")
    (line, first), width = head[0], len(head[-1][1])
    header = reading.header
    if header is None:
        header = any(not reading.is_hole(cell) and reading.number(cell) is None for cell in first)
    named_rows = header and width == len(first) + 1  # R leaves out the name of the column with names of rows
    if not named_rows and (width != len(first) - 1 or first[-1]):  # no sign at the end of the header alone
        width = len(first)
    if header:
        names, use = ["", *first][:width] if named_rows else first[:width], ""
        if reading.header is None:
            use = "; dataset.header=false if that line is data"
            _refuse_data(path, line, first, reading)
        names = checked_names(names, f"{path}, line {line}", use)
    else:
        names = [str(number + 1) for number in range(width)]
    lines: list[int] = []
    cells: list[list[str]] = [[] for _ in names]
    for line, row in chain(head[header:], records):
        if len(row) != width:
            called = next((word for word, known in DELIMITERS.items() if known == sign), sign)
            other = f"line {head[width != len(first)][0]} has {width} (between cells: {called})"
            raise FklError(f"{path}, line {line}: {plural(len(row), 'cell')} where {other}")
        lines.append(line)
        for column, cell in zip(cells, row, strict=True):
            column.append(cell)
    require_rows(path, len(lines), least=least)
    if named_rows and not any(cells[-1]):  # it was a sign at the end of all lines but the header
        names, cells = checked_names(first, path), cells[:-1]
    nameless = [not name for name in first] if header and not named_rows else []
    left_out = {
        name for name, no_name, column in zip(names, nameless, cells, strict=False) if no_name and not any(column)
    }
    by_name = zip(names, cells, strict=True)
    columns = {name: Column.of_text(column, reading) for name, column in by_name if name not in left_out}
    return Columns(path, columns, lambda row: f"{path}, line {lines[row]}", len(lines))


def _refuse_data(path: str, line: int, names: Sequence[str], reading: Reading) -> None:
    """Refuse names that look like a row: numbers that do not rise or fall as years do, or one or two fractions."""
    numbers = [reading.number(name) for name in names if not reading.is_hole(name)]
    found = [number for number in numbers if number is not None]
    steps = np.diff(found)
    whole = all(number % 1 == 0 for number in found)
    if not (whole and (steps < 0).all()) and not ((whole or len(found) > 2) and (steps > 0).all()):
        shown = ", ".join(map(short, names[:NAMES_SHOWN])) + ", ..." * (len(names) > NAMES_SHOWN)
        keys = "dataset.header=false, or dataset.header=true if these are names"
        raise FklError(f"{path}, line {line} looks like data ({shown}): {keys}")


def require_rows(path: str, count: int, which: str = "", least: int = LEAST_ROWS) -> None:
    """Refuse a table of too few rows."""
    if count < least:
        raise FklError(
            f"{path}: {plural(count, 'row')}{which} where at least {least} {'is' if least == 1 else 'are'} needed"
        )


def _read_records(words: str, delimiter: str, line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Line number, counted from `line`, and cells of every record; blank lines are passed over.

    Raises
    ------
    csv.Error
        Whose words start with the line.
    """
    # Spaces at a line's end would be one more cell where spaces delimit, and are nothing elsewhere.
    tidy = (line.rstrip(" \n") + "\n" for line in io.StringIO(words, newline=None))
    reader = csv.reader(tidy, delimiter=delimiter, skipinitialspace=True, strict=True)
    above, line = line, line
    try:
        for cells in reader:
            if cells:
                yield line, list(map(str.strip, cells))
            line = above + reader.line_num
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
            fits = max(sum(len(row) == width for row in rows) for width in (len(rows[0]), len(rows[0]) + 1))
            score = (fits, numbers / len(cells))
            if score > best:
                best, delimiter = score, sign
    return delimiter
