"""FedAdam: federated averaging with Adam at the server.

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar and McMahan, Adaptive Federated Optimization (ICLR 2021),
Algorithm 2.
"""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.local_training.adaptive import Adaptive
from fkl.algorithms.local_training.fedavg import FullBatches
from fkl.basics.errors import require
from fkl.contract.world import Array


@dataclass(frozen=True)
class FedAdam(Adaptive):
    """v <- beta_2 v + (1 - beta_2) Delta^2.

    Parameters
    ----------
    beta_2 : float
        Decay of v.
    beta_1, tau : see `Adaptive`
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "FedAdam"

    beta_2: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.beta_2 < 1, "beta_2", self.beta_2, "a number >= 0 and < 1")

    def second_moment(self, v: Array, square: Array) -> Array:
        """A moving mean of squares."""
        return self.beta_2 * v + (1 - self.beta_2) * square


@dataclass(frozen=True)
class FedAdamOnBatches(FullBatches, FedAdam):
    """FedAdam with all samples of a client in each step. Parameters: see `FedAdam` and `Batched`."""

    label: ClassVar[str] = "FedAdam, batches"
