"""Xu, Wang, Chen and Tian, COKE: Communication-Censored Decentralized Kernel Learning, JMLR 22 (2021)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fkl.config.experiments import paper_experiments, readings_tried
from fkl.papers.cells import (
    AS_PUBLISHED,
    AS_STATED,
    CellAnswer,
    PublishedCell,
    add_answers,
    published_cells,
    rounding_of,
)
from fkl.papers.our_runs import PaperRun, dataset_panels, find_paper_runs, require_found
from fkl.report.colours import look_of
from fkl.report.figures import draw_band, draw_groups, spread_over
from fkl.runs.finished_runs import FinishedRun

AS_FAR = "as far above the optimum"
"""A reading of Tables 3 and 6 for the runs as published: the error above the optimum is the same as in the paper."""
BANDWIDTH = ("coke/bandwidth", "coke/bandwidth_rows")
"""Experiments of the cross-validation."""
EXPERIMENTS = tuple(name for name in paper_experiments("coke") if name not in BANDWIDTH)
"""Experiments of the tables and figures."""
REPLICATES = 1
"""Number of runs of each method that the paper prints."""
ALGORITHMS = ("CTA", "DKLA", "COKE")
RATIO = "COKE / DKLA"
EVERY_ITERATION, TWO_CELLS = "each agent transmits in every iteration", "COKE's cell and DKLA's"
"""Reasons why CTA's and DKLA's transmissions after k iterations, and ratios, are not evidence."""
SHOWN = ("synthetic", "twitter")
ABOVE_LAST = 1.05
"""Target error of Figure 3's transmissions, as a multiple of the worse method's last error in each replicate."""
# DKLA's final printed training error, to four digits
PRINTED_OPTIMUM = {"energy": 21.47e-3, "toms_hardware": 9.90e-4}
# Data sets of Table 6, whose errors, even integers, are rounded to one decimal; see differences.md.
ONE_DECIMAL = ("energy", "airquality")


def table(number: str, runs: list[FinishedRun]) -> list[PublishedCell] | pd.DataFrame:
    """Published cells with our answers, one answer for each setting that was run; or the bandwidths.

    Parameters
    ----------
    number : {"1", "2", "3", "4", "5", "6", "bandwidth"}
    runs : list of FinishedRun

    Returns
    -------
    list of Cell, or DataFrame
        Spread and n are over replicates. For transmissions until an error is reached, they are over replicates that
        reach it, and a curve agrees only if all do. A method's cells in one column are the points of one curve.
    """
    if number == "bandwidth":
        return _bandwidth_table(runs)
    # Runs that the table needs
    our_runs = find_paper_runs("coke", runs, *EXPERIMENTS)
    require_found(our_runs, "table", "coke/uncensored_files" if number in ("4", "5", "6") else "coke/uncensored")
    # Numbers of DKLA and CTA follow from the method: every agent sends in every iteration
    cells = []
    for cell in published_cells("coke", number):
        counted = cell.metric == "transmissions" and cell.setting.startswith("k=") and cell.algorithm != "COKE"
        cells.append(replace(cell, follows_from=EVERY_ITERATION if counted else "", curve=f"table {number}"))
    if number not in ("3", "6"):
        return add_answers(cells, partial(_after_iterations, our_runs), readings_tried("coke"))
    # Published transmissions of COKE as a share of those of DKLA
    # A printed pair of numbers gives a ratio, whose rounding follows from COKE's
    of_dkla = {(cell.dataset, cell.setting): cell.number for cell in cells if cell.algorithm == "DKLA"}
    ratio = {"algorithm": RATIO, "metric": "ratio of transmissions", "follows_from": TWO_CELLS, "curve": ""}
    for cell in [cell for cell in cells if cell.algorithm == "COKE"]:
        whole = of_dkla[cell.dataset, cell.setting]
        cells.append(replace(cell, value=cell.number / whole, rounding=cell.rounding / whole, **ratio))  # type: ignore[arg-type]
    return add_answers(cells, partial(_until_error, our_runs), readings_tried("coke"))


def _bandwidth_table(runs: list[FinishedRun]) -> pd.DataFrame:
    """DKLA's error on held-out fifths of the training samples, and number of replicates in which it is the smallest.

    Test samples are not used, so each replicate's choice can be judged on them.
    """
    our_runs = find_paper_runs("coke", runs, *BANDWIDTH)
    require_found(our_runs, "table", BANDWIDTH[0])
    names = ["dataset", "input", "bandwidth"]
    folds = [
        one.run.summary.assign(
            dataset=one.run.dataset,
            input=one.run.config["dataset"].get("input", ""),
            bandwidth=one.run.config["kernels"]["smallest"],
        )
        for one in our_runs
    ]
    # The mean error of the folds by bandwidth, and in how many replicates each is the smallest
    errors = pd.concat(folds).groupby([*names, "replicate"], as_index=False)["test_mse"].mean()
    least = errors.groupby(["dataset", "input", "replicate"])["test_mse"].transform("min")
    by_name = errors.assign(least=errors["test_mse"] == least).groupby(names, as_index=False)
    return by_name.agg(test_mse=("test_mse", "mean"), least_in=("least", "sum"), n=("least", "size"))


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper, with one panel per data set; CTA is only in Figure 2, as in the paper.

    Returns
    -------
    figure : Figure
    replicates : int or str
        Number of replicates in the curves.
    """
    by_key = _runs_for_figure(number, runs)
    figure, panels = dataset_panels(SHOWN, {dataset for dataset, _ in by_key}, "coke/censored")
    # A panel per data set
    for dataset, axes in panels.items():
        for name in ALGORITHMS:
            if (dataset, name) not in by_key:
                continue
            rounds, look = by_key[dataset, name].rounds, look_of(name)
            # Figure 1: distances from the optimum. Figure 2: errors by iteration. Figure 3: errors by messages
            if number == "1":
                draw_band(axes, rounds, "functional_distance", "COKE, root mean square", (look.colour, "-"))
                draw_band(axes, rounds, "functional_distance_worst", "COKE, worst agent", (look.colour, "--"))
            elif number == "2":
                draw_band(axes, rounds, "train_mse", name, look)
            else:
                # Means over replicates after each iteration
                sent: Any = rounds.groupby("round")["transmissions"].mean()
                sent = sent[sent >= 1]
                begun = rounds[rounds["round"].isin(sent.index)]
                draw_groups(axes, begun.groupby("round")["train_mse"], name, look, sent.to_numpy())
        axes.set_xlabel("transmissions so far, all agents" if number == "3" else "iteration k")
        if number != "1":
            axes.set_xscale("log")
        axes.set_yscale("log")
    distance = "distance of f from the optimum"
    panels[next(iter(panels))].set_ylabel(distance if number == "1" else "mean squared error, training samples")
    return figure, spread_over(run.replicates for run in by_key.values())


def _runs_for_figure(number: str, runs: list[FinishedRun]) -> dict[tuple[str, str], FinishedRun]:
    """Runs for a figure, by data set and algorithm."""
    algorithms = {"1": ("COKE",), "2": ALGORITHMS, "3": ("DKLA", "COKE")}[number]
    our_runs = [one for one in find_paper_runs("coke", runs, *EXPERIMENTS) if one.run.algorithm in algorithms]
    by_key = {
        (one.run.dataset, one.run.algorithm): one.run
        for among in (AS_STATED, AS_PUBLISHED)  # the second replaces the first
        for one in our_runs
        if one.variant == among
    }
    return {key: run for key, run in by_key.items() if key[0] in SHOWN}


def _claim_text(number: str, words: str) -> Callable[[list[FinishedRun]], str]:
    """Text below a figure: the paper's claim, and our result on each data set."""

    # Our result on each data set that was run, next to the paper's sentence
    def claim(runs: list[FinishedRun]) -> str:
        by_key = _runs_for_figure(number, runs)
        here = []
        for dataset in SHOWN:
            mine = {name: by_key[dataset, name] for name in ALGORITHMS if (dataset, name) in by_key}
            if mine:
                here.append(f"{_came_out(number, mine)} ({dataset})")
        return f"The paper: {words}. Here: {'; '.join(here)}."

    return claim


def _came_out(number: str, runs: dict[str, FinishedRun]) -> str:
    """Text on the result of a figure's runs on one data set, as means over replicates."""
    # The first and the last distance, or the last errors, or messages until nearly the last error
    if number == "1":
        first, last = (_rows_at_end(runs["COKE"], end)["functional_distance_worst"].mean() for end in ("min", "max"))
        return f"the worst agent's distance falls from {first:.2g} to {last:.2g}"
    errors = {name: float(_rows_at_end(run, "max")["train_mse"].mean()) for name, run in runs.items()}
    if number == "2" or len(runs) < 2:
        return "last errors " + ", ".join(f"{name} {error:.4g}" for name, error in errors.items())
    ends = [_rows_at_end(run, "max").set_index("replicate")["train_mse"] for run in runs.values()]
    error = ABOVE_LAST * pd.concat(ends, axis=1).max(axis=1)  # by replicate, so both methods reach it in all
    sent = {name: float(_sent_until(run, error, False).mean()) for name, run in runs.items()}
    saved = 100 * (1 - sent["COKE"] / sent["DKLA"])
    return f"to {100 * (ABOVE_LAST - 1):.0f} % above its last error COKE sends {saved:.0f} % less than DKLA"


def _rows_at_end(run: FinishedRun, end: str) -> pd.DataFrame:
    """Rows of the first or last iteration."""
    return run.rounds[run.rounds["round"] == getattr(run.rounds["round"], end)()]


CLAIMS = {
    "1": _claim_text("1", "the functions of all agents converge to the optimum"),
    "2": _claim_text("2", "CTA converges the slowest; COKE is slower than DKLA at first, and ends at the same error"),
    "3": _claim_text(
        "3", "COKE reaches a given error, which is not named, with around 50 % fewer transmissions than DKLA"
    ),
}
"""For figures without published values: the paper's claims, and our results."""


def _runs_of(found: list[PaperRun], dataset: str, algorithm: str) -> list[PaperRun]:
    return [one for one in found if (one.run.dataset, one.run.algorithm) == (dataset, algorithm)]


def _after_iterations(found: list[PaperRun], cell: PublishedCell) -> list[CellAnswer]:
    """Errors or transmissions after the cell's number of iterations."""
    iteration = int(cell.setting.removeprefix("k="))
    answers = []
    for our_run in _runs_of(found, cell.dataset, cell.algorithm):
        then: Any = our_run.run.rounds[our_run.run.rounds["round"] == iteration]
        values = then[cell.metric]
        answers.append(
            CellAnswer.from_values(our_run.switch, values, our_run.variant, REPLICATES, run=our_run.run.digest)
        )
    return answers


def _until_error(found: list[PaperRun], cell: PublishedCell) -> list[CellAnswer]:
    """Transmissions until the training error is printed as this number, over the replicates that reach it.

    For other replicates, `Answer.values` has the total, because they would need more.
    """
    dataset, algorithm = cell.dataset, cell.algorithm
    error = largest_printed_as(cell.setting.removeprefix("train_mse<="), dataset in ONE_DECIMAL)
    answers = []
    # The paper prints an error, which stands for all errors that round to it
    for one in _runs_of(found, dataset, "COKE" if algorithm == RATIO else algorithm):
        limits = {one.variant: (error, False)}
        if one.variant == AS_PUBLISHED and error > PRINTED_OPTIMUM.get(dataset, np.inf):
            limits[AS_FAR] = (error - PRINTED_OPTIMUM[dataset], True)
        # Transmissions until the error is reached; a replicate that never reaches it needs more than all it sent
        for reading, limit in limits.items():
            sent: Any = _sent_until(one.run, *limit)
            values = sent.fillna(one.run.summary.set_index("replicate")["transmissions"])
            # The ratio needs DKLA's run on the same splits
            if algorithm == RATIO:
                # DKLA's run with the same reading, splits and graphs
                same = [
                    other.run
                    for other in _runs_of(found, dataset, "DKLA")
                    if other.variant == one.variant
                    and all(one.run.config[key] == other.run.config[key] for key in ("seed", "topology", "partition"))
                ]
                values = sent = sent / _sent_until(same[0], *limit) if same else sent * np.nan
                values = values.dropna()
            switch = f"{one.switch}; {reading}" if reading == AS_FAR else one.switch
            count = one.run.replicates
            answer = CellAnswer.from_values(switch, sent.dropna(), reading, REPLICATES, count, one.run.digest)
            answers.append(replace(answer, values=tuple(map(float, values)), replicates=count))
    return answers


def largest_printed_as(words: str, one_decimal: bool) -> float:
    """The largest value that rounds to a printed error: 23.55e-3 for 23.5e-3, or 12.5e-4 for 12e-4."""
    digits, _, exponent = words.partition("e")
    half = rounding_of(digits)
    return (float(digits) + (min(half, 0.05) if one_decimal else half)) * 10.0 ** int(exponent)


def _sent_until(run: FinishedRun, error: "float | pd.Series[float]", above_optimum: bool) -> "pd.Series[float]":
    """Transmissions of each replicate until its training error, or its excess over the optimum, is at most `error`.

    `error` is one number for all replicates, or one for each.
    """
    best = run.summary.set_index("replicate")["train_mse_at_optimum"] if above_optimum else 0.0
    rounds = run.rounds.set_index("replicate")
    limit = error.reindex(rounds.index).to_numpy() if isinstance(error, pd.Series) else error
    reached = rounds[rounds["train_mse"] - best <= limit]
    return reached.groupby("replicate")["transmissions"].first().reindex(run.summary["replicate"])
