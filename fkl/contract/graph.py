"""Methods on a graph: agents without a server, which compute with their own data."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, is_traced
from fkl.basics.keys import Keys
from fkl.contract.star import Samples, Turn
from fkl.contract.world import BatchSamples, Common, Outcome, OwnSamples, World
from fkl.network.topology import Neighbours, Topology
from fkl.wire.channel import Inbox


@dataclass
class Agents:
    """State of a decentralized method: the agents' states, and the messages from neighbours that they store."""

    own: Any
    held: Mapping[str, Array]


class Decentralized(Keys):
    """Base class of methods whose agents communicate with their neighbours on a graph: a frozen dataclass of keys.

    You write `label`, a field `lam` (weight of the regulariser in the sum over all agents), and

    - ``start(common, agents) -> (own, known)``: states before the first iteration, and the message of `SameForAll` that
      every agent assumes for each neighbour until the neighbour sends one.
    - ``send(common, own, inbox, samples, turn) -> (own, message, sends)``: a message to all neighbours, `PerClient`
      arrays (R, K, P), and whether each agent sends it in this iteration, bool (R, K).
    - ``receive(common, own, inbox, samples, turn) -> (own, theta)``: learn from the received messages; theta is (R, K,
      P).

    `samples` are `BatchSamples`, which compute gradients and minimisers; `inbox.sum(kind)`, `inbox.mix(kind, own)` and
    `inbox.degree` give the neighbours' messages and their number. You may write `sent` (the state after an agent knows
    the message that was actually sent), `keep` (the message to store for a neighbour), `learned` (theta, if the state
    has another name for it), and the facts below.

    An iteration is `send`, the exchange of messages, `receive`: two functions, because papers have steps before and
    after the exchange. In DKLA's iteration k, eq. (18a) uses the neighbours' theta of k - 1, and eq. (18b) that of k.

    A simulation calls each function once for all agents, along axis K, and an agent on its own machine calls it with K
    = 1, so an agent's results must not depend on the others. States are dataclasses of arrays, with the replicate
    first. No function changes its arguments.
    """

    label: ClassVar[str]
    not_traceable: ClassVar[str]
    """Why JAX cannot trace the iterations; empty if it can."""
    on_links: ClassVar[bool] = False
    """Whether an agent sends a different message on each link, `fkl.wire.payloads.OnLinks`."""
    choices_reveal_data: ClassVar[bool] = True
    """Whether an agent's data decide whether it sends, as in `fkl.contract.star.Federated`."""

    exchanges: ClassVar[int] = 1
    """Number of times that agents send in an iteration."""
    exchanges_up: ClassVar[int | None] = None
    uses_sample_once: ClassVar[bool] = False
    message_of_one_sample: ClassVar[bool] = False
    """What `fkl.contract.star.Federated` says with these names; False is always safe."""
    one_way: ClassVar[bool] = False
    """Whether the method can learn with one-way links."""
    conserves: ClassVar[bool] = False
    """Whether messages must arrive unchanged: a lost or changed message would change a sum over agents."""
    told_once: ClassVar[bool] = False
    """Whether agents send some messages only once, so all links have to be up."""
    online: ClassVar[bool] = False
    """Whether agents see one sample in each iteration, and predict its target first, as in `OnStreams`."""
    own_features: ClassVar[bool] = False
    """Whether agents draw their own features, and hold `OwnSamples` instead of samples in shared features."""

    def start(self, common: Common, agents: int) -> tuple[Any, Any]:
        """States of this many agents, and the message that all assume for each neighbour until it sends one.

        Raises
        ------
        fkl.basics.errors.BadValue
            If hyperparameters do not fit the common knowledge.
        """
        raise NotImplementedError

    def learn(self, common: Common, own: Any, inbox: Inbox, samples: Any, turn: Turn) -> tuple[Any, Outcome | None]:
        """An agent's new state and its prediction, before it sends; methods on batches make no prediction."""
        return own, None

    def send(
        self, common: Common, own: Any, inbox: Inbox, samples: Any, turn: Turn
    ) -> tuple[Any, Any, NDArray[np.bool_]]:
        """An agent's new state, its message to all neighbours, and whether it sends the message now, (R, K)."""
        raise NotImplementedError

    def sent(self, common: Common, own: Any, message: Any, sends: NDArray[np.bool_]) -> Any:
        """An agent's new state, after it knows the message that was actually sent; a condition may have changed it."""
        return own

    def keep(self, held: Array, came: Array) -> Array:
        """The message that an agent now stores for a neighbour: here the one that it received."""
        return came

    def receive(self, common: Common, own: Any, inbox: Inbox, samples: Any, turn: Turn) -> tuple[Any, Any]:
        """An agent's new state, after its neighbours' messages have arrived, and its theta (R, K, P)."""
        raise NotImplementedError

    def learned(self, own: Any) -> Array:
        """The theta (R, K, P) that agents hold."""
        return own.theta

    def init(self, world: World) -> Agents:
        """All agents before the first iteration."""
        own, known = self.start(world.common, world.problem.clients)
        return Agents(own, Inbox.before_first_round(self._known_graph(world), known).held)

    def step(self, world: World, state: Agents, t: int) -> tuple[Agents, Any]:
        """Run one iteration of the present agents, whose messages pass through the channel; others do not change."""
        samples: BatchSamples | OwnSamples | Samples
        if self.online:
            x, y, share = world.problem.round(t)
            samples = Samples(x, y, share > 0)
        else:
            samples = world.own_samples if self.own_features else world.samples
        turn = Turn(t, 0, world.streams, range(world.problem.clients))
        awake = world.channel.awake(t, _topology_of(world), world.problem.present) if world.changes else None
        inbox = Inbox(self._known_graph(world), state.held, awake)
        own, outcome = self.learn(world.common, state.own, inbox, samples, turn)
        own, message, sends = self.send(world.common, own, inbox, samples, turn)
        # Conditions may change a message (noise, few bits), and `sent` informs the agent of the change.
        message, arrived = world.channel.send_to_neighbours(message, sends, _topology_of(world), awake)
        own = self.sent(world.common, own, message, sends)
        inbox = inbox.after(message, arrived, self.keep)
        own, theta = self.receive(world.common, own, inbox, samples, turn)
        if world.changes:
            own = _where_present(world.present(t), own, state.own)
            theta = None if self.online else self.learned(own)
        return Agents(own, inbox.held), theta if outcome is None else outcome

    def _known_graph(self, world: World) -> Topology | Neighbours:
        """The graph as agents know it: link by link if an agent's neighbours may hold different messages of it."""
        differs = self.on_links or world.changes or world.channel.network.loss > 0
        return _topology_of(world).neighbours if differs else _topology_of(world)


class OnStreams(Decentralized):
    """Base class of methods whose agents see one sample per round, predict its target, and then learn from it.

    You write `label`, `lam`, `start` and `send` as for `Decentralized`, and

    - ``learn(common, own, inbox, samples, turn) -> (own, outcome)``: predict for `samples.x` (K, d), then look at
      `samples.y` (K,), and compute the values that the agent needs.
    - ``hear(common, own, inbox, samples, turn) -> own``: learn from the neighbours' messages.

    A round is `learn`, `send`, the exchange of messages, `hear`. With several kernels, states and messages are arrays
    (R, K, N, P); the inbox adds and averages them like (R, K, P).
    """

    online: ClassVar[bool] = True

    def learn(self, common: Common, own: Any, inbox: Inbox, samples: Samples, turn: Turn) -> tuple[Any, Outcome]:
        """An agent's new state, and its prediction, made before it looks at `samples.y`."""
        raise NotImplementedError

    def hear(self, common: Common, own: Any, inbox: Inbox, samples: Samples, turn: Turn) -> Any:
        """An agent's new state, after its neighbours' messages have arrived."""
        raise NotImplementedError

    def receive(self, common: Common, own: Any, inbox: Inbox, samples: Samples, turn: Turn) -> tuple[Any, None]:
        """Learn by `hear`; return no outcome, because `learn` has returned it."""
        return self.hear(common, own, inbox, samples, turn), None


def _where_present(here: NDArray[np.bool_], new: Any, old: Any) -> Any:
    """The new states of agents that are present (K,), and the old states of the others."""
    if is_dataclass(new):
        parts = {
            part.name: _where_present(here, getattr(new, part.name), getattr(old, part.name)) for part in fields(new)
        }
        return replace(new, **parts)  # type: ignore[type-var]
    if not isinstance(new, np.ndarray) and not is_traced(new):
        return new
    return array_namespace(new).where(here.reshape(-1, *[1] * (new.ndim - 2)), new, old)


def _topology_of(world: World) -> Topology:
    assert world.topology is not None  # the configuration gives every decentralized method a graph
    return world.topology
