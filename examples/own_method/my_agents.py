"""Agents of my own: gradient tracking, which comes to the exact optimum with a step that stays as it is.

Nedic, Olshevsky and Shi, Achieving Geometric Convergence for Distributed Optimization over Time-Varying Graphs (SIAM
Journal on Optimization 27, 2017), DIGing.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.decentralized.consensus import Consensus
from fkl.basics.errors import require
from fkl.contract.star import Turn
from fkl.contract.world import BatchSamples, Common
from fkl.wire.channel import Inbox
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Message:
    """What an agent tells its neighbours, both (R, K, P): theta, and what it takes to be the mean of all gradients."""

    theta: PerClient | SameForAll
    slope: PerClient | SameForAll


@dataclass
class State:
    """What an agent holds, all (R, K, P): both of these, and its own gradient at theta."""

    theta: NDArray[np.float64]
    slope: NDArray[np.float64]
    gradient: NDArray[np.float64]


@dataclass(frozen=True)
class Tracking(Consensus):
    """theta <- W theta - eta s, and s <- W s + grad R_i(new theta) - grad R_i(theta), W the weights of neighbours.

    Parameters
    ----------
    eta : float
        Step size.
    lam, iterations and others
        See `Consensus`.
    """

    label: ClassVar[str] = "Gradient tracking"

    eta: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.eta < np.inf, "eta", self.eta, "a number > 0")

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """All are 0, and so is what nobody has sent yet."""
        zeros, nothing = self.zeros(common, agents), SameForAll(self.zeros(common))
        return State(zeros, zeros, zeros), Message(nothing, nothing)

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Broadcast both; before anything is known the mean of all gradients is an agent's own."""
        if turn.t == 0:
            gradient = self._gradient(own.theta, samples)
            own = State(own.theta, gradient, gradient)
        everyone = np.ones(own.theta.shape[:2], np.bool_)
        return own, Message(PerClient(own.theta), PerClient(own.slope)), everyone

    def receive(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, NDArray[np.float64]]:
        """Average with the neighbours, descend, and correct the slope by what has changed."""
        theta = inbox.mix("theta", own.theta) - self.eta * own.slope
        gradient = self._gradient(theta, samples)
        slope = inbox.mix("slope", own.slope) + gradient - own.gradient
        return State(theta, slope, gradient), theta

    def _gradient(self, theta: NDArray[np.float64], samples: BatchSamples) -> Any:
        """Of R_i at an agent's theta."""
        return samples.gradient(theta) + 2 * self.lam / samples.agents * theta
