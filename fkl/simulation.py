"""The synchronous round loop, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any

import numpy as np

from fkl.algorithms.base import Algorithm, World
from fkl.data.problem import Problem
from fkl.errors import FklError
from fkl.judge import Judge
from fkl.kernels import Dictionary
from fkl.kernels.threads import at_most
from fkl.network import Channel, Ledger, Network
from fkl.streams import Streams

CHUNK_BYTES = 2**30


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run's numbers."""

    problem: Problem
    dictionary: Dictionary
    network: Network
    algorithm: Algorithm
    seed: int
    replicates: int
    precision: str


@dataclass(frozen=True)
class Chunk:
    """What the loop brings back from replicates that ran together."""

    judge: Judge
    ledger: Ledger
    seconds: float
    """Time spent in the algorithm's `init` and `step`, all replicates of the chunk together."""


def simulate(
    experiment: Experiment, threads: int | None, chunk: int | None, advance: Callable[[int], object]
) -> list[Chunk]:
    """Run all replicates, `chunk` at a time; the numbers depend on neither chunk nor threads.

    Parameters
    ----------
    experiment : Experiment
    threads : int or None
        Most that the compiled kernels use; None for all there are.
    chunk : int or None
        Replicates that run together; None for as many as `CHUNK_BYTES` seem to hold.
    advance : callable
        Told the number of replicate rounds done after each round.
    """
    everyone = range(experiment.replicates)
    with at_most(threads):
        fitting = max(1, CHUNK_BYTES // _rehearse(experiment))
        together = chunk if chunk is not None else fitting
        return [_run(experiment, tuple(everyone[first : first + together]), advance) for first in everyone[::together]]


def _rehearse(experiment: Experiment) -> int:
    """Play the first round with one replicate and forget it; return about how many bytes a replicate needs.

    Whatever is to be compiled is compiled here, outside the clock, and what does not fit is refused before the run.
    """
    world, _ = make_world(experiment, (0,))
    state = experiment.algorithm.init(world)
    world.channel.open_round(0, experiment.problem.present[0])
    experiment.algorithm.step(world, state, 0)
    temporaries = 12 * 8 * experiment.problem.clients * experiment.dictionary.N  # of a round, (R, K, N) in float64
    return _nbytes(state) + _nbytes(vars(world).get("bank")) + temporaries


def _run(experiment: Experiment, replicates: tuple[int, ...], advance: Callable[[int], object]) -> Chunk:
    world, ledger = make_world(experiment, replicates)
    problem, algorithm = experiment.problem, experiment.algorithm
    judge = Judge(problem, len(replicates), algorithm.lam)
    start = perf_counter()
    state = algorithm.init(world)
    seconds = perf_counter() - start
    for t in range(problem.rounds):
        world.channel.open_round(t, problem.present[t])
        start = perf_counter()
        state, outcome = algorithm.step(world, state, t)
        seconds += perf_counter() - start
        judge.enter(t, outcome)
        if not np.isfinite(judge.mean_loss[t]).all():
            raise FklError(f"{algorithm.label} diverged in round {t + 1}: lower algo.eta")
        advance(len(replicates))
    return Chunk(judge, ledger, seconds)


def make_world(experiment: Experiment, replicates: tuple[int, ...]) -> tuple[World, Ledger]:
    """World of some replicates of an experiment, and the ledger behind its channel."""
    problem, network, precision = experiment.problem, experiment.network, experiment.precision
    ledger = Ledger(problem.rounds, len(replicates), problem.clients, network.cost)
    channel = Channel(network, ledger, np.dtype(precision), experiment.algorithm.label)
    return World(problem, experiment.dictionary, channel, Streams(experiment.seed, replicates), precision), ledger


def _nbytes(holder: Any) -> int:
    """Bytes of the arrays that a dataclass holds, directly or in lists."""
    if holder is None:
        return 0
    values = [getattr(holder, field.name) for field in fields(holder)]
    arrays = [array for value in values for array in (value if isinstance(value, list) else [value])]
    return sum(getattr(array, "nbytes", 0) for array in arrays)
