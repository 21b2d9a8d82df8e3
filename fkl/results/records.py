"""A run as three tidy tables."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.data.problem import Problem
from fkl.data.vertical import Vertical
from fkl.network import UNITS
from fkl.results.hindsight import hindsight_loss
from fkl.simulation import Chunk, DivergedError, Experiment

TIMING_COLUMNS = ("runtime_s", "runtime_per_client_s")
"""The only columns that differ between two runs of one configuration."""


@dataclass(frozen=True)
class Records:
    """What a run leaves behind.

    Parameters
    ----------
    rounds : DataFrame
        One row a replicate and round: of a stream, mse of all clients so far and both regrets so far, means over
        clients, in units of squared error; of other methods, what their judges tell; cumulative traffic of all clients.
    clients : DataFrame
        One row a replicate and client, at the end of the run.
    summary : DataFrame
        One row a replicate. Traffic is that of all clients; runtime_s is the algorithm's own time, evaluation excluded.
    """

    rounds: pd.DataFrame
    clients: pd.DataFrame
    summary: pd.DataFrame


Columns = dict[str, NDArray[Any]]
"""By name: (T, R) in columns of rounds, (R, K) or (K,) in columns of clients, (R,) in columns of the summary."""


def make_records(experiment: Experiment, chunks: list[Chunk], cache: Path | None = None) -> Records:
    """Turn what the loop brought back into tables; `cache` is where losses in hindsight are kept."""
    problem, R = experiment.problem, experiment.replicates
    T, K = problem.rounds, problem.clients
    if isinstance(problem, Problem):
        by_round, by_client, at_the_end = _of_a_stream(experiment, chunks, cache)
    else:
        by_round, by_client, at_the_end = _of_a_batch(chunks)
    if isinstance(problem, Vertical):  # these methods are compared by what they reach in a time
        by_round["runtime_s"] = np.concatenate([_each(chunk, chunk.elapsed[:, None]) for chunk in chunks], axis=1)
    sent_by_round, sent_by_client = _traffic(chunks)
    by_round, by_client = by_round | sent_by_round, by_client | sent_by_client

    rounds = {"replicate": np.repeat(np.arange(R), T), "round": np.tile(np.arange(1, T + 1), R)}
    rounds |= {name: values.T.ravel() for name, values in by_round.items()}
    clients: Columns = {"replicate": np.repeat(np.arange(R), K), "client": np.tile(np.arange(K), R)}
    clients["site"] = np.tile(np.array(problem.site_names)[problem.site], R)
    clients |= {name: np.broadcast_to(values, (R, K)).ravel() for name, values in by_client.items()}
    summary: Columns = {"replicate": np.arange(R)}
    summary |= {name: values[-1] for name, values in by_round.items()} | at_the_end
    return Records(pd.DataFrame(rounds), pd.DataFrame(clients), _timed(pd.DataFrame(summary), chunks, K))


def rounds_before(experiment: Experiment, error: DivergedError, cache: Path | None = None) -> pd.DataFrame | None:
    """Rows of the rounds that were right when a method diverged; None where it diverged in its first round."""
    ended = sum(chunk.ledger.shape[0] for chunk in error.chunks)
    if error.t == 0 and not ended:
        return None
    chunks, played = error.chunks, ended
    with np.errstate(all="ignore"):  # of the round that is not kept
        if error.t:
            error.failed.judge.close()
            chunks, played = [*chunks, error.failed], ended + error.failed.ledger.shape[0]
        rounds = make_records(replace(experiment, replicates=played), chunks, cache).rounds
    return rounds[(rounds["replicate"] < ended) | (rounds["round"] <= error.t)]


def _of_a_stream(experiment: Experiment, chunks: list[Chunk], cache: Path | None) -> tuple[Columns, Columns, Columns]:
    problem = experiment.problem
    best = hindsight_loss(experiment, cache)
    samples = problem.present.sum(axis=0)
    rounds = {
        "mse": _gathered(chunks, "mse", 1),
        "regret_best_kernel": _gathered(chunks, "mean_regret_best_kernel", 1),
        "regret_hindsight": _gathered(chunks, "mean_loss", 1) - np.cumsum(best.mean(axis=1))[:, None],
    }
    clients = {
        "rounds": samples,
        "mse": _gathered(chunks, "squared_error", 0) / np.maximum(samples, 1),
        "regret_best_kernel": _gathered(chunks, "regret_best_kernel", 0),
        "regret_hindsight": _gathered(chunks, "loss", 0) - best.sum(axis=0),
    }
    return rounds, clients, {}


def _of_a_batch(chunks: list[Chunk]) -> tuple[Columns, Columns, Columns]:
    def gathered(attribute: str, axis: int) -> Columns:
        columns = [getattr(chunk.judge, attribute) for chunk in chunks]
        return {name: np.concatenate([column[name] for column in columns], axis=axis) for name in columns[0]}

    return gathered("by_round", 1), gathered("by_client", 0), gathered("at_the_end", 0)


def _gathered(chunks: list[Chunk], attribute: str, axis: int) -> NDArray[np.float64]:
    return np.concatenate([getattr(chunk.judge, attribute) for chunk in chunks], axis=axis)


def _traffic(chunks: list[Chunk]) -> tuple[Columns, Columns]:
    """What was sent so far, by round, and in all, by client."""
    rounds, clients = {}, {}
    for direction in chunks[0].ledger.tallies:
        tallies = [chunk.ledger.tallies[direction] for chunk in chunks]
        by_round = np.cumsum(np.concatenate([tally.by_round for tally in tallies], axis=1), axis=0)
        by_client = np.concatenate([tally.by_client for tally in tallies], axis=0)
        for number, unit in enumerate(UNITS):
            name = "transmissions" if (direction, unit) == ("broadcast", "messages") else f"{direction}_{unit}"
            rounds[name], clients[name] = by_round[..., number], by_client[..., number]
    if chunks[0].ledger.cost is not None:
        seconds = np.concatenate([chunk.ledger.seconds for chunk in chunks], axis=1)
        rounds["communication_s"] = np.cumsum(seconds, axis=0)
    return rounds, clients


def _timed(summary: pd.DataFrame, chunks: list[Chunk], clients: int) -> pd.DataFrame:
    """The summary with the time that a replicate took."""
    summary = summary.drop(columns="runtime_s", errors="ignore")
    summary["runtime_s"] = np.concatenate([_each(chunk, chunk.elapsed[-1:]) for chunk in chunks])
    summary["runtime_per_client_s"] = summary["runtime_s"] / clients
    return summary


def _each(chunk: Chunk, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of each replicate of a chunk, (..., R), from that of all (..., 1)."""
    _, replicates = chunk.ledger.seconds.shape
    return np.repeat(seconds / replicates, replicates, axis=-1)
