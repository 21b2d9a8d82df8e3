"""Yang, He, He, Yang and Huang, Decentralized Kernel Ridge Regression Based on Data-Dependent Random Feature (2024)."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fkl.basics.errors import FklError
from fkl.config.experiments import readings_tried
from fkl.papers.our_runs import Found, find
from fkl.papers.published import AS_STATED, Answer, Cell, beside, published
from fkl.report.colours import look_of
from fkl.report.figures import canvas, crosses, spread_over, sweep
from fkl.results.finished_runs import FinishedRun

TITLE = "DeKRR-DDRF (Yang et al. 2024)"
TABLES = {"1": "relative squared error of the test samples"}
WIDE = {"1": (("dataset", "setting"), ("algorithm",))}
"""Rows and columns as the figure has them."""
FIGURES = {"1": "relative squared error of the test samples over D"}
MARKED = ("1",)
"""Figures with published values, as crosses."""
UNOBTAINABLE = {"houses": "its samples are not among the data sets of fkl"}
ALGORITHMS = ("DKLA", "DeKRR-DDRF")
SHOWN = ("airquality", "energy")


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Cells of the authors' stored results beside ours.

    Parameters
    ----------
    number : {"1"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Spread and n: over replicates, which draw other features for one split.
    """
    found = _found(runs)

    def answers(cell: Cell) -> list[Answer]:
        key = cell["dataset"], cell["algorithm"], cell["setting"]
        return [
            Answer.from_values(one.switch, _rse(one.run), one.variant, one.replicates)
            for one in found
            if one.key == key
        ]

    return beside(published(__file__, number), answers, readings_tried("dekrr"))


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Errors over D, one panel a data set, published ones as crosses.

    Parameters
    ----------
    number : {"1"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int or str
        That the points are over.
    """
    ours = {one.key: one.run for one in _found(runs) if one.variant == AS_STATED}
    shown = [name for name in SHOWN if any(key[0] == name for key in ours)]
    if not shown:
        raise FklError("figure: no finished run belongs to it; first fkl run -m +experiment=dekrr/airquality")
    figure, panels = canvas(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        for algorithm in ALGORITHMS:
            of_one: dict[float, Any] = {
                int(key[2][2:]): _rse(run) for key, run in ours.items() if key[:2] == (dataset, algorithm)
            }
            if of_one:
                sweep(axes, of_one, algorithm, look_of(algorithm))
            cells = [cell for cell in published(__file__, number) if _of(cell, dataset, algorithm)]
            printed = [(int(cell["setting"][2:]), cell["value"]) for cell in cells]
            crosses(axes, printed, algorithm, look_of(algorithm))
        axes.set_xlabel("D, features of a node")
        axes.set_title(dataset)
    panels[0].set_ylabel("relative squared error, test samples")
    return figure, spread_over(run.replicates for run in ours.values())


def _found(runs: list[FinishedRun]) -> list[Found]:
    found = find("dekrr", runs)
    if not found:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=dekrr/airquality")
    return found


def _of(cell: Cell, dataset: str, algorithm: str) -> bool:
    return (cell["dataset"], cell["algorithm"]) == (dataset, algorithm)


def _rse(run: FinishedRun) -> Any:
    """Squared error over that of the test targets' own mean."""
    return 1 - run.summary["r2"]
