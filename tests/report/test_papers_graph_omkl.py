"""Tables and figures of graph-aided OMKL, from runs that the tests make on numbers in airfoil's layout."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from broken.runs import sign

from fkl.algorithms.online.omkl_sfg import log_inner_products, similarity_graph
from fkl.basics.random_streams import Role, Streams
from fkl.data import readers
from fkl.papers import differences
from fkl.papers.cells import COLUMNS, published
from fkl.papers.graph_omkl import figure, graphs, table
from fkl.runs.finished_runs import collect

AIRFOIL, TWO = ("+graph_omkl/data=airfoil",), "replicates=2"
SWEEPS = {
    "exact": ("+graph_omkl/exact=glob(*)",),
    "features": (TWO, "algo=raker,rfomkr"),
    "as_published": (TWO, "+as_published=omkl_gf,omkl_sfg,omkl_sfg_r", "algo.M=1,10"),
    "features_as_published": (TWO, "+as_published=rfomkr"),
    "as_stated": (TWO, "algo=omkl_gf,omkl_sfg", "algo.M=10"),
    "line": (TWO, "+graph_omkl/one_switch=sfg_line", "algo.M=10"),
}


@pytest.fixture(scope="module")
def finished(sweeping: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All methods of the paper, with M = 1 and 10, on random numbers in airfoil's layout."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "files").mkdir()
    np.savetxt(folder / "files" / "airfoil_self_noise.dat", np.random.default_rng(0).random((1503, 6)), delimiter="\t")
    return sweeping(folder, *((*AIRFOIL, *sweep) for sweep in SWEEPS.values()))


@pytest.mark.parametrize("number", ["1", "2", "3", "4", "5"])
def test_every_published_cell_appears_and_ours_is_what_the_runs_say(runs: Callable, number: str) -> None:
    """One row a cell and switch; nothing of ours where nothing was run."""
    assert runs("table", f"graph_omkl/{number}").code == 0
    file = Path(f"outputs/tables/graph_omkl/table{number}.csv")
    table = pd.read_csv(file, keep_default_na=False, na_values={c: [""] for c in COLUMNS[5:10]})
    assert set(COLUMNS) <= set(table)
    key = ["dataset", "algorithm", "setting", "metric"]
    assert set(table[key].itertuples(index=False, name=None)) == {cell.key for cell in published("graph_omkl", number)}
    ran = (table["dataset"] == "airfoil") & table["setting"].isin(["", "M=1", "M=10"])
    assert table[~ran]["switch"].str.startswith("not run: no finished run on").all()
    assert table[~ran]["ours"].isna().all()
    assert (table[ran]["ours"] > 0).all()
    if number == "1":
        sfg = table[ran].query("algorithm == 'OMKL-SFG'")
        assert sfg["reading"].tolist() == ["preview, as stated", "preview, as published", ""]
        found = [re.search(r"algo.graph=(\w+)", switch) for switch in sfg["switch"]]
        assert [graph and graph[1] for graph in found] == ["similarity", "lowest", "line"]
        [omkr] = table[ran].query("algorithm == 'OMKR'").to_dict("records")
        assert omkr["reading"] == "as stated"  # draws nothing
        summaries = [pd.read_csv(folder / "summary.csv") for folder in Path("outputs/runs").glob("airfoil-raker-*")]
        [raker] = table[ran].query("algorithm == 'Raker'").to_dict("records")
        assert raker["ours"] == pytest.approx(summaries[0]["mse"].mean() / 1e-3, rel=1e-5)
        assert (raker["n"], len(summaries)) == (2, 1)


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ("eta: 0.1", "eta: 0.2"),
        ("J: 2", "J: 3"),
        ("laplacians: 25", "laplacians: 24"),
        ("D: 50", "D: 100"),
        ("order: consecutive", "order: shuffled"),
    ],
)
def test_a_run_off_the_protocol_is_no_answer(runs: Callable, mine: str, other: str) -> None:
    """Another step size, floor, dictionary or row order belongs to no cell of the paper."""
    for config in Path("outputs/runs").glob("airfoil-omkl_gf-*/config.yaml"):
        assert mine in config.read_text()
        config.write_text(config.read_text().replace(mine, other, 1))
        sign(config.parent)
    assert runs("table", "graph_omkl/3").err == ""
    assert pd.read_csv("outputs/tables/graph_omkl/table3.csv")["ours"].isna().all()


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("number", "curves"),
    [
        ("3", {"OMKL-GF", "OMKL-SFG", "OMKL-SFG-R"}),
        ("4", {"OMKL-GF", "OMKL-SFG", "OMKL-SFG-R"}),
        ("5", {"OMKR", "Raker", "OMKL-GF", "OMKL-SFG", "OMKL-SFG-R"}),
        ("6", {"OMKL-GF", "OMKL-SFG", "OMKL-SFG-R"}),
    ],
)
def test_figures_are_drawn_from_the_published_setting(runs: Callable, number: str, curves: set[str]) -> None:
    """A picture with something on it, and the numbers behind it."""
    assert runs("figure", f"graph_omkl/{number}").code == 0
    assert matplotlib.image.imread(f"outputs/figures/graph_omkl/figure{number}.png").std() > 0.01
    drawn = pd.read_csv(f"outputs/figures/graph_omkl/figure{number}.csv")
    assert {curve for curve in drawn["curve"] if "published" not in curve} == curves
    printed = {curve.removesuffix(", published") for curve in drawn["curve"] if "published" in curve}
    assert printed == (set() if number == "6" else curves)
    ours = drawn[~drawn["curve"].str.contains("published")]
    assert set(ours.groupby("curve").size()) == {2 if number in "34" else 1503 - 9}


@pytest.fixture
def data(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module's own file, for figures that play a run again."""
    published = readers.data_file
    monkeypatch.setattr(readers, "data_file", lambda *given: replace(published(*given), sha256=None, size=None))
    monkeypatch.setenv("FKL_DATA", str(finished / "files"))


@pytest.mark.drawn
def test_figure_1_has_the_graphs_that_rounds_are_played_with(runs: Callable, data: None) -> None:
    """In the first round all weights are 1, so a kernel is 76 times its uniform number, rounded down."""
    assert runs("figure", "graph_omkl/1").code == 0
    drawn = pd.read_csv("outputs/figures/graph_omkl/figure1.csv")
    titles = ["as stated: airfoil, round 1", "as stated: airfoil, round 300", "as published: airfoil, round 300"]
    assert list(dict.fromkeys(drawn["panel"])) == titles
    T, J, M = 1503, 2, 10
    [stream] = Streams(0, (0,)).generators(Role.SELECTION)
    u = stream.random(T + 300 * J * M + 1)[T : T + J * M].reshape(J, M)
    for j in range(J):
        edges = drawn[(drawn["panel"] == titles[0]) & (drawn["curve"] == f"edge of selective node {j + 1}")]
        assert set(edges.loc[edges["y"] == 0, "x"]) == {int(76 * one) + 1 for one in u[j]}
    last = [set(map(tuple, drawn.loc[drawn["panel"] == title, ["curve", "x"]].to_numpy())) for title in titles[1:]]
    assert last[0] != last[1], "other draws"


@pytest.mark.drawn
def test_figure_2_has_the_described_graph_and_the_degenerate_one(runs: Callable, data: None) -> None:
    assert runs("figure", "graph_omkl/2").code == 0
    drawn = pd.read_csv("outputs/figures/graph_omkl/figure2.csv")
    shared = {"as stated": {*range(52, 59), 75, 76}, "as published": {*range(1, 10)}}
    assert set(drawn["panel"]) == set(shared)
    for panel, edges in drawn.groupby("panel"):
        by_kernel = edges.groupby("x").size()
        assert len(edges) == 760 and set(by_kernel.index[by_kernel == 76]) == shared[panel]
        assert {*range(1, 77)} == set(edges.loc[edges["x"] == edges["y"], "x"])
        assert edges.loc[edges["curve"] == "edge of a node in the dominating set", "y"].nunique() == 67


@pytest.mark.parametrize("d", [1, 5, 17])
@pytest.mark.parametrize("power", [0.5, 1.0], ids=["variance", "deviation"])
def test_the_paper_s_example_of_a_graph_is_the_degenerate_one(d: int, power: float) -> None:
    """Five Gaussian kernels of bandwidth 10^(i - 3), three out-neighbours each; those of v_2 are in Figure 2 (b)."""
    scales = 10.0 ** (-power * np.arange(-2, 3))
    described = similarity_graph(log_inner_products(("rbf",) * 5, scales, d), 3)
    degenerate = similarity_graph(np.full((5, 5), -np.inf), 3)
    assert (np.flatnonzero(described[1]) + 1).tolist() == [1, 2, 5]
    assert (np.flatnonzero(degenerate[1]) + 1).tolist() == [1, 2, 3]
    assert "points to 1, 2, 5" in graphs.CLAIMS["2"] and "v_1, v_2 and v_5" in " ".join(
        differences("graph_omkl").split()
    )


def test_a_figure_says_over_how_many_replicates_its_own_curves_are(runs: Callable) -> None:
    """OMKR, which Figure 5 alone shows, draws nothing and has one."""
    found = collect(Path("outputs")).runs
    assert {number: figure(number, found)[1] for number in ("3", "5", "6")} == {
        "3": 2, "5": "mean, and from 10 % to 90 % of 1 to 2 replicates", "6": 2,
    }  # fmt: skip


def test_what_table_1_prints_too_is_counted_once(runs: Callable) -> None:
    made = table("3", collect(Path("outputs")).runs)
    assert {cell.setting for cell in made if cell.follows_from} == {"M=10"}
    assert {cell.metric for cell in made if cell.follows_from} == {"mse"}


def test_each_run_alone_gives_what_it_can(each_alone: Callable) -> None:
    """As after a sweep that was interrupted."""
    each_alone("graph_omkl")
