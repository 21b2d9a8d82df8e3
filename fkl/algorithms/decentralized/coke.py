"""COKE: communication-censored DKLA, Algorithm 2 of Xu et al., JMLR 22 (2021)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, World
from fkl.algorithms.decentralized.consensus import Message
from fkl.algorithms.decentralized.dkla import Dkla
from fkl.algorithms.decentralized.dkla import State as DklaState
from fkl.contract.graph import Agents
from fkl.contract.samples import BatchSamples
from fkl.contract.star import Turn
from fkl.contract.world import Common
from fkl.errors import require
from fkl.network.inbox import Inbox
from fkl.network.messages import Each, Quantised

CENSORED = ("norm", "squared_norm", "relative_norm")


@dataclass
class State(DklaState):
    """As DKLA's, beside an inbox that holds the neighbours' theta_hat.

    Parameters
    ----------
    theta_hat : (R, K, P)
        What each agent broadcast last.
    """

    theta_hat: Array


@dataclass(frozen=True)
class Coke(Dkla):
    """DKLA whose agents keep silent while theta has hardly moved since they last sent it.

    Parameters
    ----------
    v, mu : float
        Threshold h(k) = v mu^k.
    censored : {"norm", "squared_norm", "relative_norm"}
        What has to reach h(k): |xi|, as the text has it; |xi|^2, which the published transmissions agree with; or
        |xi| / |theta_hat|, an event trigger, which with mu = 1 asks for the same relative change at all times.
    bits : int or None
        Send xi with so many bits a scalar, in even steps over its range, in place of theta in full precision. It
        is the quantized xi that everyone, the sender too, adds to theta_hat.
    """

    label: ClassVar[str] = "COKE"
    choices_tell: ClassVar[bool] = True

    v: float = 0.5
    mu: float = 0.98
    censored: str = "norm"
    bits: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.v < np.inf, "v", self.v, "a number >= 0")
        require(0 < self.mu <= 1, "mu", self.mu, "a number > 0, at most 1")
        require(self.censored in CENSORED, "censored", self.censored, ", ".join(CENSORED))
        bits = self.bits
        require(bits is None or 2 <= bits <= 16, "bits", bits, "an integer from 2 to 16, or null")

    def init(self, world: World) -> Agents:
        """Refuse what a lossy network makes of differences."""
        lossless = self.bits is None or not world.channel.loses
        allowed = "null where network.loss is above 0, or links are not all up: a lost difference is never made up"
        require(lossless, "bits", self.bits, allowed)
        return super().init(world)

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """Algorithm 2, Initialize: theta = theta_hat = gamma = 0."""
        dkla, nothing = super().start(common, agents)
        return State(dkla.theta, dkla.gamma, self.zeros(common, agents)), nothing

    def send(  # type: ignore[override]
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Iteration k = t + 1: minimise beside the neighbours' theta_hat, and broadcast what is news."""
        theta_hat, xp = own.theta_hat, common.xp
        c = self.lam / samples.agents + self.rho * inbox.degree
        v = self.rho * (inbox.degree[:, None] * theta_hat + inbox.sum("theta")) - own.gamma
        theta = samples.minimise(c, v, own.theta)  # eq. (21a)
        xi = theta_hat - theta  # eq. (19)
        sends = self._news(xi, theta_hat) >= self.v * self.mu ** (turn.t + 1)  # eq. (20)
        payload = Each(theta) if self.bits is None else Quantised.nearest(-xi, self.bits)
        theta_hat = xp.where(sends[..., None], payload.upon(theta_hat), theta_hat)
        return State(theta, own.gamma, theta_hat), Message(payload), sends

    def receive(  # type: ignore[override]
        self, common: Common, own: State, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[State, Array]:
        """Move the dual variable along the neighbours' theta_hat, as new as they made it."""
        gamma = own.gamma + self.rho * (inbox.degree[:, None] * own.theta_hat - inbox.sum("theta"))  # eq. (21b)
        return State(own.theta, gamma, own.theta_hat), own.theta

    def _news(self, xi: Array, theta_hat: Array) -> NDArray[np.float64]:
        """What is compared with h(k), (R, K)."""
        norm = np.linalg.norm(xi, axis=-1)
        if self.censored == "squared_norm":
            return norm**2
        if self.censored == "relative_norm":
            # Whoever has never sent has news, unless theta is still 0.
            return norm / np.maximum(np.linalg.norm(theta_hat, axis=-1), np.finfo(np.float64).tiny)
        return norm
