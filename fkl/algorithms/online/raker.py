"""Raker: every kernel of the dictionary learns from every sample, in its random features.

Shen, Chen and Giannakis, Random Feature-based Online Multi-kernel Learning in Environments with Unknown Dynamics,
JMLR 20 (2019).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, Outcome, World, softmax
from fkl.algorithms.online.learner import Learner, Played, falling_weights, samples
from fkl.basics.errors import require
from fkl.kernels.functions import OnFeatures


@dataclass
class State:
    """theta (R, N, P) and log w (R, N)."""

    theta: Array
    log_w: Array
    played: Played | None = None


@dataclass(frozen=True)
class Raker(Learner):
    """theta_i <- theta_i - eta_t grad L_i and w_i <- w_i exp(-eta_t L_i), L_i = (f_i - y)^2 + lam |theta_i|^2.

    Parameters
    ----------
    eta : float
        As in `Learner`.
    lam : float
        Regularisation lambda.
    """

    label: ClassVar[str] = "Raker"
    not_traceable: ClassVar[str] = ""
    unbiased: ClassVar[bool] = True

    lam: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")

    def init(self, world: World) -> State:
        """theta_i = 0, w_i = 1."""
        self.require_one(world)
        bank = world.bank
        shape = (bank.replicates, bank.kernels)
        return State(np.zeros((*shape, bank.width), bank.precision), np.zeros(shape))

    def play(self, world: World, state: State, rounds: slice) -> State:
        """The kernels are independent, so each learns the block alone; their mixture follows from the losses."""
        x, y = samples(world, rounds)
        eta = self.rates(rounds)
        f, squared_norm, theta = world.bank.follow(x, y, eta, self.lam, state.theta)
        loss = (f - y[:, None]) ** 2 + self.lam * squared_norm
        log_w, after = falling_weights(state.log_w, eta[:, None] * loss)
        w = softmax(log_w)
        played = Played((w * f).sum(axis=-1), (w * squared_norm).sum(axis=-1), loss)
        return State(theta, after, played)

    def log_weights(self, state: State) -> Array:
        """Of the kernels, (R, N)."""
        return state.log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """The sum of eta_t L_i over the samples of the round: one, or one of each client if samples are pooled."""
        assert outcome.loss is not None
        return (self._declared_rates(world, t)[:, None] * outcome.loss).sum(axis=1)

    def declared_step(self, world: World, theta: Array, t: int) -> Array:
        """Gradient steps from theta (R, N, P) on the samples of round t, one after another."""
        x, y, _ = world.problem.round(t)
        z, rates, after = world.bank.features(x), self._declared_rates(world, t), theta
        for k, target in enumerate(y):
            residual = (z[:, :, k] * after).sum(axis=-1, keepdims=True) - target
            after = after - rates[k] * (2 * residual * z[:, :, k] + 2 * self.lam * after)
        return after - theta

    def _declared_rates(self, world: World, t: int) -> Array:
        clients = world.problem.clients
        rates: Array = self.eta / np.sqrt(np.arange(t * clients, (t + 1) * clients) + 1)
        return rates

    def functions(self, world: World, state: State, t: int) -> tuple[OnFeatures, ...]:
        """The mixture of all kernels."""
        return OnFeatures.of_replicates(world.bank, state.theta[:, None], softmax(state.log_w)[:, None])
