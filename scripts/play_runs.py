"""Play runs with the fkl that Python finds, and keep their tables with every digit.

Usage: play_runs.py JOBS, a JSON list of {"words": [KEY=VALUE, ...], "folder": FOLDER}. Each folder gets rounds.csv,
clients.csv and summary.csv, then notes.json; or failed.txt. `compare_commits.py` starts this with one tree of fkl after
the other.
"""

import json
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pandas as pd
from matplotlib.figure import Figure

import fkl.cli

ALL_DIGITS = "%.17g"
"""Prints a float64 such that reading it gives the same bits; runs round to ten digits."""
TABLES = ("rounds.csv", "clients.csv", "summary.csv")
CHECKPOINT = "checkpoint"


def main(jobs: Path) -> None:
    """Play all jobs in this process, so that compiled code is loaded once."""
    listed = json.loads(jobs.read_text())
    for number, job in enumerate(listed, 1):
        start = time.perf_counter()
        play(job["words"], Path(job["folder"]))
        said = f"{number} of {len(listed)}: {' '.join(job['words'])}, {time.perf_counter() - start:.1f} s"
        print(said, file=sys.stderr, flush=True)


def play(words: list[str], folder: Path) -> None:
    """Do one run in a folder of its own and keep what is compared of it."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = folder / "failed.txt"
    failed.unlink(missing_ok=True)
    with TemporaryDirectory() as scratch, every_digit(), no_figures(), largest_checkpoint() as sizes:
        out = Path(scratch) / "run"
        failure = fkl_run([*words, f"out={out}", f"paths.cache={scratch}/cache"])
        if failure:
            failed.write_text(failure)
            return
        for table in TABLES:
            shutil.copy(out / table, folder / table)
    (folder / "notes.json").write_text(json.dumps({"words": words, "checkpoint_bytes": max(sizes, default=0)}))


def fkl_run(words: list[str]) -> str:
    """Call `fkl run` as a shell would; what it said last where it failed, else nothing."""
    said = StringIO()
    with mock.patch.object(sys, "argv", ["fkl", "run", *words]), redirect_stdout(said), redirect_stderr(said):
        try:
            fkl.cli.main()
        except SystemExit as end:
            return [f"exit code {end.code}", *said.getvalue().splitlines()][-1].strip() if end.code else ""
        except Exception:  # a defect of one of the commits is a finding, and the other scenarios are to go on
            return traceback.format_exc().strip()
    return ""


@contextmanager
def every_digit() -> Iterator[None]:
    """Let pandas write tables without rounding."""
    to_csv: Callable[..., Any] = pd.DataFrame.to_csv

    def exact(table: pd.DataFrame, *arguments: Any, **options: Any) -> Any:
        if "float_format" in options:
            options["float_format"] = ALL_DIGITS
        return to_csv(table, *arguments, **options)

    with mock.patch.object(pd.DataFrame, "to_csv", exact):
        yield


def no_figures() -> AbstractContextManager[object]:
    """Spare the time of drawing what nobody looks at: files of figures stay empty."""
    return mock.patch.object(Figure, "savefig", lambda *_, **__: None)


@contextmanager
def largest_checkpoint() -> Iterator[list[int]]:
    """Sizes of the checkpoints that take their place in this block."""
    sizes: list[int] = []
    replace = os.replace

    def weighed(source: Any, target: Any, **options: Any) -> None:
        replace(source, target, **options)
        if Path(target).name.startswith(CHECKPOINT):
            sizes.append(Path(target).stat().st_size)

    with mock.patch.object(os, "replace", weighed):
        yield sizes


if __name__ == "__main__":
    main(Path(sys.argv[1]))
