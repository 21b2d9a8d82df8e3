"""CTA: combine, then adapt. This diffusion method is the baseline in Xu et al., COKE, JMLR 22 (2021), section 5."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array
from fkl.algorithms.decentralized.consensus import Consensus, Message
from fkl.basics.errors import require
from fkl.contract.held_samples import BatchSamples
from fkl.contract.star import Turn
from fkl.contract.world import Common
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import PerClient


@dataclass
class State:
    """An agent's state after an iteration, besides its inbox: theta (R, K, P)."""

    theta: Array


@dataclass(frozen=True)
class Cta(Consensus):
    """Every agent averages its neighbours' theta with its own by Metropolis weights, then descends on R_i.

    If links are one-way, agent i weighs itself and the d_i agents that it hears equally, 1 / (1 + d_i). Agents that
    many others hear then count more in the result; `fkl.algorithms.decentralized.push_cta` corrects that.

    Parameters
    ----------
    eta : float
        Step size.
    local_steps : int
        Steps of an agent on R_i between two messages.
    """

    label: ClassVar[str] = "CTA"
    choices_reveal_data: ClassVar[bool] = False
    one_way: ClassVar[bool] = True

    eta: float = 0.99
    local_steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.eta < np.inf, "eta", self.eta, "a number > 0")
        require(1 <= self.local_steps <= 1000, "local_steps", self.local_steps, "an integer from 1 to 1000")

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """Start from theta = 0."""
        return State(self.zeros(common, agents)), self.nothing_sent(common)

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Iteration k = t + 1: broadcast theta of iteration k - 1."""
        everyone = common.xp.ones(own.theta.shape[:2], np.bool_)
        return own, Message(PerClient(own.theta)), everyone

    def receive(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Array]:
        """Combine, then adapt."""
        theta = inbox.mix("theta", own.theta)
        for _ in range(self.local_steps):
            slope = samples.gradient(theta) + 2 * self.lam / samples.agents * theta
            theta = theta - self.eta * slope
        return State(theta), theta
