"""Gu, Dang, Li and Huang, Federated Doubly Stochastic Kernel Learning for Vertically Partitioned Data, KDD 2020."""

import pandas as pd
from matplotlib.figure import Figure

from fkl.errors import FklError
from fkl.papers.beside import AS_PUBLISHED, AS_STATED, COLUMNS, Answer, Cell, beside, published
from fkl.papers.fdskl import figures
from fkl.papers.fdskl.chosen import BANK, SHARE, Key, answering, system
from fkl.papers.fdskl.errors import errors_table
from fkl.papers.fdskl.search import search_table
from fkl.results.collect import FinishedRun

TITLE = "FDSKL (Gu et al. 2020)"
TABLES = {
    "4": "training time of FDSKL and SecureBoost",
    "errors": "test errors and traffic of the systems, and who is level with LIBSVM",
    "search": "search of hyper-parameters on training samples",
}
FIGURES = {
    "3": "test error over training time",
    "4": "time to sum a kernel matrix over a tree, a ring and a star",
    "5": "training time over the number of training samples",
    "6": "test errors of the systems over the splits",
}
REPLICATES = 10
"""The paper's own number of random splits."""
VARIANTS = {
    AS_PUBLISHED: "mini-batches of samples and blocks of features, as the public code of doubly stochastic gradients "
    "has them, in place of the text's one sample and one feature an iteration; experiment fdskl/kernel runs it",
    BANK: "algo.bank: features that are drawn once and used again, with angles that are saved (Algorithm 2, line 4); "
    "experiment fdskl/bank runs it",
}
"""Readings that are not the text's, and what they change."""
COMPUTE, WITH_LINKS = "compute, measured", "compute, measured, and links, by the cost model"
DRAWN = {"3": figures.over_time, "4": figures.sums, "5": figures.over_samples, "6": figures.boxes}


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Published training times beside ours, test errors, or the search.

    Parameters
    ----------
    number : {"4", "errors", "search"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Spread and n: over replicates, each with a split of its own; in the search over folds.
    """
    by_key = answering(runs)
    made = {"errors": errors_table, "4": _times}[number](by_key) if number != "search" else search_table(runs)
    if made.empty or (number == "4" and not by_key):
        experiment = "fdskl_search/linear" if number == "search" else "fdskl/kernel"
        raise FklError(f"table: no finished run belongs to it; first fkl run -m +experiment={experiment}")
    return made


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper.

    Parameters
    ----------
    number : {"3", "4", "5", "6"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int or str
        How many the means are over, or what else is shown.
    """
    by_key = answering(runs)
    if not by_key:
        raise FklError("figure: no finished run belongs to it; first fkl run -m +experiment=fdskl/kernel")
    return DRAWN[number](by_key)


def switch(run: FinishedRun) -> str:
    """Tell what the paper leaves open, as key=value pairs."""
    algo = run.config["algo"]
    keys = {"FDSKL": ("batch", "features", "iterations", "masks"), "SecureBoost": ("trees", "depth", "cipher")}
    words = [f"algo.{key}={algo[key]}" for key in (*keys.get(run.algorithm, ()), *["bank"] * (system(run) == BANK))]
    return "; ".join([f"partition.parties={run.config['partition']['parties']}", *words])


def _times(by_key: dict[Key, FinishedRun]) -> pd.DataFrame:
    return beside(published(__file__, "4"), lambda cell: _minutes(cell, by_key))[COLUMNS]


def _minutes(cell: Cell, by_key: dict[Key, FinishedRun]) -> list[Answer]:
    """Minutes that a training takes, without and with the simulated time of the links."""
    run = by_key.get((cell["dataset"], cell["algorithm"], SHARE))
    if run is None:
        return []
    summary = run.summary
    readings = {COMPUTE: summary["runtime_s"], WITH_LINKS: summary["runtime_s"] + summary["communication_s"]}
    reading = AS_PUBLISHED if run.algorithm == "FDSKL" else AS_STATED
    return [
        Answer.of(f"{words}; {switch(run)}", seconds / 60, reading, REPLICATES) for words, seconds in readings.items()
    ]
