"""A server and clients on their own: each with its own samples, and messages as bytes."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.party_process import Apart
from fkl.conformance.played import Carrier, Played, samples_of_rounds
from fkl.contract.batches import OnBatches
from fkl.contract.held_samples import Held
from fkl.contract.lone_party import LoneClient, LoneServer, Shown, shown_arrays
from fkl.contract.one_shot import OneShot, Owned, common_with_classes, owned_samples
from fkl.contract.star import Federated
from fkl.contract.world import World
from fkl.kernels.losses import LOSSES
from fkl.network.response_times import Times
from fkl.wire.ledger import WITH_A_SERVER
from fkl.wire.packets import Packet
from fkl.wire.payloads import Ragged


class LoneBatchClient(LoneClient):
    """One client with all its samples x (n, d) and y (n,), and the name of the loss."""

    def samples_of_round(self, t: int) -> Held:
        """All of them."""
        if len(self._samples) > 1:
            x, y, loss = self._samples
            self._samples = (Held(x, y, np.array([len(y)]), np.ones(1, np.bool_), LOSSES[loss]),)
        held: Held = self._samples[0]
        return held

    def shown_arrays(self, outcome: Any) -> Shown:
        """What it learned."""
        return {"theta": outcome[0]}


class LoneOneShotClient(LoneClient):
    """One client with all its samples, `Owned`, and points (n, d) where it shows what it predicts."""

    def samples_of_round(self, t: int) -> Owned:
        """All of them."""
        samples, _ = self._samples
        return samples

    def shown_arrays(self, outcome: Any) -> Shown:
        """Its predictions."""
        _, points = self._samples
        return {"predictions": outcome[0](points)[None]}


def shown_by(family: Federated, world: World) -> Callable[[Any], Shown]:
    """From an outcome of all parties at once to what it shows."""
    if isinstance(family, OneShot):  # all clients predict the same
        points = _test_points(world)
        return lambda fitted: {"predictions": np.tile(fitted.predict[0](points), (world.problem.clients, 1))}
    return (lambda theta: {"theta": theta[0]}) if isinstance(family, OnBatches) else shown_arrays


def play_apart(method: Federated, family: Federated, world: World, party: Apart) -> Played:
    """Play every party on its own; what one tells another goes through bytes.

    Parameters
    ----------
    method : Federated
    family : Federated
        The same without the conditions around it: it decides what samples a client holds.
    world : World
    party : PartyObject or PartyProcess
    """
    problem = world.problem
    # Step 1: what each client holds. A copy of `common` has no features that were drawn already.
    client: type[LoneClient] = LoneClient
    common: Any = replace(world.common)
    own: list[tuple[Any, ...]]
    if isinstance(family, OneShot):
        client, common, samples, points = (
            LoneOneShotClient,
            common_with_classes(world),
            owned_samples(world),
            _test_points(world),
        )
        own = [(Owned(*(Ragged(((part.values[0][k],),)) for part in samples)), points) for k in range(problem.clients)]
    elif isinstance(family, OnBatches):
        x, y, _ = problem.part(True)
        ends = np.cumsum(world.held.count)[:-1]
        client = LoneBatchClient
        own = [(*mine, problem.loss) for mine in zip(np.split(x, ends), np.split(y, ends), strict=True)]
    else:
        own = samples_of_rounds(world)
    # Step 2: all rounds.
    with ExitStack() as stack:
        server = stack.enter_context(closing(party(LoneServer, method, common, problem.clients)))
        clients = [stack.enter_context(closing(party(client, method, common, k, *mine))) for k, mine in enumerate(own)]
        network = Star(method, problem, server, clients, world.channel.times)
        seen = [network.round(t) for t in range(problem.rounds)]
        if both := server.ask("drawn_roles") & set().union(*(one.ask("drawn_roles") for one in clients)):
            names = ", ".join(sorted(role.name for role in both))
            raise BrokenPromiseError(f"the server draws what the clients draw: {names}")
        return Played(seen, network.by_round, network.by_client)


class Star(Carrier):
    """Carries packets between a server and its clients."""

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
                up, senders = [], []
                for k, down in zip(some, self._server.ask("broadcast", t, exchange, some.tolist()), strict=True):
                    self.weigh("downlink", t, k, down, exchange)
                    sent, of_client = self._clients[k].ask("play", t, exchange, down, len(some))
                    self.weigh("uplink", t, k, sent, exchange)
                    seen |= {} if of_client is None else {k: of_client}
                    if self._answers_in_time(t, k, down, sent):
                        senders.append(k)
                        up += [] if sent is None else [sent]
                if senders or self._method.called_without_messages:
                    share = np.full(len(senders), 1 / max(len(senders), 1))
                    self._server.ask("take", t, exchange, up, share, np.array(senders, np.int64))
        if not seen:  # nobody is there, and nothing is shown
            return {}
        empty = {name: np.full(part.shape, np.nan) for name, part in seen[here[0]].items()}
        every = [seen.get(k, empty) for k in range(len(self._clients))]
        return {name: np.concatenate([one[name] for one in every]) for name in empty}

    def _answers_in_time(self, t: int, k: int, *packets: Packet | None) -> bool:
        """Whether the answer of client k is there before the server goes on."""
        if self._times is None:
            return True
        size = [np.zeros(len(self._clients), np.int64) for _ in packets]
        for of_client, packet in zip(size, packets, strict=True):
            of_client[k] = 0 if packet is None else packet.size
        return bool(self._times.answer(t, *size)[k] <= self._times.deadline)


def _test_points(world: World) -> NDArray[np.float64]:
    """Points that the replicate is tested on."""
    x: NDArray[np.float64] = world.problem.batches[world.streams.replicates[0]].part(False)[0]
    return x
