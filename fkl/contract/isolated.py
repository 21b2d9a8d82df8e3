"""Parties on their own: each with its own data alone, everything else as bytes, beside all of them at once.

What a simulation computes with all clients as one array is here computed by one object, or one process, a party. They
must agree: so a client sees no other client, a server no samples, and a message is as large as the ledger says. Random
numbers are a party's own, too, as `fkl.streams.OwnStreams` has them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.contract.apart import AsObject, AsProcess, PartyError
from fkl.contract.star import Federated, Samples, Turn
from fkl.contract.world import Common, World
from fkl.errors import BrokenPromiseError
from fkl.network.ledger import UNITS, WITH_A_SERVER, Direction
from fkl.network.packets import Packet, packed, unpacked
from fkl.network.times import Times

Array = NDArray[Any]
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
"""Relative, by precision: sums over clients are taken in another order, and factors are rounded only as bytes."""
Shown = dict[str, Array]
"""What one replicate's prediction showed, (K, ...) by name."""
Apart = type[AsObject] | type[AsProcess]
"""How parties are kept apart."""


class Alone:
    """A party, with what it holds and numbers of its own.

    Parameters
    ----------
    method : Federated or Decentralized
    common : Common
        Of one replicate.
    number : int

    Attributes
    ----------
    state : any
        What it holds now.
    """

    who = "a party"
    state: Any

    def __init__(self, method: Any, common: Any, number: int) -> None:
        self._method, self._number = method, number
        self._common = replace(common, streams=common.streams.own(range(number, number + 1)))
        self._width = np.dtype(common.precision).itemsize

    def drawn(self) -> set[Any]:
        """Roles whose numbers of a client it has drawn."""
        drawn: set[Any] = self._common.streams.drawn
        return drawn

    def _turn(self, t: int, exchange: int = 0, senders: NDArray[np.int64] | None = None, together: int = 0) -> Turn:
        own = range(self._number, self._number + 1)
        return Turn(t, exchange, self._common.streams, own, senders, together)

    @contextmanager
    def _reading(self, *given: Any) -> Iterator[None]:
        """Refuse a method that changes what it is given."""
        before = _content(given)
        yield
        if _content(given) != before:
            raise ValueError("it changes what it is given")

    def _packed(self, message: Any, place: int = 0) -> Packet | None:
        return packed(message, place, self._width)


class ClientAlone(Alone):
    """One client, with its own samples and nothing else.

    Parameters
    ----------
    method, common, number : as of `Alone`
    x, y, present : (T, 1, d), (T, 1), (T, 1)
    """

    who = "a client"

    def __init__(self, method: Federated, common: Common, number: int, *samples: Any) -> None:
        super().__init__(method, common, number)
        self._samples = samples
        _, self.state = method.start(self._common, 1)

    def play(self, t: int, exchange: int, down: Packet | None, together: int = 0) -> tuple[Packet | None, Shown | None]:
        """Hear what came down to so many clients, and tell what goes up and what was shown."""
        message, samples = None if down is None else unpacked([down]), self._of_round(t)
        with self._reading(message, samples):
            self.state, up, outcome = self._method.client(
                self._common, self.state, message, samples, self._turn(t, exchange, together=together)
            )
        return self._packed(up), None if outcome is None else self._shown(outcome)

    def _of_round(self, t: int) -> Any:
        """Its samples of a round."""
        x, y, present = self._samples
        return Samples(x[t], y[t], present[t])

    def _shown(self, outcome: Any) -> Shown:
        return shown(outcome)


class ServerAlone(Alone):
    """The server of so many clients, with messages alone; as `ClientAlone`."""

    who = "the server"

    def __init__(self, method: Federated, common: Common, clients: int) -> None:
        super().__init__(method, common, 0)
        self.state, _ = method.start(self._common, clients)

    def broadcast(self, t: int, exchange: int, clients: list[int]) -> list[Packet | None]:
        """What goes down to each of these clients, who are served together, or to the one whose turn it is."""
        with self._reading(state := self.state):
            turn = self._turn(t, exchange, together=len(clients))
            self.state, message = self._method.tell(self._common, state, turn)
        return [self._packed(message, 0 if self._method.in_turn else k) for k in clients]

    def take(self, t: int, exchange: int, up: list[Packet], share: Array, senders: NDArray[np.int64]) -> None:
        """Learn from what came up from the clients that are present."""
        message = unpacked(up) if up else None
        with self._reading(state := self.state, message, share):
            turn = self._turn(t, exchange, senders, len(share))
            self.state = self._method.server(self._common, state, message, share, turn)


@dataclass(frozen=True)
class Played:
    """What the rounds of one replicate showed, and the bytes that were sent.

    Parameters
    ----------
    shown : list of dict of str to (K, ...)
        One a round, all clients; NaN what a client on its own does not know, such as losses of a server's kernels that
        it was not sent.
    by_round, by_client : dict of str to (T,) or (K,) int
        Bytes by direction.
    """

    shown: list[Shown]
    by_round: dict[Direction, NDArray[np.int64]]
    by_client: dict[Direction, NDArray[np.int64]]


def together(method: Any, world: World, read: Callable[[Any], Shown]) -> Played:
    """All parties at once, as a simulation plays them, in a world of one replicate.

    Parameters
    ----------
    method : Federated or Decentralized
    world : World
    read : callable
        What an outcome shows, arrays (K, ...) by name.
    """
    seen, state = [], method.init(world)
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        seen.append(read(outcome))
    tallies, size = world.channel.ledger.tallies, UNITS.index("bytes")
    by_round = {direction: tally.by_round[:, 0, size] for direction, tally in tallies.items()}
    return Played(seen, by_round, {direction: tally.by_client[0, :, size] for direction, tally in tallies.items()})


def samples_of_rounds(world: World) -> list[tuple[Any, ...]]:
    """What each client holds of a stream."""
    problem = world.problem
    parts = problem.x, problem.y, problem.present
    return [tuple(part[:, [k]] for part in parts) for k in range(problem.clients)]


def alone(
    method: Federated, world: World, party: Apart, common: Any, client: type[ClientAlone], own: list[tuple[Any, ...]]
) -> Played:
    """Every party on its own; what one tells another goes through bytes."""
    problem = world.problem
    with ExitStack() as ends:
        server = ends.enter_context(closing(party(ServerAlone, method, common, problem.clients)))
        clients = [ends.enter_context(closing(party(client, method, common, k, *mine))) for k, mine in enumerate(own)]
        network = Star(method, problem, server, clients, world.channel.times)
        seen = [network.round(t) for t in range(problem.rounds)]
        if both := server.ask("drawn") & set().union(*(one.ask("drawn") for one in clients)):
            names = ", ".join(sorted(role.name for role in both))
            raise BrokenPromiseError(f"the server draws what the clients draw: {names}")
        return Played(seen, network.by_round, network.by_client)


class Carrier:
    """What carries packets between parties, and weighs them."""

    def __init__(self, problem: Any, directions: Iterable[Direction]) -> None:
        self.by_round = {direction: np.zeros(problem.rounds, np.int64) for direction in directions}
        self.by_client = {direction: np.zeros(problem.clients, np.int64) for direction in self.by_round}
        self._forms: dict[tuple[Direction, int, int], Any] = {}

    def weigh(self, direction: Direction, t: int, k: int, packet: Packet | None, exchange: int = 0) -> None:
        """Book what goes from, or to, party k; what both ends know beforehand is the same of all parties.

        Raises
        ------
        fkl.errors.BrokenPromiseError
            For a packet whose class, shapes or types are others: these are not paid for.
        """
        if packet is not None and self._forms.setdefault((direction, t, exchange), packet.form) != packet.form:
            said = f"{packet.kind.__name__} has another shape or type than those of others, which both ends must know"
            raise BrokenPromiseError(f"{direction} of party {k} in round {t + 1}: {said}")
        size = 0 if packet is None else packet.size
        self.by_round[direction][t] += size
        self.by_client[direction][k] += size


class Star(Carrier):
    """Between a server and its clients."""

    def __init__(
        self, method: Federated, problem: Any, server: Any, clients: list[Any], times: Times | None = None
    ) -> None:
        super().__init__(problem, WITH_A_SERVER)
        self._method, self._problem, self._server, self._clients = method, problem, server, clients
        self._times = times

    def round(self, t: int) -> Shown:
        """One round of everybody, or of one client after another where the server serves them in turn."""
        here = np.flatnonzero(self._problem.present[t])
        seen: dict[int, Shown] = {}
        for some in [here[[j]] for j in range(len(here))] if self._method.in_turn else [here]:
            for exchange in range(self._method.exchanges):
                self._exchange(t, exchange, some, seen)
        if not seen:  # nobody is there, and nothing is shown
            return {}
        empty = {name: np.full(part.shape, np.nan) for name, part in seen[here[0]].items()}
        every = [seen.get(k, empty) for k in range(len(self._clients))]
        return {name: np.concatenate([one[name] for one in every]) for name in empty}

    def _exchange(self, t: int, exchange: int, some: NDArray[np.int64], seen: dict[int, Shown]) -> None:
        up, senders = [], []
        for k, down in zip(some, self._server.ask("broadcast", t, exchange, some.tolist()), strict=True):
            self.weigh("downlink", t, k, down, exchange)
            sent, of_client = self._clients[k].ask("play", t, exchange, down, len(some))
            self.weigh("uplink", t, k, sent, exchange)
            seen |= {} if of_client is None else {k: of_client}
            if self._in_time(t, k, down, sent):
                senders.append(k)
                up += [] if sent is None else [sent]
        if senders or self._method.hears_silence:
            share = np.full(len(senders), 1 / max(len(senders), 1))
            self._server.ask("take", t, exchange, up, share, np.array(senders, np.int64))

    def _in_time(self, t: int, k: int, *packets: Packet | None) -> bool:
        """Whether the answer of client k is there before the server goes on."""
        if self._times is None:
            return True
        size = [np.zeros(len(self._clients), np.int64) for _ in packets]
        for of_client, packet in zip(size, packets, strict=True):
            of_client[k] = 0 if packet is None else packet.size
        return bool(self._times.answer(t, *size)[k] <= self._times.deadline)


def require_alone(method: Federated, world: Callable[[], World], party: Apart) -> None:
    """Compare parties on their own with all of them at once.

    Parameters
    ----------
    method : Federated
    world : callable
        Makes worlds of one replicate, in float64.
    party : AsObject or AsProcess

    Raises
    ------
    fkl.errors.BrokenPromiseError
        Names the party, the round, and what differs.
    """
    here = world()

    def play() -> Played:  # of features that are not drawn already
        return alone(method, here, party, replace(here.common), ClientAlone, samples_of_rounds(here))

    require_equal(together(method, world(), shown), play, here, party)


def require_equal(
    expected: Played, play: Callable[[], Played], world: World, party: Apart, who: str = "client"
) -> None:
    """Compare what `play` makes of parties on their own with what was expected of all at once.

    Raises
    ------
    fkl.errors.BrokenPromiseError
    """
    present, tolerance = world.problem.present, TOLERANCE[world.precision]
    try:
        found = play()
    except PartyError as error:
        raise BrokenPromiseError(str(error)) from None
    for t, (one, other) in enumerate(zip(expected.shown, found.shown, strict=True)):
        for k in np.flatnonzero(present[t]):
            for place, (name, theirs) in enumerate((name, part) for name, part in other.items() if name in one):
                known = ~np.isnan(theirs[k]) | (place == 0)  # the first is what the client predicts itself
                if not np.allclose(one[name][k][known], theirs[k][known], rtol=tolerance, atol=tolerance):
                    where = f"{name} of {who} {k} in round {t + 1}"
                    raise BrokenPromiseError(f"{where} is another {party.apart}: {party.why}")
    for name, booked, sent in (
        ("round", expected.by_round, found.by_round), (who, expected.by_client, found.by_client),
    ):  # fmt: skip
        for direction in booked:
            for j in np.flatnonzero(booked[direction] != sent[direction])[:1]:
                said = f"{booked[direction][j]} bytes are booked and {sent[direction][j]} sent"
                raise BrokenPromiseError(f"{direction} of {name} {j + (name == 'round')}: {said}")


def _content(given: Any) -> Any:
    """What the fields of states and messages hold; what these keep beside, to have it at hand, may change."""
    if isinstance(given, np.ndarray):
        return given.tobytes()
    if is_dataclass(given):
        return [_content(getattr(given, field.name)) for field in fields(given)]
    if isinstance(given, tuple | list | dict):
        return [_content(part) for part in (given.values() if isinstance(given, dict) else given)]
    return repr(given) if isinstance(given, int | float | str) else None


def shown(outcome: Any) -> Shown:
    """The arrays (R, K, ...) of an outcome, also those that its functions return, of the one replicate."""
    values = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
    known = {name: value() if callable(value) else value for name, value in values.items() if value is not None}
    return {name: np.array(value[0]) for name, value in known.items()}
