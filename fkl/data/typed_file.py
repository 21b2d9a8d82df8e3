"""Tables in files that store the types of their columns: Parquet, Feather, npz, and Excel workbooks."""

import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line, plural, requires_extra
from fkl.basics.files import DAMAGE
from fkl.basics.memory import limited_to_free_memory, shown_bytes
from fkl.data import own_file
from fkl.data.columns import Coded, Column, Columns, Place, checked_names, short
from fkl.data.encoder import Reading

if TYPE_CHECKING:
    from pandas import DataFrame, Series

INDEX = re.compile(r"__index_level_\d+__")
"""Names under which pandas writes row labels, which are not a column."""
PER_CELL = 72
"""Maximum memory in bytes of a cell before it is converted to a number."""


def _require_room(path: str, raw: bytes, rows: int, columns: int) -> None:
    needed = (PER_CELL * rows + own_file.PER_COLUMN) * max(columns, 1)  # rows without columns take room, too
    own_file.require_room(path, raw, needed, f"{rows:,} rows of {plural(columns, 'column')}")


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


def _read_npz(path: str, raw: bytes) -> "DataFrame":
    """Arrays with one axis are columns; each column of an array with two axes is a column, named with its number."""
    from pandas import DataFrame

    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        size = sum(member.file_size for member in file.infolist())
    own_file.require_room(path, raw, 2 * size, "its arrays")
    columns: dict[str, NDArray[Any]] = {}
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        for name in arrays.files:
            array = arrays[name]
            if array.ndim not in (1, 2):
                raise FklError(f"{path}: {short(name)} has {array.ndim} axes; must be a column, or rows of columns")
            _require_room(path, raw, len(array), array.size // max(1, len(array)))
            parts = {name: array} if array.ndim == 1 else {f"{name}{i + 1}": part for i, part in enumerate(array.T)}
            columns |= parts
    lengths = {name: len(column) for name, column in columns.items()}
    for name, length in lengths.items():
        first, rows = next(iter(lengths.items()))
        if length != rows:
            raise FklError(f"{path}: {short(name)} has {length} rows where {short(first)} has {rows}")
    return DataFrame(columns)


def _read_xls(path: str, raw: bytes) -> "DataFrame":
    """The first sheet of an old Excel workbook; its first row has the names."""
    import xlrd

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
        rows = [
            [kinds[cell.ctype](cell.value) if cell.ctype in kinds else None for cell in sheet.row(row)]
            for row in range(sheet.nrows)
        ]
    except FklError:
        raise
    except Exception as error:  # xlrd can raise any error for a damaged sheet
        raise ValueError(str(error)) from error
    return _frame_of_sheet(path, rows)


def _read_xlsx(path: str, raw: bytes) -> "DataFrame":
    """The first sheet of an Excel workbook; cells with formulas have the values that Excel has computed."""
    from openpyxl import load_workbook

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            size = sum(member.file_size for member in file.infolist())
        own_file.require_room(path, raw, size, "its sheets")
        sheet = load_workbook(io.BytesIO(raw), read_only=True, data_only=True).worksheets[0]
        rows = [
            [float(cell) if type(cell) is int else cell for cell in row] for row in sheet.iter_rows(values_only=True)
        ]
    except FklError:
        raise
    except Exception as error:  # openpyxl can raise any error for a damaged workbook
        raise ValueError(str(error)) from error
    while rows and all(cell is None for cell in rows[-1]):  # cells that once had a value
        rows.pop()
    return _frame_of_sheet(path, rows)


def _frame_of_sheet(path: str, rows: list[list[object]]) -> "DataFrame":
    """The rows of a sheet under the names in the first one, without columns that have neither a name nor a cell."""
    from pandas import DataFrame

    width = max(map(len, rows), default=0)
    columns = [*zip(*(row + [None] * (width - len(row)) for row in rows), strict=True)]
    named = checked_names(["" if name is None else str(name) for name, *_ in columns], path)
    cells = {name: part[1:] for name, part in zip(named, columns, strict=True) if any(one is not None for one in part)}
    return DataFrame(cells, dtype=object).infer_objects()


FORMATS: dict[str, tuple[str, Callable[[str, bytes], "DataFrame"]]] = {
    ".parquet": ("Parquet", _read_parquet),
    ".feather": ("Feather", _read_feather),
    ".npz": ("npz", _read_npz),
    ".xls": ("Excel", _read_xls),
    ".xlsx": ("Excel", _read_xlsx),
}
"""Name of a format and its reader, by file suffix."""


def read(path: str, raw: bytes, reading: Reading) -> Columns:
    """Columns of a file in one of these formats, by its content.

    Raises
    ------
    FklError
        If it is damaged, its columns are neither numbers nor text, or its reader is not installed.
    """
    words, reader = FORMATS[Path(path).suffix.lower()]
    try:
        with requires_extra("files", path), limited_to_free_memory(own_file.room(len(raw))):
            frame = reader(path, raw)
        frame = frame[[name for name in frame if not INDEX.fullmatch(str(name))]]
        names = checked_names([str(name) for name in frame], path)
        columns = {name: _convert_column(path, name, frame.iloc[:, i], reading) for i, name in enumerate(names)}
    except MemoryError:
        more = f"{shown_bytes(len(raw))} unpack to more than {shown_bytes(own_file.room(len(raw)))}"
        raise FklError(f"{path}: {more}; if this is intended, write it without compression") from None
    except DAMAGE as error:
        said = in_one_line(str(error).partition("\n")[0])
        raise FklError(f"{path}: is no {words} file, or is damaged: {said}") from None
    return Columns(path, columns, Place(path, "row", range(1, len(frame) + 1)), len(frame))


def _convert_column(path: str, name: str, values: "Series[Any]", reading: Reading) -> Column:
    from pandas.api import types

    holes = values.isna().to_numpy(np.bool_, copy=True)
    if types.is_bool_dtype(values.dtype) or types.is_integer_dtype(values.dtype) or types.is_float_dtype(values.dtype):
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        holes |= np.isin(numbers, list(reading.numbers_missing))
        numbers = np.where(holes, np.nan, numbers)
        return Column(values.to_numpy(), holes, numbers, text=False)
    cells = values.astype(object).to_numpy()
    kinds = {type(cell) for cell, hole in zip(cells, holes, strict=True) if not hole}
    if kinds in ({Decimal}, {bool}):  # also booleans if some are missing
        return Column(
            cells,
            holes,
            np.array([np.nan if hole else float(c) for c, hole in zip(cells, holes, strict=True)]),
            text=False,
        )
    if all(issubclass(kind, date) for kind in kinds):
        return Column(cells, holes, np.full(len(cells), np.nan), text=bool((~holes).any()))
    if not kinds <= {str, np.str_, time, float, bool}:  # a workbook can mix the last two with words
        kind = next(kind.__name__ for kind in kinds if kind not in (str, np.str_, float, bool))
        raise FklError(f"{path}, column {short(name)}: holds values of type {kind}; must be numbers or text")
    words = [
        "" if hole else f"{cell:.17g}" if isinstance(cell, float) else str(cell).strip()
        for cell, hole in zip(cells, holes, strict=True)
    ]
    return Column.of_text(
        Coded.of(words), reading if reading.hole is not None else replace(reading, hole=())
    )  # NA is a word
