"""Finished runs of a paper, whose configurations are those of jobs in its experiments.

An experiment in the paper's experiments.yaml has a `cell`, which gives the position of its runs in the paper's tables
and figures:

variant
    Reading of the paper: `as stated`, a name under `paper_variants`, or empty for runs that are shown but not evidence.
setting
    Setting of the table's row, as in published.csv.
``told``, ``untold``
    Keys of the configuration that a table shows for the run if it has them, and exceptions from these keys.
"""

import json
from collections.abc import Collection, Iterable, Sized
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fkl.basics.errors import FklError
from fkl.config.digest import config_identity
from fkl.config.experiments import paper_datasets, paper_experiments, paper_variants
from fkl.papers.cells import AS_STATED, CellAnswer, PublishedCell
from fkl.papers.jobs import PaperJob, experiment_jobs
from fkl.runs.finished_runs import EndedRun, FinishedRun

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REPLICATES = ("replicates",)
FREE = REPLICATES
"""Keys in which a run and its job may differ: fewer replicates are a preview, and more are accepted."""


@dataclass(frozen=True)
class PaperRun:
    """A finished run of a paper's experiment.

    Parameters
    ----------
    run : FinishedRun
    experiment : str
        PAPER/NAME.
    job : Job
        Its job.
    """

    run: FinishedRun
    experiment: str
    job: PaperJob

    @property
    def variant(self) -> str:
        """The run's reading of the paper."""
        return str(self.job.cell.get("variant", ""))

    @property
    def key(self) -> tuple[str, str, str]:
        """Data set, algorithm and setting of the run, as in the tables."""
        return self.run.dataset, self.run.algorithm, str(self.job.cell.get("setting", ""))

    @property
    def replicates(self) -> int:
        """Number of replicates in the experiment."""
        return int(self.job.config["replicates"])

    @property
    def switch(self) -> str:
        """The run's settings that differ between readings, as key=value pairs."""
        untold = self.job.cell.get("untold", ())
        # Settings that a paper's experiment declares as telling, with the values of this run
        settings = []
        for key in self.job.cell.get("told", ()):
            value: Any = self.run.config
            for name in key.split("."):
                value = value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
            if key not in untold and value is not _ABSENT:
                word = json.dumps(value).strip('"')
                name, is_class, _ = key.partition("._target_")
                settings.append(f"{name}={word.rpartition('.')[2].lower() if is_class else word}")
        return "; ".join(settings)

    def answer_cell(self, values: "pd.Series[float]", of: int | None = None) -> CellAnswer:
        """Our answer to a published cell; for the parameters see `Answer.from_values`."""
        return CellAnswer.from_values(self.switch, values, self.variant, self.replicates, of, self.run.digest)


_ABSENT = object()


def of_cell(found: Iterable[PaperRun], cell: PublishedCell) -> list[PaperRun]:
    """Runs that answer a published cell."""
    return [one for one in found if one.key == cell.key[:3]]


def require_found(found: Sized, what: str, first: str = "") -> None:
    """Raise an error if a table or figure has no runs.

    Parameters
    ----------
    found : sized
        The runs.
    what : {"table", "figure"}
    first : str
        The experiment to run first; empty if several are possible.
    """
    if not len(found):
        hint = f"first fkl run -m +experiment={first}" if first else "see `fkl list` for the paper's experiments"
        raise FklError(f"{what}: no finished run belongs to it; {hint}")


def dataset_panels(
    known: Iterable[str], found: Collection[str], first: str = "", across: int | None = None
) -> "tuple[Figure, dict[str, Axes]]":
    """Make a figure with one panel for each known data set that has runs; return it, and its panels by name.

    Parameters
    ----------
    known : iterable of str
        Names of data sets, in the order of the panels.
    found : collection of str
        Data sets of the runs.
    first : str
        The experiment to run first if there are no runs; see `require_found`.
    across : int, optional
        Number of panels in a row.
    """
    from fkl.report.figures import panel_row  # here, because tables need no figures

    shown = [name for name in known if name in found]
    require_found(shown, "figure", first)
    figure, panels = panel_row(len(shown), across)
    for axes, name in zip(panels, shown, strict=True):
        axes.set_title(name)
    return figure, dict(zip(shown, panels, strict=True))


def find_paper_runs(paper: str, runs: Iterable[FinishedRun], *names: str) -> list[PaperRun]:
    """Runs of a paper's experiments, beginning with those of its text, followed by its variants in order.

    Of runs that differ only in the number of replicates, the newest one with the most replicates is used. A run of two
    experiments belongs to the first.

    Parameters
    ----------
    paper : str
    runs : iterable of FinishedRun
        Finished runs, oldest first.
    names : str
        Experiments as PAPER/NAME; by default all experiments of the paper.
    """
    # Of equal runs, the one with the most replicates
    best: dict[str, FinishedRun] = {}
    for run in runs:
        name = config_identity(run.config, REPLICATES)
        if name not in best or run.replicates >= best[name].replicates:
            best[name] = run
    # jobs are only composed if there are runs
    wanted = _jobs_by_identity(names or tuple(paper_experiments(paper)), FREE) if best else {}
    order = [AS_STATED, *paper_variants(paper), ""]
    # Match the others by their settings, whatever keys a method does not use
    named = [(run, _shared_identity(run.config, FREE)) for run in best.values()]
    matching = [PaperRun(run, *wanted[name]) for run, name in named if name in wanted]
    return sorted(matching, key=lambda one: order.index(one.variant))


def of_a_paper(run: EndedRun, papers: Iterable[str]) -> bool:
    """Whether a run belongs to an experiment of these papers, with any number of replicates."""
    method = str(run.config["algo"].get("_target_"))
    return any(
        _shared_identity(run.config, FREE) in _jobs_by_identity(tuple(paper_experiments(paper)), FREE, method)
        for paper in papers
        if run.dataset in paper_datasets(paper)  # otherwise no job needs to be composed
    )


@cache
def _jobs_by_identity(
    names: tuple[str, ...], free: tuple[str, ...], method: str = ""
) -> dict[str, tuple[str, PaperJob]]:
    """Jobs of some experiments by identity; if a method's class is given, only its jobs, without other imports."""
    wanted: dict[str, tuple[str, PaperJob]] = {}
    for name in names:
        for job in experiment_jobs(name):
            if method and job.config["algo"]["_target_"] != method:
                continue
            wanted.setdefault(_shared_identity(job.config, free), (name, job))
    return wanted


def _shared_identity(config: dict[str, Any], free: tuple[str, ...]) -> str:
    """Identity that a run shares with its job, whatever the values of the free keys."""
    return config_identity(config, (*free, *_idle_keys(str(config["algo"].get("_target_")))))


@cache
def _idle_keys(target: str) -> tuple[str, ...]:
    """Keys that one of fkl's methods does not use.

    Modules outside fkl are not imported, because importing would run their code.
    """
    module, _, name = target.rpartition(".")
    if not module.startswith("fkl.algorithms."):
        return ()
    try:
        return tuple(getattr(import_module(module), name).idle)
    except (ImportError, AttributeError):  # also a class that no longer exists
        return ()
