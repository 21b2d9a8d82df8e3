"""The published files, where they are at hand: what their sources and papers say of them."""

import io
import lzma

import numpy as np
import pytest
from published_files import STORE, need, real
from without_hashes import small

from fkl.data.normalise import normalise
from fkl.data.partition import BySite, Iid
from fkl.data.registry import dataset
from fkl.data.store import DataFile, Store
from fkl.data.wave_farm import WaveFarm


def test_naval():
    table = real(dataset("naval"))
    x, names = table.x, table.feature_names
    assert x.shape == (11500, 15) and (x[:, names.index("T1")] == 288.0).all()
    assert np.array_equal(x[:, names.index("Ts")], x[:, names.index("Tp")])
    assert sorted(set(table.y))[::8] == [1.138, 9.3]  # nine lever positions
    problem = Iid(clients=23).split(normalise(table), np.random.default_rng(0))  # the paper's
    assert problem.x.shape == (500, 23, 15) and problem.rows_left_out == 0


def test_airfoil():
    table = real(dataset("airfoil"))
    assert table.x.shape == (1503, 5) and table.x[0].tolist() == [800, 0, 0.3048, 71.3, 0.00266337]
    assert (table.y.min(), table.y.max()) == (103.38, 140.987)


def test_bias():
    for summary_rows, missing, rows in ((True, "mean", 7752), (False, "mean", 7750), (False, "drop", 7588)):
        table = real(dataset("bias", summary_rows=summary_rows, missing=missing))
        assert table.x.shape == (rows, 21) and (*table.x[0, :2], table.y[0]) == (28.7, 21.4, 21.2)
        if summary_rows:
            assert np.array_equal(table.x[-2:], [table.x.min(axis=0), table.x.max(axis=0)])


def test_concrete():
    table = real(dataset("concrete"))
    assert table.x.shape == (1030, 8) and table.x[0].tolist() == [540, 0, 0, 162, 2.5, 1040, 676, 28]
    assert (table.y[0], real(dataset("concrete", decimals=2)).y[0]) == (79.98611076, 79.99)


def test_energy_as_published_is_the_scaled_rows_of_at_most_300_wh():
    table, raw, every, dekrr = (real(dataset("energy", input=name)) for name in ("published", "raw", "all", "dekrr"))
    assert raw.x.shape == (19735, 25) and raw.x[0, :3].tolist() == [30, 19.89, 47.5966666666667]
    assert table.x.shape == (18604, 25)
    kept = raw.x[raw.y <= 300]
    assert np.allclose(table.x, (kept - kept.min()) / (kept.max() - kept.min()), rtol=0, atol=1e-14)
    assert np.array_equal(table.y, (raw.y[raw.y <= 300] - 10) / 290)
    # As many as COKE's paper states, and as DeKRR's authors scale them: random columns, too.
    assert every.x.shape == (19735, 28) and np.array_equal(every.x[:, 1:26], raw.x)
    assert np.array_equal(dekrr.x[:, 25], dekrr.x[:, 26]) and np.allclose(dekrr.y, 2 * (raw.y - 10) / 1070 - 1)


def test_airquality_as_published_has_the_mark_of_missing_values_as_a_value():
    table = real(dataset("airquality"))
    value, names = 2975 * table.x - 200, list(table.feature_names)
    assert table.x.shape == (7322, 13) and set((24 * value[:, 0]).round()) == set(range(24))
    assert [int(np.isclose(value[:, names.index(name)], -200).sum()) for name in ("NMHC(GT)", "T")] == [6432, 330]
    raw = real(dataset("airquality", input="raw", missing="previous"))  # all rows with a target
    assert np.allclose(11.8 * table.y + 0.1, raw.y[:7322], atol=1e-9)
    every, dekrr = (real(dataset("airquality", input=name)) for name in ("all", "dekrr"))
    assert every.x.shape == (9357, 13) and (every.x[:, 1] == -200).sum() == (dekrr.x[:, 1] == 0).sum() == 1683
    assert np.allclose(normalise(every, "unit_box").x, dekrr.x, atol=1e-14)


def test_raw_airquality():
    table = real(dataset("airquality", input="raw"))
    assert table.x.shape == (6941, 11) and (table.y.min(), table.y.max(), table.x.min()) == (0.1, 11.9, -1.9)  # degrees
    assert table.x[0].tolist() == [1360, 11.9, 1046, 166, 1056, 113, 1692, 1268, 13.6, 48.9, 0.7578]
    assert real(dataset("airquality", input="raw", missing="previous")).x.shape == (7674, 11)


def test_toms_hardware_published_and_omkl_are_of_its_first_rows():
    table, raw, published = (real(dataset("toms_hardware", input=name)) for name in ("omkl", "raw", "published"))
    assert published.x.shape == (11000, 96) and published.y[0] == 4.5 / raw.y[:11000].max()  # whose least is 0
    assert raw.x.shape == (28179, 96) and (raw.y[0], raw.y.max()) == (4.5, 265916.5)
    names = list(raw.feature_names)
    flags = raw.x[:, [names.index(f"{name}_{week}") for name in ("BL", "CS") for week in range(8)]]
    assert (flags.min(), flags.max()) == (0, 1)  # the two ratios, so the names are where they belong
    rows = {row.tobytes() for row in np.column_stack([raw.x, raw.y])[:9995].round(3) + 0.0}
    scaled_back = np.column_stack([125393 * table.x, 27611 * table.y]).round(3) + 0.0
    assert table.x.shape == (9725, 96) and sum(row.tobytes() in rows for row in scaled_back) >= 9724


def test_twitter():
    table = real(dataset("twitter"))
    assert table.x.shape == (13813, 77)
    assert (table.x.min(), table.x.max(), table.y.min(), table.y.max()) == (0, 1, 0, 1)
    discussions = table.x[:, table.feature_names.index("NAD_6")]
    assert np.corrcoef(discussions, table.y)[0, 1] > 0.9  # the target is this number, later


def test_uji():
    table = real(dataset("uji"))
    heard = table.x[table.x != 100.0]
    assert table.x.shape == (21000, 520) and (heard.min(), heard.max()) == (-104.0, 0.0)
    # The MSE that the paper prints for eM-KOFL, 61.08e-3, is no better than this variance of the latitude.
    assert normalise(table).y.var() == pytest.approx(61.7e-3, abs=0.05e-3)


def test_air():
    table = real(dataset("air"))
    assert table.x.shape == (120000, 14) and (table.y[0], table.y.max()) == (7.0, 290.0)
    assert set(table.x[:, table.feature_names.index("wd")]) == set(range(16))
    problem = BySite(clients_per_site=60).split(table, np.random.default_rng(0))  # the paper's
    assert problem.x.shape == (500, 240, 14) and problem.rows_left_out == 0


def test_wec_reads_real_rows_whose_total_is_linear_in_the_powers_as_in_the_simulated_farm(tmp_path):
    """A derived subset of UCI 494: rows of 48 scaled features and the scaled total power."""
    loadmat = pytest.importorskip("scipy.io").loadmat
    subset = DataFile("wec", "Wave.mat", "https://nowhere.invalid/none.zip")
    need((subset,))
    content = loadmat(io.BytesIO(lzma.decompress(STORE.find(subset).read_bytes())))
    sites = np.concatenate([content["X"].T, content["y"]], axis=1).reshape(4, 2300, 49)
    for file, rows in zip(dataset("wec").layout.used, sites, strict=True):
        np.savetxt(tmp_path / file["name"], rows, delimiter=",", fmt="%.17g")
    table = small("wec", {"file_rows": 2300}, rows_per_site=2000).load(Store(tmp_path, offline=True), None)
    assert np.array_equal(table.x, sites[:, :2000, :48].reshape(-1, 48))
    assert np.array_equal(table.y, sites[:, :2000, 48].ravel())
    farm = WaveFarm(rows_per_site=500).load(STORE, np.random.default_rng(0))
    for x, total in ((table.x, table.y), (farm.x, farm.y)):
        design = np.column_stack([x[:, 32:], np.ones(len(x))])
        fit = np.linalg.lstsq(design, total, rcond=None)[0]
        assert np.abs(design @ fit - total).max() < 1e-8 * max(1.0, total.max())
