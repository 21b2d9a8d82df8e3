"""Sweeps: wherever their jobs run, whatever fails in between, and what they leave to read."""

from pathlib import Path

import pandas as pd
import pytest
from conftest import SMALL, small

from fkl.runs import tables as records
from fkl.runs.tables import TIMING_COLUMNS

SWEEP = ("run", "-m", *SMALL, "algo=pof_mkl,vm_kofl", "kernels.N=5")
THREE = ("run", "-m", *SMALL, "kernels.N=5", "algo.eta=0.1,-1,0.2")


def jobs(folder: Path) -> pd.DataFrame:
    """The closing list of the one sweep in a folder."""
    [file] = folder.glob("outputs/sweeps/*/jobs.csv")
    return pd.read_csv(file, keep_default_na=False)


def contents(folder: Path) -> dict[str, str]:
    """All tables of all runs, without the columns of time."""
    tables = {}
    for file in sorted(folder.glob("runs/*/*.csv")):
        table = pd.read_csv(file, dtype=str).drop(columns=list(TIMING_COLUMNS), errors="ignore")
        tables[str(file.relative_to(folder))] = table.to_csv()
    return tables


JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [JOBLIB, ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=10")])
def test_results_do_not_depend_on_who_runs_the_jobs(fkl, tmp_path, launcher):
    assert fkl(*SWEEP, "paths.outputs=serial").code == 0
    answer = fkl(*SWEEP, "paths.outputs=workers", *launcher)
    assert answer.code == 0, answer.err
    assert "2 runs: 2 finished" in answer.out
    assert len(contents(tmp_path / "serial")) == 6
    assert contents(tmp_path / "workers") == contents(tmp_path / "serial")


KILLER = """
import os
from dataclasses import dataclass

@dataclass
class Killer:
    def begin(self, run):
        if run.settings.seed == 1:
            os.kill(os.getpid(), 9)
    def round(self, t, replicates, metrics): ...
    def end(self, folder, summary): ...
    def fail(self, why): ...
"""
"""A logger that takes the process of one job away, as the kernel does where memory is short."""
KILLED = "its process was killed (signal 9; out of memory?)"


def test_a_job_whose_process_is_killed_fails_alone(fkl, tmp_path):
    """Each time, here as two jobs of the same run; the sweep plays the others, names what failed, and ends with 2."""
    (tmp_path / "killer.py").write_text(KILLER)
    sweep = ("run", "-m", *SMALL, "kernels.N=5", "seed=0,1,1,2", "figures=none", *JOBLIB)
    answer = fkl(*sweep, "+logger.killer._target_=killer.Killer")
    assert "4 runs: 2 finished, 2 failed" in answer.out and answer.code == 2, answer.err
    table = jobs(tmp_path)
    assert table["state"].tolist() == ["finished", "failed", "failed", "finished"]
    assert table["message"][1].startswith(KILLED)
    assert f"2 failed, for example: seed=1, 2 of 2: {KILLED}" in answer.err
    assert f"FklError: {KILLED}" in (tmp_path / table["folder"][1] / "error.txt").read_text()


def test_a_search_is_not_judged_by_test_samples(fkl):
    search = ("run", "-m", *small("dkla"), "hydra/sweeper=optuna", "hydra.sweeper.n_trials=1", "objective=test_mse")
    answer = fkl(*search, "hydra.sweeper.n_jobs=1", "algo.rho=interval(0.001,1)")
    assert answer.code == 2
    assert "algo.fold=None: must be a fold of the training samples" in answer.err


def test_a_sweep_goes_on_past_failures_and_lists_them(fkl, tmp_path):
    """Or, where that is asked for, leaves the rest out."""
    answer = fkl(*THREE)
    assert answer.code == 2
    assert "3 runs: 2 finished, 1 failed" in answer.out
    assert "✗  2/3  " in answer.out
    table = jobs(tmp_path)
    assert table["state"].tolist() == ["finished", "failed", "finished"]
    assert table["message"][1] == "algo.eta=-1.0: must be a number > 0, or null for 1/sqrt(T)"
    assert f"1 failed: algo.eta=-1, 1 of 1: {table['message'][1]} (see {table['folder'][1]})" in answer.err
    assert "BadValue" in (tmp_path / table["folder"][1] / "error.txt").read_text()
    assert "eta: -1" in (tmp_path / table["folder"][1] / "config.yaml").read_text()
    assert all((tmp_path / folder / "summary.csv").exists() for folder in table["folder"][[0, 2]])
    assert "1 finished already, 1 failed, 1 not run" in fkl(*THREE, "--fail-fast").out


def test_an_unexpected_error_leaves_its_traceback_and_is_retried(fkl, tmp_path, monkeypatch):
    def breaks(*_):
        raise RuntimeError("a bug\nof two lines")

    with monkeypatch.context() as patch:
        patch.setattr(records, "_tables_of_chunk", breaks)
        answer = fkl(*SWEEP, "algo=pof_mkl")
    assert answer.code == 2
    assert "RuntimeError: a bug of two lines (see" in answer.err
    [failed] = tmp_path.glob("outputs/failed/*")
    assert "in breaks" in (failed / "error.txt").read_text()
    again = fkl(*SWEEP, "algo=pof_mkl")
    assert again.code == 0
    assert list(tmp_path.glob("outputs/failed/*")) == []
    assert "1 finished already" in fkl(*SWEEP, "algo=pof_mkl").out


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_mistaken_sweep_leaves_every_folder_as_it_was(fkl, tmp_path):
    """Whatever folder it is told to write to, finished runs and the user's own files stay, and nothing is added."""
    assert fkl("run", *SMALL, "kernels.N=5").code == 0
    (tmp_path / "mine").mkdir()
    for name in ("diary.txt", "job-1.json", "plan.json"):
        (tmp_path / "mine" / name).write_text("mine")
    before = files_of(tmp_path)
    for sweep in ("outputs/runs", "mine", "new/deep"):
        answer = fkl("run", "-m", "dataset=diabetes", "algo=pof_mkl,vmkofll", f"hydra.sweep.dir={sweep}")
        assert answer.code == 2 and "vmkofll: no such choice" in answer.err
        assert files_of(tmp_path) == before
        assert not (tmp_path / "new").exists()


def test_two_sweeps_do_not_share_a_folder(fkl, tmp_path):
    """The second is refused while the first is under way; what a killed one has left is taken over."""
    from filelock import FileLock

    (tmp_path / "sweep" / ".fkl-sweep").mkdir(parents=True)
    (tmp_path / "sweep" / ".fkl-sweep" / "job-7.json").write_text("{}")
    (tmp_path / "sweep" / "multirun.yaml").write_text("of the killed one")
    before = files_of(tmp_path)
    with FileLock(tmp_path / "sweep" / ".fkl-sweep.lock"):
        answer = fkl(*SWEEP, "hydra.sweep.dir=sweep")
    assert answer.code == 2 and "sweep: must be a folder in which no other sweep is running" in answer.err
    assert before.items() <= files_of(tmp_path).items()
    assert fkl(*SWEEP, "hydra.sweep.dir=sweep").code == 0
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == ["jobs.csv", "multirun.yaml"]


def test_a_sweep_that_is_interrupted_lists_what_ended(fkl, tmp_path, monkeypatch):
    """Ctrl-C in the second job: the first is in the list, and no notes are left."""
    from fkl.runs import play as module

    execute, calls = module.execute_run, []

    def interrupted(run, draw, progress):
        calls.append(run)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return execute(run, draw, progress)

    monkeypatch.setattr(module, "execute_run", interrupted)
    assert fkl(*SWEEP).code == 130
    assert jobs(tmp_path)["state"].tolist() == ["finished"]
    assert list(tmp_path.glob("outputs/sweeps/*/.*")) == []
