"""OFMKL-Avg: the plain mean of all kernels, each learned by Fed-OMD.

Baseline of Ghari and Shen (NeurIPS 2022, section 4).
Fed-OMD: Mitra, Hassani and Pappas, Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.base import mixture_norm, squared_norms
from fkl.algorithms.federated.descent import Descent
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Array, Common, Outcome
from fkl.network.messages import FeatureGradients, Shared


@dataclass(frozen=True)
class Down:
    """The server's theta (R, N, P), to all clients."""

    theta: Shared


@dataclass(frozen=True)
class Up:
    """A client's gradients of all kernels."""

    theta: FeatureGradients


@dataclass
class Server:
    """theta (R, N, P)."""

    theta: Array


@dataclass(frozen=True)
class OfmklAvg(Descent):
    """Every client sends the update of every kernel; predictions weigh all kernels alike. Parameters: see `Descent`."""

    label: ClassVar[str] = "OFMKL-Avg"

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """theta_i = 0; clients hold nothing."""
        bank = common.bank
        return Server(common.xp.zeros((bank.replicates, bank.kernels, bank.width))), None

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Down:
        """Theta to all clients."""
        return Down(Shared(server.theta))

    def client(
        self, common: Common, client: None, down: Down, samples: Samples, turn: Turn
    ) -> tuple[None, Up, Outcome]:
        """Predict with the mean of all kernels, and send grad L_ik of each."""
        bank, theta = common.bank, down.theta.values
        f = bank.predict(samples.x, theta)
        residual = f - samples.y[:, None]
        loss = residual**2 + self.lam * squared_norms(theta)[:, None]
        even = common.xp.full_like(f, 1 / bank.kernels)
        outcome = Outcome(f.mean(axis=-1), loss, lambda: mixture_norm(even, theta))
        return None, Up(FeatureGradients(bank, samples.x, 2 * residual, theta, self.lam)), outcome

    def server(self, common: Common, server: Server, up: Up, share: Array, turn: Turn) -> Server:
        """theta_i <- theta_i - eta (1/K) sum_k grad L_ik."""
        return Server(server.theta - self.step_factor * self.rate(common.rounds) * up.theta.mean(share))
