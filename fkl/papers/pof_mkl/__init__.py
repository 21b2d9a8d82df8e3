"""Ghari and Shen, Personalized Online Federated Learning with Multiple Kernels, NeurIPS 2022."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fkl.basics.errors import FklError
from fkl.config.experiments import readings_tried, variants
from fkl.papers.our_runs import Found, find
from fkl.papers.published import AS_PUBLISHED, AS_STATED, Answer, Cell, beside, published
from fkl.report.colours import looks_of
from fkl.report.figures import band, canvas, crosses, spread_over, sweep
from fkl.results.finished_runs import FinishedRun

TITLE = "POF-MKL (Ghari and Shen 2022)"
TABLES = {
    "1": "mean squared error and run time of a client",
    "2": "mean squared error and its spread over 20 sets of random features",
    "3": "cumulative regret in hindsight and its spread over clients",
}
WIDE = dict.fromkeys("123", (("algorithm", "setting"), ("metric", "dataset")))
"""Rows and columns of the printed tables."""
FIGURES = {"1": "regret over rounds", "2": "regret against the exploration rate"}
MARKED = ("1", "2")
"""Figures with published values, as crosses."""
LINEAR = "linear comparator"
TABLE = ("pof_mkl/table1", "pof_mkl/table1_as_published", "pof_mkl/switches")
FIGURE = {"1": "pof_mkl/table1_as_published", "2": "pof_mkl/figure2"}
"""Experiments that they are made of."""
ROUNDS = 500
PRINTED_XI = 1.0
"""Exploration rate of the tables."""
DATASETS = ("naval", "uji", "air", "wec")


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Published cells beside ours, one row for each setting of the switches that was run.

    Parameters
    ----------
    number : {"1", "2", "3"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Spread and n: over replicates in tables 1 and 2, over clients in table 3. Tables 2 and 3 also show the
        published spread, table 2 beside MSE / sqrt(T), which is what the paper prints as such.
    """
    found = find("pof_mkl", runs, *TABLE)
    if not found:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=pof_mkl/table1")
    named = variants("pof_mkl")

    def answers(cell: Cell) -> list[Answer]:
        key = cell["dataset"], cell["algorithm"], cell["setting"]
        mine = [one for one in found if one.key == key]
        ours = [_answer(cell["metric"], one) for one in mine]
        if cell["metric"] == "cumulative_regret":
            ours += [_beside_linear(one) for one in mine if one.variant in named and "regret_linear" in one.run.clients]
        order = [AS_STATED, *named, ""]
        return sorted(ours, key=lambda answer: (order.index(answer.reading), answer.switch))

    cells = published(__file__, "3" if number == "3" else "1")
    if number == "2":  # the paper prints table 2's means in table 1 too; those with a spread are table 2
        cells = [{**cell, "follows_from": "Table 1"} for cell in cells if cell["spread"] == cell["spread"]]
    if number == "3":  # whose spread is over clients
        cells = [{**cell, "sd": np.nan} for cell in cells]
    result = beside(cells, answers, readings_tried("pof_mkl"))
    if number == "2":
        return result.assign(mse_over_root_of_rounds=result["ours"] / np.sqrt(ROUNDS))
    return result


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int | str]:
    """Draw a figure of the paper, one panel a data set.

    Parameters
    ----------
    number : {"1", "2"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int or str
        That the curves are over.
    """
    found = [one for one in find("pof_mkl", runs, FIGURE[number]) if one.variant == AS_PUBLISHED]
    return _figure_1(found) if number == "1" else _figure_2(found)


def _figure_1(found: list[Found]) -> tuple[Figure, int | str]:
    curves = {one.key: one.run for one in found if one.run.algorithm in ("vM-KOFL", "POF-MKL")}
    shown = _datasets_of(curves.values())
    figure, panels = canvas(len(shown))
    drawn = []
    settings = [("vM-KOFL", "M=51;D=9"), ("POF-MKL", "M=1;D=100"), ("POF-MKL", "M=25;D=20"), ("POF-MKL", "M=51;D=9")]
    names = {(algorithm, setting): f"{algorithm}, {setting.split(';')[0]}" for algorithm, setting in settings}
    looks = looks_of(names.values())
    for axes, dataset in zip(panels, shown, strict=True):
        for (algorithm, setting), name in names.items():
            run = curves.get((dataset, algorithm, setting))
            if run is not None:
                drawn.append(run.replicates)
                rounds = run.rounds.assign(average=run.rounds["regret_hindsight"] / run.rounds["round"])
                band(axes, rounds, "average", name, looks[name])
                last = int(run.rounds["round"].max())
                printed = _printed_regret(dataset, algorithm, setting)
                crosses(axes, [(last, value / last) for value in printed], name, looks[name])
        axes.set_title(dataset)
        axes.set_yscale("log")
    panels[0].set_ylabel("regret in hindsight / round,\nmean of clients (squared error)")
    return figure, spread_over(drawn)


def _figure_2(found: list[Found]) -> tuple[Figure, int | str]:
    sweeps = [one.run for one in found]
    shown = _datasets_of(sweeps)
    figure, panels = canvas(len(shown))
    looks = looks_of(["POF-MKL, M=1", "POF-MKL, M=25", "POF-MKL, M=51"])  # as in Figure 1
    for axes, dataset in zip(panels, shown, strict=True):
        for M, setting in ((1, "M=1;D=100"), (25, "M=25;D=20")):
            of = {r.config["algo"]["xi"]: r for r in sweeps if r.dataset == dataset and r.config["algo"]["M"] == M}
            if of:
                name = f"POF-MKL, M={M}"
                sweep(axes, {xi: run.summary["regret_hindsight"] for xi, run in of.items()}, name, looks[name])
                printed = _printed_regret(dataset, "POF-MKL", setting)
                crosses(axes, [(PRINTED_XI, value) for value in printed], name, looks[name])
        axes.set_title(dataset)
        axes.set_xlabel("exploration rate xi")
    panels[0].set_ylabel("regret in hindsight after all rounds,\nmean of clients (squared error)")
    return figure, spread_over(run.replicates for run in sweeps)


def _printed_regret(dataset: str, algorithm: str, setting: str) -> list[float]:
    """Table 3's regret after all rounds."""
    key = dataset, algorithm, setting
    cells = published(__file__, "3")
    return [cell["value"] for cell in cells if (cell["dataset"], cell["algorithm"], cell["setting"]) == key]


def _answer(metric: str, found: Found) -> Answer:
    run = found.run
    if metric == "cumulative_regret":
        return _of_clients(found, "regret_hindsight")
    if metric == "runtime_per_client":  # replicates run together, so their times have no spread
        return replace(_of(found, run.summary["runtime_per_client_s"]), spread=np.nan)
    return _of(found, run.summary["mse"])


def _beside_linear(found: Found) -> Answer:
    """The regret against the linear fit."""
    answer = _of_clients(found, "regret_linear")
    return replace(answer, reading=f"{found.variant}, {LINEAR}", switch=f"{found.switch}; regret_linear")


def _of_clients(found: Found, column: str) -> Answer:
    """The mean and spread over clients, as the paper prints them; the values are those of the replicates."""
    clients = found.run.clients
    answer = _of(found, clients.groupby("client")[column].mean())
    return replace(answer, values=tuple(map(float, clients.groupby("replicate")[column].mean())))


def _of(found: Found, values: "pd.Series[float]") -> Answer:
    return Answer.from_values(found.switch, values, found.variant, found.replicates, found.run.replicates)


def _datasets_of(runs: Iterable[FinishedRun]) -> list[str]:
    found = {run.dataset for run in runs}
    if not found:
        raise FklError("figure: no finished run belongs to it; see `fkl list` for the paper's experiments")
    return [name for name in DATASETS if name in found]
