"""Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023)."""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.config.experiments import readings_tried
from fkl.papers.cells import CellAnswer, PublishedCell, add_answers, published_cells
from fkl.papers.graph_omkl import graphs
from fkl.papers.our_runs import dataset_panels, find_paper_runs, of_cell, require_found
from fkl.report.colours import look_of
from fkl.report.figures import draw_band, draw_crosses, draw_sweep, spread_over
from fkl.runs.finished_runs import FinishedRun

DATASETS = ("airfoil", "bias", "concrete", "naval")
DRAWN = ("graph_omkl/as_published", "graph_omkl/exact", "graph_omkl/features")
"""Experiments whose runs the figures show: the variant as published, if a method has one."""
FIRST_ROUND = 10  # for figures over rounds: means of fewer rounds are noise that distorts the scale
GRAPH_AIDED = ("OMKL-GF", "OMKL-SFG", "OMKL-SFG-R")
OVER_ROUNDS = ("OMKR", "Raker", *GRAPH_AIDED)
"""Methods of Figure 5."""


def table(number: str, runs: list[FinishedRun]) -> list[PublishedCell]:
    """Published cells with our answers, one answer for each setting that was run.

    Spread and n are over replicates. Only runs on the authors' version of the data have a reading.
    """
    our_runs = find_paper_runs("graph_omkl", runs)
    require_found(our_runs, "table", "graph_omkl/exact")

    def answers(cell: PublishedCell) -> list[CellAnswer]:
        # Our number by each reading; a single exact replicate is enough
        ours = []
        for our_run in of_cell(our_runs, cell):
            answer = our_run.answer_cell(our_run.run.summary["runtime_s" if cell.is_time else "mse"])
            answer = replace(answer, exact=our_run.replicates == 1)
            # replicates run together, so their times have no spread
            ours.append(replace(answer, spread=np.nan) if cell.is_time else answer)
        return ours

    # Numbers that repeat another table are no evidence of their own
    cells = published_cells("graph_omkl", number)
    if number in ("3", "4", "5"):  # they repeat numbers of Table 1
        again = ("M=10", "mse")
        cells = [replace(cell, follows_from="Table 1" * ((cell.setting, cell.metric) == again)) for cell in cells]
    return add_answers(cells, answers, readings_tried("graph_omkl"))


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper, with one panel per data set.

    Returns
    -------
    figure : Figure
    replicates : int or str
        Number of replicates in the curves, which is one for methods without random draws.
    """
    # Graphs of kernels are drawn from the method itself
    if number in graphs.SHOWN:
        return graphs.draw_graphs(number, runs)
    # Curves over rounds, or values over M
    over_rounds = number in ("5", "6")
    algorithms = OVER_ROUNDS if number == "5" else GRAPH_AIDED
    our_runs = [one for one in find_paper_runs("graph_omkl", runs, *DRAWN) if one.run.algorithm in algorithms]
    if over_rounds:
        our_runs = [one for one in our_runs if one.key[2] in ("", "M=10")]
    by_key = {one.key: one.run for one in our_runs}
    figure, panels = dataset_panels(DATASETS, {dataset for dataset, *_ in by_key})
    for dataset, axes in panels.items():
        # Over rounds: each method's curve, with the paper's last value as a cross
        if over_rounds:
            for algorithm in algorithms:
                run = by_key.get((dataset, algorithm, "M=10" if algorithm in GRAPH_AIDED else ""))
                if run is not None:
                    settled = run.rounds[run.rounds["round"] >= FIRST_ROUND]
                    column = "mse" if number == "5" else "regret_hindsight"
                    draw_band(axes, settled, column, algorithm, look_of(algorithm))
            if number == "5":
                last = max(float(np.max(np.asarray(line.get_xdata()))) for line in axes.lines)
                for cell in published_cells("graph_omkl", "1"):
                    if (cell.dataset, cell.metric) == (dataset, "mse") and cell.algorithm in algorithms:
                        draw_crosses(axes, [(last, 1e-3 * cell.number)], cell.algorithm, look_of(cell.algorithm))
        else:
            _draw_over_m(axes, dataset, by_key, "mse" if number == "3" else "runtime")
        if number != "6":  # regret can be below zero
            axes.set_yscale("log")
    labels = {"3": "mean squared error", "4": "run time of a replicate (s)", "5": "mean squared error so far"}
    panels[next(iter(panels))].set_ylabel(labels.get(number, "regret in hindsight so far (squared error)"))
    return figure, spread_over(run.replicates for run in by_key.values())


def _sublinear_text(runs: list[FinishedRun]) -> str:
    """Text on Figure 6: regret per round after half of the rounds and after all rounds, in all runs."""
    our_runs = [one for one in find_paper_runs("graph_omkl", runs, *DRAWN) if one.run.algorithm in GRAPH_AIDED]
    runs = [*{one.key: one.run for one in our_runs if one.key[2] == "M=10"}.values()]
    falls = 0
    for run in runs:
        regret: Any = run.rounds.groupby("round")["regret_hindsight"].mean()
        half = len(regret) // 2
        falls += regret.iloc[-1] / len(regret) < regret.iloc[half - 1] / half
    here = f"from half of the rounds to all of them regret / round falls in {falls} of {len(runs)} curves"
    return f"The paper proves that regret grows slower than the rounds, but claims nothing of the curves. Here: {here}."


CLAIMS = {"1": lambda _: graphs.CLAIMS["1"], "2": lambda _: graphs.CLAIMS["2"], "6": _sublinear_text}
"""For figures without published values: the paper's claims, and our results."""


def _draw_over_m(axes: Axes, dataset: str, runs: dict[tuple[str, str, str], FinishedRun], metric: str) -> None:
    """Draw our numbers with a band over M, and published numbers as crosses."""
    column, unit = ("mse", 1e-3) if metric == "mse" else ("runtime_s", 1.0)
    for algorithm, number in zip(GRAPH_AIDED, ("3", "4", "5"), strict=True):
        ours = {int(of[2][2:]): run for of, run in runs.items() if of[:2] == (dataset, algorithm)}
        if ours:  # replicates run together, so their times have no spread
            draw_sweep(axes, {m: run.summary[column] for m, run in ours.items()}, algorithm, look_of(algorithm))
        cells = [
            cell for cell in published_cells("graph_omkl", number) if (cell.dataset, cell.metric) == (dataset, metric)
        ]
        points = [(int(cell.setting[2:]), unit * cell.number) for cell in cells]
        draw_crosses(axes, points, algorithm, look_of(algorithm))
    axes.set_xlabel("M, kernels to which a node is connected")
    axes.set_xticks(sorted({m for line in axes.lines for m in np.asarray(line.get_xdata()).tolist()}))
