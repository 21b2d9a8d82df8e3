"""Run what the papers' tables and figures need, where data are at hand, then write them, and the page.

Usage: reproduce_tables.py [--fail-fast] [--readings] [PAPER ...], all papers where none is named. With --readings also
what differences.md tells of other readings of the papers. Finished runs are left out, so an interrupted reproduction
goes on with the same command.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path

import pandas as pd
from joblib import cpu_count

from fkl.config import experiments
from fkl.data import registry
from fkl.data.store import Store
from fkl.environment import variable
from fkl.errors import FklError, refuse
from fkl.papers import PAPERS, paper_module
from fkl.papers.jobs import count

FAIL_FAST, READINGS = "--fail-fast", "--readings"
AT_ONCE = min(2, cpu_count())
"""Sweeps side by side, so that no core waits while one begins or ends."""
LONGEST = ("fdskl/svm_part", "fdskl/bank", "fdskl/svm", "fdskl/nystroem", "fdskl/ridge")
"""Sweeps of few runs that begin first, as one that is left at the end would have one core wait for minutes.

They took 218, 207, 198, 184 and 137 s of 5267 in all, in a run of everything on two cores of an AMD EPYC.
"""


def main(*arguments: str) -> int:
    """Keep going past a failure; the exit code tells whether there was one."""
    papers = [word for word in arguments if word not in (FAIL_FAST, READINGS)] or list(PAPERS)
    for paper in papers:
        paper_module(paper)  # which refuses a name that there is not
    fail_fast = FAIL_FAST in arguments
    left_out = () if READINGS in arguments else _readings(papers)
    _told_what_is_missing(papers)
    played = Played(sweeps := _in_turn(papers, left_out))
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        list(pool.map(partial(played.play, fail_fast=fail_fast), sweeps))
    finally:
        pool.shutdown(cancel_futures=True)
    if not (fail_fast and played.failed):
        played.call("page", "report", ["report"])
    _told_what_it_took(played)
    _told_what_is_missing(papers)
    if left_out:
        print(f"left out: readings that no published number waits for, {READINGS} runs them: {', '.join(left_out)}")
    print("failed: " + ("; ".join(played.failed) or "nothing"))
    return bool(played.failed)


@dataclass(frozen=True)
class Sweep:
    """One experiment of a paper, named PAPER/EXPERIMENT."""

    name: str

    @property
    def paper(self) -> str:
        """What its name begins with."""
        return self.name.partition("/")[0]

    @property
    def command(self) -> list[str]:
        """What `fkl` is called with; each run has one core."""
        workers = cpu_count() // AT_ONCE
        launcher = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={workers}"] if workers > 1 else []
        return ["run", "-m", f"+experiment={self.name}", "threads=1", *launcher]

    @cached_property
    def runs(self) -> int:
        """How many it has."""
        return count(self.name)

    @property
    def about(self) -> str:
        """Its name, and which tables it is for."""
        return f"{self.name}: {experiments.experiments(self.paper)[self.name]['about']}"


class Played:
    """What was done so far.

    Parameters
    ----------
    sweeps : list of Sweep
        All that is to be done.
    """

    def __init__(self, sweeps: list[Sweep]) -> None:
        self.runs = sum(sweep.runs for sweep in sweeps)
        self.start = time.perf_counter()
        self.begun = self.done = 0
        self.times: list[tuple[str, str, float]] = []
        self.failed: list[str] = []
        self.of = len(sweeps)

    def play(self, sweep: Sweep, fail_fast: bool) -> None:
        """Do a sweep; nothing after a failure where the first one is to end it all."""
        if fail_fast and self.failed:
            return
        self.begun += 1
        print(f"== {self.begun} of {self.of}: fkl {' '.join(sweep.command)}{self._left()}", flush=True)
        self.call(sweep.paper, sweep.about, [*sweep.command, *[FAIL_FAST] * fail_fast])
        self.done += sweep.runs

    def call(self, paper: str, words: str, command: list[str]) -> None:
        """Call `fkl` and note how much of a processor it took, its own processes' included, and whether it failed."""
        child = subprocess.Popen([Path(sys.executable).with_name("fkl"), *command])
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.times.append((paper, words, used.ru_utime + used.ru_stime))
        self.failed += [" ".join(command)] * (child.returncode != 0)

    def _left(self) -> str:
        """No guess: the longest runs go first, so that it would be ten times too long until they are done."""
        if not self.done:
            return f" ({self.runs} runs in all)"
        gone = (time.perf_counter() - self.start) / 60
        return f" ({self.runs - self.done} of {self.runs} runs left after {gone:.0f} min)"


def _readings(papers: list[str]) -> tuple[str, ...]:
    """Experiments that no published number waits for."""
    return tuple(name for paper in papers for name in experiments.not_needed(paper))


def _in_turn(papers: list[str], left_out: tuple[str, ...]) -> list[Sweep]:
    """All sweeps but some, papers in turn, so that what a paper runs twice is hardly run twice at the same time.

    The longest go first, and then those with the most runs: what is left at the end, when a core may have nothing to
    do, is then short.
    """
    by_paper = []
    for paper in papers:
        names = {name for name in experiments.experiments(paper) if name.startswith(f"{paper}/")} - {*left_out}
        by_paper.append(sorted(map(Sweep, names), key=lambda sweep: (-sweep.runs, sweep.name)))
    in_turn = [sweep for turn in zip_longest(*by_paper) for sweep in turn if sweep is not None]
    return sorted(in_turn, key=lambda sweep: [*LONGEST, sweep.name].index(sweep.name))


def _told_what_it_took(played: Played) -> None:
    """Processor seconds of each sweep, with the tables it is for, and of each paper; and how long all of it took."""
    print("\nCPU s    sweep")
    papers: Counter[str] = Counter()
    for paper, words, seconds in sorted(played.times):
        print(f"{seconds:7.0f}  {words}")
        papers[paper] += round(seconds)
    print("\nCPU s    paper")
    for paper, total in papers.items():
        print(f"{total:7.0f}  {paper}")
    print(f"{papers.total():7.0f}  in all")
    print(f"{time.perf_counter() - played.start:7.0f}  seconds from beginning to end, {AT_ONCE} sweeps at once")


def _told_what_is_missing(papers: list[str]) -> None:
    """Name the papers' data sets that are not at hand, and how to get them."""
    store = Store(Path(variable("FKL_DATA", "data")))
    found = {listing.name: listing.found for listing in registry.describe(store)}
    for paper in papers:
        module = paper_module(paper)
        for name, reason in getattr(module, "UNOBTAINABLE", {}).items():
            print(f"missing: {paper}: {name}: {reason}")
        file = Path(module.__file__ or "").with_name("published.csv")
        names = sorted(set(pd.read_csv(file)["dataset"])) if file.exists() else []
        for name in names:
            if found.get(name) == "missing":
                [first, *_] = registry.verify([name], store)
                print(f"missing: {paper}: {name}: fkl data fetch {name}, or put {first.file} into {store.folder}")


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except FklError as wrong:
        sys.exit(refuse(wrong))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from where it was", file=sys.stderr)
        sys.exit(130)
