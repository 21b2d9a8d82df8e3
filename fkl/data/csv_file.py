"""Delimited text: the columns of a user's table."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, count_of, require
from fkl.basics.memory import require_memory, shown_bytes
from fkl.data import libsvm, own_file
from fkl.data.columns import (
    CellsOnDemand,
    CodedCells,
    FileColumn,
    FileColumns,
    Place,
    WholeNumbers,
    cut_cell,
    distinct_names,
    only_name_rows,
)
from fkl.data.encoder import DECIMALS, DELIMITERS, EXACT, FileFormat
from fkl.data.matrices import exact_floats

if TYPE_CHECKING:
    from pandas import Series

COMMENTS = re.compile(r"(?:sep=.\n)?(?:(?:[ \t]*\n)*[ \t]*#.*(?:\n|\Z))*")
"""Lines above a table: the delimiter in the form that Excel reads, and lines that begin with #."""
BLANK_LINES = re.compile(r"(?: *\n)*")
SNIFFED_LINES = 50
LEAST_ROWS = 2
NAMES_SHOWN = 4
"""Number of names that a message shows from a first line that looks like data."""
CELL_END, ROW_END = "\x1f", "\x1e"
"""Control characters, which no text has: they separate cells that were in quotes."""
TENS = 10.0 ** np.arange(1, 16)
PER_CELL = 72
"""Bytes of memory that a cell takes in addition to its text."""
PER_ROW = 150
"""Bytes of memory that a row takes in addition to its cells."""


def read_csv_file(path: str, raw: bytes, file_format: FileFormat) -> FileColumns:
    """Columns of a text file, which may be compressed.

    Parameters
    ----------
    path : str
    raw : bytes
        The file's content.
    file_format : FileFormat

    Raises
    ------
    FklError
        The message names the file, and the line if there is one.
    """
    # Decompress and decode; then line ends are \n everywhere
    words = own_file.decode_text(path, own_file.decompress_text(path, raw), file_format.encoding, file_format.as_typed)
    if "\r" in words:
        words = words.replace("\r\n", "\n").replace("\r", "\n")
    # Lines above the table, and a check that lines fit in memory before cells are cut
    if file_format.skip:
        words = without_lines(words, file_format.skip, path)
    lines_there = words.count("\n")
    needed = own_file.PER_BYTE * len(words) + PER_ROW * lines_there
    own_file.require_room(path, raw, needed, f"{lines_there:,} lines")
    # LIBSVM's text has index:value pairs and no header
    if libsvm.is_libsvm(words):
        return _read_libsvm(path, raw, words)
    # Comment lines above the table are no rows, but one may be its header
    end = above.end() if (above := COMMENTS.match(words)) else 0
    comments, words = words[:end], words[end:]
    sign = DELIMITERS.get(file_format.delimiter or "", file_format.delimiter) or _sniff_delimiter(words, file_format)
    if file_format.decimal == "comma" and sign == ",":
        between = "semicolon, tab, pipe or space between cells, which dataset.decimal=comma needs"
        raise FklError(f"{path}: has no {between}")
    # Cells need far more memory than the text
    count = words.count(sign) + lines_there
    needed += PER_CELL * count + own_file.PER_COLUMN * (words.lstrip().partition("\n")[0].count(sign) + 1)
    own_file.require_room(path, raw, needed, f"{count:,} cells")
    try:
        header = _header_in(comments, words, sign, file_format)
        line = comments.count("\n") - header.count("\n") + 1
        return _read_columns(path, header + words, line, sign, file_format)
    except csv.Error as error:
        raise FklError(f"{path}, {error}") from None


def without_lines(words: str, skip: int, path: str) -> str:
    """The text with its first lines emptied; the other lines keep their numbers."""
    *above, rest = words.split("\n", skip)
    require(len(above) == skip, "skip", skip, f"fewer than the {len(above) + 1} lines of {path}")
    return "\n" * skip + rest


def _read_libsvm(path: str, raw: bytes, words: str) -> FileColumns:
    """The label, and a column for each index, which is its name; `raw` is the file, maybe compressed."""
    # Indices begin at 0 or at 1, as the file has them
    x, y = libsvm.read_libsvm(words.encode(), path)
    first = 0 if (x.indices == 0).any() else 1
    # A dense array with all zeros may be much larger than the text
    needed = np.dtype(np.float64).itemsize * len(y) * x.shape[1]
    what = f"{path}, {len(y):,} samples of {x.shape[1]:,} features, with their zeros"
    if needed > own_file.memory_room(len(raw)):
        raise FklError(
            f"{what}, would take {shown_bytes(needed)} of memory; a YAML with format: libsvm_sparse can read it"
        )
    require_memory(needed, what, own_file.LOWER)
    # The label and one column per index; lines of the samples, for messages
    values = x.toarray()
    numbers = {libsvm.LABEL: y, **{str(index): values[:, index] for index in range(first, x.shape[1])}}
    columns = {name: FileColumn.of_numbers(column) for name, column in numbers.items()}
    lines = [n for n, line in enumerate(words.split("\n"), 1) if line.partition("#")[0].strip()]
    return FileColumns(path, columns, Place(path, "line", lines), len(y), zeros_left_out=True)


def _header_in(comments: str, words: str, sign: str, file_format: FileFormat) -> str:
    """The last comment line if it has the names of columns, as in files that numpy writes."""
    _, _, last = comments.rstrip().rpartition("\n")
    rows = [cells for _, cells in islice(_read_records(words, sign), 2)]
    numbers = [any(file_format.number(cell) is not None for cell in cells) for cells in rows]
    if (
        not last.lstrip().startswith("#") or not rows or file_format.header is False or numbers == [False, True]
    ):  # the first row has the names
        return ""
    named = last.lstrip("# \t") if last.lstrip().startswith(("# ", "#\t")) else last
    return named + "\n" if len(next(_read_records(named, sign))[1]) == len(rows[0]) else ""


def has_names(first: Sequence[str], file_format: FileFormat, where: str) -> bool:
    """Whether the first row names the columns: `FileFormat.header`, or unless all its cells are numbers or missing.

    Raises
    ------
    FklError
        If that must be detected, and the names look like data.
    """
    if file_format.header is not None:
        return file_format.header
    named = any(not file_format.is_hole(cell) and file_format.number(cell) is None for cell in first)
    if named:
        _refuse_data(where, first, file_format)
    return named


def _read_columns(path: str, words: str, line: int, sign: str, file_format: FileFormat) -> FileColumns:
    # The first two records decide about the header and the width
    records = _read_records(words, sign, line)
    head = list(islice(records, 2))
    if not head:
        raise FklError(f"{path}: empty; must be a table with rows")
    (line, first), width = head[0], len(head[-1][1])
    header = has_names(first, file_format, f"{path}, line {line}")
    # One more cell than names: a column of row names, or a delimiter at every line's end
    one_short = header and width == len(first) + 1  # R leaves out the name of the column with names of rows
    if not one_short and (width != len(first) - 1 or first[-1]):  # the header alone ends with a delimiter
        width = len(first)
    # The fast way for plain text, the slow one for quotes and uneven rows
    table = _cells_at_once(words, line, sign, width, header)
    if table is None:
        where = f"line {head[width != len(first)][0]}"
        table = _cells_by_record(
            path, chain(head[header:], records), sign, width, where, partial(_skip_hint, words, line, file_format)
        )
    columns = table.columns(file_format)
    # Nothing in the last column: the delimiter at the end of lines
    if one_short and not any(columns[-1].cells):  # all lines except the header end with a delimiter
        one_short, columns = False, columns[:-1]
    # A first column without a name must hold names of rows, otherwise the header is too short
    quoted = words.count('\n"') >= len(table.lines)
    if one_short and not only_name_rows(columns[0].cells, quoted, sign):
        named = all(file_format.number(cell) is None for cell in head[1][1])
        cause = (
            named and _skip_hint(words, line, file_format)
        ) or f"; {_cause_of_one_more(head[1][1], first, sign, words)}"
        cells = f"{count_of(width, 'cell')} where line {line} has {len(first)} (between cells: {_word_for(sign)})"
        raise FklError(f"{path}, line {head[1][0]}: {cells}{cause}")
    # Names, columns and their place in the file
    names = ["", *first] if one_short else first[: len(columns)]
    by_name = dict(zip(distinct_names(names if header else [""] * width), columns, strict=True))
    file = FileColumns(path, by_name, Place(path, "line", table.lines), len(table.lines))
    return file.with_row_names(names) if header else file


def _word_for(sign: str) -> str:
    """The name of a delimiter on a command line."""
    return next((word for word, known in DELIMITERS.items() if known == sign), sign)


def _cause_of_one_more(cells: Sequence[str], names: Sequence[str], sign: str, words: str) -> str:
    """Why rows may have one cell more than the header has names, and what to do."""
    if "'" in words and '"' not in words:
        return f"a cell with a delimiter needs double quotes, not single ones; or name all {len(cells)} columns"
    # pandas reads numbers fast; this sees text only where a column is not numeric
    halves = any(one.lstrip("+-").isdecimal() and two.isdecimal() for one, two in pairwise(cells))
    if sign == "," and halves:
        means = "if commas are decimal or group digits, quote such cells, or separate cells by semicolons"
        return f"{means}; else name all {len(cells)} columns"
    return f"name all {len(cells)} columns; {', '.join(map(cut_cell, names[:NAMES_SHOWN]))} are {len(names)}"


@dataclass(frozen=True)
class _Table:
    """The cells of a text: pandas reads the numbers, and `ends` finds the words.

    Parameters
    ----------
    body : bytes
        Rows of `width` cells each.
    sign, row_end : str
        What ends a cell, and the last one of a row; neither is in a cell.
    ends : (rows * width,) int64
        Where each cell ends in `body`.
    lines : sequence of int
        The line of each row in the file.
    """

    body: bytes
    sign: str
    row_end: str
    ends: NDArray[np.int64]
    width: int
    lines: Sequence[int]

    def columns(self, file_format: FileFormat) -> list[FileColumn]:
        """All columns; numbers are those of Python, to the last digit."""
        from pandas import read_csv

        # Without rows, all columns are empty
        if not self.lines:
            return [FileColumn.of_text(CodedCells.from_cells([]), file_format)] * self.width
        frame = read_csv(
            io.BytesIO(self.body),
            sep=self.sign,
            lineterminator=self.row_end,
            header=None,
            names=range(self.width),
            quoting=csv.QUOTE_NONE,
            keep_default_na=False,
            na_values=file_format.words_missing,
            decimal=DECIMALS[file_format.decimal],
            skip_blank_lines=False,
            low_memory=False,
            float_precision=exact_floats(),
        )
        # Columns with padded numbers are read as text, because their zeros matter
        padded = self._padded_rows
        return [
            self._column_of_numbers(j, values, file_format)
            if values.dtype.kind in "iuf" and j not in padded
            else FileColumn.of_text(self._cells_of(j), file_format)
            for j, (_, values) in enumerate(frame.items())
        ]

    def _column_of_numbers(self, j: int, column: "Series[Any]", file_format: FileFormat) -> FileColumn:
        # The number column, with its missing cells as NaN
        values = column.to_numpy(np.float64, copy=True)
        values += 0.0  # no negative zero, as in `FileFormat.number`
        holes = np.isnan(values)
        if file_format.numbers_missing:
            holes |= np.isin(values, list(file_format.numbers_missing))
            values[holes] = np.nan
        # Whole numbers that were written plainly need no text of their own: it follows from the value
        cells = CellsOnDemand(len(values), partial(self._cells_of, j))
        if column.dtype.kind != "f" and not holes.any() and (size := np.abs(values)).max() < EXACT:
            digits = np.searchsorted(TENS, size, side="right") + 1 + (values < 0)
            if (digits == self._bytes_of_cells(j)).all():
                return FileColumn(WholeNumbers(values), holes, values, text=False)
        return FileColumn(cells, holes, values, text=False)

    def _begins_of_cells(self, j: int) -> NDArray[np.int64]:
        """Where the cells of a column begin."""
        before = self.ends[j - 1 :: self.width] if j else np.append(-1, self.ends[self.width - 1 : -1 : self.width])
        return before + 1

    def _bytes_of_cells(self, j: int) -> NDArray[np.int64]:
        """Bytes of the cells of a column."""
        lengths: NDArray[np.int64] = self.ends[j :: self.width] - self._begins_of_cells(j)
        return lengths

    def _cells_of(self, j: int) -> CodedCells:
        """Cells of a column as they are in the text, without spaces at both ends."""
        begins, ends = self._begins_of_cells(j).tolist(), self.ends[j :: self.width].tolist()
        cells = CodedCells.from_cells(self.body[begin:end] for begin, end in zip(begins, ends, strict=True))
        return cells.map(lambda cell: cell.decode().strip())

    @cached_property
    def _padded_rows(self) -> set[int]:
        """Columns with a cell such as 007, which is no number if it is an id."""
        body = np.frombuffer(self.body, np.uint8)
        begins = np.append(0, self.ends[:-1] + 1)
        longest = np.flatnonzero(self.ends - begins > 2)
        begins = begins[longest]
        ids = (body[begins] == ord("0")) & (body[begins + 1] - ord("0") < 10) & (body[begins + 2] - ord("0") < 10)
        return set((longest[ids] % self.width).tolist())


def _cells_by_record(
    path: str,
    records: Iterable[tuple[int, list[str]]],
    sign: str,
    width: int,
    where: str,
    hint: Callable[[], str],
) -> _Table:
    """The table of records that all have this number of cells, that of the line `where`."""
    # Every record must have the same number of cells
    lines: list[int] = []
    rows: list[str] = []
    for line, row in records:
        if len(row) != width:
            other = f"{where} has {width} (between cells: {_word_for(sign)})"
            raise FklError(f"{path}, line {line}: {count_of(len(row), 'cell')} where {other}{hint()}")
        lines.append(line)
        rows.append(CELL_END.join(row))
    # Joined by signs that no cell has, so the cells' ends can be found at once
    body = ROW_END.join([*rows, ""]).encode()
    signs = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero((signs == ord(CELL_END)) | (signs == ord(ROW_END)))
    return _Table(body, CELL_END, ROW_END, ends, width, lines)


def _skip_hint(words: str, line: int, file_format: FileFormat) -> str:
    """Advice if a later line than this begins the rows that have the same number of cells, down to the last ones."""
    # For each delimiter, how many lines at the end have equally many cells
    longest, begins = 0, (0, 0, "")
    for sign in DELIMITERS.values():
        with suppress(csv.Error):
            widths = [(number, len(cells)) for number, cells in islice(_read_records(words, sign, line), SNIFFED_LINES)]
            alike = list(takewhile(lambda one, last=widths[-1][1]: one[1] == last > 1, reversed(widths)))  # type: ignore[misc]
            if len(alike) > longest and len(alike) < len(widths):
                longest, begins = len(alike), (*alike[-1], _word_for(sign))
    # If they are enough, the table probably begins with the first of them
    number, width, word = begins
    begins_there = f"if the table begins at line {number}, which has {width} (between cells: {word})"
    return f"; {file_format.as_typed(skip=number - 1)} {begins_there}" if longest >= LEAST_ROWS else ""


def _cells_at_once(words: str, line: int, sign: str, width: int, header: bool) -> _Table | None:
    """The table of a text without quotes or blank lines; None for other texts, which must be read by records."""
    # Where the rows begin: after blank lines and the header
    above = BLANK_LINES.match(words)
    begin = above.end() if above else 0
    if header:
        begin = words.find("\n", begin) + 1 or len(words)
    rest = words[begin:].rstrip("\n") + "\n"
    if sign == " ":
        rest = rest.replace("\t", " ")
    # Quotes and texts of one column need the slow way
    if '"' in words or not sign.isascii() or rest == "\n" or width == 1:  # a blank line may be a cell
        return None
    while (
        " " in rest and sign + " " in rest
    ):  # spaces before a cell do not count, and several spaces that delimit count as one
        rest = rest.replace(sign + " ", sign)
    rest = rest.replace("\n ", "\n").replace(" \n", "\n").removeprefix(" ") if sign == " " else rest
    # Cells end at delimiters and at line ends; every row must have `width` of them
    body = rest.encode()
    signs = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero((signs == ord(sign)) | (signs == ord("\n")))
    last = signs[ends] == ord("\n")
    if len(last) % width or not last[width - 1 :: width].all() or last.sum() != len(last) // width:
        return None
    begin = line + header
    return _Table(body, sign, "\n", ends, width, range(begin, begin + len(ends) // width))


def _refuse_data(where: str, names: Sequence[str], file_format: FileFormat) -> None:
    """Refuse names that look like a row of data: numbers that are not in order. Years and wavelengths are in order."""
    numbers = [file_format.number(name) for name in names if not file_format.is_hole(name)]
    numbers_known = [number for number in numbers if number is not None]
    steps = np.diff(numbers_known)
    whole, fractions = all(number % 1 == 0 for number in numbers_known), len(numbers_known) > max(2, len(names) / 2)
    in_order = ((whole or fractions) and (steps > 0).all()) or (whole and (steps < 0).all())
    if not in_order or "?" in names:
        shown = ", ".join(map(cut_cell, names[:NAMES_SHOWN])) + ", ..." * (len(names) > NAMES_SHOWN)
        keys = f"{file_format.as_typed(header='false')}, or {file_format.as_typed(header='true')} if these are names"
        raise FklError(f"{where} looks like data ({shown}): {keys}")


def require_rows(path: str, count: int, which: str = "", least: int = LEAST_ROWS) -> None:
    """Raise an error if a table has too few rows."""
    if count < least:
        raise FklError(
            f"{path}: {count_of(count, 'row')}{which} where at least {least} {'is' if least == 1 else 'are'} needed"
        )


def _read_records(words: str, delimiter: str, line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Line number, counted from `line`, and cells of every record; blank lines are skipped.

    Raises
    ------
    csv.Error
        Its message starts with the line.
    """
    # Spaces at a line's end would be one more cell if spaces delimit, and have no meaning otherwise.
    # Between cells, tabs count like spaces, as R reads them.
    tidy = (line.rstrip(" \n") + "\n" for line in _iterate_lines(words))
    if delimiter == " ":
        tidy = (line.replace("\t", " ").rstrip(" \n") + "\n" for line in tidy)
    reader = csv.reader(tidy, delimiter=delimiter, skipinitialspace=True, strict=True)
    above, line = line, line
    try:
        for cells in reader:
            if cells:
                yield line, list(map(str.strip, cells))
            line = above + reader.line_num
    except csv.Error as error:
        raise csv.Error(f"line {line}: {error}") from None


def _iterate_lines(words: str) -> Iterator[str]:
    """Lines one by one, because often only the first are needed."""
    begin = 0
    while begin < len(words):
        end = words.find("\n", begin) + 1 or len(words)
        yield words[begin:end]
        begin = end


def _sniff_delimiter(words: str, file_format: FileFormat) -> str:
    """The delimiter for which most of the first lines have as many cells as line 1; then that with most numbers.

    A comma if no delimiter is in the first line. The comma is not tried if decimals have a comma.
    """
    # For each delimiter: how many lines have as many cells as the first, or one more
    fits: dict[str, int] = {}
    cells_of: dict[str, list[str]] = {}
    for sign in [sign for sign in DELIMITERS.values() if (file_format.decimal, sign) != ("comma", ",")]:
        with suppress(csv.Error):
            rows = [cells for _, cells in islice(_read_records(words, sign), SNIFFED_LINES)]
            if rows and len(rows[0]) > 1:
                fits[sign] = max(sum(len(row) == width for row in rows) for width in (len(rows[0]), len(rows[0]) + 1))
                cells_of[sign] = [cell for row in rows for cell in row]
    # If several fit equally well, take the one with most numbers
    best = [sign for sign in fits if fits[sign] == max(fits.values())]
    if len(best) < 2:
        return best[0] if best else ","
    numbers = {
        sign: [file_format.is_hole(one) or file_format.number(one) is not None for one in cells_of[sign]]
        for sign in best
    }
    return max(best, key=lambda sign: sum(numbers[sign]) / len(numbers[sign]))
