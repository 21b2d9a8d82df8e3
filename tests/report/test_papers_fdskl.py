"""Tables and figures of FDSKL, of runs whose errors and times are made up."""

from typing import Any

import numpy as np
import pytest
from made_up import of_job

from fkl.algorithms.vertical.sums import STRUCTURES
from fkl.papers.cells import COLUMNS, cells_frame, published_cells
from fkl.papers.fdskl import COMPUTE, WITH_LINKS, figure, table
from fkl.papers.fdskl.errors import difference_statement
from fkl.runs.finished_runs import FinishedRun
from fkl.statistics.intervals import student_interval

SYSTEMS = {  # experiment: label, training samples, errors of both splits, scalars that were sent
    "kernel": ("FDSKL", 1050, (0.10, 0.12), 1000.0),
    "oracle": ("DSG", 1050, (0.10, 0.12), 0.0),
    "svm": ("LIBSVM", 1050, (0.10, 0.10), 0.0),
    "merged": ("PP-SVMV", 1050, (0.10, 0.10), 5000.0),
    "linear": ("FD-SVRG", 1050, (0.20, 0.22), 10.0),
    "trees": ("SecureBoost", 1050, (0.15, 0.16), 20.0),
    "as_stated": ("FDSKL", 1050, (0.12, 0.13), 3000.0),
    "bank": ("FDSKL", 1050, (0.10, 0.12), 100.0),
    "nystroem": ("Nystroem", 1050, (0.11, 0.11), 500.0),
    "sizes_kernel": ("FDSKL", 140, (0.2, 0.2), 100.0),
    "sizes_merged": ("PP-SVMV", 70, (0.2, 0.2), 100.0),
}


@pytest.fixture(scope="module")
def runs() -> list[FinishedRun]:
    """All systems on phishing; training takes 60 and 120 s and the links half of that."""
    made = []
    for experiment, (label, samples, errors, scalars) in SYSTEMS.items():
        seconds = np.array([60.0, 120.0]) * samples / 1050
        summary: dict[str, Any] = {"test_error": errors, "runtime_s": seconds, "communication_s": seconds / 2}
        rounds = {name: np.outer(values, (0.5, 1)) for name, values in summary.items()}
        rounds["test_error"] = np.outer(errors, (2, 1))
        summary |= {"training_samples": (samples, samples), "link_scalars": (scalars, scalars)}
        made.append(of_job(f"fdskl/{experiment}", "phishing", label, summary=summary, rounds=rounds))
    return made


def test_training_time_is_in_minutes_without_and_with_links(runs: list[FinishedRun]) -> None:
    """A bound stays a bound, without a difference; nothing of ours where nothing was run."""
    made = cells_frame(table("4", runs))
    assert list(made) == COLUMNS
    assert {*made[COLUMNS[:4]].itertuples(index=False, name=None)} == {
        cell.key for cell in published_cells("fdskl", "4")
    }
    assert made[made["dataset"] != "phishing"]["ours"].isna().all()
    [epsilon] = made.query("dataset == 'epsilon' and algorithm == 'SecureBoost'").to_dict("records")
    assert epsilon["published"] == ">900" and np.isnan(epsilon["difference_percent"])
    mine = made.query("dataset == 'phishing' and algorithm == 'FDSKL'")
    assert mine["reading"].tolist() == 2 * ["preview, as stated"] + 2 * ["preview, as published"]
    assert mine["ours"].tolist() == pytest.approx([1.5, 2.25] * 2)
    assert [words.partition(";")[0] for words in mine["switch"]] == [COMPUTE, WITH_LINKS] * 2


def test_errors_and_scalars_stand_beside_those_of_libsvm_and_fdskl_on_the_same_splits(runs: list[FinishedRun]) -> None:
    made: Any = table("errors", runs)
    assert len(made) == 9 and {*made["training_samples"]} == {1050}, "others are for Figure 5 alone"
    rows = made.set_index("system")
    mine = rows.loc["FDSKL"]
    assert (mine["test_error_percent"], mine["sd_points"]) == pytest.approx((11, np.sqrt(2)))
    assert (mine["above_libsvm_points"], mine["above_libsvm_percent"]) == (1, 10)
    low, high = (10 * end for end in student_interval(np.array([0.0, 2.0])))
    assert mine["interval_95_percent"] == f"{low:.1f} to {high:.1f}"
    assert mine["statement"] == difference_statement(10, low, high)
    assert [difference_statement(5.0, *ends) for ends in ((-9.0, 9.9), (10.1, 40.0), (-40.0, -10.1), (1.0, 40.0))] == [
        "level with LIBSVM, within 10 %", "more than 10 % above LIBSVM", "more than 10 % below LIBSVM",
        "above LIBSVM, and whether within 10 % is open",
    ]  # fmt: skip
    assert rows.loc["LIBSVM", "statement"] == "" and rows.loc["PP-SVMV", "above_libsvm_points"] == 0
    sent = {"FDSKL": 1, "Nystroem": 0.5, "FDSKL, bank": 0.1, "FDSKL, as stated": 3}
    assert rows["scalars_to_fdskl"][[*sent]].to_dict() == pytest.approx(sent)


@pytest.mark.parametrize(
    ("number", "curves"),
    [
        ("3", {"FDSKL", "DSG"}),
        ("4", set(STRUCTURES)),
        ("5", {"PP-SVMV, compute", "FDSKL, compute and links"}),
        ("6", {"FDSKL", "SecureBoost", "FD-SVRG"}),
    ],
)
def test_figures_have_their_curves(runs: list[FinishedRun], number: str, curves: set[str]) -> None:
    lines = {line.get_label(): line.get_xydata() for axes in figure(number, runs)[0].axes for line in axes.lines}
    assert curves <= {*lines}
    if number == "3":  # the last panel, with links
        np.testing.assert_allclose(lines["FDSKL"], [[67.5, 22], [135, 11]])
    if number == "5":
        np.testing.assert_allclose(lines["FDSKL, compute and links"], [[140, 18], [1050, 135]])
