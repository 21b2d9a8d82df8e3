"""A method of my own: clients that keep silent while their predictions are good enough."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import mixture_norm, squared_norms
from fkl.algorithms.federated.descent import Descent
from fkl.basics.errors import require
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common, Outcome
from fkl.wire.payloads import FeatureGradients, SameForAll


@dataclass(frozen=True)
class Down:
    """What the server tells all clients: theta (R, N, P) of R replicates and N kernels, with P features."""

    theta: SameForAll


@dataclass(frozen=True)
class Up:
    """What a client tells the server: the gradients of all kernels, or nothing."""

    theta: FeatureGradients


@dataclass
class Server:
    """What the server holds."""

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
        require(0 <= self.enough < np.inf, "enough", self.enough, "a number >= 0")

    def start(self, common: Common, clients: int) -> tuple[Server, None]:
        """All theta are 0; clients hold nothing."""
        bank = common.bank
        return Server(np.zeros((bank.replicates, bank.kernels, bank.width))), None

    def broadcast(self, common: Common, server: Server, turn: Turn) -> Down:
        """Theta to all clients."""
        return Down(SameForAll(server.theta))

    def client(
        self, common: Common, client: None, down: Down, samples: Samples, turn: Turn
    ) -> tuple[None, Up, Outcome]:
        """Predict, see the label, and speak if the prediction was not good enough."""
        theta = down.theta.values
        f = common.bank.predict(samples.x, theta)  # (R, K, N)
        y_hat = f.mean(axis=-1)  # (R, K)

        residual = f - samples.y[:, None]
        speaks = (np.abs(y_hat - samples.y) >= self.enough)[..., None]  # (R, K, 1)
        gradients = FeatureGradients(common.bank, samples.x, 2 * residual * speaks, theta, self.lam, speaks, speaks)

        loss = residual**2 + self.lam * squared_norms(theta)[:, None]
        even = np.full_like(f, 1 / common.bank.kernels)
        return None, Up(gradients), Outcome(y_hat, loss, lambda: mixture_norm(even, theta))

    def server(self, common: Common, server: Server, up: Up, share: NDArray[np.float64], turn: Turn) -> Server:
        """Learn from the clients that spoke: `share` is each client's weight in a mean."""
        return Server(server.theta - self.step_factor * self.rate(common.rounds) * up.theta.mean(share))
