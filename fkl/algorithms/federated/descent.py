"""Code that federated kernel methods share: gradient descent on theta at the server, and its hyperparameters."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import require
from fkl.contract.star import Federated, Samples, Turn
from fkl.contract.world import Array, Common, World
from fkl.kernels.bank import Stepped
from fkl.wire.payloads import FeatureGradients, PerClient, SameForAll

MOST_STEPS = 1000
"""Local steps in a round."""


@dataclass(frozen=True)
class Parameters:
    """The server's theta (R, N, P), to all clients."""

    theta: SameForAll


@dataclass(frozen=True)
class Gradients:
    """A client's gradients, for the kernels that it sends or for all."""

    theta: FeatureGradients


@dataclass(frozen=True)
class LossesAndGradients:
    """A client's losses (R, K, N) and its gradients, for all kernels or for those that it received."""

    losses: PerClient
    theta: FeatureGradients


@dataclass
class Server:
    """theta (R, N, P)."""

    theta: Array


@dataclass(frozen=True)
class Descent(Federated):
    """Online gradient descent on (theta'z - y)^2 + lam |theta|^2, with the clients' mean gradient at the server.

    Parameters
    ----------
    eta : float or None
        Learning rate; None for 1 / sqrt(T).
    step_factor : float
        Factor of eta in updates of parameters, not of weights. The gradient is 2 (f - y) z; a factor of 1 / 2 gives the
        step for a loss (f - y)^2 / 2. POF-MKL's published numbers come from 2, its baselines' from 1.
    lam : float
        Regularisation lambda; the paper does not state it.
    local_steps : int
        Gradient steps of a client from the server's theta, on the sample of the round. The client then sends the sum of
        their gradients.
    """

    not_traceable: ClassVar[str] = ""
    unbiased: ClassVar[bool] = False
    """Whether the mean step of the server's theta over a round's draws is `declared_step`."""

    eta: float | None = None
    step_factor: float = 1.0
    lam: float = 1e-3
    local_steps: int = 1

    def __post_init__(self) -> None:
        require(self.eta is None or 0 < self.eta < np.inf, "eta", self.eta, "a number > 0, or null for 1/sqrt(T)")
        require(0 < self.step_factor < np.inf, "step_factor", self.step_factor, "a number > 0")
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")
        require(1 <= self.local_steps <= MOST_STEPS, "local_steps", self.local_steps, f"1 to {MOST_STEPS}")

    def rate(self, rounds: int) -> float:
        """Eta over a horizon of T rounds."""
        return self.eta if self.eta is not None else float(1 / np.sqrt(rounds))

    def gradients(
        self,
        common: Common,
        samples: Samples,
        theta: Array,
        residual: Array,
        weight: Array | None = None,
        chosen: NDArray[np.bool_] | None = None,
    ) -> FeatureGradients:
        """A client's gradients, or their sums over E = local_steps steps, stored as factors.

        All steps stay in the span of theta and z = z(x). With s = step_factor * eta, theta_0 = theta, f_e = theta_e'z,
        and g_e = 2 (f_e - y) z + 2 lam theta_e the gradient of step e,

            theta_e = a_e theta + b_e z,              a_0 = 1,  b_0 = 0,
            g_e = c_e z + 2 lam a_e theta,            c_e = 2 (f_e - y) + 2 lam b_e,
            a_{e+1} = (1 - 2 s lam) a_e,              b_{e+1} = b_e - s c_e,
            f_{e+1} = (1 - 2 s lam) f_e - 2 s (f_e - y) |z|^2.

        So the sum of g_0 to g_{E-1} is again c z + 2 lam a theta, with c = sum_e c_e and a = sum_e a_e. The server
        steps by the same s: with only one client its result is theta_E. Importance weights of drawn kernels multiply
        the sum, not single steps. Its mean over the draw is then the sum of a client that learns all kernels.

        Parameters
        ----------
        common : Common
        samples : Samples
        theta : (R, N, P)
            The server's theta.
        residual : (R, K, N)
            f_0 - y.
        weight, chosen : as in `FeatureGradients`
        """
        coefficients, decay = 2 * residual, None
        if self.local_steps > 1:
            coefficients, decay = self._sum_local_steps(common, samples, residual)
        if weight is not None:
            coefficients *= weight
        if decay is not None:
            weight = np.full(residual.shape, decay) if weight is None else decay * weight
        return FeatureGradients(common.bank, samples.x, coefficients, theta, self.lam, weight, chosen)

    def _sum_local_steps(self, common: Common, samples: Samples, residual: Array) -> tuple[Array, float]:
        """The sums of all c_e, (R, K, N), and of all a_e."""
        step, length, y = self.step_factor * self.rate(common.rounds), common.bank.squared_norms(samples.x), samples.y
        nothing = common.xp.zeros_like(residual)
        a, b, c_sum, a_sum = 1.0, nothing, nothing, 0.0
        for _ in range(self.local_steps):
            c = 2 * residual + 2 * self.lam * b
            c_sum, a_sum = c_sum + c, a_sum + a
            residual = residual - 2 * step * (length * residual + self.lam * (residual + y[:, None]))
            a, b = (1 - 2 * step * self.lam) * a, b - step * c
        return c_sum, a_sum

    def own_steps(self, common: Common, samples: Samples, theta: Array) -> Stepped:
        """E steps of each client on its own theta (R, N, K, P), overwritten; predictions and |theta|^2 before them."""
        here, step = samples.present.astype(np.float64), self.step_factor * self.rate(common.rounds)
        f, squared_norm, theta = common.bank.descend(samples.x, samples.y, here, theta, step, self.lam)
        for _ in range(self.local_steps - 1):
            theta = common.bank.descend(samples.x, samples.y, here, theta, step, self.lam)[2]
        return f, squared_norm, theta

    def declared_step(self, world: World, theta: Array, t: int) -> Array:
        """The mean over clients of their E gradient steps from theta (R, N, P) in round t, one step after another."""
        x, y, share = world.problem.round(t)
        z = world.bank.features(x).swapaxes(1, 2)  # (R, K, N, P)
        step = self.step_factor * (1 / np.sqrt(world.problem.rounds) if self.eta is None else self.eta)
        own = first = np.repeat(theta[:, None], len(y), axis=1)
        for _ in range(self.local_steps):
            residual = (z * own).sum(axis=-1, keepdims=True) - y[:, None, None]
            own = own - step * (2 * residual * z + 2 * self.lam * own)
        mean: Array = np.einsum("k,rknp->rnp", share, own - first)
        return mean

    def start(self, common: Common, clients: int) -> tuple[Any, Any]:
        """theta_i = 0; clients hold nothing."""
        bank = common.bank
        return Server(common.xp.zeros((bank.replicates, bank.kernels, bank.width))), None

    def broadcast(self, common: Common, server: Any, turn: Turn) -> Any:
        """Theta to all clients."""
        return Parameters(SameForAll(server.theta))

    def server(self, common: Common, server: Any, up: Any, share: Array, turn: Turn) -> Any:
        """theta_i <- theta_i - eta mean_k grad L_ik, POF-MKL's eq. (10)."""
        return Server(server.theta - self.step_factor * self.rate(common.rounds) * up.theta.mean(share))
