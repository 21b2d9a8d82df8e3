"""The published files, where they are at hand; each is read once."""

import io
import lzma

import numpy as np
import pytest
from published_files import STORE, need, real
from without_hashes import small

from fkl.data.normalise import normalise
from fkl.data.partition import BySite, Iid
from fkl.data.readers import CONVERTED
from fkl.data.registry import dataset
from fkl.data.store import DataFile, Store
from fkl.data.table_file import TableFile
from fkl.data.wave_farm import WaveFarm


@pytest.fixture(scope="module")
def naval_table():
    return real(dataset("naval"))


@pytest.fixture(scope="module")
def uji_table():
    return real(dataset("uji"))


@pytest.fixture(scope="module")
def air_table():
    return real(dataset("air"))


def test_naval(naval_table):
    x, names = naval_table.x, naval_table.feature_names
    assert x.shape == (11500, 15)
    assert (x[:, names.index("T1")] == 288.0).all()
    assert np.array_equal(x[:, names.index("Ts")], x[:, names.index("Tp")])
    assert sorted(set(naval_table.y))[::8] == [1.138, 9.3]  # nine lever positions


def test_naval_in_the_paper_s_split(naval_table):
    problem = Iid(clients=23).split(normalise(naval_table), np.random.default_rng(0))
    assert problem.x.shape == (500, 23, 15)
    assert problem.rows_left_out == 0


def test_naval_with_all_rows_and_its_decay(naval_table):
    table = real(dataset("naval", rows=11934, decay=True))
    assert table.x.shape == (11934, 17)
    assert np.array_equal(table.x[:11500, :15], naval_table.x)
    assert table.x[:, 15:].min(axis=0).tolist() == [0.95, 0.975]
    assert Iid(1, None).split(table, np.random.default_rng(0)).x.shape == (11934, 1, 17)


def test_airfoil():
    table = real(dataset("airfoil"))
    assert table.x.shape == (1503, 5)
    assert table.x[0].tolist() == [800, 0, 0.3048, 71.3, 0.00266337]
    assert (table.y.min(), table.y.max()) == (103.38, 140.987)


@pytest.mark.parametrize(
    ("summary_rows", "missing", "rows"),
    [(True, "mean", 7752), (False, "mean", 7750), (True, "drop", 7590), (False, "drop", 7588)],
)
def test_bias(summary_rows, missing, rows):
    table = real(dataset("bias", summary_rows=summary_rows, missing=missing))
    assert table.x.shape == (rows, 21)
    assert table.x[0, :2].tolist() == [28.7, 21.4]
    assert table.y[0] == 21.2
    if summary_rows:
        assert np.array_equal(table.x[-2:], [table.x.min(axis=0), table.x.max(axis=0)])
        assert table.y[-2:].tolist() == [table.y.min(), table.y.max()]


def test_concrete(tmp_path):
    table = real(dataset("concrete"))
    assert table.x.shape == (1030, 8)
    assert table.x[0].tolist() == [540, 0, 0, 162, 2.5, 1040, 676, 28]
    assert table.y[0] == 79.98611076
    rounded = real(dataset("concrete", decimals=2))
    assert rounded.y[0] == 79.99
    need((CONVERTED,))
    path = STORE.find(CONVERTED)
    (tmp_path / path.name).write_bytes(path.read_bytes())
    again = dataset("concrete").load(Store(tmp_path, offline=True), np.random.default_rng(0))
    assert np.array_equal(again.x, table.x)


def test_energy_as_published_is_the_scaled_rows_of_at_most_300_wh():
    table, raw = real(dataset("energy")), real(dataset("energy", input="raw"))
    assert raw.x.shape == (19735, 25)
    assert raw.x[0, :3].tolist() == [30, 19.89, 47.5966666666667]
    assert (raw.y[0], raw.y.min(), raw.y.max()) == (60, 10, 1080)
    assert table.x.shape == (18604, 25)
    assert table.feature_names == raw.feature_names
    kept = raw.x[raw.y <= 300]
    assert np.allclose(table.x, (kept - kept.min()) / (kept.max() - kept.min()), rtol=0, atol=1e-14)
    assert np.array_equal(table.y, (raw.y[raw.y <= 300] - 10) / 290)


def test_energy_and_air_quality_as_dekrr_s_authors_scale_them():
    """All rows, holes and random columns with them; each feature in [0, 1], the target in [-1, 1]."""
    energy, raw = real(dataset("energy", input="dekrr")), real(dataset("energy", input="raw"))
    assert energy.x.shape == (19735, 27)
    assert energy.feature_names[25:] == ("rv1", "rv2")
    assert np.array_equal(energy.x[:, 25], energy.x[:, 26])
    assert np.allclose(energy.y, 2 * (raw.y - 10) / 1070 - 1, atol=1e-14)
    air = real(dataset("airquality", input="dekrr"))
    assert air.x.shape == (9357, 13)
    assert set((23 * air.x[:, 0]).round(9)) == set(range(24))
    assert air.feature_names[1] == "CO(GT)"
    assert (air.x[:, 1] == 0).sum() == 1683
    for table in (energy, air):
        assert (table.x.min(axis=0) == 0).all() and (table.x.max(axis=0) == 1).all()
        assert (table.y.min(), table.y.max()) == (-1, 1)


def test_energy_and_air_quality_with_all_rows_and_columns():
    """As many as COKE's paper states; the same numbers as DeKRR's before they are scaled."""
    energy, raw = (real(dataset("energy", input=name)) for name in ("all", "raw"))
    assert energy.x.shape == (19735, 28)
    assert energy.feature_names[0] == "date" and np.array_equal(energy.x[:, 0], np.arange(19735))
    assert np.array_equal(energy.x[:, 1:26], raw.x) and np.array_equal(energy.y, raw.y)
    air, dekrr = (real(dataset("airquality", input=name)) for name in ("all", "dekrr"))
    assert air.x.shape == (9357, 13) and (air.x[:, 1] == -200).sum() == 1683
    assert np.allclose(normalise(air, "unit_box").x, dekrr.x, atol=1e-14)


def test_airquality_as_published_has_the_mark_of_missing_values_as_a_value():
    table = real(dataset("airquality"))
    assert table.x.shape == (7322, 13)
    value = 2975 * table.x - 200
    hours, names = 24 * value[:, 0], list(table.feature_names)
    assert np.allclose(hours, hours.round(), atol=1e-9)
    assert set(hours.round()) == set(range(24))
    assert [int(np.isclose(value[:, names.index(name)], -200).sum()) for name in ("NMHC(GT)", "T")] == [6432, 330]
    raw = real(dataset("airquality", input="raw", missing="previous"))  # all rows with a target
    assert np.allclose(11.8 * table.y + 0.1, raw.y[:7322], atol=1e-9)
    measured = ~np.isclose(value, -200)
    for number, name in enumerate(raw.feature_names):
        here = measured[:, names.index(name)]
        # UCI's text file is rounded, the sheet that was scaled is not.
        assert np.abs(value[here, names.index(name)] - raw.x[:7322][here, number]).max() < 0.51


def test_raw_airquality():
    table = real(dataset("airquality", input="raw"))
    assert table.x.shape == (6941, 11)
    assert table.x[0].tolist() == [1360, 11.9, 1046, 166, 1056, 113, 1692, 1268, 13.6, 48.9, 0.7578]
    assert (table.y[0], table.y.min(), table.y.max()) == (2.6, 0.1, 11.9)
    assert table.x.min() == -1.9  # degrees
    carried = real(dataset("airquality", input="raw", missing="previous"))
    assert carried.x.shape == (7674, 11)
    assert carried.x.min() == -1.9


def test_toms_hardware_published_and_omkl_are_of_its_first_rows():
    table, raw, published = (real(dataset("toms_hardware", input=name)) for name in ("omkl", "raw", "published"))
    assert published.x.shape == (11000, 96)
    assert (published.y.min(), published.y.max()) == (0, 1)
    assert published.y[0] == 4.5 / raw.y[:11000].max()  # whose least is 0
    assert raw.x.shape == (28179, 96)
    assert (raw.y[0], raw.y.max()) == (4.5, 265916.5)
    names = list(raw.feature_names)
    flags = raw.x[:, [names.index(f"{name}_{week}") for name in ("BL", "CS") for week in range(8)]]
    assert (flags.min(), flags.max()) == (0, 1)  # the two ratios, so the names are where they belong
    assert table.x.shape == (9725, 96)
    rows = {row.tobytes() for row in np.column_stack([raw.x, raw.y])[:9995].round(3) + 0.0}
    scaled_back = np.column_stack([125393 * table.x, 27611 * table.y]).round(3) + 0.0
    assert sum(row.tobytes() in rows for row in scaled_back) >= 9724


def test_twitter():
    table = real(dataset("twitter"))
    assert table.x.shape == (13813, 77)
    assert (table.x.min(), table.x.max(), table.y.min(), table.y.max()) == (0, 1, 0, 1)
    assert table.y[0] == pytest.approx(0.19846812)
    discussions = table.x[:, table.feature_names.index("NAD_6")]
    assert np.corrcoef(discussions, table.y)[0, 1] > 0.9  # the target is this number, later


@pytest.mark.parametrize(
    ("published", "target"),
    [
        (dataset("airfoil"), "6"),
        (dataset("naval", rows=11934, decay=True), "1"),
        (dataset("bias", summary_rows=False, missing="drop"), "Next_Tmin"),
        (dataset("concrete"), "Concrete compressive strength(MPa, megapascals)"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_published_files_as_tables_of_one_s_own(published, target):
    expected = real(published)
    path = STORE.find(published.files[0])
    if path.suffix == ".zip":
        pytest.skip(f"{path} is an archive")
    table = TableFile(path=str(path), target=target, missing="drop", text="drop").load(STORE, np.random.default_rng(0))
    assert np.array_equal(table.y, expected.y)
    same = [table.feature_names.index(name) for name in expected.feature_names if name in table.feature_names]
    assert np.array_equal(table.x[:, same] if same else table.x, expected.x)


def test_uji(uji_table):
    assert uji_table.x.shape == (21000, 520)
    assert uji_table.y[0] == pytest.approx(4864920.7782, abs=1e-4)
    heard = uji_table.x[uji_table.x != 100.0]
    assert (heard.min(), heard.max()) == (-104.0, 0.0)
    # The MSE that the paper prints for eM-KOFL, 61.08e-3, is no better than this variance of the latitude.
    assert normalise(uji_table).y.var() == pytest.approx(61.7e-3, abs=0.05e-3)


def test_air(air_table):
    assert air_table.x.shape == (120000, 14)
    assert set(air_table.x[:, air_table.feature_names.index("wd")]) == set(range(16))
    assert air_table.x[0, :5].tolist() == [3, 1, 0, 4, 4]
    assert air_table.y[0] == 7.0
    assert air_table.y.max() == 290.0


def test_air_in_the_paper_s_split(air_table):
    problem = BySite(clients_per_site=60).split(air_table, np.random.default_rng(0))
    assert problem.x.shape == (500, 240, 14)
    assert problem.rows_left_out == 0
    assert np.bincount(problem.site).tolist() == [60, 60, 60, 60]


@pytest.fixture(scope="module")
def wave_mat():
    """Read the derived subset of UCI 494: rows of 48 scaled features and the scaled total power."""
    loadmat = pytest.importorskip("scipy.io").loadmat
    subset = DataFile("wec", "Wave.mat", "https://nowhere.invalid/none.zip")
    need((subset,))
    content = loadmat(io.BytesIO(lzma.decompress(STORE.find(subset).read_bytes())))
    return np.concatenate([content["X"].T, content["y"]], axis=1)


def test_wec_reads_real_rows(tmp_path, wave_mat):
    sites = wave_mat.reshape(4, 2300, 49)
    for file, rows in zip(dataset("wec").layout.used, sites, strict=True):
        np.savetxt(tmp_path / file["name"], rows, delimiter=",", fmt="%.17g")
    table = small("wec", {"file_rows": 2300}, rows_per_site=2000).load(Store(tmp_path, offline=True), None)
    assert np.array_equal(table.x, sites[:, :2000, :48].reshape(-1, 48))
    assert np.array_equal(table.y, sites[:, :2000, 48].ravel())


@pytest.mark.parametrize("simulated", [False, True])
def test_total_power_is_linear_in_the_powers_as_in_the_simulated_farm(wave_mat, simulated):
    table = WaveFarm(rows_per_site=500).load(STORE, np.random.default_rng(0))
    powers, total = (table.x[:, 32:], table.y) if simulated else (wave_mat[:, 32:48], wave_mat[:, 48])
    design = np.column_stack([powers, np.ones(len(powers))])
    fit = np.linalg.lstsq(design, total, rcond=None)[0]
    assert np.abs(design @ fit - total).max() < 1e-8 * max(1.0, total.max())
