"""NCO-OMS: every client selects among kernels by itself, without any messages.

The non-cooperative comparator of Li, Wu, Xu and King, On the Necessity of Collaboration for Online Model Selection with
Decentralized Data, NeurIPS 2024, and the authors' script NCO-OMS-2.R.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.federated.model_selection import ModelSelection, mirror_step, project_into_balls
from fkl.basics.random_streams import Role
from fkl.contract.star import Samples, Star, Turn
from fkl.contract.world import Array, Common, Outcome, World
from fkl.kernels.functions import OnFeatures
from fkl.kernels.traceable import namespace, traced


@dataclass
class Client:
    """theta (R, N, K, P), in the bank's precision, and log p (R, K, N)."""

    theta: Array
    log_p: Array


@dataclass(frozen=True)
class NcoOms(ModelSelection):
    """Every client runs FOMD-OMS alone. Parameters: see `ModelSelection`.

    With the rates of the authors' script, ``+as_published=nco_oms``, its error on naval and on wave_farm is 2.7 times
    smaller than with the theoretical rates, which are the default.
    """

    label: ClassVar[str] = "NCO-OMS"
    choices_reveal_data: ClassVar[bool] = False
    silent: ClassVar[bool] = True

    def start(self, common: Common, clients: int) -> tuple[None, Client]:
        """theta_ik = 0; the server holds nothing."""
        bank, xp = common.bank, common.xp
        R, N = bank.replicates, bank.kernels
        self.require_fits(common.dictionary)
        log_p = xp.array(xp.broadcast_to(self.first(common), (R, clients, N)))
        return None, Client(xp.zeros((R, N, clients, bank.width), bank.precision), log_p)

    def broadcast(self, common: Common, server: None, turn: Turn) -> None:
        """Nothing."""

    def client(
        self, common: Common, client: Client, down: None, samples: Samples, turn: Turn
    ) -> tuple[Client, None, Outcome]:
        """Draw A_1 to A_J, predict with A_1, and learn these."""
        bank, xp, N = common.bank, common.xp, common.bank.kernels
        index, chosen = self.draw(client.log_p, turn.vectors(Role.SELECTION, 1 + N))
        P = self.chances(client.log_p)
        here = samples.present.astype(np.float64)
        # Kernels that were not drawn keep their theta: their step is 0. 1 / P_i makes the others' steps unbiased.
        steps = xp.where(chosen, xp.asarray(self.steps(N, turn.t, 1)) / P, 0.0)
        f, squared_norm, theta = bank.descend(samples.x, samples.y, here, client.theta, steps, 0.0)
        loss = (f - samples.y[:, None]) ** 2
        c, eta = xp.where(chosen, loss / P, 0.0), self.rate(N, common.rounds, 1)
        after = mirror_step(client.log_p, c, eta, xp.asarray(self.complexities(N)))
        log_p = xp.where(samples.present[:, None], after, client.log_p)
        y_hat, of_first = (xp.take_along_axis(all_, index[..., None], axis=-1)[..., 0] for all_ in (f, squared_norm))
        outcome = Outcome(y_hat, loss + self.lam * squared_norm, lambda: of_first)
        moved = chosen & samples.present[:, None]  # another projection would round the theta of absent clients
        return Client(projected_where(moved, theta, xp.asarray(self.bounds(N))), log_p), None, outcome

    def server(self, common: Common, server: None, up: None, share: Array, turn: Turn) -> None:
        """Learns nothing."""

    def functions(self, world: World, state: Star, t: int) -> tuple[OnFeatures, ...]:
        """For every client its own kernel that is drawn in round t."""
        client: Client = state.client
        _, K, N = client.log_p.shape
        uniform = Turn(t, 0, world.streams, range(K)).vectors(Role.SELECTION, 1 + N)
        index, _ = self.draw(client.log_p, uniform)
        return OnFeatures.of_replicates(world.bank, client.theta.swapaxes(1, 2), index[..., None] == np.arange(N))


def projected_where(chosen: NDArray[np.bool_], theta: Array, U: Array) -> Array:
    """Theta (R, N, K, P), overwritten: the chosen kernels (R, K, N) are projected on balls of radius U (N,)."""
    if traced(theta):  # whose number is not known
        every = project_into_balls(theta, U[:, None])
        return namespace(theta).where(chosen.swapaxes(1, 2)[..., None], every, theta)
    r, k, i = chosen.nonzero()
    theta[r, i, k] = project_into_balls(theta[r, i, k], U[i])
    return theta
