"""Plant faults in a copy of fkl, one at a time, and see whether the tests fail.

    python scripts/planted_faults.py [--only WORDS]

The faults are in planted_faults.yaml, each with some of the tests that have to catch it. The test that catches it has
to pass without it. The exit code is 1 if a fault was missed.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FAULTS = Path(__file__).with_suffix(".yaml")
LONGEST_S = 300
"""Tests that take longer have found nothing."""
WITHIN_COMPILED = ("fkl/algorithms/", "fkl/basics/", "fkl/kernels/")
"""Folders of all functions and numbers that numba compiles into others; it does not notice that they change."""


for library in ("numba", "pandas", "scipy.stats", "matplotlib"):  # which every test would load anew
    import_module(library)


class Fault(NamedTuple):
    """A line of fkl that is replaced by a wrong one.

    Parameters
    ----------
    fault : str
        Description of the fault.
    file : str
        Path relative to fkl/.
    old, new : str
    tests : str
        Arguments of pytest, with files relative to tests/.
    """

    fault: str
    file: str
    old: str
    new: str
    tests: str


def faults() -> list[Fault]:
    """All faults."""
    return [Fault(**fault) for fault in yaml.safe_load(FAULTS.read_text())]


def copy_checkout(root: Path) -> None:
    """Copy all files that git knows, and numba's compiled code, with the times by which older numbas recognise it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    compiled = (str(kept.relative_to(ROOT)) for kept in (ROOT / "fkl").rglob("*.nb[ci]"))
    for name in (*listed.split("\0")[:-1], *compiled):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)


@contextmanager
def planted(fault: Fault, root: Path) -> Iterator[None]:
    """The checkout at `root` with this fault in it."""
    file = f"fkl/{fault.file}"
    right = (root / file).read_text()
    if right.count(fault.old) != 1:
        raise SystemExit(f"{fault.file} has {right.count(fault.old)} times what is to be replaced: {fault.old}")
    with written(file, right.replace(fault.old, fault.new), root):
        yield


@contextmanager
def written(file: str, text: str, root: Path) -> Iterator[None]:
    """The checkout at `root` with another text of this file, and without the compiled code that may contain the old."""
    path, right = root / file, (root / file).read_text()
    times = path.stat()
    aside = [*(root / "fkl").rglob("*.nb[ci]")] if file.startswith(WITHIN_COMPILED) else []
    try:
        for kept in aside:
            kept.rename(f"{kept}.aside")
        path.write_text(text)
        yield
    finally:
        path.write_text(right)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        for wrong in (root / "fkl").rglob("*.nb[ci]") if aside else ():
            wrong.unlink()
        for kept in aside:
            Path(f"{kept}.aside").rename(kept)


class First:
    """A plugin of pytest that writes the name of each test that fails into a pipe."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        if report.failed:
            os.write(self.pipe, f"{report.nodeid}\n".encode())

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file has been imported."""
        if report.failed:
            os.write(self.pipe, f"{report.nodeid}\n".encode())


def failing(words: list[str], root: Path) -> str | None:
    """The first of these tests that fails, None if all pass; another process takes over the libraries loaded here."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LONGEST_S)
        os.close(read)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.chdir(root)
        sys.path.insert(0, str(root))
        # Python recognises old bytecode by size and seconds, which may be the same here.
        sys.dont_write_bytecode = True
        os.environ |= {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        os._exit(pytest.main([*options, *words], plugins=[First(write)]))
    os.close(write)
    with os.fdopen(read) as pipe:
        test = pipe.readline().strip()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM:
        raise SystemExit(f"{' '.join(words)}: no end within {LONGEST_S} s")
    if code not in (0, 1, 2) or (code and not test):
        raise SystemExit(f"{' '.join(words)}: pytest ended with {code}")
    return test or None


def caught(fault: Fault, root: Path) -> str | None:
    """The first test that fails because of a fault, and passes without it; None if there is none."""
    words = [f"tests/{word}" if (root / "tests" / word).exists() else word for word in shlex.split(fault.tests)]
    with planted(fault, root):
        test = failing(words, root)
    if test is not None and "::" in test and failing([test], root) is not None:
        raise SystemExit(f"{test} fails without any fault")
    return test


def caught_in_time(fault: Fault) -> tuple[str, float]:
    """As `caught` in this process's own copy of the checkout, in words, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(root := Path(folder) / "fkl")
        began = time.monotonic()
        try:
            return caught(fault, root) or "MISSED", time.monotonic() - began
        except SystemExit as error:
            return f"MISSED, {error}", time.monotonic() - began


def main() -> int:
    """Plant all faults; 1 if one was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORDS", help="faults in whose words or file these are")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="faults at the same time")
    given = parser.parse_args()
    chosen = [fault for fault in faults() if given.only in f"{fault.file}: {fault.fault}"]
    missed = 0
    with ProcessPoolExecutor(given.jobs, get_context("fork")) as pool:
        found = zip(chosen, pool.map(caught_in_time, chosen), strict=True)
        for number, (fault, (test, seconds)) in enumerate(found, 1):
            missed += test.startswith("MISSED")
            print(f"{number:3} {fault.file}: {fault.fault}: {test}, {seconds:.0f} s", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
