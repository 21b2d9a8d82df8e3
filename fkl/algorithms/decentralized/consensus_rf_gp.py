"""Consensus RF-GP: agents on a graph that agree on the sums which random-feature Gaussian processes are learned from.

The equations, and whose they are, stand in `fkl.algorithms.gaussian_processes`. Of Llorente, Waxman and Djuric,
Decentralized Online Ensembles of Gaussian Processes for Multi-Agent Systems, arXiv 2502.05301, the abstract alone was
at hand. That agents average their information by a step of consensus in each exchange, and take K times it for that of
all K, is the consensus on information of Battistelli and Chisci, Automatica 50 (2014), for states that do not move.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Array, Outcome, World
from fkl.algorithms.gaussian_processes import (
    FIRST_LEVEL,
    GaussianProcesses,
    Prediction,
    most_evident,
    posterior,
    weights_of_active,
)
from fkl.algorithms.second_moments import lower_triangle, symmetric_matrix
from fkl.contract.graph import Agents, OnStreams
from fkl.contract.star import Samples, Turn
from fkl.contract.world import Common
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.wire.coded_payloads import Quantised, Sparse
from fkl.wire.inbox import Inbox
from fkl.wire.payloads import PerClient, SameForAll


@dataclass(frozen=True)
class Message:
    """An agent's share of all sums.

    Parameters
    ----------
    moments : payload (R, K, N, P (P + 1) / 2 + P)
        S and b of each kernel, as of `fkl.algorithms.second_moments.Moments`.
    totals : payload (R, K, 2)
        n and q.
    """

    moments: PerClient | Quantised | Sparse | SameForAll
    totals: PerClient | Quantised | Sparse | SameForAll


@dataclass
class State:
    """What an agent holds, besides its inbox.

    Parameters
    ----------
    moments, totals : (R, K, N, L), (R, K, 2)
        Its share of all sums, which over agents add up to those of all samples that were told.
    own_moments, own_totals : (R, K, N, L), (R, K, 2)
        Sums of its own samples since the last exchange.
    noise : (R, K, N)
    root, theta, evidence : (R, K, N, P, P), (R, K, N, P), (R, K, N)
        What an agent predicts with: root'root = A^-1, the mean of theta, and the logarithm of each kernel's evidence.
    log_w : (R, K, N)
        Log densities of its samples so far, all added up.
    decided : (R, K) int64
        Round in which levels of noise were decided, -1 for none.
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
    """Every agent predicts with the posterior of K times its share of all sums, and averages it with its neighbours.

    With shares M_k and sums F_k of its own newest samples, M_k <- sum_j W_kj (M_j + F_j) by Metropolis weights W in
    each exchange, and what an agent takes for all samples is K M_k + F_k. On a complete graph this is what the server
    of RF-GP knows; elsewhere an agent's own newest samples count for too much until they have spread.

    Parameters
    ----------
    flush, noise, forget, personal, lam : see `GaussianProcesses`
    """

    label: ClassVar[str] = "Consensus RF-GP"
    on_a_graph: ClassVar[bool] = True
    not_traceable: ClassVar[str] = "its messages are not alike in all rounds"

    def needs(self, dictionary: Dictionary, problem: Problem) -> int:
        """Bytes that a replicate takes at least: sums and factors of all kernels at every agent."""
        return problem.clients * super().needs(dictionary, problem)

    def start(self, common: Common, agents: int) -> tuple[State, Message]:
        """Nothing is known but that theta ~ N(0, I)."""
        bank, xp = common.bank, common.xp
        R, N, P = bank.replicates, bank.kernels, bank.width
        L = P * (P + 1) // 2 + P
        moments, totals = xp.zeros((R, agents, N, L)), xp.zeros((R, agents, 2))
        noise = xp.full((R, agents, N), FIRST_LEVEL if self.noise is None else self.noise)
        known = posterior(common, *_matrices(moments, P), totals, noise)
        fresh = moments.copy(), totals.copy()
        state = State(moments, totals, *fresh, noise, *known, xp.zeros((R, agents, N)), xp.full((R, agents), -1))
        return state, Message(SameForAll(xp.zeros((R, N, L))), SameForAll(xp.zeros((R, 2))))

    def learn(self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn) -> tuple[State, Outcome]:
        """Predict with the mixture of all kernels, see y, and add up what the sample comes to."""
        xp, y = common.xp, samples.y
        z = common.bank.features(samples.x).swapaxes(1, 2).astype(np.float64)  # (R, K, N, P)
        mean, along = (own.theta * z).sum(axis=-1), xp.matmul(own.root, z[..., None])[..., 0]
        each = Prediction(mean, own.noise * (1 + (along**2).sum(axis=-1)))
        w = weights_of_active(own.log_w if self.personal else own.evidence, xp.ones(mean.shape, bool))
        y_hat, variance = each.mixture_moments(w)
        squared_norm = (own.theta**2).sum(axis=-1)
        loss = (mean - y[:, None]) ** 2 + self.lam * squared_norm
        outcome = Outcome(y_hat, loss, lambda: (w * squared_norm).sum(axis=-1), variance=variance)
        news = xp.concatenate([lower_triangle(z[..., None] * z[..., None, :]), y[:, None, None] * z], axis=-1)
        count = xp.broadcast_to(xp.stack([xp.ones(len(y)), y**2], axis=-1), own.own_totals.shape)
        f = self.forget
        learned = replace(
            own, moments=f * own.moments, totals=f * own.totals, own_moments=f * own.own_moments + news,
            own_totals=f * own.own_totals + count, log_w=own.log_w + each.log_density(y),
        )  # fmt: skip
        return learned, outcome

    def send(
        self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn
    ) -> tuple[State, Message, NDArray[np.bool_]]:
        """Broadcast M_k + F_k, where it is time to."""
        tells = common.xp.full(own.decided.shape, self.sends_in_round(turn.t))
        if tells.any():
            moments, totals = own.moments + own.own_moments, own.totals + own.own_totals
            none, nothing = np.zeros_like(moments), np.zeros_like(totals)
            own = replace(own, moments=moments, totals=totals, own_moments=none, own_totals=nothing)
        return own, Message(PerClient(own.moments), PerClient(own.totals)), tells

    def hear(self, common: Common, own: State, inbox: Inbox, samples: Samples, turn: Turn) -> State:
        """Average with what the neighbours have sent, decide on levels of noise, and learn."""
        xp, t, P, K = common.xp, turn.t, common.bank.width, common.clients
        decided, noise = own.decided, own.noise
        if self.sends_in_round(t):  # else the inbox has what was sent in an earlier round
            own = replace(own, moments=inbox.mix("moments", own.moments), totals=inbox.mix("totals", own.totals))
        # A share is a K-th of all sums; the newest samples of its own have not been shared yet.
        gram, pull = _matrices(K * own.moments + own.own_moments, P)
        totals = K * own.totals + own.own_totals
        decides = self.decides_in_round(t, decided) & self.sends_in_round(t)
        if decides.any():
            decided = xp.where(decides, t, decided)
            if self.noise is None:
                noise = xp.where(decides[..., None], most_evident(gram, pull, totals), noise)
        root, theta, evidence = posterior(common, gram, pull, totals, noise)
        return replace(own, noise=noise, root=root, theta=theta, evidence=evidence, decided=decided)

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Every agent's mixture of its kernels' means."""
        own: State = state.own
        w = weights_of_active(own.log_w if self.personal else own.evidence, np.ones(own.noise.shape, np.bool_))
        return OnFeatures.of_replicates(world.bank, own.theta, w)


def _matrices(moments: Array, P: int) -> tuple[Array, Array]:
    """S (R, K, N, P, P) and b (R, K, N, P)."""
    return symmetric_matrix(moments[..., :-P]), moments[..., -P:]
