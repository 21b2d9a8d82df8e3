"""Tables and figures of parsimonious functions, of runs whose errors are made up."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up import of_job
from scipy.stats import ttest_rel

from fkl.basics.errors import FklError
from fkl.data.ellipses import Ellipses
from fkl.kernels.functions import Classes
from fkl.papers import parsimonious
from fkl.papers.cells import COLUMNS, cells_frame, published_cells
from fkl.papers.parsimonious import figure, table
from fkl.runs.finished_runs import FinishedRun

ERRORS = {"PF": (0.1, 0.2, 0.4), "PC": (0.1, 0.1, 0.1), "SVM": (0.1, 0.1, 0.1), "Cascade SVM": (0.1, 0.1, 0.1)}
SENT = {"PF": 30.0, "PC": 100.0, "SVM": 100.0, "Cascade SVM": 20.0}
WALKING = {"dataset.activity": "walking"}


def run(label: str, experiment: str, dataset: str = "wisdm", **keys: Any) -> FinishedRun:
    names = ("agents_gap", "gap", "violation", "peaks")
    summary = {"test_error": ERRORS[label], "sent_samples": [SENT[label]] * 3, "active_nodes": (1, 2, 3)}
    return of_job(
        f"parsimonious/{experiment}", dataset, label, summary=summary | dict.fromkeys(names, (0, 0, 0)), keys=keys
    )


@pytest.fixture(scope="module")
def runs() -> list[FinishedRun]:
    """Both learners on samples, over participants and over gamma; both machines."""
    made = []
    for label in ("PF", "PC"):
        made += [run(label, "samples", "ellipses", **{"dataset.rows": rows}) for rows in (90, 180)]
        made += [run(label, "agents", **WALKING, **{"dataset.participants": people}) for people in (5, 10)]
        made += [run(label, "communication", **WALKING), run(label, "sparsity", **WALKING, **{"algo.gamma": 40.0})]
    return [*made, *(run(label, "machines", **WALKING) for label in ("SVM", "Cascade SVM"))]


def test_ours_is_what_the_runs_say(runs: list[FinishedRun]) -> None:
    """Accuracy with the most participants; samples sent of ten at gamma = 0; nothing where nothing was run."""
    made = cells_frame(table("text", runs))
    assert list(made) == COLUMNS
    assert {*made[COLUMNS[:4]].itertuples(index=False, name=None)} == {
        cell.key for cell in published_cells("parsimonious", "text")
    }
    assert made.query("dataset == 'wisdm_write_type'")["ours"].isna().all()
    for learner, accuracy in (("federated", 100 * (1 - 0.7 / 3)), ("centralized", 90)):
        [cell] = made.query(f"algorithm == '{learner}' and metric == 'accuracy'").to_dict("records")
        assert (cell["ours"], cell["n"]) == (pytest.approx(accuracy), 3)
        assert cell["switch"] == "10 participants available; algo.steps=1000"
        assert cell["reading"] == "", "other participants than the paper's are no evidence"
    [cell] = made.query("metric == 'communication_cost_vs_centralized'").to_dict("records")
    assert (cell["switch"], cell["reading"]) == ("algo.steps=500", "preview, as stated")
    assert cell["ours"] == pytest.approx(30)


def test_learners_are_compared_on_the_same_splits(runs: list[FinishedRun]) -> None:
    """The interval of the mean difference is that of a paired t test; runs on other splits are no answer."""
    made: Any = table("learners", runs)
    assert len(made) == 2 + 2 + 2 and made["n"].eq(3).all()
    row = made.query("dataset == 'ellipses' and size == 90").iloc[0]
    one, other = (100 * (1 - np.array(ERRORS[label])) for label in ("PF", "PC"))
    interval = ttest_rel(one, other).confidence_interval(0.95)
    found = row[["difference_points", "interval_95_low", "interval_95_high"]].tolist()
    assert found == pytest.approx([(one - other).mean(), interval.low, interval.high])
    elsewhere = [one for one in runs if one.dataset == "ellipses"]
    more = [replace(one, config={**one.config, "replicates": 5}) for one in elsewhere[:2]]
    with pytest.raises(FklError, match="no finished run belongs to it"):
        table("learners", [*more, *elsewhere[2:]])


def test_machines_stand_beside_the_learners(runs: list[FinishedRun]) -> None:
    """All four on as many participants; what is sent is of all samples."""
    made: Any = table("machines", runs)
    rows = made.query("participants == 10 and gamma not in (0, 40)").set_index("algorithm")
    assert rows["sent_percent"].to_dict() == {"PF": 30, "PC": 100, "SVM": 100, "Cascade SVM": 20}
    assert rows["accuracy_percent"].to_dict() == pytest.approx(
        {label: 100 * (1 - np.mean(errors)) for label, errors in ERRORS.items()}
    )


@pytest.mark.parametrize(
    ("number", "panels", "x", "title", "printed"),
    [
        ("3", 1, {5, 10}, "10 of the 51 participants are available", [(51, 75.29), (51, 77.35)]),
        ("5", 3, {0, 40, 100}, "10 of the 51 participants", [(0, 40)]),
    ],
)
def test_figures_show_both_learners_and_say_of_whom(
    runs: list[FinishedRun], number: str, panels: int, x: set[int], title: str, printed: list[tuple[float, float]]
) -> None:
    made, replicates = figure(number, runs)
    lines = [(str(line.get_label()), line.get_xydata()) for axes in made.axes for line in axes.lines]
    crosses = [tuple(point) for name, points in lines if name.endswith(", published") for point in points]
    np.testing.assert_allclose(np.reshape(sorted(crosses), (-1, 2)), np.reshape(printed, (-1, 2)))
    ours = [(name, points) for name, points in lines if not name.endswith(", published")]
    assert sorted(name for name, _ in ours) == sorted(["federated", "centralized"] * panels)
    assert all({*points[:, 0]} == x for _, points in ours)
    assert replicates == 3 and any(title in axes.get_title() for axes in made.axes)


def test_functions_are_compared_over_the_space_and_their_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two functions of one or two nodes, one of them shared, in closed form."""

    def function(nodes: list[list[float]], coefficients: list[list[float]]) -> SimpleNamespace:
        given = np.array(nodes), 1 / np.array([2.0, 4.0]), np.array([coefficients])  # a row for each width
        return SimpleNamespace(function=Classes.gaussian(*given, np.zeros(1), np.array([-1.0, 1.0]), np.array(False)))

    federated = function([[0, 0], [1, 5], [1, 5]], [[2, 1, 0], [0, 0, 4]])
    centralized = function([[1, 5]], [[3], [0]])
    models = {"PF": SimpleNamespace(learned=[federated]), "PC": SimpleNamespace(learned=[centralized])}
    monkeypatch.setattr(parsimonious, "load_model", models.get)
    pair: Any = {name: SimpleNamespace(run=SimpleNamespace(folder=name)) for name in models}
    low, high = (end(part, axis=0) for end, part in zip((np.min, np.max), Ellipses().subspace_corners(), strict=True))
    x = np.array([[a, b] for a in np.linspace(low[0], high[0], 8) for b in np.linspace(low[1], high[1], 8)])
    k = {(s, w): np.exp(-((x - s) ** 2).sum(axis=1) / (2 * w**2)) for s, w in (((0, 0), 2), ((1, 5), 2), ((1, 5), 4))}
    apart = 2 * k[(0, 0), 2] - 2 * k[(1, 5), 2] + 4 * k[(1, 5), 4]
    [found] = parsimonious._distances(pair).to_dict("records")
    assert found["f"] == pytest.approx(np.linalg.norm(apart) / np.linalg.norm(3 * k[(1, 5), 2]), rel=1e-6)
    assert found["α"] == pytest.approx(np.sqrt(2**2 + 2**2 + 4**2) / 3)


def test_the_space_needs_no_run(runs: list[FinishedRun]) -> None:
    """Theorem 2 needs saved models."""
    assert figure("1", [])[0].axes
    for number in ("4", "theorem2"):
        with pytest.raises(FklError, match="no finished run belongs to it"):
            figure(number, runs)
