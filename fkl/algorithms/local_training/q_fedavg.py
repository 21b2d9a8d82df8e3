"""q-FedAvg: clients with a larger loss count for more.

Li, Sanjabi, Beirami and Smith, Fair Resource Allocation in Federated Learning (ICLR 2020), Algorithm 2.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from fkl.algorithms.federated.descent import Server
from fkl.algorithms.local_training.fedavg import FedAvg, FullBatches
from fkl.basics.errors import require
from fkl.contract.star import Turn
from fkl.contract.world import Array, Common
from fkl.wire.payloads import FeatureGradients, PerClient

LEAST_LOSS = 1e-10
"""Added to a loss, as in the authors' program, since a loss of 0 has no negative power."""


@dataclass(frozen=True)
class Up:
    """A client's change of theta, and the number by which the server divides the sum of changes, for each kernel."""

    theta: FeatureGradients | PerClient
    curvature: PerClient


@dataclass(frozen=True)
class QFedAvg(FedAvg):
    """theta <- theta + eta_server sum_k F_k^q (theta_k - theta) / sum_k h_k, which descends on sum_k F_k^(q + 1).

    h_k = q F_k^(q - 1) |theta_k - theta|^2 / eta + F_k^q, and F_k is the client's loss at the server's theta. These are
    the paper's Delta_k and h_k times eta, for L = 1 / eta. Each kernel has its own F_k and h_k.

    Parameters
    ----------
    q : float
        How much larger losses count; 0 is FedAvg.
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "q-FedAvg"

    q: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.q <= 100, "q", self.q, "a number from 0 to 100")

    def client(self, common: Common, client: None, down: Any, samples: Any, turn: Turn) -> tuple[None, Up, Any]:
        """Predict with the server's theta, take the steps, and send their sum and the curvature."""
        loss = self.local_loss(common, down, samples)
        change, F = self.change(common, loss), loss.value(loss.at_server) + LEAST_LOSS
        curvature = self.q * F ** (self.q - 1) * loss.squared_norm(change) / self.rate(common) + F**self.q
        up = Up(loss.message(F[..., None] ** self.q * change), PerClient(curvature))
        return None, up, loss.outcome(loss.at_server)

    def server(self, common: Common, server: Server, up: Up, share: Array, turn: Turn) -> Server:
        """The ratio of two means."""
        return self.rule(server, up.theta.mean(share) / up.curvature.mean(share)[..., None])


@dataclass(frozen=True)
class QFedAvgOnBatches(FullBatches, QFedAvg):
    """q-FedAvg with all samples of a client in each step. Parameters: see `QFedAvg` and `Batched`."""

    label: ClassVar[str] = "q-FedAvg, batches"
