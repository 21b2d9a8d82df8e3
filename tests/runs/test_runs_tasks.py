"""Each kind of data has one home: nobody else asks which kind a run is of, and every home tells what is asked."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import fkl
from fkl.basics.errors import FklError
from fkl.conformance import scenario
from fkl.engines.base import Experiment
from fkl.engines.rounds import simulate
from fkl.runs.prepare import prepare
from fkl.runs.tables import Records, make_records
from fkl.tasks import Task, task_of
from fkl.tasks.batch import BatchTask
from fkl.tasks.repeated import PerReplicateTask
from fkl.tasks.stream import StreamTask
from fkl.tasks.vertical import VerticalTask

PLAYED: dict[str, tuple[type[Task], tuple[str, ...]]] = {
    "a stream": (StreamTask, ("algo=ofmkl_avg",)),
    "one learner": (StreamTask, ("algo=raker",)),
    "a batch": (BatchTask, ("algo=cta",)),
    "a batch of two classes": (BatchTask, ("algo=cta", "algo.loss=logistic", "dataset=ellipses", "dataset.rows=90")),
    "a split for each": (PerReplicateTask, ("algo=pooled_svm",)),
    "parties": (VerticalTask, ("algo=vertical_ridge",)),
    "parties, no classes": (
        VerticalTask,
        ("algo=dsg", "algo.loss=square", "dataset=diabetes", "partition=vertical", "partition.parties=2"),
    ),
}
"""Of every kind, a method that is quick."""
KINDS = {"Problem", "Batch", "PerReplicate", "Vertical", "FeatureGroups"}
OUTCOMES = {"Outcome", "Fitted", "Scored"}
FAMILIES = {
    "Federated",
    "Decentralized",
    "Consensus",
    "Learner",
    "Pooled",
    "VerticalMethod",
    "Learning",
    "Split",
    "Batched",
}
FAMILIES |= {"Parsimonious", "Machine", "StreamTask", "BatchTask", "PerReplicateTask", "VerticalTask"}


@cache
def played(name: str) -> tuple[Experiment, Records]:
    """A small run, whose tables several tests look at."""
    experiment = prepare(scenario(*PLAYED[name][1], "replicates=2"))
    return experiment, make_records(experiment, simulate(experiment, None, None, lambda _: None))


@pytest.mark.parametrize("name", PLAYED)
def test_a_method_s_task_is_the_one_it_names(name: str) -> None:
    experiment, _ = played(name)
    assert type(experiment.task) is PLAYED[name][0]
    assert task_of(experiment.algorithm) is task_of(type(experiment.algorithm))


def test_who_names_no_task_learns_from_a_stream() -> None:
    """A class with label, init, step and lam, from outside the package."""

    class Mine:
        label = "Mine"
        lam = 0.0

    assert task_of(Mine) is task_of(Mine()) is StreamTask


@pytest.mark.parametrize("task", ["clustering", int, StreamTask(None)])
def test_what_is_no_task_is_refused(task: object) -> None:
    mine = type("Mine", (), {"label": "Mine", "task": task})
    with pytest.raises(
        FklError, match=r"^algo: task of Mine is .*, where a class is named that is a fkl\.tasks\.Task$"
    ):
        task_of(mine)


@pytest.mark.parametrize("name", PLAYED)
def test_every_panel_has_something_to_draw(name: str) -> None:
    """No figure of a run is empty, but what its method does not tell is not drawn."""
    experiment, records = played(name)
    for file, panel in experiment.task.panels().items():
        drawn = [column for column in panel.curves if column in records.rounds and records.rounds[column].notna().any()]
        untold = file == "calibration" and "log_score" not in records.rounds
        assert drawn or untold or (file == "regret" and experiment.algorithm.lam == 0), file


@pytest.mark.parametrize("name", PLAYED)
def test_a_line_tells_samples_and_features(name: str) -> None:
    line = played(name)[0].task.describe()
    assert "features" in line and ("samples" in line or "rounds" in line)


@pytest.mark.parametrize("name", PLAYED)
def test_the_last_round_is_in_the_summary(name: str) -> None:
    """With what the task adds for the whole run, and time; time by round is of methods over parties."""
    _, records = played(name)
    timed = "runtime_s" in records.rounds
    assert timed == (PLAYED[name][0] is VerticalTask)
    last = records.rounds.groupby("replicate").last().drop(columns=["round", *(["runtime_s"] if timed else [])])
    assert list(records.summary)[1 : 1 + last.shape[1]] == list(last)
    assert (records.summary[list(last)].fillna(0).to_numpy() == last.fillna(0).to_numpy()).all()


def questions() -> Iterator[tuple[str, str]]:
    """Where a module asks what something is, and which class it asks for."""
    for file in sorted(Path(fkl.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                for name in ast.walk(node.args[1]):
                    asked = getattr(name, "id", getattr(name, "attr", ""))
                    yield f"{file.relative_to(Path(fkl.__file__).parent)}:{node.lineno}", str(asked)


def test_nobody_asks_which_kind_of_data_it_is() -> None:
    """Nor which outcome, nor which family of methods."""
    asked = [(where, name) for where, name in questions() if name in KINDS | OUTCOMES | FAMILIES]
    assert not asked
