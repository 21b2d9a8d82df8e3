"""The synchronous round loop, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Algorithm, World
from fkl.data.problem import Batch, Problem, Repeated
from fkl.data.vertical import Vertical
from fkl.diverged import blame
from fkl.errors import FklError
from fkl.judge import BatchJudge, FittedJudge, Judge, ScoredJudge, StreamJudge
from fkl.kernels import Dictionary
from fkl.kernels.threads import at_most
from fkl.network import Channel, Ledger, Network, Topology
from fkl.network.ledger import BETWEEN_PARTIES, BETWEEN_PEERS, WITH_A_SERVER
from fkl.results.checkpoint import Checkpoint
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
    first: int
    """Number of the first of the replicates."""

    @property
    def seconds(self) -> float:
        """Time spent in all."""
        return float(self.elapsed[-1])


@dataclass
class UnderWay:
    """Replicates that run together, between two rounds: what a checkpoint keeps of them.

    Parameters
    ----------
    state, judge, ledger : as in the loop
    elapsed : (T,)
        As in `Chunk`, up to round t.
    t : int
        Rounds done.
    """

    state: Any
    judge: Judge
    ledger: Ledger
    elapsed: NDArray[np.float64]
    t: int = 0

    @property
    def seconds(self) -> float:
        """Time spent so far, `init` included from the first round on."""
        return float(self.elapsed[max(0, self.t - 1)])


class DivergedError(FklError):
    """A method whose numbers are no longer finite.

    Parameters
    ----------
    algorithm : Algorithm
    failed : Chunk
        Replicates that ran when it happened; its judge and ledger are right up to round t. Those before ended well.
    t : int
        Rounds before the one in which it happened.

    Attributes
    ----------
    folder : Path or None
        Where these rounds were written.
    """

    def __init__(self, algorithm: Algorithm, failed: Chunk, t: int) -> None:
        mend = blame(algorithm, len(failed.elapsed))
        super().__init__(f"{algorithm.label} diverged in round {t + 1} {mend}")
        self.failed, self.t = failed, t
        self.folder: Path | None = None

    def __str__(self) -> str:
        kept = "the rounds before it are in" if self.t or self.failed.first else "see"
        return f"{self.args[0]}; {kept} {self.folder}" if self.folder else str(self.args[0])


def simulate(
    experiment: Experiment,
    threads: int | None,
    chunk: int | None,
    advance: Callable[[int], object],
    checkpoint: Checkpoint | None = None,
) -> Iterator[Chunk]:
    """Run all replicates, `chunk` at a time; the numbers depend on neither chunk, threads nor checkpoints.

    Parameters
    ----------
    experiment : Experiment
    threads : int or None
        Most that the compiled kernels use; None for all there are.
    chunk : int or None
        Replicates that run together; None for as many as `CHUNK_BYTES` seem to hold.
    advance : callable
        Told the number of replicate rounds done after each round.
    checkpoint : Checkpoint or None
        Where to keep what is done, and to go on from.

    Yields
    ------
    Chunk
        Each as soon as its replicates have ended; those that had ended before a checkpoint do not come again.

    Raises
    ------
    DivergedError
    """
    with _playing(threads):
        resumed = _resumed(experiment, checkpoint)
        if resumed is None:
            first, together = 0, chunk if chunk is not None else _fitting(experiment)
        else:
            first, together, world, under_way = resumed
            advance(first * world.problem.rounds + len(world.streams.replicates) * under_way.t)
    while first < experiment.replicates:
        with _playing(threads):
            if resumed is None:
                world = make_world(experiment, _some(experiment, first, together))[0]
                under_way = _begin(experiment, world)
            keep = partial(_keep, checkpoint, (first, together), under_way, world)
            played = Chunk(under_way.judge, under_way.ledger, under_way.elapsed, first)
            try:
                _play(experiment.algorithm, world, under_way, advance, keep)
            except _NotFiniteError:
                raise DivergedError(experiment.algorithm, played, under_way.t) from None
        yield played
        first, resumed = first + together, None


@contextmanager
def _playing(threads: int | None) -> Iterator[None]:
    """At most so many threads, and no warnings: the judge sees whatever grows too large."""
    with at_most(threads), np.errstate(all="ignore"):
        yield


def _some(experiment: Experiment, first: int, together: int) -> tuple[int, ...]:
    """Numbers of the replicates that run together."""
    return tuple(range(experiment.replicates)[first : first + together])


def _resumed(experiment: Experiment, checkpoint: Checkpoint | None) -> tuple[int, int, World, UnderWay] | None:
    """The place of a checkpoint, a world for it, and what was under way; None where there is none of this run."""
    place = checkpoint.place() if checkpoint is not None else None
    if checkpoint is None or place is None or place[0] >= experiment.replicates:
        return None
    world, _ = make_world(experiment, _some(experiment, *place))
    under_way = checkpoint.load(world, UnderWay)
    if under_way is None:
        return None
    world.channel.ledger = under_way.ledger
    return *place, world, under_way


def _keep(checkpoint: Checkpoint | None, place: tuple[int, int], under_way: UnderWay, world: World) -> None:
    if checkpoint is not None and checkpoint.due:
        checkpoint.save(place, under_way, vars(world))


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


class _NotFiniteError(Exception):
    """A round that the judge refused."""


def _begin(experiment: Experiment, world: World) -> UnderWay:
    judge = make_judge(experiment, world)
    elapsed = np.zeros(world.problem.rounds)
    start = perf_counter()
    state = experiment.algorithm.init(world)
    elapsed[0] = perf_counter() - start
    return UnderWay(state, judge, world.channel.ledger, elapsed)


def _play(
    algorithm: Algorithm,
    world: World,
    under_way: UnderWay,
    advance: Callable[[int], object],
    keep: Callable[[], None],
) -> None:
    """Play the rounds that are left."""
    problem, judge = world.problem, under_way.judge
    seconds = under_way.seconds
    for t in range(under_way.t, problem.rounds):
        world.channel.open_round(t, problem.present[t])
        start = perf_counter()
        under_way.state, outcome = algorithm.step(world, under_way.state, t)
        seconds += perf_counter() - start
        under_way.elapsed[t] = seconds
        if not judge.enter(t, outcome):
            raise _NotFiniteError
        under_way.t = t + 1
        advance(len(world.streams.replicates))
        keep()
    judge.close()


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
        return ScoredJudge(problem, len(world.streams.replicates), getattr(algorithm, "fold", None))
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
