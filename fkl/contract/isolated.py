"""Parties on their own: each with its own data alone, everything else as bytes, beside all of them at once.

What a simulation computes with all clients as one array is here computed by one object, or one process, a party. They
must agree: so a client sees no other client, a server no samples, and a message is as large as the ledger says.
"""

import multiprocessing
import pickle
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.contract.star import Federated, Samples, Turn
from fkl.contract.world import Common, World
from fkl.data.problem import Problem
from fkl.errors import BrokenPromiseError
from fkl.network.ledger import UNITS, WITH_A_SERVER, Direction
from fkl.network.packets import Packet, packed, unpacked

Array = NDArray[Any]
TOLERANCE = 1e-9
"""Relative, in float64: sums over clients are taken in another order."""


def _width(common: Common) -> int:
    return np.dtype(common.precision).itemsize


Shown = dict[str, Array]
"""What one replicate's prediction showed, (K, ...) by name."""


class ClientAlone:
    """One client, with its own samples and nothing else.

    Parameters
    ----------
    method : Federated
    common : Common
        Of one replicate.
    number : int
    x, y, present : (T, 1, d), (T, 1), (T, 1)
    """

    who = "a client"

    def __init__(
        self, method: Federated, common: Common, number: int, x: Array, y: Array, present: NDArray[np.bool_]
    ) -> None:
        self._method, self._common, self._number = method, common, number
        self._x, self._y, self._present = x, y, present
        _, self._state = method.start(common, 1)

    def play(self, t: int, exchange: int, down: Packet | None) -> tuple[Packet | None, Shown | None]:
        """Hear what came down, and tell what goes up and what was shown."""
        common, turn = self._common, Turn(t, exchange, self._common.streams, range(self._number, self._number + 1))
        samples = Samples(self._x[t], self._y[t], self._present[t])
        message = None if down is None else unpacked([down])
        self._state, up, outcome = self._method.client(common, self._state, message, samples, turn)
        return packed(up, 0, _width(common)), None if outcome is None else _shown(outcome)


class ServerAlone:
    """The server of so many clients, with messages alone; as `ClientAlone`."""

    who = "the server"

    def __init__(self, method: Federated, common: Common, clients: int) -> None:
        self._method, self._common = method, common
        self._state, _ = method.start(common, clients)

    def broadcast(self, t: int, exchange: int, clients: list[int]) -> list[Packet | None]:
        """What goes down to each of these clients, who are served together."""
        message = self._method.broadcast(self._common, self._state, self._turn(t, exchange))
        return [packed(message, place, _width(self._common)) for place, _ in enumerate(clients)]

    def take(self, t: int, exchange: int, up: list[Packet], share: Array) -> None:
        """Learn from what came up from the clients that are present."""
        message = unpacked(up) if up else None
        self._state = self._method.server(self._common, self._state, message, share, self._turn(t, exchange))

    def _turn(self, t: int, exchange: int) -> Turn:
        return Turn(t, exchange, self._common.streams, range(1))


class Here:
    """A party in this process."""

    apart = "alone"
    why = "a client sees more than its own state, its samples and what it is told"

    def __init__(self, kind: Callable[..., Any], *arguments: Any) -> None:
        self._party = kind(*pickle.loads(pickle.dumps(arguments)))  # nothing is shared by accident

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the party."""
        try:
            return getattr(self._party, name)(*arguments)
        except Exception as error:
            raise _party_error(self._party, name, error) from error

    def close(self) -> None:
        """Nothing is left to do."""


class Elsewhere:
    """A party in a process of its own, that is asked through a pipe."""

    apart = "in processes"
    why = "parties share something besides messages, such as a variable of a module"

    def __init__(self, kind: Callable[..., Any], *arguments: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["fkl.conformance", "sklearn.svm"])  # imported once, not once a party
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_live, args=(theirs, _search_path(arguments[0])), daemon=True)
        self._process.start()
        theirs.close()
        self._exchange(pickle.dumps((kind, arguments)))

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the party."""
        return self._exchange(pickle.dumps((name, arguments)))

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()

    def _exchange(self, words: bytes) -> Any:
        self._pipe.send_bytes(words)
        answer = pickle.loads(self._pipe.recv_bytes())
        if isinstance(answer, Exception):
            raise answer
        return answer


def _live(pipe: Any, search_path: list[str]) -> None:
    """Be a party until the pipe is closed."""
    sys.path[:] = search_path
    party: Any = None
    while True:
        try:
            words = pipe.recv_bytes()
        except EOFError:
            return
        answer: Any = None
        what, arguments = pickle.loads(words)
        try:
            if party is None:
                party = what(*arguments)
            else:
                answer = getattr(party, what)(*arguments)
        except Exception as error:
            answer = _party_error(party, str(what), error)
        pipe.send_bytes(pickle.dumps(answer))


class PartyError(Exception):
    """A party that could not do its part."""


def _party_error(party: Any, what: str, error: Exception) -> PartyError:
    return PartyError(
        f"{getattr(party, 'who', 'a party')}, alone with messages, cannot {what}: {type(error).__name__}: {error}"
    )


def _search_path(method: Any) -> list[str]:
    """Where modules are found, the method's own among them."""
    module = type(method).__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    own = [] if file is None else [str(Path(file).resolve().parents[module.count(".")])]
    return [*sys.path, *own]


@dataclass(frozen=True)
class Played:
    """What the rounds of one replicate showed, and the bytes that were sent.

    Parameters
    ----------
    shown : list of dict of str to (K, ...)
        One a round, all clients; NaN what a client on its own does not know, such as losses of a server's kernels.
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
    shown, state = [], method.init(world)
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        shown.append(read(outcome))
    tallies, size = world.channel.ledger.tallies, UNITS.index("bytes")
    by_round = {direction: tally.by_round[:, 0, size] for direction, tally in tallies.items()}
    return Played(shown, by_round, {direction: tally.by_client[0, :, size] for direction, tally in tallies.items()})


def alone(method: Federated, world: World, party: type[Here] | type[Elsewhere]) -> Played:
    """Every party on its own; what one tells another goes through bytes."""
    problem = world.problem
    T, K = problem.rounds, problem.clients
    common = replace(world.common)  # without features that were drawn already
    with ExitStack() as ends:
        server = ends.enter_context(closing(party(ServerAlone, method, common, K)))
        clients = []
        for k in range(K):
            own = (part[:, [k]] for part in (problem.x, problem.y, problem.present))
            clients.append(ends.enter_context(closing(party(ClientAlone, method, common, k, *own))))
        network = Star(method, problem, server, clients)
        return Played([network.round(t) for t in range(T)], network.by_round, network.by_client)


class Star:
    """What carries packets between parties, and weighs them."""

    def __init__(self, method: Federated, problem: Problem, server: Any, clients: list[Any]) -> None:
        self._method, self._problem, self._server, self._clients = method, problem, server, clients
        self.by_round = {direction: np.zeros(problem.rounds, np.int64) for direction in WITH_A_SERVER}
        self.by_client = {direction: np.zeros(problem.clients, np.int64) for direction in WITH_A_SERVER}

    def round(self, t: int) -> Shown:
        """One round of everybody, or of one client after another where the server serves them in turn."""
        here = np.flatnonzero(self._problem.present[t])
        shown: dict[int, Shown] = {}
        for some in [here[[j]] for j in range(len(here))] if self._method.in_turn else [here]:
            for exchange in range(self._method.exchanges):
                self._exchange(t, exchange, some, shown)
        empty = {name: np.full(part.shape, np.nan) for name, part in shown[here[0]].items()}
        every = [shown.get(k, empty) for k in range(len(self._clients))]
        return {name: np.concatenate([one[name] for one in every]) for name in empty}

    def _exchange(self, t: int, exchange: int, some: NDArray[np.int64], shown: dict[int, Shown]) -> None:
        up = []
        for k, down in zip(some, self._server.ask("broadcast", t, exchange, some.tolist()), strict=True):
            self._weigh("downlink", t, k, down)
            sent, of_client = self._clients[k].ask("play", t, exchange, down)
            self._weigh("uplink", t, k, sent)
            up += [] if sent is None else [sent]
            shown |= {} if of_client is None else {k: of_client}
        self._server.ask("take", t, exchange, up, np.full(len(some), 1 / len(some)))

    def _weigh(self, direction: Direction, t: int, k: int, packet: Packet | None) -> None:
        size = 0 if packet is None else packet.size
        self.by_round[direction][t] += size
        self.by_client[direction][k] += size


def require_alone(method: Federated, world: Callable[[], World], party: type[Here] | type[Elsewhere]) -> None:
    """Compare parties on their own with all of them at once.

    Parameters
    ----------
    method : Federated
    world : callable
        Makes worlds of one replicate, in float64.
    party : Here or Elsewhere
        Whether parties are kept apart as objects or as processes.

    Raises
    ------
    fkl.errors.BrokenPromiseError
        Names the party, the round, and what differs.
    """
    expected = together(method, world(), _shown)
    require_equal(expected, lambda: alone(method, world(), party), world().problem.present, party)


def require_equal(
    expected: Played, play: Callable[[], Played], present: NDArray[np.bool_], party: type[Here] | type[Elsewhere]
) -> None:
    """Compare what `play` makes of parties on their own with what was expected of all at once.

    Raises
    ------
    fkl.errors.BrokenPromiseError
    """
    try:
        found = play()
    except PartyError as error:
        raise BrokenPromiseError(str(error)) from None
    for t, (one, other) in enumerate(zip(expected.shown, found.shown, strict=True)):
        for k in np.flatnonzero(present[t]):
            for place, (name, theirs) in enumerate((name, part) for name, part in other.items() if name in one):
                known = place == 0 or not np.isnan(theirs[k]).all()  # the first is what the client predicts itself
                if known and not np.allclose(one[name][k], theirs[k], rtol=TOLERANCE, atol=TOLERANCE):
                    where = f"{name} of client {k} in round {t + 1}"
                    raise BrokenPromiseError(f"{where} is another {party.apart}: {party.why}")
    for name, booked, sent in (
        ("round", expected.by_round, found.by_round), ("client", expected.by_client, found.by_client),
    ):  # fmt: skip
        for direction in booked:
            for j in np.flatnonzero(booked[direction] != sent[direction])[:1]:
                said = f"{booked[direction][j]} bytes are booked and {sent[direction][j]} sent"
                raise BrokenPromiseError(f"{direction} of {name} {j + (name == 'round')}: {said}")


def _shown(outcome: Any) -> Shown:
    """The arrays (R, K, ...) of an outcome, also those that its functions return, of the one replicate."""
    values = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
    known = {name: value() if callable(value) else value for name, value in values.items() if value is not None}
    return {name: np.array(value[0]) for name, value in known.items()}
