"""OFMKL-Avg: the plain mean of all kernels, each learned by Fed-OMD.

Baseline of Ghari and Shen (NeurIPS 2022, section 4).
Fed-OMD: Mitra, Hassani and Pappas, Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, Outcome, World, mean_gradient, mixture_norm, squared_norms
from fkl.algorithms.federated.descent import Descent


@dataclass
class State:
    """Global theta (R, N, P)."""

    theta: Array


@dataclass(frozen=True)
class OfmklAvg(Descent):
    """Every client sends the update of every kernel; predictions weigh all kernels alike. Parameters: see `Descent`."""

    label: ClassVar[str] = "OFMKL-Avg"

    def init(self, world: World) -> State:
        """Theta_i = 0."""
        bank = world.bank
        return State(np.zeros((bank.replicates, bank.kernels, bank.width)))

    def step(self, world: World, state: State, t: int) -> tuple[State, Outcome]:
        """theta_i <- theta_i - eta (1/K) sum_k grad L_ik."""
        bank, channel = world.bank, world.channel
        x, y, share = world.problem.round(t)
        theta = channel.broadcast("theta", state.theta, scalars=state.theta[0].size)
        f = bank.predict(x, theta)
        y_hat = f.mean(axis=-1)

        residual = f - y[:, None]
        loss = residual**2 + self.lam * squared_norms(theta)[:, None]
        weight = share[None, :, None]
        update = channel.uplink("theta", 2 * residual * weight, scalars=theta[0].size)
        gradient = mean_gradient(bank, x, update, weight, theta, self.lam)
        step = self.step_factor * self.rate(world.problem.rounds)
        outcome = Outcome(y_hat, loss, lambda: mixture_norm(np.full_like(f, 1 / bank.kernels), theta))
        return State(theta - step * gradient), outcome
