"""Tables of the user's own in every format: sites, order, words, labels, files to be tested on, and refusals."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
import yaml
from pyarrow import feather
from sklearn.preprocessing import LabelEncoder, OneHotEncoder, OrdinalEncoder

from fkl.basics.errors import BadValue, FklError
from fkl.config.loading import build
from fkl.data.encoder import Encoder
from fkl.data.partition import Sites
from fkl.data.store import Store
from fkl.data.table_file import TableFile
from fkl.data.vertical import FeatureGroups

FRAME = pd.DataFrame(
    {
        "ward": ["north", "south", "north", "east", "south"],
        "day": ["2024-01-03", "2024-01-01", "2024-01-02 12:30", "2024-01-02", "2024-01-05"],
        "age": [1.5, 2.0, -3.25, 4.0, 0.1],
        "drug": ["b", "a", "b", "c", "a"],
        "stay": [10.0, 20.0, 30.0, 40.0, 50.0],
    }
)
SUFFIXES = (".csv", ".parquet", ".feather", ".npz")


def write(path, frame=FRAME):
    """The frame in the format of the file's name."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    else:
        words = {name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])}
        np.savez(path, **{name: np.array(frame[name].tolist(), str if name in words else None) for name in frame})
    return str(path)


def load(path, frame=FRAME, **keys):
    return TableFile(path=write(path, frame), **{"target": "stay", **keys}).load(Store(Path()), None)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_table(tmp_path, suffix):
    table = load(tmp_path / f"own{suffix}", site="ward", time="day", text="one_hot")
    order = [1, 3, 2, 0, 4]  # by the dates
    rows = FRAME.iloc[order]
    assert table.feature_names == ("age", "drug=b", "drug=a", "drug=c")
    assert table.y.tolist() == rows["stay"].tolist()
    oracle = OneHotEncoder(categories=[["b", "a", "c"]], sparse_output=False)
    assert np.array_equal(table.x, np.column_stack([rows["age"], oracle.fit_transform(rows[["drug"]])]))
    assert [table.site_names[site] for site in table.site] == rows["ward"].tolist()
    assert table.site_names == ("north", "south", "east")
    assert np.array_equal(table.encoder.x(rows), table.x)
    problem = Sites().split(table, np.random.default_rng(0))
    assert problem.present.sum(axis=0).tolist() == [2, 2, 1]
    assert problem.y[:, 1].tolist() == [20.0, 50.0]  # south, in the order of time


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_words_and_labels_are_numbered_as_scikit_learn_would(tmp_path, suffix):
    table = load(tmp_path / f"own{suffix}", FRAME[["age", "drug", "ward"]], target="drug", labels="code", text="code")
    labels = LabelEncoder().fit(FRAME["drug"])
    assert table.y.tolist() == labels.transform(FRAME["drug"]).tolist()
    assert table.encoder.labels == tuple(labels.classes_)
    oracle = OrdinalEncoder(categories=[["north", "south", "east"]]).fit_transform(FRAME[["ward"]])
    assert np.array_equal(table.x[:, 1:], oracle)
    assert np.array_equal(table.encoder.x(FRAME), table.x)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_cells_of_typed_files_are_those_of_text(tmp_path, suffix):
    holed = FRAME[["age", "stay"]].copy()
    holed.loc[1, "age"] = holed.loc[3, "stay"] = np.nan
    place = "line 3" if suffix == ".csv" else "row 2"
    with pytest.raises(FklError, match=rf"own{suffix}, {place}, column age: .* is missing; .*drop.*mean"):
        load(tmp_path / f"own{suffix}", holed)
    table = load(tmp_path / f"own{suffix}", holed, missing="mean")
    assert table.x[:, 0].tolist() == pytest.approx([1.5, (1.5 - 3.25 + 0.1) / 3, -3.25, 0.1])
    assert table.encoder.x(holed.drop(index=3)).tolist() == table.x.tolist()
    assert load(tmp_path / f"own{suffix}", holed, missing="drop").y.tolist() == [10.0, 30.0, 50.0]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_dates_and_booleans_are_the_same_numbers_in_every_format(tmp_path, suffix, missing):
    days = pd.to_datetime("2024-01-01 06:00") + pd.to_timedelta([2, 0, 1.5, 1, 4], unit="D")
    frame = FRAME[["stay"]].assign(day=days, flag=pd.array([True, False, True, True, False], dtype="boolean"))
    if missing:
        frame.loc[2, ["day", "flag"]] = [pd.NaT, pd.NA]
    keys = {"date_format": "%Y-%m-%d %H:%M:%S", "missing": "drop", "text": "one_hot"}
    table = load(tmp_path / f"own{suffix}", frame, **keys)
    expected = np.array([[19725.25, 1], [19723.25, 0], [19724.75, 1], [19724.25, 1], [19727.25, 0]])
    assert table.feature_names == ("day", "flag")
    assert np.array_equal(table.x, np.delete(expected, 2, axis=0) if missing else expected)
    for later in (frame, frame.astype(str)):
        assert np.array_equal(table.encoder.x(later.drop(index=2)), np.delete(expected, 2, axis=0))
    sorted_by = load(tmp_path / f"own{suffix}", frame, **keys, time="day")
    assert sorted_by.y.tolist() == frame.dropna().sort_values("day")["stay"].tolist()


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("text", ["refuse", "drop", "code", "one_hot"])
def test_dates_of_a_typed_file_need_no_format(tmp_path, text, suffix, zone):
    days = pd.to_datetime(FRAME["day"], format="ISO8601")
    frame = FRAME.assign(day=days.dt.tz_localize(zone), week=days.dt.date)[["day", "week", "age", "stay"]]
    table = load(tmp_path / f"own{suffix}", frame, text=text)
    assert table.feature_names == ("day", "week", "age")
    utc = frame["day"].dt.tz_convert("UTC").dt.tz_localize(None) if zone else days
    expected = (utc - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    assert table.x[:, 0].tolist() == expected.tolist()
    assert table.x[:, 1].tolist() == [19725, 19723, 19724, 19724, 19727]
    assert np.array_equal(table.encoder.x(frame), table.x)
    assert np.array_equal(Encoder.of_json(table.encoder.as_json()).x(frame), table.x)
    holed = frame.assign(day=frame["day"].where(frame.index != 2), week=frame["week"].where(frame.index != 1))
    assert len(load(tmp_path / f"own{suffix}", holed, text=text, missing="drop").y) == 3


def test_a_column_of_words_may_have_true_among_them(tmp_path):
    frame = FRAME[["age", "stay"]].assign(told=["true", "false", "unknown", "false", "true"])
    assert load(tmp_path / "own.csv", frame, text="code").encoder.words["told"] == ("true", "false", "unknown")


def test_a_file_to_be_tested_on_comes_behind_and_is_marked(tmp_path):
    numbers = FRAME[["age", "stay"]]
    other = write(tmp_path / "other.parquet", numbers.iloc[:2] * 2)
    table = load(tmp_path / "own.csv", numbers, test_path=other)
    assert table.y.tolist() == [10.0, 20.0, 30.0, 40.0, 50.0, 20.0, 40.0]
    assert table.tested.tolist() == [False] * 5 + [True] * 2
    parties = FeatureGroups(parties=2, groups=[[0], [1]], how="given")
    wide = load(
        tmp_path / "wide.csv", numbers.assign(b=1.0), test_path=write(tmp_path / "b.csv", numbers.assign(b=2.0))
    )
    split = parties.split(wide, np.random.default_rng(0)).rows(np.random.default_rng(1))
    assert sorted(split.test) == [5, 6, 7, 8, 9]
    write(tmp_path / "other.parquet", numbers.rename(columns={"age": "years"}))
    with pytest.raises(FklError, match=r"other\.parquet: has no column age, which .*own\.csv has"):
        load(tmp_path / "own.csv", numbers, test_path=other)
    write(tmp_path / "other.parquet", numbers.assign(age=np.inf))
    with pytest.raises(FklError, match=r"other\.parquet, row 1, column age: 'inf' is not a finite number"):
        load(tmp_path / "own.csv", numbers, test_path=other)


def test_an_array_of_two_axes_is_its_columns(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, x=np.arange(6.0).reshape(3, 2), y=[1, 2, 3])
    table = TableFile(path=str(path), target="y").load(Store(Path()), None)
    assert table.feature_names == ("x1", "x2")
    assert table.x.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"site": "house"}, r"site=house: must be a column of .*own\.csv, which has ward, day"),
        ({"time": "hour"}, "time=hour: must be a column"),
        ({"time": "drug"}, "line 2, column drug: 'b' is no time; must be a number, or a date like 2024-01-31"),
        ({"target": "drug"}, "column drug: 'b' is not a number, and the target must be one; dataset.labels=code"),
        ({"test_path": "none.csv"}, "test_path=none.csv: must be a file that is there"),
    ],
)
def test_keys_that_do_not_fit_the_file_are_refused(tmp_path, keys, said):
    with pytest.raises(FklError, match=said) as caught:
        load(tmp_path / "own.csv", **{"text": "drop", **keys})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keys", [{"site": "y"}, {"time": "y"}, {"site": "a", "time": "a"}, {"labels": "drop"}])
def test_values_that_cannot_be_are_refused(keys):
    with pytest.raises(BadValue):
        TableFile(path="own.csv", target="y", **keys)


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_damaged_typed_files_are_refused_in_one_line(tmp_path, suffix):
    path = tmp_path / f"own{suffix}"
    write(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    broken = [b"", b"PK", whole[: len(whole) // 2], whole[:-9], whole[9:], rng.bytes(300)]
    for raw in broken:
        path.write_bytes(raw)
        with pytest.raises(FklError, match=rf"own\{suffix}: is no \w+ file, or is damaged") as caught:
            TableFile(path=str(path), target="stay").load(Store(Path()), None)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"y": [1, 2], "a": [1, 2, 3]}, "a has 3 rows where y has 2"),
        ({"y": [1, 2], "a": np.zeros((2, 2, 2))}, "a has 3 axes"),
        ({"y": [1, 2], "a": np.array([1j, 2j])}, "column a: holds values of type complex; must be numbers or text"),
        (
            {"y": [1, 2], "a": np.array([{}, []], object)},
            "is no npz file, or is damaged: Object arrays cannot be loaded",
        ),
        ({"y": [1, 2], "a": [1, np.inf]}, "row 2, column a: 'inf' is not a finite number"),
        ({}, "0 rows where at least 2"),
    ],
)
def test_arrays_that_are_no_columns_are_refused(tmp_path, arrays, said):
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(FklError, match=said):
        TableFile(path=str(tmp_path / "own.npz"), target="y").load(Store(Path()), None)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("target", ["a", "y"])
def test_integers_that_float64_would_round_are_refused(tmp_path, suffix, target):
    """As features and as the target; those that it holds are read, and the order of a time needs no last digit."""
    path, large = tmp_path / f"own{suffix}", 2**60 + 256 * np.arange(8)
    frame = pd.DataFrame({"a": large, "b": np.arange(8), "y": 0.5 * np.arange(8)})
    assert len(load(path, frame, target=target).y) == 8
    frame.loc[5, "a"] += 1
    place = "line 7" if suffix == ".csv" else "row 6"
    rounded = r"1152921504606848257 is an integer above 2\^53, which would be rounded to 1152921504606848256;"
    with pytest.raises(FklError, match=f"{place}, column a: {rounded}"):
        load(path, frame, target=target)
    assert load(path, frame, target="y", time="a").y.tolist() == frame["y"].tolist()


def test_an_npz_that_unpacks_to_more_than_memory_holds_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "own.npz", y=np.zeros(1_000_000))
    monkeypatch.setattr("fkl.basics.memory.available_bytes", lambda: 10_000_000)
    with pytest.raises(FklError, match=r"out of memory: .*its arrays would take at least 15\.3 MiB"):
        TableFile(path=str(tmp_path / "own.npz"), target="y").load(Store(Path()), None)


def test_rows_without_columns_take_room(tmp_path):
    """A Feather file of 2 kB can claim a billion of them."""
    rows = pyarrow.table({"a": pyarrow.nulls(10**7)}).select([])
    feather.write_feather(rows, tmp_path / "own.feather", compression="uncompressed", chunksize=10**7)
    with pytest.raises(FklError, match=r"own\.feather: 10,000,000 rows of 0 columns would take 687 MiB"):
        TableFile(path=str(tmp_path / "own.feather"), target="y").load(Store(Path()), None)


def test_without_pyarrow_its_formats_name_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path / "own.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FklError, match=r"own\.parquet: needs pyarrow, which comes with pip install -e '\.\[files\]'"):
        TableFile(path=path, target="stay").load(Store(Path()), None)


def hospitals(folder):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
    frame["ward"] = np.repeat(["north", "south", "east"], 30)
    frame["kind"] = np.array(["mild", "severe", "worst"])[np.digitize(frame["a"], [-0.5, 0.5])]
    frame.to_csv(folder / "own.csv", index=False)
    return ("run", "dataset=file", "dataset.path=own.csv", "dataset.site=ward", "replicates=1", "out=here")


CLASSES = {
    "fed3r": ("algo=fed3r",),
    "softmax": ("algo=fedavg", "kernels=coke", "algo.loss=softmax", "algo.iterations=20"),
    "one against the rest": ("algo=fedprox", "kernels=coke", "algo.loss=one_vs_rest", "algo.iterations=20"),
    "machines": ("algo=pooled_svm",),
    "parsimonious": ("algo=parsimonious_federated",),
    "a stream": ("algo=pof_mkl",),
    "a graph": ("algo=coke", "topology=ring"),
    "a ridge": ("algo=one_shot_ridge",),
    "parties": ("algo=fdskl", "algo.loss=square", "partition=vertical", "partition.parties=2"),
}


@pytest.mark.parametrize(("name", "call"), CLASSES.items(), ids=CLASSES)
def test_words_are_classes_where_their_numbers_are_and_nothing_else(fkl, tmp_path, name, call):
    hospitals(tmp_path)
    frame = pd.read_csv("own.csv")
    numbers = frame.assign(kind=frame["kind"].map({"mild": 0, "severe": 1, "worst": 2}))
    numbers.to_csv("numbers.csv", index=False)
    site = () if name == "parties" else ("dataset.site=ward",)
    words = ("run", *call, "dataset=file", "dataset.target=kind", "replicates=1", "figures=none", "kernels.D=8", *site)
    words = tuple(word for word in words if name not in ("machines", "parsimonious") or word != "kernels.D=8")
    more = ("dataset.labels=code", *(("dataset.drop=[ward]",) if name == "parties" else ()))
    answer = fkl(*words, *more, "dataset.path=own.csv", "out=words")
    if name in ("a stream", "a graph", "a ridge", "parties"):
        assert answer.code == 2
        assert "dataset.target=kind: must be numbers or two classes for" in answer.err
        assert "algo=fed3r, or algo.loss=softmax, learns the 3 classes mild, severe, worst" in answer.err
        return
    assert answer.code == 0, answer.err
    assert fkl(*words, "dataset.path=numbers.csv", "out=numbers").code == 0
    found, same = (pd.read_csv(f"{folder}/summary.csv") for folder in ("words", "numbers"))
    assert found["test_error"].tolist() == same["test_error"].tolist()
    assert found["test_error"][0] < found["test_error_majority"][0]


def test_a_table_of_classes_is_described_without_a_method(fkl, tmp_path):
    answer = fkl("data", "describe", *hospitals(tmp_path)[1:4], "dataset.target=kind", "dataset.labels=code")
    assert "target's classes: mild: " in answer.out, answer.err


def test_sites_are_the_clients_of_a_stream(fkl, tmp_path):
    call = (*hospitals(tmp_path), "dataset.target=d", "dataset.text=one_hot", "kernels.D=4")
    answer = fkl(*call)
    assert answer.code == 0, answer.err
    assert "3 clients, 30 rounds, 6 features, " in answer.out
    assert pd.read_csv("here/clients.csv")["site"].tolist() == ["north", "south", "east"]
    assert json.loads(Path("here/provenance.json").read_text())["clients"] == 3
    answer = fkl(*call, "dataset.test_path=own.csv", "out=there")
    assert answer.code == 2
    assert "dataset.test_path=own.csv: must be null for POF-MKL, which is tested on every sample" in answer.err


LEFT_OUT = {
    "one column": ("a,deck,y\n1,,1\n2,,2\n3,5,3\n4,6,4\n5,7,5\n", (), "2 of 5 rows left out, all for deck"),
    "two": ("a,deck,y\n1,,1\n,,2\n3,5,3\n,6,4\n,7,5\n4,8,6\n5,1,7\n6,1,8\n", (), "4 of 8 rows left out, most for a"),
    "one row": ("a,y\n1,1\n2,2\n3,3\n4,4\n5,?\n", (), "1 of 5 rows left out, all for y"),
    "targets, beside means": (
        "a,y\n,1\n,2\n3,3\n4,4\n5,?\n", ("dataset.missing=mean",), "1 of 5 rows left out, all for y"
    ),
    "none": ("a,y\n1,1\n2,2\n3,3\n4,4\n", (), ""),
}  # fmt: skip


@pytest.mark.parametrize("algo", ["pof_mkl", "one_shot_ridge", "fdskl"])
@pytest.mark.parametrize(("text", "keys", "said"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_rows_that_are_left_out_are_counted_with_the_column_to_blame(fkl, algo, text, keys, said):
    if algo == "fdskl":  # two parties need two features
        text = "".join(f"{'1' if i else 'b'},{line}\n" for i, line in enumerate(text.splitlines()))
    Path("own.csv").write_text(text)
    parties = ("partition=vertical", "partition.parties=2", "algo.loss=square", "algo.iterations=20")
    words = ("dataset=file", "dataset.path=own.csv", "dataset.target=y", "dataset.missing=drop", *keys)
    small = ("replicates=1", "figures=none", "out=there", *(parties if algo == "fdskl" else ()))
    answer = fkl("run", f"algo={algo}", *words, *small)
    assert answer.code == 0, answer.err
    assert (f", {said}," in answer.out) if said else ("left out" not in answer.out)
    told = json.loads(Path("there/provenance.json").read_text())
    assert told["rows_left_out"] == int(said.split(" ")[0] or 0 if said else 0)
    assert said in told["sizes"]
    assert said in fkl("data", "describe", *words).out


DATES = {
    "months": ("m,y\n2024-01,1\n2023-12,2\n", {"date_format": "%Y-%m"}, {"m": ["2024-01-01", "2023-12-01"]}),
    "months and years": ("m,y\n3/1999,1\n12/2001,2\n", {"date_format": "%m/%Y"}, {"m": ["1999-03-01", "2001-12-01"]}),
    "two formats": (
        "m,d,y\n2024-01,31.01.2024,1\n2023-12,01.02.2024,2\n",
        {"date_format": {"m": "%Y-%m", "d": "%d.%m.%Y"}},
        {"m": ["2024-01-01", "2023-12-01"], "d": ["2024-01-31", "2024-02-01"]},
    ),
    "days that look like numbers": (
        "d,y\n20240131,1\n20240201,2\n", {"date_format": {"d": "%Y%m%d"}}, {"d": ["2024-01-31", "2024-02-01"]}
    ),
    "a column by its number": (
        "2024-01,1\n2023-12,2\n", {"date_format": {1: "%Y-%m"}, "target": 2, "header": False},
        {"1": ["2024-01-01", "2023-12-01"]},
    ),
}  # fmt: skip
TIMES = {
    "a day and an hour": ("10/03/2004;18.00.00;0\n10/03/2004;02.00.00;1\n09/04/2004;00.00.00;2\n", {
        "date_format": {"d": "%d/%m/%Y", "t": "%H.%M.%S"}}),
    "one format of both": ("10/03/2004;18.00.00;0\n10/03/2004;02.00.00;1\n09/04/2004;00.00.00;2\n", {
        "date_format": "%d/%m/%Y %H.%M.%S"}),
    "no format": ("2004-03-10;18:00;0\n2004-03-10;02:00;1\n2004-04-09;00:00;2\n", {}),
    "numbers": ("20040310;18;0\n20040310;2;1\n20040409;0;2\n", {"date_format": {"d": "%Y%m%d", "t": "%H"}}),
}  # fmt: skip


def node(**keys):
    """A data set of the user's as a command line makes it."""
    return build(TableFile, {"path": "own.csv", "target": "y", **keys}, "dataset")[0].load(Store(Path()), None)


@pytest.mark.parametrize(("text", "keys", "days"), DATES.values(), ids=DATES)
def test_a_date_is_its_day_and_a_month_its_first_day(tmp_path, monkeypatch, text, keys, days):
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text(text)
    table = node(**keys)
    expected = [(pd.to_datetime(pd.Series(column)) - pd.Timestamp(0)).dt.days for column in days.values()]
    assert table.feature_names == tuple(days)
    assert np.array_equal(table.x, np.column_stack(expected))
    frame = pd.read_csv("own.csv", sep=",", dtype=str, header=None if keys.get("header") is False else 0)
    frame.columns = [*days, "y"]
    assert np.array_equal(table.encoder.x(frame), table.x)


@pytest.mark.parametrize(("text", "keys"), TIMES.values(), ids=TIMES)
def test_several_columns_say_when_a_row_comes(tmp_path, monkeypatch, text, keys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{line};{5 + number}\n" for number, line in enumerate(text.splitlines()))
    Path("own.csv").write_text(f"d;t;a;y\n{rows}")
    table = node(time=["d", "t"], **keys)
    assert (table.feature_names, table.x[:, 0].tolist(), table.y.tolist()) == (("a",), [1, 0, 2], [6, 5, 7])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"date_format": "%m"}, "date_format=%m: must be a format of days or months"),
        ({"date_format": {"d": "%H:%M"}}, "date_format.d=%H:%M: must be a format of days or months"),
        ({"date_format": {"z": "%Y-%m"}}, "date_format=z: must be of a column of own.csv, which has d, t, a, y"),
        ({"date_format": {"y": "%Y-%m"}}, "date_format.y=%Y-%m: must be of a column beside target and site"),
        (
            {"date_format": {"d": "%d.%m.%Y"}},
            "own.csv, line 2, column d: '2004-03' is no date as dataset.date_format=%d",
        ),
        ({"time": ["d", "t"], "date_format": {"d": "%Y-%m"}}, "must be with a format of t, too"),
        ({"time": ["d", "y"]}, "time=y: must be a column beside the target"),
        ({"time": []}, "time=[]: must be the name of a column, a list of several, or null"),
    ],
)
def test_dates_that_cannot_be_are_refused_by_the_key(tmp_path, monkeypatch, keys, said):
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text("d,t,a,y\n2004-03,18,1,2\n2004-04,2,2,3\n")
    with pytest.raises(FklError, match=re.escape(said).replace("time=y", "time=.*y.*")):
        node(**keys)


IDS = [f"p{number:03}" for number in range(12)]
HINTS = {
    "ids": (("id", IDS), (), "'p000' is not a number; each row has another word: dataset.drop=[id] leaves ids out; "),
    "ids with signs": (("pat (id)", IDS), (), r'dataset.drop=["pat (id)"] leaves ids out; '),
    "long numbers": (
        ("id", [2**53 + 1 + n for n in range(12)]),
        (),
        "subtract a constant, or dataset.drop=[id] leaves",
    ),
    "sites": (
        ("ward", ["n", "s", "e"] * 4),
        (),
        "dataset.site=ward makes a client of each of its 3 words; dataset.text=",
    ),
    "sites that are there": (("kind", ["n", "s", "e"] * 4), ("dataset.site=a",), "not a number; dataset.text=drop"),
    "dates": (("on", [f"2024-01-{n + 10}" for n in range(12)]), (), "dataset.date_format reads dates"),
    "ids as features": (
        ("id", IDS),
        ("dataset.text=one_hot",),
        "each row has another word, so nothing can be learned; ",
    ),
}


@pytest.mark.parametrize(("column", "keys", "said"), HINTS.values(), ids=HINTS)
def test_a_line_offers_the_key_for_ids_and_for_sites(fkl, column, keys, said):
    frame = pd.DataFrame({column[0]: column[1], "a": [1, 2] * 6, "y": range(12)})
    frame.to_csv("own.csv", index=False)
    answer = fkl("data", "describe", "file", "dataset.path=own.csv", "dataset.target=y", *keys)
    assert said in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "dataset=wards.csv"), "a file of your own: dataset=file dataset.path=wards.csv dataset.target=COLUMN"),
        (("data", "describe", "sites/*.csv"), "dataset=file dataset.path='sites/*.csv' dataset.target=COLUMN"),
        (("run", "dataset=file", "dataset.fill={CO(GT):3}"), """double quotes, as 'dataset.fill={"CO(GT)":3}'"""),
    ],
)
def test_a_word_that_is_no_key_is_answered_with_the_command(fkl, words, said):
    answer = fkl(*words)
    assert (answer.code, said in answer.err) == (2, True), answer.err


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        ("", ("dataset.header=false", "dataset.target=3", "dataset.fill={1:two,2:3}", "dataset.drop=[4]")),
        ("k (x);größe, m;y;z", ("dataset.target=y", 'dataset.fill={"k (x)":two,"größe, m":3}', "dataset.drop=[z]")),
        ("k;CO(GT);y;z", ("dataset.target=y", '+dataset.fill={k: two,"CO(GT)": 3}', 'dataset.drop=["z"]')),
    ],
)
def test_columns_are_named_by_numbers_and_by_any_signs(fkl, header, keys):
    Path("own.csv").write_text(f"{header}\ntwo;1;5;a\n?;?;6;b\none;2;7;c\nx;3;8;d\n".lstrip())
    answer = fkl("data", "describe", "file", "dataset.path=own.csv", "dataset.text=one_hot", *keys)
    assert answer.code == 0, answer.err
    rows = [re.split(r"  +", row) for row in answer.out.splitlines()]
    means = {row[0]: row[1] for row in rows if len(row) == 5}
    assert [mean for name, mean in means.items() if name.endswith("=two")] == ["0.5"] and "2.25" in means.values()


UNITS = "a,b,y\n" + "".join(f"{n % 7 / 10},{50000 + 1000 * (n % 5)},{20 + 3 * (n % 7)}\n" for n in range(60))
SCREENS = {
    "one_shot_ridge": ("training rows", ()),
    "pof_mkl": ("all rows", ()),
    "fdskl": (
        "training rows",
        ("algo.loss=square", "algo.iterations=50", "partition=vertical", "partition.parties=2"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("algo", "rows", "more"), [(algo, *of) for algo, of in SCREENS.items()], ids=SCREENS)
def test_a_run_on_an_own_file_has_its_name_its_units_first_and_its_scaling(fkl, algo, rows, more):
    Path("wards & more.csv").write_text(UNITS)
    words = ("run", f"algo={algo}", "dataset=file", "dataset.path='wards & more.csv'", "dataset.target=y", *more)
    answer = fkl(*words, "replicates=1", "figures=none", "kernels.D=8")
    assert answer.code == 0, answer.err
    assert " on wards_more\n" in answer.out and f"run       outputs/runs/wards_more-{algo}-" in answer.out
    assert re.search(r"\n  error     rmse_in_units [\d.]+ +R² [-\d.]+\n +(test_)?mse ", answer.out), answer.out
    assert f"\n  scaling   unit_box, from {rows}\n" in answer.out
    told = json.loads(next(Path("outputs/runs").glob("*/provenance.json")).read_text())
    assert (told["dataset"], told["scaling_from"]) == ("wards_more", rows)
    assert "hides the others" not in answer.err
    answer = fkl(*words, "replicates=1", "figures=none", "kernels.D=8", "scaling=unit_ball")
    assert "warning: b is 100.0% of the features' norm and hides the others; scaling=unit_box" in answer.err


def test_a_published_data_set_keeps_its_scaling(fkl):
    answer = fkl(
        "run", "dataset=diabetes", "kernels.D=8", "replicates=1", "figures=none", "partition.rounds=20", "out=it"
    )
    assert answer.code == 0, answer.err
    assert yaml.safe_load(Path("it/config.yaml").read_text())["scaling"] == "unit_ball"
    assert json.loads(Path("it/provenance.json").read_text())["scaling_from"] == "all rows"
    assert "scaling" not in answer.out and "error     mse " in answer.out


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/wards.csv", "wards"), ("wards.csv.gz", "wards"), ("sites/*.csv", "sites"), ("*.csv", "file"), ("", "file"),
        ("../größe 2.tsv", "größe_2"), ("x" * 300 + ".csv", "x" * 60), ("$(a).csv", "a"),
    ],
)  # fmt: skip
def test_a_run_is_called_after_its_file(path, name):
    assert TableFile(path=path, target="y").name == name
