"""eM-KOFL: the server draws one kernel a round; only that kernel's parameters travel.

Hong and Chae, Communication-Efficient Randomized Algorithm for Multi-Kernel Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.base import Array, Outcome, World, softmax
from fkl.algorithms.federated.descent import Descent
from fkl.errors import require
from fkl.streams import Role


@dataclass
class State:
    """Clients' own theta (R, N, K, P), in the bank's precision, and the server's log w (R, N)."""

    theta: Array
    log_w: Array


@dataclass(frozen=True)
class EmKofl(Descent):
    """Clients learn all kernels on their own; what the drawn kernel learned is averaged.

    Parameters
    ----------
    losses : {"mean", "sum"}
        What the server's weights shrink by: w_i <- w_i exp(-eta mean_k L_ik), as vM-KOFL does, or the sum over k.
    eta, step_factor, lam
        See `Descent`.

    Raises
    ------
    fkl.errors.BadValue
    """

    label: ClassVar[str] = "eM-KOFL"

    losses: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.losses in ("mean", "sum"), "losses", self.losses, "mean or sum")

    def init(self, world: World) -> State:
        """Theta_ik = 0, w_i = 1."""
        bank = world.bank
        shape = (bank.replicates, bank.kernels)
        return State(theta=np.zeros((*shape, world.problem.clients, bank.width), bank.precision), log_w=np.zeros(shape))

    def step(self, world: World, state: State, t: int) -> tuple[State, Outcome]:
        """One round; theta is changed in place."""
        bank, channel = world.bank, world.channel
        x, y, share = world.problem.round(t)
        eta = self.rate(world.problem.rounds)
        each = np.arange(bank.replicates)

        p = softmax(state.log_w)
        drawn = (world.streams.uniform(Role.SELECTION, t, 1) >= np.cumsum(p, axis=-1)).sum(axis=-1)
        index = channel.broadcast("index", np.minimum(drawn, bank.kernels - 1), scalars=1)

        f, squared_norm = bank.descend(x, y, share, state.theta, self.step_factor * eta, self.lam)
        y_hat = f[each, :, index]
        loss = channel.uplink("losses", (f - y[:, None]) ** 2 + self.lam * squared_norm, scalars=bank.kernels)

        sent = channel.uplink("theta", state.theta[each, index], scalars=bank.width)
        average = channel.broadcast("theta", np.matmul(share, sent.astype(np.float64)), scalars=bank.width)
        here = share[:, None] > 0  # who is absent hears nothing
        state.theta[each, index] = np.where(here, average[:, None], sent)

        total = 1 if self.losses == "mean" else (share > 0).sum()
        log_w = state.log_w - eta * total * np.matmul(share, loss)
        return State(state.theta, log_w), Outcome(y_hat, loss, lambda: squared_norm[each, :, index])
