"""The data sets that need no file."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

from fkl.data.diabetes import Diabetes
from fkl.data.digits import Digits
from fkl.data.ellipses import BOX, Ellipses, ellipse_labels
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


@pytest.mark.parametrize(("dataset", "theirs"), [(Diabetes(), load_diabetes), (Digits(), load_digits)])
def test_scikit_learn_s_tables_are_its_own(dataset, theirs):
    """To the last bit, though the function of diabetes is not called."""
    table, expected = load(dataset), theirs()
    assert table.x.tobytes() == expected.data.tobytes() and np.array_equal(table.y, expected.target)
    assert table.feature_names == tuple(expected.feature_names)


def test_labels_are_those_of_the_paper_s_ellipses():
    x = np.random.default_rng(0).uniform(*BOX, (2000, 2))
    a, b = x.T
    inside = ((a - 3) ** 2 + 0.25 * b**2 <= 9) | ((a + 10) ** 2 + 0.25 * (b - 6) ** 2 <= 30)
    assert np.array_equal(ellipse_labels(x), np.where(inside, 1, -1))
    edges = np.array([[6.0, 0], [6.01, 0], [3, 6], [3, 6.01], [-10, 6 + 2 * 30**0.5 - 0.01]])
    assert ellipse_labels(edges).tolist() == [1, -1, 1, -1, 1]


def test_sites_are_nine_subspaces_with_their_own_samples():
    data = Ellipses(rows=9005, test_rows=0, noise_variance=0.0)
    table = load(data)
    assert table.x.shape == (9005, 2) and np.array_equal(table.y, ellipse_labels(table.x)) and table.tested is None
    counts = np.bincount(table.site)
    assert len(counts) == len(table.site_names) == 9 and np.ptp(counts) <= 1
    low, high = data.subspace_corners()
    assert (table.x >= low[table.site]).all() and (table.x <= high[table.site]).all()
    for site in range(9):
        mine = table.x[table.site == site]
        assert np.allclose([mine.min(axis=0), mine.max(axis=0)], [low[site], high[site]], atol=0.2)


def test_noise_has_the_variance_asked_for_and_comes_after_the_labels():
    quiet, noisy, other = (load(Ellipses(rows=20000, noise_variance=v), seed) for v, seed in ((0, 0), (0.2, 0), (0, 1)))
    assert np.array_equal(quiet.y, noisy.y) and not np.array_equal(quiet.x, other.x)
    assert np.var(noisy.x - quiet.x, axis=0) == pytest.approx(0.2, rel=0.05)


def test_test_samples_are_of_the_whole_box():
    table = load(Ellipses(rows=9, test_rows=5000, overlap=0.0, noise_variance=0.0))
    assert table.tested.tolist() == [False] * 9 + [True] * 5000
    assert np.allclose([table.x[9:].min(axis=0), table.x[9:].max(axis=0)], BOX, atol=0.1)
    # Areas of the ellipses, pi r_i / sqrt(0.25).
    assert (table.y[9:] == 1).mean() == pytest.approx(np.pi * (9 + 30) * 2 / 28**2, abs=0.02)
