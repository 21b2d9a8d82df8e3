"""Agents on a graph learn a common theta of one kernel from all their samples, by diffusion or by ADMM.

CTA: combine-then-adapt diffusion, the baseline in Xu et al., COKE, JMLR 22 (2021), section 5.

CTA, push-sum: With one-way links, agents cannot find doubly stochastic weights locally. With weights that only sum to 1
for each receiver, CTA minimises a sum in which some agents count more. Here every agent splits its vector equally among
itself and the agents that hear it, so the sum over agents is preserved. It splits a weight, which starts at 1, in the
same way. The weight becomes large at agents that receive much, and each agent divides its vector by its weight. This is
the subgradient-push of Nedic and Olshevsky, "Distributed optimization over time-varying directed graphs", IEEE TAC 60
(2015), eq. (3), in their notation.

DKLA: decentralized kernel learning by ADMM, Algorithm 1 of Xu et al., COKE, JMLR 22 (2021).

DKLA on links: In DKLA, agent i updates gamma_i from the messages that it received. If a message is lost, its
neighbour's gamma_j does not move in the opposite direction. The gamma then no longer sum to 0, and the agents agree on
the minimiser of sum_i (R_i(theta) + gamma_i'theta) instead. Here an agent holds z_ij for each of its links, and a lost
message leaves z_ij unchanged. This is the relaxed ADMM of Bastianello, Carli, Schenato and Todescato, "Asynchronous
distributed optimization over lossy networks via relaxed ADMM: stability and linear convergence", IEEE TAC 66 (2021),
with alpha = 1/2. Without loss, and starting from z = 0, theta is the same as in DKLA: their rho is twice DKLA's, and
sum_j z_ij = rho sum_j (theta_i + theta_j) - gamma_i.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import World
from fkl.basics.arrays import Array, known_everywhere
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.contract.graph import Agents, Decentralized
from fkl.contract.star import Turn
from fkl.contract.world import BatchSamples, Common
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.tasks.batch import Batched
from fkl.wire.channel import Inbox
from fkl.wire.coded_payloads import Quantised, Sparse
from fkl.wire.payloads import OnLinks, PerClient, SameForAll


@dataclass(frozen=True)
class ThetaMessage:
    """Message of an agent to all neighbours: its theta (R, K, P)."""

    theta: PerClient | Quantised | Sparse | SameForAll


@dataclass(frozen=True)
class Consensus(Batched, Decentralized):
    """min over theta of sum_i R_i(theta), R_i(theta) = mean loss of agent i + lam / N |theta|^2 (COKE, eqs. 15, 16).

    Their N agents are the K clients here, and their L features are the D features of the only kernel.
    """

    label: ClassVar[str]
    on_a_graph: ClassVar[bool] = True

    redraw: bool = key(
        False,
        "Draw a new split, a new graph and new simulated samples in every replicate, just like new features. "
        "The spread over replicates then includes all of these. Otherwise all replicates share one split and one "
        "graph.",
    )

    @property
    def not_traceable(self) -> str:  # type: ignore[override]
        """Why JAX cannot trace the iterations; empty if it can."""
        return "" if self.loss == "square" else "its agents search for the minimum of a logistic loss"

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse more than one kernel."""
        require(
            kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel, for example kernels=rbf_single"
        )

    def zeros(self, common: Common, *agents: int) -> Array:
        """Zeros for the theta of each agent, (R, K, P), or for a common theta, (R, P); refuses more than one kernel."""
        self.require_fits(common.dictionary)
        return common.xp.zeros((common.bank.replicates, *agents, common.bank.width))

    def nothing_sent(self, common: Common) -> ThetaMessage:
        """The message that agents assume of a neighbour until it sends one: theta = 0."""
        return ThetaMessage(SameForAll(self.zeros(common)))

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Every agent's function, by its theta."""
        theta = state.own.theta[:, :, None]  # (R, K, 1, P)
        return OnFeatures.of_replicates(world.bank, theta, np.ones(theta.shape[:3]))


@dataclass
class ConsensusState:
    """An agent's state after an iteration, without its inbox: theta (R, K, P)."""

    theta: Array


@dataclass(frozen=True)
class Cta(Consensus):
    """Every agent averages its neighbours' theta and its own with Metropolis weights, then descends on R_i.

    With one-way links, agent i gives itself and the d_i agents that it hears equal weights, 1 / (1 + d_i). Agents that
    many others hear then count more in the result; `PushCta` corrects this.
    """

    label: ClassVar[str] = "CTA"
    choices_reveal_data: ClassVar[bool] = False
    one_way: ClassVar[bool] = True

    eta: float = key(0.99, "Step size.", above=0)
    local_steps: int = key(1, "Number of steps of an agent on R_i between two messages.", min=1, max=1000)

    def start(self, common: Common, agents: int) -> tuple[ConsensusState, ThetaMessage]:
        """Start from theta = 0."""
        return ConsensusState(self.zeros(common, agents)), self.nothing_sent(common)

    def send(
        self, common: Common, own: ConsensusState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[ConsensusState, ThetaMessage, NDArray[np.bool_]]:
        """Iteration k = t + 1: broadcast theta of iteration k - 1."""
        everyone = common.xp.ones(own.theta.shape[:2], np.bool_)
        return own, ThetaMessage(PerClient(own.theta)), everyone

    def receive(
        self, common: Common, own: ConsensusState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[ConsensusState, Array]:
        """Combine, then adapt."""
        theta = inbox.mix("theta", own.theta)
        for _ in range(self.local_steps):
            slope = samples.gradient(theta) + 2 * self.lam / samples.agents * theta
            theta = theta - self.eta * slope
        return ConsensusState(theta), theta


@dataclass(frozen=True)
class PushMessage:
    """Message of an agent to each agent that hears it: x / d, with y / d as last entry, (R, K, P + 1)."""

    theta: PerClient | SameForAll


@dataclass
class PushState:
    """An agent's state after an iteration, besides its inbox.

    Parameters
    ----------
    theta : (R, K, P)
        The z with which an agent predicts.
    x : (R, K, P + 1)
        y theta, with the weight y as last entry; the sum of y over agents is their number.
    """

    theta: Array
    x: Array


@dataclass(frozen=True)
class PushCta(Cta):
    """CTA whose agents push shares of their vectors and of a weight, and divide the vector by the weight.

    An agent's step size is eta divided by its weight. Agents that hear few others have a small weight, so `eta` has to
    be smaller than in CTA.
    """

    label: ClassVar[str] = "CTA, push-sum"
    conserves: ClassVar[bool] = True

    eta: float = 0.1

    def start(self, common: Common, agents: int) -> tuple[PushState, PushMessage]:  # type: ignore[override]
        """Start from x = 0 and y = 1, before any message."""
        theta, nothing = self.zeros(common, agents), self.zeros(common)
        x = common.xp.concatenate([theta, common.xp.ones((*theta.shape[:2], 1))], axis=-1)
        return PushState(theta, x), PushMessage(SameForAll(common.xp.concatenate([nothing, nothing[:, :1]], axis=-1)))

    def send(  # type: ignore[override]
        self, common: Common, own: PushState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[PushState, PushMessage, NDArray[np.bool_]]:
        """Iteration t + 1: push x_i / d_i and y_i / d_i, where d_i counts the agent and the agents that hear it."""
        everyone = common.xp.ones(own.x.shape[:2], np.bool_)
        return own, PushMessage(PerClient(own.x / (1 + inbox.listeners[..., None]))), everyone

    def receive(  # type: ignore[override]
        self, common: Common, own: PushState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[PushState, Array]:
        """Combine, then adapt."""
        summed = own.x / (1 + inbox.listeners[..., None]) + inbox.heard("theta")
        x, y = summed[..., :-1], summed[..., -1:]  # w_i(t + 1) = sum_j x_j(t) / d_j, and y_i(t + 1) likewise
        for _ in range(self.local_steps):
            z = x / y  # only the quotient is an average of theta: with one-way links, x and y drift
            x = x - self.eta * (samples.gradient(z) + 2 * self.lam / samples.agents * z)
        theta = x / y
        return PushState(theta, common.xp.concatenate([x, y], axis=-1)), theta


@dataclass
class DklaState:
    """An agent's state after an iteration, besides its inbox.

    Parameters
    ----------
    theta, gamma : (R, K, P)
        Primal and dual variables.
    theta_hat : (R, K, P)
        The neighbours' copy of theta, which is theta unless the message was compressed.
    """

    theta: Array
    gamma: Array
    theta_hat: Array


@dataclass(frozen=True)
class Dkla(Consensus):
    """All agents solve their local problem and broadcast theta in every iteration."""

    label: ClassVar[str] = "DKLA"
    choices_reveal_data: ClassVar[bool] = False

    rho: float = key(1e-2, "Penalty of the augmented Lagrangian, the step size of the dual variables.", above=0)

    def start(self, common: Common, agents: int) -> tuple[DklaState, ThetaMessage]:
        """Algorithm 1, Initialize: theta = gamma = 0."""
        theta, gamma, theta_hat = (self.zeros(common, agents) for _ in range(3))
        return DklaState(theta, gamma, theta_hat), self.nothing_sent(common)

    def send(
        self, common: Common, own: DklaState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[DklaState, ThetaMessage, NDArray[np.bool_]]:
        """Iteration k = t + 1: minimise given the neighbours' theta of iteration k - 1, and broadcast theta."""
        c = self.lam / samples.agents + self.rho * inbox.degree
        v = self.rho * (inbox.degree[:, None] * own.theta_hat + inbox.sum("theta")) - own.gamma
        theta = samples.minimise_proximal(c, v, own.theta)  # eq. (18a)
        everyone = common.xp.ones(theta.shape[:2], np.bool_)
        return DklaState(theta, own.gamma, own.theta_hat), ThetaMessage(PerClient(theta)), everyone

    def sent(self, common: Common, own: DklaState, message: ThetaMessage, sends: NDArray[np.bool_]) -> DklaState:
        """Store the neighbours' new copy; the agent uses the same copy, so duals sum to 0 over agents."""
        told: Array = message.theta.added_to(own.theta_hat)  # type: ignore[union-attr]  # no agent sends SameForAll
        theta_hat = told if known_everywhere(sends) else common.xp.where(sends[..., None], told, own.theta_hat)
        return DklaState(own.theta, own.gamma, theta_hat)

    def receive(
        self, common: Common, own: DklaState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[DklaState, Array]:
        """Update the dual variable with the neighbours' theta of iteration k.

        Only neighbours whose links are up count. A link is up at both ends or at neither, so the duals still sum to 0.
        """
        apart = inbox.listeners[..., None] * own.theta_hat - inbox.heard("theta")
        gamma = own.gamma + self.rho * apart  # eq. (18b)
        return DklaState(own.theta, gamma, own.theta_hat), own.theta


@dataclass(frozen=True)
class LinkMessage:
    """Message of an agent to one neighbour: q_ij (R, links, P). The neighbour moves its z_ji half the way to q_ij."""

    z: OnLinks | SameForAll


@dataclass(frozen=True)
class LinkDkla(Consensus):
    """In every iteration, all agents solve their local problem and send each neighbour a separate message."""

    label: ClassVar[str] = "DKLA on links"
    choices_reveal_data: ClassVar[bool] = False
    on_links: ClassVar[bool] = True

    rho: float = key(
        1e-2, "DKLA's penalty of the augmented Lagrangian; half of the penalty in the paper on lossy networks.", above=0
    )

    def start(self, common: Common, agents: int) -> tuple[ConsensusState, LinkMessage]:
        """Start from theta = z = 0, DKLA's theta = gamma = 0."""
        return ConsensusState(self.zeros(common, agents)), LinkMessage(SameForAll(self.zeros(common)))

    def send(
        self, common: Common, own: ConsensusState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[ConsensusState, LinkMessage, NDArray[np.bool_]]:
        """Iteration k = t + 1: theta_i = argmin R_i(theta) + rho d_i |theta|^2 - (sum_j z_ij)'theta; send q_ij."""
        c = self.lam / samples.agents + self.rho * inbox.degree
        theta = samples.minimise_proximal(c, inbox.sum("z"), own.theta)
        q = 4 * self.rho * inbox.on_links(theta) - inbox.held["z"]
        everyone = common.xp.ones(theta.shape[:2], np.bool_)
        return ConsensusState(theta), LinkMessage(OnLinks(q)), everyone

    def keep(self, held: Array, came: Array) -> Array:
        """z_ij after q_ji was received: (z_ij + q_ji) / 2, since alpha = 1/2."""
        return (held + came) / 2

    def receive(
        self, common: Common, own: ConsensusState, inbox: Inbox, samples: BatchSamples, turn: Turn
    ) -> tuple[ConsensusState, Array]:
        """Return the unchanged state and theta, because z is in the inbox."""
        return own, own.theta
