"""Raker, AdaRaker and OMKL-GF at a server that receives all samples, to show the cost and gain of pooling."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from fkl.algorithms.online.learners import AdaRaker, OnlineLearner, Raker
from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.basics.arrays import Array
from fkl.basics.errors import FklError
from fkl.contract.star import Federated, Samples, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.data.problem import Problem
from fkl.kernels.functions import OnFeatures
from fkl.wire.payloads import PerClient


@dataclass(frozen=True)
class SampleFeatures:
    """Message of a client: the features of its sample, (R, K, d)."""

    features: PerClient


@dataclass(frozen=True)
class PredictionMessage:
    """Message to a client: the prediction for its sample, (R, K)."""

    prediction: PerClient


@dataclass(frozen=True)
class Target:
    """Message of a client: the target of its sample, (R, K)."""

    target: PerClient


@dataclass
class Serving:
    """State of the server between two messages: its learner, and the sample whose target has not arrived.

    Parameters
    ----------
    learner : any
        State of the learner.
    count : int
        Number of samples learned from so far.
    total : int
        Number of samples of all clients in all rounds.
    x : (1, d)
    y_hat : (R, 1)
    """

    learner: Any
    count: int
    total: int
    x: Array
    y_hat: Array


@dataclass(frozen=True)
class Pooled(Federated, OnlineLearner):
    """Mixin in front of a `OnlineLearner`, which then runs at the server, round after round and client after client.

    A client sends the d features of its sample, receives one prediction and sends one target. Nothing is private. In a
    simulation, the learner processes a round of all clients at once, which changes numbers only by rounding.
    """

    exchanges: ClassVar[int] = 2
    in_turn: ClassVar[bool] = True
    alone: ClassVar[bool] = False
    not_traceable: ClassVar[str] = "its server serves clients one after another"

    def start(self, common: Common, clients: int) -> tuple[Serving, None]:
        """The learner's initial state; clients hold nothing."""
        nothing = np.zeros((1, common.dimension))
        total = common.rounds * clients
        return Serving(
            self._first_state(_world_of_learner(common, total, nothing, np.zeros(1))), 0, total, nothing, nothing
        ), None

    def broadcast(self, common: Common, server: Serving, turn: Turn) -> PredictionMessage | None:
        """Send nothing in the first exchange, and the prediction in the second."""
        return PredictionMessage(PerClient(server.y_hat)) if turn.exchange else None

    def client(
        self, common: Common, client: None, down: PredictionMessage | None, samples: Samples, turn: Turn
    ) -> tuple[None, SampleFeatures | Target, Outcome | None]:
        """Send the features, then the target; no client knows the server's model."""
        R = common.bank.replicates
        if down is None:
            return None, SampleFeatures(PerClient(np.broadcast_to(samples.x, (R, *samples.x.shape)))), None
        y_hat = down.prediction.values
        unknown = np.full_like(y_hat, np.nan)  # |f|^2 is unknown, because the function stays at the server
        return None, Target(PerClient(np.broadcast_to(samples.y, y_hat.shape))), Outcome(y_hat, None, lambda: unknown)

    def server(self, common: Common, server: Serving, up: Any, share: Array, turn: Turn) -> Serving:
        """Predict when the features have arrived, and learn when the target has arrived."""
        now = slice(server.count, server.count + 1)
        if isinstance(up, SampleFeatures):
            x = up.features.values[0]
            # Predict with a copy, because the learner runs whole rounds, but the target has not yet arrived
            guess = self.play(_world_of_learner(common, server.total, x, np.zeros(1)), deepcopy(server.learner), now)
            return replace(server, x=x, y_hat=guess.played.y_hat)
        world = _world_of_learner(common, server.total, server.x, up.target.values[0])
        return replace(server, learner=self.play(world, deepcopy(server.learner), now), count=now.stop)

    def init(self, world: World) -> Any:
        """The learner's initial state."""
        return self._first_state(at_the_server(world))

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Outcome]:
        """Run one round of all clients, which is K rounds of the learner."""
        channel, problem = world.channel, world.problem
        x, y, _ = problem.round(t)
        R = world.bank.replicates
        channel.up(SampleFeatures(PerClient(np.broadcast_to(x, (R, *x.shape)))))
        state = self.play(at_the_server(world), state, slice(t * problem.clients, (t + 1) * problem.clients))
        played = state.played
        channel.down(PredictionMessage(PerClient(played.y_hat)))
        channel.up(Target(PerClient(np.broadcast_to(y, played.y_hat.shape))))
        return state, Outcome(played.y_hat, played.loss, lambda: played.squared_norm)

    def functions(self, world: World, state: Any, t: int) -> tuple[OnFeatures, ...]:
        """The function of the learner, which has seen the samples of all clients in t rounds."""
        learner: Any = super(Federated, self)
        return learner.functions(at_the_server(world), state, t * world.problem.clients)

    def _first_state(self, world: World) -> Any:
        """Initial state of the learner, which is the next class in the method resolution order."""
        return super(Federated, self).init(world)  # type: ignore[misc]

    def require_one(self, world: World) -> None:
        """Refuse clients that miss a round; any number of clients is allowed."""
        if not world.problem.present.all():
            raise FklError(f"partition: {self.label} needs clients that are present in every round")


def at_the_server(world: World) -> World:
    """The samples of all clients as one stream, with the same random features."""
    # One client that sees the samples of round 0 client by client, then those of round 1, and so on
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
    vars(alone)["bank"] = world.bank  # drawn once, not again in each round
    return alone


def _world_of_learner(common: Common, total: int, x: Array, y: Array) -> World:
    """A world with a stream of this length for a server with only this sample: every index returns the sample."""
    # A broadcast view needs no memory. It is writeable, so loops are not compiled a second time
    samples = (np.array(one, np.float64) for one in (x, y))
    x, y = (as_strided(one, (total, *one.shape), (0, *one.strides)) for one in samples)
    stream = Problem(x, y, np.broadcast_to(np.True_, (total, 1)), np.zeros(1, np.int64))
    world = World(stream, common.dictionary, None, common.streams, common.precision)  # type: ignore[arg-type]
    vars(world)["bank"] = common.bank
    return world


@dataclass(frozen=True)
class PooledRaker(Pooled, Raker):
    """`Raker` on pooled samples; t in eta_t counts samples, not rounds."""

    label: ClassVar[str] = "Raker, pooled"


@dataclass(frozen=True)
class PooledAdaRaker(Pooled, AdaRaker):
    """`AdaRaker` on pooled samples; the lengths of its intervals count samples, not rounds."""

    label: ClassVar[str] = "AdaRaker, pooled"

    eta: float = 0.5


@dataclass(frozen=True)
class PooledOmklGf(Pooled, OmklGf):
    """`OmklGf` on pooled samples; t in eta_t, and `exploring`, count samples, not rounds."""

    label: ClassVar[str] = "OMKL-GF, pooled"
