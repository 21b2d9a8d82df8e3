"""The published files, where they are at hand: how their inputs follow from each other.

`test_data_hashes.py` knows their arrays.
"""

import io
import lzma

import numpy as np
import pytest
from published_files import STORE, need, real
from without_hashes import small

from fkl.data.normalise import normalise_table
from fkl.data.registry import named_dataset
from fkl.data.store import DataFile, Store
from fkl.data.wave_farm import WaveFarm


def test_energy_as_published_is_the_scaled_rows_of_at_most_300_wh():
    table, raw, every, dekrr = (
        real(named_dataset("energy", input=name)) for name in ("published", "raw", "all", "dekrr")
    )
    assert raw.x.shape == (19735, 25) and raw.x[0, :3].tolist() == [30, 19.89, 47.5966666666667]
    assert table.x.shape == (18604, 25)
    kept = raw.x[raw.y <= 300]
    assert np.allclose(table.x, (kept - kept.min()) / (kept.max() - kept.min()), rtol=0, atol=1e-14)
    assert np.array_equal(table.y, (raw.y[raw.y <= 300] - 10) / 290)
    # As many as COKE's paper states, and as DeKRR's authors scale them: random columns, too.
    assert every.x.shape == (19735, 28) and np.array_equal(every.x[:, 1:26], raw.x)
    assert np.array_equal(dekrr.x[:, 25], dekrr.x[:, 26]) and np.allclose(dekrr.y, 2 * (raw.y - 10) / 1070 - 1)


def test_airquality_as_published_has_the_mark_of_missing_values_as_a_value():
    table = real(named_dataset("airquality"))
    value, names = 2975 * table.x - 200, list(table.feature_names)
    assert table.x.shape == (7322, 13) and set((24 * value[:, 0]).round()) == set(range(24))
    assert [int(np.isclose(value[:, names.index(name)], -200).sum()) for name in ("NMHC(GT)", "T")] == [6432, 330]
    raw = real(named_dataset("airquality", input="raw", missing="previous"))  # all rows with a target
    assert np.allclose(11.8 * table.y + 0.1, raw.y[:7322], atol=1e-9)
    every, dekrr = (real(named_dataset("airquality", input=name)) for name in ("all", "dekrr"))
    assert every.x.shape == (9357, 13) and (every.x[:, 1] == -200).sum() == (dekrr.x[:, 1] == 0).sum() == 1683
    assert np.allclose(normalise_table(every, "unit_box").x, dekrr.x, atol=1e-14)


def test_wec_reads_real_rows_whose_total_is_linear_in_the_powers_as_in_the_simulated_farm(tmp_path):
    """A derived subset of UCI 494: rows of 48 scaled features and the scaled total power."""
    loadmat = pytest.importorskip("scipy.io").loadmat
    subset = DataFile("wec", "Wave.mat", "https://nowhere.invalid/none.zip")
    need((subset,))
    content = loadmat(io.BytesIO(lzma.decompress(STORE.find_file(subset).read_bytes())))
    sites = np.concatenate([content["X"].T, content["y"]], axis=1).reshape(4, 2300, 49)
    for file, rows in zip(named_dataset("wec").layout.used, sites, strict=True):
        np.savetxt(tmp_path / file["name"], rows, delimiter=",", fmt="%.17g")
    table = small("wec", {"file_rows": 2300}, rows_per_site=2000).load(Store(tmp_path, offline=True), None)
    assert np.array_equal(table.x, sites[:, :2000, :48].reshape(-1, 48))
    assert np.array_equal(table.y, sites[:, :2000, 48].ravel())
    farm = WaveFarm(rows_per_site=500).load(STORE, np.random.default_rng(0))
    for x, total in ((table.x, table.y), (farm.x, farm.y)):
        design = np.column_stack([x[:, 32:], np.ones(len(x))])
        fit = np.linalg.lstsq(design, total, rcond=None)[0]
        assert np.abs(design @ fit - total).max() < 1e-8 * max(1.0, total.max())
