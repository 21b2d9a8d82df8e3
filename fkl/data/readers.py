"""Readers of a `TableSet`: one function for each format."""

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.data import libsvm
from fkl.data.libsvm import read_dense, read_sparse, two_classes
from fkl.data.matrices import between_ends, first_rows, read_cells, read_mat, read_table, require_numbers
from fkl.data.normalise import normalise_table
from fkl.data.problem import Table
from fkl.data.store import DataFile, Store
from fkl.data.table_layout import NAMED_COLUMNS, SEPARATORS, Layout

if TYPE_CHECKING:
    from pandas import DataFrame

Samples = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Features (n, d) and target (n,)."""


def data_file(layout: Layout, file: Mapping[str, Any]) -> DataFile:
    """A file of a layout for a store."""
    return DataFile(layout.name, **{"url": None, **{key: value for key, value in file.items() if key != "site"}})


def read_dataset(layout: Layout, store: Store, replacing: float | None) -> Table:
    """Read a data set.

    Parameters
    ----------
    layout : Layout
        With the user's keys in place.
    store : Store
    replacing : float or None
        Replacement of the cells that the layout replaces.

    Raises
    ------
    fkl.basics.errors.FklError
        If a file is missing, damaged or not in its published layout.
    """
    # Read the files in their order by the format's reader
    files = [data_file(layout, file) for file in layout.used]
    where = " then ".join(file.name for file in files)
    reader = _read_named_columns if layout.format in NAMED_COLUMNS else _read_feature_arrays
    x, y, counts, named = reader(layout, files, store, where)
    # Values that mark something else are replaced, and some sets are scaled as their papers do
    if replacing is not None:
        x = np.where(x == layout.replace["cell"], replacing, x)
    if layout.scaled == "ends":
        x, y = between_ends(x, y)
    # Sites are files, cells of a file, or values of a column
    sites = [file["site"] for file in layout.used if "site" in file]
    if layout.format == "mat_cells":
        sites = [str(cell + 1) for cell in range(len(counts))]
    site = np.repeat(np.arange(len(counts)), counts) if sites else np.zeros(len(y), np.int64)
    if layout.site:
        import pandas

        site, site_names = pandas.factorize(named)
        sites = list(site_names)
    table = Table(x, y, site, layout.features, tuple(sites) or ("all",), where=where)
    return normalise_table(table, "unit_box") if layout.scaled == "unit_box" else table


def _require_rows(layout: Layout, file: DataFile, rows: int) -> None:
    if layout.file_rows is not None and rows != layout.file_rows:
        raise FklError(f"{file.name}: {rows} rows where {layout.file_rows} are expected")


def _read_named_columns(
    layout: Layout, files: Sequence[DataFile], store: Store, where: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int], NDArray[Any]]:
    """Features, target, rows of each file, and each row's site if a column names it, for named columns."""
    import pandas

    # File by file: read, choose columns, and treat missing cells
    names, frames = list(layout.features), []
    for file in files:
        frame = TEXTS[layout.format](layout, file, store)
        _require_rows(layout, file, len(frame))
        if layout.negative is not None:
            labels, first = frame[layout.target].to_numpy(np.float64), 1 + layout.header
            frame[layout.target] = two_classes(labels, file.name, layout.negative, first)
        frame = frame[[*names, layout.target, *[layout.site] * bool(layout.site)]]
        frame = frame.iloc[: len(frame) - layout.without_last]
        if layout.missing == "previous":  # not the target's: a missing target cannot be learned
            frame = frame.assign(**frame[names].ffill())
        if layout.missing in ("drop", "previous"):
            frame = frame.dropna()
        frames.append(frame if layout.rows_per_site is None else first_rows(frame, layout.rows_per_site, file.name))
    frame = pandas.concat(frames, ignore_index=True)
    # Then over all files: the number of rows, words as numbers, missing cells, and digits
    if layout.rows is not None:
        frame = first_rows(frame, layout.rows, where)
    for name in layout.text:
        if name in names and frame[name].dtype.kind not in "if":
            frame[name] = pandas.factorize(frame[name])[0]
    if layout.missing in ("mean", "median"):
        frame = frame.fillna(frame.mean() if layout.missing == "mean" else frame.median())
    if layout.decimals is not None:
        frame = frame.round(layout.decimals)
    # The features are column-major, as in pandas: the last bits of sums depend on the order in memory.
    named = frame[layout.site].to_numpy() if layout.site else np.empty(0)
    return frame[names].to_numpy(np.float64), frame[layout.target].to_numpy(np.float64), [*map(len, frames)], named


def _read_feature_arrays(
    layout: Layout, files: Sequence[DataFile], store: Store, where: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int], NDArray[Any]]:
    """Read formats that store the features as one array; the result is row-major."""
    # File by file, without a copy if there is one only
    parts: list[Samples] = []
    for file in files:
        if layout.format == "mat_cells":
            parts += _read_cells(layout, file, store)
            continue
        x, y = ARRAYS[layout.format](layout, file, store)
        _require_rows(layout, file, len(y))
        parts.append((x, y))
    if len(parts) == 1:
        [(x, y)] = parts  # unchanged: an array that fills the memory, or a sparse one
    else:
        x, y = (np.concatenate(one) for one in zip(*parts, strict=True))
    # The first rows, if a paper used only these
    if layout.rows is not None:
        if len(y) < layout.rows:
            raise FklError(f"{where}: {len(y)} usable rows where {layout.rows} are needed")
        x, y = x[: layout.rows], y[: layout.rows]
    return x, y, [len(one) for _, one in parts], np.empty(0)


def _parse_text_table(layout: Layout, raw: bytes, where: str) -> "DataFrame":
    separator, hole = SEPARATORS[layout.separator], None if layout.missing == "refuse" else layout.hole
    return read_table(
        raw,
        where,
        layout.all_columns,
        separator=separator,
        header=layout.header,
        text=[*layout.text, *[layout.site] * bool(layout.site)],
        missing=hole,
    )


def _read_airquality(layout: Layout, file: DataFile, store: Store) -> "DataFrame":
    """UCI 360: decimal commas, two empty columns, empty rows at the end, and an hour as text."""
    # This changes only the ends of lines, so messages name the right line.
    raw = re.sub(rb";;\r?$", b"", store.read(file).rstrip(b";\r\n"), flags=re.MULTILINE).replace(b",", b".")
    frame = _parse_text_table(layout, raw, file.name)
    return frame.assign(Time=frame["Time"].str.slice(0, 2).astype(np.float64)) if "Time" in layout.features else frame


# The archive has its own name, because the sheet's archive must not count as the conversion.
CONVERTED = DataFile(
    "concrete",
    "Concrete_Data_from_xls.csv",
    "Concrete_Data_from_xls.zip",
    "d2b2813c2d081d9376a3567913b461ea717df22b41dec60103afaa217f794eb8",
    50281,
)
CELLS = "8b9a7af0366e0f437ad04cfba6bb729ec0c3ea76fa780ff3d3f4d057356b6af6"
"""SHA-256 of the 1030 x 9 cells as little-endian float64, row after row."""


def _read_concrete(layout: Layout, file: DataFile, store: Store) -> "DataFrame":
    """UCI 165: an Excel sheet, or its conversion if that is in the folder.

    Excel rewrites a user name in the sheet on opening, so copies differ in their hash; their cells are compared.
    """
    import pandas
    import xlrd

    # The published sheet or its conversion to text
    columns = list(layout.all_columns)
    if store.find_file(CONVERTED):
        file = CONVERTED
        after_header = store.read(file).partition(b"\n")[2]
        frame = read_table(after_header, f"{file.name} after its header", columns)
    else:
        raw = store.read(file)
        try:
            # pandas removes this engine in version 4; without pandas its messages also stay off the terminal.
            sheet = xlrd.open_workbook(file_contents=raw, logfile=io.StringIO()).sheet_by_index(0)
            rows = [sheet.row_values(row) for row in range(sheet.nrows)][1:]
        except Exception as error:  # xlrd can raise any error for a damaged sheet
            raise FklError(f"{file.name}: not an Excel sheet that can be read ({error})") from error
        if sheet.ncols != len(columns):
            raise FklError(f"{file.name}: {sheet.ncols} columns where {len(columns)} are expected")
        frame = require_numbers(pandas.DataFrame(rows, columns=columns), file.name, first_line=2)
    # Both must have the same cells, by their hash
    sha256 = hashlib.sha256(frame.to_numpy("<f8").tobytes()).hexdigest()
    if sha256 != CELLS:
        cells = f"{len(frame)} x {len(columns)} cells with SHA-256 {sha256}"
        raise FklError(f"{file.name}: {cells}, expected 1030 x 9 with {CELLS}")
    return frame


def _read_heart(layout: Layout, file: DataFile, store: Store) -> "DataFrame":
    """UCI 45: four degrees of disease are one class."""
    frame = _parse_text_table(layout, store.read(file), file.name)
    return frame.assign(**{layout.target: frame[layout.target].clip(upper=1)})


def _read_cells(layout: Layout, file: DataFile, store: Store) -> list[Samples]:
    """Samples of each cell of a MATLAB file; each cell is a site."""
    cells = read_cells(store.read(file), file.name, layout.all_columns, x=layout.samples, y=layout.target)
    kept = [layout.all_columns.index(name) for name in layout.features]
    if layout.negative is None:
        return [(x[:, kept], y) for x, y in cells]
    signs = two_classes(np.concatenate([y for _, y in cells]), file.name, layout.negative)
    ends = np.cumsum([len(y) for _, y in cells])[:-1]
    return [(x[:, kept], y) for (x, _), y in zip(cells, np.split(signs, ends), strict=True)]


def _read_matlab(layout: Layout, file: DataFile, store: Store) -> Samples:
    raw = store.read(file)
    return read_mat(
        raw, file.name, layout.features, x=layout.samples, y=layout.target, samples_in_rows=layout.samples_in_rows
    )


def _read_libsvm(layout: Layout, file: DataFile, store: Store) -> Samples:
    """LIBSVM's text as a dense or a sparse array, or the first samples of a text that is larger than the memory."""
    features = len(layout.features)
    # A text larger than the memory is read in pieces
    if layout.format == "libsvm_streamed":
        if layout.rows is None or layout.negative is None:
            raise FklError(f"{file.name}: format=libsvm_streamed needs rows and negative")
        return read_dense(store.stream_file(file), file.name, features, layout.rows, layout.negative)
    # Without a label for negative samples, the target keeps its numbers
    if layout.negative is None:
        first = 1 - any(libsvm.has_index_0(store.read(data_file(layout, used))) for used in layout.used)
        x, y = libsvm.read_libsvm(store.read(file), file.name, features, first)
    else:
        x, y = read_sparse(store.read(file), file.name, features, layout.negative)
    return x if layout.format == "libsvm_sparse" else x.toarray(), y  # type: ignore[return-value]


def _read_cod_rna(layout: Layout, file: DataFile, store: Store) -> Samples:
    """LIBSVM's cod-rna, or a public copy of it without indices if only that is in the folder."""
    copy = data_file(layout, layout.files[1])
    if store.find_file(file) is not None or store.find_file(copy) is None:
        return _read_libsvm(layout, file, store)
    values = read_table(store.read(copy), copy.name, ("label", *layout.features), separator=None).to_numpy(np.float64)
    return values[:, 1:].copy(), two_classes(values[:, 0], copy.name, negative=-1.0)


TEXTS = {
    "text": lambda layout, file, store: _parse_text_table(layout, store.read(file), file.name),
    "airquality": _read_airquality,
    "concrete": _read_concrete,
    "heart": _read_heart,
}
ARRAYS = {
    "mat": _read_matlab,
    **dict.fromkeys(("libsvm", "libsvm_sparse", "libsvm_streamed"), _read_libsvm),
    "cod_rna": _read_cod_rna,
}
