"""A method author's bugs: each is told in a few lines, which name the array, the field or the author's own line."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from broken.refusal import lines
from conftest import SMALL, Answer

import fkl as package
from fkl.basics.errors import FklError

METHOD = """
from dataclasses import dataclass, replace

import numpy as np

from fkl.algorithms.federated.descent import Gradients, OfmklAvg, Parameters
from fkl.wire.payloads import PerClient, SameForAll


def metric(y, y_hat):
    return np.zeros(3).reshape(7)  # here


@dataclass(frozen=True)
class Mine(OfmklAvg):
    label = "Mine"

    def broadcast(self, common, server, turn):
        return Parameters(SameForAll(1 * server.theta))

    def client(self, common, client, down, samples, turn):
        _, up, outcome = super().client(common, client, down, samples, turn)
        y_hat, theta = outcome.y_hat, np.repeat(down.theta.values[:, None], len(samples.y), axis=1)
        pass
        return None, up, outcome
"""
SHOWN_LINE = "    return np.zeros(3).reshape(7)  # here"
HERE = f"own.py, line {METHOD.splitlines().index(SHOWN_LINE) + 1}: ValueError: cannot reshape"
SHORT = (*SMALL, "algo=ofmkl_avg", "partition.rounds=20")
MINE = "algo._target_=own.Mine"
AXES = "; the first axes of PerClient must be (R, K) = (1, 4)"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], object]:
    """Write a module of one's own, with some of its words replaced."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda old, new: (tmp_path / "own.py").write_text(METHOD.replace(old, new))


WRONG = {
    "outcome = replace(outcome, y_hat=y_hat[..., None])": "Outcome.y_hat has shape (1, 4, 1), must be (R, K) = (1, 4)",
    "outcome = replace(outcome, y_hat=y_hat[:1])": "Outcome.y_hat has shape (1, 4), must be (R, K) = (2, 4)",
    "outcome = replace(outcome, loss=y_hat)": "Outcome.loss has shape (1, 4), must be (R, K, any) = (1, 4, any)",
    "up = Gradients(PerClient(samples.y))": f"Gradients.theta has shape (4,){AXES}",
    "up = Gradients(samples.y)": "Gradients.theta is ndarray, which is not a payload",
    "up = Gradients(PerClient(theta + [0, np.nan][turn.t == 2]))": "Mine: Gradients.theta is not finite in round 3",
    "np.nan * server.theta": "Mine: Parameters.theta is not finite in round 1; ",
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_wrong_array_is_named_in_one_line(fkl: Callable[..., Answer], own: Callable, wrong: str) -> None:
    own("1 * server.theta" if "server" in wrong else "pass", wrong)
    answer = fkl("run", *SHORT, MINE)
    told = lines(answer.err)[-1]
    assert answer.code == 2 and told.startswith(f"error: {WRONG[wrong]}") and "lower" not in told


@pytest.mark.drawn
def test_neither_a_label_of_bad_mathtext_nor_a_picture_that_fails_loses_a_run(
    fkl: Callable[..., Answer], own: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own('"Mine"', r'r"costs 5$ or \frac{ 6$"')
    answer = fkl("run", *SHORT, MINE, "out=here")
    assert (answer.code, lines(answer.err)) == (0, [])
    assert (tmp_path / "here" / "mse.png").stat().st_size > 1000
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", None)
    answer = fkl("run", *SHORT, "out=there")
    assert answer.code == 0 and "the figure of OFMKL-Avg on diabetes cannot be drawn: TypeError: " in answer.err
    assert len(pd.read_csv(tmp_path / "there" / "summary.csv")) == 2


@pytest.mark.parametrize(("word", "code"), [("metrics.m=own.metric", 2), (MINE, 1)])
def test_an_error_of_one_s_own_code_has_its_file_and_line(
    word: str, code: int, fkl: Callable[..., Answer], own: Callable, tmp_path: Path
) -> None:
    """Alone and as a job of a sweep; -v shows the lines that led there, and error.txt and Python keep its cause."""
    own("pass", "metric(0, 0)")
    words = (*SHORT, word)
    answer = fkl("run", *words, "-v")
    assert (answer.code, SHOWN_LINE in answer.err) == (code, True)
    assert (HERE if code == 2 else "own.py") in answer.err
    assert HERE in fkl("run", "-m", *words, "seed=1").out
    files = [*(tmp_path / "outputs" / "failed").glob("*/error.txt")]
    assert files and all(SHOWN_LINE in file.read_text() for file in files)
    with pytest.raises((FklError, ValueError)) as refused:
        package.run(*words, quiet=True)
    assert isinstance(refused.value.__cause__ or refused.value, ValueError)
