"""Run every experiment of the papers for which data are at hand, then write their tables and figures, and the page.

Usage: reproduce_tables.py [--fail-fast] [PAPER ...], all papers where none is named. Finished runs are left out, so an
interrupted reproduction goes on with the same command.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from hydra import compose, initialize_config_dir
from joblib import cpu_count

from fkl import conf_folder
from fkl.cli import about
from fkl.data import registry
from fkl.data.store import Store
from fkl.errors import FklError, refuse
from fkl.papers import PAPERS, paper_module
from fkl.sweep import count

FAIL_FAST = "--fail-fast"


def main(*arguments: str) -> int:
    """Keep going past a failure; the exit code tells whether there was one."""
    papers = [word for word in arguments if word != FAIL_FAST] or list(PAPERS)
    flags = [FAIL_FAST] * (FAIL_FAST in arguments)
    _told_what_is_missing(papers)
    commands = [*((paper, command) for paper in papers for command in _commands(paper, flags)), ("page", ["report"])]
    jobs = [_jobs(command) for _, command in commands]
    failed, timed = [], []
    start = time.perf_counter()
    for number, (paper, command) in enumerate(commands):
        words = " ".join(command)
        print(f"== {number + 1} of {len(commands)}: fkl {words}{_time_left(start, jobs, number)}", flush=True)
        begin = time.perf_counter()
        code = subprocess.run([Path(sys.executable).with_name("fkl"), *command], check=False).returncode
        timed.append((time.perf_counter() - begin, paper, words))
        failed += [words] * (code != 0)
        if code and flags:
            break
    _told_what_it_took(pd.DataFrame(timed, columns=["seconds", "paper", "command"]))
    _told_what_is_missing(papers)
    print("failed: " + ("; ".join(failed) or "nothing"))
    return bool(failed)


def _commands(paper: str, flags: list[str]) -> Iterator[list[str]]:
    """A paper's sweeps; its tables and figures are made with the page."""
    cores = cpu_count()
    workers = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={cores}"] if cores > 1 else []
    for file in sorted((conf_folder() / "experiment" / paper).glob("*.yaml")):
        yield ["run", "-m", f"+experiment={paper}/{file.stem}", *workers, *flags]


def _jobs(command: list[str]) -> int:
    """Runs of a sweep; 0 for what takes no time."""
    if command[0] != "run":
        return 0
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return count(compose("config", command[2:3], return_hydra_config=True))


def _time_left(start: float, jobs: list[int], number: int) -> str:
    done, left = sum(jobs[:number]), sum(jobs[number:])
    if not done:
        return f" ({left} runs in all)"
    return f" ({left} runs left, about {(time.perf_counter() - start) / done * left / 60:.0f} min)"


def _told_what_it_took(timed: pd.DataFrame) -> None:
    """Seconds of each sweep, with the tables it is for, of each paper, and in all."""
    print("\nseconds  command")
    for seconds, command in zip(timed["seconds"], timed["command"], strict=True):
        name = re.search(r"\+experiment=(\S+)", command)
        words = f"{name[1]}: {about(conf_folder() / 'experiment' / f'{name[1]}.yaml')}" if name else f"fkl {command}"
        print(f"{seconds:7.0f}  {words.removesuffix(' (sweep: -m)')}")
    print("\nseconds  paper")
    for paper, seconds in timed.groupby("paper", sort=False)["seconds"].sum().items():
        print(f"{seconds:7.0f}  {paper}")
    print(f"{timed['seconds'].sum():7.0f}  in all")


def _told_what_is_missing(papers: list[str]) -> None:
    """Name the papers' data sets that are not at hand, and how to get them."""
    store = Store(Path(os.environ.get("FKL_DATA", "data")))
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
