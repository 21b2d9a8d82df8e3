"""Number of replicates that fit into memory: a rehearsal of the first round measures it; too large runs are refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.errors import TOO_LARGE, FklError
from fkl.engines.experiment import Experiment, make_world
from fkl.wire import Channel
from fkl.wire.payloads import kinds

ROUND_BYTES, CLIENT_BYTES = 80, 80
"""Least memory of judge, ledger and records for each round and client of a replicate."""
MANY_FEATURES = 256
"""Number of features per kernel from which rounds with fewer features are played first, to predict the memory."""
FEW_CLIENTS = 256
NOISE_BYTES = 2**20
"""Differences between two rounds that are not significant."""
KEYS_NAMED = 3


def fitting(experiment: Experiment, chunk: int | None = None) -> int:
    """How many replicates to run together: `chunk`, or a suitable number; refuse runs that cannot fit."""
    problem = experiment.problem
    together = min(chunk or 1, experiment.replicates)
    rows = problem.rounds * ROUND_BYTES + problem.clients * CLIENT_BYTES
    what = f"the records of {problem.rounds} rounds and {problem.clients} clients"
    # Keys for the number of rounds, and of replicates that run together
    algorithm: Any = experiment.algorithm
    of_rounds = [f"algo.{key.name}" for key in fields(algorithm) if getattr(algorithm, key.name) == problem.rounds]
    keys = ", ".join(of_rounds or ["partition.rounds", "partition.clients"])
    memory.require_memory(together * rows, what, f"{keys} or chunk={together}" if together > 1 else keys)
    fits = experiment.task.replicates_at_once(partial(rehearse, experiment))
    together = together if chunk and experiment.redraw is None else fits
    if experiment.engine.all_together and together < experiment.replicates:
        every, mend = experiment.replicates, f"replicates={together}"
        if experiment.redraw is None:
            mend = f"chunk={every}, which takes more memory, or {mend}"
        raise FklError(f"stop_when: needs all {every} replicates together, and {together} run at a time: give {mend}")
    return together


def rehearse(experiment: Experiment) -> tuple[int, int]:
    """Rehearse the first round with one replicate; return approximately the bytes that it keeps, and its peak.

    All code is compiled here, outside the clock, and a run that does not fit is refused before it begins. If kernels
    have many features, rounds with fewer features are played first. The line through the memory of the last two rounds
    predicts the memory of the next, which is refused before its allocation. Memory that grows faster than this line is
    underestimated. It is overestimated, by a quarter at most, for matrices that are square up to the number of samples
    and grow more slowly beyond.
    """
    full = getattr(experiment.dictionary, "D", 1)
    needs = getattr(experiment.algorithm, "needs", None)  # the method's own estimate, without playing
    if needs is not None:
        what = f"a replicate of {experiment.algorithm.label} with {full} features a kernel"
        memory.require_memory(needs(experiment.dictionary, experiment.problem), what, _largest_keys(experiment))
    steps = [full]
    while full >= MANY_FEATURES and steps[0] >= MANY_FEATURES // 4:
        steps.insert(0, steps[0] // 4)
    _first_round(_small_experiment(experiment))
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


def _small_experiment(experiment: Experiment) -> Experiment:
    """The same experiment with the fewest features and clients that compile all code."""
    no_graph = experiment.topology is None  # a graph needs all its agents
    problem = experiment.task.for_few_clients(FEW_CLIENTS) if no_graph else experiment.problem
    return _with_features(replace(experiment, problem=problem, redraw=None), 2)


def _with_features(experiment: Experiment, features: int) -> Experiment:
    """The same experiment with this many features per kernel, if the dictionary has features."""
    dictionary: Any = experiment.dictionary
    return replace(experiment, dictionary=replace(dictionary, D=features)) if hasattr(dictionary, "D") else experiment


def _first_round(experiment: Experiment) -> int:
    """Play the first round with one replicate; return approximately the bytes that it keeps and its peak."""
    world, _ = make_world(experiment, (0,))
    state = experiment.algorithm.init(world)
    temporaries = 12 * 8 * experiment.problem.clients * experiment.dictionary.N  # of a round, (R, K, N) in float64
    held = memory.nbytes(state) + memory.nbytes(vars(world.common).get("bank")) + temporaries
    world.channel.open_round(0, world.problem.present[0])
    _, outcome = experiment.algorithm.step(world, state, 0)
    held += memory.nbytes(getattr(vars(world).get("samples"), "gone_over", None))
    if experiment.task.judge_counts:
        experiment.task.judge(world, experiment.algorithm).enter(0, outcome)
    return held


class _Watching(Channel):
    """A channel that records the first payload with values that are not finite, for each direction."""

    def __init__(self, channel: Channel) -> None:
        vars(self).update(vars(channel))
        self.told = self.sent = ""

    def down(self, message: Any) -> Any:
        """Passes on a message to clients, and records the first value in it that is not finite."""
        self.told = self.told or self._first_not_finite_part(message)
        return super().down(message)

    def up(self, message: Any) -> Any:
        """Passes on a message of clients, and records the first value in it that is not finite."""
        self.sent = self.sent or self._first_not_finite_part(message)
        return super().up(message)

    def send_to_neighbours(self, message: Any, *how: Any) -> Any:
        """Passes on a message of agents, and records the first value in it that is not finite."""
        self.sent = self.sent or self._first_not_finite_part(message)
        return super().send_to_neighbours(message, *how)

    def _first_not_finite_part(self, message: Any) -> str:
        for name, payloads in kinds(message):
            for payload in payloads:
                for field in getattr(payload, "leading", ()):
                    if found := _not_finite_part(
                        f"{type(message).__name__}.{name}", getattr(payload, field), self._present > 0
                    ):
                        return found
        return ""


def first_not_finite(experiment: Experiment, replicates: tuple[int, ...], rounds: int) -> str:
    """Play some rounds again to find the first array that is not finite, and its party; empty if there is none."""
    world, _ = make_world(experiment, replicates)
    world = replace(world, channel=(channel := _Watching(world.channel)))
    state = experiment.algorithm.init(world)
    for t in range(rounds):
        here = world.problem.present[t]
        channel.open_round(t, here)
        state, outcome = experiment.algorithm.step(world, state, t)
        arrays = {"theta": outcome}
        if is_dataclass(outcome):
            kind = type(outcome).__name__
            arrays = {f"{kind}.{field.name}": getattr(outcome, field.name) for field in fields(outcome)}
        shown = (_not_finite_part(name, values, here) for name, values in arrays.items())
        if found := channel.told or next(filter(None, shown), "") or channel.sent:
            return found.replace("is not finite", f"is not finite in round {t + 1}")
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
    """Refuse a run that ran out of memory although the rehearsal fitted, and name its largest keys."""
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
    """The largest integers of a configuration on which memory may depend, with their values."""
    problem, algorithm, dictionary = experiment.problem, experiment.algorithm, experiment.dictionary
    sizes = {f"algo.{key.name}": getattr(algorithm, key.name) for key in fields(algorithm)}  # type: ignore[arg-type]
    sizes |= {"partition.clients": problem.clients, "chunk": chunk}
    sizes |= {f"kernels.{key}": getattr(dictionary, key, None) for key in ("N", "D")}
    idle = getattr(algorithm, "idle", ())
    whole = {key: size for key, size in sizes.items() if key not in idle and isinstance(size, int) and size > 1}
    largest = sorted(whole, key=whole.__getitem__, reverse=True)[:KEYS_NAMED]
    return " or ".join(f"{key}={whole[key]}" for key in largest) or "replicates"
