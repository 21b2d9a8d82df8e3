"""Scaling of features and target: one constant map for the whole data set."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, in_one_line
from fkl.basics.memory import by_block, row_blocks
from fkl.data.encoder import Encoder
from fkl.data.problem import Scale, Table

SCALINGS = ("unit_ball", "unit_box", "none")
ALL = slice(None)
LARGEST = 1e30
"""Largest number that is left unscaled: sums in float32 and squares in float64 are then still finite."""


def normalise_table(table: Table, scaling: str = "unit_ball", rows: NDArray[np.bool_] | slice = ALL) -> Table:
    """Scale the features, and the target to [0, 1]; class numbers that were made from words do not change.

    Parameters
    ----------
    table : Table
        n rows, d features.
    scaling : {"unit_ball", "unit_box", "none"}
        ``unit_ball`` divides all features by the largest row norm, the protocol of POF-MKL and graph-aided OMKL, which
        reproduces their published numbers. ``unit_box`` maps each feature to [0, 1], as described in COKE's paper; a
        constant feature becomes 0. ``none`` does not change features and target.
    rows : (n,) bool or slice
        Rows whose smallest and largest values decide the scale.

    Returns
    -------
    Table
        The scaled table; its `Scale` includes any scaling of the data set itself.

    Raises
    ------
    FklError
        If a value is not finite, too large or too small to be scaled, or too large to stay unscaled, all features are
        0, or the target is constant. The message names file or data set, row (among those used) and column.
    """
    # Every number must be finite before it is scaled
    where = table.where
    target, not_finite = ("the target",), "not a finite number"
    y = table.y[:, None]
    _require_all(np.isfinite, y, target, where, not_finite)
    # Sparse features keep their zeros, so they are never scaled
    if not isinstance(table.x, np.ndarray):
        if scaling != "none":
            raise FklError(f"scaling={scaling}: must be none for {where}, whose features are stored sparse")
        return table  # its loader has checked every number
    _require_all(np.isfinite, table.x, table.feature_names, where, not_finite)
    # Without scaling, numbers must not be so large that squares overflow
    if scaling == "none":
        too_large = f"too large for scaling=none; must be at most {LARGEST:g}"
        _require_all(_fits_small_type, y, target, where, too_large)
        _require_all(_fits_small_type, table.x, table.feature_names, where, too_large)
        return table
    # The target's range, over training rows if the others must not be seen
    of_y = table.y[rows]
    low, high = float(of_y.min()), float(of_y.max())
    if low == high:
        every = "row" if rows is ALL else "training row"
        raise FklError(f"{where}: the target is {low} in every {every}: it cannot be scaled to [0, 1]")
    _require_extent(high - low, low, high, f"{where}: the target")
    # Features: divided by the largest norm, or each to [0, 1]
    if scaling == "unit_ball":
        with np.errstate(over="ignore", under="ignore"):
            squared_norms = by_block(lambda x: np.einsum("nd,nd->n", x, x), table.x[rows])
        largest = float(np.sqrt(squared_norms.max()))
        if not np.isfinite(largest):
            row = int(np.arange(len(table.y))[rows][squared_norms.argmax()]) + 1
            raise FklError(f"{where}, row {row}: its features are so large that their norm overflows")
        if largest < np.sqrt(np.finfo(np.float64).tiny):  # smaller squares lose digits, or become 0
            raise FklError(f"{where}: all features of all rows are 0, or nearly 0; they cannot be scaled to norm 1")
        x_low, x_unit = np.zeros(table.x.shape[1]), np.full(table.x.shape[1], largest)
    else:
        x_low, x_high = table.x[rows].min(axis=0), table.x[rows].max(axis=0)
        with np.errstate(over="ignore"):
            extent = x_high - x_low
        for column in np.flatnonzero(np.isinf(extent))[:1]:
            what = f"{where}: column {in_one_line(table.feature_names[column])}"
            _require_extent(extent[column], x_low[column], x_high[column], what)
        x_unit = np.where(extent > 0, extent, 1.0)
    # Classes keep their numbers
    classes = table.encoder is not None and table.encoder.labels
    scale = Scale(x_low, x_unit) if classes else Scale(x_low, x_unit, low, high - low)
    expected = None if table.expected is None else scale.y(table.expected)
    x, y = by_block(scale.x, table.x), by_block(scale.y, table.y)
    # Rows that did not set the scale may lie outside, but not far outside
    if rows is not ALL:
        far = f"more than {LARGEST:g} times as large as those of training rows"
        _require_all(_fits_small_type, y[:, None], target, where, far)
        _require_all(_fits_small_type, x, table.feature_names, where, far)
    return replace(table, x=x, y=y, scale=scale.after(table.scale), expected=expected)


def normalise_like(table: Table, encoder: Encoder, scale: Scale) -> Table:
    """Encode and scale a table as another run did, whatever its own words and extreme cells are.

    Raises
    ------
    FklError
        If a column, a word or a class differs, or the data set is scaled already.
    """
    if table.scale.x_unit.shape or float(table.scale.x_unit) != 1 or not isinstance(table.x, np.ndarray):
        raise FklError(f"like: must be null for {table.where}, whose numbers are scaled already or sparse")
    x, y = (table.x, table.y) if table.cells is None else table.cells.encoded_by(encoder, table.where)
    names = table.feature_names if table.cells is None else encoder.feature_names
    if names != encoder.feature_names:
        raise FklError(f"{table.where}: its columns are not those of the run that like names")
    _require_all(np.isfinite, y[:, None], ("the target",), table.where, "not a finite number")
    _require_all(np.isfinite, x, names, table.where, "missing, and the run that like names fills in nothing")
    expected = None if table.expected is None else scale.y(table.expected)
    scaled = replace(table, x=scale.x(x), y=scale.y(y), expected=expected)
    return replace(scaled, feature_names=names, encoder=encoder, scale=scale)


def _require_extent(extent: float, low: float, high: float, what: str) -> None:
    if not np.isfinite(extent):
        raise FklError(f"{what} goes from {low} to {high}, a range too large to be scaled to [0, 1]")


def _fits_small_type(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    fits: NDArray[np.bool_] = np.abs(values) <= LARGEST
    return fits


def _require_all(
    fits: Callable[[NDArray[np.float64]], NDArray[np.bool_]],
    values: NDArray[np.float64],
    names: tuple[str, ...],
    where: str,
    wrong: str,
) -> None:
    """Raise an error for the first value that does not fit."""
    # In blocks, so no mask of all cells is needed
    for some in row_blocks(len(values)):
        if not (is_fitting := fits(values[some])).all():
            row, column = np.argwhere(~is_fitting)[0]
            row += some.start
            cell = f"{where}, row {row + 1}, column {in_one_line(names[column])}: {values[row, column]}"
            raise FklError(f"{cell} is {wrong}")
