"""Loggers hold what rounds.csv holds, each read by its own library; they change no number and can cost no run."""

import json
import math
import sys
from unittest.mock import MagicMock, call

import numpy as np
import pandas as pd
import pytest
from conftest import SMALL, small

from fkl.basics.errors import install_hint
from fkl.engines import rounds as loop
from fkl.runs import loggers
from fkl.runs.tables import TIMING_COLUMNS

RUN = ("run", *SMALL, "kernels.N=5", "partition.rounds=30", "replicates=3", "chunk=2")


@pytest.fixture
def at_once(monkeypatch):
    """Tell of every round right after it."""
    monkeypatch.setattr(loggers, "EVERY_S", 0.0)
    monkeypatch.setattr(loggers, "SHARE", math.inf)


def by_part(folder, *parts):
    """Means over some replicates of the rounds of a finished run, by the words for these."""
    rounds = pd.read_csv(folder / "rounds.csv")
    chosen = {words: rounds[rounds["replicate"].isin(replicates)] for words, replicates in parts}
    return {words: rows.groupby("round").mean().drop(columns="replicate") for words, rows in chosen.items()}


PARTS = (("replicates 0-1", (0, 1)), ("replicate 2", (2,)))


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def interrupted(fkl, monkeypatch, rounds, *words):
    """Do a run up to an interruption after so many rounds, then the rest of it."""
    kept, calls = loop._save_if_due, []

    def keep(*about):
        kept(*about)
        calls.append(about)
        if len(calls) == rounds:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_save_if_due", keep)
        assert fkl(*words, "checkpoint_s=0").code == 130
    assert fkl(*words).code == 0


@pytest.mark.slow
def test_each_logger_of_an_interrupted_run_has_what_rounds_csv_has(fkl, tmp_path, monkeypatch, at_once):
    from mlflow import MlflowClient
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    interrupted(fkl, monkeypatch, 12, *RUN, "logger=[tensorboard,mlflow]")
    [folder] = tmp_path.glob("outputs/runs/*")
    summary, events = pd.read_csv(folder / "summary.csv").mean(), tmp_path / "outputs/tensorboard" / folder.name
    client = MlflowClient(f"sqlite:///{tmp_path / 'outputs/mlflow.db'}")
    [run] = client.search_runs([client.get_experiment_by_name("fkl").experiment_id])
    assert (run.info.status, run.info.run_name, run.data.params["algo.lam"]) == ("FINISHED", folder.name, "0.001")
    whole = EventAccumulator(str(events)).Reload()
    assert whole.Scalars("summary/mse")[-1].value == pytest.approx(summary["mse"], rel=1e-6)
    assert sorted(whole.Tags()["images"]) == ["mse", "regret"]
    assert run.data.metrics["summary/mse"] == pytest.approx(summary["mse"], rel=1e-9)
    for words, table in by_part(folder, *PARTS).items():
        found = EventAccumulator(str(events / words), size_guidance={"scalars": 0}).Reload()
        assert sorted(found.Tags()["scalars"]) == sorted(table)
        for name in table:
            theirs = [(one.step, one.value) for one in found.Scalars(name)]
            history = client.get_metric_history(run.info.run_id, f"{name}/{words}")
            for points, close in ((theirs, 1e-6), (sorted((one.step, one.value) for one in history), 1e-9)):
                assert [step for step, _ in points] == list(table.index)
                assert [value for _, value in points] == pytest.approx(table[name].tolist(), rel=close)
    kept = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert kept == {file.name for file in folder.iterdir()}


def test_a_tracker_is_told_what_rounds_csv_has(fkl, tmp_path, monkeypatch):
    """A curve for each part of the replicates, the summary, and files where there is room; or why a run ended."""
    theirs = MagicMock()
    run, files = theirs.init.return_value, tmp_path / "theirs" / "fkl"
    run.dir, run.summary = str(files.parent), {}
    monkeypatch.setitem(sys.modules, "wandb", theirs)
    assert fkl(*RUN, "logger=wandb").code == 0
    [folder] = tmp_path.glob("outputs/runs/*")
    given, told = theirs.init.call_args.kwargs, [one.args[0] for one in run.log.mock_calls]
    assert [given[key] for key in ("project", "name", "group")] == ["fkl", folder.name, folder.name]
    assert given["config"]["algo"]["lam"] == 0.001
    for words, table in by_part(folder, *PARTS).items():
        rounds = [one for one in told if f"mse/{words}" in one]
        assert [one["round"] for one in rounds] == table.index.tolist()
        for column in table:
            assert [one[f"{column}/{words}"] for one in rounds] == pytest.approx(table[column].tolist(), rel=1e-9)
    assert run.summary["summary/mse"] == pytest.approx(pd.read_csv(folder / "summary.csv")["mse"].mean(), rel=1e-9)
    assert fkl(*RUN, "algo.eta=1e30", "chunk=1", "logger=wandb").code == 2
    assert run.summary["fkl.error"].startswith("POF-MKL diverged in round ")
    assert {file.name for file in files.iterdir()} == {file.name for file in folder.iterdir()}
    run.save.assert_called_once_with(f"{files}/*", base_path=str(files.parent), policy="now")
    assert run.finish.mock_calls == [call(exit_code=0), call(exit_code=1)]


@pytest.mark.parametrize("algo", ["pof_mkl", "coke", "fdskl"])
def test_what_is_logged_as_it_goes_is_what_a_run_without_loggers_records(fkl, tmp_path, monkeypatch, at_once, algo):
    """Of a method of each kind of task, under the same digest."""
    words = ("run", *small(algo), f"algo={algo}")
    assert fkl(*words, "logger=jsonl", "paths.outputs=live").code == 0
    assert fkl(*words, "paths.outputs=plain").code == 0
    [plain] = tmp_path.glob("plain/runs/*")
    for name in ("rounds", "clients", "summary"):
        one, other = (pd.read_csv(tmp_path / of / "runs" / plain.name / f"{name}.csv") for of in ("live", "plain"))
        kept = [column for column in one if column not in TIMING_COLUMNS]
        pd.testing.assert_frame_equal(one[kept], other[kept], check_exact=True)
    logged = {}
    for event in lines(tmp_path / "live" / "logs" / f"{plain.name}.jsonl"):
        if event["event"] == "round":
            logged.setdefault(tuple(event["replicates"]), {})[event["round"]] = event["metrics"]
    for (first, last), rounds in logged.items():
        found = pd.DataFrame.from_dict(rounds, "index")
        [table] = by_part(plain, ("", range(first, last + 1))).values()
        there = [name for name in table if name not in TIMING_COLUMNS and table[name].notna().all()]
        np.testing.assert_allclose(found[there], table[there], rtol=1e-8, atol=1e-9 * table[there].abs().max().max())
        assert [*found.index] == [*table.index]


OWN = """
import time
from dataclasses import dataclass

@dataclass
class Mine:
    def begin(self, run):
        self.told = [f"begin {run.algo.label}"]

    def round(self, t, replicates, metrics):
        self.told.append(f"{t} {list(replicates)} {metrics['mse']:.3f}")

    def end(self, folder, summary):
        open("mine.txt", "w").write("\\n".join([*self.told, f"{summary['mse']:.3f}"]))

    def fail(self, why):
        open("mine.txt", "w").write(why)

class Breaks(Mine):
    def round(self, t, replicates, metrics):
        raise ConnectionError("nobody\\nthere")

@dataclass
class Hangs(Mine):
    at: str

    def __getattribute__(self, method):
        while method == object.__getattribute__(self, "at"):
            time.sleep(1)
        return object.__getattribute__(self, method)
"""


def test_a_logger_of_one_s_own_and_one_that_breaks(fkl, tmp_path):
    """It is said in one line, and the run and the other logger go on."""
    (tmp_path / "own_logger.py").write_text(OWN)
    own = ("+logger.mine._target_=own_logger.Mine", "+logger.worse._target_=own_logger.Breaks")
    answer = fkl(*RUN, "chunk=null", *own)
    assert answer.code == 0
    said = [line[line.index("warning: ") :] for line in answer.err.splitlines() if "warning: " in line]
    told = "warning: logger.worse is not called again: own_logger.py, line 21: ConnectionError: nobody there"
    assert said == [told]
    [folder] = tmp_path.glob("outputs/runs/*")
    table = by_part(folder, ("all", (0, 1, 2)))["all"]
    expected = [f"{t} [0, 1, 2] {mse:.3f}" for t, mse in table["mse"].items()]
    last = f"{pd.read_csv(folder / 'summary.csv')['mse'].mean():.3f}"
    assert (tmp_path / "mine.txt").read_text().splitlines() == ["begin POF-MKL", *expected, last]


@pytest.mark.parametrize("at", ["round", "fail"])
def test_a_logger_that_does_not_come_back_holds_up_no_run(fkl, tmp_path, monkeypatch, at):
    """As one whose server does not answer; another logger goes on."""
    monkeypatch.setattr(loggers, "LIMIT_S", dict.fromkeys(loggers.LIMIT_S, 60.0) | {at: 1.0})
    (tmp_path / "own_logger.py").write_text(OWN)
    own = ("+logger.mine._target_=own_logger.Mine", "+logger.lost._target_=own_logger.Hangs", f"+logger.lost.at={at}")
    answer = fkl(*RUN, *own, *(["algo.eta=1e30"] if at == "fail" else []))
    assert answer.code == (2 if at == "fail" else 0), answer.err
    assert answer.err.count("is not called again") == 1
    assert "warning: logger.lost is not called again: TimeoutError: no answer in 1 s\n" in answer.err
    assert (tmp_path / "mine.txt").exists()


def test_a_log_goes_on_after_an_interruption_and_is_made_anew_with_its_run(fkl, tmp_path, monkeypatch, at_once):
    """But for the line that says so, and the columns of time, it is as without; a line that was cut off is mended."""
    words, file = (*RUN, "logger=jsonl", "logger.jsonl.file=log"), tmp_path / "log"
    interrupted(fkl, monkeypatch, 12, *words, "out=twice")
    went_on = [event for event in lines(file) if event["event"] != "fail"]
    log = file.read_bytes().splitlines(keepends=True)
    for number, left in enumerate((b"".join(log[:9]) + b'{"event": "rou', log[0][:20], b"".join(log))):
        file.write_bytes(left)
        assert fkl(*words, f"out={number}").code == 0
        assert lines(file)[:-1] == went_on[:-1]


def test_a_file_that_is_not_the_run_s_log_stays_as_it_is(fkl, tmp_path):
    (tmp_path / "diary.txt").write_text("mine\n")
    answer = fkl(*RUN, "logger=jsonl", "logger.jsonl.file=diary.txt")
    assert answer.code == 0
    assert "warning: logger.jsonl is not called again: FklError: diary.txt: not a log of this run" in answer.err
    assert (tmp_path / "diary.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("word", "missing", "said"),
    [
        ("+logger.x._target_=fkl.config.settings.Paths", "", "must be a class for logger.x: this one has no begin,"),
        ("logger=tensorboard", "tensorboardX", f"tensorboardX, which comes with {install_hint('tensorboard')}"),
        ("logger=wandb", "wandb", "logger=wandb: needs wandb\n  help: pip install wandb"),
    ],
)
def test_what_is_no_logger_or_not_installed_is_refused(fkl, tmp_path, monkeypatch, word, missing, said):
    monkeypatch.setitem(sys.modules, missing, None)
    answer = fkl("run", *SMALL, word)
    assert answer.code == 2 and answer.err.startswith("error: ") and said in answer.err
    assert list(tmp_path.iterdir()) == []
