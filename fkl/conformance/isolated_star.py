"""Isolated server and clients: each with its own samples, and messages as bytes."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError
from fkl.conditions.wrapped import Held
from fkl.conformance.party_process import Apart
from fkl.conformance.played import Carrier, Played, Witness, outcomes, play_together, require_equal, samples_of_rounds
from fkl.contract.graph import Decentralized
from fkl.contract.lone_party import LoneBatchClient, LoneClient, LoneServer, Shown, field_contents, shown_arrays
from fkl.contract.star import Federated, Owned, common_with_classes, owned_samples
from fkl.contract.world import World
from fkl.engines.experiment import Experiment, make_world
from fkl.network.settings import Times
from fkl.tasks import task_of
from fkl.wire.ledger import WITH_A_SERVER
from fkl.wire.packets import packed
from fkl.wire.payloads import Ragged


class LoneStreamClient(LoneClient):
    """One client that sees a sample in every round: x (T, 1, d), y (T, 1), and whether it is present, (T, 1)."""

    @staticmethod
    def dealt(world: World) -> tuple[Any, list[tuple[Any, ...]]]:
        """The parties' common knowledge, without the features that were already drawn, and each client's data."""
        return replace(world.common), samples_of_rounds(world)

    @staticmethod
    def shown_together(world: World) -> Callable[[Any], Shown]:
        """The function from an outcome of all parties at once to its arrays."""
        return shown_arrays


class DealtBatchClient(LoneBatchClient, LoneStreamClient):
    """One client with all its samples."""

    @staticmethod
    def dealt(world: World) -> tuple[Any, list[tuple[Any, ...]]]:
        """Each client has its rows of the training samples."""
        x, y, _ = world.problem.part(True)
        ends = np.cumsum(world.held.count)[:-1]
        rows = zip(np.split(x, ends), np.split(y, ends), strict=True)
        return replace(world.common), [(*mine, world.problem.loss) for mine in rows]

    @staticmethod
    def shown_together(world: World) -> Callable[[Any], Shown]:
        """The common model."""
        return lambda theta: {"theta": theta[0]}


class LoneOneShotClient(LoneStreamClient):
    """One client with all its samples, `Owned`, and points (n, d) for its predictions."""

    @staticmethod
    def dealt(world: World) -> tuple[Any, list[tuple[Any, ...]]]:
        """Each client has its samples, and the replicate's test points."""
        samples, points = owned_samples(world), _test_points(world)
        own = [Owned(*(Ragged(((part.values[0][k],),)) for part in samples)) for k in range(world.problem.clients)]
        return common_with_classes(world), [(mine, points) for mine in own]

    @staticmethod
    def shown_together(world: World) -> Callable[[Any], Shown]:
        """Predictions, which are the same for all clients."""
        points = _test_points(world)
        return lambda fitted: {"predictions": np.tile(fitted.predict[0](points), (world.problem.clients, 1))}

    def samples_of_round(self, t: int) -> Owned:
        """All samples."""
        samples, _ = self._samples
        return samples

    def shown_arrays(self, outcome: Any) -> Shown:
        """Its predictions."""
        _, points = self._samples
        return {"predictions": outcome[0](points)[None]}


def require_clients_agree(
    client: type[LoneStreamClient], method: Federated, world: Callable[[], World], party: Apart
) -> None:
    """Compare an isolated server and clients of this kind with all of them at once."""

    def together(world: World) -> Played:
        return play_together(method, world, client.shown_together(world))

    require_equal(together, lambda here: play_apart(client, method, here, party), world, party, "client")


def play_apart(client: type[LoneStreamClient], method: Federated, world: World, party: Apart) -> Played:
    """Play every party in isolation, with messages as bytes."""
    problem = world.problem
    common, own = client.dealt(world)
    with ExitStack() as stack:
        server = stack.enter_context(closing(party(LoneServer, method, common, problem.clients)))
        clients = [stack.enter_context(closing(party(client, method, common, k, *mine))) for k, mine in enumerate(own)]
        network = Star(method, problem, server, clients, world.channel.times)
        seen = [network.round(t) for t in range(problem.rounds)]
        if both := server.ask("drawn_roles") & set().union(*(one.ask("drawn_roles") for one in clients)):
            names = ", ".join(sorted(role.name for role in both))
            raise BrokenPromiseError(f"the server draws what the clients draw: {names}")
        return Played(seen, network.by_round, network.by_client)


def require_absent_unchanged(experiment: Experiment) -> str:
    """Let each client hear the messages of rounds that it misses, and compare its state before and after.

    Returns why nothing is compared, or an empty text.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        Names the client and the round.
    """
    method: Any = experiment.algorithm
    world = make_world(experiment, (0,))[0]
    present = getattr(world.problem, "present", np.ones((1, 1), np.bool_))
    missing = np.flatnonzero(~present.all(axis=0))
    if not len(missing):
        return "no client is absent"
    if type(method).step is Decentralized.step:
        return "fkl keeps it"
    if type(method).step is not Federated.step or method.in_turn:
        return "its rounds are its own"
    kind = kind_of_client(method)
    common, samples = kind.dealt(world)
    witness = Witness(world.channel)
    for _ in outcomes(method, replace(world, channel=witness)):
        pass
    for k in missing:
        client = kind(method, common, int(k), *samples[k])
        for t, heard in groupby(witness.heard, key=itemgetter(0)):
            here = bool(world.problem.present[t, k])
            before = field_contents(_own_state(client.state))
            for exchange, (_, message) in enumerate(heard):
                client.play(t, exchange, packed(message, int(k), world.channel.width), world.together(t), here)
            if not here and field_contents(_own_state(client.state)) != before:
                raise BrokenPromiseError(f"the state of client {k} changes in round {t + 1}, which it misses")
    return ""


def kind_of_client(method: Any) -> type[DealtBatchClient] | type[LoneStreamClient]:
    """The class of isolated clients, by the method's kind of data."""
    kind = task_of(method)
    return DealtBatchClient if kind.has_rows_at_clients and not kind.judged_as_it_learns else LoneStreamClient


def _own_state(state: Any) -> Any:
    """A client's state without the memory of conditions, which begins in the first round."""
    return _own_state(state.method) if isinstance(state, Held) else state


class Star(Carrier):
    """Carries packets between a server and its clients."""

    def __init__(
        self, method: Federated, problem: Any, server: Any, clients: list[Any], times: Times | None = None
    ) -> None:
        super().__init__(problem, WITH_A_SERVER)
        self._method, self._problem, self._server, self._clients = method, problem, server, clients
        self._times = times

    def round(self, t: int) -> Shown:
        """Play one round of all clients together, or one after another where the server serves them in turn."""
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
                    if self._times is not None:  # the server may continue before the answer arrives
                        size = np.zeros((2, len(self._clients)), np.int64)
                        size[:, k] = [0 if packet is None else packet.size for packet in (down, sent)]
                        if self._times.answer(t, *size)[k] > self._times.deadline:
                            continue
                    senders.append(k)
                    up += [] if sent is None else [sent]
                if senders or self._method.called_without_messages:
                    share = np.full(len(senders), 1 / max(len(senders), 1))
                    self._server.ask("take", t, exchange, up, share, np.array(senders, np.int64))
        return self.all_shown(seen)


def _test_points(world: World) -> NDArray[np.float64]:
    """Test points of the replicate."""
    x: NDArray[np.float64] = world.problem.batches[world.streams.replicates[0]].part(False)[0]
    return x
