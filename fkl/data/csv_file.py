"""Delimited text: the columns of a user's table."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, plural
from fkl.basics.memory import require_memory, shown_bytes
from fkl.data import libsvm, own_file
from fkl.data.columns import CellsOnDemand, Coded, Column, Columns, Place, WholeNumbers, checked_names, short
from fkl.data.encoder import DECIMALS, DELIMITERS, Reading
from fkl.data.reading import exact_floats

if TYPE_CHECKING:
    from pandas import DataFrame, Series

COMMENTS = re.compile(r"(?:sep=.\n)?(?:(?:[ \t]*\n)*[ \t]*#.*(?:\n|\Z))*")
"""Lines above a table: the delimiter in the form that Excel reads, and lines that begin with #."""
BLANK_LINES = re.compile(r"(?: *\n)*")
SNIFFED_LINES = 50
LEAST_ROWS = 2
EXACT = 2.0**53
"""Up to this number, float64 holds every integer exactly."""
NAMES_SHOWN = 4
"""Number of names that a message shows from a first line that looks like data."""
PER_CELL = 72
"""Bytes of memory that a cell takes in addition to its text."""
PER_ROW = 150
"""Bytes of memory that a row takes in addition to its cells."""


def read(path: str, raw: bytes, reading: Reading) -> Columns:
    """Columns of a text file, which may be compressed.

    Parameters
    ----------
    path : str
    raw : bytes
        The file's content.
    reading : Reading

    Raises
    ------
    FklError
        The message names the file, and the line if there is one.
    """
    words = own_file.text(path, own_file.unpacked(path, raw), reading.encoding, "dataset.encoding")
    if "\r" in words:
        words = words.replace("\r\n", "\n").replace("\r", "\n")
    lines_there = words.count("\n")
    needed = own_file.PER_BYTE * len(words) + PER_ROW * lines_there
    own_file.require_room(path, raw, needed, f"{lines_there:,} lines")
    if libsvm.is_libsvm(words):
        return _read_libsvm(path, raw, words)
    end = above.end() if (above := COMMENTS.match(words)) else 0
    comments, words = words[:end], words[end:]
    sign = DELIMITERS.get(reading.delimiter or "", reading.delimiter) or _sniff_delimiter(words, reading)
    if reading.decimal == "comma" and sign == ",":
        between = "semicolon, tab, pipe or space between cells, which dataset.decimal=comma needs"
        raise FklError(f"{path}: has no {between}")
    count = words.count(sign) + lines_there
    needed += PER_CELL * count + own_file.PER_COLUMN * (words.lstrip().partition("\n")[0].count(sign) + 1)
    own_file.require_room(path, raw, needed, f"{count:,} cells")
    try:
        header = _header_in(comments, words, sign, reading)
        line = comments.count("\n") - header.count("\n") + 1
        return _read_columns(path, header + words, line, sign, reading)
    except csv.Error as error:
        raise FklError(f"{path}, {error}") from None


def _read_libsvm(path: str, raw: bytes, words: str) -> Columns:
    """The label, and a column for each index, which is its name; `raw` is the file, maybe compressed."""
    x, y = libsvm.read(words.encode(), path)
    first = 0 if (x.indices == 0).any() else 1
    needed = np.dtype(np.float64).itemsize * len(y) * x.shape[1]
    what = f"{path}, {len(y):,} samples of {x.shape[1]:,} features, with their zeros"
    if needed > own_file.room(len(raw)):
        raise FklError(
            f"{what}, would take {shown_bytes(needed)} of memory; a YAML with format: libsvm_sparse can read it"
        )
    require_memory(needed, what, own_file.LOWER)
    values = x.toarray()
    numbers = {libsvm.LABEL: y, **{str(index): values[:, index] for index in range(first, x.shape[1])}}
    columns = {name: Column.of_numbers(column) for name, column in numbers.items()}
    lines = [n for n, line in enumerate(words.split("\n"), 1) if line.partition("#")[0].strip()]
    return Columns(path, columns, Place(path, "line", lines), len(y), zeros_left_out=True)


def _header_in(comments: str, words: str, sign: str, reading: Reading) -> str:
    """The last comment line if it has the names of columns, as in files that numpy writes."""
    _, _, last = comments.rstrip().rpartition("\n")
    rows = [cells for _, cells in islice(_read_records(words, sign), 2)]
    numbers = [any(reading.number(cell) is not None for cell in cells) for cells in rows]
    if (
        not last.lstrip().startswith("#") or not rows or reading.header is False or numbers == [False, True]
    ):  # the first row has the names
        return ""
    named = last.lstrip("# \t") if last.lstrip().startswith(("# ", "#\t")) else last
    return named + "\n" if len(next(_read_records(named, sign))[1]) == len(rows[0]) else ""


def _read_columns(path: str, words: str, line: int, sign: str, reading: Reading) -> Columns:
    records = _read_records(words, sign, line)
    head = list(islice(records, 2))
    if not head:
        raise FklError(f"{path}: empty; must be a table with rows")
    (line, first), width = head[0], len(head[-1][1])
    header = reading.header
    if header is None:
        header = any(not reading.is_hole(cell) and reading.number(cell) is None for cell in first)
    named_rows = header and width == len(first) + 1  # R leaves out the name of the column with names of rows
    if not named_rows and (width != len(first) - 1 or first[-1]):  # the header alone ends with a delimiter
        width = len(first)
    if header:
        names, use = ["", *first][:width] if named_rows else first[:width], ""
        if reading.header is None:
            use = "; dataset.header=false if that line is data"
            _refuse_data(path, line, first, reading)
        names = checked_names(names, f"{path}, line {line}", use)
    else:
        names = [str(number + 1) for number in range(width)]
    rows = _read_plain(words, line, sign, width, reading, bool(header))
    if rows is None:
        where = f"line {head[width != len(first)][0]}"
        rows = _read_any(path, chain(head[bool(header) :], records), sign, width, where, reading)
    columns, lines = rows
    count = len(columns[0].cells)
    if named_rows and not any(columns[-1].cells):  # all lines except the header end with a delimiter
        names, columns, named_rows = checked_names(first, path), columns[:-1], False
    nameless = {name for name, called in zip(names, first, strict=False) if header and not called and not named_rows}
    by_name = dict(zip(names, columns, strict=True))
    left_out = [name for name in nameless if not any(by_name[name].cells)]
    return Columns(path, by_name, Place(path, "line", lines), count).without(left_out)


Rows = tuple[list[Column], Sequence[int]]
"""Columns, and the line of each row."""


def _read_any(
    path: str, records: Iterable[tuple[int, list[str]]], sign: str, width: int, where: str, reading: Reading
) -> Rows:
    """Columns of records that all have this number of cells, that of the line `where`."""
    lines: list[int] = []
    cells: list[list[str]] = [[] for _ in range(width)]
    for line, row in records:
        if len(row) != width:
            called = next((word for word, known in DELIMITERS.items() if known == sign), sign)
            other = f"{where} has {width} (between cells: {called})"
            raise FklError(f"{path}, line {line}: {plural(len(row), 'cell')} where {other}")
        lines.append(line)
        for column, cell in zip(cells, row, strict=True):
            column.append(cell)
    return [Column.of_text(Coded.of(column), reading) for column in cells], lines


def _read_plain(words: str, line: int, sign: str, width: int, reading: Reading, header: bool) -> Rows | None:
    """Columns of a text without quotes or blank lines, by pandas; None for other texts, which pandas reads differently.

    Numbers are those of Python, to the last digit.
    """
    above = BLANK_LINES.match(words)
    begin = above.end() if above else 0
    if header:
        begin = words.find("\n", begin) + 1 or len(words)
    rest = words[begin:].rstrip("\n") + "\n"
    if '"' in words or not sign.isascii() or rest == "\n" or width == 1:  # a blank line may be a cell
        return None
    while (
        " " in rest and sign + " " in rest
    ):  # spaces before a cell do not count, and several spaces that delimit count as one
        rest = rest.replace(sign + " ", sign)
    rest = rest.replace("\n ", "\n").replace(" \n", "\n").removeprefix(" ") if sign == " " else rest
    text = rest.encode()
    body = np.frombuffer(b"\n" + text, np.uint8)
    is_end = (body == ord(sign)) | (body == ord("\n"))
    ends = np.flatnonzero(is_end)[1:]
    last = body[ends] == ord("\n")
    if len(last) % width or not last[width - 1 :: width].all() or last.sum() != len(last) // width:
        return None
    odd = set((np.searchsorted(ends, _odd_integers(body, is_end)) % width).tolist())
    begin = line + header
    return _Plain(text, sign, width).columns(reading, odd), range(begin, begin + len(ends) // width)


def _odd_integers(body: NDArray[np.uint8], is_end: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Positions where cells such as 007, -0 and +5 may begin, which pandas reads as 7, 0 and 5."""
    one, two, three = (np.append(body[i:], np.zeros(i, np.uint8)) for i in range(3))
    begins = np.append(True, is_end[:-1])
    odd = (one == ord("0")) & (two - ord("0") < 10) & (three - ord("0") < 10)
    odd |= (one == ord("-")) & (two == ord("0")) & (three != ord("."))
    odd |= one == ord("+")
    return np.flatnonzero(begins & odd)


@dataclass(frozen=True)
class _Plain:
    """Rows of text without quotes that all have `width` cells, so pandas can read them fast."""

    body: bytes
    sign: str
    width: int

    def columns(self, reading: Reading, odd: set[int]) -> list[Column]:
        """All columns; pandas does not convert those in `odd` to numbers."""
        from pandas.api.types import is_string_dtype

        frame = self._read(na_values=reading.words_missing, decimal=DECIMALS[reading.decimal])
        numbers = [j for j in range(self.width) if frame[j].dtype.kind in "iuf" and j not in odd]
        found = {j: self._column_of_numbers(j, frame[j], reading) for j in numbers}
        rest = [j for j in range(self.width) if j not in found]
        words = {j: _coded(frame[j]) for j in rest if is_string_dtype(frame[j]) and not frame[j].hasnans}
        words |= self._cells([j for j in rest if j not in words])
        return [found[j] if j in found else Column.of_text(words[j], reading) for j in range(self.width)]

    def _column_of_numbers(self, j: int, column: "Series[Any]", reading: Reading) -> Column:
        values = column.to_numpy(np.float64, copy=True)
        holes = np.isnan(values) | np.isin(values, list(reading.numbers_missing))
        values[holes] = np.nan
        if column.dtype.kind != "f" and not holes.any() and np.abs(values).max() < EXACT:
            return Column(WholeNumbers(values), holes, values, text=False)
        return Column(CellsOnDemand(len(values), partial(self._cells_of, j)), holes, values, text=False)

    def _cells(self, columns: Sequence[int]) -> dict[int, Coded]:
        """Cells of some columns as they are in the text."""
        if not columns:
            return {}
        frame = self._read(usecols=list(columns), dtype="str", na_filter=False)
        return {j: _coded(frame[j]) for j in columns}

    def _cells_of(self, column: int) -> Coded:
        """A column's cells; the second call reads those of all columns."""
        if not self._read_before:
            self._read_before.append(column)
            return self._cells([column])[column]
        return self._all_cells[column]

    @cached_property
    def _read_before(self) -> list[int]:
        return []

    @cached_property
    def _all_cells(self) -> dict[int, Coded]:
        return self._cells(range(self.width))

    def _read(self, **how: Any) -> "DataFrame":
        from pandas import read_csv

        return read_csv(
            io.BytesIO(self.body),
            sep=self.sign,
            header=None,
            names=list(range(self.width)),
            quoting=csv.QUOTE_NONE,
            keep_default_na=False,
            skip_blank_lines=False,
            low_memory=False,
            float_precision=exact_floats(),
            **how,
        )


def _coded(cells: "Series[Any]") -> Coded:
    """Cells of text without spaces at both ends."""
    from pandas import factorize

    code, different = factorize(cells)
    return Coded(different.tolist(), code.astype(np.int32)).map(str.strip)


def _refuse_data(path: str, line: int, names: Sequence[str], reading: Reading) -> None:
    """Refuse names that look like a row of data: numbers that are not in order. Years and wavelengths are in order."""
    numbers = [reading.number(name) for name in names if not reading.is_hole(name)]
    found = [number for number in numbers if number is not None]
    steps = np.diff(found)
    whole, fractions = all(number % 1 == 0 for number in found), len(found) > max(2, len(names) / 2)
    in_order = ((whole or fractions) and (steps > 0).all()) or (whole and (steps < 0).all())
    if not in_order or "?" in names:
        shown = ", ".join(map(short, names[:NAMES_SHOWN])) + ", ..." * (len(names) > NAMES_SHOWN)
        keys = "dataset.header=false, or dataset.header=true if these are names"
        raise FklError(f"{path}, line {line} looks like data ({shown}): {keys}")


def require_rows(path: str, count: int, which: str = "", least: int = LEAST_ROWS) -> None:
    """Raise an error if a table has too few rows."""
    if count < least:
        raise FklError(
            f"{path}: {plural(count, 'row')}{which} where at least {least} {'is' if least == 1 else 'are'} needed"
        )


def _read_records(words: str, delimiter: str, line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Line number, counted from `line`, and cells of every record; blank lines are skipped.

    Raises
    ------
    csv.Error
        Its message starts with the line.
    """
    # Spaces at a line's end would be one more cell if spaces delimit, and have no meaning otherwise.
    tidy = (line.rstrip(" \n") + "\n" for line in _lines(words))
    reader = csv.reader(tidy, delimiter=delimiter, skipinitialspace=True, strict=True)
    above, line = line, line
    try:
        for cells in reader:
            if cells:
                yield line, list(map(str.strip, cells))
            line = above + reader.line_num
    except csv.Error as error:
        raise csv.Error(f"line {line}: {error}") from None


def _lines(words: str) -> Iterator[str]:
    """Lines one by one, because often only the first are needed."""
    begin = 0
    while begin < len(words):
        end = words.find("\n", begin) + 1 or len(words)
        yield words[begin:end]
        begin = end


def _sniff_delimiter(words: str, reading: Reading) -> str:
    """The delimiter for which most of the first lines have as many cells as line 1; then that with most numbers.

    A comma if no delimiter is in the first line. The comma is not tried if decimals have a comma.
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
