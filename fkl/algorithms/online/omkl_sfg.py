"""OMKL-SFG and OMKL-SFG-R: kernels chosen by a feedback graph of dissimilar kernels, built once or refined.

OMKL-SFG: Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023), Algorithms 4 and 5; the graph is
built before the stream begins.

OMKL-SFG-R: Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023), Algorithm 6; the graph is refined
in every round, so good nodes reach all kernels.

Edges join kernels with a large divergence, eqs. (26) and (27): Delta(k_i, k_j), the integral of |k_i(rho) - k_j(rho)|^2
over R^d, is <k_i, k_i> + <k_j, k_j> - 2 <k_i, k_j>. Both families are products over the coordinates, so each inner
product is the d-th power of an inner product on the line.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import erfcx

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
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.compiled_losses import loss_of_one
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.kernels.threads import share_work

Float64s = NDArray[np.float64]
DRAWN, BEST, FIRST = range(3)
FEW_ROUNDS = 10
"""Smallest number of rounds with draws for a check that steps are unbiased."""
GRAPHS = ("similarity", "line", "lowest")


@dataclass
class SimilarityGraphState:
    """The learner's state, and the graph.

    theta (R, N, P), log w and log u (R, N); A (N, N) with A[i, j] for an edge from i to j, its dominating set D (N,)
    bool; uniform numbers for the nodes (R, T + 1), the last for a round after the stream.
    """

    theta: Array
    log_w: Array
    log_u: Array
    A: NDArray[np.bool_]
    D: NDArray[np.bool_]
    node_draws: Array
    played: PlayedRounds | None = None


@dataclass(frozen=True)
class OmklSfg(Selective):
    """A node of the similarity graph is drawn; the M kernels to which it points, itself included, learn."""

    label: ClassVar[str] = "OMKL-SFG"

    p_floor: float = key(
        0.0,
        "Lower bound of the node's probability, by which the loss of its prediction is divided. The paper's text "
        "has no bound, that is 0; its published numbers come from 0.2.",
        min=0,
        max=1,
    )
    graph: str = key(
        "similarity",
        "``similarity`` is Algorithm 4 with the divergences of eq. (27) over R^d. ``line`` integrates over the "
        "real line instead, as if d were 1. With ``lowest``, every node points to itself and the kernels of lowest "
        "index; this is the result of an argmax over divergences that are NaN, and the published numbers come "
        "from it.",
        choices=GRAPHS,
    )
    settle: str = key(
        "best",
        "Choice after `exploring` rounds. ``best`` takes the node with the largest u, as in the paper's text. "
        "``first`` takes the first node; the published numbers of OMKL-SFG come from it. ``never`` continues to "
        "draw; the published numbers of OMKL-SFG-R come from it.",
        choices=("best", "first", "never"),
    )

    @property
    def unbiased(self) -> bool:
        """Whether the step, averaged over the draws of a node, is `declared_step` in rounds with draws."""
        return self.q_floor == 0 and self.draw == "exact" and self.exploring >= FEW_ROUNDS

    def declared_step(self, world: World, theta: Array, t: int) -> Array:
        """-eta_t grad L_i of every kernel from theta (R, N, P): eqs. (35) and (38), where E 1[i in S] / q_i = 1."""
        x, y, _ = world.problem.round(t)
        z = world.bank.features(x)[:, :, 0]
        slope = self.pointwise.derivative((z * theta).sum(axis=-1, keepdims=True), y)
        return -self.rates(slice(t, t + 1)) * (slope * z + 2 * self.lam * theta)

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse more neighbours of a node than kernels."""
        require(self.M <= kernels.N, "M", self.M, f"at most kernels.N={kernels.N}")

    def init(self, world: World) -> SimilarityGraphState:
        """Start from theta_i = 0, w_i = u_i = 1, and the graph with its dominating set (Algorithm 4)."""
        # The graph joins similar kernels and depends only on the dictionary, so it is computed once
        self.require_one(world)
        bank = world.bank
        R, N = bank.replicates, bank.kernels
        self.require_fits(world.dictionary)
        A = similarity_graph(self.log_inner_products_of(world), self.M)
        return SimilarityGraphState(
            theta=np.zeros((R, N, bank.width), bank.precision),
            log_w=np.zeros((R, N)),
            log_u=np.zeros((R, N)),
            A=A,
            D=np.isin(np.arange(N), dominating_set(A)),
            node_draws=uniform_numbers(world, world.problem.rounds + 1),
        )

    def log_inner_products_of(self, world: World) -> NDArray[np.float64]:
        """Logarithms of the kernels' inner products (N, N), which are 0 for the graph ``lowest``."""
        if self.graph == "lowest":
            return np.full((world.dictionary.N, world.dictionary.N), -np.inf)
        dimension = 1 if self.graph == "line" else world.problem.dimension
        return log_inner_products(world.dictionary.families, world.dictionary.scales, dimension)

    def play(self, world: World, state: SimilarityGraphState, rounds: slice) -> SimilarityGraphState:
        """Run Algorithm 5 for all replicates in parallel."""
        block, played = self.open_block(world, rounds)
        theta = world.bank.split(state.theta)
        how = self.nodes_taken_by(rounds), self.draw == "next", self.divide_by == "observed", self.q_floor, self.p_floor
        share_work(
            _play_replicates, len(state.log_w), self.features_per_block(world, rounds), block, rounds.start, theta,
            state.log_w, state.log_u, state.A, state.D, state.node_draws, *how, played.y_hat, played.squared_norm,
        )  # fmt: skip
        return replace(state, played=played)

    def functions(self, world: World, state: SimilarityGraphState, t: int) -> tuple[OnFeatures, ...]:
        """The mixture of the kernels of the node that is chosen in round t."""
        [eta], [way] = self.rates(slice(t, t + 1)), self.nodes_taken_by(slice(t, t + 1))
        S = _chosen_kernels(eta, way, self.draw == "next", state.log_u, state.A, state.D, state.node_draws[:, t])
        return self.chosen_mixtures(world, state.theta, state.log_w, S)

    def nodes_taken_by(self, rounds: slice) -> NDArray[np.int64]:
        """How each round of a block chooses its node, (B,)."""
        settled = {"best": BEST, "first": FIRST, "never": DRAWN}[self.settle]
        return np.where(np.arange(rounds.start, rounds.stop) < self.exploring, DRAWN, settled)


@njit_cached(nogil=True)
def _play_replicates(
    begin, end, block, first, theta, log_w, log_u, A, D, draws, ways, late, certain, q_floor, p_floor, y_hat,
    squared_norm,
):  # fmt: skip
    for r in range(begin, end):
        for b in range(block.y.size):
            y_hat[r, b], squared_norm[r, b] = play_round(
                block, r, b, theta[r], log_w[r], log_u[r], A, D, draws[r, first + b], ways[b], late, certain, q_floor,
                p_floor,
            )  # fmt: skip


@njit_cached(nogil=True)
def _chosen_kernels(eta, way, late, log_u, A, D, draws):
    """Kernels (R, N) that are chosen in a round."""
    S = np.empty(log_u.shape, np.bool_)
    for r in range(len(S)):
        node = take_node(eta, way, late, log_u[r], D, draws[r])[1]
        for i in range(S.shape[1]):
            S[r, i] = A[node, i]
    return S


@njit(error_model="numpy")
def take_node(xi, way, late, log_u, D, u):
    """The nodes' probabilities, and the node that is chosen in a round."""
    relative_u, explored = relative_weights(log_u), xi / D.sum()
    p = np.empty(D.size)
    for i in range(D.size):
        p[i] = (1 - xi) * relative_u[i] + (explored if D[i] else 0.0)  # eq. (33)
    return p, draw_index(p, u, late) if way == DRAWN else np.argmax(relative_u) if way == BEST else 0


@njit(error_model="numpy")
def play_round(block, r, b, theta, log_w, log_u, A, D, u, way, late, certain, q_floor, p_floor):
    """Run a round of Algorithm 5 for one replicate, given the graph A and its dominating set D.

    If `certain` and the node is not drawn, it and the kernels to which it points are observed with probability 1.
    """
    # Draw a node of the graph by its weight
    p, node = take_node(block.eta[b], way, late, log_u, D, u)
    # A node that was not drawn is certain, so it has probability 1
    if certain and way != DRAWN:
        p[:] = 0.0
        p[node] = 1.0
    # The kernels that the node points to predict, and are updated with importance weights 1 / q
    S = A[node]
    q = np.zeros(S.size)
    for j in range(S.size):
        for i in range(S.size if p[j] > 0 else 0):
            q[i] += p[j] if A[j, i] else 0.0  # eq. (36)
    for i in range(S.size):
        q[i] = max(q[i], q_floor)
    # The node's weight falls by the loss of its mixture
    y_hat, squared_norm = learn_chosen_kernels(block, r, b, S, q, theta, log_w)
    loss = loss_of_one(block.loss, y_hat, block.y[b]) + block.lam * squared_norm
    log_u[node] -= block.eta[b] * loss / max(p[node], p_floor)  # eqs. (37) and (39b)
    return y_hat, squared_norm


@dataclass
class RefinedState(SimilarityGraphState):
    """OMKL-SFG's state, ranks (N, N) of divergences, the refined graph (R, N, N) and its dominating set D' (R, N)."""

    ranks: NDArray[np.float64] | None = None
    refined: NDArray[np.bool_] | None = None
    good: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class OmklSfgR(OmklSfg):
    """The nodes with the `rank` largest u dominate the refined graph.

    Kernels that these nodes do not reach get an edge from one of them.
    """

    label: ClassVar[str] = "OMKL-SFG-R"

    rank: int = key(10, "beta = (1 - xi) (rank-th largest u_i / U) + xi / N.", min=1)

    def require_fits(self, kernels: Dictionary) -> None:
        """Also refuse a rank above the number of kernels."""
        super().require_fits(kernels)
        require(self.rank <= kernels.N, "rank", self.rank, f"at most kernels.N={kernels.N}")

    def init(self, world: World) -> RefinedState:
        """Start from theta_i = 0, w_i = u_i = 1, and the graph; the first round makes refined graphs."""
        state = super().init(world)
        R, N = state.log_w.shape
        refined, good = np.zeros((R, N, N), np.bool_), np.zeros((R, N), np.bool_)
        return RefinedState(
            **vars(state), ranks=divergence_ranks(self.log_inner_products_of(world)), refined=refined, good=good
        )

    def play(self, world: World, state: RefinedState, rounds: slice) -> RefinedState:  # type: ignore[override]  # its own state
        """Run Algorithm 6 for all replicates in parallel."""
        block, played = self.open_block(world, rounds)
        theta = world.bank.split(state.theta)
        ways = self.rank, self.nodes_taken_by(rounds), self.draw == "next", self.divide_by == "observed"
        share_work(
            _play_refined, len(state.log_w), self.features_per_block(world, rounds), block, rounds.start, theta,
            state.log_w, state.log_u, state.A, state.ranks, state.refined, state.good, state.node_draws, *ways,
            self.q_floor, self.p_floor, played.y_hat, played.squared_norm,
        )  # fmt: skip
        return replace(state, played=played)

    def functions(self, world: World, state: RefinedState, t: int) -> tuple[OnFeatures, ...]:  # type: ignore[override]
        """The mixture of the kernels of the node that is chosen in round t, in that round's refined graph."""
        [eta], [way] = self.rates(slice(t, t + 1)), self.nodes_taken_by(slice(t, t + 1))
        assert state.refined is not None
        assert state.good is not None
        copies = state.log_u, state.A, state.ranks, state.refined.copy(), state.good.copy()
        S = _chosen_refined(eta, way, self.draw == "next", self.rank, *copies, state.node_draws[:, t])
        return self.chosen_mixtures(world, state.theta, state.log_w, S)


@njit_cached(nogil=True)
def _play_refined(
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
def _chosen_refined(eta, way, late, rank, log_u, A, ranks, refined, good, draws):
    """Kernels (R, N) that are chosen in a round; writes refined and good."""
    S = np.empty(log_u.shape, np.bool_)
    for r in range(len(S)):
        _refine_graph(relative_weights(log_u[r]), A, ranks, rank, refined[r], good[r])
        node = take_node(eta, way, late, log_u[r], good[r], draws[r])[1]
        for i in range(S.shape[1]):
            S[r, i] = refined[r, node, i]
    return S


@njit
def _refine_graph(u, A, ranks, rank, refined, good):
    """Set D' = {i: u_i / U >= (beta - xi / N) / (1 - xi)}, eq. (44), and add the missing edges (d_i, i), eq. (45)."""
    # Loops, because numba needs seconds to compile a sort, or an assignment of arrays
    covered, farthest = np.zeros(u.size, np.bool_), np.full(u.size, -1)
    for j in range(u.size):
        larger = 0
        for i in range(u.size):
            larger += u[i] > u[j]
            refined[j, i] = A[j, i]
        # Edges and coverage of the nodes in D'
        good[j] = larger < rank  # the inequality with the definition of beta inserted
        for i in range(u.size if good[j] else 0):
            covered[i] |= A[j, i]
            if farthest[i] < 0 or ranks[i, j] > ranks[i, farthest[i]]:
                farthest[i] = j
    # Every kernel must have a node in D' that points to it: add the farthest one
    for i in range(u.size):
        if not covered[i]:
            refined[farthest[i], i] = True


def similarity_graph(log_inner: Float64s, M: int) -> NDArray[np.bool_]:
    """Join each kernel to kernels that differ from it and from each other (graph-aided OMKL, Algorithm 4).

    Node i starts with itself. The kernel with the largest total divergence from its out-neighbours joins them (in ties
    the first), until there are M.

    Parameters
    ----------
    log_inner : (N, N)
        Logarithms of the kernels' inner products, by which `farthest_first` orders the divergences.
    M : int
        Number of out-neighbours of a node, including itself.

    Returns
    -------
    (N, N) bool
        Whether an edge leads from i to j.
    """
    # Every kernel points to itself; then M - 1 rounds add one kernel each
    N = len(log_inner)
    require(1 <= M <= N, "M", M, f"an integer from 1 to {N}, the number of kernels")
    adjacency = np.eye(N, dtype=np.bool_)
    nodes = np.arange(N)
    log_total = log_inner.copy()  # sum over node i's out-neighbours of inner products with kernel j
    for members in range(1, M):
        # Choose the kernel with the largest total divergence from those that the node points to already
        sign, size = farthest_first(log_inner, log_total, members)
        sign[adjacency] = -2  # no kernel joins twice
        first = sign == sign.max(axis=1, keepdims=True)
        joining = np.where(first, size, -np.inf).argmax(axis=1)
        adjacency[nodes, joining] = True
        log_total = np.logaddexp(log_total, log_inner[joining])
    return adjacency


def divergence_ranks(log_inner: Float64s) -> Float64s:
    """Ranks (N, N) of the divergences: [i, j] is 0 for the kernel j nearest to i; ties share a rank."""
    sign, size = farthest_first(log_inner, log_inner, 1)
    sign[np.diag_indices_from(sign)] = -2  # a kernel is nearest to itself
    order = np.lexsort((size, sign), axis=-1)
    signs, sizes = (np.take_along_axis(key, order, axis=1) for key in (sign, size))
    steps = (np.diff(signs, axis=1) != 0) | (np.diff(sizes, axis=1) != 0)
    ranks = np.zeros(log_inner.shape)
    cumulative = np.concatenate([np.zeros((len(ranks), 1)), steps.cumsum(axis=1)], axis=1)
    np.put_along_axis(ranks, order, cumulative, axis=1)
    return ranks


def dominating_set(adjacency: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Nodes that together point to all nodes, by the greedy set cover of Chvatal (1979), most new nodes first.

    networkx's dominating set uses another algorithm, for undirected graphs, without a bound of its size.

    Parameters
    ----------
    adjacency : (N, N) bool
        Every node points to itself.

    Returns
    -------
    (n,) int
        Nodes in ascending order.
    """
    # Greedy: take the node that covers most kernels that are not covered yet
    chosen = []
    uncovered = np.ones(len(adjacency), np.bool_)
    while uncovered.any():
        chosen.append((adjacency & uncovered).sum(axis=1).argmax())
        uncovered &= ~adjacency[chosen[-1]]
    return np.sort(chosen)


def log_inner_products(families: Sequence[str], scales: Float64s, dimension: int) -> Float64s:
    """Logarithm of <k_i, k_j> = integral of k_i(rho) k_j(rho) over R^d, in closed form.

    Parameters
    ----------
    families : sequence of N str
        "rbf" for exp(-scale^2 |rho|_2^2 / 2), "laplacian" for exp(-scale |rho|_1).
    scales : (N,)
    dimension : int
        Dimension d; from about 60 on, the powers overflow a float64, but their logarithms do not.

    Returns
    -------
    (N, N)
        Symmetric.

    Raises
    ------
    fkl.basics.errors.BadValue
        If a kernel is not integrable.
    """
    # In closed form for Gaussian and Laplacian kernels, by dimension: the logarithm of one axis times d
    for family in families:
        require(family in ("rbf", "laplacian"), "kernels.family", family, "rbf or laplacian: divergences are integrals")
    rbf = np.array([family == "rbf" for family in families])
    line = np.empty((scales.size, scales.size))
    # Two Gaussians, two Laplacians, and one of each
    s, r = scales[rbf], scales[~rbf]
    line[np.ix_(rbf, rbf)] = np.log(2 * np.pi) / 2 - np.log(np.hypot(s[:, None], s))
    line[np.ix_(~rbf, ~rbf)] = np.log(2) - np.log(r[:, None] + r)
    mixed = np.log(2 * np.pi) / 2 - np.log(s[:, None]) + np.log(erfcx(r / (np.sqrt(2) * s[:, None])))
    line[np.ix_(rbf, ~rbf)] = mixed
    line[np.ix_(~rbf, rbf)] = mixed.T
    return dimension * line


def farthest_first(log_inner: Float64s, log_total: Float64s, members: int) -> tuple[NDArray[np.int64], Float64s]:
    """Order kernels by their total divergence from a set S, without the digits that all of them share.

    The sum over m in S of Delta(k_m, k_j) is |S| <k_j, k_j> - 2 sum_m <k_m, k_j> plus the sum of <k_m, k_m>, which is
    the same for every j. With bandwidths from 0.01 to 100 and d >= 8, this last sum exceeds the difference between two
    j by more digits than a float64 has. It is therefore omitted, and the rest is compared by sign and logarithm.

    Parameters
    ----------
    log_inner : (N, N)
        Logarithms of the inner products.
    log_total : (..., N)
        Logarithm of the sum over S of <k_m, k_j>.
    members : int
        Number |S| of kernels in S.

    Returns
    -------
    sign : (..., N) int
        Sign of the rest, -1, 0 or 1.
    size : (..., N)
        Of two rests with the same sign, the one with the larger `size` is larger.
    """
    # Total divergence = own - twice, up to terms that all kernels share; compared by logarithms, because exp would
    # overflow
    log_own = np.log(members) + np.diag(log_inner)
    twice = np.log(2) + log_total
    apart = np.subtract(log_own, twice, where=np.isfinite(twice), out=np.zeros(twice.shape))
    sign = np.sign(apart).astype(np.int64)
    shrunk = np.log(-np.expm1(-np.abs(apart)), where=sign != 0, out=np.zeros(twice.shape))
    size = np.multiply(sign, np.maximum(log_own, twice) + shrunk, where=sign != 0, out=np.zeros(twice.shape))
    return sign, size


# Compiled with parts of other modules: 70c78e0d, see tests/test_compiled.py
