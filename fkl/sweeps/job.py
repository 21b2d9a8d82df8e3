"""One run of `fkl run`: alone, or as a job of a sweep, in this process or in a launcher's worker.

Code for playing, drawing and writing is imported after a configuration has been checked.
"""

import json
import math
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fkl.basics.errors import FklError, library_error, own_lines, printable, require, with_own_line
from fkl.basics.files import CannotWriteError, write_text
from fkl.config import Run, load
from fkl.engines.divergence import DivergedError
from fkl.screen.streams import streams
from fkl.sweeps.closing_list import DIVERGED, FAILED, FINISHED, NOT_RUN, NOTES, PLAN, SKIPPED, WRONG, read_notes


def run_single(config: dict[str, Any], words: tuple[str, ...], verbose: bool = False, quiet: bool = False) -> None:
    """Do a run that is not a job of a sweep, and show the result.

    Parameters
    ----------
    config : dict
    words : tuple of str
        Words of the command line.
    verbose : bool
        Whether to show all columns of the summary.
    quiet : bool
        Whether to show only warnings.

    Raises
    ------
    fkl.basics.errors.FklError
    SystemExit
        With code 1 for an error in the user's own code, after showing its lines; `verbose` also shows those behind an
        FklError.
    """
    run, start = None, time.monotonic()
    try:
        run = load(config, words)
        played = _execute(run, progress=not quiet)
    except FklError as error:
        if verbose and error.__cause__ is not None:
            _show_own_lines(error.__cause__)
        raise
    except Exception as error:
        if (of_library := library_error(error)) is not None:
            raise of_library from None
        shown = _show_own_lines(error)
        if run is not None:
            folder = write_traceback(error, run.failed_folder, config, run.digest)
            if shown:
                print(f"the whole traceback: {folder / 'error.txt'}", file=sys.stderr)
        if shown:
            sys.exit(1)
        raise
    _objective(run)
    _show(run, time.monotonic() - start if played else None, verbose, quiet)


def _show_own_lines(error: BaseException) -> bool:
    """Print the lines of the user's own code that an error comes from, if there are any."""
    lines = own_lines(error)
    if lines:
        print(*traceback.format_list(lines), *traceback.format_exception_only(error), sep="", end="", file=sys.stderr)
    return bool(lines)


def _show(run: Run, waited: float | None, verbose: bool, quiet: bool) -> None:
    """Print the result of a finished run; `waited` seconds, None if it was already finished."""
    from fkl.runs.folder import provenance, read_summary
    from fkl.runs.tables import TIMING_COLUMNS
    from fkl.screen.messages import say, warning
    from fkl.screen.run import all_columns, blocks, other_warnings

    told, summary = provenance(run.folder), read_summary(run.folder)
    for text in other_warnings(told, summary):
        warning(text)
    if not quiet:
        lines = blocks(run.folder, told, run.resolved, summary, waited)
        say(*lines, *(["", all_columns(summary, TIMING_COLUMNS)] if verbose else []))


def _execute(run: Run, progress: bool = True) -> bool:
    """Do the run, unless a search would use test samples for its choice."""
    if run.settings.objective is not None and hasattr(run.algo, "fold"):
        allowed = "a fold of the training samples, since a search must not see the samples tested on"
        require(run.algo.fold is not None, "algo.fold", None, allowed)
    from fkl.runs.play import execute

    return execute(run, progress)


def _objective(run: Run) -> float | None:
    """Mean over replicates of the column of the finished run's summary that a search minimises."""
    name = run.settings.objective
    if name is None:
        return None
    from fkl.runs.folder import read_summary

    summary = read_summary(run.folder)
    require(name in summary, "objective", name, f"one of {', '.join(summary.columns[1:])}")
    return float(summary[name].mean())


def _metric_and_mean(run: Run) -> dict[str, Any]:
    """The metric of a finished run (that of a search, or else its main one), its mean, and whether it diverged."""
    from fkl.data.baselines import BLOWN_UP, blown_up
    from fkl.runs.folder import read_summary
    from fkl.runs.metrics import main_metric

    summary = read_summary(run.folder)
    name = run.settings.objective or main_metric(summary)
    judged = {"metric": name, "mean": float(f"{summary[name].mean():.6g}")}
    if blown_up(summary).any():
        judged |= {"state": DIVERGED, "message": f"{name} is more than {BLOWN_UP:g} times that of its baselines"}
    return judged


@streams()  # in a launcher's worker, they are the worker's own
def run_job(config: DictConfig, lost: FklError | None = None) -> float | None:
    """Do one job of a sweep, Hydra's task function, print a line about it, and write a note of how it ended.

    Parameters
    ----------
    config : DictConfig
    lost : FklError, optional
        Why the process that did the job ended; the job then fails with it.

    Returns
    -------
    float or None
        Value of `objective`, for a sweeper that searches; infinity if the run failed.
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
            run = load(plain, words)
            if lost is not None:
                raise lost
            note |= {"state": FINISHED if _execute(run, plan["progress"]) else SKIPPED, "folder": str(run.folder)}
            value = _objective(run)
            note |= _metric_and_mean(run)
        except Exception as error:  # the sweep continues after any error
            state = DIVERGED if isinstance(error, DivergedError) else FAILED
            if run is not None:
                folder = run.failed_folder
            else:  # its configuration could not be read, and its only name is its number
                outputs = sweep
                with suppress(OmegaConfBaseException):  # for an interpolation of a missing key
                    outputs = Path(str(config.paths.outputs))
                folder = outputs / "failed" / f"{sweep.name}-{number}"
            folder = write_traceback(error, folder, plain, run.digest if run is not None else "")
            error = library_error(error) or error
            said = str(error) if isinstance(error, FklError) else with_own_line(error)
            note |= {"state": state, "message": printable(said), "folder": str(folder)}
    note["seconds"] = round(time.time() - start, 1)
    write_text(notes / f"job-{number}.json", json.dumps(note))
    if not plan["quiet"]:
        _show_job(plan, note, run, read_notes(notes))
    return value


def _show_job(plan: dict[str, Any], note: dict[str, Any], run: Run | None, ended: list[dict[str, Any]]) -> None:
    """Print a line about a job that has ended."""
    from fkl.runs.folder import provenance, read_summary
    from fkl.screen.messages import say, warning
    from fkl.screen.run import job_line, other_warnings, time_left, verdict

    name = mark = told = ""
    if run is not None:
        name = f"{run.algo.label} on {run.dataset.name}"
        if "mean" in note:
            summary = read_summary(run.folder)
            mark, told = verdict(summary)
            for text in other_warnings(provenance(run.folder), summary):
                warning(f"{name}: {text}")
    left = time_left(plan["started"], time.time(), ended, plan["jobs"])
    say(job_line(note, plan["jobs"], name, plan["swept"], mark, told, left))


def write_traceback(error: Exception, folder: Path, config: dict[str, Any], digest: str) -> Path:
    """Write a failed run's traceback to its own folder, and return its path."""
    from fkl.runs.folder import write_failed

    if isinstance(error, DivergedError) and error.folder is not None:
        return error.folder  # this folder has its rows
    try:
        return write_failed(folder, config, "".join(traceback.format_exception(error)), digest)
    except CannotWriteError as full:
        from fkl.screen.messages import warning

        warning(str(full))
        return folder
