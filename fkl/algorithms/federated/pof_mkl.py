"""POF-MKL: personalized online federated multi-kernel learning.

Ghari and Shen, Personalized Online Federated Learning with Multiple Kernels, NeurIPS 2022; equation numbers are theirs.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import array_namespace, mean_norm, softmax
from fkl.algorithms.federated.descent import DescentServer, Gradients, MixtureDescent, Parameters, SeenKernels
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.contract.star import Samples, StarState, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures


@dataclass
class WeightsClient:
    """State of a client: log w (R, K, N) of its own mixture of kernels."""

    log_w: Array


@dataclass(frozen=True)
class PofMkl(MixtureDescent):
    """Every client weights the kernels for itself and sends the server the gradients of one bin of kernels."""

    label: ClassVar[str] = "POF-MKL"
    unbiased: ClassVar[bool] = True

    per_client: ClassVar[tuple[str, ...]] = ("M",)

    M: int = key(
        1,
        "Kernels per bin: the largest number of kernels whose updates a client sends in a round, 1 to N.",
        min=1,
        must="an integer from 1 to kernels.N",
    )
    xi: float = key(1.0, "Exploration rate in (0, 1]; 1 draws bins uniformly.", above=0, max=1)
    eta_k: float | None = key(None, "Learning rate of the clients' weights; None for 1 / sqrt(T).", above=0)
    bins_by: str = key(
        "current",
        "Weights that define the bins if xi < 1: w_t, as in eq. (8), or w_{t+1}, which Algorithm 2 has computed "
        "by then.",
        choices=("current", "updated"),
    )

    @property
    def choices_reveal_data(self) -> bool:  # type: ignore[override]
        """Whether bins are drawn with weights that depend on all samples so far, and not uniformly."""
        return self.xi < 1

    @property
    def uses_sample_once(self) -> bool:  # type: ignore[override]
        """Whether bins do not reveal the weights, which depend on all samples of a client."""
        return not self.choices_reveal_data

    @property
    def message_of_one_sample(self) -> bool:  # type: ignore[override]
        """Whether bins do not depend on the weights, and so not on earlier samples."""
        return not self.choices_reveal_data

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse bins with more kernels than the dictionary has."""
        require(self.M <= kernels.N, "M", self.M, f"an integer from 1 to kernels.N={kernels.N}")

    def start(self, common: Common, clients: int) -> tuple[DescentServer, WeightsClient]:
        """Algorithm 2, Initialize: theta_i = 0, w_ik = 1."""
        bank, N = common.bank, common.dictionary.N
        self.require_fits(common.dictionary)
        theta = common.xp.zeros((bank.replicates, N, bank.width))
        return DescentServer(theta), WeightsClient(common.xp.zeros((bank.replicates, clients, N)))

    def gradient_weights(self, client: WeightsClient, turn: Turn) -> tuple[Array, NDArray[np.bool_]]:
        """Algorithm 1: draw a bin, whose gradients are divided by its probability."""
        chosen, p = choose_bin(client.log_w, self.M, self.xi, turn.uniform(Role.SELECTION))
        return chosen / p, chosen

    def client_answer(
        self, common: Common, client: WeightsClient, down: Parameters, seen: SeenKernels, samples: Samples, turn: Turn
    ) -> tuple[WeightsClient, Gradients, Outcome]:
        """Predict, update the kernels' weights, and send the gradients of one bin."""
        (f, norms, drawn), loss = seen, self.kernel_losses(seen, samples)  # eq. (5)
        w = softmax(client.log_w)
        outcome = Outcome((w * f).sum(axis=-1), loss, lambda: mean_norm(w, norms))  # eq. (6)
        eta_k = common.rounds**-0.5 if self.eta_k is None else self.eta_k
        updated = WeightsClient(client.log_w - eta_k * samples.present[:, None] * loss)  # eq. (7)
        if self.bins_by == "updated":
            drawn = self.gradient_weights(updated, turn)
        gradients = self.client_gradients(common, samples, down.theta.values, f, *drawn)  # eq. (9)
        return updated, Gradients(gradients), outcome

    def log_weights(self, state: StarState) -> Array:
        """Log w of every client's kernels, (R, K, N)."""
        log_w: Array = state.client.log_w
        return log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """Decrease of log w_ik in a round, eq. (7): eta_k L_ik for the present clients."""
        assert outcome.loss is not None
        eta_k = 1 / np.sqrt(world.problem.rounds) if self.eta_k is None else self.eta_k
        return eta_k * world.present(t)[:, None] * outcome.loss

    def functions(self, world: World, state: StarState, t: int) -> tuple[OnFeatures, ...]:
        """Every client's own mixture of the server's kernels."""
        return OnFeatures.of_replicates(world.bank, state.server.theta[:, None], softmax(state.client.log_w))


def choose_bin(log_w: Array, M: int, xi: float, uniform: Array) -> tuple[NDArray[np.bool_], Array]:
    """Algorithm 1: sort kernels by log_w (R, K, N), cut them into bins of M, and draw a bin by `uniform` (R, K).

    Returns whether kernel i is in the drawn bin, (R, K, N), and the bin's probability, (R, K, 1).
    """
    # Bins 0 to m - 1; the last one may have fewer than M kernels
    xp, N = array_namespace(log_w), log_w.shape[-1]
    m = -(-N // M)
    if xi == 1:  # bins are drawn uniformly, so the paper does not sort them
        drawn = xp.minimum((uniform * m).astype(xp.int64), m - 1)
        return xp.arange(N) // M == drawn[..., None], xp.full((*drawn.shape, 1), 1 / m)
    # Draw a bin with probability q, which grows with the weights of its kernels
    bin_of, q = bins_of_kernels(log_w, M, xi)
    drawn = xp.minimum((uniform[..., None] >= xp.cumsum(q, axis=-1)).sum(axis=-1), m - 1)
    return bin_of == drawn[..., None], xp.take_along_axis(q, drawn[..., None], axis=-1)


def bins_of_kernels(log_w: Array, M: int, xi: float) -> tuple[NDArray[np.int64], Array]:
    """The bin of each kernel, (R, K, N), and the probability of each of the m bins, (R, K, m), for sorted bins."""
    xp, N = array_namespace(log_w), log_w.shape[-1]
    m = -(-N // M)
    order = xp.argsort(-log_w, axis=-1, stable=True)
    w = xp.pad(xp.take_along_axis(softmax(log_w), order, axis=-1), ((0, 0), (0, 0), (0, m * M - N)))
    u = w.reshape(*w.shape[:-1], m, M).sum(axis=-1)
    q = (1 - xi) * u + xi / m  # eq. (8); the weights are normalised, so U = 1
    return xp.argsort(order, axis=-1) // M, q
