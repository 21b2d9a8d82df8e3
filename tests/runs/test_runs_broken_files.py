"""Files that no run can be made of: one line that names the file and its line, exit code 2, and nothing written."""

import bz2
import gzip
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from broken.refusal import TABLE, files, lines, require_refused
from conftest import SMALL, Answer

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
OWN = ("dataset=file", "dataset.path=own.csv", "dataset.target=price", "kernels.D=4", "replicates=1")
GRAPH = (*SMALL, "algo=dkla", "topology=edge_list", "topology.path=edges.txt")
GOOD = "width,height,price\n1,2,3\n4,5,6\n7,8,10\n"
CONTROL = r"own\.csv, line \d+: the control character U\+{} is not text"
NUMBER = r"own\.csv, line 3, column height: .* is not a finite number"
RAGGED = r"own\.csv, line \d+: \d+ cells? where line 1 has \d+"
DAMAGED = r"own\.csv\.(gz|bz2).* cannot be decompressed, it is damaged or cut short"


def _cell(word: str) -> bytes:
    """A good table with a word in place of the 5."""
    return GOOD.replace("5", word).encode()


def _zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


LARGE = (GOOD + "1,2,3.5\n" * 5000).encode()
TABLES: dict[str, tuple[bytes, str, *tuple[str, ...]]] = {
    "nothing": (b"\n\n", "empty; must be a table"),
    "zero bytes at the end, as after a crash": (GOOD.encode() + bytes(512), CONTROL.format("0000")),
    "a terminal's colours in the header": (b"\x1b[31m" + GOOD.encode(), CONTROL.format("001B")),
    "latin-1": (GOOD.encode() + b"8,9,\xfc\n", "line 5: byte 0xfc is not text in UTF-8"),
    "utf-16, cut short": (GOOD.encode("utf-16")[:-1], r"line \d+: byte 0x.. is not text in UTF-16"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(20), "is a file of another program"),
    "a pickle": (pickle.dumps([1.0, 2.0]), "is a file of another program"),
    "a page of the web": (b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "is a web page or XML"),
    "an answer in JSON": (b'[{"width": 1, "price": 2}]\n', "is JSON; save it as CSV"),
    **{f"a cell of {word}": (_cell(word), NUMBER) for word in ("1e309", "0x1F", "=1+1", "½", "१२x", "9" * 400)},
    "a cell of nan": (_cell("nan"), ": .* is missing"),
    "a cell of 200000 digits": (_cell("9" * 200_000), "line 3(: field larger|, column height: .* is not a finite)"),
    "a decimal comma": (
        GOOD.replace(",", ";").replace("5", "5,5").encode(),
        ": .* is not a finite number; .*dataset.decimal=comma reads it as",
    ),
    "words": (b"width,price\nyes,1\nno,2\n", r"own\.csv, line 2, column width: 'yes' is not a number"),
    "a target of words": (b"width,price\n1,low\n2,high\n", "column price: 'low' is not a number, and the target"),
    "no target": (b"width,price\n1,?\n2,NA\n", "0 rows without a missing target", "dataset.missing=mean"),
    "two columns of a name": (b'width,"width ",price\n1,2,3\n', "line 1: two columns are named width"),
    "another target": (GOOD.encode(), r"dataset\.target=cost: must be a column of .* which has", "dataset.target=cost"),
    "a line of sums": ((GOOD + "total,15,19\n").encode(), "line 5, column width: 'total' is not a finite"),
    "a row too short": ((GOOD + "1,2\n").encode(), RAGGED, "dataset.delimiter=comma"),
    "a quote that is never closed": (GOOD.replace("width", '"width').encode(), r"own\.csv, line 1: "),
    "a constant target": (b"width,price\n1,2\n3,2\n", r"own\.csv: the target is 2\.0 in every row"),
    "a target too far": (b"a,price\n1,-1.7e308\n3,1.7e308\n", r"own\.csv: the target goes from -1\.7e\+308 to 1\.7e"),
    "a feature too large": (b"a,price\n1.7e308,1\n1,2\n", r"csv, row 1, column a: .* too large", "scaling=none"),
    "features near 0": (b"a,price\n5e-324,2\n5e-324,3\n", r"own\.csv: all features of all", "scaling=unit_ball"),
}
PACKED: dict[str, tuple[bytes, str, str]] = {
    "that is none": (GOOD.encode(), DAMAGED, ".gz"),
    "cut short": (bz2.compress(LARGE)[:60], DAMAGED, ".bz2"),
    "of another length": (gzip.compress(LARGE)[:-4] + b"\1\2\3\4", DAMAGED, ".gz"),
    "of two files": (_zip({"own.csv": LARGE, "two.csv": b""}), "zip archive with 2 tables among 2 files", ".zip"),
}


@pytest.mark.parametrize("what", TABLES)
def test_a_broken_table_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    content, said, *keys = TABLES[what]
    (tmp_path / "own.csv").write_bytes(content)
    require_refused(fkl("run", *OWN, *keys), tmp_path, said, what)


@pytest.mark.parametrize("what", PACKED)
def test_a_broken_archive_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    content, said, suffix = PACKED[what]
    (tmp_path / f"own.csv{suffix}").write_bytes(content)
    answer = fkl("run", *OWN, f"dataset.path=own.csv{suffix}")
    require_refused(answer, tmp_path, said, what, given=(f"own.csv{suffix}",))


EDGE = "is not an edge, which is two integers"
EDGES = {
    "nothing": (b"# nothing\n\n", "4 agents are in 4 pieces"),
    "pieces": (b"0 1\n2 3\n", "4 agents are in 2 pieces"),
    "counted from 1": (b"1 2\n2 3\n3 4\n", "line 3: there is no agent 4; must be from 0 to 3"),
    "itself": (b"0 1\n1 1\n", "line 2: joins agent 1 to itself"),
    "twice": (b"0 1\n1 2\n2 3\n1 0\n", "line 4: edge 1 0 is in line 1 already"),
    "digits of elsewhere": ("0 １\n".encode(), f"line 1: .* {EDGE}"),
    "a terminal's colours": (b"0 1\n\x1b[31m1 2\n", r"edges\.txt, line 2: the control character U\+001B"),
    "a million letters": (b"x" * 1_000_000, rf"line 1: 'x{{60}}\.\.\.' {EDGE}"),
}


@pytest.mark.parametrize("what", EDGES)
def test_a_broken_graph_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    (tmp_path / "edges.txt").write_bytes(EDGES[what][0])
    require_refused(fkl("run", *GRAPH), tmp_path, EDGES[what][1], what)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


NO_FILE = "path=.*: must be a file that is there, no folder, pipe or device|cannot be read"
PLACES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nothing": (lambda path: None, NO_FILE),
    "a folder": (Path.mkdir, NO_FILE),
    "a pipe that nobody writes to": (os.mkfifo, NO_FILE),
    "a link to endless zeros": (lambda path: path.symlink_to("/dev/zero"), NO_FILE),
    "a link to itself": (lambda path: path.symlink_to(path.name), NO_FILE),
    "four terabytes of nothing": (_huge, "4 TiB of text would take at least .* is free|longer than"),
}


@pytest.mark.parametrize(("call", "key"), [(OWN, "dataset.path"), (GRAPH, "topology.path")])
@pytest.mark.parametrize("what", PLACES)
def test_a_path_that_is_no_file_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, call: tuple[str, ...], key: str, what: str
) -> None:
    """At once, whether it would never end or keep one waiting."""
    PLACES[what][0](tmp_path / "here")
    require_refused(fkl("run", *call, f"{key}=here"), tmp_path, PLACES[what][1], what, given=("here",))


WIDE = b",".join([b"1"] * 49)
ROWS = b"\n".join(b",".join(b"%d" % (row + column) for column in range(49)) for row in range(2)) + b"\n"
GISETTE, WEC = ("dataset=gisette", "algo=fdskl", "replicates=1"), ("dataset=wec", "kernels.D=4", "replicates=1")
NOT_A_SAMPLE = "gisette_scale, line 2: .* is not a label and index:value pairs"
ARCHIVE, ADELAIDE = "wec/wave+energy+converters.zip", "wec/Adelaide_Data.csv"
SERVED: dict[str, tuple[tuple[str, ...], str, bytes, str]] = {
    **{
        f"libsvm: {word!r}": (GISETTE, "gisette_scale", b"1 1:0.5 5000:-1\n" + word + b"\n-1 2:0.5\n", NOT_A_SAMPLE)
        for word in (b"", b"oops 1:1", b"1 0:1", b"1 5001:1", b"1 2:1 1:1", b"\xff\xfe", b"1 1:1\x1b[31m 2:x")
    },
    "libsvm: nan": (GISETTE, "gisette_scale", b"1 1:nan\n", "line 1, feature 1: nan is not a finite number"),
    "a row too short": (WEC, ADELAIDE, ROWS + b"1,2,3\n", "line 3: 3 columns where 49 are expected"),
    "a cell of words": (
        WEC,
        ADELAIDE,
        ROWS + WIDE[:-1] + b"oops\n",
        "line 3, column .*: 'oops' is not a finite",
    ),
    "a zip that points up": (
        WEC,
        ARCHIVE,
        _zip({"../../evil.sh": b""}),
        r"because its member '\.\./\.\./evil",
    ),
    "wisdm: words": (
        ("dataset=wisdm", "scaling=none", "kernels.D=4", "replicates=1"),
        "wisdm/data_1601_accel_phone.txt",
        b"1601,A,1,nan,inf,x;\n",
        "none of its . lines is '1601,letter,timestamp,x,y,z;'",
    ),
}


@pytest.mark.parametrize("what", SERVED)
def test_a_broken_file_of_the_catalogue_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no hash tells what it should be; and nothing is fetched in its place."""
    call, name, content, said = SERVED[what]
    (tmp_path / "files" / name).parent.mkdir(parents=True)
    (tmp_path / "files" / name).write_bytes(content)
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", None)
    given = files(tmp_path)
    require_refused(fkl("run", *call, "paths.data=files"), tmp_path, said, what, given)


COLUMN = {
    "two rows": (0, lambda cell: cell),
    "a constant feature": (0, lambda cell: "7"),
    "huge features": (0, lambda cell: cell + "e150"),
    "tiny features": (0, lambda cell: cell + "e-150"),
    "a huge target": (-1, lambda cell: cell + "e300"),
    "two classes": (-1, lambda cell: str(int(float(cell) > 0))),
}


def odd(what: str) -> str:
    """A table that is unusual, and means something."""
    table = [line.split(",") for line in TABLE.splitlines()]
    column, change = COLUMN[what]
    for row in table[1:]:
        row[column] = change(row[column])
    return "".join(",".join(row) + "\n" for row in table[: 3 if what == "two rows" else None])


def besides_warnings(err: str) -> list[str]:
    """What was said, but for what is true of a run that has hardly a sample."""
    warnings = ("steps ended before", "of predicting 0 for every sample", " is not below the ", "hides the others")
    return [line for line in lines(err) if not any(warning in line for warning in warnings)]


@pytest.mark.parametrize("what", COLUMN)
def test_an_odd_table_runs_and_its_numbers_are_finite(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    (tmp_path / "own.csv").write_text(odd(what))
    answer = fkl("run", *OWN, "out=here")
    assert (answer.code, besides_warnings(answer.err)) == (0, [])
    for name in ("summary", "rounds", "clients"):
        assert np.isfinite(pd.read_csv(tmp_path / "here" / f"{name}.csv").select_dtypes("number")).all(axis=None)
