"""The synchronous round loop, and how many replicates of it the memory holds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fkl import memory
from fkl.algorithms.base import Algorithm, World
from fkl.data.problem import Batch, Problem, Repeated
from fkl.data.vertical import Vertical
from fkl.diverged import blame
from fkl.errors import TOO_LARGE, FklError
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
SHARE_OF_FREE = 1 / 2
"""Most of the free memory that replicates which run together may be chosen to take."""
ROUND_BYTES, CLIENT_BYTES = 80, 80
"""What judge, ledger and records hold of a replicate for each of its rounds and clients, at least."""
MANY_FEATURES = 256
"""From so many a kernel on, rounds with fewer are played first, to see what all of them would take."""
FEW_CLIENTS = 256
NOISE_BYTES = 2**20
"""Differences between two rounds that say nothing."""
KEYS_NAMED = 3


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run's numbers.

    Parameters
    ----------
    problem, topology
        Where they are drawn anew, those of replicate 0.
    redraw : callable or None
        Samples and graph of each replicate by its number, where every replicate has its own; such replicates run one
        at a time, so that the memory holds one split.
    """

    problem: Problem | Batch | Repeated | Vertical
    dictionary: Dictionary
    network: Network
    algorithm: Algorithm
    seed: int
    replicates: int
    precision: str
    topology: Topology | None = None
    redraw: Callable[[int], tuple[Batch, Topology]] | None = None
    engine: str = "numba"


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
        Replicates that run together; None for as many as `CHUNK_BYTES`, and half the free memory, seem to hold.
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
    with _playing(threads), _within_memory(experiment, chunk):
        resumed = _resumed(experiment, checkpoint)
        if resumed is None:
            first, together = 0, _fitting(experiment, chunk)
        else:
            first, together, world, under_way = resumed
            advance(first * world.problem.rounds + len(world.streams.replicates) * under_way.t)
    while first < experiment.replicates:
        with _playing(threads), _within_memory(experiment, chunk):
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


def _fitting(experiment: Experiment, chunk: int | None = None) -> int:
    """How many replicates to run together: `chunk`, or what suits; what cannot fit is refused.

    Raises
    ------
    fkl.errors.FklError
    """
    problem = experiment.problem
    together = min(chunk or 1, experiment.replicates)
    rows = problem.rounds * ROUND_BYTES + problem.clients * CLIENT_BYTES
    what = f"the records of {problem.rounds} rounds and {problem.clients} clients"
    memory.require_memory(together * rows, what, _keys_of_rounds(experiment, together))
    if isinstance(problem, Vertical):
        return together if chunk else 1  # whose own products are shared among the threads
    if isinstance(problem, Repeated):
        return together if chunk else numba.get_num_threads()  # they share nothing, and a round of theirs is long
    held, peak = _rehearse(experiment)
    if experiment.redraw is not None:
        return 1
    room = BATCH_CHUNK_BYTES if isinstance(problem, Batch) else CHUNK_BYTES
    fits = min(room // held, int(SHARE_OF_FREE * memory.available_bytes()) // peak)
    return together if chunk else max(1, fits)


def _rehearse(experiment: Experiment) -> tuple[int, int]:
    """Play the first round with one replicate and forget it; bytes that a replicate keeps, about, and needs at most.

    Whatever is to be compiled is compiled here, outside the clock, and what does not fit is refused before the run.
    Of many features rounds with fewer come first, and what all of them need is refused by the line through the last two
    rounds before it is taken. Whatever grows faster needs more than that line says; it says too much, by a quarter at
    most, only of matrices that are square up to the number of samples and no longer grow as fast beyond.
    """
    full = getattr(experiment.dictionary, "D", 1)
    steps = [full]
    while full >= MANY_FEATURES and steps[0] >= MANY_FEATURES // 4:
        steps.insert(0, steps[0] // 4)
    _first_round(_small(experiment))
    peaks: list[int] = []
    held = 0

    def play(features: int) -> None:
        nonlocal held
        held = _first_round(_with_features(experiment, features))

    for number, features in enumerate(steps):
        if number > 1 and peaks[-1] - peaks[-2] > NOISE_BYTES:
            (fewer, more), (low, high) = steps[number - 2 : number], peaks[-2:]
            needed = high + (high - low) * (full - more) // (more - fewer)
            what = f"a replicate of {experiment.algorithm.label} with {full} features a kernel"
            memory.require_memory(needed, what, _largest_keys(experiment))
        peaks.append(memory.peak_bytes(partial(play, features)))
    return held, peaks[-1]


def _small(experiment: Experiment) -> Experiment:
    """The same with as few features and clients as compile all that there is to compile."""
    problem, some = experiment.problem, slice(FEW_CLIENTS)
    if isinstance(problem, Problem) and problem.clients > FEW_CLIENTS:
        streams = {name: getattr(problem, name)[:, some] for name in ("x", "y", "present")}
        experiment = replace(experiment, problem=replace(problem, **streams, site=problem.site[some], tested=None))
    return _with_features(experiment, 2)


def _with_features(experiment: Experiment, features: int) -> Experiment:
    """The same with so many features a kernel, where the dictionary has features."""
    dictionary: Any = experiment.dictionary
    return replace(experiment, dictionary=replace(dictionary, D=features)) if hasattr(dictionary, "D") else experiment


def _first_round(experiment: Experiment) -> int:
    """Play the first round with one replicate; about how many bytes it keeps and computes with."""
    world, _ = make_world(experiment, (0,))
    state = experiment.algorithm.init(world)
    temporaries = 12 * 8 * experiment.problem.clients * experiment.dictionary.N  # of a round, (R, K, N) in float64
    held = nbytes(state) + nbytes(vars(world).get("bank")) + temporaries
    world.channel.open_round(0, experiment.problem.present[0])
    _, outcome = experiment.algorithm.step(world, state, 0)
    if isinstance(experiment.problem, Problem):  # the other judges hold less than methods do, and take their time
        make_judge(experiment, world).enter(0, outcome)
    return held


def _keys_of_rounds(experiment: Experiment, together: int) -> str:
    """Keys that say how many rounds there are, and how many replicates run together."""
    algorithm, rounds = experiment.algorithm, experiment.problem.rounds
    keys = [f"algo.{key.name}" for key in fields(algorithm) if getattr(algorithm, key.name) == rounds]  # type: ignore[arg-type]
    keys = keys or ["partition.rounds", "partition.clients"]
    return ", ".join(keys) + (f" or chunk={together}" if together > 1 else "")


@contextmanager
def _within_memory(experiment: Experiment, chunk: int | None) -> Iterator[None]:
    """Refuse, by the keys that are largest, what nobody foresaw and what needs more memory than there is."""
    free = memory.shown_bytes(memory.available_bytes())
    try:
        with memory.no_more_than_there_is():
            yield
    except (MemoryError, ValueError) as error:
        if isinstance(error, ValueError) and not str(error).startswith(TOO_LARGE):
            raise
        what = f"out of memory: {experiment.algorithm.label} needs more than the {free} that is free"
        raise FklError(f"{what} ({error}); lower {_largest_keys(experiment, chunk)}") from None


def _largest_keys(experiment: Experiment, chunk: int | None = None) -> str:
    """The whole numbers of a configuration that memory may depend on, the largest ones with their values."""
    problem, algorithm, dictionary = experiment.problem, experiment.algorithm, experiment.dictionary
    sizes = {f"algo.{key.name}": getattr(algorithm, key.name) for key in fields(algorithm)}  # type: ignore[arg-type]
    sizes |= {"partition.clients": problem.clients, "chunk": chunk}
    if isinstance(problem, Problem | Batch):  # others have no use for the dictionary
        sizes |= {f"kernels.{key}": getattr(dictionary, key, None) for key in ("N", "D")}
    whole = {key: size for key, size in sizes.items() if isinstance(size, int) and size > 1}
    largest = sorted(whole, key=whole.__getitem__, reverse=True)[:KEYS_NAMED]
    return " or ".join(f"{key}={whole[key]}" for key in largest) or "replicates"


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
        del outcome  # before the next round needs as much
        under_way.t = t + 1
        advance(len(world.streams.replicates))
        keep()
    judge.close()


def make_world(experiment: Experiment, replicates: tuple[int, ...]) -> tuple[World, Ledger]:
    """World of some replicates of an experiment, and the ledger behind its channel."""
    problem, network, precision = experiment.problem, experiment.network, experiment.precision
    topology, streams = experiment.topology, Streams(experiment.seed, replicates)
    if experiment.redraw is not None:
        [replicate] = replicates
        problem, topology = experiment.redraw(replicate)
    directions = WITH_A_SERVER if topology is None else BETWEEN_PEERS
    if isinstance(problem, Vertical):
        directions = BETWEEN_PARTIES
    if network.loss > 0:
        directions = (*directions, "lost")
    ledger = Ledger(problem.rounds, len(replicates), problem.clients, network.cost, directions)
    channel = Channel(network, ledger, np.dtype(precision), experiment.algorithm.label, streams)
    return World(problem, experiment.dictionary, channel, streams, precision, topology, experiment.engine), ledger


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


def nbytes(holder: Any) -> int:
    """Bytes of the arrays in an object: itself, the items of a list, the fields of a dataclass."""
    if isinstance(holder, np.ndarray):
        return holder.nbytes
    if isinstance(holder, list):
        return sum(map(nbytes, holder))
    return sum(nbytes(getattr(holder, field.name)) for field in fields(holder)) if is_dataclass(holder) else 0
