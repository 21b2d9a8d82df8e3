"""The data sets from files, on small files in the published layouts."""

import hashlib
import io
import struct

import numpy as np
import pytest
from scipy.io import savemat
from without_hashes import put, small

from fkl.basics.errors import BadValue, FklError
from fkl.data import readers
from fkl.data.registry import dataset
from fkl.data.store import DataFile, Store


def load(dataset, store):
    return dataset.load(store, np.random.default_rng(0))


def test_naval_takes_columns_2_to_16_and_the_lever(tmp_path):
    rows = np.arange(4 * 18).reshape(4, 18) / 8
    text = "".join("".join(f"   {cell:.7e}" for cell in row) + "\n" for row in rows)
    table = load(small("naval", rows=3), put(tmp_path, "naval", [text]))
    assert np.array_equal(table.x, rows[:3, 1:16])
    assert np.array_equal(table.y, rows[:3, 0])
    assert table.site.tolist() == [0, 0, 0]
    assert len(table.feature_names) == 15
    with_decay = load(small("naval", rows=3, decay=True), Store(tmp_path, offline=True))
    assert np.array_equal(with_decay.x, rows[:3, 1:18])
    assert with_decay.feature_names == (*table.feature_names, "kMc", "kMt")
    assert np.array_equal(with_decay.y, table.y)


def test_a_table_is_read_once_and_again_when_its_file_changes(tmp_path):
    rows = np.arange(4 * 18).reshape(4, 18) / 8
    text = "".join("".join(f"   {cell:.7e}" for cell in row) + "\n" for row in rows)
    naval, store = small("naval", rows=3), put(tmp_path, "naval", [text])
    table = load(naval, store)
    assert load(naval, store) is table
    assert load(small("naval", rows=2), store).x.shape == (2, 15)
    with pytest.raises(ValueError, match="read-only"):
        table.x[0] = 0
    put(tmp_path, "naval", [text.replace("e+00", "e+01")])
    assert not np.array_equal(load(naval, store).x, table.x)


def test_naval_with_too_few_rows_names_the_file(tmp_path):
    store = put(tmp_path, "naval", ["   1" * 18 + "\n"])
    with pytest.raises(FklError, match=r"data.txt: 1 usable rows where 11500 are needed"):
        load(small("naval"), store)


def uji_text(rows):
    header = ",".join(small("uji").table.all_columns)
    return "\n".join([header, *(",".join(["100"] * 519 + [str(v) for v in row] + ["0"] * 7) for row in rows)]) + "\n"


@pytest.mark.parametrize(("target", "y"), [("latitude", [5.0, 8.0, 11.0]), ("longitude", [4.0, 7.0, 10.0])])
def test_uji_reads_training_then_validation(tmp_path, target, y):
    texts = [uji_text([(-3, 4.0, 5.0), (-6, 7.0, 8.0)]), uji_text([(100, 10.0, 11.0), (-1, 13.0, 14.0)])]
    store = put(tmp_path, "uji", texts)
    table = load(small("uji", rows=3, target=target, no_signal=-110.0), store)
    assert table.y.tolist() == y
    assert table.x.shape == (3, 520)
    assert table.x[:, 519].tolist() == [-3.0, -6.0, -110.0]
    assert (table.x[:, :519] == -110.0).all()
    assert (load(small("uji", rows=3), store).x[:, :519] == 100.0).all()


def air_text(rows):
    lines = [",".join(f'"{name}"' for name in small("air").table.all_columns)]
    for number, (wind, no2) in enumerate(rows, start=1):
        pollution = f"{number + 1},{number + 2},{number + 3},{no2},500,{number + 4}"
        lines.append(f'{number},2013,3,1,{number},{pollution},-0.7,1023,-18.8,0,{wind},4.4,"Site"')
    return "\r\n".join(lines) + "\r\n"


def air_store(tmp_path):
    texts = [
        air_text([("NA", 1), ('"NNW"', 2), ('"N"', "NA"), ('"E"', 3), ('"W"', 4)]),
        air_text([('"E"', 5), ('"S"', 6)]),
        air_text([('"S"', 7), ('"NNW"', 8)]),
        air_text([('"N"', 9), ('"N"', 10)]),
    ]
    return put(tmp_path, "air", texts)


def test_air_drops_incomplete_rows_and_codes_the_wind_in_order_of_appearance(tmp_path):
    table = load(small("air", rows_per_site=2), air_store(tmp_path))
    assert table.y.tolist() == [2, 3, 5, 6, 7, 8, 9, 10]
    assert table.site.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table.x[:, table.feature_names.index("wd")].tolist() == [0, 1, 1, 2, 2, 0, 3, 3]
    assert table.feature_names[:8] == ("month", "day", "hour", "PM2.5", "PM10", "SO2", "CO", "O3")
    assert table.x[0].tolist() == [3, 1, 2, 3, 4, 5, 500, 6, -0.7, 1023, -18.8, 0, 0, 4.4]


def test_air_with_another_target_keeps_14_features(tmp_path):
    table = load(small("air", rows_per_site=2, target="CO"), air_store(tmp_path))
    assert set(table.y) == {500.0}
    assert len(table.feature_names) == 14
    assert table.x[:, table.feature_names.index("NO2")].tolist() == [2, 3, 5, 6, 7, 8, 9, 10]


def test_air_with_too_few_complete_rows_names_the_file(tmp_path):
    with pytest.raises(FklError, match=r"PRSA_Data_Changping_.*csv: 2 usable rows where 3 are needed"):
        load(small("air", rows_per_site=3), air_store(tmp_path))


def wec_store(tmp_path, values):
    texts = ["\n".join(",".join(map(str, row)) for row in site) + "\n" for site in values]
    return put(tmp_path, "wec", texts)


def test_wec_takes_48_features_and_the_total(tmp_path):
    values = np.arange(4 * 3 * 49).reshape(4, 3, 49).astype(float)
    table = load(small("wec", {"file_rows": 3}, rows_per_site=2), wec_store(tmp_path, values))
    assert np.array_equal(table.x, values[:, :2, :48].reshape(8, 48))
    assert np.array_equal(table.y, values[:, :2, 48].ravel())
    assert table.site_names[table.site[2]] == "Perth"


def test_wec_of_another_shape_is_refused(tmp_path):
    with pytest.raises(FklError, match=r"Adelaide_Data.csv: 3 rows where 72000 are expected"):
        load(small("wec", rows_per_site=2), wec_store(tmp_path, np.zeros((4, 3, 49))))
    with pytest.raises(FklError, match=r"Adelaide_Data.csv, line 1: 48 columns where 49 are expected"):
        load(small("wec", rows_per_site=2), wec_store(tmp_path, np.zeros((4, 3, 48))))


def test_airfoil_takes_5_features_and_the_level(tmp_path):
    text = "800\t0\t0.3048\t71.3\t0.00266337\t126.201\r\n1000\t1.5\t0.3\t39.6\t0.002\t125\r\n"
    table = load(small("airfoil"), put(tmp_path, "airfoil", [text]))
    assert table.x.tolist() == [[800, 0, 0.3048, 71.3, 0.00266337], [1000, 1.5, 0.3, 39.6, 0.002]]
    assert table.y.tolist() == [126.201, 125]
    store = put(tmp_path, "airfoil", [text + "1\t2\r\n"])
    with pytest.raises(FklError, match=r"airfoil_self_noise.dat, line 3: 2 columns where 6 are expected"):
        load(small("airfoil"), store)


def bias_store(tmp_path):
    """Three days, the second with a hole in a feature, the third in the target; then minima and maxima."""
    days = np.arange(5 * 23, dtype=float).reshape(5, 23)
    cells = [[repr(cell) for cell in day] for day in days.tolist()]
    cells[1][0] = cells[2][-1] = cells[2][-2] = "NaN"
    labels = ["1.0,2013-06-30", "2.0,2013-06-30", "3.0,2013-07-01", ",", ","]
    lines = [
        ",".join(small("bias").table.all_columns),
        *(f"{label},{','.join(day)}" for label, day in zip(labels, cells, strict=True)),
    ]
    return days, put(tmp_path, "bias", ["\n".join(lines) + "\n"])


@pytest.mark.parametrize(
    ("keys", "rows", "first", "last"),
    [
        ({}, [0, 1, 2, 3, 4], np.mean([0, 46, 69, 92]), np.mean([22, 45, 91, 114])),  # as published
        ({"summary_rows": False}, [0, 1, 2], np.mean([0, 46]), np.mean([22, 45])),
        ({"missing": "drop"}, [0, 3, 4], None, None),
        ({"summary_rows": False, "missing": "drop"}, [0], None, None),
    ],
)
def test_bias_with_and_without_its_summary_rows_and_holes(tmp_path, keys, rows, first, last):
    days, store = bias_store(tmp_path)
    days[1, 0], days[2, -1] = first, last
    table = load(small("bias", **keys), store)
    assert np.array_equal(table.x, days[rows, :21])
    assert np.array_equal(table.y, days[rows, 22])
    assert (table.feature_names[0], table.feature_names[-1]) == ("Present_Tmax", "Solar radiation")


CONCRETE = np.arange(27).reshape(3, 9) / 8 + 0.001


def sheet(rows):
    """Excel file, of the first kind there was: words (record 4) and numbers (3) between a beginning and an end."""

    def record(kind, body):
        return struct.pack("<HH", kind, len(body)) + body

    content = record(9, struct.pack("<HH", 7, 16))
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            at = struct.pack("<HH3x", number, column)
            word = bytes([len(cell)]) + cell.encode() if isinstance(cell, str) else struct.pack("<d", cell)
            content += record(4 if isinstance(cell, str) else 3, at + word)
    return content + record(10, b"")


def concrete_store(monkeypatch, tmp_path, cells=CONCRETE):
    header = [f"Cement (component {number})(kg in a m^3 mixture)" for number in range(len(cells[0]))]
    (tmp_path / "Concrete_Data.xls").write_bytes(sheet([header, *cells]))
    monkeypatch.setattr(readers, "CELLS", hashlib.sha256(CONCRETE.astype("<f8").tobytes()).hexdigest())
    return Store(tmp_path, offline=True)


def converted(monkeypatch, tmp_path):
    lines = [",".join(['"a, b"'] * 9), *(",".join(map(repr, row)) for row in CONCRETE.tolist())]
    file = DataFile("concrete", readers.CONVERTED.name, readers.CONVERTED.url)
    monkeypatch.setattr(readers, "CONVERTED", file)
    (tmp_path / file.name).write_text("\n".join(lines) + "\n")


def test_concrete_reads_the_sheet_or_its_conversion(monkeypatch, tmp_path):
    store = concrete_store(monkeypatch, tmp_path)
    table = load(small("concrete"), store)
    assert np.array_equal(table.x, CONCRETE[:, :8])
    assert np.array_equal(table.y, CONCRETE[:, 8])
    converted(monkeypatch, tmp_path)
    (tmp_path / "Concrete_Data.xls").write_bytes(b"not looked at")
    assert np.array_equal(load(small("concrete"), store).x, table.x)
    assert load(small("concrete", decimals=2), store).x[0, :3].tolist() == [0, 0.13, 0.25]


def test_concrete_reads_the_sheet_from_the_source_s_archive(monkeypatch, tmp_path, zipped):
    store = concrete_store(monkeypatch, tmp_path)
    path = tmp_path / "Concrete_Data.xls"
    archive = zipped({path.name: path.read_bytes(), "Concrete_Readme.txt": b""})
    path.unlink()
    (tmp_path / dataset("concrete").files[0].archive).write_bytes(archive)
    assert np.array_equal(load(small("concrete"), store).y, CONCRETE[:, 8])


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (CONCRETE[:, :8].tolist(), "8 columns where 9 are expected"),
        ([["1,5", *CONCRETE[0, 1:].tolist()]], "line 2, column cement: '1,5' is not a finite number"),
        (CONCRETE[:2].tolist(), "2 x 9 cells with SHA-256 .*, expected 1030 x 9 with"),
        ((CONCRETE + 1).tolist(), "3 x 9 cells with SHA-256"),
    ],
)
def test_concrete_of_other_cells_is_refused(monkeypatch, tmp_path, cells, words):
    with pytest.raises(FklError, match=rf"Concrete_Data.xls[:,] {words}"):
        load(small("concrete"), concrete_store(monkeypatch, tmp_path, cells))


def test_concrete_that_is_no_sheet_is_refused_quietly(monkeypatch, tmp_path, capsys):
    store = concrete_store(monkeypatch, tmp_path)
    path = tmp_path / "Concrete_Data.xls"
    for content in (b"no sheet", b"", path.read_bytes()[:-40]):
        path.write_bytes(content)
        with pytest.raises(FklError, match=r"Concrete_Data.xls: ") as caught:
            load(small("concrete"), store)
        assert "\n" not in str(caught.value)
    assert capsys.readouterr() == ("", "")


def mat(**variables):
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=True)
    return buffer.getvalue()


NO_FILE = b"not looked at"
RANDOM = np.random.default_rng(0).random((4, 97))


@pytest.mark.parametrize(
    ("name", "features", "others"),
    [
        ("energy", 25, [NO_FILE]),
        ("airquality", 13, [NO_FILE]),
        ("twitter", 77, []),
    ],
)
def test_published_matrices_have_their_samples_in_columns(tmp_path, name, features, others):
    x, y = RANDOM[:, :features], RANDOM[:, [96]]
    store = put(tmp_path, name, [mat(X=x.T, y=y), *others])
    table = load(small(name), store)
    assert np.array_equal(table.x, x)
    assert np.array_equal(table.y, y[:, 0])
    assert len(set(table.feature_names)) == features
    file = dataset(name).files[0].name
    for content, words in (
        (mat(X=x, y=y), f"X is 4 x {features} and y is 4 x 1 where {features} x n and n x 1 are expected"),
        (mat(X=x.T, Y=y), "there is no variable y in it"),
        (mat(X=x.T, y=y)[:-9], "not a MATLAB file that can be read|there is no variable y in it"),
    ):
        (tmp_path / file).write_bytes(content)
        with pytest.raises(FklError, match=f"^{file}: ({words})"):
            load(small(name), store)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("energy", "dataset.input=raw"),
        ("airquality", "dataset.input=raw"),
        ("toms_hardware", "dataset=wave_farm"),
        ("twitter", "dataset=wave_farm"),
    ],
)
def test_missing_matrices_do_not_point_to_the_source(tmp_path, name, instead):
    words = rf"^{name}: {dataset(name).files[0].name} is not in .*no address is known that serves it.* {instead}"
    with pytest.raises(FklError, match=words) as caught:
        load(dataset(name), Store(tmp_path))
    assert "uci.edu" not in str(caught.value)


@pytest.mark.parametrize("name", ["energy", "airquality"])
def test_missing_raw_files_point_to_the_source(tmp_path, name):
    with pytest.raises(
        FklError, match=rf"^offline: .*{dataset(name).files[1].name} .*get it from https://archive.ics.uci.edu/"
    ):
        load(dataset(name, input="raw"), Store(tmp_path, offline=True))


def energy_text(rows):
    header = ",".join(f'"{name}"' for name in small("energy").table.all_columns)
    lines = [",".join(f'"{cell:>4}"' for cell in ("2016-01-11 17:00:00", *row)) for row in rows]
    return "\r\n".join([header, *lines]) + "\r\n"


def test_raw_energy_leaves_out_the_date_and_the_random_variables(tmp_path):
    rows = np.arange(3 * 28).reshape(3, 28) / 8
    store = put(tmp_path, "energy", [NO_FILE, energy_text(rows.tolist())])
    table = load(small("energy", input="raw"), store)
    assert np.array_equal(table.x, rows[:, 1:26])
    assert np.array_equal(table.y, rows[:, 0])
    assert (table.feature_names[0], table.feature_names[-1]) == ("lights", "Tdewpoint")
    cells = [[1] * 28, [2] * 27 + ["x"]]
    (tmp_path / "energydata_complete.csv").write_text(energy_text(cells))
    with pytest.raises(FklError, match=r"energydata_complete.csv, line 3, column rv2: 'x' is not a finite number"):
        load(small("energy", input="raw"), store)


def airquality_text(rows, empty_rows=3):
    lines = [";".join(small("airquality").table.all_columns)]
    lines += [";".join(["10/03/2004", "18.00.00", *(str(cell).replace(".", ",") for cell in row)]) for row in rows]
    return "\r\n".join([*(f"{line};;" for line in lines), *(";" * 16,) * empty_rows]) + "\r\n"


AIRQUALITY = np.arange(5 * 13).reshape(5, 13) / 8


def airquality_rows():
    """Five hours: a hole in T in the first and the third, no target in the second, NMHC(GT) only in the last."""
    rows = AIRQUALITY.tolist()
    rows[0][10] = rows[1][0] = "-200"
    rows[2][10] = "-200,0"
    for row in rows[:4]:
        row[2] = "-200"
    return rows


@pytest.mark.parametrize(("missing", "rows"), [("drop", [3, 4]), ("previous", [2, 3, 4])])
def test_raw_airquality_with_its_holes(tmp_path, missing, rows):
    store = put(tmp_path, "airquality", [NO_FILE, airquality_text(airquality_rows())])
    table = load(small("airquality", input="raw", missing=missing), store)
    values = AIRQUALITY.copy()
    values[2, 10] = values[1, 10]  # measured in an hour that is itself left out, having no target
    assert np.array_equal(table.x, values[rows][:, [1, *range(3, 13)]])
    assert np.array_equal(table.y, values[rows, 0])
    assert table.feature_names == dataset("airquality", input="raw").layout.features
    assert "NMHC(GT)" not in table.feature_names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (airquality_text([["x", *range(12)]]), r"line 2, column CO\(GT\): 'x' is not a finite number"),
        (airquality_text([range(13), [""] * 13, range(13)]), r"line 3, column CO\(GT\): '' is not a finite number"),
        (airquality_text([range(13), range(12)]), "line 3: 14 columns where 15 are expected"),
        (airquality_text([range(13)]).replace("RH", "HR"), "line 1: column 14 is 'HR' where 'RH' is expected"),
        ("", "line 1: 0 columns where 15 are expected"),
    ],
)
def test_raw_airquality_in_another_layout_is_refused(tmp_path, text, words):
    store = put(tmp_path, "airquality", [NO_FILE, text])
    with pytest.raises(FklError, match=f"^AirQualityUCI.csv, {words}"):
        load(small("airquality", input="raw"), store)


def test_raw_toms_hardware_has_its_samples_in_rows_and_omkl_s_in_columns(tmp_path):
    x, y = 1000 * RANDOM[:, :96], RANDOM[:, [96]]
    contents = [mat(X=x, Y=y), mat(X=x.T / 2, y=y)]
    store = put(tmp_path, "toms_hardware", contents)
    for name, factor in (("raw", 1), ("omkl", 0.5)):
        table = load(small("toms_hardware", input=name), store)
        assert np.array_equal(table.x, factor * x)
        assert np.array_equal(table.y, y[:, 0])
        assert table.feature_names[:9] == (*(f"NCD_{week}" for week in range(8)), "BL_0")


def test_published_toms_hardware_is_its_first_rows_each_column_scaled(tmp_path):
    """Whatever comes after them has no part in the scaling; a constant column becomes 0."""
    random = np.random.default_rng(3)
    x, y = random.normal(5, 2, (11003, 96)), random.normal(-1, 3, (11003, 1))
    x[:11000, 7], x[11000:], y[11000:] = 4.0, 1e6, 1e6
    store = put(tmp_path, "toms_hardware", [mat(X=x, Y=y), NO_FILE])
    table = load(small("toms_hardware"), store)
    assert table.x.shape == (11000, 96)
    assert not table.x[:, 7].any()
    assert (table.y.min(), table.y.max()) == (0, 1)
    others = np.delete(table.x, 7, axis=1)
    assert (others.min(axis=0), others.max(axis=0)) == (pytest.approx(0), pytest.approx(1))
    first = x[:11000, 0]
    assert np.allclose(table.x[:, 0], (first - first.min()) / (first.max() - first.min()))


@pytest.mark.parametrize(
    ("make", "key", "allowed"),
    [
        (lambda: dataset("naval", rows=11935), "rows", "11934"),
        (lambda: dataset("uji", rows=1), "rows", "21048"),
        (lambda: dataset("uji", target="LATITUDE"), "target", "longitude"),
        (lambda: dataset("air", rows_per_site=30339), "rows_per_site", "30338"),
        (lambda: dataset("air", target="TEMP"), "target", "NO2"),
        (lambda: dataset("wec", rows_per_site=72001), "rows_per_site", "72000"),
        (lambda: dataset("bias", missing="refuse"), "missing", "mean or drop"),
        (lambda: dataset("energy", input="mat"), "input", "published, raw, all or dekrr"),
        (lambda: dataset("airquality", input=""), "input", "published, raw, all or dekrr"),
        (lambda: dataset("airquality", input="raw", missing="mean"), "missing", "drop or previous"),
        (lambda: dataset("airquality", missing="previous"), "missing", "drop with input=published"),
        (lambda: dataset("toms_hardware", input="csv"), "input", "published, omkl or raw"),
        (lambda: dataset("concrete", decimals=-1), "decimals", "from 0 to 15"),
        (lambda: dataset("concrete", decimals=400), "decimals", "from 0 to 15"),
    ],
)
def test_values_that_cannot_be_are_refused(make, key, allowed):
    with pytest.raises(BadValue, match=allowed) as caught:
        make()
    assert caught.value.key == key
