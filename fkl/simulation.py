"""The synchronous round loop, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Algorithm, World
from fkl.data.problem import Batch, Problem, Repeated
from fkl.data.vertical import Vertical
from fkl.errors import FklError
from fkl.judge import BatchJudge, FittedJudge, Judge, ScoredJudge, StreamJudge
from fkl.kernels import Dictionary
from fkl.kernels.threads import at_most
from fkl.network import Channel, Ledger, Network, Topology
from fkl.network.ledger import BETWEEN_PARTIES, BETWEEN_PEERS, WITH_A_SERVER
from fkl.streams import Streams

CHUNK_BYTES = 2**30
BATCH_CHUNK_BYTES = 2**24
"""Iterations over one and the same matrices go several times faster from the processor's cache."""


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run's numbers."""

    problem: Problem | Batch | Repeated | Vertical
    dictionary: Dictionary
    network: Network
    algorithm: Algorithm
    seed: int
    replicates: int
    precision: str
    topology: Topology | None = None


@dataclass(frozen=True)
class Chunk:
    """What the loop brings back from replicates that ran together."""

    judge: Judge
    ledger: Ledger
    elapsed: NDArray[np.float64]
    """Time spent in the algorithm's `init` and `step` up to the end of each round, all replicates together, (T,)."""

    @property
    def seconds(self) -> float:
        """Time spent in all."""
        return float(self.elapsed[-1])


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
        together = chunk if chunk is not None else _fitting(experiment)
        return [_run(experiment, tuple(everyone[first : first + together]), advance) for first in everyone[::together]]


def _fitting(experiment: Experiment) -> int:
    """How many replicates to run together."""
    if isinstance(experiment.problem, Vertical):
        return 1  # whose own products are shared among the threads
    if isinstance(experiment.problem, Repeated):
        return numba.get_num_threads()  # they share nothing but threads, and a round of theirs is long
    room = BATCH_CHUNK_BYTES if isinstance(experiment.problem, Batch) else CHUNK_BYTES
    return max(1, room // _rehearse(experiment))


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
    judge = make_judge(experiment, world)
    start = perf_counter()
    state = algorithm.init(world)
    seconds = perf_counter() - start
    elapsed = np.empty(problem.rounds)
    for t in range(problem.rounds):
        world.channel.open_round(t, problem.present[t])
        start = perf_counter()
        state, outcome = algorithm.step(world, state, t)
        seconds += perf_counter() - start
        elapsed[t] = seconds
        if not judge.enter(t, outcome):
            raise FklError(f"{algorithm.label} diverged in round {t + 1}: lower algo.eta")
        advance(len(replicates))
    judge.close()
    return Chunk(judge, ledger, elapsed)


def make_world(experiment: Experiment, replicates: tuple[int, ...]) -> tuple[World, Ledger]:
    """World of some replicates of an experiment, and the ledger behind its channel."""
    problem, network, precision = experiment.problem, experiment.network, experiment.precision
    topology, streams = experiment.topology, Streams(experiment.seed, replicates)
    directions = WITH_A_SERVER if topology is None else BETWEEN_PEERS
    if isinstance(problem, Vertical):
        directions = BETWEEN_PARTIES
    if network.loss > 0:
        directions = (*directions, "lost")
    ledger = Ledger(problem.rounds, len(replicates), problem.clients, network.cost, directions)
    channel = Channel(network, ledger, np.dtype(precision), experiment.algorithm.label, streams)
    return World(problem, experiment.dictionary, channel, streams, precision, topology), ledger


def make_judge(experiment: Experiment, world: World) -> Judge:
    """Judge of a stream, of a batch or of batches."""
    problem, algorithm = experiment.problem, experiment.algorithm
    if isinstance(problem, Repeated):
        return FittedJudge(problem, world.streams.replicates)
    if isinstance(problem, Vertical):
        return ScoredJudge(problem, len(world.streams.replicates))
    if isinstance(problem, Batch):
        return BatchJudge(world, algorithm.lam)
    return StreamJudge(problem, len(world.streams.replicates), algorithm.lam)


def _nbytes(holder: Any) -> int:
    """Bytes of the arrays in an object: itself, the items of a list, the fields of a dataclass."""
    if isinstance(holder, np.ndarray):
        return holder.nbytes
    if isinstance(holder, list):
        return sum(map(_nbytes, holder))
    return sum(_nbytes(getattr(holder, field.name)) for field in fields(holder)) if is_dataclass(holder) else 0
