"""Files that no run can be made of: one line that names the file and its line, exit code 2, and nothing written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from broken.refusal import TABLE, lines, require_refused
from conftest import SMALL, Answer

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
OWN = ("dataset=file", "dataset.path=own.csv", "dataset.target=price", "kernels.D=4", "replicates=1")
GRAPH = (*SMALL, "algo=dkla", "topology=edge_list", "topology.path=edges.txt")
EDGE = "is not an edge; write two integers"
EDGES = [
    (b"# nothing\n\n", "4 agents is not connected but has 4 parts"),
    (b"1 2\n2 3\n3 4\n", "line 3: there is no agent 4; must be from 0 to 3"),
    (b"0 1\n1 1\n", "line 2: the edge joins agent 1 to itself"),
    (b"0 1\n1 2\n2 3\n1 0\n", "line 4: edge 1 0 is already in line 1"),
    ("0 １\n".encode(), f"line 1: .* {EDGE}"),
    (b"0 1\n\x1b[31m1 2\n", r"edges\.txt, line 2: the control character U\+001B"),
    (b"x" * 1_000_000, rf"line 1: 'x{{60}}\.\.\.' {EDGE}"),
]
"""What a list of edges holds, and what is said of it; `tests/data` has tables."""


@pytest.mark.parametrize(("content", "said"), EDGES, ids=[said for _, said in EDGES])
def test_a_broken_list_of_edges_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "edges.txt").write_bytes(content)
    require_refused(fkl("run", *GRAPH), tmp_path, said, content[:99])


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
