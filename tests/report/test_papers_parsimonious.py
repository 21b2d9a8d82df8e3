"""Tables and figures of parsimonious functions, from runs on ellipses and on recordings that the tests make."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import yaml
from broken.runs import sign
from scipy.stats import ttest_rel

from fkl.data.ellipses import Ellipses
from fkl.data.wisdm import SECOND
from fkl.kernels.functions import Classes
from fkl.papers import our_runs as found
from fkl.papers import parsimonious
from fkl.papers.cells import COLUMNS, published
from fkl.papers.parsimonious import figure
from fkl.runs.finished_runs import collect

MACHINES = ("replicates=3", "algo=pooled_svm,cascade_svm", "+parsimonious/machines=walking_jogging")
COMMON = (
    "replicates=3",
    "algo=parsimonious_federated,parsimonious_centralized",
    "++algo.centres=27",
)
SWEEPS = (
    ("+experiment=parsimonious/samples", "dataset.rows=90,180"),
    ("+parsimonious/agents=walking_jogging", "dataset.participants=5,10"),
    ("+parsimonious/sparsity=walking_jogging", "++algo.gamma=0,40"),
)
CELL = ["dataset", "algorithm", "setting", "metric"]


def recordings(participant: int, rng: np.random.Generator) -> bytes:
    """A minute of walking and one of jogging, the latter with more of the second axis."""
    lines = []
    for letter, height in (("A", 1.0), ("B", 2.0)):
        for number in range(1200):
            x, y, z = 0.1 * rng.standard_normal(3) + rng.standard_normal() * 0.2
            lines.append(f"{participant},{letter},{10**14 + number * SECOND // 20},{x:.4f},{y + height:.4f},{z:.4f};\n")
    return "".join(lines).encode()


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Centres may be fewer than the experiments have."""
    monkeypatch.setattr(found, "FREE", (*found.FREE, "algo.centres"))


@pytest.fixture(scope="module")
def finished(sweeping: Callable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both learners on few samples of twelve participants, of whom ten take part."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "files").mkdir()
    rng = np.random.default_rng(0)
    for participant in range(1600, 1612):
        (folder / "files" / f"data_{participant}_accel_phone.txt").write_bytes(recordings(participant, rng))
    machines = (*MACHINES, "dataset.participants=10")
    return sweeping(folder, *((*COMMON, *sweep) for sweep in SWEEPS), machines)


def read(number: str) -> pd.DataFrame:
    """A table as it was written."""
    return pd.read_csv(f"outputs/tables/parsimonious/table{number}.csv")


def of(algorithm: str, **keys: object) -> pd.DataFrame:
    """Summary of the run of a learner whose configuration has these keys in `algo` or `dataset`."""
    for folder in Path("outputs/runs").glob("*-p[fc]-*"):
        config = yaml.safe_load((folder / "config.yaml").read_text())
        if config["algo"]["_target_"].endswith(f".{algorithm.title()}") and all(
            {**config["dataset"], **config["algo"]}.get(key) == value for key, value in keys.items()
        ):
            return pd.read_csv(folder / "summary.csv")
    raise AssertionError(keys)


def test_every_published_cell_appears(runs: Callable) -> None:
    """Nothing of ours where nothing was run."""
    assert runs("table", "parsimonious/text").code == 0
    table = read("text")
    assert list(table) == COLUMNS
    cells = set(table[CELL].itertuples(index=False, name=None))
    assert cells == {cell.key for cell in published("parsimonious", "text")}
    elsewhere = table[table["dataset"] == "wisdm_write_type"]
    assert elsewhere["ours"].isna().all()
    assert elsewhere["switch"].str.startswith("not run: no finished run on").all()


def test_ours_is_what_the_runs_say(runs: Callable) -> None:
    """Accuracy with the most participants; samples sent of ten at gamma = 0."""
    runs("table", "parsimonious/text")
    table = read("text").query("dataset == 'wisdm_walk_jog'")
    for learner in ("federated", "centralized"):
        [cell] = table[(table["algorithm"] == learner) & (table["metric"] == "accuracy")].to_dict("records")
        error = of(learner, participants=10, gamma=100.0)["test_error"]
        assert cell["ours"] == pytest.approx(100 * (1 - error.mean()), rel=1e-5)
        assert cell["switch"] == "10 participants available; algo.steps=1000"
        assert cell["reading"] != cell["reading"], "other participants than the paper's are no evidence"
        assert cell["n"] == 3
    [cell] = table[table["metric"] == "communication_cost_vs_centralized"].to_dict("records")
    assert (cell["switch"], cell["reading"]) == ("algo.steps=500", "preview, as stated")
    keys = {"participants": 10, "gamma": 0.0}
    share = of("federated", **keys)["sent_samples"] / of("centralized", **keys)["sent_samples"]
    assert cell["ours"] == pytest.approx(100 * share.mean(), rel=1e-5)
    assert 0 < cell["ours"] < 100


def test_learners_are_compared_on_the_same_splits(runs: Callable) -> None:
    """The interval of the mean difference is that of a paired t test."""
    runs("table", "parsimonious/learners")
    table = read("learners")
    assert len(table) == 2 + 2 + 2
    assert table["n"].eq(3).all()
    row = table.query("dataset == 'ellipses' and size == 90").iloc[0]
    one, other = (100 * (1 - of(learner, rows=90)["test_error"]) for learner in ("federated", "centralized"))
    interval = ttest_rel(one, other).confidence_interval(0.95)
    assert row["difference_points"] == pytest.approx((one - other).mean(), rel=1e-4)
    assert row["interval_95_low"] == pytest.approx(interval.low, rel=1e-4)
    assert row["interval_95_high"] == pytest.approx(interval.high, rel=1e-4)
    assert row["interval_95_low"] < row["interval_95_high"]
    assert table.query("size == 180")["accuracy_federated_percent"].gt(70).all()


def test_machines_stand_beside_the_learners(runs: Callable) -> None:
    """All four on as many participants; what is sent is of all samples."""
    assert runs("table", "parsimonious/machines").code == 0
    table = read("machines").query("participants == 10 and gamma not in (0, 40)").set_index("algorithm")
    assert set(table.index) == {"PF", "PC", "SVM", "Cascade SVM"}
    assert table.loc["SVM", "sent_percent"] == table.loc["PC", "sent_percent"] == 100
    assert 0 < table.loc["Cascade SVM", "sent_percent"] < 100
    assert table["accuracy_percent"].between(50, 100).all()


@pytest.mark.parametrize(
    ("mine", "other"),
    [("eps: 0.01", "eps: 0.02"), ("fold: null", "fold: 0"), ("test_share: 0.3", "test_share: 0.2"),
     ("scaling: none", "scaling: unit_box"), ("widths: null", "widths: [1.0]"), ("seed: 0", "seed: 1")],
)  # fmt: skip
def test_a_run_off_the_protocol_or_on_other_splits_is_no_answer(runs: Callable, mine: str, other: str) -> None:
    for config in Path("outputs/runs").glob("ellipses-p[fc]-*/config.yaml"):
        assert mine in config.read_text()
        config.write_text(config.read_text().replace(mine, other, 1))
        sign(config.parent)
    runs("table", "parsimonious/learners")
    assert "ellipses" not in set(read("learners")["dataset"])


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("number", "panels", "x", "title", "printed"),
    [
        ("2", 1, {90, 180}, "9 agents", []),
        ("3", 1, {5, 10}, "10 of the 51 participants are available", [(51, 75.29), (51, 77.35)]),
        ("5", 3, {0, 40, 100}, "10 of the 51 participants", [(0, 0.4)]),
    ],
)
def test_figures_show_both_learners_and_say_of_whom(
    runs: Callable, number: str, panels: int, x: set[int], title: str, printed: list[tuple[float, float]]
) -> None:
    assert runs("figure", f"parsimonious/{number}").code == 0
    assert matplotlib.image.imread(f"outputs/figures/parsimonious/figure{number}.png").std() > 0.01
    drawn = pd.read_csv(f"outputs/figures/parsimonious/figure{number}.csv")
    crosses = drawn[drawn["curve"].str.endswith(", published")]
    pooled = drawn[drawn["curve"].eq("centralized") & drawn["x"].eq(0)]["y"]  # the last panel has what it is sent
    unit = pooled.iloc[-1] if number == "5" else 1.0
    assert sorted(zip(crosses["x"], (crosses["y"] / unit).round(4), strict=True)) == printed
    drawn = drawn.drop(crosses.index)
    assert set(drawn["curve"]) == {"federated", "centralized"}
    assert set(drawn["x"]) == x
    assert len(drawn) == 2 * panels * len(x)
    made, replicates = figure(number, collect(Path("outputs")).runs)
    assert replicates == 3
    assert any(title in axes.get_title() for axes in made.axes)
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in made.axes)


def test_functions_are_compared_over_the_space_and_their_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two functions of one or two nodes, one of them shared, in closed form."""

    def function(nodes: list[list[float]], coefficients: list[list[float]]) -> SimpleNamespace:
        given = np.array(nodes), 1 / np.array([2.0, 4.0]), np.array([coefficients])  # a row for each width
        return SimpleNamespace(function=Classes.gaussian(*given, np.zeros(1), np.array([-1.0, 1.0]), np.array(False)))

    federated = function([[0, 0], [1, 5], [1, 5]], [[2, 1, 0], [0, 0, 4]])
    centralized = function([[1, 5]], [[3], [0]])
    models = {"one": SimpleNamespace(learned=[federated]), "other": SimpleNamespace(learned=[centralized])}
    monkeypatch.setattr(parsimonious, "load", models.get)
    pair = {name: SimpleNamespace(run=SimpleNamespace(folder=of)) for name, of in (("PF", "one"), ("PC", "other"))}
    low, high = Ellipses().subspaces()
    x = np.array([[a, b] for a in np.linspace(*ends(low, high, 0), 8) for b in np.linspace(*ends(low, high, 1), 8)])
    k = {(s, w): np.exp(-((x - s) ** 2).sum(axis=1) / (2 * w**2)) for s, w in (((0, 0), 2), ((1, 5), 2), ((1, 5), 4))}
    apart = 2 * k[(0, 0), 2] - 2 * k[(1, 5), 2] + 4 * k[(1, 5), 4]
    [found] = parsimonious._apart(pair).to_dict("records")  # type: ignore[arg-type]
    assert found["f"] == pytest.approx(np.linalg.norm(apart) / np.linalg.norm(3 * k[(1, 5), 2]), rel=1e-6)
    assert found["α"] == pytest.approx(np.sqrt(2**2 + 2**2 + 4**2) / 3)


def ends(low: np.ndarray, high: np.ndarray, axis: int) -> tuple[float, float]:
    """The least and the largest coordinate of the space along one axis."""
    return low[:, axis].min(), high[:, axis].max()


@pytest.mark.drawn
def test_the_curves_of_theorem_2_are_drawn(runs: Callable) -> None:
    assert runs("figure", "parsimonious/theorem2", "--style=paper").code == 0
    drawn = pd.read_csv("outputs/figures/parsimonious/figuretheorem2.csv")
    assert set(drawn["x"]) == {90, 180} and len(drawn) == 4
    assert drawn["y"].between(0, 2).all() and (drawn["y"] > 0).all()
    claim = Path("outputs/figures/parsimonious/figuretheorem2.txt").read_text()
    first = 100 * drawn["y"].iloc[0]
    assert f"Here: f differs by {first:.0f} % and alpha by" in " ".join(claim.split())
    for folder in Path("outputs/runs").glob("ellipses-*"):  # runs of who does not save models
        provenance = json.loads((folder / "provenance.json").read_text())
        del provenance["files"]["model.npz"]
        (folder / "provenance.json").write_text(json.dumps(provenance))
    answer = runs("figure", "parsimonious/theorem2")
    assert (answer.code, "no finished run belongs to it" in answer.err) == (2, True)


@pytest.mark.drawn
def test_the_space_needs_no_run_and_other_figures_do(runs: Callable) -> None:
    assert runs("figure", "parsimonious/1").code == 0
    assert matplotlib.image.imread("outputs/figures/parsimonious/figure1.png").std() > 0.01
    answer = runs("figure", "parsimonious/4")
    assert answer.code == 2
    assert "no finished run belongs to it" in answer.err


def test_each_run_alone_gives_what_it_can(each_alone: Callable) -> None:
    """As after a sweep that was interrupted."""
    each_alone("parsimonious")
