"""A method author's bugs: each is told in a few lines, which name the array, the field or the author's own line."""

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from broken.refusal import lines
from conftest import SMALL, Answer

import fkl as package
from fkl.basics.errors import FklError

METHOD = """
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fkl.contract.star import Federated
from fkl.contract.world import Outcome
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Down:
    mean: Any


@dataclass(frozen=True)
class Up:
    target: Any


@dataclass
class Server:
    total: Any


@dataclass(frozen=True)
class Mine(Federated):
    label: ClassVar[str] = "Mine"
    lam: float = 0.0
    eta: float = 0.1

    def start(self, common, clients):
        return Server(np.zeros(len(common.streams.replicates))), None

    def broadcast(self, common, server, turn):
        return Down(SameForAll(server.total / (turn.t + 1)))

    def client(self, common, client, down, samples, turn):
        y_hat = np.repeat(down.mean.values[:, None], len(samples.y), axis=1)
        target = np.repeat(samples.y[None], len(y_hat), axis=0)
        return client, Up(PerClient(target)), Outcome(y_hat, None, lambda: np.zeros(y_hat.shape))

    def server(self, common, server, up, share, turn):
        return Server(server.total + up.target.mean(share))
"""


@pytest.fixture
def mine(
    fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[..., Answer]:
    """Run a method of one's own, with some of its words replaced."""

    def call(old: str, new: str) -> Answer:
        assert old in METHOD
        module = f"mine_{abs(hash(request.node.name + new))}"
        (tmp_path / f"{module}.py").write_text(METHOD.replace(old, new))
        (tmp_path / "my_conf" / "algo").mkdir(parents=True)
        (tmp_path / "my_conf" / "algo" / "mine.yaml").write_text(f"# Mine\n_target_: {module}.Mine\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        answer = fkl("run", "--config-dir", "my_conf", *SMALL, "algo=mine", "partition.rounds=20", "out=here")
        sys.modules.pop(module, None)
        return answer

    return call


SHOWN = "Outcome(y_hat, None"
AXES = "; the first axes of PerClient must be (R, K) = (1, 4)"
LAM = "algo: Mine has no field lam, the weight of the regulariser; write lam: float = 0.0 for none"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (SHOWN, "Outcome(y_hat[..., None], None", "Outcome.y_hat has shape (1, 4, 1), must be (R, K) = (1, 4)"),
        (SHOWN, "Outcome(y_hat[:1], None", "Outcome.y_hat has shape (1, 4), must be (R, K) = (2, 4)"),
        (SHOWN, "Outcome(y_hat, y_hat", "Outcome.loss has shape (1, 4), must be (R, K, any) = (1, 4, any)"),
        ("PerClient(target)", "PerClient(target[0])", f"Up.target has shape (4,){AXES}"),
        ("Up(PerClient(target))", "Up(target)", "Up.target is ndarray, which is no payload"),
        ("    lam: float = 0.0\n", "", LAM),
        (
            "PerClient(target)",
            "PerClient(target + [np.nan, 0][turn.t != 2])",
            "Mine: Up.target is not finite in round 3 (client 0); ",
        ),
        ("(server.total / ", "(np.nan * server.total / ", "Mine: Down.mean is not finite in round 1; "),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_wrong_array_is_named_in_one_line(mine: Callable[..., Answer], old: str, new: str, said: str) -> None:
    answer = mine(old, new)
    line = lines(answer.err)[-1]
    assert answer.code == 2 and line.startswith(f"error: {said}") and "lower" not in line


@pytest.mark.drawn
def test_neither_a_label_of_bad_mathtext_nor_a_picture_that_fails_loses_a_run(
    mine: Callable[..., Answer], fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = mine('"Mine"', r'r"costs 5$ or \frac{ 6$"')
    assert (answer.code, lines(answer.err)) == (0, [])
    assert (tmp_path / "here" / "mse.png").stat().st_size > 1000
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", None)
    answer = fkl("run", *SMALL, "out=there")
    assert answer.code == 0 and "no figure of POF-MKL on diabetes: TypeError: " in answer.err
    assert len(pd.read_csv(tmp_path / "there" / "summary.csv")) == 2


OWN = """
from dataclasses import dataclass

import numpy as np

from fkl.algorithms.federated.pof_mkl import PofMkl


def metric(y, y_hat):
    return np.zeros(3).reshape(7)  # here


@dataclass(frozen=True)
class Method(PofMkl):
    def server(self, common, server, up, share, turn):
        return metric(0, 0)
"""
HERE = f", line {next(n for n, line in enumerate(OWN.splitlines(), 1) if '# here' in line)}: ValueError: cannot reshape"
SHOWN_LINE = "    return np.zeros(3).reshape(7)  # here"


@pytest.mark.parametrize(("word", "code"), [("metrics.m={}.metric", 2), ("algo._target_={}.Method", 1)])
def test_an_error_of_one_s_own_code_has_its_file_and_line(
    word: str, code: int, fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone and as a job of a sweep; -v shows the lines that led there, and error.txt and Python keep its cause."""
    own = f"own_{abs(hash(tmp_path))}"
    (tmp_path / f"{own}.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = (*SMALL, "partition.rounds=20", word.format(own))
    answer = fkl("run", *words, "-v")
    assert (answer.code, SHOWN_LINE in answer.err) == (code, True)
    assert (f"{own}.py{HERE}" if code == 2 else f"{own}.py") in answer.err
    assert f"{own}.py{HERE}" in fkl("run", "-m", *words, "seed=1").out
    files = [*(tmp_path / "outputs" / "failed").glob("*/error.txt")]
    assert files and all(SHOWN_LINE in file.read_text() for file in files)
    with pytest.raises((FklError, ValueError)) as refused:
        package.run(*words, quiet=True)
    assert isinstance(refused.value.__cause__ or refused.value, ValueError)
