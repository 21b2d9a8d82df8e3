"""FedProx: clients' steps are pulled back to the server's model.

Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, Federated Optimization in Heterogeneous Networks (MLSys 2020).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.local_training.fedavg import FedAvg, FullBatches, Loss
from fkl.basics.errors import require
from fkl.contract.world import Array


@dataclass(frozen=True)
class FedProx(FedAvg):
    """Clients descend on F_k(theta_k) + (mu / 2) |theta_k - theta|^2, with theta of the server.

    The first step of a round begins at theta, so with one local step this is FedAvg.

    Parameters
    ----------
    mu : float
        Weight of the proximal term; 0 is FedAvg.
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "FedProx"

    mu: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.mu < np.inf, "mu", self.mu, "a number >= 0")

    def correction(self, loss: Loss, point: Array) -> Array:
        """The gradient of the proximal term."""
        return self.mu * (point - loss.at_server)


@dataclass(frozen=True)
class FedProxOnBatches(FullBatches, FedProx):
    """FedProx with all samples of a client in each step. Parameters: see `FedProx` and `Batched`."""

    label: ClassVar[str] = "FedProx, batches"
