"""Agents on a graph learn from streams by linearised or proximal ADMM steps, with one kernel or several.

ODKLA: Xu, Wang, Chen and Tian, "QC-ODKLA: Quantized and Communication-Censored Online Decentralized Kernel Learning via
Linearized ADMM", IEEE TNNLS (2023), arXiv 2208.02777. It is DKLA (`fkl.algorithms.decentralized.consensus`, whose
equations are those of COKE) on streams. An agent uses the newest sample instead of all samples, and linearises its loss
at theta_t with a proximal term |theta - theta_t|^2 / (2 eta). The paper's eta is 1 / eta here, because eta is a step
size everywhere in fkl.

QC-ODKLA: Xu, Wang, Chen and Tian, IEEE TNNLS (2023), arXiv 2208.02777. It censors the theta_{t+1} of ODKLA as COKE
censors DKLA's theta (`fkl.algorithms.decentralized.coke`, eqs. 19 and 20). The condition `compression` quantizes the
difference from the neighbours' copy, Q(theta - theta_hat).

DOMKL: Chae and Hong, "Distributed Online Learning with Multiple Kernels", arXiv 2102.12733 (first as 2011.08930). Only
its abstract was available. The ADMM is that of Wang and Banerjee, "Online Alternating Direction Method" (ICML 2012), on
the graph of DKLA. "Distributed Hedge" can be read in two ways. With weights=averaged, each step of Hedge is followed by
a consensus step on the logarithms of the weights. With weights=added, an agent predicts with the products of its own
and its neighbours' weights, as in the DOMKL of github.com/FLlorente/DecentralizedOnlineGPs.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Outcome, WithLoss, World, softmax
from fkl.algorithms.decentralized.consensus import ThetaMessage
from fkl.basics.arrays import Array, known_everywhere
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.contract.graph import Agents, OnStreams
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.wire.channel import Inbox
from fkl.wire.coded_payloads import Quantised, Sparse
from fkl.wire.payloads import PerClient, SameForAll


@dataclass
class OdklaState:
    """An agent's state after a round, without its inbox.

    Parameters
    ----------
    theta, gamma : (R, K, N, P)
        Primal and dual variables of each kernel; N = 1 for ODKLA.
    theta_hat : (R, K, N, P)
        The neighbours' copy of theta, which is theta unless the message was compressed.
    """

    theta: Array
    gamma: Array
    theta_hat: Array


@dataclass(frozen=True)
class Odkla(WithLoss, OnStreams):
    """Agents predict, take one step on the newest sample's loss and towards their neighbours, and broadcast theta.

    L_t(theta) = l(theta'z(x_t), y_t) + lam |theta|^2, and an agent has d neighbours. An agent without neighbours
    descends with step size eta.
    """

    label: ClassVar[str] = "ODKLA"
    choices_reveal_data: ClassVar[bool] = False
    not_traceable: ClassVar[str] = ""
    on_a_graph: ClassVar[bool] = True

    eta: float | None = key(
        None,
        "Step size, the inverse of the proximal term's weight; None for 1 / sqrt(T). With this eta and a rho of that "
        "order, the regret is O(sqrt(T)).",
        above=0,
        must="a number > 0, or null for 1/sqrt(T)",
    )
    rho: float = key(0.05, "Penalty of the augmented Lagrangian, the step size of the dual variables.", above=0)
    lam: float = key(1e-3, "Regularisation lambda of each sample's loss.", min=0)

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse more than one kernel."""
        require(
            kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel, for example kernels=rbf_single"
        )

    def start(self, common: Common, agents: int) -> tuple[OdklaState, ThetaMessage]:
        """Start from theta = gamma = 0."""
        self.require_fits(common.dictionary)
        theta, gamma, theta_hat = (self._zero_theta(common, agents) for _ in range(3))
        return OdklaState(theta, gamma, theta_hat), ThetaMessage(SameForAll(self._zero_theta(common)))

    def _zero_theta(self, common: Common, *agents: int) -> Array:
        """Zeros for the theta of each agent, (R, K, N, P), or for a common theta, (R, N, P)."""
        bank = common.bank
        return common.xp.zeros((bank.replicates, *agents, bank.kernels, bank.width))

    def proximal_weight(self, common: Common) -> float:
        """Weight 1 / eta of the proximal term, for a horizon of T rounds."""
        return float(np.sqrt(common.rounds)) if self.eta is None else 1 / self.eta

    def learn(
        self, common: Common, own: OdklaState, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[OdklaState, Outcome]:
        """Predict with theta_t, see y, and compute theta_{t+1} given the neighbours' theta_t.

        theta_{t+1} minimises grad L_t'theta + |theta - theta_t|^2 / (2 eta) + gamma'theta + rho sum_n |theta -
        middle_in|^2. Here middle_in = (theta_i + theta_n) / 2, from the copies that were sent. So theta_{t+1} is
        theta_t minus (grad L_t + gamma + rho sum_n (theta_i - theta_n)) / (1 / eta + 2 rho d).
        """
        # Predict with theta_t, for all agents and kernels
        xp, theta = common.xp, own.theta
        z = common.bank.features(samples.x).swapaxes(1, 2)  # (R, K, N, P)
        f = xp.einsum("rknp,rknp->rkn", z, theta)
        y, squared_norm = samples.y[:, None], xp.einsum("rknp,rknp->rkn", theta, theta)
        loss = self.pointwise.value(f, y) + self.lam * squared_norm
        outcome = Outcome(f[..., 0], loss, lambda: squared_norm[..., 0])
        # The weight of the proximal term, and the number of neighbours of each agent
        near, d = self.proximal_weight(common), inbox.degree[:, None, None]
        # Gradient of the loss at theta_t, and the pull of the neighbours' theta_hat and the agent's own
        gradient = self.pointwise.derivative(f, y)[..., None] * z + 2 * self.lam * theta
        pull = self.rho * (d * own.theta_hat + inbox.sum("theta"))
        # The loss is linearised at theta_t, so the minimiser has this closed form
        moved = (near * theta + pull - own.gamma - gradient) / (near + 2 * self.rho * d)
        return OdklaState(moved, own.gamma, own.theta_hat), outcome

    def send(
        self, common: Common, own: OdklaState, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[OdklaState, ThetaMessage, NDArray[np.bool_]]:
        """Broadcast theta_{t+1}."""
        everyone = common.xp.ones(own.theta.shape[:2], np.bool_)
        return own, ThetaMessage(PerClient(own.theta)), everyone

    def sent(self, common: Common, own: OdklaState, message: ThetaMessage, sends: NDArray[np.bool_]) -> OdklaState:
        """The neighbours' copy from now on. The agent uses the same copy, so duals sum to 0 over agents."""
        told: Array = message.theta.added_to(own.theta_hat)  # type: ignore[union-attr]  # no agent sends a Shared
        theta_hat = told if known_everywhere(sends) else common.xp.where(sends[..., None, None], told, own.theta_hat)
        return OdklaState(own.theta, own.gamma, theta_hat)

    def hear(self, common: Common, own: OdklaState, inbox: Inbox, samples: Samples, turn: Turn) -> OdklaState:
        """gamma_i += rho sum_n (theta_i - theta_n) with theta_{t+1}, over neighbours whose links are up, as in DKLA."""
        apart = inbox.listeners[..., None, None] * own.theta_hat - inbox.heard("theta")
        return OdklaState(own.theta, own.gamma + self.rho * apart, own.theta_hat)

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Every agent's function, by its theta."""
        return OnFeatures.of_replicates(world.bank, state.own.theta, np.ones(state.own.theta.shape[:3]))


@dataclass(frozen=True)
class QcOdkla(Odkla):
    """ODKLA whose agents send theta only if it has changed enough since the last message, theta_hat.

    When a link comes up again, both its agents send, because neither knows what the other sent in the meantime. With
    `compression=null`, scalars are not quantized.
    """

    label: ClassVar[str] = "QC-ODKLA"
    choices_reveal_data: ClassVar[bool] = True

    v: float = key(0.1, "Threshold h(t) = v mu^t of |theta_hat - theta|, before it is rounded.", min=0)
    mu: float = key(0.99, "Threshold h(t) = v mu^t of |theta_hat - theta|, before it is rounded.", above=0, max=1)

    def send(
        self, common: Common, own: OdklaState, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[OdklaState, ThetaMessage, NDArray[np.bool_]]:
        """Round t, from 1: broadcast theta_{t+1} if |xi| >= h(t), with xi = theta_hat - theta_{t+1}."""
        own, message, _ = super().send(common, own, inbox, samples, turn)
        xi = own.theta_hat - own.theta
        sends = common.xp.sqrt(common.xp.einsum("rknp,rknp->rk", xi, xi)) >= self.v * self.mu ** (turn.t + 1)
        return own, message, sends if inbox.awake is None else sends | inbox.awake.returned


@dataclass(frozen=True)
class DomklMessage:
    """Message of an agent: its theta (R, K, N, P) and log w (R, K, N), whose maximum is 0."""

    theta: PerClient | Quantised | Sparse | SameForAll
    log_w: PerClient | Quantised | Sparse | SameForAll


@dataclass
class DomklState(OdklaState):
    """ODKLA's state, with log weights of an agent's kernels, log w, and those used to predict, log q (R, K, N)."""

    log_w: Array
    log_q: Array


@dataclass(frozen=True)
class Domkl(Odkla):
    """Every agent learns all kernels jointly with its neighbours, and weights them by its own and their losses."""

    label: ClassVar[str] = "DOMKL"
    # No keys: its proximal step has a closed form only for squares.
    loss: ClassVar[str] = "square"  # type: ignore[misc]
    level: ClassVar[float] = 0.5  # type: ignore[misc]
    delta: ClassVar[float] = 1.0  # type: ignore[misc]

    eta_k: float | None = key(None, "Step size of the weights; None for 1 / sqrt(T).", above=0)
    weights: str = key(
        "averaged",
        "Whether an agent's log w becomes an average of its own and its neighbours' in each round, so "
        "losses spread over the whole graph, or depends only on its own losses, and the agent adds the neighbours' "
        "log w to predict.",
        choices=("averaged", "added"),
    )

    def require_fits(self, kernels: Dictionary) -> None:
        """Accept any number of kernels."""

    def start(self, common: Common, agents: int) -> tuple[DomklState, DomklMessage]:  # type: ignore[override]
        """Start from theta = gamma = 0 and w = 1."""
        theta, gamma, theta_hat = (self._zero_theta(common, agents) for _ in range(3))
        known = DomklMessage(SameForAll(self._zero_theta(common)), SameForAll(self._zero_theta(common)[..., 0]))
        return DomklState(theta, gamma, theta_hat, theta[..., 0].copy(), theta[..., 0].copy()), known

    def learn(  # type: ignore[override]
        self, common: Common, own: DomklState, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[DomklState, Outcome]:
        """Predict with all kernels, see y, and update each kernel and its weight."""
        # Predict with the mixture of the kernels, by weights from their past losses
        xp, theta = common.xp, own.theta
        z = common.bank.features(samples.x).swapaxes(1, 2)  # (R, K, N, P)
        f, w = xp.einsum("rknp,rknp->rkn", z, theta), softmax(own.log_q)
        squared_norm = xp.einsum("rknp,rknp->rkn", theta, theta)
        loss = (f - samples.y[:, None]) ** 2 + self.lam * squared_norm
        outcome = Outcome((w * f).sum(axis=-1), loss, lambda: (w * squared_norm).sum(axis=-1))
        # The kernels' weights fall by their losses; subtracting the maximum avoids an underflow of all weights
        rate = 1 / np.sqrt(common.rounds) if self.eta_k is None else self.eta_k
        log_w = own.log_w - rate * loss
        log_w = log_w - log_w.max(axis=-1, keepdims=True)
        # For each kernel, the proximal step minimises L_t + |theta - theta_t|^2 / (2 eta) + gamma'theta + rho sum_n
        # |theta - middle_in|^2: it solves (c I + 2 z z') theta = b, in which z z' has rank one.
        near, d = self.proximal_weight(common), inbox.degree[:, None, None]
        pull = self.rho * (d * own.theta_hat + inbox.sum("theta"))
        b = near * theta + pull - own.gamma + 2 * samples.y[:, None, None] * z
        c = near + 2 * self.rho * d + 2 * self.lam
        along, length = (xp.einsum("rknp,rknp->rkn", z, other)[..., None] for other in (b, z))
        stepped = (b - 2 * along / (c + 2 * length) * z) / c
        return replace(own, theta=stepped, log_w=log_w), outcome

    def send(  # type: ignore[override]
        self, common: Common, own: DomklState, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[DomklState, DomklMessage, NDArray[np.bool_]]:
        """Broadcast theta_{t+1} and log w."""
        everyone = common.xp.ones(own.theta.shape[:2], np.bool_)
        return own, DomklMessage(PerClient(own.theta), PerClient(own.log_w)), everyone

    def sent(self, common: Common, own: DomklState, message: DomklMessage, sends: NDArray[np.bool_]) -> DomklState:  # type: ignore[override]
        """Store theta as neighbours received it: this is their copy."""
        told: Array = message.theta.added_to(own.theta_hat)  # type: ignore[union-attr]  # no agent sends a Shared
        return replace(own, theta_hat=told)

    def hear(self, common: Common, own: DomklState, inbox: Inbox, samples: Samples, turn: Turn) -> DomklState:  # type: ignore[override]
        """Update gamma; log w_i = sum_j W_ij log w_j with Metropolis weights, or log q_i = sum_j log w_j."""
        after = super().hear(common, own, inbox, samples, turn)
        log_w = inbox.mix("log_w", own.log_w) if self.weights == "averaged" else own.log_w
        log_q = log_w if self.weights == "averaged" else log_w + inbox.sum("log_w")
        return DomklState(after.theta, after.gamma, after.theta_hat, log_w, log_q)

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Every agent's mixture of its kernels."""
        return OnFeatures.of_replicates(world.bank, state.own.theta, softmax(state.own.log_q))
