"""The frontier: statistics against what is known, tables against runs that are made up, and a small sweep."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from fkl.comparison import statistics
from fkl.comparison.statistics import interval, pareto_front, ranks
from fkl.composing.grid import jobs
from fkl.data.energy import Energy
from fkl.data.partition import Iid
from fkl.data.problem import Batch
from fkl.errors import FklError
from fkl.papers import frontier
from fkl.papers.frontier import entries as frontier_entries
from fkl.papers.frontier.entries import EXPERIMENT, FREE, belongs, measured, setting_of
from fkl.results.collect import FinishedRun

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


@given(POINTS)
def test_pareto_front_against_brute_force(points: list[tuple[int, int]]) -> None:
    """On the front is who is beaten by nobody; points that coincide do not beat each other."""

    def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
        return one != other and one[0] <= other[0] and one[1] <= other[1]

    expected = [not any(beats(other, point) for other in points) for point in points]
    assert pareto_front(*np.array(points, np.float64).T).tolist() == expected


def test_interval_is_near_students_where_values_are_normal() -> None:
    """Of twenty normal values, and repeatable; it is a little narrower than Student's, as bootstraps are."""
    values = np.random.default_rng(0).normal(5, 2, 20)
    low, high = interval(values)
    half = 2.093 * values.std(ddof=1) / np.sqrt(20)
    assert low == pytest.approx(values.mean() - half, abs=0.2 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.2 * half)
    assert (low, high) == interval(values)


def test_interval_covers_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly as often as it says: 95 % of samples of twenty; between 85 and 99 % of a hundred of them pass."""
    monkeypatch.setattr(statistics, "RESAMPLES", 999)
    random = np.random.default_rng(1)
    covered = [low <= 1.0 <= high for low, high in (interval(random.exponential(1.0, 20)) for _ in range(100))]
    assert 0.85 <= np.mean(covered) <= 0.99


def test_interval_of_equal_values_and_of_one() -> None:
    assert interval(np.full(5, 2.5)) == (2.5, 2.5)
    assert np.isnan(interval(np.array([1.0]))).all()


def test_ranks_with_ties() -> None:
    error = np.array([[0.1, 0.3, 0.2, 0.3], [1.0, 1.0, 1.0, 0.5]])
    np.testing.assert_array_equal(ranks(error), [[1, 3.5, 2, 3.5], [3, 3, 3, 1]])


@pytest.mark.parametrize("share", [0.3, 0.25, 0.0])
def test_batches_are_tested_on_what_streams_predict_last(share: float) -> None:
    """The last rounds of every client, in their order, absent ones not counted."""
    random = np.random.default_rng(2)
    table = frontier_table(random, 60)
    problem = Iid(clients=3, rounds=20, order="shuffled").split(table, random)
    present = problem.present.copy()
    present[15:, 1] = False
    problem = replace(problem, present=present)
    batch = Batch.of(problem.testing_last(share), 1, share, None, random)
    _, y, client = batch.part(training=False)
    for k in range(3):
        mine = problem.y[present[:, k], k]
        tested = round(share * len(mine))
        assert sorted(y[client == k]) == sorted(mine[len(mine) - tested :])


def frontier_table(random: np.random.Generator, rows: int) -> Any:
    from fkl.data.problem import Table

    return Table.of_one_site(random.random((rows, 2)), random.random(rows), ("a", "b"))


# --- runs that are made up


BATCH = {"test_on": "last", "test_share": 0.3, "fold": None, "loss": "square"}


def composed(on: str, method: str) -> dict[str, Any]:
    """Configuration of a job of the experiment."""
    words = {f"+frontier/data={on}", f"+frontier/method={method}"}
    [job] = [job for job in jobs(EXPERIMENT) if words <= {*job.words}]
    return job.config


def made_up(
    on: str = "naval",
    label: str = "POF-MKL",
    algo: dict[str, Any] | None = None,
    errors: Any = ((0.1,), (0.2,)),
    each: float = 10.0,
    seed: int = 0,
    scaling: str = "unit_ball",
    **others: dict[str, Any],
) -> FinishedRun:
    """A finished run of two clients; its replicates have these squared errors in each of ten rounds."""
    batch = algo is not None and "test_on" in algo
    errors = np.asarray(errors, np.float64)  # (R, 10), or (R, 1) for the same in all
    errors = np.broadcast_to(errors, (len(errors), 10))
    rounds = pd.DataFrame(list(product(range(len(errors)), range(1, 11))), columns=["replicate", "round"])
    so_far = np.cumsum(errors, axis=1) / np.arange(1, 11)
    sent = rounds["round"] * each * 2  # two clients
    if batch:
        rounds = rounds.assign(test_mse=errors.ravel(), broadcast_scalars=sent, link_scalars=4 * sent)
    else:
        rounds = rounds.assign(mse=so_far.ravel(), uplink_scalars=sent, downlink_scalars=3 * sent)
    config = composed(on, "dkla" if batch else "pof_mkl_m1")
    config = config | {"seed": seed, "replicates": len(errors), "scaling": scaling, "algo": algo or config["algo"]}
    config |= {node: config[node] | keys for node, keys in others.items()}
    run = FinishedRun(Path(), config, {"dataset": on, "algorithm": label, "rounds": 10, "clients": 2, "features": 3})
    clients = pd.DataFrame({"replicate": range(len(errors)), "training_samples": 7})
    summary = rounds[rounds["round"] == 10].assign(test_mse_at_optimum=0.05) if batch else rounds[rounds["round"] == 10]
    vars(run).update(rounds=rounds, clients=clients, summary=summary)
    return run


DKLA = {"_target_": "fkl.algorithms.decentralized.dkla.Dkla", "iterations": 10, **BATCH, "rho": 0.01}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch methods are stopped after 4 and 10 iterations."""
    monkeypatch.setattr(frontier_entries, "STOPS", (4, 10))


def test_error_of_a_stream_is_that_of_its_last_rounds() -> None:
    """0.3 of ten rounds are three, whatever came before; traffic is that of all rounds, of one client."""
    errors = np.random.default_rng(3).random((2, 10))
    values = measured(made_up(errors=errors), None)
    np.testing.assert_allclose(values["error"], errors[:, 7:].mean(axis=1))
    assert values["scalars"].tolist() == [400, 400]
    assert values["sent"].tolist() == [100, 100]


def test_error_of_a_batch_is_that_where_it_stops() -> None:
    errors = np.random.default_rng(4).random((2, 10))
    values = measured(made_up(label="DKLA", algo=DKLA, errors=errors), 4)
    np.testing.assert_allclose(values["error"], errors[:, 3])
    assert values["scalars"].tolist() == [160, 160]
    assert values["sent"].tolist() == [40, 40]


def test_setting_names_what_differs() -> None:
    assert setting_of(made_up()) == "M=1"
    assert setting_of(made_up(algo={**DKLA, "rho": 0.5})) == "rho=0.5"
    assert setting_of(made_up(algo=DKLA)) == ""


@pytest.mark.parametrize(
    "other",
    [
        {"scaling": "none"},
        {"network": {"loss": 0.1}},
        {"partition": {"order": "consecutive"}},
        {"dataset": {"decay": True}},
        {"kernels": {"D": 21}},
        {"kernels": {"N": 1, "smallest": 10.0, "largest": 10.0}},
        {"algo": {"_target_": "fkl.algorithms.federated.pof_mkl.PofMkl", "step_factor": 1.0}},
        {"algo": DKLA | {"test_on": "drawn"}},
        {"algo": DKLA | {"fold": 0}},
        {"algo": DKLA | {"iterations": 9}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_run_on_another_footing_is_left_out(short: None, other: dict[str, Any]) -> None:
    assert belongs(made_up())
    assert belongs(made_up(algo=DKLA))
    assert not belongs(made_up(**other))


def test_no_run_is_told(short: None) -> None:
    with pytest.raises(FklError, match=r"\+experiment=frontier"):
        frontier.table("1", [made_up(scaling="none")])


def test_table_1_marks_who_is_beaten_by_none(short: None) -> None:
    """By few scalars first; the fit that DKLA's run tells of sends seven samples of four numbers."""
    runs = [
        made_up(errors=[[0.3], [0.5]], each=1),
        made_up(label="Another", errors=[[0.45]], each=5),
        made_up(label="DKLA", algo=DKLA, errors=[[0.6] * 4 + [0.3] * 6], each=10),
    ]
    table = frontier.table("1", runs)
    assert table["algorithm"].tolist() == ["POF-MKL", "Ridge, pooled", "DKLA", "Another", "DKLA"]
    assert table["scalars"].tolist() == [40, 28 + 2 * 20, 160, 200, 400]
    assert table["sent_by_client"].tolist() == [10, 28, 40, 50, 100]
    assert table["error"].tolist() == pytest.approx([400, 50, 600, 450, 300])
    assert table["on_front"].tolist() == ["yes", "yes", "no", "no", "no"]
    assert table["n"].tolist() == [2, 1, 1, 1, 1]
    assert table["spread"][0] == pytest.approx(1000 * np.std([0.3, 0.5], ddof=1))


def test_table_2_pairs_replicates_of_the_same_seed(short: None) -> None:
    """Errors that go up and down together differ by a little, whatever their spread; strangers are left out."""
    random = np.random.default_rng(5)
    common, extra = random.random((8, 1)), 0.01 + 0.001 * random.random((8, 1))
    runs = [
        made_up(errors=common[:5], seed=0), made_up(errors=common[5:], seed=1),
        made_up(label="Another", errors=(common + extra)[:5], seed=0),
        made_up(label="Another", errors=(common + extra)[5:], seed=1),
        made_up(label="Another", errors=[[9.0]] * 3, seed=2),
    ]  # fmt: skip
    [row] = frontier.table("2", runs).to_dict("records")
    assert (row["algorithm"], row["against"], row["n"], row["worse_in"]) == ("Another", "POF-MKL M=1", 8, 8)
    assert row["difference"] == pytest.approx(1000 * extra.mean())
    low, high = interval(extra[:, 0])
    assert (row["low_95"], row["high_95"]) == pytest.approx((1000 * low, 1000 * high), rel=1e-4)
    assert 10 < row["low_95"] < row["difference"] < row["high_95"] < 11


def test_table_3_ranks_methods_that_were_run_everywhere(short: None) -> None:
    """Batches at their end only, and their best fit; a tie shares its places; who missed a data set is not ranked."""
    runs = [
        *(made_up(dataset, errors=[[0.25], [0.5]]) for dataset in ("naval", "air")),
        made_up("naval", "DKLA", DKLA, errors=[[0.9] * 9 + [0.125], [0.9] * 9 + [0.5]]),
        made_up("air", "DKLA", DKLA, errors=[[0.9], [0.9]]),
        made_up("naval", "Absent elsewhere", errors=[[0.0], [0.0]]),
    ]
    table = frontier.table("3", runs).set_index("algorithm")
    assert table.index.tolist() == ["Ridge, pooled", "POF-MKL", "DKLA"]
    assert table.loc["POF-MKL", ["on_naval", "on_air", "rank"]].tolist() == [2.75, 2, 2.375]
    assert table.loc["DKLA", ["on_naval", "on_air", "rank"]].tolist() == [2.25, 3, 2.625]
    assert table.loc["DKLA", "n"] == 2


# --- a small sweep


@pytest.mark.drawn
def test_end_to_end(fkl: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A method of each family by the experiment itself, on numbers in energy's layout."""
    (tmp_path / "files").mkdir()
    random = np.random.default_rng(0)
    x = random.random((25, 240))
    savemat(tmp_path / "files" / "EnergyData.mat", {"X": x, "y": (0.1 + 0.3 * x[0] ** 2)[:, None]})
    monkeypatch.setattr(Energy, "files", tuple(replace(file, sha256=None, size=None) for file in Energy.files))
    monkeypatch.setattr(frontier_entries, "FREE", (*FREE, "partition.clients", "partition.rounds"))
    few = ("replicates=2", "paths.data=files", "partition.clients=8", "partition.rounds=30")
    monkeypatch.setattr("fkl.execution.draw_run", lambda *_, **__: None)  # those of the paper are drawn here
    methods = "+frontier/method=pof_mkl_m25,pooled_raker,dkla"
    assert fkl("run", "-m", "+experiment=frontier", "+frontier/data=energy", methods, *few).code == 0

    assert fkl("table", "frontier/1").code == 0
    table = pd.read_csv("outputs/tables/frontier/table1.csv").set_index(["algorithm", "setting"])
    assert len(table) == 5
    assert (table["n"] == 2).all()
    assert table.loc[("Raker, pooled", slice(None)), "scalars"].item() == 30 * (25 + 2)
    assert table.loc[("DKLA", "k=50"), "sent_by_client"] == 50 * 2 * 20
    [folder] = Path("outputs/runs").glob("energy-dkla-*")
    rounds = pd.read_csv(folder / "rounds.csv")
    error = rounds[rounds["round"] == 500]["test_mse"].mean()
    assert table.loc[("DKLA", "k=500"), "error"] == pytest.approx(1000 * error, rel=1e-5)

    for number, rows in (("2", 3), ("3", 4)):
        assert fkl("table", f"frontier/{number}").code == 0
        assert len(pd.read_csv(f"outputs/tables/frontier/table{number}.csv")) == rows
    for number in frontier.FIGURES:
        assert fkl("figure", f"frontier/{number}").code == 0
        assert matplotlib.image.imread(f"outputs/figures/frontier/figure{number}.png").std() > 0.01
        drawn = pd.read_csv(f"outputs/figures/frontier/figure{number}.csv")
        assert {"POF-MKL, M=25", "Raker, pooled", "DKLA"} <= set(drawn["curve"])
