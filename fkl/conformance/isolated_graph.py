"""Isolated agents on a graph: each with its own samples, its view of the graph, and messages as bytes."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.random_streams import Role
from fkl.conformance.party_process import Apart
from fkl.conformance.played import Carrier, Played, play_together, require_equal, samples_of_rounds
from fkl.contract.graph import Decentralized
from fkl.contract.held_samples import BatchSamples, OwnSamples
from fkl.contract.lone_party import LoneParty, Shown, shown_arrays
from fkl.contract.star import Samples
from fkl.contract.world import Common, World
from fkl.kernels.losses import LOSSES
from fkl.network import Topology
from fkl.network.topology import Awake, Neighbours
from fkl.wire import Inbox
from fkl.wire.packets import Packet, unpacked
from fkl.wire.payloads import on_links, received_message

Array = NDArray[Any]


class LoneAgent(LoneParty):
    """One agent.

    Parameters
    ----------
    method, common, number : see `LoneParty`
    neighbours : Neighbours
    samples : Any
        Its own, as `samples_of_round` takes them.
    """

    who = "an agent"

    def __init__(
        self, method: Decentralized, common: Common, number: int, neighbours: Neighbours, *samples: Any
    ) -> None:
        super().__init__(method, common, number)
        self._own, known = method.start(self._common, 1)
        self._inbox = Inbox.before(neighbours, known)
        self._samples = samples
        self._shown: Shown = {}

    def samples_of_round(self, t: int) -> Any:
        """Its samples of a round."""
        raise NotImplementedError

    def send(self, t: int, awake: Awake | None) -> list[Packet | None]:
        """The message to all neighbours, or one for each in turn; None for nothing."""
        self._inbox, samples = replace(self._inbox, awake=awake), self.samples_of_round(t)
        with self._unchanged(own := self._own, self._inbox.held, self._samples):
            self._own, outcome = self._method.learn(self._common, own, self._inbox, samples, self._turn_of_party(t))
        self._shown = {} if outcome is None else shown_arrays(outcome)
        with self._unchanged(own := self._own, self._inbox.held, self._samples):
            self._own, message, sends = self._method.send(
                self._common, own, self._inbox, samples, self._turn_of_party(t)
            )
        message = received_message(message, {"R": 1, "K": 1, "L": self._inbox.graph.copies}, self._width, True)
        with self._unchanged(own := self._own, message, sends):
            self._own = self._method.sent(self._common, own, message, sends)
        messages = self._inbox.graph.copies if on_links(message) else 1
        return [self._packet_of(message, place) if sends[0, 0] else None for place in range(messages)]

    def receive(self, t: int, packets: list[Packet | None]) -> Shown:
        """Receive the message on each link, and return the result: theta (P,), or the arrays of a prediction."""
        came = [packet for packet in packets if packet is not None]
        if came:
            message = unpacked([packet or came[0] for packet in packets])  # any message if none arrived: it is ignored
            arrived = np.array([[packet is not None for packet in packets]])
            self._inbox = self._inbox.after(message, arrived, self._method.keep)
        samples = self.samples_of_round(t)
        with self._unchanged(own := self._own, self._inbox.held, self._samples):
            self._own, theta = self._method.receive(self._common, own, self._inbox, samples, self._turn_of_party(t))
        return self._shown or shown_by_agents(theta)


class LoneBatchAgent(LoneAgent):
    """One with all its training samples x (n, d) and y (n,), the loss, and how many agents and samples there are."""

    def __init__(self, method: Decentralized, common: Common, number: int, neighbours: Neighbours, *own: Any) -> None:
        super().__init__(method, common, number, neighbours)
        x, y, loss, agents, everyone = own
        self._batch: OwnSamples | BatchSamples
        if method.own_features:
            self._batch = OwnSamples.from_samples(x, y, np.array([len(y)]), everyone / agents)
        else:
            self._batch = BatchSamples.from_samples(self._common.bank, x, y, LOSSES[loss], agents)

    def samples_of_round(self, t: int) -> OwnSamples | BatchSamples:
        """All samples."""
        return self._batch


class LoneStreamAgent(LoneAgent):
    """One agent that sees a sample in every round: x (T, 1, d), y (T, 1) and whether it is present, (T, 1)."""

    def samples_of_round(self, t: int) -> Samples:
        """The samples of the round."""
        x, y, present = self._samples
        return Samples(x[t], y[t], present[t])


def play_apart(method: Decentralized, world: World, party: Apart) -> Played:
    """Play every agent in isolation, with messages as bytes."""
    topology = world.topology
    assert topology is not None
    problem, common = world.problem, replace(world.common)  # without the features that were already drawn
    kind: type[LoneAgent] = LoneStreamAgent if method.online else LoneBatchAgent
    if method.online:
        samples = samples_of_rounds(world)
    else:
        x, y, client = problem.part(True)
        known = problem.loss, problem.clients, len(y)
        samples = [(x[client == k], y[client == k], *known) for k in range(problem.clients)]
    with ExitStack() as ends:
        agents = []
        for k, own in enumerate(samples):
            near = topology.neighbours_of(k)
            agents.append(ends.enter_context(closing(party(kind, method, common, k, near, *own))))
        network = Graph(world, topology, agents)
        return Played([network.round(t) for t in range(problem.rounds)], network.by_round, network.by_client)


class Graph(Carrier):
    """Carries packets between agents; it loses the same messages as the channel, and has the same links up."""

    def __init__(self, world: World, topology: Topology, agents: list[Any]) -> None:
        super().__init__(world.problem, world.channel.ledger.tallies)
        self._world, self._topology, self._agents = world, topology, agents

    def round(self, t: int) -> Shown:
        """Play one iteration of all agents that are present."""
        world, links, present = self._world, self._topology.links, self._world.problem.present
        awake = world.channel.awake(t, self._topology, present) if world.changes else None
        up = np.ones(len(links), np.bool_) if awake is None else awake.up[0]
        lost = world.streams.uniform(Role.LOSS, t, len(links))[0] < world.channel.network.loss
        packets: list[list[Packet | None]] = []
        for k, agent in enumerate(self._agents):
            mine, incoming = links[:, 1] == k, links[:, 0] == k
            known = None
            if awake is not None:
                of_links = awake.up[:, incoming], awake.theirs[:, incoming]
                known = Awake(*of_links, awake.listeners[:, [k]], awake.returned[:, [k]])
            packets.append(agent.ask("send", t, known) if present[t, k] else [None])
            heard = up[mine] if len(packets[k]) != 1 else [up[mine].any() or awake is None]
            for packet, anyone in zip(packets[k], heard, strict=True):
                self.weigh("broadcast", t, k, packet if anyone else None)
        arrived: list[list[Packet | None]] = [[] for _ in self._agents]
        sent = [0 for _ in self._agents]
        for (receiver, sender), is_up, missing in zip(links, up, lost, strict=True):
            packet = packets[sender][sent[sender] % len(packets[sender])] if is_up else None
            sent[sender] += 1  # its links appear here in the order of their receivers, which is its own order
            self.weigh("link", t, sender, packet)
            if missing:
                self.weigh("lost", t, sender, packet)
            arrived[receiver].append(None if missing else packet)
        here = np.flatnonzero(present[t]).tolist()
        return self.all_shown({k: self._agents[k].ask("receive", t, arrived[k]) for k in here})


def shown_by_agents(outcome: Any) -> Shown:
    """Results of an iteration for the only replicate: theta (K, P), or the arrays of an outcome."""
    return shown_arrays(outcome) if is_dataclass(outcome) else {"theta": np.array(outcome[0])}


def require_agents_agree(method: Decentralized, world: Callable[[], World], party: Apart) -> None:
    """Compare isolated agents with all of them at once."""
    together = partial(play_together, method, shown=shown_by_agents)
    require_equal(together, lambda here: play_apart(method, here, party), world, party, "agent")
