"""`fkl reproduce`: run the experiments of the papers' tables and figures for which data exist, then write the page.

Finished runs are skipped, so the same command resumes an interrupted reproduction.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from joblib import cpu_count

from fkl.basics.environment import environment_variable
from fkl.config import experiments
from fkl.data import registry
from fkl.data.store import Store
from fkl.papers import PAPERS, declared_paper, paper_module
from fkl.papers.cells import published_cells
from fkl.papers.jobs import count_jobs

AT_ONCE = min(2, cpu_count())
"""Number of parallel sweeps; with two, no core is idle while a sweep begins or ends."""
LONGEST = (
    "fdskl/svm_part", "fdskl/svm", "fdskl/bank", "fdskl/nystroem", "fdskl/ridge", "fdskl/trees", "fdskl/merged_part",
)  # fmt: skip
"""Sweeps of few, long runs; they begin first, because at the end each would leave the other core idle for minutes.

In a full reproduction on two idle cores of an AMD EPYC, they took 138, 100, 98, 93, 71, 63 and 60 s of 3079 s.
"""


def reproduce_papers(papers: Sequence[str] = (), fail_fast: bool = False, readings: bool = False) -> list[str]:
    """Run all experiments of these papers, even after failures, then write the page; print times and missing data.

    Parameters
    ----------
    papers : sequence of str
        Names of papers; if empty, all papers.
    fail_fast : bool
        Whether to start no more sweeps after a failure.
    readings : bool
        Whether to also run the readings that only differences.md needs.

    Returns
    -------
    list of str
        The commands that failed.

    Raises
    ------
    fkl.basics.errors.FklError
        For an unknown paper.
    """
    # Refuse unknown papers before the first run
    papers = papers or PAPERS
    for paper in papers:
        paper_module(paper)  # refuses an unknown name
    left_out = () if readings else tuple(name for paper in papers for name in experiments.not_needed(paper))
    # Say first what data are missing
    print_missing_data(papers)
    # Several sweeps at once; the page at the end, from whatever has finished
    played = PlayedSweeps(sweeps := in_turn(papers, left_out))
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        list(pool.map(partial(played.run_paper_sweep, fail_fast=fail_fast), sweeps))
    finally:
        pool.shutdown(cancel_futures=True)
    if not (fail_fast and played.failed):
        played.call_fkl("page", "report", ["report"])
    played.print_times()
    print_missing_data(papers)
    if left_out:
        print(f"omitted: readings that no published number needs; add --readings to run them: {', '.join(left_out)}")
    print("failed: " + ("; ".join(played.failed) or "nothing"))
    return played.failed


class Sweep(NamedTuple):
    """One experiment of a paper, named PAPER/EXPERIMENT, and its number of runs."""

    name: str
    runs: int


class PlayedSweeps:
    """Runs sweeps, and counts finished runs.

    Parameters
    ----------
    sweeps : list of Sweep
        All sweeps to run.
    """

    def __init__(self, sweeps: list[Sweep]) -> None:
        self.runs = sum(sweep.runs for sweep in sweeps)
        self.start = time.perf_counter()
        self.begun = self.done = 0
        self.times: list[tuple[str, str, float]] = []
        self.failed: list[str] = []
        self.of = len(sweeps)

    def run_paper_sweep(self, sweep: Sweep, fail_fast: bool) -> None:
        """Run a sweep; with fail_fast, do nothing after a failure."""
        # Nothing begins after a failure that should end all
        if fail_fast and self.failed:
            return
        self.begun = number = self.begun + 1  # read once, because another thread may change it
        gone = (time.perf_counter() - self.start) / 60
        # The remaining time is not estimated: the longest runs begin first, and until they end, an estimate would be
        # ten times too long.
        left = f"{self.runs - self.done} of {self.runs} runs left after {gone:.0f} min" if self.done else ""
        # Sweeps share the cores
        workers = cpu_count() // AT_ONCE  # each run has one core
        launcher = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={workers}"] if workers > 1 else []
        command = ["run", "-m", f"+experiment={sweep.name}", "threads=1", *launcher]
        command_words = f"{' '.join(command)} ({left or f'{self.runs} runs in total'})"
        print(f"== {number} of {self.of}: fkl {command_words}", flush=True)
        paper = sweep.name.partition("/")[0]
        about = f"{sweep.name}: {experiments.paper_experiments(paper)[sweep.name]['about']}"
        self.call_fkl(paper, about, [*command, *["--fail-fast"] * fail_fast])
        self.done += sweep.runs

    def call_fkl(self, paper: str, words: str, command: list[str]) -> None:
        """Run `fkl`; record its processor time, including its child processes, and whether it failed."""
        child = subprocess.Popen([Path(sys.executable).with_name("fkl"), *command])
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.times.append((paper, words, used.ru_utime + used.ru_stime))
        self.failed += [" ".join(command)] * (child.returncode != 0)

    def print_times(self) -> None:
        """Print the processor seconds of each sweep and of each paper, and the total time."""
        # Times by sweep and by paper
        print("\nCPU s    sweep")
        papers: Counter[str] = Counter()
        for paper, sweep_words, seconds in sorted(self.times):
            print(f"{seconds:7.0f}  {sweep_words}")
            papers[paper] += round(seconds)
        print("\nCPU s    paper")
        for paper, total in papers.items():
            print(f"{total:7.0f}  {paper}")
        print(f"{papers.total():7.0f}  in total")
        print(f"{time.perf_counter() - self.start:7.0f}  seconds from beginning to end, {AT_ONCE} sweeps in parallel")


def in_turn(papers: Sequence[str], left_out: tuple[str, ...]) -> list[Sweep]:
    """All sweeps except `left_out`, one of each paper in turn, because sweeps of one paper often share runs.

    The longest sweeps come first, then those with the most runs. The last sweeps, when a core may be idle, are short.
    """
    # Sweeps of one paper often share runs, so they should not run at once
    by_paper = []
    for paper in papers:
        names = {name for name in experiments.paper_experiments(paper) if name.startswith(f"{paper}/")} - {*left_out}
        sweeps = [Sweep(name, count_jobs(name)) for name in names]
        by_paper.append(sorted(sweeps, key=lambda sweep: (-sweep.runs, sweep.name)))
    in_turn = [sweep for turn in zip_longest(*by_paper) for sweep in turn if sweep is not None]
    return sorted(in_turn, key=lambda sweep: [*LONGEST, sweep.name].index(sweep.name))


def print_missing_data(papers: Sequence[str]) -> None:
    """Print which of the papers' data sets are missing, and how to get them."""
    store = Store(Path(environment_variable("FKL_DATA", "data")))
    places = {listing.name: listing.found for listing in registry.list_datasets(store)}
    for paper in papers:
        for name, reason in declared_paper(paper).get("unobtainable", {}).items():
            print(f"missing: {paper}: {name}: {reason}")
        for name in sorted({cell.dataset for cell in published_cells(paper)}):
            if places.get(name) == "missing":
                [first, *_] = registry.verify_datasets([name], store)
                print(f"missing: {paper}: {name}: fkl data fetch {name}, or put {first.file} into {store.folder}")
