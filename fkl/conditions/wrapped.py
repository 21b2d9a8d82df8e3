"""Methods inside a condition: messages pass the condition before they are sent or received."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, cond
from fkl.basics.errors import BadValue, require
from fkl.basics.keys import Keys
from fkl.contract.graph import Agents, Decentralized
from fkl.contract.star import Federated, Samples, Star, Turn
from fkl.contract.world import Common, Outcome, World, Wrapped
from fkl.tasks.task import Panel
from fkl.wire.channel import Inbox
from fkl.wire.payloads import Payload


class OnMessages(Keys):
    """A condition of the network. The party named in each function's docstring runs it.

    A party's `memory` is its state between rounds: any dataclass of arrays, with the replicate as the first axis and,
    for clients and agents, the client as the second. Before the first round it is None, and for agents the result of
    `agent_starts`. No function changes its arguments.
    """

    on_a_star = True
    on_a_graph = True
    """Whether the condition works on a star, and on graphs with one message to all neighbours."""
    on_lossy_links = True
    """Whether it works if messages between agents are lost."""
    means_only = True
    """Whether it needs only means of clients' messages, as `means_only` of `fkl.contract.star.Federated` states."""
    called_without_messages = True
    """Whether `server_takes` is called where no client has answered."""
    panels: ClassVar[Mapping[str, Panel]] = MappingProxyType({})
    """Figures of a run with the condition, by file name."""
    hides_presence = False
    """As in `fkl.contract.star.Federated`."""
    traceable = False
    """Whether JAX can trace its functions, as `not_traceable` of a method says. A memory that is None before the first
    round is then one of zeros.
    """

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Refuse a method, or other conditions of the network, with a `BadValue`."""

    def beside(self, method: Any, conditions: Mapping[str, Any]) -> Any:
        """The condition as it is with this method, and these others by group."""
        return self

    def require_samples(self, problem: Any) -> None:
        """Refuse data with a `BadValue`."""

    def idle(self, problem: Any) -> str:
        """Why the condition does nothing to a run on these data; empty if it does something."""
        return ""

    def client_plays(
        self, common: Common, play: Callable[[Any, Any], Any], client: Any, memory: Any, samples: Any, turn: Turn
    ) -> tuple[Any, Any, Any, Any]:
        """A client's state, memory, message and outcome; `play(client, samples)` is the method's step."""
        own, up, outcome = play(client, samples)
        return own, memory, up, outcome

    def client_learns(self, common: Common, memory: Any, samples: Samples, turn: Turn) -> tuple[Any, Samples | None]:
        """A client's memory, and the samples from which it learns after predicting these; None for none yet."""
        return memory, samples

    def columns(self, method: Any, problem: Any) -> dict[str, NDArray[np.float64]]:
        """Columns about every round (T,), by name, which follow from the configuration and the present clients."""
        return {}

    def at_the_end(
        self, method: Any, problem: Any, memory: Any
    ) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Columns of the summary (R,) and of the rounds (T, R), from the final memory of the server, or of agents."""
        return {}, {}

    def warnings(self, summary: Any) -> tuple[str, ...]:
        """Warnings for the user at the end of a run with this summary, one line each."""
        return ()

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """A client's memory, and the message that travels up instead of its own."""
        return memory, message

    def server_sends(self, common: Common, memory: Any, message: Any, turn: Turn) -> tuple[Any, Any]:
        """The server's memory, and the message that travels down instead of its own."""
        return memory, message

    def client_takes(self, common: Common, message: Any, turn: Turn) -> Any:
        """The message that a client's method receives instead of the one that came down."""
        return message

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """The server's memory, and the message and the shares (K,) that its method receives.

        The message is None if no client has answered, or clients send nothing. The method learns nothing if there is no
        message, or all shares are 0.
        """
        return memory, message, share

    def agent_starts(self, common: Common, known: Any, agents: int) -> Any:
        """The memory of all agents before the first round, when they hold the same `known` for every neighbour."""
        return None

    def agent_sends(
        self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_], turn: Turn
    ) -> tuple[Any, Any, NDArray[np.bool_]]:
        """An agent's memory, the message that travels to its neighbours, and whether it does, (R, K)."""
        return memory, message, sends

    def agent_sent(self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_]) -> Any:
        """An agent's memory, once it knows the message that was really sent."""
        return memory


@dataclass(frozen=True)
class SumOnly(Payload):
    """A payload that gives the server only a sum over clients; it does not travel.

    Parameters
    ----------
    payload : Payload
        The payload that travels.
    """

    refusal: ClassVar[tuple[str, str, str]]
    """Key, value and what is allowed, for a server that reads single clients' messages."""

    payload: Any

    @property
    def values(self) -> Any:
        """Refused."""
        raise BadValue(*self.refusal)

    def wire_size(self, width: int) -> Any:
        """Scalars and bytes of the travelling payload."""
        return self.payload.wire_size(width)

    def dense(self) -> Any:
        """Refused."""
        return self.values


@dataclass
class Held:
    """A party's state: the method's, and the condition's."""

    method: Any
    memory: Any


@dataclass(frozen=True)
class WrappedStar(Wrapped, Federated):
    """A method of a star in a condition."""

    method: Any
    condition: Any

    facts: ClassVar[tuple[str, ...]] = (
        "label", "exchanges", "draws_for_clients", "given",
        "uses_sample_once", "message_of_one_sample", "choices_reveal_data",
    )  # fmt: skip

    @property
    def called_without_messages(self) -> bool:  # type: ignore[override]
        """Whether the condition or the method is."""
        return bool(self.condition.called_without_messages or self.method.called_without_messages)

    @property
    def hides_presence(self) -> bool:  # type: ignore[override]
        """Whether the condition or the method does."""
        return bool(self.condition.hides_presence or self.method.hides_presence)

    def start(self, common: Common, clients: int) -> tuple[Held, Held]:
        """The method's states, without memory."""
        server, client = self.method.start(common, clients)
        return Held(server, None), Held(client, None)

    def init(self, world: World) -> Star:
        """The state of all parties before the first round; refuses data that do not suit a condition."""
        method: Any = self
        while isinstance(method, Wrapped):
            method.condition.require_samples(world.problem)
            method = method.method
        return super().init(world)

    def tell(self, common: Common, server: Held, turn: Turn) -> tuple[Held, Any]:
        """The server's message, through the condition."""
        told, message = self.method.tell(common, server.method, turn)
        memory, message = self.condition.server_sends(common, server.memory, message, turn)
        return Held(told, memory), message

    def client(
        self, common: Common, client: Held, down: Any, samples: Samples, turn: Turn
    ) -> tuple[Held, Any, Outcome | None]:
        """The client's step, with its message through the condition."""
        down = self.condition.client_takes(common, down, turn)

        def play(state: Any, samples: Any) -> Any:
            return self.method.client(common, state, down, samples, turn)

        own, memory, up, outcome = self.condition.client_plays(
            common, play, client.method, client.memory, samples, turn
        )
        memory, known = self.condition.client_learns(common, memory, samples, turn)
        if known is None:
            return Held(client.method, memory), None, outcome
        if known is not samples:
            own, up, _ = play(client.method, known)
        memory, up = self.condition.client_sends(common, memory, up, samples, turn)
        return Held(own, memory), up, outcome

    def server(self, common: Common, server: Held, up: Any, share: Array, turn: Turn) -> Held:
        """The server's step, with messages through the condition."""
        memory, up, share = self.condition.server_takes(common, server.memory, up, share, turn)
        if up is None:  # no message has arrived, so nothing is learned
            return Held(server.method, memory)
        learn = partial(self.method.server, common, server.method, up, share, turn)
        return Held(cond(share.any(), learn, lambda: server.method), memory)

    def functions(self, world: World, state: Star, t: int) -> Any:
        """As the method's."""
        return self.method.functions(world, Star(state.server.method, state.client.method), t)


@dataclass(frozen=True)
class WrappedGraph(Wrapped, Decentralized):
    """A method on a graph in a condition; as `WrappedStar`."""

    method: Any
    condition: Any

    facts: ClassVar[tuple[str, ...]] = ("label", "online", "keep", "choices_reveal_data")

    def start(self, common: Common, agents: int) -> tuple[Held, Any]:
        """The method's states, and the agents' memory for the condition."""
        own, known = self.method.start(common, agents)
        return Held(own, self.condition.agent_starts(common, known, agents)), known

    def learn(self, common: Common, own: Held, inbox: Inbox, samples: Any, turn: Turn) -> tuple[Held, Outcome | None]:
        """As the method's."""
        state, outcome = self.method.learn(common, own.method, inbox, samples, turn)
        return Held(state, own.memory), outcome

    def send(
        self, common: Common, own: Held, inbox: Inbox, samples: Any, turn: Turn
    ) -> tuple[Held, Any, NDArray[np.bool_]]:
        """An agent's message, through the condition."""
        state, message, sends = self.method.send(common, own.method, inbox, samples, turn)
        memory, message, sends = self.condition.agent_sends(common, own.memory, message, sends, turn)
        return Held(state, memory), message, sends

    def sent(self, common: Common, own: Held, message: Any, sends: NDArray[np.bool_]) -> Held:
        """The method and the condition receive the message that really travels."""
        memory = self.condition.agent_sent(common, own.memory, message, sends)
        return Held(self.method.sent(common, own.method, message, sends), memory)

    def receive(self, common: Common, own: Held, inbox: Inbox, samples: Any, turn: Turn) -> tuple[Held, Any]:
        """The agent's step with its neighbours' messages."""
        state, theta = self.method.receive(common, own.method, inbox, samples, turn)
        return Held(state, own.memory), theta

    def learned(self, own: Held) -> Array:
        """As the method's."""
        theta: Array = self.method.learned(own.method)
        return theta

    def functions(self, world: World, state: Agents, t: int) -> Any:
        """As the method's."""
        return self.method.functions(world, Agents(state.own.method, state.held), t)


def wrapper_of(method: Any) -> type[WrappedStar | WrappedGraph] | None:
    """The class of a method inside a condition; None if conditions cannot change its messages."""
    step = type(method).step  # the class that defines its round: the one with conditions, or its own
    if step is Federated.step and not method.in_turn and not method.silent and method.in_conditions:
        return WrappedStar
    if step is Decentralized.step and not method.on_links and not method.conserves:
        return WrappedGraph
    return None


def wrap(method: Any, conditions: Mapping[str, Any], loss: float = 0.0, deadline: float | None = None) -> Any:
    """A method inside conditions, given by group; the first condition on messages is the innermost.

    Parameters
    ----------
    loss : float
        Probability that a message between agents is lost.
    deadline : float or None
        Seconds after which computing agents are skipped.

    Raises
    ------
    fkl.basics.errors.BadValue
        For a condition that does not work on the method's kind of network, or with lost messages.
    """
    kept = loss == 0 or not getattr(method, "conserves", False)
    require(kept, "network.loss", loss, f"0 for {method.label}: what is lost is missing from what agents add up")
    for group, condition in conditions.items():
        if not isinstance(condition, OnMessages):
            continue
        wrapper = wrapper_of(method)
        fits = (wrapper is WrappedStar and condition.on_a_star) or (wrapper is WrappedGraph and condition.on_a_graph)
        require(fits, group, type(condition).__name__, f"null for {method.label}, whose messages it cannot have")
        condition.require_fits(method, conditions)
        if wrapper is WrappedGraph and not condition.on_lossy_links:
            lost, given = "a difference that is lost is never made up", type(condition).__name__
            require(loss == 0, "network.loss", loss, f"0 with {group}: {lost}")
            misses = [name for name in ("links", "participation") if conditions.get(name) is not None]
            misses += ["network.deadline_s"] if deadline is not None else []
            require(not misses, group, given, f"null with {' and '.join(misses)}: {lost}")
        method = wrapper(method, condition.beside(method, conditions))  # type: ignore[misc]
    return method
