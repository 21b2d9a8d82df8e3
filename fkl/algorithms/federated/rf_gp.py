"""RF-GP: an ensemble of random-feature Gaussian processes, learned from sums over clients' samples.

`fkl.algorithms.gaussian_processes` has the equations and their sources. Clients send only the sums S, b, n and q of
each kernel, for one or several rounds at a time. This is an information filter for an ensemble with a server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.algorithms.base import mixture_norm, squared_norms
from fkl.algorithms.gaussian_processes import (
    FIRST_LEVEL,
    GaussianProcesses,
    Moments,
    NormalPrediction,
    from_lower_triangle,
    kernel_posterior,
    lower_triangle,
    most_evident,
    most_evident_kernels,
    sum_of_outer_products,
    symmetric_matrix,
    weights_of_active,
)
from fkl.algorithms.sums import Sums
from fkl.basics.arrays import Array, choose_branch
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.contract.star import Federated, Samples, StarState, Turn
from fkl.contract.world import Common, Outcome, World
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.kernels.functions import Gaussian, OnFeatures
from fkl.wire.payloads import PerClient, SameForAll, Selected


@dataclass(frozen=True)
class PosteriorMessage:
    """Message to all clients: the model with which they predict, for each kernel that is still learned.

    Parameters
    ----------
    theta : payload (R, N, P)
    root : payload (R, N, P (P + 1) / 2)
        Lower triangle of a matrix with root'root = A^-1.
    noise, log_w : payload (R, N)
        Noise s2, and the logarithm of the evidence.
    """

    theta: SameForAll | Selected
    root: SameForAll | Selected
    noise: SameForAll | Selected
    log_w: SameForAll | Selected


@dataclass(frozen=True)
class GpStatistics:
    """Message of a client: sums over its samples since its last message, S and b of each kernel, and n and q."""

    moments: Moments
    totals: PerClient


@dataclass(frozen=True)
class Summary:
    """Message of a client: a few synthetic samples with nearly the sums of `GpStatistics`, if these are too large.

    Parameters
    ----------
    samples : payload (R, K, N, r, P + 1)
        Synthetic samples a_j, whose sum of a_j a_j' is closest to that of (z, y) (z, y)' over the client's samples.
    totals : payload (R, K, 2)
        The sums n and q, unchanged.
    """

    samples: PerClient
    totals: PerClient


@dataclass
class SumsServer:
    """The server's state.

    Parameters
    ----------
    gram, pull, totals : (R, N, P, P), (R, N, P), (R, 2)
        S and b of each kernel, n and q.
    noise : (R, N)
    root, theta, evidence : (R, N, P, P), (R, N, P), (R, N)
        root'root = A^-1, the mean of theta, and the logarithm of the evidence.
    active : (R, N) bool
        Kernels that are still learned.
    heard, decided : (R,) int64
        Rounds of the last messages from clients, and of the last choice of noise levels and kernels; -1 for none.
    clients : int
    """

    gram: Array
    pull: Array
    totals: Array
    noise: Array
    root: Array
    theta: Array
    evidence: Array
    active: NDArray[np.bool_]
    heard: NDArray[np.int64]
    decided: NDArray[np.int64]
    clients: int


@dataclass
class EvidenceClient:
    """State of a client: the samples that it has not yet sent, and how well each kernel predicted its samples.

    Parameters
    ----------
    x, y : (R, K, B, d), (R, K, B)
        Samples that the client keeps until it sends their sums, at most B.
    at : (R, K, B) int64
        Rounds of these samples, -1 in empty places.
    log_w : (R, K, N)
        Sum of the log densities of the client's samples so far.
    """

    x: Array
    y: Array
    at: NDArray[np.int64]
    log_w: Array


@dataclass(frozen=True)
class RfGp(GaussianProcesses, Federated):
    """Every client predicts with the posterior given all clients' samples, and sends sums over its own samples.

    With a message in every round, it is exactly Bayesian linear regression on pooled samples: after t rounds, theta is
    that of ridge regression with lambda = s2. A message about one sample discloses the sample. Less frequent messages
    about many samples disclose only their sums.
    """

    label: ClassVar[str] = "RF-GP"
    choices_reveal_data: ClassVar[bool] = False
    uses_sample_once: ClassVar[bool] = True
    exact_evidence: ClassVar[Mapping[str, Any]] = {
        "M": None, "rank": None, "flush": 1, "noise": FIRST_LEVEL, "forget": 1.0,
    }  # fmt: skip

    M: int | None = key(
        None,
        "Kernels that are learned to the end, to send less. Whenever noise levels are chosen, after 1, 2, 3, 5, "
        "8, 12, ... rounds, the half with the smaller evidence is dropped, until M are left. None for all.",
        min=1,
        must="an integer >= 1, or null for all kernels",
    )
    rank: int | None = key(
        None,
        "Synthetic samples (z, y) per kernel that summarise a message, if its P (P + 3) / 2 sums are too many to "
        "send. They are the eigenvectors of sum (z, y) (z, y)' with the largest eigenvalues, each scaled by the "
        "root of its eigenvalue. The remainder counts as noise. The server reads them, so secure sums are not "
        "possible. None sends the sums.",
        min=1,
        must="an integer >= 1, or null for all sums",
    )

    @property
    def means_only(self) -> bool:  # type: ignore[override]
        """Whether the server needs only means; with `rank`, it reads the synthetic samples of each message."""
        return self.rank is None

    @property
    def message_of_one_sample(self) -> bool:  # type: ignore[override]
        """Whether a message is about one sample, because clients send in every round."""
        return self.flush == 1

    @property
    def not_traceable(self) -> str:  # type: ignore[override]
        """Why JAX cannot trace the rounds; empty if messages have the same form in all rounds."""
        alike = self.flush == 1 and self.M is None and self.rank is None
        return "" if alike else "its messages differ between rounds, except with flush=1, and M and rank null"

    @property
    def not_sums(self) -> str:
        """Why the model is no function of sums over clients; empty if it is one."""
        if self.personal:
            return "with algo.personal=true, kernels are weighted by predictions of models that all clients' rows made"
        if self.M is not None:
            return "the sums of kernels that algo.M dropped are gone"
        if self.rank is not None:
            return "with algo.rank, clients send synthetic samples, not their sums"
        return "" if self.forget == 1 else "with algo.forget below 1, the age of a sum depends on the other clients"

    def needs(self, dictionary: Dictionary, problem: Problem) -> int:
        """Least memory of a replicate in bytes, including the samples that clients keep."""
        kept = 0 if self.flush == 1 else 8 * problem.present.size * (2 + problem.dimension // 2)
        return super().needs(dictionary, problem) + kept

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse M if there are fewer than M kernels."""
        fits = self.M is None or self.M <= kernels.N
        require(fits, "M", self.M, f"an integer from 1 to kernels.N={kernels.N}, or null")

    def start(self, common: Common, clients: int) -> tuple[SumsServer, EvidenceClient]:
        """Start from the prior theta ~ N(0, I)."""
        bank, xp = common.bank, common.xp
        R, N, P = bank.replicates, bank.kernels, bank.width
        self.require_fits(common.dictionary)
        # Sums over no samples: the posterior is the prior
        none, gram, pull, totals = xp.full(R, -1), xp.zeros((R, N, P, P)), xp.zeros((R, N, P)), xp.zeros((R, 2))
        noise = xp.full((R, N), FIRST_LEVEL if self.noise is None else self.noise)
        prior = kernel_posterior(common.bank, gram, pull, totals, noise)
        server = SumsServer(gram, pull, totals, noise, *prior, xp.ones((R, N), bool), none, none, clients)
        # Clients keep samples only if messages are not sent in every round
        B = 0 if self.flush == 1 else common.rounds
        x = xp.zeros((R, clients, B, common.dimension), bank.precision)
        at = xp.full((R, clients, B), -1)
        return server, EvidenceClient(x, xp.zeros((R, clients, B)), at, xp.zeros((R, clients, N)))

    def broadcast(self, common: Common, server: SumsServer, turn: Turn) -> PosteriorMessage:
        """Send the posterior of all kernels, or of those that are still learned."""
        posterior_values = server.theta, lower_triangle(server.root), server.noise, server.evidence
        if self.M is None:
            return PosteriorMessage(*(SameForAll(values) for values in posterior_values))
        R, N = server.active.shape
        chosen = common.xp.broadcast_to(server.active[:, None], (R, server.clients, N))
        return PosteriorMessage(*(Selected(values, chosen) for values in posterior_values))

    def client(
        self, common: Common, client: EvidenceClient, down: PosteriorMessage, samples: Samples, turn: Turn
    ) -> tuple[EvidenceClient, GpStatistics | Summary | None, Outcome]:
        """Predict with the mixture of all kernels, update their weights, and send the sums that are due."""
        # Unpack the posterior; kernels that are not active take no part in mixtures
        bank, xp, here = common.bank, common.xp, samples.present
        theta, noise, log_w = (payload.values for payload in (down.theta, down.noise, down.log_w))
        active = xp.ones(noise.shape, bool) if self.M is None else down.theta.chosen[:, 0]  # type: ignore[union-attr]
        # Predict: mean and variance of each kernel, and of the mixture
        mean, spread = bank.gaussian(samples.x, theta, from_lower_triangle(down.root.values))
        of_kernels = NormalPrediction(mean, noise[:, None] * (1 + spread))
        w = weights_of_active(client.log_w if self.personal else log_w[:, None], active[:, None])
        y_hat, variance = of_kernels.mixture_moments(w)
        # Outcome of the round, judged before anything is learned
        loss = (mean - samples.y[:, None]) ** 2 + self.lam * squared_norms(theta)[:, None]
        active_theta = xp.where(active[..., None], theta, 0.0)
        log_density = of_kernels.mixture_log_density(w, samples.y)
        outcome = Outcome(
            y_hat, loss, lambda: xp.broadcast_to(mixture_norm(w, active_theta), y_hat.shape), variance, log_density
        )
        # A client's own weights grow with the density of its targets
        if self.personal:
            density = of_kernels.log_density(samples.y)
            client = replace(client, log_w=client.log_w + xp.where(here[:, None] & active[:, None], density, 0.0))

        # The new sample, appended to the kept samples if it is not sent now
        x, t = samples.x[None, :, None], turn.t
        y: Array = samples.y[None, :, None]
        if client.at.shape[-1] == 0:
            at = xp.where(here, t, -1)[None, :, None]
        else:
            x, y, at = client.x, client.y, client.at.copy()  # writes only to empty places of x and y
            mine, place = xp.flatnonzero(here), (at[0] >= 0).sum(axis=-1)[here]
            x[:, mine, place], y[:, mine, place], at[:, mine, place] = samples.x[here], samples.y[here], t
            client = replace(client, x=x, y=y, at=at)
        # The message is not due yet
        if not self.sends_in_round(t):
            return client, None, outcome

        # The message: sums over all samples that the server does not have yet, weighted by their age
        weight = xp.where(at >= 0, self.forget ** (t - at), 0.0)
        totals = xp.stack([weight.sum(axis=-1), (weight * y**2).sum(axis=-1)], axis=-1)
        sent = PerClient(xp.broadcast_to(totals, (bank.replicates, *totals.shape[1:])))
        moments = Moments(bank, x, y, weight, None if self.M is None else active)
        client = replace(client, at=xp.where(here[:, None], -1, client.at))
        if self.rank is None:
            return client, GpStatistics(moments, sent), outcome
        return client, Summary(moments.low_rank_samples(min(self.rank, t + 1)), sent), outcome

    def server(
        self, common: Common, server: SumsServer, up: GpStatistics | Summary | None, share: Array, turn: Turn
    ) -> SumsServer:
        """Add up the messages, choose noise levels and kernels if due, and compute the posterior.

        S <- f^(rounds since) S + sum_k S_k, and likewise for b, n and q.
        """
        # No client has sent
        if up is None:
            return server
        t, P = turn.t, common.bank.width
        # The mean over clients with messages, times their number, is the sum; earlier sums have decayed since then.
        heard, decay = 1 / share.max(), self.forget ** (t - server.heard)
        # The sums of the messages, of reduced or of full rank
        if isinstance(up, Summary):
            news = sum_of_outer_products(up.samples.dense().values, heard * share)
            told, along = news[..., :P, :P], news[..., :P, P]
        else:
            packed = heard * up.moments.mean(share)
            told, along = symmetric_matrix(packed[..., :-P]), packed[..., -P:]
        # Add them to the sums so far, which have decayed
        gram = decay[:, None, None, None] * server.gram + told
        pull = decay[:, None, None] * server.pull + along
        totals = decay[:, None] * server.totals + heard * up.totals.mean(share)
        # Noise levels and active kernels change only in the rounds in which they are due
        noise: Array = server.noise
        active, decided = server.active, server.decided
        decides = self.decides_in_round(t, decided)[0]  # all replicates have had the same number of rounds
        if self.noise is None:
            kept = noise
            noise = choose_branch(
                decides, lambda: common.xp.where(active, most_evident(gram, pull, totals), kept), lambda: kept
            )
        learned = kernel_posterior(common.bank, gram, pull, totals, noise)
        decided = common.xp.where(decides, t, decided)
        if self.M is not None and decides:
            half = -(-int(active[0].sum()) // 2)
            active = most_evident_kernels(learned.evidence, active, max(self.M, half))
        # All messages up to this round are in the sums
        now = common.xp.full_like(server.heard, t)
        return SumsServer(gram, pull, totals, noise, *learned, active, now, decided, server.clients)

    def log_evidence(self, state: StarState) -> Array:
        """Logarithm of the mean evidence over kernels, (R,)."""
        evidence: Array = state.server.evidence
        return np.asarray(scipy.special.logsumexp(evidence, axis=-1) - np.log(evidence.shape[-1]))

    def client_sums(self, world: World, rounds: int) -> Sums:
        """Each client's sums over the samples that it has sent in the first rounds, in the only replicate."""
        problem, sends = world.problem, [t for t in range(rounds) if self.sends_in_round(t)]
        parts = []
        for k, present in enumerate(problem.present[:rounds].T):
            sent = np.flatnonzero(present[: max((t + 1 for t in sends if present[t]), default=0)])
            parts.append(Sums.of_samples(world.bank, problem.x[sent, k], problem.y[sent, k, None]))
        return Sums.side_by_side(parts)

    def noise_of_sums(self, total: Sums) -> NDArray[np.float64]:
        """Each kernel's noise, (N,): the key's, or the level of most evidence for these sums."""
        if self.noise is not None:
            return np.full(total.gram.shape[1], self.noise)
        totals = np.concatenate([total.count, total.square[0]])[None]
        return most_evident(total.matrices()[None], total.pull[:, :, 0], totals)[0]

    def function_of_sums(self, function: Any, total: Sums) -> Gaussian:
        """The function that these sums over clients decide, in the features of another one."""
        noise, totals = self.noise_of_sums(total)[None], np.concatenate([total.count, total.square[0]])[None]
        learned = kernel_posterior(function.feature_bank(), total.matrices()[None], total.pull[:, :, 0], totals, noise)
        w = weights_of_active(learned.evidence, np.ones(noise.shape, np.bool_))
        mean = replace(function, theta=learned.theta.astype(function.theta.dtype), weights=w)
        return replace(mean, root=lower_triangle(learned.root)[0].astype(mean.root.dtype), noise=noise[0])

    def functions(self, world: World, state: StarState, t: int) -> tuple[Gaussian, ...]:
        """Every client's mixture of the kernels' normal distributions."""
        server: SumsServer = state.server
        log_w = state.client.log_w if self.personal else server.evidence[:, None]
        w = weights_of_active(log_w, server.active[:, None])
        means = OnFeatures.of_replicates(world.bank, server.theta[:, None], w)
        return tuple(map(Gaussian.from_mean, means, lower_triangle(server.root), server.noise))
