"""Over 250 files that are not what they should be: one line that names the file, exit code 2, and nothing written."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from broken.hostile import GRAPHS, PLACES, SERVED, TABLES
from broken.refusal import lines
from conftest import SMALL, Answer

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
OWN = ("dataset=file", "dataset.target=price", "kernels.D=4", "replicates=1")
GRAPH = (*SMALL, "algo=dkla", "topology=edge_list", "topology.path=edges.txt")


def tree(folder: Path) -> dict[str, str]:
    """Everything below a folder, with a hash of what the small files hold."""
    found = {}
    for path in sorted(folder.rglob("*")):
        whole = path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 30
        content = hashlib.sha256(path.read_bytes()).hexdigest() if whole else ""
        found[path.relative_to(folder).as_posix()] = f"{path.lstat().st_mode} {content}"
    return found


def require_one_line(fkl: Callable[..., Answer], folder: Path, said: str, *call: str) -> None:
    """A refusal that leaves everything as it was."""
    before = tree(folder)
    answer = fkl("run", *call)
    told = lines(answer.err)
    assert answer.code == 2, answer
    assert len(told) == 1, told
    assert re.search(f"^error: .*(?:{said})", told[0]), (told[0], said)
    assert len(told[0]) < 2000 and told[0].isprintable(), told[0]
    assert tree(folder) == before


@pytest.mark.parametrize("what", TABLES)
def test_a_hostile_table_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    hostile = TABLES[what]
    (tmp_path / hostile.name).write_bytes(hostile.content)
    require_one_line(fkl, tmp_path, hostile.said, *OWN, f"dataset.path={hostile.name}", *hostile.keys)


@pytest.mark.parametrize("what", PLACES)
def test_a_path_that_is_no_table_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    """At once, whether it would never end or keep one waiting."""
    make, said = PLACES[what]
    require_one_line(fkl, tmp_path, said, *OWN, f"dataset.path={make(tmp_path)}")


@pytest.mark.parametrize(
    "what", ["a pipe", "endless zeros", "a loop of links", "a folder", "four terabytes of nothing"]
)
def test_a_path_that_is_no_graph_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    make, said = PLACES[what]
    require_one_line(fkl, tmp_path, said, *GRAPH[:-1], f"topology.path={make(tmp_path)}")


@pytest.mark.parametrize("what", GRAPHS)
def test_a_hostile_graph_is_refused(fkl: Callable[..., Answer], tmp_path: Path, what: str) -> None:
    (tmp_path / "edges.txt").write_bytes(GRAPHS[what].content)
    require_one_line(fkl, tmp_path, GRAPHS[what].said, *GRAPH)


@pytest.mark.parametrize("what", SERVED)
def test_a_hostile_file_of_the_catalogue_is_refused(
    fkl: Callable[..., Answer], tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no hash tells what it should be; and nothing is fetched in its place."""
    files, keys, said = SERVED[what]
    for name, content in files.items():
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", None)
    few = () if "algo=fdskl" in keys else ("kernels.D=4",)  # which has no use for kernels
    require_one_line(fkl, tmp_path, said, *keys, "paths.data=files", *few, "replicates=1")
