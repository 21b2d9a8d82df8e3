"""A client or a server alone, with its own state, and with messages as bytes.

A simulation holds all clients in one array. Here each party is an object. A client sees no other client, and a server
sees no samples. A site of Flower is such a party, and `fkl.conformance` compares such parties with the simulation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.contract.star import Federated, Samples, Turn
from fkl.contract.world import Common
from fkl.wire.packets import Packet, pack_message, unpack_messages

Shown = dict[str, NDArray[Any]]
"""Arrays of the outcome in one replicate, (K, ...), by name."""


class LoneParty:
    """A party, with its own state and its own random numbers.

    Parameters
    ----------
    method : Federated or Decentralized
    common : Common
        `Common` of one replicate.
    number : int

    Attributes
    ----------
    state : any
        The party's current state.
    """

    who = "a party"
    state: Any
    _samples: Any

    def __init__(self, method: Any, common: Any, number: int) -> None:
        self._method, self._number = method, number
        self._common = replace(common, streams=common.streams.own(range(number, number + 1)))
        self._width = np.dtype(common.precision).itemsize

    def drawn_roles(self) -> set[Any]:
        """Roles for which the party has drawn a client's random numbers."""
        return self._common.streams.drawn

    def _turn_of_party(
        self, t: int, exchange: int = 0, senders: NDArray[np.int64] | None = None, clients_present: int = 0
    ) -> Turn:
        own = range(self._number, self._number + 1)
        return Turn(t, exchange, self._common.streams, own, senders, clients_present)

    @contextmanager
    def _require_unchanged(self, *given: Any) -> Iterator[None]:
        """Raise ValueError if the method changes its arguments."""
        before = field_contents(given)
        yield
        if field_contents(given) != before:
            raise ValueError("it changes its arguments; copy them first")

    def _packet_of(self, message: Any, place: int = 0) -> Packet | None:
        return pack_message(message, place, self._width)

    def _samples_of_round(self, t: int) -> Any:
        """The party's samples of a round: one of a stream, all of a batch."""
        own = self._samples
        return Samples(own.x[t], own.y[t], own.present[t]) if isinstance(own, Samples) else own


class LoneClient(LoneParty):
    """A client that has only its own samples.

    Parameters
    ----------
    method, common, number : see `LoneParty`
    samples : Samples, Held or Owned
        `Samples` of a stream have those of all rounds, (T, 1, d), (T, 1) and (T, 1); others are the same in each round.
    points : (n, d), or None
        Samples for which a method that learns once predicts.
    """

    who = "a client"

    def __init__(
        self, method: Federated, common: Common, number: int, samples: Any, points: Array | None = None
    ) -> None:
        super().__init__(method, common, number)
        self._samples, self._points = samples, points
        _, self.state = method.start(self._common, 1)

    def play(
        self, t: int, exchange: int, down: Packet | None, clients_present: int = 0, present: bool = True
    ) -> tuple[Packet | None, Shown | None]:
        """Take part in an exchange with this many clients; return the message to the server, and the outcome."""
        message, samples = None if down is None else unpack_messages([down]), self._samples_of_round(t)
        if not present:
            samples = replace(samples, present=np.zeros(1, np.bool_))
        with self._require_unchanged(message, samples):
            self.state, up, outcome = self._method.client(
                self._common,
                self.state,
                message,
                samples,
                self._turn_of_party(t, exchange, clients_present=clients_present),
            )
        return self._packet_of(up), None if outcome is None else shown_arrays(outcome, self._points)


class LoneServer(LoneParty):
    """The server, which knows the number of clients and sees only messages."""

    who = "the server"

    def __init__(self, method: Federated, common: Common, clients: int) -> None:
        super().__init__(method, common, 0)
        self.state, _ = method.start(self._common, clients)

    def broadcast(self, t: int, exchange: int, clients: list[int]) -> list[Packet | None]:
        """The message to each of these clients, which are served together, or to the one client whose turn it is."""
        with self._require_unchanged(state := self.state):
            turn = self._turn_of_party(t, exchange, clients_present=len(clients))
            self.state, message = self._method.tell(self._common, state, turn)
        return [self._packet_of(message, 0 if self._method.in_turn else k) for k in clients]

    def take(self, t: int, exchange: int, up: list[Packet], share: Array, senders: NDArray[np.int64]) -> None:
        """Learn from the messages of the clients that are present."""
        message = unpack_messages(up) if up else None
        with self._require_unchanged(state := self.state, message, share):
            turn = self._turn_of_party(t, exchange, senders, len(share))
            self.state = self._method.server(self._common, state, message, share, turn)


def field_contents(given: Any) -> Any:
    """The fields of states and messages as values to compare; cached attributes may change and are left out."""
    if isinstance(given, np.ndarray):
        return given.tobytes()
    if is_dataclass(given):
        return [field_contents(getattr(given, field.name)) for field in fields(given)]
    if isinstance(given, tuple | list | dict):
        return [field_contents(part) for part in (given.values() if isinstance(given, dict) else given)]
    return repr(given) if isinstance(given, int | float | str) else None


def shown_arrays(outcome: Any, points: Array | None = None) -> Shown:
    """The arrays of an outcome, (K, ...), including those that its functions return; there is only one replicate.

    An outcome that is not a dataclass is theta (R, K, ...), or, with points (n, d), a predictor for each replicate.
    """
    if points is not None:
        return {"predictions": outcome[0](points)[None]}
    if not is_dataclass(outcome):
        return {"theta": np.array(outcome[0])}
    values = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
    values_of = {name: value() if callable(value) else value for name, value in values.items() if value is not None}
    return {name: np.array(value[0]) for name, value in values_of.items()}
