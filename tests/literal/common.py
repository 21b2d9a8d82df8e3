"""What the literal methods share: the feature map, one kernel's loss and its gradient, and what a run returns."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Arrays = list[Array]
Near = list[list[int]]
"""Each agent's neighbours."""


@dataclass
class Run:
    """What one replicate of a method did. Entries of absent clients are NaN (0 in `uplink` and `downlink`)."""

    y_hat: Array
    """(T, K) predictions."""
    loss: Array
    """(T, K, N) losses of the kernels' own predictions."""
    squared_norm: Array
    """(T, K), |f_hat|^2 of each client's predictor."""
    uplink: NDArray[np.int64]
    downlink: NDArray[np.int64]
    """(T, K) scalars that each client sent and received."""
    theta: Array = field(default_factory=lambda: np.zeros(0))
    """Parameters after the last round: (N, 2D), or (N, K, 2D) where clients keep their own."""
    log_w: Array = field(default_factory=lambda: np.zeros(0))
    """Logarithms of the weights after the last round: (N,), or (K, N) where clients keep their own."""

    @classmethod
    def empty(cls, rounds: int, clients: int, kernels: int) -> "Run":
        """Nothing done yet."""
        shape = (rounds, clients)
        return cls(
            y_hat=np.full(shape, np.nan),
            loss=np.full((*shape, kernels), np.nan),
            squared_norm=np.full(shape, np.nan),
            uplink=np.zeros(shape, np.int64),
            downlink=np.zeros(shape, np.int64),
        )


class Data(NamedTuple):
    """What one replicate of a method with a server is given.

    Parameters
    ----------
    x : (T, K, d)
    y : (T, K)
    present : (T, K) bool
        Absent clients neither predict nor learn nor send; averages are over those present.
    rho : (N or 1, d, D)
    scale : (N,)
    """

    x: Array
    y: Array
    present: Array
    rho: Array
    scale: Array

    def start(self, losses: int = 1) -> tuple[Arrays, Run, Arrays]:
        """Frequencies of the kernels, nothing done yet, with room for so many losses a kernel, and theta of 0."""
        omega = frequencies(self.rho, self.scale)
        out = Run.empty(*self.y.shape, losses * len(omega))
        return omega, out, [np.zeros(2 * one.shape[1]) for one in omega]

    def here(self, t: int) -> list[int]:
        """Clients that are present in a round."""
        return [k for k in range(self.y.shape[1]) if self.present[t, k]]


def frequencies(rho: Array, scale: Array) -> list[Array]:
    """Return the frequencies (d, D) of each kernel, from one replicate's draw (N or 1, d, D) and the scales."""
    return [np.asarray(rho[i if len(rho) > 1 else 0], np.float64) * float(scale[i]) for i in range(len(scale))]


def feature_vector(omega: Array, x: Array) -> Array:
    """Eq. (4): D^-1/2 [sin(rho_1'x) .. sin(rho_D'x), cos(rho_1'x) .. cos(rho_D'x)] of one kernel."""
    angle = np.asarray(x, np.float64) @ omega
    return np.concatenate([np.sin(angle), np.cos(angle)]) / np.sqrt(omega.shape[1])


def loss(theta: Array, z: Array, y: float, lam: float) -> float:
    """L = (theta'z - y)^2 + lam |theta|^2."""
    return float((theta @ z - y) ** 2 + lam * (theta @ theta))


def gradient(theta: Array, z: Array, y: float, lam: float) -> Array:
    """Gradient of `loss` with respect to theta."""
    return 2 * (theta @ z - y) * z + 2 * lam * theta


def normalised(log_w: Array) -> Array:
    """w_i / sum_j w_j from the logarithms of w."""
    w = np.exp(log_w - max(log_w))
    return w / sum(w)


def draw(pmf: list[float], u: float) -> int:
    """Index drawn from a probability mass function by its inverse, at u in [0, 1)."""
    below = 0.0
    for index, probability in enumerate(pmf):
        below += probability
        if u < below:
            return index
    return len(pmf) - 1


def draw_next(pmf: list[float], u: float) -> int:
    """Right neighbour of what `draw` draws, of the last one itself: a sum that stops one term early."""
    return min(draw(pmf, u) + 1, len(pmf) - 1)
