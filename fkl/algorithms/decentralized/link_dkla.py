"""DKLA with a dual variable on each link: lost messages do not bias its solution.

In DKLA agent i updates gamma_i from the messages that it received. If a message is lost, its neighbour's gamma_j does
not move in the opposite direction. The sum of all gamma is then no longer 0, and the agents agree on the minimiser of
sum_i (R_i(theta) + gamma_i'theta) instead. Here an agent holds z_ij for each of its links, and a lost message leaves it
as it was: the relaxed ADMM of Bastianello, Carli, Schenato and Todescato, "Asynchronous distributed optimization over
lossy networks via relaxed ADMM: stability and linear convergence", IEEE TAC 66 (2021), with alpha = 1/2. Without loss,
and from z = 0, theta is DKLA's: their rho is twice DKLA's, and sum_j z_ij = rho sum_j (theta_i + theta_j) - gamma_i.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array
from fkl.algorithms.decentralized.consensus import Consensus
from fkl.algorithms.decentralized.cta import State
from fkl.basics.errors import require
from fkl.contract.held_samples import BatchSamples
from fkl.contract.star import Turn
from fkl.contract.world import Common
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import OnLinks, SameForAll


@dataclass(frozen=True)
class Message:
    """Message of an agent to one neighbour: q_ij (R, links, P). The neighbour moves its z_ji halfway to q_ij."""

    z: OnLinks | SameForAll


@dataclass(frozen=True)
class LinkDkla(Consensus):
    """In every iteration all agents solve their local problem and send each neighbour a message of its own.

    Parameters
    ----------
    rho : float
        DKLA's penalty of the augmented Lagrangian; half of the penalty in the paper on lossy networks.
    """

    label: ClassVar[str] = "DKLA on links"
    choices_reveal_data: ClassVar[bool] = False
    on_links: ClassVar[bool] = True

    rho: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.rho < np.inf, "rho", self.rho, "a number > 0")

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """Start from theta = z = 0, DKLA's theta = gamma = 0."""
        return State(self.zeros(common, agents)), Message(SameForAll(self.zeros(common)))

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Iteration k = t + 1: theta_i = argmin R_i(theta) + rho d_i |theta|^2 - (sum_j z_ij)'theta, and send q_ij."""
        c = self.lam / samples.agents + self.rho * inbox.degree
        theta = samples.minimise(c, inbox.sum("z"), own.theta)
        q = 4 * self.rho * inbox.on_links(theta) - inbox.held["z"]
        everyone = common.xp.ones(theta.shape[:2], np.bool_)
        return State(theta), Message(OnLinks(q)), everyone

    def keep(self, held: Array, came: Array) -> Array:
        """z_ij = (z_ij + q_ji) / 2 if q_ji was received: alpha = 1/2."""
        return (held + came) / 2

    def receive(
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Array]:
        """Nothing: z is in the inbox."""
        return own, own.theta
