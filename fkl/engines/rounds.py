"""The loop over replicates, which run in groups. It is the same for all engines."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.conditions.wrapped import Wrapped, WrappedStar
from fkl.contract.world import World
from fkl.data.scale import Scale
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.divergence import DivergedError, NotFiniteError
from fkl.engines.experiment import Experiment, make_world
from fkl.engines.memory_fit import first_not_finite, fitting, within_memory
from fkl.kernels.functions import Function
from fkl.kernels.threads import at_most
from fkl.screen.messages import warning
from fkl.tasks import Judge
from fkl.tasks.learners import Alone
from fkl.wire import Ledger

EARLY = 10
"""Rounds in which no usual step size makes numbers diverge: an array that is not finite by then is named."""


class Learned(NamedTuple):
    """Learned function of a replicate.

    Parameters
    ----------
    function : Function
        Function of the scaled numbers that methods see.
    scale : Scale
        The scaling of these numbers.
    reached : (K,) bool
        Whether a client took part in any round; of personal functions, only these have been learned.
    """

    function: Function
    scale: Scale
    reached: NDArray[np.bool_]


@dataclass(frozen=True)
class Chunk:
    """Results of replicates that ran together."""

    judge: Judge
    ledger: Ledger
    elapsed: NDArray[np.float64]
    """Time spent in the algorithm's `init` and `step` up to the end of each round, all replicates together, (T,)."""
    first: int
    """Number of the first replicate."""
    learned: tuple[Learned, ...] = ()
    """A function for each replicate, if the loop keeps functions."""
    told: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Columns of network conditions in the summary (R,), by name."""
    by_round: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Their columns of the rounds (T, R), by name."""
    stopped_at: float | None = None
    """The round after which `stop_when` ended the run, NaN if it never held; None for a run without it."""

    @property
    def seconds(self) -> float:
        """Total time."""
        return float(self.elapsed[-1])

    def seconds_per_replicate(self) -> NDArray[np.float64]:
        """Time of each replicate by itself up to the end of each round, (T, R)."""
        replicates = self.ledger.shape[0]
        return np.repeat(self.elapsed[:, None] / replicates, replicates, axis=1)


@dataclass
class InProgress:
    """Replicates that run together, between two rounds, as stored in a checkpoint.

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


def simulate(
    experiment: Experiment,
    threads: int | None = None,
    chunk: int | None = None,
    advance: Callable[[int], object] = lambda _: None,
    checkpoint: Checkpoint | None = None,
    watch: Callable[[Chunk, int], object] | None = None,
    keep_functions: bool = False,
) -> Iterator[Chunk]:
    """Let the experiment's engine play all replicates, `chunk` at a time.

    The results do not depend on chunk, threads or checkpoints.

    Parameters
    ----------
    experiment : Experiment
    threads : int or None
        Maximum number of threads of the compiled kernels; None for all.
    chunk : int or None
        Replicates that run together; None for as many as probably fit in the task's `room` and half the free memory.
    advance : callable
        Called after each round with the number of replicate rounds done since the last call.
    checkpoint : Checkpoint or None
        Stores the results so far; the run resumes from it.
    watch : callable or None
        Called after each round, outside the clock, with the running replicates and their number of rounds.
    keep_functions : bool
        Whether to return the learned functions.

    Yields
    ------
    Chunk
        Each as soon as its replicates have ended; chunks that ended before a checkpoint are not repeated.
    """
    engine = experiment.engine
    with _playing(experiment, threads, chunk):
        # From a checkpoint's position, with a world for it, or from the beginning
        place, resumed = checkpoint.place() if checkpoint is not None else None, None
        if checkpoint is not None and place is not None and place[0] < experiment.replicates:
            world = _world_of(experiment, *place)
            resumed = checkpoint.load(world, InProgress)
        if place is None or resumed is None:
            first, together = 0, fitting(experiment, chunk)
        else:
            (first, together), in_progress = place, resumed
            world.channel.ledger = in_progress.ledger
            advance(first * world.problem.rounds + len(world.streams.replicates) * in_progress.t)
    while first < experiment.replicates:
        with _playing(experiment, threads, chunk):
            if resumed is None:
                world = _world_of(experiment, first, together)
                in_progress = before_first_round(experiment, world)
            played = Chunk(in_progress.judge, in_progress.ledger, in_progress.elapsed, first)
            watched = watch is not None and engine.has_all_clients
            try:
                with closing(engine.rounds(experiment.algorithm, world, in_progress, watched)) as pauses:
                    for done in pauses:
                        advance(done * len(world.streams.replicates))
                        _save_if_due(checkpoint, (first, together), in_progress, world)
                        if watch is not None and watched:
                            watch(played, in_progress.t)
            except NotFiniteError:
                failed = engine.gathered(played)
                early = in_progress.t < EARLY and engine.has_all_clients
                not_finite = first_not_finite(experiment, world.streams.replicates, in_progress.t + 1) if early else ""
                raise DivergedError(experiment.algorithm, failed, in_progress.t, not_finite) from None
            if isinstance(experiment.algorithm, Wrapped):
                ended = in_progress.state
                held = ended.server if isinstance(experiment.algorithm, WrappedStar) else ended.own
                told, by_round = experiment.algorithm.at_the_end(world.problem, held)
                played = replace(played, told=told, by_round=by_round)
            if keep_functions:
                try:
                    method: Any = experiment.algorithm
                    functions = method.functions(world, in_progress.state, in_progress.t)
                    pairs = zip(functions, experiment.task.scales(world), strict=True)
                    rounds = slice(0, in_progress.t)
                    each = (
                        (one, scale, world.problem.reached(rounds) if one.clients > 1 else np.ones(1, np.bool_))
                        for one, scale in pairs
                    )
                    played = replace(played, learned=tuple(Learned(*parts) for parts in each))
                except (FklError, MemoryError) as error:  # the run itself is kept
                    warning(f"no functions are kept: {error}")
        yield engine.gathered(played)
        first, resumed = first + together, None


@contextmanager
def _playing(experiment: Experiment, threads: int | None, chunk: int | None) -> Iterator[None]:
    """Limit threads and memory, without overflow warnings: the judge sees numbers that grow too large."""
    with at_most(threads), np.errstate(all="ignore"), within_memory(experiment, chunk):
        yield


def _world_of(experiment: Experiment, first: int, together: int) -> World:
    """World of the replicates that run together."""
    return make_world(experiment, tuple(range(experiment.replicates)[first : first + together]))[0]


def _save_if_due(checkpoint: Checkpoint | None, place: tuple[int, int], in_progress: InProgress, world: World) -> None:
    if checkpoint is not None and checkpoint.due:
        checkpoint.save(place, in_progress, vars(world))


def before_first_round(experiment: Experiment, world: World) -> InProgress:
    """Replicates before their first round."""
    judge: Any = experiment.task.judge(world, experiment.algorithm)
    if world.metrics:
        if not hasattr(judge, "metrics"):
            raise FklError(f"metrics: {type(judge).__name__}, the judge of {experiment.algorithm.label}, knows of none")
        judge.metrics = dict(world.metrics)
    if world.intervals is not None:
        if not hasattr(judge, "intervals"):
            raise FklError(f"intervals: {type(judge).__name__}, the judge of {experiment.algorithm.label}, has none")
        alone = (
            isinstance(experiment.algorithm, Alone) or experiment.topology is not None or experiment.task.of_features
        )
        judge.intervals = world.intervals.begin(world, with_server=not alone)
    elapsed = np.zeros(world.problem.rounds)
    start = perf_counter()
    state = experiment.algorithm.init(world)
    elapsed[0] = perf_counter() - start
    return InProgress(state, judge, world.channel.ledger, elapsed)
