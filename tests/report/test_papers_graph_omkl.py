"""Tables and figures of graph-aided OMKL, of runs whose errors are made up."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import of_job

from fkl.basics.random_streams import Role, Streams
from fkl.data import readers
from fkl.papers.cells import COLUMNS, cells_frame, published_cells
from fkl.papers.graph_omkl import figure, table
from fkl.runs.finished_runs import FinishedRun

ROUNDS = 1503
LABELS = ("OMKL-GF", "OMKL-SFG", "OMKL-SFG-R")


def run(experiment: str, label: str, R: int = 2, **keys: Any) -> FinishedRun:
    """Errors of 0.03 and 0.04 on airfoil in the end."""
    errors = np.array([0.03, 0.04])[:R]
    curve = errors[:, None] + 1 / np.arange(1, ROUNDS + 1)
    summary = {"mse": errors, "runtime_s": np.array([1.0, 3.0])[:R]}
    rounds = {"mse": curve, "regret_hindsight": curve}
    return of_job(f"graph_omkl/{experiment}", "airfoil", label, summary=summary, rounds=rounds, keys=keys)


@pytest.fixture(scope="module")
def runs() -> list[FinishedRun]:
    drawn = [run("as_published", label, **{"algo.M": M}) for label in LABELS for M in (1, 10)]
    stated = [run("as_stated", label, **{"algo.M": 10}) for label in LABELS[:2]]
    line = [run("switches", "OMKL-SFG", **{"algo.M": 10, "algo.graph": "line"})]
    return [run("exact", "OMKR", R=1), run("features", "Raker"), *drawn, *stated, *line]


@pytest.mark.parametrize("number", ["1", "2", "3", "4", "5"])
def test_every_published_cell_appears_and_ours_is_what_the_runs_say(runs: list[FinishedRun], number: str) -> None:
    """A row for each cell and switch, as stated first; nothing of ours where nothing was run."""
    made = cells_frame(table(number, runs))
    assert {*made[COLUMNS[:4]].itertuples(index=False, name=None)} == {
        cell.key for cell in published_cells("graph_omkl", number)
    }
    ran = (made["dataset"] == "airfoil") & made["setting"].isin(["", "M=1", "M=10"])
    assert made[(made["dataset"] != "airfoil")]["ours"].isna().all() and (made[ran]["ours"].dropna() > 0).all()
    if number == "1":
        sfg = made[ran].query("algorithm == 'OMKL-SFG'")
        assert sfg["reading"].tolist() == ["preview, as stated", "preview, as published", ""]
        found = [re.search(r"algo.graph=(\w+)", switch) for switch in sfg["switch"]]
        assert [graph and graph[1] for graph in found] == ["similarity", "lowest", "line"]
        [omkr] = made[ran].query("algorithm == 'OMKR'").to_dict("records")
        assert (omkr["reading"], omkr["ours"]) == ("as stated", pytest.approx(30))  # it draws nothing
        [raker] = made[ran].query("algorithm == 'Raker'").to_dict("records")
        assert (raker["ours"], raker["n"]) == (pytest.approx(35), 2)
    if number == "3":  # what Table 1 prints, too, is counted once
        follows = made[made["follows_from"] != ""]
        assert {*follows["setting"]} == {"M=10"} and {*follows["metric"]} == {"mse"}
    if number == "2":
        assert made[ran]["spread"].isna().all(), "replicates run together"


@pytest.mark.parametrize("number", ["3", "4", "5", "6"])
def test_figures_are_drawn_from_the_published_setting(runs: list[FinishedRun], number: str) -> None:
    """With the printed numbers, and with how many replicates its curves are over: OMKR draws nothing and has one."""
    drawn, replicates = figure(number, runs)
    curves = {*LABELS, *(("OMKR", "Raker") if number == "5" else ())}
    lines = {str(line.get_label()): line.get_xydata() for line in drawn.axes[0].lines}
    assert {name for name in lines if "published" not in name} == curves
    printed = {name.removesuffix(", published") for name in lines if "published" in name}
    assert printed == (set() if number == "6" else curves)
    assert replicates == ("mean, and from 10 % to 90 % of 1 to 2 replicates" if number == "5" else 2)
    expected = {"3": [[1, 0.035], [10, 0.035]], "4": [[1, 2], [10, 2]]}.get(number, [[10, 0.135]])
    np.testing.assert_allclose(lines["OMKL-GF"][:2] if number in "34" else lines["OMKL-GF"][:1], expected)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers in airfoil's layout, for figures that play a run again."""
    np.savetxt(tmp_path / "airfoil_self_noise.dat", np.random.default_rng(0).random((ROUNDS, 6)), delimiter="\t")
    known = readers.data_file
    monkeypatch.setattr(readers, "data_file", lambda *given: replace(known(*given), sha256=None, size=None))
    monkeypatch.setenv("FKL_DATA", str(tmp_path))


def edges_of(axes: Any, curve: str) -> np.ndarray:
    return np.concatenate([line.get_xydata() for line in axes.lines if str(line.get_label()) == curve])


def test_figures_1_and_2_have_the_graphs_that_rounds_are_played_with(runs: list[FinishedRun], data: None) -> None:
    """In the first round all weights are 1, so a kernel is 76 times its uniform number, rounded down."""
    drawn, _ = figure("1", runs)
    titles = ["as stated: airfoil, round 1", "as stated: airfoil, round 300", "as published: airfoil, round 300"]
    assert [axes.get_title() for axes in drawn.axes] == titles
    T, J, M = ROUNDS, 2, 10
    [stream] = Streams(0, (0,)).generators(Role.SELECTION)
    u = stream.random(T + 300 * J * M + 1)[T : T + J * M].reshape(J, M)
    for j in range(J):
        edges = edges_of(drawn.axes[0], f"edge of selective node {j + 1}")
        assert {*edges[edges[:, 1] == 0, 0]} == {int(76 * one) + 1 for one in u[j]}
    drawn, _ = figure("2", runs)
    shared = {"as stated": {*range(52, 59), 75, 76}, "as published": {*range(1, 10)}}
    for axes in drawn.axes:
        edges = np.concatenate([line.get_xydata() for line in axes.lines])
        kernels, counts = np.unique(edges[:, 0], return_counts=True)
        assert len(edges) == 760 and {*kernels[counts == 76]} == shared[axes.get_title()]
        assert {*range(1, 77)} == {*edges[edges[:, 0] == edges[:, 1], 0]}
