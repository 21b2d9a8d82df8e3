"""CTA: combine, then adapt: diffusion, the comparison of Xu et al., COKE, JMLR 22 (2021), section 5."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, World
from fkl.algorithms.decentralized.consensus import Consensus
from fkl.errors import require
from fkl.network import Heard


@dataclass
class State:
    """What the agents hold after an iteration.

    Parameters
    ----------
    theta : (R, K, P)
    heard : Heard
        theta of the neighbours.
    """

    theta: Array
    heard: Heard


@dataclass(frozen=True)
class Cta(Consensus):
    """Every agent averages its neighbours' theta with its own by Metropolis weights, then descends on R_i.

    Parameters
    ----------
    eta : float
        Step size.
    """

    label: ClassVar[str] = "CTA"

    eta: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.eta < np.inf, "eta", self.eta, "a number above 0")

    def init(self, world: World) -> State:
        """Start from theta = 0."""
        topology = self.graph(world)
        R, K, _, P = world.training.phi.shape
        return State(np.zeros((R, K, P)), world.channel.silence(topology, P))

    def step(self, world: World, state: State, t: int) -> tuple[State, Array]:
        """Iteration k = t + 1: broadcast, combine, adapt."""
        heard = world.channel.tell("theta", state.heard, state.theta, np.ones(state.theta.shape[:2], np.bool_))
        psi = heard.mix(state.theta)
        slope = world.loss.gradient(world.training, psi) + 2 * self.lam / heard.topology.agents * psi
        theta = psi - self.eta * slope
        return State(theta, heard), theta
