"""The two ellipses of federated classification with parsimonious functions."""

from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from fkl.basics.errors import BadValue
from fkl.data.ellipses import BOX, Ellipses, labels
from fkl.data.store import Store

CONF = Path(__file__).parents[2] / "conf"
NOWHERE = Store(Path("nowhere"), offline=True)


def load(dataset, seed=0):
    return dataset.load(NOWHERE, np.random.default_rng(seed))


def test_labels_are_those_of_the_paper_s_ellipses():
    x = np.random.default_rng(0).uniform(*BOX, (2000, 2))
    for (a, b), label in zip(x, labels(x), strict=True):
        inside = (a - 3) ** 2 + 0.25 * b**2 <= 9 or (a + 10) ** 2 + 0.25 * (b - 6) ** 2 <= 30
        assert label == (1 if inside else -1)
    assert labels(np.array([[6.0, 0], [6.01, 0], [3, 6], [3, 6.01], [-10, 6 + 2 * 30**0.5 - 0.01]])).tolist() == [
        1, -1, 1, -1, 1,
    ]  # fmt: skip
    # The box holds both ellipses.
    edges = np.random.default_rng(1).uniform(*BOX, (4, 2000, 2))
    for edge, points in enumerate(edges):
        points[:, edge % 2] = BOX[edge // 2, edge % 2]
    assert (labels(edges.reshape(-1, 2)) == -1).all()


def test_sites_are_nine_subspaces_with_their_own_samples():
    data = Ellipses(rows=9005, test_rows=0, noise_variance=0.0)
    table = load(data)
    assert table.x.shape == (9005, 2)
    assert np.array_equal(table.y, labels(table.x))
    assert set(table.y) == {-1.0, 1.0}
    counts = np.bincount(table.site)
    assert len(counts) == len(table.site_names) == 9
    assert counts.max() - counts.min() <= 1
    assert (np.diff(table.site) >= 0).all()
    low, high = data.subspaces()
    assert (table.x >= low[table.site]).all()
    assert (table.x <= high[table.site]).all()
    for site in range(9):
        mine = table.x[table.site == site]
        assert np.allclose(mine.min(axis=0), low[site], atol=0.2)
        assert np.allclose(mine.max(axis=0), high[site], atol=0.2)
        assert np.allclose(mine.mean(axis=0), (low[site] + high[site]) / 2, atol=0.5)


def test_subspaces_cover_the_box_and_overlap_as_asked():
    for overlap in (0.0, 0.25, 1.0):
        low, high = Ellipses(overlap=overlap).subspaces()
        assert np.array_equal(low.min(axis=0), BOX[0])
        assert np.array_equal(high.max(axis=0), BOX[1])
        # 0 and 3 are neighbours along the first axis, 0 and 1 along the second.
        assert high[0, 0] - low[3, 0] == pytest.approx(2 * overlap * 28 / 3)
        assert high[0, 1] - low[1, 1] == pytest.approx(2 * overlap * 28 / 3)
    low, high = Ellipses(per_side=1).subspaces()
    assert np.array_equal(np.concatenate([low, high]), BOX)


def test_noise_has_the_variance_asked_for_and_comes_after_the_labels():
    quiet, noisy = (load(Ellipses(rows=20000, noise_variance=v)) for v in (0.0, 0.2))
    assert np.array_equal(quiet.y, noisy.y)
    assert np.var(noisy.x - quiet.x, axis=0) == pytest.approx(0.2, rel=0.05)


def test_one_subspace_is_one_site():
    table = load(Ellipses(rows=10, per_side=1))
    assert table.site_names == ("subspace1",)
    assert not table.site.any()


def test_test_samples_are_of_the_whole_box():
    data = Ellipses(rows=9, test_rows=5000, overlap=0.0, noise_variance=0.0)
    table = load(data)
    assert table.tested.tolist() == [False] * 9 + [True] * 5000
    x, site = table.x[9:], table.site[9:]
    assert np.allclose(x.min(axis=0), BOX[0], atol=0.1)
    assert np.allclose(x.max(axis=0), BOX[1], atol=0.1)
    # Areas of the ellipses, pi r_i / sqrt(0.25).
    assert (table.y[9:] == 1).mean() == pytest.approx(np.pi * (9 + 30) * 2 / 28**2, abs=0.02)
    low, high = data.subspaces()
    assert ((x >= low[site]) & (x <= high[site])).all()
    assert load(Ellipses(test_rows=0)).tested is None


def test_one_seed_is_one_table():
    assert np.array_equal(load(Ellipses()).x, load(Ellipses()).x)
    assert not np.array_equal(load(Ellipses()).x, load(Ellipses(), 1).x)


def test_configuration_node():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        dataset = instantiate(compose("config", ["dataset=ellipses", "dataset.rows=90"]).dataset)
    assert dataset == Ellipses(rows=90)
    assert np.bincount(load(dataset).site[:90]).tolist() == [10] * 9


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rows", 8),
        ("rows", 10**9),
        ("test_rows", -1),
        ("per_side", 0),
        ("overlap", -0.1),
        ("overlap", 1.1),
        ("noise_variance", -1.0),
    ],
)
def test_values_that_cannot_be_are_refused(key, value):
    with pytest.raises(BadValue) as caught:
        Ellipses(**{key: value})
    assert caught.value.key == key
