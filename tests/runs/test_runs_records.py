"""The three tables say what their columns promise."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from literal.worlds import Size, make_dictionary, make_problem

from fkl.algorithms.federated.descent import VmKofl
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.engines.base import Experiment, make_world
from fkl.engines.rounds import simulate_run
from fkl.kernels.hindsight import best_loss
from fkl.network import Network
from fkl.runs import tables
from fkl.runs.tables import FLOATS, Records, cells_written, csv_rows, make_records
from fkl.tasks.stream import StreamJudge

LAM = 0.01


def experiment(algorithm: object, absent: float = 0.2) -> Experiment:
    """A small run in float64 in which clients miss rounds."""
    size = Size()
    problem = make_problem(size, seed=4, absent=absent)
    return Experiment(problem, make_dictionary(size), Network(), algorithm, 5, 3, "float64")  # type: ignore[arg-type]


def by_hand(given: Experiment) -> list[dict[str, np.ndarray]]:
    """Predictions, losses and norms of every round, from the algorithm alone."""
    world, _ = make_world(given, tuple(range(given.replicates)))
    state = given.algorithm.init(world)
    rounds = []
    for t in range(given.problem.rounds):
        world.channel.open_round(t, given.problem.present[t])
        state, outcome = given.algorithm.step(world, state, t)
        rounds.append({"y_hat": outcome.y_hat, "loss": outcome.loss, "norm": outcome.squared_norm()})
    return rounds


@pytest.fixture(params=[PofMkl(M=2, lam=LAM), VmKofl(lam=LAM)], ids=["pof_mkl", "vm_kofl"])
def given(request: pytest.FixtureRequest) -> Experiment:
    """A small experiment of a personal and of a global method."""
    return experiment(request.param)


@pytest.fixture
def records(given: Experiment) -> Records:
    """Its records, two replicates at a time."""
    return make_records(given, simulate_run(given, None, 2, lambda _: None))


def test_every_client_stands_beside_its_site(given: Experiment) -> None:
    """In the order of clients, replicate after replicate."""
    site = np.arange(given.problem.clients) % 2
    sited = replace(given, problem=replace(given.problem, site=site, site_names=("north", "south")))
    clients = make_records(sited, simulate_run(sited, None, 2, lambda _: None)).clients
    here = [("north", "south")[place] for place in site]
    assert clients["site"].tolist() == here * given.replicates
    assert clients["client"].tolist() == [*range(len(site))] * given.replicates
    assert clients["replicate"].tolist() == np.repeat(range(given.replicates), len(site)).tolist()


def test_errors_and_both_regrets_are_the_sums_of_their_definitions(given: Experiment, records: Records) -> None:
    """mse, eq. (11) and the regret in hindsight, recomputed round by round for every client."""
    problem, rounds = given.problem, by_hand(given)
    seen = problem.present
    best = np.zeros(seen.shape)
    best[seen] = best_loss(given.dictionary, problem.x[seen], problem.y[seen], LAM)
    for r in range(given.replicates):
        error = np.stack([(a["y_hat"][r] - problem.y[t]) ** 2 for t, a in enumerate(rounds)])
        loss = np.where(seen, error + LAM * np.stack([a["norm"][r] for a in rounds]), 0)
        kernels = np.where(seen[..., None], np.stack([a["loss"][r] for a in rounds]), 0)
        ours = records.rounds[records.rounds["replicate"] == r]
        for t in (0, 3, problem.rounds - 1):
            row = ours.iloc[t]
            so_far = slice(0, t + 1)
            assert row["mse"] == pytest.approx(error[so_far][seen[so_far]].mean())
            eq11 = loss[so_far].sum(0) - kernels[so_far].sum(0).min(-1)
            assert row["regret_best_kernel"] == pytest.approx(eq11.mean())
            assert row["regret_hindsight"] == pytest.approx((loss[so_far] - best[so_far]).sum(0).mean())
        clients = records.clients[records.clients["replicate"] == r]
        assert clients["mse"].to_numpy() == pytest.approx(np.where(seen, error, 0).sum(0) / seen.sum(0))
        assert clients["regret_best_kernel"].to_numpy() == pytest.approx(loss.sum(0) - kernels.sum(0).min(-1))
        assert clients["regret_hindsight"].to_numpy() == pytest.approx((loss - best).sum(0))


def test_traffic_accumulates_and_rounds_agree_with_clients_and_summary(given: Experiment, records: Records) -> None:
    """The last round's totals are the sums over clients, and what the summary shows."""
    last = records.rounds.groupby("replicate").last()
    for unit in ("messages", "scalars", "bytes"):
        for direction in ("uplink", "downlink"):
            column = f"{direction}_{unit}"
            assert (records.rounds.groupby("replicate")[column].diff().dropna() >= 0).all()
            assert (records.clients.groupby("replicate")[column].sum() == last[column]).all()
    for column in ("mse", "regret_best_kernel", "regret_hindsight", "uplink_scalars", "uplink_bytes"):
        assert (records.summary.set_index("replicate")[column] == last[column]).all()
    assert (last["downlink_bytes"] == 8 * last["downlink_scalars"]).all()
    telling_which = {"POF-MKL": -(-given.dictionary.N // 8)}  # bytes a message: a bit for each kernel
    told = last["uplink_messages"] * telling_which.get(given.algorithm.label, 0)
    assert (last["uplink_bytes"] == 8 * last["uplink_scalars"] + told).all()


def test_cells_are_counted_before_the_run(given: Experiment, records: Records) -> None:
    assert cells_written(given) == records.rounds.size + records.clients.size + records.summary.size


def test_time_is_the_algorithm_s_alone(given: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation does not count: a slow judge changes no runtime."""
    clock = {"now": 0.0}
    enter, step = StreamJudge.enter, type(given.algorithm).step

    def slow_enter(self: StreamJudge, *args: object) -> bool:
        clock["now"] += 1000.0
        return enter(self, *args)  # type: ignore[arg-type]

    def timed_step(self: object, *args: object) -> object:
        clock["now"] += 1.0
        return step(self, *args)  # type: ignore[arg-type]

    for module in ("rounds", "base"):
        monkeypatch.setattr(f"fkl.engines.{module}.perf_counter", lambda: clock["now"])
    monkeypatch.setattr(StreamJudge, "enter", slow_enter)
    monkeypatch.setattr(type(given.algorithm), "step", timed_step)
    records = make_records(given, simulate_run(given, None, None, lambda _: None))
    assert records.summary["runtime_s"].to_list() == pytest.approx([given.problem.rounds / 3] * 3)
    per_client = records.summary["runtime_s"] / given.problem.clients
    assert records.summary["runtime_per_client_s"].to_list() == pytest.approx(per_client.to_list())


ROWS = st.tuples(st.integers(), st.floats(), st.floats(width=32), st.floats(allow_nan=False))


@for_all(st.lists(ROWS), st.booleans())
def test_rows_are_written_as_pandas_writes_them(rows: list[tuple[int, float, float, float]], named: bool) -> None:
    table = pd.DataFrame(rows, columns=["round", "mse", "narrow", "regret"]).astype({"narrow": np.float32})
    if len(table):
        table["round"] %= 2**62
        table = table.astype({"round": np.int64})
    if named:
        table["site"] = 'north, "old"'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS_AT_A_TIME", 3)
        written = "".join(csv_rows({str(name): table[name].to_numpy() for name in table}))
    assert written == table.to_csv(index=False, header=False, float_format=FLOATS, lineterminator="\n")
