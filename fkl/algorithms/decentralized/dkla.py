"""DKLA: decentralized kernel learning by ADMM, Algorithm 1 of Xu et al., COKE, JMLR 22 (2021)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, World
from fkl.algorithms.decentralized.consensus import Consensus
from fkl.errors import require
from fkl.kernels.losses import Minimiser
from fkl.network import Heard


@dataclass
class State:
    """What the agents hold after an iteration.

    Parameters
    ----------
    theta, gamma : (R, K, P)
        Primal and dual variables.
    heard : Heard
        theta of the neighbours.
    minimise : callable
        argmin of R_i(theta) + rho |N_i| |theta|^2 - v_i'theta for v (R, K, P) and a start.
    """

    theta: Array
    gamma: Array
    heard: Heard
    minimise: Minimiser


@dataclass(frozen=True)
class Dkla(Consensus):
    """All agents solve their local problem and broadcast theta in every iteration.

    Parameters
    ----------
    rho : float
        Penalty of the augmented Lagrangian, the step size of the dual variables.
    """

    label: ClassVar[str] = "DKLA"

    rho: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.rho < np.inf, "rho", self.rho, "a number above 0")

    def init(self, world: World) -> State:
        """Start from theta = gamma = 0."""
        topology = self.graph(world)
        rows = world.training
        minimise = world.loss.minimiser(rows, self.lam / topology.agents + self.rho * topology.degree)
        R, K, _, P = rows.phi.shape
        return State(np.zeros((R, K, P)), np.zeros((R, K, P)), world.channel.silence(topology, P), minimise)

    def step(self, world: World, state: State, t: int) -> tuple[State, Array]:
        """Iteration k = t + 1: every agent minimises, broadcasts and moves its dual variable."""
        theta, gamma, heard = state.theta, state.gamma, state.heard
        degree = heard.topology.degree[:, None]

        theta = state.minimise(self.rho * (degree * theta + heard.sum()) - gamma, theta)  # eq. (18a)
        heard = world.channel.tell("theta", heard, theta, np.ones(theta.shape[:2], np.bool_))
        gamma = gamma + self.rho * (degree * theta - heard.sum())  # eq. (18b)

        return State(theta, gamma, heard, state.minimise), theta
