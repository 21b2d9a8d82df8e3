"""Results and messages of one replicate's rounds, run by all parties together or by isolated parties."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.party_process import PartyClass, PartyError
from fkl.contract.lone_party import Shown
from fkl.contract.star import Samples
from fkl.contract.world import World
from fkl.wire import Channel
from fkl.wire.channel import UNITS, Direction
from fkl.wire.packets import Packet
from fkl.wire.payloads import payloads_of

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
"""Relative tolerance by precision, because sums over clients differ in order, and only bytes have rounded factors."""
MAGNIFIED = 100
"""Because a method may magnify rounding, a difference may be this many times the effect of other last digits in the
samples, but at most the tolerance of single precision times the largest number of the round."""


@dataclass(frozen=True)
class PlayedReplicate:
    """Results of one replicate's rounds, and the bytes sent.

    Parameters
    ----------
    shown : list of dict of str to (K, ...)
        One per round, for all clients; NaN for values that an isolated client does not know, such as losses of a
        server's kernels that it has not received.
    by_round, by_client : dict of str to (T,) or (K,) int
        Bytes by direction.
    """

    shown: list[Shown]
    by_round: dict[Direction, NDArray[np.int64]]
    by_client: dict[Direction, NDArray[np.int64]]


def method_outcomes(method: Any, world: World) -> Iterator[Any]:
    """Results of a method, round after round."""
    state = method.init(world)
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        yield outcome


def play_together(method: Any, world: World, shown: Callable[[Any], Shown]) -> PlayedReplicate:
    """Run all parties together, as a simulation does, in a world of one replicate.

    Parameters
    ----------
    method : Federated or Decentralized
    world : World
    shown : callable
        Returns the arrays (K, ...) of an outcome, by name.
    """
    seen = [shown(outcome) for outcome in method_outcomes(method, world)]
    tallies, size = world.channel.ledger.tallies, UNITS.index("bytes")
    by_round = {direction: tally.by_round[:, 0, size] for direction, tally in tallies.items()}
    return PlayedReplicate(
        seen, by_round, {direction: tally.by_client[0, :, size] for direction, tally in tallies.items()}
    )


Payloads = list[tuple[bytes, bytes]]
"""Bytes, and bits of the mask, for each payload of a party's message; empty if the party is silent."""
Sent = dict[int, Payloads]
"""Messages of the present parties, by their number."""


class Witness(Channel):
    """A channel that records the messages that parties receive and send; it can repeat those of an earlier witness.

    Parameters
    ----------
    channel : Channel
        Channel of one replicate.
    before : Witness or None
        If given, parties receive the messages that they received from this witness.

    Attributes
    ----------
    heard, sent : list of (int, any)
        Messages from the server or neighbours, and messages of the parties, each with its round.
    """

    def __init__(self, channel: Channel, before: "Witness | None" = None) -> None:
        vars(self).update(vars(channel))
        self.heard: list[tuple[int, Any]] = []
        self.sent: list[tuple[int, Sent]] = []
        self._before = before

    def down(self, message: Any) -> Any:
        """Transmit a message of the server."""
        return self._as_heard_before(super().down(message))

    def up(self, message: Any) -> Any:
        """Transmit the clients' messages."""
        message = super().up(message)
        self._note_message(message, np.ones(self.ledger.shape, np.bool_))
        return message

    def send_to_neighbours(self, message: Any, sends: NDArray[np.bool_], topology: Any, awake: Any = None) -> Any:
        """Transmit the agents' messages."""
        message, arrived = super().send_to_neighbours(message, sends, topology, awake)
        self._note_message(message, sends)
        return self._as_heard_before((message, arrived))

    def _as_heard_before(self, message: Any) -> Any:
        self.heard.append((self._t, message))
        return message if self._before is None else self._before.heard[len(self.heard) - 1][1]

    def _note_message(self, message: Any, sends: NDArray[np.bool_]) -> None:
        dense = [payload.dense() for payload in payloads_of(message)]
        sent: Sent = {}
        for k in np.flatnonzero(self._present):
            parts = [payload.packed(int(k), self.width) for payload in dense] if sends[0, k] else []
            sent[int(k)] = [(part.body, part.bits) for part in parts]
        self.sent.append((self._t, sent))


class Carrier:
    """Carries packets between parties, and measures their bytes."""

    def __init__(self, problem: Any, directions: Iterable[Direction]) -> None:
        self.by_round = {direction: np.zeros(problem.rounds, np.int64) for direction in directions}
        self.by_client = {direction: np.zeros(problem.clients, np.int64) for direction in self.by_round}
        self._parties = problem.clients
        self._forms: dict[tuple[Direction, int, int], Any] = {}

    def weigh(self, direction: Direction, t: int, k: int, packet: Packet | None, exchange: int = 0) -> None:
        """Book a packet from or to party k; its class, shapes and types must be the same for all parties.

        Raises
        ------
        fkl.basics.errors.BrokenPromiseError
            If they differ, because they cost no bytes.
        """
        if packet is not None and self._forms.setdefault((direction, t, exchange), packet.form) != packet.form:
            said = f"{packet.kind.__name__} has another shape or type than other parties', but both ends must know it"
            raise BrokenPromiseError(f"{direction} of party {k} in round {t + 1}: {said}")
        size = 0 if packet is None else packet.size
        self.by_round[direction][t] += size
        self.by_client[direction][k] += size

    def all_shown(self, seen: Mapping[int, Shown]) -> Shown:
        """Results of a round for all parties; NaN for absent parties."""
        if not seen:  # no result, because no party is present
            return {}
        absent = {name: np.full(part.shape, np.nan) for name, part in next(iter(seen.values())).items()}
        every = [seen.get(k, absent) for k in range(self._parties)]
        return {name: np.concatenate([one[name] for one in every]) for name in absent}


def samples_of_rounds(world: World) -> list[Samples]:
    """Samples of each client in all rounds of a stream."""
    problem = world.problem
    parts = problem.x, problem.y, problem.present
    return [Samples(*(part[:, [k]] for part in parts)) for k in range(problem.clients)]


def with_other_last_digits(world: World) -> World:
    """Increase the last binary digit of each number of a world's samples by one."""
    x, y = (np.nextafter(part, np.inf) for part in (world.problem.x, world.problem.y))
    return replace(world, problem=replace(world.problem, x=x, y=y))


def require_equal(
    run_jointly: Callable[[World], PlayedReplicate],
    run_isolated: Callable[[World], PlayedReplicate],
    world: Callable[[], World],
    party: PartyClass,
    who: str,
) -> None:
    """Compare the parties of `run_isolated` with those of `run_jointly`; see `TOLERANCE`, `MAGNIFIED`.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If they differ; the message names the party, the round and the difference.
    """
    here, expected = world(), run_jointly(world())
    present, tolerance = here.problem.present, TOLERANCE[here.precision]
    rounded: PlayedReplicate | None = None
    try:
        actual = run_isolated(here)
    except PartyError as error:
        raise BrokenPromiseError(str(error)) from error
    for t, (wanted, made) in enumerate(zip(expected.shown, actual.shown, strict=True)):
        for k in np.flatnonzero(present[t]):
            for place, (name, theirs) in enumerate((name, part) for name, part in made.items() if name in wanted):
                comparable = ~np.isnan(theirs[k]) | (place == 0)  # the first array is the client's own prediction
                mine, apart = wanted[name][k][comparable], theirs[k][comparable]
                if np.allclose(mine, apart, rtol=tolerance, atol=tolerance, equal_nan=True):
                    continue
                rounded = rounded or run_jointly(with_other_last_digits(world()))
                with np.errstate(invalid="ignore"):  # the run may diverge
                    moved = MAGNIFIED * np.nanmax(np.abs(rounded.shown[t][name] - wanted[name]), initial=0)
                most = TOLERANCE["float32"] * np.nanmax(np.abs(wanted[name]), initial=0)
                allowed = max(tolerance, min(moved, most))
                if not np.allclose(mine, apart, rtol=tolerance, atol=allowed, equal_nan=True):
                    where = f"{name} of {who} {k} in round {t + 1}"
                    raise BrokenPromiseError(f"{where} differs if parties are {party.separation}: {party.why}")
    for name, booked, sent in (
        ("round", expected.by_round, actual.by_round), (who, expected.by_client, actual.by_client),
    ):  # fmt: skip
        for direction in booked:
            for j in np.flatnonzero(booked[direction] != sent[direction])[:1]:
                said = f"{booked[direction][j]} bytes are booked, but {sent[direction][j]} were sent"
                raise BrokenPromiseError(f"{direction} of {name} {j + (name == 'round')}: {said}")
