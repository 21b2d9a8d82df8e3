"""The scaling of the POF-MKL protocol: features into the unit ball, target into [0, 1]."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fkl.data.problem import Table
from fkl.errors import FklError


def normalise(table: Table) -> Table:
    """Divide all features by the largest row norm and scale the target to [0, 1].

    Both use one scalar for the whole data set, rows that no client receives included, which is how the
    published numbers of POF-MKL come out (see fkl/papers/pof_mkl/differences.md).

    Parameters
    ----------
    table : Table
        n rows, d features.

    Returns
    -------
    Table
        x of shape (n, d) with largest row norm 1; y of shape (n,) with least value 0 and largest 1.

    Raises
    ------
    FklError
        If a value is not finite (names row and column), all features are 0, or the target is constant.
    """
    _require_finite(table.x, table.feature_names)
    _require_finite(table.y[:, None], ("the target",))
    squared_norms = np.einsum("nd,nd->n", table.x, table.x)
    largest = float(np.sqrt(squared_norms.max()))
    if not np.isfinite(largest):
        raise FklError(f"row {int(squared_norms.argmax()) + 1}: its features are too large to take their norm")
    if largest == 0:
        raise FklError("all features of all rows are 0: they cannot be scaled to norm 1")
    low, high = float(table.y.min()), float(table.y.max())
    if low == high:
        raise FklError(f"the target is {low} in every row: it cannot be scaled to [0, 1]")
    return replace(table, x=table.x / largest, y=(table.y - low) / (high - low))


def _require_finite(values: NDArray[np.float64], names: tuple[str, ...]) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise FklError(f"row {row + 1}, column {names[column]}: {values[row, column]} is not a finite number")
