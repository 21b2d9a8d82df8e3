"""Tables in files that store the types of their cells: Parquet, Feather, numpy's files, and Excel workbooks."""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, count_of, in_one_line, require, requires_extra
from fkl.basics.files import DAMAGE
from fkl.basics.memory import limited_to_free_memory, shown_bytes
from fkl.data import csv_file, own_file
from fkl.data.columns import CodedCells, FileColumn, FileColumns, Place, cut_cell, distinct_names
from fkl.data.encoder import FileFormat, word_of

if TYPE_CHECKING:
    from pandas import DataFrame


class Fault(str):
    """Why a column cannot be read."""

    __slots__ = ()


NUMBERS = (int, float, Decimal, np.integer, np.floating)
READABLE = (*NUMBERS, str, bool, np.bool_, date, time)
"""Types of cells that can be read."""
OBJECTS = "holds Python objects, which fkl does not load, because loading them can run code"
INDEX = re.compile(r"__index_level_\d+__")
"""Names under which pandas writes row labels, which are not a column."""
PER_CELL = 72
"""Maximum memory in bytes of a cell before it is converted to a number."""


def _require_room(path: str, raw: bytes, rows: int, columns: int) -> None:
    needed = (PER_CELL * rows + own_file.PER_COLUMN) * max(columns, 1)  # rows without columns take room, too
    own_file.require_room(path, raw, needed, f"{rows:,} rows of {count_of(columns, 'column')}")


def _to_pandas(table: Any) -> "DataFrame":
    table.validate(full=True)  # finds, for example, words that are not UTF-8, and indices outside the file
    frame: DataFrame = table.to_pandas(ignore_metadata=True, use_threads=False)
    return frame


def _read_parquet(path: str, raw: bytes) -> "DataFrame":
    from pyarrow import BufferReader, parquet

    file = parquet.ParquetFile(BufferReader(raw))
    _require_room(path, raw, file.metadata.num_rows, file.metadata.num_columns)
    # On many cores, the stacks of the threads alone would use up the memory that the file may take.
    return _to_pandas(file.read(use_threads=False))


def _read_feather(path: str, raw: bytes) -> "DataFrame":
    from pyarrow import BufferReader, feather

    table = feather.read_table(BufferReader(raw), use_threads=False, memory_map=False)
    _require_room(path, raw, table.num_rows, table.num_columns)
    return _to_pandas(table)


def _read_npz(path: str, raw: bytes) -> dict[str, Any]:
    """Arrays with one axis are columns; each column of an array with two axes is a column, named with its number."""
    # Unpacked arrays must fit in memory
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        size = sum(member.file_size for member in file.infolist())
    own_file.require_room(path, raw, 2 * size, "its arrays")
    columns: dict[str, Any] = {}
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        # Pickled arrays could run code, so they are a fault and are not read
        for name in arrays.files:
            try:
                array = arrays[name]
            except ValueError as error:
                if "allow_pickle" not in str(error):
                    raise
                columns[name] = Fault(f"{OBJECTS}; save its arrays of numbers, as numpy.savez(path, x=x, y=y) does")
                continue
            columns |= _columns_of_array(path, raw, name, array)
    # Training and test rows under separate names are two files of a table
    if {"x_train", "x_test"} <= {re.sub(r"\d+$", "", name).lower() for name in columns}:
        command = "numpy.savez('train.npz', x=a['x_train'], y=a['y_train'])"
        keys = "dataset.path=train.npz dataset.test_path=test.npz"
        raise FklError(
            f"{path}: has training and test rows under names of their own; make a file of each, as {command} does with "
            f"a = numpy.load({path!r}), and likewise test.npz; then {keys}"
        )
    return columns


def _read_npy(path: str, raw: bytes) -> dict[str, Any]:
    """One array: each of its columns is a column, named with its number, or with its field's name."""
    own_file.require_room(path, raw, 2 * len(raw), "its array")
    array = np.load(io.BytesIO(raw), allow_pickle=False)
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    return _columns_of_array(path, raw, "", array)


def _columns_of_array(path: str, raw: bytes, name: str, array: NDArray[Any]) -> dict[str, Any]:
    if array.dtype.names:
        one = array.dtype.names[0]
        advice = f"must be arrays of their own, as numpy.savez(path, {one}={name}[{one!r}], ...) saves them"
        return {name: Fault(f"has the fields {', '.join(array.dtype.names)}; {advice}")}
    if array.ndim not in (1, 2):
        rows = f"must be a column, or rows of columns, as {name or 'x'}.reshape(len({name or 'x'}), -1) makes them"
        return {name: Fault(f"has {array.ndim} axes; {rows if array.ndim else 'must be a column, or rows of columns'}")}
    _require_room(path, raw, len(array), array.size // max(1, len(array)))
    return {name or "1": array} if array.ndim == 1 else {f"{name}{i + 1}": part for i, part in enumerate(array.T)}


def _read_xls(path: str, raw: bytes) -> list[list[object]]:
    """Rows of the first sheet of an old Excel workbook."""
    import xlrd

    # Types of cells; all others are empty
    kinds: dict[int, Callable[[Any], object]] = {
        xlrd.XL_CELL_NUMBER: float,
        xlrd.XL_CELL_TEXT: str,
        xlrd.XL_CELL_BOOLEAN: bool,
    }
    try:
        book = xlrd.open_workbook(file_contents=raw, logfile=io.StringIO())
        sheet = book.sheet_by_index(0)
        _require_room(path, raw, sheet.nrows, sheet.ncols)
        kinds[xlrd.XL_CELL_DATE] = lambda days: xlrd.xldate_as_datetime(days, book.datemode)
        return [
            [kinds[cell.ctype](cell.value) if cell.ctype in kinds else None for cell in sheet.row(row)]
            for row in range(sheet.nrows)
        ]
    except FklError:
        raise
    except Exception as error:  # xlrd can raise any error for a damaged sheet
        raise ValueError(str(error)) from error


def _read_xlsx(path: str, raw: bytes) -> list[list[object]]:
    """Rows of the first sheet of an Excel workbook; cells with formulas have the values that Excel has computed."""
    from openpyxl import load_workbook

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            size = sum(member.file_size for member in file.infolist())
        # A workbook may unpack to far more than its size
        own_file.require_room(path, raw, size, "its sheets")
        sheet = load_workbook(io.BytesIO(raw), read_only=True, data_only=True).worksheets[0]
        return [list(row) for row in sheet.iter_rows(values_only=True)]
    except FklError:
        raise
    except Exception as error:  # openpyxl can raise any error for a damaged workbook
        raise ValueError(str(error)) from error


FORMATS: dict[str, tuple[str, Callable[[str, bytes], Any]]] = {
    ".parquet": ("Parquet", _read_parquet),
    ".feather": ("Feather", _read_feather),
    ".npz": ("npz", _read_npz),
    ".npy": ("npy", _read_npy),
    ".xls": ("Excel", _read_xls),
    ".xlsx": ("Excel", _read_xlsx),
}
"""Name of a format and its reader, by file suffix: of columns by name, or of the rows of a sheet."""


def read_typed_file(path: str, raw: bytes, file_format: FileFormat) -> FileColumns:
    """Columns of a file in one of these formats, by its content.

    Raises
    ------
    FklError
        If it is damaged, a key cannot be obeyed, or the reader is not installed.
    """
    # A typed file knows its delimiter and encoding, so keys must not set them
    kind, reader = FORMATS[Path(path).suffix.lower()]
    is_sheet = kind == "Excel"
    for key in ("delimiter", "encoding") if is_sheet else ("delimiter", "encoding", "header", "skip"):
        value = getattr(file_format, key)
        allowed = f"omitted for {path}, which is {'a sheet' if is_sheet else 'a table with names'} and no text"
        require(value == getattr(FileFormat, key), key, value, allowed)
    try:
        # Limit the memory, because libraries allocate before they check
        with requires_extra("files", path), limited_to_free_memory(own_file.memory_room(len(raw))):
            content = reader(path, raw)
            return (
                _columns_of_sheet(path, content, file_format)
                if is_sheet
                else _columns_by_name(path, content, file_format)
            )
    except MemoryError:
        more = f"{shown_bytes(len(raw))} unpack to more than {shown_bytes(own_file.memory_room(len(raw)))}"
        raise FklError(f"{path}: {more}; if this is intended, write it without compression") from None
    except DAMAGE as error:
        said = in_one_line(str(error).partition("\n")[0])
        if "allow_pickle" in said:
            raise FklError(f"{path}: {OBJECTS}; save an array of numbers") from None
        raise FklError(f"{path}: is no {kind} file, or is damaged: {said}") from None


def _columns_by_name(path: str, content: Any, file_format: FileFormat) -> FileColumns:
    """Columns of a data frame, or of arrays by name; some may have a fault."""
    # Columns that differ in length from most others have a fault
    parts = [(str(name), part) for name, part in content.items() if not INDEX.fullmatch(str(name))]
    lengths = [len(part) for _, part in parts if not isinstance(part, Fault)]
    rows = Counter(lengths).most_common(1)[0][0] if lengths else 0
    longest = next((name for name, part in parts if not isinstance(part, Fault) and len(part) == rows), "")
    columns = []
    for _, part in parts:
        if not isinstance(part, Fault) and len(part) != rows:
            part = Fault(f"has {count_of(len(part), 'row')} where {cut_cell(longest)} has {rows}")
        columns.append(
            FileColumn.unreadable_column(rows, part) if isinstance(part, Fault) else _convert_column(part, file_format)
        )
    if not lengths:
        raise FklError(f"{path}: {next((part for _, part in parts), 'has no column')}")
    # Names, and rows counted from 1
    names = [name for name, _ in parts]
    by_name = dict(zip(distinct_names(names), columns, strict=True))
    return FileColumns(path, by_name, Place(path, "row", range(1, rows + 1)), rows).with_row_names(names)


def _columns_of_sheet(path: str, rows: list[list[object]], file_format: FileFormat) -> FileColumns:
    """Columns of a sheet, like those of text: names in its first row, unless that has only numbers."""
    # Skip rows, then blank rows above and below
    allowed = f"fewer than the {count_of(len(rows), 'row')} of {path}"
    require(file_format.skip < max(1, len(rows)), "skip", file_format.skip, allowed)
    rows = rows[file_format.skip :]
    empty = [all(cell is None for cell in row) for row in rows]
    begin = next((number for number, none in enumerate(empty) if not none), len(rows))
    while rows and all(cell is None for cell in rows[-1]):  # cells that once had a value
        rows.pop()
    rows, width = rows[begin:], max(map(len, rows), default=0)
    if not rows:
        raise FklError(f"{path}: empty; must be a table with rows")
    # The first row has names, unless its cells are numbers
    first = ["" if cell is None else word_of(cell) for cell in rows[0]] + [""] * (width - len(rows[0]))
    header = csv_file.has_names(first, file_format, f"{path}, sheet row {file_format.skip + begin + 1}")
    names = first if header else [""] * width
    # Shorter rows are filled with empty cells
    cells = zip(*(row + [None] * (width - len(row)) for row in rows[header:]), strict=True)
    columns = [_convert_cells(list(part), file_format) for part in cells] or [
        FileColumn.of_text(CodedCells.from_cells([]), file_format)
    ] * width
    count = len(rows) - header
    by_name = dict(zip(distinct_names(names), columns, strict=True))
    first_row = file_format.skip + begin + header + 1
    table = FileColumns(path, by_name, Place(path, "sheet row", range(first_row, first_row + count)), count)
    return table.with_row_names(names) if header else table


def _convert_column(values: Any, file_format: FileFormat) -> FileColumn:
    """A column of a data frame, or an array of one axis."""
    from pandas import Series
    from pandas.api import types

    values = Series(values)
    # Numbers and truth values; all else cell by cell
    if types.is_bool_dtype(values.dtype) or types.is_integer_dtype(values.dtype) or types.is_float_dtype(values.dtype):
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        return FileColumn.of_numbers(numbers, values.to_numpy(), file_format.numbers_missing)
    return _convert_cells(
        [None if hole else cell for cell, hole in zip(values.astype(object), values.isna(), strict=True)], file_format
    )


def _convert_cells(cells: list[Any], file_format: FileFormat) -> FileColumn:
    """A column of typed cells: numbers, text, dates, or several of them; None is missing."""
    # Types that are no cells are a fault of the column
    kinds = {type(cell) for cell in cells} - {type(None)}
    for kind in kinds:
        if not issubclass(kind, READABLE):
            row = next(row for row, cell in enumerate(cells) if type(cell) is kind)
            fault = f"holds values of type {kind.__name__}, first in row {row + 1}; must be numbers, text or dates"
            return FileColumn.unreadable_column(len(cells), fault)
    # Only numbers, or only truth values
    if kinds and all(issubclass(kind, NUMBERS) for kind in kinds) and (bool not in kinds or len(kinds) == 1):
        numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
        return FileColumn.of_numbers(numbers, cells, file_format.numbers_missing)
    # NA is a word in a typed file, where a missing cell has a type of its own
    file_format = file_format if file_format.hole is not None else replace(file_format, hole=())
    column = FileColumn.of_text(
        CodedCells.from_cells("" if cell is None else word_of(cell) for cell in cells), file_format
    )
    # Mixed cells: numbers keep their values, the rest are words or dates
    typed = [row for row, cell in enumerate(cells) if isinstance(cell, NUMBERS) and type(cell) is not bool]
    column.numbers[typed] = [float(cells[row]) for row in typed]
    column.numbers[column.holes] = np.nan
    dates = np.array([cell if isinstance(cell, date) else None for cell in cells], object)
    return column.with_typed(dates) if typed or dates.any() else column
