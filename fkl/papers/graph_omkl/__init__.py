"""Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023)."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.basics.errors import FklError
from fkl.config.experiments import readings_tried
from fkl.papers.our_runs import Found, find
from fkl.papers.published import Answer, Cell, beside, published
from fkl.report.figures import COLOURS, band, canvas, spread_over
from fkl.results.finished_runs import FinishedRun

TITLE = "Graph-aided OMKL (Ghari and Shen 2023)"
TABLES = {
    "1": "mean squared error",
    "2": "run time",
    "3": "OMKL-GF with the number of kernels a node draws",
    "4": "OMKL-SFG with the number of kernels a node points to",
    "5": "OMKL-SFG-R with the number of kernels a node points to",
}
WIDE = {
    **dict.fromkeys("12", (("algorithm",), ("dataset",))),
    **dict.fromkeys("345", (("dataset",), ("metric", "setting"))),
}
"""Rows and columns of the printed tables."""
FIGURES = {
    "3": "mean squared error against M",
    "4": "run time against M",
    "5": "mean squared error over rounds",
    "6": "regret over rounds",
}
DATASETS = ("airfoil", "bias", "concrete", "naval")
DRAWN = ("graph_omkl/as_published", "graph_omkl/exact", "graph_omkl/features")
"""Experiments whose runs the figures show: the variant, where a method has one."""
FIRST_ROUND = 10  # in figures over rounds: the mean of fewer says nothing and spoils the scale
GRAPH_AIDED = ("OMKL-GF", "OMKL-SFG", "OMKL-SFG-R")
OVER_ROUNDS = ("OMKR", "Raker", *GRAPH_AIDED)
"""Methods of Figure 5."""


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Published cells beside ours, one row for each setting of the switches that was run.

    Parameters
    ----------
    number : {"1", "2", "3", "4", "5"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Spread and n: over replicates. Only runs on the data as the authors had them have a reading.
    """
    found = find("graph_omkl", runs)
    if not found:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=graph_omkl/exact")

    def answers(cell: Cell) -> list[Answer]:
        key = cell["dataset"], cell["algorithm"], cell["setting"]
        return [_answer(cell["metric"], one) for one in found if one.key == key]

    cells = [{**cell, "follows_from": _follows_from(number, cell)} for cell in published(__file__, number)]
    return beside(cells, answers, readings_tried("graph_omkl"))


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper, one panel a data set.

    Parameters
    ----------
    number : {"3", "4", "5", "6"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int or str
        That the curves are over; methods that draw nothing have one.
    """
    algorithms = OVER_ROUNDS if number == "5" else GRAPH_AIDED
    found = [one for one in find("graph_omkl", runs, *DRAWN) if one.run.algorithm in algorithms]
    if number in ("5", "6"):
        found = [one for one in found if one.key[2] in ("", "M=10")]
    by_key = {one.key: one.run for one in found}
    draw: Callable[[Axes, str, dict[Any, FinishedRun]], None]
    draw = {"3": _errors_over_m, "4": _times_over_m, "5": _errors_over_rounds, "6": _regrets_over_rounds}[number]
    shown = [name for name in DATASETS if any(key[0] == name for key in by_key)]
    if not shown:
        raise FklError("figure: no finished run belongs to it; see `fkl list` for the paper's experiments")
    figure, panels = canvas(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        draw(axes, dataset, by_key)
        axes.set_title(dataset)
        if number != "6":  # regret can be below zero
            axes.set_yscale("log")
    labels = {"3": "mean squared error", "4": "run time of a replicate (s)", "5": "mean squared error so far"}
    panels[0].set_ylabel(labels.get(number, "regret in hindsight so far (squared error)"))
    return figure, spread_over(run.replicates for run in by_key.values())


def _follows_from(number: str, cell: Cell) -> str:
    """Tables 3 to 5 print what Table 1 prints, too."""
    return "Table 1" if number in ("3", "4", "5") and (cell["setting"], cell["metric"]) == ("M=10", "mse") else ""


def _answer(metric: str, found: Found) -> Answer:
    values = found.run.summary["runtime_s" if metric == "runtime" else "mse"]
    answer = Answer.from_values(found.switch, values, found.variant, found.replicates)
    answer = replace(answer, exact=found.replicates == 1)
    return replace(answer, spread=np.nan) if metric == "runtime" else answer  # replicates run together


def _errors_over_m(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun]) -> None:
    _over_m(axes, dataset, runs, "mse", 1e-3)


def _times_over_m(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun]) -> None:
    _over_m(axes, dataset, runs, "runtime", 1.0)


def _over_m(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun], metric: str, unit: float) -> None:
    """Ours with a band of one standard deviation, published as crosses."""
    for colour, (algorithm, number) in enumerate(zip(GRAPH_AIDED, ("3", "4", "5"), strict=True)):
        ours = {int(of[2][2:]): run for of, run in runs.items() if of[:2] == (dataset, algorithm)}
        M = sorted(ours)
        values = [ours[m].summary["mse" if metric == "mse" else "runtime_s"] for m in M]
        mean = np.array([value.mean() for value in values])
        axes.plot(M, mean, "o-", color=COLOURS[colour], label=algorithm)
        if metric == "mse":
            deviation = np.nan_to_num(np.array([value.std(ddof=1) for value in values]))
            axes.fill_between(M, mean - deviation, mean + deviation, color=COLOURS[colour], alpha=0.2, linewidth=0)
        cells = [cell for cell in published(__file__, number) if (cell["dataset"], cell["metric"]) == (dataset, metric)]
        points = [(int(cell["setting"][2:]), unit * cell["value"]) for cell in cells]
        axes.plot(*zip(*points, strict=True), "x", color=COLOURS[colour], label=f"{algorithm}, published")
    axes.set_xlabel("M, kernels a node is joined to")
    axes.set_xticks(M)


def _errors_over_rounds(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun]) -> None:
    _over_rounds(axes, dataset, runs, OVER_ROUNDS, "mse")


def _regrets_over_rounds(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun]) -> None:
    _over_rounds(axes, dataset, runs, GRAPH_AIDED, "regret_hindsight")


def _over_rounds(
    axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun], algorithms: Iterable[str], column: str
) -> None:
    for algorithm in algorithms:
        run = runs.get((dataset, algorithm, "M=10" if algorithm in GRAPH_AIDED else ""))
        if run is not None:
            colour = ("OMKL-GF", "OMKL-SFG", "OMKL-SFG-R", "OMKR", "Raker").index(algorithm)
            settled = run.rounds[run.rounds["round"] >= FIRST_ROUND]
            band(axes, settled, column, algorithm, colour)
