"""COKE: communication-censored DKLA, Algorithm 2 of Xu et al., JMLR 22 (2021)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, World
from fkl.algorithms.decentralized.dkla import Dkla
from fkl.algorithms.decentralized.dkla import State as DklaState
from fkl.errors import require

CENSORED = ("norm", "squared_norm", "relative_norm")


@dataclass
class State(DklaState):
    """As DKLA's, where `heard` holds the neighbours' theta_hat.

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

    v: float = 0.5
    mu: float = 0.98
    censored: str = "norm"
    bits: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.v < np.inf, "v", self.v, "a number from 0")
        require(0 < self.mu <= 1, "mu", self.mu, "a number above 0, at most 1")
        require(self.censored in CENSORED, "censored", self.censored, ", ".join(CENSORED))
        bits = self.bits
        require(bits is None or 2 <= bits <= 16, "bits", bits, "a whole number from 2 to 16, or null")

    def init(self, world: World) -> State:
        """Start from theta = theta_hat = gamma = 0."""
        lossless = self.bits is None or world.channel.network.loss == 0
        require(lossless, "bits", self.bits, "null where network.loss is above 0: a lost difference is never made up")
        start = super().init(world)
        return State(start.theta, start.gamma, start.heard, start.minimise, np.zeros_like(start.theta))

    def step(self, world: World, state: State, t: int) -> tuple[State, Array]:  # type: ignore[override]
        """Iteration k = t + 1: every agent minimises, broadcasts if it has news, and moves its dual variable."""
        gamma, heard, theta_hat = state.gamma, state.heard, state.theta_hat
        degree = heard.topology.degree[:, None]

        theta = state.minimise(self.rho * (degree * theta_hat + heard.sum()) - gamma, state.theta)  # eq. (21a)
        xi = theta_hat - theta  # eq. (19)
        sends = self._news(xi, theta_hat) >= self.v * self.mu ** (t + 1)  # eq. (20)
        theta_hat = np.where(sends[..., None], self._message(theta, theta_hat, xi), theta_hat)
        heard = world.channel.tell("theta", heard, theta_hat, sends, self.bits)
        gamma = gamma + self.rho * (degree * theta_hat - heard.sum())  # eq. (21b)

        return State(theta, gamma, heard, state.minimise, theta_hat), theta

    def _news(self, xi: Array, theta_hat: Array) -> NDArray[np.float64]:
        """What is compared with h(k), (R, K)."""
        norm = np.linalg.norm(xi, axis=-1)
        if self.censored == "squared_norm":
            return norm**2
        if self.censored == "relative_norm":
            # Whoever has never sent has news, unless theta is still 0.
            return norm / np.maximum(np.linalg.norm(theta_hat, axis=-1), np.finfo(np.float64).tiny)
        return norm

    def _message(self, theta: Array, theta_hat: Array, xi: Array) -> Array:
        """What the neighbours make of a message, (R, K, P)."""
        if self.bits is None:
            return theta
        return theta_hat - quantized(xi, self.bits)


def quantized(xi: Array, bits: int) -> Array:
    """Nearest of 2^bits - 1 even steps from -max |xi| to max |xi| of each vector, 0 among them."""
    steps = 2 ** (bits - 1) - 1
    unit = np.abs(xi).max(axis=-1, keepdims=True) / steps
    return unit * np.rint(np.divide(xi, unit, out=np.zeros_like(xi), where=unit > 0))
