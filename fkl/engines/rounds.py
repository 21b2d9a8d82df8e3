"""The loop over replicates, which run in chunks that fit into memory. It is the same for all engines."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.errors import TOO_LARGE, FklError
from fkl.contract.world import World, Wrapped
from fkl.data.problem import Scale
from fkl.engines.base import DivergedError, Experiment, RoundNotFiniteError, make_world, play_next
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.per_world import WithoutFederation
from fkl.kernels.functions import SavedFunction
from fkl.kernels.threads import at_most
from fkl.screen.messages import show_warning
from fkl.tasks import Judge
from fkl.wire import Channel, Ledger
from fkl.wire.payloads import payloads_by_kind

EARLY = 10
"""Number of rounds in which no usual step size makes numbers diverge; earlier divergence names the array."""


class LearnedFunction(NamedTuple):
    """The learned function of a replicate.

    Parameters
    ----------
    function : Function
        Function of the scaled samples that methods see.
    scale : Scale
        Scale of the samples and targets.
    reached : (K,) bool
        Whether a client took part in any round; only these clients have learned personal functions.
    """

    function: SavedFunction
    scale: Scale
    reached: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"<learned {type(self.function).__name__}>"  # without its arrays


@dataclass(frozen=True)
class Chunk:
    """Results of replicates that ran together."""

    judge: Judge
    ledger: Ledger
    elapsed: NDArray[np.float64]
    """Time in the algorithm's `init` and `step` up to the end of each round, over all replicates, (T,)."""
    first: int
    """Number of the first replicate."""
    learned: tuple[LearnedFunction, ...] = ()
    """The learned function of each replicate, if the loop keeps functions."""
    summary_columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Conditions' columns in the summary, (R,), by name."""
    round_columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Conditions' columns of the rounds, (T, R), by name."""
    stopped_at: float | None = None
    """Round after which `stop_when` ended the run, NaN if it was never true; None for a run without `stop_when`."""

    @property
    def seconds(self) -> float:
        """Total time."""
        return float(self.elapsed[-1])

    def seconds_per_replicate(self) -> NDArray[np.float64]:
        """Each replicate's share of the time up to the end of each round, (T, R)."""
        replicates = self.ledger.shape[0]
        return np.repeat(self.elapsed[:, None] / replicates, replicates, axis=1)


@dataclass
class InProgress:
    """Replicates that run together, between two rounds, as a checkpoint stores them.

    Parameters
    ----------
    state, judge, ledger : as in the loop
    elapsed : (T,)
        As in `Chunk`, up to round t.
    t : int
        Number of rounds done.
    """

    state: Any
    judge: Judge
    ledger: Ledger
    elapsed: NDArray[np.float64]
    t: int = 0

    @property
    def seconds(self) -> float:
        """Time so far, including `init`."""
        return float(self.elapsed[max(0, self.t - 1)])


def simulate_run(
    experiment: Experiment,
    threads: int | None = None,
    chunk: int | None = None,
    advance: Callable[[int], object] = lambda _: None,
    checkpoint: Checkpoint | None = None,
    watch: Callable[[Chunk, int], object] | None = None,
    keep_functions: bool = False,
) -> Iterator[Chunk]:
    """Run all replicates with the experiment's engine, `chunk` at a time.

    The results do not depend on chunk, threads or checkpoints.

    Parameters
    ----------
    experiment : Experiment
    threads : int or None
        Maximum number of threads of the compiled kernels; None for all.
    chunk : int or None
        Number of replicates that run together; None for as many as fit in the task's `room` and half the free memory.
    advance : callable
        Called after each round with the number of replicate rounds done since the last call.
    checkpoint : Checkpoint or None
        Stores the results so far; the run resumes from it.
    watch : callable or None
        Called after each round, outside the clock, with the running replicates and the number of rounds done.
    keep_functions : bool
        Whether to return the learned functions.

    Yields
    ------
    Chunk
        Each chunk as soon as its replicates have ended; chunks that ended before the checkpoint are not repeated.
    """
    engine = experiment.engine
    with _limit_resources(experiment, threads, chunk):
        # Resume from the checkpoint's position, or start from the beginning
        place, resumed = checkpoint.place() if checkpoint is not None else None, None
        if checkpoint is not None and place is not None and place[0] < experiment.replicates:
            world = _world_of(experiment, *place)
            resumed = checkpoint.load(world, InProgress)
        if place is None or resumed is None:
            first, chunk_size = 0, fitting_chunk(experiment, chunk)
        else:
            (first, chunk_size), in_progress = place, resumed
            world.channel.ledger = in_progress.ledger
            advance(first * world.problem.rounds + len(world.streams.replicates) * in_progress.t)
    # Chunk by chunk of replicates; a resumed chunk has its state already
    while first < experiment.replicates:
        with _limit_resources(experiment, threads, chunk):
            if resumed is None:
                world = _world_of(experiment, first, chunk_size)
                in_progress = before_first_round(experiment, world)
            # Play the rounds, and save, watch and report between them
            played = Chunk(in_progress.judge, in_progress.ledger, in_progress.elapsed, first)
            try:
                with closing(engine.rounds(experiment.algorithm, world, in_progress, watch is not None)) as pauses:
                    for done in pauses:
                        advance(done * len(world.streams.replicates))
                        _save_if_due(checkpoint, (first, chunk_size), in_progress, world)
                        if watch is not None:
                            watch(played, in_progress.t)
            # The first number that is not finite ends the run; early in a run, find out where it appeared
            except RoundNotFiniteError:
                failed = replace(played, stopped_at=engine.stopped_at)
                early = in_progress.t < EARLY
                not_finite = first_not_finite(experiment, world.streams.replicates, in_progress.t + 1) if early else ""
                raise DivergedError(experiment.algorithm, failed, in_progress.t, not_finite) from None
            played = replace(played, elapsed=in_progress.elapsed, stopped_at=engine.stopped_at)
            if isinstance(experiment.algorithm, Wrapped):
                ended = in_progress.state
                held = getattr(ended, "server", None) or ended.own  # state of the server, or of the agents on a graph
                of_summary, of_rounds = experiment.algorithm.at_the_end(world.problem, held)
                played = replace(played, summary_columns=of_summary, round_columns=of_rounds)
            if keep_functions:
                try:
                    method: Any = experiment.algorithm
                    functions = method.functions(world, in_progress.state, in_progress.t)
                    pairs = zip(functions, experiment.task.scales_of_replicates(world), strict=True)
                    rounds = slice(0, in_progress.t)
                    each = (
                        (one, scale, world.problem.reached(rounds) if one.clients > 1 else np.ones(1, np.bool_))
                        for one, scale in pairs
                    )
                    played = replace(played, learned=tuple(LearnedFunction(*parts) for parts in each))
                except (FklError, MemoryError) as error:  # the run itself is still recorded
                    show_warning(f"the learned functions are not saved: {error}")
        yield played
        first, resumed = first + chunk_size, None


@contextmanager
def _limit_resources(experiment: Experiment, threads: int | None, chunk: int | None) -> Iterator[None]:
    """Limit threads and memory, and silence overflow warnings, because the judge finds numbers that grow too large."""
    with at_most(threads), np.errstate(all="ignore"), within_memory(experiment, chunk):
        yield


def _world_of(experiment: Experiment, first: int, chunk_size: int) -> World:
    """World of the replicates that run together."""
    return make_world(experiment, tuple(range(experiment.replicates)[first : first + chunk_size]))[0]


def _save_if_due(checkpoint: Checkpoint | None, place: tuple[int, int], in_progress: InProgress, world: World) -> None:
    if checkpoint is not None and checkpoint.due:
        checkpoint.save(place, in_progress, vars(world))


def before_first_round(experiment: Experiment, world: World) -> InProgress:
    """The replicates' state before their first round."""
    judge: Any = experiment.task.judge(world, experiment.algorithm)
    # Own metrics and intervals, if the judge can record them
    if world.metrics:
        if not hasattr(judge, "metrics"):
            raise FklError(f"metrics: {type(judge).__name__}, the judge of {experiment.algorithm.label}, has none")
        judge.metrics = dict(world.metrics)
    if world.intervals is not None:
        if not hasattr(judge, "intervals"):
            raise FklError(f"intervals: {type(judge).__name__}, the judge of {experiment.algorithm.label}, has none")
        alone = (
            isinstance(experiment.algorithm, WithoutFederation)
            or experiment.topology is not None
            or experiment.task.of_features
        )
        judge.intervals = world.intervals.begin(world, with_server=not alone)
    # The clock includes the method's start
    elapsed = np.zeros(world.problem.rounds)
    start = perf_counter()
    state = experiment.algorithm.init(world)
    elapsed[0] = perf_counter() - start
    return InProgress(state, judge, world.channel.ledger, elapsed)


# ---- How many replicates fit into memory, measured by a rehearsal of the first round

ROUND_BYTES, CLIENT_BYTES = 80, 80
"""Least memory of judge, ledger and records for each round and client of a replicate."""
MANY_FEATURES = 256
"""Number of features per kernel from which rounds with fewer features are run first, to predict the memory."""
FEW_CLIENTS = 256
NOISE_BYTES = 2**20
"""Largest difference in memory between two rounds that is noise."""
KEYS_NAMED = 3


def fitting_chunk(experiment: Experiment, chunk: int | None = None) -> int:
    """Number of replicates to run together: `chunk`, or as many as fit; refuse runs that cannot fit."""
    # Refuse runs whose records alone would not fit
    problem = experiment.problem
    chunk_size = min(chunk or 1, experiment.replicates)
    rows = problem.rounds * ROUND_BYTES + problem.clients * CLIENT_BYTES
    what = f"the records of {problem.rounds} rounds and {problem.clients} clients"
    # Keys for the number of rounds, and of replicates that run together
    algorithm: Any = experiment.algorithm
    of_rounds = [f"algo.{key.name}" for key in fields(algorithm) if getattr(algorithm, key.name) == problem.rounds]
    keys = ", ".join(of_rounds or ["partition.rounds", "partition.clients"])
    memory.require_memory(chunk_size * rows, what, f"{keys} or chunk={chunk_size}" if chunk_size > 1 else keys)
    # Replicates together, as many as a rehearsal of one shows that fit
    fits = experiment.task.replicates_at_once(partial(rehearse_round, experiment))
    chunk_size = chunk_size if chunk and experiment.redraw is None else fits
    # A condition on the mean needs all replicates at the same round
    if experiment.engine.needs_all_replicates and chunk_size < experiment.replicates:
        every, mend = experiment.replicates, f"replicates={chunk_size}"
        if experiment.redraw is None:
            mend = f"chunk={every}, which takes more memory, or {mend}"
        raise FklError(f"stop_when: needs all {every} replicates together, but {chunk_size} run at a time: set {mend}")
    return chunk_size


def rehearse_round(experiment: Experiment) -> tuple[int, int]:
    """Rehearse the first round with one replicate; return approximately the bytes that it holds, and its peak.

    All code is compiled here, outside the clock, and a run that does not fit is refused before it begins. If kernels
    have many features, rounds with fewer features are run first. The line through the memory of the last two rounds
    predicts that of the full number of features, so a run is refused before it allocates too much. Memory that grows
    faster than this line is underestimated. It is overestimated, by at most a quarter, for matrices that are square up
    to the number of samples and grow more slowly beyond it.
    """
    # The method's own estimate comes first
    full = getattr(experiment.dictionary, "D", 1)
    needs = getattr(experiment.algorithm, "needs", None)  # the method's own estimate, before any round
    if needs is not None:
        what = f"a replicate of {experiment.algorithm.label} with {full} features a kernel"
        memory.require_memory(needs(experiment.dictionary, experiment.problem), what, _largest_keys(experiment))
    # Fewer features first, from which the memory of all of them can be extrapolated
    steps = [full]
    while full >= MANY_FEATURES and steps[0] >= MANY_FEATURES // 4:
        steps.insert(0, steps[0] // 4)
    # Compile with a tiny problem, so compilation does not count
    _first_round(_small_experiment(experiment))
    peaks: list[int] = []
    held = 0

    def run_with(features: int) -> None:
        nonlocal held
        held = _first_round(with_features(experiment, features))

    # Stop before a step that would not fit
    for number, features in enumerate(steps):
        if number > 1 and peaks[-1] - peaks[-2] > NOISE_BYTES:
            (fewer, more), (low, high) = steps[number - 2 : number], peaks[-2:]
            needed = high + (high - low) * (full - more) // (more - fewer)
            what = f"a replicate of {experiment.algorithm.label} with {full} features a kernel"
            memory.require_memory(needed, what, _largest_keys(experiment))
        peaks.append(memory.peak_bytes(partial(run_with, features)))
    return held, peaks[-1]


def _small_experiment(experiment: Experiment) -> Experiment:
    """Reduce an experiment to the fewest features and clients that compile all code."""
    no_graph = experiment.topology is None  # a graph needs all its agents
    problem = experiment.task.for_few_clients(FEW_CLIENTS) if no_graph else experiment.problem
    return with_features(replace(experiment, problem=problem, redraw=None), 2)


def with_features(experiment: Experiment, features: int) -> Experiment:
    """Change the number of features per kernel of an experiment, if the dictionary has features."""
    dictionary: Any = experiment.dictionary
    return replace(experiment, dictionary=replace(dictionary, D=features)) if hasattr(dictionary, "D") else experiment


def _first_round(experiment: Experiment) -> int:
    """Run the first round with one replicate; return approximately the bytes that it holds."""
    # One round of one replicate, and what it leaves
    world, _ = make_world(experiment, (0,))
    state = experiment.algorithm.init(world)
    temporaries = 12 * 8 * experiment.problem.clients * experiment.dictionary.N  # a round's (R, K, N) arrays in float64
    held = memory.count_bytes(state) + memory.count_bytes(vars(world.common).get("bank")) + temporaries
    _, outcome = next(play_next(experiment.algorithm, world, state, 0, experiment.engine.at_once))
    held += memory.count_bytes(getattr(vars(world).get("samples"), "gone_over", None))
    if experiment.task.judge_counts:
        experiment.task.judge(world, experiment.algorithm).enter(0, outcome)
    return held


class _Watching(Channel):
    """A channel that records the first payload with values that are not finite, for each direction."""

    def __init__(self, channel: Channel) -> None:
        vars(self).update(vars(channel))
        self.told = self.sent = ""

    def down(self, message: Any) -> Any:
        """Pass a message to clients, and record the first value in it that is not finite."""
        self.told = self.told or self._first_not_finite_part(message)
        return super().down(message)

    def up(self, message: Any) -> Any:
        """Pass a message from clients, and record the first value in it that is not finite."""
        self.sent = self.sent or self._first_not_finite_part(message)
        return super().up(message)

    def send_to_neighbours(self, message: Any, *how: Any) -> Any:
        """Pass a message from agents, and record the first value in it that is not finite."""
        self.sent = self.sent or self._first_not_finite_part(message)
        return super().send_to_neighbours(message, *how)

    def _first_not_finite_part(self, message: Any) -> str:
        for name, payloads in payloads_by_kind(message):
            for payload in payloads:
                for leading in getattr(payload, "leading", ()):
                    values, told = getattr(payload, leading), f"{type(message).__name__}.{name}"
                    if wrong_part := _not_finite_part(told, values, self._present > 0):
                        return wrong_part
        return ""


def first_not_finite(experiment: Experiment, replicates: tuple[int, ...], rounds: int) -> str:
    """Repeat some rounds to find the first array that is not finite, and its party; empty if there is none."""
    world, _ = make_world(experiment, replicates)
    # Repeat the run with a channel that looks at every message
    world = replace(world, channel=(channel := _Watching(world.channel)))
    state = experiment.algorithm.init(world)
    for t in range(rounds):
        here = world.problem.present[t]
        channel.open_round(t, here)
        state, outcome = experiment.algorithm.step(world, state, t)
        # Parts of the outcome, then parts of messages
        arrays = {"theta": outcome}
        if is_dataclass(outcome):
            kind = type(outcome).__name__
            arrays = {f"{kind}.{field.name}": getattr(outcome, field.name) for field in fields(outcome)}
        shown = (_not_finite_part(name, values, here) for name, values in arrays.items())
        if wrong_part := channel.told or next(filter(None, shown), "") or channel.sent:
            return wrong_part.replace("is not finite", f"is not finite in round {t + 1}")
    return ""


def _not_finite_part(name: str, values: Any, present: NDArray[np.bool_]) -> str:
    """Text about an array that is not finite, with the client if its second axis is that of clients; else empty."""
    if not hasattr(values, "dtype") or values.dtype.kind != "f" or np.isfinite(values).all():
        return ""
    said = f"{name} is not finite"
    if values.ndim < 2 or values.shape[1] != len(present):
        return said
    of_clients = present & ~np.isfinite(values).all(axis=(0, *range(2, values.ndim)))
    return f"{said} (client {int(of_clients.argmax())})" if of_clients.any() else ""


def kinds_sent(experiment: Experiment) -> dict[str, set[str]]:
    """Kinds of message by direction, from a first round with few features."""
    experiment = _small_experiment(experiment)
    world, ledger = make_world(experiment, (0,))
    world.channel.open_round(0, experiment.problem.present[0])
    experiment.algorithm.step(world, experiment.algorithm.init(world), 0)
    sent: dict[str, set[str]] = {}
    for direction, kind in ledger.kinds:
        sent.setdefault(direction, set()).add(kind)
    return sent


@contextmanager
def within_memory(experiment: Experiment, chunk: int | None) -> Iterator[None]:
    """Raise FklError, with the largest keys, for a run that runs out of memory although the rehearsal fitted."""
    free = memory.shown_bytes(memory.available_bytes())
    try:
        with memory.limited_to_free_memory():
            yield
    except (MemoryError, ValueError) as error:
        if isinstance(error, ValueError) and not str(error).startswith(TOO_LARGE):
            raise
        what = f"out of memory: {experiment.algorithm.label} needs more than the {free} that is free"
        raise FklError(f"{what} ({error}); lower {_largest_keys(experiment, chunk)}") from error


def _largest_keys(experiment: Experiment, chunk: int | None = None) -> str:
    """The largest integers of a configuration on which memory may depend, as text with their values."""
    problem, algorithm, dictionary = experiment.problem, experiment.algorithm, experiment.dictionary
    sizes = {f"algo.{key.name}": getattr(algorithm, key.name) for key in fields(algorithm)}  # type: ignore[arg-type]
    sizes |= {"partition.clients": problem.clients, "chunk": chunk}
    sizes |= {f"kernels.{key}": getattr(dictionary, key, None) for key in ("N", "D")}
    idle = getattr(algorithm, "idle", ())
    whole = {key: size for key, size in sizes.items() if key not in idle and isinstance(size, int) and size > 1}
    largest = sorted(whole, key=whole.__getitem__, reverse=True)[:KEYS_NAMED]
    return " or ".join(f"{key}={whole[key]}" for key in largest) or "replicates"
