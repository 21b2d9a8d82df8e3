"""Fed-POE: every client mixes the model that all clients learn together with the model that it learns alone.

Ghari and Shen, Personalized Federated Learning with Mixture of Models for Adaptive Prediction and Model Fine-Tuning,
NeurIPS 2024, for convex models (regression on random features), and the authors' scripts air.py and wec.py.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import softmax
from fkl.algorithms.federated.descent import (
    MOST_STEPS,
    DescentServer,
    Gradients,
    MixtureDescent,
    Parameters,
    SeenKernels,
)
from fkl.basics.arrays import Array
from fkl.basics.keys import key
from fkl.contract.star import Samples, StarState, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.kernels.functions import OnFeatures


@dataclass
class MixtureClient:
    """State of a client: its own learner, with theta in the bank's precision, and the logarithms of all weights.

    Parameters
    ----------
    theta : (R, N, K, P)
    log_w : (R, K, 2, N)
        Weights of the server's kernels, and of the client's own kernels.
    log_ab : (R, K, 2)
        Weights of the two mixtures: a for the server's kernels, b for the client's own.
    """

    theta: Array
    log_w: Array
    log_ab: Array


@dataclass(frozen=True)
class FedPoe(MixtureDescent):
    """Every client combines two mixtures of all kernels, one with the server's theta and one with its own theta.

    The server's kernels are learned as in OFMKL-Avg, the client's own kernels by the same steps on its own samples.
    Weights of kernels are multiplied by exp(-eta_k L_i), weights of the mixtures by exp(-eta_k l(f, y)). A client
    therefore does nearly as well as the better of learning together and learning alone.
    """

    label: ClassVar[str] = "Fed-POE"
    choices_reveal_data: ClassVar[bool] = False
    unbiased: ClassVar[bool] = True
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True

    eta_k: float | None = key(None, "Learning rate of all weights; None for 1 / sqrt(T).", above=0)
    local_steps: int = key(
        1,
        "Gradient steps on the sample of the round, from the server's theta, before their sum is sent, and also "
        "from the client's own theta.",
        min=1,
        max=MOST_STEPS,
    )

    def start(self, common: Common, clients: int) -> tuple[DescentServer, MixtureClient]:
        """Start with theta = 0 and weights of 1 everywhere."""
        bank, xp = common.bank, common.xp
        R, N, P = bank.replicates, bank.kernels, bank.width
        client = MixtureClient(
            xp.zeros((R, N, clients, P), bank.precision), xp.zeros((R, clients, 2, N)), xp.zeros((R, clients, 2))
        )
        return DescentServer(xp.zeros((R, N, P))), client

    def client_answer(
        self, common: Common, client: MixtureClient, down: Parameters, seen: SeenKernels, samples: Samples, turn: Turn
    ) -> tuple[MixtureClient, Gradients, Outcome]:
        """Predict with both mixtures, update weights, learn alone, and send gradients at the server's theta."""
        # Predictions and norms of both, the server's theta and the client's own
        xp, y, (together, norm, weights) = common.xp, samples.y[:, None], seen
        alone, own_norm, own_theta = self.own_steps(common, samples, client.theta)
        f = xp.stack([together, alone], axis=2)  # (R, K, 2, N)
        norms = xp.stack([xp.broadcast_to(norm[:, None], alone.shape), own_norm], axis=2)
        # Two mixtures of N kernels, and the mixture of these two
        w, ab = softmax(client.log_w), softmax(client.log_ab)
        mixed = (w * f).sum(axis=-1)  # f_fed and f_loc, (R, K, 2)
        y_hat = (ab * mixed).sum(axis=-1)
        # Losses of all kernels and of both mixtures, which lower the weights of present clients
        loss = self.pointwise.value(f, y[..., None]) + self.lam * norms
        eta_k = common.rounds**-0.5 if self.eta_k is None else self.eta_k
        here = eta_k * samples.present[:, None]
        of_mixtures = self.pointwise.value(mixed, y)
        learned = MixtureClient(own_theta, client.log_w - here[..., None] * loss, client.log_ab - here * of_mixtures)
        # Gradients at the server's theta only: the client's own theta has moved already
        gradients = Gradients(self.client_gradients(common, samples, down.theta.values, together, *weights))
        every = loss.reshape(*loss.shape[:2], -1)
        return learned, gradients, Outcome(y_hat, every, lambda: (ab * (w * norms).sum(axis=-1)).sum(axis=-1))

    def log_weights(self, state: StarState) -> Array:
        """Log w of the server's kernels and of a client's own kernels, (R, K, 2, N)."""
        log_w: Array = state.client.log_w
        return log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """Decrease of log w_i in a round: eta_k L_i for the present clients."""
        assert outcome.loss is not None
        loss = outcome.loss.reshape(*outcome.loss.shape[:2], 2, -1)
        eta_k = 1 / np.sqrt(world.problem.rounds) if self.eta_k is None else self.eta_k
        return eta_k * world.present(t)[:, None, None] * loss

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """Every client's function, sum_i (a w_i theta_i + b v_i theta_ik)'z_i."""
        client: MixtureClient = state.client
        weights = softmax(client.log_ab)[..., None] * softmax(client.log_w)  # (R, K, 2, N)
        a, b = np.moveaxis(weights, 2, 0)[..., None]
        both = a * state.server.theta[:, None] + b * client.theta.swapaxes(1, 2)
        return OnFeatures.of_replicates(world.bank, both, np.ones(both.shape[:3]))
