"""What graph-aided methods share: kernels' divergences, feedback graphs, and rounds of a few drawn kernels.

Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023); these functions have the paper's equations.
Delta(k_i, k_j) = integral of |k_i(rho) - k_j(rho)|^2 over R^d is <k_i, k_i> + <k_j, k_j> - 2 <k_i, k_j>, eqs. (26) and
(27). Both families are products over the coordinates, so each inner product is the d-th power of one over the line.
The rounds of a replicate depend on one another, so they are compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import erfcx

from fkl.algorithms.base import Array, World, softmax
from fkl.algorithms.online.learners import Learner, Played, samples
from fkl.basics.errors import require
from fkl.basics.random_streams import Role
from fkl.kernels.bank import read_only
from fkl.kernels.compiled import descend_by_sample, feature_map, project, sums
from fkl.kernels.dictionary import MOST_KERNELS
from fkl.kernels.functions import OnFeatures
from fkl.kernels.threads import wake_for

Float64s = NDArray[np.float64]


def log_inner_products(families: Sequence[str], scales: Float64s, dimension: int) -> Float64s:
    """Logarithm of <k_i, k_j> = integral of k_i(rho) k_j(rho) over R^d, in closed form.

    Parameters
    ----------
    families : sequence of N str
        "rbf" for exp(-scale^2 |rho|_2^2 / 2), "laplacian" for exp(-scale |rho|_1).
    scales : (N,)
    dimension : int
        d; from about 60 on the powers overflow a float64, but their logarithms do not.

    Returns
    -------
    (N, N)
        Symmetric.

    Raises
    ------
    fkl.basics.errors.BadValue
        For a kernel that is not integrable.
    """
    for family in families:
        require(family in ("rbf", "laplacian"), "kernels.family", family, "rbf or laplacian: divergences are integrals")
    rbf = np.array([family == "rbf" for family in families])
    line = np.empty((scales.size, scales.size))
    s, r = scales[rbf], scales[~rbf]
    line[np.ix_(rbf, rbf)] = np.log(2 * np.pi) / 2 - np.log(np.hypot(s[:, None], s))
    line[np.ix_(~rbf, ~rbf)] = np.log(2) - np.log(r[:, None] + r)
    mixed = np.log(2 * np.pi) / 2 - np.log(s[:, None]) + np.log(erfcx(r / (np.sqrt(2) * s[:, None])))
    line[np.ix_(rbf, ~rbf)] = mixed
    line[np.ix_(~rbf, rbf)] = mixed.T
    return dimension * line


def farthest_first(log_inner: Float64s, log_total: Float64s, members: int) -> tuple[NDArray[np.int64], Float64s]:
    """Order kernels by their total divergence to a set S, without the digits that all of them share.

    The sum over m in S of Delta(k_m, k_j) is that of <k_m, k_m>, the same for every j, and |S| <k_j, k_j> - 2 sum_m
    <k_m, k_j>. With bandwidths from 0.01 to 100, and d of at least 8, the first sum exceeds the difference between two
    j by more digits than a float64 has. It is therefore left out, and the rest is compared by sign and logarithm.

    Parameters
    ----------
    log_inner : (N, N)
        Logarithms of the inner products.
    log_total : (..., N)
        Logarithm of the sum over S of <k_m, k_j>.
    members : int
        |S|.

    Returns
    -------
    sign : (..., N) int
        Sign of that rest, -1, 0 or 1.
    size : (..., N)
        Between two rests with the same sign, the one with the larger `size` is larger.
    """
    own = np.log(members) + np.diag(log_inner)
    twice = np.log(2) + log_total
    apart = np.subtract(own, twice, where=np.isfinite(twice), out=np.zeros(twice.shape))
    sign = np.sign(apart).astype(np.int64)
    shrunk = np.log(-np.expm1(-np.abs(apart)), where=sign != 0, out=np.zeros(twice.shape))
    size = np.multiply(sign, np.maximum(own, twice) + shrunk, where=sign != 0, out=np.zeros(twice.shape))
    return sign, size


Adjacency = NDArray[np.bool_]


def similarity_graph(log_inner: NDArray[np.float64], M: int) -> Adjacency:
    """Join each kernel to kernels that differ from it and from one another (graph-aided OMKL, Algorithm 4).

    Node i starts with itself. The kernel with the largest total divergence to its out-neighbours joins them, and of
    ties the first, until it has M.

    Parameters
    ----------
    log_inner : (N, N)
        Logarithms of the kernels' inner products. `farthest_first` orders the divergences by them.
    M : int
        Out-neighbours of a node, itself included.

    Returns
    -------
    (N, N) bool
        [i, j] where an edge leads from i to j.
    """
    N = len(log_inner)
    require(1 <= M <= N, "M", M, f"an integer from 1 to {N}, the number of kernels")
    adjacency = np.eye(N, dtype=np.bool_)
    nodes = np.arange(N)
    log_total = log_inner.copy()  # of node i's out-neighbours with kernel j
    for members in range(1, M):
        sign, size = farthest_first(log_inner, log_total, members)
        sign[adjacency] = -2  # no kernel joins twice
        first = sign == sign.max(axis=1, keepdims=True)
        joining = np.where(first, size, -np.inf).argmax(axis=1)
        adjacency[nodes, joining] = True
        log_total = np.logaddexp(log_total, log_inner[joining])
    return adjacency


def divergence_ranks(log_inner: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks (N, N) of the divergences, [i, j] from 0 for the kernel j nearest to i; ties share a rank."""
    sign, size = farthest_first(log_inner, log_inner, 1)
    sign[np.diag_indices_from(sign)] = -2  # a kernel is nearest to itself
    order = np.lexsort((size, sign), axis=-1)
    signs, sizes = (np.take_along_axis(key, order, axis=1) for key in (sign, size))
    steps = (np.diff(signs, axis=1) != 0) | (np.diff(sizes, axis=1) != 0)
    ranks = np.zeros(log_inner.shape)
    cumulative = np.concatenate([np.zeros((len(ranks), 1)), steps.cumsum(axis=1)], axis=1)
    np.put_along_axis(ranks, order, cumulative, axis=1)
    return ranks


def dominating_set(adjacency: Adjacency) -> NDArray[np.intp]:
    """Nodes that together point to all nodes: the greedy set cover of Chvatal (1979), most new nodes first.

    networkx's dominating set uses another algorithm, for undirected graphs, without a bound on its size.

    Parameters
    ----------
    adjacency : (N, N) bool
        Every node points to itself.

    Returns
    -------
    (n,) int
        Ascending.
    """
    chosen = []
    uncovered = np.ones(len(adjacency), np.bool_)
    while uncovered.any():
        chosen.append((adjacency & uncovered).sum(axis=1).argmax())
        uncovered &= ~adjacency[chosen[-1]]
    return np.sort(chosen)


@dataclass(frozen=True)
class Selective(Learner):
    """A learner that predicts and learns with a few randomly drawn kernels per round.

    Parameters
    ----------
    eta : float
        As in `Learner`; the exploration rates eta_e and xi of the paper are eta_t too.
    lam : float
        Regularisation lambda.
    M : int
        Kernels to which a node of the feedback graph is connected (at most, if it draws them).
    q_floor : float
        Lower bound of the probability by which a loss is divided. The paper's text has no bound, which is 0; the
        published numbers come from 0.05 (OMKL-GF) and 0.1 (OMKL-SFG).
    exploring : int
        Rounds after which the graph (OMKL-GF) or the node (OMKL-SFG) is no longer drawn.
    divide_by : {"drawn", "observed"}
        Divisor of losses after `exploring` rounds. ``drawn`` keeps eqs. (21), (36) and (37), as in the paper's text.
        ``observed`` uses the probability with which they are then observed: sum_j p_j A_ij in OMKL-GF's frozen graph,
        and 1 at OMKL-SFG's settled node. The estimates then keep the mean that the proofs need.
    draw : {"exact", "next"}
        Draw from a probability mass function, or take the right neighbour of the drawn index (the first is never drawn,
        the last has the mass of two). A sum that stops one term early does the latter, and the published numbers come
        from it.
    """

    label: ClassVar[str]
    compiled_only: ClassVar[bool] = True

    lam: float = 1e-3
    M: int = 10
    q_floor: float = 0.0
    exploring: int = 300
    divide_by: str = "drawn"
    draw: str = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number >= 0")
        allowed = f"an integer from 1 to kernels.N, and {MOST_KERNELS} at most"
        require(1 <= self.M <= MOST_KERNELS, "M", self.M, allowed)
        require(0 <= self.q_floor <= 1, "q_floor", self.q_floor, "a probability")
        require(self.exploring >= 1, "exploring", self.exploring, "an integer >= 1")
        require(self.divide_by in ("drawn", "observed"), "divide_by", self.divide_by, "drawn or observed")
        require(self.draw in ("exact", "next"), "draw", self.draw, "exact or next")

    def open_block(self, world: World, rounds: slice) -> tuple["Stream", Played]:
        """A block of rounds of the world's only client, and arrays for its results."""
        bank = world.bank
        x, y = samples(world, rounds)
        wake_for(bank.replicates * len(y) * min(self.M, bank.kernels) * bank.rho.shape[-1])
        x32, x64 = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(x, np.float64)
        narrow, wide, phase, x32, x64, y, eta = map(
            read_only,
            (*bank.draws, bank.phases_like(bank.precision), x32, x64, np.ascontiguousarray(y), self.rates(rounds)),
        )
        stream = Stream(narrow, wide, phase, bank.norm, x32, x64, y, eta, self.lam)
        return stream, Played(*np.empty((2, bank.replicates, len(y))))

    def mixtures(self, world: World, theta: Array, log_w: Array, S: NDArray[np.bool_]) -> tuple[OnFeatures, ...]:
        """Each replicate's prediction with its chosen kernels, (R, N)."""
        learned = []
        for r, chosen in enumerate(map(np.flatnonzero, S)):
            w = softmax(log_w[r, chosen])
            learned.append(OnFeatures.from_bank(world.bank, r, theta[r, chosen][None], w[None], chosen))
        return tuple(learned)


class Stream(NamedTuple):
    """A block of rounds with the random features of all replicates, in the form that compiled code needs.

    narrow, wide : frequencies (R, n, d, D) float32 and (R, N - n, d, D) float64; x32, x64 (B, d) to go with them.
    phase (R, N, D or 0), norm: of the feature map. y, eta (B,). lam: regularisation.
    """

    narrow: Array
    wide: Array
    phase: Array
    norm: float
    x32: Array
    x64: Array
    y: Array
    eta: Array
    lam: float


def uniform_numbers(world: World, size: int) -> NDArray[np.float64]:
    """Random numbers in [0, 1) of shape (R, size), for all selections of the replicates in the run."""
    return np.stack([generator.random(size) for generator in world.streams.generators(Role.SELECTION)])


@njit
def draw_index(pmf, u, late):
    """Index drawn from a probability mass function by its inverse at u in [0, 1); `late`: its right neighbour."""
    last = pmf.size - 1
    total = 0.0
    for i in range(last):
        total += pmf[i]
        if u < total:
            return i + 1 if late else i
    return last


@njit
def relative_weights(log_weights):
    """exp(log_weights) over their sum."""
    largest = log_weights.max()
    weights = np.empty(log_weights.size)
    for i in range(log_weights.size):
        weights[i] = np.exp(log_weights[i] - largest)
    total = weights.sum()
    for i in range(log_weights.size):
        weights[i] /= total
    return weights


@njit(error_model="numpy")
def learn_chosen_kernels(stream, r, b, S, q, theta, log_w):
    """Predict with the chosen kernels, see the label, and update them: eqs. (14)-(17), (34)-(39a).

    Parameters
    ----------
    stream : Stream
    r, b : int
        Replicate and round of the block.
    S : (N,) bool
        S_t, the chosen kernels.
    q : (N,)
        Probability that each kernel's loss is observed.
    theta : (N, maps, D)
    log_w : (N,)
        theta and log_w are overwritten.

    Returns
    -------
    y_hat : float
        sum_i w_i f_i / sum_i w_i over S.
    squared_norm : float
        The mean of |theta_i|^2 with the same weights, an upper bound of the norm of the mixture.
    """
    N, maps, D = theta.shape
    n = stream.narrow.shape[1]
    y, eta = stream.y[b], stream.eta[b]
    angle32, angle64 = np.empty((1, D), stream.narrow.dtype), np.empty((1, D), stream.wide.dtype)
    z = np.empty((maps, 1, D), theta.dtype)
    narrow = theta.dtype.type
    # Weights relative to the largest chosen one: their sum is then never 0.
    largest = -np.inf
    for i in range(N):
        if S[i] and log_w[i] > largest:
            largest = log_w[i]
    y_hat, squared_norm, total = 0.0, 0.0, 0.0
    for i in range(N):
        if not S[i]:
            continue
        if i < n:  # the first n kernels have their angles in float32, the others in float64
            project(stream.x32[b], stream.narrow[r, i], angle32[0])
            feature_map(angle32, angle32.dtype.type(1), stream.phase[r, i], z)
        else:
            project(stream.x64[b], stream.wide[r, i - n], angle64[0])
            feature_map(angle64, angle64.dtype.type(1), stream.phase[r, i], z)
        along, size = sums(theta[i], z, 0)
        f = stream.norm * along
        w = np.exp(log_w[i] - largest)
        y_hat += w * f
        squared_norm += w * size
        total += w
        step = eta / q[i]
        pull, decay = narrow(2 * step * stream.norm * (f - y)), narrow(1 - 2 * step * stream.lam)
        descend_by_sample(theta[i], z, 0, pull, decay)
        log_w[i] -= step * ((f - y) ** 2 + stream.lam * size)
    return y_hat / total, squared_norm / total


# Compiled with parts of other modules: ac793df2, see tests/test_compiled.py
