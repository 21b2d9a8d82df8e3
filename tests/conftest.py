"""Fixtures that several rooms' tests share."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest

from fkl import cli, conf_folder

# No wall clock decides a test, and CI draws the same examples each time.
hypothesis.settings.register_profile("fkl", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("fkl")

SMALL = ("dataset=diabetes", "kernels.D=8", "replicates=2")
"""A configuration that runs in a moment: 4 clients, 100 rounds."""

CLASSES = ("dataset=ellipses", "dataset.rows=90", "scaling=none", "replicates=2")
"""The same for classifiers: 9 clients, one round."""

SHORT = {
    "dsg": ("algo.iterations=20", "algo.batch=8", "algo.features=4"),
    "fdskl": ("algo.iterations=20", "algo.batch=8", "algo.features=4"),
    "fd_svrg": ("algo.passes=20",),
    "secureboost": ("algo.trees=20",),
}
"""20 rounds of methods over two parties; the others have one."""

ALGORITHMS = sorted(path.stem for path in (conf_folder() / "algo").glob("*.yaml"))


def _of(family: str) -> set[str]:
    """Algorithms of one family."""
    return {name for name in ALGORITHMS if f".{family}." in (conf_folder() / "algo" / f"{name}.yaml").read_text()}


ONLINE, DECENTRALIZED, PARSIMONIOUS = _of("online"), _of("decentralized"), _of("parsimonious")
VERTICAL = _of("vertical")


def small(algo: str) -> tuple[str, ...]:
    """`SMALL` with an algorithm, 100 rounds of it; where that is one learner, it gets the first 100 shuffled rows."""
    if algo in PARSIMONIOUS:
        return (*CLASSES, f"algo={algo}", "algo.steps=50", "algo.centres=100")
    if algo in VERTICAL:
        vertical = ("dataset.test_rows=0", "partition=vertical", "partition.parties=2")
        return (*CLASSES, *vertical, f"algo={algo}", *SHORT.get(algo, ()))
    alone = ("partition.clients=1", "partition.rounds=100") if algo in ONLINE else ()
    iterations = ("algo.iterations=100",) if algo in DECENTRALIZED else ()
    return (*SMALL, f"algo={algo}", *alone, *iterations)


class Answer(NamedTuple):
    """What a call of the command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing is kept in, or taken from, the user's own cache."""
    os.environ["FKL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def fkl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Answer]:
    """Call `fkl` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FKL_DATA", raising=False)

    def call(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["fkl", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call
