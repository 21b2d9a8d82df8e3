"""A method without federation: each client by itself, or one learner with all samples.

`learners=alone` and `learners=pooled` play the method itself, on the same samples, with the same scale and features.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fkl.contract.star import OnBatches
from fkl.contract.world import World
from fkl.network import Network, Topology
from fkl.tasks import task_of
from fkl.tasks.task import Redraw, Task
from fkl.wire import Channel, Ledger

BY_ITSELF = Topology(1, np.zeros((0, 2), np.int64))
"""The graph of one agent."""


def why_not(learners: str, method: Any) -> str | None:
    """Why a method cannot be played like this, as the end of a line; None if it can."""
    if learners == "federated":
        return None
    if not task_of(method).has_rows_at_clients:
        return f"{method.label} is not of clients with rows of their own in rounds"
    if learners == "alone" and getattr(method, "judged_in", OnBatches.judged_in) is not OnBatches.judged_in:
        return f"features of {method.label} are made of all clients' samples"
    return None


def pooled_task(task: Task) -> Task:
    """The same task with all samples at one client."""
    redraw: Redraw | None = None
    if (draw := task.redraw) is not None:

        def redraw(replicate: int) -> tuple[Any, Topology | None]:
            problem, topology = draw(replicate)
            return problem.pooled(), None if topology is None else BY_ITSELF

    return type(task)(task.problem.pooled(), redraw)


@dataclass
class Each:
    """The state of every client's own learner."""

    states: list[Any]


@dataclass(frozen=True)
class Alone:
    """A method that every client, or the one with all samples, plays by itself, without messages."""

    method: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "method":
            raise AttributeError(name)
        return getattr(self.method, name)

    @property
    def innermost(self) -> Any:
        """The method itself."""
        return getattr(self.method, "innermost", self.method)

    def init(self, world: World) -> Each:
        """The state of every client's learner before the first round."""
        return Each([self.method.init(one) for one in self._worlds(world)])

    def step(self, world: World, state: Each, t: int) -> tuple[Each, Any]:
        """One round of every client by itself, with concatenated outcomes."""
        states, outcomes = [], []
        for own, one in zip(state.states, self._worlds(world), strict=True):
            one.channel.open_round(t, one.problem.present[t])
            after, outcome = self.method.step(one, own, t)
            states.append(after)
            outcomes.append(outcome)
        return Each(states), beside_each_other(outcomes)

    def _worlds(self, world: World) -> list[World]:
        """A world for each client, made once per common world."""
        known = vars(self).get("_known")
        if known is None or known[0] is not world:
            known = world, [self._world_of(world, k) for k in range(world.problem.clients)]
            object.__setattr__(self, "_known", known)
        return known[1]

    def _world_of(self, world: World, k: int) -> World:
        problem, channel = world.problem.of_client(k), world.channel
        ledger = Ledger(problem.rounds, *channel.ledger.shape[:1], 1, None, tuple(channel.ledger.tallies))
        own = Channel(Network(), ledger, np.dtype(world.precision), channel.algorithm, world.streams)
        topology = None if world.topology is None else BY_ITSELF
        return replace(world, problem=problem, channel=own, topology=topology)


def beside_each_other(outcomes: Sequence[Any]) -> Any:
    """Outcomes of single clients as one outcome: arrays (R, K, ...) are concatenated along the clients."""
    first = outcomes[0]
    if first is None:
        return None
    if callable(first):
        return lambda: beside_each_other([one() for one in outcomes])
    if isinstance(first, np.ndarray):
        return np.concatenate(outcomes, axis=1)
    joined: dict[str, Any] = {
        one.name: beside_each_other([getattr(outcome, one.name) for outcome in outcomes]) for one in fields(first)
    }
    return type(first)(**joined)
