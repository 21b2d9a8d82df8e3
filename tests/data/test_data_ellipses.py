"""The two ellipses of federated classification with parsimonious functions."""

from pathlib import Path

import numpy as np
import pytest

from fkl.data.ellipses import BOX, Ellipses, labels
from fkl.data.store import Store


def load(dataset, seed=0):
    return dataset.load(Store(Path("nowhere"), offline=True), np.random.default_rng(seed))


def test_labels_are_those_of_the_paper_s_ellipses():
    x = np.random.default_rng(0).uniform(*BOX, (2000, 2))
    a, b = x.T
    inside = ((a - 3) ** 2 + 0.25 * b**2 <= 9) | ((a + 10) ** 2 + 0.25 * (b - 6) ** 2 <= 30)
    assert np.array_equal(labels(x), np.where(inside, 1, -1))
    edges = np.array([[6.0, 0], [6.01, 0], [3, 6], [3, 6.01], [-10, 6 + 2 * 30**0.5 - 0.01]])
    assert labels(edges).tolist() == [1, -1, 1, -1, 1]


def test_sites_are_nine_subspaces_with_their_own_samples():
    data = Ellipses(rows=9005, test_rows=0, noise_variance=0.0)
    table = load(data)
    assert table.x.shape == (9005, 2) and np.array_equal(table.y, labels(table.x)) and table.tested is None
    counts = np.bincount(table.site)
    assert len(counts) == len(table.site_names) == 9 and np.ptp(counts) <= 1
    low, high = data.subspaces()
    assert (table.x >= low[table.site]).all() and (table.x <= high[table.site]).all()
    for site in range(9):
        mine = table.x[table.site == site]
        assert np.allclose([mine.min(axis=0), mine.max(axis=0)], [low[site], high[site]], atol=0.2)


def test_subspaces_cover_the_box_and_overlap_as_asked():
    for overlap in (0.0, 0.25, 1.0):
        low, high = Ellipses(overlap=overlap).subspaces()
        assert np.array_equal([low.min(axis=0), high.max(axis=0)], BOX)
        # 0 and 3 are neighbours along the first axis, 0 and 1 along the second.
        assert [high[0, 0] - low[3, 0], high[0, 1] - low[1, 1]] == pytest.approx([2 * overlap * 28 / 3] * 2)
    low, high = Ellipses(per_side=1).subspaces()
    assert np.array_equal(np.concatenate([low, high]), BOX)


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
