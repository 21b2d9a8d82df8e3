"""Xu, Wang, Chen and Tian, COKE: Communication-Censored Decentralized Kernel Learning, JMLR 22 (2021)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.errors import FklError
from fkl.papers.beside import COLUMNS, Answer, Cell, beside, following, newest, published
from fkl.report.figures import COLOURS, band, canvas
from fkl.results.collect import FinishedRun

TITLE = "COKE (Xu et al. 2021)"
TABLES = {
    "1": "errors over iterations, Twitter (large)",
    "2": "errors over iterations, Tom's hardware",
    "3": "transmissions to reach an error, Twitter (large) and Tom's hardware",
    "4": "errors over iterations, energy",
    "5": "errors over iterations, air quality",
    "6": "transmissions to reach an error, energy and air quality",
}
FIGURES = {
    "1": "distance of the agents' functions from the optimum over iterations",
    "2": "mean squared error over iterations",
    "3": "mean squared error over transmissions",
}
READINGS = ("bandwidth", "censored_text")
"""Experiments that no published number waits for: what differences.md tells of other readings."""
UNOBTAINABLE = {
    "twitter_large": "its samples are not among the published files; Table 1 and half of Table 3 stay empty"
}
ALGORITHMS = ("CTA", "DKLA", "COKE")
RATIO = "COKE / DKLA"
SHOWN = ("synthetic", "twitter")
# bandwidth, features, lambda, v and mu of each data set
PROTOCOL = {
    "energy": (0.1, 100, 1e-3, 0.5, 0.98),
    "airquality": (0.1, 200, 1e-5, 0.9, 0.97),
    "toms_hardware": (1.0, 100, 1e-2, 0.5, 0.95),
    "twitter": (1.0, 100, 1e-3, 1.0, 0.97),
    "synthetic": (1.0, 100, 5e-5, 1.0, 0.95),
}
REST = {"iterations": 2000, "test_share": 0.3, "fold": None, "loss": "square", "rho": 1e-2, "eta": 0.99, "bits": None}
# where DKLA's printed training error ends, to four digits
PRINTED_OPTIMUM = {"energy": 21.47e-3, "toms_hardware": 9.90e-4}
AS_PRINTED, AS_FAR = "error as printed", "error as far above the optimum as printed"


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Published cells beside ours, one row for each setting of the switches that was run.

    Parameters
    ----------
    number : {"1", "2", "3", "4", "5", "6"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Spread and n: over replicates; of transmissions to reach an error, over those that reach it.
    """
    by_cell = newest(following(runs, _follows_protocol), _key, switch)
    cells = published(__file__, number)
    if not by_cell:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=coke/uncensored")
    of_dataset: dict[tuple[str, str], list[FinishedRun]] = {}
    for run in sorted(by_cell.values(), key=lambda run: not _as_published(run)):
        of_dataset.setdefault((run.dataset, run.algorithm), []).append(run)
    if number in ("3", "6"):
        return beside([*cells, *_ratios(cells)], lambda cell: _reaching(cell, of_dataset))[COLUMNS]
    return beside(cells, lambda cell: _over_iterations(cell, of_dataset))[COLUMNS]


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int]:
    """Draw a figure of the paper, one panel a data set.

    Parameters
    ----------
    number : {"1", "2", "3"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int
        The most that a curve is over.
    """
    draw: Callable[[Axes, dict[str, FinishedRun]], None]
    draw, drawn = {
        "1": (_distances, ("COKE",)),
        "2": (_errors, ALGORITHMS),
        "3": (_errors_over_transmissions, ("DKLA", "COKE")),
    }[number]
    chosen = newest((run for run in following(runs, _follows_protocol) if _as_published(run)), _key, switch)
    by_key = {(run.dataset, run.algorithm): run for run in chosen.values() if run.algorithm in drawn}
    shown = [name for name in SHOWN if any(key[0] == name for key in by_key)]
    if not shown:
        raise FklError("figure: no finished run belongs to it; first fkl run -m +experiment=coke/censored")
    figure, panels = canvas(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        draw(axes, {name: by_key[dataset, name] for name in ALGORITHMS if (dataset, name) in by_key})
        axes.set_title(dataset)
        axes.set_yscale("log")
    panels[0].set_ylabel("distance of f from the optimum" if number == "1" else "mean squared error, training samples")
    return figure, max(run.replicates for run in by_key.values())


def switch(run: FinishedRun) -> str:
    """Tell how a run reads the protocol where it can be read in more than one way, as key=value pairs."""
    words = [f"topology.edges={run.config['topology']['edges']}"]
    if run.algorithm == "COKE":
        words.append(f"algo.censored={run.config['algo']['censored']}")
    return "; ".join(words)


def _as_published(run: FinishedRun) -> bool:
    """Whether the switches of a run stand as the published numbers agree with."""
    edges = 95 if run.dataset == "synthetic" else 14
    return run.config["topology"]["edges"] == edges and run.config["algo"].get("censored") in (None, "squared_norm")


def _follows_protocol(run: FinishedRun) -> bool:
    """Whether everything but the switches is as the paper's experiment."""
    if run.dataset not in PROTOCOL or run.algorithm not in ALGORITHMS:
        return False
    algo, kernels = run.config["algo"], run.config["kernels"]
    bandwidth, features, lam, v, mu = PROTOCOL[run.dataset]
    expected = {**REST, "lam": lam, "v": v, "mu": mu}
    return (
        all(algo[key] == value for key, value in expected.items() if key in algo)
        and (kernels["family"], kernels["N"], kernels["D"], kernels["map"]) == ("rbf", 1, features, "pairs")
        and (kernels["smallest"], kernels["bandwidth_is"]) == (bandwidth, "deviation")
        and not (kernels["orthogonal"] or kernels["shared"])
        and run.config["scaling"] == ("unit_box" if run.dataset == "synthetic" else "none")
        and run.config["dataset"].get("input", "published") == "published"
        and run.provenance["clients"] == (20 if run.dataset == "synthetic" else 10)
        and "edges" in run.config["topology"]
        and run.config["network"]["loss"] == 0
    )


def _key(run: FinishedRun) -> tuple[str, str, str]:
    """Name a run as the tables do: data set, algorithm, setting."""
    return run.dataset, run.algorithm, ""


def _over_iterations(cell: Cell, runs: dict[tuple[str, str], list[FinishedRun]]) -> list[Answer]:
    """Errors, or transmissions, after so many iterations."""
    iteration = int(cell["setting"].removeprefix("k="))
    answers = []
    for run in runs.get((cell["dataset"], cell["algorithm"]), []):
        then: Any = run.rounds[run.rounds["round"] == iteration]
        answers.append(Answer.of(switch(run), then[cell["metric"]]))
    return answers


def _ratios(cells: list[Cell]) -> list[Cell]:
    """What the published transmissions of COKE are of those of DKLA."""
    printed = {(cell["dataset"], cell["algorithm"], cell["setting"]): cell for cell in cells}
    ratios = []
    for (dataset, algorithm, setting), cell in printed.items():
        if algorithm == "COKE":
            value = cell["value"] / printed[dataset, "DKLA", setting]["value"]
            ratios.append({**cell, "algorithm": RATIO, "metric": "ratio of transmissions", "value": value})
    return ratios


def _reaching(cell: Cell, runs: dict[tuple[str, str], list[FinishedRun]]) -> list[Answer]:
    """Transmissions until the training error is this small, of the replicates that come so far."""
    dataset, algorithm = cell["dataset"], cell["algorithm"]
    error = float(cell["setting"].removeprefix("train_mse<="))
    readings = {AS_PRINTED: (error, False)}
    if error > PRINTED_OPTIMUM.get(dataset, np.inf):
        readings[AS_FAR] = (error - PRINTED_OPTIMUM[dataset], True)
    answers = []
    for run in runs.get((dataset, "COKE" if algorithm == RATIO else algorithm), []):
        for words, reading in readings.items():
            sent: Any = _sent_until(run, *reading)
            if algorithm == RATIO:
                peers = [peer for peer in runs.get((dataset, "DKLA"), []) if _same_graph(run, peer)]
                sent = sent / _sent_until(peers[0], *reading) if peers else sent * np.nan
            answers.append(Answer.of(f"{switch(run)}; {words}", sent.dropna()))
    return answers


def _same_graph(run: FinishedRun, other: FinishedRun) -> bool:
    return bool(run.provenance["topology"] == other.provenance["topology"])


def _sent_until(run: FinishedRun, error: float, above_optimum: bool) -> "pd.Series[float]":
    """Transmissions of each replicate until its training error, or that above its optimum, is at most `error`."""
    best = run.summary.set_index("replicate")["train_mse_at_optimum"] if above_optimum else 0.0
    rounds = run.rounds.set_index("replicate")
    reached = rounds[rounds["train_mse"] - best <= error]
    return reached.groupby("replicate")["transmissions"].first().reindex(run.summary["replicate"])


def _distances(axes: Axes, runs: dict[str, FinishedRun]) -> None:
    """How far COKE's functions are from the optimum, on training samples."""
    curves = {"functional_distance": "COKE, root mean square", "functional_distance_worst": "COKE, worst agent"}
    for colour, (column, words) in enumerate(curves.items()):
        band(axes, runs["COKE"].rounds, column, words, colour)
    axes.set_xlabel("iteration k")


def _errors(axes: Axes, runs: dict[str, FinishedRun]) -> None:
    for name, run in runs.items():
        band(axes, run.rounds, "train_mse", name, ALGORITHMS.index(name))
    axes.set_xlabel("iteration k")
    axes.set_xscale("log")


def _errors_over_transmissions(axes: Axes, runs: dict[str, FinishedRun]) -> None:
    """Means over replicates after each iteration, without CTA, which the paper leaves out too."""
    for name, run in runs.items():
        by_round: Any = run.rounds.groupby("round")[["transmissions", "train_mse"]]
        means, deviation = by_round.mean(), by_round.std(ddof=1).fillna(0)["train_mse"]
        begun = means["transmissions"] >= 1
        sent, error, deviation = means["transmissions"][begun], means["train_mse"][begun], deviation[begun]
        colour = COLOURS[ALGORITHMS.index(name)]
        axes.plot(sent, error, color=colour, label=name)
        axes.fill_between(sent, error - deviation, error + deviation, color=colour, alpha=0.2, linewidth=0)
    axes.set_xlabel("transmissions so far, all agents")
    axes.set_xscale("log")
