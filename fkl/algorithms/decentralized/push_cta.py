"""CTA with push-sum, for one-way links.

With one-way links agents cannot find doubly stochastic weights by themselves. With weights that only sum to 1 for each
receiver, CTA minimises a sum in which some agents count more. Here every agent splits its vector equally among itself
and the agents that hear it, so the sum over agents is preserved. It splits a weight, 1 at first, in the same way. The
weight becomes large at agents that receive much, and each agent divides its vector by it. This is the subgradient-push
of Nedic and Olshevsky, "Distributed optimization over time-varying directed graphs", IEEE TAC 60 (2015), eq. (3), with
their names.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array
from fkl.algorithms.decentralized.cta import Cta
from fkl.contract.held_samples import BatchSamples
from fkl.contract.star import Turn
from fkl.contract.world import Common
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Message:
    """Message of an agent to each agent that hears it: x / d and, last, y / d, (R, K, P + 1)."""

    theta: PerClient | SameForAll


@dataclass
class State:
    """An agent's state after an iteration, besides its inbox.

    Parameters
    ----------
    theta : (R, K, P)
        z, with which it predicts.
    x : (R, K, P + 1)
        y theta and, last, its weight y; the sum of y over agents is their number.
    """

    theta: Array
    x: Array


@dataclass(frozen=True)
class PushCta(Cta):
    """CTA whose agents push shares of their vectors, and divide by a weight that they push as well.

    An agent's step is eta divided by its weight. Agents that hear few others have a small weight, so `eta` has to be
    smaller than in CTA.
    """

    label: ClassVar[str] = "CTA, push-sum"
    conserves: ClassVar[bool] = True

    eta: float = 0.1

    def start(self, common: Common, agents: int) -> tuple[State, Message]:  # type: ignore[override]
        """Start from x = 0 and y = 1, before any message."""
        theta, nothing = self.zeros(common, agents), self.zeros(common)
        x = common.xp.concatenate([theta, common.xp.ones((*theta.shape[:2], 1))], axis=-1)
        return State(theta, x), Message(SameForAll(common.xp.concatenate([nothing, nothing[:, :1]], axis=-1)))

    def send(  # type: ignore[override]
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Iteration t + 1: push x_i / d_i and y_i / d_i, where d_i counts the agent and those that hear it."""
        everyone = common.xp.ones(own.x.shape[:2], np.bool_)
        return own, Message(PerClient(own.x / (1 + inbox.listeners[..., None]))), everyone

    def receive(  # type: ignore[override]
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Array]:
        """Combine, then adapt."""
        summed = own.x / (1 + inbox.listeners[..., None]) + inbox.heard("theta")
        x, y = summed[..., :-1], summed[..., -1:]  # w_i(t + 1) = sum_j x_j(t) / d_j, and y_i(t + 1) likewise
        for _ in range(self.local_steps):
            z = x / y  # only the quotient is an average of theta: x and y alone drift on one-way links
            x = x - self.eta * (samples.gradient(z) + 2 * self.lam / samples.agents * z)
        theta = x / y
        return State(theta, common.xp.concatenate([x, y], axis=-1)), theta
