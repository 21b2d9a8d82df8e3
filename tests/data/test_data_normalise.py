"""One scalar for the features, min-max for the target."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fkl.basics.errors import FklError
from fkl.data.normalise import normalise
from fkl.data.problem import Table

CELLS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3))


def table(x, y):
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return Table(x, y, np.zeros(len(y), dtype=np.int64), tuple(f"f{i}" for i in range(x.shape[1])))


@given(arrays(float, (6, 3), elements=CELLS), arrays(float, 6, elements=CELLS))
def test_largest_norm_is_1_and_the_target_fills_0_to_1(x, y):
    if not x.any() or np.ptp(y) == 0:
        with pytest.raises(FklError):
            normalise(table(x, y))
        return
    scaled = normalise(table(x, y))
    assert np.linalg.norm(scaled.x, axis=1).max() == pytest.approx(1.0)
    assert (scaled.y.min(), scaled.y.max()) == (0.0, 1.0)
    largest = np.linalg.norm(x, axis=1).max()
    assert np.allclose(scaled.x * largest, x)  # one scalar for everything
    assert np.allclose(scaled.y * np.ptp(y) + y.min(), y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_row_and_column_of_a_bad_value_are_named(bad):
    with pytest.raises(FklError, match=r"row 2, column f1: .* is not a finite number"):
        normalise(table([[1, 2], [3, bad]], [0, 1]))
    with pytest.raises(FklError, match="row 1, column the target"):
        normalise(table([[1, 2], [3, 4]], [bad, 1]))


def test_what_cannot_be_scaled_is_refused():
    with pytest.raises(FklError, match=r"target is 7\.0 in every row"):
        normalise(table([[1, 2], [3, 4]], [7, 7]))
    with pytest.raises(FklError, match="all features of all rows are 0"):
        normalise(table([[0, 0], [0, 0]], [0, 1]))
    with pytest.raises(FklError, match="row 2: its features are too large"):
        normalise(table([[1, 2], [1e200, 4]], [0, 1]))


@pytest.mark.parametrize(
    ("x", "y", "scaling"),
    [
        ([[1.0], [2.0]], [7, 7], "unit_ball"),
        ([[1.0], [2.0]], [-1.7e308, 1.7e308], "unit_ball"),
        ([[1.0], [2.0]], [0, np.nan], "unit_ball"),
        ([[1.0], [np.inf]], [0, 1], "unit_ball"),
        ([[1.0], [1e200]], [0, 1], "unit_ball"),
        ([[0.0], [0.0]], [0, 1], "unit_ball"),
        ([[-1.7e308], [1.7e308]], [0, 1], "unit_box"),
        ([[1.0], [1e31]], [0, 1], "none"),
        ([[1.0], [2.0]], [0, 1e31], "none"),
    ],
)
def test_whatever_is_refused_the_message_names_the_file_or_data_set(x, y, scaling):
    with pytest.raises(FklError, match=r"^mine\.csv[:,] "):
        normalise(replace(table(x, y), where="mine.csv"), scaling)
