"""SCAFFOLD: control variates correct the drift of clients' steps.

Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, SCAFFOLD: Stochastic Controlled Averaging for Federated Learning
(ICML 2020), Algorithm 1 with option II.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from fkl.algorithms.local_training.fedavg import FedAvg, FullBatches, Loss, zeros
from fkl.contract.star import Turn
from fkl.contract.world import Array, Common
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Down:
    """The server's theta and its control variate."""

    theta: SameForAll
    control: SameForAll


@dataclass(frozen=True)
class Up:
    """A client's changes of theta and of its control variate."""

    theta: PerClient
    control: PerClient


@dataclass
class Server:
    """theta and the control variate c, (R, N, P)."""

    theta: Array
    control: Array


@dataclass
class Client:
    """Control variate c_k of each client, (R, K, N, P)."""

    control: Array


@dataclass(frozen=True)
class Scaffold(FedAvg):
    """theta_k <- theta_k - eta (grad F_k(theta_k) + c - c_k), with control variates c of the server, c_k of client k.

    After E steps c_k <- c_k - c + (theta - theta_k) / (E eta), and clients send both changes. The server takes a step
    along the mean change of theta, and adds |S| / K times the mean change of the clients' control variates to c, where
    S are the clients of the round. All control variates are 0 at first. Absent clients keep theirs.

    Parameters
    ----------
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "SCAFFOLD"
    uses_sample_once: ClassVar[bool] = False
    message_of_one_sample: ClassVar[bool] = False

    def start(self, common: Common, clients: int) -> tuple[Server, Client]:
        """All theta, c and c_k are 0."""
        return Server(zeros(common), zeros(common)), Client(zeros(common, clients))

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Down:
        """Theta and c to all clients."""
        return Down(SameForAll(server.theta), SameForAll(server.control))

    def client(self, common: Common, client: Client, down: Down, samples: Any, turn: Turn) -> tuple[Client, Up, Any]:
        """Predict with the server's theta, take the corrected steps, and send both changes."""
        c = down.control.values[:, None]
        loss = self.local_loss(common, down, samples, c - client.control)
        change = loss.dense(self.change(common, loss))
        control = client.control - c - change / (self.local_steps * self.rate(common))
        up = Up(PerClient(change), PerClient(control - client.control))
        here = samples.present[:, None, None]
        return Client(common.xp.where(here, control, client.control)), up, loss.outcome(loss.at_server)

    def correction(self, loss: Loss, point: Array) -> Array:
        """The difference c - c_k."""
        return loss.at_own

    def server(self, common: Common, server: Server, up: Up, share: Array, turn: Turn) -> Server:
        """Learn from the mean changes of theta and of the control variates."""
        control = server.control + turn.together / common.clients * up.control.mean(share)
        return Server(server.theta + self.eta_server * up.theta.mean(share), control)


@dataclass(frozen=True)
class ScaffoldOnBatches(FullBatches, Scaffold):
    """SCAFFOLD with all samples of a client in each step. Parameters: see `Scaffold` and `Batched`."""

    label: ClassVar[str] = "SCAFFOLD, batches"
