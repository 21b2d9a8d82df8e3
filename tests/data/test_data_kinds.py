"""Kinds of trouble in tables that people bring: ids, notations, headers, keys, rows; in every format, quoted or not."""

import csv
from datetime import datetime, time, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fkl.basics.errors import FklError
from fkl.data import csv_file
from fkl.data.encoder import FileFormat
from fkl.data.store import Store
from fkl.data.table_file import TEXTS, TableFile

TYPED = (".xlsx", ".parquet", ".feather", ".npz")
ALL = (".csv", *TYPED)
pytest.importorskip("openpyxl", reason="openpyxl is not installed: make test installs it")
in_a_folder = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def saved(path, frame, quoted=False):
    """The frame in the format of the file's name."""
    if path.suffix == ".npz":
        np.savez(path, **{str(name): np.array(frame[name].tolist()) for name in frame})
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        getattr(frame, f"to_{path.suffix[1:]}")(path)
    return path


def in_workbook(path, rows):
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def written(path, content):
    path.write_bytes(content.encode())
    return path


def read(path, **keys):
    return TableFile(path=str(path), **{"target": "y", **keys}).load(Store(Path()), None)


def refused(path, **keys):
    """The line that refuses it, without the folder."""
    with pytest.raises(FklError) as caught:
        read(path, **keys)
    return str(caught.value).replace(f"{path.parent}/", "")


def column(cells, sign=";"):
    return f"a{sign}b{sign}y\n" + "".join(f"{cell}{sign}{n % 3}{sign}{n}\n" for n, cell in enumerate(cells))


padded = st.tuples(st.integers(0, 40), st.integers(1, 3)).map(lambda one: f"{one[0]:0{one[1]}d}")


@in_a_folder
@given(st.lists(padded, min_size=2, max_size=9), st.sampled_from(ALL), st.booleans())
def test_ids_are_the_file_s_own_text(tmp_path, ids, suffix, quoted):
    """As sites, words and classes, whatever quotes are elsewhere."""
    path = saved(tmp_path / f"own{suffix}", pd.DataFrame({"s": ids, "y": np.arange(len(ids)), "a": "x"}), quoted)
    table = read(path, site="s", text="code")
    assert [table.site_names[site] for site in table.site] == ids
    different = list(dict.fromkeys(ids))
    table = read(path, drop=["a"], words={"s": None}, text="one_hot")
    assert table.feature_names == tuple(f"s={word}" for word in different)
    assert table.x.argmax(axis=1).tolist() == [different.index(word) for word in ids]
    table = read(path, drop=["a"], words={"s": [ids[0], "other"]}, text="one_hot")
    assert table.x[:, 0].tolist() == [word == ids[0] for word in ids]
    table = read(path, drop=["a"], target="s", labels="code")
    classes = table.encoder.labels or tuple(str(number) for number in range(41))
    assert [classes[int(number)] for number in table.y] == ids


@pytest.mark.parametrize("suffix", TYPED)
def test_a_whole_number_of_a_float_column_is_written_without_a_point(tmp_path, suffix):
    frame = pd.DataFrame({"s": [1.0, 2.0, 10.0, 1.0], "a": [1.5, 2, 3, 4], "y": [1.0, 2, 3, 4]})
    path = saved(tmp_path / f"own{suffix}", frame)
    assert read(path, site="s").site_names == ("1", "2", "10")
    assert read(path, words={"s": None}, text="one_hot").feature_names == ("s=1", "s=2", "s=10", "a")
    assert read(path, words={"s": ["2", "other"]}, text="one_hot").x[:, 0].tolist() == [0, 1, 0, 0]
    path = saved(tmp_path / f"years{suffix}", frame.rename(columns={"y": "2019" if suffix != ".xlsx" else 2019.0}))
    assert read(path, target="2019").y.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("keys", [("algo=one_shot_ridge", "dataset.words={s:null}", "dataset.text=one_hot"),
                                  ("algo=pfedme", "algo.iterations=5", "kernels=coke", "dataset.site=s")])  # fmt: skip
@pytest.mark.parametrize("ids", [["01", "007", "1", "10"], [1.0, 2.0, 10.0]], ids=str)
def test_a_model_accepts_the_rows_of_its_own_file_in_every_format(fkl, keys, ids):
    """Also where a site is 1.0 in text and 1 elsewhere."""
    rows = np.arange(40)
    frame = pd.DataFrame({"s": [ids[row % len(ids)] for row in rows], "a": rows % 7, "y": rows % 5})
    for suffix in (".csv", ".xlsx"):
        saved(Path(f"own{suffix}"), frame)
        run = ("run", *keys, "dataset=file", f"dataset.path=own{suffix}", "dataset.target=y", "kernels.D=4")
        answer = fkl(*run, "replicates=1", "figures=none", "save_model=true", f"out=of{suffix}")
        assert answer.code == 0, answer.err
        found = set()
        for other in ALL:
            answer = fkl("predict", f"of{suffix}", str(saved(Path(f"new{other}"), frame.drop(columns="y"))))
            assert answer.code == 0 and "warning" not in answer.err, answer.err
            found.add(answer.out)
        assert len(found) == 1


NOTATIONS = {
    "10": ["{} kg", "{}kg", "₹{}", "Rs. {}", "{} EUR", "US${}", "{}K", "{}M", "<{}", ">{}", "≤{}", "~{}", "ca. {}",
           "{}*", "{}†", "{}[1]", "{} (est.)", "[{}]", '="{}"', "'{}", "{}±1", "{} ± 0.5", "{}(2)", "{}°C", "{}%",
           "{}‰", "{} m2", "+{} dB", "{} m s^-1", "€ {}", "#{}", "{}<br>", "{}\u200b", "{} years", "{},-"],
    "-10": ["–{}", "{}-", "-${}", "-{} °C", "\u2212{}%"], "10 or -10": ["({})", "($ {})"],
    "16": ["0x{}"], "10.5": ["{}½"],
    "10000": ["{}x10^3", "{}·10³", "{}_000", "{},000 EUR"], "10500": ["{}.5D+03", "{}.5+003", "{}.5q+3"],
}  # fmt: skip
"""By the number that the message says to write for the first cell, in which 10 stands for {}."""


@pytest.mark.parametrize(("shown", "notation"), [(shown, one) for shown in NOTATIONS for one in NOTATIONS[shown]])
def test_numbers_in_another_notation_are_refused_with_what_to_write(tmp_path, shown, notation):
    """Whatever `text` is, and also if some cells are words or plain numbers."""
    cells = ['"' + notation.replace("{}", str(10 + 3 * n)).replace('"', '""') + '"' for n in range(9)]
    for text in TEXTS:
        for more in ([], ["unknown"], ["7", "8", "9"]):
            path = written(tmp_path / "own.csv", column([*cells, *more]))
            message = refused(path, delimiter=";", text=text)
            said = f"is not a finite number; write plain numbers, all in one unit, such as {shown} for this one"
            assert message.startswith("own.csv, line 2, column a: ") and said in message
    table = read(path, words={"a": None}, text="one_hot", delimiter=";")  # the other thing that the message names
    assert len(table.feature_names) == 13


WORDS = ("V57|V58|V60|V61", "I10.9|E11.0|J45.1", "Q1|Q2|Q3|Q4", "w3|w5|w7", "ward_3|ward_4|ward_5", "M|F",
         "site-3|site-4|site-9", "20-29|30-39|40-49", "[70-80)|[80-90)|[90-100)", "4WD|2WD", ">50K|<=50K",
         "CO2|NO2|O3", "1 - Never|2 - Seldom|3 - Often", "12:30|13:30|14:30", "5'11\"|6'1\"|6'2\"")  # fmt: skip


@pytest.mark.parametrize("words", WORDS)
def test_words_with_digits_stay_words(tmp_path, words):
    different = words.split("|")
    cells = ['"' + cell.replace('"', '""') + '"' for cell in 4 * different]
    table = read(written(tmp_path / "own.csv", column(cells)), text="one_hot", delimiter=";")
    assert table.feature_names == (*(f"a={word}" for word in different), "b")


@in_a_folder
@given(st.lists(st.integers(-999, 999), min_size=3, max_size=9), st.booleans())
def test_a_typeset_minus_is_a_minus(tmp_path, numbers, quoted):
    cells = [f"{number / 10}".replace("-", "\u2212") for number in numbers]
    path = written(tmp_path / "own.csv", column([f'"{cell}"' if quoted else cell for cell in cells]))
    assert read(path, delimiter=";").x[:, 0].tolist() == [number / 10 for number in numbers]


@pytest.mark.parametrize("cells", ["r1|r2", "1|2", "0|1", "Fiat 128|Mazda RX4", "2024-01-01|2024-01-02"])
def test_a_header_one_name_short_names_no_feature(tmp_path, cells):
    """Nor does pandas' index, whatever is in it."""
    one, two = cells.split("|")
    for header in ("a,y", ",a,y", '"a","y"', "Unnamed: 0,a,y"):
        table = read(written(tmp_path / "own.csv", f"{header}\n{one},1,2\n{two},3,4\n"))
        assert (table.feature_names, table.x.tolist(), table.y.tolist()) == (("a",), [[1], [3]], [2, 4])
    for suffix in ALL:
        frame = pd.DataFrame({"Unnamed: 0": [0, 1, 0], "a": [1, 3, 5], "y": [2, 4, 6]})
        assert read(saved(tmp_path / f"own{suffix}", frame)).feature_names == ("a",)


@pytest.mark.parametrize(
    "cells", ["12|13", "1.5|2.5", "x|x", "-1|-2", "$1|$2", "1 kg|2 kg", "\u22121|\u22122", "|", "'x|'z", "“x|“z"]
)
def test_other_headers_that_are_one_name_short_are_refused(tmp_path, cells):
    one, two = cells.split("|")
    path = written(tmp_path / "own.csv", f"a,y\n{one},204,2\n{two},304,4\n")
    for keys in ({}, {"text": "one_hot"}):
        message = refused(path, **keys)
        assert message.startswith("own.csv, line 2: 3 cells where line 1 has 2 (between cells: comma); ")
        assert ("single ones" if one[:1] == "'" else "name all 3 columns") in message


TEXT_KEYS = {"header": True, "delimiter": "comma", "encoding": "latin-1", "skip": 1}
TEXT_KEYS |= {"thousands": "comma", "decimal": "comma", "hole": ["x"]}
OBEYED = {"thousands": ("1,234", 1234), "decimal": ("1,5", 1.5), "hole": ("x", None)}


@pytest.mark.parametrize("key", TEXT_KEYS)
@pytest.mark.parametrize("suffix", TYPED)
def test_a_key_for_text_is_obeyed_or_refused_by_its_name(tmp_path, suffix, key):
    cell, number = OBEYED.get(key, ("7", 7))
    frame = pd.DataFrame({"a": [cell, "7", "8"], "y": [1, 2, 3]})
    path = saved(tmp_path / f"own{suffix}", frame)
    if key in OBEYED:
        table = read(path, missing="drop", **{key: TEXT_KEYS[key]})
        assert table.x[:, 0].tolist() == [number, 7, 8][number is None :]
    elif suffix == ".xlsx" and key == "header":
        assert len(read(path, header=True).y) == 3
        frame.assign(a=[5, 7, 8]).to_excel(path, index=False, header=False)
        table = read(path, header=False, target="2")
        assert (table.feature_names, table.x[:, 0].tolist()) == (("1",), [5, 7, 8])
    elif suffix == ".xlsx" and key == "skip":
        in_workbook(path, [["a title"], ["a", "y"], [7, 1], [7, 2], [8, 3]])
        assert "sheet row 2 has it: dataset.skip=1 if the table begins there" in refused(path)
        assert read(path, skip=1).y.tolist() == [1, 2, 3]
    else:
        said = f"{key}={TEXT_KEYS[key]}: must be omitted for own{suffix}"
        assert refused(path, **{key: TEXT_KEYS[key]}).startswith(said)


@in_a_folder
@given(st.lists(st.sampled_from([None, 1.0, 2.5]), min_size=3, max_size=9), st.sampled_from(ALL), st.booleans())
def test_no_row_is_lost(tmp_path, cells, suffix, header):
    """Rows in = rows out + rows that are said to be dropped; also without a header."""
    frame = pd.DataFrame({"a": [*cells, 3.0, 4.0], "y": np.arange(len(cells) + 2.0)})
    path = saved(tmp_path / f"own{suffix}", frame)
    if not header and suffix in (".csv", ".xlsx"):
        frame.columns = pd.Index([1.25, 0.75] if suffix == ".xlsx" else ["1.25", "0.75"])
        table = read(saved(path, frame), target="2", missing="drop", header=False)
        assert len(table.y) + table.incomplete.rows == len(frame) + 1
    else:
        table = read(path, missing="drop")
        assert (len(table.y), table.incomplete.rows) == (len(frame) - cells.count(None), cells.count(None))


N = 6
ODD = {"lists": [[1, 2]] * N, "bytes": [b"x"] * N, "durations": [timedelta(1)] * N, "dictionaries": [{"a": 1}] * N}
ODD_ARRAYS = {
    "scalar": np.array("hi"), "objects": np.array([{}] * N, object), "short": np.arange(3), "axes": np.zeros((N, 2, 2)),
    "complex": np.zeros(N, complex), "fields": np.zeros(N, [("p", "f8"), ("q", "i8")]), "empty": np.zeros(0),
}  # fmt: skip
MIXED = [["d", "a", "y"], [datetime(2024, 1, 1), 0, 0], ["soon", 1, 2], [5, 2, 4], [time(1), 3, 6]]


@pytest.mark.parametrize("kind", [*ODD, *ODD_ARRAYS, "mixed"])
def test_what_is_dropped_need_not_be_readable(tmp_path, kind):
    """And what is not dropped is refused with its name, and with the key that drops it."""
    plain = {"a": np.arange(N), "y": 2.0 * np.arange(N)}
    if kind in ODD:
        pd.DataFrame({"d": ODD[kind], **plain}).to_parquet(path := tmp_path / "own.parquet")
    elif kind in ODD_ARRAYS:
        np.savez(path := tmp_path / "own.npz", d=ODD_ARRAYS[kind], **plain)
    else:
        path = in_workbook(tmp_path / "own.xlsx", MIXED)
    message = refused(path)
    assert "column d: " in message and (kind == "mixed" or message.endswith("; dataset.drop=[d] leaves it out"))
    table = read(path, drop=["d"])
    assert (table.feature_names, table.y[:4].tolist()) == (("a",), [0, 2, 4, 6])


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_two_columns_of_one_name_are_both_kept(tmp_path, suffix):
    path = tmp_path / f"own{suffix}"
    if suffix == ".csv":
        written(path, "a,a,y\n1,2,3\n4,5,6\n")
    elif suffix == ".xlsx":
        in_workbook(path, [["a", "a", "y"], [1, 2, 3], [4, 5, 6]])
    else:
        table = pytest.importorskip("pyarrow").table([[1, 4], [2, 5], [3, 6]], names=["a", "a", "y"])
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    table = read(path)
    assert (table.feature_names, table.x.tolist()) == (("a", "a.1"), [[1, 2], [4, 5]])
    assert read(path, drop=["a"]).feature_names == ("a.1",)


@pytest.mark.parametrize(("cells", "written_as", "first"), [
    ("20240131|20240201|20240301", "%Y%m%d", 19753), ("2024031|2024032|2024060", "%Y%j", 19753),
    ("310124|010224|010324", "%d%m%y", 19753),
    ("2024-01-31 00:00:01.123456789|2024-02-01 00:00:01.123456789", "%Y-%m-%d %H:%M:%S.%f",
     19753 + 1.123456 / 86400),
])  # fmt: skip
def test_dates_are_read_in_their_format_also_as_whole_numbers(tmp_path, cells, written_as, first):
    path = written(tmp_path / "own.csv", column(cells.split("|")))
    for formats in (written_as, {"a": written_as}):
        assert read(path, delimiter=";", date_format=formats).x[0, 0] == pytest.approx(first, abs=1e-9)
    numbers = pd.DataFrame({"a": cells.split("|"), "y": np.arange(cells.count("|") + 1)})
    for suffix in TYPED if cells.startswith("2024") and "-" not in cells else ():
        for kind in (int, float):
            path = saved(tmp_path / f"own{suffix}", numbers.astype({"a": kind}))
            assert read(path, date_format=written_as).x[0, 0] == first


@pytest.mark.parametrize("end", ["\x1a", "\r\n\x1a", "\n\x1a\x1a\x1a"])
def test_ctrl_z_ends_a_text_and_is_nowhere_else(tmp_path, end):
    assert read(written(tmp_path / "own.csv", f"a,y\n1,2\n3,4{end}")).y.tolist() == [2, 4]
    path = written(tmp_path / "own.csv", "a,y\n1,\x1a2\n3,4\n")
    assert "line 2: the control character U+001A is not text" in refused(path)


@pytest.mark.parametrize("suffix", ALL)
def test_ids_that_are_large_floats_and_columns_without_a_value_are_named(tmp_path, suffix, capsys):
    frame = pd.DataFrame({"id": 1.5e17 + 1e3 * np.arange(12), "a": np.arange(12), "y": np.arange(12)})
    read(saved(tmp_path / f"own{suffix}", frame))
    said = "column id: numbers above 2^53, so ids that were saved like this have lost their last digits; dataset.drop"
    assert said in capsys.readouterr().err
    path = saved(tmp_path / f"own{suffix}", frame[["a", "y"]].assign(e=np.nan))
    for missing in ("refuse", "drop", "mean"):
        said = f"own{suffix}, column e: no row has a value; dataset.drop=[e] leaves it out"
        assert refused(path, missing=missing) == said
    assert read(path, drop=["e"]).feature_names == ("a",)


def test_sniffing_does_not_parse_every_cell(tmp_path, monkeypatch):
    """Each cell that is looked at as a number is counted; the others pandas reads."""
    asked, number = [], FileFormat.number
    monkeypatch.setattr(FileFormat, "number", lambda self, cell: asked.append(cell) or number(self, cell))
    wide = pd.DataFrame(np.arange(60 * 2000.0).reshape(60, 2000) / 8, columns=[f"v{n}" for n in range(1999)] + ["y"])
    assert csv_file.read_csv_file("own.csv", wide.to_csv(index=False).encode(), FileFormat()).rows == 60
    assert len(asked) < 4 * 2000
