"""Tables of the user's own in every format: sites, order, words, labels, files to be tested on, and several files."""

import gzip
import json
import re
import unicodedata
from collections.abc import Callable
from datetime import datetime, time, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import LabelEncoder, OneHotEncoder, OrdinalEncoder

from fkl.basics.errors import BadValue, FklError
from fkl.config.loading import build_object
from fkl.data.encoder import Encoder
from fkl.data.partition import Sites
from fkl.data.store import Store
from fkl.data.table_file import TableFile
from fkl.report import figures
from fkl.runs import model as fkl_model

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
    if path.suffix == ".npz":
        words = {name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])}
        np.savez(path, **{name: np.array(frame[name].tolist(), str if name in words else None) for name in frame})
    else:
        keys = {"index": False} if path.suffix == ".csv" else {}
        getattr(frame, f"to_{path.suffix[1:]}")(path, **keys)
    return str(path)


def read(path, **keys):
    return TableFile(path=str(path), **{"target": "stay", **keys}).load(Store(Path()), None)


def load(path, frame=FRAME, **keys):
    return read(write(path, frame), **keys)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_table(tmp_path, suffix):
    """Sites, the order of time, and words as scikit-learn encodes them; labels too."""
    table = load(tmp_path / f"own{suffix}", site="ward", time="day", text="one_hot")
    rows = FRAME.iloc[[1, 3, 2, 0, 4]]  # by the dates
    assert table.feature_names == ("age", "drug=b", "drug=a", "drug=c")
    assert table.y.tolist() == rows["stay"].tolist()
    oracle = OneHotEncoder(categories=[["b", "a", "c"]], sparse_output=False)
    assert np.array_equal(table.x, np.column_stack([rows["age"], oracle.fit_transform(rows[["drug"]])]))
    assert [table.site_names[site] for site in table.site] == rows["ward"].tolist()
    assert np.array_equal(table.encoder.x(rows), table.x)
    problem = Sites().split(table, np.random.default_rng(0))
    assert problem.y[:, 1].tolist() == [20.0, 50.0]  # south, in the order of time
    table = load(tmp_path / f"own{suffix}", FRAME[["age", "drug", "ward"]], target="drug", labels="code", text="code")
    labels = LabelEncoder().fit(FRAME["drug"])
    assert table.y.tolist() == labels.transform(FRAME["drug"]).tolist()
    assert table.encoder.labels == tuple(labels.classes_)
    oracle = OrdinalEncoder(categories=[["north", "south", "east"]]).fit_transform(FRAME[["ward"]])
    assert np.array_equal(table.x[:, 1:], oracle)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_cells_and_large_integers_of_typed_files_are_those_of_text(tmp_path, suffix):
    holed = FRAME[["age", "stay"]].copy()
    holed.loc[1, "age"] = holed.loc[3, "stay"] = np.nan
    place = "line 3" if suffix == ".csv" else "row 2"
    with pytest.raises(FklError, match=rf"own{suffix}, {place}, column age: .* is missing; .*drop.*mean"):
        load(tmp_path / f"own{suffix}", holed)
    assert load(tmp_path / f"own{suffix}", holed, missing="drop").y.tolist() == [10.0, 30.0, 50.0]
    frame = pd.DataFrame({"a": 2**60 + 256 * np.arange(8), "b": np.arange(8), "stay": 0.5 * np.arange(8)})
    assert len(load(tmp_path / f"own{suffix}", frame).y) == 8
    frame.loc[5, "a"] += 1
    place = "line 7" if suffix == ".csv" else "row 6"
    rounded = r"1152921504606848257 is an integer above 2\^53, which would be rounded to 1152921504606848256;"
    for target in ("a", "stay"):
        with pytest.raises(FklError, match=f"{place}, column a: {rounded}"):
            load(tmp_path / f"own{suffix}", frame, target=target)
    assert load(tmp_path / f"own{suffix}", frame, time="a").y.tolist() == frame["stay"].tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_dates_and_booleans_are_the_same_numbers_in_every_format(tmp_path, suffix):
    """With missing ones; a typed file's dates need no format, in whatever zone."""
    days = pd.to_datetime("2024-01-01 06:00") + pd.to_timedelta([2, 0, 1.5, 1, 4], unit="D")
    frame = FRAME[["stay"]].assign(day=days, flag=pd.array([True, False, True, True, False], dtype="boolean"))
    frame.loc[2, ["day", "flag"]] = [pd.NaT, pd.NA]
    keys = {"date_format": "%Y-%m-%d %H:%M:%S", "missing": "drop", "text": "one_hot"}
    table = load(tmp_path / f"own{suffix}", frame, **keys)
    expected = np.array([[19725.25, 1], [19723.25, 0], [19724.25, 1], [19727.25, 0]])
    assert table.feature_names == ("day", "flag")
    assert np.array_equal(table.x, expected)
    for later in (frame, frame.astype(str)):
        assert np.array_equal(table.encoder.x(later.drop(index=2)), expected)
    if suffix != ".csv":
        in_berlin = frame[["day", "stay"]].assign(day=frame["day"].dt.tz_localize("Europe/Berlin"), on=days.date)
        table = load(tmp_path / f"own{suffix}", in_berlin, missing="drop")
        assert np.allclose(table.x[:, 0], expected[:, 0] - 1 / 24, atol=1e-9)
        assert table.x[:, 1].tolist() == [19725, 19723, 19724, 19727]
        assert np.array_equal(Encoder.of_json(table.encoder.as_json()).x(in_berlin.drop(index=2)), table.x)


def test_a_workbook_is_read_as_its_cells_are_typed(tmp_path):
    """Also with an empty column without a name, an empty row at the end, and an hour beside its day."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: make test installs it")
    book, day = openpyxl.Workbook(), datetime(2024, 1, 31)
    for row in (
        ["when", "at", "n", "flag", "seen", "ward", None, "stay"],
        [day, time(18), 3, True, day + timedelta(1), "icu", None, 0.1],
        [day, time(6, 30), 2.5, None, day, "ward", None, 2],
        [day, time(12), -1, False, day, "icu", None, 3],
        [None] * 8,
    ):
        book.active.append(row)
    book.save(tmp_path / "own.xlsx")
    keys = {"time": ["when", "at"], "text": "one_hot", "fill": {"flag": 0}}
    table = read(tmp_path / "own.xlsx", **keys)
    assert table.feature_names == ("n", "flag", "seen", "ward=icu", "ward=ward")
    assert table.x.tolist() == [[2.5, 0, 19753, 0, 1], [-1, 0, 19753, 1, 0], [3, 1, 19754, 1, 0]]
    assert table.y.tolist() == [2, 3, 0.1]


@pytest.mark.parametrize("suffix", [*SUFFIXES[1:], ".xlsx"])
def test_damaged_typed_files_are_refused_in_one_line(tmp_path, suffix):
    path = tmp_path / f"own{suffix}"
    write(path) if suffix in SUFFIXES else FRAME.to_excel(path)
    whole = path.read_bytes()
    for raw in (b"", b"PK", whole[: len(whole) // 2], whole[:-9], whole[:-30]):
        path.write_bytes(raw)
        with pytest.raises(FklError, match=rf"^[^\n]*own\{suffix}: is no \w+ file, or is damaged: [^\n]*$"):
            read(path)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"y": [1, 2], "a": [1, 2, 3]}, "column a: has 3 rows where y has 2; dataset.drop"),
        ({"y": [1, 2], "a": np.array([1j, 2j])}, "column a: holds values of type complex, first in row 1; must be"),
        ({"y": [1, 2], "a": np.array([{}, []], object)}, "column a: holds Python objects, .*leaves it out"),
        ({"y": [1, 2], "a": [1, np.inf]}, "row 2, column a: 'inf' is not a finite number"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_columns_are_refused(tmp_path, arrays, said):
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(FklError, match=said):
        read(tmp_path / "own.npz", target="y")
    np.savez(tmp_path / "own.npz", x=np.arange(6.0).reshape(3, 2), y=[1, 2, 3])
    table = read(tmp_path / "own.npz", target="y")
    assert (table.feature_names, table.x.tolist()) == (("x1", "x2"), [[0, 1], [2, 3], [4, 5]])


def test_a_file_to_be_tested_on_comes_behind_and_is_marked(tmp_path):
    numbers = FRAME[["age", "stay"]]
    other = write(tmp_path / "other.parquet", numbers.iloc[:1] * 2)
    table = load(tmp_path / "own.csv", numbers, test_path=other)
    assert table.y.tolist() == [10.0, 20.0, 30.0, 40.0, 50.0, 20.0]
    assert table.tested.tolist() == [False] * 5 + [True]
    write(tmp_path / "other.parquet", numbers.rename(columns={"age": "years"}))
    with pytest.raises(FklError, match=r"other\.parquet: has no column age, which .*own\.csv has"):
        read(tmp_path / "own.csv", test_path=other)


def test_several_columns_say_when_a_row_comes(tmp_path):
    """As a command line makes the data set."""
    (tmp_path / "own.csv").write_text("d;t;a;y\n10/03/2004;18.00;0;5\n10/03/2004;02.00;1;6\n09/04/2004;00.00;2;7\n")
    formats = {"d": "%d/%m/%Y", "t": "%H.%M"}
    node = {"path": str(tmp_path / "own.csv"), "target": "y", "time": ["d", "t"], "date_format": formats}
    table = build_object(TableFile, node, "dataset")[0].load(Store(Path()), None)
    assert (table.feature_names, table.x[:, 0].tolist(), table.y.tolist()) == (("a",), [1, 0, 2], [6, 5, 7])


FILES = {
    "east.csv": "age;ward;admitted;crp;stay\n41;icu;01.02.2024;1,5;3,5\n;Café;28.02.2024;20;4\n"
    "52,5;;29.02.2024;-1e1;2\n",
    "north.csv": "id\tcrp\tstay\tward\tage\tadmitted\np1\t0,25\t1\tmaternity\t30\t01.01.1970\n"
    "p2\t\t2,5\ticu\t31\t02.01.1970\n",
    "south.csv.gz": "stay|admitted|age|crp|ward\n5|01.03.2024|70|2|Café\n6,25|02.03.2024|71|3|surgery\n",
}
"""Delimiters, orders of columns, words and missing cells differ; only one has ids. South has é as two characters."""
KEYS = {
    "drop": ["id"], "decimal": "comma", "date_format": "%d.%m.%Y", "fill": {"age": 50.5, "ward": "other", "crp": 2},
    "text": "one_hot", "words": {"ward": ["icu", "Café", "other"]},
}  # fmt: skip
CLEAN = """site,age,ward=icu,ward=Café,ward=other,admitted,crp,stay
east,41,1,0,0,19754,1.5,3.5
east,50.5,0,1,0,19781,20,4
east,52.5,0,0,1,19782,-10,2
north,30,0,0,1,0,0.25,1
north,31,1,0,0,1,2,2.5
south,70,0,1,0,19783,2,5
south,71,0,0,1,19784,3,6.25
"""


def hospitals(folder, **changed):
    """The files, some of them with other content, and the pattern that names them."""
    for name, content in (FILES | {f"{name}.csv": text for name, text in changed.items()}).items():
        raw = unicodedata.normalize("NFD" if "south" in name else "NFC", content).encode()
        (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return folder / "*.csv*"


def test_files_of_sites_are_the_table_that_a_person_would_make_of_them(tmp_path):
    table = read(hospitals(tmp_path), **KEYS)
    (tmp_path / "clean.txt").write_text(CLEAN)
    clean = read(tmp_path / "clean.txt", site="site")
    assert all(getattr(table, name).tobytes() == getattr(clean, name).tobytes() for name in ("x", "y", "site"))
    assert (table.feature_names, table.site_names) == (clean.feature_names, clean.site_names)
    # Rows that come later become what these became, in whichever form their words are
    encoder = Encoder.of_json(table.encoder.as_json())
    assert encoder == table.encoder
    told = {"columns": ["a"], "words": {}, "labels": [], "one_hot": False, "fill": {}}  # by an older model
    assert Encoder.of_json(json.dumps(told)) == Encoder(("a",))
    rows = {"age": ["41", None], "ward": ["Cafe\u0301", None], "admitted": ["01.02.2024"] * 2, "crp": ["1,5", None]}
    later = [[41, 0, 1, 0, 19754, 1.5], [50.5, 0, 0, 1, 19754, 2]]
    assert encoder.x(pd.DataFrame(rows, dtype=object)).tolist() == later


EAST = FILES["east.csv"]


@pytest.mark.parametrize(
    ("changed", "keys", "said"),
    [
        ({}, {"site": "crp", "fill": None}, "site=crp: must be null: each file of dataset.path="),
        ({}, {"drop": ["id", "name"]}, r"drop=name: must be a column of .*\*, which has age, ward, .*, id$"),
        ({}, {"drop": None}, r"east.csv: has no column id, which .*north.csv has"),
        ({"west": "age;stay\n1;2\n3;4\n"}, {}, r"west.csv: has no column admitted, which .*east.csv has"),
        ({"south": "a;b\n1;2\n3;4\n"}, {}, r"one file per site: .*south.csv and .*south.csv.gz are both south"),
        ({"east": EAST.replace("1,5", "1.5")}, {}, r"east.csv, line 2, column crp: '1.5' .*; dataset.files="),
        ({}, {"fill": {"age": 1, "ward": "other"}}, r"north.csv, line 3, column crp: '' is missing; .*dataset.fill"),
        ({"west": "stay;id\n"}, {}, r"west.csv: 0 rows where at least 1 is needed"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused_in_a_line(changed, keys, said, tmp_path):
    with pytest.raises(FklError, match=said) as caught:
        read(hospitals(tmp_path, **changed), **KEYS | keys)
    assert "\n" not in str(caught.value)


def test_a_name_that_looks_like_a_pattern_is_a_file_s_and_one_row_is_a_site(tmp_path):
    for name, rows in {"own[1]": "0,0\n1,1\n", "b": "2,3\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"x,stay\n{rows}")
    assert read(tmp_path / "own[1].csv").site_names == ("all",)
    assert read(tmp_path / "*.csv").site.tolist() == [0, 1, 1]
    with pytest.raises(FklError, match=r"b\.csv: 1 row where at least 2 are needed"):
        read(tmp_path / "b.csv")
    with pytest.raises(BadValue, match="must be a pattern that matches files"):
        read(tmp_path / "none*.csv")


def test_new_rows_with_ids_are_predicted_as_training_rows_were_read(fkl, tmp_path):
    hospitals(tmp_path)
    words = [f"dataset.{key}={json.dumps(value, ensure_ascii=False)}" for key, value in KEYS.items()]
    run = ("run", "dataset=file", "dataset.target=stay", "dataset.path=*.csv*", *words, "kernels.D=4", "replicates=1")
    answer = fkl(*run, "save_model=true", "figures=none", "out=several")
    assert answer.code == 0, answer.err
    rows = "id;crp;ward;age;admitted\np1;1,5;icu;;01.02.2024\np2;1.5;icu;3;01.02.2024\np3;2;a;4;x\n"
    Path("new.csv").write_text(rows)
    frame = {"age": ["50,5"], "ward": ["icu"], "admitted": ["01.02.2024"], "crp": ["1,5"]}
    expected = fkl_model.load_model("several").predict(pd.DataFrame(frame, dtype=object))
    answer = fkl("predict", "several", "new.csv")
    assert (answer.code, answer.err) == (2, "error: new.csv: row 3, column admitted: x must be a date like %d.%m.%Y\n")
    answer = fkl("predict", "several", "new.csv", "--skip-bad-rows", "--keep", "id", "--out", "out.csv")
    assert "2 rows without a prediction; the first: row 2, column crp: 1.5 must be a finite number" in answer.err
    found = pd.read_csv("out.csv")
    assert found["id"].tolist() == ["p1", "p2", "p3"]
    assert found["prediction"][0] == pytest.approx(expected[0], rel=1e-6) and found["prediction"][1:].isna().all()


def test_a_run_on_an_own_file_has_its_name_its_units_first_and_its_scaling(fkl):
    """And it counts rows that are dropped, with the column to blame."""
    rows = (f"{n % 7 / 10},{50000 + 1000 * (n % 5)},{20 + 3 * (n % 7)}\n" for n in range(60))
    Path("wards & more.csv").write_text("a,b,y\n" + "".join(rows) + ",50000,20\n,,20\n1,,20\n,1,20\n")
    own = ("dataset=file", "dataset.path='wards & more.csv'", "dataset.target=y", "dataset.missing=drop")
    words = ("run", "algo=one_shot_ridge", *own, "replicates=1", "figures=none", "kernels.D=8")
    answer = fkl(*words)
    assert answer.code == 0, answer.err
    assert " on wards_more\n" in answer.out and "run       outputs/runs/wards_more-one_shot_ridge-" in answer.out
    assert re.search(r"\n  error     rmse_in_units [\d.]+ +R² [-\d.]+\n +(test_)?mse ", answer.out), answer.out
    assert "\n  scaling   unit_box, from training rows\n" in answer.out and "hides the others" not in answer.err
    [folder] = Path("outputs/runs").iterdir()
    told, said = json.loads((folder / "provenance.json").read_text()), "4 of 64 rows dropped, most lack a"
    assert told["rows_left_out"] == 4 and said in told["sizes"]
    assert f", {said}," in answer.out and said in fkl("data", "describe", *own).out
    answer = fkl(*words, "scaling=unit_ball")
    assert "warning: b is 100.0% of the features' norm and hides the others; scaling=unit_box" in answer.err
    answer = fkl("run", "dataset=wards.csv")
    assert "a file of your own: dataset=file dataset.path=wards.csv dataset.target=COLUMN" in answer.err


def test_ten_sites_have_their_names_on_the_axis(fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours repeat after seven sites."""
    drawn, rendered = [], figures.render_figure
    monkeypatch.setattr(figures, "render_figure", lambda figure, said: drawn.append(figure) or rendered(figure, said))
    sites = [f"site{number}" for number in range(10)]
    x = np.random.default_rng(0).normal(size=(80, 2))
    pd.DataFrame(x, columns=["a", "y"]).assign(ward=np.repeat(sites, 8)).to_csv("own.csv", index=False)
    assert fkl("data", "describe", "file", "dataset.path=own.csv", "dataset.target=y", "dataset.site=ward").code == 0
    for axes in drawn[0].axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == sites


def test_what_a_run_would_see_is_described_in_the_file_s_units(fkl: Callable) -> None:
    """Numbers of the table, of clients, and a picture."""
    stay, ward = 10 * np.random.default_rng(0).normal(size=30), ["a$b", "c", "c"] * 10
    pd.DataFrame({"age": 40 + stay, "ward": ward, "stay": stay}).to_csv("own.csv", index=False)
    told = fkl("data", "describe", "file", "dataset.path=own.csv", "dataset.target=stay", "dataset.site=ward").out
    assert "own: 30 rows, 1 feature, 2 sites" in told and f"{40 + stay.mean():.5g}" in told
    assert f"target: mean {stay.mean():.5g}, sd {stay.std():.5g}" in told
    assert "2 clients, 20 rounds, 10 to 20 samples each, median 15" in told
    assert all(Path(f"outputs/data/own-sites.{kind}").stat().st_size for kind in ("png", "pdf"))
    parties = fkl("data", "describe", "diabetes", "partition=vertical", "partition.parties=3")
    assert "party 2: 3 features: s4, s5, s6" in parties.out
