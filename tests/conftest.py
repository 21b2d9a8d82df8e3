"""Fixtures that several rooms' tests share."""

import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import pytest
import yaml
from in_browser import chromium
from tqdm import tqdm

from fkl import cli, conf_folder

# One thread of BLAS, as in a run: a test on each core leaves no core for more, which would wait for each other at full
# speed. It is read where numpy is first imported, which is later.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# No wall clock decides a test, and CI draws the same examples each time.
hypothesis.settings.register_profile("fkl", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("fkl")

SMALL = ("dataset=diabetes", "kernels.D=8", "replicates=2")
"""A configuration that runs in a moment: 4 clients, 100 rounds."""

ALGORITHMS = sorted(path.stem for path in (conf_folder() / "algo").glob("*.yaml"))


def pytest_collection_finish() -> None:
    """Whatever is imported by now stays: the garbage collector need not look at it, again and again."""
    gc.collect()
    gc.freeze()


def _of(family: str) -> set[str]:
    """Algorithms of one family."""
    return {name for name in ALGORITHMS if f".{family}." in (conf_folder() / "algo" / f"{name}.yaml").read_text()}


LOCAL_TRAINING = sorted(_of("local_training"))
LOCAL_BATCHES = {
    f"{name}_batches": (f"algo={name}", "algo.iterations=100", "algo.eta=0.5", "kernels=coke", "partition.rounds=100")
    for name in LOCAL_TRAINING
}
LOCAL_BATCHES["pfedme_batches"] += ("algo.eta_k=0.3",)
"""Words of the same methods where clients use all their samples."""


@cache
def conformance(*overrides: str) -> Any:
    """One scenario, whose traces and tables all promises share, in all files of a process of the tests."""
    from fkl.conformance import Conformance

    return Conformance.from_overrides(*overrides)


def small(algo: str) -> tuple[str, ...]:
    """Overrides of a run that takes a moment, as `fkl.conformance.quick_overrides` has them for a class."""
    from fkl import conformance

    return (*conformance.quick_overrides(class_of(algo.removesuffix("_batches"))), *words_of(algo), "replicates=2")


def class_of(algo: str) -> type:
    """The class of a method."""
    from hydra.utils import get_class

    return get_class(yaml.safe_load((conf_folder() / "algo" / f"{algo}.yaml").read_text())["_target_"])


def words_of(algo: str) -> tuple[str, ...]:
    """Words that choose a method, also one of `LOCAL_BATCHES`."""
    return LOCAL_BATCHES.get(algo, (f"algo={algo}",))


@cache
def words_of_few_kernels(algo: str) -> tuple[str, ...]:
    """Words that choose a method, with 9 kernels where it would have 51."""
    from fkl.conformance import quick_run

    fewer = getattr(quick_run(*words_of(algo)).kernels, "N", None) == 51
    return (*words_of(algo), *["kernels.N=9"] * fewer)


def script(name: str) -> Any:
    """A module of scripts/; a file of tests whose checkout has none is skipped."""
    path = Path(__file__).parents[1] / "scripts" / f"{name}.py"
    if not path.exists():
        pytest.skip("the tests are not in a checkout", allow_module_level=True)
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


class Answer(NamedTuple):
    """What a call of the command left behind."""

    code: int
    out: str
    err: str


ANYONE_S = ("time ", "run ", "runtime_", "files: ", "plots: ", "pictures: ")
"""Beginnings of lines with times, and with a run's hash."""


def require_shown(found: str, shown: str) -> None:
    """What a command prints is what a page shows: words are equal, numbers nearly so, `...` stands for any lines."""
    lines, wanted = ([line for line in text.splitlines() if line.strip()] for text in (found, shown))
    assert "..." in map(str.strip, wanted) or len(lines) == len(wanted), found
    left = iter(lines)
    for line in wanted:
        if line.strip() != "..." and not line.lstrip().startswith(ANYONE_S):
            assert any(_alike(one, line) for one in left), f"{line}\n{found}"


def _alike(line: str, shown: str) -> bool:
    words, others = map(_words, (line, shown))
    return len(words) == len(others) and all(map(_near, words, others))


def _words(line: str) -> list[str]:
    """The cells of a row of a CSV file, which has no spaces; else the words of a line."""
    if "," in line and " " not in line:
        return line.split(",")
    return [word.strip("*_(),").replace(",", "") for word in line.split()]


def _near(word: str, other: str) -> bool:
    with suppress(ValueError):
        return float(word) == pytest.approx(float(other), rel=0.03)
    return word == other


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is kept in, or taken from, the user's own cache, and no run is written where pytest was called."""
    os.environ["FKL_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    folder = Path.cwd() / "outputs"
    before = {*folder.glob("runs/*")}
    yield
    assert {*folder.glob("runs/*")} == before, "a test wrote a run into the user's outputs: let it change the folder"


@pytest.fixture(autouse=True)
def _no_module_of_another_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two tests may write modules of one name."""
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path_factory.getbasetemp()):
            del sys.modules[name]


@pytest.fixture(scope="session", autouse=True)
def _blank() -> None:
    """Figures are blank ones, in whatever a whole module shares too."""
    import blank

    blank.begin()


@pytest.fixture(autouse=True)
def _figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Figures are drawn in tests that are marked so."""
    import blank

    with nullcontext() if request.node.get_closest_marker("drawn") is None else blank.drawn_after_all():
        yield


@pytest.fixture
def fkl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Answer]:
    """Call `fkl` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FKL_DATA", raising=False)
    monkeypatch.setenv("PYTHONSAFEPATH", "")  # what a run makes of it, and of logging, ends with the test
    monkeypatch.setattr(logging.root, "handlers", [])
    logging.root.setLevel(logging.WARNING)
    getattr(tqdm, "_instances", set()).clear()  # a bar that a cut download has left open would move ours down a line

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, where the machine has it."""
    with chromium() as found:
        yield found
