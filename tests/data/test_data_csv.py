"""Text of a table: two readers that agree, what was written is read, memory, bombs, and the cache of tables."""

import bz2
import gzip
import lzma
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import FklError
from fkl.basics.memory import peak_bytes
from fkl.data import csv_file, own_file, parsed_tables
from fkl.data.columns import CodedCells, FileColumn
from fkl.data.csv_file import PER_CELL, PER_ROW
from fkl.data.encoder import DELIMITERS, FileFormat
from fkl.data.store import Store
from fkl.data.table_file import TableFile

PACK = {".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}
PLAIN = "a,b,y\n1,2,3\n4,5.5,-6e1\n"
ODD = """1 -0 007 +5 1. .5 1e5 1E400 1e-400 inf -Infinity nan NaN NA na nA ? null 1_000 0x10 1e 99999999999999999999
9223372036854775807 18446744073709551615 9007199254740993 0.1 1,5 1.5 true FALSE word 5\t \u00a05 ١ #5 -200 -2e2 1;2
1'000 0.30000000000000004 2.2250738585072011e-308 - . 1j 00.5"""
ODD = [*ODD.replace("\n", " ").split(" "), "", " ", "5 ", " 5", "1 000", "9" * 400]


def load(path, target="y", **keys):
    return TableFile(path=str(path), target=target, **keys).load(Store(Path()), None)


def all_of(path, file_format):
    """What a reader finds, or its line."""
    try:
        columns = csv_file.read_csv_file(str(path), path.read_bytes(), file_format)
    except FklError as error:
        return str(error)
    place = [columns.place(row) for row in range(columns.rows)]
    return place, {
        name: (list(one.cells), one.holes.tolist(), one.numbers.tobytes(), one.text, one.padded)
        for name, one in columns.by_name.items()
    }


def columns_by_python(table, file_format):
    """Each cell read by Python's own float, none by pandas."""
    cells = [row.split(table.sign) for row in table.body.decode().split(table.row_end)[:-1]]
    columns = zip(*cells, strict=True) if cells else [()] * table.width
    return [FileColumn.of_text(CodedCells.from_cells(map(str.strip, column)), file_format) for column in columns]


@given(st.data())
def test_numbers_that_pandas_reads_are_those_of_python(data):
    """Texts are cut at once or by records, and read by pandas or by Python, to the same bit, cell, hole and line."""
    sign = data.draw(st.sampled_from(list(DELIMITERS.values())))
    letters = [cell for cell in ODD if sign not in cell.strip(" ") and (sign != " " or cell.strip(" "))]
    file_format = FileFormat(
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
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "own.csv"
        path.write_text(text)
        fast = all_of(path, file_format)
        patch.setattr(csv_file, "_cells_at_once", lambda *_: None)
        assert fast == all_of(path, file_format)
        patch.setattr(csv_file._Table, "columns", columns_by_python)
        assert fast == all_of(path, file_format)


@pytest.mark.parametrize("suffix", PACK)
def test_a_packed_file_is_read_and_a_bomb_only_as_far_as_memory_holds_it(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"own.csv{suffix}"
    path.write_bytes(PACK[suffix](PLAIN.encode()))
    assert load(path).x.tolist() == [[1, 2], [4, 5.5]]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FklError, match=rf"own.csv\{suffix}: cannot be decompressed"):
        load(path)
    monkeypatch.setattr("fkl.basics.memory.available_bytes", lambda: 6 * own_file.PER_BYTE << 20)
    path.write_bytes(PACK[suffix](b"1" * (20 << 20)))  # 20 MiB, of which there is room for 6
    with pytest.raises(FklError, match=r"own\.csv.*, [67]\S* MiB of text and more would take .* and 36 MiB is free"):
        load(path)


def test_a_bomb_that_memory_could_hold_is_refused_early(tmp_path, monkeypatch):
    """Before it is cut into cells, which takes minutes; a small file may be as repetitive as it likes."""
    monkeypatch.setattr(own_file, "LEAST_ROOM", 2**23)
    path = tmp_path / "own.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"0,1\n1,2\n" * 10_000))
    assert len(load(path).y) == 20_000
    monkeypatch.setattr("fkl.data.csv_file._read_records", None)
    for rows, said in ((15_000, "60,002 cells"), (30_000, "60,001 lines"), (1_000_000, "2 MiB of text and more")):
        path.write_bytes(gzip.compress(b"a,y\n" + b"0,1\n1,2\n" * rows))
        with pytest.raises(FklError, match=rf"own\.csv.*: {said} would take .* too much for a file .* unpack the file"):
            load(path, delimiter="comma")


@pytest.mark.parametrize("quoted", [False, True])
def test_memory_is_not_asked_for_more_than_a_table_takes(tmp_path, quoted):
    """What `load` counts on is what it takes, from one digit a cell to seventeen; numbers without quotes take less."""
    rng, path = np.random.default_rng(0), tmp_path / "own.csv"
    for cell, columns in ((lambda: str(rng.integers(10)), 2), (lambda: repr(rng.random()), 10)):
        rows = 20_000 // columns
        content = "".join(",".join(cell() for _ in range(columns)) + "\n" for _ in range(rows))
        path.write_text('"1"' + content[content.index(",") :] if quoted else content)
        needed = own_file.PER_BYTE * path.stat().st_size + PER_CELL * 20_000 + PER_ROW * rows + 1000 * columns
        taken = peak_bytes(lambda: load(path, "1"))
        assert (needed / 3 if quoted else 0) < taken < 1.3 * needed


KEPT = {
    "numbers and words": ("own.csv", "a,b,site,y\n" + "1.5,red,3,1\n-2,blue,7,2\n,red,3,1e400\n"),
    "libsvm": ("own.svm", "0.637 1:0.5 3:2\n7.376 2:1e-3 3:4\n-1e2 1:7\n"),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_table_from_the_cache_is_the_one_that_was_read(tmp_path, monkeypatch, name):
    """Numbers, words, holes, places, and the cells that messages show."""
    monkeypatch.setattr(parsed_tables, "LEAST", 0)
    file, content = tmp_path / KEPT[name][0], KEPT[name][1]
    file.write_text(content)
    tables = tmp_path / "cache" / "tables"

    def columns(path=file, **keys):
        read = TableFile(path=str(path), target="y", **keys).read_file(str(path), tables)
        cells = {name: [*map(str, column.cells)] for name, column in read.by_name.items()}
        facts = {name: (c.text, c.padded, c.holes.tolist(), repr(c.numbers)) for name, c in read.by_name.items()}
        return cells, facts, [read.place(row).removeprefix(str(path)) for row in range(read.rows)], read.zeros_left_out

    first = columns()
    (one,) = parsed_tables.cached_files(tables)
    assert columns() == first
    columns(missing="mean", text="code")  # what is made of the cells is no part of the format
    assert [*parsed_tables.cached_files(tables)] == [one]
    columns(hole=["none"])
    other = file.with_name(f"other{file.suffix}")
    other.write_text(content)
    assert columns(other) == first  # known by its content, not by its name
    assert len([*parsed_tables.cached_files(tables)]) == 2
    one.write_bytes(one.read_bytes()[:-1] + b"x")
    assert columns() == first  # damaged: read again


def test_a_run_reads_a_large_file_once_and_a_changed_one_is_another(fkl, tmp_path, monkeypatch):
    monkeypatch.setattr(parsed_tables, "LEAST", 0)
    monkeypatch.setenv("FKL_CACHE", str(tmp_path / "cache"))
    own = tmp_path / "own.csv"
    own.write_text("a,b,y\n" + "".join(f"{i / 7},w{i % 3},{i % 5}\n" for i in range(40)))
    keys = "dataset=file", "dataset.path=own.csv", "dataset.target=y", "dataset.text=code", "kernels.D=5"

    def clients(out):
        answer = fkl("run", "algo=one_shot_ridge", *keys, "replicates=1", "figures=none", f"out={out}")
        assert answer.code == 0, answer.err
        return Path(out, "clients.csv").read_bytes()

    first = clients("first")
    with monkeypatch.context() as patch:
        patch.setattr(csv_file, "read_csv_file", None)
        assert clients("second") == first
    assert fkl("data", "clear").out.startswith("deleted 1 table in ")
    Path("cache/tables").rmdir()
    Path("cache/tables").write_text("no folder")
    assert clients("third") == first
    dataset = TableFile(path=str(own), target="y", text="code")
    before = dataset.fingerprint
    own.write_text(own.read_text() + "1,w0,1\n")
    assert dataset.fingerprint == before != TableFile(path=str(own)).fingerprint
    with pytest.raises(FklError, match=r"own.csv: has changed since this run began"):
        dataset.load(Store(Path()), None)
    answer = fkl("run", "algo=one_shot_ridge", *keys, "replicates=1", "figures=none", "out=first")
    assert answer.code == 2
    assert "out=first: must be a new or empty folder, or a folder with this same run" in answer.err
