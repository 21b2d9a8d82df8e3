"""OMKL-GF: kernels chosen by a bipartite feedback graph that is drawn from their weights in each round.

Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023), Algorithms 1-3.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numba import njit

from fkl.algorithms.base import World
from fkl.algorithms.online.learners import PlayedRounds
from fkl.algorithms.online.selection import (
    Selective,
    draw_index,
    learn_chosen_kernels,
    relative_weights,
    uniform_numbers,
)
from fkl.basics.arrays import Array
from fkl.basics.keys import key
from fkl.kernels.bank import read_only
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.functions import OnFeatures
from fkl.kernels.threads import share_work

MOST_NODES = 10_000


@dataclass
class GraphFeedbackState:
    """The learner's state, and the graph.

    theta (R, N, P), log w (R, N); pi (R, J, N), the probabilities with which node j last drew kernel i, and the
    resulting graph A (R, J, N); uniform numbers for the graphs (R, G, J, M) and for the nodes (R, T + 1), the last for
    a round after the stream.
    """

    theta: Array
    log_w: Array
    pi: Array
    A: Array
    graph_draws: Array
    node_draws: Array
    played: PlayedRounds | None = None


@dataclass(frozen=True)
class OmklGf(Selective):
    """J selective nodes draw M kernels each, node j with exploration eta_e^j; a drawn node's kernels predict."""

    label: ClassVar[str] = "OMKL-GF"

    J: int = key(2, "Number of selective nodes.", min=1, max=MOST_NODES)

    def init(self, world: World) -> GraphFeedbackState:
        """Start from theta_i = 0, w_i = 1 (Algorithm 3)."""
        # Draws in advance: one number per round for the node, and J M numbers for each round that explores a new graph
        self.require_one(world)
        bank, T = world.bank, world.problem.rounds
        R, N, G = bank.replicates, bank.kernels, min(self.exploring, T + 1)
        draws = uniform_numbers(world, T + G * self.J * self.M + 1)
        return GraphFeedbackState(
            theta=np.zeros((R, N, bank.width), bank.precision),
            log_w=np.zeros((R, N)),
            pi=np.zeros((R, self.J, N)),
            A=np.zeros((R, self.J, N), np.bool_),
            graph_draws=np.ascontiguousarray(draws[:, T:-1]).reshape(R, G, self.J, self.M),
            node_draws=np.concatenate([draws[:, :T], draws[:, -1:]], axis=1),
        )

    def lengthened(self, world: World, state: GraphFeedbackState) -> GraphFeedbackState:
        """Extend the nodes' random numbers, after those already drawn; the graph keeps its numbers."""
        here, graph = state.node_draws.shape[1], state.graph_draws[0].size
        more = uniform_numbers(world, graph + world.problem.rounds + 1)[:, graph + here :]
        return replace(state, node_draws=np.concatenate([state.node_draws, more], axis=1))

    def play(self, world: World, state: GraphFeedbackState, rounds: slice) -> GraphFeedbackState:
        """Run Algorithm 3 for all replicates in parallel."""
        # The block's samples, step sizes and features, and arrays for the results
        block, played = self.open_block(world, rounds)
        theta = world.bank.split(state.theta)
        # Compiled code writes to these arrays of the state
        learned = theta, state.log_w, state.pi, state.A
        how = self.q_floor, self.divide_by == "observed", self.draw == "next"
        drawn = read_only(state.graph_draws), read_only(state.node_draws)
        share_work(
            _play_replicates, len(state.log_w), self.features_per_block(world, rounds), block, rounds.start,
            *learned, *drawn, *how, played.y_hat, played.squared_norm,
        )  # fmt: skip
        return replace(state, played=played)

    def functions(self, world: World, state: GraphFeedbackState, t: int) -> tuple[OnFeatures, ...]:
        """The mixture of the kernels of the node that is drawn in round t."""
        [eta], late = self.rates(slice(t, t + 1)), self.draw == "next"
        copies = read_only(state.log_w), state.pi.copy(), state.A.copy()
        drawn = read_only(state.graph_draws), read_only(state.node_draws)
        return self.chosen_mixtures(world, state.theta, state.log_w, _chosen_kernels(t, eta, late, *copies, *drawn))


@njit_cached(nogil=True)
def _play_replicates(
    begin, end, block, first, theta, log_w, pi, A, graph_draws, node_draws, floor, frozen, late, y_hat, squared_norm
):
    # Replicates are independent, so each thread has some of them
    for r in range(begin, end):
        for b in range(block.y.size):
            # Draw the graph (while it explores) and a node, whose kernels predict
            t = first + b
            p, S = _draw_graph_and_node(t, block.eta[b], late, log_w[r], pi[r], A[r], graph_draws[r], node_draws[r])
            # Probability that a kernel is observed, by which its loss is divided
            if frozen and t >= graph_draws.shape[1]:
                q = _probability_reached(p, A[r], floor)
            else:
                q = _probability_observed(p, pi[r], S, graph_draws.shape[-1], floor)
            y_hat[r, b], squared_norm[r, b] = learn_chosen_kernels(block, r, b, S, q, theta[r], log_w[r])


@njit_cached(nogil=True)
def _chosen_kernels(t, eta, late, log_w, pi, A, graph_draws, node_draws):
    """Kernels (R, N) that are chosen in round t; writes pi and A."""
    S = np.empty(log_w.shape, np.bool_)
    for r in range(len(S)):
        chosen = _draw_graph_and_node(t, eta, late, log_w[r], pi[r], A[r], graph_draws[r], node_draws[r])[1]
        for i in range(S.shape[1]):
            S[r, i] = chosen[i]
    return S


@njit
def _draw_graph_and_node(t, eta, late, log_w, pi, A, graph_draws, node_draws):
    """Draw a graph (while exploring) and a node; return the nodes' probabilities and the kernels of the drawn node."""
    if t < len(graph_draws):
        _generate_graph(relative_weights(log_w), eta, graph_draws[t], late, pi, A)
    p = _node_probabilities(log_w, A, eta)
    return p, A[draw_index(p, node_draws[t], False)]


@njit
def _generate_graph(w, eta_e, draws, late, pi, A):
    """Algorithm 2: node j draws kernels with probabilities pi_ij = (1 - eta_e^j) w_i + eta_e^j / N, eq. (20)."""
    J, M = draws.shape
    for j in range(J):
        explore = eta_e ** (j + 1)
        for i in range(w.size):
            pi[j, i] = (1 - explore) * w[i] + explore / w.size
            A[j, i] = False
        for m in range(M):
            A[j, draw_index(pi[j], draws[j, m], late)] = True


@njit
def _node_probabilities(log_w, A, eta_e):
    """Probabilities p_j = (1 - eta_e) u_j / U + eta_e / J, u_j the sum of w over node j's kernels, eqs. (18), (19)."""
    J, N = A.shape
    # Relative to the largest weight, so no sum underflows
    largest = -np.inf
    for j in range(J):
        for i in range(N):
            if A[j, i] and log_w[i] > largest:
                largest = log_w[i]
    # u_j: the weights of the kernels that node j points to
    u = np.zeros(J)
    for j in range(J):
        for i in range(N):
            if A[j, i]:
                u[j] += np.exp(log_w[i] - largest)
    U = u.sum()
    # Mix with a uniform distribution over the nodes, to explore
    for j in range(J):
        u[j] = (1 - eta_e) * u[j] / U + eta_e / J
    return u


@njit
def _probability_observed(p, pi, S, M, floor):
    """Probabilities q_i = sum_j p_j (1 - (1 - pi_ij)^M), eq. (21), for the chosen kernels."""
    q = np.ones(S.size)
    for i in range(S.size):
        if S[i]:
            q[i] = 0.0
            for j in range(p.size):
                q[i] += p[j] * (1 - (1 - pi[j, i]) ** M)
            q[i] = max(q[i], floor)
    return q


@njit
def _probability_reached(p, A, floor):
    """sum_j p_j A_ij, the probability that kernel i's loss is observed when the graph is no longer drawn."""
    q = np.zeros(A.shape[1])
    for j in range(p.size):
        for i in range(q.size):
            if A[j, i]:
                q[i] += p[j]
    return np.maximum(q, floor)


# Compiled with parts of other modules: 70c78e0d, see tests/test_compiled.py
