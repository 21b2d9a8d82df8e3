"""What FedAdagrad, FedAdam and FedYogi share: the clients' mean change is a gradient of an adaptive method.

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar and McMahan, Adaptive Federated Optimization (ICLR 2021),
Algorithm 2.
"""

from dataclasses import dataclass

import numpy as np

from fkl.algorithms.local_training.fedavg import FedAvg, zeros
from fkl.basics.errors import require
from fkl.contract.world import Array, Common


@dataclass
class Server:
    """theta, and the moments m and v of the clients' mean change, (R, N, P)."""

    theta: Array
    m: Array
    v: Array


@dataclass(frozen=True)
class Adaptive(FedAvg):
    """m <- beta_1 m + (1 - beta_1) Delta, then v, then theta <- theta + eta_server m / (v^(1/2) + tau).

    Delta is the clients' mean change of theta. The methods differ in their rule of v, which begins at tau^2. There is
    no correction of the first rounds' bias.

    Parameters
    ----------
    beta_1 : float
        Decay of m.
    tau : float
        Added to the root of v: the smaller, the more adaptive.
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    eta_server: float = 0.1
    beta_1: float = 0.9
    tau: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.beta_1 < 1, "beta_1", self.beta_1, "a number >= 0 and < 1")
        require(0 < self.tau < np.inf, "tau", self.tau, "a number > 0")

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """All theta and m are 0, v = tau^2."""
        nothing = zeros(common)
        return Server(nothing, nothing, nothing + self.tau**2), None

    def rule(self, server: Server, change: Array) -> Server:
        """Algorithm 2."""
        m = self.beta_1 * server.m + (1 - self.beta_1) * change
        v = self.second_moment(server.v, change**2)
        return Server(server.theta + self.eta_server * m / (v**0.5 + self.tau), m, v)

    def second_moment(self, v: Array, square: Array) -> Array:
        """The next v, from the square of the clients' mean change."""
        raise NotImplementedError
