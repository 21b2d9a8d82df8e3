"""The channel: the one door by which data leaves a party."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fkl.errors import FklError, require
from fkl.network.ledger import CostModel, Direction, Ledger
from fkl.network.links import Links
from fkl.network.messages import Size, kinds, measured, on_links, received_message
from fkl.network.times import Times, around_one
from fkl.network.topology import Awake, Topology
from fkl.streams import Role, Streams

Message = TypeVar("Message")
Array = NDArray[np.floating]


@dataclass(frozen=True)
class Network:
    """What the links between server and clients, or between agents on a graph, allow and cost.

    Parameters
    ----------
    uplink_budget : int or None
        Most scalars that a client may send in a round; None for no limit. A broadcast to all neighbours counts once.
    loss : float
        Probability that a message between two agents does not arrive; nobody is told.
    latency_s, bandwidth_bytes_per_s : float or None
        Where both are given, the run records simulated communication seconds.
    compute_s : float or None
        Mean seconds that a client computes in each exchange of a round, which simulated seconds then include; None for
        no time at all.
    compute_spread : float
        How different clients are: standard deviation of the logarithm of a client's own mean, lognormal around
        `compute_s`. Drawn anew in every replicate, as all of these.
    compute_jitter : float
        How different rounds are: standard deviation of the logarithm of a round's seconds around the client's mean.
    link_spread : float
        How different links are: standard deviation of the logarithm of a client's latency, and of its bandwidth.
    deadline_s : float or None
        Seconds after which the server goes on with the mean of what it has: who is late has predicted, and has sent its
        bytes for nothing. On a graph, seconds after which an agent that still computes misses the iteration. None to
        wait for everybody.

    Raises
    ------
    fkl.errors.BadValue
    """

    uplink_budget: int | None = None
    loss: float = 0.0
    latency_s: float | None = None
    bandwidth_bytes_per_s: float | None = None
    compute_s: float | None = None
    compute_spread: float = 0.0
    compute_jitter: float = 0.0
    link_spread: float = 0.0
    deadline_s: float | None = None

    def __post_init__(self) -> None:
        budget, latency, bandwidth = self.uplink_budget, self.latency_s, self.bandwidth_bytes_per_s
        require(budget is None or budget >= 1, "uplink_budget", budget, "a number of scalars >= 1, or null")
        require(0 <= self.loss < 1, "loss", self.loss, "a probability >= 0 and < 1")
        require(latency is None or 0 <= latency < np.inf, "latency_s", latency, "seconds >= 0, or null")
        positive, both = bandwidth is None or 0 < bandwidth < np.inf, (latency is None) == (bandwidth is None)
        require(positive, "bandwidth_bytes_per_s", bandwidth, "bytes a second > 0, or null")
        require(both, "latency_s", latency, "given together with bandwidth_bytes_per_s, or both null")
        compute, deadline = self.compute_s, self.deadline_s
        require(compute is None or 0 < compute < np.inf, "compute_s", compute, "seconds > 0, or null")
        for key in ("compute_spread", "compute_jitter", "link_spread"):
            require(
                0 <= getattr(self, key) <= MOST_SPREAD, key, getattr(self, key), f"a number from 0 to {MOST_SPREAD}"
            )
            needs = "latency_s" if key == "link_spread" else "compute_s"
            there = getattr(self, needs) is not None or getattr(self, key) == 0
            require(there, key, getattr(self, key), f"0 without {needs}")
        require(deadline is None or deadline > 0, "deadline_s", deadline, "seconds > 0, or null")
        times = deadline is None or latency is not None or compute is not None
        require(times, "deadline_s", deadline, "null without compute_s or latency_s: nobody is ever late")

    @property
    def cost(self) -> CostModel | None:
        """The cost model, where one is configured; where clients have times of their own, these count in its place."""
        if self.latency_s is None or self.bandwidth_bytes_per_s is None:
            return CostModel(0.0, np.inf) if self.timed else None
        return CostModel(self.latency_s, self.bandwidth_bytes_per_s)

    @property
    def timed(self) -> bool:
        """Whether clients have times of their own, or are waited for no longer than so long."""
        return self.compute_s is not None or self.link_spread > 0 or self.deadline_s is not None

    def times(self, rounds: int, clients: int, generator: np.random.Generator) -> Times:
        """Draw one replicate's; each key has numbers of its own, so that none changes what another draws."""
        own, slow, wide = generator.standard_normal((3, clients))
        compute = (self.compute_s or 0.0) * around_one(self.compute_spread, own)
        jitter = around_one(self.compute_jitter, generator.standard_normal((rounds, clients)))
        latency = (self.latency_s or 0.0) * around_one(self.link_spread, slow)
        bandwidth = (self.bandwidth_bytes_per_s or np.inf) * around_one(self.link_spread, wide)
        return Times(compute * jitter, latency, bandwidth, np.inf if self.deadline_s is None else self.deadline_s)


MOST_SPREAD = 5
"""Of logarithms: one client in twenty is then 20,000 times as slow as the median."""


class Channel:
    """Passes messages between clients and server, or between agents, books them, and enforces the uplink budget.

    Algorithms run R replicates at once, so a payload is an array (or arrays) of all replicates; what it would be on a
    wire is read off it. `open_round` is the round loop's business.

    Parameters
    ----------
    network : Network
    ledger : Ledger
    precision : dtype
        Of one scalar on the wire.
    algorithm : str
        Named by the error of a broken budget.
    streams : Streams
        Decide which messages are lost.
    links : Links or None
        Which of them are up; None for all, always.
    times : Times or None
        Of clients, or of agents on a graph, the same in all replicates that run together; None where nobody takes any,
        or the ledger's cost model alone counts.
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
        self.links = None if links is None or links.always_up else links
        self.times = times
        self.width = precision.itemsize
        self._t = 0
        self._present: NDArray[np.int64] = np.zeros(0, np.int64)
        self._sent = self._nothing_sent()
        self._travelled = {"downlink": self._nothing_sent(), "uplink": self._nothing_sent()}

    def open_round(self, t: int, present: NDArray[np.bool_]) -> None:
        """Begin round t with the clients that are present, a (K,) mask."""
        self._t, self._present = t, present.astype(np.int64)
        self._sent = self._nothing_sent()

    def _nothing_sent(self) -> NDArray[np.int64]:
        return np.zeros(self.ledger.shape, np.int64)

    def down(self, message: Message) -> Message:
        """Server to every client that is present: every payload of a message, one kind after another.

        Parameters
        ----------
        message : dataclass of payloads, or None for nothing

        Returns
        -------
        As it arrives: its scalars are no wider than the wire's.

        Raises
        ------
        TypeError
            For a message that holds anything but payloads.
        fkl.errors.BrokenPromiseError
            For a payload of another shape or type than both ends know.
        """
        message = self.receive(message)
        for kind, payloads in kinds(message):
            self.book("downlink", kind, measured(payloads, self.width))
        return message

    def up(self, message: Message) -> Message:
        """Every client that is present to the server; as `down`.

        Raises
        ------
        fkl.errors.FklError
            When a client has sent more scalars in this round than `Network.uplink_budget`.
        """
        message = self.receive(message)
        for kind, payloads in kinds(message):
            self.book("uplink", kind, measured(payloads, self.width))
        return message

    def receive(self, message: Message, links: int = 0) -> Message:
        """A message as it arrives, whose payloads have the axes that their kinds promise."""
        R, K = self.ledger.shape
        passed: Message = received_message(message, {"R": R, "K": K, "L": links}, self.width)
        return passed

    def book(self, direction: Direction, kind: str, size: Size) -> None:
        """Enter one kind of message to or from every client that is present, as large as `size` says, (R, K) or (R, 1).

        Raises
        ------
        fkl.errors.FklError
            As `up`.
        """
        scalars, size_in_bytes = (np.broadcast_to(count * self._present, self._sent.shape) for count in size)
        if direction == "uplink":
            self._charge(scalars)
        self._enter(direction, kind, scalars, size_in_bytes)

    def answered(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each client's share (K,) in the mean over those whose answer is there in time, at the end of an exchange.

        Raises
        ------
        fkl.errors.FklError
            Where replicates that run together differ in it; `fkl run` plays them one at a time.
        """
        if self.times is None:
            return share
        present = share > 0
        answer = self.times.answer(self._t, self._travelled["downlink"], self._travelled["uplink"])
        self._travelled = {direction: self._nothing_sent() for direction in self._travelled}
        self.ledger.seconds[self._t] += self.times.waited(answer, present)
        in_time = present & (answer <= self.times.deadline)
        if (in_time != in_time[0]).any():
            raise FklError("network.deadline_s: replicates whose messages differ in length run one at a time")
        heard = in_time[0]
        return share if heard.sum() == present.sum() else heard / max(int(heard.sum()), 1)

    def anyone(self, heard: Array, together: int) -> Any:
        """Whether anyone has answered: clients whose shares are `heard` (K,), of so many that take part in all."""
        return bool(heard.any())

    def awake(self, t: int, topology: Topology, present: NDArray[np.bool_]) -> Awake:
        """Which links are up in iteration t + 1, of agents that are present, (T, K)."""
        up = self._up(t, topology, present)
        return topology.awake(up, self._up(t - 1, topology, present) if t else np.ones_like(up))

    def _up(self, t: int, topology: Topology, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        both = present[t][topology.links].all(axis=1)
        if self.links is None:
            return np.tile(both, (len(self.streams.replicates), 1))
        return both & self.links.up(self.streams, t, topology)

    def send_to_neighbours(
        self, message: Message, sends: NDArray[np.bool_], topology: Topology, awake: Awake | None = None
    ) -> tuple[Message, NDArray[np.bool_]]:
        """Agents to all their neighbours: every payload of a message, one kind after another.

        What is the same for all neighbours is one broadcast, unless all links of its sender are down; what is another
        message on each link is as many broadcasts as links. No message is on a link that is down.

        Parameters
        ----------
        message : dataclass of payloads
        sends : (R, K) bool
            Who sends it; nobody is told who does not.
        topology : Topology
        awake : Awake or None

        Returns
        -------
        Message
            As of `down`.
        (R, K) or (R, links) bool
            Whose message arrived, everywhere; where links differ, on which links one did.

        Raises
        ------
        fkl.errors.FklError
            When an agent has sent more scalars in this round than `Network.uplink_budget`.
        """
        message = self.receive(message, len(topology.links))
        counted, arrived, apart = self._counted(sends, topology), sends, on_links(message)
        if apart or awake is not None or self.network.loss > 0:
            sender = topology.links[:, 1]
            arrived = sends[:, sender]
        if awake is not None:
            arrived = arrived & awake.up
            counted["link"] = topology.sent_by(arrived)
            counted["broadcast"] = np.minimum(counted["link"], 1)
        if self.network.loss > 0:
            lost = arrived & (self.streams.uniform(Role.LOSS, self._t, len(sender)) < self.network.loss)
            counted["lost"] = topology.sent_by(lost)
            arrived = arrived & ~lost
        self._book_on_graph(counted, [(kind, measured(parts, self.width)) for kind, parts in kinds(message)], apart)
        return message, arrived

    def book_to_neighbours(
        self, topology: Topology, sends: NDArray[np.bool_], apart: bool, sizes: Sequence[tuple[str, Size]]
    ) -> None:
        """Enter messages of such sizes, kind by kind, to all neighbours, where all links are up and no message is lost.

        Parameters
        ----------
        topology, sends : as of `send_to_neighbours`
        apart : bool
            Whether it is another message on each link.
        sizes : pairs of a kind and (R, K) or (R, 1)

        Raises
        ------
        fkl.errors.FklError
            As `send_to_neighbours`.
        """
        self._book_on_graph(self._counted(sends, topology), sizes, apart)

    def _counted(self, sends: NDArray[np.bool_], topology: Topology) -> dict[Direction, NDArray[np.int64]]:
        """Messages of each agent, (R, K), where all arrive."""
        broadcasts, listeners = sends.astype(np.int64), topology.listeners.astype(np.int64)
        return {"broadcast": broadcasts, "link": broadcasts * listeners}

    def _book_on_graph(
        self, counted: dict[Direction, NDArray[np.int64]], sizes: Sequence[tuple[str, Size]], apart: bool
    ) -> None:
        if apart:
            counted["broadcast"] = counted["link"]
        travelled, timed = self._nothing_sent(), self.times is None
        for kind, size in sizes:
            self._charge(counted["broadcast"] * size.scalars)
            if not timed:
                travelled = travelled + counted["link"] * size.size
            for direction, messages in counted.items():
                counts = messages, messages * size.scalars, messages * size.size
                self.ledger.enter(self._t, direction, kind, *counts, timed)
        if self.times is not None:
            self.ledger.seconds[self._t] += self.times.iteration(self._t, counted["link"], travelled)

    def record_messages(
        self,
        kind: str,
        messages: NDArray[np.int64],
        scalars: NDArray[np.int64],
        size: NDArray[np.int64],
        timed: bool = True,
    ) -> None:
        """Book what parties sent to one another, (R, q) each by sender, size in bytes.

        Parameters
        ----------
        timed : bool
            Whether the cost model takes the slowest party's messages one after another; if not, `took` tells.
        """
        self._charge(scalars)
        self.ledger.enter(self._t, "link", kind, messages, scalars, size, timed)

    def took(self, seconds: float) -> None:
        """Add simulated seconds of the protocol's own critical path to all replicates of this round."""
        self.ledger.seconds[self._t] += seconds

    def _charge(self, scalars: NDArray[np.int64]) -> None:
        """Take scalars (R, K) off the budgets of a round."""
        self._sent = self._sent + scalars
        budget = self.network.uplink_budget
        if budget is not None and self._sent.max() > budget:
            raise FklError(
                f"network.uplink_budget={budget}: {self.algorithm} sends {self._sent.max()} scalars "
                f"a client in round {self._t + 1}; raise the budget, or lower kernels.D or algo.M"
            )

    def _enter(self, direction: Direction, kind: str, scalars: NDArray[np.int64], size: NDArray[np.int64]) -> None:
        timed = self.times is None
        self.ledger.enter(self._t, direction, kind, (scalars > 0).astype(np.int64), scalars, size, timed)
        if not timed:
            self._travelled[direction] = self._travelled[direction] + size
