"""Exponential weights: the sums over rounds from which their bounds and their identity follow."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fkl.contract.world import Array
from fkl.theory.base import Identity, log_mean_exp

LARGEST_RESIDUAL = 1e-7
"""Of the identity of exponential weights, for sums of about 1: rounding of double precision leaves 1e-13 to 1e-10."""


@dataclass
class WeightSums:
    """Sums by round of a forecaster with w_{i,t+1} proportional to w_{i,t} exp(-rate_t L_{i,t}), w_1 uniform.

    All are multiplied by rate_t, so a constant rate divides them again.

    Parameters
    ----------
    mixture, best : (T, K)
        sum rate L(f_hat), and min_i sum rate L_i.
    kernels : (K, N)
        sum rate L_i over the rounds so far.
    mix_loss : (T, K)
        sum m_t with m_t = -ln sum_i p_i exp(-rate L_i).
    spread : (T, K)
        sum (rate (max_i L_i - min_i L_i))^2 / 8.
    largest : float
        Largest loss.
    """

    mixture: Array
    best: Array
    kernels: Array
    mix_loss: Array
    spread: Array
    largest: float = 0.0

    @classmethod
    def of(cls, rounds: int, clients: int, kernels: int) -> "WeightSums":
        """No round yet."""
        none = np.zeros((rounds, clients))
        return cls(none, none.copy(), np.zeros((clients, kernels)), none.copy(), none.copy())

    def enter(
        self, t: int, log_w: Array, loss: Array, of_mixture: Array, rate: float, present: NDArray[np.bool_]
    ) -> None:
        """Add round t: log w before it and losses, (K, N), and losses of the mixture (K,)."""
        m = log_mean_exp(log_w) - log_mean_exp(log_w - rate * loss)
        spread = (rate * (loss.max(axis=-1) - loss.min(axis=-1))) ** 2 / 8
        self.kernels += present[:, None] * rate * loss
        self.best[t] = self.kernels.min(axis=-1)
        for sums, term in ((self.mixture, rate * of_mixture), (self.mix_loss, m), (self.spread, spread)):
            sums[t] = (sums[t - 1] if t else 0) + present * term
        if present.any():
            self.largest = max(self.largest, float(loss[present].max()))

    @property
    def regret(self) -> Array:
        """Regret so far: sum rate L(f_hat) - min_i sum rate L_i, (T, K)."""
        return self.mixture - self.best

    def telescope(self, rate: float) -> Identity:
        """sum_t m_t = -ln((1/N) sum_i exp(-sum_t rate L_i)), in losses: divided by `rate`."""
        closed = -log_mean_exp(-self.kernels)
        apart = np.abs(self.mix_loss[-1] - closed)
        off = float((apart / (LARGEST_RESIDUAL * (rate + np.abs(closed)))).max())
        statement = "sum_t m_t = -(1/eta) ln((1/N) sum_i exp(-eta sum_t L_i)), m_t the mix loss of the run's weights"
        return Identity("exponential weights", statement, float(apart.max()) / rate, 0.0, off)
