"""POF-MKL: personalized online federated multi-kernel learning.

Ghari and Shen, Personalized Online Federated Learning with Multiple Kernels, NeurIPS 2022; equation numbers are theirs.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Outcome, World, mean_gradient, mixture_norm, softmax, squared_norms
from fkl.algorithms.federated.descent import Descent
from fkl.errors import require
from fkl.streams import Role


@dataclass
class State:
    """Global theta (R, N, P) at the server, log w (R, K, N) at the clients."""

    theta: Array
    log_w: Array


@dataclass(frozen=True)
class PofMkl(Descent):
    """Every client weighs the kernels for itself and sends the server the update of one bin of them.

    Parameters
    ----------
    M : int
        Kernels a bin: the most whose update a client sends in a round, 1 to N.
    xi : float
        Exploration rate in (0, 1]; 1 draws bins uniformly.
    eta_k : float or None
        Learning rate of the clients' weights; None for 1 / sqrt(T).
    bins_by : {"current", "updated"}
        Weights that bins are made and drawn by where xi < 1: w_t, as eq. (8) and Algorithm 1 write them, or w_{t+1},
        which Algorithm 2 has at hand by then, as its update (7) stands a line before its call of Algorithm 1.
    eta, step_factor, lam
        See `Descent`.

    Raises
    ------
    fkl.errors.BadValue
    """

    label: ClassVar[str] = "POF-MKL"

    M: int = 1
    xi: float = 1.0
    eta_k: float | None = None
    bins_by: str = "current"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.M >= 1, "M", self.M, "a whole number from 1 to kernels.N")
        require(0 < self.xi <= 1, "xi", self.xi, "a number in (0, 1]")
        require(self.eta_k is None or 0 < self.eta_k < np.inf, "eta_k", self.eta_k, "a number above 0, or null")
        require(self.bins_by in ("current", "updated"), "bins_by", self.bins_by, "current or updated")

    def init(self, world: World) -> State:
        """Algorithm 2, Initialize: theta_i = 0, w_ik = 1."""
        bank = world.bank
        require(bank.kernels >= self.M, "M", self.M, f"a whole number from 1 to kernels.N={bank.kernels}")
        return State(
            theta=np.zeros((bank.replicates, bank.kernels, bank.width)),
            log_w=np.zeros((bank.replicates, world.problem.clients, bank.kernels)),
        )

    def step(self, world: World, state: State, t: int) -> tuple[State, Outcome]:
        """One round of Algorithm 2."""
        bank, channel = world.bank, world.channel
        x, y, share = world.problem.round(t)
        eta = self.rate(world.problem.rounds)
        eta_k = self.eta_k if self.eta_k is not None else float(1 / np.sqrt(world.problem.rounds))

        theta = channel.broadcast("theta", state.theta, scalars=state.theta[0].size)
        f = bank.predict(x, theta)  # eq. (5)
        w = softmax(state.log_w)
        y_hat = (w * f).sum(axis=-1)  # eq. (6)

        # With many clients arrays (R, K, N) are most of the memory, so those not needed again are written over.
        residual = np.subtract(f, y[:, None], out=f)
        loss = residual**2
        loss += self.lam * squared_norms(theta)[:, None]
        log_w = state.log_w
        uniform = world.streams.uniform(Role.SELECTION, t, y.size)
        if self.bins_by == "current":
            chosen, p = choose_bin(log_w, self.M, self.xi, uniform)
        log_w -= eta_k * (share > 0)[:, None] * loss  # eq. (7)
        if self.bins_by == "updated":
            chosen, p = choose_bin(log_w, self.M, self.xi, uniform)

        weight = chosen * (share[:, None] / p)
        residual *= 2
        residual *= weight
        update = channel.uplink("theta", residual, scalars=chosen.sum(axis=-1) * bank.width)  # eq. (9)
        gradient = mean_gradient(bank, x, update, weight, theta, self.lam)
        outcome = Outcome(y_hat, loss, lambda: mixture_norm(w, theta))
        return State(theta - self.step_factor * eta * gradient, log_w), outcome  # eq. (10)


def choose_bin(log_w: Array, M: int, xi: float, uniform: Array) -> tuple[NDArray[np.bool_], Array]:
    """Algorithm 1: sort kernels by weight, cut them into bins of M, draw one bin.

    Parameters
    ----------
    log_w : (R, K, N)
        Logarithms of the weights.
    M : int
        Kernels a bin.
    xi : float
        Exploration rate.
    uniform : (R, K)
        One number in [0, 1) a client: the draw.

    Returns
    -------
    chosen : (R, K, N) bool
        Whether kernel i lies in the drawn bin.
    p : (R, K, 1)
        Probability of the drawn bin.
    """
    N = log_w.shape[-1]
    m = -(-N // M)
    if xi == 1:  # bins are drawn uniformly, so the paper does not sort them
        drawn = np.minimum((uniform * m).astype(np.int64), m - 1)
        return np.arange(N) // M == drawn[..., None], np.full((*drawn.shape, 1), 1 / m)
    order = np.argsort(-log_w, axis=-1, kind="stable")
    u = np.add.reduceat(np.take_along_axis(softmax(log_w), order, axis=-1), np.arange(0, N, M), axis=-1)
    q = (1 - xi) * u + xi / m  # eq. (8); the weights are normalised, so U = 1
    drawn = np.minimum((uniform[..., None] >= np.cumsum(q, axis=-1)).sum(axis=-1), m - 1)
    bin_of = np.empty_like(order)
    np.put_along_axis(bin_of, order, np.arange(N)[None, None] // M, axis=-1)
    return bin_of == drawn[..., None], np.take_along_axis(q, drawn[..., None], axis=-1)
