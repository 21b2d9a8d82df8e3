"""Each kind of data has one home, which tells what is asked."""

import pytest

from fkl.basics.errors import FklError
from fkl.conformance import quick_run
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import make_records
from fkl.tasks import Task, task_of
from fkl.tasks.batch import BatchTask
from fkl.tasks.repeated import PerReplicateTask
from fkl.tasks.stream import StreamTask
from fkl.tasks.task import require_lam
from fkl.tasks.vertical import VerticalTask

PLAYED: dict[str, tuple[type[Task], tuple[str, ...]]] = {
    "a stream": (StreamTask, ("algo=ofmkl_avg",)),
    "a batch": (BatchTask, ("algo=cta",)),
    "a batch of two classes": (BatchTask, ("algo=cta", "algo.loss=logistic", "dataset=ellipses", "dataset.rows=90")),
    "a split for each": (PerReplicateTask, ("algo=pooled_svm",)),
    "one split": (PerReplicateTask, ("algo=pooled_svm", "replicates=1")),
    "parties, no classes": (
        VerticalTask,
        ("algo=vertical_ridge", "dataset=diabetes", "partition=vertical", "partition.parties=2", "intervals=split"),
    ),
}
"""Of every kind, a method that is quick."""


@pytest.mark.parametrize("name", PLAYED)
def test_a_task_tells_what_is_asked(name: str) -> None:
    """No figure of a run is empty, the last round is in the summary, and a line tells samples and features."""
    experiment = prepare_run(quick_run("replicates=2", *PLAYED[name][1]))
    records = make_records(experiment, simulate_run(experiment, None, None, lambda _: None))
    assert type(experiment.task) is PLAYED[name][0]
    assert experiment.task.signs == ("two classes" in name)
    for file, panel in experiment.task.panels().items():
        drawn = [column for column in panel.curves if column in records.rounds and records.rounds[column].notna().any()]
        untold = file == "calibration" and "log_score" not in records.rounds
        assert drawn or untold or (file == "regret" and experiment.algorithm.lam == 0), file
    line = experiment.task.describe_data()
    assert "features" in line and ("samples" in line or "rounds" in line)
    timed = "runtime_s" in records.rounds
    assert timed == (PLAYED[name][0] is VerticalTask)
    last = records.rounds.groupby("replicate").last().drop(columns=["round", *(["runtime_s"] if timed else [])])
    assert list(records.summary)[1 : 1 + last.shape[1]] == list(last)
    assert (records.summary[list(last)].fillna(0).to_numpy() == last.fillna(0).to_numpy()).all()


def test_who_names_no_task_learns_from_a_stream_and_what_is_no_task_is_refused() -> None:
    assert task_of(type("Mine", (), {"label": "Mine", "lam": 0.0})) is StreamTask
    for task in ("clustering", StreamTask(None)):
        with pytest.raises(FklError, match=r"^algo: task of Mine is .*; it must be a subclass of fkl\.tasks"):
            task_of(type("Mine", (), {"label": "Mine", "task": task}))


def test_a_method_without_lam_is_told_of_it() -> None:
    with pytest.raises(FklError, match="Mine has no field lam, the weight of the regulariser"):
        require_lam(type("Mine", (), {})())
