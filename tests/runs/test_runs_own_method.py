"""The README's promise: an algorithm is one file and one YAML, also outside the package."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from conftest import SMALL

MODULE = '''
"""A method of the user's own: the mean of all targets seen so far."""
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Outcome


@dataclass
class State:
    total: np.ndarray
    count: int


@dataclass(frozen=True)
class RunningMean:
    label: ClassVar[str] = "Running mean"
    start: float = 0.5
    lam: float = 0.0

    def init(self, world):
        return State(np.full((len(world.streams.replicates), 1), self.start), 1)

    def step(self, world, state, t):
        x, y, share = world.problem.round(t)
        mean = world.channel.broadcast("mean", state.total / state.count, scalars=1)
        y_hat = np.repeat(mean, y.size, axis=1)
        world.channel.uplink("target", y, scalars=1)
        return State(state.total + y @ share, state.count + 1), Outcome(y_hat, None, lambda: np.zeros(y_hat.shape))
'''


def test_a_method_from_outside_runs_like_any_other(
    fkl: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by import path in a YAML of the user's own folder; its fields are its keys."""
    (tmp_path / "my_method.py").write_text(MODULE)
    (tmp_path / "my_conf" / "algo").mkdir(parents=True)
    (tmp_path / "my_conf" / "algo" / "mine.yaml").write_text("_target_: my_method.RunningMean\nstart: 0.25\n")
    monkeypatch.syspath_prepend(tmp_path)
    answer = fkl("run", "--config-dir", "my_conf", *SMALL, "algo=mine", "out=here")
    assert answer.code == 0, answer.err
    assert "Running mean on diabetes" in answer.out
    rounds = pd.read_csv("here/rounds.csv")
    assert rounds["uplink_scalars"].iloc[-1] == 4 * 100
    assert rounds["mse"].iloc[-1] == pytest.approx(0.0577, rel=0.1), "a mean errs by the variance of the target"
    refused = fkl("run", "--config-dir", "my_conf", *SMALL, "algo=mine", "algo.begin=1")
    assert refused.err == "fkl: algo.begin: no such key; there are start\n"
