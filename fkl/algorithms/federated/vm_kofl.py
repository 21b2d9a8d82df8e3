"""vM-KOFL: one vector of kernel weights for all clients, kept at the server.

Hong and Chae, Communication-Efficient Randomized Algorithm for Multi-Kernel Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.base import mixture_norm, softmax, squared_norms
from fkl.algorithms.federated.descent import Descent, LossesAndGradients
from fkl.contract.star import Samples, Star, Turn
from fkl.contract.world import Array, Common, Outcome, World
from fkl.kernels.functions import OnFeatures
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Down:
    """theta (R, N, P) and w (R, N), to all clients."""

    theta: SameForAll
    weights: SameForAll


@dataclass
class Server:
    """theta (R, N, P) and log w (R, N)."""

    theta: Array
    log_w: Array


@dataclass(frozen=True)
class VmKofl(Descent):
    """Theta as in OFMKL-Avg; w_i <- w_i exp(-eta mean_k L_ik) at the server. Parameters: see `Descent`."""

    label: ClassVar[str] = "vM-KOFL"
    choices_reveal_data: ClassVar[bool] = False
    unbiased: ClassVar[bool] = True
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """theta_i = 0, w_i = 1; clients hold nothing."""
        bank, xp = common.bank, common.xp
        shape = (bank.replicates, bank.kernels)
        return Server(xp.zeros((*shape, bank.width)), xp.zeros(shape)), None

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Down:
        """Theta and w to all clients."""
        return Down(SameForAll(server.theta), SameForAll(softmax(server.log_w)))

    def client(
        self, common: Common, client: None, down: Down, samples: Samples, turn: Turn
    ) -> tuple[None, LossesAndGradients, Outcome]:
        """Predict with the server's weights, and send the losses and gradients of all kernels."""
        bank, theta, w = common.bank, down.theta.values, down.weights.values[:, None]
        f = bank.predict(samples.x, theta)
        residual = f - samples.y[:, None]
        loss = residual**2 + self.lam * squared_norms(theta)[:, None]
        everyones = common.xp.broadcast_to(w, f.shape)
        outcome = Outcome((w * f).sum(axis=-1), loss, lambda: mixture_norm(everyones, theta))
        return None, LossesAndGradients(PerClient(loss), self.gradients(common, samples, theta, residual)), outcome

    def server(self, common: Common, server: Server, up: LossesAndGradients, share: Array, turn: Turn) -> Server:
        """theta_i <- theta_i - eta mean_k grad L_ik and w_i <- w_i exp(-eta mean_k L_ik)."""
        theta = super().server(common, server, up, share, turn).theta
        # Weights stay in logarithms: over many rounds they fall below all floating-point numbers.
        return Server(theta, server.log_w - self.rate(common.rounds) * up.losses.mean(share))

    def log_weights(self, state: Star) -> Array:
        """Of the server's kernels, (R, N)."""
        log_w: Array = state.server.log_w
        return log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """The rate times mean_k L_ik."""
        share = world.problem.round(t)[2]
        assert outcome.loss is not None
        return self.rate(world.problem.rounds) * (share[:, None] * outcome.loss).sum(axis=1)

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """The server's mixture of its kernels."""
        return OnFeatures.of_replicates(world.bank, state.server.theta[:, None], softmax(state.server.log_w)[:, None])
