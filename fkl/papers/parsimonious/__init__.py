"""Peifer and Ribeiro, Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fkl.config.experiments import readings_tried
from fkl.data.ellipses import Ellipses, ellipse_labels
from fkl.papers.cells import CellAnswer, PublishedCell, add_answers, published_cells
from fkl.papers.our_runs import PaperRun, find_paper_runs, require_found
from fkl.report.colours import colour_of, look_of
from fkl.report.figures import draw_crosses, draw_sweep, panel_row, spread_over
from fkl.runs.finished_runs import FinishedRun
from fkl.runs.folder import MODEL
from fkl.runs.model import load_model
from fkl.statistics.intervals import student_interval

FEDERATED, CENTRALIZED = "PF", "PC"
MACHINES = ("SVM", "Cascade SVM")
LEARNERS = {FEDERATED: "federated", CENTRALIZED: "centralized"}
PAIRED = tuple(f"parsimonious/{name}" for name in ("agents", "communication", "samples", "sparsity"))
"""Experiments that run both learners on the paper's problem."""
TITLES = {
    "ellipses": "simulated ellipses, 9 agents",
    "wisdm_walk_jog": "walking and jogging",
    "wisdm_write_type": "typing and writing",
}
THEOREM = "theorem2"
PUBLISHED_PARTICIPANTS = 51
OVER_SIZE = {"ellipses": 25.0, "wisdm_walk_jog": 100.0, "wisdm_write_type": 150.0}
"""gamma of Figures 2, 3 and 4."""
OVER_GAMMA = 10
"""Number of participants in Figures 5 and 6."""
PLACES = 8
"""Number of points along each axis of the simulated space at which functions are compared."""


class Setting(NamedTuple):
    """Settings that both compared learners share.

    Attributes
    ----------
    dataset : str
    size : int
        Number of samples of the simulated set, or of participants of WISDM.
    gamma : float
    steps : int
    """

    dataset: str
    size: int
    gamma: float
    steps: int


Pair = dict[str, PaperRun]
"""Runs of a setting by learner."""


def table(number: str, runs: list[FinishedRun]) -> list[PublishedCell] | pd.DataFrame:
    """Published numbers with our answers, or a comparison of both learners.

    Spread and n are over replicates, each with its own split.
    """
    # Runs of both learners on the same splits
    pairs = _pair_runs(runs)
    require_found(pairs, "table", "parsimonious/sparsity")
    if number == "machines":
        return _machines_table(runs, pairs)
    if number == "learners":
        return pd.DataFrame([_compare_pair(setting, pair) for setting, pair in pairs.items()])
    return add_answers(
        published_cells("parsimonious", number), lambda cell: _cell_answers(cell, pairs), readings_tried("parsimonious")
    )


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper.

    Returns
    -------
    figure : Figure
    replicates : int or str
        Number of replicates in means and bands, or a description of the figure.
    """
    # Two figures need no pairs
    if number == "1":
        return _draw_space(), "the paper's classes, without noise"
    if number == THEOREM:
        return _apart_over_size(runs)
    # Pairs on the figure's data set, along gamma or along the size
    dataset = {"2": "ellipses", "3": "wisdm_walk_jog", "5": "wisdm_walk_jog"}.get(number, "wisdm_write_type")
    over_gamma = number in ("5", "6")
    pairs = {
        setting: pair
        for setting, pair in _pair_runs(runs).items()
        if setting.dataset == dataset and _on_curve(setting, over_gamma)
    }
    require_found(pairs, "figure")
    curve = {setting.gamma if over_gamma else float(setting.size): pair for setting, pair in pairs.items()}
    # One panel for accuracy, and for gamma two more
    values: dict[str, Callable[[FinishedRun], pd.Series[float]]]
    values = {"accuracy on test samples (%)": lambda run: 100 * _run_accuracy(run)}
    if over_gamma:
        values["nodes where alpha is not 0"] = lambda run: run.summary["active_nodes"]
        values["samples sent to the server"] = lambda run: run.summary["sent_samples"]
    figure, panels = panel_row(len(values))
    for axes, (label, value) in zip(panels, values.items(), strict=True):
        for name, words in LEARNERS.items():
            draw_sweep(axes, {at: value(pair[name].run) for at, pair in curve.items()}, words, look_of(name))
        axes.set_ylabel(label)
    # Over gamma, the paper prints shares of what the centralized learner gets
    if over_gamma:
        for axes in panels:
            axes.set_xlabel("sparsity parameter γ")
            axes.margins(y=0.1)
        if 0.0 in curve:  # the paper prints a share of the samples that the centralized learner gets
            everything = curve[0.0][CENTRALIZED].run.summary["sent_samples"].mean()
            costs = [cell.number for cell in _printed_cells(dataset, "communication_cost_vs_centralized")]
            costs += [100 - cell.number for cell in _printed_cells(dataset, "communication_reduction_vs_centralized")]
            points = [(0.0, cost / 100 * everything) for cost in costs]
            draw_crosses(panels[2], points, LEARNERS[FEDERATED], look_of(FEDERATED))
        panels[2].set_ylim(bottom=0)
        panels[1].set_title(f"{TITLES[dataset]}: {OVER_GAMMA} of the {PUBLISHED_PARTICIPANTS} participants")
    # Over sizes, the paper's value belongs to all of its participants
    else:
        (axes,), title = panels, TITLES[dataset]
        if dataset != "ellipses":
            most = max(setting.size for setting in pairs)
            title += f": {most} of the {PUBLISHED_PARTICIPANTS} participants are available"
            printed = _printed_cells(dataset, "accuracy")
            learners = {words: name for name, words in LEARNERS.items()}
            for cell in printed:
                look = look_of(learners[cell.algorithm])
                draw_crosses(axes, [(PUBLISHED_PARTICIPANTS, cell.number)], cell.algorithm, look)
            axes.set_xticks([*sorted(curve), *[PUBLISHED_PARTICIPANTS] * bool(printed)])
        axes.set_xlabel("training samples of all agents" if dataset == "ellipses" else "participants, each is an agent")
        axes.set_title(f"{title}\nγ = {OVER_SIZE[dataset]:g}", fontsize="medium")
    return figure, spread_over(one.run.replicates for pair in pairs.values() for one in pair.values())


def _compared_functions(runs: Iterable[FinishedRun]) -> dict[float, Pair]:
    """Runs of both learners with saved models, by the number of simulated samples."""
    by_size = {
        float(setting.size): pair
        for setting, pair in _pair_runs(runs).items()
        if setting.dataset == "ellipses"
        and _on_curve(setting, over_gamma=False)
        and all(MODEL in one.run.provenance["files"] for one in pair.values())
    }
    require_found(by_size, "figure", "parsimonious/samples")
    return by_size


def _distances(pair: Pair) -> pd.DataFrame:
    """|f_F - f_C| / |f_C| over the simulated space, and the same distance of alpha over all nodes, by replicate."""
    # Distance of the functions over a grid of places, and of alpha over all nodes
    low, high = Ellipses().subspace_corners()
    axes = np.linspace(low.min(axis=0), high.max(axis=0), PLACES).T
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    shares = []
    for learned in zip(*(load_model(pair[name].run.folder).learned for name in (FEDERATED, CENTRALIZED)), strict=True):
        functions: list[Any] = [one.function for one in learned]
        f = np.stack([one.sums(places)[0] for one in functions])
        # Both functions have different centres, so alpha needs all of them
        nodes, at = np.unique(np.concatenate([one.points @ (1, 1j) for one in functions]), return_inverse=True)
        alpha = np.zeros((2, len(nodes), functions[0].coefficients.shape[1]))  # times a weight that all nodes share
        for values, one, here in zip(alpha, functions, np.split(at, [len(functions[0].points)]), strict=True):
            np.add.at(values, here, one.coefficients[0].T)  # a centre occurs once per width
        shares.append([np.linalg.norm(two[0] - two[1]) / np.linalg.norm(two[1]) for two in (f, alpha)])
    return pd.DataFrame(shares, columns=["f", "α"])


def _apart_over_size(runs: Iterable[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw curves for Theorem 2, by which alpha_F - alpha_C goes to 0 as the number of samples grows."""
    # Distances by number of samples
    apart = {size: _distances(pair) for size, pair in _compared_functions(runs).items()}
    figure, panels = panel_row(2)
    for axes, name in zip(panels, ("f", "α"), strict=True):
        label = f"|{name} of PF − {name} of PC| / |{name} of PC|"
        draw_sweep(axes, {size: shares[name] for size, shares in apart.items()}, label, look_of(FEDERATED))
        axes.set_ylabel(f"relative distance of {name}")
        axes.set_xlabel("training samples of all agents")
        axes.set_ylim(bottom=0)
        axes.set_title(f"{TITLES['ellipses']}, γ = {OVER_SIZE['ellipses']:g}", fontsize="medium")
    return figure, spread_over(len(shares) for shares in apart.values())


def _gap_text(runs: list[FinishedRun]) -> str:
    """Text below the curves for Theorem 2, on both ends of the curves."""
    pairs = _compared_functions(runs)
    ends = []
    for size in dict.fromkeys((min(pairs), max(pairs))):
        f, alpha = 100 * _distances(pairs[size]).mean()
        ends.append(f"f differs by {f:.0f} % and alpha by {alpha:.0f} % with {size:g} samples")
    return f"The paper: alpha of both learners becomes equal with more samples. Here: {'; '.join(ends)}."


def _accuracy_claim(number: str, words: str) -> Callable[[list[FinishedRun]], str]:
    """Text below a figure of accuracies, on both learners at both ends of the curves."""

    def claim(runs: list[FinishedRun]) -> str:
        # Accuracies at the smallest and the largest size
        dataset = {"2": "ellipses"}.get(number, "wisdm_write_type")
        curve = {
            setting.size: pair
            for setting, pair in _pair_runs(runs).items()
            if setting.dataset == dataset and _on_curve(setting, over_gamma=False)
        }
        unit = "samples" if dataset == "ellipses" else "participants"
        ends = [
            f"{100 * _run_accuracy(curve[size][FEDERATED].run).mean():.1f} % federated and "
            f"{100 * _run_accuracy(curve[size][CENTRALIZED].run).mean():.1f} % centralized with {size} {unit}"
            for size in dict.fromkeys((min(curve), max(curve)))
        ]
        return f"The paper: {words}. Here: {'; '.join(ends)}."

    return claim


CLAIMS = {
    "1": lambda _: "The paper: this space. Here: drawn from the formulas of its text.",
    "2": _accuracy_claim(
        "2", "below 400 samples the federated learner is more accurate; with more samples the two converge"
    ),
    "4": _accuracy_claim("4", "the accuracy of both learners falls as the number of agents grows"),
    THEOREM: _gap_text,
}
"""For figures without published values: the paper's claims, and our results."""


def _on_curve(setting: Setting, over_gamma: bool) -> bool:
    if over_gamma:
        return setting.size == OVER_GAMMA
    return OVER_SIZE.get(setting.dataset) == setting.gamma


def _pair_runs(runs: Iterable[FinishedRun]) -> dict[Setting, Pair]:
    """Runs of both learners on the same splits, by setting and sorted."""
    # Both learners by setting; only pairs with the same splits
    by_setting: dict[Setting, Pair] = {}
    for our_run in find_paper_runs("parsimonious", runs, *PAIRED):
        dataset, algo, name = our_run.run.config["dataset"], our_run.run.config["algo"], _data_name(our_run)
        size = int(dataset["rows"] if name == "ellipses" else dataset["participants"])
        setting = Setting(name, size, float(algo["gamma"]), int(algo["steps"]))
        by_setting.setdefault(setting, {})[our_run.run.algorithm] = our_run
    return {
        setting: pair
        for setting, pair in sorted(by_setting.items())
        if len(pair) == 2 and _same_splits(*(our_run.run for our_run in pair.values()))
    }


def _same_splits(one: FinishedRun, other: FinishedRun) -> bool:
    return all(one.config[key] == other.config[key] for key in ("seed", "dataset", "replicates"))


def _data_name(one: PaperRun) -> str:
    """Name of the data set, or of the activities that are classified."""
    return str(one.job.cell["data"])


def _compare_pair(setting: Setting, pair: Pair) -> dict[str, object]:
    """Means of both learners on the same splits, and their mean paired difference with Student's 95 % interval."""
    # Differences are paired by split
    federated, centralized = pair[FEDERATED].run.summary, pair[CENTRALIZED].run.summary
    accuracy = {name: 100 * _run_accuracy(one.run) for name, one in pair.items()}
    difference = accuracy[FEDERATED] - accuracy[CENTRALIZED]
    low, high = student_interval(difference.to_numpy(float))
    return {
        **setting._asdict(),
        "accuracy_federated_percent": accuracy[FEDERATED].mean(),
        "accuracy_centralized_percent": accuracy[CENTRALIZED].mean(),
        "difference_points": difference.mean(),
        "interval_95_low": low,
        "interval_95_high": high,
        "sent_percent": _sent_percent(pair).mean(),
        "gap_agents": federated["agents_gap"].mean(),
        "gap_federated": federated["gap"].mean(),
        "gap_centralized": centralized["gap"].mean(),
        "violation_federated": federated["violation"].mean(),
        "violation_centralized": centralized["violation"].mean(),
        "nodes_federated": federated["active_nodes"].mean(),
        "nodes_centralized": centralized["active_nodes"].mean(),
        "peaks_federated": federated["peaks"].mean(),
        "peaks_centralized": centralized["peaks"].mean(),
        "n": len(difference),
    }


def _cell_answers(cell: PublishedCell, pairs: dict[Setting, Pair]) -> list[CellAnswer]:
    """Our answers, with ten participants, or with all available ones if the paper has all 51."""
    # Accuracy with the available participants, which are fewer than the paper's
    mine = {setting: pair for setting, pair in pairs.items() if setting.dataset == cell.dataset}
    if cell.metric == "accuracy":
        curve = {setting.size: pair for setting, pair in mine.items() if _on_curve(setting, over_gamma=False)}
        if not curve:
            return []
        most = max(curve)
        learner = {words: name for name, words in LEARNERS.items()}[cell.algorithm]
        our_run = curve[most][learner]
        # The participants are other and fewer than in the paper, so the answer is shown but not evidence.
        switch = f"{most} participants available; {our_run.switch}"
        return [replace(our_run.answer_cell(100 * _run_accuracy(our_run.run)), switch=switch, reading="")]
    # Communication at gamma = 0, as a share of the centralized learner's samples
    matching = {setting: pair for setting, pair in mine.items() if (setting.size, setting.gamma) == (OVER_GAMMA, 0)}
    answers = []
    for pair in matching.values():
        share = _sent_percent(pair)
        values = share if cell.metric == "communication_cost_vs_centralized" else 100 - share
        answers.append(pair[FEDERATED].answer_cell(values))
    return answers


def _machines_table(runs: list[FinishedRun], pairs: dict[Setting, Pair]) -> pd.DataFrame:
    """Accuracy and sent samples of all four methods on WISDM; each of n replicates has its own split."""
    # Rows of the support vector machines, then of both learners
    machines = find_paper_runs("parsimonious", runs, "parsimonious/machines")
    rows = []
    for one in machines:
        sent, participants = one.run.summary["sent_samples"], one.run.config["dataset"]["participants"]
        # Total number of samples, from the pooled machine's run on the same splits; NaN without such a run
        pooled = [
            other.run for other in machines if other.run.algorithm == MACHINES[0] and _same_splits(one.run, other.run)
        ]
        everything = pooled[-1].summary["sent_samples"] if pooled else sent * np.nan
        rows.append(_machine_row(_data_name(one), participants, one.run, everything))
    for setting, pair in pairs.items():
        if setting.dataset != "ellipses":
            for one in pair.values():
                everything = pair[CENTRALIZED].run.summary["sent_samples"]
                rows.append(
                    {**_machine_row(setting.dataset, setting.size, one.run, everything), "gamma": setting.gamma}
                )
    require_found(rows, "table", "parsimonious/machines")
    return pd.DataFrame(rows).sort_values(["dataset", "participants", "algorithm"], kind="stable")


def _machine_row(
    dataset: str, participants: int, run: FinishedRun, everything: "pd.Series[float]"
) -> dict[str, object]:
    accuracy, sent = 100 * _run_accuracy(run), run.summary["sent_samples"]
    return {
        "dataset": dataset,
        "participants": participants,
        "algorithm": run.algorithm,
        "accuracy_percent": accuracy.mean(),
        "spread": accuracy.std(ddof=1),
        "sent_percent": (100 * sent / everything).mean(),
        "n": len(accuracy),
    }


def _run_accuracy(run: FinishedRun) -> "pd.Series[float]":
    return 1 - run.summary["test_error"]


def _sent_percent(pair: Pair) -> "pd.Series[float]":
    """Samples that the federated learner's agents send, in per cent of the centralized learner's, by replicate."""
    return 100 * pair[FEDERATED].run.summary["sent_samples"] / pair[CENTRALIZED].run.summary["sent_samples"]


def _printed_cells(dataset: str, metric: str) -> list[PublishedCell]:
    return [
        cell for cell in published_cells("parsimonious", "text") if (cell.dataset, cell.metric) == (dataset, metric)
    ]


def _draw_space() -> Figure:
    """Draw the classes, and the subspaces of the nine agents."""
    figure, (axes,) = panel_row(1)
    # The border between the classes, by values on a grid
    data = Ellipses()
    low, high = data.subspace_corners()
    side = np.stack(np.meshgrid(*np.linspace(low.min(axis=0), high.max(axis=0), 400).T, indexing="ij"), axis=-1)
    inside = ellipse_labels(side.reshape(-1, 2)).reshape(side.shape[:2]) > 0
    axes.contour(side[..., 0], side[..., 1], inside, levels=[0.5], colors=[colour_of(6)])
    axes.plot([], [], color=colour_of(6), label="border of class 1, which lies inside")
    # Each agent's subspace
    for number, (corner, opposite) in enumerate(zip(low, high, strict=True)):
        x, y = [corner[0], opposite[0], opposite[0], corner[0]], [corner[1], corner[1], opposite[1], opposite[1]]
        label = "an agent's subspace; darker parts belong to several agents" if number == 0 else None
        axes.fill(x, y, color=colour_of(number), alpha=0.3, linewidth=0, label=label)
    axes.set_xlabel("x₁")
    axes.set_ylabel("x₂")
    axes.set_aspect("equal")
    return figure
