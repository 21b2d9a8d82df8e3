"""The data sets that need no file."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

from fkl.data import wave_farm
from fkl.data.diabetes import Diabetes
from fkl.data.digits import Digits
from fkl.data.store import Store
from fkl.data.synthetic import CHUNK_ROWS, Synthetic
from fkl.data.wave_farm import WaveFarm


def load(dataset, seed=0):
    return dataset.load(Store(Path("nowhere"), offline=True), np.random.default_rng(seed))


@pytest.fixture(scope="module")
def farm():
    return load(WaveFarm(rows_per_site=500))


def test_farm_has_the_schema_of_uci_494(farm):
    assert farm.x.shape == (2000, 48)
    assert farm.feature_names[:2] + farm.feature_names[-1:] == ("X1", "X2", "P16")
    assert np.bincount(farm.site).tolist() == [500] * 4
    assert np.allclose(farm.x[:, 32:].sum(axis=1), farm.y)
    xy = farm.x[:, :32].reshape(-1, 2, 16)  # layouts stay in the square, and converters apart
    distance = np.hypot(*(xy[:, :, :, None] - xy[:, :, None, :]).transpose(1, 0, 2, 3))
    distance[:, np.arange(16), np.arange(16)] = np.inf
    assert xy.min() >= 0 and xy.max() <= 566 and 50 <= distance.min() < 51.5
    per_site = [farm.y[farm.site == site] for site in range(4)]  # which differ, and in which layouts matter
    assert np.diff([site.mean() for site in per_site]).max() < -3 * max(site.std() for site in per_site)
    assert all(site.std() > 0.01 * site.mean() for site in per_site)
    assert not np.array_equal(load(WaveFarm(rows_per_site=500), seed=1).x, farm.x)


def passing(positions, angle=0.0):
    x, y = np.full((2, 16, 1), 1e7, dtype=np.float32)
    x[:, 0] += np.arange(16) * 1e5  # far apart from one another and from those under test
    y[:, 0] += np.arange(16) * 2e5
    for number, (east, north) in enumerate(positions):
        x[number], y[number] = east, north
    return wave_farm._share_passing(x, y, angle, wavelength=100.0)[: len(positions), 0]


def test_shadow_falls_downstream_fades_with_distance_and_multiplies():
    near, far = passing([(0, 0), (60, 0)]), passing([(0, 0), (500, 0)])
    assert near[0] == pytest.approx(1, abs=1e-3)
    assert near[1] == pytest.approx(1 - wave_farm.SHADOW / np.sqrt(1 + 2 * 60 / 100), abs=1e-3)
    assert near[1] < far[1] < 1 and near[1] < passing([(0, 0), (60, 60)])[1] < 1
    assert passing([(0, 0), (60, 0)], np.pi)[0] == pytest.approx(near[1], abs=1e-3)
    second = passing([(0, 0), (120, 0)])[1]
    assert passing([(0, 0), (60, 0), (120, 0)])[2] == pytest.approx(near[1] * second, abs=1e-3)


def test_synthetic_is_the_kernel_sum():
    table = load(Synthetic(rows=50, dimension=3, centres=4, bandwidth=2.0, noise_variance=0.0))
    rng = np.random.default_rng(0)
    weights, centres = rng.uniform(size=4), rng.standard_normal((4, 3))
    distance = ((table.x[:, None] - centres) ** 2).sum(axis=-1)
    assert np.allclose(table.y, np.exp(-distance / (2 * 2.0**2)) @ weights)


def test_synthetic_noise_and_shifts_are_as_large_as_asked_for():
    clean, noisy = (load(Synthetic(rows=CHUNK_ROWS + 4000, noise_variance=v)) for v in (0.0, 0.1))
    assert np.array_equal(clean.x, noisy.x)
    assert np.var(noisy.y - clean.y) == pytest.approx(0.1, rel=0.03)
    table = load(Synthetic(rows=30001, sites=3, site_shift=4.0))
    counts = np.bincount(table.site)
    assert counts.sum() == 30001 and np.ptp(counts) <= 1
    means = np.array([table.x[table.site == site].mean(axis=0) for site in range(3)])
    assert np.allclose(np.linalg.norm(means, axis=1), 4.0, atol=0.1) and np.linalg.norm(means[0] - means[1]) > 1.0


def test_diabetes_is_scikit_learn_s():
    """To the last bit, though its function is not called."""
    table, expected = load(Diabetes()), load_diabetes()
    assert (table.x.tobytes(), table.y.tobytes()) == (expected.data.tobytes(), expected.target.tobytes())
    assert table.feature_names == tuple(expected.feature_names)


def test_digits_are_scikit_learn_s():
    table, expected = load(Digits()), load_digits()
    assert (table.x == expected.data).all() and (table.y == expected.target).all()
    assert table.feature_names == tuple(expected.feature_names)
