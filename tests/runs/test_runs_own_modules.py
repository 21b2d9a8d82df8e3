"""What Python finds in the working directory: a user's own modules where a class is looked up, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

TELL = "from pathlib import Path\nPath(__file__).with_name('ran').write_text(__name__)\n"
"""A module that leaves a file when it is run."""
OWN = """
from dataclasses import dataclass

from fkl.algorithms.federated.pof_mkl import PofMkl
from helper import LABEL


@dataclass(frozen=True)
class Mine(PofMkl):
    label = LABEL
"""
SMALL = ("dataset=diabetes", "kernels.D=8", "kernels.N=5", "replicates=1")
MINE = (*SMALL, "algo._target_=mine.Mine")


def call(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """`fkl` in a process of its own, without the working directory that `python -m` itself would look in."""
    package = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": package, "PYTHONSAFEPATH": ""}
    command = [sys.executable, "-P", "-m", "fkl", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def own(folder: Path) -> None:
    """Write a method of a user's own that imports another module beside it."""
    (folder / "mine.py").write_text(OWN)
    (folder / "helper.py").write_text("LABEL = 'My method'\n")


def test_a_module_that_nobody_named_does_not_run(tmp_path: Path) -> None:
    """Neither as a plugin of Hydra's, nor as a library that is not installed, nor as one that is."""
    for name in ("hydra_plugins/evil", "hydra_plugins/deep/__init__", "bottleneck", "colorlog", "site"):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TELL)
    answer = call(tmp_path, "run", *SMALL, "algo.nope=1")
    assert answer.returncode == 2 and "algo.nope: no such key" in answer.stderr
    assert list(tmp_path.rglob("ran")) == []


def test_a_method_may_import_its_neighbours_and_what_is_installed_goes_before_them(tmp_path: Path) -> None:
    own(tmp_path)
    (tmp_path / "numpy.py").write_text(TELL)
    (tmp_path / "fkl.py").write_text(TELL)
    answer = call(tmp_path, "run", *MINE)
    assert (answer.returncode, "My method on diabetes" in answer.stdout) == (0, True), answer.stderr
    assert list(tmp_path.rglob("ran")) == []
