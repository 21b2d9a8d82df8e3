"""DKLA: decentralized kernel learning by ADMM, Algorithm 1 of Xu et al., COKE, JMLR 22 (2021)."""

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
from fkl.kernels.traceable import known_everywhere
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import PerClient


@dataclass
class State:
    """An agent's state after an iteration, besides its inbox.

    Parameters
    ----------
    theta, gamma : (R, K, P)
        Primal and dual variables.
    theta_hat : (R, K, P)
        The neighbours' copy of theta: theta itself, unless the message was compressed.
    """

    theta: Array
    gamma: Array
    theta_hat: Array


@dataclass(frozen=True)
class Dkla(Consensus):
    """All agents solve their local problem and broadcast theta in every iteration.

    Parameters
    ----------
    rho : float
        Penalty of the augmented Lagrangian, the step size of the dual variables.
    """

    label: ClassVar[str] = "DKLA"
    choices_reveal_data: ClassVar[bool] = False

    rho: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.rho < np.inf, "rho", self.rho, "a number > 0")

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """Algorithm 1, Initialize: theta = gamma = 0."""
        theta, gamma, theta_hat = (self.zeros(common, agents) for _ in range(3))
        return State(theta, gamma, theta_hat), self.nothing_sent(common)

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Iteration k = t + 1: minimise given the neighbours' theta of iteration k - 1, and broadcast theta."""
        c = self.lam / samples.agents + self.rho * inbox.degree
        v = self.rho * (inbox.degree[:, None] * own.theta_hat + inbox.sum("theta")) - own.gamma
        theta = samples.minimise(c, v, own.theta)  # eq. (18a)
        everyone = common.xp.ones(theta.shape[:2], np.bool_)
        return State(theta, own.gamma, own.theta_hat), Message(PerClient(theta)), everyone

    def sent(self, common: Common, own: State, message: Message, sends: NDArray[np.bool_]) -> State:
        """The neighbours' copy from now on. The agent uses the same copy, so duals sum to 0 over agents."""
        told: Array = message.theta.added_to(own.theta_hat)  # type: ignore[union-attr]  # no agent sends a Shared
        theta_hat = told if known_everywhere(sends) else common.xp.where(sends[..., None], told, own.theta_hat)
        return State(own.theta, own.gamma, theta_hat)

    def receive(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Array]:
        """Move the dual variable along the neighbours' theta of iteration k.

        Only neighbours whose links are up count. A link is up at both ends or at neither, so the sum over agents stays
        0.
        """
        apart = inbox.listeners[..., None] * own.theta_hat - inbox.heard("theta")
        gamma = own.gamma + self.rho * apart  # eq. (18b)
        return State(own.theta, gamma, own.theta_hat), own.theta
