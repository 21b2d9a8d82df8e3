"""Finished runs of a paper: those with the configuration of a job in one of its experiments.

The experiment in the paper's experiments.yaml has the `cell` of such a run, its position in the paper's tables and
figures:

variant
    Its reading of the paper: `as stated`, a name under `variants`, or nothing, which is shown but not evidence.
setting
    Setting of the table's row, as in published.csv.
``told``, ``untold``
    Keys of the configuration that a table shows for the run, if it has them, and those of them that it leaves out.
"""

import json
from collections.abc import Iterable, Sized
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fkl.basics.errors import FklError
from fkl.config.digest import identity
from fkl.config.experiments import datasets, experiments, variants
from fkl.papers.cells import AS_STATED, Answer, Cell
from fkl.papers.jobs import Job, jobs
from fkl.runs.finished_runs import EndedRun, FinishedRun

if TYPE_CHECKING:
    import pandas as pd

REPLICATES = ("replicates",)
FREE = REPLICATES
"""Keys in which a run and its job may differ: fewer replicates are a preview, more are accepted."""


@dataclass(frozen=True)
class Found:
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
    job: Job

    @property
    def variant(self) -> str:
        """Its reading of the paper."""
        return str(self.job.cell.get("variant", ""))

    @property
    def key(self) -> tuple[str, str, str]:
        """Its names in the tables: data set, algorithm, setting."""
        return self.run.dataset, self.run.algorithm, str(self.job.cell.get("setting", ""))

    @property
    def replicates(self) -> int:
        """Number of replicates in the experiment."""
        return int(self.job.config["replicates"])

    @property
    def switch(self) -> str:
        """Its settings where the paper has more than one reading, as key=value pairs."""
        untold = self.job.cell.get("untold", ())
        words = []
        for key in self.job.cell.get("told", ()):
            value: Any = self.run.config
            for name in key.split("."):
                value = value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
            if key not in untold and value is not _ABSENT:
                word = json.dumps(value).strip('"')
                words.append(f"{key}={word}")
        return "; ".join(words)

    def answer(self, values: "pd.Series[float]", of: int | None = None) -> Answer:
        """Our answer to a published cell; parameters as for `Answer.from_values`."""
        return Answer.from_values(self.switch, values, self.variant, self.replicates, of, self.run.digest)


_ABSENT = object()


def of_cell(found: Iterable[Found], cell: Cell) -> list[Found]:
    """The runs that answer a published cell."""
    return [one for one in found if one.key == cell.key[:3]]


def require_found(found: Sized, what: str, first: str = "") -> None:
    """Refuse to make a table or figure without runs.

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


def find(paper: str, runs: Iterable[FinishedRun], *names: str) -> list[Found]:
    """The runs that belong to a paper's experiments: those of its text first, then those of its variants, in order.

    Among runs that differ only in replicates, the newest one with the most is used. A run in two experiments belongs to
    the first.

    Parameters
    ----------
    paper : str
    runs : iterable of FinishedRun
        Oldest first.
    names : str
        Experiments, PAPER/NAME; empty for all of the paper's.
    """
    best: dict[str, FinishedRun] = {}
    for run in runs:
        name = identity(run.config, REPLICATES)
        if name not in best or run.replicates >= best[name].replicates:
            best[name] = run
    # nothing is composed if nothing was run
    wanted = _jobs_by_identity(names or tuple(experiments(paper)), FREE) if best else {}
    order = [AS_STATED, *variants(paper), ""]
    named = [(run, _identity(run.config, FREE)) for run in best.values()]
    found = [Found(run, *wanted[name]) for run, name in named if name in wanted]
    return sorted(found, key=lambda one: order.index(one.variant))


def of_a_paper(run: EndedRun, papers: Iterable[str]) -> bool:
    """Whether a run belongs to an experiment of these papers, with any number of replicates."""
    method = str(run.config["algo"].get("_target_"))
    return any(
        _identity(run.config, FREE) in _jobs_by_identity(tuple(experiments(paper)), FREE, method)
        for paper in papers
        if run.dataset in datasets(paper)  # else nothing needs to be composed
    )


@cache
def _jobs_by_identity(names: tuple[str, ...], free: tuple[str, ...], method: str = "") -> dict[str, tuple[str, Job]]:
    """The jobs of some experiments by identity; of one method if its class is given, whose module alone is imported."""
    wanted: dict[str, tuple[str, Job]] = {}
    for name in names:
        for job in jobs(name):
            if method and job.config["algo"]["_target_"] != method:
                continue
            wanted.setdefault(_identity(job.config, free), (name, job))
    return wanted


def _identity(config: dict[str, Any], free: tuple[str, ...]) -> str:
    """Identity that a run shares with its job, for any values of the free keys."""
    return identity(config, (*free, *_idle_keys(str(config["algo"].get("_target_")))))


@cache
def _idle_keys(target: str) -> tuple[str, ...]:
    """Keys that one of fkl's methods does not use.

    Other modules are not imported, because importing runs their code.
    """
    module, _, name = target.rpartition(".")
    if not module.startswith("fkl.algorithms."):
        return ()
    try:
        return tuple(getattr(import_module(module), name).idle)
    except (ImportError, AttributeError):  # also a class that no longer exists
        return ()
