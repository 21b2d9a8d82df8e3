"""Figures 1 and 2: the feedback graphs of finished runs, which are repeated as far as the graphs require."""

from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.basics.arrays import Array
from fkl.engines.base import Experiment, Numba, make_world
from fkl.papers.our_runs import PaperRun, find_paper_runs, require_found
from fkl.report.colours import baseline_colour, colour_of
from fkl.report.figures import panel_row
from fkl.runs.finished_runs import FinishedRun
from fkl.runs.prepare import prepare_run, to_play_again

SHOWN = {"1": "OMKL-GF", "2": "OMKL-SFG"}
"""Method of each figure."""
SETTING = "M=10"
NOTE = "graphs of the first replicate, from a repeated run; kernels of a family from narrow to wide"
CLAIMS = {
    "1": "The paper draws an example. Here: graphs that runs use; the last one is used until the end.",
    "2": "The paper: of five Gaussian kernels with bandwidths 0.01 to 100, node 2 points to 1, 2, 3. Here: as \
described by Algorithm 4 it points to 1, 2, 5 in any dimension; in the degenerate graph, as published, to 1, 2, 3.",
}


def draw_graphs(number: str, runs: list[FinishedRun]) -> tuple[Figure, str]:
    """Draw Figure 1, bipartite graphs of OMKL-GF on one data set, or Figure 2, all graphs of OMKL-SFG."""
    our_runs = find_paper_runs("graph_omkl", runs, "graph_omkl/as_stated", "graph_omkl/as_published")
    our_runs = [one for one in our_runs if one.key[1:] == (SHOWN[number], SETTING)]
    require_found(our_runs, "figure", "graph_omkl/as_stated")
    return (_draw_bipartite if number == "1" else _draw_similarity)(our_runs), NOTE


def bipartite_graph(experiment: Experiment, t: int) -> Array:
    """Graph A (J, N) of Algorithm 2 in round t, counted from 1."""
    world, _ = make_world(experiment, (0,))
    method: Any = experiment.algorithm
    drawn: Array = method.play(world, method.init(world), slice(0, t)).A[0]
    return drawn


def _draw_bipartite(found: list[PaperRun]) -> Figure:
    """Draw the graph of the first round, and for each reading the graph of the last round that draws one."""
    # Only one data set is drawn, that of the first run
    dataset = found[0].key[0]
    last = [(our_run, int(our_run.run.config["algo"]["exploring"])) for our_run in found if our_run.key[0] == dataset]
    figure, panels = panel_row(1 + len(last))
    for axes, (our_run, t) in zip(panels, [(found[0], 1), *last], strict=True):
        experiment = _prepare_run(our_run)
        A = bipartite_graph(experiment, min(t, experiment.problem.rounds))
        J, N = A.shape
        # Kernels below, selective nodes above
        axes.plot(np.arange(1, N + 1), np.zeros(N), "o", color=baseline_colour(0), markersize=2, label="kernel")
        for j, kernels in enumerate(map(np.flatnonzero, A)):
            # All edges of a node in one line, with gaps between them
            at, gaps = (j + 0.5) / J * N, np.full(len(kernels), np.nan)
            x = np.stack([np.full(len(kernels), at), kernels + 1, gaps], axis=1)
            y = np.tile([1.0, 0.0, np.nan], len(kernels))
            axes.plot(x.ravel(), y, color=colour_of(j), linewidth=1, label=f"edge of selective node {j + 1}")
            axes.plot(at, 1.0, "s", color=colour_of(j), clip_on=False, label=f"_node {j + 1}")
        axes.set_yticks([])
        axes.set_title(f"{our_run.variant}: {dataset}, round {t}")
        _number_kernels(axes, experiment)
    panels[0].set_ylabel("kernels, selective nodes")
    return figure


def _draw_similarity(found: list[PaperRun]) -> Figure:
    """Draw a dot for each edge, with a panel for each graph, whose title has the data sets with this graph."""
    # Data sets with the same graph share a panel
    shown: dict[bytes, tuple[Experiment, Any, str, list[str]]] = {}
    for our_run in found:
        experiment = _prepare_run(our_run)
        start: Any = experiment.algorithm.init(make_world(experiment, (0,))[0])
        shown.setdefault(start.A.tobytes(), (experiment, start, our_run.variant, []))[3].append(our_run.key[0])
    readings = [variant for _, _, variant, _ in shown.values()]
    figure, panels = panel_row(len(shown))
    for axes, (experiment, start, variant, datasets) in zip(panels, shown.values(), strict=True):
        # Dots of nodes in the dominating set, and of all others
        kinds = {"edge of a node in the dominating set": start.D, "edge of another node": ~start.D}
        for number, (label, nodes) in enumerate(kinds.items()):
            i, j = np.nonzero(start.A & nodes[:, None])
            axes.plot(j + 1, i + 1, "s", color=colour_of(number), markersize=2, label=label)
        axes.set_title(variant if readings.count(variant) == 1 else f"{variant}: {', '.join(datasets)}")
        axes.set_yticks(_number_kernels(axes, experiment))
        axes.invert_yaxis()
        axes.set_aspect("equal")
    panels[0].set_ylabel("node")
    return figure


def _prepare_run(one: PaperRun) -> Experiment:
    return replace(prepare_run(to_play_again(one.run)), engine=Numba())


def _number_kernels(axes: Axes, experiment: Experiment) -> list[int]:
    """Put ticks at the first kernel of each family and at the last kernel; return their positions."""
    ticks, labels = [1], []
    for family, kernels in groupby(experiment.dictionary.families):
        ticks.append(ticks[-1] + len([*kernels]))
        labels.append(f"{ticks[-2]} to {ticks[-1] - 1} {family}")
    ticks[-1] -= 1
    axes.set_xticks(ticks)
    axes.set_xlabel(f"kernel: {', '.join(labels)}")
    return ticks
