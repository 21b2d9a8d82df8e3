"""A run as three tidy tables."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.network.ledger import DIRECTIONS, UNITS
from fkl.results.hindsight import hindsight_loss
from fkl.simulation import Chunk, Experiment

TIMING_COLUMNS = ("runtime_s", "runtime_per_client_s")
"""The only columns that differ between two runs of one configuration."""


@dataclass(frozen=True)
class Records:
    """What a run leaves behind.

    Parameters
    ----------
    rounds : DataFrame
        One row a replicate and round: mse of all clients so far; both regrets so far, means over clients, in units of
        squared error; cumulative traffic of all clients together.
    clients : DataFrame
        One row a replicate and client, at the end of the run.
    summary : DataFrame
        One row a replicate. Traffic is that of all clients; runtime_s is the algorithm's own time, evaluation excluded.
    """

    rounds: pd.DataFrame
    clients: pd.DataFrame
    summary: pd.DataFrame


def make_records(experiment: Experiment, chunks: list[Chunk], cache: Path | None = None) -> Records:
    """Turn what the loop brought back into tables; `cache` is where losses in hindsight are kept."""
    problem, R = experiment.problem, experiment.replicates
    T, K = problem.rounds, problem.clients
    best = hindsight_loss(experiment, cache)

    def gathered(attribute: str, axis: int) -> NDArray[np.float64]:
        return np.concatenate([getattr(chunk.judge, attribute) for chunk in chunks], axis=axis)

    mean_loss = gathered("mean_loss", 1)
    regret_hindsight = mean_loss - np.cumsum(best.mean(axis=1))[:, None]
    rounds = {
        "replicate": np.repeat(np.arange(R), T),
        "round": np.tile(np.arange(1, T + 1), R),
        "mse": gathered("mse", 1).T.ravel(),
        "regret_best_kernel": gathered("mean_regret_best_kernel", 1).T.ravel(),
        "regret_hindsight": regret_hindsight.T.ravel(),
    }
    samples = problem.present.sum(axis=0)
    clients = {
        "replicate": np.repeat(np.arange(R), K),
        "client": np.tile(np.arange(K), R),
        "site": np.tile(np.array(problem.site_names)[problem.site], R),
        "rounds": np.tile(samples, R),
        "mse": (gathered("squared_error", 0) / np.maximum(samples, 1)).ravel(),
        "regret_best_kernel": gathered("regret_best_kernel", 0).ravel(),
        "regret_hindsight": (gathered("loss", 0) - best.sum(axis=0)).ravel(),
    }
    for direction in DIRECTIONS:
        by_round = np.concatenate([chunk.ledger.tallies[direction].by_round for chunk in chunks], axis=1)
        by_client = np.concatenate([chunk.ledger.tallies[direction].by_client for chunk in chunks], axis=0)
        for number, unit in enumerate(UNITS):
            rounds[f"{direction}_{unit}"] = np.cumsum(by_round[..., number], axis=0).T.ravel()
            clients[f"{direction}_{unit}"] = by_client[..., number].ravel()
    if experiment.network.cost is not None:
        seconds = np.concatenate([chunk.ledger.seconds for chunk in chunks], axis=1)
        rounds["communication_s"] = np.cumsum(seconds, axis=0).T.ravel()

    rounds_table = pd.DataFrame(rounds)
    return Records(rounds_table, pd.DataFrame(clients), _summary(rounds_table, chunks, K))


def _summary(rounds: pd.DataFrame, chunks: list[Chunk], clients: int) -> pd.DataFrame:
    """The last round of every replicate, and what it took."""
    last = rounds.groupby("replicate", as_index=False).last()
    columns = ["replicate", "mse", "regret_best_kernel", "regret_hindsight", "uplink_scalars", "downlink_scalars"]
    columns += ["uplink_messages", "uplink_bytes"]
    columns += [name for name in last.columns if name == "communication_s"]
    summary = last[columns].copy()
    sizes = [len(chunk.judge.loss) for chunk in chunks]
    each = [chunk.seconds / size for chunk, size in zip(chunks, sizes, strict=True)]
    summary["runtime_s"] = np.repeat(each, sizes)
    summary["runtime_per_client_s"] = summary["runtime_s"] / clients
    return summary
