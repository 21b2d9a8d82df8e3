"""The compiled cosine against float64, and the compiled exponential against numpy's."""

import numpy as np
import pytest
from literal.common import Array
from numba import njit

from fkl.kernels import cosine_sums as cosines
from fkl.kernels import exact


@pytest.mark.parametrize("largest", [50.0, 1e3, 1e6])
def test_added_cosines_are_as_good_as_their_float32_angles(largest: float) -> None:
    """A factor times what was there, and the sum over features; angles of narrow kernels are far above a turn."""
    random = np.random.default_rng(0)
    angle = random.uniform(-largest, largest, (20_000, 3)).astype(np.float32)
    alpha = random.uniform(-1, 1, 3).astype(np.float32)
    before = random.uniform(-1, 1, len(angle))
    out = before.copy()
    cosines.add_cosines(angle, np.zeros(3, np.float32), alpha, 0.5, out)
    expected = 0.5 * before + np.cos(angle.astype(np.float64)) @ alpha
    assert np.abs(out - expected).max() < 1.2e-6


LIMIT = 5e-16


@njit
def exponentials(x: Array) -> Array:
    """Of numbers <= 0."""
    out = np.empty_like(x)
    for place in range(x.size):
        out[place] = exact._negative_exponential(x[place])
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
