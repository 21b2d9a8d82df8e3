"""Rounds as a compiled scan: how `engine=jax` runs a method.

The method's own `step` is traced once, in a world with placeholders for the samples, random numbers and channel of a
round, and XLA compiles a loop over many rounds. The host still draws random numbers from the same streams, and records
messages in the same ledger, with the sizes that the scan returns.

For example, 100 rounds are two scans of 50 rounds each, by one compiled program (a scan has at most 64 rounds, and all
scans have equal lengths). The parts in order:

1. `Scan.__init__` traces a first round with the placeholders `_Round`, `_Streams`, `_Channel` and `_Samples`, which
   record what the method requests from the host and which messages it sends, and then compiles the scan.
2. `Scan.given` makes the input of 50 rounds on the host: samples, random numbers, and links that are up.
3. `Scan.run_program` runs the program on the device, and `Scan.enter` records the messages and results of each round.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.errors import JAXIndexError, JaxRuntimeError, JAXTypeError

from fkl.basics.arrays import arrays_of, fill_missing, is_traced, with_arrays
from fkl.basics.errors import FklError, own_place
from fkl.basics.random_streams import Role
from fkl.contract.world import FEATURES, Algorithm, BatchSamples, Common, SampleCache, World
from fkl.engines.base import RoundNotFiniteError
from fkl.engines.devices import Devices
from fkl.kernels.client_tiles import sum_in_order
from fkl.kernels.jax_bank import ELSEWHERE, HERE, JaxBank
from fkl.network.topology import Awake, Topology
from fkl.tasks.stream import StreamJudge
from fkl.tasks.task import require_shape
from fkl.wire.channel import Channel, Delivery
from fkl.wire.payloads import Size

Array = Any
"""Array of JAX or numpy."""
MOST_ROUNDS = 64
"""Maximum number of rounds in a scan, since progress lines and checkpoints wait for its end."""
LEAST_ROUNDS = 2
"""Minimum number of rounds: one round would not be compiled as a loop, and might round differently."""
"""Number of a round's sums that a `StreamJudge` needs."""
ROOM = 2**26
"""Maximum bytes of a scan's inputs and results over all its rounds."""
ANGLES = 2**28
"""Maximum number of angles of a scan on a CPU: a few seconds."""


def play_scans(algorithm: Algorithm, world: World, in_progress: Any, watched: bool = False) -> Generator[int]:
    """Run the remaining rounds, and pause after each scan; see `fkl.engines.base.Engine.rounds`."""
    problem, seconds = world.problem, in_progress.seconds
    # Set for this block, not for the process, because a program that uses fkl may have its own precision
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        scan = Scan(algorithm, world, in_progress.state, in_progress.judge)
        # The scan's state has the memory of conditions, which the first traced round has made
        in_progress.state = scan.state
        try:
            for first in range(in_progress.t, problem.rounds, scan.length):
                # Run one scan on the device; its time is divided equally among its rounds
                rounds = range(first, min(first + scan.length, problem.rounds))
                start = perf_counter()
                in_progress.state, results = scan.run_program(in_progress.state, scan.scan_input(rounds, scan.length))
                took = perf_counter() - start
                # Record each round on the host, in order, with its share of the results
                for b, t in enumerate(rounds):
                    in_progress.elapsed[t] = seconds + took * (b + 1) / len(rounds)
                    scan.enter(t, Told(*(tuple(values[b] for values in one) for one in results)))
                    in_progress.t = t + 1
                seconds += took
                # Loggers and checkpoints read the state, so copy it to the host
                if watched:
                    _copy_to_host(in_progress)
                yield len(rounds)
        except RoundNotFiniteError:
            _copy_to_host(in_progress)
            raise
        except JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise MemoryError("the device has no more memory") from None
        _copy_to_host(in_progress)
    in_progress.judge.close()


def _copy_to_host(in_progress: Any) -> None:
    """Copy the state and the judge's sums to the host, as numpy arrays."""
    in_progress.state = _of_numpy(in_progress.state)
    if isinstance(in_progress.judge, StreamJudge):
        in_progress.judge.sums = _of_numpy(in_progress.judge.sums)


def _of_numpy(value: Any) -> Any:
    return with_arrays(value, map(np.array, arrays_of(value)))


class Told(NamedTuple):
    """Results of a scan, with one entry per round along the first axis.

    Parameters
    ----------
    shown : tuple of (B, ...)
        For a `StreamJudge`, the sums of its `add_sums`; for a method with predictive variances, then predictions,
        their variances and, if the outcome has them, log densities. For another judge, the outcome of a round.
    sizes : tuple of (B, ...)
        Sizes of messages and the clients that sent them, if these can differ between rounds.
    """

    shown: tuple[Array, ...]
    sizes: tuple[Array, ...]


class Given(NamedTuple):
    """Input of a scan, with one entry per round along the first axis.

    Parameters
    ----------
    t : (B,) int64
    counts : (B,) bool
        Whether the round exists, because the last scan may be longer than the remaining rounds.
    samples : tuple of (B, K, d), (B, K), (B, K)
        x, y and each client's share in a mean; empty for a batch.
    of_host : tuple of (B, ...)
        Random numbers and links that are up, in the order in which a round uses them.
    """

    t: Array
    counts: Array
    samples: tuple[Array, ...]
    of_host: tuple[Array, ...]


class _Fixed(NamedTuple):
    """Arrays that are the same in all rounds, and too large to be constants of a program.

    Parameters
    ----------
    features : tuple of arrays
        Frequencies, scales and phases of the bank.
    rows : tuple of arrays
        `Rows` of a batch.
    minimiser : tuple of arrays
        Arrays of the minimiser over these rows.
    """

    features: tuple[Array, ...] = ()
    rows: tuple[Array, ...] = ()
    minimiser: tuple[Array, ...] = ()


class Scan:
    """A compiled scan over some rounds of a method, with its inputs.

    Parameters
    ----------
    algorithm : Algorithm
    world : World
    state : any
        State from `Algorithm.init`, or a later state.
    judge : Judge

    Attributes
    ----------
    length : int
        Number of rounds of the scan.
    """

    def __init__(self, algorithm: Algorithm, world: World, state: Any, judge: Any) -> None:
        self._algorithm, self._world, self._state, self._judge = algorithm, world, state, judge
        self._of_streams = isinstance(judge, StreamJudge)
        # The bank's arrays and a batch's rows are arguments of the program, because they are too large for constants
        has_features = "kernels.D" not in getattr(algorithm, "idle", ())
        self._bank = bank = world.common.features if has_features else None
        self._devices = Devices(len(world.streams.replicates), world.problem.clients)
        self._asked: list[Callable[[int], Array]] = []
        self._booked: list[_Booked] = []
        self._minimiser: Any = None
        self._fixed = _Fixed(
            () if bank is None else _on_device((bank.rho, bank.scale, bank.phase)),
            () if self._of_streams else _on_device(arrays_of(world.samples.rows)),
        )
        # Find the shapes of a round's results; tracing also records its requests to the host
        given = self.scan_input(range(1), 1)
        try:
            shown, made = jax.eval_shape(self._first_round, self._fixed, arrays_of(state), given)
        except (JAXTypeError, JAXIndexError) as error:  # from a user's class that wrongly claims to be traceable
            [why, *_] = str(error).splitlines()
            raise FklError(
                f"engine=jax: the rounds of {algorithm.label} cannot be traced: {own_place(error)}{why}"
            ) from error
        # A stream's outcome must fit the judge, because wrong shapes could be broadcast
        if self._of_streams:
            y_hat, loss = shown
            require_shape("Outcome.y_hat", y_hat, *judge.loss.shape)
            if loss is not None:
                require_shape("Outcome.loss", loss, *judge.loss.shape, None)
                judge.kernel_loss = np.zeros(loss.shape) if judge.kernel_loss is None else judge.kernel_loss
        # A condition's memory starts with zeros
        self._state = state = fill_missing(
            state, with_arrays(self._state, [np.zeros(one.shape, one.dtype) for one in made])
        )
        self._fixed = self._fixed._replace(minimiser=_on_device(arrays_of(self._minimiser)))
        # Scans have equal lengths, limited by memory and time, so the last scan wastes few rounds
        # Bytes of a round's input and result; 2^26 bytes are the most that a scan may hold
        nbytes = 0 if self._of_streams else shown.size * shown.dtype.itemsize
        nbytes += sum(part.nbytes for part in jax.tree.leaves(self.scan_input(range(1), 1)))
        most, rounds, clients = min(MOST_ROUNDS, ROOM // nbytes), world.problem.rounds, world.problem.clients
        # On a CPU, also limit the sines of a scan: a progress line should appear every few seconds
        if bank is not None and self._of_streams and _on_cpu():
            most = min(most, ANGLES // (bank.replicates * bank.kernels * bank.rho.shape[-1] * clients))
        # Equal lengths: 100 rounds with at most 64 are two scans of 50, not 64 and 36
        scans = -(-rounds // max(LEAST_ROUNDS, most))
        self.length = max(LEAST_ROUNDS, -(-rounds // scans))
        # One program for all scans; the state is donated, so the next state may use its memory
        program, given = jax.jit(self._scan_rounds, donate_argnums=1), self.scan_input(range(1), self.length)
        self._compiled = _compile_lowered(program.lower(*self._placed_arguments(state, given)))

    @property
    def state(self) -> Any:
        """The state that was given, with the memory of all conditions."""
        return self._state

    def run_program(self, state: Any, given: Given) -> tuple[Any, Told]:
        """The state after these rounds, and their results; the sums of a `StreamJudge` include them already."""
        (made, sums), results = self._compiled(*self._placed_arguments(state, given))
        if self._of_streams:
            self._judge.sums = with_arrays(self._judge.sums, sums)
        return with_arrays(state, made), Told(*(tuple(map(np.asarray, values)) for values in results))

    def enter(self, t: int, told: Told) -> None:
        """Record the messages and the outcome of round t."""
        channel, judge, changing = self._world.channel, self._judge, iter(told.sizes)
        # The ledger first: sizes that were constants while tracing are in the call, the others are results of the scan
        channel.open_round(t, self._world.problem.present[t])
        for book, given in self._booked:
            book(
                channel, *with_arrays(given, [next(changing) if is_traced(part) else part for part in arrays_of(given)])
            )
        # Then the round's results
        if not self._of_streams:
            fine = judge.enter(t, *told.shown)
        else:
            sums = 2 + len(judge.errors)
            if sure := told.shown[sums:]:
                judge.enter_variance(t, *sure)
            fine = judge.add_sums(t, told.shown[:sums])
        if not fine:
            raise RoundNotFiniteError

    def _placed_arguments(self, state: Any, given: Given) -> tuple[Any, Any, Any]:
        """The program's arguments on its devices."""
        carried = arrays_of(state), arrays_of(self._judge.sums) if self._of_streams else ()
        return (
            self._devices.place_arrays(self._fixed),
            self._devices.place_arrays(carried),
            self._devices.place_arrays(given, 1),
        )

    def scan_input(self, rounds: range, length: int) -> Given:
        """Input of a scan of these rounds, padded with zeros."""

        def padded(values: Sequence[Any]) -> Array:
            first = np.asarray(values[0])
            made = np.zeros((length, *first.shape), first.dtype)
            made[: len(values)] = values
            return made

        # The last scan may have fewer rounds: its arrays are padded, and `counts` marks the rounds that exist
        problem = self._world.problem
        samples = tuple(zip(*(problem.round(t) for t in rounds), strict=True)) if self._of_streams else ()
        of_host = tuple(padded([of_round(t) for t in rounds]) for of_round in self._asked)
        return Given(padded(rounds), padded([True] * len(rounds)), tuple(map(padded, samples)), of_host)

    def _scan_rounds(self, fixed: _Fixed, carried: Any, given: Given) -> Any:
        """All rounds of a scan, for tracing."""

        def one(carried: Any, given: Given) -> Any:
            state, outcome = self._traced_round(fixed, with_arrays(self._state, carried[0]), given, iter(given.of_host))
            # The judge's sums, and its input of this round
            sums, shown = (), (outcome,)
            if self._of_streams:
                _, y, share = given.samples
                added = with_arrays(self._judge.sums, carried[1]).after(
                    outcome, y, share > 0, self._judge.lam, self._judge.problem.loss
                )
                sure = () if outcome.variance is None else (outcome.y_hat, outcome.variance, outcome.log_density)
                sure = tuple(part for part in sure if part is not None)
                sums, shown = arrays_of(added), (*map(sum_in_order, added.terms()), *sure)
            after = arrays_of(state), sums
            changing = tuple(part for _, given_too in self._booked for part in arrays_of(given_too) if is_traced(part))
            # A padded round must not change the state, so the old one is kept
            kept = jax.tree.map(lambda new, old: jnp.where(given.counts, new, old), after, carried)
            return kept, Told(shown, changing)

        return lax.scan(one, carried, given)

    def _first_round(self, fixed: _Fixed, state: Any, given: Given) -> Any:
        one = jax.tree.map(lambda values: values[0], given)
        self._state, outcome = self._traced_round(fixed, with_arrays(self._state, state), one, None)
        return (outcome.y_hat, outcome.loss) if self._of_streams else outcome, arrays_of(self._state)

    def _traced_round(
        self, fixed: _Fixed, state: Any, given: Given, of_host: Iterator[Array] | None
    ) -> tuple[Any, Any]:
        """A traced round of the method in a world of placeholders; without `of_host`, its requests are recorded."""
        world, common = self._world, self._world.common
        host = _Host(of_host)
        # Placeholders that use traced samples, and record requests to the host
        standing: dict[str, Any] = {
            "problem": _Round(world.problem, given.samples),
            "streams": _Streams(world.streams, host),
            "channel": _Channel(world.channel, host, always=bool((world.problem.clients_present > 0).all())),
        }
        # The world and the common knowledge of this round, with the same fields as the real ones
        here = _WorldOfRound(**_dataclass_fields(world) | standing, host=host)
        known = vars(here)["common"] = _CommonOfRound(**_dataclass_fields(common))
        # The bank with traced arrays
        if self._bank is not None:
            like, angles = JaxBank(*fixed.features), HERE if _on_cpu() else ELSEWHERE
            vars(known)["bank"] = known.of_outputs(replace(like, precision=self._bank.precision, at_once=angles))
        # A batch's rows, and the minimiser for them, which the first traced round requests
        if not self._of_streams:
            minimiser = None if of_host is None else with_arrays(self._minimiser, fixed.minimiser)
            rows = with_arrays(world.samples.rows, fixed.rows)
            vars(here)["samples"] = held = _Samples(world.samples, rows, minimiser)
            vars(here)["held"] = replace(world.held, cache=SampleCache({FEATURES: rows}))
        # Run the method's own step, and keep what it requested from the host
        state, outcome = self._algorithm.step(here, state, given.t)
        if of_host is None and not self._of_streams:
            self._minimiser = held.minimiser
        self._asked, self._booked = host.asked, standing["channel"].booked
        return state, outcome


def _dataclass_fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


_newest: dict[str, Any] = {}
"""The last compiled program, by its text, because later replicates usually need the same program."""


def _compile_lowered(lowered: Any) -> Any:
    text = lowered.as_text()
    if text not in _newest:
        _newest.clear()
        _newest[text] = lowered.compile()
    return _newest[text]


def _on_cpu() -> bool:
    return bool(jax.devices()[0].platform == "cpu")


def _on_device(values: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(map(jax.device_put, values))


class _Host:
    """Values from the host for a traced round: records each request, and returns the requested value."""

    def __init__(self, made: Iterator[Array] | None) -> None:
        self.asked: list[Callable[[int], Array]] = []
        self._made = made

    def of_round(self, make: Callable[[int], Array]) -> Array:
        """The array that `make` returns for a round's number; it is requested once, and made for each round."""
        self.asked.append(make)
        return jnp.asarray(make(0)) if self._made is None else next(self._made)


class _Streams:
    """Replaces `Streams` in a traced round."""

    def __init__(self, streams: Any, host: _Host) -> None:
        self._streams, self._host = streams, host

    def uniform(self, role: Role, t: Any, size: int, first: int = 0) -> Array:
        """Uniform random numbers of a role in round t, drawn by the host."""
        return self._host.of_round(lambda t: self._streams.uniform(role, t, size, first))

    def vectors(self, role: Role, t: Any, clients: range, size: int, draw: int = 0) -> Array:
        """A random vector for each client in round t, drawn by the host."""
        return self._host.of_round(lambda t: self._streams.vectors(role, t, clients, size, draw))


class _Booked(NamedTuple):
    """A call that records messages of a round, with its arguments, which may be traced."""

    book: Callable[..., None]
    given: tuple[Any, ...]


class _Channel(Channel):
    """Replaces `Channel` in a traced round: records the sizes of messages, and delivers the messages.

    Parameters
    ----------
    channel : Channel
    host : _Host
    always : bool
        Whether some client is present in every round.
    """

    def __init__(self, channel: Channel, host: _Host, always: bool) -> None:
        vars(self).update(vars(channel), streams=_Streams(channel.streams, host))
        self._channel, self._host, self._always = channel, host, always
        self.booked: list[_Booked] = []

    def book(self, direction: Any, kind: str, size: Size) -> None:
        """Records the call."""
        self.booked.append(_Booked(Channel.book, (direction, kind, size)))

    def book_to_neighbours(self, topology: Topology, delivery: Delivery, sizes: Sequence[tuple[str, Size]]) -> None:
        """Records the call."""

        def book(channel: Channel, delivery: Delivery, sizes: Any) -> None:
            channel.book_to_neighbours(topology, delivery, sizes)

        self.booked.append(_Booked(book, (delivery, sizes)))

    def awake(self, t: Any, topology: Topology, present: Any) -> Awake:
        """Agents that are awake and links that are up in round t; the host draws them once per round."""
        # Each field of the result is a request of its own, so a round's links are kept and not drawn again for each
        made = lru_cache(MOST_ROUNDS)(partial(self._channel.awake, topology=topology, present=present))

        def of_field(name: str) -> Array:
            return self._host.of_round(lambda t: getattr(made(t), name))

        return Awake(*(of_field(field.name) for field in fields(Awake)))

    def any_answer(self, share: Array, clients_present: Any) -> Any:
        """Whether any client has answered; known to be true if some client is present in every round."""
        return True if self._always else share.any()


@dataclass(frozen=True)
class _Round:
    """Replaces `Problem` in a traced round: has the samples of this round; other attributes are the problem's."""

    problem: Any
    samples: tuple[Array, ...]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def round(self, t: Any) -> tuple[Array, Array, Array]:
        """Samples, targets and shares of the traced round, whatever t is."""
        x, y, share = self.samples
        return x, y, share

    def block(self, rounds: slice) -> tuple[Array, Array]:
        """Samples and targets of a block of one round, the traced one."""
        x, y, _ = self.samples
        return x[:1], y[:1]


class _Samples:
    """Replaces `BatchSamples` in a traced round; the host makes the minimiser for the samples once.

    Parameters
    ----------
    held : BatchSamples
    rows : Rows
        Traced rows of these samples.
    minimiser : Minimiser or None
        None in the first round, when the method requests it.
    """

    def __init__(self, held: BatchSamples, rows: Any, minimiser: Any) -> None:
        self.agents, self.minimiser = held.agents, minimiser
        self._held, self._rows, self._knows = held, rows, minimiser is not None

    def gradient(self, theta: Array) -> Array:
        """Gradient of each client's mean loss at theta, from the traced rows."""
        return self._held.loss.gradient(self._rows, theta)

    def minimise_proximal(self, c: Any, v: Array, start: Array) -> Array:
        """Apply the minimiser, which is made when the first round requests it."""
        if not self._knows:
            made = self._held.loss.minimiser(self._held.rows, c)
            self.minimiser = replace(made, ridge=made.ridge.as_arrays)
            return v
        return self.minimiser(v, start)


@dataclass(frozen=True)
class _WorldOfRound(World):
    """The world of a traced round."""

    host: Any = None

    def present(self, t: Any) -> Any:
        """Which clients are present in round t, (K,); the host supplies it."""
        return self.host.of_round(lambda t: self.problem.problem.present[t])

    def clients_present(self, t: Any) -> Any:
        """Number of clients present in round t; computed from the shares of this round if the round has samples."""
        if not self.problem.samples:
            return self.host.of_round(lambda t: self.problem.problem.clients_present[t])
        _, _, share = self.problem.samples
        return (share > 0).sum()


@dataclass(frozen=True)
class _CommonOfRound(Common):
    """Common knowledge of all parties in a traced round."""

    @property
    def xp(self) -> Any:
        """The namespace of JAX's array functions."""
        return jnp
