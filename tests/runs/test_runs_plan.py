"""`fkl plan`: what it says before a run is what the run then counts."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from conftest import SMALL

from fkl.config.loading import Run
from fkl.conformance import quick_run
from fkl.runs.forecast import OF_PICTURES, Forecast, first_rounds
from fkl.runs.prepare import prepare_run

N, D, K = 51, 8, 4
"""Of `SMALL`."""


def test_messages_are_those_of_the_run(fkl: Callable, tmp_path: Path) -> None:
    """Of a method that sends as much in every round."""
    said = fkl("plan", "algo=pof_mkl", *SMALL)
    assert said.code == 0, said.err
    assert fkl("run", "algo=pof_mkl", *SMALL, "out=run").code == 0
    summary = pd.read_csv(tmp_path / "run" / "summary.csv").sum()
    found = re.search(r"sent +([\d,]+) messages, ([\d.]+) MB\n", said.out)
    assert found is not None, said.out
    assert float(found[1].replace(",", "")) == summary["uplink_messages"] + summary["downlink_messages"]
    size = (summary["uplink_bytes"] + summary["downlink_bytes"]) / 1e6
    assert float(found[2]) == pytest.approx(size, rel=5e-3)
    disk = re.search(r"disk +about ([\d.]+) kB\n", said.out)
    assert disk is not None, said.out
    tables = sum((tmp_path / "run" / f"{name}.csv").stat().st_size for name in ("rounds", "clients", "summary"))
    assert float(disk[1]) - OF_PICTURES / 1e3 == pytest.approx(tables / 1e3, rel=0.3)
    assert not (tmp_path / "outputs").exists()


def test_angles_are_those_that_the_algorithm_asks_for() -> None:
    """POF-MKL takes those of all kernels to predict, and again those of M < N kernels a client for its gradients."""
    experiment = prepare_run(quick_run("algo=pof_mkl", *SMALL, "algo.M=3", "partition.rounds=100"))
    sample = first_rounds(experiment, 1)
    most, least = (sample.rounds * K * D * (N + M) for M in (3, 0))
    assert least < sample.angles <= most
    whole = replace(experiment, algorithm=replace(experiment.algorithm, M=N))
    sample = first_rounds(whole, 1)
    assert sample.angles == sample.rounds * K * D * N


def test_a_sweep_is_planned_by_one_run_of_each_shape(fkl: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds and rates do not make another shape; replicates count in proportion."""
    measured = []

    def told(run: Run) -> Forecast:
        measured.append(run.words)
        return Forecast("A on b", "", "numba", 60.0 * run.settings.replicates, "", 2, 2, 10**6, 0, 0, 0, 0, 2e6, "", {})

    monkeypatch.setattr("fkl.sweeps.plan.forecast_run", told)
    answer = fkl("plan", "-m", *SMALL, "algo.M=1,3", "seed=0,1,2", "algo.eta=0.1,0.2")
    assert (answer.code, len(measured)) == (0, 2)
    assert answer.out.splitlines()[:4] == [
        "12 runs",
        "  time      about 24 min 0 s one after another, with engine=numba",
        "  disk      about 24.0 MB",
        "  memory    at most 1.00 MB per replicate, without the data",
    ]
    assert fkl("plan", "-m", *SMALL, "algo.M=1,100").code == 2
