"""A run that is killed at any moment goes on from its last checkpoint to the same files, byte for byte."""

import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from fkl.results.checkpoint import Checkpoint
from fkl.results.records import TIMING_COLUMNS

KILLS = 10
LONG = ("run", "dataset=synthetic", "partition.clients=3", "kernels.D=100", "replicates=20", "chunk=2")


def start(folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "fkl.cli", *LONG, *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def stamp(file: Path) -> int:
    """When the file was written; 0 where there is none."""
    return file.stat().st_mtime_ns if file.exists() else 0


def tables(folder: Path) -> dict[str, str]:
    """The three CSVs without the columns of time."""
    read = {name: pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("rounds", "clients", "summary")}
    return {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore").to_csv() for name, table in read.items()}


@pytest.mark.slow
def test_killed_at_ten_random_moments_the_files_are_the_same(tmp_path: Path) -> None:
    whole = start(tmp_path, "out=whole", "checkpoint_s=null")
    assert whole.communicate(timeout=300)[1] is not None
    assert whole.returncode == 0
    moments = random.Random(0)
    file = tmp_path / ".killed.checkpoint"
    for _ in range(KILLS):
        before = stamp(file)
        run = start(tmp_path, "out=killed", "checkpoint_s=0.01")
        while stamp(file) == before and run.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.2))
        assert run.poll() is None, "the run ended before it could be killed: make it longer"
        run.send_signal(signal.SIGKILL)
        run.communicate()
        assert file.exists()
        assert not (tmp_path / "killed").exists()
    again = start(tmp_path, "out=killed")
    _, errors = again.communicate(timeout=300)
    assert again.returncode == 0, errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "whole"]
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")


def test_a_damaged_or_foreign_checkpoint_is_not_read(tmp_path: Path) -> None:
    mine = Checkpoint(tmp_path / "file", 0, "mine")
    assert mine.place() is None
    mine.save((1, 2), {"t": 3}, {})
    assert (mine.place(), mine.load(None)) == ((1, 2), {"t": 3})
    assert Checkpoint(tmp_path / "file", 0, "another").place() is None
    whole = mine.file.read_bytes()
    mine.file.write_bytes(whole[:-4])
    assert mine.load(None) is None
    mine.file.write_bytes(b"garbage")
    assert mine.place() is None
    mine.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_the_reader_has_is_written_by_name(tmp_path: Path) -> None:
    owner = SimpleNamespace(data=list(range(100000)))
    checkpoint = Checkpoint(tmp_path / "file", 0, "digest")
    checkpoint.save(None, {"data": owner.data}, vars(owner))
    assert checkpoint.file.stat().st_size < 1000
    assert checkpoint.load(owner)["data"] is owner.data


def test_a_state_that_cannot_be_pickled_is_told_once_and_costs_the_run_nothing(tmp_path, capsys) -> None:
    checkpoint = Checkpoint(tmp_path / "file", 0, "digest")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(lambda: 0)
    checkpoint.save(None, lambda: 0, {})
    assert not checkpoint.due
    assert "no checkpoints" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
