"""FedAvg: every client takes several steps from the server's model, and the server averages.

McMahan, Moore, Ramage, Hampson and Aguera y Arcas, Communication-Efficient Learning of Deep Networks from Decentralized
Data (AISTATS 2017). The server's rate is that of Reddi et al., Adaptive Federated Optimization (ICLR 2021).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fkl.algorithms.base import Batched
from fkl.algorithms.federated.descent import MOST_STEPS, Parameters, Server
from fkl.algorithms.local_training.losses import LossOfAll, LossOfSample
from fkl.basics.errors import require
from fkl.contract.batches import OnBatches
from fkl.contract.star import Federated, Star, Turn
from fkl.contract.world import Array, Common, World
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.kernels.losses import LOSSES
from fkl.tasks.batch import StarTask
from fkl.tasks.task import Task
from fkl.wire.payloads import FeatureGradients, PerClient, SameForAll

Loss = LossOfSample | LossOfAll


@dataclass(frozen=True)
class Change:
    """The change of theta by a client's steps."""

    theta: FeatureGradients | PerClient


@dataclass
class Kept:
    """State of clients with batches: the method's, and the theta (R, K, P) with which they predict."""

    own: Any
    theta: Array


def zeros(common: Common, *clients: int) -> Array:
    """Zeros (R, N, P), or (R, K, N, P) for this number of clients."""
    bank = common.bank
    return common.xp.zeros((bank.replicates, *clients, bank.kernels, bank.width))


def mean_of_kernels(world: World, theta: Array) -> tuple[OnFeatures, ...]:
    """The plain mean of all kernels with these theta, (R, K or 1, N, P)."""
    return OnFeatures.of_replicates(world.bank, theta, np.full(theta.shape[:3], 1 / theta.shape[2]))


@dataclass(frozen=True)
class FedAvg(Federated):
    """theta <- theta + eta_server mean_k (theta_k - theta), with theta_k from E = local_steps steps of client k.

    A step is theta_k <- theta_k - eta grad F_k(theta_k), and begins at the server's theta. F_k is the loss of the
    round's sample, (theta'z - y)^2 + lam |theta|^2 of each kernel. A client predicts with the plain mean of all
    kernels, before it learns. With eta_server = 1 this is OFMKL-Avg with as many local steps.

    Parameters
    ----------
    eta : float or None
        Learning rate of the clients' steps; None for 1 / sqrt(T).
    eta_server : float
        Learning rate of the server.
    local_steps : int
        Steps E of a client in a round, all on the samples of the round.
    lam : float
        Regularisation lambda of the loss.
    """

    label: ClassVar[str] = "FedAvg"
    choices_reveal_data: ClassVar[bool] = False
    personal: ClassVar[bool] = False
    """Whether each client has a model of its own."""
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True
    not_traceable: ClassVar[str] = ""

    eta: float | None = None
    eta_server: float = 1.0
    local_steps: int = 5
    lam: float = 1e-3

    def __post_init__(self) -> None:
        require(self.eta is None or 0 < self.eta < np.inf, "eta", self.eta, "a number > 0, or null for 1/sqrt(T)")
        require(0 < self.eta_server < np.inf, "eta_server", self.eta_server, "a number > 0")
        require(1 <= self.local_steps <= MOST_STEPS, "local_steps", self.local_steps, f"1 to {MOST_STEPS}")
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")

    def rate(self, common: Common) -> float:
        """Eta."""
        return self.eta if self.eta is not None else float(1 / np.sqrt(common.rounds))

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """All theta are 0; clients hold nothing."""
        return Server(zeros(common)), None

    def local_loss(self, common: Common, down: Any, samples: Any, own: Array | None = None) -> Loss:
        """A client's loss, where the server's theta is known and perhaps a vector of its own."""
        return LossOfSample(common, samples, down.theta.values, self.lam, own)

    def broadcast(self, common: Common, server: Any, turn: Turn) -> Any:
        """Theta to all clients."""
        return Parameters(SameForAll(server.theta))

    def client(self, common: Common, client: Any, down: Any, samples: Any, turn: Turn) -> tuple[Any, Any, Any]:
        """Predict with the server's theta, take the steps, and send their sum."""
        loss = self.local_loss(common, down, samples)
        return client, Change(loss.message(self.change(common, loss))), loss.outcome(loss.at_server)

    def change(self, common: Common, loss: Loss) -> Array:
        """The sum of a client's steps from the server's theta."""
        point = loss.at_server
        for _ in range(self.local_steps):
            point = point - self.rate(common) * (loss.gradient(point) + self.correction(loss, point))
        return point - loss.at_server

    def correction(self, loss: Loss, point: Array) -> Array | float:
        """A term that a method adds to the gradient at a point."""
        return 0.0

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """Learn from the clients' mean change."""
        return self.rule(server, up.theta.mean(share))

    def rule(self, server: Any, change: Array) -> Any:
        """The server's rule: a step along the mean change (R, N, P)."""
        return Server(server.theta + self.eta_server * change)

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """The mean of the server's kernels."""
        return mean_of_kernels(world, state.server.theta[:, None])


@dataclass(frozen=True)
class FullBatches(Batched, OnBatches):
    """The same methods where clients have all their samples from the start: each step uses all of a client's samples.

    There is one kernel, and F_k(theta) = mean loss of client k's samples + (lam / K) |theta|^2. The sum of all F_k is
    that of COKE and DKLA (COKE's eq. 26). Clients predict with the theta that they had when their last round began.

    Parameters
    ----------
    iterations : int
        Rounds; in each, clients take `local_steps` steps.
    """

    task: ClassVar[type[Task]] = StarTask
    personal: ClassVar[bool]
    losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)
    uses_sample_once: ClassVar[bool] = False
    message_of_one_sample: ClassVar[bool] = False
    not_traceable: ClassVar[str] = ""

    eta: float | None = 0.5
    iterations: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        super(OnBatches, self).__post_init__()  # type: ignore[misc]  # of the method, which comes after this class

    def require_fits(self, kernels: Dictionary) -> None:
        """One kernel."""
        require(kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel")

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """As the method's; clients predict with theta = 0."""
        self.require_fits(common.dictionary)
        server, own = super().start(common, clients)
        return server, Kept(own, zeros(common, clients)[:, :, 0])

    def client(self, common: Common, client: Any, down: Any, samples: Any, turn: Turn) -> tuple[Any, Any, Any]:
        """As the method's; absent clients keep their theta."""
        own, up, theta = super().client(common, client.own, down, samples, turn)
        theta = common.xp.where(samples.present[:, None], theta, client.theta)
        return Kept(own, theta), up, theta

    def local_loss(self, common: Common, down: Any, samples: Any, own: Array | None = None) -> Loss:
        """A client's mean loss, with its part of the regulariser."""
        return LossOfAll(common, samples, down.theta.values, self.lam / common.clients, own)

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """The server's theta as its clients last received it, or every client's own of a personal method."""
        theta = state.client.theta[:, :, None]
        if not self.personal and theta.shape[1] > 1:  # older copies are no models
            last = [np.flatnonzero(here).max(initial=-1) for here in world.problem.present[:t].T]
            theta = theta[:, [int(np.argmax(last))]]
        return mean_of_kernels(world, theta)


@dataclass(frozen=True)
class FedAvgOnBatches(FullBatches, FedAvg):
    """The equations of algo=fedavg, where each step is on the mean loss of all samples of a client."""

    label: ClassVar[str] = "FedAvg, batches"
