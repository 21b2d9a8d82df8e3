"""A method of my own: clients that keep silent while their predictions are good enough."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Outcome, World, mean_gradient, mixture_norm, squared_norms
from fkl.algorithms.federated.descent import Descent
from fkl.errors import require


@dataclass
class State:
    """What the server knows: theta (R, N, P) of R replicates and N kernels, with P features."""

    theta: NDArray[np.float64]


@dataclass(frozen=True)
class Quiet(Descent):
    """Online gradient descent on all kernels, whose mean predicts; a client that errs by less than `enough` is silent.

    Parameters
    ----------
    enough : float
        Error below which a client sends nothing.
    eta, step_factor, lam
        See `Descent`.
    """

    label: ClassVar[str] = "Quiet descent"

    enough: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.enough < np.inf, "enough", self.enough, "a number from 0")

    def init(self, world: World) -> State:
        """All theta are 0."""
        bank = world.bank
        return State(np.zeros((bank.replicates, bank.kernels, bank.width)))

    def step(self, world: World, state: State, t: int) -> tuple[State, Outcome]:
        """One round: predict, see the labels, learn from the clients that speak."""
        bank, channel = world.bank, world.channel
        x, y, share = world.problem.round(t)  # (K, d), (K,), each client's weight in a mean

        theta = channel.broadcast("theta", state.theta, scalars=state.theta[0].size)
        f = bank.predict(x, theta)  # (R, K, N)
        y_hat = f.mean(axis=-1)  # (R, K)

        residual = f - y[:, None]
        speaks = np.abs(y_hat - y) >= self.enough  # (R, K)
        weight = (speaks * share)[..., None]
        update = channel.uplink("theta", 2 * residual * weight, scalars=speaks * theta[0].size)
        gradient = mean_gradient(bank, x, update, weight, theta, self.lam)
        step = self.step_factor * self.rate(world.problem.rounds)

        loss = residual**2 + self.lam * squared_norms(theta)[:, None]
        even = np.full_like(f, 1 / bank.kernels)
        return State(theta - step * gradient), Outcome(y_hat, loss, lambda: mixture_norm(even, theta))
