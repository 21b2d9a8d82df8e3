"""vM-KOFL: one vector of kernel weights for all clients, kept at the server.

Hong and Chae, Communication-Efficient Randomized Algorithm for Multi-Kernel Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, Outcome, World, mean_gradient, mixture_norm, softmax, squared_norms
from fkl.algorithms.federated.descent import Descent


@dataclass
class State:
    """Global theta (R, N, P) and log w (R, N), both at the server."""

    theta: Array
    log_w: Array


@dataclass(frozen=True)
class VmKofl(Descent):
    """Theta as in OFMKL-Avg; w_i <- w_i exp(-eta mean_k L_ik) at the server. Parameters: see `Descent`."""

    label: ClassVar[str] = "vM-KOFL"

    def init(self, world: World) -> State:
        """Theta_i = 0, w_i = 1."""
        bank = world.bank
        shape = (bank.replicates, bank.kernels)
        return State(theta=np.zeros((*shape, bank.width)), log_w=np.zeros(shape))

    def step(self, world: World, state: State, t: int) -> tuple[State, Outcome]:
        """One round: all kernels' updates and losses go up."""
        bank, channel = world.bank, world.channel
        x, y, share = world.problem.round(t)
        eta = self.rate(world.problem.rounds)

        theta = channel.broadcast("theta", state.theta, scalars=state.theta[0].size)
        w = channel.broadcast("weights", softmax(state.log_w), scalars=bank.kernels)[:, None]
        f = bank.predict(x, theta)
        y_hat = (w * f).sum(axis=-1)

        residual = f - y[:, None]
        loss = channel.uplink("losses", residual**2 + self.lam * squared_norms(theta)[:, None], scalars=bank.kernels)
        log_w = state.log_w - eta * np.matmul(share, loss)

        weight = share[None, :, None]
        update = channel.uplink("theta", 2 * residual * weight, scalars=theta[0].size)
        gradient = mean_gradient(bank, x, update, weight, theta, self.lam)
        outcome = Outcome(y_hat, loss, lambda: mixture_norm(np.broadcast_to(w, f.shape), theta))
        return State(theta - self.step_factor * eta * gradient, log_w), outcome
