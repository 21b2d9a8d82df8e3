"""Xu, Wang, Chen and Tian, COKE: Communication-Censored Decentralized Kernel Learning, JMLR 22 (2021)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.basics.errors import FklError
from fkl.config.experiments import experiments, readings_tried
from fkl.papers.our_runs import Found, find
from fkl.papers.published import (
    AS_PUBLISHED,
    AS_STATED,
    Answer,
    Cell,
    beside,
    published,
    rounding,
)
from fkl.report.colours import look_of
from fkl.report.figures import band, canvas, over, spread_over
from fkl.results.finished_runs import FinishedRun

TITLE = "COKE (Xu et al. 2021)"
TABLES = {
    "1": "errors over iterations, Twitter (large)",
    "2": "errors over iterations, Tom's hardware",
    "3": "transmissions to reach an error, Twitter (large) and Tom's hardware",
    "4": "errors over iterations, energy",
    "5": "errors over iterations, air quality",
    "6": "transmissions to reach an error, energy and air quality",
}
WIDE = {
    **dict.fromkeys("1245", (("setting",), ("metric", "algorithm"))),
    **dict.fromkeys("36", (("dataset", "setting"), ("algorithm",))),
}
"""Rows and columns of the printed tables."""
FIGURES = {
    "1": "distance of the agents' functions from the optimum over iterations",
    "2": "mean squared error over iterations",
    "3": "mean squared error over transmissions",
}
AS_FAR = "as far above the optimum"
"""A variant of how Tables 3 and 6 are read, of the runs as published."""
EXPERIMENTS = tuple(name for name in experiments("coke") if name != "coke/bandwidth")
"""Those that the tables and figures are made of."""
REPLICATES = 1
"""The paper prints one run of each method."""
UNOBTAINABLE = {
    "twitter_large": "its samples are not among the published files; Table 1 and half of Table 3 stay empty"
}
ALGORITHMS = ("CTA", "DKLA", "COKE")
RATIO = "COKE / DKLA"
EVERY_ITERATION, TWO_CELLS = "each agent transmits in every iteration", "COKE's cell and DKLA's"
"""What cells follow from that are no evidence of their own: transmissions of CTA and DKLA after k; ratios."""
SHOWN = ("synthetic", "twitter")
ABOVE_LAST = 1.05
"""Of an error that Figure 3's transmissions are counted to: times the last error of the worse."""
# where DKLA's printed training error ends, to four digits
PRINTED_OPTIMUM = {"energy": 21.47e-3, "toms_hardware": 9.90e-4}
# Errors in Table 6 are rounded to one decimal, its integers too, see differences.md; in Table 3 as printed.
ONE_DECIMAL = ("energy", "airquality")


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Published cells beside ours, one row for each setting of the switches that was run.

    Parameters
    ----------
    number : {"1", "2", "3", "4", "5", "6"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Spread and n: over replicates; of transmissions to reach an error, over those that reach it, and a curve
        agrees only where all do. The cells of a method in a column of a table are the points of one curve.
    """
    found = find("coke", runs, *EXPERIMENTS)
    if not found:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=coke/uncensored")
    tried = readings_tried("coke")
    printed = published(__file__, number)
    cells = [{**cell, "follows_from": _follows_from(cell), "curve": f"table {number}"} for cell in printed]
    if number in ("3", "6"):
        return beside([*cells, *_ratios(cells)], lambda cell: _reaching(cell, found), tried)
    return beside(cells, lambda cell: _over_iterations(cell, found), tried)


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper, one panel a data set.

    Parameters
    ----------
    number : {"1", "2", "3"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int or str
        That the curves are over.
    """
    draw: Callable[[Axes, dict[str, FinishedRun]], None]
    draw = {"1": _distances, "2": _errors, "3": _errors_over_transmissions}[number]
    by_key, shown = _shown(number, runs)
    figure, panels = canvas(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        draw(axes, {name: by_key[dataset, name] for name in ALGORITHMS if (dataset, name) in by_key})
        axes.set_title(dataset)
        axes.set_yscale("log")
    panels[0].set_ylabel("distance of f from the optimum" if number == "1" else "mean squared error, training samples")
    return figure, spread_over(run.replicates for (dataset, _), run in by_key.items() if dataset in shown)


def _shown(number: str, runs: list[FinishedRun]) -> tuple[dict[tuple[str, str], FinishedRun], list[str]]:
    """Runs of a figure by data set and algorithm, and its data sets."""
    drawn = {"1": ("COKE",), "2": ALGORITHMS, "3": ("DKLA", "COKE")}[number]
    found = [one for one in find("coke", runs, *EXPERIMENTS) if one.run.algorithm in drawn]
    by_key = {
        (one.run.dataset, one.run.algorithm): one.run
        for among in (AS_STATED, AS_PUBLISHED)  # the latter where there is one
        for one in found
        if one.variant == among
    }
    shown = [name for name in SHOWN if any(key[0] == name for key in by_key)]
    if not shown:
        raise FklError("figure: no finished run belongs to it; first fkl run -m +experiment=coke/censored")
    return by_key, shown


def _claim(number: str, words: str) -> Callable[[list[FinishedRun]], str]:
    """What to say below a figure: the paper's words, and what came out on each data set."""

    def claim(runs: list[FinishedRun]) -> str:
        by_key, shown = _shown(number, runs)
        here = []
        for dataset in shown:
            mine = {name: by_key[dataset, name] for name in ALGORITHMS if (dataset, name) in by_key}
            here.append(f"{_came_out(number, mine)} ({dataset})")
        return f"The paper: {words}. Here: {'; '.join(here)}."

    return claim


def _came_out(number: str, runs: dict[str, FinishedRun]) -> str:
    """What a figure's runs on one data set come to, in mean over replicates."""
    if number == "1":
        first, last = (_at(runs["COKE"], end)["functional_distance_worst"].mean() for end in ("min", "max"))
        return f"the worst agent's distance falls from {first:.2g} to {last:.2g}"
    errors = {name: float(_at(run, "max")["train_mse"].mean()) for name, run in runs.items()}
    if number == "2" or len(runs) < 2:
        return "last errors " + ", ".join(f"{name} {error:.4g}" for name, error in errors.items())
    error = ABOVE_LAST * max(errors.values())
    sent = {name: float(_sent_until(run, error, False).mean()) for name, run in runs.items()}
    saved = 100 * (1 - sent["COKE"] / sent["DKLA"])
    return (
        f"to {error:.3g}, {100 * (ABOVE_LAST - 1):.0f} % above the last error, COKE sends {saved:.0f} % less than DKLA"
    )


def _at(run: FinishedRun, end: str) -> pd.DataFrame:
    """Rows of the first or last iteration."""
    return run.rounds[run.rounds["round"] == getattr(run.rounds["round"], end)()]


CLAIMS = {
    "1": _claim("1", "the functions of all agents converge to the optimum"),
    "2": _claim("2", "CTA converges the slowest; COKE is slower than DKLA at first, and ends at the same error"),
    "3": _claim("3", "COKE reaches the same error with about 50 % fewer transmissions than DKLA"),
}
"""Of figures that the paper prints no value of: what it claims, and what came out."""


def _of(found: list[Found], dataset: str, algorithm: str) -> list[Found]:
    return [one for one in found if (one.run.dataset, one.run.algorithm) == (dataset, algorithm)]


def _follows_from(cell: Cell) -> str:
    """What a published cell follows from, nothing where it is evidence."""
    counted = cell["metric"] == "transmissions" and cell["setting"].startswith("k=")
    return EVERY_ITERATION if counted and cell["algorithm"] != "COKE" else ""


def _over_iterations(cell: Cell, found: list[Found]) -> list[Answer]:
    """Errors, or transmissions, after so many iterations."""
    iteration = int(cell["setting"].removeprefix("k="))
    answers = []
    for one in _of(found, cell["dataset"], cell["algorithm"]):
        then: Any = one.run.rounds[one.run.rounds["round"] == iteration]
        answers.append(Answer.from_values(one.switch, then[cell["metric"]], one.variant, REPLICATES))
    return answers


def _ratios(cells: list[Cell]) -> list[Cell]:
    """What the published transmissions of COKE are of those of DKLA."""
    printed = {(cell["dataset"], cell["algorithm"], cell["setting"]): cell for cell in cells}
    ratios = []
    for (dataset, algorithm, setting), cell in printed.items():
        if algorithm == "COKE":
            of_dkla = printed[dataset, "DKLA", setting]["value"]
            ratio = {"value": cell["value"] / of_dkla, "rounding": cell["rounding"] / of_dkla}
            ratio |= {"algorithm": RATIO, "metric": "ratio of transmissions", "follows_from": TWO_CELLS, "curve": ""}
            ratios.append({**cell, **ratio})
    return ratios


def _reaching(cell: Cell, found: list[Found]) -> list[Answer]:
    """Transmissions until the training error is printed as this small, of the replicates that come so far.

    One that does not come so far has sent more than all that it sent, which is what `Answer.values` has of it.
    """
    dataset, algorithm = cell["dataset"], cell["algorithm"]
    error = largest_printed_as(cell["setting"].removeprefix("train_mse<="), dataset in ONE_DECIMAL)
    answers = []
    for one in _of(found, dataset, "COKE" if algorithm == RATIO else algorithm):
        ways = {one.variant: (error, False)}
        if one.variant == AS_PUBLISHED and error > PRINTED_OPTIMUM.get(dataset, np.inf):
            ways[AS_FAR] = (error - PRINTED_OPTIMUM[dataset], True)
        for name, way in ways.items():
            sent: Any = _sent_until(one.run, *way)
            values = sent.fillna(one.run.summary.set_index("replicate")["transmissions"])
            if algorithm == RATIO:
                peers = [peer.run for peer in _of(found, dataset, "DKLA") if _alike(one, peer)]
                values = sent = sent / _sent_until(peers[0], *way) if peers else sent * np.nan
                values = values.dropna()
            words = f"{one.switch}; {name}" if name == AS_FAR else one.switch
            answer = Answer.from_values(words, sent.dropna(), name, REPLICATES, one.run.replicates)
            answers.append(replace(answer, values=tuple(map(float, values)), replicates=one.run.replicates))
    return answers


def largest_printed_as(words: str, one_decimal: bool) -> float:
    """The upper end of what rounds to an error as it is printed: 23.5e-3 is up to 23.55e-3, 12e-4 up to 12.5e-4."""
    digits, _, exponent = words.partition("e")
    half = rounding(digits)
    return (float(digits) + (min(half, 0.05) if one_decimal else half)) * 10.0 ** int(exponent)


def _alike(one: Found, other: Found) -> bool:
    """Whether two runs have the same reading, splits and graphs."""
    same = all(one.run.config[key] == other.run.config[key] for key in ("seed", "topology", "partition"))
    return same and one.variant == other.variant


def _sent_until(run: FinishedRun, error: float, above_optimum: bool) -> "pd.Series[float]":
    """Transmissions of each replicate until its training error, or that above its optimum, is at most `error`."""
    best = run.summary.set_index("replicate")["train_mse_at_optimum"] if above_optimum else 0.0
    rounds = run.rounds.set_index("replicate")
    reached = rounds[rounds["train_mse"] - best <= error]
    return reached.groupby("replicate")["transmissions"].first().reindex(run.summary["replicate"])


def _distances(axes: Axes, runs: dict[str, FinishedRun]) -> None:
    """How far COKE's functions are from the optimum, on training samples."""
    curves = {"functional_distance": "COKE, root mean square", "functional_distance_worst": "COKE, worst agent"}
    for dash, (column, words) in zip(("-", "--"), curves.items(), strict=True):
        band(axes, runs["COKE"].rounds, column, words, (look_of("COKE").colour, dash))
    axes.set_xlabel("iteration k")


def _errors(axes: Axes, runs: dict[str, FinishedRun]) -> None:
    for name, run in runs.items():
        band(axes, run.rounds, "train_mse", name, look_of(name))
    axes.set_xlabel("iteration k")
    axes.set_xscale("log")


def _errors_over_transmissions(axes: Axes, runs: dict[str, FinishedRun]) -> None:
    """Means over replicates after each iteration, without CTA, which the paper leaves out too."""
    for name, run in runs.items():
        sent: Any = run.rounds.groupby("round")["transmissions"].mean()
        begun = run.rounds[run.rounds["round"].isin(sent.index[sent >= 1])]
        over(axes, begun.groupby("round")["train_mse"], name, look_of(name), sent[sent >= 1].to_numpy())
    axes.set_xlabel("transmissions so far, all agents")
    axes.set_xscale("log")
