"""What a paper's public scripts print, beside ours: for papers whose printed numbers were not at hand."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from fkl.basics.errors import FklError
from fkl.config.experiments import experiments
from fkl.papers.our_runs import Found, find
from fkl.results.finished_runs import FinishedRun

Metric = Callable[[FinishedRun], tuple[float, float]]
"""Mean and standard deviation over replicates."""


def mse(run: FinishedRun) -> tuple[float, float]:
    """Of all clients."""
    values = run.summary["mse"]
    return float(values.mean()), float(values.std(ddof=1))


def client_sd(run: FinishedRun) -> tuple[float, float]:
    """Standard deviation over clients of each one's mse, which is the mean over replicates."""
    return float(run.clients.groupby("client")["mse"].mean().std(ddof=0)), np.nan


METRICS: dict[str, Metric] = {"mse": mse, "client_sd": client_sd}


def table(paper_file: str, number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """Every run of a paper's experiments, and what its script printed of it where it was run.

    Parameters
    ----------
    paper_file : str
        Of the paper's module; beside it lies script.csv.
    number : str
        Of the table.
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        Errors in 1e-3. script_sd and script_n: over the script's repetitions.
    """
    paper = Path(paper_file).parent.name
    found = find(paper, runs)
    if not found:
        [name, *_] = experiments(paper)
        raise FklError(f"table: no finished run belongs to it; first fkl run -m +experiment={name}")
    printed = pd.read_csv(Path(paper_file).with_name("script.csv"), dtype={"table": str, "setting": str}).fillna(
        {"setting": ""}
    )
    printed = printed[printed["table"] == number].set_index(["dataset", "algorithm", "setting", "metric"])
    metrics = [metric for metric in METRICS if metric in printed.index.get_level_values("metric")]
    return pd.DataFrame([_row(one, metric, printed) for one in found for metric in metrics])


def _row(found: Found, metric: str, printed: pd.DataFrame) -> dict[str, object]:
    ours, spread = METRICS[metric](found.run)
    key = (*found.key, metric)
    names = ("dataset", "algorithm", "setting", "metric")
    row: dict[str, object] = dict(zip(names, key, strict=True))
    for name in ("script", "script_sd", "script_n"):
        row[name] = printed.at[key, name] if key in printed.index else np.nan
    return row | {"ours": 1e3 * ours, "ours_sd": 1e3 * spread, "n": found.run.replicates}
