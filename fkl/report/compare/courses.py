"""Course of a run, which is a metric over rounds and their costs; and the Pareto front of errors and costs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.runs.finished_runs import FinishedRun

MOST_POINTS = 200
"""Maximum number of points in a curve."""
ON_WIRES = ("uplink", "downlink", "link")
"""Directions whose counts add up to all traffic, copied from `fkl.wire.channel`, whose import takes a second."""


def traffic_columns(names: Sequence[str], unit: str) -> list[str]:
    """Columns of traffic in which each message counts once."""
    return [name for direction in ON_WIRES if (name := f"{direction}_{unit}") in names]


def metric_course(run: FinishedRun, metric: str) -> pd.DataFrame:
    """Metric and costs of some rounds, one row per replicate and round; empty if rounds.csv lacks the metric.

    Returns
    -------
    DataFrame
        seed, replicate, rounds, metric; scalars and bytes so far, divided by the number of clients; seconds so far; and
        whether seconds are spread `evenly` over the rounds, because the run only has their sum.
    """
    # Only if rounds.csv has the metric, and only the columns that are shown
    T, file = int(run.provenance["rounds"]), run.folder / "rounds.csv"
    with file.open(encoding="utf-8") as stream:
        there = stream.readline().rstrip("\n").split(",")
    if metric not in there:
        return pd.DataFrame()
    sent = {unit: traffic_columns(there, unit) for unit in ("scalars", "bytes")}
    timed = ["runtime_s"] if "runtime_s" in there else []
    wanted = ["round", "replicate", metric, *timed, *sent["scalars"], *sent["bytes"]]
    table = pd.read_csv(file, usecols=wanted)[wanted].to_numpy(np.float64)
    # Diverged replicates have no course
    table = table[~run.diverged[table[:, 1].astype(np.int64)]]
    # Rounds at which values are kept, dense at the beginning and even later
    even = np.concatenate([np.geomspace(1, T, MOST_POINTS // 2), np.linspace(1, T, MOST_POINTS // 2)])
    column = dict(zip(wanted, table[np.isin(table[:, 0], np.round(even))].T, strict=True))
    told = np.full(len(column["round"]), run.config["seed"]), column["replicate"].astype(np.int64)
    made = {"seed": told[0], "replicate": told[1], "rounds": column["round"], "metric": column[metric]}
    # Costs per client, if messages were recorded
    made["evenly"] = np.full(len(column["round"]), not timed)
    for unit, names in sent.items():
        if names:
            made[unit] = sum(column[name] for name in names) / run.provenance["clients"]
    # Times of rounds, or the run's time divided evenly
    if timed:
        return pd.DataFrame({**made, "seconds": column["runtime_s"]})
    whole = dict(zip(run.summary["replicate"], run.summary["runtime_s"], strict=True))
    return pd.DataFrame(
        {**made, "seconds": np.vectorize(whole.get, otypes=[float])(column["replicate"]) * column["round"] / T}
    )


def pareto_front(cost: Array, error: Array) -> NDArray[np.bool_]:
    """Points on the Pareto front: no other point is as good in both values and better in one.

    Parameters
    ----------
    cost, error : (n,)
        Smaller is better in both.

    Returns
    -------
    (n,) bool
        Points that coincide are on the front together.
    """
    # Compare every two points
    as_good = (cost <= cost[:, None]) & (error <= error[:, None])
    better = (cost < cost[:, None]) | (error < error[:, None])
    beaten = (as_good & better).any(axis=1)
    return np.logical_not(beaten)
