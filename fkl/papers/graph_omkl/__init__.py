"""Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023)."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.errors import FklError
from fkl.papers.beside import AS_PUBLISHED, AS_STATED, EVIDENCE, Answer, Cell, beside, following, newest, published
from fkl.report.figures import COLOURS, band, canvas
from fkl.results.collect import FinishedRun

TITLE = "Graph-aided OMKL (Ghari and Shen 2023)"
TABLES = {
    "1": "mean squared error",
    "2": "run time",
    "3": "OMKL-GF with the number of kernels a node draws",
    "4": "OMKL-SFG with the number of kernels a node points to",
    "5": "OMKL-SFG-R with the number of kernels a node points to",
}
FIGURES = {
    "3": "mean squared error against M",
    "4": "run time against M",
    "5": "mean squared error over rounds",
    "6": "regret over rounds",
}
READINGS = ("readings", "switches")
"""Experiments that no published number waits for: what differences.md tells of other readings."""
ROUNDS = {"airfoil": 1503, "bias": None, "concrete": 1030, "naval": 11934}
PROTOCOL = {
    "eta": 0.1, "lam": 1e-3, "J": 2, "exploring": 300, "rank": 10,
}  # fmt: skip
REPLICATES = 20
"""Sets of random features; methods without any draw nothing and are run once."""
VARIANTS = {
    AS_PUBLISHED: "OMKL-GF, SFG and SFG-R draw the right neighbour of what should be drawn and divide by a floor at "
    "least; SFG and SFG-R have the degenerate graph of the kernels of lowest index, SFG takes its first node after "
    "300 rounds and SFG-R goes on drawing; RFOMKR's weights are not divided by their sum "
    "(+experiment=graph_omkl/as_published and features_as_published)",
}
KERNELS = ("family", "N", "laplacians", "smallest", "largest")
DICTIONARIES = {"RBF-1": ("rbf", 1, 0, 1.0, 1.0), "POLY-2": ("polynomial", 1, 0, 2.0, 2.0)}
FULL = ("rbf", 76, 25, 0.01, 100.0)
FIRST_ROUND = 10  # in figures over rounds: the mean of fewer says nothing and spoils the scale
GRAPH_AIDED = ("OMKL-GF", "OMKL-SFG", "OMKL-SFG-R")
FILES: dict[str, dict[str, Any]] = {
    "bias": {"summary_rows": True, "missing": "mean"},
    "concrete": {"decimals": 2},
    "naval": {"decay": True},
}
"""The data as the authors had them, whatever the method."""
_SFG = {"graph": "similarity", "settle": "best", "draw": "exact", "q_floor": 0, "p_floor": 0, "divide_by": "drawn"}
_SFG_PUBLISHED = _SFG | {"graph": "lowest", "draw": "next", "q_floor": 0.1, "p_floor": 0.2}
STATED: dict[str, dict[str, Any]] = {
    "RFOMKR": {"normalised": True},
    "OMKL-GF": {"draw": "exact", "q_floor": 0, "divide_by": "drawn"},
    "OMKL-SFG": _SFG,
    "OMKL-SFG-R": _SFG,
}
"""The text, of methods that the published numbers read in another way."""
PUBLISHED: dict[str, dict[str, Any]] = {
    "RFOMKR": {"normalised": False},
    "OMKL-GF": {"draw": "next", "q_floor": 0.05, "divide_by": "drawn"},
    "OMKL-SFG": _SFG_PUBLISHED | {"settle": "first"},
    "OMKL-SFG-R": _SFG_PUBLISHED | {"settle": "never"},
}
ORDER = (AS_STATED, AS_PUBLISHED, "")


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
    by_cell = newest(following(runs, _follows_protocol), _key, switch)
    if not by_cell:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=graph_omkl/exact")

    def answers(cell: Cell) -> list[Answer]:
        key = cell["dataset"], cell["algorithm"], cell["setting"]
        ours = [run for (of, _), run in by_cell.items() if of == key]
        return [_answer(cell["metric"], run) for run in sorted(ours, key=lambda run: ORDER.index(_reading(run)))]

    return beside(published(__file__, number), answers).drop(columns=EVIDENCE)


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int]:
    """Draw a figure of the paper, one panel a data set.

    Parameters
    ----------
    number : {"3", "4", "5", "6"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int
        The most that a curve is over; methods that draw nothing have one.
    """
    chosen = newest((run for run in following(runs, _follows_protocol) if _drawn(run)), _key, switch)
    by_key = {key: run for (key, _), run in chosen.items()}
    draw: Callable[[Axes, str, dict[Any, FinishedRun]], None]
    draw = {"3": _errors_over_m, "4": _times_over_m, "5": _errors_over_rounds, "6": _regrets_over_rounds}[number]
    shown = [name for name in ROUNDS if any(key[0] == name for key in by_key)]
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
    return figure, max(run.replicates for run in by_key.values())


def switch(run: FinishedRun) -> str:
    """Tell how a run reads the protocol where it can be read in more than one way, as key=value pairs."""
    found = {f"dataset.{key}": run.config["dataset"].get(key) for key in FILES.get(run.dataset, {})}
    found |= {f"algo.{key}": run.config["algo"].get(key) for key in STATED.get(run.algorithm, {})}
    if run.algorithm not in DICTIONARIES:
        found["kernels.bandwidth_is"] = run.config["kernels"]["bandwidth_is"]
    words = {key: json.dumps(value).strip('"') for key, value in found.items()}
    return "; ".join(f"{key}={word}" for key, word in words.items())


def _reading(run: FinishedRun) -> str:
    """Whether the method is as the text has it, or as the published numbers need it; on the authors' data."""
    exact = run.algorithm in ("OMKR", "RBF-1")
    bandwidth = run.config["kernels"]["bandwidth_is"] == ("divisor" if exact else "variance")
    if not (bandwidth and _are(run.config["dataset"], FILES.get(run.dataset, {}))):
        return ""
    if _are(run.config["algo"], STATED.get(run.algorithm, {})):
        return AS_STATED
    return AS_PUBLISHED if _are(run.config["algo"], PUBLISHED[run.algorithm]) else ""


def _are(node: dict[str, Any], values: dict[str, Any]) -> bool:
    return all(node.get(key) == value for key, value in values.items())


def _drawn(run: FinishedRun) -> bool:
    """Whether it is one of the paper's curves: those of the variant, where there is one."""
    return _reading(run) == (AS_PUBLISHED if run.algorithm in PUBLISHED else AS_STATED)


def _follows_protocol(run: FinishedRun) -> bool:
    """Whether everything but the switches is as the paper's experiment."""
    if run.dataset not in ROUNDS or run.provenance["clients"] != 1:
        return False
    algo, kernels = run.config["algo"], run.config["kernels"]
    return (
        ROUNDS[run.dataset] in (None, run.provenance["rounds"])
        and run.provenance["rows_left_out"] == 0
        and run.config["partition"].get("order") == "consecutive"
        and all(algo[key] == value for key, value in PROTOCOL.items() if key in algo)
        and tuple(kernels[key] for key in KERNELS) == DICTIONARIES.get(run.algorithm, FULL)
        and (kernels["D"] == 50 or run.algorithm in DICTIONARIES)
        and kernels["map"] == "pairs"
        and not (kernels["shared"] or kernels["orthogonal"])
    )


def _key(run: FinishedRun) -> tuple[str, str, str]:
    """Name a run as the tables do: data set, algorithm, setting."""
    return run.dataset, run.algorithm, f"M={run.config['algo']['M']}" if run.algorithm in GRAPH_AIDED else ""


def _answer(metric: str, run: FinishedRun) -> Answer:
    replicates = 1 if run.algorithm in ("OMKR", "RBF-1", "POLY-2") else REPLICATES
    values = run.summary["runtime_s" if metric == "runtime" else "mse"]
    answer = Answer.of(switch(run), values, _reading(run), replicates)
    answer = replace(answer, values=())  # the paper prints means
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
    _over_rounds(axes, dataset, runs, ("OMKR", "Raker", *GRAPH_AIDED), "mse")


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
