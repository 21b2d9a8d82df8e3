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
from fkl.report.colours import look_of
from fkl.report.figures import band, canvas, crosses, spread_over, sweep
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
MARKED = ("3", "4", "5")
"""Figures with published values, as crosses."""
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


def _sublinear(runs: list[FinishedRun]) -> str:
    """Regret of a round after half of the rounds and after all, over all that Figure 6 shows."""
    found = [one for one in find("graph_omkl", runs, *DRAWN) if one.run.algorithm in GRAPH_AIDED]
    runs = [*{one.key: one.run for one in found if one.key[2] == "M=10"}.values()]
    falls = 0
    for run in runs:
        regret: Any = run.rounds.groupby("round")["regret_hindsight"].mean()
        half = len(regret) // 2
        falls += regret.iloc[-1] / len(regret) < regret.iloc[half - 1] / half
    here = f"from half of the rounds to all of them it falls in {falls} of {len(runs)} curves"
    return f"The paper: regret grows slower than the rounds, so regret / round falls. Here: {here}."


CLAIMS = {"6": _sublinear}
"""Of figures that the paper prints no value of: what it claims, and what came out."""


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
    """Ours with a band, published as crosses."""
    for algorithm, number in zip(GRAPH_AIDED, ("3", "4", "5"), strict=True):
        ours = {int(of[2][2:]): run for of, run in runs.items() if of[:2] == (dataset, algorithm)}
        if ours:  # replicates run together, so their times have no spread
            column = "mse" if metric == "mse" else "runtime_s"
            sweep(axes, {m: run.summary[column] for m, run in ours.items()}, algorithm, look_of(algorithm))
        cells = [cell for cell in published(__file__, number) if (cell["dataset"], cell["metric"]) == (dataset, metric)]
        points = [(int(cell["setting"][2:]), unit * cell["value"]) for cell in cells]
        crosses(axes, points, algorithm, look_of(algorithm))
    axes.set_xlabel("M, kernels a node is joined to")
    axes.set_xticks(sorted({m for line in axes.lines for m in np.asarray(line.get_xdata()).tolist()}))


def _errors_over_rounds(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun]) -> None:
    _over_rounds(axes, dataset, runs, OVER_ROUNDS, "mse")
    last = max(float(np.max(np.asarray(line.get_xdata()))) for line in axes.lines)
    for cell in published(__file__, "1"):
        if (cell["dataset"], cell["metric"]) == (dataset, "mse") and cell["algorithm"] in OVER_ROUNDS:
            crosses(axes, [(last, 1e-3 * cell["value"])], cell["algorithm"], look_of(cell["algorithm"]))


def _regrets_over_rounds(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun]) -> None:
    _over_rounds(axes, dataset, runs, GRAPH_AIDED, "regret_hindsight")


def _over_rounds(
    axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun], algorithms: Iterable[str], column: str
) -> None:
    for algorithm in algorithms:
        run = runs.get((dataset, algorithm, "M=10" if algorithm in GRAPH_AIDED else ""))
        if run is not None:
            settled = run.rounds[run.rounds["round"] >= FIRST_ROUND]
            band(axes, settled, column, algorithm, look_of(algorithm))
