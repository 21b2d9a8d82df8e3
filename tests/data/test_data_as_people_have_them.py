"""Files as people have them: as other programs write them, and what a line says where a key is needed."""

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
from datetime import datetime, time, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_svmlight_file

from fkl.basics.errors import FklError
from fkl.data import csv_file, parsed_tables
from fkl.data.store import Store
from fkl.data.table_file import TableFile
from fkl.data.table_set import TableSet

CARS = "hp,weight,y\n{},3504,18\n165,3693,15\n150,3436,18\n130,2130,24\n"
TEXTS = ("refuse", "drop", "code", "one_hot")


def load(folder, content, name="own.csv", **keys):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TableFile(path=str(path), **{"target": "y", **keys}).load(Store(Path()), None)


def refused(folder, content, **keys):
    with pytest.raises(FklError) as caught:
        load(folder, content, **keys)
    message = str(caught.value).replace(f"{folder}/", "")
    assert "\n" not in message and len(message) < 400
    return message


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("row", [0, 2])
@pytest.mark.parametrize("marker", ["N/A", "-", "None", ".", "#N/A", "missing", "<5", "-200 "])
def test_no_single_cell_decides_what_a_column_is(tmp_path, marker, row, text):
    """Whatever text=, and wherever the cell is: it is named, and `hole` makes it a missing one."""
    lines = CARS.format(160).splitlines()
    lines[row + 1] = lines[row + 1].replace(lines[row + 1].split(",")[0], marker)
    content = "\n".join(lines)
    if marker != "-200 ":
        message = refused(tmp_path, content, text=text, missing="drop")
        assert message.startswith(
            f"own.csv, line {row + 2}, column hp: {marker!r} is not a finite number; dataset.hole=["
        )
    table = load(tmp_path, content, text=text, missing="drop", hole=[-200.0 if marker == "-200 " else marker])
    assert table.feature_names == ("hp", "weight")
    assert table.y.tolist() == [y for i, y in enumerate([18, 15, 18, 24]) if i != row]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("row", [0, 2])
def test_no_single_cell_decides_whether_a_column_has_dates(tmp_path, row, text):
    days = [f"{day:02}.02.2024" for day in range(1, 5)]
    days[row] = "N/A"
    content = "day,y\n" + "".join(f"{day},{i}\n" for i, day in enumerate(days))
    keys = {"text": text, "missing": "drop", "date_format": "%d.%m.%Y"}
    message = refused(tmp_path, content, **keys)
    assert (
        f"line {row + 2}, column day: 'N/A' is no date as dataset.date_format=%d.%m.%Y says; dataset.hole=[N/A]"
        in message
    )
    assert len(load(tmp_path, content, hole=["N/A"], **keys).y) == 3


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    ("cells", "keys", "values", "said"),
    [
        (["6,733,000", "733", "1,500"], {"thousands": "comma"}, [6733000, 733, 1500], "dataset.thousands=comma reads"),
        (["1 000", "20 000,5", "7"], {"thousands": "space", "decimal": "comma"}, [1000, 20000.5, 7], "thousands=space"),
        (
            ["1\u202f000", "20\u00a0000", "7"],
            {"thousands": "space"},
            [1000, 20000, 7],
            "thousands=space reads it as 1000",
        ),
        (["1'000", "2'000", "7"], {"thousands": "apostrophe"}, [1000, 2000, 7], "thousands=apostrophe reads"),
        (
            ["1.234,5", "2.000", "7,25"],
            {"thousands": "point", "decimal": "comma"},
            [1234.5, 2000, 7.25],
            "thousands=point",
        ),
        (["1,5", "2,25", "7"], {"decimal": "comma"}, [1.5, 2.25, 7], "dataset.decimal=comma reads it as 1.5"),
        (["6,733", "1,200", "7,100"], {"thousands": "comma"}, [6733, 1200, 7100], "thousands=comma reads it as 6733"),
        (["$6,733", "$5", "$7"], None, None, "take the signs beside numbers out of the file"),
        (["12%", "5 %", "7%"], None, None, "take the signs beside numbers out of the file"),
        (["5 €", "7,1 €", "-1 €"], None, None, "take the signs beside numbers out of the file"),
    ],
)
def test_numbers_in_another_notation_are_never_words(tmp_path, cells, keys, values, said, text):
    content = "a;y\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells))
    message = refused(tmp_path, content, text=text, delimiter="semicolon")
    assert f"own.csv, line 2, column a: {cells[0]!r} is not a finite number; " in message
    assert said in message
    if keys is not None:
        assert load(tmp_path, content, delimiter="semicolon", **keys).x[:, 0].tolist() == values


def test_groups_are_of_three_digits(tmp_path):
    message = refused(tmp_path, "a;y\n1,000;1\n1,00;2\n5;3\n", thousands="comma")
    assert (
        "line 3, column a: '1,00' is not a finite number; dataset.decimal=comma dataset.thousands=null reads it as 1"
        in message
    )


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["01067", "80331", "1067"], True),
        (["007", "8", "9"], True),
        (["01", "02", "12"], False),  # months and hours are numbers
        (["0.5", "0", "-0.25"], False),
    ],
)
def test_integers_that_begin_with_0_are_ids(tmp_path, cells, words):
    content = "id,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells))
    if not words:
        assert load(tmp_path, content).x[:, 0].tolist() == [float(cell) for cell in cells]
        return
    assert f"line 2, column id: {cells[0]!r} begins with 0, as ids do; dataset.text=" in refused(tmp_path, content)
    assert load(tmp_path, content, text="one_hot").encoder.words["id"] == tuple(cells)
    assert load(tmp_path, "b," + content.replace("\n", "\n1,")[:-2], time="id").y.tolist() != []


def test_numbers_that_parquet_has_as_text_are_numbers(tmp_path):
    frame = pd.DataFrame({"a": ["12.5", "30.1", None, " 8.25"], "y": [1, 2, 3, 4]})
    frame.to_parquet(tmp_path / "own.parquet")
    load_it = TableFile(path=str(tmp_path / "own.parquet"), target="y", missing="drop", text="code").load
    assert load_it(Store(Path()), None).x[:, 0].tolist() == [12.5, 30.1, 8.25]
    frame.assign(a=["12.5", "N/A", "3", "NA"]).to_parquet(tmp_path / "own.parquet")
    keys = {"path": str(tmp_path / "own.parquet"), "target": "y", "missing": "drop", "text": "code"}
    with pytest.raises(FklError, match=r"row 2, column a: 'N/A' is not a finite number; dataset\.hole=\[N/A\]"):
        TableFile(**keys).load(Store(Path()), None)
    assert TableFile(**keys, hole=["N/A", "NA"]).load(Store(Path()), None).x[:, 0].tolist() == [12.5, 3]
    frame.assign(a=[-200, 1, 2, -200.0]).to_parquet(tmp_path / "own.parquet")
    assert TableFile(**keys, hole=[-200]).load(Store(Path()), None).x[:, 0].tolist() == [1, 2]


WRITTEN = {
    "an index of pandas": (",a,y\n0,1,2\n1,3,4\n", ["1"]),
    "R's write.csv": ('"","a","y"\n"1",1,2\n"2",3,4\n', ["1"]),
    "R's write.table": ('"a" "y"\n"r 1" 1 2\n"r2" 3 4\n', ["1"]),
    "R's write.table with numbers": ("a\ty\n1\t1\t2\n2\t3\t4\n", ["1"]),
    "signs at the end of all lines": ("a;y;;\n1;2;;\n3;4;;\n", []),
    "a sign at the end of the header": ("a,y,\n1,2\n3,4\n", []),
    "a sign at the end of the rows": ("a,y\n1,2,\n3,4,\n", []),
    "a column in the middle": ("a,,y\n1,,2\n3,,4\n", []),
    "two columns without names": (",,a,1,y\n7,8,1,1,2\n7,8,3,1,4\n", ["column 1", "2", "1"]),
    "comments": ("# from the archive, 2024\n# columns: a, b\n\na,y\n1,2\n3,4\n", []),
    "a comment as long as the header": ("#made by, hand\na,y\n1,2\n3,4\n", []),
    "a hint for Excel": ("sep=;\na;y\n1;2\n3;4\n", []),
    "numpy's header": ("# a y\n1.0e+00 2.0e+00\n3.0 4.0\n", []),
    "numpy's header with commas": ("# a,y\n1,2\n3,4\n", []),
    "wavelengths": ("a,y,400.5,401.25,402\n1,2,0,0,0\n3,4,0,0,0\n", ["400.5", "401.25", "402"]),
    "names as wide tables have them": ("a,y,2019,2020\n1,2,0,0\n3,4,0,0\n", ["2019", "2020"]),
}


@pytest.mark.parametrize("program", WRITTEN)
def test_what_other_programs_write_is_read(tmp_path, program):
    content, drop = WRITTEN[program]
    table = load(tmp_path, content, drop=drop)
    assert table.feature_names == ("a",)
    assert (table.x[:, 0].tolist(), table.y.tolist()) == ([1, 3], [2, 4])


def test_a_sign_before_the_header_is_part_of_its_first_name(tmp_path):
    assert load(tmp_path, "#id,y\nab,1\ncd,2\n", text="code").feature_names == ("#id",)


def test_lines_below_comments_have_their_numbers(tmp_path):
    for content in ("# one\n# two\na,y\n1,2\nx,3\n2,4\n", "# one\n\n# a,y\n1,2\nx,3\n2,4\n"):
        assert "line 5, column a: 'x' is not" in refused(tmp_path, content)
    assert "line 4: 1 cell where line 2 has 2" in refused(tmp_path, "#\na,y\n1,2\n1\n")
    assert "line 3: 4 cells where line 2 has 3" in refused(tmp_path, "a,y\n1,1,2\n2,3,4,5\n")


@pytest.mark.parametrize(
    "content",
    [
        "M,0.455,0.365,0.095,15\nF,0.53,0.42,0.135,9\nI,0.3,0.2,0.1,7\n",
        "5.1,3.5,1.4,0.2,setosa\n4.9,3,1.4,0.2,setosa\n",
        "A11,6,A34,4,A121,67\nA12,48,A32,2,A121,22\n",
        "39,State-gov,77516,Bachelors,13\n50,Private,83311,Masters,14\n",
        "x,0.5\nz,1.5\n",
        "3,?,alfa-romero,gas,two,88.6,13495\n1,164,audi,gas,four,94.5,13950\n",
    ],
)
def test_a_first_line_that_looks_like_data_is_said(tmp_path, content):
    first = content.partition("\n")[0].split(",")
    message = refused(tmp_path, content, target=str(len(first)), text="code", labels="code")
    shown = ", ".join(first[:4]) + ", ..." * (len(first) > 4)
    assert message == (
        f"own.csv, line 1 looks like data ({shown}): dataset.header=false, or dataset.header=true if these are names"
    )
    keys = {"target": str(len(first)), "text": "code", "labels": "code", "missing": "mean"}
    assert len(load(tmp_path, content, header=False, **keys).y) == content.count("\n")
    assert Path(tmp_path, "own.csv").is_file()


def test_names_that_are_there_twice_may_be_data(tmp_path):
    message = refused(tmp_path, "p,x,p,y\ne,x,s,y\np,f,s,n\n", text="code")
    assert message == "own.csv, line 1: two columns are named p; dataset.header=false if that line is data"


PLAIN = b"a,y\n1,2\n3,4\n"


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return stream.getvalue()


def in_tar(*names):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return stream.getvalue()


@pytest.mark.parametrize(
    "raw", [zipped(a_csv=PLAIN), zipped(folder__a_txt=PLAIN), zipped(a_names=b"%PDF", Index=b"no table", a_data=PLAIN)]
)
def test_the_only_table_of_a_zip_archive_is_read(tmp_path, raw):
    assert load(tmp_path, raw, "own.zip").y.tolist() == [2, 4]
    assert load(tmp_path, raw, "own.csv").y.tolist() == [2, 4]


def _arrays(**arrays):
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    return stream.getvalue()


OTHERS = {
    "xlsx": (
        zipped(xl__workbook_xml=b"", docProps__app_xml=b""),
        "is an Excel workbook; give it a name that ends in .xlsx, or save its sheet as CSV",
    ),
    "ods": (zipped(content_xml=b"", mimetype=b""), "is a spreadsheet; save its sheet as CSV"),
    "zip of tables": (zipped(a_csv=PLAIN, b_csv=PLAIN, c_txt=b""), "with 2 tables among 3 files: a.csv, b.csv; unpack"),
    "zip of pictures": (zipped(a_png=b"", b_png=b""), "with 0 tables among 2 files: a.png, b.png; unpack"),
    "empty zip": (b"PK\x03\x04" + bytes(30), "cannot be decompressed"),
    "tar": (in_tar("a.csv", "b.csv"), "is a tar archive; unpack"),
    "tgz": (gzip.compress(in_tar("a.csv", "b.csv")), "is a tar archive; unpack"),
    "xls without its suffix": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500),
        "an old Excel workbook; give it a name",
    ),
    "parquet without its suffix": (b"PAR1" + bytes(20), "is a Parquet, Feather or numpy file; end its name in"),
    "npy": (_arrays(), "is a Parquet, Feather or numpy file"),
    "arff": (
        b"% UCI, 1988\n%\n\n@RELATION iris\n@attribute a numeric\n@data\n1,2\n",
        "is an ARFF file; save it as CSV",
    ),
    "json": (b'[{"a": 1, "y": 2},\n {"a": 3, "y": 4}]', "is JSON; save it as CSV"),
    "json lines": (b'{"a": 1, "y": 2}\n{"a": 3, "y": 4}\n', "is JSON; save it as CSV"),
    "a page of errors": (
        b"<!DOCTYPE html>\n<html><body>404</body></html>",
        "is a web page or XML; download the file itself",
    ),
    "pickle": (pickle.dumps([1, 2]), "is a file of another program"),
    "matlab": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(200), "is a MATLAB or HDF5 file"),
    "utf-16 without its mark": (PLAIN.decode().encode("utf-16-le"), "dataset.encoding=utf-16-le may read it"),
    "utf-16 the other way": (PLAIN.decode().encode("utf-16-be"), "dataset.encoding=utf-16-be may read it"),
    "latin-1": ("größe,y\n1,2\n".encode("latin-1"), "is not text in UTF-8; dataset.encoding=latin-1, cp1252, ... may"),
}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_needs_no_suffix(tmp_path, pack):
    assert load(tmp_path, pack(PLAIN)).y.tolist() == [2, 4]


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_of_another_kind_is_named(tmp_path, kind):
    raw, said = OTHERS[kind]
    message = refused(tmp_path, raw)
    assert message.startswith("own.csv") and said in message
    if kind != "xls without its suffix":
        (tmp_path / "own.csv.gz").write_bytes(gzip.compress(raw))
        with pytest.raises(FklError) as caught:
            TableFile(path=str(tmp_path / "own.csv.gz"), target="y").load(Store(Path()), None)
        packed_twice = raw[:2] == b"\x1f\x8b" and "is compressed twice" in str(caught.value)
        assert said.partition(";")[0] in str(caught.value) or raw.startswith(b"PK") or packed_twice


@pytest.mark.parametrize(
    ("encoding", "given"), [("latin-1", "latin-1"), ("cp1252", "cp1252"), ("utf-16-le", "utf-16-le")]
)
def test_the_encoding_can_be_given(tmp_path, encoding, given):
    assert load(tmp_path, "größe,y\n1,2\n3,4\n".encode(encoding), encoding=given).feature_names == ("größe",)


def test_a_workbook_is_read_as_its_cells_are_typed(tmp_path):
    """Also with an empty column without a name, an empty row at the end, and an hour beside its day."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: make test installs it")
    book = openpyxl.Workbook()
    day = datetime(2024, 1, 31)
    for row in (
        ["when", "at", "n", "flag", "seen", "ward", None, "y"],
        [day, time(18), 3, True, day + timedelta(1), "icu", None, 0.1],
        [day, time(6, 30), 2.5, None, day, "ward", None, 2],
        [day, time(12), -1, False, day, "icu", None, 3],
        [None] * 8,
    ):
        book.active.append(row)
    book.save(tmp_path / "own.xlsx")
    raw = (tmp_path / "own.xlsx").read_bytes()
    keys = {"time": ["when", "at"], "text": "one_hot", "fill": {"flag": 0}}
    table = load(tmp_path, raw, "own.xlsx", **keys)
    assert table.feature_names == ("n", "flag", "seen", "ward=icu", "ward=ward")
    assert table.x.tolist() == [[2.5, 0, 19753, 0, 1], [-1, 0, 19753, 1, 0], [3, 1, 19754, 1, 0]]
    assert table.y.tolist() == [2, 3, 0.1]
    for damaged in (raw[:200], raw.replace(b"sheet1.xml", b"sheet2.xml"), b"PK"):
        (tmp_path / "own.xlsx").write_bytes(damaged)
        with pytest.raises(FklError, match=r"own.xlsx: is no Excel file, or is damaged: [^\n]+$"):
            TableFile(path=str(tmp_path / "own.xlsx"), target="y", **keys).load(Store(Path()), None)


LIBSVM = {
    "two classes": "-1 1:0.5 3:2\n+1 2:1e-3 3:4\n-1 1:7\n",
    "real labels": "0.637 1:0.5 3:2\n7.376 2:1e-3 3:4\n-1e2 1:7\n",
    "three classes": "1 1:0.5 3:2\n0 2:1e-3 3:4\n2 1:7\n",
    "from 0": "1 0:0.5 2:2\n0 1:1e-3 2:4\n2 0:7\n",
    "comments and blank lines": "# made by hand\n\n1 1:0.5 3:2 # c 0:1\n\n0 2:1e-3 3:4\n  \n2 1:7#\n",
    "unsorted": "1 3:2 1:0.5\n0 3:4 2:1e-3\n2 1:7\n",
    "spaces and CRLF": "1  1:0.5\t3:2 \r\n0 2:1e-3 3:4\r\n2 1:7\r\n",
    "an empty sample": "1 1:0.5 3:2\n0\n2 2:1e-3 3:4\n",
}


@pytest.mark.parametrize("kind", LIBSVM)
def test_libsvm_is_read_as_scikit_learn_reads_it(tmp_path, kind):
    """As dataset=file, whatever text= and header= are, and by a YAML."""
    content = LIBSVM[kind]
    in_order = "1 1:0.5 3:2\n0 2:1e-3 3:4\n2 1:7\n" if kind == "unsorted" else content
    x, y = load_svmlight_file(io.BytesIO(in_order.encode()))
    first = 0 if kind == "from 0" else 1
    for keys in ({"target": ""}, {"target": "label", "text": "code", "header": False}):
        table = load(tmp_path, content, **keys)
        assert np.array_equal(table.x, x.toarray()) and np.array_equal(table.y, y)
        assert table.feature_names == tuple(str(first + number) for number in range(3))
    layout = {"name": "own", "format": "libsvm", "columns": ["a", "b", "c"], "files": [{"name": "own.csv"}]}
    published = TableSet(layout).load(Store(tmp_path, offline=True), None)
    assert np.array_equal(published.x, x.toarray()) and np.array_equal(published.y, y)


@pytest.mark.parametrize(
    ("content", "keys", "said"),
    [
        ("1 qid:1 1:0.5 2:1\n2 qid:1 1:1 2:3\n", {}, "own.csv, line 1: has qid, the groups of a ranking"),
        ("1 1:0.5 2:1\n2 1:1 1:3\n", {}, "line 2: '2 1:1 1:3' is not a label and different index:value pairs"),
        ("1 1:0.5 2:1\n\n2 1:1 2:x\n", {}, "line 3: '2 1:1 2:x' is not a label and"),
        (
            "1 1:0.5 2:1\n# c\n2 1:1 2:nan\n",
            {},
            "line 3: must have a finite label and finite values",
        ),
        ("1 1:0.5 2:1\n", {}, "own.csv: 1 row where at least 2 are needed"),
        (
            "1 1:0.5 2:1\n2 1:1\n",
            {"target": "1"},
            "target=1: must be label, or left out: own.csv is in LIBSVM's format",
        ),
        (
            "1 1:0.5 999999999:1\n2 1:1\n",
            {},
            "2 samples of 1,000,000,000 features, with their zeros, would take 14.9 GiB of memory; a YAML",
        ),
    ],
)
def test_what_libsvm_cannot_be_is_one_line(tmp_path, content, keys, said):
    assert said in refused(tmp_path, content, **{"target": "", **keys})


def test_an_index_that_a_libsvm_file_does_not_have_is_zero(tmp_path):
    (tmp_path / "test.svm").write_text("1 1:1 4:1\n2 2:5 3:6\n")
    table = load(tmp_path, LIBSVM["real labels"], target="", test_path=str(tmp_path / "test.svm"))
    assert table.feature_names == ("1", "2", "3", "4")
    assert table.x[:, 3].tolist() == [0, 0, 0, 1, 0]
    assert table.x[4].tolist() == [0, 5, 6, 0]
    parts = {"a": "1 1:1 2:1\n2 2:1\n", "b": "1 0:1 1:1\n2 1:1\n"}
    for name, content in parts.items():
        (tmp_path / name).write_text(content)
    layout = {
        "name": "own",
        "format": "libsvm",
        "columns": ["x", "y", "z"],
        "files": [{"name": name} for name in parts],
    }
    table = TableSet(layout).load(Store(tmp_path, offline=True), None)
    assert table.x.tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 0], [0, 1, 0]]  # both count from 0


def test_times_of_day_are_no_libsvm(tmp_path):
    assert load(tmp_path, "4 12:30\n5 13:45\n", target="1", text="code", header=False).x.tolist() == [[0], [1]]


def test_one_row_is_enough_for_a_site_and_for_a_test(tmp_path):
    for name, rows in {"a": "0,0\n1,1\n", "b": "2,3\n", "c": "4,4\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{rows}")
    table = TableFile(path=str(tmp_path / "*.csv"), target="y").load(Store(Path()), None)
    assert table.site.tolist() == [0, 0, 1, 2]
    table = TableFile(path=str(tmp_path / "a.csv"), test_path=str(tmp_path / "b.csv"), target="y").load(
        Store(Path()), None
    )
    assert table.tested.tolist() == [False, False, True]
    with pytest.raises(FklError, match=r"b\.csv: 1 row where at least 2 are needed"):
        TableFile(path=str(tmp_path / "b.csv"), target="y").load(Store(Path()), None)
    (tmp_path / "d.csv").write_text("x,y\n")
    with pytest.raises(FklError, match=r"d\.csv: 0 rows where at least 1 is needed"):
        TableFile(path=str(tmp_path / "[a-d].csv"), target="y").load(Store(Path()), None)


@pytest.mark.parametrize(
    ("content", "keys", "rows"),
    [
        ("-1 1:0.5 3:2\n1 2:1e-3 3:4\n-1 1:7\n1 3:1\n", (), "1 1:0.5\n-1 2:2 # no third\n"),
        ("n1^1e3^1\nn2^2^3\nn3^5^4\n", ("target=3", "header=false", "delimiter=^", "drop=[1]"), "n4^4^1\nn5^-^2\n"),
        ("größe;y\n1,5;1\n2.000;3\n5;4\n", ("target=y", "encoding=cp1252", "decimal=comma", "thousands=point"), None),
        (",a,y\n0,-200,1\n1,2,2\n2,3,3\n", ("target=y", "drop=[1]", "hole=[-200]", "missing=mean"), None),
    ],
)
def test_a_model_reads_rows_as_it_read_those_that_it_learned_from(fkl, tmp_path, content, keys, rows):
    encoding = "cp1252" if "encoding=cp1252" in keys else "utf-8"
    Path("own.csv").write_bytes(content.encode(encoding))
    call = ("run", "algo=one_shot_ridge", "dataset=file", "dataset.path=own.csv", "replicates=1", "kernels.D=5")
    answer = fkl(*call, *(f"dataset.{key}" for key in keys), "save_model=true", "figures=none", "out=here")
    assert answer.code == 0, answer.err
    answer = fkl("predict", "here", "own.csv")
    assert answer.code == 0, answer.err
    lines = content.strip().count("\n") + (0 if rows else -1)
    assert len(pd.read_csv(io.StringIO(answer.out))) == lines + 1
    if rows:
        Path("new.csv").write_text(rows)
        answer = fkl("predict", "here", "new.csv", "--skip-bad-rows")
        assert answer.code == 0, answer.err
        assert answer.out.count("\n") == 3


AS_PANDAS = {
    "abalone": ("M,0.455,0.365,15\nF,0.53,0.42,9\nI,0.33,0.255,7\n", {"header": False}, {"header": None}),
    "housing": (
        " 0.00632  18.00   2.310  0  24.00\n 0.02731   0.00   7.070  0  21.60\n",
        {},
        {"header": None, "sep": r"\s+"},
    ),
    "horse-colic": (
        "2 1 530101 38.50 ?\n1 1 534817 39.2 88\n2 1 530334 ? 40\n",
        {"missing": "mean"},
        {"header": None, "sep": " "},
    ),
    "german": ("A11 6 A34 1169 1\nA12 48 A32 5951 2\n", {"header": False}, {"header": None, "sep": " "}),
    "pollution": (
        "No,year,pm2.5,cbwd,Iws\n1,2010,NA,NW,1.79\n25,2010,129,SE,1.79\n26,2010,148,cv,2.68\n",
        {"missing": "drop"},
        {},
    ),
    "california": ("longitude,total_bedrooms,y\n-122.23,129.0,4.526E5\n-122.22,,358500.0\n", {"missing": "mean"}, {}),
    "gapminder": (
        "country;life;pop\nAfghanistan;28,801;8425333\nAlbania;55,23;1282697\n",
        {"decimal": "comma"},
        {"sep": ";", "decimal": ","},
    ),
    "fed funds": (
        "DATE,FEDFUNDS\n1954-07-01,0.80\n1954-08-01,.\n1954-09-01,1.07\n",
        {"missing": "drop", "hole": ["."]},
        {"na_values": ["."]},
    ),
    "oil-spill": ("1,2558,1506.09,456.63,90,0\n2,22325,79.11,841.03,180,1\n", {}, {"header": None}),
    "student": ("id;y;x0\n0;0.30;-1.2e0\n1;0.66;0.25\n", {}, {"sep": ";"}),
    "airquality of R": (
        '"","Ozone","Solar.R","Wind"\n"1",41,190,7.4\n"2",NA,118,8\n"3",12,149,12.6\n',
        {"missing": "mean"},
        {},
    ),
    "penguins": (
        "species\tbill\tmass\nAdelie\t39.1\t3750\nAdelie\t\t\nGentoo\t46.1\t4500\n",
        {"missing": "drop"},
        {"sep": "\t"},
    ),
    "auto_imports": (
        "3,?,alfa-romero,88.60,13495\n3,115,alfa-romero,88.60,?\n1,110,audi,94.50,16500\n2,164,audi,99.8,13950\n",
        {"missing": "drop", "header": False},
        {"header": None},
    ),
    "diamonds": ("carat,cut,color,price\n0.23,Ideal,E,326\n0.21,Premium,E,327\n0.23,Ideal,I,328\n", {}, {}),
    "titanic": (
        'PassengerId,Name,Sex,Age,Fare,Survived\n1,"Braund, Mr. Owen ""Harris""",male,22,7.25,0\n'
        '5,"Allen, Mr. William",male,,8.05,0\n3,"Heikkinen, Miss. Laina",female,26,7.925,1\n',
        {"missing": "drop"},
        {},
    ),
    "Hitters of R": (
        '"","AtBat","League","Salary"\n"-A. Allanson",293,"A",NA\n"-A. Ashby",315,"N",475\n"-A. Dawson",496,"N",500\n',
        {"missing": "drop"},
        {},
    ),
    "UCI_Credit_Card": ("ID,LIMIT_BAL,SEX,default.payment.next.month\n1,20000.0,2,1\n2,120000.0,2,0\n", {}, {}),
}
"""The first lines of public tables, the keys that read them, and the arguments with which pandas does."""


@pytest.mark.parametrize("name", AS_PANDAS)
def test_public_tables_are_read_as_pandas_reads_them(tmp_path, name):
    content, keys, arguments = AS_PANDAS[name]
    frame = pd.read_csv(io.StringIO(content), **{"na_values": ["?"], "skipinitialspace": True, **arguments})
    frame.columns = [str(i + 1) if "header" in arguments or "Unnamed" in c else c for i, c in enumerate(frame.columns)]
    target = frame.columns[-1]
    if keys.get("missing") == "drop":
        frame = frame.dropna()
    frame = frame.apply(lambda cells: cells if cells.dtype.kind in "iuf" else pd.factorize(cells)[0])
    frame = frame[frame[target].notna()]
    table = load(tmp_path, content, target=target, text="code", **keys)
    if keys.get("missing") == "mean":
        frame = frame.fillna(frame.mean())
    assert table.feature_names == tuple(frame.columns[:-1])
    assert np.array_equal(table.x, frame.to_numpy(np.float64)[:, :-1])
    assert np.array_equal(table.y, frame[target].to_numpy(np.float64))


def test_dates_and_times_are_those_of_pandas(tmp_path):
    content = "Date,Temp\n1981-01-01,20.7\n1981-02-28,17.9\n1984-02-29,18.8\n"
    table = load(tmp_path, content, target="Temp", date_format="%Y-%m-%d")
    frame = pd.read_csv(io.StringIO(content), parse_dates=["Date"])
    assert np.array_equal(table.x[:, 0], (frame["Date"] - pd.Timestamp(0)) / pd.Timedelta(days=1))
    content = (
        "pickup,distance,total\n2019-03-23 20:21:09,1.6,12.95\n2019-03-04 16:11:55,0.79,9.3\n2019-03-27,1.37,14.16\n"
    )
    table = load(tmp_path, content, target="total", time="pickup")
    frame = pd.read_csv(io.StringIO(content))
    frame = frame.iloc[pd.to_datetime(frame["pickup"], format="ISO8601").argsort()]
    assert np.array_equal(table.x[:, 0], frame["distance"])
    assert np.array_equal(table.y, frame["total"])


KEPT = {
    "numbers and words": ("own.csv", "a,b,site,y\n" + "1.5,red,3,1\n-2,blue,7,2\n,red,3,1e400\n"),
    "blank lines": ("own.csv", 'a,b,y\n\n1,x,3\n\n\n007,"y\n z",4\n1,x,5\n'),
    "libsvm": ("own.svm", LIBSVM["real labels"]),
    "missing cells, spaces, signs": ("own.csv", "a; b; y\n NA;+5;1\n-0;  é ;2\n3;é;4\n"),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_table_from_the_cache_is_the_one_that_was_read(tmp_path, monkeypatch, name):
    """Numbers, words, holes, places, and the cells that messages show."""
    monkeypatch.setattr(parsed_tables, "LEAST", 0)
    file, content = tmp_path / KEPT[name][0], KEPT[name][1]
    file.write_text(content)
    tables = tmp_path / "cache" / "tables"

    def columns(path=file, **keys):
        read = TableFile(path=str(path), target="y", **keys)._read(str(path), tables)
        cells = {name: [*map(str, column.cells)] for name, column in read.by_name.items()}
        facts = {name: (c.text, c.padded, c.holes.tolist(), repr(c.numbers)) for name, c in read.by_name.items()}
        return cells, facts, [read.place(row).removeprefix(str(path)) for row in range(read.rows)], read.zeros_left_out

    first = columns()
    (one,) = parsed_tables.kept(tables)
    assert columns() == first
    assert [*parsed_tables.kept(tables)] == [one]
    columns(missing="mean", text="code")  # what is made of the cells is no part of reading
    assert [*parsed_tables.kept(tables)] == [one]
    columns(hole=["none"])
    assert len([*parsed_tables.kept(tables)]) == 2
    other = file.with_name(f"other{file.suffix}")
    other.write_text(content)
    assert columns(other) == first  # known by its content, not by its name
    assert len([*parsed_tables.kept(tables)]) == 2
    one.write_bytes(one.read_bytes()[:-1] + b"x")
    assert columns() == first  # damaged: read again


def test_a_run_reads_a_large_file_once(fkl, tmp_path, monkeypatch):
    """Whatever happens to the cache, the numbers are the same."""
    monkeypatch.setattr(parsed_tables, "LEAST", 0)
    monkeypatch.setenv("FKL_CACHE", str(tmp_path / "cache"))
    Path("own.csv").write_text("a,b,y\n" + "".join(f"{i / 7},w{i % 3},{i % 5}\n" for i in range(40)))
    call = (
        "run",
        "algo=one_shot_ridge",
        "dataset=file",
        "dataset.path=own.csv",
        "dataset.target=y",
        "dataset.text=code",
    )

    def clients(out):
        answer = fkl(*call, "replicates=1", "kernels.D=5", "figures=none", f"out={out}")
        assert answer.code == 0, answer.err
        return Path(out, "clients.csv").read_bytes()

    first = clients("first")
    with monkeypatch.context() as patch:
        patch.setattr(csv_file, "read", None)
        assert clients("second") == first
    assert "1 table of your own as they were read" in " ".join(fkl("data", "list").out.split())
    Path("cache/tables/notes.txt").write_text("mine")
    assert fkl("data", "clear").out.startswith("deleted 1 table in ")
    assert [file.name for file in Path("cache/tables").iterdir()] == ["notes.txt"]
    for file in Path("cache/tables").iterdir():
        file.unlink()
    Path("cache/tables").rmdir()
    Path("cache/tables").write_text("no folder")
    assert clients("third") == first
