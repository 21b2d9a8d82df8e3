"""Loggers hold what rounds.csv holds, each read by its own library; they change no number and can cost no run."""

import json
import math
import os
import sqlite3
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from conftest import SMALL, small

from fkl.basics.errors import install_hint
from fkl.config.compose import compose
from fkl.config.loading import load
from fkl.engines import rounds as loop
from fkl.runs import loggers
from fkl.runs.tables import TIMING_COLUMNS

RUN = ("run", *SMALL, "kernels.N=5", "partition.rounds=30", "replicates=3", "chunk=2")


@pytest.fixture
def at_once(monkeypatch):
    """Tell of every round right after it."""
    monkeypatch.setattr(loggers, "EVERY_S", 0.0)
    monkeypatch.setattr(loggers, "SHARE", math.inf)


def tables(folder):
    """Tables of a run without the columns of time."""
    read = {name: pd.read_csv(folder / f"{name}.csv") for name in ("rounds", "clients", "summary")}
    return {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore").to_csv() for name, table in read.items()}


def by_part(folder, *parts):
    """Means over some replicates of the rounds of a finished run, by the words for these."""
    rounds = pd.read_csv(folder / "rounds.csv")
    chosen = {words: rounds[rounds["replicate"].isin(replicates)] for words, replicates in parts}
    return {words: rows.groupby("round").mean().drop(columns="replicate") for words, rows in chosen.items()}


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def of_json(file):
    found = {}
    for event in lines(file):
        if event["event"] == "round":
            found.setdefault(tuple(event["replicates"]), {})[event["round"]] = event["metrics"]
    return {part: pd.DataFrame.from_dict(rounds, "index") for part, rounds in found.items()}


def interrupted(fkl, monkeypatch, rounds, *words):
    """Do a run up to an interruption after so many rounds, then the rest of it."""
    kept = loop._save_if_due
    calls = []

    def keep(*about):
        kept(*about)
        calls.append(about)
        if len(calls) == rounds:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_save_if_due", keep)
        assert fkl(*words, "checkpoint_s=0").code == 130
    answer = fkl(*words)
    assert (answer.code, answer.err.count("fkl:")) == (0, 0), answer.err


@pytest.mark.slow
def test_each_logger_of_an_interrupted_run_has_what_rounds_csv_has(fkl, tmp_path, monkeypatch, at_once):
    from mlflow import MlflowClient
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    interrupted(fkl, monkeypatch, 45, *RUN, "logger=[jsonl,tensorboard,mlflow]")
    [folder] = tmp_path.glob("outputs/runs/*")
    parts = by_part(folder, ("replicates 0-1", (0, 1)), ("replicate 2", (2,)))
    summary = pd.read_csv(folder / "summary.csv").mean()

    logged = of_json(tmp_path / f"outputs/logs/{folder.name}.jsonl")
    for part, table in zip(((0, 1), (2, 2)), parts.values(), strict=True):
        pd.testing.assert_frame_equal(logged[part], table, check_names=False, check_dtype=False, rtol=1e-9)

    events = tmp_path / "outputs/tensorboard" / folder.name
    for words, table in parts.items():
        found = EventAccumulator(str(events / words), size_guidance={"scalars": 0}).Reload()
        assert sorted(found.Tags()["scalars"]) == sorted(table)
        for name in table:
            points = found.Scalars(name)
            assert [point.step for point in points] == list(table.index)
            assert [point.value for point in points] == pytest.approx(table[name].tolist(), rel=1e-6)
    whole = EventAccumulator(str(events)).Reload()
    assert whole.Scalars("summary/mse")[-1].value == pytest.approx(summary["mse"], rel=1e-6)
    assert sorted(whole.Tags()["images"]) == ["mse", "regret"]

    client = MlflowClient(f"sqlite:///{tmp_path / 'outputs/mlflow.db'}")
    [run] = client.search_runs([client.get_experiment_by_name("fkl").experiment_id])
    assert (run.info.status, run.info.run_name) == ("FINISHED", folder.name)
    assert run.data.params["algo.lam"] == "0.001"
    assert run.data.metrics["summary/mse"] == pytest.approx(summary["mse"], rel=1e-9)
    for words, table in parts.items():
        for name in table:
            points = sorted(
                (one.step, one.value) for one in client.get_metric_history(run.info.run_id, f"{name}/{words}")
            )
            assert [step for step, _ in points] == list(table.index)
            assert [value for _, value in points] == pytest.approx(table[name].tolist(), rel=1e-9)
    kept = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert kept == {file.name for file in folder.iterdir()}


class Theirs:
    """A run of Weights & Biases or of Trackio that keeps what it is told."""

    def __init__(self, **given):
        self.given, self.dir = given, str(given.get("dir", ""))
        self.rounds, self.summary, self.saved, self.ended = [], {}, [], []

    def log(self, metrics, step=None):
        """Keep a round."""
        self.rounds.append(metrics if step is None else {"round": step, **metrics})

    def define_metric(self, *about, **more):
        """Rounds are the axis of all curves."""
        assert (about, more) == (("*",), {"step_metric": "round"})

    def save(self, pattern, base_path, policy):
        """Keep the names of files."""
        self.saved += sorted(file.name for file in Path(base_path).glob(str(Path(pattern).relative_to(base_path))))

    def finish(self, exit_code=0):
        """Keep how it ended."""
        self.ended.append(exit_code)


@pytest.fixture
def theirs(monkeypatch):
    """Stand-ins for wandb and trackio, and the runs that were made with them."""
    made = []

    def init(**given):
        made.append(Theirs(**given))
        return made[-1]

    for name in ("wandb", "trackio"):
        fake = ModuleType(name)
        fake.init, fake.Settings, fake.finish = init, dict, lambda: made[-1].finish()
        monkeypatch.setitem(sys.modules, name, fake)
    return made


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_stand_in_for_a_tracker_has_what_rounds_csv_has(fkl, tmp_path, theirs, name):
    """Each part of the replicates has a curve; at the end come the summary and, where there is room for them, files."""
    assert fkl(*RUN, f"logger={name}").code == 0
    [folder], [run] = tmp_path.glob("outputs/runs/*"), theirs
    about = {key: run.given[key] for key in ("project", "name", "group")}
    assert about == {"project": "fkl", "name": folder.name, "group": folder.name}
    assert run.given["config"]["algo"]["lam"] == 0.001
    assert run.given.get("mode", "offline") == "offline"
    for words, table in by_part(folder, ("replicates 0-1", (0, 1)), ("replicate 2", (2,))).items():
        told = [one for one in run.rounds if f"mse/{words}" in one]
        assert [one["round"] for one in told] == table.index.tolist()
        for column in table:
            values = [one[f"{column}/{words}"] for one in told]
            assert values == pytest.approx(table[column].tolist(), rel=1e-9)
    summary = run.summary or run.rounds[-1]
    assert summary["summary/mse"] == pytest.approx(pd.read_csv(folder / "summary.csv")["mse"].mean(), rel=1e-9)
    assert run.saved == (sorted(file.name for file in folder.iterdir()) if name == "wandb" else [])
    assert run.ended == [0]


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_stand_in_for_a_tracker_hears_why_a_run_ended(fkl, theirs, name):
    assert fkl(*RUN, "algo.eta=1e30", "chunk=1", f"logger={name}").code == 2
    [run] = theirs
    said = (run.summary or run.rounds[-1])["fkl.error"]
    assert said.startswith("POF-MKL diverged in round ")
    assert run.ended == [1 if name == "wandb" else 0]


@pytest.mark.slow
def test_weights_and_biases_itself_works_offline(fkl, tmp_path, monkeypatch):
    """Where it is installed, which no extra of fkl asks for."""
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    answer = fkl(*RUN, "logger=wandb")
    assert (answer.code, "warning" in answer.err) == (0, False), answer.err
    [folder], [kept] = tmp_path.glob("outputs/runs/*"), tmp_path.glob("outputs/wandb/offline-run-*")
    assert {file.name for file in (kept / "files" / "fkl").iterdir()} == {file.name for file in folder.iterdir()}
    [log] = kept.glob("*.wandb")
    written = log.read_bytes()
    assert all(words in written for words in (b"mse/replicates 0-1", b"mse/replicate 2", b"summary/mse"))


@pytest.mark.slow
def test_trackio_itself_works_without_a_server(fkl, tmp_path, monkeypatch):
    """Where it is installed, which no extra of fkl asks for."""
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    answer = fkl(*RUN, "logger=trackio")
    assert (answer.code, "rackio" in answer.out + answer.err) == (0, False), answer.err
    with closing(sqlite3.connect(tmp_path / "trackio" / "fkl.db")) as store:
        told = [json.loads(row) for (row,) in store.execute("SELECT metrics FROM metrics ORDER BY id")]
    assert sum("mse/replicates 0-1" in one for one in told) == sum("mse/replicate 2" in one for one in told) == 30
    assert "summary/mse" in told[-1]


@pytest.mark.parametrize("algo", ["pof_mkl", "coke", "fdskl"])
def test_what_is_logged_as_it_goes_is_what_a_run_without_loggers_records(fkl, tmp_path, monkeypatch, at_once, algo):
    """Of a method of each kind of task, under the same digest."""
    words, moments = ("run", *small(algo), f"algo={algo}"), []
    logs = loggers.Loggers.log

    def log(self, chunk, done):
        moments.append(done)
        logs(self, chunk, done)

    monkeypatch.setattr(loggers.Loggers, "log", log)
    assert fkl(*words, "logger=jsonl", "paths.outputs=live").code == 0
    assert moments[0] < moments[-1]
    assert fkl(*words, "paths.outputs=plain").code == 0
    [plain] = tmp_path.glob("plain/runs/*")
    assert tables(plain) == tables(tmp_path / "live" / "runs" / plain.name)
    logged = of_json(tmp_path / "live" / "logs" / f"{plain.name}.jsonl")
    parts = by_part(plain, *((part, range(part[0], part[1] + 1)) for part in logged))
    rounds = pd.read_csv(plain / "rounds.csv")
    for part, table in parts.items():
        there = [name for name in table if name not in TIMING_COLUMNS and table[name].notna().all()]
        # rounds.csv has ten digits of each replicate: their mean, which may be near 0, is known to those of the largest
        largest = rounds[rounds["replicate"].between(*part)].groupby("round")[there].agg(lambda one: one.abs().max())
        assert logged[part].index.tolist() == table.index.tolist() == largest.index.tolist()
        off = np.abs(logged[part][there].to_numpy() - table[there].to_numpy())
        assert (off <= 1e-9 * largest.to_numpy()).all()


OWN = """
from dataclasses import dataclass

@dataclass
class Mine:
    file: str = "mine.txt"

    def begin(self, run):
        self.told = [f"begin {run.algo.label}"]

    def round(self, t, replicates, metrics):
        self.told.append(f"{t} {list(replicates)} {metrics['mse']:.3f}")

    def end(self, folder, summary):
        open(self.file, "w").write("\\n".join([*self.told, f"{summary['mse']:.3f}"]))

    def fail(self, why):
        open(self.file, "w").write(why)

class Breaks(Mine):
    def round(self, t, replicates, metrics):
        raise ConnectionError("nobody\\nthere")
"""


def test_a_logger_of_one_s_own_and_one_that_breaks(fkl, tmp_path):
    """It is said in one line, and the run and the other logger go on."""
    (tmp_path / "own_logger.py").write_text(OWN)
    own = ("+logger.mine._target_=own_logger.Mine", "+logger.worse._target_=own_logger.Breaks")
    answer = fkl(*RUN, "chunk=null", *own)
    assert answer.code == 0
    said = [line for line in answer.err.splitlines() if "warning: " in line]
    assert [line[line.index("warning: ") :] for line in said] == [
        "warning: logger.worse gets no more of this run: own_logger.py, line 22: ConnectionError: nobody there"
    ]
    [folder] = tmp_path.glob("outputs/runs/*")
    table = by_part(folder, ("all", (0, 1, 2)))["all"]
    expected = [f"{t} [0, 1, 2] {mse:.3f}" for t, mse in table["mse"].items()]
    last = f"{pd.read_csv(folder / 'summary.csv')['mse'].mean():.3f}"
    assert (tmp_path / "mine.txt").read_text().splitlines() == ["begin POF-MKL", *expected, last]


HANGS = """
import time
from dataclasses import dataclass

@dataclass
class Hangs:
    at: str

    def begin(self, run):
        self.wait("begin")

    def round(self, t, replicates, metrics):
        self.wait("round")

    def end(self, folder, summary):
        self.wait("end")

    def fail(self, why):
        self.wait("fail")

    def wait(self, method):
        while method == self.at:
            time.sleep(1)
"""


@pytest.mark.parametrize("at", ["begin", "round", "end", "fail"])
def test_a_logger_that_does_not_come_back_holds_up_no_run(fkl, tmp_path, monkeypatch, at):
    """As one whose server does not answer; another logger goes on."""
    monkeypatch.setattr(loggers, "LIMIT_S", dict.fromkeys(loggers.LIMIT_S, 60.0) | {at: 1.0})
    (tmp_path / "own_logger.py").write_text(OWN)
    (tmp_path / "hangs.py").write_text(HANGS)
    own = ("+logger.mine._target_=own_logger.Mine", "+logger.lost._target_=hangs.Hangs", f"+logger.lost.at={at}")
    answer = fkl(*RUN, *own, *(["algo.eta=1e30"] if at == "fail" else []))
    assert answer.code == (2 if at == "fail" else 0), answer.err
    assert answer.err.count("gets no more of this run") == 1
    assert "warning: logger.lost gets no more of this run: TimeoutError: no answer in 1 s\n" in answer.err
    assert (tmp_path / "mine.txt").exists()


@pytest.fixture
def busy_server():
    """The address of a server that is always too busy, and the requests that it has got."""
    asked = []

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(503)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.mark.parametrize("by", ["key", "variable"])
def test_an_mlflow_server_that_is_away_is_asked_twice(fkl, monkeypatch, busy_server, by):
    """MLflow alone would ask for minutes. Its address is the key's, or that of MLflow's own variable."""
    address, asked = busy_server
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address if by == "variable" else "http://127.0.0.1:9")
    answer = fkl(*RUN, "logger=mlflow", *([f"logger.mlflow.uri={address}"] if by == "key" else []))
    assert answer.code == 0
    assert answer.err.count("warning: logger.mlflow gets no more of this run: MlflowException: ") == 1
    assert len(asked) == 2
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ


def test_a_database_of_mlflow_that_cannot_be_opened_is_tried_once(fkl, tmp_path):
    (tmp_path / "here.db").mkdir()
    answer = fkl(*RUN, "logger=mlflow", f"logger.mlflow.uri=sqlite:///{tmp_path}/here.db")
    assert answer.code == 0
    assert "warning: logger.mlflow gets no more of this run: OperationalError: " in answer.err
    assert "retried" not in answer.err


def test_mlflow_s_database_is_in_the_outputs_and_says_nothing(fkl, tmp_path, monkeypatch):
    """Whatever signs their name has; nothing is left beside them."""
    name = "50% q?x=1 a%20b ü #&"
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    answer = fkl(*RUN, "logger=mlflow", f"paths.outputs='sp/{name}'")
    assert (answer.code, "mlflow" in answer.err) == (0, False), answer.err
    assert [path.name for path in (tmp_path / "sp").iterdir()] == [name]
    assert (tmp_path / "sp" / name / "mlflow.db").is_file()


def test_a_divergence_is_told_with_the_rounds_before_it(fkl, tmp_path):
    answer = fkl(*RUN, "algo.eta=1e30", "chunk=1", "logger=jsonl")
    assert answer.code == 2
    [file] = tmp_path.glob("outputs/logs/*.jsonl")
    [folder] = tmp_path.glob("outputs/failed/*")
    begun, *rounds, failed = lines(file)
    table = pd.read_csv(folder / "rounds.csv")
    assert [event["round"] for event in rounds] == table["round"].tolist()
    assert [event["metrics"]["mse"] for event in rounds] == pytest.approx(table["mse"].tolist(), rel=1e-9)
    assert begun["event"] == "begin"
    assert failed["why"].startswith(f"POF-MKL diverged in round {len(rounds) + 1} with algo.eta=1e+30")


def test_a_log_goes_on_after_an_interruption_and_is_made_anew_with_its_run(fkl, tmp_path, monkeypatch, at_once):
    """But for the line that says so, and the columns of time, it is as without; a line that was cut off is mended."""
    words = (*RUN, "logger=jsonl", "logger.jsonl.file=log")
    interrupted(fkl, monkeypatch, 45, *words, "out=twice")
    went_on = [event for event in lines(tmp_path / "log") if event["event"] != "fail"]
    log = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(b"".join(log.splitlines(keepends=True)[:9]) + b'{"event": "rou')
    assert fkl(*words, "out=once").code == 0
    assert lines(tmp_path / "log")[:-1] == went_on[:-1]
    assert fkl(*words, "out=thrice").code == 0
    assert lines(tmp_path / "log")[:-1] == went_on[:-1]


@pytest.mark.parametrize("nth", [0, 1, 2, 40])
def test_a_log_has_no_hole_on_a_full_disk(fkl, tmp_path, monkeypatch, at_once, nth):
    """Opening it, or its n-th line, is refused: the run ends with one line, and the same command makes both whole."""
    words, opened = (*RUN, "logger=jsonl", "logger.jsonl.file=log"), Path.open
    assert fkl(*words, "out=whole").code == 0
    expected = lines(tmp_path / "log")[:-1]
    (tmp_path / "log").unlink()

    class Full:
        left = nth

        def __init__(self, stream):
            self.stream = stream
            self.write()

        def write(self, line=b""):
            if Full.left == 0:
                raise OSError(28, "No space left on device")
            Full.left -= 1
            self.stream.write(line)

        def flush(self):
            self.stream.flush()

        def close(self):
            self.stream.close()

    def refuse(path, mode="r", *rest, **more):
        stream = opened(path, mode, *rest, **more)
        return Full(stream) if (path.name, mode) == ("log", "ab") else stream

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        answer = fkl(*words, "out=here")
    assert answer.code == 2
    told = [line for line in answer.err.splitlines() if "error: " in line]
    assert [line[line.index("error: ") :] for line in told] == [
        "error: log: cannot be written (No space left on device)"
    ]
    assert not (tmp_path / "here").exists()
    assert fkl(*words, "out=here").code == 0
    assert lines(tmp_path / "log")[:-1] == expected


def test_a_file_that_is_not_the_run_s_log_stays_as_it_is(fkl, tmp_path):
    (tmp_path / "diary.txt").write_text("mine\n")
    answer = fkl(*RUN, "logger=jsonl", "logger.jsonl.file=diary.txt")
    assert answer.code == 0
    assert "warning: logger.jsonl gets no more of this run: FklError: diary.txt: not a log of this run" in answer.err
    assert (tmp_path / "diary.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("logger=nope",), "logger=nope: no such choice"),
        (("logger=jsonl", "logger.jsonl.nope=1"), "logger.jsonl.nope: no such key"),
        (("+logger=5",), "logger=5: must be"),
        (
            ("+logger.x._target_=pathlib.Path",),
            "logger.x._target_=pathlib.Path: must be the import path of a dataclass",
        ),
        (
            ("+logger.x._target_=fkl.config.settings.Paths",),
            "logger.x._target_=fkl.config.settings.Paths: must be a class for logger.x: this one has no begin, round,"
            " end, fail",
        ),
    ],
)
def test_what_is_no_logger_is_refused(fkl, tmp_path, words, said):
    answer = fkl("run", *SMALL, *words)
    assert answer.code == 2
    assert answer.err.startswith(f"error: {said}"), answer.err
    assert all(line.startswith("  help: ") for line in answer.err.splitlines()[1:])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "library"),
    [("tensorboard", "tensorboardX"), ("mlflow", "mlflow")],
)
def test_a_logger_s_extra_that_is_missing_is_named(fkl, tmp_path, monkeypatch, name, library):
    monkeypatch.setitem(sys.modules, library, None)
    answer = fkl("run", *SMALL, f"logger={name}")
    assert answer.code == 2
    assert answer.err == f"error: logger={name}: needs {library}, which comes with {install_hint(name)}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_logger_s_library_that_is_missing_is_named(fkl, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    answer = fkl("run", *SMALL, f"logger={name}")
    assert (answer.code, list(tmp_path.iterdir())) == (2, [])
    assert answer.err == f"error: logger={name}: needs {name}\n  help: pip install {name}\n"


def test_loggers_are_no_part_of_a_run_s_digest():
    words = ("dataset=diabetes", "kernels.D=8")
    assert load(compose(*words)).digest == load(compose(*words, "logger=jsonl")).digest
    assert load(compose(*words)).folder == load(compose(*words, "logger=jsonl")).folder


def test_a_log_whose_first_line_was_cut_off_is_mended(fkl, tmp_path):
    words = (*RUN, "logger=jsonl", "logger.jsonl.file=log")
    assert fkl(*words, "out=one").code == 0
    begun = (tmp_path / "log").read_bytes().splitlines(keepends=True)[0]
    (tmp_path / "log").write_bytes(begun[:20])
    answer = fkl(*words, "out=two")
    assert answer.code == 0 and "gets no more" not in answer.err
    assert (tmp_path / "log").read_bytes().startswith(begun)
