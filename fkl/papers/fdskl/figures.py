"""Draw Figures 3 to 6."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import product
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.algorithms.vertical.sums import STRUCTURES, seconds_of_sum
from fkl.network.settings import CostModel
from fkl.papers.fdskl.chosen import DATASETS, SHARE, SYSTEMS, Key, training_samples
from fkl.papers.fdskl.errors import svmv_refusal
from fkl.papers.our_runs import dataset_panels, require_found
from fkl.report.colours import colour_of, look_of
from fkl.report.figures import HIGH, LOW, draw_curve, mean_and_spread, panel_row, spread_over
from fkl.runs.finished_runs import FinishedRun

COLUMNS, BOXES_ACROSS = 4, 3
SUMMED = ("phishing", "a9a", "ijcnn1", "cod_rna")
"""Data sets of Figure 4, with cod_rna instead of the paper's gisette, which fkl does not have."""
SCALED = ("phishing", "a9a", "cod_rna", "w8a")
"""Data sets of Figure 5."""
WORKERS = (2, 4, 8, 16, 32, 64)
MOST_SAMPLES = 1 << 17
"""Largest number of samples in the search for the smallest number that PP-SVMV refuses."""

Drawn = tuple[Figure, int | str]


def over_time(by_key: dict[Key, FinishedRun]) -> Drawn:
    """Figure 3: errors of all systems over compute time, and over compute time plus the cost model's links."""
    shown = [name for name in DATASETS if any(key[0] == name for key in by_key)]
    require_found(shown, "figure", "fdskl/kernel")
    figure, panels = panel_row(2 * len(shown), across=COLUMNS)
    drawn: list[int] = []
    # Two panels per data set: compute time, and time with links
    for column, dataset in enumerate(shown):
        runs = most_samples(dataset, by_key)
        drawn += [run.replicates for run in runs.values()]
        for row, links in enumerate((False, True)):
            axes = panels[2 * column + row]
            # A curve of rounds, or a point of one model
            for system, run in runs.items():
                if run.provenance["rounds"] > 1:
                    # Mean error after each round, over the mean time until then
                    frame = run.rounds.assign(
                        seconds=training_seconds(run.rounds, links), percent=100 * run.rounds["test_error"]
                    )
                    by_round: Any = frame.groupby("round")[["seconds", "percent"]]
                    x, y = by_round.mean()["seconds"].to_numpy(), by_round.mean()["percent"].to_numpy()
                    low, high = (by_round.quantile(one)["percent"].to_numpy() for one in (LOW, HIGH))
                    draw_curve(axes, x, y, (low, high), system, look_of(system))
                else:  # a method that makes one model, at the end
                    seconds, percent = training_seconds(run.summary, links), 100 * run.summary["test_error"]
                    _plot_with_bars(axes, [seconds.mean()], [percent], look_of(system).marker, system, system)
            axes.set_xscale("log")
            axes.set_title(dataset + (", with links" if links else ""))
            axes.set_xlabel("training time (s), compute" + (" and links" if links else ""))
        # Both panels of a data set have one scale
        ends = [axes.get_ylim() for axes in panels[2 * column : 2 * column + 2]]
        for axes in panels[2 * column : 2 * column + 2]:
            axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
        panels[2 * column].set_ylabel("test error (%)")
    return figure, spread_over(drawn)


def draw_sum_times(by_key: dict[Key, FinishedRun]) -> Drawn:
    """Figure 4: time to sum the matrices of all training samples, by the runs' cost model."""
    # The matrices of all training samples, whose size the cost model needs
    full = {key[0]: run for key, run in by_key.items() if key[2] == SHARE}
    shown = [name for name in SUMMED if name in full]
    require_found(shown, "figure", "fdskl/kernel")
    figure, panels = panel_row(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        network = full[dataset].config["network"]
        cost = CostModel(network["latency_s"], network["bandwidth_bytes_per_s"])
        size = 8.0 * training_samples(full[dataset]) ** 2
        # Time by number of workers, for a tree, a ring and a star
        for structure in STRUCTURES:
            _sum_curve(axes, structure, WORKERS, [seconds_of_sum(structure, count, size, cost) for count in WORKERS])
        axes.set_title(f"{dataset}: {training_samples(full[dataset])} x {training_samples(full[dataset])}")
    panels[0].set_ylabel("time to sum the matrices (s)")
    return (
        figure,
        f"cost model: {1e3 * cost.latency_s:g} ms a message, {cost.bandwidth_bytes_per_s / 1e6:g} MB/s a link",
    )


def over_samples(by_key: dict[Key, FinishedRun]) -> Drawn:
    """Figure 5: training time over the number of samples, with and without the cost model's links."""
    systems = ("FDSKL", "PP-SVMV")
    datasets = {dataset for dataset, system, _ in by_key if system in systems}
    figure, panels = dataset_panels(SCALED, datasets, "fdskl/kernel")
    # Smallest number of training samples that PP-SVMV refuses
    limit = bisect_left(range(MOST_SAMPLES), True, lo=1, key=lambda count: svmv_refusal(count) is not None)
    # Both systems, with and without links
    for dataset, axes in panels.items():
        for system, links in product(systems, (False, True)):
            runs = sorted((run for key, run in by_key.items() if key[:2] == (dataset, system)), key=training_samples)
            if not runs:
                continue
            times = [training_seconds(run.summary, links) for run in runs]
            label = f"{system}, compute" + (" and links" if links else "")
            _plot_with_bars(
                axes, [training_samples(run) for run in runs], times, "^--" if links else "o-", label, system
            )
        # Shade the sizes that PP-SVMV refuses
        largest = max(training_samples(run) for key, run in by_key.items() if key[0] == dataset)
        if largest >= limit:
            axes.axvspan(
                limit, largest, color=look_of("PP-SVMV").colour, alpha=0.12, linewidth=0, label="PP-SVMV refuses"
            )
        axes.set_yscale("log")
        axes.set_xlabel("training samples")
    panels[next(iter(panels))].set_ylabel("training time (s)")
    return figure, f"mean, and from {100 * LOW:.0f} % to {100 * HIGH:.0f} % of the splits of each point"


def draw_error_boxes(by_key: dict[Key, FinishedRun]) -> Drawn:
    """Figure 6: test errors as boxes, with whiskers of at most 1.5 times the quartiles' distance, and as points."""
    shown = [name for name in DATASETS if any(key[0] == name for key in by_key)]
    require_found(shown, "figure", "fdskl/kernel")
    figure, panels = panel_row(len(shown), across=BOXES_ACROSS)
    splits = set()
    # A row of boxes per system, with a point for each split
    for axes, dataset in zip(panels, shown, strict=False):
        runs = most_samples(dataset, by_key)
        splits |= {run.replicates for run in runs.values()}
        for place, (system, run) in enumerate(runs.items()):
            values, colour = 100 * run.summary["test_error"], look_of(system).colour
            drawn = axes.boxplot(
                [values], positions=[place], widths=0.6, patch_artist=True, showfliers=False, orientation="horizontal"
            )
            for box in drawn["boxes"]:
                box.set(facecolor=colour, alpha=0.4)
            for line in drawn["medians"]:
                line.set(color=matplotlib.rcParams["text.color"])
            axes.plot(values, [place] * len(values), "o", color=colour, markersize=3, label=system)
        labels = [f"{system}: {training_samples(run):,}" for system, run in runs.items()]
        axes.set_yticks(range(len(runs)), labels)
        axes.invert_yaxis()
        axes.set_title(dataset)
        axes.set_xlabel("test error (%)")
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel("system: training samples")
    number = " to ".join(map(str, dict.fromkeys((min(splits), max(splits)))))
    return figure, f"one point per split, {number} splits; quartiles, whiskers to 1.5 times their distance"


def most_samples(dataset: str, by_key: dict[Key, FinishedRun]) -> dict[str, FinishedRun]:
    """Each system's run on the most training samples."""
    runs: dict[str, FinishedRun] = {}
    for system in SYSTEMS:
        shares = [key[2] for key in by_key if key[:2] == (dataset, system)]
        if shares:
            runs[system] = by_key[dataset, system, min(shares)]
    return runs


def training_seconds(frame: pd.DataFrame, links: bool) -> "pd.Series[float]":
    """Seconds of compute time, optionally plus the cost model's time of the links."""
    return frame["runtime_s"] + frame["communication_s"] if links else frame["runtime_s"]


def _sum_curve(axes: Axes, structure: str, workers: Sequence[int], seconds: list[float]) -> None:
    number = list(STRUCTURES).index(structure)
    size, style = (5, 9, 5)[number], ("-", "-", "--")[number]  # a star and a ring may coincide
    axes.plot(
        workers,
        seconds,
        style,
        marker="os^"[number],
        markersize=size,
        fillstyle="none" if structure == "ring" else "full",
        color=colour_of(number),
        label=structure,
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(workers, [str(count) for count in workers])
    axes.set_yscale("log")
    axes.set_xlabel("workers")


def _plot_with_bars(
    axes: Axes, x: Sequence[float], values: "Sequence[pd.Series[float]]", style: str, label: str, system: str
) -> None:
    """Plot means, each with the quantiles over its splits."""
    means, ends = zip(*map(mean_and_spread, values), strict=True)
    axes.plot(x, means, style, color=look_of(system).colour, label=label)
    axes.errorbar(x, means, np.hstack(ends), fmt="none", ecolor=look_of(system).colour, capsize=3)
