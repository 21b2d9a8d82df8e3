"""The frontier: statistics against what is known, tables against runs that are made up, and a small search."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fkl
from fkl.basics.errors import FklError
from fkl.config import load
from fkl.config.compose import compose
from fkl.data.partition import Iid
from fkl.data.problem import Batch
from fkl.papers import frontier
from fkl.papers.frontier import entries, questions, search, trials
from fkl.papers.frontier.measures import COMPUTE_S, error_of, measured
from fkl.papers.jobs import Job
from fkl.papers.our_runs import Found
from fkl.report.compare import statistics
from fkl.report.compare.statistics import interval, pareto_front, ranks, student_interval
from fkl.results.finished_runs import FinishedRun
from fkl.runs.prepare import prepare

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
    batch = Batch.from_problem(problem.testing_last(share), 1, share, None, random)
    _, y, client = batch.part(training=False)
    for k in range(3):
        mine = problem.y[present[:, k], k]
        tested = round(share * len(mine))
        assert sorted(y[client == k]) == sorted(mine[len(mine) - tested :])


def frontier_table(random: np.random.Generator, rows: int) -> Any:
    from fkl.data.problem import Table

    return Table.of_one_site(random.random((rows, 2)), random.random(rows), ("a", "b"))


# --- runs that are made up


def made_up(name: str, errors: Any, size: float, **cell: Any) -> list[Found]:
    """Runs of a method with these errors (seeds, replicates), of one client that sends so many bytes."""
    words = (f"+frontier/tuned=naval-{name}",)
    told = {"dataset": "naval", "name": name, "kind": "decentralized", "searched": 0.1, "tuned": "a=1"} | cell
    found = []
    for seed, of_seed in enumerate(errors):
        config = {"seed": seed, "network": {"latency_s": 0.05, "bandwidth_bytes_per_s": 1000}, "precision": "float32"}
        run = FinishedRun(Path(), config | {"kernels": {"D": 3}}, {"rounds": 1, "clients": 1, "features": 4})
        end = {"replicate": range(len(of_seed)), "test_mse": of_seed, "test_mse_at_optimum": of_seed}
        end |= {"broadcast_bytes": size / 2, "link_bytes": size, "communication_s": 1.0}
        if "privacy" in cell:
            end["epsilon_sample"] = float(cell["epsilon"])
        clients = pd.DataFrame({"replicate": range(len(of_seed)), "training_samples": 7})
        vars(run).update(rounds=pd.DataFrame(), summary=pd.DataFrame(end), clients=clients)
        found.append(Found(run, "frontier/judged", Job(words, config, told)))
    return found


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def these(*runs: list[Found]) -> None:
        monkeypatch.setattr(entries, "find", lambda *_: [one for several in runs for one in several])

    return these


def test_error_of_a_stream_is_that_of_its_last_rounds() -> None:
    """0.3 of ten rounds are three, whatever came before."""
    errors = np.random.default_rng(3).random((2, 10))
    rounds = pd.DataFrame(list(product(range(2), range(1, 11))), columns=["replicate", "round"])
    rounds["mse"] = (np.cumsum(errors, axis=1) / np.arange(1, 11)).ravel()
    found = error_of(rounds, rounds[rounds["round"] == 10])
    np.testing.assert_allclose(found, errors[:, 7:].mean(axis=1))


def test_seconds_of_a_star_are_those_of_a_network_with_compute_s() -> None:
    words = (
        "algo=ofmkl_avg",
        "dataset=diabetes",
        "partition=diabetes",
        "partition.rounds=10",
        "replicates=1",
        "algo.lam=0",
        "algo.eta=0.4",
    )
    words += ("kernels.N=2", "kernels.D=3", "network.latency_s=0.05", "network.bandwidth_bytes_per_s=1000")
    cell = {"kind": "federated"}
    plain = measured(fkl.run(*words, quiet=True), cell)["seconds"].item()
    timed = fkl.run(*words, f"network.compute_s={COMPUTE_S}", quiet=True)
    assert plain == pytest.approx(timed.summary["communication_s"].item(), rel=1e-6)


def test_the_least_error_within_a_budget_is_named(finished: Callable[..., None]) -> None:
    """And who sends more, or samples as they are, is no candidate, but those that cannot be told apart are named."""
    errors = 0.1 + np.random.default_rng(4).random((4, 3))
    noise = np.array([-0.01, 0.02, 0.01, -0.005])[:, None]
    finished(
        made_up("near", errors + noise, 3000),
        made_up("best", errors, 4000),
        made_up("far", errors + 0.3, 100),
        made_up("costly", errors - 0.05, 50_000),
        made_up("silent", errors + 0.5, 0, kind="alone"),
        made_up("ridge", errors - 0.09, 0, kind="pooled", at_optimum=True),
    )
    rows = frontier.table("1", []).set_index(["counted", "among", "budget"]).loc[("all links", "all")]
    assert rows["run"].tolist() == ["far", "best", "costly", "costly", "costly"]
    assert rows.loc["10 kB", "not_worse"] == "near"
    assert rows.loc["any", "not_worse"] == "-"
    assert rows["candidates"].tolist() == [2, 4, 5, 5, 5]
    assert rows.loc["1 kB", "alone_minus_run"] == "silent: +200 [+200, +200]"
    sent = frontier.table("1", []).set_index(["counted", "among", "budget"]).loc[("sent by a client", "all")]
    assert sent.loc["10 kB", "run"] == "best"
    ridge = frontier.table("3", []).set_index("method").loc["ridge"]
    assert (ridge["bytes"], ridge["sent"]) == (7 * 5 * 4 + 2 * 3 * 4, 7 * 5 * 4)


def test_replicates_of_one_seed_are_no_more_evidence(finished: Callable[..., None]) -> None:
    """A hundred draws on the same three data sets give the interval of three numbers."""
    apart = np.array([0.1, 0.2, 0.4])
    finished(made_up("a", np.zeros((3, 100)), 1), made_up("b", np.repeat(apart[:, None], 100, axis=1), 1))
    a, b = entries.entries_of([])["naval"]
    assert entries.difference(b, a) == pytest.approx((apart.mean(), *student_interval(apart)))


def test_what_an_idea_is_worth_is_paired_by_seed(
    finished: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The difference of seeds' means, and nothing where one of the two was not run."""
    monkeypatch.setattr(questions, "QUESTIONS", {"it": ("with", "without"), "other": ("with", "nobody")})
    errors, apart = 0.1 + np.random.default_rng(5).random((3, 2)), np.array([0.01, 0.02, 0.04])
    finished(made_up("with", errors + apart[:, None], 300), made_up("without", errors, 100))
    (row,) = frontier.table("4", []).to_dict("records")
    assert (row["question"], row["bytes"], row["bytes_other"], row["diverged"]) == ("it", 300, 100, 0)
    low, high = student_interval(apart)
    assert [row[name] / 1e3 for name in ("difference", "low_95", "high_95")] == pytest.approx([apart.mean(), low, high])


def test_every_question_is_of_methods_that_are_judged() -> None:
    names = {trials.cell_of(entry.method)["name"] for entry in trials.entries()}
    assert {name for pair in questions.QUESTIONS.values() for name in pair} <= names


def test_noise_of_the_clients_will_do_where_the_server_is_trusted(finished: Callable[..., None]) -> None:
    def private(name: str, error: float, privacy: str, epsilon: int) -> list[Found]:
        return made_up(name, error + np.arange(6).reshape(3, 2) / 1e6, 10, privacy=privacy, epsilon=epsilon)

    finished(private("own", 0.2, "local", 4), private("server", 0.3, "central", 1), private("lax", 0.1, "central", 16))
    table = frontier.table("2", []).set_index(["noise", "epsilon"])["run"]
    assert table.loc["central"].to_dict() == {1: "server", 4: "own", 16: "lax"}
    assert table.loc["local"].to_dict() == {4: "own", 16: "own"}


def test_no_run_is_told() -> None:
    with pytest.raises(FklError, match=r"\+experiment=frontier/judged"):
        frontier.table("1", [])


# --- the search


def test_what_is_judged_is_the_best_of_the_trials() -> None:
    """Of every entry as many; tuned.yaml says what trials.csv does, and nobody was tuned on what is judged."""
    tried = trials.read_trials()
    counts = pd.DataFrame(tried).groupby([0, 1]).size()
    assert set(counts) == {trials.BUDGET}
    assert set(counts.index) == {(entry.dataset, entry.setting) for entry in trials.entries()}
    assert trials.TUNED.read_text(encoding="utf-8") == trials.tuned(tried)
    assert "rows=even" in search.APART


def test_a_search_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is done is not tried again, and a search done twice is the same to the byte."""
    pytest.importorskip("optuna")
    pytest.importorskip("dp_accounting")
    entry = trials.Entry("wave_farm", "dkla_5", "local", 4)
    for module in (search, trials):
        monkeypatch.setattr(module, "BUDGET", 2)
        monkeypatch.setattr(module, "entries", lambda: iter([entry]))
    texts = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(trials, "TRIALS", tmp_path / folder / "trials.csv")
        monkeypatch.setattr(search, "TUNED", tmp_path / folder / "tuned.yaml")
        search.main(())
        texts.append((trials.TRIALS.read_text(), search.TUNED.read_text()))
    assert texts[0] == texts[1]
    monkeypatch.setattr(search, "search", None)
    search.main(["wave_farm"])
    assert trials.TRIALS.read_text() == texts[0][0]
    assert "override /privacy: local" in texts[0][1]


def test_noise_is_the_least_that_an_epsilon_takes() -> None:
    pytest.importorskip("dp_accounting")
    words = (
        "dataset=diabetes",
        "partition=diabetes",
        "algo=vm_kofl",
        "privacy=local",
        "privacy.clip=1",
        "privacy.noise=1",
    )
    experiment = prepare(load(compose(*words)))
    noise = search.noise_for(experiment, 4.0)
    told = [
        replace(experiment.algorithm, condition=replace(experiment.algorithm.condition, noise=one)).columns(
            experiment.problem
        )["epsilon_sample"][-1]
        for one in (noise, 0.98 * noise)
    ]
    assert told[0] <= 4.0 < told[1]
