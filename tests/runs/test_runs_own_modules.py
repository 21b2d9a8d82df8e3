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


def test_what_nobody_named_does_not_run_and_what_is_installed_goes_before_it(tmp_path: Path) -> None:
    """Neither as a plugin of Hydra's, nor as a library, installed or not; a method may import its neighbours."""
    libraries = ("bottleneck", "colorlog", "site", "numpy", "fkl")
    for name in ("hydra_plugins/evil", "hydra_plugins/deep/__init__", *libraries):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TELL)
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "helper.py").write_text("LABEL = 'My method'\n")
    # Without the working directory that `python -m` itself would look in
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONSAFEPATH": ""}
    command = [sys.executable, "-P", "-m", "fkl", "run", *SMALL, "algo._target_=mine.Mine"]
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (answer.returncode, "My method on diabetes" in answer.stdout) == (0, True), answer.stderr
    assert list(tmp_path.rglob("ran")) == []
