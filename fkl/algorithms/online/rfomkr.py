"""RFOMKR: online multi-kernel regression in random features, discounting the kernels' weights.

Sahoo, Hoi and Li, Large Scale Online Multiple Kernel Regression with Application to Time-Series Prediction,
ACM TKDD 13 (2019).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, Outcome, World, softmax
from fkl.algorithms.online.learner import Learner, Played, falling_weights, samples
from fkl.algorithms.online.raker import State
from fkl.kernels.functions import OnFeatures
from fkl.kernels.traceable import namespace


@dataclass(frozen=True)
class Rfomkr(Learner):
    """theta_i <- theta_i - 2 eta_t (f_i - y) z_i and w_i <- w_i 0.5^((f_i - y)^2), from w_i = 1/N.

    Parameters
    ----------
    eta : float
        As in `Learner`.
    normalised : bool
        Divide the weights by their sum for prediction. The paper of graph-aided OMKL leaves that out: its published
        errors of RFOMKR are therefore ten times those of every other method.
    """

    label: ClassVar[str] = "RFOMKR"
    not_traceable: ClassVar[str] = ""
    lam: ClassVar[float] = 0.0

    normalised: bool = True

    def init(self, world: World) -> State:
        """theta_i = 0, w_i = 1 / N."""
        self.require_one(world)
        bank = world.bank
        shape = (bank.replicates, bank.kernels)
        return State(np.zeros((*shape, bank.width), bank.precision), np.full(shape, -np.log(bank.kernels)))

    def play(self, world: World, state: State, rounds: slice) -> State:
        """Each kernel learns the block alone; their mixture follows from the losses."""
        x, y = samples(world, rounds)
        f, squared_norm, theta = world.bank.follow(x, y, self.rates(rounds), 0.0, state.theta)
        loss = (f - y[:, None]) ** 2
        log_w, after = falling_weights(state.log_w, np.log(2) * loss)  # w_i 0.5^loss, in logarithms
        w = self._weights(log_w)
        return State(theta, after, Played((w * f).sum(axis=-1), (w * squared_norm).sum(axis=-1), loss))

    def log_weights(self, state: State) -> Array:
        """Of the kernels, (R or 1, N)."""
        return state.log_w

    def weight_falls(self, world: World, outcome: Outcome, t: int) -> Array:
        """The weights are multiplied by 0.5^L_i."""
        assert outcome.loss is not None
        return np.log(2) * outcome.loss[:, 0]

    def functions(self, world: World, state: State, t: int) -> tuple[OnFeatures, ...]:
        """The weighted sum of all kernels."""
        return OnFeatures.of_replicates(world.bank, state.theta[:, None], self._weights(state.log_w)[:, None])

    def _weights(self, log_w: Array) -> Array:
        return softmax(log_w) if self.normalised else namespace(log_w).exp(log_w)
