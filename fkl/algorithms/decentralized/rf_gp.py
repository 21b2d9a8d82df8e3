"""Agents on a graph average the sums from which random-feature Gaussian processes are learned.

`fkl.algorithms.gaussian_processes` has the equations and their sources; docs/findings/gaussian_processes.md compares
both methods.

Consensus RF-GP: In each exchange, agents average their information by one consensus step, and use K times the average
as the information of all K agents. This is the consensus on information of Battistelli and Chisci, Automatica 50
(2014), for states that do not move.

D-RF-GP: Llorente, Waxman and Djuric, Decentralized Online Ensembles of Gaussian Processes for Multi-Agent Systems,
ICASSP 2025, arXiv 2502.05301. The equations are those of the authors' code
(github.com/FLlorente/DecentralizedOnlineGPs), with one exchange per round; only the paper's abstract was available. In
the authors' code, an agent adds K times an average of its own and its neighbours' newest terms to its sums, and the
newest terms of others are not forwarded. Here an agent sends its sums so far, and its neighbours average these. The
sums are the same, and a lost message costs only the newest terms.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Outcome, World
from fkl.algorithms.gaussian_processes import (
    FIRST_LEVEL,
    LEAST_NOISE,
    GaussianProcesses,
    NormalPrediction,
    kernel_posterior,
    lower_triangle,
    most_evident,
    symmetric_matrix,
    weights_of_active,
)
from fkl.basics.arrays import Array
from fkl.basics.keys import key
from fkl.contract.graph import Agents, OnStreams
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.wire.channel import Inbox
from fkl.wire.coded_payloads import Quantised, Sparse
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class ShareMessage:
    """Message of an agent: its share of all sums.

    Parameters
    ----------
    moments : payload (R, K, N, P (P + 1) / 2 + P)
        S and b of each kernel, as in `fkl.algorithms.gaussian_processes.Moments`.
    totals : payload (R, K, 2)
        n and q.
    """

    moments: PerClient | Quantised | Sparse | SameForAll
    totals: PerClient | Quantised | Sparse | SameForAll


@dataclass
class AgentSums:
    """An agent's state, without its inbox.

    Parameters
    ----------
    moments, totals : (R, K, N, L), (R, K, 2)
        The agent's share of all sums. The shares of all agents add up to the sums over all samples that were sent.
    own_moments, own_totals : (R, K, N, L), (R, K, 2)
        Sums over the agent's own samples since the last exchange.
    noise : (R, K, N)
    root, theta, evidence : (R, K, N, P, P), (R, K, N, P), (R, K, N)
        The posterior with which an agent predicts: root'root = A^-1, the mean of theta, and the logarithm of each
        kernel's evidence.
    log_w : (R, K, N)
        Sum of the log densities of the agent's samples so far.
    decided : (R, K) int64
        Round in which noise levels were last chosen, -1 if never.
    """

    moments: Array
    totals: Array
    own_moments: Array
    own_totals: Array
    noise: Array
    root: Array
    theta: Array
    evidence: Array
    log_w: Array
    decided: NDArray[np.int64]


@dataclass(frozen=True)
class ConsensusRfGp(GaussianProcesses, OnStreams):
    """Agents average their shares of all sums with their neighbours, and predict from K times a share.

    With shares M_k and sums F_k over an agent's newest samples, each exchange computes M_k <- sum_j W_kj (M_j + F_j)
    with Metropolis weights W, and an agent uses K M_k + F_k as the sums over all samples. On a complete graph, these
    are the sums of RF-GP's server. On others, an agent's newest samples count too much until they have spread.
    """

    label: ClassVar[str] = "Consensus RF-GP"
    choices_reveal_data: ClassVar[bool] = False
    on_a_graph: ClassVar[bool] = True
    not_traceable: ClassVar[str] = "its messages differ between rounds"

    def needs(self, dictionary: Dictionary, problem: Problem) -> int:
        """Least memory of a replicate in bytes, for the sums and factors of all kernels at every agent."""
        return problem.clients * super().needs(dictionary, problem)

    def start(self, common: Common, agents: int) -> tuple[AgentSums, ShareMessage]:
        """Start from the prior theta ~ N(0, I)."""
        bank, xp = common.bank, common.xp
        R, N, P = bank.replicates, bank.kernels, bank.width
        L = P * (P + 1) // 2 + P
        moments, totals = xp.zeros((R, agents, N, L)), xp.zeros((R, agents, 2))
        noise = xp.full((R, agents, N), FIRST_LEVEL if self.noise is None else self.noise)
        prior = kernel_posterior(common.bank, *_unpack_moments(moments, P), totals, noise)
        fresh = moments.copy(), totals.copy()
        state = AgentSums(moments, totals, *fresh, noise, *prior, xp.zeros((R, agents, N)), xp.full((R, agents), -1))
        return state, ShareMessage(SameForAll(xp.zeros((R, N, L))), SameForAll(xp.zeros((R, 2))))

    def learn(
        self, common: Common, own: AgentSums, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[AgentSums, Outcome]:
        """Predict with the mixture of all kernels, see y, and add the sample to the sums."""
        # Predict: mean and variance of each kernel, and of their mixture
        xp, y = common.xp, samples.y
        z = common.bank.features(samples.x).swapaxes(1, 2).astype(np.float64)  # (R, K, N, P)
        mean, along = (own.theta * z).sum(axis=-1), xp.matmul(own.root, z[..., None])[..., 0]
        of_kernels = NormalPrediction(mean, own.noise * (1 + (along**2).sum(axis=-1)))
        w = weights_of_active(own.log_w if self.personal else own.evidence, xp.ones(mean.shape, bool))
        y_hat, variance = of_kernels.mixture_moments(w)
        squared_norm = (own.theta**2).sum(axis=-1)
        loss = (mean - y[:, None]) ** 2 + self.lam * squared_norm
        log_density = of_kernels.mixture_log_density(w, y)
        # Outcome of the round, judged before the agent learns from the sample
        outcome = Outcome(y_hat, loss, lambda: (w * squared_norm).sum(axis=-1), variance, log_density)
        # The new sample's moments z z', y z and its count; only these are forgotten and sent, not the sample
        news = xp.concatenate([lower_triangle(z[..., None] * z[..., None, :]), y[:, None, None] * z], axis=-1)
        count = xp.broadcast_to(xp.stack([xp.ones(len(y)), y**2], axis=-1), own.own_totals.shape)
        f = self.forget
        learned = replace(
            own, moments=f * own.moments, totals=f * own.totals, own_moments=f * own.own_moments + news,
            own_totals=f * own.own_totals + count, log_w=own.log_w + of_kernels.log_density(y),
        )  # fmt: skip
        return learned, outcome

    def send(
        self, common: Common, own: AgentSums, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[AgentSums, ShareMessage, NDArray[np.bool_]]:
        """In rounds with an exchange, broadcast M_k + F_k."""
        tells = common.xp.full(own.decided.shape, self.sends_in_round(turn.t))
        if tells.any():
            moments, totals = own.moments + own.own_moments, own.totals + own.own_totals
            none, nothing = np.zeros_like(moments), np.zeros_like(totals)
            own = replace(own, moments=moments, totals=totals, own_moments=none, own_totals=nothing)
        return own, ShareMessage(PerClient(own.moments), PerClient(own.totals)), tells

    def hear(self, common: Common, own: AgentSums, inbox: Inbox, samples: Samples, turn: Turn) -> AgentSums:
        """Average with the neighbours' messages, choose noise levels, and compute the posterior."""
        # Agree with the neighbours first, so all agents compute posteriors from nearly the same sums
        xp, t, P, K = common.xp, turn.t, common.bank.width, common.clients
        decided, noise = own.decided, own.noise
        own, moments, totals = self.mix_moments(own, inbox, self.sends_in_round(t))
        # A share is 1/K of all sums; the agent's newest samples are not yet in it
        gram, pull = _unpack_moments(K * moments + own.own_moments, P)
        totals = K * totals + own.own_totals
        # Choose noise levels by the evidence in the rounds in which it is due
        decides = self.decides_in_round(t, decided) & self.sends_in_round(t)
        if decides.any():
            decided = xp.where(decides, t, decided)
            if self.noise is None:
                noise = xp.where(decides[..., None], most_evident(gram, pull, totals), noise)
        root, theta, evidence = kernel_posterior(common.bank, gram, pull, totals, noise)
        return replace(own, noise=noise, root=root, theta=theta, evidence=evidence, decided=decided)

    def mix_moments(self, own: AgentSums, inbox: Inbox, told: bool) -> tuple[AgentSums, Array, Array]:
        """The state after a consensus step, and the agent's shares of all moments and totals."""
        if told:  # otherwise the inbox has messages of an earlier round
            own = replace(own, moments=inbox.mix("moments", own.moments), totals=inbox.mix("totals", own.totals))
        return own, own.moments, own.totals

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Every agent's mixture of its kernels' means."""
        own: AgentSums = state.own
        w = weights_of_active(own.log_w if self.personal else own.evidence, np.ones(own.noise.shape, np.bool_))
        return OnFeatures.of_replicates(world.bank, own.theta, w)


def _unpack_moments(moments: Array, P: int) -> tuple[Array, Array]:
    """The matrices S (R, K, N, P, P) and vectors b (R, K, N, P) of packed moments."""
    return symmetric_matrix(moments[..., :-P]), moments[..., -P:]


@dataclass(frozen=True)
class DRfGpMessage(ShareMessage):
    """Message of an agent: the sums over its own samples, and the sum of their log densities, log_w (R, K, N)."""

    log_w: PerClient | Quantised | Sparse | SameForAll


@dataclass(frozen=True)
class DRfGp(ConsensusRfGp):
    """Agents predict with the posterior from K times the average of their own and their neighbours' sums.

    With sums M_j over the samples of agent j, agent k, which has d_k neighbours, uses K / (1 + d_k) (M_k + sum over
    neighbours of M_j) as the sums over all samples. These weights sum to 1 at each agent, but not over agents, so the
    samples of some agents count more than those of others. Kernels are weighted by the same average of log densities.
    An agent computes each log density with its own posterior before it sees the target. The authors have flush=1,
    noise=0.01, forget=1 and personal=False.
    """

    label: ClassVar[str] = "D-RF-GP"

    noise: float | None = key(
        0.01,
        "The authors have flush=1, noise=0.01, forget=1 and personal=False.",
        min=LEAST_NOISE,
        must="a variance of at least 1e-12, or null for the level of most evidence",
    )

    def start(self, common: Common, agents: int) -> tuple[AgentSums, DRfGpMessage]:
        """Start from the prior theta ~ N(0, I)."""
        own, known = super().start(common, agents)
        return own, DRfGpMessage(known.moments, known.totals, SameForAll(own.log_w[:, 0]))

    def send(
        self, common: Common, own: AgentSums, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[AgentSums, DRfGpMessage, NDArray[np.bool_]]:
        """In rounds with an exchange, broadcast the sums over the agent's own samples."""
        own, message, tells = super().send(common, own, inbox, samples, turn)
        return own, DRfGpMessage(message.moments, message.totals, PerClient(own.log_w)), tells

    def hear(self, common: Common, own: AgentSums, inbox: Inbox, samples: Samples, turn: Turn) -> AgentSums:
        """Learn from the agent's and its neighbours' sums, and weight kernels by log densities."""
        log_w = common.clients * _average_with_neighbours("log_w", own.log_w, inbox)
        return replace(super().hear(common, own, inbox, samples, turn), evidence=log_w)

    def mix_moments(self, own: AgentSums, inbox: Inbox, told: bool) -> tuple[AgentSums, Array, Array]:
        """The averages of the agent's and its neighbours' moments and totals; the state keeps the agent's own sums."""
        return (
            own,
            _average_with_neighbours("moments", own.moments, inbox),
            _average_with_neighbours("totals", own.totals, inbox),
        )


def _average_with_neighbours(kind: str, own: Array, inbox: Inbox) -> Array:
    """The average of an agent's own values and its neighbours', (R, K, ...)."""
    return (own + inbox.sum(kind)) / (1 + inbox.degree).reshape(-1, *[1] * (own.ndim - 2))
