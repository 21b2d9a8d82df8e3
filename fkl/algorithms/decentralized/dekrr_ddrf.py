"""DeKRR-DDRF: decentralized kernel ridge regression in which each node chooses features by its own data.

Yang, He, He, Yang and Huang, "Decentralized Kernel Ridge Regression Based on Data-Dependent Random Feature", IEEE TNNLS
(2024), arXiv 2405.07791. Equations are those of the authors' code (github.com/Yruikk/DeKRR-DDRF), in its notation: node
j has N_j samples X_j and Y_j and neighbours p in N_j, and Z_pj = Z_p(X_j) are the features of p at the samples of j.

Nodes send only what receivers cannot compute. In the first iteration, each node broadcasts its frequencies and phases.
In the second, j can compute Z_pj, and sends each p the two Gram matrices of its samples that contain Z_pj. After that,
nodes broadcast theta. The authors' code computes all nodes in one process and has no messages.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fkl.algorithms.base import World
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.random_streams import Role
from fkl.contract.graph import Agents, Decentralized
from fkl.contract.star import Turn
from fkl.contract.world import Common, OwnSamples
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.tasks.batch import Batched, OwnFeaturesTask, OwnFunctions
from fkl.tasks.task import Task
from fkl.wire.channel import Inbox
from fkl.wire.payloads import OnLinks, PerClient, SameForAll

PROXIMAL = 5.0
"""Factor of c_j in the weight that keeps a Jacobi step near Z_jj'theta_j, because all nodes step at once."""
SMALLEST = 2.0**-54
"""Replaces 0 (one uniform number in 2^53) before uniform numbers are transformed to normal ones."""


@dataclass(frozen=True)
class AssumedMessage:
    """The message of zeros that agents assume of a neighbour before it sends one."""

    omega: SameForAll
    phase: SameForAll
    grams: SameForAll
    theta: SameForAll


@dataclass(frozen=True)
class AgentFrequencies:
    """Message of an agent to all neighbours: its frequencies (R, K, d, D) and phases (R, K, D)."""

    omega: PerClient
    phase: PerClient


@dataclass(frozen=True)
class Grams:
    """Message to p: the upper triangle of c_j Z_pj Z_pj', and c_j Z_pj Z_jj', (R, links, D (D + 1) / 2 + D^2)."""

    grams: OnLinks


@dataclass(frozen=True)
class AgentTheta:
    """Message of an agent to all neighbours: its theta (R, K, D)."""

    theta: PerClient


@dataclass
class DekrrState:
    """An agent's state: theta (R, K, D), and omega (R, K, d, D) and phase (R, K, D) of its features."""

    theta: Array
    omega: Array
    phase: Array


@dataclass(frozen=True)
class System:
    """Matrices for all iterations, computed once and stored in `OwnSamples.kept`.

    Parameters
    ----------
    pull : (R, K, D)
        Z_jj Y_j.
    stay : (R, K, D, D)
        5 c_j Z_jj Z_jj'.
    inverse : (R, K, D, D)
        M_j^-1.
    coupled : (R, links, D, D)
        c_j Z_jj Z_pj' + c_p Z_jp Z_pp', which multiplies the neighbour's theta.
    """

    pull: Array
    stay: Array
    inverse: Array
    coupled: Array


@dataclass(frozen=True)
class DekrrDdrf(Batched, Decentralized):
    """Nodes agree on function values at their samples, c_j |Z_jj'theta_j - Z_pj'theta_p|^2, and not on theta.

    The objective is sum_j (|Z_jj'theta_j - Y_j|^2 + lam n_j |theta_j|^2 + c_j sum_p |Z_jj'theta_j - Z_pj'theta_p|^2),
    with c_j = c / |N_j|. In the authors' code n_j = N / J, with N samples at J nodes.
    """

    label: ClassVar[str] = "DeKRR-DDRF"
    choices_reveal_data: ClassVar[bool] = False
    on_a_graph: ClassVar[bool] = True
    on_links: ClassVar[bool] = True
    conserves: ClassVar[bool] = True
    told_once: ClassVar[bool] = True
    own_features: ClassVar[bool] = True
    not_traceable: ClassVar[str] = "its agents choose their own features by their data, on the host"
    task: ClassVar[type[Task]] = OwnFeaturesTask

    iterations: int = key(
        1500,
        "Number of iterations, one more than steps: the first exchanges features, the second Gram matrices before "
        "its step.",
        min=1,
        max=1_000_000_000,
    )
    loss: str = key("square", "(y - f)^2.", choices=("square",), must="square: ridge regression has no other")
    lam: float = key(1e-6, "Regularisation lambda.", above=0)
    c: float = key(1.0, "Weight of the agreement between neighbours.", min=0)
    penalty: str = key(
        "equal",
        "Whether n_j is the same for all nodes, N / J, as published, or the node's number of samples, N_j.",
        choices=("equal", "by_samples"),
    )
    candidates: int = key(
        20,
        "Frequencies that a node draws for each that it keeps. It keeps those with the largest |Z Y| with random "
        "phases, and then draws new phases. 1 for features that do not depend on data.",
        min=1,
        max=1000,
    )

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse all but one RBF kernel with cosine features, which each node draws."""
        require(
            kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel, for example kernels=rbf_single"
        )
        require(kernels.families == ("rbf",), "kernels.family", kernels.families[0], f"rbf for {self.label}")
        require(kernels.draw == "iid", "kernels.draw", kernels.draw, f"iid for {self.label}, whose nodes draw features")
        require(kernels.map == "cosine", "kernels.map", kernels.map, f"cosine for {self.label}")

    def start(self, common: Common, agents: int) -> tuple[DekrrState, AssumedMessage]:
        """Start from theta = 0; features are drawn later."""
        kernels = common.dictionary
        self.require_fits(kernels)
        R, d, D = len(common.streams.replicates), common.dimension, kernels.D
        theta, omega = np.zeros((R, agents, D)), np.zeros((R, agents, d, D))
        nothing, grams = SameForAll(np.zeros((R, D))), SameForAll(np.zeros((R, D * (D + 1) // 2 + D * D)))
        return DekrrState(theta, omega, theta.copy()), AssumedMessage(
            SameForAll(np.zeros((R, d, D))), nothing, grams, nothing
        )

    def send(
        self, common: Common, own: DekrrState, inbox: Inbox, samples: OwnSamples, turn: Turn
    ) -> tuple[DekrrState, Any, NDArray[np.bool_]]:
        """Send features, then Gram matrices, then theta in all further iterations."""
        everyone = np.ones(own.theta.shape[:2], np.bool_)
        R, K, d, D = own.omega.shape
        if turn.t == 0:
            # Keep the D of `candidates` D frequencies with the largest |z'Y| / N_j, and draw D new phases
            many = self.candidates * D
            uniform = turn.vectors(Role.OWN_FEATURES, d * many)
            trial, phase = (
                2 * np.pi * turn.vectors(Role.OWN_FEATURES, size, draw) for draw, size in ((1, many), (2, D))
            )
            # Inverse transform: frequencies from the Gaussian of the kernel's Fourier transform
            scale, omega = float(common.dictionary.scales[0]), np.empty_like(own.omega)
            for r, k in np.ndindex(R, K):
                drawn = scale * ndtri(np.maximum(uniform[r, k], SMALLEST)).reshape(d, many)
                # Score of a frequency: how strongly its cosine correlates with the agent's targets
                n = samples.count[k]
                score = np.abs(samples.y[k, :n] @ np.cos(samples.x[k, :n] @ drawn + trial[r, k]))
                omega[r, k] = drawn[:, np.argsort(-score, kind="stable")[:D]]
            own = DekrrState(own.theta, omega, phase)
            return own, AgentFrequencies(PerClient(omega), PerClient(phase)), everyone
        if turn.t == 1:
            # Send neighbour p c_j Z_pj Z_pj' and c_j Z_pj Z_jj', which it cannot compute without the samples of j
            # Upper triangles only, because Z_pj Z_pj' is symmetric
            upper, products_sent, c = np.triu_indices(D), [], self._weights_of_agreement(inbox)
            for r in range(R):
                mine = [_features_at(samples, j, own.omega[r, j], own.phase[r, j]) for j in range(K)]  # Z_jj'
                for link, j in enumerate(inbox.graph.receiver):  # type: ignore[union-attr]  # of a method that has `on_links`
                    theirs = _features_at(samples, j, inbox.held["omega"][r, link], inbox.held["phase"][r, link])
                    both = c[j] * (theirs.T @ np.concatenate([theirs, mine[j]], axis=1))
                    products_sent.append(np.concatenate([both[:, :D][upper], both[:, D:].ravel()]))
            return own, Grams(OnLinks(np.array(products_sent).reshape(R, -1, D * (D + 1) // 2 + D * D))), everyone
        return own, AgentTheta(PerClient(own.theta)), everyone

    def receive(
        self, common: Common, own: DekrrState, inbox: Inbox, samples: OwnSamples, turn: Turn
    ) -> tuple[DekrrState, OwnFunctions]:
        """theta_j = M_j^-1 (Z_jj Y_j + sum_p (c_j Z_jj Z_pj' + c_p Z_jp Z_pp') theta_p + 5 c_j Z_jj Z_jj' theta_j)."""
        if turn.t > 0:
            system = self._linear_system(own, inbox, samples)
            received = (system.coupled @ inbox.held["theta"][..., None])[..., 0]
            right = system.pull + inbox.graph.neighbour_sum(received) + (system.stay @ own.theta[..., None])[..., 0]
            own = DekrrState((system.inverse @ right[..., None])[..., 0], own.omega, own.phase)
        return own, OwnFunctions(own.theta, own.omega, own.phase)

    def _weights_of_agreement(self, inbox: Inbox) -> Array:
        """c_j = c / |N_j|, (K,); 0 for a node without neighbours."""
        return np.divide(self.c, inbox.degree, out=np.zeros_like(inbox.degree), where=inbox.degree > 0)

    def _linear_system(self, own: DekrrState, inbox: Inbox, samples: OwnSamples) -> System:
        """The matrices for these features, computed once. They are not in the state, because they are much larger."""
        key = own.omega[..., 0].tobytes()
        if key in samples.kept:
            return samples.kept[key]
        R, K, D = own.theta.shape
        c, split, upper = self._weights_of_agreement(inbox), D * (D + 1) // 2, np.triu_indices(D)
        pull, stay, inverse = np.empty((R, K, D)), np.empty((R, K, D, D)), np.empty((R, K, D, D))
        coupled = np.empty((R, inbox.graph.copies, D, D))
        penalty = self.lam * (np.full(K, samples.mean) if self.penalty == "equal" else samples.count)
        for r in range(R):
            mine = [_features_at(samples, j, own.omega[r, j], own.phase[r, j]) for j in range(K)]  # Z_jj'
            matrix = np.empty((K, D, D))
            for j, z in enumerate(mine):
                gram, degree = z.T @ z, inbox.degree[j]
                pull[r, j], stay[r, j] = samples.y[j] @ z, PROXIMAL * c[j] * gram
                matrix[j] = (1 + c[j] * degree + PROXIMAL * c[j]) * gram + penalty[j] * np.eye(D)
            for link, j in enumerate(inbox.graph.receiver):  # type: ignore[union-attr]  # of a method that has `on_links`
                theirs = _features_at(samples, j, inbox.held["omega"][r, link], inbox.held["phase"][r, link])
                products = inbox.held["grams"][r, link]
                gram = np.zeros((D, D))
                gram[upper] = products[:split]
                matrix[j] += gram + np.triu(gram, 1).T
                coupled[r, link] = c[j] * mine[j].T @ theirs + products[split:].reshape(D, D)
            inverse[r] = np.linalg.inv(matrix)
        samples.kept.clear()
        samples.kept[key] = system = System(pull, stay, inverse, coupled)
        return system

    def functions(self, world: World, state: Agents, t: int) -> tuple[OnFeatures, ...]:
        """Every agent's function in its own features, stored as kernel k for agent k."""
        own, K = state.own, world.problem.clients
        zero, ones = np.array(0.0), np.ones(K)
        return tuple(
            OnFeatures(omega, ones, phase, np.array(0), theta[None], np.eye(K), zero)
            for theta, omega, phase in zip(own.theta, own.omega, own.phase, strict=True)
        )


def _features_at(samples: OwnSamples, j: int, omega: Array, phase: Array) -> Array:
    """Features (n, D) of omega (d, D) and phase (D,) at the samples of agent j; rows of padding are 0."""
    return np.sqrt(2 / len(phase)) * np.cos(samples.x[j] @ omega + phase) * samples.there[j][:, None]
