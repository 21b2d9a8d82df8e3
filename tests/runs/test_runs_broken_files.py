"""Random files that no run can be made of, and odd ones that it can: one line that names the place, or a whole run."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from broken.files import BREAK, EDGES, broken_table, good, written
from broken.refusal import lines, require_refused
from conftest import SMALL, Answer, small

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
OWN = ("dataset=file", "dataset.path=own.csv", "dataset.target=price", "kernels.D=4", "replicates=1")
GRAPH = (*SMALL, "algo=dkla", "topology=edge_list", "topology.path=edges.txt")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("what", BREAK)
def test_a_broken_table_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str, seed: int) -> None:
    """The line names the file and its line, or the key."""
    broken = broken_table(what, seed)
    (tmp_path / "own.csv").write_bytes(broken.content)
    require_refused(fkl("run", *OWN, *broken.keys), tmp_path, broken.said, (what, seed))


@pytest.mark.parametrize("what", EDGES)
def test_a_broken_graph_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    (tmp_path / "edges.txt").write_bytes(EDGES[what].content)
    require_refused(fkl("run", *GRAPH), tmp_path, EDGES[what].said, what)


@pytest.mark.parametrize(("call", "key"), [(OWN, "dataset.path=own.csv"), (GRAPH, "topology.path=edges.txt")])
@pytest.mark.parametrize("what", ["missing", "folder", "dangling", "pipe", "long"])
def test_a_file_that_is_none_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, call: tuple[str, ...], key: str, what: str
) -> None:
    """Nothing there, a folder, a link to nowhere, a pipe that nobody writes to, a name too long."""
    name = key.partition("=")[2]
    if what == "folder":
        (tmp_path / "edges.txt" / name).mkdir(parents=True)
        name = "edges.txt"
    elif what == "dangling":
        (tmp_path / name).symlink_to("nowhere")
    elif what == "pipe":
        os.mkfifo(tmp_path / name)
    elif what == "long":
        name = "x" * 5000
    key = key.partition("=")[0]
    answer = fkl("run", *call, f"{key}={name}")
    said = lines(answer.err)
    assert answer.code == 2 and len(said) == 1
    assert re.search(rf"{re.escape(key)}=.*: must be a file that is there|cannot be read", said[0])
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("call", [OWN, GRAPH])
def test_a_file_that_may_not_be_read_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root reads all files, the system's answer is put in its place."""
    opened = Path.open

    def denied(self: Path, *mode: Any, **words: Any) -> Any:
        if self.name in ("own.csv", "edges.txt"):
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *mode, **words)

    (tmp_path / "own.csv").write_bytes(b"a,price\n1,2\n3,4\n")
    (tmp_path / "edges.txt").write_bytes(b"0 1\n")
    monkeypatch.setattr(Path, "open", denied)
    require_refused(fkl("run", *call), tmp_path, r"(own\.csv|edges\.txt): cannot be read \(Permission denied\)")


def _odd(name: str) -> list[list[str]]:
    """A table of 20 rows or more that is unusual, and means something."""
    table = next(
        table for seed in range(99) if len(table := good(np.random.default_rng(seed))) > 20 < 7 * len(table[0])
    )
    if name == "two rows":
        return table[:3]
    changed = {
        "a constant feature": (0, lambda cell: "7"),
        "huge features": (0, lambda cell: cell + "e150"),
        "tiny features": (0, lambda cell: cell + "e-150"),
        "a huge target": (-1, lambda cell: cell + "e300"),
        "a tiny target": (-1, lambda cell: cell + "e-300"),
        "two classes": (-1, lambda cell: str(int(float(cell) > 0))),
    }
    column, change = changed.get(name, (0, lambda cell: cell))
    for row in table[1:]:
        row[column] = change(row[column])
    if name == "rows that are all alike":
        return [table[0], *[[*table[1][:-1], str(number)] for number in range(9)]]
    return table


ODD = (
    "two rows",
    "a constant feature",
    "huge features",
    "tiny features",
    "a huge target",
    "a tiny target",
    "two classes",
    "rows that are all alike",
)


def besides_warnings(err: str) -> list[str]:
    """What was said, but for what is true of a run that has hardly a sample: its numbers are finite, and no result."""
    warnings = ("steps ended before", "of predicting 0 for every sample", " is not below the ", "hides the others")
    return [line for line in lines(err) if not any(warning in line for warning in warnings)]


@pytest.mark.drawn
@pytest.mark.parametrize("scaling", ["unit_ball", "unit_box"])
@pytest.mark.parametrize("what", ODD)
def test_an_odd_table_runs_and_its_numbers_are_finite(
    fkl: Callable[..., Answer], tmp_path: Path, what: str, scaling: str
) -> None:
    """Whatever means something runs."""
    (tmp_path / "own.csv").write_bytes(written(_odd(what)))
    answer = fkl("run", *OWN, f"scaling={scaling}", "out=here")
    assert answer.code == 0, answer.err
    assert besides_warnings(answer.err) == []
    for name in ("summary", "rounds", "clients"):
        assert np.isfinite(pd.read_csv(tmp_path / "here" / f"{name}.csv").select_dtypes("number")).all(axis=None)


@pytest.mark.parametrize("algo", ["dkla", "omkl_gf", "libsvm", "secureboost", "fdskl", "parsimonious_centralized"])
@pytest.mark.parametrize("what", ["two rows", "a constant feature", "two classes"])
def test_an_odd_table_runs_or_is_refused_by_every_family(
    fkl: Callable[..., Answer], tmp_path: Path, what: str, algo: str
) -> None:
    """Two rows are no test set, and three values are no classes of a logistic loss: a line says so."""
    (tmp_path / "own.csv").write_bytes(written(_odd(what)))
    own = [word for word in small(algo) if word.split(".")[0].split("=")[0] not in ("dataset", "scaling")]
    whole = [word for word in own if not word.startswith("partition.rounds")]
    agents = {
        "dkla": ["partition=stream", "partition.clients=2", "topology=ring"],
        "omkl_gf": ["partition=stream"],
    }.get(algo, [])
    features = ["kernels.D=4"] if algo in ("dkla", "omkl_gf") else []
    answer = fkl("run", *OWN[:3], *whole, *agents, *features, "replicates=1", "out=here")
    said = besides_warnings(answer.err)
    assert (answer.code, len(said)) in ((0, 0), (2, 1)), answer.err
    assert (tmp_path / "here").exists() == (answer.code == 0)
    of_numbers = algo not in ("fdskl", "parsimonious_centralized")
    if what == "two classes" or (what == "a constant feature" and of_numbers):
        assert answer.code == 0, answer.err
