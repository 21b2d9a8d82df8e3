"""The channel through which all data leave a party, the ledger that counts them, and the inboxes of agents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import is_not
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, known_everywhere
from fkl.basics.errors import BrokenPromiseError, FklError
from fkl.basics.random_streams import Role, Streams
from fkl.network.settings import CostModel, Network, Times
from fkl.network.topology import Awake, Links, Neighbours, Topology
from fkl.wire.payloads import OnLinks, Size, on_links, payloads_by_kind, received_message, wire_size, with_axes_of

Direction = Literal["uplink", "downlink", "broadcast", "link", "lost"]
WITH_A_SERVER: tuple[Direction, ...] = ("uplink", "downlink")
BETWEEN_PEERS: tuple[Direction, ...] = ("broadcast", "link")
"""Directions of agents on a graph: a broadcast is one message on each link of its sender; lost messages count too."""
BETWEEN_PARTIES: tuple[Direction, ...] = ("link",)
ON_WIRES: tuple[Direction, ...] = ("uplink", "downlink", "link")
"""Directions whose messages take simulated time, each message once."""


@dataclass
class Tally:
    """Messages, scalars and bytes of one direction.

    Parameters
    ----------
    by_round : (T, R, 3) int64
        Sum over all clients.
    by_client : (R, K, 3) int64
        Sum over all rounds.
    """

    by_round: NDArray[np.int64]
    by_client: NDArray[np.int64]


UNITS = ("messages", "scalars", "bytes")


class Counts(NamedTuple):
    """Messages, scalars and bytes of each client that sends, or that receives a downlink.

    Parameters
    ----------
    each : (R, K, 3) int64
    of_all : (R, 3) int64
        Sums over the clients.
    """

    each: NDArray[np.int64]
    of_all: NDArray[np.int64]

    @classmethod
    def counts_of_clients(cls, messages: NDArray[Any], scalars: NDArray[np.int64], size: NDArray[np.int64]) -> "Counts":
        """Counts (R, K) of each client, size in bytes."""
        each = np.empty((*scalars.shape, len(UNITS)), np.int64)
        each[..., 0], each[..., 1], each[..., 2] = messages, scalars, size
        return cls(each, each.sum(axis=1))


class Ledger:
    """Counts of all data that passed through a `Channel`, in messages, scalars and bytes.

    Parameters
    ----------
    rounds, replicates, clients : int
    cost : CostModel or None
        If given, `seconds` (T, R) has the simulated communication time of each round.
    directions : tuple of str
        Directions that are counted.
    """

    def __init__(
        self,
        rounds: int,
        replicates: int,
        clients: int,
        cost: CostModel | None = None,
        directions: tuple[Direction, ...] = WITH_A_SERVER,
    ) -> None:
        # A tally for each direction, by round and by client
        shapes = (rounds, replicates, 3), (replicates, clients, 3)
        self.tallies = {direction: Tally(*(np.zeros(shape, np.int64) for shape in shapes)) for direction in directions}
        self.shape = replicates, clients
        self.cost = cost
        self.seconds = np.zeros((rounds, replicates))
        self.kinds: dict[tuple[Direction, str], int] = {}

    def enter(self, t: int, direction: Direction, kind: str, counts: Counts, timed: bool = True) -> None:
        """Record one kind of message of round t.

        Parameters
        ----------
        t : int
        direction : str
            One of the counted directions.
        kind : str
            Kind of message, for example ``"theta"``.
        counts : Counts
        timed : bool
            Whether to add the cost model's seconds for these messages.
        """
        # Add to the tallies, and to the time if the message travels on a wire
        tally = self.tallies[direction]
        tally.by_client += counts.each
        tally.by_round[t] += counts.of_all
        self.kinds[direction, kind] = self.kinds.get((direction, kind), 0) + sum(counts.of_all[:, 1].tolist())
        if self.cost is not None and timed and direction in ON_WIRES:
            self.seconds[t] += self.cost.seconds(counts.each[..., 0], counts.each[..., 2])


Message = TypeVar("Message")


@dataclass(frozen=True)
class Delivery:
    """The fate of a message that agents sent to their neighbours.

    Parameters
    ----------
    sends : (R, K) bool
        Agents that sent it.
    per_link : bool
        Whether each link has its own message.
    passing : (R, links) bool, or None
        Links on which it was sent; None if all links are up.
    lost : (R, links) bool, or None
        Links on which it was lost; None if no message can be lost.
    """

    sends: NDArray[np.bool_]
    per_link: bool
    passing: NDArray[np.bool_] | None = None
    lost: NDArray[np.bool_] | None = None


class Channel:
    """Passes messages between clients and server, or between agents, records them, and enforces the uplink budget.

    Algorithms run R replicates at once, so a payload has the arrays of all replicates; its form on a wire follows from
    its class. Only the round loop calls `open_round`.

    Parameters
    ----------
    network : Network
    ledger : Ledger
    precision : dtype
        Precision of a scalar on the wire.
    algorithm : str
        Name of the method in the error about an exceeded budget.
    streams : Streams
        Random numbers that decide which messages are lost.
    links : Links or None
        Model of the links' failures; None if all links are always up.
    times : Times or None
        Computation and network times of clients or agents, the same in all replicates that run together; None if there
        are none, or if only the ledger's cost model is used.
    """

    def __init__(
        self,
        network: Network,
        ledger: Ledger,
        precision: np.dtype,
        algorithm: str,
        streams: Streams,
        links: Links | None = None,
        times: Times | None = None,
    ) -> None:
        self.network, self.ledger, self.algorithm, self.streams = network, ledger, algorithm, streams
        # Links that are always up need no draws
        self.links = None if links is None or links.always_up else links
        self.times = times
        self.width = precision.itemsize
        # Round and present clients, and what was sent in the open round
        self._t = 0
        self._present: NDArray[np.int64] = np.zeros(0, np.int64)
        self._counted: dict[tuple[Direction, str], tuple[tuple[Any, ...], Counts]] = {}
        self._sent = self._nothing_sent()
        self._travelled = {"downlink": self._nothing_sent(), "uplink": self._nothing_sent()}

    def open_round(self, t: int, present: NDArray[np.bool_]) -> None:
        """Begin round t; `present` (K,) says which clients take part."""
        self._t = t
        if not np.array_equal(present, self._present):
            self._present = present.astype(np.int64)
        self._sent = self._nothing_sent()

    def _nothing_sent(self) -> NDArray[np.int64]:
        return np.zeros(self.ledger.shape, np.int64)

    def down(self, message: Message) -> Message:
        """Pass a message from the server to every present client, and record its payloads kind by kind.

        Returns
        -------
        The message as it arrives: its scalars have at most the wire's precision.

        Raises
        ------
        TypeError
            For a message with a field that is not a payload.
        fkl.basics.errors.BrokenPromiseError
            For a payload whose shape or type differs from the one that both ends know.
        """
        return self._pass_and_book("downlink", message)

    def up(self, message: Message) -> Message:
        """Pass the messages of every present client to the server, as in `down`.

        Raises
        ------
        fkl.basics.errors.FklError
            When a client has sent more scalars in this round than `Network.uplink_budget`.
        """
        return self._pass_and_book("uplink", message)

    def _pass_and_book(self, direction: Direction, message: Message) -> Message:
        message = self.receive(message, of_clients=direction == "uplink")
        for kind, payloads in payloads_by_kind(message):
            self.book(direction, kind, wire_size(payloads, self.width))
        return message

    def receive(self, message: Message, links: int = 0, of_clients: bool = False) -> Message:
        """A message as it arrives, after a check of the axes of each payload."""
        R, K = self.ledger.shape
        passed: Message = received_message(message, {"R": R, "K": K, "L": links}, self.width, of_clients)
        return passed

    def book(self, direction: Direction, kind: str, size: Size) -> None:
        """Record one kind of message to or from every present client, with this `size`, (R, K) or (R, 1).

        Raises
        ------
        fkl.basics.errors.FklError
            As in `up`.
        """
        given, known = (*size, self._present), self._counted.get((direction, kind))
        if known is None or any(map(is_not, known[0], given)):  # the same arrays in nearly every round
            scalars, size_in_bytes = (count * self._present for count in size)
            known = self._counted[direction, kind] = (
                given,
                Counts.counts_of_clients(scalars > 0, scalars, size_in_bytes),
            )
        # Budgets are of scalars; times of bytes
        counts = known[1]
        if direction == "uplink":
            self._charge_budgets(counts.each[..., 1])
        self.ledger.enter(self._t, direction, kind, counts, self.times is None)
        if self.times is not None:
            self._travelled[direction] = self._travelled[direction] + counts.each[..., 2]

    def shares_in_time(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each client's share (K,) in the mean over answers that arrived in time; called at the end of an exchange.

        Raises
        ------
        fkl.basics.errors.FklError
            If the shares differ between replicates that run together; `fkl run` runs such replicates one at a time.
        """
        # Without times, every answer arrives
        if self.times is None:
            return share
        # Time of each answer: down, compute, up
        present = share > 0
        answer = self.times.seconds_until_answers(self._t, self._travelled["downlink"], self._travelled["uplink"])
        self._travelled = {direction: self._nothing_sent() for direction in self._travelled}
        self.ledger.seconds[self._t] += self.times.seconds_waited(answer, present)
        # Clients that miss the deadline count as absent in the mean
        in_time = present & (answer <= self.times.deadline)
        if (in_time != in_time[0]).any():
            raise FklError("network.deadline_s: replicates differ in message lengths; run one at a time: chunk=1")
        heard = in_time[0]
        return share if heard.sum() == present.sum() else heard / max(int(heard.sum()), 1)

    def any_answer(self, share: Array, clients_present: int) -> Any:
        """Whether any client has answered, from their shares (K,) in a mean; `clients_present` clients take part."""
        return bool(share.any())

    def awake(self, t: int, topology: Topology, present: NDArray[np.bool_]) -> Awake:
        """Links that are up in iteration t + 1, between present agents, (T, K)."""
        up = self._links_up(t, topology, present)
        return topology.knowledge_when_awake(up, self._links_up(t - 1, topology, present) if t else np.ones_like(up))

    def _links_up(self, t: int, topology: Topology, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        both = present[t][topology.links].all(axis=1)
        if self.links is None:
            return np.tile(both, (len(self.streams.replicates), 1))
        return both & self.links.links_up(self.streams, t, topology)

    def send_to_neighbours(
        self, message: Message, sends: NDArray[np.bool_], topology: Topology, awake: Awake | None = None
    ) -> tuple[Message, NDArray[np.bool_]]:
        """Pass a message from agents to all their neighbours, and record its payloads kind by kind.

        A message that is the same for all neighbours counts as one broadcast, unless all links of its sender are down.
        A different message on each link counts as one broadcast per link. No message is sent on a link that is down.

        Parameters
        ----------
        message : dataclass of payloads
        sends : (R, K) bool
            Agents that send it; their neighbours do not learn which agents do not send.
        topology : Topology
        awake : Awake or None

        Returns
        -------
        Message
            As in `down`.
        (R, K) or (R, links) bool
            Whether each agent's message arrived at all neighbours, or on each link if links differ.

        Raises
        ------
        fkl.basics.errors.FklError
            When an agent has sent more scalars in this round than `Network.uplink_budget`.
        fkl.basics.errors.BrokenPromiseError
            As in `down`, and if `sends` has another shape or type.
        """
        # Check shape and type, because a wrong mask would be broadcast silently
        told = np.shape(sends), getattr(sends, "dtype", type(sends).__name__)
        if told != (self.ledger.shape, np.bool_):
            said = f"sends has shape {told[0]} and type {told[1]}; must be bool (R, K) = {self.ledger.shape}"
            raise BrokenPromiseError(said)
        # As it arrives, where it arrives, and its bytes
        message = self.receive(message, len(topology.links), of_clients=True)
        arrived, delivery = self.deliver_message(message, sends, topology, awake)
        sizes = [(kind, wire_size(parts, self.width)) for kind, parts in payloads_by_kind(message)]
        self.book_to_neighbours(topology, delivery, sizes)
        return message, arrived

    def deliver_message(
        self, message: Any, sends: NDArray[np.bool_], topology: Topology, awake: Awake | None
    ) -> tuple[NDArray[np.bool_], "Delivery"]:
        """Where a message of agents arrives, as `send_to_neighbours` returns it, and the delivery for the ledger."""
        # Without links of their own, losses or absent agents, a broadcast reaches all
        per_link, loss = on_links(message), self.network.loss
        if not per_link and awake is None and loss == 0:
            return sends, Delivery(sends, per_link)
        arrived, passing, lost = sends[:, topology.links[:, 1]], None, None
        if awake is not None:
            arrived = passing = arrived & awake.up
        if loss > 0:
            lost = arrived & (self.streams.uniform(Role.LOSS, self._t, len(topology.links)) < loss)
            arrived = arrived & ~lost
        return arrived, Delivery(sends, per_link, passing, lost)

    def book_to_neighbours(self, topology: Topology, delivery: "Delivery", sizes: Sequence[tuple[str, Size]]) -> None:
        """Record messages of these sizes, (R, K) or (R, 1) for each kind, that were delivered like this.

        Raises
        ------
        fkl.basics.errors.FklError
            As `send_to_neighbours`.
        """
        # A broadcast counts once for the sender, and once on each link
        broadcasts, listeners = delivery.sends.astype(np.int64), topology.listeners.astype(np.int64)
        counted: dict[Direction, NDArray[np.int64]] = {"broadcast": broadcasts, "link": broadcasts * listeners}
        # Links that are down carry nothing
        if delivery.passing is not None:
            counted["link"] = topology.sent_by(delivery.passing)
            counted["broadcast"] = np.minimum(counted["link"], 1)
        if delivery.lost is not None:
            counted["lost"] = topology.sent_by(delivery.lost)
        if delivery.per_link:
            counted["broadcast"] = counted["link"]
        travelled, timed = self._nothing_sent(), self.times is None
        # Budgets, times and ledger for each kind
        for kind, size in sizes:
            self._charge_budgets(counted["broadcast"] * size.scalars)
            if not timed:
                travelled = travelled + counted["link"] * size.size
            for direction, messages in counted.items():
                counts = Counts.counts_of_clients(messages, messages * size.scalars, messages * size.size)
                self.ledger.enter(self._t, direction, kind, counts, timed)
        if self.times is not None:
            self.ledger.seconds[self._t] += self.times.iteration_seconds(self._t, counted["link"], travelled)

    def record_messages(
        self,
        kind: str,
        messages: NDArray[np.int64],
        scalars: NDArray[np.int64],
        size: NDArray[np.int64],
        timed: bool = True,
    ) -> None:
        """Record messages between parties, (R, q) each by sender, size in bytes.

        Parameters
        ----------
        timed : bool
            Whether to add the time that the cost model gives the slowest party; otherwise `add_seconds` adds the time.
        """
        self._charge_budgets(scalars)
        self.ledger.enter(self._t, "link", kind, Counts.counts_of_clients(messages, scalars, size), timed)

    def add_seconds(self, seconds: float) -> None:
        """Add the simulated seconds of the protocol's critical path to this round, for all replicates."""
        self.ledger.seconds[self._t] += seconds

    def _charge_budgets(self, scalars: NDArray[np.int64]) -> None:
        """Charge scalars (R, K) to the clients' budgets for this round."""
        self._sent = self._sent + scalars
        budget = self.network.uplink_budget
        if budget is not None and self._sent.max() > budget:
            raise FklError(
                f"network.uplink_budget={budget}: {self.algorithm} sends {self._sent.max()} scalars "
                f"a client in round {self._t + 1}; raise the budget, or lower kernels.D or algo.M"
            )


@dataclass(frozen=True)
class Inbox:
    """Each agent's copies of its neighbours' messages, by kind: the last message, or the sum of all changes sent.

    Parameters
    ----------
    graph : Neighbours or Topology
        The agents' knowledge of the graph. If no message is lost, it is the graph itself for all agents at once,
        because all neighbours of an agent then hold the same copy.
    held : mapping of str to array
        For each kind, (R, links, ...) with a copy for each link, or (R, K, ...) with a copy per agent. Only it changes.
    awake : Awake or None
        Links that are up in this iteration; None if all links always are.
    """

    graph: Neighbours | Topology
    held: Mapping[str, Array]
    awake: Awake | None = None

    @classmethod
    def before_first_round(cls, graph: Neighbours | Topology, known: Any) -> "Inbox":
        """The inbox before the first round, with the same `SameForAll` message for every neighbour of every agent."""
        shared: dict[str, Any] = {kind: payload for kind, (payload,) in payloads_by_kind(known)}
        return cls(graph, {kind: np.repeat(shared[kind].values[:, None], graph.copies, axis=1) for kind in shared})

    @property
    def degree(self) -> NDArray[np.float64]:
        """Number of neighbours of each agent, (K,)."""
        return self.graph.degree

    def sum(self, kind: str) -> Array:
        """Sum over each agent's neighbours, (R, K, ...)."""
        return self._summed_over_neighbours(self.held[kind])

    @property
    def listeners(self) -> NDArray[np.float64]:
        """Number of agents that hear each agent in this iteration, (K,) or (R, K)."""
        return self.graph.listeners if self.awake is None else self.awake.listeners

    def heard(self, kind: str) -> Array:
        """Sum of the messages of a kind over the neighbours whose links are up in this iteration."""
        if self.awake is None:
            return self.sum(kind)
        held = self.held[kind]
        return self._summed_over_neighbours(array_namespace(held).where(with_axes_of(held, self.awake.up), held, 0.0))

    def mix(self, kind: str, own: Array) -> Array:
        """Average agents' own arrays, own (R, K, ...), and their copies of neighbours' with Metropolis weights."""
        mixed: Array = self.graph.mix(_with_one_axis(self.held[kind]), _with_one_axis(own), self.awake)  # type: ignore[arg-type]
        return mixed.reshape(own.shape)

    def _summed_over_neighbours(self, held: Array) -> Array:
        """Sums over each agent's neighbours; arrays with several axes are flattened for this."""
        summed = self.graph.neighbour_sum(_with_one_axis(held))
        return summed.reshape(*summed.shape[:2], *held.shape[2:])

    def on_links(self, own: Array) -> Array:
        """Agents' own arrays, own (R, K, ...), repeated for each of their links, (R, links, ...)."""
        assert isinstance(self.graph, Neighbours)  # for a method with `on_links`, see fkl.contract.graph
        return own[:, self.graph.receiver]

    def after(self, message: Any, arrived: NDArray[np.bool_], keep: Callable[[Array, Array], Array]) -> "Inbox":
        """The inbox after a message, with `arrived` (R, links) or (R, K); copies without a new message do not change.

        The method decides which copy to store: `fkl.contract.graph.Decentralized.keep`.
        """
        held, everywhere = dict(self.held), known_everywhere(arrived)
        for kind, (payload,) in payloads_by_kind(message):
            new = keep(
                held[kind], self.graph.messages_on_links(payload, isinstance(payload, OnLinks)).added_to(held[kind])
            )
            held[kind] = new if everywhere else array_namespace(new).where(with_axes_of(new, arrived), new, held[kind])
        return replace(self, held=held)


def _with_one_axis(held: Array) -> Array:
    """The array with one axis for all entries of an agent, (R, K, P), for sums and averages on graphs."""
    return held if held.ndim == 3 else held.reshape(*held.shape[:2], prod(held.shape[2:]))
