"""Results and messages of one replicate's rounds, played by all parties at once or by isolated parties."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.party_process import Apart, PartyError
from fkl.contract.lone_party import Shown
from fkl.contract.star import Samples
from fkl.contract.world import World
from fkl.wire import Channel
from fkl.wire.channel import UNITS, Direction
from fkl.wire.packets import Packet
from fkl.wire.payloads import payloads_of

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
"""Relative tolerance by precision: the order of sums over clients differs, and factors are rounded only as bytes."""
MAGNIFIED = 100
"""A method may magnify rounding: a difference may be this many times what other last digits of the samples make, but
at most the tolerance of single precision times the largest number of the round."""


@dataclass(frozen=True)
class Played:
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


def outcomes(method: Any, world: World) -> Iterator[Any]:
    """Results of a method, round after round."""
    state = method.init(world)
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        yield outcome


def play_together(method: Any, world: World, shown: Callable[[Any], Shown]) -> Played:
    """Play all parties at once, as a simulation does, in a world of one replicate.

    Parameters
    ----------
    method : Federated or Decentralized
    world : World
    shown : callable
        From an outcome to its arrays (K, ...), by name.
    """
    seen = [shown(outcome) for outcome in outcomes(method, world)]
    tallies, size = world.channel.ledger.tallies, UNITS.index("bytes")
    by_round = {direction: tally.by_round[:, 0, size] for direction, tally in tallies.items()}
    return Played(seen, by_round, {direction: tally.by_client[0, :, size] for direction, tally in tallies.items()})


Payloads = list[tuple[bytes, bytes]]
"""The bytes and the mask's bits of each payload of a party's message; none if it is silent."""
Sent = dict[int, Payloads]
"""Messages by number of a party that is present."""


class Witness(Channel):
    """A channel that notes what parties hear and tell; after another witness, they hear what they heard from it.

    Parameters
    ----------
    channel : Channel
        Of one replicate.
    before : Witness or None

    Attributes
    ----------
    heard, sent : list of (int, any)
        What came down, or from neighbours, and what parties sent, each with its round.
    """

    def __init__(self, channel: Channel, before: "Witness | None" = None) -> None:
        vars(self).update(vars(channel))
        self.heard: list[tuple[int, Any]] = []
        self.sent: list[tuple[int, Sent]] = []
        self._before = before

    def down(self, message: Any) -> Any:
        """Pass a message of the server."""
        return self._as_heard_before(super().down(message))

    def up(self, message: Any) -> Any:
        """Pass the clients' messages."""
        message = super().up(message)
        self._note(message, np.ones(self.ledger.shape, np.bool_))
        return message

    def send_to_neighbours(self, message: Any, sends: NDArray[np.bool_], topology: Any, awake: Any = None) -> Any:
        """Pass the agents' messages."""
        message, arrived = super().send_to_neighbours(message, sends, topology, awake)
        self._note(message, sends)
        return self._as_heard_before((message, arrived))

    def _as_heard_before(self, message: Any) -> Any:
        self.heard.append((self._t, message))
        return message if self._before is None else self._before.heard[len(self.heard) - 1][1]

    def _note(self, message: Any, sends: NDArray[np.bool_]) -> None:
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
        """Book the packet from or to party k; facts that both ends know beforehand are the same for all parties.

        Raises
        ------
        fkl.basics.errors.BrokenPromiseError
            For a packet with another class, shapes or types, since these cost no bytes.
        """
        if packet is not None and self._forms.setdefault((direction, t, exchange), packet.form) != packet.form:
            said = f"{packet.kind.__name__} has another shape or type than those of others, which both ends must know"
            raise BrokenPromiseError(f"{direction} of party {k} in round {t + 1}: {said}")
        size = 0 if packet is None else packet.size
        self.by_round[direction][t] += size
        self.by_client[direction][k] += size

    def all_shown(self, seen: Mapping[int, Shown]) -> Shown:
        """Results of a round for all parties; NaN for absent ones."""
        if not seen:  # no party is present, so there is no result
            return {}
        absent = {name: np.full(part.shape, np.nan) for name, part in next(iter(seen.values())).items()}
        every = [seen.get(k, absent) for k in range(self._parties)]
        return {name: np.concatenate([one[name] for one in every]) for name in absent}


def samples_of_rounds(world: World) -> list[Samples]:
    """Each client's part of a stream, of all rounds."""
    problem = world.problem
    parts = problem.x, problem.y, problem.present
    return [Samples(*(part[:, [k]] for part in parts)) for k in range(problem.clients)]


def with_other_last_digits(world: World) -> World:
    """The same world with each number of its samples larger by its last binary digit."""
    x, y = (np.nextafter(part, np.inf) for part in (world.problem.x, world.problem.y))
    return replace(world, problem=replace(world.problem, x=x, y=y))


def require_equal(
    play_all: Callable[[World], Played],
    play: Callable[[World], Played],
    world: Callable[[], World],
    party: Apart,
    who: str,
) -> None:
    """Compare isolated parties, run by `play`, with all at once, run by `play_all`; see `TOLERANCE` and `MAGNIFIED`.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        Names the party, the round, and the difference.
    """
    here, expected = world(), play_all(world())
    present, tolerance = here.problem.present, TOLERANCE[here.precision]
    rounded: Played | None = None
    try:
        found = play(here)
    except PartyError as error:
        raise BrokenPromiseError(str(error)) from error
    for t, (one, other) in enumerate(zip(expected.shown, found.shown, strict=True)):
        for k in np.flatnonzero(present[t]):
            for place, (name, theirs) in enumerate((name, part) for name, part in other.items() if name in one):
                known = ~np.isnan(theirs[k]) | (place == 0)  # the first is the client's own prediction
                mine, apart = one[name][k][known], theirs[k][known]
                if np.allclose(mine, apart, rtol=tolerance, atol=tolerance, equal_nan=True):
                    continue
                rounded = rounded or play_all(with_other_last_digits(world()))
                with np.errstate(invalid="ignore"):  # of a run that diverges
                    moved = MAGNIFIED * np.nanmax(np.abs(rounded.shown[t][name] - one[name]), initial=0)
                most = TOLERANCE["float32"] * np.nanmax(np.abs(one[name]), initial=0)
                allowed = max(tolerance, min(moved, most))
                if not np.allclose(mine, apart, rtol=tolerance, atol=allowed, equal_nan=True):
                    where = f"{name} of {who} {k} in round {t + 1}"
                    raise BrokenPromiseError(f"{where} is another {party.apart}: {party.why}")
    for name, booked, sent in (
        ("round", expected.by_round, found.by_round), (who, expected.by_client, found.by_client),
    ):  # fmt: skip
        for direction in booked:
            for j in np.flatnonzero(booked[direction] != sent[direction])[:1]:
                said = f"{booked[direction][j]} bytes are booked and {sent[direction][j]} sent"
                raise BrokenPromiseError(f"{direction} of {name} {j + (name == 'round')}: {said}")
