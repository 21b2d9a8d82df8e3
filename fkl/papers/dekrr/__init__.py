"""Yang, He, He, Yang and Huang, Decentralized Kernel Ridge Regression Based on Data-Dependent Random Feature (2024)."""

import pandas as pd
from matplotlib.figure import Figure

from fkl.config.experiments import readings_tried
from fkl.papers.cells import AS_STATED, PublishedCell, add_answers, published_cells
from fkl.papers.our_runs import dataset_panels, find_paper_runs, of_cell, require_found
from fkl.report.colours import look_of
from fkl.report.figures import draw_crosses, draw_sweep, spread_over
from fkl.runs.finished_runs import FinishedRun

ALGORITHMS = ("DKLA", "DeKRR-DDRF")
SHOWN = ("airquality", "energy")


def table(number: str, runs: list[FinishedRun]) -> list[PublishedCell]:
    """Cells of the authors' stored results with our answers.

    Spread and n are over replicates, which draw different features and share one split.
    """
    our_runs = find_paper_runs("dekrr", runs)
    require_found(our_runs, "table", "dekrr/airquality")
    return add_answers(
        published_cells("dekrr", number),
        lambda cell: [one.answer_cell(_relative_error(one.run)) for one in of_cell(our_runs, cell)],
        readings_tried("dekrr"),
    )


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw errors over D, with one panel per data set and published errors as crosses.

    Returns
    -------
    figure : Figure
    replicates : int or str
        Number of replicates in the points.
    """
    # Runs of the paper's text, by data set, method and D
    ours = {one.key: one.run for one in find_paper_runs("dekrr", runs) if one.variant == AS_STATED}
    figure, panels = dataset_panels(SHOWN, {dataset for dataset, *_ in ours}, "dekrr/airquality")
    for dataset, axes in panels.items():
        # Our errors over D, and the authors' stored ones as crosses
        for algorithm in ALGORITHMS:
            errors: dict[float, pd.Series[float]] = {
                int(setting[2:]): _relative_error(run)
                for (of, by, setting), run in ours.items()
                if (of, by) == (dataset, algorithm)
            }
            if errors:
                draw_sweep(axes, errors, algorithm, look_of(algorithm))
            printed = [
                (int(cell.setting[2:]), cell.number)
                for cell in published_cells("dekrr", number)
                if (cell.dataset, cell.algorithm) == (dataset, algorithm)
            ]
            draw_crosses(axes, printed, algorithm, look_of(algorithm))
        axes.set_xlabel("D, features of a node")
    panels[next(iter(panels))].set_ylabel("relative squared error, test samples")
    return figure, spread_over(run.replicates for run in ours.values())


def _relative_error(run: FinishedRun) -> "pd.Series[float]":
    """Squared error divided by that of predicting the test targets' mean."""
    return 1 - run.summary["r2"]
