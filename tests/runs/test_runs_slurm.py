"""Sweeps on a real Slurm, where its programs are installed; see `slurm`."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from conftest import SMALL, Answer
from processes import Command
from slurm import MISSING, slurm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs Slurm with its accounting: no {', '.join(MISSING)}"),
]
SLURM = ("hydra/launcher=submitit_slurm", "hydra.launcher.partition=cpu", "hydra.launcher.timeout_min=9")
SWEEP = ("run", "-m", *SMALL, "kernels.N=5", "figures=none", "checkpoint_s=0", "seed=0,1,2,3", "hydra.sweep.dir=sweep")
WAITS = """
import time
from dataclasses import dataclass
from pathlib import Path

@dataclass
class Waits:
    def begin(self, run):
        self.here = Path(f"playing-{run.settings.seed}")

    def round(self, t, replicates, metrics):
        self.here.touch()
        while not Path("go").exists():
            time.sleep(0.1)

    def end(self, folder, summary): ...
    def fail(self, why): ...
"""
"""A logger that holds a job until the test has done something to it."""


@pytest.fixture(autouse=True)
def _slurm(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with slurm(tmp_path_factory.mktemp("slurm")) as config:
        monkeypatch.setenv("SLURM_CONF", str(config))
        yield


def _said(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def _wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.2)
    raise AssertionError("not in 2 minutes")


def _running() -> list[str]:
    """Jobs that Slurm has started and that have not ended, by their number."""
    return sorted(_said("squeue", "--noheader", "--format=%i", "--states=RUNNING,COMPLETING"))


def test_a_cancelled_job_fails_alone_and_a_requeued_one_is_played(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """The sweep plays the others and ends with 2; the same command plays what is missing, with the numbers of here."""
    assert fkl(*SWEEP, "paths.outputs=serial", "hydra.sweep.dir=serial").code == 0
    (tmp_path / "waits.py").write_text(WAITS)
    sweep = Command(tmp_path, *SWEEP, *SLURM, "+logger.waits._target_=waits.Waits")
    _wait_until(lambda: len([*tmp_path.glob("playing-[01]")]) == 2)
    first, second = _running()
    _said("scancel", first)
    _said("scontrol", "requeue", second)
    _wait_until(lambda: not {first, second} & {*_running()})
    (tmp_path / "go").touch()
    answer = sweep.wait()
    table = pd.read_csv(tmp_path / "sweep" / "jobs.csv", keep_default_na=False)
    assert (answer.code, table["state"].tolist()) == (2, ["failed", "finished", "finished", "finished"]), answer.err
    assert table["message"][0].startswith("its process ended without a result (state: CANCELLED")
    assert "1 failed: seed=0, 1 of 1: " in answer.err and "Traceback" not in answer.err
    again = fkl(*SWEEP, *SLURM)
    assert again.code == 0 and "4 runs: 3 finished already, 1 finished" in again.out
    for folder in (tmp_path / "serial" / "runs").iterdir():
        for name in ("rounds.csv", "clients.csv"):
            assert (tmp_path / "outputs/runs" / folder.name / name).read_bytes() == (folder / name).read_bytes()
