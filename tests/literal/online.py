"""What a run of one learner on a stream returns; equation numbers in its methods are Ghari and Shen's (2023)."""

from dataclasses import dataclass, field

import numpy as np
from literal.common import Array


@dataclass
class OnlineRun:
    """What one replicate of a method did."""

    y_hat: Array
    """(T,) predictions."""
    squared_norm: Array
    """(T,), sum over the kernels that predicted of (their weight in the prediction) |theta_i|^2; 0 without theta."""
    loss: Array
    """(T, N) losses of the kernels' own predictions, NaN where the method did not compute them."""
    theta: Array = field(default_factory=lambda: np.full(0, np.nan))
    """(N, 2D) parameters after the last round; the coefficients (N, T) where a method has no features."""
    log_w: Array = field(default_factory=lambda: np.full(0, np.nan))
    """(N,) logarithms of the kernels' weights after the last round."""
    log_u: Array = field(default_factory=lambda: np.full(0, np.nan))
    """(N,) the same of the nodes' weights, of methods that keep them."""

    @classmethod
    def empty(cls, rounds: int, kernels: int) -> "OnlineRun":
        """Nothing done yet."""
        return cls(np.full(rounds, np.nan), np.full(rounds, np.nan), np.full((rounds, kernels), np.nan))


def log_sum(log_w: Array) -> float:
    """Logarithm of the sum of w from the logarithms of w."""
    return float(max(log_w) + np.log(sum(np.exp(log_w - max(log_w)))))
