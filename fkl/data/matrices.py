"""Numbers from text tables, by a fast parser or with an error that names the row, and from MATLAB files."""

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line

if TYPE_CHECKING:
    from pandas import DataFrame


def read_table(
    raw: bytes,
    where: str,
    columns: Sequence[str],
    *,
    separator: str | None = ",",
    header: bool = False,
    text: Collection[str] = (),
    missing: str | None = None,
) -> "DataFrame":
    """Parse a text table whose columns are known beforehand.

    Parameters
    ----------
    raw : bytes
        The file.
    where : str
        Its name, for messages.
    columns : sequence of str
        Names of all columns in the order of the file.
    separator : str, optional
        Sign between cells; None for any run of blanks.
    header : bool
        Whether the first line holds the names; if so they must be `columns`.
    text : collection of str
        Columns that hold words; all others hold finite numbers.
    missing : str, optional
        The cell that marks a missing value; None if no value may be missing.

    Returns
    -------
    DataFrame
        Columns of numbers as float64, with NaN for missing values.

    Raises
    ------
    FklError
        If a row has a wrong number of cells or a cell does not fit its column; the message names file and line.
    """
    import pandas

    # The parser would read a surplus first column as row labels, so the count is checked before it runs.
    # Check the first line, which gives the better message
    _, first = next(_numbered_lines(raw.partition(b"\n")[0], where, separator), (1, []))
    if len(first) != len(columns):
        raise FklError(f"{where}, line 1: {len(first)} columns where {len(columns)} are expected")
    for number, (name, expected) in enumerate(zip(first, columns, strict=True), start=1):
        if header and name != expected:
            raise FklError(f"{where}, line 1: column {number} is {in_one_line(name)!r} where {expected!r} is expected")

    # The slow search for the wrong row runs only after the fast parser has failed
    def blame_row() -> None:
        """Raise an error for the first wrong row; slow, so it runs only after the fast parser has failed."""
        for line, cells in _numbered_lines(raw, where, separator):
            if header and line == 1:
                continue
            if cells and len(cells) != len(columns):
                raise FklError(f"{where}, line {line}: {len(cells)} columns where {len(columns)} are expected")
            for column, cell in zip(columns, cells, strict=False):
                if column not in text and cell != missing and not _is_number(cell):
                    wrong = f"{in_one_line(cell)!r} is not a finite number"
                    raise FklError(f"{where}, line {line}, column {column}: {wrong}")

    numbers = [column for column in columns if column not in text]
    # pandas parses all numbers, or fails
    try:
        frame = pandas.read_csv(
            io.BytesIO(raw),
            sep=r"\s+" if separator is None else separator,
            header=0 if header else None,
            names=list(columns),
            dtype={column: "str" if column in text else "float64" for column in columns},
            na_values=[] if missing is None else [missing],
            keep_default_na=False,
            float_precision=exact_floats(),
        )
    except ValueError as error:  # pandas' ParserError is one too
        blame_row()
        raise FklError(f"{where}: {' '.join(str(error).split())}") from error
    # Infinite numbers and, unless allowed, missing ones are wrong as well
    values = frame[numbers].to_numpy()
    if np.isinf(values).any() or (missing is None and np.isnan(values).any()):
        blame_row()
    return frame


def exact_floats() -> Literal["round_trip"] | None:
    """The argument `float_precision` with which pandas reads numbers as Python does."""
    import pandas

    # Before 3.1, the default gets the last bit of a third of all long numbers wrong; since then, all but None warns
    return None if tuple(map(int, pandas.__version__.split(".")[:2])) >= (3, 1) else "round_trip"


def _numbered_lines(raw: bytes, where: str, separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """Line number, counted from 1, and cells of each line."""
    lines = io.StringIO(raw.decode("utf-8-sig", errors="replace"), newline="")
    if separator is None:
        yield from ((number, line.split()) for number, line in enumerate(lines, start=1))
        return
    reader = csv.reader(lines, delimiter=separator)
    try:
        yield from ((reader.line_num, cells) for cells in reader)
    except csv.Error as error:
        raise FklError(f"{where}, line {reader.line_num}: {error}") from error


def _is_number(cell: object) -> bool:
    try:
        return bool(np.isfinite(float(cell)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def require_numbers(frame: "DataFrame", where: str, first_line: int) -> "DataFrame":
    """Cells of a sheet as float64.

    Parameters
    ----------
    frame : DataFrame
        Cells of any type.
    where : str
        Name of the sheet, for messages.
    first_line : int
        Line number of the frame's first row in the sheet.

    Raises
    ------
    FklError
        For the first cell that is not a finite number.
    """
    for line, cells in enumerate(frame.itertuples(index=False), start=first_line):
        for column, cell in zip(frame, cells, strict=True):
            if not _is_number(cell):
                raise FklError(f"{where}, line {line}, column {column}: {in_one_line(cell)!r} is not a finite number")
    return frame.astype("float64")


def read_mat(
    raw: bytes, where: str, features: Sequence[str], *, x: str = "X", y: str = "y", samples_in_rows: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features and target of a MATLAB file up to version 7, which holds matrices and no code.

    Parameters
    ----------
    raw : bytes
        The file, n samples of d features. It must have been compared with its hash: scipy refuses most damaged files,
        but some, such as one with a wrong type of number, crash the process.
    where : str
        Its name, for messages.
    features : sequence of str
        Names of the d features in the order of the file.
    x, y : str
        Variables of the features, d x n, and of the target, n x 1.
    samples_in_rows : bool
        Whether the features are n x d instead.

    Returns
    -------
    x : (n, d) float64
    y : (n,) float64

    Raises
    ------
    FklError
        If the file cannot be read, lacks a variable, or has one with another shape or with anything but finite numbers.
    """
    content = _matlab_variables(raw, where, x, y)
    return _samples_of(content[x], content[y], where, features, x, y, samples_in_rows)


def read_cells(
    raw: bytes, where: str, features: Sequence[str], *, x: str, y: str
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Features and target of each site, for variables that are cells with the n x d features and n x 1 targets."""
    # Both variables are cells, equally many
    content = _matlab_variables(raw, where, x, y)
    for name in (x, y):
        value = content[name]
        if not isinstance(value, np.ndarray) or value.dtype.kind != "O" or value.size != content[x].size:
            raise FklError(f"{where}: variables {x} and {y} are not equally many cells")
    pairs = zip(content[x].ravel(), content[y].ravel(), strict=True)
    return [
        _samples_of(values, targets, f"{where}, cell {number}", features, x, y, samples_in_rows=True)
        for number, (values, targets) in enumerate(pairs, start=1)
    ]


def _matlab_variables(raw: bytes, where: str, x: str, y: str) -> dict[str, Any]:
    """Two variables of a MATLAB file."""
    from scipy.io import loadmat

    # Read the two variables only, since others may be large
    try:
        content = loadmat(io.BytesIO(raw), variable_names=[x, y])  # type: ignore[arg-type] # scipy-stubs: paths only
    except Exception as error:  # scipy can raise any error for a damaged file
        reason = " ".join(str(error).split())[:200]
        raise FklError(f"{where}: not a MATLAB file that can be read ({reason})") from error
    for name in (x, y):
        if name not in content:
            raise FklError(f"{where}: has no variable {name}")
    return content


def _samples_of(
    given: Any, targets: Any, where: str, features: Sequence[str], x: str, y: str, samples_in_rows: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features and target, checked."""
    # Two matrices of numbers
    for name, value in ((x, given), (y, targets)):
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf" or value.ndim != 2:
            raise FklError(f"{where}: variable {name} is not a matrix of numbers")
    # One sample per row, and one target per sample
    values = given if samples_in_rows else given.T
    if values.shape != (len(targets), len(features)) or targets.shape[1] != 1:
        shape = f"n x {len(features)}" if samples_in_rows else f"{len(features)} x n"
        raise FklError(
            f"{where}: {x} is {given.shape[0]} x {given.shape[1]} and {y} is {targets.shape[0]} x "
            f"{targets.shape[1]} where {shape} and n x 1 are expected"
        )
    # All numbers finite
    samples = np.concatenate([values, targets], axis=1, dtype=np.float64)
    finite = np.isfinite(samples)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        name = (*features, "of the target")[column]
        raise FklError(f"{where}, sample {row + 1}, column {name}: {samples[row, column]} is not a finite number")
    return np.ascontiguousarray(samples[:, :-1]), samples[:, -1].copy()


def first_rows(frame: "DataFrame", rows: int, where: str) -> "DataFrame":
    """First `rows` rows.

    Raises
    ------
    FklError
        If the table has fewer.
    """
    if len(frame) < rows:
        raise FklError(f"{where}: {len(frame)} usable rows where {rows} are needed")
    return frame.iloc[:rows]


def between_ends(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale each feature to [0, 1], and the target to [-1, 1], as MATLAB's mapminmax does."""
    low, high = x.min(axis=0), x.max(axis=0)
    return (x - low) / (high - low), 2 * (y - y.min()) / (y.max() - y.min()) - 1
