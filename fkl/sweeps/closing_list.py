"""What a sweep's jobs tell while it is under way, and the list that closes it.

Jobs run wherever a launcher puts them, so all they share is a folder: `hydra.sweep.dir`.
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

from fkl.basics.errors import FklError, require
from fkl.basics.files import require_files_in, write_text, writing
from fkl.screen.messages import say, warning
from fkl.screen.sweep import grouped

NOTES, PLAN, LIST, COMPOSED = ".fkl-sweep", "plan.json", "jobs.csv", "multirun.yaml"
"""In a sweep's folder: what its jobs tell while it is under way, the plan too, the closing list, and Hydra's own."""
FIRST_COLUMNS = ["job", "state", "seconds", "overrides", "folder", "message"]
COLUMNS = [*FIRST_COLUMNS, "metric", "mean"]
"""Columns of the closing list. Older lists have the first ones too, and these tell that a list is fkl's."""
FINISHED, SKIPPED, DIVERGED, FAILED, NOT_RUN = "finished", "finished already", "diverged", "failed", "not run"
DONE, WRONG = (FINISHED, SKIPPED, DIVERGED), (DIVERGED, FAILED)
"""States of jobs that are compared, and states with which a sweep ends with exit code 2."""


@contextmanager
def listed(folder: Path, plan: dict[str, Any], quiet: bool) -> Iterator[None]:
    """Let jobs leave notes in a sweep's folder in this block, and print what came out behind it.

    Parameters
    ----------
    folder : Path
    plan : dict
        For `fkl.sweeps.job.run_job`: how many jobs there are, the keys swept, and what they print.
    quiet : bool
        Whether only the closing table is printed.

    Raises
    ------
    SystemExit
        With code 2 when a job failed.
    """
    with _folder_of_notes(folder) as notes:
        write_text(notes / PLAN, json.dumps({**plan, "started": time.time()}))
        yield
        ended = read_notes(notes)
    counts = Counter(note["state"] for note in ended)
    wrong = [note for note in ended if note["state"] in WRONG]
    for line in (*grouped(ended, FAILED, plan["swept"]), *grouped(ended, DIVERGED, plan["swept"])):
        warning(line)
    # The runs beside each other, where there are two or more
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
        except FklError as error:  # such as a run that has changed since: the sweep is done all the same
            warning(f"not compared: {error}")
    if not quiet:
        say("", f"{len(ended)} runs: " + ", ".join(f"{number} {state}" for state, number in counts.most_common()))
        say(f"  list  {folder / LIST}", f"  next  fkl compare {shlex.quote(str(folder))}: tests, figures, LaTeX")
    if wrong:
        sys.exit(2)


@contextmanager
def _folder_of_notes(folder: Path) -> Iterator[Path]:
    """Folder of the notes of a sweep under way, which become its closing list; only files of its own are deleted.

    Raises
    ------
    fkl.basics.errors.FklError
        When the folder is another sweep's that is under way, or has files of the user's that a sweep would overwrite.
    """
    notes, table, composed = folder / NOTES, folder / LIST, folder / COMPOSED
    from fkl.results.folder import created, release

    with created(folder), writing(folder):
        ours = not table.exists() or table.read_text(errors="replace").startswith(",".join(FIRST_COLUMNS))
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
            notes.mkdir(exist_ok=True)  # one that was killed has left its notes: nobody else is here
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
    """What the jobs that ended told, in their order."""
    found = [json.loads(file.read_text()) for file in notes.glob("job-*.json")]
    return sorted(found, key=lambda note: note["job"])
