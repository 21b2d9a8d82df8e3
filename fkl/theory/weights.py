"""Exponential weights: sums over rounds from which their bounds are computed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array


@dataclass
class WeightSums:
    """Sums so far for a forecaster with w_{i,t+1} proportional to w_{i,t} exp(-rate_t L_{i,t}), w_1 uniform.

    Losses are multiplied by rate_t, so sums with a constant rate can be divided by it.

    Parameters
    ----------
    mixture, best : (T, K)
        sum rate L(f_hat), and min_i sum rate L_i.
    kernels : (K, N)
        sum rate L_i over the rounds so far.
    spread : (T, K)
        sum (rate (max_i L_i - min_i L_i))^2 / 8.
    largest : float
        Largest loss.
    """

    mixture: Array
    best: Array
    kernels: Array
    spread: Array
    largest: float = 0.0

    @classmethod
    def before_first_round(cls, rounds: int, clients: int, kernels: int) -> "WeightSums":
        """Sums before the first round."""
        none = np.zeros((rounds, clients))
        return cls(none, none.copy(), np.zeros((clients, kernels)), none.copy())

    def enter(self, t: int, loss: Array, of_mixture: Array, rate: float, present: NDArray[np.bool_]) -> None:
        """Add round t: losses (K, N), and losses of the mixture (K,)."""
        spread = (rate * (loss.max(axis=-1) - loss.min(axis=-1))) ** 2 / 8
        self.kernels += present[:, None] * rate * loss
        self.best[t] = self.kernels.min(axis=-1)
        for sums, term in ((self.mixture, rate * of_mixture), (self.spread, spread)):
            sums[t] = (sums[t - 1] if t else 0) + present * term
        if present.any():
            self.largest = max(self.largest, float(loss[present].max()))

    @property
    def regret(self) -> Array:
        """Regret so far: sum rate L(f_hat) - min_i sum rate L_i, (T, K)."""
        return self.mixture - self.best
