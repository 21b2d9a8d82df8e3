"""A run that is killed leaves nothing that looks finished; the same command completes it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from conftest import SMALL, Answer

from fkl.results.folder import replacing

LONG = ("run", *SMALL, "kernels.D=400", "replicates=40", "chunk=1", "out=here")


def start(folder: Path) -> "subprocess.Popen[bytes]":
    """A long run in a process of its own."""
    command = [sys.executable, "-m", "fkl.cli", *LONG]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_kill_9_in_the_middle_leaves_nothing_and_the_same_command_completes(tmp_path: Path) -> None:
    """Killed while the bar moves, there is no folder; run again, there is one, and no leftovers."""
    run = start(tmp_path)
    assert run.stderr is not None
    os.set_blocking(run.stderr.fileno(), False)
    seen, deadline = b"", time.monotonic() + 120
    while b"round/s" not in seen and time.monotonic() < deadline:
        seen += run.stderr.read() or b""
        time.sleep(0.01)
    assert run.poll() is None, "the run ended before it could be killed"
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert list(tmp_path.iterdir()) == []
    again = start(tmp_path)
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert len(pd.read_csv(tmp_path / "here" / "summary.csv")) == 40


def test_killed_while_writing_the_files_are_not_in_the_run_s_folder(tmp_path: Path) -> None:
    """A process that dies inside the writing leaves only a hidden partial folder, which the next writer removes."""
    child = "import os, sys; from pathlib import Path; from fkl.results.folder import replacing\n"
    child += "with replacing(Path(sys.argv[1])) as f: (f / 'summary.csv').write_text('half'); os.kill(os.getpid(), 9)"
    folder = tmp_path / "run"
    dead = subprocess.run([sys.executable, "-c", child, str(folder)], check=False)
    assert dead.returncode == -signal.SIGKILL
    assert not folder.exists()
    assert [path.name.startswith(".run.partial-") for path in tmp_path.iterdir()] == [True]
    with replacing(folder) as partial:
        (partial / "summary.csv").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (folder / "summary.csv").read_text() == "whole"


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    """The partial folder goes with the error."""
    with pytest.raises(RuntimeError), replacing(tmp_path / "run") as partial:
        (partial / "summary.csv").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_run_of_two_processes_is_kept_from_the_faster_one(
    fkl: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The slower one, which began before there was a folder, leaves it as it is; a different run is still refused."""
    assert fkl("run", *SMALL, "out=here").code == 0
    before = {path.name: path.stat().st_mtime_ns for path in Path("here").iterdir()}
    monkeypatch.setattr("fkl.run.finished", lambda run: False)  # as it was when it began
    answer = fkl("run", *SMALL, "out=here", f"seed={seed}")
    assert (answer.code, "out=here: must be a new or empty folder" in answer.err) == ((0, False), (2, True))[seed]
    assert {path.name: path.stat().st_mtime_ns for path in Path("here").iterdir()} == before
    assert [path.name for path in Path().glob(".*")] == []
