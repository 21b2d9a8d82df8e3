"""Ghari and Shen, Personalized Online Federated Learning with Multiple Kernels, NeurIPS 2022."""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from fkl.config.experiments import paper_variants, readings_tried
from fkl.papers.cells import AS_PUBLISHED, AS_STATED, CellAnswer, PublishedCell, add_answers, published_cells
from fkl.papers.our_runs import PaperRun, dataset_panels, find_paper_runs, of_cell, require_found
from fkl.report.colours import looks_of
from fkl.report.figures import draw_band, draw_crosses, draw_sweep, spread_over
from fkl.runs.finished_runs import FinishedRun

LINEAR = "linear comparator"
TABLE = ("pof_mkl/table1", "pof_mkl/table1_as_published", "pof_mkl/switches")
FIGURE = {
    "1": ("pof_mkl/table1", "pof_mkl/table1_as_published"),
    "2": ("pof_mkl/figure2", "pof_mkl/figure2_as_published"),
}
"""Experiments of tables and figures."""
READINGS = (AS_STATED, AS_PUBLISHED)
"""Readings that the figures show side by side."""
ROUNDS = 500
CURVES = (("vM-KOFL", "M=51;D=9"), ("POF-MKL", "M=1;D=100"), ("POF-MKL", "M=25;D=20"), ("POF-MKL", "M=51;D=9"))
"""Algorithms and settings of Figure 1; Figure 2 shows the middle two."""
PRINTED_XI = 1.0
"""Exploration rate in the tables."""
DATASETS = ("naval", "uji", "air", "wec")


def table(number: str, runs: list[FinishedRun]) -> list[PublishedCell]:
    """Published cells with our answers, one answer for each setting that was run.

    Spread and n are over replicates in tables 1 and 2, and over clients in table 3. Tables 2 and 3 also have the
    published spread. Table 2 also has MSE / sqrt(T), which the paper prints as the spread.
    """
    our_runs = find_paper_runs("pof_mkl", runs, *TABLE)
    require_found(our_runs, "table", "pof_mkl/table1")
    named = paper_variants("pof_mkl")

    def answers(cell: PublishedCell) -> list[CellAnswer]:
        # One answer for each run, and another for its regret against linear functions
        ours = []
        for our_run in of_cell(our_runs, cell):
            count, summary = our_run.run.replicates, our_run.run.summary
            if cell.metric == "mse":
                ours.append(our_run.answer_cell(summary["mse"], count))
            elif cell.metric == "runtime_per_client":  # replicates run together, so their times have no spread
                ours.append(replace(our_run.answer_cell(summary["runtime_per_client_s"], count), spread=np.nan))
            else:
                ours.append(_over_clients(our_run, "regret_hindsight"))
                if our_run.variant in named and "regret_linear" in our_run.run.clients:
                    linear = replace(_over_clients(our_run, "regret_linear"), reading=f"{our_run.variant}, {LINEAR}")
                    ours.append(replace(linear, switch=f"{our_run.switch}; regret_linear"))
        order = [AS_STATED, *named, ""]
        # Table 2 divides regrets by the root of the rounds
        if number == "2":
            scale = float(cell.unit) * np.sqrt(ROUNDS)
            ours = [replace(answer, more={"mse_over_root_of_rounds": answer.ours / scale}) for answer in ours]
        return sorted(ours, key=lambda answer: (order.index(answer.reading), answer.switch))

    # Which printed numbers are the same in another table
    cells = published_cells("pof_mkl", "3" if number == "3" else "1")
    if number == "2":  # table 2 repeats means of table 1, with a spread
        cells = [replace(cell, table="2", follows_from="Table 1") for cell in cells if not np.isnan(cell.spread)]
    if number == "3":  # its spread is over clients
        cells = [replace(cell, sd=np.nan) for cell in cells]
    return add_answers(cells, answers, readings_tried("pof_mkl"))


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper, with one panel per data set and reading.

    Returns
    -------
    figure : Figure
    replicates : int or str
        Number of replicates in the curves.
    """
    # A panel per data set and reading
    by_panel: dict[str, list[PaperRun]] = {f"{name}, {reading}": [] for name in DATASETS for reading in READINGS}
    for our_run in find_paper_runs("pof_mkl", runs, *FIGURE[number]):
        if our_run.variant in READINGS and our_run.run.algorithm in ("vM-KOFL", "POF-MKL"):
            by_panel[f"{our_run.run.dataset}, {our_run.variant}"].append(our_run)
    shown = [panel for panel, our_runs in by_panel.items() if our_runs]
    figure, panels = dataset_panels(by_panel, shown, across=len(READINGS))
    drawn = []
    names = {(algorithm, setting): f"{algorithm}, {setting.split(';')[0]}" for algorithm, setting in CURVES}
    looks = looks_of(names.values())
    # Regrets over rounds, or over the exploration rate
    for panel, axes in panels.items():
        our_runs, dataset = by_panel[panel], panel.partition(",")[0]
        axes.sharey(panels.get(f"{dataset}, {AS_STATED}", axes))
        # Average regret after each round, with the printed one as a cross
        if number == "1":
            curves = {our_run.key[1:]: our_run.run for our_run in our_runs}
            for (algorithm, setting), name in names.items():
                if (run := curves.get((algorithm, setting))) is not None:
                    drawn.append(run.replicates)
                    rounds = run.rounds.assign(average=run.rounds["regret_hindsight"] / run.rounds["round"])
                    draw_band(axes, rounds, "average", name, looks[name])
                    last = int(run.rounds["round"].max())
                    printed = _printed_regret(dataset, algorithm, setting)
                    draw_crosses(axes, [(last, value / last) for value in printed], name, looks[name])
            axes.set_yscale("log")
        # Regret over xi, for two sizes of bins
        else:
            sweeps = [our_run.run for our_run in our_runs]
            drawn += [run.replicates for run in sweeps]
            for M, key in ((1, CURVES[1]), (25, CURVES[2])):
                by_xi = {run.config["algo"]["xi"]: run for run in sweeps if run.config["algo"]["M"] == M}
                if by_xi:
                    values = {xi: run.summary["regret_hindsight"] for xi, run in by_xi.items()}
                    draw_sweep(axes, values, names[key], looks[names[key]])
                    printed = _printed_regret(dataset, *key)
                    draw_crosses(axes, [(PRINTED_XI, value) for value in printed], names[key], looks[names[key]])
            axes.set_xlabel("exploration rate ξ")
    first = "regret in hindsight / round" if number == "1" else "regret in hindsight after all rounds"
    panels[next(iter(panels))].set_ylabel(f"{first},\nmean of clients (squared error)")
    return figure, spread_over(drawn)


def _printed_regret(dataset: str, algorithm: str, setting: str) -> list[float]:
    """Regret after all rounds, from the paper's Table 3."""
    cells = published_cells("pof_mkl", "3")
    return [cell.number for cell in cells if cell.key[:3] == (dataset, algorithm, setting)]


def _over_clients(found: PaperRun, column: str) -> CellAnswer:
    """Mean and spread over clients, as in the paper, but with the values of the replicates."""
    clients = found.run.clients
    answer = found.answer_cell(clients.groupby("client")[column].mean(), found.run.replicates)
    return replace(answer, values=tuple(map(float, clients.groupby("replicate")[column].mean())))
