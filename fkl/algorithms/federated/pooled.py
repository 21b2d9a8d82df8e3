"""What the learners at a server share: clients send their samples as they are, and the server learns alone."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fkl.algorithms.base import Outcome, World
from fkl.algorithms.online.learner import Learner
from fkl.errors import FklError


@dataclass(frozen=True)
class Pooled(Learner):
    """Mixin before a `Learner`, which then plays at the server, round after round, client after client.

    A client sends the d features of its sample, hears one prediction and sends one target. Nothing is kept private.
    """

    alone: ClassVar[bool] = False

    def init(self, world: World) -> Any:
        """As the learner starts."""
        return super().init(at_the_server(world))  # type: ignore[misc]  # a Learner that is not abstract has one

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Outcome]:
        """One round of all clients, as many of the learner's."""
        channel, problem = world.channel, world.problem
        x, y, _ = problem.round(t)
        channel.uplink("features", x, scalars=problem.dimension)
        state = self.play(at_the_server(world), state, slice(t * problem.clients, (t + 1) * problem.clients))
        played = state.played
        y_hat = channel.broadcast("prediction", played.y_hat, scalars=1)
        channel.uplink("target", y, scalars=1)
        return state, Outcome(y_hat, played.loss, lambda: played.squared_norm)

    def require_one(self, world: World) -> None:
        """Refuse clients that miss a round; how many there are does not matter."""
        if not world.problem.present.all():
            raise FklError(f"partition: {self.label} needs clients that are present in every round")


def at_the_server(world: World) -> World:
    """The samples of all clients as one stream, with the same random features."""
    problem = world.problem
    size = problem.rounds * problem.clients
    stream = replace(
        problem,
        x=problem.x.reshape(size, 1, problem.dimension),
        y=problem.y.reshape(size, 1),
        present=problem.present.reshape(size, 1),
        site=np.zeros(1, np.int64),
        tested=None,
    )
    alone = replace(world, problem=stream)
    vars(alone)["bank"] = world.bank  # drawn once, not once a round
    return alone
