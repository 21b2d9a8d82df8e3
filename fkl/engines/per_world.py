"""Methods that run several times side by side, each time in a world of its own: for each client, or for each class.

`learners=alone` and `learners=pooled` run the method itself, without federation, on the same samples, with the same
scale and features. On a stream of three or more classes, a method learns one function per class.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from fkl.contract.star import OnBatches
from fkl.contract.world import Outcome, World, innermost_method
from fkl.network import Network, Topology
from fkl.tasks import task_of
from fkl.tasks.task import Redraw, Task
from fkl.wire import Channel, Ledger

BY_ITSELF = Topology(1, np.zeros((0, 2), np.int64))
"""The graph of one agent."""


def why_not(learners: str, method: Any) -> str | None:
    """Why a method cannot run with these learners, as the end of a line; None if it can."""
    if learners == "federated":
        return None
    if not task_of(method).has_rows_at_clients:
        return f"{method.label} has no clients that learn from their own rows in rounds"
    if learners == "alone" and getattr(method, "judged_in", OnBatches.judged_in) is not OnBatches.judged_in:
        return f"features of {method.label} are made from all clients' samples"
    return None


def pooled_task(task: Task) -> Task:
    """Move all samples of a task to one client."""
    redraw: Redraw | None = None
    if (draw := task.redraw) is not None:

        def redraw(replicate: int) -> tuple[Any, Topology | None]:
            problem, topology = draw(replicate)
            return problem.pooled(), None if topology is None else BY_ITSELF

    return type(task)(task.problem.pooled(), redraw)


@dataclass
class Each:
    """The states of the method in all its worlds."""

    states: list[Any]


@dataclass(frozen=True)
class MethodPerWorld:
    """A method that runs in several worlds: `make_worlds` lists them, `join_outcomes` joins their results."""

    method: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "method":
            raise AttributeError(name)
        return getattr(self.method, name)

    @property
    def innermost(self) -> Any:
        """The method itself."""
        return innermost_method(self.method)

    def init(self, world: World) -> Each:
        """The states before the first round."""
        return Each([self.method.init(one) for one in self.worlds_made(world)])

    def step(self, world: World, state: Each, t: int) -> tuple[Each, Any]:
        """Run one round in every world, and join the outcomes."""
        states, outcomes = [], []
        for learner_state, learner_world in zip(state.states, self.worlds_made(world), strict=True):
            after, outcome = self.method.step(learner_world, learner_state, t)
            states.append(after)
            outcomes.append(outcome)
        return Each(states), self.join_outcomes(world, outcomes, t)

    def worlds_made(self, world: World) -> list[World]:
        """The worlds, made once and kept with the common world."""
        kept, name = vars(world), type(self).__name__
        if name not in kept:
            kept[name] = self.make_worlds(world)
        made: list[World] = kept[name]
        return made

    def make_worlds(self, world: World) -> list[World]:
        """The worlds that belong to a common world."""
        raise NotImplementedError

    def join_outcomes(self, world: World, outcomes: Sequence[Any], t: int) -> Any:
        """One outcome of round t from those of all worlds."""
        raise NotImplementedError


class WithoutFederation(MethodPerWorld):
    """A method that every client, or the one client with all samples, runs alone, without messages."""

    def make_worlds(self, world: World) -> list[World]:
        """One world per client."""
        return [self._world_of(world, k) for k in range(world.problem.clients)]

    def step(self, world: World, state: Each, t: int) -> tuple[Each, Any]:
        """Run one round of every client alone, with a channel of its own."""
        for one in self.worlds_made(world):
            one.channel.open_round(t, one.problem.present[t])
        return super().step(world, state, t)

    def join_outcomes(self, world: World, outcomes: Sequence[Any], t: int) -> Any:
        """The outcomes of all clients."""
        return beside_each_other(outcomes)

    def _world_of(self, world: World, k: int) -> World:
        problem, channel = world.problem.of_client(k), world.channel
        ledger = Ledger(problem.rounds, *channel.ledger.shape[:1], 1, None, tuple(channel.ledger.tallies))
        own_channel = Channel(Network(), ledger, np.dtype(world.precision), channel.algorithm, world.streams)
        topology = None if world.topology is None else BY_ITSELF
        return replace(world, problem=problem, channel=own_channel, topology=topology)


class OneAgainstRest(MethodPerWorld):
    """A method that learns one function f_c for each class c, with target 1 in class c and -1 in all others.

    It predicts the class with the largest f_c, the first of ties. Losses and |f|^2 are sums over the classes. All
    classes share the features, the random numbers and the channel, which counts the messages of every class.
    """

    def make_worlds(self, world: World) -> list[World]:
        """One world per class."""
        problem = world.problem
        loss, everywhere = problem.loss.of_one_class, problem.everywhere
        worlds = []
        for signs in problem.loss.signs(problem.y):
            worlds.append(replace(world, problem=replace(problem, y=np.where(everywhere, signs, 0.0), loss=loss)))
            vars(worlds[-1])["common"] = world.common
        return worlds

    def join_outcomes(self, world: World, outcomes: Sequence[Outcome], t: int) -> Outcome:
        """The predicted class, or C where all classes have the same f, and sums over the classes."""
        loss, f = world.problem.loss, np.stack([one.y_hat for one in outcomes])
        value = sum(map(loss.of_one_class.value, f, loss.signs(world.problem.y[t])))
        of_kernels: Any = None if outcomes[0].loss is None else sum(one.loss for one in outcomes)
        norm: Any = lambda: sum(one.squared_norm() for one in outcomes)  # noqa: E731
        named = np.where(f.max(axis=0) > f.min(axis=0), loss.class_values[f.argmax(axis=0)], loss.several)
        return Outcome(named, of_kernels, norm, value=value)


def beside_each_other(outcomes: Sequence[Any]) -> Any:
    """Outcomes of single clients as one outcome: arrays (R, K, ...) are concatenated along the clients."""
    first = outcomes[0]
    # Functions, arrays and records are joined by their kind
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
