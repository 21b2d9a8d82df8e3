"""Which keys a divergence is blamed on, and which finite errors are told apart from those of a method that learns."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ALGORITHMS, SMALL
from hydra import compose, initialize_config_dir
from hydra.utils import get_class, instantiate
from numpy.typing import NDArray

from fkl import conf_folder, papers
from fkl.algorithms.decentralized.consensus import Cta
from fkl.algorithms.federated.descent import VmKofl
from fkl.algorithms.federated.perfedavg import PerFedAvg
from fkl.algorithms.federated.pof_mkl import PofMkl
from fkl.algorithms.online.learners import Omkr, Raker
from fkl.algorithms.vertical.dsg import Dsg
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import wrap
from fkl.config.loading import load
from fkl.data.problem import Problem
from fkl.engines.base import blame, worse_than_zero
from fkl.engines.rounds import simulate
from fkl.runs.prepare import prepare
from fkl.tasks.stream import StreamTask


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        (Raker(eta=5.0), "with algo.eta=5.0: lower it"),
        (Raker(eta=0.1), "with algo.eta=0.1: lower it"),
        (Raker(eta=0.1, lam=1e30), "with algo.lam=1e+30: lower it, for steps of 0.1 to less than 10"),
        (Raker(eta=0.1, lam=9.0), "with algo.eta=0.1: lower it"),
        (Raker(eta=5.0, lam=1e30), "with algo.eta=5.0 and algo.lam=1e+30: lower them"),
        (Omkr(eta=3.0), "with algo.eta=3.0: lower it"),
        (VmKofl(), "with algo.eta=null, which is 1/sqrt(T): lower it"),
        (VmKofl(lam=1e30), "with algo.lam=1e+30: lower it, for steps of 0.1 to less than 10"),
        (PofMkl(step_factor=2.0, lam=8.0), "with algo.lam=8.0: lower it, for steps of 0.2 to less than 5"),
        (VmKofl(step_factor=1e9), "with algo.step_factor=1000000000.0: lower it"),
        (VmKofl(step_factor=1e9, lam=9.0), "with algo.step_factor=1000000000.0 and algo.lam=9.0: lower them"),
        (Raker(eta=1e18), "with algo.eta=1e+18: lower it"),
        (PofMkl(eta_k=1e300), "with algo.eta_k=1e+300: lower it"),
        (PerFedAvg(alpha=1e9), "with algo.alpha=1000000000.0: lower it"),
        (Cta(eta=10.0), "with algo.eta=10.0: lower it"),
        (wrap(Cta(eta=10.0), {"compression": Uniform()}), "with algo.eta=10.0: lower it"),
        (Cta(eta=0.99, lam=1e30), "with algo.lam=1e+30: lower it, for steps of 0.99 to less than 1.01"),
        (Dsg(gamma=1e18, lam=0.0), "with algo.gamma=1e+18: lower it"),
        (Dsg(gamma=10.0, lam=5.0, rate="diminishing"), "with algo.gamma=10.0 and algo.lam=5.0: lower them"),
    ],
)
def test_the_keys_that_drove_a_method_away_are_named(algorithm: object, said: str) -> None:
    assert blame(algorithm, rounds=100) == said


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_what_is_blamed_is_a_key_of_the_method(algo: str) -> None:
    """As it comes: one key, or the group where there is no step size."""
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        node = compose("config", [f"algo={algo}"]).algo
    algorithm = instantiate(node)
    said = blame(algorithm, rounds=500)
    keys = {field.name for field in dataclasses.fields(get_class(node._target_))}
    assert said == "see algo" or said.split("algo.")[1].split("=")[0] in keys
    assert said.count("algo.") <= 1


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


@pytest.mark.parametrize("kind", ["partition=agents topology=ring algo=cta", "partition=vertical algo=fdskl"])
def test_samples_of_other_kinds_are_counted_too(kind: str) -> None:
    """Batches and features of parties, whose samples are all there."""
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        words = [SMALL[0], "replicates=2", "scaling=unit_box", *kind.split(" ")]
        experiment = prepare(load(compose("config", words)))
    zero = np.square(experiment.problem.y).mean()
    assert worse_than_zero(experiment.task.targets, np.array([1.9 * zero])) is None
    assert worse_than_zero(experiment.task.targets, np.array([2.1 * zero])) is not None


@pytest.mark.parametrize(("eta", "told"), [(0.1, False), (1.0, False), (5.0, True)])
def test_raker_with_steps_that_are_too_large_is_told_and_no_other(eta: float, told: bool) -> None:
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        call = [*SMALL, "algo=raker", "partition=stream", "partition.rounds=200", f"algo.eta={eta}"]
        experiment = prepare(load(compose("config", call)))
    chunks = simulate(experiment, None, None, lambda _: None)
    mse = np.concatenate([chunk.judge.mse[-1] for chunk in chunks])
    assert (worse_than_zero(experiment.task.targets, mse) is not None) == told


# Means of the squared target as `normalise` has it, by hand from the data.
OF_ZERO = {"air": 0.0365, "naval": 0.347, "uji": 0.280, "airfoil": 0.359, "bias": 0.413, "concrete": 0.217}


@pytest.mark.parametrize("paper", ["pof_mkl", "graph_omkl"])
def test_no_published_error_would_be_told(paper: str) -> None:
    table = pd.read_csv(Path(papers.__file__).parent / paper / "published.csv", dtype=str).query("metric == 'mse'")
    checked = 0
    for dataset, value, unit in table[["dataset", "value", "unit"]].itertuples(index=False):
        if dataset in OF_ZERO:
            level = np.sqrt(OF_ZERO[dataset])
            assert worse_than_zero(np.array([level, level]), np.array([float(value) * float(unit)])) is None
            checked += 1
    assert checked > 20
