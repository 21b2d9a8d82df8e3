"""A method whose numbers grow without end stops in that round, blames a key, and keeps the rows before it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from broken.refusal import lines
from conftest import SMALL, Answer, small
from numpy.typing import NDArray

from fkl.algorithms.decentralized.consensus import Cta
from fkl.algorithms.federated.descent import VmKofl
from fkl.algorithms.online.learners import Raker
from fkl.algorithms.vertical.dsg import Dsg
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import wrap_method
from fkl.conformance import quick_run
from fkl.data.problem import Problem
from fkl.engines.base import blame_keys, worse_than_zero
from fkl.runs.prepare import prepare_run
from fkl.tasks.stream import StreamTask

STEPS = {
    "pof_mkl": ("algo.eta=1e18",),
    "fdskl": ("algo.gamma=1e18", "algo.lam=0", "algo.loss=square"),
    "odkla": ("algo.eta=1e18", "algo.rho=1e-18"),
}
"""Steps that are far too large, of one method of each kind."""


@pytest.mark.parametrize("algo", STEPS)
def test_a_step_that_is_too_large_is_noticed_in_its_round(
    fkl: Callable[..., Answer], tmp_path: Path, algo: str
) -> None:
    """Algorithm, round and step size are named; all rows that are kept are numbers."""
    step, *switches = STEPS[algo]
    answer = fkl("run", *small(algo), step, *switches)
    (said,) = lines(answer.err)
    key, _, size = step.partition("=")
    assert answer.code == 2 and " diverged in round " in said
    assert f"with {key}={float(size)}: lower it" in said
    assert not (tmp_path / "outputs" / "runs").exists()
    (failed,) = (tmp_path / "outputs" / "failed").iterdir()
    t = int(said.split("diverged in round ")[1].split()[0])
    if t == 1:
        assert {file.name for file in failed.iterdir()} == {"config.yaml", "error.txt", "provenance.json"}
        return
    rounds = pd.read_csv(failed / "rounds.csv")
    assert rounds["round"].max() == t - 1
    errors = rounds[[name for name in ("mse", "train_mse", "test_mse", "test_error") if name in rounds]]
    assert np.isfinite(errors).all(axis=None)


def test_errors_that_are_finite_and_yet_no_result_are_told(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """On the terminal and in provenance.json: Raker with a step far too large, its target between 0 and 1."""
    answer = fkl("run", *small("raker"), "algo.eta=5", "out=here")
    told = next(line for line in lines(answer.err) if "times the" in line)
    assert answer.code == 0 and told.startswith("warning: the mean squared error of 2 of 2 replicates, ")
    assert "of predicting 0 for every" in json.loads((tmp_path / "here" / "provenance.json").read_text())["warning"]
    assert "times the" not in fkl("run", *small("raker"), "out=there").err


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        (Raker(eta=0.1, lam=9.0), "with algo.eta=0.1: lower it"),
        (Raker(eta=0.1, lam=1e30), "with algo.lam=1e+30: lower it, for steps of 0.1 to less than 10"),
        (VmKofl(step_factor=1e9, lam=9.0), "with algo.step_factor=1000000000.0 and algo.lam=9.0: lower them"),
        (wrap_method(Cta(eta=10.0), {"compression": Uniform()}), "with algo.eta=10.0: lower it"),
        (Dsg(gamma=10.0, lam=5.0, rate="diminishing"), "with algo.gamma=10.0 and algo.lam=5.0: lower them"),
    ],
)
def test_the_keys_that_drove_a_method_away_are_named(algorithm: object, said: str) -> None:
    assert blame_keys(algorithm, rounds=100) == said


def stream(y: list[float]) -> NDArray[np.float64]:
    """Targets of one client that is absent where there is none."""
    values = np.array(y)[:, None]
    problem = Problem(np.ones((len(y), 1, 1)), np.nan_to_num(values), np.isfinite(values), np.zeros(1, np.int64))
    return StreamTask(problem).targets


def test_errors_beyond_those_of_predicting_0_are_told() -> None:
    targets = stream([0.0, 1.0, 1.0, np.nan])  # 2/3 for 0, of the samples that there are
    assert worse_than_zero(targets, np.array([1.3, 0.1])) is None
    said = worse_than_zero(targets, np.array([1.4, 0.1, 44.8]))
    assert said is not None
    assert "of 2 of 3 replicates, 44.8 at worst, is more than 2 times the 0.667 of predicting 0" in said
    for kind in ("partition=agents topology=ring algo=cta", "partition=vertical algo=fdskl"):
        experiment = prepare_run(quick_run(SMALL[0], "replicates=2", "scaling=unit_box", *kind.split(" ")))
        zero = np.square(experiment.problem.y).mean()
        assert worse_than_zero(experiment.task.targets, np.array([1.9 * zero])) is None
        assert worse_than_zero(experiment.task.targets, np.array([2.1 * zero])) is not None
