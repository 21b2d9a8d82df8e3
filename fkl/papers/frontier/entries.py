"""Finished runs as entries of one comparison: paired by seed of the data and replicate."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.papers.frontier.measures import measured
from fkl.papers.our_runs import Found, find
from fkl.report.compare.statistics import student_interval
from fkl.results.finished_runs import FinishedRun

PAIR = ["seed", "replicate"]
POOLED, ALONE = "pooled", "alone"
"""Kinds that are shown for comparison only: one sends the samples themselves, the other sends nothing."""
CLASSES = ("ellipses", "phishing")


@dataclass(frozen=True, eq=False)
class Entry:
    """A method on a data set, with the values that the search chose.

    Parameters
    ----------
    dataset, name, kind : str
        As experiments.yaml has them.
    privacy : str
        ``central``, ``local``, or nothing.
    budget : int or None
        The epsilon that it was tuned for.
    values : DataFrame
        Indexed by seed and replicate: the columns of `measured`.
    searched : float
        Error of the trial that was best, on the rows that are not judged.
    tuned : str
        Its values, as key=value pairs.
    stream : bool
        Whether it sees each sample once and keeps none.
    """

    dataset: str
    name: str
    kind: str
    privacy: str
    budget: int | None
    values: pd.DataFrame
    searched: float
    tuned: str
    stream: bool

    def mean(self, column: str) -> float:
        """Over seeds, each the mean of its replicates."""
        return float(by_seed(self.values[column]).mean())


def entries_of(runs: Iterable[FinishedRun]) -> dict[str, list[Entry]]:
    """Entries of each data set that was run.

    Raises
    ------
    fkl.basics.errors.FklError
        If there is none.
    """
    of_entry: dict[tuple[str, str], list[Found]] = {}
    for one in find("frontier", runs):
        words = next(word for word in one.job.words if word.startswith("+frontier/tuned="))
        of_entry.setdefault((str(one.job.cell["dataset"]), words), []).append(one)
    found: dict[str, list[Entry]] = {}
    for (dataset, _), several in of_entry.items():
        run, cell = several[0].run, several[0].job.cell
        values = [measured(one.run, cell).assign(seed=one.run.config["seed"]) for one in several]
        entry = Entry(
            dataset=dataset,
            name=str(cell["name"]),
            kind=str(cell["kind"]),
            privacy=str(cell.get("privacy", "")),
            budget=cell.get("epsilon"),
            values=pd.concat(values).reset_index().set_index(PAIR).sort_index(),
            searched=float(cell["searched"]),
            tuned=str(cell["tuned"]),
            stream="mse" in run.summary,
        )
        found.setdefault(dataset, []).append(entry)
    if not found:
        raise FklError("frontier: no finished run belongs to it; first fkl run -m +experiment=frontier/judged")
    return found


def unit_of(dataset: str) -> tuple[str, float]:
    """Unit of a data set's errors, and its size."""
    return ("%", 1e-2) if dataset in CLASSES else ("1e-3", 1e-3)


def by_seed(values: "pd.Series[float]") -> NDArray[np.float64]:
    """Mean over replicates of each seed. Each seed draws other data; replicates of one seed share theirs."""
    return np.asarray(values.groupby("seed").mean(), np.float64)


def difference(entry: Entry, best: Entry) -> tuple[float, float, float]:
    """How much more an entry errs than another on the same data and draws: mean, and ends of its interval.

    Student's interval of the seeds' mean differences, at 95 %: as many independent values as there are seeds, however
    many replicates each has.

    Raises
    ------
    fkl.basics.errors.FklError
        If they have no seed and replicate in common.
    """
    apart = (entry.values["error"] - best.values["error"]).dropna()
    if apart.empty:
        raise FklError(f"frontier: {entry.name} and {best.name} on {entry.dataset} have no replicate in common")
    means = by_seed(apart)
    return float(means.mean()), *student_interval(means)


def not_worse(candidates: Iterable[Entry], best: Entry) -> list[Entry]:
    """Other entries whose difference to the best one has an interval that holds 0, least error first."""
    others = [entry for entry in candidates if entry is not best and not difference(entry, best)[1] > 0]
    return sorted(others, key=lambda entry: entry.mean("error"))
