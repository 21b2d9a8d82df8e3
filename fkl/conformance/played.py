"""What the rounds of one replicate show and send, played by all parties at once or by parties on their own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.party_process import Apart, PartyError
from fkl.contract.lone_party import Shown
from fkl.contract.world import World
from fkl.wire.ledger import UNITS, Direction
from fkl.wire.packets import Packet

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
"""Relative, by precision: sums over clients are taken in another order, and factors are rounded only as bytes."""


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


def outcomes(method: Any, world: World) -> Iterator[Any]:
    """What a method shows, round after round."""
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
        From an outcome to the arrays (K, ...) that it shows, by name.
    """
    seen = [shown(outcome) for outcome in outcomes(method, world)]
    tallies, size = world.channel.ledger.tallies, UNITS.index("bytes")
    by_round = {direction: tally.by_round[:, 0, size] for direction, tally in tallies.items()}
    return Played(seen, by_round, {direction: tally.by_client[0, :, size] for direction, tally in tallies.items()})


class Carrier:
    """Carries packets between parties, and weighs them."""

    def __init__(self, problem: Any, directions: Iterable[Direction]) -> None:
        self.by_round = {direction: np.zeros(problem.rounds, np.int64) for direction in directions}
        self.by_client = {direction: np.zeros(problem.clients, np.int64) for direction in self.by_round}
        self._parties = problem.clients
        self._forms: dict[tuple[Direction, int, int], Any] = {}

    def weigh(self, direction: Direction, t: int, k: int, packet: Packet | None, exchange: int = 0) -> None:
        """Book what goes from, or to, party k; what both ends know beforehand is the same of all parties.

        Raises
        ------
        fkl.basics.errors.BrokenPromiseError
            For a packet whose class, shapes or types are others: these are not paid for.
        """
        if packet is not None and self._forms.setdefault((direction, t, exchange), packet.form) != packet.form:
            said = f"{packet.kind.__name__} has another shape or type than those of others, which both ends must know"
            raise BrokenPromiseError(f"{direction} of party {k} in round {t + 1}: {said}")
        size = 0 if packet is None else packet.size
        self.by_round[direction][t] += size
        self.by_client[direction][k] += size

    def all_shown(self, seen: Mapping[int, Shown]) -> Shown:
        """What a round showed of all parties, of those that were there; NaN of the others."""
        if not seen:  # no party is present, so nothing is shown
            return {}
        absent = {name: np.full(part.shape, np.nan) for name, part in next(iter(seen.values())).items()}
        every = [seen.get(k, absent) for k in range(self._parties)]
        return {name: np.concatenate([one[name] for one in every]) for name in absent}


def samples_of_rounds(world: World) -> list[tuple[Any, ...]]:
    """What each client holds of a stream."""
    problem = world.problem
    parts = problem.x, problem.y, problem.present
    return [tuple(part[:, [k]] for part in parts) for k in range(problem.clients)]


def require_equal(expected: Played, play: Callable[[], Played], world: World, party: Apart, who: str) -> None:
    """Compare what `play` makes of parties on their own with what was expected of all at once.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        Names the party, the round, and what differs.
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
