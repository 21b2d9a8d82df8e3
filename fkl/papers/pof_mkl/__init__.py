"""Ghari and Shen, Personalized Online Federated Learning with Multiple Kernels, NeurIPS 2022."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fkl.errors import FklError
from fkl.papers.beside import AS_PUBLISHED, AS_STATED, COLUMNS, Answer, Cell, beside, following, newest, published
from fkl.report.figures import COLOURS, band, canvas
from fkl.results.collect import FinishedRun

TITLE = "POF-MKL (Ghari and Shen 2022)"
TABLES = {
    "1": "mean squared error and run time of a client",
    "2": "mean squared error and its spread over 20 sets of random features",
    "3": "cumulative regret in hindsight and its spread over clients",
}
FIGURES = {"1": "regret over rounds", "2": "regret against the exploration rate"}
REPLICATES = 20
ONE_STEP = "one step"
LINEAR = "linear comparator"
VARIANTS = {
    AS_PUBLISHED: (
        "targets NO2 and latitude, rows in the files' order, bandwidths as variances; POF-MKL steps twice as far as "
        "stated and as its baselines, eM-KOFL's weights learn twice as fast (`pof_mkl/table1_as_published`)"
    ),
    ONE_STEP: "the same with the stated step for POF-MKL too (`pof_mkl/table1_as_published`)",
    f"{AS_PUBLISHED}, {LINEAR}": (
        "Table 3: as published, and the regret is against the linear least squares fit, `regret_linear`"
    ),
    f"{ONE_STEP}, {LINEAR}": "Table 3: the stated step, and the regret is against the linear least squares fit",
}
"""What each named variant changes; the experiment that runs it."""
ROUNDS = 500
CLIENTS = {"naval": 23, "uji": 42, "air": 240, "wec": 560}
PARTITIONS = {"naval": "Iid", "uji": "Iid", "air": "BySite", "wec": "BySite"}
PROTOCOL = {"xi": 1.0, "eta": None, "eta_k": None, "alpha": None, "lam": 1e-3, "neurons": 20, "parameters": 1000}


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
    by_cell = newest(following(runs, _follows_protocol), _key, switch)
    if not by_cell:
        raise FklError("table: no finished run belongs to it; first fkl run -m +experiment=pof_mkl/table1")

    def answers(cell: Cell) -> list[Answer]:
        key = cell["dataset"], cell["algorithm"], cell["setting"]
        ours = [_answer(cell["metric"], run) for (of, _), run in by_cell.items() if of == key]
        if cell["metric"] == "cumulative_regret":
            named = [run for (of, _), run in by_cell.items() if of == key and reading(run) in VARIANTS]
            ours += [_beside_linear(run) for run in named if "regret_linear" in run.clients]
        order = [AS_STATED, *VARIANTS, ""]
        return sorted(ours, key=lambda answer: (order.index(answer.reading), answer.switch))

    cells = published(__file__, "3" if number == "3" else "1")
    if number == "2":  # the paper prints table 2's means in table 1 too; those with a spread are table 2
        cells = [cell for cell in cells if cell["spread"] == cell["spread"]]
    result = beside(cells, answers)
    if number == "2":
        return result[[*COLUMNS, "published_spread"]].assign(mse_over_root_of_rounds=result["ours"] / np.sqrt(ROUNDS))
    return result[COLUMNS if number == "1" else [*COLUMNS, "published_spread"]]


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int]:
    """Draw a figure of the paper, one panel a data set.

    Parameters
    ----------
    number : {"1", "2"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int
    """
    protocol = _follows_protocol if number == "1" else _follows_protocol_but_xi
    chosen = [run for run in following(runs, protocol) if reading(run) == AS_PUBLISHED]
    return _figure_1(chosen) if number == "1" else _figure_2(chosen)


def _figure_1(runs: list[FinishedRun]) -> tuple[Figure, int]:
    curves = {
        key: run for (key, _), run in newest(runs, _key, switch).items() if run.algorithm in ("vM-KOFL", "POF-MKL")
    }
    shown = _datasets_of(curves.values())
    figure, panels = canvas(len(shown))
    settings = [("vM-KOFL", "M=51;D=9"), ("POF-MKL", "M=1;D=100"), ("POF-MKL", "M=25;D=20"), ("POF-MKL", "M=51;D=9")]
    for axes, dataset in zip(panels, shown, strict=True):
        for colour, (algorithm, setting) in enumerate(settings):
            run = curves.get((dataset, algorithm, setting))
            if run is not None:
                rounds = run.rounds.assign(average=run.rounds["regret_hindsight"] / run.rounds["round"])
                band(axes, rounds, "average", f"{algorithm}, {setting.split(';')[0]}", colour)
        axes.set_title(dataset)
        axes.set_yscale("log")
    panels[0].set_ylabel("regret in hindsight / round,\nmean of clients (squared error)")
    return figure, max(run.replicates for run in curves.values())


def _figure_2(runs: list[FinishedRun]) -> tuple[Figure, int]:
    sweeps = [
        run
        for run in runs
        if run.dataset != "uji"  # the paper's figure 2 leaves it out
        and run.algorithm == "POF-MKL"
        and setting(run) in ("M=1;D=100", "M=25;D=20")
    ]
    shown = _datasets_of(sweeps)
    figure, panels = canvas(len(shown))
    for axes, dataset in zip(panels, shown, strict=True):
        for colour, M in enumerate((1, 25)):
            of = {r.config["algo"]["xi"]: r for r in sweeps if r.dataset == dataset and r.config["algo"]["M"] == M}
            xi = sorted(of)
            mean = np.array([of[x].summary["regret_hindsight"].mean() for x in xi])
            deviation = np.array([of[x].summary["regret_hindsight"].std(ddof=1) for x in xi])
            axes.plot(xi, mean, "o-", color=COLOURS[colour], label=f"POF-MKL, M={M}")
            axes.fill_between(xi, mean - deviation, mean + deviation, color=COLOURS[colour], alpha=0.2, linewidth=0)
        axes.set_title(dataset)
        axes.set_xlabel("exploration rate xi")
    panels[0].set_ylabel("regret in hindsight after all rounds,\nmean of clients (squared error)")
    return figure, max(run.replicates for run in sweeps)


def setting(run: FinishedRun) -> str:
    """M and D, as the paper's tables name a row."""
    if run.algorithm == "PerFedAvg":
        return ""
    kernels = run.config["kernels"]
    M = {"POF-MKL": run.config["algo"].get("M"), "OFSKL": 1, "eM-KOFL": 1}.get(run.algorithm, kernels["N"])
    return f"M={M};D={kernels['D']}"


def switch(run: FinishedRun) -> str:
    """Choose among the readings of the protocol: how this run was set, as key=value pairs."""
    return "; ".join(f"{key}={value}" for key, value in _switches(run).items())


def reading(run: FinishedRun) -> str:
    """Which reading of the paper a run follows: the text, a named variant, or none."""
    stated: dict[str, object] = {
        "dataset.target": {"uji": "longitude", "air": "CO"}.get(run.dataset),
        "partition.order": "shuffled",
        "kernels.bandwidth_is": "deviation",
        "algo.step_factor": 1.0,
        "algo.predictor": "average",
        "algo.losses": "mean",
        "algo.weight_factor": 1.0,
    }
    data: dict[str, object] = {
        "dataset.target": {"uji": "latitude", "air": "NO2"}.get(run.dataset),
        "partition.order": "consecutive",
    }
    one_step = stated | data | {"kernels.bandwidth_is": "variance", "algo.weight_factor": 2.0}
    as_published = one_step | ({"algo.step_factor": 2.0} if run.algorithm == "POF-MKL" else {})
    ours = _switches(run)
    for name, wanted in ((AS_STATED, stated), (AS_PUBLISHED, as_published), (ONE_STEP, one_step)):
        if all(value == wanted[key] for key, value in ours.items()):
            return name
    return ""


def _switches(run: FinishedRun) -> dict[str, object]:
    config, algo = run.config, run.config["algo"]
    switches = {
        "dataset.target": config["dataset"].get("target"),
        "partition.order": config["partition"].get("order"),
        "kernels.bandwidth_is": config["kernels"]["bandwidth_is"] if run.algorithm != "PerFedAvg" else None,
        **{f"algo.{key}": algo.get(key) for key in ("step_factor", "predictor", "losses", "weight_factor")},
    }
    return {key: value for key, value in switches.items() if value is not None}


def _follows_protocol(run: FinishedRun, *free: str) -> bool:
    """Whether everything but the switches and the free keys is as the paper's experiment."""
    algo = run.config["algo"]
    kernels = run.config["kernels"]
    dictionary = (1, 10.0, 10.0) if run.algorithm == "OFSKL" else (51, 0.01, 100.0)
    return (
        run.dataset in CLIENTS
        and run.config["partition"]["_target_"].endswith(f".{PARTITIONS[run.dataset]}")
        and run.config["partition"].get("own", 350) == 350
        and (run.provenance["rounds"], run.provenance["clients"]) == (ROUNDS, CLIENTS[run.dataset])
        and all(algo[key] == value for key, value in PROTOCOL.items() if key in algo and key not in free)
        and (kernels["N"], kernels["smallest"], kernels["largest"]) == dictionary
        and kernels["family"] == "rbf"
        and kernels["map"] == "pairs"
        and not (kernels["shared"] or kernels["orthogonal"])
    )


def _follows_protocol_but_xi(run: FinishedRun) -> bool:
    return _follows_protocol(run, "xi")


def _key(run: FinishedRun) -> tuple[str, str, str]:
    """Name a run as the tables do: data set, algorithm, setting."""
    return run.dataset, run.algorithm, setting(run)


def _answer(metric: str, run: FinishedRun) -> Answer:
    if metric == "cumulative_regret":
        return _of(run, run.clients.groupby("client")["regret_hindsight"].mean(), reading(run))
    if metric == "runtime_per_client":  # replicates run together, so their times have no spread
        return replace(_of(run, run.summary["runtime_per_client_s"], reading(run)), spread=np.nan)
    return _of(run, run.summary["mse"], reading(run))


def _beside_linear(run: FinishedRun) -> Answer:
    """The regret against the linear fit."""
    regret = run.clients.groupby("client")["regret_linear"].mean()
    return _of(run, regret, f"{reading(run)}, {LINEAR}", f"{switch(run)}; regret_linear")


def _of(run: FinishedRun, values: "pd.Series[float]", read_as: str, how: str | None = None) -> Answer:
    """An answer without its values, as the paper prints means over replicates."""
    answer = Answer.of(switch(run) if how is None else how, values, read_as, REPLICATES, run.replicates)
    return replace(answer, values=())


def _datasets_of(runs: Iterable[FinishedRun]) -> list[str]:
    found = {run.dataset for run in runs}
    if not found:
        raise FklError("figure: no finished run belongs to it; see `fkl list` for the paper's experiments")
    return [name for name in CLIENTS if name in found]
