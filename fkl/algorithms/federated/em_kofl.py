"""eM-KOFL: the server draws one kernel a round; only that kernel's parameters travel.

Hong and Chae, Communication-Efficient Randomized Algorithm for Multi-Kernel Online Federated Learning (2021).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Outcome, World, softmax
from fkl.algorithms.federated.descent import Descent
from fkl.errors import require
from fkl.streams import Role

PREDICTORS = ("average", "copy")
LOSSES = ("mean", "sum")


@dataclass
class State:
    """Clients' own theta (R, N, K, P), in the bank's precision, and the server's log w (R, N)."""

    theta: Array
    log_w: Array


@dataclass(frozen=True)
class EmKofl(Descent):
    """Clients learn all kernels on their own; their copies of the drawn one become their average.

    A round: the server draws kernel I by its weights and announces it, averages the clients' copies of theta_I, and the
    clients take the average over and predict with it. Then all clients learn all kernels from their sample, each
    starting from its own copies, and send the kernels' losses. So do the authors' published script and an
    independent one in R (differences.md of POF-MKL's paper).

    Parameters
    ----------
    predictor : {"average", "copy"}
        What the clients predict with: the average of the round, or each its own copy, which is then averaged only after
        it has learned from the round's sample.
    losses : {"mean", "sum"}
        What the server's weights shrink by: w_i <- w_i exp(-eta_w mean_k L_ik), as vM-KOFL does, or the sum over k.
    weight_factor : float
        Multiplies eta where weights are updated: eta_w = weight_factor * eta.
    eta, step_factor, lam
        See `Descent`.

    Raises
    ------
    fkl.errors.BadValue
    """

    label: ClassVar[str] = "eM-KOFL"

    predictor: str = "average"
    losses: str = "mean"
    weight_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.predictor in PREDICTORS, "predictor", self.predictor, "average or copy")
        require(self.losses in LOSSES, "losses", self.losses, "mean or sum")
        require(0 < self.weight_factor < np.inf, "weight_factor", self.weight_factor, "a number above 0")

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

        if self.predictor == "average":
            _average(world, state.theta, index, share)
        f, squared_norm = bank.descend(x, y, share, state.theta, self.step_factor * eta, self.lam)
        y_hat = f[each, :, index]
        loss = channel.uplink("losses", (f - y[:, None]) ** 2 + self.lam * squared_norm, scalars=bank.kernels)
        if self.predictor == "copy":
            _average(world, state.theta, index, share)

        total = 1 if self.losses == "mean" else (share > 0).sum()
        log_w = state.log_w - self.weight_factor * eta * total * np.matmul(share, loss)
        return State(state.theta, log_w), Outcome(y_hat, loss, lambda: squared_norm[each, :, index])


def _average(world: World, theta: Array, index: NDArray[np.int64], share: Array) -> None:
    """Let the clients that are present send their copies of the drawn kernel and take over the average."""
    bank, channel = world.bank, world.channel
    each = np.arange(bank.replicates)
    sent = channel.uplink("theta", theta[each, index], scalars=bank.width)
    average = channel.broadcast("theta", np.matmul(share, sent.astype(np.float64)), scalars=bank.width)
    here = share[:, None] > 0  # who is absent hears nothing
    theta[each, index] = np.where(here, average[:, None], sent)
