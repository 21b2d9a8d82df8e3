"""The jobs of a sweep, in this process or in a launcher's workers, their notes, and the closing list.

A launcher may run jobs anywhere, so they share only a folder: `hydra.sweep.dir`.
"""

import json
import math
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fkl.basics.errors import FklError, count_of, library_error, printable_text, require, with_own_line
from fkl.basics.files import report_write_errors, require_files_in, write_text
from fkl.config.loading import Run, load_run
from fkl.engines.base import DivergedError
from fkl.report import draw_figures
from fkl.runs.command import judge_summary, other_warnings, search_objective, write_traceback
from fkl.screen.messages import print_lines, show_warning
from fkl.screen.streams import guard_streams
from fkl.screen.units import number_text, seconds_text

NOTES, PLAN, LIST, COMPOSED = ".fkl-sweep", "plan.json", "jobs.csv", "multirun.yaml"
"""Names in a sweep's folder: the folder of notes while it runs, the plan in it, the closing list, and Hydra's file."""
FIRST_COLUMNS = ["job", "state", "seconds", "overrides", "folder", "message"]
COLUMNS = [*FIRST_COLUMNS, "metric", "mean"]
"""Columns of the closing list. The first columns, which older lists also have, identify a list as fkl's."""
FINISHED, SKIPPED, DIVERGED, FAILED, NOT_RUN = "finished", "finished already", "diverged", "failed", "not run"
DONE, WRONG = (FINISHED, SKIPPED, DIVERGED), (DIVERGED, FAILED)
"""States of jobs that are compared, and states that give a sweep exit code 2."""


@contextmanager
def note_results(folder: Path, plan: dict[str, Any], quiet: bool) -> Iterator[None]:
    """Let jobs write notes to a sweep's folder in this block, and print the results after it.

    Parameters
    ----------
    folder : Path
    plan : dict
        Facts for `run_job`: the number of jobs, the swept keys, and what jobs print.
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
    for line in (*group_reasons(ended, FAILED, plan["swept"]), *group_reasons(ended, DIVERGED, plan["swept"])):
        show_warning(line)
    # Compare the runs if there are at least two
    done = [note for note in ended if note["state"] in DONE]
    metrics = [note["metric"] for note in done if "metric" in note]
    if len({note["folder"] for note in done}) > 1 and metrics:
        from fkl.report.compare import MOST_ROWS, compare

        try:
            compared = compare(folder, max(dict.fromkeys(metrics), key=metrics.count))
            print_lines("")
            place = {Path(note["folder"]).resolve(): at for at, note in reversed([*enumerate(done)])}
            methods = {run.folder: cell.method for cell, runs in compared.cells.runs.items() for run in runs}
            asked = sorted(methods, key=lambda run: place.get(run, len(place)))
            compared.pivot.print_table(MOST_ROWS, order=[*dict.fromkeys(methods[run] for run in asked)])
            print_lines(*compared.conclusions)
        except FklError as error:  # such as a run that has changed since then: the sweep is still complete
            show_warning(f"not compared: {error}")
    if not quiet:
        states = ", ".join(f"{number} {state}" for state, number in counts.most_common())
        print_lines("", f"{count_of(len(ended), 'run')}: {states}")
        print_lines(f"  list  {folder / LIST}")
        if done:
            print_lines(f"  next  fkl compare {shlex.quote(str(folder))}: tests, figures, LaTeX")
    if wrong:
        sys.exit(2)


@contextmanager
def _folder_of_notes(folder: Path) -> Iterator[Path]:
    """Folder of the notes of a running sweep, from which its closing list is made; only the sweep's files are deleted.

    Raises
    ------
    fkl.basics.errors.FklError
        If the folder belongs to another running sweep, or has the user's files that a sweep would overwrite.
    """
    notes, table, composed = folder / NOTES, folder / LIST, folder / COMPOSED
    from fkl.runs.folder import create_folder, release_lock

    with create_folder(folder):
        with report_write_errors(folder):
            ours = not table.exists() or table.read_text(encoding="utf-8", errors="replace").startswith(
                ",".join(FIRST_COLUMNS)
            )
            known = table.exists() or notes.exists() or not composed.exists()
            allowed = f"a folder without a {LIST} or {COMPOSED} that is not a sweep's"
            require(ours and known, "hydra.sweep.dir", folder, allowed)
            new = not composed.exists()
            lock = FileLock(folder / f"{NOTES}.lock", is_singleton=False)
            require_files_in(folder)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                require(False, "hydra.sweep.dir", folder, "a folder in which no other sweep is running")
        try:
            with report_write_errors(folder):
                notes.mkdir(exist_ok=True)  # a killed sweep may have left it, and no other sweep uses it
                _delete_notes(notes)
            yield notes
        finally:
            with report_write_errors(folder):
                if ended := read_notes(notes):
                    import pandas as pd

                    write_text(table, pd.DataFrame(ended, columns=COLUMNS).to_csv(index=False))
                elif new:
                    composed.unlink(missing_ok=True)
                _delete_notes(notes)
                with suppress(OSError):
                    notes.rmdir()
                release_lock(lock)


def _delete_notes(notes: Path) -> None:
    for file in (notes / PLAN, *notes.glob("job-*.json")):
        file.unlink(missing_ok=True)


def read_notes(notes: Path) -> list[dict[str, Any]]:
    """Notes of the finished jobs, in order."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in notes.glob("job-*.json")]
    return sorted(found, key=lambda note: note["job"])


def _metric_and_mean(run: Run) -> dict[str, Any]:
    """Metric of a finished run (a search's objective, or else its main metric), its mean, and whether it diverged."""
    from fkl.data.baselines import BLOWN_UP, blown_up, summary_means
    from fkl.runs.folder import read_summary
    from fkl.runs.metrics import main_metric

    summary = read_summary(run.folder)
    name = run.settings.objective or main_metric(summary)
    judged = {"metric": name, "mean": float(f"{summary_means(summary)[name]:.6g}")}
    if blown_up(summary).any():
        judged |= {"state": DIVERGED, "message": f"{name} is more than {BLOWN_UP:g} times that of its baselines"}
    return judged


@guard_streams()  # in a launcher's worker, they are the worker's own
def run_job(config: DictConfig, lost: FklError | None = None) -> float | None:
    """Do one job of a sweep, as Hydra's task function; print a line about it, and write a note on how it ended.

    Parameters
    ----------
    config : DictConfig
    lost : FklError, optional
        Reason why the process of the job ended; the job then fails with this error.

    Returns
    -------
    float or None
        Value of `search_objective`, for a sweeper that searches; infinity if the run failed.
    """
    from hydra.core.hydra_config import HydraConfig
    from tqdm import tqdm

    tqdm.set_lock(RLock())  # instead of a semaphore, which Python reports at its end if a worker was killed
    hydra = HydraConfig.get()
    sweep, number = Path(hydra.sweep.dir), int(hydra.job.num)
    plain: Any = OmegaConf.to_container(config, resolve=False)
    words = tuple(hydra.overrides.task)
    notes = sweep / NOTES
    plan = json.loads((notes / PLAN).read_text(encoding="utf-8"))
    note = {"job": number, "overrides": " ".join(words), "folder": "", "message": ""}
    start = time.time()
    value: float | None = math.inf
    run = None
    if plan["fail_fast"] and any(one["state"] in WRONG for one in read_notes(notes)):
        note["state"] = NOT_RUN
    else:
        try:
            run = load_run(plain, words)
            from fkl.runs.play import execute_run

            if lost is not None:
                raise lost
            played = execute_run(run, draw_figures, plan["progress"])
            note |= {"state": FINISHED if played else SKIPPED, "folder": str(run.folder)}
            value = search_objective(run)
            note |= _metric_and_mean(run)
        except Exception as error:  # the sweep continues after any error
            state = DIVERGED if isinstance(error, DivergedError) else FAILED
            if run is not None:
                folder = run.failed_folder
            else:  # its configuration could not be read, so its only name is its number
                outputs = sweep
                with suppress(OmegaConfBaseException):  # for an interpolation of a missing key
                    outputs = Path(str(config.paths.outputs))
                folder = outputs / "failed" / f"{sweep.name}-{number}"
            folder = write_traceback(error, folder, plain, run.digest if run is not None else "")
            error = library_error(error) or error
            said = str(error) if isinstance(error, FklError) else with_own_line(error)
            note |= {"state": state, "message": printable_text(said), "folder": str(folder)}
    note["seconds"] = round(time.time() - start, 1)
    write_text(notes / f"job-{number}.json", json.dumps(note))
    if not plan["quiet"]:
        _show_job(plan, note, run, read_notes(notes))
    return value


def _show_job(plan: dict[str, Any], note: dict[str, Any], run: Run | None, ended: list[dict[str, Any]]) -> None:
    """Print a line about a job that has ended."""
    from fkl.runs.folder import read_provenance, read_summary

    name = mark = result = ""
    if run is not None:
        name = f"{run.algo.label} on {run.dataset.name}"
        if "mean" in note:
            summary = read_summary(run.folder)
            mark, result = judge_summary(summary)
            for text in other_warnings(read_provenance(run.folder), summary):
                show_warning(f"{name}: {text}")
    left = time_left(plan["started"], time.time(), ended, plan["jobs"])
    print_lines(job_line(note, plan["jobs"], name, plan["swept"], mark, result, left))


VARIES = re.compile(r"\S*/\S*|-?\d+(\.\d+)?(e[-+]?\d+)?")
"""Parts of a message that are ignored when reasons are compared: paths and numbers."""


def job_line(
    note: dict[str, Any], jobs: int, name: str, swept: Sequence[str], mark: str, worse_than: str, left: str
) -> str:
    """One line about a job that has ended.

    Parameters
    ----------
    note : dict
        Its state, number, overrides, metric and mean.
    jobs : int
        Number of jobs.
    name : str
        Its method and data set.
    swept : sequence of str
        Keys whose values the sweep varies.
    mark, worse_than : str
        The run's verdict: ``"✓"`` or ``"▲"``, and the baselines that it does not beat.
    left : str
        Estimated time of the remaining jobs.
    """
    words = [word for word in note["overrides"].split() if word in _swept_words(note, swept)]
    varied = " ".join(word for word in words if not word.startswith(("algo=", "dataset=")))
    place = f"{note['job'] + 1:{len(str(jobs))}}/{jobs}"
    if "mean" in note:
        result = f"{note['metric']} {number_text(note['mean'])}"
        worse = re.sub("not better than (the|each client's)", "≥", worse_than)
        parts = [mark, place, name, varied, f"{result} {worse}" if mark == "▲" else result]
    else:
        parts = ["✗", place, name or note["overrides"], varied if name else "", f"{note['state']}: {note['message']}"]
    again = "(finished already)" if note["state"] == "finished already" else ""
    return "  ".join(part for part in (*parts, again, left) if part)


def time_left(started: float, now: float, ended: Iterable[dict[str, Any]], jobs: int) -> str:
    """Estimate of the remaining time from jobs that were not finished already; empty if unknown or 0."""
    states = [note["state"] for note in ended]
    played = sum(state != "finished already" for state in states)
    if not played or len(states) == jobs:
        return ""
    return f"{seconds_text(round((now - started) / played * (jobs - len(states))))} left"


def group_reasons(ended: Sequence[dict[str, Any]], state: str, swept: Sequence[str]) -> list[str]:
    """One line for each reason why jobs are in this state: their number, their common values, and the first job.

    Common values are swept values that all of these jobs share; the line also counts all jobs that have them.
    """
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for note in ended:
        if note["state"] == state:
            reason = VARIES.sub("#", note["message"]) if state == "failed" else ""
            by_reason.setdefault(reason, []).append(note)
    lines = []
    for notes in by_reason.values():
        first = notes[0]
        common = set.intersection(*(_swept_words(note, swept) for note in notes))
        having = sum(common <= _swept_words(note, swept) for note in ended)
        shared = f"{' '.join(sorted(common))}, {len(notes)} of {having}: " if common else ""
        more = "" if len(notes) == 1 else ", for example"
        where = "" if first["folder"] in first["message"] else f" (see {first['folder']})"
        lines.append(f"{len(notes)} {state}{more}: {shared}{first['message']}{where}")
    return lines


def _swept_words(note: dict[str, Any], swept: Sequence[str]) -> set[str]:
    return {word for word in note["overrides"].split() if word.lstrip("+").partition("=")[0] in swept}
