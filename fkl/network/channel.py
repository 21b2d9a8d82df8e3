"""The channel: the one door by which data leaves a party."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fkl.errors import FklError, require
from fkl.network.ledger import CostModel, Direction, Ledger
from fkl.network.messages import Size, kinds, measured
from fkl.network.neighbours import Heard
from fkl.network.topology import Topology
from fkl.streams import Role, Streams

Payload = TypeVar("Payload")
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

    Raises
    ------
    fkl.errors.BadValue
    """

    uplink_budget: int | None = None
    loss: float = 0.0
    latency_s: float | None = None
    bandwidth_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        require(
            self.uplink_budget is None or self.uplink_budget >= 1,
            "uplink_budget",
            self.uplink_budget,
            "a number of scalars from 1, or null",
        )
        require(0 <= self.loss < 1, "loss", self.loss, "a probability from 0, below 1")
        latency, bandwidth = self.latency_s, self.bandwidth_bytes_per_s
        require(latency is None or 0 <= latency < np.inf, "latency_s", latency, "seconds from 0, or null")
        require(
            bandwidth is None or 0 < bandwidth < np.inf,
            "bandwidth_bytes_per_s",
            bandwidth,
            "bytes a second above 0, or null",
        )
        require(
            (latency is None) == (bandwidth is None),
            "latency_s",
            latency,
            "given together with bandwidth_bytes_per_s, or both null",
        )

    @property
    def cost(self) -> CostModel | None:
        """The cost model, where one is configured."""
        if self.latency_s is None or self.bandwidth_bytes_per_s is None:
            return None
        return CostModel(self.latency_s, self.bandwidth_bytes_per_s)


class Channel:
    """Passes payloads between clients and server, or between agents, books them, and enforces the uplink budget.

    Algorithms run R replicates at once, so a payload is an array (or arrays) of all replicates; what it would
    be on a wire, in scalars a client, is stated at the call. `open_round` is the round loop's business.

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
    """

    def __init__(self, network: Network, ledger: Ledger, precision: np.dtype, algorithm: str, streams: Streams) -> None:
        self.network, self.ledger, self.algorithm, self.streams = network, ledger, algorithm, streams
        self._width = precision.itemsize
        self._t = 0
        self._present: NDArray[np.int64] = np.zeros(0, np.int64)
        self._sent = self._nothing_sent()

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
        As it is.

        Raises
        ------
        TypeError
            For a message that holds anything but payloads.
        """
        for kind, size in self._sizes(message):
            self._enter("downlink", kind, *size)
        return message

    def up(self, message: Message) -> Message:
        """Every client that is present to the server; as `down`.

        Raises
        ------
        fkl.errors.FklError
            When a client has sent more scalars in this round than `Network.uplink_budget`.
        """
        for kind, size in self._sizes(message):
            self._charge(size.scalars)
            self._enter("uplink", kind, *size)
        return message

    def _sizes(self, message: object) -> Iterator[tuple[str, Size]]:
        """What each client that is present sends or receives, (R, K), kind after kind."""
        for kind, payloads in kinds(message):
            size = measured(payloads, self._width)
            yield kind, Size(*(np.broadcast_to(count * self._present, self._sent.shape) for count in size))

    def broadcast(self, kind: str, payload: Payload, scalars: int | NDArray[np.int64]) -> Payload:
        """Server to every client that is present.

        Parameters
        ----------
        kind : str
            Name of the payload in the ledger.
        payload : any
            Returned as it is.
        scalars : int, or (R, 1) int
            Scalars that each client receives.
        """
        sent = np.broadcast_to(scalars * self._present, self._sent.shape)
        self._enter("downlink", kind, sent, sent * self._width)
        return payload

    def uplink(self, kind: str, payload: Payload, scalars: int | NDArray[np.int64]) -> Payload:
        """Every client that is present to the server.

        Parameters
        ----------
        kind : str
            Name of the payload in the ledger.
        payload : any
            Returned as it is.
        scalars : int, or (R, K) int
            Scalars that each client sends; a client that sends 0 sends no message.

        Raises
        ------
        fkl.errors.FklError
            When a client has sent more scalars in this round than `Network.uplink_budget`.
        """
        sent = np.broadcast_to(scalars * self._present, self._sent.shape)
        self._charge(sent)
        self._enter("uplink", kind, sent, sent * self._width)
        return payload

    def silence(self, topology: Topology, width: int) -> Heard:
        """Zeros of length `width`: what agents hold before anyone has sent."""
        by_link = self.network.loss > 0
        copies = len(topology.links) if by_link else topology.agents
        return Heard(topology, np.zeros((len(self._sent), copies, width)), by_link)

    def tell(self, kind: str, heard: Heard, message: Array, sends: NDArray[np.bool_], bits: int | None = None) -> Heard:
        """Agents broadcast to their neighbours; a neighbour keeps what it held where nothing arrives.

        Parameters
        ----------
        kind : str
            Name of the message in the ledger.
        heard : Heard
            What the neighbours hold.
        message : (R, K, P)
        sends : (R, K) bool
            Who sends.
        bits : int or None
            Of each scalar on the wire, and one scalar more in full precision to scale them; None for full precision.
        """
        width = message.shape[2]
        size = width * self._width if bits is None else -(-width * bits // 8) + self._width
        scalars = width + (bits is not None)
        broadcasts = sends.astype(np.int64)
        self._charge(broadcasts * scalars)
        topology = heard.topology
        self._book("broadcast", kind, broadcasts, scalars, size)
        self._book("link", kind, broadcasts * topology.degree.astype(np.int64), scalars, size)
        if self.network.loss == 0:
            return heard.updated(message, sends)
        sender = topology.links[:, 1]
        lost = sends[:, sender] & (self.streams.uniform(Role.LOSS, self._t, len(sender)) < self.network.loss)
        by_sender = np.stack([np.bincount(sender[one], minlength=topology.agents) for one in lost])
        self._book("lost", kind, by_sender, scalars, size)
        return heard.updated(message, sends[:, sender] & ~lost)

    def exchanged(
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
        self.ledger.enter(self._t, direction, kind, (scalars > 0).astype(np.int64), scalars, size)

    def _book(self, direction: Direction, kind: str, messages: NDArray[np.int64], scalars: int, size: int) -> None:
        """Enter messages (R, K) that are all alike."""
        self.ledger.enter(self._t, direction, kind, messages, messages * scalars, messages * size)
