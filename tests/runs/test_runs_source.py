"""The code that decides numbers enters a run's digest: fkl's own, and all of the user's that is imported."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import SMALL, Answer

from fkl.config import digest as source

LAYOUTS = {
    "a module beside it": ("import own_helper", "own_helper.py"),
    "from it": ("from own_helper import x", "own_helper.py"),
    "a package": ("import own_tools.deep.part", "own_tools/deep/part.py"),
    "what a package runs first": ("import own_tools.deep.part", "own_tools/__init__.py"),
    "relative": ("import own_tools", "own_tools/beside.py"),
    "inside a function": ("def late():\n    import own_helper", "own_helper.py"),
    "by its name": ("import importlib\nimportlib.import_module('own_helper')", "own_helper.py"),
    "at second hand": ("import own_helper", "own_second.py"),
    "in a circle": ("import own_circle", "own_circle.py"),
    "itself": ("import math", "own.py"),
}
"""Statement in a user's module, and the file whose change must be seen."""
FILES = {
    "own_helper.py": "import own_second\nx = 1\n",
    "own_second.py": "y = 1\n",
    "own_circle.py": "import own\n",
    "own_tools/__init__.py": "from . import beside\nfrom .beside import z\n",
    "own_tools/beside.py": "z = 1\n",
    "own_tools/above.py": "z = 1\n",
    "own_tools/deep/__init__.py": "",
    "own_tools/deep/part.py": "from .. import above\n",
    "own_loose/inner/part.py": "z = 1\n",
    "own_broken.py": "if:\n",
    "own_unrelated.py": "z = 1\n",
}


def forget() -> None:
    """As in a new process."""
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("own")]:
        del sys.modules[name]
    source._known.clear()


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    forget()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user's modules lie."""
    return laid_out(tmp_path / "mine", monkeypatch)


def laid_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.syspath_prepend(folder)
    return folder


def digest(name: str = "own") -> str | None:
    """Of a module, in a new process."""
    forget()
    source.import_module(name)
    return source.of_module(name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_changed_import_is_seen_wherever_it_is_imported(folder: Path, layout: str) -> None:
    statement, changed = LAYOUTS[layout]
    (folder / "own.py").write_text(f"{statement}\n")
    before = digest()
    assert digest() == before
    (folder / "own_unrelated.py").write_text("z = 'changed'\n")
    assert digest() == before
    with (folder / changed).open("a") as file:
        file.write("\nlonger = 'changed'\n")
    assert digest() != before


def test_one_process_runs_a_method_as_it_is_now(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """Twice, with a helper edited in between: two runs with different numbers; edited back: the first again."""
    (tmp_path / "own_rate.py").write_text("FACTOR = 1.0\n")
    (tmp_path / "own_method.py").write_text(
        "from dataclasses import dataclass\n"
        "from fkl.algorithms.online.learners import Raker\n"
        "from own_rate import FACTOR\n\n\n"
        "@dataclass(frozen=True)\n"
        "class Own(Raker):\n"
        "    def rates(self, rounds):\n"
        "        return FACTOR * super().rates(rounds)\n"
    )
    call = ("run", *SMALL, "partition=stream", "algo=raker", "algo._target_=own_method.Own")
    first = fkl(*call)
    assert first.code == 0, first.err
    assert "finished already" in fkl(*call).out
    (tmp_path / "own_rate.py").write_text("FACTOR = 0.001\n")
    second = fkl(*call)
    assert second.code == 0, second.err
    assert "finished already" not in second.out
    assert len([*(tmp_path / "outputs" / "runs").iterdir()]) == 2
    errors = [
        next(line for line in answer.out.splitlines() if line.startswith("  error")) for answer in (first, second)
    ]
    assert errors[0] != errors[1]
    (tmp_path / "own_rate.py").write_text("FACTOR = 1.0\n")
    assert "finished already" in fkl(*call).out


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fkl's source, to be changed."""
    shutil.copytree(source.PACKAGE, tmp_path / "fkl", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(source, "PACKAGE", tmp_path / "fkl")
    return tmp_path / "fkl"


def of_copy() -> str:
    return source.of_fkl.__wrapped__()


@pytest.mark.parametrize("file", ["kernels/compiled.py", "data/csv_file.py"])
def test_a_change_in_fkl_s_source_is_seen(copied: Path, file: str) -> None:
    assert of_copy() == source.of_fkl()
    with (copied / file).open("a") as text:
        text.write("\nX = 1\n")
    assert of_copy() != source.of_fkl()


def test_what_only_shows_or_starts_does_not_count_nor_do_line_ends(copied: Path) -> None:
    for name in source.SHOWS_OR_STARTS:
        for file in [copied / name] if name.endswith(".py") else sorted((copied / name).rglob("*.py")):
            file.write_text("changed\n")
    for file in (copied / "kernels").glob("*.py"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert of_copy() == source.of_fkl()
