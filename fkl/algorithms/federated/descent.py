"""What federated kernel methods share: gradient descent on theta at the server, and its hyper-parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.contract.star import Federated, Turn
from fkl.contract.world import Array, Common
from fkl.errors import require
from fkl.kernels import FeatureBank
from fkl.kernels.functions import OnFeatures
from fkl.network.messages import FeatureGradients, Shared


@dataclass(frozen=True)
class Parameters:
    """The server's theta (R, N, P), to all clients."""

    theta: Shared


@dataclass(frozen=True)
class Gradients:
    """A client's gradients of the kernels that it sends, or of all."""

    theta: FeatureGradients


@dataclass
class Server:
    """theta (R, N, P)."""

    theta: Array


@dataclass(frozen=True)
class Descent(Federated):
    """Online gradient descent on (theta'z - y)^2 + lam |theta|^2, whose server tells theta and takes the clients' mean.

    Parameters
    ----------
    eta : float or None
        Learning rate; None for 1 / sqrt(T).
    step_factor : float
        Multiplies eta where parameters (not weights) are updated. The gradient is written out, 2 (f - y) z; a factor
        of 1 / 2 makes the step that of a loss (f - y)^2 / 2. POF-MKL's published numbers come from 2, its baselines'
        from 1.
    lam : float
        Regularisation lambda; the paper does not state it.

    Raises
    ------
    fkl.errors.BadValue
    """

    eta: float | None = None
    step_factor: float = 1.0
    lam: float = 1e-3

    def __post_init__(self) -> None:
        require(self.eta is None or 0 < self.eta < np.inf, "eta", self.eta, "a number > 0, or null for 1/sqrt(T)")
        require(0 < self.step_factor < np.inf, "step_factor", self.step_factor, "a number > 0")
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")

    def rate(self, rounds: int) -> float:
        """Eta over a horizon of T rounds."""
        return self.eta if self.eta is not None else float(1 / np.sqrt(rounds))

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """theta_i = 0; clients hold nothing."""
        bank = common.bank
        return Server(common.xp.zeros((bank.replicates, bank.kernels, bank.width))), None

    def broadcast(self, common: Common, server: Any, turn: Turn) -> Any:
        """Theta to all clients."""
        return Parameters(Shared(server.theta))

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """theta_i <- theta_i - eta mean_k grad L_ik, POF-MKL's eq. (10)."""
        return Server(server.theta - self.step_factor * self.rate(common.rounds) * up.theta.mean(share))


def mixtures(bank: FeatureBank, theta: Array, weights: Array) -> tuple[OnFeatures, ...]:
    """Functions of each replicate, from the kernels' theta (R, N, P) and what they are weighed with, (R, K or 1, N)."""
    learned = zip(theta, weights, strict=True)
    return tuple(OnFeatures.of(bank, r, one[None], w) for r, (one, w) in enumerate(learned))
