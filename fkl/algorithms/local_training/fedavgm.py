"""FedAvgM: federated averaging with momentum at the server.

Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification (2019).
"""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.local_training.fedavg import FedAvg, FullBatches, zeros
from fkl.basics.errors import require
from fkl.contract.world import Array, Common


@dataclass
class Server:
    """theta and its momentum v, (R, N, P)."""

    theta: Array
    momentum: Array


@dataclass(frozen=True)
class FedAvgM(FedAvg):
    """v <- beta v + mean_k (theta_k - theta), theta <- theta + eta_server v.

    Parameters
    ----------
    beta : float
        Momentum of the server; 0 is FedAvg.
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "FedAvgM"

    beta: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.beta < 1, "beta", self.beta, "a number >= 0 and < 1")

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """All theta and v are 0."""
        return Server(zeros(common), zeros(common)), None

    def rule(self, server: Server, change: Array) -> Server:
        """A step along the momentum."""
        momentum = self.beta * server.momentum + change
        return Server(server.theta + self.eta_server * momentum, momentum)


@dataclass(frozen=True)
class FedAvgMOnBatches(FullBatches, FedAvgM):
    """FedAvgM with all samples of a client in each step. Parameters: see `FedAvgM` and `Batched`."""

    label: ClassVar[str] = "FedAvgM, batches"
