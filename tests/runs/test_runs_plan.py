"""`fkl plan`: what it says before a run is what the run then counts."""

import re
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from conftest import ALGORITHMS, SMALL, small

from fkl.conformance import scenario
from fkl.runs.forecast import first_rounds, plan
from fkl.runs.prepare import prepare

N, D, T, K, R = 51, 8, 100, 4, 2
"""Of `SMALL`."""


def test_messages_are_those_of_the_run(fkl: Callable, tmp_path: Path) -> None:
    """Of a method that sends as much in every round."""
    said = fkl("plan", "algo=pof_mkl", *SMALL)
    assert said.code == 0, said.err
    assert fkl("run", "algo=pof_mkl", *SMALL, "out=run").code == 0
    summary = pd.read_csv(tmp_path / "run" / "summary.csv").sum()
    found = re.search(r"messages +([\d.]+), ([\d.]+) MiB\n", said.out)
    assert found is not None, said.out
    assert float(found[1]) == summary["uplink_messages"] + summary["downlink_messages"]
    size = (summary["uplink_bytes"] + summary["downlink_bytes"]) / 2**20
    assert float(found[2]) == pytest.approx(size, rel=5e-3)
    assert not (tmp_path / "outputs").exists()


def test_angles_are_those_that_the_algorithm_asks_for() -> None:
    """POF-MKL takes those of all kernels to predict, and of M kernels a client for its gradients."""
    experiment = prepare(scenario("algo=pof_mkl", *SMALL, "algo.M=3", "partition.rounds=100"))
    sample = first_rounds(experiment, 1)
    most, least = (sample.rounds * K * D * (N + M) for M in (3, 0))
    assert least < sample.angles <= most
    whole = replace(experiment, algorithm=replace(experiment.algorithm, M=N))
    sample = first_rounds(whole, 1)
    assert sample.angles == sample.rounds * K * D * 2 * N


def test_every_engine_at_hand_is_told_of() -> None:
    """And no other: of a method whose loops exist only compiled there is one."""
    assert [line.split()[0] for line in plan((*SMALL, "algo=pof_mkl")).splitlines() if line.startswith("engine")] == [
        "engine=numba",
        "engine=numpy",
        *["engine=jax"] * (find_spec("jax") is not None),
    ]
    only = plan((*small("omkr"), "algo=omkr"))
    assert "engine=numpy" not in only and "engine=jax" not in only
    assert only.endswith("it would take engine=numba")


def test_what_a_run_refuses_is_refused(fkl: Callable) -> None:
    answer = fkl("plan", "algo=pof_mkl", "algo.M=0")
    assert (answer.code, answer.err) == (2, "error: algo.M=0: must be an integer from 1 to kernels.N\n")


@pytest.mark.slow
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_method_has_a_plan(algo: str) -> None:
    assert "it would take engine=" in plan((*small(algo), f"algo={algo}"))
