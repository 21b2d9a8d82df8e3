"""Notes of a sweep's jobs while it runs, and the closing list.

A launcher may run jobs anywhere, so they share only a folder: `hydra.sweep.dir`.
"""

import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fkl.basics.errors import FklError, plural, require
from fkl.basics.files import require_files_in, write_text, writing
from fkl.screen.messages import say, warning
from fkl.screen.run import grouped

NOTES, PLAN, LIST, COMPOSED = ".fkl-sweep", "plan.json", "jobs.csv", "multirun.yaml"
"""Names in a sweep's folder: notes of its jobs while it runs, including the plan, the closing list, and Hydra's own."""
FIRST_COLUMNS = ["job", "state", "seconds", "overrides", "folder", "message"]
COLUMNS = [*FIRST_COLUMNS, "metric", "mean"]
"""Columns of the closing list. Older lists also have the first ones, which identify a list as fkl's."""
FINISHED, SKIPPED, DIVERGED, FAILED, NOT_RUN = "finished", "finished already", "diverged", "failed", "not run"
DONE, WRONG = (FINISHED, SKIPPED, DIVERGED), (DIVERGED, FAILED)
"""States of jobs that are compared, and states that cause exit code 2 of a sweep."""


@contextmanager
def listed(folder: Path, plan: dict[str, Any], quiet: bool) -> Iterator[None]:
    """Let jobs write notes to a sweep's folder in this block, and print the results after it.

    Parameters
    ----------
    folder : Path
    plan : dict
        For `fkl.sweeps.job.run_job`: the number of jobs, the swept keys, and what they print.
    quiet : bool
        Whether only the closing table is printed.

    Raises
    ------
    SystemExit
        With code 2 if a job failed.
    """
    with _folder_of_notes(folder) as notes:
        write_text(notes / PLAN, json.dumps({**plan, "started": time.time()}))
        yield
        ended = read_notes(notes)
    counts = Counter(note["state"] for note in ended)
    wrong = [note for note in ended if note["state"] in WRONG]
    for line in (*grouped(ended, FAILED, plan["swept"]), *grouped(ended, DIVERGED, plan["swept"])):
        warning(line)
    # A comparison of the runs, if there are two or more
    done = [note for note in ended if note["state"] in DONE]
    metrics = [note["metric"] for note in done if "metric" in note]
    if len({note["folder"] for note in done}) > 1 and metrics:
        from fkl.report.compare import MOST_ROWS, compare

        try:
            compared = compare(folder, max(dict.fromkeys(metrics), key=metrics.count))
            say("")
            place = {Path(note["folder"]).resolve(): at for at, note in reversed([*enumerate(done)])}
            methods = {run.folder: cell.method for cell, runs in compared.cells.runs.items() for run in runs}
            asked = sorted(methods, key=lambda run: place.get(run, len(place)))
            compared.pivot.show(MOST_ROWS, order=[*dict.fromkeys(methods[run] for run in asked)])
            say(*compared.conclusions)
        except FklError as error:  # such as a run that has changed since then: the sweep is still complete
            warning(f"not compared: {error}")
    if not quiet:
        states = ", ".join(f"{number} {state}" for state, number in counts.most_common())
        say("", f"{plural(len(ended), 'run')}: {states}")
        say(f"  list  {folder / LIST}", f"  next  fkl compare {shlex.quote(str(folder))}: tests, figures, LaTeX")
    if wrong:
        sys.exit(2)


@contextmanager
def _folder_of_notes(folder: Path) -> Iterator[Path]:
    """Folder of the notes of a running sweep, which become its closing list; only its own files are deleted.

    Raises
    ------
    fkl.basics.errors.FklError
        If the folder belongs to another running sweep, or has the user's files that a sweep would overwrite.
    """
    notes, table, composed = folder / NOTES, folder / LIST, folder / COMPOSED
    from fkl.runs.folder import created, release

    with created(folder), writing(folder):
        ours = not table.exists() or table.read_text(encoding="utf-8", errors="replace").startswith(
            ",".join(FIRST_COLUMNS)
        )
        known = table.exists() or notes.exists() or not composed.exists()
        allowed = f"a folder without a {LIST} or {COMPOSED} that no sweep has written"
        require(ours and known, "hydra.sweep.dir", folder, allowed)
        new = not composed.exists()
        lock = FileLock(folder / f"{NOTES}.lock", is_singleton=False)
        require_files_in(folder)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            require(False, "hydra.sweep.dir", folder, "a folder in which no other sweep is under way")
        try:
            notes.mkdir(exist_ok=True)  # a killed sweep has left its notes, and no other sweep uses the folder
            _delete_notes(notes)
            yield notes
        finally:
            if ended := read_notes(notes):
                import pandas as pd

                write_text(table, pd.DataFrame(ended, columns=COLUMNS).to_csv(index=False))
            elif new:
                composed.unlink(missing_ok=True)
            _delete_notes(notes)
            with suppress(OSError):
                notes.rmdir()
            release(lock)


def _delete_notes(notes: Path) -> None:
    for file in (notes / PLAN, *notes.glob("job-*.json")):
        file.unlink(missing_ok=True)


def read_notes(notes: Path) -> list[dict[str, Any]]:
    """Notes of the finished jobs, in order."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in notes.glob("job-*.json")]
    return sorted(found, key=lambda note: note["job"])
