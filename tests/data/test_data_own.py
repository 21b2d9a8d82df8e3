"""Each kind of table that people bring: a row of a table says what is read of it, or the line that refuses it."""

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_svmlight_file

from fkl.basics.errors import BadValue, FklError
from fkl.data.encoder import DELIMITERS
from fkl.data.store import Store
from fkl.data.table_file import TEXTS, TableFile
from fkl.data.table_set import TableSet


def load(folder, content, name="own.csv", **keys):
    """The table of a file with this content."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return TableFile(path=str(folder / name), **{"target": "y", **keys}).load(Store(Path()), None)


def refused(folder, content, **keys):
    """The line that refuses it, without the folder."""
    with pytest.raises(FklError) as caught:
        load(folder, content, **keys)
    message = str(caught.value).replace(f"{folder}/", "")
    assert "\n" not in message and len(message) < 400
    return message


def column(cells, sign=";"):
    """A table of one feature, a, with these cells, and the target 0, 1, ..."""
    return f"a{sign}y\n" + "".join(f"{cell}{sign}{number}\n" for number, cell in enumerate(cells.split("|")))


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


PLAIN = "a,y\n1,2\n3,4\n"
SAME = {
    "no end of the last line": (PLAIN[:-1], {}),
    "lines of Windows, and blank ones": (PLAIN.replace("\n", "\r\n\r\n"), {}),
    "lines of an old Macintosh": (PLAIN.replace("\n", "\r"), {}),
    "byte order mark": ("\ufeff" + PLAIN, {}),
    "byte order mark and quotes": ("\ufeff" + PLAIN.replace("a", '"a"'), {}),
    "spaces and quotes": ('a , y\n" 1 ", 2\n 3 ,"4"\n', {}),
    "signs within quotes": ('"b, ""c""",a,y\n"1, ""2""\n3",1,2\n";",3,4\n', {"drop": ['b, "c"']}),
    "several spaces": ("  a   y  \n  1  2\n3    4\n", {}),
    **{f"delimiter {word}": (PLAIN.replace(",", sign), {}) for word, sign in DELIMITERS.items()},
    "a delimiter of one's own": (PLAIN.replace(",", "^"), {"delimiter": "^"}),
    **{f"{mark} with its mark": (PLAIN.encode(mark), {}) for mark in ("utf-16", "utf-32")},
    "utf-16-be with its mark": (("\ufeff" + PLAIN).encode("utf-16-be"), {}),
    "an encoding": ("größe,a,y\n0,1,2\n0,3,4\n".encode("cp1252"), {"encoding": "cp1252", "drop": ["größe"]}),
    **{f"{pack.__module__} without suffix": (pack(PLAIN.encode()), {}) for pack in (gzip.compress, bz2.compress)},
    "lzma without suffix": (lzma.compress(PLAIN.encode()), {}),
    "the only table of a zip": (zipped(a_names=b"%PDF", Index=b"no table", folder__a_data=PLAIN), {}),
    "an index of pandas": (",a,y\n0,1,2\n1,3,4\n", {}),
    "R's write.table": ('"a" "y"\n"r 1" 1 2\n"r2" 3 4\n', {}),
    "R's write.table with numbers": ("a\ty\n1\t1\t2\n2\t3\t4\n", {"drop": ["1"]}),
    "signs at the end of all lines": ("a;y;;\n1;2;;\n3;4;;\n", {}),
    "a sign at the end of the header": ("a,y,\n1,2\n3,4\n", {}),
    "a sign at the end of the rows": ("a,y\n1,2,\n3,4,\n", {}),
    "a column in the middle": ("a,,y\n1,,2\n3,,4\n", {}),
    "comments": ("# from the archive, 2024\n# columns: a, b\n\na,y\n1,2\n3,4\n", {}),
    "a hint for Excel": ("sep=;\na;y\n1;2\n3;4\n", {}),
    "numpy's header": ("# a y\n1.0e+00 2.0e+00\n3.0 4.0\n", {}),
    "wavelengths": ("a,y,400.5,401.25,402\n1,2,0,0,0\n3,4,0,0,0\n", {"drop": ["400.5", "401.25", "402"]}),
}
"""Tables of the feature a and the target y: 1 and 2, 3 and 4."""


@pytest.mark.parametrize("kind", SAME)
def test_one_table_in_many_dialects(tmp_path, kind):
    content, keys = SAME[kind]
    table = load(tmp_path, content, **keys)
    assert (table.feature_names, table.x[:, 0].tolist(), table.y.tolist()) == (("a",), [1, 3], [2, 4])


VALUES = [
    ("1|-0|+5|.5|1E3|007.5", {}, [1, 0, 5, 0.5, 1000, 7.5]),
    ("TRUE|false|True", {}, [1, 0, 1]),
    ("true|false|unknown|true", {"text": "code"}, [0, 1, 2, 0]),
    ("01|02|12", {}, [1, 2, 12]),  # months and hours are numbers
    ("01067|80331|1067", {"text": "code"}, [0, 1, 2]),  # ids that begin with 0 are words
    ("3|10|3", {"text": "code", "words": {"a": ["10", "3"]}}, [1, 0, 1]),
    ("Café|Cafe\u0301|icu", {"text": "code"}, [0, 0, 1]),  # Unicode's two forms of é
    ("|N|S|N", {"text": "code", "missing": "drop"}, [0, 1, 0]),
    ("-200|-200.0|-2e2|1|2", {"hole": [-200], "missing": "drop"}, [1, 2]),
    ("-999.9|1|2", {"hole": ["-999.90"], "missing": "drop"}, [1, 2]),
    ("null|na|-||1|2", {"hole": [None, "NA", "-"], "missing": "drop"}, [1, 2]),
    ("NA|null|x", {"hole": [], "text": "code"}, [0, 1, 2]),
    ("1||3", {"missing": "mean"}, [1, 2, 3]),
    ("icu||ward", {"text": "code", "fill": {"a": "ward"}}, [0, 1, 1]),
    ("2024-01|2023-12", {"date_format": "%Y-%m"}, [19723, 19692]),
    ("31.01.2024|01.02.2024", {"date_format": "%d.%m.%Y"}, [19753, 19754]),
    ("20240131|20240201", {"date_format": {"a": "%Y%m%d"}}, [19753, 19754]),
    ("02.01.1970 06:00 +0000|01.01.1970 00:00 -1200", {"date_format": "%d.%m.%Y %H:%M %z"}, [1.25, 0.5]),
]
"""Cells of a column, keys, and the numbers that it becomes."""


@pytest.mark.parametrize(("cells", "keys", "values"), VALUES)
def test_cells_become_numbers(tmp_path, cells, keys, values):
    table = load(tmp_path, column(cells), delimiter=";", **keys)
    assert table.x[:, 0].tolist() == values
    frame = pd.DataFrame({"a": cells.split("|")})
    assert np.array_equal(table.encoder.x(frame.iloc[[-1]]), table.x[-1:])  # rows that come later


NOTATIONS = [
    ("6,733,000|733|1,500", {"thousands": "comma"}, [6733000, 733, 1500], "dataset.thousands=comma reads"),
    ("1 000|20 000,5|7", {"thousands": "space", "decimal": "comma"}, [1000, 20000.5, 7], "thousands=space"),
    ("1\u202f000|20\u00a0000|7", {"thousands": "space"}, [1000, 20000, 7], "thousands=space reads it as 1000"),
    ("1.234,5|2.000|7,25", {"thousands": "point", "decimal": "comma"}, [1234.5, 2000, 7.25], "thousands=point"),
    ("1,5|2,25|7", {"decimal": "comma"}, [1.5, 2.25, 7], "dataset.decimal=comma reads it as 1.5"),
    ("N/A|3504|3436|2130", {"hole": ["N/A"]}, [3504, 3436, 2130], "'N/A' is not a finite number; dataset.hole=[N/A]"),
    (".|1.5|2|3", {"hole": ["."]}, [1.5, 2, 3], "'.' is not a finite number; dataset.hole=[.]"),
    ("12%|5 %|7%", None, None, "write plain numbers, all in one unit, such as 12 for this one"),
]


@pytest.mark.parametrize(("cells", "keys", "values", "said"), NOTATIONS)
def test_no_first_cell_and_no_notation_makes_words_of_numbers(tmp_path, cells, keys, values, said):
    """Whatever text= is: the line says which key reads the cell."""
    for text in TEXTS:
        message = refused(tmp_path, column(cells), delimiter=";", text=text, missing="drop")
        assert message.startswith("own.csv, line 2, column a: ") and said in message
    if keys is not None:
        table = load(tmp_path, column(cells), delimiter=";", missing="drop", **keys)
        assert table.x[:, 0].tolist() == values


REFUSED = [
    ("", {}, "own.csv: empty"),
    ("a,y\n", {}, "0 rows where at least 2 are needed"),
    ("a,y\n1,2\n,3\n", {"missing": "drop"}, "1 row without a missing cell where at least 2"),
    ("a,y\n1,2\n,3\n", {}, "line 3, column a: '' is missing; dataset.missing=drop drops such rows, dataset.m"),
    ("a,b,y\n,2,3\n,3,4\n", {"missing": "mean"}, "column a: no row has a value; dataset.drop=[a] leaves it out"),
    (column("?|NW|S|12|NW"), {"text": "code", "missing": "mean"}, "cells are missing, and words have no mean"),
    ("a,b,y\n1,2,3\n\n1,2\n", {}, "line 4: 2 cells where line 1 has 3 (between cells: comma)"),
    ("# one\n# two\na,y\n1,2\nx,3\n2,4\n", {}, "line 5, column a: 'x' is not"),
    ("a,b,y\n1,2,3\n4,5,oops\n", {"text": "drop"}, "line 3, column y: 'oops' is not a finite number"),
    ("a,b,y\n1,2,3\n\n4,inf,6\n", {}, "line 4, column b: 'inf' is not a finite number"),
    ("a,b,y\n1,2,3\n?,-nan,6\n7,8,9\n", {"missing": "drop"}, "line 3, column b: '-nan' is not a finite"),
    ("a;y\n1,000;1\n1,00;2\n", {"thousands": "comma"}, "line 3, column a: '1,00' is not a finite number; dataset."),
    (column("01067|80331|1067"), {}, "line 2, column a: '01067' begins with 0, as ids do; dataset.text="),
    (column("NW|S|N"), {}, "line 2, column a: 'NW' is not a number; dataset.text=drop leaves"),
    (column("1|9007199254740993|2"), {}, "line 3, column a: 9007199254740993 is an integer above 2^53, which would be"),
    ("a,b,y\n1,2,no\n4,5,yes\n", {"text": "code"}, "line 2, column y: 'no' is not a number, and the target"),
    ("a,y\nx,1\nz,2\n", {"text": "drop"}, "no column is left except the target y"),
    ("a,b,a,y\n1,2,3,4\n5,6,7,8\n", {"target": "z"}, "target=z: must be a column of own.csv, which has a, b, a.1, y"),
    ('a,y\n1,2\n1,"2\n1,2\n', {}, "line 3: unexpected end of data"),
    ("a,y\n1,2\n3,\x1b[2J4\n", {}, "line 3: the control character U+001B is not text"),
    ("größe,y\n1,2\n3,4\n".encode("latin-1"), {}, "line 1: byte 0xf6 is not text in UTF-8; dataset.encoding=latin-1"),
    (PLAIN, {"decimal": "comma"}, "own.csv: has no semicolon, tab, pipe or space between cells"),
    (PLAIN, {"target": "Y"}, "target=Y: must be a column of own.csv, which has a, y"),
    ("a,b,y\nb,1,1\na,2,2\n", {"time": "a"}, "line 2, column a: 'b' is not a time; must be a number, or a date l"),
    (PLAIN, {"date_format": "%Y/%m/%d"}, "date_format=%Y/%m/%d: must be the format of dates in own.csv"),
    (column("01.02.2024|30.02.2024|03.03.2024"), {"date_format": "%d.%m.%Y"}, "line 3, column a: '30.02"),
    (PLAIN, {"fill": {"ages": 1}}, "fill=ages: must be of a column of"),
    (column("1||2"), {"fill": {"a": "old"}}, "fill.a=old: must be a number"),
    (column("n||s"), {"fill": {"a": "x"}, "text": "code"}, "fill.a=x: must be one of the column's words: n, s"),
    (column("n|s"), {"words": {"a": ["n"]}, "text": "code"}, "line 3, column a: 's' is none of dataset.words.a: n"),
    ("M,0.455,0.365,0.095,15\nF,0.53,0.42,0.135,9\n", {"target": "15"}, "looks like data (M, 0.455, 0.365, 0.095, ..."),
    ("1 1:0.5 2:1\n\n2 1:1 2:x\n", {"target": ""}, "line 3: '2 1:1 2:x' is not a label and"),
    ("1 1:0.5 2:1\n2 1:1\n", {"target": "1"}, "target=1: must be label, or omitted: own.csv is in LIBSVM's format"),
    ("1 1:0.5 999999999:1\n2 1:1\n", {"target": ""}, "with their zeros, would take 14.9 GiB of memory; a YAML"),
    (zipped(xl__workbook_xml=b""), {}, "is an Excel workbook; give it a name that ends in .xlsx, or save"),
    (zipped(a_csv=PLAIN, b_csv=PLAIN, c_txt=b""), {}, "with 2 tables among 3 files: a.csv, b.csv; unpack"),
    (gzip.compress(in_tar("a.csv", "b.csv")), {}, "is a tar archive; unpack"),
    (gzip.compress(gzip.compress(PLAIN.encode())), {}, "is compressed twice"),
    (gzip.compress(PLAIN.encode() * 99)[:-9], {}, "cannot be decompressed"),
    (b"PAR1" + bytes(20), {}, "is a Parquet file; give it a name that ends in .parquet"),
    (b"% UCI\n%\n\n@RELATION iris\n@attribute a numeric\n@data\n1,2\n", {}, "is an ARFF file; pandas."),
    (b'{"a": 1, "y": 2}\n{"a": 3, "y": 4}\n', {}, "is JSON lines; pandas.read_json('own.csv', lines=True"),
    (b"<!DOCTYPE html>\n<html><body>404</body></html>", {}, "is a web page or XML; download the file itself"),
    (pickle.dumps([1, 2]), {}, "is a file of another program"),
    (b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(200), {}, "is a MATLAB file; numpy.savez("),
    (PLAIN.encode("utf-16-le"), {}, "dataset.encoding=utf-16-le may read it"),
    (PLAIN.encode("utf-16")[:-1], {}, "is not text in UTF-16"),
]  # fmt: skip
"""Content, keys, and words of the line."""


@pytest.mark.parametrize(("content", "keys", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_cannot_be_read_is_refused_where_it_is(tmp_path, content, keys, said):
    assert said in refused(tmp_path, content, **keys)


@pytest.mark.parametrize("path", ["", "nowhere.csv", ".", "x" * 5000, "/dev/zero", "own\0.csv"])
def test_a_file_that_is_not_there_is_refused_before_anything_is_read(path):
    dataset = TableFile(path=path, target="y")
    for read in (lambda: dataset.fingerprint, lambda: dataset.load(Store(Path()), None)):
        with pytest.raises(FklError, match=r"must be an existing file|cannot be read"):
            read()


@pytest.mark.parametrize(
    "keys",
    [
        {"delimiter": ""}, {"delimiter": "ab"}, {"delimiter": "1"}, {"delimiter": "comma", "decimal": "comma"},
        {"missing": "zero"}, {"text": "keep"}, {"encoding": "hex"}, {"thousands": "point"}, {"hole": [["NA"]]},
        {"site": "y"}, {"time": "y"}, {"time": []}, {"labels": "drop"}, {"date_format": "%d.%m."},
        {"drop": ["y"]}, {"fill": {"y": 1}}, {"fill": {"a": float("nan")}}, {"words": {"a": []}},
        {"words": {"a": ["Caf\u00e9", "Cafe\u0301"]}, "text": "code"}, {"words": {"a": ["n"]}, "text": "drop"},
    ],
    ids=str,
)  # fmt: skip
def test_values_that_cannot_be_are_refused_by_their_key(keys):
    with pytest.raises(BadValue) as caught:
        TableFile(path="own.csv", target="y", **keys)
    assert caught.value.key.partition(".")[0] in keys


LIBSVM = {
    "two classes": "-1 1:0.5 3:2\n+1 2:1e-3 3:4\n-1 1:7\n",
    "real labels, from 0": "0.637 0:0.5 2:2\n7.376 1:1e-3 2:4\n-1e2 0:7\n",
    "comments and blank lines": "# made by hand\n\n1 1:0.5 3:2 # c 0:1\n\n0 2:1e-3 3:4\n  \n2 1:7#\n",
    "unsorted": "1 3:2 1:0.5\n0 3:4 2:1e-3\n2 1:7\n",
    "spaces, CRLF and an empty sample": "1  1:0.5\t3:2 \r\n0\r\n2 2:1e-3 3:4\r\n",
}


@pytest.mark.parametrize("kind", LIBSVM)
def test_libsvm_is_read_as_scikit_learn_reads_it(tmp_path, kind):
    """As dataset=file, whatever text= and header= are, and by a YAML."""
    content = LIBSVM[kind]
    in_order = "1 1:0.5 3:2\n0 2:1e-3 3:4\n2 1:7\n" if kind == "unsorted" else content
    x, y = load_svmlight_file(io.BytesIO(in_order.encode()))
    for keys in ({"target": ""}, {"target": "label", "text": "code", "header": False}):
        table = load(tmp_path, content, **keys)
        assert np.array_equal(table.x, x.toarray()) and np.array_equal(table.y, y)
        assert table.feature_names == (("0", "1", "2") if "from 0" in kind else ("1", "2", "3"))
    layout = {"name": "own", "format": "libsvm", "columns": ["a", "b", "c"], "files": [{"name": "own.csv"}]}
    published = TableSet(layout).load(Store(tmp_path, offline=True), None)
    assert np.array_equal(published.x, x.toarray()) and np.array_equal(published.y, y)
