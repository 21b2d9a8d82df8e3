"""The code that decides numbers enters a run's digest: fkl's own, and all of the user's that is imported."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import SMALL, Answer

from fkl.config import digest as source

LAYOUTS = {
    "a module beside it": ("import own_helper", "own_helper.py"),
    "a package": ("import own_tools.deep.part", "own_tools/deep/part.py"),
    "what a package runs first": ("import own_tools.deep.part", "own_tools/__init__.py"),
    "relative": ("import own_tools", "own_tools/beside.py"),
    "by its name": ("import importlib\nimportlib.import_module('own_helper')", "own_helper.py"),
    "at second hand": ("import own_helper", "own_second.py"),
    "itself": ("import math", "own.py"),
}
"""Statement in a user's module, and the file whose change must be seen."""
FILES = {
    "own_helper.py": "import own_second\nx = 1\n",
    "own_second.py": "y = 1\n",
    "own_tools/__init__.py": "from . import beside\nfrom .beside import z\n",
    "own_tools/beside.py": "z = 1\n",
    "own_tools/above.py": "z = 1\n",
    "own_tools/deep/__init__.py": "",
    "own_tools/deep/part.py": "from .. import above\n",
    "own_unrelated.py": "z = 1\n",
}


def forget() -> None:
    """As in a new process."""
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("own")]:
        del sys.modules[name]
    source._known.clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a user's modules lie."""
    for name, content in FILES.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.syspath_prepend(tmp_path / "mine")
    return tmp_path / "mine"


def digest() -> str | None:
    """Digest of the user's module, as a new process computes it."""
    forget()
    source.import_module("own")
    return source.of_module("own")


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


METHOD = """
from dataclasses import dataclass
from fkl.algorithms.online.learners import Raker
from own_rate import FACTOR

@dataclass(frozen=True)
class Own(Raker):
    def rates(self, rounds):
        return FACTOR * super().rates(rounds)
"""


def test_one_process_runs_a_method_as_it_is_now(fkl: Callable[..., Answer], folder: Path) -> None:
    """With a helper edited in between: two runs with different numbers; edited back: the first again."""
    (folder / "own_method.py").write_text(METHOD)
    said = []
    for factor in (1.0, 1.0, 0.001, 1.0):
        (folder / "own_rate.py").write_text(f"FACTOR = {factor}\n")
        said.append(fkl("run", *SMALL, "partition=stream", "algo=raker", "algo._target_=own_method.Own").out)
    assert ["finished already" in out for out in said] == [False, True, False, True]
    errors = {line for out in said for line in out.splitlines() if line.startswith("  error")}
    assert len(errors) == 2


def test_a_change_in_fkl_s_source_is_seen_but_not_in_what_only_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = tmp_path / "fkl"
    shutil.copytree(source.PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    monkeypatch.setattr(source, "PACKAGE", copied)

    def of_copy() -> str:
        return source.of_fkl.__wrapped__()

    for name in source.SHOWS_OR_STARTS:
        for file in [copied / name] if name.endswith(".py") else sorted((copied / name).rglob("*.py")):
            file.write_text("changed\n")
    for file in (copied / "kernels").glob("*.py"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert of_copy() == source.of_fkl()
    for name in ("kernels/compiled.py", "data/csv_file.py"):
        before = of_copy()
        with (copied / name).open("a") as text:
            text.write("\nX = 1\n")
        assert of_copy() != before
