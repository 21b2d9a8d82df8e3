"""Whole runs through the command, as a user starts them."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml
from conftest import (
    AGENTS_ON_STREAMS,
    ALGORITHMS,
    DECENTRALIZED,
    LOCAL_BATCHES,
    ONLINE,
    PARSIMONIOUS,
    SMALL,
    VERTICAL,
    small,
)

from fkl.runs.tables import TIMING_COLUMNS

TABLES = {"clients.csv", "config.yaml", "provenance.json", "rounds.csv", "summary.csv"}
TIMES = ["runtime_s", "runtime_per_client_s"]
TRAFFIC = [f"{direction}_{unit}" for direction in ("uplink", "downlink") for unit in ("messages", "scalars", "bytes")]
STREAM_ERRORS = ["replicate", "mse", "regret_best_kernel", "regret_hindsight", "mse_running_mean", "mse_last_value"]
STREAM_SUMMARY = [*STREAM_ERRORS, *TRAFFIC, "r2", "rmse_in_units", "mse_worst_tenth", "mse_gini", *TIMES]
PEERS = ["transmissions", "broadcast_scalars", "broadcast_bytes", "link_messages", "link_scalars", "link_bytes"]
BATCH_SUMMARY = [
    "replicate", "train_mse", "test_mse", "functional_distance", "functional_distance_worst", "consensus_error",
    "distance", *PEERS, "train_mse_at_optimum", "test_mse_at_optimum", "test_mse_training_mean", "r2", "rmse_in_units",
    "test_mse_worst_tenth", "test_mse_gini", *TIMES,
]  # fmt: skip
OWN_SUMMARY = [
    "replicate", "train_mse", "test_mse", *PEERS, "test_mse_training_mean", "r2", "rmse_in_units",
    "test_mse_worst_tenth", "test_mse_gini", *TIMES,
]  # fmt: skip
SUMS_SUMMARY = [name for name in BATCH_SUMMARY if name not in PEERS]
SUMS_SUMMARY[7:7] = TRAFFIC
CLASS_SUMMARY = [
    "replicate", "train_error", "train_loss", "test_error", "test_loss", *SUMS_SUMMARY[3:13], "train_error_at_optimum",
    "train_loss_at_optimum", "test_error_at_optimum", "test_loss_at_optimum", "test_error_majority",
    "test_error_worst_tenth", "test_error_gini", *TIMES,
]  # fmt: skip
COVERAGE = ["coverage_50", "coverage_80", "coverage_95"]
LOG_SCORES = ["log_score", "log_score_mixture"]
SURE_SUMMARY = list(STREAM_SUMMARY)
SURE_SUMMARY[len(STREAM_ERRORS) : len(STREAM_ERRORS)] = [*COVERAGE, *LOG_SCORES]
PEER_SUMMARY = [*STREAM_ERRORS, *PEERS, *STREAM_SUMMARY[len(STREAM_ERRORS) + len(TRAFFIC) :]]
SURE_PEER_SUMMARY = [*STREAM_ERRORS, *COVERAGE, *LOG_SCORES, *PEER_SUMMARY[len(STREAM_ERRORS) :]]


FITTED_SUMMARY = [
    "replicate", "train_error", "test_error", "active_nodes", "regions", "peaks", "sent_samples", "dual_value",
    "gap", "agents_gap", "violation", "slackness", "converged", "agents_converged", *TRAFFIC, "test_error_majority",
    *TIMES,
]  # fmt: skip

MACHINE_SUMMARY = ["replicate", "train_error", "test_error", "support_vectors", "sent_samples", *TRAFFIC]
MACHINE_SUMMARY += ["test_error_majority", *TIMES]

VERTICAL_SUMMARY = ["replicate", "iterations", "test_error", "link_messages", "link_scalars", "link_bytes"]
VERTICAL_SUMMARY += ["training_samples", "test_samples", "test_error_majority", *TIMES]


AT_ONCE = ("libsvm", "pp_svmv", "vertical_nystroem", "vertical_ridge")
"""Methods over a vertical partition that have one model, when they are done."""


DRAWN = ("coke", "fdskl", "libsvm", "parsimonious_federated", "pof_mkl", "pooled_svm", "raker", "rf_gp", "rfomkr")
"""One of each family and kind of figure."""


ALWAYS = (*DRAWN, "consensus_rf_gp", "dekrr_ddrf", "fed3r", "odkla", "one_shot_ridge", "secureboost")
"""Those of `make test`: one of each list of columns."""


CALIBRATED = ("rf_gp",)
"""Methods that say how sure they are."""


STARS_OF_BATCHES = ("dkrr_ny_cm", "falkon", "fed3r", "one_shot_ridge", *LOCAL_BATCHES)
"""Methods with a server whose clients have all their samples from the start."""


def rounds_and_clients(algo: str) -> tuple[int, int]:
    """Of a run as small as `small` makes it."""
    if algo in STARS_OF_BATCHES:
        return (1 if algo in ("fed3r", "one_shot_ridge") else 100), 4
    if algo in VERTICAL:
        return (1 if algo in AT_ONCE else 20), 2
    if algo in PARSIMONIOUS:
        return 1, 9
    return (100 if algo in ONLINE | DECENTRALIZED - AGENTS_ON_STREAMS else 40), (1 if algo in ONLINE else 4)


def expected(algo: str) -> tuple[tuple[str, ...], list[str], tuple[str, ...], tuple[str, ...]]:
    """Figures, columns of the summary, those of them that are errors, and directions of traffic."""
    if algo in ("consensus_rf_gp", "d_rf_gp"):
        return ("mse", "regret", "calibration"), SURE_PEER_SUMMARY, ("mse", *COVERAGE), ("broadcast", "link")
    if algo in AGENTS_ON_STREAMS:
        return ("mse", "regret"), PEER_SUMMARY, ("mse",), ("broadcast", "link")
    if algo == "dekrr_ddrf":
        return ("mse", "transmissions"), OWN_SUMMARY, ("train_mse", "test_mse"), ("broadcast", "link")
    if algo in DECENTRALIZED:
        return ("mse", "distance", "transmissions"), BATCH_SUMMARY, ("train_mse", "test_mse"), ("broadcast", "link")
    if algo == "fed3r":
        return ("error", "distance"), CLASS_SUMMARY, ("train_error", "test_error"), ("uplink", "downlink")
    if algo in STARS_OF_BATCHES:
        return ("mse", "distance"), SUMS_SUMMARY, ("train_mse", "test_mse"), ("uplink", "downlink")
    if algo in ("pooled_svm", "cascade_svm"):
        return ("error",), MACHINE_SUMMARY, ("train_error", "test_error"), ("uplink", "downlink")
    if algo in PARSIMONIOUS:
        return ("error",), FITTED_SUMMARY, ("train_error", "test_error"), ("uplink", "downlink")
    if algo in VERTICAL:
        return ("error",), VERTICAL_SUMMARY, ("test_error",), ("link",)
    if algo in CALIBRATED:
        return ("mse", "regret", "calibration"), SURE_SUMMARY, ("mse", *COVERAGE), ("uplink", "downlink")
    return ("mse", "regret"), STREAM_SUMMARY, ("mse",), ("uplink", "downlink")


def csv_bytes(folder: Path) -> dict[str, str]:
    """The run's three tables as text, without what a clock decides."""
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("rounds", "clients", "summary")}
    return {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore").to_csv() for name, table in tables.items()}


@pytest.mark.parametrize(
    "algo",
    [
        pytest.param(algo, marks=[pytest.mark.drawn] * (algo in DRAWN) + [pytest.mark.slow] * (algo not in ALWAYS))
        for algo in (*ALGORITHMS, *LOCAL_BATCHES)
    ],
)
def test_every_algorithm_runs_and_leaves_exactly_the_promised_files(fkl: Callable, tmp_path: Path, algo: str) -> None:
    """`out=DIR` holds these files and no others; the closing table names the folder; nothing lies beside it."""
    answer = fkl("run", *small(algo), "out=here")
    assert answer.code == 0, answer.err
    [figures, columns, errors, directions] = expected(algo)
    drawn = {f"{name}.{kind}" for name in figures for kind in ("png", "pdf")}
    assert {file.name for file in Path("here").iterdir()} == TABLES | drawn
    assert {path.name for path in tmp_path.iterdir()} == {"here"}
    assert "run       here" in answer.out
    summary = pd.read_csv("here/summary.csv")
    assert list(summary) == columns
    assert len(summary) == 2
    assert all(summary[name].between(0, 1).all() for name in errors)
    rounds, clients = rounds_and_clients(algo)
    assert len(pd.read_csv("here/rounds.csv")) == 2 * rounds
    assert len(pd.read_csv("here/clients.csv")) == 2 * clients
    sent = json.loads(Path("here/provenance.json").read_text())["scalars_by_kind"]
    for direction in directions:
        of_kinds = sum(count for kind, count in sent.items() if kind.startswith(direction))
        assert of_kinds == summary[f"{direction}_scalars"].sum()


def test_same_seed_same_bytes_on_any_threads_and_chunks(fkl: Callable) -> None:
    """Only the timing columns may differ between files of one configuration; `fkl.conformance` asks all algorithms."""
    common = ("run", *small("pof_mkl"), "replicates=3")
    for name, how in {"a": [], "b": ["threads=1", "chunk=1"], "c": ["threads=2", "chunk=2"]}.items():
        assert fkl(*common, *how, f"out={name}").code == 0
    first = csv_bytes(Path("a"))
    assert csv_bytes(Path("b")) == first
    assert csv_bytes(Path("c")) == first
    fkl(*common, "seed=1", "out=d")
    assert csv_bytes(Path("d")) != first


def test_threads_matter_to_no_byte_where_they_share_work(fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run large enough for two threads gives what one thread gives."""
    monkeypatch.setattr("fkl.kernels.threads.ELEMENTS_A_THREAD", 1)
    common = ("run", *SMALL, "algo=pof_mkl", "algo.M=25", "algo.xi=0.5")
    fkl(*common, "threads=1", "out=one")
    fkl(*common, "threads=2", "out=two")
    assert csv_bytes(Path("one")) == csv_bytes(Path("two"))


def test_a_finished_run_is_not_done_again(fkl: Callable) -> None:
    """The same configuration finds its folder; the folder's name follows the configuration."""
    first = fkl("run", *SMALL)
    [folder] = Path("outputs/runs").iterdir()
    written = (folder / "summary.csv").stat().st_mtime_ns
    second = fkl("run", *SMALL, "threads=1")
    assert "finished already" in second.out
    assert (folder / "summary.csv").stat().st_mtime_ns == written
    assert second.out.splitlines()[-3:] == first.out.splitlines()[-3:]
    fkl("run", *SMALL, "seed=3")
    assert len(list(Path("outputs/runs").iterdir())) == 2


def test_a_key_that_is_removed_names_the_run_with_its_default(fkl: Callable, tmp_path: Path) -> None:
    """Of the run itself and of a group; what the run writes of itself has them, too."""
    words = ("run", *SMALL, "kernels.N=5", "algo.M=5")
    assert fkl(*words).code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    for word in ("~seed", "~rows", "~algo.local_steps", "~network.loss"):
        assert "finished already" in fkl(*words, word).out
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    assert fkl(*words, "~seed", "out=here").code == 0
    config = yaml.safe_load((tmp_path / "here" / "config.yaml").read_text())
    assert config["seed"] == 0


def test_a_way_through_a_folder_that_is_not_there_leads_to_the_run(fkl: Callable, tmp_path: Path) -> None:
    words = ("run", *SMALL, "kernels.N=5")
    answer = fkl(*words, "out=new/../here")
    assert (answer.code, [path.name for path in tmp_path.iterdir()]) == (0, ["here"])
    assert "finished already" in fkl(*words, "out=here").out


def test_a_folder_with_something_else_is_never_overwritten(fkl: Callable) -> None:
    """`out` may be new, empty, or hold this same run."""
    Path("mine").mkdir()
    assert fkl("run", *SMALL, "out=mine").code == 0
    assert fkl("run", *SMALL, "out=mine").code == 0
    before = csv_bytes(Path("mine"))
    answer = fkl("run", *SMALL, "out=mine", "seed=9")
    assert answer.code == 2
    assert answer.err.startswith("error: out=mine: must be")
    assert csv_bytes(Path("mine")) == before


def test_a_sweep_makes_a_folder_for_every_combination(fkl: Callable) -> None:
    """Comma-separated values are multiplied; a job that cannot run is named and does not stop the others."""
    answer = fkl("run", "-m", *SMALL, "algo=pof_mkl,vm_kofl", "algo.eta=0.01,0.1", "kernels.N=5")
    assert answer.code == 0
    configs = [yaml.safe_load(file.read_text()) for file in Path("outputs/runs").glob("*/config.yaml")]
    assert sorted((c["algo"]["_target_"].rsplit(".", 1)[-1], c["algo"]["eta"]) for c in configs) == [
        ("PofMkl", 0.01), ("PofMkl", 0.1), ("VmKofl", 0.01), ("VmKofl", 0.1),
    ]  # fmt: skip
    answer = fkl("run", "-m", *SMALL, "algo.M=9,2", "kernels.N=5")
    assert answer.code == 2
    assert "algo.M=9: must be an integer from 1 to kernels.N=5" in answer.err
    assert "2 runs: 1 failed, 1 finished" in answer.out
    assert len(list(Path("outputs/runs").iterdir())) == 5


def test_simulated_communication_time_is_recorded_where_links_have_a_cost(fkl: Callable) -> None:
    """Each round costs two latencies and the bytes of both directions over the bandwidth."""
    fkl("run", *SMALL, "network.latency_s=0.5", "network.bandwidth_bytes_per_s=1000", "out=here")
    seconds = pd.read_csv("here/rounds.csv").query("replicate == 0")["communication_s"].to_numpy()
    down, up = 51 * 16 * 4, 16 * 4 + 7  # a bit for each of 51 kernels tells which one the gradient is of
    assert seconds[0] == pytest.approx(2 * 0.5 + (down + up) / 1000)
    assert seconds[-1] == pytest.approx(100 * seconds[0])


def test_partitions_with_absent_clients_run(fkl: Callable) -> None:
    """A client whose rows are used up sends nothing more and is judged on the rounds it had."""
    answer = fkl("run", "dataset=diabetes", "partition=quantity_skew", "partition.clients=5", "partition.rounds=100",
                 "kernels.D=8", "replicates=1", "out=here")  # fmt: skip
    assert answer.code == 0, answer.err
    clients = pd.read_csv("here/clients.csv")
    assert clients["rounds"].min() < clients["rounds"].max() == 100
    assert (clients["uplink_messages"] == clients["rounds"]).all()
