"""The compiled exponential against numpy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from literal.common import Array
from numba import njit

from fkl.kernels import exact

LIMIT = 5e-16


@njit
def exponentials(x: Array) -> Array:
    """Of numbers <= 0."""
    out = np.empty_like(x)
    for place in range(x.size):
        out[place] = exact._exponential(x[place])
    return out


def error(x: Array) -> float:
    """Largest error, in units of the value."""
    return float(np.abs(exponentials(x) / np.exp(x) - 1).max())


def test_all_that_are_normal_numbers() -> None:
    """A million between 0 and where numbers are no longer normal, and as many close to 0."""
    assert error(np.linspace(-708, 0, 1_000_001)) < LIMIT
    assert error(-np.geomspace(1e-300, 1, 1_000_001)) < LIMIT


def test_nothing_below() -> None:
    """0 below -708, at minus infinity too; what is no number stays none."""
    assert not exponentials(np.array([np.nextafter(-708, -np.inf), -1e9, -1e300, -np.inf])).any()
    assert np.isnan(exponentials(np.array([np.nan]))).all()


@given(st.floats(-708, 0))
def test_any(x: float) -> None:
    """Any number there is, subnormals and both zeros included."""
    assert error(np.array([x])) < LIMIT
