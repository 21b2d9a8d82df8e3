"""Figures of a comparison: curves with bands, error against bytes with its Pareto front, and critical differences."""

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, TypeVar

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.report.colours import MethodLook, looks_of
from fkl.report.compare import pairs
from fkl.report.compare.cells import CellPosition, ComparedCells
from fkl.report.compare.courses import pareto_front, traffic_columns
from fkl.report.compare.pivot import Pivot
from fkl.report.figures import Bytes, draw_baseline, draw_curve, panel_row, render_figure, share_costs, style_figures
from fkl.runs.metrics import WORDS
from fkl.statistics.intervals import CONFIDENCE, half_width

MOST_METHODS, MOST_PANELS, ACROSS = 12, 6, 3
"""Maximum number of methods and data sets in a figure, and of panels in a row."""
AXES = {
    "rounds": "round",
    "scalars": "scalars sent so far, per client",
    "bytes": "sent so far, per client",
    "seconds": "computing so far, s",
}
EVENLY = "\n(evenly over the rounds)"
"""Note about seconds if the rounds have none."""
AT_THE_END = "sent in total, per client"

Course = Callable[[CellPosition], pd.DataFrame]
Name = TypeVar("Name", bound=Hashable)
Made = TypeVar("Made")
_work: dict[Any, Callable[[], Any]] = {}
"""Functions of a forked copy of this process, by name."""


def draw_comparison(
    pivot: Pivot, cells: ComparedCells, ranks: pd.DataFrame, course: Course, dark: bool = False, style: str = "screen"
) -> dict[str, dict[str, bytes]]:
    """All figures of a comparison by name, each as PNG and PDF.

    Parameters
    ----------
    pivot, cells, ranks, course : see `fkl.report.compare.Comparison`
    dark : bool
        Whether the background is dark, for example for slides.
    style : {"screen", "paper", "column"}
    """
    # Each figure in a process of its own, where that is safe
    with style_figures(style, dark):
        drawn = in_forks(_figures_by_name(pivot, cells, ranks, course))
        return {name: files for name, files in drawn.items() if files is not None}


def _draw_front(axes: Axes, cost: NDArray[np.float64], error: NDArray[np.float64]) -> None:
    """Draw the Pareto front of some points as steps behind them."""
    on_front = pareto_front(cost, error)
    stairs = sorted(zip([*cost[on_front], cost.max()], [*error[on_front], error.min()], strict=True))
    x, y = zip(*stairs, strict=True)
    axes.step(x, y, where="post", color="0.6", alpha=0.5, linewidth=4, zorder=0, label="Pareto front")


def _figures_by_name(
    pivot: Pivot, cells: ComparedCells, ranks: pd.DataFrame, course: Course
) -> dict[str, Callable[[], dict[str, bytes] | None]]:
    """Functions that draw the figures, by name."""
    # At most as many methods as there are looks, the best ones first
    looks = looks_of(pivot.methods[i] for i in pivot.best_first[:MOST_METHODS])
    shown = [cell for cell in pivot.values if cell.method in looks]
    caption = f"mean, and its {100 * CONFIDENCE:g} % interval over {pivot.over}" if pivot.several else pivot.over
    if len(looks) < len(pivot.methods):
        caption += f"; the {len(looks)} best of {len(pivot.methods)} methods"
    # At most as many data sets as fit, said in the caption
    datasets = pivot.datasets[:MOST_PANELS]
    if len(datasets) < len(pivot.datasets):
        caption += f"; the first {len(datasets)} of {len(pivot.datasets)} columns"
    # Courses of all shown methods, read in parallel
    courses = in_forks({cell: partial(course, cell) for cell in shown if cell.dataset in datasets})
    work: dict[str, Callable[[], dict[str, bytes] | None]] = {}
    # One figure for each kind of cost, and others if the comparison has them
    for name, words in AXES.items():
        panel = partial(_draw_curves, pivot, courses, name, looks)
        work[f"curves_over_{name}"] = partial(_draw_panels, datasets, panel, pivot.metric, words, caption)
    panel = partial(_draw_points, pivot, cells, looks)
    work["error_against_bytes"] = partial(_draw_panels, datasets, panel, pivot.metric, AT_THE_END, caption)
    if len(ranks) and not pairs.why_no_diagram(ranks):
        work["critical_difference"] = partial(_critical_difference, ranks)
    return work


def _draw_panels(
    datasets: list[str], panel: Callable[[Axes, str], bool], metric: str, words: str, told: int | str
) -> dict[str, bytes] | None:
    """A figure with one panel per data set; None if no panel has anything to draw."""
    # No figure is better than an empty one
    figure, panels = panel_row(len(datasets), ACROSS)
    drawn = [panel(axes, dataset) for axes, dataset in zip(panels, datasets, strict=True)]
    if not any(drawn):
        return None
    costs = [cost for axes in panels for cost in getattr(axes, "costs", ())]
    share_costs(panels, costs)
    # Titles, and labels only at the left and below
    for number, (axes, dataset) in enumerate(zip(panels, datasets, strict=True)):
        axes.set_title(dataset)
        axes.set_xlabel(words + (EVENLY if getattr(axes, "evenly", False) else ""))
        if not number or axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(WORDS.get(metric, metric))
    return render_figure(figure, told)


def _method_label(pivot: Pivot, method: str) -> str:
    """A method's name, with the number of its diverged values, which no curve or point includes."""
    on = [
        name
        for name in pivot.datasets
        if CellPosition(method, name) in pivot.judged and pivot.count_diverged(method, name)[0]
    ]
    counts = [f"{name}: {{}} of {{}} diverged".format(*pivot.count_diverged(method, name)) for name in on]
    return f"{method} ({', '.join(counts)})" if counts else method


def _draw_baselines(pivot: Pivot, axes: Axes, dataset: str) -> None:
    """Draw a dashed line for each baseline."""
    on_data = [(cell.method, mean) for cell, mean in pivot.baseline_means.items() if cell.dataset == dataset]
    for number, (name, mean) in enumerate(on_data):
        draw_baseline(axes, mean, name, number)


def _draw_curves(
    pivot: Pivot,
    courses: dict[CellPosition, pd.DataFrame],
    name: str,
    looks: dict[str, MethodLook],
    axes: Axes,
    dataset: str,
) -> bool:
    """Draw the curves of one data set; False if there are none."""
    drawn, positive = False, True
    # Methods without a course on this data set, or with a single point, have no curve
    for method, look in looks.items():
        course = courses.get(CellPosition(method, dataset), pd.DataFrame())
        if not {"metric", name} <= set(course) or not course[name].any():
            continue
        by_round = course.groupby(course["rounds"])
        x = by_round[name].mean().to_numpy(float)
        if len(x) < 2:
            continue
        # Mean with its interval
        mean, half = (by_round["metric"].agg(of).to_numpy(float) for of in ("mean", half_width))
        ends = (mean - half, mean + half) if np.isfinite(half).any() else None
        draw_curve(axes, x, mean, ends, _method_label(pivot, method), look)
        drawn, positive = True, positive and bool((course["metric"] > 0).all())
        if name == "seconds" and course["evenly"].any():
            axes.evenly = True  # type: ignore[attr-defined]
    # Baselines as lines; logarithmic unless values reach 0
    if drawn:
        _draw_baselines(pivot, axes, dataset)
        axes.set_yscale("log" if positive else "linear")
        axes.set_xscale("linear" if name == "rounds" else "log")
        if name == "bytes":
            axes.xaxis.set_major_formatter(Bytes())
    return drawn


def _draw_points(pivot: Pivot, cells: ComparedCells, looks: dict[str, MethodLook], axes: Axes, dataset: str) -> bool:
    """Draw one point per method, and the Pareto front; False if no method sends anything."""
    points: dict[str, tuple[float, float, float]] = {}
    # Cost and error of each method that sends something
    for method in looks:
        runs = cells.finished_runs(CellPosition(method, dataset))
        if not runs or not all(traffic_columns([*run.summary], "bytes") for run in runs):
            continue
        share = [
            run.summary[traffic_columns([*run.summary], "bytes")].sum(axis=1).mean() / run.provenance["clients"]
            for run in runs
        ]
        judged = pivot.judged[CellPosition(method, dataset)]
        if len(values := judged[np.isfinite(judged)]):
            points[method] = float(np.mean(share)), float(values.mean()), half_width(values)
    if not any(cost for cost, _, _ in points.values()):
        return False
    cost, error = np.array([of[0] for of in points.values()]), np.array([of[1] for of in points.values()])
    # Points with intervals
    for method, (x, y, half) in points.items():
        look = looks[method]
        drawn: dict[str, Any] = {"color": look.colour, "fillstyle": look.fill, "label": _method_label(pivot, method)}
        axes.errorbar(x, y, half, fmt=look.marker, capsize=2, **drawn)
    # Baselines, and the front of methods that no other one beats
    _draw_baselines(pivot, axes, dataset)
    if not pivot.larger_is_better:
        _draw_front(axes, cost, error)
    if (error > 0).all():
        axes.set_yscale("log")
    axes.costs = cost  # type: ignore[attr-defined]
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(Bytes())
    return True


def _critical_difference(placed: pd.DataFrame) -> dict[str, bytes]:
    """Average ranks on an axis; bars join methods without a significant difference in Nemenyi's test."""
    from scikit_posthocs import critical_difference_diagram

    # As high as there are methods
    height = 1.2 + 0.22 * placed.shape[1]
    figure = Figure(figsize=(8, height), layout=ConstrainedLayoutEngine(w_pad=0.3))  # names are outside the axis
    axes = figure.add_subplot()
    ink = matplotlib.rcParams["text.color"]
    lines: dict[str, Any] = {"color": ink}
    critical_difference_diagram(
        placed.mean(), pairs.nemenyi_test(placed), ax=axes, alpha=1 - CONFIDENCE,
        elbow_props=lines, crossbar_props=lines, marker_props=lines,
    )  # fmt: skip
    caption = f"average ranks over {len(placed)} data sets; bars join methods that\n"
    return render_figure(figure, f"{caption}Nemenyi's test does not distinguish at {100 * (1 - CONFIDENCE):g} %")


def in_forks(work: Mapping[Name, Callable[[], Made]]) -> dict[Name, Made]:
    """Results of these functions, by name. They run one after another if fork is not safe, or on one processor.

    A fork needs neither imports nor a transfer of its input, which takes longer than a figure for a thousand runs.
    """
    processes = min(len(work), len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1)
    if processes < 2:
        return {name: make() for name, make in work.items()}
    # A Pool would wait forever for a copy that is killed, and would end copies by SIGTERM, which they may ignore.
    with (
        warnings.catch_warnings(),
        ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _work.update, (work,)) as pool,
    ):
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: a copy does not use BLAS's and Arrow's
        try:
            return dict(zip(work, pool.map(_make, work), strict=True))
        except BrokenProcessPool:
            raise FklError("a copy of this process was killed, perhaps because memory ran out") from None


def _make(name: Any) -> Any:
    return _work[name]()
