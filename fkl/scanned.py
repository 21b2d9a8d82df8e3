"""Rounds as one compiled scan: how `engine=jax` plays a method.

The method's own `step` is traced once, in a world whose samples, random numbers and channel stand in for those of a
round, and XLA compiles a loop over so many rounds of it. What decides a run stays on the host: random numbers are drawn
there by the same streams, and messages are booked there by the same ledger, by the sizes that come back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.errors import JAXIndexError, JAXTypeError

from fkl.contract.world import Algorithm, Common, Outcome, World
from fkl.diverged import NotFiniteError
from fkl.errors import FklError
from fkl.kernels.flow import parts, rebuilt, traced
from fkl.kernels.jax_bank import ELSEWHERE, HERE, JaxBank
from fkl.kernels.tiles import folded
from fkl.network.messages import Size, kinds, measured
from fkl.streams import Role, Streams
from fkl.tasks.stream import StreamJudge

Array = Any
"""Of JAX, or of numpy."""
MOST_ROUNDS = 64
"""Of a scan: progress and checkpoints wait for its end."""
LEAST_ROUNDS = 2
"""A loop of one round would be compiled as no loop, and might round otherwise."""
ROOM = 2**26
"""Bytes of what goes into a scan and comes out of it, round by round."""
ANGLES = 2**28
"""Of a scan on a CPU: a few seconds."""


def device_name() -> str:
    """The device that arrays are put on, JAX's first, for people."""
    found = jax.devices()[0]
    return f"{found.platform} ({found.device_kind})"


def play(
    algorithm: Algorithm,
    world: World,
    under_way: Any,
    advance: Callable[[int], object],
    keep: Callable[[], None],
    watch: Callable[[int], object] | None = None,
) -> None:
    """Play the rounds that are left; all is told, and kept, after each scan of them.

    Parameters
    ----------
    algorithm : Algorithm
    world : World
    under_way : fkl.simulation.UnderWay
    advance, keep, watch : callable
        As in `fkl.simulation`.

    Raises
    ------
    fkl.diverged.NotFiniteError
        `under_way.t` is then the number of rounds before the one that the judge refused.
    """
    problem, seconds = world.problem, under_way.seconds
    # Of this block, not of the process: whoever uses fkl as a library has a precision of their own.
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        scan = _Scan(algorithm, world, under_way.state, under_way.judge)
        try:
            for first in range(under_way.t, problem.rounds, scan.length):
                rounds = range(first, min(first + scan.length, problem.rounds))
                start = perf_counter()
                under_way.state, told = scan.play(under_way.state, under_way.judge, rounds)
                took = perf_counter() - start
                for b, t in enumerate(rounds):
                    under_way.elapsed[t] = seconds + took * (b + 1) / len(rounds)
                    scan.enter(t, under_way.judge, _Told(*(tuple(values[b] for values in one) for one in told)))
                    under_way.t = t + 1
                seconds += took
                advance(len(rounds) * len(world.streams.replicates))
                keep()
                if watch is not None:
                    _settle(under_way)
                    watch(under_way.t)
        finally:
            _settle(under_way)
    under_way.judge.close()


def _settle(under_way: Any) -> None:
    """Bring the state and what the judge has added up to the host, as arrays of numpy."""
    for owner, name in ((under_way, "state"), (under_way.judge, "sums")):
        value = getattr(owner, name)
        setattr(owner, name, rebuilt(value, (np.array(part) for part in parts(value))))


class _Told(NamedTuple):
    """What comes back of a scan, of every round an entry along the first axis.

    Parameters
    ----------
    totals : tuple of (B, R)
        Sums over all clients, as `StreamJudge.enter_totals` takes them.
    sure : tuple of (B, R, K)
        Predictions and their variances, of a method that has these.
    sizes : tuple of (B, ...)
        Sizes of messages that may differ from round to round.
    """

    totals: tuple[Array, ...]
    sure: tuple[Array, ...]
    sizes: tuple[Array, ...]


class _Given(NamedTuple):
    """What goes into a scan, likewise.

    Parameters
    ----------
    t : (B,) int64
    counts : (B,) bool
        Whether there is such a round: the last scan may be too long.
    x, y, share : (B, K, d), (B, K), (B, K)
    drawn : tuple of (B, R, ...)
        Random numbers, in the order in which a round asks for them.
    """

    t: Array
    counts: Array
    x: Array
    y: Array
    share: Array
    drawn: tuple[Array, ...]


class _Scan:
    """A compiled scan over some rounds of a method, and what is needed to play it.

    Parameters
    ----------
    algorithm : Algorithm
    world : World
    state : any
        As `Algorithm.init` made it, or a later one.
    judge : StreamJudge

    Attributes
    ----------
    length : int
        How many rounds it has.
    """

    def __init__(self, algorithm: Algorithm, world: World, state: Any, judge: StreamJudge) -> None:
        self._algorithm, self._world, self._state, self._judge = algorithm, world, state, judge
        has_features = "kernels.D" not in getattr(algorithm, "idle", ())
        self._bank = bank = world.bank if has_features else None
        self._features = () if bank is None else tuple(map(jax.device_put, (bank.rho, bank.scale, bank.phase)))
        self._asked: list[_Drawn] = []
        self._sizes: list[tuple[Any, str, Size]] = []
        first = self._features, parts(state), self._given(range(1), 1)
        try:
            _, shown = jax.eval_shape(self._first_round, *first)
        except (JAXTypeError, JAXIndexError) as error:  # of a class of the user's own that says what it is not
            [why, *_] = str(error).splitlines()
            raise FklError(f"engine=jax: the rounds of {algorithm.label} cannot be traced: {why}") from None
        if judge.kernel_loss is None and shown[1] is not None:
            judge.kernel_loss = np.zeros(shown[1].shape)
        self.length = self._rounds_at_once()
        program = jax.jit(self._rounds, donate_argnums=1)
        carried, given = self._carried(state, judge), self._given(range(1), self.length)
        self._compiled = program.lower(self._features, carried, given).compile()

    def play(self, state: Any, judge: StreamJudge, rounds: range) -> tuple[Any, _Told]:
        """The state after these rounds, and what they told; the judge has added up what they showed."""
        given = self._given(rounds, self.length)
        (made, sums), told = self._compiled(self._features, self._carried(state, judge), given)
        judge.sums = rebuilt(judge.sums, sums)
        return rebuilt(state, made), _Told(*(tuple(map(np.asarray, values)) for values in told))

    def enter(self, t: int, judge: StreamJudge, told: _Told) -> None:
        """Book what was sent in round t, and what was shown."""
        channel, changing = self._world.channel, iter(told.sizes)
        channel.open_round(t, self._world.problem.present[t])
        for direction, kind, size in self._sizes:
            channel.book(direction, kind, Size(*(next(changing) if traced(part) else part for part in size)))
        if told.sure:
            judge.enter_variance(t, *told.sure)
        if not judge.enter_totals(t, told.totals):
            raise NotFiniteError

    def _carried(self, state: Any, judge: StreamJudge) -> tuple[Any, Any]:
        return parts(state), parts(judge.sums)

    def _rounds_at_once(self) -> int:
        """How many, so that none of the last scan are for nothing."""
        rounds, bank = self._world.problem.rounds, self._bank
        most = min(MOST_ROUNDS, ROOM // sum(part.nbytes for part in jax.tree.leaves(self._given(range(1), 1))))
        if bank is not None and _on_cpu():
            most = min(
                most, ANGLES // (bank.replicates * bank.kernels * bank.rho.shape[-1] * self._world.problem.clients)
            )
        return max(LEAST_ROUNDS, -(-rounds // -(-rounds // max(LEAST_ROUNDS, most))))

    def _given(self, rounds: range, length: int) -> _Given:
        """What goes into a scan of these rounds; 0 in those that fill it up."""
        problem, streams = self._world.problem, self._world.streams

        def filled(values: Sequence[Any]) -> Array:
            one = np.asarray(values[0])
            made = np.zeros((length, *one.shape), one.dtype)
            made[: len(values)] = values
            return made

        x, y, share = zip(*(problem.round(t) for t in rounds), strict=True)
        drawn = [filled([asked.of_round(streams, t) for t in rounds]) for asked in self._asked]
        counts = filled([True] * len(rounds))
        return _Given(filled(rounds), counts, filled(x), filled(y), filled(share), tuple(drawn))

    def _rounds(self, features: Any, carried: Any, given: _Given) -> Any:
        """All of them, traced."""

        def one(carried: Any, given: _Given) -> Any:
            state, sums = rebuilt(self._state, carried[0]), rebuilt(self._judge.sums, carried[1])
            state, outcome = self._step(features, state, given, iter(given.drawn))
            sums = sums.after(outcome, given.y, given.share > 0, self._judge.lam)
            after = parts(state), parts(sums)
            totals = tuple(map(folded, sums.terms()))
            sure = () if outcome.variance is None else (outcome.y_hat, outcome.variance)
            changing = tuple(part for *_, size in self._sizes for part in size if traced(part))
            kept = jax.tree.map(lambda new, old: jnp.where(given.counts, new, old), after, carried)
            return kept, _Told(totals, sure, changing)

        return lax.scan(one, carried, given)

    def _first_round(self, features: Any, state: Any, given: _Given) -> Any:
        """Traced to see what a round asks for and shows."""
        one = jax.tree.map(lambda values: values[0], given)
        state, outcome = self._step(features, rebuilt(self._state, state), one, None)
        return parts(state), (outcome.y_hat, outcome.loss)

    def _step(self, features: Any, state: Any, given: _Given, drawn: Iterator[Array] | None) -> tuple[Any, Outcome]:
        """A traced round of the method, in a world of stand-ins."""
        world, common = self._world, self._world.common
        streams, channel = _Streams(len(world.streams.replicates), drawn), _Channel(world.channel)
        one = _Round(world.problem, given.x, given.y, given.share)
        standing: dict[str, Any] = {"channel": channel, "streams": streams}
        own = {field.name: getattr(world, field.name) for field in fields(world)} | standing
        here = _WorldOfRound(**own | {"problem": one}, always=bool(world.problem.present.any(axis=1).all()))
        known = _CommonOfRound(**{field.name: getattr(common, field.name) for field in fields(common)})
        vars(here)["common"] = known
        if self._bank is not None:
            like, angles = JaxBank(*features), HERE if _on_cpu() else ELSEWHERE
            vars(known)["bank"] = replace(like, precision=self._bank.precision, at_once=angles)
        state, outcome = self._algorithm.step(here, state, given.t)
        self._asked, self._sizes = streams.asked, channel.sizes
        return state, outcome


def _on_cpu() -> bool:
    return bool(jax.devices()[0].platform == "cpu")


class _Drawn(NamedTuple):
    """Random numbers that a round asks its streams for."""

    how: str
    role: Role
    given: tuple[Any, ...]

    def of_round(self, streams: Streams, t: int) -> Array:
        """Those of round t."""
        drawn: Array = getattr(streams, self.how)(self.role, t, *self.given)
        return drawn


class _Streams:
    """In place of `Streams` in a traced round: writes down what is asked for, and gives what was drawn for it."""

    def __init__(self, replicates: int, drawn: Iterator[Array] | None) -> None:
        self.asked: list[_Drawn] = []
        self._replicates, self._drawn = replicates, drawn

    def uniform(self, role: Role, t: Any, size: int, first: int = 0) -> Array:
        """As of `Streams`."""
        return self._numbers(_Drawn("uniform", role, (size, first)), size)

    def vectors(self, role: Role, t: Any, clients: range, size: int, draw: int = 0) -> Array:
        """As of `Streams`."""
        return self._numbers(_Drawn("vectors", role, (clients, size, draw)), len(clients), size)

    def _numbers(self, asked: _Drawn, *shape: int) -> Array:
        self.asked.append(asked)
        return jnp.zeros((self._replicates, *shape)) if self._drawn is None else next(self._drawn)  # type: ignore[return-value]


class _Channel:
    """In place of `Channel` in a traced round: writes down how large messages are, and hands them on."""

    def __init__(self, channel: Any) -> None:
        self.network, self.links, self._width = channel.network, channel.links, channel.width
        self.sizes: list[tuple[Any, str, Size]] = []

    def down(self, message: Any) -> Any:
        """As of `Channel`."""
        return self._passed("downlink", message)

    def up(self, message: Any) -> Any:
        """As of `Channel`."""
        return self._passed("uplink", message)

    def _passed(self, direction: str, message: Any) -> Any:
        self.sizes += ((direction, kind, measured(payloads, self._width)) for kind, payloads in kinds(message))
        return message

    def answered(self, share: Array) -> Array:
        """As of `Channel`, where nobody takes any time."""
        return share


@dataclass(frozen=True)
class _Round:
    """In place of `Problem` in a traced round: the samples of this one, and what is the same in all of them."""

    problem: Any
    x: Array
    y: Array
    share: Array

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def round(self, t: Any) -> tuple[Array, Array, Array]:
        """As of `Problem`."""
        return self.x, self.y, self.share


@dataclass(frozen=True)
class _WorldOfRound(World):
    """The world of a traced round.

    Parameters
    ----------
    always : bool
        Whether somebody is there in every round.
    """

    always: bool = True

    def together(self, t: Any, present: Any) -> Any:
        """As of `World`."""
        return present.sum()

    def anyone(self, heard: Any, together: Any) -> Any:
        """As of `World`."""
        return True if self.always else heard.any()


@dataclass(frozen=True)
class _CommonOfRound(Common):
    """What all parties know of a traced round."""

    @property
    def xp(self) -> Any:
        """JAX's own."""
        return jnp
