"""The compiled sine and cosine against float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal.common import Array

from fkl.kernels import compiled

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


@given(st.floats(-50, 50, width=32, exclude_min=True, exclude_max=True))
def test_any_float32_angle(value: float) -> None:
    """Any float32 below 50, subnormals and both zeros included."""
    assert max(errors(np.array([value], np.float32), 1.0)) < LIMIT


def test_large_float64_angles() -> None:
    """Float64 angles keep the accuracy up to 1e6, far beyond what float32 can hold."""
    angle = np.random.default_rng(0).uniform(-1e6, 1e6, 200_000)
    assert max(errors(angle, 1.0)) < LIMIT
    assert max(errors(angle, 0.7)) < LIMIT


def test_zero_is_exact() -> None:
    sine, cosine = np.empty(1, np.float32), np.empty(1, np.float32)
    compiled.sincos(np.zeros(1, np.float32), np.float32(1), sine, cosine)
    assert (sine[0], cosine[0]) == (0, 1)
