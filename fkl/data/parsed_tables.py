"""Parsed copies of the user's tables in the cache, so the runs of a sweep or study parse a file only once."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.files import DAMAGE, CannotWriteError, read_sealed, write_sealed
from fkl.data.columns import CellsOnDemand, CodedCells, FileColumn, FileColumns, Place, WholeNumbers
from fkl.data.encoder import FileFormat

NAME = re.compile(r"[0-9a-f]{32}\.npz")
LEAST, MOST = 1 << 20, 1 << 30
"""Minimum bytes of a file that is worth caching, and maximum bytes of a cached table."""
READER = ("columns", "csv_file", "encoder", "libsvm", "notation", "own_file", "matrices", "typed_file", "parsed_tables")
"""Modules on which the parsed table depends."""


def read_cached(
    path: str, digest: str, file_format: FileFormat, parse: Callable[[], FileColumns], folder: Path
) -> FileColumns:
    """The columns of a file, from the cache if it has them.

    Parameters
    ----------
    path : str
    digest : str
        SHA-256 of the file.
    file_format : FileFormat
        How the file is read.
    parse : callable
        Function that parses the file.
    folder : Path
        Folder of the cached tables.
    """
    # The name of the file in the cache depends on the content, on how it is read, and on the reader's code
    key = digest, Path(path).suffix.lower(), sorted(file_format.as_plain().items()), _reader_version()
    file = folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.npz"
    with suppress(*DAMAGE):  # no file, or one that has changed since it was written
        return _unpack_columns(path, read_sealed(file), cache(parse))
    # Read anew, and keep the arrays if they are not too large
    columns = parse()
    arrays = _pack_columns(columns)
    if arrays and sum(array.nbytes for array in arrays.values()) <= MOST:
        with suppress(CannotWriteError):  # a cache that cannot be written costs only time
            write_sealed(file, arrays)
    return columns


def cached_files(folder: Path) -> Iterator[Path]:
    """Files of all cached tables."""
    if folder.is_dir():
        yield from sorted(file for file in folder.iterdir() if NAME.fullmatch(file.name) and file.is_file())


@cache
def _reader_version() -> str:
    """Version of the reader: a digest of its code and of the library that it reads with."""
    import pandas

    sources = [Path(__file__).with_name(f"{name}.py").read_bytes() for name in READER]
    return hashlib.sha256(b"\0".join([*sources, pandas.__version__.encode()])).hexdigest()


def _pack_columns(columns: FileColumns) -> dict[str, NDArray[Any]]:
    """Arrays from which `_unpack_columns` makes the columns again; none if some cells are typed dates."""
    # Columns by name, their cells as codes and words, or as numbers alone
    about, codes = [], []
    for name, column in columns.by_name.items():
        words = column.cells.different if isinstance(column.cells, CodedCells) else None
        if column.dates is not None:
            return {}
        if isinstance(column.cells, CodedCells):
            codes.append(column.cells.code)
        whole = isinstance(column.cells, WholeNumbers)
        about.append([name, column.text, column.padded, column.fault, whole, words])
    # Lines of the rows, as a range if they are consecutive
    place = columns.place
    assert isinstance(place, Place)
    lines = (place.numbers.start, place.numbers.stop) if isinstance(place.numbers, range) else None
    description = json.dumps([about, place.unit, lines, columns.rows, columns.zeros_left_out, columns.row_names])
    parts = list(columns.by_name.values())
    return {
        "about": np.frombuffer(description.encode(), np.uint8),
        "numbers": np.array([column.numbers for column in parts]),
        "holes": np.packbits([column.holes for column in parts], axis=1),
        "codes": np.array(codes, np.int32),
        "lines": np.array([] if lines else place.numbers, np.int64),
    }


def _unpack_columns(path: str, arrays: dict[str, NDArray[Any]], parse: Callable[[], FileColumns]) -> FileColumns:
    """Columns of a file at this path. Texts of numeric cells, which only messages show, are read when needed."""
    # The reverse of `_pack_columns`
    about, unit, lines, rows, zeros_left_out, row_names = json.loads(arrays["about"].tobytes())
    codes = iter(arrays["codes"])
    holes_of = np.unpackbits(arrays["holes"], axis=1, count=rows).view(np.bool_)
    by_name = {}
    for (name, text, padded, fault, whole, words), numbers, holes in zip(
        about, arrays["numbers"], holes_of, strict=True
    ):
        # Words of numeric columns are read from the file again, if a message needs them
        cells: Any = CellsOnDemand(rows, partial(_cells_of, parse, name))
        if words is not None:
            cells = CodedCells(words, next(codes))
        elif whole:
            cells = WholeNumbers(numbers)
        by_name[name] = FileColumn(cells, holes, numbers, text, padded, fault=fault)
    place = Place(path, unit, range(*lines) if lines else arrays["lines"])
    return FileColumns(path, by_name, place, rows, zeros_left_out, row_names)


def _cells_of(parse: Callable[[], FileColumns], name: str) -> Any:
    return parse().by_name[name].cells
