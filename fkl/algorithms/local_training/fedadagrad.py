"""FedAdagrad: federated averaging with Adagrad at the server.

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar and McMahan, Adaptive Federated Optimization (ICLR 2021),
Algorithm 2.
"""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.local_training.adaptive import Adaptive
from fkl.algorithms.local_training.fedavg import FullBatches
from fkl.contract.world import Array


@dataclass(frozen=True)
class FedAdagrad(Adaptive):
    """v <- v + Delta^2.

    Parameters
    ----------
    beta_1, tau : see `Adaptive`
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "FedAdagrad"

    beta_1: float = 0.0

    def second_moment(self, v: Array, square: Array) -> Array:
        """The sum of squares."""
        return v + square


@dataclass(frozen=True)
class FedAdagradOnBatches(FullBatches, FedAdagrad):
    """FedAdagrad with all samples of a client in each step. Parameters: see `FedAdagrad` and `Batched`."""

    label: ClassVar[str] = "FedAdagrad, batches"
