"""Every command of README runs; long ones are made small by more words."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Answer
from published_files import DATA, need_data

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [*dict.fromkeys(re.findall(r"(?:^    \$ |`)(fkl [a-z][^`\n]*)", README, re.MULTILINE))]
SMALL = ("dataset=diabetes", "kernels.D=4", "replicates=2")
MORE = {
    "fkl run": SMALL,
    "fkl run -m": ("algo.eta=0.1", *SMALL),
    "fkl study": ("--dry-run",),
    "fkl run dataset=file": ("kernels.D=4", "replicates=1"),
    "fkl run --config-dir": ("kernels.D=4", "replicates=1"),
}
"""Words that make a command small: those of the longest beginning that fits."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that README's reader has."""
    rows = [f"{i % 7},{i % 5},{i % 3 + i / 100}" for i in range(120)]
    (tmp_path / "mine.csv").write_text("\n".join(["size,age,price", *rows]))
    shutil.copytree(ROOT / "examples" / "own_method", tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples" / "studies", tmp_path / "examples" / "studies")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("here")
def test_commands_of_readme_run(command: str, fkl: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(command)[1:]
    if words[0] == "study":
        for name in ("naval", "energy", "bias"):
            need_data(name)
        monkeypatch.setenv("FKL_DATA", str(DATA))
    if words[0] == "compare":
        assert fkl("run", "-m", "algo=raker,rfomkr", "partition=stream", *SMALL).code == 0
    more = next((MORE[name] for name in sorted(MORE, key=len, reverse=True) if command.startswith(name)), ())
    answer = fkl(*words, *more)
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("target", re.findall(r"`?make ([a-z-]+)", README))
def test_targets_of_readme_exist(target: str) -> None:
    assert subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=False).returncode == 0
