"""Many runs: what a job of a sweep does, what is told while it goes on, and the list that closes it.

Jobs run wherever Hydra's launcher puts them, so all they share is a folder: `hydra.sweep.dir`. Hydra imports this
module for every run, so what plays, draws and writes is imported where a configuration has been checked.
"""

import json
import math
import shlex
import sys
import sysconfig
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from fkl.config import Run, load
from fkl.engines.divergence import DivergedError
from fkl.errors import FklError, printable, refuse, require
from fkl.files import CannotWriteError, require_files_in, write_text, writing

NOTES, PLAN, LIST, COMPOSED = ".fkl-sweep", "plan.json", "jobs.csv", "multirun.yaml"
"""In a sweep's folder: what its jobs tell while it is under way, the plan too, the closing list, and Hydra's own."""
FIRST_COLUMNS = ["job", "state", "seconds", "overrides", "folder", "message"]
COLUMNS = [*FIRST_COLUMNS, "metric", "mean"]
"""Of the closing list; the first, which older lists have too, tell that it is fkl's."""
FINISHED, SKIPPED, DIVERGED, FAILED, NOT_RUN = "finished", "finished already", "diverged", "failed", "not run"
DONE, WRONG = (FINISHED, SKIPPED, DIVERGED), (DIVERGED, FAILED)
"""States of jobs that are compared, and of those for which a sweep ends with exit code 2."""


def job(config: DictConfig) -> float | None:
    """One run: Hydra's task function, in this process or in a launcher's worker.

    Returns
    -------
    float or None
        What `objective` names, for a sweeper that searches; infinity where the run failed.

    Raises
    ------
    SystemExit
        With code 2 for whatever the user can mend, once it is said; a job of a sweep notes it instead, and the sweep
        goes on.
    """
    hydra = HydraConfig.get()
    words: Any = OmegaConf.to_container(hydra.overrides.task, resolve=False)  # as the user wrote them
    if hydra.mode != RunMode.MULTIRUN:
        try:
            return _alone(config, words)
        except FklError as error:
            sys.exit(refuse(error))  # raised as it is, Hydra would put a line of its own before ours
        except _OwnError as error:
            print(error, end="", file=sys.stderr)
            sys.exit(1)
    return _noted(config, Path(hydra.sweep.dir), int(hydra.job.num), words)


def _alone(config: DictConfig, words: list[str]) -> float | None:
    """Do a run that is no job of a sweep."""
    run = load(config, words)
    try:
        _execute(run)
    except Exception as error:
        if not isinstance(error, FklError):
            folder = _leave(error, run, config)
            if frames := _own_frames(error):
                said = traceback.format_list(frames) + traceback.format_exception_only(error)
                raise _OwnError("".join([*said, f"the whole traceback: {folder / 'error.txt'}\n"])) from None
        raise
    return _objective(run)


class _OwnError(Exception):
    """What went wrong in code of the user's own, as it is told."""


def _own_frames(error: Exception) -> list[traceback.FrameSummary]:
    """Lines of a traceback that are of the user's own modules: not fkl's, Python's or an installed library's."""
    installed = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib", "scripts"))
    others = [Path(__file__).parent, *map(Path, installed)]

    def is_own(frame: traceback.FrameSummary) -> bool:
        file = Path(frame.filename)
        return file.is_file() and not any(file.resolve().is_relative_to(folder.resolve()) for folder in others)

    return [frame for frame in traceback.extract_tb(error.__traceback__) if is_own(frame)]


def _execute(run: Run) -> bool:
    """Do the run, unless a search would choose by samples that are set apart to be tested on."""
    if run.settings.objective is not None and hasattr(run.algo, "fold"):
        allowed = "a fold of the training samples, since a search must not see the samples tested on"
        require(run.algo.fold is not None, "algo.fold", None, allowed)
    from fkl.runs.execute import execute

    return execute(run)


def _objective(run: Run) -> float | None:
    """Mean over replicates of the column of the finished run's summary that a search makes small."""
    name = run.settings.objective
    if name is None:
        return None
    from fkl.results.folder import read_summary

    summary = read_summary(run.folder)
    require(name in summary, "objective", name, f"one of {', '.join(summary.columns[1:])}")
    return float(summary[name].mean())


def _judged(run: Run) -> dict[str, Any]:
    """The metric of a finished run, that of a search or else its main one, and its mean; and whether it diverged."""
    from fkl.data.baselines import BLOWN_UP, blown_up
    from fkl.results.folder import read_summary
    from fkl.results.metrics import main_metric

    summary = read_summary(run.folder)
    name = run.settings.objective or main_metric(summary)
    judged = {"metric": name, "mean": float(f"{summary[name].mean():.6g}")}
    if blown_up(summary).any():
        judged |= {"state": DIVERGED, "message": f"{name} is more than {BLOWN_UP:g} times that of its baselines"}
    return judged


def _noted(config: DictConfig, sweep: Path, number: int, overrides: list[str]) -> float | None:
    """Do one job of a sweep and write a note of how it ended."""
    notes = sweep / NOTES
    plan = json.loads((notes / PLAN).read_text())
    note = {"job": number, "overrides": " ".join(overrides), "folder": "", "message": ""}
    start = time.time()
    value: float | None = math.inf
    if plan["fail_fast"] and any(one["state"] in WRONG for one in _read(notes)):
        note["state"] = NOT_RUN
    else:
        print(f"[{number + 1}/{plan['jobs']}] {note['overrides']}{_time_left(plan, _read(notes))}", flush=True)
        run = None
        try:
            run = load(config, overrides)
            note |= {"state": FINISHED if _execute(run) else SKIPPED, "folder": str(run.folder)}
            value = _objective(run)
            note |= _judged(run)
        except Exception as error:  # the sweep goes on past whatever it is
            state = DIVERGED if isinstance(error, DivergedError) else FAILED
            note |= {"state": state, "message": _in_one_line(error), "folder": str(_leave(error, run, config))}
            print(f"fkl: {note['message']}", file=sys.stderr)
    note["seconds"] = round(time.time() - start, 1)
    write_text(notes / f"job-{number}.json", json.dumps(note))
    return value


def _in_one_line(error: Exception) -> str:
    return printable(str(error) if isinstance(error, FklError) else f"{type(error).__name__}: {error}".splitlines()[0])


def _leave(error: Exception, run: Run | None, config: DictConfig) -> Path:
    """Write a failed job's traceback into its own folder, and tell where that is."""
    from fkl.results.folder import write_failed

    if isinstance(error, DivergedError) and error.folder is not None:
        return error.folder  # which has its rows
    if run is None:  # its configuration could not be read, so it has no name but its place in the sweep
        hydra = HydraConfig.get()
        folder = Path(str(config.paths.outputs)) / "failed" / f"{Path(hydra.sweep.dir).name}-{hydra.job.num}"
    else:
        folder = run.failed_folder
    plain: Any = OmegaConf.to_container(config)
    try:
        return write_failed(
            folder, plain, "".join(traceback.format_exception(error)), run.digest if run is not None else ""
        )
    except CannotWriteError as full:
        print(f"fkl: {full}", file=sys.stderr)
        return folder


def _read(notes: Path) -> list[dict[str, Any]]:
    """What the jobs that ended told, in their order."""
    found = [json.loads(file.read_text()) for file in notes.glob("job-*.json")]
    return sorted(found, key=lambda note: note["job"])


def _time_left(plan: dict[str, Any], notes: list[dict[str, Any]]) -> str:
    """A guess from the jobs that had something to do."""
    done = sum(note["state"] != SKIPPED for note in notes)
    if not done:
        return ""
    seconds = (time.time() - plan["started"]) / done * (plan["jobs"] - len(notes))
    return f" (about {seconds / 60:.0f} min left)" if seconds >= 60 else f" (about {seconds:.0f} s left)"


class Progress(Callback):
    """Hydra's callback around a sweep.

    Parameters
    ----------
    fail_fast : bool
        Whether jobs that have not begun are left out once one has failed.
    """

    def __init__(self, fail_fast: bool = False) -> None:
        self.fail_fast = fail_fast

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Write the plan that the jobs read."""
        jobs = count(config)
        try:
            notes = UNDER_WAY.enter_context(_notes(Path(str(config.hydra.sweep.dir))))
            plan = {"jobs": jobs, "started": time.time(), "fail_fast": self.fail_fast}
            write_text(notes / PLAN, json.dumps(plan))
        except FklError as error:  # Hydra would make a warning of it, and go on
            sys.exit(refuse(error))

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Print the closing list; a sweep with a failed job ends with exit code 2."""
        folder = Path(str(config.hydra.sweep.dir))
        ended = _read(folder / NOTES)
        UNDER_WAY.close()
        counts = Counter(note["state"] for note in ended)
        print(f"{len(ended)} runs: " + ", ".join(f"{number} {state}" for state, number in counts.most_common()))
        print(f"files: {folder / LIST}")
        failed = [note for note in ended if note["state"] == FAILED]
        for note in failed:
            print(f"fkl: failed: {note['overrides']}: {note['message']} (see {note['folder']})", file=sys.stderr)
        if diverged := [note for note in ended if note["state"] == DIVERGED]:
            first, more = diverged[0], f" and {len(diverged) - 1} more, all" * (len(diverged) > 1)
            told = f"{first['overrides']}: {first['message']}{more} in {folder / LIST}"
            print(f"fkl: diverged: {told}", file=sys.stderr)
        _compare(folder, ended)
        if failed or diverged:
            sys.exit(2)


def _compare(folder: Path, ended: list[dict[str, Any]]) -> None:
    """Print the runs of a sweep beside each other, where there are two or more."""
    done = [note for note in ended if note["state"] in DONE]
    metrics = [note["metric"] for note in done if "metric" in note]
    if len({note["folder"] for note in done}) < 2 or not metrics:
        return
    from fkl.comparison import MOST_ROWS, compare

    try:
        made = compare(folder, max(dict.fromkeys(metrics), key=metrics.count))
        text = made.pivot.text(sys.stdout.isatty(), MOST_ROWS)
    except FklError as error:  # such as a run that has changed since: the sweep is done all the same
        print(f"fkl: not compared: {error}", file=sys.stderr)
        return
    print("", text, *made.conclusions, f"fkl compare {shlex.quote(str(folder))}: tests, figures, LaTeX", sep="\n")


UNDER_WAY = ExitStack()
"""What the sweep of this process does at its end, however it ends: write the list of its jobs, and tidy up."""


@contextmanager
def _notes(folder: Path) -> Iterator[Path]:
    """Folder of the notes of a sweep under way, which become its closing list; only files of its own are deleted.

    Raises
    ------
    fkl.errors.FklError
        When the folder is another sweep's that is under way, or has files of the user's that a sweep would overwrite.
    """
    notes, table, composed = folder / NOTES, folder / LIST, folder / COMPOSED
    from fkl.results.folder import let_go, made

    with made(folder), writing(folder):
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
            _forget(notes)
            yield notes
        finally:
            if ended := _read(notes):
                import pandas as pd

                write_text(table, pd.DataFrame(ended, columns=COLUMNS).to_csv(index=False))
            elif new:
                composed.unlink(missing_ok=True)
            _forget(notes)
            with suppress(OSError):
                notes.rmdir()
            let_go(lock)


def _forget(notes: Path) -> None:
    for file in (notes / PLAN, *notes.glob("job-*.json")):
        file.unlink(missing_ok=True)


def abandon() -> None:
    """Leave nothing of a sweep that ended before its first job did."""
    UNDER_WAY.close()


def count(config: DictConfig) -> int:
    """Jobs that a sweep will have; Hydra must be initialized.

    Raises
    ------
    fkl.errors.FklError
        If there would be none, or more than anyone waits for, or the sweeper cannot vary what it is told to.
    """
    from fkl.composing.jobs import jobs

    return jobs(config, GlobalHydra.instance().config_loader())
