"""FOMD-OMS: federated online mirror descent for online model selection, with J kernels per client down and up.

Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model Selection with Decentralized Data, NeurIPS 2024,
and the authors' script FOMD-OMS.R.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import squared_norms
from fkl.algorithms.federated.descent import LossesAndGradients
from fkl.algorithms.federated.model_selection import ModelSelection, mirror_step, project_into_balls
from fkl.basics.random_streams import Role
from fkl.contract.star import Samples, Star, Turn
from fkl.contract.world import Array, Common, Outcome, World
from fkl.kernels.functions import OnFeatures
from fkl.wire.payloads import FeatureGradients, PerClient, Selected


@dataclass(frozen=True)
class Down:
    """The theta_i of the kernels that the server drew for a client, and the number (R, K) of the one that predicts."""

    theta: Selected
    index: PerClient


@dataclass
class Server:
    """theta (R, N, P), log p (R, N), and how many clients there are."""

    theta: Array
    log_p: Array
    clients: int


@dataclass(frozen=True)
class FomdOms(ModelSelection):
    """The server draws J kernels for every client, and learns all kernels from the clients' messages about these.

    The predicting kernel is drawn by p, the others uniformly. A client computes J kernels, however many there are. The
    theoretical rates, which are the default, are small. With the rates of the authors' script,
    ``+as_published=fomd_oms``, its error on naval and on wave_farm is 26 times smaller. Parameters: see
    `ModelSelection`.
    """

    label: ClassVar[str] = "FOMD-OMS"
    choices_reveal_data: ClassVar[bool] = False
    uses_sample_once: ClassVar[bool] = True
    message_of_one_sample: ClassVar[bool] = True
    draws_for_clients: ClassVar[bool] = True

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """theta_i = 0; clients hold nothing."""
        bank, xp = common.bank, common.xp
        R, N = bank.replicates, bank.kernels
        self.require_fits(common.dictionary)
        log_p = xp.array(xp.broadcast_to(self.first(common), (R, N)))
        return Server(xp.zeros((R, N, bank.width)), log_p, clients), None

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Down:
        """A_1 ~ p, and A_2 to A_J uniformly from the others, with a new draw for each client."""
        bank, K = common.bank, server.clients
        uniform = turn.vectors(Role.SELECTION, K * (1 + bank.kernels)).reshape(bank.replicates, K, -1)
        index, chosen = self.draw(server.log_p[:, None], uniform)
        return Down(Selected(server.theta, chosen), PerClient(index))

    def client(
        self, common: Common, client: None, down: Down, samples: Samples, turn: Turn
    ) -> tuple[None, LossesAndGradients, Outcome]:
        """Predict with A_1, and send the losses and gradients of A_1 to A_J."""
        bank, xp = common.bank, common.xp
        theta, chosen, index = down.theta.values, down.theta.chosen, down.index.values[..., None]
        f = bank.predict(samples.x, theta)
        residual = f - samples.y[:, None]
        seen = xp.where(chosen, residual, 0.0)
        # The loss has no regulariser: balls of radius U_i bound theta, so the gradient is 2 (f - y) z.
        gradients = FeatureGradients(bank, samples.x, 2 * seen, xp.zeros_like(theta), chosen=chosen)
        squared_norm = xp.broadcast_to(squared_norms(theta)[:, None], f.shape)
        y_hat, of_first = (xp.take_along_axis(of_all, index, axis=-1)[..., 0] for of_all in (f, squared_norm))
        outcome = Outcome(y_hat, residual**2 + self.lam * squared_norm, lambda: of_first)
        return None, LossesAndGradients(PerClient(seen**2, chosen), gradients), outcome

    def server(self, common: Common, server: Server, up: LossesAndGradients, share: Array, turn: Turn) -> Server:
        """One mirror step of every theta_i and of p, from means over clients in which drawn kernels weigh 1 / P_i.

        theta_i <- Proj_{|theta| <= U_i} (theta_i - lambda_{t,i} (1/K) sum_k 1[i drawn for k] grad_ik / P_i)
        c_i = (1/K) sum_k 1[i drawn for k] l_ik / P_i, then `mirror_step`
        """
        N, K = common.bank.kernels, server.clients
        P = self.chances(server.log_p)
        steps = common.xp.asarray(self.steps(N, turn.t, K))
        # 1 / P_i makes the means unbiased: a kernel is drawn for a client with probability P_i
        theta = server.theta - (steps / P)[..., None] * up.theta.mean(share)
        c, eta = up.losses.mean(share) / P, self.rate(N, common.rounds, K)
        log_p = mirror_step(server.log_p, c, eta, common.xp.asarray(self.complexities(N)))
        return Server(project_into_balls(theta, common.xp.asarray(self.bounds(N))), log_p, K)

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """For every client the server's kernel that is drawn for it in round t."""
        down = self.broadcast(world.common, state.server, Turn(t, 0, world.streams, range(1)))
        one_of_all = down.index.values[..., None] == np.arange(world.bank.kernels)
        return OnFeatures.of_replicates(world.bank, state.server.theta[:, None], one_of_all)
