"""DOMKL: distributed online learning with multiple kernels, by online ADMM for each kernel and distributed Hedge.

Chae and Hong, "Distributed Online Learning with Multiple Kernels", arXiv 2102.12733 (first as 2011.08930). Only its
abstract was available. The ADMM is that of Wang and Banerjee, "Online Alternating Direction Method" (ICML 2012), on the
graph of DKLA. "Distributed Hedge" is read in one of two ways. With weights=averaged each step of Hedge is followed by a
step of consensus on the logarithms of the weights. With weights=added an agent predicts with the products of its own
weights and its neighbours', as in the DOMKL of github.com/FLlorente/DecentralizedOnlineGPs.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Outcome, World, softmax
from fkl.algorithms.decentralized import odkla
from fkl.algorithms.decentralized.odkla import Odkla
from fkl.basics.errors import require
from fkl.contract.graph import Agents
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.wire.coded_payloads import Quantised, Sparse
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Message:
    """An agent's theta (R, K, N, P) and log w (R, K, N), with maximum 0."""

    theta: PerClient | Quantised | Sparse | SameForAll
    log_w: PerClient | Quantised | Sparse | SameForAll


@dataclass
class State(odkla.State):
    """The state of ODKLA, the log weights of an agent's kernels, log w, and those it predicts with, log q (R, K, N)."""

    log_w: Array
    log_q: Array


@dataclass(frozen=True)
class Domkl(Odkla):
    """Every agent learns all kernels jointly with its neighbours, and weighs them by its own losses and theirs.

    Parameters
    ----------
    eta_k : float or None
        Step size of the weights; None for 1 / sqrt(T).
    weights : {"averaged", "added"}
        Whether an agent's log w becomes an average of its own and its neighbours' in each round, by which losses spread
        over the whole graph, or comes from its own losses only, to which it adds the neighbours' log w to predict.
    """

    label: ClassVar[str] = "DOMKL"

    eta_k: float | None = None
    weights: str = "averaged"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.eta_k is None or 0 < self.eta_k < np.inf, "eta_k", self.eta_k, "a number > 0, or null")
        require(self.weights in ("averaged", "added"), "weights", self.weights, "averaged or added")

    def require_fits(self, kernels: Dictionary) -> None:
        """Any number of kernels."""

    def start(self, common: Common, agents: int) -> tuple[State, Message]:  # type: ignore[override]
        """Start from theta = gamma = 0 and w = 1."""
        theta, gamma, theta_hat = (self._zero_theta(common, agents) for _ in range(3))
        known = Message(SameForAll(self._zero_theta(common)), SameForAll(self._zero_theta(common)[..., 0]))
        return State(theta, gamma, theta_hat, theta[..., 0].copy(), theta[..., 0].copy()), known

    def learn(self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn) -> tuple[State, Outcome]:  # type: ignore[override]
        """Predict with all kernels, see y, and update each kernel and its weight by its loss."""
        xp, theta = common.xp, own.theta
        z = common.bank.features(samples.x).swapaxes(1, 2)  # (R, K, N, P)
        f, w = xp.einsum("rknp,rknp->rkn", z, theta), softmax(own.log_q)
        squared_norm = xp.einsum("rknp,rknp->rkn", theta, theta)
        loss = (f - samples.y[:, None]) ** 2 + self.lam * squared_norm
        outcome = Outcome((w * f).sum(axis=-1), loss, lambda: (w * squared_norm).sum(axis=-1))
        rate = 1 / np.sqrt(common.rounds) if self.eta_k is None else self.eta_k
        log_w = own.log_w - rate * loss
        log_w = log_w - log_w.max(axis=-1, keepdims=True)
        # For each kernel the proximal step minimises L_t + |theta - theta_t|^2 / (2 eta) + gamma'theta + rho sum_n
        # |theta - middle_in|^2: (c I + 2 z z') theta = b, a matrix of rank one plus a multiple of the identity.
        near, d = self.proximal(common), inbox.degree[:, None, None]
        pull = self.rho * (d * own.theta_hat + inbox.sum("theta"))
        b = near * theta + pull - own.gamma + 2 * samples.y[:, None, None] * z
        c = near + 2 * self.rho * d + 2 * self.lam
        along, length = (xp.einsum("rknp,rknp->rkn", z, other)[..., None] for other in (b, z))
        stepped = (b - 2 * along / (c + 2 * length) * z) / c
        return replace(own, theta=stepped, log_w=log_w), outcome

    def send(  # type: ignore[override]
        self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Broadcast theta_{t+1} and log w."""
        everyone = common.xp.ones(own.theta.shape[:2], np.bool_)
        return own, Message(PerClient(own.theta), PerClient(own.log_w)), everyone

    def sent(self, common: Common, own: State, message: Message, sends: NDArray[np.bool_]) -> State:  # type: ignore[override]
        """Keep theta as it was received: this is the neighbours' copy."""
        told: Array = message.theta.added_to(own.theta_hat)  # type: ignore[union-attr]  # no agent sends a Shared
        return replace(own, theta_hat=told)

    def hear(self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn) -> State:  # type: ignore[override]
        """Move gamma as ODKLA; log w_i = sum_j W_ij log w_j with Metropolis weights, or log q_i = sum_j log w_j."""
        after = super().hear(common, own, inbox, samples, turn)
        log_w = inbox.mix("log_w", own.log_w) if self.weights == "averaged" else own.log_w
        log_q = log_w if self.weights == "averaged" else log_w + inbox.sum("log_w")
        return State(after.theta, after.gamma, after.theta_hat, log_w, log_q)

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Every agent's mixture of its kernels."""
        return OnFeatures.of_replicates(world.bank, state.own.theta, softmax(state.own.log_q))
