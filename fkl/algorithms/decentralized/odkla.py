"""ODKLA: online decentralized kernel learning by linearized ADMM.

Xu, Wang, Chen and Tian, "QC-ODKLA: Quantized and Communication-Censored Online Decentralized Kernel Learning via
Linearized ADMM", IEEE TNNLS (2023), arXiv 2208.02777. It is DKLA (`fkl.algorithms.decentralized.dkla`, whose equations
are those of COKE) on streams. An agent uses the newest sample instead of all samples, and linearises its loss at
theta_t with a proximal term |theta - theta_t|^2 / (2 eta). The paper's eta is 1 / eta here, because the key eta is a
step size everywhere in fkl.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Outcome, World
from fkl.algorithms.decentralized.consensus import Message
from fkl.basics.errors import require
from fkl.contract.graph import Agents, OnStreams
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.kernels.traceable import known_everywhere
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import PerClient, SameForAll


@dataclass
class State:
    """An agent's state after a round, besides its inbox.

    Parameters
    ----------
    theta, gamma : (R, K, N, P)
        Primal and dual variables of each kernel; N = 1 for ODKLA.
    theta_hat : (R, K, N, P)
        The neighbours' copy of theta: theta itself, unless the message was compressed.
    """

    theta: Array
    gamma: Array
    theta_hat: Array


@dataclass(frozen=True)
class Odkla(OnStreams):
    """Agents predict, take one step on the newest sample's loss and towards their neighbours, and broadcast theta.

    L_t(theta) = (theta'z(x_t) - y_t)^2 + lam |theta|^2, and an agent has d neighbours. An agent without neighbours
    descends with the step eta.

    Parameters
    ----------
    eta : float or None
        Step size, the inverse of the proximal term's weight; None for 1 / sqrt(T). With it, and a rho of that order,
        the regret is O(sqrt(T)).
    rho : float
        Penalty of the augmented Lagrangian, the step size of the dual variables.
    lam : float
        Regularisation lambda of each sample's loss.
    """

    label: ClassVar[str] = "ODKLA"
    choices_reveal_data: ClassVar[bool] = False
    not_traceable: ClassVar[str] = ""
    on_a_graph: ClassVar[bool] = True

    eta: float | None = None
    rho: float = 0.05
    lam: float = 1e-3

    def __post_init__(self) -> None:
        require(self.eta is None or 0 < self.eta < np.inf, "eta", self.eta, "a number > 0, or null for 1/sqrt(T)")
        require(0 < self.rho < np.inf, "rho", self.rho, "a number > 0")
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")

    def require_fits(self, kernels: Dictionary) -> None:
        """One kernel."""
        require(kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel")

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """Start from theta = gamma = 0."""
        self.require_fits(common.dictionary)
        theta, gamma, theta_hat = (self._zero_theta(common, agents) for _ in range(3))
        return State(theta, gamma, theta_hat), Message(SameForAll(self._zero_theta(common)))

    def _zero_theta(self, common: Common, *agents: int) -> Array:
        """Zeros for theta of this many agents, (R, K, N, P), or one for all, (R, N, P)."""
        bank = common.bank
        return common.xp.zeros((bank.replicates, *agents, bank.kernels, bank.width))

    def proximal(self, common: Common) -> float:
        """Weight 1 / eta of the proximal term, over a horizon of T rounds."""
        return float(np.sqrt(common.rounds)) if self.eta is None else 1 / self.eta

    def learn(self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn) -> tuple[State, Outcome]:
        """Predict with theta_t, see y, and compute theta_{t+1} given the neighbours' theta_t.

        theta_{t+1} minimises grad L_t'theta + |theta - theta_t|^2 / (2 eta) + gamma'theta + rho sum_n |theta -
        middle_in|^2. Middles are (theta_i + theta_n) / 2 of the copies that were sent. So theta_{t+1} is theta_t minus
        (grad L_t + gamma + rho sum_n (theta_i - theta_n)) / (1 / eta + 2 rho d).
        """
        xp, theta = common.xp, own.theta
        z = common.bank.features(samples.x).swapaxes(1, 2)  # (R, K, N, P)
        f = xp.einsum("rknp,rknp->rkn", z, theta)
        residual, squared_norm = f - samples.y[:, None], xp.einsum("rknp,rknp->rkn", theta, theta)
        outcome = Outcome(f[..., 0], residual**2 + self.lam * squared_norm, lambda: squared_norm[..., 0])
        near, d = self.proximal(common), inbox.degree[:, None, None]
        gradient = 2 * residual[..., None] * z + 2 * self.lam * theta
        pull = self.rho * (d * own.theta_hat + inbox.sum("theta"))
        # The loss is linearised at theta_t, so the minimum has this closed form.
        moved = (near * theta + pull - own.gamma - gradient) / (near + 2 * self.rho * d)
        return State(moved, own.gamma, own.theta_hat), outcome

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Broadcast theta_{t+1}."""
        everyone = common.xp.ones(own.theta.shape[:2], np.bool_)
        return own, Message(PerClient(own.theta)), everyone

    def sent(self, common: Common, own: State, message: Message, sends: NDArray[np.bool_]) -> State:
        """The neighbours' copy from now on. The agent uses the same copy, so duals sum to 0 over agents."""
        told: Array = message.theta.added_to(own.theta_hat)  # type: ignore[union-attr]  # no agent sends a Shared
        theta_hat = told if known_everywhere(sends) else common.xp.where(sends[..., None, None], told, own.theta_hat)
        return State(own.theta, own.gamma, theta_hat)

    def hear(self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn) -> State:
        """gamma_i += rho sum_n (theta_i - theta_n) with theta_{t+1}, over neighbours whose links are up, as in DKLA."""
        apart = inbox.listeners[..., None, None] * own.theta_hat - inbox.heard("theta")
        return State(own.theta, own.gamma + self.rho * apart, own.theta_hat)

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Theta of every agent."""
        return OnFeatures.of_replicates(world.bank, state.own.theta, np.ones(state.own.theta.shape[:3]))
