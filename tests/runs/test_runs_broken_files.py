"""Files that no run can be made of: one line that names the file and its line, exit code 2, and nothing written."""

import gzip
import io
import os
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
NUMBER = r"own\.csv, line 3, column height: .* is not a finite number"


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
PACKED = ("dataset.path=own.csv.gz",)
GISETTE, WEC = ("dataset=gisette", "algo=fdskl", "replicates=1"), ("dataset=wec", "kernels.D=4", "replicates=1")
FROM = ("paths.data=files",)
EDGE = "is not an edge; write two integers"
REFUSED: dict[tuple[str, tuple[str, ...]], list[tuple[bytes, str]]] = {
    ("own.csv", OWN): [
        (b"\n\n", "empty; must be a table"),
        (GOOD.encode() + bytes(512), r"own\.csv, line \d+: the control character U\+0000 is not text"),
        (GOOD.encode("utf-16")[:-1], r"line \d+: byte 0x.. is not text in UTF-16"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "is a file of another program"),
        *((_cell(word), NUMBER) for word in ("1e309", "0x1F", "½", "१२x")),
        (_cell("9" * 200_000), "line 3(: field larger|, column height: .* is not a finite)"),
        (b'width,"width ",price\n1,2,3\n', "line 1: two columns are named width"),
        (b"width,price\n1,2\n3,2\n", r"own\.csv: the target is 2\.0 in every row"),
        (b"a,price\n1,-1.7e308\n3,1.7e308\n", r"own\.csv: the target goes from -1\.7e\+308 to 1\.7e"),
    ],
    ("own.csv", (*OWN, "scaling=none")): [(b"a,price\n1.7e308,1\n1,2\n", r"csv, row 1, column a: .* too large")],
    ("own.csv", (*OWN, "scaling=unit_ball")): [(b"a,price\n5e-324,2\n5e-324,3\n", r"own\.csv: all features of all")],
    ("own.csv.gz", (*OWN, *PACKED)): [
        (content, r"own\.csv\.gz.* cannot be decompressed, it is damaged or cut short")
        for content in (GOOD.encode(), gzip.compress(LARGE)[:60], gzip.compress(LARGE)[:-4] + b"\1\2\3\4")
    ],
    ("edges.txt", GRAPH): [
        (b"# nothing\n\n", "4 agents is not connected but has 4 parts"),
        (b"1 2\n2 3\n3 4\n", "line 3: there is no agent 4; must be from 0 to 3"),
        (b"0 1\n1 1\n", "line 2: the edge joins agent 1 to itself"),
        (b"0 1\n1 2\n2 3\n1 0\n", "line 4: edge 1 0 is already in line 1"),
        ("0 １\n".encode(), f"line 1: .* {EDGE}"),
        (b"0 1\n\x1b[31m1 2\n", r"edges\.txt, line 2: the control character U\+001B"),
        (b"x" * 1_000_000, rf"line 1: 'x{{60}}\.\.\.' {EDGE}"),
    ],
    ("files/gisette_scale", (*GISETTE, *FROM)): [
        (b"1 1:nan\n", "line 1, feature 1: nan is not a finite number"),
        *(
            (b"1 1:0.5 5000:-1\n" + word + b"\n-1 2:0.5\n", "gisette_scale, line 2: .* is not a label and index:value")
            for word in (b"", b"1 0:1", b"1 5001:1", b"1 2:1 1:1", b"\xff\xfe")
        ),
    ],
    ("files/wec/Adelaide_Data.csv", (*WEC, *FROM)): [(b"1,2,3\n", "line 1: 3 columns where 49 are expected")],
    ("files/wec/wave+energy+converters.zip", (*WEC, *FROM)): [
        (_zip({"../../evil.sh": b""}), r"because its member '\.\./\.\./evil")
    ],
}
"""For a file and a run with it: what the file holds, and what is said of it."""
CASES = [(name, words, *case) for (name, words), cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize(("name", "words", "content", "said"), CASES, ids=[said for *_, said in CASES])
def test_a_broken_file_is_refused(
    fkl: Callable[..., Answer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    words: tuple[str, ...],
    content: bytes,
    said: str,
) -> None:
    """Also where no hash tells what it should be; and nothing is fetched in its place."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", None)
    given = files(tmp_path)
    require_refused(fkl("run", *words), tmp_path, said, content[:99], given)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


NO_FILE = "path=.*: must be an existing file, not a folder, pipe or device|cannot be read"
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


COLUMN = {
    "a constant feature": (0, lambda cell: "7"),
    "huge features": (0, lambda cell: cell + "e150"),
    "a huge target": (-1, lambda cell: cell + "e300"),
    "two classes": (-1, lambda cell: str(int(float(cell) > 0))),
}


def odd(what: str) -> str:
    """A table that is unusual, and means something."""
    table = [line.split(",") for line in TABLE.splitlines()]
    column, change = COLUMN[what]
    for row in table[1:]:
        row[column] = change(row[column])
    return "".join(",".join(row) + "\n" for row in table)


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
