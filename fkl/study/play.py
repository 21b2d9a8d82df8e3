"""Do the jobs of a study in stages, with one of Hydra's launchers, each job once."""

import csv
import io
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from copy import deepcopy
from functools import lru_cache
from pathlib import Path

from filelock import FileLock, Timeout
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf, open_dict
from tqdm import tqdm

from fkl.basics.errors import FklError
from fkl.basics.files import report_write_errors, write_text
from fkl.config.choices import read_text
from fkl.config.compose import quote_word
from fkl.screen.messages import print_lines
from fkl.screen.units import seconds_text
from fkl.study.jobs import StudyJob, judged_jobs
from fkl.study.plan import Plan
from fkl.study.registered import note_judgement
from fkl.study.results import study_stages
from fkl.sweeps.hydra import OF_HYDRA, JobLoader, NoCallbacks, composed_node
from fkl.sweeps.launchers import Launcher

JOBS = "jobs.csv"
COLUMNS = ("dataset", "method", "seed", "state", "metric", "error", "values", "reason", "seconds", "folder")
POLL_S, LINE_S = 0.5, 60.0
"""Seconds between two checks for finished jobs, and between two lines of progress in a log."""


class StudyLoader(JobLoader):
    """Gives jobs to a launcher's workers."""

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """The job's words as a configuration, together with Hydra's node."""
        config = OmegaConf.from_dotlist(sweep_overrides)
        config["hydra"] = deepcopy(master_config["hydra"])
        OmegaConf.set_readonly(config.hydra, False)
        config.hydra.overrides.task = list(sweep_overrides)
        return config


def do_job(config: DictConfig, lost: FklError | None = None) -> None:
    """Do one job, in this process or in a launcher's worker; if that was lost, raise an error that names the job."""
    # Workers may start in another folder
    os.chdir(str(config.cwd))
    file = Path(str(config.study))
    plan = _plan_of_job(file, read_text(file), bool(config.pilot))
    # The job by its numbers, which a launcher can pass
    dataset, method = plan.datasets[int(config.dataset)], plan.all_methods[int(config.method)]
    wave = None if config.wave is None else int(config.wave)
    job = StudyJob(plan, dataset, method, int(config.seed), wave)
    # The process of the job was lost: say which job it was
    if lost is not None:
        raise FklError(f"{dataset.name}, {method.name}, seed {job.seed}: {lost}; the same command continues") from lost
    # Another process may have done it already
    if job.note is None:
        job.do_job()
        if wave is None:
            note_judgement(plan, job)
    write_jobs(plan)


@lru_cache(maxsize=1)
def _plan_of_job(file: Path, _text: str, pilot: bool) -> Plan:
    """The plan of a job; the next job of this process gets the same object, so data need not be read again."""
    plan = Plan.read(file)
    return plan.as_pilot() if pilot else plan


def run_study(plan: Plan, hydra_words: Sequence[str] = ()) -> None:
    """Do all jobs of a study that have not ended.

    Parameters
    ----------
    plan : Plan
    hydra_words : sequence of str
        Words that choose the launcher, as for ``fkl run -m``: ``hydra/launcher=joblib``.

    Raises
    ------
    fkl.basics.errors.FklError
        If another process runs the study, or a word is not about a launcher.
    """
    # Words of runs belong into the plan; here only the launcher is chosen
    for word in hydra_words:
        if not OF_HYDRA.match(word):
            allowed = "words here are about a launcher, such as hydra/launcher=joblib"
            raise FklError(f"{word}: set keys of runs in {plan.file}; {allowed}")
    os.environ["PYTHONSAFEPATH"] = "1"  # otherwise workers would find their modules in the current folder first
    launcher = _chosen_launcher(plan, hydra_words)
    # Stage by stage, since judged runs need what the searches found
    with _lock_study(plan):
        for dataset in plan.datasets:
            for about, jobs in study_stages(plan, dataset):
                left = [job for job in jobs if job.note is None]
                if left:
                    done = len(jobs) - len(left)
                    print_lines(f"{dataset.name}: {len(jobs)} {about}" + (f", {done} done already" if done else ""))
                    with _show_progress(left, f"{dataset.name}: {about}"):
                        # A failed job raises its error here, and the study ends; finished jobs have notes
                        for ended in launcher.launch([_as_overrides(job) for job in left], initial_job_idx=0):
                            with redirect_stderr(io.StringIO()):  # Hydra prints a line before it raises the error
                                _ = ended.return_value
            write_jobs(plan)


def _as_overrides(job: StudyJob) -> list[str]:
    plan = job.plan
    numbers = {
        "dataset": plan.datasets.index(job.dataset),
        "method": plan.all_methods.index(job.method),
        "seed": job.seed,
        "wave": "null" if job.wave is None else job.wave,
    }
    paths = {"study": quote_word(f"={plan.file}")[1:], "cwd": quote_word(f"={Path.cwd()}")[1:]}
    return [f"{key}={value}" for key, value in {**numbers, "pilot": plan.pilot, **paths}.items()]


def _chosen_launcher(plan: Plan, words: Sequence[str]) -> Launcher:
    """The launcher chosen by these words."""
    config = composed_node(words)
    with open_dict(config):
        config.hydra.sweep.dir = str(plan.folder)
        config.hydra.job.num = 0
        config.hydra.job.id = "???"
    HydraConfig.instance().set_config(config)
    context = HydraContext(config_loader=StudyLoader(()), callbacks=NoCallbacks())  # type: ignore[arg-type]
    made = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=do_job, config=config)
    return Launcher(made)


@contextmanager
def _lock_study(plan: Plan) -> Iterator[None]:
    """Be the only process that runs the study."""
    # The lock ends with the process, however it ends
    with report_write_errors(plan.folder):
        plan.folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(plan.folder / ".lock", is_singleton=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise FklError(
            f"{plan.folder}: another process runs this study", help=[f"its progress: fkl study {plan.file} --status"]
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _show_progress(jobs: Sequence[StudyJob], about: str) -> Iterator[None]:
    """Show the number of finished jobs, wherever they run, as a bar, or in a log as a line every minute."""
    ended, begin = threading.Event(), time.monotonic()
    # Files of notes show progress, whichever process writes them
    with tqdm(total=len(jobs), unit="job", leave=False, disable=None) as bar:

        def look() -> None:
            last_line = begin
            while not ended.wait(POLL_S):
                done, now = sum(job.file.exists() for job in jobs), time.monotonic()
                bar.update(done - bar.n)
                if bar.disable and now - last_line >= LINE_S:
                    rest = f", {seconds_text((now - begin) * (len(jobs) - done) / done)} left" if done else ""
                    print_lines(f"{about}: {done} of {len(jobs)} done after {seconds_text(now - begin)}{rest}")
                    last_line = now

        # Look from a thread, since the launcher blocks
        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def write_jobs(plan: Plan) -> None:
    """Write the table of the finished judged runs."""
    # One row per finished judged run
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for dataset in plan.datasets:
        for job in judged_jobs(plan, dataset):
            if note := job.note:
                values = "; ".join(f"{key}={value}" for key, value in (note["values"] or {}).items())
                cells = {**note, "values": values}
                if "folder" in note:
                    cells["folder"] = plan.folder / "runs" / note["folder"]
                writer.writerow([cells.get(name, "") for name in COLUMNS])
    write_text(plan.folder / JOBS, stream.getvalue())
