"""OMKL-SFG-R: OMKL-SFG with a graph that is refined in every round: good nodes then reach all kernels.

Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023), Algorithm 6.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fkl.algorithms.base import World
from fkl.algorithms.online import omkl_sfg
from fkl.algorithms.online.feedback_graph import divergence_ranks
from fkl.algorithms.online.omkl_sfg import OmklSfg, play_round, take_node
from fkl.algorithms.online.selection import relative_weights
from fkl.basics.errors import require
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.kernels.threads import share


@dataclass
class State(omkl_sfg.State):
    """State of OMKL-SFG; ranks (N, N) of divergences, the refined graph (R, N, N) and its dominating set D' (R, N)."""

    ranks: NDArray[np.float64] | None = None
    refined: NDArray[np.bool_] | None = None
    good: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class OmklSfgR(OmklSfg):
    """The nodes with the `rank` largest u dominate the refined graph: kernels they do not reach get an edge from one.

    Parameters
    ----------
    eta, lam, M, q_floor, exploring, divide_by, draw, p_floor, graph, settle :
        As in `OmklSfg`.
    rank : int
        beta = (1 - xi) (rank-th largest u_i / U) + xi / N.
    """

    label: ClassVar[str] = "OMKL-SFG-R"

    rank: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.rank >= 1, "rank", self.rank, "an integer >= 1")

    def require_fits(self, kernels: Dictionary) -> None:
        """Also check that the rank is at most the number of kernels."""
        super().require_fits(kernels)
        require(self.rank <= kernels.N, "rank", self.rank, f"at most kernels.N={kernels.N}")

    def init(self, world: World) -> State:
        """theta_i = 0, w_i = u_i = 1, and the graph; refined graphs come with the first round."""
        state = super().init(world)
        R, N = state.log_w.shape
        refined, good = np.zeros((R, N, N), np.bool_), np.zeros((R, N), np.bool_)
        return State(
            **vars(state), ranks=divergence_ranks(self.log_inner_products_of(world)), refined=refined, good=good
        )

    def play(self, world: World, state: State, rounds: slice) -> State:  # type: ignore[override]  # its own State
        """Algorithm 6, all replicates side by side."""
        block, played = self.open_block(world, rounds)
        theta = world.bank.split(state.theta)
        ways = self.rank, self.nodes_taken_by(rounds), self.draw == "next", self.divide_by == "observed"
        share(
            _play_replicates, len(state.log_w), block, rounds.start, theta, state.log_w, state.log_u, state.A,
            state.ranks, state.refined, state.good, state.node_draws, *ways, self.q_floor, self.p_floor, played.y_hat,
            played.squared_norm,
        )  # fmt: skip
        return replace(state, played=played)

    def functions(self, world: World, state: State, t: int) -> tuple[OnFeatures, ...]:  # type: ignore[override]
        """The kernels of the node chosen in round t, in that round's refined graph."""
        [eta], [way] = self.rates(slice(t, t + 1)), self.nodes_taken_by(slice(t, t + 1))
        assert state.refined is not None
        assert state.good is not None
        known = state.log_u, state.A, state.ranks, state.refined.copy(), state.good.copy()
        S = _chosen_kernels(eta, way, self.draw == "next", self.rank, *known, state.node_draws[:, t])
        return self.mixtures(world, state.theta, state.log_w, S)


@njit_cached(nogil=True)
def _play_replicates(
    begin, end, block, first, theta, log_w, log_u, A, ranks, refined, good, draws, rank, ways, late, certain, q_floor,
    p_floor, y_hat, squared_norm,
):  # fmt: skip
    for r in range(begin, end):
        for b in range(block.y.size):
            _refine_graph(relative_weights(log_u[r]), A, ranks, rank, refined[r], good[r])
            y_hat[r, b], squared_norm[r, b] = play_round(
                block, r, b, theta[r], log_w[r], log_u[r], refined[r], good[r], draws[r, first + b], ways[b], late,
                certain, q_floor, p_floor,
            )  # fmt: skip


@njit_cached(nogil=True)
def _chosen_kernels(eta, way, late, rank, log_u, A, ranks, refined, good, draws):
    """Kernels (R, N) chosen in a round; writes refined and good."""
    S = np.empty(log_u.shape, np.bool_)
    for r in range(len(S)):
        _refine_graph(relative_weights(log_u[r]), A, ranks, rank, refined[r], good[r])
        S[r] = refined[r, take_node(eta, way, late, log_u[r], good[r], draws[r])[1]]
    return S


@njit
def _refine_graph(u, A, ranks, rank, refined, good):
    """D' = {i: u_i / U >= (beta - xi / N) / (1 - xi)}, eq. (44), and the edges (d_i, i) that it lacks, eq. (45)."""
    threshold = np.sort(u)[u.size - rank]  # the inequality after inserting the definition of beta
    for i in range(u.size):
        good[i] = u[i] >= threshold
    refined[:] = A
    covered, farthest = np.zeros(u.size, np.bool_), np.full(u.size, -1)
    for j in np.flatnonzero(good):
        for i in range(u.size):
            covered[i] |= A[j, i]
            if farthest[i] < 0 or ranks[i, j] > ranks[i, farthest[i]]:
                farthest[i] = j
    for i in range(u.size):
        if not covered[i]:
            refined[farthest[i], i] = True


# Compiled with parts of other modules: 46f5d870, see tests/test_compiled.py
