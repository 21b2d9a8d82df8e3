"""Gu, Dang, Li and Huang, Federated Doubly Stochastic Kernel Learning for Vertically Partitioned Data, KDD 2020."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from fkl.papers.cells import CellAnswer, PublishedCell, add_answers, published_cells
from fkl.papers.fdskl import claims, figures
from fkl.papers.fdskl.chosen import AS_STATED, SHARE, Key, answering_runs
from fkl.papers.fdskl.errors import errors_table
from fkl.papers.our_runs import require_found
from fkl.runs.finished_runs import FinishedRun

COMPUTE, WITH_LINKS = "compute, measured", "compute, measured, and links, by the cost model"
DRAWN = {"3": figures.over_time, "4": figures.draw_sum_times, "5": figures.over_samples, "6": figures.draw_error_boxes}


def _claim_text(say: Callable[[dict[Key, FinishedRun]], str]) -> Callable[[list[FinishedRun]], str]:
    return lambda runs: say({key: one.run for key, one in answering_runs(runs).items()})


CLAIMS = {
    "3": _claim_text(claims.fastest_claim),
    "4": _claim_text(claims.lowest_sum),
    "5": _claim_text(claims.growth_claim),
    "6": _claim_text(claims.lowest_error),
}
"""For figures without published values: the paper's claims, and our results."""


def table(number: str, runs: list[FinishedRun]) -> list[PublishedCell] | pd.DataFrame:
    """Published training times with our answers, or test errors.

    Spread and n are over replicates, each with its own split.
    """
    our_runs = answering_runs(runs)
    require_found(our_runs, "table", "fdskl/kernel")
    # Test errors are a comparison of systems, and no printed cells
    if number == "errors":
        made = errors_table({key: one.run for key, one in our_runs.items()})
        require_found(made, "table", "fdskl/kernel")
        return made

    def minutes(cell: PublishedCell) -> list[CellAnswer]:
        """Training time in minutes, with and without the simulated time of the links."""
        answers = []
        for system in (cell.algorithm + AS_STATED, cell.algorithm):
            if our_run := our_runs.get((cell.dataset, system, SHARE)):
                for system_words, links in ((COMPUTE, False), (WITH_LINKS, True)):
                    answer = our_run.answer_cell(figures.training_seconds(our_run.run.summary, links) / 60)
                    answers.append(replace(answer, switch=f"{system_words}; {our_run.switch}"))
        return answers

    return add_answers(published_cells("fdskl", "4"), minutes)


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper.

    Returns
    -------
    figure : Figure
    replicates : int or str
        Number of replicates in the means, or a description of other content.
    """
    by_key = {key: one.run for key, one in answering_runs(runs).items()}
    require_found(by_key, "figure", "fdskl/kernel")
    return DRAWN[number](by_key)
