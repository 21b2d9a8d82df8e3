"""Many runs: what a job of a sweep does, what is told while it goes on, and the list that closes it.

Jobs run wherever Hydra's launcher puts them, so all they share is a folder: `hydra.sweep.dir`.
"""

import json
import math
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pandas as pd
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from fkl.config import Run, load
from fkl.errors import FklError, refuse, require
from fkl.results.folder import read_summary, replacing_file, write_failed
from fkl.run import execute
from fkl.simulation import DivergedError

PLAN = "plan.json"
COLUMNS = ["job", "state", "seconds", "overrides", "folder", "message"]
FINISHED, SKIPPED, FAILED, NOT_RUN = "finished", "finished already", "failed", "not run"


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
    if hydra.mode != RunMode.MULTIRUN:
        try:
            return _alone(config)
        except FklError as error:
            sys.exit(refuse(error))  # raised as it is, Hydra would put a line of its own before ours
    return _noted(config, Path(hydra.sweep.dir), int(hydra.job.num), list(hydra.overrides.task))


def _alone(config: DictConfig) -> float | None:
    """Do a run that is no job of a sweep."""
    run = load(config)
    try:
        _execute(run)
    except Exception as error:
        if not isinstance(error, FklError):
            _leave(error, run, config)
        raise
    return _objective(run)


def _execute(run: Run) -> bool:
    """Do the run, unless a search would choose by samples that are set apart to be tested on."""
    if run.settings.objective is not None and hasattr(run.algo, "fold"):
        allowed = "a fold of the training samples, since a search must not see the samples tested on"
        require(run.algo.fold is not None, "algo.fold", None, allowed)
    return execute(run)


def _objective(run: Run) -> float | None:
    """Mean over replicates of the column of the finished run's summary that a search makes small."""
    name = run.settings.objective
    if name is None:
        return None
    summary = read_summary(run.folder)
    require(name in summary, "objective", name, f"one of {', '.join(summary.columns[1:])}")
    return float(summary[name].mean())


def _noted(config: DictConfig, sweep: Path, number: int, overrides: list[str]) -> float | None:
    """Do one job of a sweep and write a note of how it ended."""
    plan = json.loads((sweep / PLAN).read_text())
    note = {"job": number, "overrides": " ".join(overrides), "folder": "", "message": ""}
    start = time.time()
    value: float | None = math.inf
    if plan["fail_fast"] and any(one["state"] == FAILED for one in _notes(sweep)):
        note["state"] = NOT_RUN
    else:
        print(f"[{number + 1}/{plan['jobs']}] {note['overrides']}{_time_left(plan, _notes(sweep))}", flush=True)
        run = None
        try:
            run = load(config)
            note |= {"state": FINISHED if _execute(run) else SKIPPED, "folder": str(run.folder)}
            value = _objective(run)
        except Exception as error:  # the sweep goes on past whatever it is
            note |= {"state": FAILED, "message": _in_one_line(error), "folder": str(_leave(error, run, config))}
            print(f"fkl: {note['message']}", file=sys.stderr)
    note["seconds"] = round(time.time() - start, 1)
    replacing_file(sweep / f"job-{number}.json", json.dumps(note))
    return value


def _in_one_line(error: Exception) -> str:
    return str(error) if isinstance(error, FklError) else f"{type(error).__name__}: {error}".splitlines()[0]


def _leave(error: Exception, run: Run | None, config: DictConfig) -> Path:
    """Write a failed job's traceback into its own folder, and tell where that is."""
    if run is None:  # its configuration could not be read, so it has no name but its place in the sweep
        hydra = HydraConfig.get()
        folder = Path(str(config.paths.outputs)) / "failed" / f"{Path(hydra.sweep.dir).name}-{hydra.job.num}"
    else:
        folder = run.failed_folder
    if not isinstance(error, DivergedError):  # which has left its rows there
        plain: Any = OmegaConf.to_container(config)
        write_failed(folder, plain, "".join(traceback.format_exception(error)))
    return folder


def _notes(sweep: Path) -> list[dict[str, Any]]:
    """What the jobs that ended told, in their order."""
    notes = [json.loads(file.read_text()) for file in sweep.glob("job-*.json")]
    return sorted(notes, key=lambda note: note["job"])


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

    under_way: Path | None = None
    """Folder of the sweep of this process."""

    def __init__(self, fail_fast: bool = False) -> None:
        self.fail_fast = fail_fast

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Write the plan that the jobs read."""
        folder = Path(str(config.hydra.sweep.dir))
        folder.mkdir(parents=True, exist_ok=True)
        Progress.under_way = folder
        plan = {"jobs": count(config), "started": time.time(), "fail_fast": self.fail_fast}
        (folder / PLAN).write_text(json.dumps(plan))

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Write and print the closing list; a sweep with a failed job ends with exit code 2."""
        folder = Path(str(config.hydra.sweep.dir))
        notes = _notes(folder)
        table = pd.DataFrame(notes, columns=COLUMNS)
        replacing_file(folder / "jobs.csv", table.to_csv(index=False))
        for file in (folder / PLAN, *folder.glob("job-*.json")):
            file.unlink()
        counts = table["state"].value_counts()
        print(f"{len(table)} runs: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
        print(f"files: {folder}/jobs.csv")
        failed = table[table["state"] == FAILED]
        for one in failed.itertuples():
            print(f"fkl: failed: {one.overrides}: {one.message} (see {one.folder})", file=sys.stderr)
        if len(failed):
            sys.exit(2)


def abandon() -> None:
    """Take away the folder of a sweep that ended before its first job did."""
    folder = Progress.under_way
    if folder is not None and not _notes(folder):
        shutil.rmtree(folder, ignore_errors=True)


def count(config: DictConfig) -> int:
    """Jobs that a sweep will have; Hydra must be initialized.

    Raises
    ------
    fkl.errors.FklError
        If there would be none, or more than anyone waits for, or the sweeper cannot vary what it is told to.
    """
    from fkl.composing.jobs import jobs

    return jobs(config, GlobalHydra.instance().config_loader())
