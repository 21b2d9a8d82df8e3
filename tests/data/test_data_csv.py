"""A table of the user's own: read as it was written, or refused in one line that says where."""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import BadValue, FklError
from fkl.basics.memory import peak_bytes
from fkl.data import csv_file, own_file
from fkl.data.csv_file import PER_CELL, PER_ROW
from fkl.data.encoder import DELIMITERS, HOLES, Reading
from fkl.data.store import Store
from fkl.data.table_file import TableFile

PACK = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress, ".GZ": gzip.compress}


def load(content, suffix="", target="y", **keys):
    """Table of a file with this content."""
    raw = content if isinstance(content, bytes) else content.encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"own.csv{suffix}"
        path.write_bytes(PACK.get(suffix, bytes)(raw))
        table = TableFile(path=str(path), target=target, **keys).load(Store(Path("nowhere"), offline=True), None)
    assert set(table.site) == {0}
    return table


def refused(content, words, error=FklError, **keys):
    with pytest.raises(error, match=words) as caught:
        load(content, **keys)
    message = str(caught.value)
    assert "\n" not in message
    assert "own.csv" in message
    return message


PLAIN = "a,b,y\n1,2,3\n4,5.5,-6e1\n"


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r\n\r\n"),
        "\ufeff" + PLAIN,
        "\ufeff" + PLAIN.replace("a", '"a"'),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", " "),
        PLAIN.replace(",", "   ").replace("\n", "  \n  "),
        PLAIN.replace(",", "|"),
        PLAIN.replace(",", " , "),
        PLAIN.replace("5.5", '" 5.5 "'),
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-32"),
        "\ufeff".encode("utf-16-be") + PLAIN.encode("utf-16-be"),
    ],
)
def test_one_table_in_many_dialects(content, suffix):
    table = load(content, suffix)
    assert table.feature_names == ("a", "b")
    assert table.x.tolist() == [[1, 2], [4, 5.5]]
    assert table.y.tolist() == [3, -60]


@pytest.mark.parametrize(("target", "y"), [("1", [1.0, 4.0]), ("3", [3.0, 6.0])])
def test_columns_without_names_go_by_number(target, y):
    table = load("1,2,3\n4,5,6\n", target=target)
    assert table.y.tolist() == y
    assert table.feature_names == tuple(name for name in "123" if name != target)


def test_header_can_be_said_where_it_cannot_be_seen():
    table = load("2019,2020,2021\n1,2,3\n4,5,6\n", target="2020", header=True)
    assert table.y.tolist() == [2, 5]
    assert load("2019,2020,2021\n1,2,3\n4,5,6\n", target="2").y.tolist() == [2020, 2, 5]
    words = load("x,1,2\nz,3,4\n", target="2", header=False, text="code")
    assert words.x.tolist() == [[0, 2], [1, 4]]


@pytest.mark.parametrize("sign", [*DELIMITERS, *DELIMITERS.values(), ":", "^"])
def test_delimiter_can_be_said_by_sign_or_word(sign):
    written = DELIMITERS.get(sign, sign)
    table = load(f'a{written}"b{written}"{written}y\n1{written}2{written}3\n4{written}5{written}6\n', delimiter=sign)
    assert table.x.tolist() == [[1, 2], [4, 5]]


@pytest.mark.parametrize(
    ("content", "x"),
    [
        ("day,a b,y\n1 1,2,3\n1 2,4,5\n", [[0, 2], [1, 4]]),  # a space in every line, too
        ("a;b;y\nx,y;1;2\nx,z;3;4\n", [[0, 1], [1, 3]]),
        ("x, y;1;2\nx, z;3;4\n", None),  # a comma in every line, but the semicolon makes numbers
    ],
)
def test_sniffing_weighs_lines_then_numbers(content, x):
    if x is None:
        assert load(content, target="3", text="code", header=False).x.tolist() == [[0, 1], [1, 3]]
    else:
        assert load(content, text="code").x.tolist() == x


@pytest.mark.parametrize("hole", ["", *HOLES, "NA", "NaN", "Null", " ", '""'])
def test_missing_cells(hole):
    content = f"a,b,y\n1,2,3\n{hole},4,5\n7,9,9\n8,9,{hole}\n"
    message = refused(content, "line 3, column a: .* is missing")
    assert "dataset.missing=drop" in message and "dataset.missing=mean" in message
    assert load(content, missing="drop").x.tolist() == [[1, 2], [7, 9]]
    table = load(content, missing="mean")
    assert table.x.tolist() == [[1, 2], [4, 4], [7, 9]]  # the mean of the rows used
    assert table.y.tolist() == [3, 5, 9]  # a target is never made up


@pytest.mark.parametrize(
    ("hole", "cells", "expected"),
    [
        (["N/A"], "N/A n/a 1 2", [1, 2]),
        ([-200], "-200 -200.0 -2e2 1 2", [1, 2]),
        (["-999.90"], "-999.9 1 2", [1, 2]),
        (["-", ".", "None"], "- . None 1 2", [1, 2]),
        ([None, "NA"], "null na 1 2", [1, 2]),
        ([], "NA null", None),
        (["x"], "NA NaN nan", None),
    ],
)
def test_markers_of_missing_cells(hole, cells, expected):
    """A list replaces the markers that text has without one; an empty cell is always missing."""
    content = "a,y\n" + "".join(f"{cell},1\n" for cell in [*cells.split(), ""])
    table = load(content, hole=hole, missing="drop", text="code")
    assert table.x[:, 0].tolist() == expected or table.encoder.words["a"] == tuple(dict.fromkeys(cells.split()))


def test_how_a_file_is_read_survives_json():
    for keys in ({}, {"hole": [-200, None, "N/A"], "delimiter": "^", "header": False, "encoding": "cp1252"}):
        reading = Reading(**keys)
        again = Reading.of_plain(json.loads(json.dumps(reading.as_plain())))
        assert again == reading == TableFile(**keys).reading
        assert [again.is_hole(cell) for cell in ("", "N/A", "-2e2", "NA")] == [True, bool(keys), bool(keys), not keys]


def test_missing_target_is_not_offered_a_mean():
    assert "mean" not in refused("a,y\n1,2\n2,\n3,4\n", "line 3, column y: '' is missing")


def test_all_empty_row_is_a_row_with_holes():
    refused("a,b,y\n1,2,3\n,,\n4,5,6\n", "line 3, column a: '' is missing")
    assert load("a,b,y\n1,2,3\n,,\n4,5,6\n", missing="drop").y.tolist() == [3, 6]


def test_text_columns():
    content = "wind,a,y\n?,1,2\nNW,2,3\nS,3,4\n12,4,5\nNW,5,6\n"
    message = refused(content, "line 3, column wind: 'NW' is not a number", missing="drop")
    assert "dataset.text=drop" in message and "dataset.text=code" in message
    assert load(content, text="drop").x.tolist() == [[1], [2], [3], [4], [5]]  # its holes went with it
    coded = load(content, text="code", missing="drop")
    assert coded.x.tolist() == [[0, 2], [1, 3], [2, 4], [0, 5]]
    refused(content, "column wind: cells are missing, and words have no mean", text="code", missing="mean")


def test_words_are_numbered_as_they_appear_in_the_rows_used():
    assert load("wind,a,y\nN,,2\nS,2,3\nN,3,4\n", text="code", missing="drop").x[:, 0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("content", "keys", "words"),
    [
        ("", {}, "empty"),
        ("\n\r\n  \n", {}, "empty"),
        ("\ufeff", {}, "empty"),
        ("a,b,y\n", {}, "0 rows where at least 2 are needed"),
        ("a,b,y\n1,2,3\n", {}, "1 row where at least 2 are needed"),
        ("a,y\n1,2\n,3\n", {"missing": "drop"}, "1 row without a missing cell where at least 2"),
        ("a,y\n1,2\n2,?\n", {"missing": "mean"}, "1 row without a missing target where at least 2"),
        ("a,b,y\n,2,3\n,3,4\n", {"missing": "mean"}, "column a: all cells are missing"),
        ("a,b,y\n1,2,3\n\n1,2\n", {}, r"line 4: 2 cells where line 1 has 3 \(between cells: comma\)"),
        ("a,b,y\n1,2,3\n1,2,3,4\n", {}, "line 3: 4 cells where line 1 has 3"),
        ("a;b;y\n1;2;3\n1;2\n", {}, r"line 3: 2 cells where line 1 has 3 \(between cells: semicolon\)"),
        ('a,b,y\n"1\n",2,3\n1,2\n', {}, "line 4: 2 cells"),
        ("a,b,y\n1,2,3\n4,oops,6\n", {}, "line 3, column b: 'oops' is not a finite number"),
        ("a,b,y\n1,2,3\n4,oops,6\n", {"text": "code"}, "line 3, column b: 'oops' is not a finite number"),
        ("a,b,y\n1,2,3\n4,5,oops\n", {"text": "drop"}, "line 3, column y: 'oops' is not a finite number"),
        ("a,b,y\n1,2,3\n\n4,inf,6\n", {}, "line 4, column b: 'inf' is not a finite number"),
        ("a,b,y\n-Infinity,2,3\n4,5,6\n", {"text": "code"}, "line 2, column a: '-Infinity' is not a finite"),
        ("a,b,y\n1,2,3\n4,5,1e999\n", {"missing": "drop"}, "line 3, column y: '1e999' is not a finite"),
        ("a,b,y\n1,2,3\n?,-nan,6\n7,8,9\n", {"missing": "drop"}, "line 3, column b: '-nan' is not a finite"),
        ("a,b,y\n1,2,3\n4,5_000,6\n", {}, "line 3, column b: '5_000' is not a finite number"),
        ("a;b;y\n1,5;2;3\n2,5;4;5\n", {"text": "code"}, "line 2, column a: '1,5' .*; dataset.decimal=comma"),
        ("a,b,y\n1,2,no\n4,5,yes\n", {"text": "code"}, "line 2, column y: 'no' is not a number, and the target"),
        ("a,b,y\n1,2,no\n4,5,yes\n", {"text": "drop"}, "line 2, column y: 'no' is not a number, and the target"),
        ("y\n1\n2\n", {}, "no column is left beside the target y"),
        ("a,y\nx,1\nz,2\n", {"text": "drop"}, "no column is left beside the target y"),
        ("a,b,a,y\n1,2,3,4\n", {}, "line 1: two columns are named a"),
        ('a,"a\n",y\n1,2,3\n', {}, "line 1: two columns are named a"),
        ('a,y\n1,2\n1,"2\n1,2\n', {}, "line 3: unexpected end of data"),
        ('a,y\n1,"2"2\n1,2\n', {}, "line 2: .* expected after"),
        ("a,y\n1,2\n3,\x1b[2J4\n", {}, r"line 3: the control character U\+001B is not text"),
        ("a\0b,y\n1,2\n3,4\n", {}, r"line 1: the control character U\+0000 is not text"),
        ("größe,y\n1,2\n3,4\n".encode("latin-1"), {}, "line 1: byte 0xf6 is not text in UTF-8"),
        (b"a,y\n1,2\n3,\xff\n", {}, "line 3: byte 0xff is not text in UTF-8"),
        (PLAIN.encode("utf-16")[:-1], {}, "line 3: byte 0x0a is not text in UTF-16; another dataset.encoding may"),
        (PLAIN.encode("utf-16-le"), {}, r"line 1: the control character U\+0000"),
        ("größe,y\n1,2\n3,4\n".encode("cp1252"), {"encoding": "ascii"}, "byte 0xf6 is not text in ascii; another"),
        (PLAIN, {"delimiter": "semicolon"}, "has a,b,y"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is(content, keys, words):
    refused(content, words, **keys)


@pytest.mark.parametrize("target", ["", "z", "Y", "3", "0"])
def test_target_that_is_no_column_lists_them(target):
    assert "which has a, b, y" in refused(PLAIN, f"target={target}: must be a column", BadValue, target=target)
    assert "which has 1, 2" in refused("1,2\n3,4\n", "target=3: must be a column", BadValue, target="3")


def test_many_columns_and_long_names_make_no_long_message():
    names = [f"n{number}" for number in range(500)]
    content = "\n".join(",".join(map(str, row)) for row in (names, range(500), range(500)))
    assert refused(content, "target=y").endswith("n38, n39 and 460 more")
    assert len(refused("n" * 10000 + ":b\n" + "1:2\n" * 2, "target=y")) < 300
    assert len(refused("a,y\n" + "x" * 10000 + ",1\n1,2\n", "not a finite number")) < 300


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
def test_damaged_compressed_file_is_refused(tmp_path, suffix):
    path = tmp_path / f"own.csv{suffix}"
    packed = PACK[suffix](PLAIN.encode() * 100)
    for broken in (packed[: len(packed) // 2], b"not packed" + packed):
        path.write_bytes(broken)
        with pytest.raises(FklError, match=rf"own.csv\{suffix}: cannot be decompressed"):
            TableFile(path=str(path), target="y").load(Store(Path()), None)


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
def test_a_bomb_is_unpacked_only_as_far_as_memory_holds_it(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("fkl.basics.memory.available_bytes", lambda: 6 * own_file.PER_BYTE << 20)
    path = tmp_path / f"own.csv{suffix}"
    path.write_bytes(PACK[suffix](b"1" * (20 << 20)))  # 20 MiB, of which there is room for 6
    with pytest.raises(FklError) as caught:
        TableFile(path=str(path), target="2").load(Store(Path()), None)
    said = re.search(r"own\.csv.*, (\S+) MiB of text and more would take .* and 36 MiB is free", str(caught.value))
    assert said and 6 < float(said[1]) <= 7, caught.value


@pytest.mark.parametrize(
    ("content", "free", "said"),
    [
        (
            PLAIN * 1000,
            10_000,
            r"own\.csv, .* of text would take at least .* and 9\.77 KiB is free; lower the number of its rows",
        ),
        ("1,2\n" * 1000, 100_000, r"own\.csv, 1,000 lines would take at least .* and 97\.7 KiB is free"),
        ("1,2\n" * 1000, 200_000, r"own\.csv, 2,000 cells would take at least .* and 195 KiB is free"),
    ],
)
def test_a_table_that_memory_cannot_hold_is_refused_before_it_is_cut_into_cells(content, free, said, monkeypatch):
    monkeypatch.setattr("fkl.basics.memory.available_bytes", lambda: free)
    monkeypatch.setattr("fkl.data.csv_file._read_records", None)
    refused(content, said, delimiter="comma", target="2")


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
def test_a_bomb_that_memory_could_hold_is_refused_early(tmp_path, suffix, monkeypatch):
    """Before it is cut into cells, which takes minutes; a small file may be as repetitive as it likes."""
    monkeypatch.setattr(own_file, "LEAST_ROOM", 2**23)
    path = tmp_path / f"own.csv{suffix}"
    path.write_bytes(PACK[suffix](b"a,y\n" + b"0,1\n1,2\n" * 10_000))
    assert len(TableFile(path=str(path), target="y").load(Store(Path()), None).y) == 20_000
    monkeypatch.setattr("fkl.data.csv_file._read_records", None)
    for rows, said in ((15_000, "60,002 cells"), (30_000, "60,001 lines"), (1_000_000, "2 MiB of text and more")):
        path.write_bytes(PACK[suffix](b"a,y\n" + b"0,1\n1,2\n" * rows))
        with pytest.raises(FklError, match=rf"own\.csv.*: {said} would take .* too much for a file .* unpack the file"):
            TableFile(path=str(path), target="y", delimiter="comma").load(Store(Path()), None)


@pytest.mark.parametrize("quoted", [False, True])
def test_memory_is_not_asked_for_more_than_a_table_takes(tmp_path, quoted):
    """What `load` counts on is what it takes, from one digit a cell to seventeen; numbers without quotes take less."""
    rng = np.random.default_rng(0)
    path = tmp_path / "own.csv"
    cells = (lambda: str(rng.integers(10)), lambda: str(rng.integers(10, 99)), lambda: repr(rng.random()))
    for cell, columns in itertools.product(cells, (2, 10)):
        rows = 20_000 // columns
        content = "".join(",".join(cell() for _ in range(columns)) + "\n" for _ in range(rows))
        path.write_text('"1"' + content[content.index(",") :] if quoted else content)
        needed = own_file.PER_BYTE * path.stat().st_size + PER_CELL * 20_000 + PER_ROW * rows + 1000 * columns
        taken = peak_bytes(lambda: TableFile(path=str(path), target="1").load(Store(Path()), None))
        assert (needed / 3 if quoted else 0) < taken < 1.3 * needed


ODD = (
    *(
        "1",
        "-0",
        "007",
        "+5",
        "1.",
        ".5",
        "1e5",
        "1E400",
        "1e-400",
        "inf",
        "-Infinity",
        "nan",
        "NaN",
        "NA",
        "na",
        "nA",
        "?",
    ),
    *(
        "null",
        "NULL",
        "",
        " ",
        "5 ",
        " 5",
        "1_000",
        "0x10",
        "1e",
        "9" * 400,
        "99999999999999999999",
        "9223372036854775807",
    ),
    *(
        "18446744073709551615",
        "9007199254740993",
        "0.1",
        "1,5",
        "1.5",
        "true",
        "FALSE",
        "word",
        "5\t",
        "\u00a05",
        "١",
        "#5",
    ),
    *(
        "-200",
        "-2e2",
        "1;2",
        "1'000",
        "1 000",
        "0.30000000000000004",
        "2.2250738585072011e-308",
        "-",
        ".",
        "1j",
        "00.5",
    ),
)


def _all_of(path, reading):
    columns = csv_file.read(str(path), path.read_bytes(), reading)
    place = [columns.place(row) for row in range(columns.rows)]
    return place, {
        name: (list(column.cells), column.holes.tolist(), column.numbers.tobytes(), column.text, column.padded)
        for name, column in columns.by_name.items()
    }


@given(st.data())
def test_numbers_that_pandas_reads_are_those_of_python(data):
    """Texts with and without quotes are read by two readers, to the same bit, cell, hole and line."""
    sign = data.draw(st.sampled_from(list(DELIMITERS.values())))
    letters = [cell for cell in ODD if sign not in cell.strip(" ") and (sign != " " or cell.strip(" "))]
    reading = Reading(
        delimiter=sign,
        header=data.draw(st.booleans()),
        decimal=data.draw(st.sampled_from(["point", "comma"] if sign != "," else ["point"])),
        thousands=data.draw(st.sampled_from([None, "apostrophe", "space"])),
        hole=data.draw(st.sampled_from([None, [], [-200, "-"], ["NaN"]])),
    )
    count = data.draw(st.integers(1, 3))
    columns = [data.draw(st.lists(st.sampled_from(letters), min_size=1, max_size=4)) for _ in range(count)]
    floats = st.floats(allow_nan=False, allow_infinity=False).map(repr)
    cell = [st.sampled_from(column) if data.draw(st.booleans()) else floats for column in columns]
    rows = data.draw(st.lists(st.tuples(*cell), min_size=1, max_size=6))
    blank = data.draw(st.sampled_from(["", "\n", "  \n"]))
    lines = [sign.join(row) for row in rows]
    text = blank + "\n".join([sign.join("abc"[:count]), *lines]) + data.draw(st.sampled_from(["", "\n", "\n\n"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.csv"
        path.write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            fast = outcome(lambda: _all_of(path, reading))
            patch.setattr(csv_file, "_read_plain", lambda *_: None)
            assert fast == outcome(lambda: _all_of(path, reading))


def outcome(run):
    try:
        return run()
    except FklError as error:
        return str(error)


@pytest.mark.parametrize("decimal", ["point", "comma"])
def test_a_hundred_thousand_numbers_are_those_of_python(tmp_path, decimal):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63, 100_000, dtype=np.uint64).view(np.float64)
    values = bits[np.isfinite(bits)].tolist()
    cells = (
        [repr(value) for value in values]
        + [f"{value:.25e}" for value in values[:1000]]
        + ["0.1", "123456789.123456789"]
    )
    path = tmp_path / "own.csv"
    path.write_text(
        "a;y\n" + "".join(f"{cell.replace('.', ',') if decimal == 'comma' else cell};1\n" for cell in cells)
    )
    columns = csv_file.read(str(path), path.read_bytes(), Reading(decimal=decimal))
    assert columns.by_name["a"].numbers.tobytes() == np.array([float(cell) for cell in cells]).tobytes()


def test_a_wide_table_is_read_in_time_that_grows_with_its_columns():
    """By a search of all names for each of them this takes minutes."""
    count = 60_000
    rows = (["y", *(f"n{number}" for number in range(1, count))], range(count), range(1, count + 1))
    assert load("\n".join(",".join(map(str, row)) for row in rows)).x.shape == (2, count - 1)


@pytest.mark.parametrize("path", ["", "nowhere.csv", ".", "x" * 5000, "/dev/zero", "/dev/null", "own\0.csv"])
def test_file_that_is_not_there_is_refused_before_anything_is_read(path):
    dataset = TableFile(path=path, target="y")
    for read in (lambda: dataset.fingerprint, lambda: dataset.load(Store(Path()), None)):
        with pytest.raises(FklError, match=r"must be a file that is there|cannot be read"):
            read()


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"delimiter": ""}, "delimiter"),
        ({"delimiter": "ab"}, "delimiter"),
        ({"delimiter": "1"}, "delimiter"),
        ({"delimiter": "."}, "delimiter"),
        ({"delimiter": "\n"}, "delimiter"),
        ({"missing": "zero"}, "missing"),
        ({"text": "keep"}, "text"),
        ({"encoding": "utf-9"}, "encoding"),
        ({"encoding": "hex"}, "encoding"),
        ({"encoding": "a\0"}, "encoding"),
        ({"thousands": ","}, "thousands"),
        ({"thousands": "point"}, "thousands"),
        ({"thousands": "comma", "decimal": "comma"}, "thousands"),
        ({"hole": [["NA"]]}, "hole"),
    ],
)
def test_values_that_cannot_be_are_refused(keys, key):
    with pytest.raises(BadValue) as caught:
        TableFile(**keys)
    assert caught.value.key == key


def test_fingerprint_is_the_file_s_and_stays_for_one_run(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(PLAIN)
    dataset = TableFile(path=str(path), target="y")
    before = dataset.fingerprint
    assert dataset == TableFile(path=str(path), target="y")
    path.write_text(PLAIN.replace("5.5", "5.6"))
    assert dataset.fingerprint == before != TableFile(path=str(path)).fingerprint
    with pytest.raises(FklError, match=r"own.csv: has changed since this run began"):
        dataset.load(Store(Path()), None)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**15), 10**15).map(str),
    st.sampled_from(["+1.", ".5", "1E3", "-0"]),
)
HOLES = st.sampled_from(["NA", "nan", "?", "Null"])
QUOTING = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])


def words(letters):
    return st.text(letters, max_size=5).map(lambda word: f"w{word}w")


@st.composite
def tables(draw, letters):
    """Names and rows of cells, a feature of words or none, with some rows that have a hole; the target's index."""
    count, target = draw(st.integers(2, 5)), draw(st.integers(0, 1))
    texts = draw(st.sets(st.just(count - 1))) if count > 2 else set()
    row = st.tuples(*(words(letters) if column in texts else NUMBERS for column in range(count)))
    whole = draw(st.lists(row, min_size=2, max_size=6))
    holed = [
        (*cells[:at], hole, *cells[at + 1 :])
        for cells, at, hole in draw(st.lists(st.tuples(row, st.integers(0, count - 1), HOLES), max_size=2))
    ]
    names = draw(st.lists(words(letters), min_size=count, max_size=count, unique_by=lambda name: tuple(name.split())))
    return names, whole, draw(st.permutations(whole + holed)), texts, target


@given(st.data(), st.sampled_from(list(DELIMITERS.values())), st.booleans(), st.booleans(), QUOTING)
def test_what_was_written_is_read(data, delimiter, sniff, header, quoting):
    # Where the delimiter is to be found out, no cell holds another one.
    letters = "abÄ€'#_" + ('"\t;| ,' if not sniff else "")
    names, whole, rows, texts, target = data.draw(tables(letters))
    buffer = io.StringIO()
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows([names] * header + rows)
    names = [" ".join(name.split()) for name in names] if header else [str(i + 1) for i in range(len(names))]
    table = load(
        buffer.getvalue().encode(data.draw(st.sampled_from(["utf-8", "utf-8-sig"]))),
        data.draw(st.sampled_from(["", ".gz"])),
        target=names[target],
        delimiter=None if sniff else delimiter,
        header=header if texts else None,
        missing="drop",
        text="code",
    )
    used = [row for row in rows if row in whole]
    assert table.feature_names == tuple(name for name in names if name != names[target])
    assert table.y.tolist() == [float(row[target]) for row in used]
    for column, values in zip((c for c in range(len(names)) if c != target), table.x.T, strict=True):
        cells = [row[column] for row in used]
        order = list(dict.fromkeys(cells))
        assert values.tolist() == [float(order.index(cell)) if column in texts else float(cell) for cell in cells]


def test_run_of_a_changed_file_is_another_run(fkl, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{a - b}" for a, b in rng.standard_normal((30, 2))]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,y", *rows]))
    call = (
        "run",
        "dataset=file",
        "dataset.path=own.csv",
        "dataset.target=y",
        "kernels.D=4",
        "replicates=1",
        "out=here",
    )
    assert "1 client, 30 rounds, 2 features, 1 replicate" in fkl(*call).out
    assert "finished already" in fkl(*call).out
    (tmp_path / "own.csv").write_text("\n".join(["a,b,y", *rows, rows[0]]))
    answer = fkl(*call)
    assert answer.code == 2
    assert "out=here: must be a new or empty folder, or one with this same run" in answer.err


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ([], "error: dataset.path=: must be a file that is there"),
        (["dataset.path=none.csv"], "error: dataset.path=none.csv: must be a file that is there"),
        (["dataset.path=own.csv"], "error: dataset.target=: must be a column of own.csv, which has a, y"),
        (["dataset.path=own.csv", "dataset.target=y"], "error: own.csv, line 3, column a: 'x' is not a finite number"),
        (["dataset.path=own.csv", "dataset.target=y", "dataset.text=2"], "error: dataset.text=2: must be one of "),
    ],
)
def test_run_that_cannot_be_says_one_line_and_writes_nothing(fkl, tmp_path, overrides, words):
    (tmp_path / "own.csv").write_text("a,y\n1,2\nx,3\n")
    answer = fkl("run", "dataset=file", *overrides)
    assert answer.code == 2
    assert answer.err.startswith(words)
    assert answer.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["own.csv"]
