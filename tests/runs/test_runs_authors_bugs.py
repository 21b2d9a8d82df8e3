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

    def call(old: str = "", new: str = "", *words: str) -> Answer:
        assert old in METHOD
        module = f"mine_{abs(hash(request.node.name + new))}"
        (tmp_path / f"{module}.py").write_text(METHOD.replace(old, new) if old else METHOD)
        conf = tmp_path / "my_conf" / "algo"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "mine.yaml").write_text(f"# Mine\n_target_: {module}.Mine\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        answer = fkl("run", "--config-dir", "my_conf", *SMALL, "algo=mine", "partition.rounds=20", "out=here", *words)
        sys.modules.pop(module, None)
        return answer

    return call


def test_what_is_right_runs(mine: Callable[..., Answer]) -> None:
    assert mine().code == 0


SHOWN = "Outcome(y_hat, None"
AXES = "; the first axes of PerClient must be (R, K) = (1, 4)"
LAM = "algo: Mine has no field lam, the weight of the regulariser; write lam: float = 0.0 for none"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (SHOWN, "Outcome(y_hat[..., None], None", "Outcome.y_hat has shape (1, 4, 1), must be (R, K) = (1, 4)"),
        (SHOWN, "Outcome(y_hat[0], None", "Outcome.y_hat has shape (4,), must be (R, K) = (1, 4)"),
        (SHOWN, "Outcome(y_hat[:1], None", "Outcome.y_hat has shape (1, 4), must be (R, K) = (2, 4)"),
        (SHOWN, "Outcome(y_hat, y_hat", "Outcome.loss has shape (1, 4), must be (R, K, any) = (1, 4, any)"),
        ("PerClient(target)", "PerClient(target[0])", f"Up.target has shape (4,){AXES}"),
        ("SameForAll(server.total / (turn.t + 1))", "PerClient(server.total)", f"Down.mean has shape (1,){AXES}"),
        ("Up(PerClient(target))", "Up(target)", "Up.target is ndarray, which is no payload"),
        ("    lam: float = 0.0\n", "", LAM),
    ],
)
def test_a_wrong_array_is_named_in_one_line(mine: Callable[..., Answer], old: str, new: str, said: str) -> None:
    answer = mine(old, new)
    assert (answer.code, lines(answer.err)) == (2, [f"error: {said}"])


LOG = "Outcome(y_hat + np.log([1, 1, 1, -1.0]),"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Outcome(y_hat,", LOG, "Outcome.y_hat is not finite in round 1 (client 3)"),
        (
            "PerClient(target)",
            "PerClient(target + [np.nan, 0][turn.t != 2])",
            "Up.target is not finite in round 3 (client 0)",
        ),
        ("(server.total / ", "(np.nan * server.total / ", "Down.mean is not finite in round 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_not_finite_at_first_is_named(mine: Callable[..., Answer], old: str, new: str, said: str) -> None:
    """And nothing is said of the step size, which no number could be."""
    answer = mine(old, new)
    assert answer.code == 2
    line = lines(answer.err)[-1]
    assert line.startswith(f"error: Mine: {said}; ") and "lower" not in line


def test_only_the_author_s_own_lines_are_shown(mine: Callable[..., Answer], tmp_path: Path) -> None:
    """The whole traceback is in error.txt."""
    answer = mine("target = np.repeat(samples.y[None], len(y_hat), axis=0)", "target = np.matmul(y_hat, samples.x.T)")
    assert answer.code == 1
    shown = lines(answer.err)
    assert sum(line.startswith("  File ") for line in shown) == 1
    assert "    target = np.matmul(y_hat, samples.x.T)" in shown
    assert "ValueError: matmul" in answer.err
    file = Path(shown[-1].removeprefix("the whole traceback: "))
    whole = (tmp_path / file).read_text()
    assert "fkl/contract/star.py" in whole and "ValueError: matmul" in whole


@pytest.mark.drawn
def test_a_label_of_bad_mathtext_loses_no_run(mine: Callable[..., Answer], tmp_path: Path) -> None:
    answer = mine('"Mine"', r'r"costs 5$ or \frac{ 6$"')
    assert (answer.code, lines(answer.err)) == (0, [])
    assert (tmp_path / "here" / "mse.png").stat().st_size > 1000
    assert len(pd.read_csv(tmp_path / "here" / "summary.csv")) == 2


@pytest.mark.drawn
def test_a_picture_that_fails_loses_no_tables(
    mine: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    def fails(*_: object, **__: object) -> None:
        raise ValueError("no font")

    monkeypatch.setattr(Figure, "savefig", fails)
    answer = mine()
    assert answer.code == 0
    assert "no figure of Mine on diabetes: ValueError: no font" in answer.err
    assert len(pd.read_csv(tmp_path / "here" / "summary.csv")) == 2
    assert not (tmp_path / "here" / "mse.png").exists()


OWN = """
from dataclasses import dataclass

import numpy as np

from fkl.algorithms.federated.pof_mkl import PofMkl


def helper(x):
    return np.zeros(3).reshape(x)  # here


def metric(y, y_hat):
    return helper(7)


@dataclass
class Logger:
    def begin(self, run):
        helper(7)

    def fail(self, why): ...

    round = end = fail


@dataclass(frozen=True)
class Method(PofMkl):
    def server(self, common, server, up, share, turn):
        return helper(7)


@dataclass(frozen=True)
class Refuses(PofMkl):
    def __post_init__(self):
        helper(7)
"""
HERE = f", line {next(n for n, line in enumerate(OWN.splitlines(), 1) if '# here' in line)}: ValueError: cannot reshape"
SHOWN_LINE = "    return np.zeros(3).reshape(x)  # here"


@pytest.fixture
def own(fkl: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module whose functions fail inside a library that they call."""
    name = f"own_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(OWN)
    (tmp_path / f"{name}_imported.py").write_text(f"import {name}\n{name}.helper(7)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("metrics.m={}.metric", 2),
        ("metrics.m={}_imported.metric", 2),
        ("+logger.mine._target_={}.Logger", 0),
        ("algo._target_={}.Method", 1),
        ("algo._target_={}.Refuses", 1),
    ],
)
def test_an_error_of_one_s_own_code_has_its_file_and_line(
    word: str, code: int, fkl: Callable[..., Answer], own: str, tmp_path: Path
) -> None:
    """Alone and as a job of a sweep; -v shows the lines that led there, and error.txt and Python keep its cause."""
    words = (*SMALL, "partition.rounds=20", word.format(own))
    answer = fkl("run", *words, "-v")
    assert answer.code == code
    if code == 1:
        assert f"{own}.py" in answer.err and SHOWN_LINE in answer.err
    else:
        assert f"{own}.py{HERE}" in answer.err
        assert (SHOWN_LINE in answer.err) == (code == 2)
    swept = fkl("run", "-m", *words, "seed=1")
    if code:
        assert f"{own}.py{HERE}" in swept.out
        files = [*(tmp_path / "outputs" / "failed").glob("*/error.txt")]
        assert files and all(SHOWN_LINE in file.read_text() for file in files)
    else:
        assert f"{own}.py{HERE}" in swept.err


def test_python_keeps_the_cause(own: str) -> None:
    for word in (f"metrics.m={own}.metric", f"metrics.m={own}_imported.metric"):
        with pytest.raises(FklError) as refused:
            package.run(*SMALL, "partition.rounds=20", word, quiet=True)
        assert isinstance(refused.value.__cause__, ValueError)
