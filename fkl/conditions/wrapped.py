"""Methods in a condition: messages pass through the condition before they are sent or received."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, choose_branch
from fkl.basics.errors import BadValue, require
from fkl.basics.keys import Keys
from fkl.contract.graph import Agents, Decentralized
from fkl.contract.star import Federated, Samples, StarState, Turn
from fkl.contract.world import Common, Outcome, World, Wrapped
from fkl.tasks.task import Panel
from fkl.wire.channel import Inbox
from fkl.wire.payloads import Payload


class OnMessages(Keys):
    """A condition of the network. The party that a function's docstring names runs the function.

    A party's `memory` is its state between rounds: a dataclass of arrays, whose first axis is the replicate and, for
    clients and agents, whose second axis is the client. Before the first round it is None, but the result of
    `agent_starts` for agents. No function changes its arguments.
    """

    on_a_star = True
    on_a_graph = True
    """Whether the condition works with a server, and on graphs on which agents send all neighbours the same message."""
    on_lossy_links = True
    """Whether the condition works if messages between agents are lost."""
    called_without_messages = True
    """Whether `server_takes` is called even if no client has answered."""
    panels: ClassVar[Mapping[str, Panel]] = MappingProxyType({})
    """Figures of a run with the condition, by file name."""
    hides_presence = False
    """Whether the server must not learn which clients are absent, see `fkl.contract.star.Federated`."""
    traceable = False
    """Whether JAX can trace the condition's functions, see `not_traceable` of methods. A memory that is None before the
    first round then consists of zeros.
    """

    def require_fits(self, method: Any, conditions: Mapping[str, Any]) -> None:
        """Raise BadValue for a method or other conditions with which this one does not work."""

    def place_beside(self, method: Any, conditions: Mapping[str, Any]) -> Any:
        """The condition with facts about this method and the other conditions, by group."""
        return self

    def require_enough_rounds(self, rounds: int) -> None:
        """Raise BadValue for a run with too few rounds; it is not asked of the first rounds of a longer run."""

    def require_samples(self, problem: Any) -> None:
        """Raise BadValue for data with which the condition does not work."""

    def idle(self, problem: Any) -> str:
        """Why the condition does not affect a run on these data; empty if it does."""
        return ""

    def client_plays(
        self, common: Common, run_client: Callable[[Any, Any], Any], client: Any, memory: Any, samples: Any, turn: Turn
    ) -> tuple[Any, Any, Any, Any]:
        """A client's state, memory, message and outcome; `run_client(client, samples)` is the method's step."""
        state, up, outcome = run_client(client, samples)
        return state, memory, up, outcome

    def client_learns(self, common: Common, memory: Any, samples: Samples, turn: Turn) -> tuple[Any, Samples | None]:
        """A client's memory, and the samples from which it learns after it predicts these; None for none yet."""
        return memory, samples

    def columns(self, method: Any, problem: Any) -> dict[str, NDArray[np.float64]]:
        """Columns of the rounds, (T,), by name, which follow from the configuration and the present clients."""
        return {}

    def at_the_end(
        self, method: Any, problem: Any, memory: Any
    ) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
        """Columns of the summary (R,) and of the rounds (T, R), from the final memory of the server or agents."""
        return {}, {}

    def warnings(self, summary: Any) -> tuple[str, ...]:
        """Warnings for the user at the end of a run, one line each; `summary` has the columns of summary.csv, (R,)."""
        return ()

    def client_sends(self, common: Common, memory: Any, message: Any, samples: Samples, turn: Turn) -> tuple[Any, Any]:
        """A client's memory, and the message that is sent to the server instead of the client's message."""
        return memory, message

    def server_sends(self, common: Common, memory: Any, message: Any, turn: Turn) -> tuple[Any, Any]:
        """The server's memory, and the message that is sent to clients instead of the server's message."""
        return memory, message

    def client_takes(self, common: Common, message: Any, turn: Turn) -> Any:
        """The message that a client's method receives instead of the message that arrived."""
        return message

    def server_takes(
        self, common: Common, memory: Any, message: Any, share: Array, turn: Turn
    ) -> tuple[Any, Any, Array]:
        """The server's memory, and the message and the shares (K,) that its method receives.

        The message is None if no client has answered, or if clients send nothing. The method learns nothing without a
        message, or if all shares are 0.
        """
        return memory, message, share

    def agent_starts(self, common: Common, known: Any, agents: int) -> Any:
        """The memory of all agents before the first round; all hold the message `known` for every neighbour."""
        return None

    def agent_sends(
        self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_], turn: Turn
    ) -> tuple[Any, Any, NDArray[np.bool_]]:
        """An agent's memory, the message to its neighbours, and whether the agent sends it, (R, K)."""
        return memory, message, sends

    def agent_sent(self, common: Common, memory: Any, message: Any, sends: NDArray[np.bool_]) -> Any:
        """An agent's memory, after it knows the message that was actually sent."""
        return memory


@dataclass(frozen=True)
class SumOnly(Payload):
    """A payload that gives the server only a sum over clients; it is never sent itself.

    Parameters
    ----------
    payload : Payload
        The payload that is sent.
    """

    refusal: ClassVar[tuple[str, str, str]]
    """Key, value and allowed values, for the error if a server reads single clients' messages."""

    payload: Any

    @property
    def values(self) -> Any:
        """Raise BadValue: the server may read only the sum."""
        raise BadValue(*self.refusal)

    def wire_size(self, width: int) -> Any:
        """Scalars and bytes of the payload that is sent."""
        return self.payload.wire_size(width)

    def dense(self) -> Any:
        """Raise BadValue, as `values`."""
        return self.values


@dataclass
class StateWithMemory:
    """A party's state: the method's state, and the condition's memory."""

    method: Any
    memory: Any


@dataclass(frozen=True)
class WrappedStar(Wrapped, Federated):
    """A method with a server, in a condition."""

    method: Any
    condition: Any

    facts: ClassVar[tuple[str, ...]] = (
        "label", "exchanges", "exchanges_up", "draws_for_clients", "given",
        "uses_sample_once", "message_of_one_sample", "choices_reveal_data",
    )  # fmt: skip

    @property
    def called_without_messages(self) -> bool:  # type: ignore[override]
        """Whether the condition or the method is called without messages."""
        return bool(self.condition.called_without_messages or self.method.called_without_messages)

    @property
    def hides_presence(self) -> bool:  # type: ignore[override]
        """Whether the condition or the method hides presence."""
        return bool(self.condition.hides_presence or self.method.hides_presence)

    def start(self, common: Common, clients: int) -> tuple[StateWithMemory, StateWithMemory]:
        """The method's states, with no memory yet."""
        server, client = self.method.start(common, clients)
        return StateWithMemory(server, None), StateWithMemory(client, None)

    def init(self, world: World) -> StarState:
        """The states of all parties before the first round; refuses data that do not suit a condition."""
        method: Any = self
        while isinstance(method, Wrapped):
            method.condition.require_samples(world.problem)
            method = method.method
        return super().init(world)

    def tell(self, common: Common, server: StateWithMemory, turn: Turn) -> tuple[StateWithMemory, Any]:
        """The server's message, changed by the condition."""
        told, message = self.method.tell(common, server.method, turn)
        memory, message = self.condition.server_sends(common, server.memory, message, turn)
        return StateWithMemory(told, memory), message

    def client(
        self, common: Common, client: StateWithMemory, down: Any, samples: Samples, turn: Turn
    ) -> tuple[StateWithMemory, Any, Outcome | None]:
        """The client's step, with its messages changed by the condition."""
        # The condition may change the message down before the client sees it ...
        down = self.condition.client_takes(common, down, turn)

        def run_client(state: Any, samples: Any) -> Any:
            return self.method.client(common, state, down, samples, turn)

        # ... how the client computes, what it learns, and the message up
        own_state, memory, up, outcome = self.condition.client_plays(
            common, run_client, client.method, client.memory, samples, turn
        )
        # A client that does not hear may keep its state, or learn from other samples
        memory, learned_from = self.condition.client_learns(common, memory, samples, turn)
        if learned_from is None:
            return StateWithMemory(client.method, memory), None, outcome
        if learned_from is not samples:
            own_state, up, _ = run_client(client.method, learned_from)
        memory, up = self.condition.client_sends(common, memory, up, samples, turn)
        return StateWithMemory(own_state, memory), up, outcome

    def server(self, common: Common, server: StateWithMemory, up: Any, share: Array, turn: Turn) -> StateWithMemory:
        """The server's step, with messages changed by the condition."""
        memory, up, share = self.condition.server_takes(common, server.memory, up, share, turn)
        if up is None:  # no message has arrived, so nothing is learned
            return StateWithMemory(server.method, memory)
        learn = partial(self.method.server, common, server.method, up, share, turn)
        return StateWithMemory(choose_branch(share.any(), learn, lambda: server.method), memory)

    def functions(self, world: World, state: StarState, t: int) -> Any:
        """Learned functions of the wrapped method, from its part of the state."""
        return self.method.functions(world, StarState(state.server.method, state.client.method), t)


@dataclass(frozen=True)
class WrappedGraph(Wrapped, Decentralized):
    """A method on a graph, in a condition; the counterpart of `WrappedStar`."""

    method: Any
    condition: Any

    facts: ClassVar[tuple[str, ...]] = ("label", "online", "keep", "choices_reveal_data")

    def start(self, common: Common, agents: int) -> tuple[StateWithMemory, Any]:
        """The method's states, and the agents' memory for the condition."""
        own, known = self.method.start(common, agents)
        return StateWithMemory(own, self.condition.agent_starts(common, known, agents)), known

    def learn(
        self, common: Common, own: StateWithMemory, inbox: Inbox, samples: Any, turn: Turn
    ) -> tuple[StateWithMemory, Outcome | None]:
        """Let the wrapped method learn from the inbox; the condition's memory does not change."""
        state, outcome = self.method.learn(common, own.method, inbox, samples, turn)
        return StateWithMemory(state, own.memory), outcome

    def send(
        self, common: Common, own: StateWithMemory, inbox: Inbox, samples: Any, turn: Turn
    ) -> tuple[StateWithMemory, Any, NDArray[np.bool_]]:
        """An agent's message, changed by the condition."""
        state, message, sends = self.method.send(common, own.method, inbox, samples, turn)
        memory, message, sends = self.condition.agent_sends(common, own.memory, message, sends, turn)
        return StateWithMemory(state, memory), message, sends

    def sent(self, common: Common, own: StateWithMemory, message: Any, sends: NDArray[np.bool_]) -> StateWithMemory:
        """Give the method and the condition the message that was actually sent."""
        memory = self.condition.agent_sent(common, own.memory, message, sends)
        return StateWithMemory(self.method.sent(common, own.method, message, sends), memory)

    def receive(
        self, common: Common, own: StateWithMemory, inbox: Inbox, samples: Any, turn: Turn
    ) -> tuple[StateWithMemory, Any]:
        """The agent's step with its neighbours' messages."""
        state, theta = self.method.receive(common, own.method, inbox, samples, turn)
        return StateWithMemory(state, own.memory), theta

    def learned(self, own: StateWithMemory) -> Array:
        """Coefficients that the wrapped method has learned."""
        theta: Array = self.method.learned(own.method)
        return theta

    def functions(self, world: World, state: Agents, t: int) -> Any:
        """Learned functions of the wrapped method, from its part of the agents' state."""
        return self.method.functions(world, Agents(state.own.method, state.held), t)


def wrapper_of(method: Any) -> type[WrappedStar | WrappedGraph] | None:
    """The class for a method in a condition; None if conditions cannot change the method's messages."""
    step = type(method).step  # conditions apply only to the round of the base class
    if step is Federated.step and not method.in_turn and not method.silent and method.in_conditions:
        return WrappedStar
    if step is Decentralized.step and not method.on_links and not method.conserves:
        return WrappedGraph
    return None


def wrap_method(method: Any, conditions: Mapping[str, Any], loss: float = 0.0, deadline: float | None = None) -> Any:
    """A method in conditions, given by group; the first condition on messages is the innermost.

    Parameters
    ----------
    loss : float
        Probability that a message between agents is lost.
    deadline : float or None
        Seconds after which agents that still compute are skipped.

    Raises
    ------
    fkl.basics.errors.BadValue
        For a condition that does not work on the method's kind of network, or with lost messages.
    """
    # Sums over agents that must be conserved need every message
    kept = loss == 0 or not getattr(method, "conserves", False)
    require(kept, "network.loss", loss, f"0 for {method.label}: a lost message would change the agents' sums")
    # Wrap from the inside out, each condition around those before it
    for group, condition in conditions.items():
        if not isinstance(condition, OnMessages):
            continue
        wrapper = wrapper_of(method)
        fits = (wrapper is WrappedStar and condition.on_a_star) or (wrapper is WrappedGraph and condition.on_a_graph)
        require(fits, group, type(condition).__name__, f"null for {method.label}, whose messages it cannot change")
        condition.require_fits(method, conditions)
        # A code of differences needs every message, so it cannot be combined with lost ones
        if wrapper is WrappedGraph and not condition.on_lossy_links:
            lost, given = "a lost difference is never corrected", type(condition).__name__
            require(loss == 0, "network.loss", loss, f"0 with {group}: {lost}")
            misses = [name for name in ("links", "participation") if conditions.get(name) is not None]
            misses += ["network.deadline_s"] if deadline is not None else []
            require(not misses, group, given, f"null with {' and '.join(misses)}: {lost}")
        method = wrapper(method, condition.place_beside(method, conditions))  # type: ignore[misc]
    return method
