"""Ditto: FedAvg, and every client has a model of its own near the server's, with which it predicts.

Li, Hu, Beirami and Smith, Ditto: Fair and Robust Federated Learning Through Personalization (ICML 2021), Algorithm 1.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fkl.algorithms.federated.descent import Server
from fkl.algorithms.local_training.fedavg import Change, FedAvg, FullBatches, Loss, mean_of_kernels, zeros
from fkl.basics.errors import require
from fkl.contract.star import Star, Turn
from fkl.contract.world import Array, Common, World
from fkl.kernels.functions import OnFeatures


@dataclass
class Own:
    """Theta of each client's own model, (R, K, N, P)."""

    theta: Array


@dataclass(frozen=True)
class Personal(FedAvg):
    """Methods whose clients predict with their own models.

    Parameters
    ----------
    lam_k : float
        The papers' lambda: weight of the distance between a client's own model and the model that it shares.
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    personal: ClassVar[bool] = True

    lam_k: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lam_k < np.inf, "lam_k", self.lam_k, "a number >= 0")

    def start(self, common: Common, clients: int) -> tuple[Server, Own]:
        """All theta are 0."""
        return Server(zeros(common)), Own(zeros(common, clients))

    def client(self, common: Common, client: Own, down: Any, samples: Any, turn: Turn) -> tuple[Own, Change, Any]:
        """Predict with the own model, learn, and send the change of the shared one."""
        loss = self.local_loss(common, down, samples, client.theta)
        change, own = self.change_and_own(common, loss)
        theta = common.xp.where(samples.present[:, None, None], loss.dense(own), client.theta)
        return Own(theta), Change(loss.message(change)), loss.outcome(loss.at_own)

    def change_and_own(self, common: Common, loss: Loss) -> tuple[Array, Array]:
        """The change of the shared model, and the client's next own model."""
        raise NotImplementedError

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """The mean of every client's own kernels."""
        return mean_of_kernels(world, state.client.theta)


@dataclass(frozen=True)
class Ditto(Personal):
    """FedAvg, and for every client v_k <- v_k - eta (grad F_k(v_k) + lam_k (v_k - theta)), E steps in a round.

    Clients keep v_k and predict with it; they send nothing about it. With lam_k = 0 each client learns alone.

    Parameters
    ----------
    lam_k : float
        The paper's lambda: the larger, the nearer v_k is to the server's theta.
    eta, eta_server, local_steps, lam : see `FedAvg`
    """

    label: ClassVar[str] = "Ditto"

    def change_and_own(self, common: Common, loss: Loss) -> tuple[Array, Array]:
        """The steps of FedAvg, and those of v_k."""
        own = loss.at_own
        for _ in range(self.local_steps):
            own = own - self.rate(common) * (loss.gradient(own) + self.lam_k * (own - loss.at_server))
        return self.change(common, loss), own


@dataclass(frozen=True)
class DittoOnBatches(FullBatches, Ditto):
    """The equations of algo=ditto, where each step is on the mean loss of all samples of a client."""

    label: ClassVar[str] = "Ditto, batches"
