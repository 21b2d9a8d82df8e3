"""A method whose numbers grow without end stops in that round, says so in one line, and keeps the rows before it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from broken.refusal import lines
from conftest import ALGORITHMS, Answer, small

STEPS = {
    "fdskl": ("algo.gamma=1e18", "algo.lam=0", "algo.loss=square"),
    "dsg": ("algo.gamma=1e18", "algo.lam=0", "algo.loss=square"),
    "fd_svrg": ("algo.eta=30", "algo.loss=square"),
    **dict.fromkeys(("cta", "push_cta"), ("algo.eta=10",)),
    **dict.fromkeys(("odkla", "qc_odkla"), ("algo.eta=1e18", "algo.rho=1e-18")),
}
"""Steps that are far too large; 1e18 for all others."""
STABLE = {
    "ada_raker",
    "pooled_ada_raker",
    "dkla",
    "one_shot_ridge",
    "fed3r",
    "dkrr_ny_cm",
    "falkon",
    "coke",
    "link_dkla",
    "domkl",
    "dekrr_ddrf",
    "libsvm",
    "pp_svmv",
    "secureboost",
    "vertical_nystroem",
    "vertical_ridge",
    "pooled_svm",
    "cascade_svm",
    "fomd_oms",
    "nco_oms",
    "rf_gp",
    "consensus_rf_gp",
    "d_rf_gp",
    "parsimonious_centralized",
    "parsimonious_federated",
}
"""Minimisers, posteriors, sums of trees, projections on balls and steps that end at 1/2, which no step drives away."""


@pytest.mark.parametrize("algo", sorted(set(ALGORITHMS) - STABLE))
def test_a_step_that_is_too_large_is_noticed_in_its_round(
    fkl: Callable[..., Answer], tmp_path: Path, algo: str
) -> None:
    """Algorithm, round and step size are named; all rows that are kept are numbers."""
    step, *switches = STEPS.get(algo, ("algo.eta=1e18",))
    answer = fkl("run", *small(algo), step, *switches)
    assert answer.code == 2
    (said,) = lines(answer.err)
    key, _, size = step.partition("=")
    assert " diverged in round " in said
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


@pytest.mark.parametrize("step", ["algo.rho=1e-300", "algo.rho=1e-3", "algo.rho=1e6"])
@pytest.mark.parametrize("algo", ["dkla", "coke"])
def test_no_penalty_drives_alternating_directions_away(fkl: Callable[..., Answer], algo: str, step: str) -> None:
    """It may be slow, but it stays where the samples are."""
    answer = fkl("run", *small(algo), step, "out=here")
    assert answer.code == 0, answer.err
    assert pd.read_csv("here/rounds.csv")["train_mse"].max() < 1


def test_errors_that_are_finite_and_yet_no_result_are_told(fkl: Callable[..., Answer], tmp_path: Path) -> None:
    """On the terminal and in provenance.json: Raker with a step far too large, its target between 0 and 1."""
    answer = fkl("run", *small("raker"), "algo.eta=5", "out=here")
    assert answer.code == 0
    told = next(line for line in lines(answer.err) if "times the" in line)
    assert told.startswith("warning: the mean squared error of 2 of 2 replicates, ")
    assert (
        "of predicting 0 for every sample" in json.loads((tmp_path / "here" / "provenance.json").read_text())["warning"]
    )
    assert fkl("run", *small("raker"), "out=there").err.count("times the") == 0


def test_a_weight_that_is_too_large_is_blamed_on_itself(fkl: Callable[..., Answer]) -> None:
    answer = fkl("run", *small("pof_mkl"), "algo.lam=1e30")
    assert answer.code == 2 and "with algo.lam=1e+30: lower it" in answer.err
