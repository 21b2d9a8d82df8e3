"""`python -m benchmarks --against COMMIT`: time of this tree's benchmarks relative to those of another commit.

Each of both trees has a process, which imports the fkl and the benchmarks of its own tree and compiles them anew. They
take turns, and the order changes from turn to turn, because the speed of a machine changes within minutes. A ratio is
that of two turns in succession.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import numpy as np

from fkl.basics.errors import FklError
from fkl.screen.messages import print_note

ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("worker.py")
TURNS = 9
THRESHOLD = 1.1
HEADINGS = ("method", "what is run", "time / old", "CPU time / old", "answer")
SLOWER = "slower"


class Tree:
    """A process that plays the benchmarks of a folder.

    Parameters
    ----------
    folder : Path
        Contains fkl and benchmarks.
    cache : Path
        For compiled code.
    """

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, "-P", str(WORKER)]  # -P: the worker's own folder comes first otherwise
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.__exit__(kind, error, at)

    def ask(self, words: object) -> list[Any]:
        """The answer of the worker, see `benchmarks.worker`."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise FklError(f"--against: the benchmarks of {self.folder} failed, see above")
        return json.loads(answer)


def compared(names: Iterable[str], commit: str) -> list[tuple[str, ...]]:
    """Rows of a table, with `HEADINGS`; benchmarks that the other commit does not have are named and left out."""
    rows = []
    with TemporaryDirectory() as scratch, ExitStack() as stack:
        old_folder = Path(scratch) / "old"
        _export(commit, old_folder)
        new = stack.enter_context(Tree(ROOT, Path(scratch) / "compiled_new"))
        old = stack.enter_context(Tree(old_folder, Path(scratch) / "compiled_old"))
        for name in names:
            known = old.ask(name)
            for number, case in enumerate(new.ask(name)):
                if case not in known:
                    print_note(f"{', '.join(case)}: left out, as {commit} does not have it")
                    continue
                method, shape = case
                ratios = _ratios(new, number, old, known.index(case), method)
                rows.append((method, shape, *map(_told, ratios), _answer(ratios)))
    return rows


def _export(commit: str, folder: Path) -> None:
    """Write the files of a commit to a folder."""
    name = _git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}", commit=commit).decode().strip()
    packed = _git("archive", "--format=tar", name, commit=commit)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(folder)


def _git(*words: str, commit: str) -> bytes:
    """What git prints."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)
    except OSError as error:
        raise FklError(f"--against {commit}: git cannot be run: {error.strerror}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise FklError(f"--against {commit}: git finds no such commit in {ROOT}: {' '.join(reason)}")
    return done.stdout


def _ratios(new: Tree, number: int, old: Tree, old_number: int, method: str) -> list[list[float]]:
    """Ratios of the time, and of the processor's time, in each turn; a first turn, which compiles, does not count."""
    new.ask(number)
    old.ask(old_number)
    turns = []
    for turn in range(TURNS):
        if turn % 2:
            before = old.ask(old_number)
            after = new.ask(number)
        else:
            after = new.ask(number)
            before = old.ask(old_number)
        turns.append([one / other for one, other in zip(after, before, strict=True)])
        print_note(f"{method}, {turn + 1} of {TURNS}: {after[0]:.3g} s, old {before[0]:.3g} s")
    return [[*ratios] for ratios in zip(*turns, strict=True)]


def _summary(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the second smallest and second largest: of 9 ratios, a 96 % interval of the median."""
    return float(np.median(ratios)), *np.sort(ratios)[[1, -2]].tolist()


def _told(ratios: Sequence[float]) -> str:
    return "{:.2f} ({:.2f} to {:.2f})".format(*_summary(ratios))


def _answer(ratios: Iterable[Sequence[float]]) -> str:
    """Whether one of both times has changed by more than 10 %, and its interval does not contain 1."""
    found = set()
    for median, low, high in map(_summary, ratios):
        if median > THRESHOLD and low > 1:
            found.add(SLOWER)
        if median < 1 / THRESHOLD and high < 1:
            found.add("faster")
    return ", ".join(sorted(found))
