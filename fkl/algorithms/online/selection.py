"""Common code of the graph-aided methods: draw kernels, predict with them, and update them.

Ghari and Shen, Graph-Aided Online Multi-Kernel Learning, JMLR 24 (2023). Rounds of a replicate depend on each other, so
their loop is compiled. The functions follow the paper's equations.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fkl.algorithms.base import WithLoss, World, softmax
from fkl.algorithms.online.learners import OnlineLearner, PlayedRounds, stream_samples
from fkl.basics.arrays import Array
from fkl.basics.keys import key
from fkl.basics.pointwise import PointwiseLoss
from fkl.basics.random_streams import Role
from fkl.kernels.bank import read_only
from fkl.kernels.compiled import descend_by_sample, feature_map, feature_sums, project_sample
from fkl.kernels.compiled_losses import loss_of_one, slope_of_one
from fkl.kernels.dictionary import MOST_KERNELS
from fkl.kernels.functions import OnFeatures


@dataclass(frozen=True)
class Selective(WithLoss, OnlineLearner):
    """A learner that predicts and learns with a few randomly drawn kernels per round."""

    label: ClassVar[str]
    compiled_only: ClassVar[bool] = True

    rate: str = key(
        "diminishing",
        "eta_t = eta / sqrt(t), as in the paper's experiments, or eta in all rounds, as in its theorems. The "
        "exploration rates are eta_t, too.",
        choices=("diminishing", "constant"),
    )
    lam: float = key(1e-3, "Regularisation lambda.", min=0)
    M: int = key(
        10,
        "Number of kernels to which a node of the feedback graph is connected (at most, if it draws them).",
        min=1,
        max=MOST_KERNELS,
        must="an integer from 1 to kernels.N, at most 10000",
    )
    q_floor: float = key(
        0.0,
        "Lower bound of the probability by which a loss is divided. The paper's text has no bound, that is 0; "
        "the published numbers come from 0.05 (OMKL-GF) and 0.1 (OMKL-SFG).",
        min=0,
        max=1,
    )
    exploring: int = key(
        300, "Number of rounds after which the graph (OMKL-GF) or the node (OMKL-SFG) is no longer drawn.", min=1
    )
    divide_by: str = key(
        "drawn",
        "Divisor of losses after `exploring` rounds. ``drawn`` keeps eqs. (21), (36) and (37), as in the paper's "
        "text. ``observed`` uses the probability with which losses are then observed: sum_j p_j A_ij in OMKL-GF's "
        "frozen graph, and 1 at OMKL-SFG's settled node. The estimates then keep the mean that the proofs need.",
        choices=("drawn", "observed"),
    )
    draw: str = key(
        "exact",
        "Draw from a probability mass function, or take the right neighbour of the drawn index (the first is "
        "never drawn, the last has the mass of two). A sum that stops one term early does the latter, and the "
        "published numbers come from it.",
        choices=("exact", "next"),
    )

    def rates(self, rounds: slice) -> NDArray[np.float64]:
        """eta_t of a block of rounds, (B,)."""
        falling = super().rates(rounds)
        return falling if self.rate == "diminishing" else np.full_like(falling, self.eta)

    def open_block(self, world: World, rounds: slice) -> tuple["Stream", PlayedRounds]:
        """A block of rounds of the world's only client, and arrays for its results."""
        bank = world.bank
        x, y = stream_samples(world, rounds)
        x32, x64 = np.ascontiguousarray(x, np.float32), np.ascontiguousarray(x, np.float64)
        narrow, wide, phase, x32, x64, y, eta = map(
            read_only,
            (*bank.draws, bank.phases_like(bank.precision), x32, x64, np.ascontiguousarray(y), self.rates(rounds)),
        )
        stream = Stream(narrow, wide, phase, bank.norm, x32, x64, y, eta, self.lam, self.pointwise)
        return stream, PlayedRounds(*np.empty((2, bank.replicates, len(y))))

    def features_per_block(self, world: World, rounds: slice) -> int:
        """Number of features that all replicates compute in a block of rounds."""
        bank = world.bank
        return bank.replicates * (rounds.stop - rounds.start) * min(self.M, bank.kernels) * bank.rho.shape[-1]

    def chosen_mixtures(self, world: World, theta: Array, log_w: Array, S: NDArray[np.bool_]) -> tuple[OnFeatures, ...]:
        """Each replicate's mixture of its chosen kernels S (R, N)."""
        learned = []
        for r, chosen in enumerate(map(np.flatnonzero, S)):
            w = softmax(log_w[r, chosen])
            learned.append(OnFeatures.from_bank(world.bank, r, theta[r, chosen][None], w[None], chosen))
        return tuple(learned)


class Stream(NamedTuple):
    """A block of rounds with the random features of all replicates, in the form for compiled code.

    narrow, wide: frequencies (R, n, d, D) in float32 and (R, N - n, d, D) in float64; x32, x64 (B, d): samples in both
    precisions. phase (R, N, D or 0), norm: of the feature map. y, eta: (B,). lam: regularisation. loss: l.
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
    loss: PointwiseLoss


def uniform_numbers(world: World, size: int) -> NDArray[np.float64]:
    """Random numbers in [0, 1), (R, size), for all selections of the replicates in the run."""
    return np.stack([generator.random(size) for generator in world.streams.generators(Role.SELECTION)])


@njit
def draw_index(pmf, u, late):
    """An index drawn from a probability mass function by inversion at u in [0, 1), or, if `late`, the next index."""
    last = pmf.size - 1
    total = 0.0
    for i in range(last):
        total += pmf[i]
        if u < total:
            return i + 1 if late else i
    return last


@njit
def relative_weights(log_weights):
    """exp(log_weights), divided by their sum."""
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
    """Predict with the chosen kernels, see the target, and update them: eqs. (14)-(17), (34)-(39a).

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
        Both theta and log_w are overwritten.

    Returns
    -------
    y_hat : float
        sum_i w_i f_i / sum_i w_i over S.
    squared_norm : float
        The mean of |theta_i|^2 with the same weights, an upper bound of the norm of the mixture.
    """
    # Arrays of one sample, used for all kernels
    N, maps, D = theta.shape
    n = stream.narrow.shape[1]
    y, eta = stream.y[b], stream.eta[b]
    angle32, angle64 = np.empty((1, D), stream.narrow.dtype), np.empty((1, D), stream.wide.dtype)
    z = np.empty((maps, 1, D), theta.dtype)
    narrow = theta.dtype.type
    # Weights relative to the largest chosen weight, so their sum is never 0
    largest = -np.inf
    for i in range(N):
        if S[i] and log_w[i] > largest:
            largest = log_w[i]
    # Predict with the mixture of the chosen kernels ...
    y_hat, squared_norm, total = 0.0, 0.0, 0.0
    for i in range(N):
        if not S[i]:
            continue
        if i < n:  # the first n kernels have their angles in float32, the others in float64
            project_sample(stream.x32[b], stream.narrow[r, i], angle32[0])
            feature_map(angle32, angle32.dtype.type(1), stream.phase[r, i], z)
        else:
            project_sample(stream.x64[b], stream.wide[r, i - n], angle64[0])
            feature_map(angle64, angle64.dtype.type(1), stream.phase[r, i], z)
        along, size = feature_sums(theta[i], z, 0)
        f = stream.norm * along
        w = np.exp(log_w[i] - largest)
        y_hat += w * f
        squared_norm += w * size
        total += w
        # ... and step at once with importance weight 1 / q_i: a kernel's prediction does not depend on the others
        step = eta / q[i]
        pull, decay = narrow(step * stream.norm * slope_of_one(stream.loss, f, y)), narrow(1 - 2 * step * stream.lam)
        descend_by_sample(theta[i], z, 0, pull, decay)
        log_w[i] -= step * (loss_of_one(stream.loss, f, y) + stream.lam * size)
    return y_hat / total, squared_norm / total


# Compiled with parts of other modules: 4dcc709a, see tests/test_compiled.py
