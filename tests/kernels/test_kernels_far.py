"""Sines and cosines of all banks for angles of every size, against mpmath: each lies in [-1, 1] and is right."""

from contextlib import nullcontext, suppress
from functools import partial

import numpy as np
import pytest

from fkl.basics.random_streams import Streams
from fkl.kernels import Dictionary
from fkl.kernels.bank import CompiledBank, FeatureBank

mpmath = pytest.importorskip("mpmath")

SIZES = {np.float32: 38.5, np.float64: 308.2}
"""Powers of ten up to the largest float of each precision."""


def angles(dtype: type) -> np.ndarray:
    """Some of every size, with the largest float and both signs."""
    powers = 10.0 ** np.arange(-3, SIZES[dtype], 0.23)
    return np.concatenate([powers, -powers[::7], [np.finfo(dtype).max, 2.0**20, 2.0**20 + 1, 2.0**28]]).astype(dtype)


def exact(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine with 400 digits, which the largest float needs for its reduction."""
    with mpmath.workdps(400):
        return tuple(np.array([float(f(float(value))) for value in values]) for f in (mpmath.sin, mpmath.cos))


def bank_of(kind: type, angle: type, precision: type, cosine: bool) -> FeatureBank:
    """One kernel with the frequency 1, so a sample is its angle."""
    phase = np.zeros((1, 1, 1 if cosine else 0), angle)
    narrow = int(angle == np.float32)
    return kind(np.ones((1, 1, 1, 1), angle), np.ones(1, angle), phase, narrow, np.dtype(precision))


BANKS, wide = [FeatureBank, CompiledBank], nullcontext
with suppress(ImportError):
    import jax

    from fkl.kernels.jax_bank import JaxBank

    BANKS, wide = [*BANKS, JaxBank], partial(jax.enable_x64, True)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize(
    ("angle", "precision"), [(np.float32, np.float32), (np.float64, np.float32), (np.float64, np.float64)]
)
@pytest.mark.parametrize("kind", BANKS, ids=lambda kind: kind.__name__)
def test_features_of_any_angle_are_exact(kind: type, angle: type, precision: type, cosine: bool) -> None:
    bank, x = bank_of(kind, angle, precision, cosine), angles(angle)
    sine, along = exact(x)
    for m, expected in enumerate([along] if cosine else [sine, along]):
        theta = np.zeros((1, 1, bank.width), precision)
        theta[..., m] = 1 / bank.norm
        with wide():
            found = np.asarray(bank.predict(x[:, None], theta))[0, :, 0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 if precision == np.float64 else 3e-7)


def test_far_angles_do_not_change_those_beside_them() -> None:
    """A tile with a far angle has the same bits elsewhere: whose samples are played together must not matter."""
    bank = Dictionary(N=3, D=40).bank(2, Streams(0, (0, 1)), "float32")
    x = np.random.default_rng(0).standard_normal((30, 2)).astype(np.float32)
    theta = np.random.default_rng(1).standard_normal((2, 3, 80))
    near = bank.predict(x, theta)
    x[7] *= 1e9
    far = bank.predict(x, theta)
    others = np.arange(30) != 7
    np.testing.assert_array_equal(far[:, others], near[:, others])
    assert (np.abs(far[:, 7]) <= bank.norm * np.abs(theta).sum(axis=-1)).all()
