"""The data sets from files, on small files in the published layouts."""

import hashlib
import struct

import numpy as np
import pytest
from without_hashes import mat, put, small

from fkl.basics.errors import FklError
from fkl.data import readers
from fkl.data.registry import named_dataset
from fkl.data.store import DataFile, Store


def load(dataset, store):
    return dataset.load(store, np.random.default_rng(0))


def test_naval_takes_columns_2_to_16_and_the_lever(tmp_path):
    rows = np.arange(4 * 18).reshape(4, 18) / 8
    text = "".join("".join(f"   {cell:.7e}" for cell in row) + "\n" for row in rows)
    store = put(tmp_path, "naval", [text])
    table = load(small("naval", rows=3), store)
    assert np.array_equal(table.x, rows[:3, 1:16]) and np.array_equal(table.y, rows[:3, 0])
    with_decay = load(small("naval", rows=3, decay=True), store)
    assert np.array_equal(with_decay.x, rows[:3, 1:18]) and with_decay.feature_names[15:] == ("kMc", "kMt")
    with pytest.raises(FklError, match=r"data.txt: 4 usable rows where 11500 are needed"):
        load(small("naval"), store)
    table = load(small("naval", rows=3), store)  # read once, and again when its file changes
    assert load(small("naval", rows=3), store) is table
    put(tmp_path, "naval", [text.replace("e+00", "e+01")])
    assert not np.array_equal(load(small("naval", rows=3), store).x, table.x)


def test_uji_reads_training_then_validation(tmp_path):
    def text(rows):
        header = ",".join(small("uji").table.all_columns)
        lines = (",".join(["100"] * 519 + [str(cell) for cell in row] + ["0"] * 7) for row in rows)
        return "\n".join([header, *lines]) + "\n"

    store = put(tmp_path, "uji", [text([(-3, 4, 5), (-6, 7, 8)]), text([(100, 10, 11), (-1, 13, 14)])])
    for target, y in {"latitude": [5, 8, 11], "longitude": [4, 7, 10]}.items():
        table = load(small("uji", rows=3, target=target, no_signal=-110.0), store)
        assert table.y.tolist() == y
        assert table.x[:, 519].tolist() == [-3.0, -6.0, -110.0] and (table.x[:, :519] == -110.0).all()
    assert (load(small("uji", rows=3), store).x[:, :519] == 100.0).all()


def test_air_drops_incomplete_rows_and_codes_the_wind_in_order_of_appearance(tmp_path):
    def text(*rows):
        lines = [",".join(f'"{name}"' for name in small("air").table.all_columns)]
        for number, (wind, no2) in enumerate(rows, start=1):
            pollution = f"{number + 1},{number + 2},{number + 3},{no2},500,{number + 4}"
            lines.append(f'{number},2013,3,1,{number},{pollution},-0.7,1023,-18.8,0,{wind},4.4,"Site"')
        return "\r\n".join(lines) + "\r\n"

    first = text(("NA", 1), ('"NNW"', 2), ('"N"', "NA"), ('"E"', 3), ('"W"', 4))
    others = text(('"E"', 5), ('"S"', 6)), text(('"S"', 7), ('"NNW"', 8)), text(('"N"', 9), ('"N"', 10))
    store = put(tmp_path, "air", [first, *others])
    table = load(small("air", rows_per_site=2), store)
    assert table.y.tolist() == [2, 3, 5, 6, 7, 8, 9, 10]
    assert table.site.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table.x[:, table.feature_names.index("wd")].tolist() == [0, 1, 1, 2, 2, 0, 3, 3]
    assert table.x[0].tolist() == [3, 1, 2, 3, 4, 5, 500, 6, -0.7, 1023, -18.8, 0, 0, 4.4]
    assert set(load(small("air", rows_per_site=2, target="CO"), store).y) == {500.0}
    with pytest.raises(FklError, match=r"PRSA_Data_Changping_.*csv: 2 usable rows where 3 are needed"):
        load(small("air", rows_per_site=3), store)


def test_wec_takes_48_features_and_the_total(tmp_path):
    values = np.arange(4 * 3 * 49).reshape(4, 3, 49).astype(float)
    store = put(tmp_path, "wec", ["\n".join(",".join(map(str, row)) for row in site) + "\n" for site in values])
    table = load(small("wec", {"file_rows": 3}, rows_per_site=2), store)
    assert np.array_equal(table.x, values[:, :2, :48].reshape(8, 48))
    assert np.array_equal(table.y, values[:, :2, 48].ravel()) and table.site_names[table.site[2]] == "Perth"
    with pytest.raises(FklError, match=r"Adelaide_Data.csv: 3 rows where 72000 are expected"):
        load(small("wec", rows_per_site=2), store)


@pytest.mark.parametrize(
    ("keys", "rows", "first", "last"),
    [
        ({}, [0, 1, 2, 3, 4], np.mean([0, 46, 69, 92]), np.mean([22, 45, 91, 114])),  # as published
        ({"summary_rows": False}, [0, 1, 2], np.mean([0, 46]), np.mean([22, 45])),
        ({"missing": "drop"}, [0, 3, 4], None, None),
    ],
)
def test_bias_with_and_without_its_summary_rows_and_holes(tmp_path, keys, rows, first, last):
    """Three days, the second with a hole in a feature, the third in the target; then minima and maxima."""
    days = np.arange(5 * 23, dtype=float).reshape(5, 23)
    cells = [[repr(cell) for cell in day] for day in days.tolist()]
    cells[1][0] = cells[2][-1] = cells[2][-2] = "NaN"
    labels = ["1.0,2013-06-30", "2.0,2013-06-30", "3.0,2013-07-01", ",", ","]
    lines = [f"{label},{','.join(day)}" for label, day in zip(labels, cells, strict=True)]
    store = put(tmp_path, "bias", ["\n".join([",".join(small("bias").table.all_columns), *lines]) + "\n"])
    days[1, 0], days[2, -1] = first, last
    table = load(small("bias", **keys), store)
    assert np.array_equal(table.x, days[rows, :21]) and np.array_equal(table.y, days[rows, 22])


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


def concrete(monkeypatch, folder, cells=CONCRETE):
    header = [f"Cement (component {number})(kg in a m^3 mixture)" for number in range(len(cells[0]))]
    (folder / "Concrete_Data.xls").write_bytes(sheet([header, *cells]))
    monkeypatch.setattr(readers, "CELLS", hashlib.sha256(CONCRETE.astype("<f8").tobytes()).hexdigest())
    return Store(folder, offline=True)


def test_concrete_reads_the_sheet_or_its_conversion(monkeypatch, tmp_path, zipped):
    store, path = concrete(monkeypatch, tmp_path), tmp_path / "Concrete_Data.xls"
    table = load(small("concrete"), store)
    assert np.array_equal(np.c_[table.x, table.y], CONCRETE)
    assert load(small("concrete", decimals=2), store).x[0, :3].tolist() == [0, 0.13, 0.25]
    archive = zipped({path.name: path.read_bytes(), "Concrete_Readme.txt": b""})
    path.unlink()
    (tmp_path / named_dataset("concrete").data_files[0].archive).write_bytes(archive)
    assert np.array_equal(load(small("concrete"), store).y, CONCRETE[:, 8])
    lines = [",".join(['"a, b"'] * 9), *(",".join(map(repr, row)) for row in CONCRETE.tolist())]
    file = DataFile("concrete", readers.CONVERTED.name, readers.CONVERTED.url)
    monkeypatch.setattr(readers, "CONVERTED", file)
    (tmp_path / file.name).write_text("\n".join(lines) + "\n")
    path.write_bytes(b"not looked at")
    assert np.array_equal(load(small("concrete"), store).x, table.x)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([["1,5", *CONCRETE[0, 1:].tolist()]], "line 2, column cement: '1,5' is not a finite number"),
        ((CONCRETE + 1).tolist(), "3 x 9 cells with SHA-256 .*, expected 1030 x 9 with"),
    ],
)
def test_concrete_of_other_cells_is_refused_quietly(monkeypatch, tmp_path, capsys, cells, words):
    with pytest.raises(FklError, match=rf"Concrete_Data.xls[:,] {words}"):
        load(small("concrete"), store := concrete(monkeypatch, tmp_path, cells))
    (tmp_path / "Concrete_Data.xls").write_bytes((tmp_path / "Concrete_Data.xls").read_bytes()[:-40])
    with pytest.raises(FklError, match=r"^Concrete_Data.xls: [^\n]*$"):
        load(small("concrete"), store)
    assert capsys.readouterr() == ("", "")


NO_FILE = b"not looked at"
RANDOM = np.random.default_rng(0).random((4, 97))


@pytest.mark.parametrize(("name", "features"), [("energy", 25), ("airquality", 13), ("twitter", 77)])
def test_published_matrices_have_their_samples_in_columns(tmp_path, name, features):
    x, y = RANDOM[:, :features], RANDOM[:, [96]]
    store = put(tmp_path, name, [mat(X=x.T, y=y), *[NO_FILE] * (len(named_dataset(name).data_files) - 1)])
    table = load(small(name), store)
    assert np.array_equal(table.x, x) and np.array_equal(table.y, y[:, 0])
    for served in (Store(tmp_path / "nowhere"), Store(tmp_path / "nowhere", offline=True)):
        with pytest.raises(FklError, match=rf"{name}: .* is not in .*no address is known that serves it.* dataset"):
            load(named_dataset(name), served)


def airquality(rows):
    lines = [";".join(small("airquality").table.all_columns)]
    lines += [";".join(["10/03/2004", "18.00.00", *(str(cell).replace(".", ",") for cell in row)]) for row in rows]
    return "\r\n".join([*(f"{line};;" for line in lines), *(";" * 16,) * 3]) + "\r\n"


@pytest.mark.parametrize(("missing", "rows"), [("drop", [3, 4]), ("previous", [2, 3, 4])])
def test_raw_airquality_with_its_holes(tmp_path, missing, rows):
    """Five hours: a hole in T in the first and the third, no target in the second, NMHC(GT) only in the last."""
    values = np.arange(5 * 13).reshape(5, 13) / 8
    cells = values.tolist()
    cells[0][10] = cells[1][0] = "-200"
    cells[2][10] = "-200,0"
    for row in cells[:4]:
        row[2] = "-200"
    store = put(tmp_path, "airquality", [NO_FILE, airquality(cells)])
    table = load(small("airquality", input="raw", missing=missing), store)
    values[2, 10] = values[1, 10]  # measured in an hour that is itself left out, having no target
    assert np.array_equal(table.x, values[rows][:, [1, *range(3, 13)]]) and np.array_equal(table.y, values[rows, 0])


def test_toms_hardware_raw_has_its_samples_in_rows_and_is_published_scaled(tmp_path):
    """Its first rows; whatever comes after them has no part in the scaling; a constant column becomes 0."""
    random = np.random.default_rng(3)
    x, y = random.normal(5, 2, (11003, 96)), random.normal(-1, 3, (11003, 1))
    x[:11000, 7], x[11000:], y[11000:] = 4.0, 1e6, 1e6
    store = put(tmp_path, "toms_hardware", [mat(X=x, Y=y), mat(X=x[:4].T / 2, y=y[:4])])
    assert np.array_equal(load(small("toms_hardware", input="raw"), store).x, x)
    assert np.array_equal(load(small("toms_hardware", input="omkl"), store).x, x[:4] / 2)
    table = load(small("toms_hardware"), store)
    assert table.x.shape == (11000, 96) and not table.x[:, 7].any()
    others, first = np.delete(table.x, 7, axis=1), np.delete(x[:11000], 7, axis=1)
    assert np.allclose(others, (first - first.min(axis=0)) / np.ptp(first, axis=0))
    assert (table.y.min(), table.y.max()) == (0, 1)
