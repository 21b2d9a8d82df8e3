"""Peifer and Ribeiro, Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.data.ellipses import Ellipses, labels
from fkl.errors import FklError
from fkl.papers.beside import COLUMNS, Answer, Cell, beside, newest, published
from fkl.report.figures import COLOURS, canvas
from fkl.results.collect import FinishedRun

TITLE = "Parsimonious functions (Peifer and Ribeiro)"
TABLES = {
    "text": "numbers that the text gives",
    "learners": "both learners beside each other, every setting that was run",
}
FIGURES = {
    "1": "the simulated space",
    "2": "accuracy over the number of simulated samples",
    "3": "accuracy over the number of participants, walking and jogging",
    "4": "accuracy over the number of participants, typing and writing",
    "5": "accuracy, kernels and communication over gamma, walking and jogging",
    "6": "accuracy, kernels and communication over gamma, typing and writing",
}
FEDERATED, CENTRALIZED = "PF", "PC"
LEARNERS = {FEDERATED: "federated", CENTRALIZED: "centralized"}
PAIRS = {("walking", "jogging"): "wisdm_walk_jog", ("typing", "writing"): "wisdm_write_type"}
PARTICIPANTS = 10  # of Figures 5 and 6
PROTOCOL: dict[str, set[Any]] = {"steps": {500, 1000}, "fold": {None}, "test_share": {0.3}}
QUANTILE = 1.96  # of a 95 % interval of a mean

Setting = tuple[str, int, float]
"""Data set, samples of the simulated one or participants, and gamma."""


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Published numbers beside ours, or both learners beside each other.

    Parameters
    ----------
    number : {"text", "learners"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Spread and n: over replicates, each with a split of its own.
    """
    by_setting = _settings(runs)
    if not by_setting:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=parsimonious/sparsity")
    if number == "learners":
        return pd.DataFrame([_compared(setting, pair) for setting, pair in by_setting.items() if len(pair) == 2])
    return beside(published(__file__, number), lambda cell: _answers(cell, by_setting))[COLUMNS]


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int]:
    """Draw a figure of the paper.

    Parameters
    ----------
    number : {"1", "2", "3", "4", "5", "6"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int
    """
    if number == "1":
        return _space(), 1
    by_setting = _settings(runs)
    dataset = {"2": "ellipses", "3": "wisdm_walk_jog", "5": "wisdm_walk_jog"}.get(number, "wisdm_write_type")
    over_gamma = number in ("5", "6")
    mine = {setting: pair for setting, pair in sorted(by_setting.items()) if setting[0] == dataset and len(pair) == 2}
    gammas = {setting[2] for setting in mine if setting[1] == PARTICIPANTS}
    if not over_gamma:  # the gamma of the curve is the one that other sizes were run with
        sizes = {setting[2]: {other[1] for other in mine if other[2] == setting[2]} for setting in mine}
        gammas = {gamma for gamma, found in sizes.items() if len(found) > 1}
    curve = {
        (setting[2] if over_gamma else float(setting[1])): pair
        for setting, pair in mine.items()
        if setting[2] in gammas and (setting[1] == PARTICIPANTS or not over_gamma)
    }
    if not curve:
        raise FklError("figure: no finished run belongs to it; see `fkl list` for the paper's experiments")
    replicates = max(run.replicates for pair in curve.values() for run in pair.values())
    return (_over_gamma if over_gamma else _over_size)(dataset, curve), replicates


def switch(run: FinishedRun) -> str:
    """Tell what the paper leaves open, as key=value pairs."""
    algo = run.config["algo"]
    return f"algo.rule={algo['rule']}; algo.steps={algo['steps']}"


def _settings(runs: Iterable[FinishedRun]) -> dict[Setting, dict[str, FinishedRun]]:
    """Both learners' runs of each setting, with the rule that is shown."""
    chosen = newest((run for run in runs if _shown(run)), _key, lambda run: str(_setting(run)))
    by_setting: dict[Setting, dict[str, FinishedRun]] = {}
    for run in chosen.values():
        by_setting.setdefault(_setting(run), {})[run.algorithm] = run
    return by_setting


def _shown(run: FinishedRun) -> bool:
    algo = run.config["algo"]
    follows = run.algorithm in LEARNERS and all(algo[key] in allowed for key, allowed in PROTOCOL.items())
    return follows and algo["rule"] == "ascent" and run.config["scaling"] == "none" and _dataset(run) is not None


def _dataset(run: FinishedRun) -> str | None:
    if run.dataset == "ellipses":
        return "ellipses"
    chosen = run.config["dataset"].get("activity"), run.config["dataset"].get("against")
    return PAIRS.get(chosen)  # type: ignore[arg-type]


def _setting(run: FinishedRun) -> Setting:
    size = run.config["dataset"]["rows"] if run.dataset == "ellipses" else run.provenance["clients"]
    return str(_dataset(run)), int(size), float(run.config["algo"]["gamma"])


def _key(run: FinishedRun) -> tuple[str, str, str]:
    return str(_dataset(run)), run.algorithm, ""


def _compared(setting: Setting, pair: dict[str, FinishedRun]) -> dict[str, object]:
    """Both learners on the same splits: means, and the mean difference with its 95 % interval."""
    federated, centralized = pair[FEDERATED].summary, pair[CENTRALIZED].summary
    accuracy = [100 * (1 - of["test_error"]) for of in (federated, centralized)]
    difference = accuracy[0] - accuracy[1]
    half = QUANTILE * difference.std(ddof=1) / np.sqrt(len(difference))
    return {
        "dataset": setting[0],
        "size": setting[1],
        "gamma": setting[2],
        "accuracy_federated_percent": accuracy[0].mean(),
        "accuracy_centralized_percent": accuracy[1].mean(),
        "difference_points": difference.mean(),
        "interval_95_percent": f"{difference.mean() - half:.2f} to {difference.mean() + half:.2f}",
        "sent_percent": 100 * (federated["sent_samples"] / centralized["sent_samples"]).mean(),
        "nodes_federated": federated["active_nodes"].mean(),
        "nodes_centralized": centralized["active_nodes"].mean(),
        "peaks_federated": federated["peaks"].mean(),
        "peaks_centralized": centralized["peaks"].mean(),
        "n": len(difference),
        "switch": switch(pair[FEDERATED]),
    }


def _answers(cell: Cell, by_setting: dict[Setting, dict[str, FinishedRun]]) -> list[Answer]:
    """Our answer with ten participants, or with as many as there are where the paper has all 51."""
    mine = {setting: pair for setting, pair in by_setting.items() if setting[0] == cell["dataset"] and len(pair) == 2}
    if cell["metric"] == "accuracy":
        most = max((setting[1] for setting in mine), default=0)
        found = [pair for setting, pair in mine.items() if setting[1] == most and setting[2] > 0]
        learner = {words: name for name, words in LEARNERS.items()}[cell["algorithm"]]
        return [
            Answer.of(f"{most} participants at hand; {switch(pair[learner])}", 100 * _accuracy(pair[learner]))
            for pair in found
        ]
    pairs = [pair for setting, pair in mine.items() if setting[1:] == (PARTICIPANTS, 0.0)]
    answers = []
    for pair in pairs:
        share = 100 * pair[FEDERATED].summary["sent_samples"] / pair[CENTRALIZED].summary["sent_samples"]
        values = share if cell["metric"] == "communication_cost_vs_centralized" else 100 - share
        answers.append(Answer.of(switch(pair[FEDERATED]), values))
    return answers


def _accuracy(run: FinishedRun) -> "pd.Series[float]":
    return 1 - run.summary["test_error"]


def _curves(
    axes: Axes, curve: dict[float, dict[str, FinishedRun]], value: Callable[[FinishedRun], "pd.Series[float]"]
) -> None:
    """Mean of both learners with a band of one standard deviation."""
    x = sorted(curve)
    for colour, (name, words) in enumerate(LEARNERS.items()):
        values = [value(curve[at][name]) for at in x]
        mean = np.array([one.mean() for one in values])
        deviation = np.array([one.std(ddof=1) for one in values])
        axes.plot(x, mean, "o-", color=COLOURS[colour], label=words)
        axes.fill_between(x, mean - deviation, mean + deviation, color=COLOURS[colour], alpha=0.2, linewidth=0)


def _over_size(dataset: str, curve: dict[float, dict[str, FinishedRun]]) -> Figure:
    figure, (axes,) = canvas(1)
    _curves(axes, curve, _accuracy)
    axes.set_ylabel("accuracy on test samples")
    axes.set_xlabel("training samples of all agents" if dataset == "ellipses" else "participants, an agent each")
    most = int(max(curve))
    axes.set_title(dataset if dataset == "ellipses" else f"{dataset}, {most} of the paper's 51 participants")
    return figure


def _over_gamma(dataset: str, curve: dict[float, dict[str, FinishedRun]]) -> Figure:
    figure, panels = canvas(3)
    figures: tuple[tuple[str, Callable[[FinishedRun], pd.Series[float]]], ...] = (
        ("accuracy on test samples", _accuracy),
        ("nodes where alpha is not 0", lambda run: run.summary["active_nodes"]),
        ("samples sent", lambda run: run.summary["sent_samples"]),
    )
    for axes, (words, value) in zip(panels, figures, strict=True):
        _curves(axes, curve, value)
        axes.set_ylabel(words)
        axes.set_xlabel("sparsity parameter gamma")
    panels[1].set_title(f"{dataset}, {PARTICIPANTS} participants")
    return figure


def _space() -> Figure:
    """The classes, and the subspaces of the nine agents."""
    figure, (axes,) = canvas(1)
    data = Ellipses()
    low, high = data.subspaces()
    side = np.stack(np.meshgrid(*np.linspace(low.min(axis=0), high.max(axis=0), 400).T, indexing="ij"), axis=-1)
    inside = labels(side.reshape(-1, 2)).reshape(side.shape[:2]) > 0
    axes.contourf(side[..., 0], side[..., 1], inside, levels=[0.5, 1.5], colors=[COLOURS[4]], alpha=0.5)
    axes.plot([], [], "s", color=COLOURS[4], alpha=0.5, label="class 1")
    for number, (corner, opposite) in enumerate(zip(low, high, strict=True)):
        x, y = [corner[0], opposite[0], opposite[0], corner[0], corner[0]], [*[corner[1]] * 2, *[opposite[1]] * 2]
        label = "subspaces of the agents" if number == 0 else None
        axes.plot(x, [*y, corner[1]], color=COLOURS[number % 2], linewidth=1, label=label)
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")
    axes.set_aspect("equal")
    return figure
