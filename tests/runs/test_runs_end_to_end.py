"""Whole runs through the command, as a user starts them."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from conftest import ALGORITHMS, LOCAL_BATCHES, SMALL, small

from fkl.runs.tables import TIMING_COLUMNS

TABLES = {"clients.csv", "config.yaml", "provenance.json", "rounds.csv", "summary.csv"}
TIMES = ["runtime_s", "runtime_per_client_s"]
UNITS = ["r2", "rmse_in_units"]
STREAM = ["mse", "regret_best_kernel", "regret_hindsight", "mse_running_mean", "mse_last_value"]
SURE = ["coverage_50", "coverage_80", "coverage_95", "log_score", "log_score_mixture"]
TRAFFIC = [f"{direction}_{unit}" for direction in ("uplink", "downlink") for unit in ("messages", "scalars", "bytes")]
JUDGED = ["mse_best_constant", *UNITS, "mse_worst_tenth", "mse_gini"]
BATCH = ["train_mse", "test_mse", "functional_distance", "functional_distance_worst", "consensus_error", "distance"]
PEERS = ["transmissions", "broadcast_scalars", "broadcast_bytes", "link_messages", "link_scalars", "link_bytes"]
OPTIMUM = ["train_mse_at_optimum", "test_mse_at_optimum", "test_mse_training_mean", *UNITS]
PARTIES = ["link_messages", "link_scalars", "link_bytes", "training_samples", "test_samples", "test_error_majority"]
EXPECTED: dict[str, tuple[str, list[str], int, int]] = {
    # figures, columns of the summary but replicate and time, rounds and clients
    "pof_mkl": ("mse regret", [*STREAM, *TRAFFIC, *JUDGED], 40, 4),
    "rf_gp": ("mse regret calibration", [*STREAM, *SURE, *TRAFFIC, *JUDGED], 40, 4),
    "coke": (
        "mse distance transmissions",
        [*BATCH, *PEERS, *OPTIMUM, "test_mse_worst_tenth", "test_mse_gini"],
        100,
        4,
    ),
    "fdskl": ("error", ["iterations", "test_error", "test_accuracy", *PARTIES], 20, 2),
}
"""For one method of each kind of task: its figures, columns, rounds and clients."""
OTHERS = sorted({*ALGORITHMS, *LOCAL_BATCHES} - {*EXPECTED})


def csv_bytes(folder: Path) -> dict[str, str]:
    """The run's three tables as text, without what a clock decides."""
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("rounds", "clients", "summary")}
    return {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore").to_csv() for name, table in tables.items()}


def require_promised_files(fkl: Callable, algo: str) -> pd.DataFrame:
    """`out=DIR` holds a run's files and no others; the closing table names the folder; nothing lies beside it."""
    answer = fkl("run", *small(algo), "out=here")
    assert answer.code == 0, answer.err
    assert [path.name for path in Path().iterdir()] == ["here"]
    assert "run       here" in answer.out
    summary = pd.read_csv("here/summary.csv")
    assert len(summary) == 2
    errors = summary.filter(regex=r"^(train_|test_)?(mse|error)$|^coverage")
    assert errors.size and ((errors >= 0) & (errors <= 1)).all(axis=None)
    sent = json.loads(Path("here/provenance.json").read_text())["scalars_by_kind"]
    for direction in ("uplink", "downlink", "broadcast", "link"):
        of_kinds = sum(count for kind, count in sent.items() if kind.startswith(direction))
        assert of_kinds == summary.get(f"{direction}_scalars", pd.Series([of_kinds])).sum()
    return summary


@pytest.mark.drawn
def test_figures_of_a_finished_run_are_drawn_as_pdf_where_it_is_asked_for(fkl: Callable) -> None:
    """The run itself stays as it is."""
    assert fkl("run", *SMALL, "out=here").code == 0
    before = {file.name: file.read_bytes() for file in Path("here").iterdir()}
    told = fkl("figure", "here", "--style", "column")
    assert (told.code, told.out) == (0, "files: outputs/figures/here\n"), told.err
    drawn = {file.name for file in Path("outputs/figures/here").iterdir()}
    assert drawn == {f"{name}.{kind}" for name in ("mse", "regret") for kind in ("png", "pdf", "txt")}
    assert {file.name: file.read_bytes() for file in Path("here").iterdir()} == before


@pytest.mark.parametrize("algo", EXPECTED)
def test_a_run_leaves_exactly_the_promised_files_and_columns(fkl: Callable, algo: str) -> None:
    figures, columns, rounds, clients = EXPECTED[algo]
    summary = require_promised_files(fkl, algo)
    drawn = {f"{name}.png" for name in figures.split()}
    assert {file.name for file in Path("here").iterdir()} == TABLES | drawn
    assert list(summary) == ["replicate", *columns, *TIMES]
    assert len(pd.read_csv("here/rounds.csv")) == 2 * rounds
    assert len(pd.read_csv("here/clients.csv")) == 2 * clients


@pytest.mark.slow
@pytest.mark.parametrize("algo", OTHERS)
def test_every_other_algorithm_runs_too(fkl: Callable, algo: str) -> None:
    require_promised_files(fkl, algo)


def test_same_seed_same_bytes_on_any_threads_and_chunks(fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where threads share work; only the timing columns may differ. `fkl.conformance` asks all algorithms."""
    monkeypatch.setattr("fkl.kernels.threads.ELEMENTS_A_THREAD", 1)
    tables = []
    for name, how in {"a": ("threads=1", "chunk=1"), "b": ("threads=2", "chunk=2"), "c": ("seed=1",)}.items():
        answer = fkl("run", *SMALL, "algo=pof_mkl", "algo.M=25", "algo.xi=0.5", *how, f"out={name}")
        assert answer.code == 0, answer.err
        tables.append(csv_bytes(Path(name)))
    assert tables[0] == tables[1] != tables[2]


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
