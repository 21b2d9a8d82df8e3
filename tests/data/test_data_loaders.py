"""The four data sets from files, on small files in the published layouts."""

import numpy as np
import pytest

from fkl.data import air, naval, uji, wec
from fkl.data.store import DataFile, Store
from fkl.errors import BadValue, FklError


def small_files(monkeypatch, dataset, tmp_path, contents):
    """Stand-ins for the published files: same names, no hash."""
    for file, content in zip(dataset.files, contents, strict=True):
        (tmp_path / file.name).write_text(content)
    stand_ins = tuple(DataFile(file.dataset, file.name, file.url) for file in dataset.files)
    monkeypatch.setattr(dataset, "files", stand_ins)
    return Store(tmp_path, offline=True)


def load(dataset, store):
    return dataset.load(store, np.random.default_rng(0))


def test_naval_takes_columns_2_to_16_and_the_lever(monkeypatch, tmp_path):
    rows = np.arange(4 * 18).reshape(4, 18) / 8
    text = "".join("".join(f"   {cell:.7e}" for cell in row) + "\n" for row in rows)
    table = load(naval.Naval(rows=3), small_files(monkeypatch, naval.Naval, tmp_path, [text]))
    assert np.array_equal(table.x, rows[:3, 1:16])
    assert np.array_equal(table.y, rows[:3, 0])
    assert table.site.tolist() == [0, 0, 0]
    assert len(table.feature_names) == 15


def test_naval_with_too_few_rows_names_the_file(monkeypatch, tmp_path):
    store = small_files(monkeypatch, naval.Naval, tmp_path, ["   1" * 18 + "\n"])
    with pytest.raises(FklError, match=r"data.txt: 1 usable rows where 11500 are needed"):
        load(naval.Naval(), store)


def uji_text(rows):
    header = ",".join(uji.COLUMNS)
    return "\n".join([header, *(",".join(["100"] * 519 + [str(v) for v in row] + ["0"] * 7) for row in rows)]) + "\n"


@pytest.mark.parametrize(("target", "y"), [("latitude", [5.0, 8.0, 11.0]), ("longitude", [4.0, 7.0, 10.0])])
def test_uji_reads_training_then_validation(monkeypatch, tmp_path, target, y):
    texts = [uji_text([(-3, 4.0, 5.0), (-6, 7.0, 8.0)]), uji_text([(100, 10.0, 11.0), (-1, 13.0, 14.0)])]
    store = small_files(monkeypatch, uji.Uji, tmp_path, texts)
    table = load(uji.Uji(rows=3, target=target, no_signal=-110.0), store)
    assert table.y.tolist() == y
    assert table.x.shape == (3, 520)
    assert table.x[:, 519].tolist() == [-3.0, -6.0, -110.0]
    assert (table.x[:, :519] == -110.0).all()
    assert (load(uji.Uji(rows=3), store).x[:, :519] == 100.0).all()


def air_text(rows):
    lines = [",".join(f'"{name}"' for name in air.COLUMNS)]
    for number, (wind, no2) in enumerate(rows, start=1):
        pollution = f"{number + 1},{number + 2},{number + 3},{no2},500,{number + 4}"
        lines.append(f'{number},2013,3,1,{number},{pollution},-0.7,1023,-18.8,0,{wind},4.4,"Site"')
    return "\r\n".join(lines) + "\r\n"


def air_store(monkeypatch, tmp_path):
    texts = [
        air_text([("NA", 1), ('"NNW"', 2), ('"N"', "NA"), ('"E"', 3), ('"W"', 4)]),
        air_text([('"E"', 5), ('"S"', 6)]),
        air_text([('"S"', 7), ('"NNW"', 8)]),
        air_text([('"N"', 9), ('"N"', 10)]),
    ]
    return small_files(monkeypatch, air.Air, tmp_path, texts)


def test_air_drops_incomplete_rows_and_codes_the_wind_in_order_of_appearance(monkeypatch, tmp_path):
    table = load(air.Air(rows_per_site=2), air_store(monkeypatch, tmp_path))
    assert table.y.tolist() == [2, 3, 5, 6, 7, 8, 9, 10]
    assert table.site.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table.x[:, table.feature_names.index("wd")].tolist() == [0, 1, 1, 2, 2, 0, 3, 3]
    assert table.feature_names[:8] == ("month", "day", "hour", "PM2.5", "PM10", "SO2", "CO", "O3")
    assert table.x[0].tolist() == [3, 1, 2, 3, 4, 5, 500, 6, -0.7, 1023, -18.8, 0, 0, 4.4]


def test_air_with_another_target_keeps_14_features(monkeypatch, tmp_path):
    table = load(air.Air(rows_per_site=2, target="CO"), air_store(monkeypatch, tmp_path))
    assert set(table.y) == {500.0}
    assert len(table.feature_names) == 14
    assert table.x[:, table.feature_names.index("NO2")].tolist() == [2, 3, 5, 6, 7, 8, 9, 10]


def test_air_with_too_few_complete_rows_names_the_file(monkeypatch, tmp_path):
    with pytest.raises(FklError, match=r"PRSA_Data_Changping_.*csv: 2 usable rows where 3 are needed"):
        load(air.Air(rows_per_site=3), air_store(monkeypatch, tmp_path))


def wec_store(monkeypatch, tmp_path, values):
    texts = ["\n".join(",".join(map(str, row)) for row in site) + "\n" for site in values]
    return small_files(monkeypatch, wec.Wec, tmp_path, texts)


def test_wec_takes_48_features_and_the_total(monkeypatch, tmp_path):
    values = np.arange(4 * 3 * 49).reshape(4, 3, 49).astype(float)
    monkeypatch.setattr(wec, "FILE_ROWS", 3)
    table = load(wec.Wec(rows_per_site=2), wec_store(monkeypatch, tmp_path, values))
    assert np.array_equal(table.x, values[:, :2, :48].reshape(8, 48))
    assert np.array_equal(table.y, values[:, :2, 48].ravel())
    assert table.site_names[table.site[2]] == "Perth"


def test_wec_of_another_shape_is_refused(monkeypatch, tmp_path):
    with pytest.raises(FklError, match=r"Adelaide_Data.csv: 3 rows where 72000 are expected"):
        load(wec.Wec(rows_per_site=2), wec_store(monkeypatch, tmp_path, np.zeros((4, 3, 49))))
    with pytest.raises(FklError, match=r"Adelaide_Data.csv, line 1: 48 columns where 49 are expected"):
        load(wec.Wec(rows_per_site=2), wec_store(monkeypatch, tmp_path, np.zeros((4, 3, 48))))


@pytest.mark.parametrize(
    ("make", "key", "allowed"),
    [
        (lambda: naval.Naval(rows=11935), "rows", "11934"),
        (lambda: uji.Uji(rows=1), "rows", "21048"),
        (lambda: uji.Uji(target="LATITUDE"), "target", "longitude"),
        (lambda: uji.Uji(no_signal=float("nan")), "no_signal", "finite"),
        (lambda: air.Air(rows_per_site=30339), "rows_per_site", "30338"),
        (lambda: air.Air(target="TEMP"), "target", "NO2"),
        (lambda: wec.Wec(rows_per_site=72001), "rows_per_site", "72000"),
    ],
)
def test_values_that_cannot_be_are_refused(make, key, allowed):
    with pytest.raises(BadValue, match=allowed) as caught:
        make()
    assert caught.value.key == key
