"""Run the parties in isolation: each has only its own samples or features and its own state, and messages are bytes.

The results are compared with those of all parties together, for servers and clients, agents on a graph, and actors.
"""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.online.learners import OnlineLearner
from fkl.basics.errors import BrokenPromiseError
from fkl.basics.random_streams import Role
from fkl.conditions.wrapped import StateWithMemory as StateWithMemory
from fkl.conformance.party_process import PartyClass, PartyError
from fkl.conformance.played import (
    TOLERANCE,
    Carrier,
    PlayedReplicate,
    Witness,
    method_outcomes,
    play_together,
    require_equal,
    samples_of_rounds,
)
from fkl.contract.graph import Decentralized
from fkl.contract.lone_party import LoneClient, LoneParty, LoneServer, Shown, field_contents, shown_arrays
from fkl.contract.parties import (
    Actor,
    Booked,
    PartyData,
    Scored,
    VerticalMethod,
    Wire,
    exchange_letters,
    work_until_letter,
)
from fkl.contract.star import Federated, OneShot, Owned, Samples, common_with_classes, owned_samples
from fkl.contract.world import BatchSamples, ClientRows, Common, OwnSamples, World, innermost_method
from fkl.engines.base import Experiment, make_world
from fkl.kernels.losses import LOSSES
from fkl.network import Topology
from fkl.network.settings import Times
from fkl.network.topology import Awake, Neighbours
from fkl.tasks import task_of
from fkl.wire import Channel, Inbox
from fkl.wire.channel import WITH_A_SERVER
from fkl.wire.letters import Posted, post_letter, read_letter
from fkl.wire.packets import Packet, pack_message, unpack_messages
from fkl.wire.payloads import Ragged, on_links, received_message


def require_parties_agree(method: Any, world: Callable[[], World], party: PartyClass) -> str:
    """Compare the results of isolated parties, and the bytes that they send, with those of all parties together.

    Returns the reason if nothing is compared; otherwise an empty string.

    Parameters
    ----------
    method : Federated, Decentralized, VerticalMethod or Learner
    world : callable
        Makes worlds of one replicate.
    party : PartyObject or PartyProcess

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If they differ; the message names the party, the round and the difference.
    """
    kinds = type(innermost_method(method)).__mro__
    require = next((CHECKS[kind] for kind in kinds if kind in CHECKS), None)
    if require is None:
        families = "one of fkl.contract's families, or a Learner"
        raise BrokenPromiseError(f"{method.label} is not written as parties that exchange messages: {families}")
    require(method, world, party)
    if getattr(method, "pooled", False):
        return "it has no parties"
    return "it has no server" if require is CHECKS[OnlineLearner] else ""


# --- a server and its clients


def require_clients_agree(method: Federated, world: Callable[[], World], party: PartyClass) -> None:
    """Compare an isolated server and isolated clients with all of them together."""

    def run_jointly(here: World) -> PlayedReplicate:
        if not _learns_once(method):
            return play_together(method, here, shown_arrays)
        points = _test_points(here)

        def shown(fitted: Any) -> Shown:  # the same predictions for all clients
            arrays = shown_arrays(fitted.predict, points)
            return {name: np.tile(part, (here.problem.clients, 1)) for name, part in arrays.items()}

        return play_together(method, here, shown)

    require_equal(run_jointly, lambda here: _play_star_apart(method, here, party), world, party, "client")


def _play_star_apart(method: Federated, world: World, party: PartyClass) -> PlayedReplicate:
    """Run the server and every client in isolation, with messages as bytes."""
    problem = world.problem
    common, owned = _dealt_to_clients(method, world)
    with ExitStack() as stack:
        server = stack.enter_context(closing(party(LoneServer, method, common, problem.clients)))
        clients = [
            stack.enter_context(closing(party(LoneClient, method, common, k, *mine))) for k, mine in enumerate(owned)
        ]
        network = StarCarrier(method, problem, server, clients, world.channel.times)
        seen = [network.round(t) for t in range(problem.rounds)]
        if both := server.ask("drawn_roles") & set().union(*(one.ask("drawn_roles") for one in clients)):
            names = ", ".join(sorted(role.name for role in both))
            raise BrokenPromiseError(f"the server and the clients draw the same random numbers: {names}")
        return PlayedReplicate(seen, network.by_round, network.by_client)


def _dealt_to_clients(method: Any, world: World) -> tuple[Any, list[tuple[Any, ...]]]:
    """What all parties know, without random features that were already drawn, and each client's samples.

    Clients that learn only once also get the replicate's test points.
    """
    problem = world.problem
    if _learns_once(method):
        samples, points = owned_samples(world), _test_points(world)
        owned = [Owned(*(Ragged(((part.values[0][k],),)) for part in samples)) for k in range(problem.clients)]
        return common_with_classes(world), [(mine, points) for mine in owned]
    kind = task_of(method)
    if kind.has_rows_at_clients and not kind.judged_as_it_learns:
        x, y, _ = problem.part(True)
        ends = np.cumsum(world.held.count)[:-1]
        rows = zip(np.split(x, ends), np.split(y, ends), strict=True)
        return replace(world.common), [(ClientRows.of_client(*mine, problem.loss),) for mine in rows]
    return replace(world.common), [(mine,) for mine in samples_of_rounds(world)]


def _learns_once(method: Any) -> bool:
    return isinstance(innermost_method(method), OneShot)


def require_absent_unchanged(experiment: Experiment) -> str:
    """Give each client the messages of rounds that it misses, and compare its state before and after.

    Returns the reason if nothing is compared; otherwise an empty string.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If the state changes; the message names the client and the round.
    """
    method: Any = experiment.algorithm
    world = make_world(experiment, (0,))[0]
    present = getattr(world.problem, "present", np.ones((1, 1), np.bool_))
    missing = np.flatnonzero(~present.all(axis=0))
    if not len(missing):
        return "no client is absent"
    if type(method).step is Decentralized.step:
        return "fkl itself keeps the state of absent agents"
    if type(method).step is not Federated.step or method.in_turn:
        return "the method runs its rounds itself"
    common, samples = _dealt_to_clients(method, world)
    witness = Witness(world.channel)
    for _ in method_outcomes(method, replace(world, channel=witness)):
        pass
    for k in missing:
        client = LoneClient(method, common, int(k), *samples[k])
        for t, heard in groupby(witness.heard, key=itemgetter(0)):
            here = bool(world.problem.present[t, k])
            before = field_contents(_own_state(client.state))
            for exchange, (_, message) in enumerate(heard):
                client.play(
                    t, exchange, pack_message(message, int(k), world.channel.width), world.clients_present(t), here
                )
            if not here and field_contents(_own_state(client.state)) != before:
                raise BrokenPromiseError(f"the state of client {k} changes in round {t + 1}, which it misses")
    return ""


def _own_state(state: Any) -> Any:
    """A client's state without the memory of conditions, which they create in the first round."""
    return _own_state(state.method) if isinstance(state, StateWithMemory) else state


class StarCarrier(Carrier):
    """Carries packets between a server and its clients."""

    def __init__(
        self, method: Federated, problem: Any, server: Any, clients: list[Any], times: Times | None = None
    ) -> None:
        super().__init__(problem, WITH_A_SERVER)
        self._method, self._problem, self._server, self._clients = method, problem, server, clients
        self._times = times

    def round(self, t: int) -> Shown:
        """Run one round with all clients together, or one after another if the server serves them in turn."""
        here = np.flatnonzero(self._problem.present[t])
        seen: dict[int, Shown] = {}
        for some in [here[[j]] for j in range(len(here))] if self._method.in_turn else [here]:
            for exchange in range(self._method.exchanges):
                up, senders = [], []
                for k, down in zip(some, self._server.ask("broadcast", t, exchange, some.tolist()), strict=True):
                    self.weigh("downlink", t, k, down, exchange)
                    sent, of_client = self._clients[k].ask("play", t, exchange, down, len(some))
                    self.weigh("uplink", t, k, sent, exchange)
                    seen |= {} if of_client is None else {k: of_client}
                    if self._times is not None:  # the server may not wait for the answer
                        size = np.zeros((2, len(self._clients)), np.int64)
                        size[:, k] = [0 if packet is None else packet.size for packet in (down, sent)]
                        if self._times.seconds_until_answers(t, *size)[k] > self._times.deadline:
                            continue
                    senders.append(k)
                    up += [] if sent is None else [sent]
                if senders or self._method.called_without_messages:
                    share = np.full(len(senders), 1 / max(len(senders), 1))
                    self._server.ask("take", t, exchange, up, share, np.array(senders, np.int64))
        return self.all_shown(seen)


def _test_points(world: World) -> NDArray[np.float64]:
    """The replicate's test points."""
    x: NDArray[np.float64] = world.problem.batches[world.streams.replicates[0]].part(False)[0]
    return x


# --- agents on a graph


def require_agents_agree(method: Decentralized, world: Callable[[], World], party: PartyClass) -> None:
    """Compare isolated agents with all agents together."""
    run_jointly = partial(play_together, method, shown=shown_arrays)
    require_equal(run_jointly, lambda here: _play_agents_apart(method, here, party), world, party, "agent")


class LoneAgent(LoneParty):
    """One agent.

    Parameters
    ----------
    method, common, number : see `LoneParty`
    neighbours : Neighbours
    samples : Samples or None
        For a stream, the agent's samples of all rounds.
    batch : tuple or None
        Otherwise all its training samples x (n, d) and y (n,), the loss, and the total numbers of agents and samples.
    """

    who = "an agent"

    def __init__(
        self,
        method: Decentralized,
        common: Common,
        number: int,
        neighbours: Neighbours,
        samples: Samples | None,
        batch: tuple[Any, ...] | None = None,
    ) -> None:
        super().__init__(method, common, number)
        self._own, known = method.start(self._common, 1)
        self._inbox = Inbox.before_first_round(neighbours, known)
        self._samples, self._given, self._shown = samples, (samples, batch), Shown()
        if batch is not None:
            x, y, loss, agents, everyone = batch
            if method.own_features:
                self._samples = OwnSamples.from_samples(x, y, np.array([len(y)]), everyone / agents)
            else:
                self._samples = BatchSamples.from_samples(self._common.bank, x, y, LOSSES[loss], agents)

    def send(self, t: int, awake: Awake | None) -> list[Packet | None]:
        """Return the message to all neighbours, or one message for each neighbour in order; None if none is sent."""
        self._inbox, samples = replace(self._inbox, awake=awake), self._samples_of_round(t)
        with self._require_unchanged(own := self._own, self._inbox.held, self._given):
            self._own, outcome = self._method.learn(self._common, own, self._inbox, samples, self._turn_of_party(t))
        self._shown = {} if outcome is None else shown_arrays(outcome)
        with self._require_unchanged(own := self._own, self._inbox.held, self._given):
            self._own, message, sends = self._method.send(
                self._common, own, self._inbox, samples, self._turn_of_party(t)
            )
        message = received_message(message, {"R": 1, "K": 1, "L": self._inbox.graph.copies}, self._width, True)
        with self._require_unchanged(own := self._own, message, sends):
            self._own = self._method.sent(self._common, own, message, sends)
        messages = self._inbox.graph.copies if on_links(message) else 1
        return [self._packet_of(message, place) if sends[0, 0] else None for place in range(messages)]

    def receive(self, t: int, packets: list[Packet | None]) -> Shown:
        """Receive one message on each link, and return the result: theta (P,), or the arrays of a prediction."""
        came = [packet for packet in packets if packet is not None]
        if came:
            message = unpack_messages(
                [packet or came[0] for packet in packets]
            )  # if none arrived, any message: it is ignored
            arrived = np.array([[packet is not None for packet in packets]])
            self._inbox = self._inbox.after(message, arrived, self._method.keep)
        samples = self._samples_of_round(t)
        with self._require_unchanged(own := self._own, self._inbox.held, self._given):
            self._own, theta = self._method.receive(self._common, own, self._inbox, samples, self._turn_of_party(t))
        return self._shown or shown_arrays(theta)


def _play_agents_apart(method: Decentralized, world: World, party: PartyClass) -> PlayedReplicate:
    """Run every agent in isolation, with messages as bytes."""
    topology = world.topology
    assert topology is not None
    problem, common = world.problem, replace(world.common)  # without features that were already drawn
    samples_of_agents: list[tuple[Any, ...]]
    if method.online:
        samples_of_agents = [(mine,) for mine in samples_of_rounds(world)]
    else:
        x, y, client = problem.part(True)
        facts = problem.loss, problem.clients, len(y)
        samples_of_agents = [(None, (x[client == k], y[client == k], *facts)) for k in range(problem.clients)]
    with ExitStack() as ends:
        agents = []
        for k, mine in enumerate(samples_of_agents):
            near = topology.neighbours_of(k)
            agents.append(ends.enter_context(closing(party(LoneAgent, method, common, k, near, *mine))))
        network = Graph(world, topology, agents)
        return PlayedReplicate([network.round(t) for t in range(problem.rounds)], network.by_round, network.by_client)


class Graph(Carrier):
    """Carries packets between agents; the same messages are lost, and the same links are up, as in the channel."""

    def __init__(self, world: World, topology: Topology, agents: list[Any]) -> None:
        super().__init__(world.problem, world.channel.ledger.tallies)
        self._world, self._topology, self._agents = world, topology, agents

    def round(self, t: int) -> Shown:
        """Run one iteration of all present agents."""
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
            sent[sender] += 1  # the sender's links are in the order of their receivers, here and in its list
            self.weigh("link", t, sender, packet)
            if missing:
                self.weigh("lost", t, sender, packet)
            arrived[receiver].append(None if missing else packet)
        here = np.flatnonzero(present[t]).tolist()
        return self.all_shown({k: self._agents[k].ask("receive", t, arrived[k]) for k in here})


# --- actors, each with its own features


class LoneActor:
    """One party that has only its own data."""

    who = "a party"

    def __init__(self, method: VerticalMethod, own: PartyData) -> None:
        self._method, self._own, self._wire = method, own, Wire()
        self._actor: Actor | None = None

    def work(self, post: Posted | None) -> tuple[list[tuple[int, Posted]], int | None, Any]:
        """Take a letter and work until another is needed; return the letters, the awaited sender, and the result."""
        self._actor = self._actor or self._method.party(self._own, self._wire)
        sent, awaited, result = work_until_letter(self._actor, self._wire, None if post is None else read_letter(post))
        return [(receiver, post_letter(letter)) for receiver, letter in sent], awaited, result


class ActorInSight(LoneActor):
    """A party that runs in this process, and whose attributes can be read afterwards."""

    def __init__(self, actor: Actor, wire: Wire) -> None:
        self._actor, self._wire = actor, wire

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of the party itself, not of a copy."""
        return getattr(self, name)(*arguments)


class Heard(NamedTuple):
    """A letter as an eavesdropper sees it."""

    sender: int
    receiver: int
    kind: str
    values: NDArray[Any]
    about: tuple[int, ...]


class Mail:
    """Carries letters between parties and counts their bytes; stores the letters in `heard` if it is given."""

    def __init__(self, parties: list[Any], heard: list[Heard] | None = None) -> None:
        self._parties, self._heard = parties, heard
        self.sent: Booked = {}

    def deliver_letters(self) -> list[Any]:
        """Run all parties until they end; return the result of each."""
        return exchange_letters(self._let_party_work, len(self._parties))

    def _let_party_work(self, party: int, post: Posted | None) -> Any:
        worked = self._parties[party].ask("work", post)
        for receiver, one in worked[0]:
            size = self.sent.setdefault(one.kind.kind, np.zeros((len(self._parties), 3), np.int64))
            size[party] += 1, one.scalars, len(one.body)
            if self._heard is not None:
                self._heard.append(Heard(party, receiver, one.kind.kind, read_letter(one).values, one.about))
        return worked


class Watched(Channel):
    """A channel that records all bookings, by kind and sender."""

    def __init__(self, channel: Channel, parties: int) -> None:
        vars(self).update(vars(channel))
        self.booked: Booked = {}
        self._parties = parties

    def record_messages(self, kind: str, messages: Any, scalars: Any, size: Any, timed: bool = True) -> None:
        """Record the booking, and make it in the channel."""
        of_kind = self.booked.setdefault(kind, np.zeros((self._parties, 3), np.int64))
        of_kind += np.stack([messages[0], scalars[0], size[0]], axis=-1)
        super().record_messages(kind, messages, scalars, size, timed)


def play_apart(method: VerticalMethod, parties: list[PartyData], party: PartyClass) -> tuple[list[Any], Booked]:
    """Run isolated parties; return their results, and the sizes of their messages."""
    with ExitStack() as ends:
        mail = Mail([ends.enter_context(closing(party(LoneActor, method, own))) for own in parties])
        return mail.deliver_letters(), mail.sent


def require_actors_agree(method: VerticalMethod, world: Callable[[], World], party: PartyClass) -> None:
    """Compare isolated parties with the simulation: f must be equal, and the sent bytes equal to the booked ones.

    Features are scaled to at most 1, because long steps could otherwise amplify rounding errors without limit.

    Parameters
    ----------
    method : VerticalMethod
    world : callable
        Makes worlds of one replicate, in float64.
    party : PartyObject or PartyProcess

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If they differ; the message names the difference.
    """
    here = world()
    problem = replace(here.problem, x=here.problem.x / (abs(here.problem.x).max() or 1.0))
    channel = Watched(here.channel, problem.parties)
    # The simulation, until the final values f of the test rows.
    f, scored = np.zeros(0), Scored((), (), 0)
    for scored in method_outcomes(method, replace(here, channel=channel, problem=problem)):
        f = scored.f[0]()  # computed now, because a later round may change it
    if method.pooled:
        if channel.booked:
            raise BrokenPromiseError(f"{method.label} uses pooled data, but books {', '.join(channel.booked)}")
        return
    held, parties = method.dealt(here.common, problem)
    try:
        parts, sent = play_apart(method, parties, party)
    except PartyError as error:
        raise BrokenPromiseError(str(error)) from error
    decisions = method.assembled(parts, held).decision(problem.x[scored.rows[0]])
    tolerance = method.tolerance * TOLERANCE[here.precision] / TOLERANCE["float64"]
    if not np.allclose(f, decisions, rtol=tolerance, atol=tolerance):
        raise BrokenPromiseError(f"f differs if parties are {party.separation}: the simulation is not the protocol")
    require_sent(channel.booked, sent)


def require_sent(booked: Booked, sent: Booked) -> None:
    """Compare bookings with sent messages, by kind and sender."""
    for kind in sorted(booked.keys() | sent.keys()):
        nothing = np.zeros_like(next(iter((booked | sent).values())))
        mine, theirs = booked.get(kind, nothing), sent.get(kind, nothing)
        for j in np.flatnonzero((mine != theirs).any(axis=1))[:1]:
            units = "messages, scalars and bytes"
            raise BrokenPromiseError(f"{kind} of party {j}: {units} are booked as {mine[j]}, but {theirs[j]} were sent")


CHECKS: dict[type, Callable[[Any, Callable[[], World], PartyClass], None]] = {
    Federated: require_clients_agree,
    Decentralized: require_agents_agree,
    VerticalMethod: require_actors_agree,
    OnlineLearner: lambda *_: None,  # nothing to compare: it has one client and no server
}
"""The comparison for each family of methods."""
