"""The compiled sine and cosine against float64."""

import numpy as np
import pytest
from literal.common import Array

from fkl.kernels import compiled
from fkl.kernels import cosine_sums as cosines

LIMIT = 4e-7


def errors(angle: Array, scale: float) -> tuple[float, float]:
    """Largest errors of sine and cosine of scale * angle, rounded to the precision of the angles."""
    sine, cosine = np.empty(angle.size, np.float32), np.empty(angle.size, np.float32)
    compiled.sincos(angle, angle.dtype.type(scale), sine, cosine)
    exact = (angle * angle.dtype.type(scale)).astype(np.float64)
    return float(np.abs(sine - np.sin(exact)).max()), float(np.abs(cosine - np.cos(exact)).max())


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_float32_angles_up_to_50(scale: float) -> None:
    """A million angles over (-50, 50), and both float32 neighbours of every multiple of pi/4 there."""
    quarters = (np.arange(-63, 64) * np.pi / 4).astype(np.float32)
    beside = [np.nextafter(quarters, np.float32(way)) for way in (-np.inf, np.inf)]
    angle = np.concatenate([np.linspace(-50, 50, 1_000_001, dtype=np.float32)[1:-1], quarters, *beside])
    assert max(errors(angle, scale)) < LIMIT


@pytest.mark.parametrize("largest", [50.0, 1e3, 1e6])
def test_added_cosines_are_as_good_as_their_float32_angles(largest: float) -> None:
    """A factor times what was there, and the sum over features; angles of narrow kernels are far above a turn."""
    random = np.random.default_rng(0)
    angle = random.uniform(-largest, largest, (20_000, 3)).astype(np.float32)
    alpha = random.uniform(-1, 1, 3).astype(np.float32)
    before = random.uniform(-1, 1, len(angle))
    out = before.copy()
    cosines.add_cosines(angle, np.zeros(3, np.float32), alpha, 0.5, out)
    exact = 0.5 * before + np.cos(angle.astype(np.float64)) @ alpha
    assert np.abs(out - exact).max() < 3 * LIMIT
