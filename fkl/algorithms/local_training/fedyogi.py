"""FedYogi: federated averaging with Yogi at the server.

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar and McMahan, Adaptive Federated Optimization (ICLR 2021),
Algorithm 2.
"""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.base import namespace
from fkl.algorithms.local_training.fedadam import FedAdam
from fkl.algorithms.local_training.fedavg import FullBatches
from fkl.contract.world import Array


@dataclass(frozen=True)
class FedYogi(FedAdam):
    """v <- v - (1 - beta_2) Delta^2 sign(v - Delta^2).

    Parameters
    ----------
    beta_2 : see `FedAdam`
    beta_1, tau : see `Adaptive`
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "FedYogi"

    def second_moment(self, v: Array, square: Array) -> Array:
        """A sum of signed squares, which changes slowly where v is large."""
        return v - (1 - self.beta_2) * square * namespace(v).sign(v - square)


@dataclass(frozen=True)
class FedYogiOnBatches(FullBatches, FedYogi):
    """FedYogi with all samples of a client in each step. Parameters: see `FedYogi` and `Batched`."""

    label: ClassVar[str] = "FedYogi, batches"
