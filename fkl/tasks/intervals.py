"""Intervals around predictions of any method: `intervals=adaptive` on streams, `intervals=split` on batches.

Both need only |y - y_hat|, so they work with every method that predicts a number. Columns, for P = 80, 90 and 95 %:

conformal_coverage_P
    Share of targets in the interval.
conformal_length_P
    Mean length of bounded intervals, in units of the scaled target.
conformal_unbounded_P
    Share of unbounded intervals, which contain every target.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import ClassVar, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.keys import Keys, key
from fkl.basics.random_streams import Role
from fkl.contract.world import World
from fkl.wire.payloads import Size

Integers = NDArray[np.int64]
LEVELS = np.array([0.80, 0.90, 0.95])
FACTS = ("coverage", "length", "unbounded")
COLUMNS = tuple(f"conformal_{fact}_{level:.0f}" for fact in FACTS for level in 100 * LEVELS)
FEWEST_RANKS, MOST_RANKS, PAIRS = 5, 50, 1000
"""Limits of the number of ranks l that are tried for a level, and the number of pairs (l, k) to aim at."""
PANELS, NODES = 32, 16
"""Gauss-Legendre rule for the expected coverage: number of parts of [0, 1], and of nodes in each part."""


@dataclass
class Covered:
    """Sums over judged targets for each of the three `LEVELS`: inside, length, unbounded, count.

    Parameters
    ----------
    sums : (4, 3, R, K)
    """

    sums: Array

    @classmethod
    def before_first_score(cls, replicates: int, clients: int) -> Self:
        """Sums before any target is judged."""
        return cls(np.zeros((4, len(LEVELS), replicates, clients)))

    def add(self, score: Array, half: Array, present: NDArray[np.bool_] | bool = True) -> None:
        """Judge scores |y - y_hat| (..., n) by the intervals' half lengths; an interval is empty if this is below 0."""
        bounded = np.isfinite(half)
        length = np.where(bounded, 2 * np.maximum(half, 0.0), 0.0)
        for place, values in enumerate((score <= half, length, half == np.inf, np.ones_like(half))):
            self.sums[place] += present * values

    def columns(self, over: tuple[int, ...] = ()) -> dict[str, Array]:
        """Shares and mean lengths by column, (R, K), summed over the axes `over`."""
        inside, length, unbounded, count = self.sums.sum(axis=tuple(one + 2 for one in over))
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.concatenate([inside / count, length / (count - unbounded), unbounded / count])
        return dict(zip(COLUMNS, means, strict=True))


@dataclass(frozen=True)
class Adaptive(Keys):
    """Adaptive conformal inference (Gibbs and Candes, NeurIPS 2021): every client adapts its own intervals alone.

    A client's interval in a round is y_hat plus or minus the quantile 1 - alpha_t of its last scores |y - y_hat|. Then
    alpha_{t+1} = alpha_t + gamma (alpha - err_t), eq. (2), where err_t is 1 if the target is outside, else 0. For any
    data, the share of targets outside differs from alpha over T rounds by at most (max(alpha, 1 - alpha) + gamma) /
    (gamma T), Proposition 4.1. Nothing is sent.
    """

    on_streams: ClassVar[bool] = True

    gamma: float = key(0.005, "Step size of alpha; 0 for constant alpha.", min=0, max=1)
    window: int = key(100, "Number of last scores that are used.", min=1, max=100000)

    def begin(self, world: World, with_server: bool) -> "AdaptiveIntervals":
        """The state before the first round."""
        R, K = len(world.streams.replicates), world.problem.clients
        alpha = np.broadcast_to((1 - LEVELS)[:, None, None], (len(LEVELS), R, K)).copy()
        rounds = np.full((len(COLUMNS), world.problem.rounds, R), np.nan)
        scores = np.full((R, K, self.window), np.inf)
        return AdaptiveIntervals(self, alpha, scores, np.zeros(K, np.int64), Covered.before_first_score(R, K), rounds)


@dataclass
class AdaptiveIntervals:
    """Intervals of every client and replicate between two rounds.

    Parameters
    ----------
    keys : Adaptive
    alpha : (3, R, K)
        alpha_t of each level.
    scores : (R, K, window)
        Last scores, infinite in empty places.
    seen : (K,) int64
        Number of scores so far.
    covered : Covered
    rounds : (9, T, R)
        Columns so far, over all clients.
    """

    keys: Adaptive
    alpha: Array
    scores: Array
    seen: Integers
    covered: Covered
    rounds: Array

    def half_lengths(self) -> Array:
        """Half lengths of the intervals of the next round, (3, R, K)."""
        ordered = np.pad(np.sort(self.scores, axis=-1), ((0, 0), (0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
        n = np.minimum(self.seen, self.keys.window)
        rank = np.ceil((1 - self.alpha) * (n + 1) - 1e-9).clip(0, self.keys.window + 1).astype(np.int64)
        return np.stack([np.take_along_axis(ordered, one[..., None], -1)[..., 0] for one in rank])

    def enter(self, t: int, y_hat: Array, y: Array, present: NDArray[np.bool_]) -> None:
        """Judge the intervals of the present clients (K,) in round t, and then learn from the targets."""
        score, half = np.abs(y - y_hat), self.half_lengths()
        self.covered.add(score, half, present)
        self.alpha += present * self.keys.gamma * ((1 - LEVELS)[:, None, None] - (score > half))
        here = np.flatnonzero(present)
        self.scores[:, here, self.seen[here] % self.keys.window] = score[:, here]
        self.seen += present
        self.rounds[:, t] = list(self.covered.columns(over=(1,)).values())

    def by_round(self) -> dict[str, Array]:
        """Columns of the rounds, (T, R)."""
        return dict(zip(COLUMNS, self.rounds, strict=True))


@dataclass(frozen=True)
class Split(Keys):
    """Federated split conformal prediction: FedCP-QQ of Humbert et al., One-Shot Federated Conformal Prediction (2023).

    A share of each client's test rows calibrates the intervals, and the others judge them. Each client sends one score
    per level, its l-th smallest. The server's quantile q is the k-th smallest of these, and it sends q to all clients.
    The interval is y_hat plus or minus q. The pair (l, k) has the smallest expected coverage that is at least P if all
    scores have the same distribution: the mean of the k-th smallest of K independent Beta(l, n - l + 1), Theorem 3.2.
    If there are many ranks l, the 5 to 50 nearest to P are tried. A client with n_j rows sends its rank l_j = ceil(l
    (n_j + 1) / (n + 1)), where n is the largest n_j. If clients differ, nothing is guaranteed. Agents on a graph,
    parties with features, and learners alone calibrate with their own scores, and send nothing.
    """

    on_streams: ClassVar[bool] = False

    share: float = key(0.5, "Share of the test rows for calibration.", above=0, below=1)

    def begin(self, world: World, with_server: bool) -> "SplitIntervals":
        """The state before the first round."""
        return SplitIntervals(self.share, world, with_server)


@dataclass
class SplitIntervals:
    """Computes and judges intervals for the last round's predictions of test rows."""

    share: float
    world: World
    with_server: bool

    def columns(
        self, t: int, y: Sequence[Array], y_hat: Sequence[Array], client: Sequence[Integers], clients: int
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Columns of the summary (R,) and of clients (R, K); the messages are recorded in the last round.

        Parameters
        ----------
        t : int
            The last round that was run.
        y, y_hat, client : sequence of (n,)
            Test rows of each replicate, with the number of each row's client. Only clients that are present in the last
            round take part.
        clients : int
        """
        # Half of a client's test samples calibrate, the other half are judged
        covered = Covered.before_first_score(len(y), clients)
        generators = self.world.streams.generators(Role.INTERVALS)
        present = self.world.problem.present[t] if self.with_server else np.ones(clients, np.bool_)
        for r, (target, predicted, owner, generator) in enumerate(zip(y, y_hat, client, generators, strict=True)):
            scores = [np.abs(target - predicted)[owner == k] for k in range(clients)]
            parts = [np.split(generator.permutation(one), [round(self.share * len(one))]) for one in scores]
            used = [
                calibration if here else calibration[:0] for (calibration, _), here in zip(parts, present, strict=True)
            ]
            # The server combines all clients' ranks, or each client uses its own
            groups = [used] if self.with_server else [[one] for one in used]
            half = np.concatenate(
                [np.broadcast_to(federated_quantiles(group)[:, None], (len(LEVELS), len(group))) for group in groups], 1
            )
            # Coverage on the judged half
            for k, (_, judged) in enumerate(parts):
                one = Covered.before_first_score(1, len(judged))
                one.add(judged[None], np.broadcast_to(half[:, None, k, None], (len(LEVELS), 1, len(judged))))
                covered.sums[:, :, r, k] = one.sums.sum(axis=(2, 3))
        # Each client sends one number per level, and gets one
        if self.with_server:
            size = np.full((len(y), 1), len(LEVELS))
            self.world.channel.open_round(t, present)  # a resumed run may not have run any round
            for direction in ("uplink", "downlink"):
                self.world.channel.book(direction, "quantile", Size(size, size * self.world.channel.width))
        return covered.columns(over=(1,)), covered.columns()


def federated_quantiles(scores: Sequence[Array]) -> Array:
    """Half lengths (3,) of intervals from the scores of all clients; infinite with too few scores."""
    # Clients without scores cannot send one
    held = [np.sort(one) for one in scores if len(one)]
    if not held:
        return np.full(len(LEVELS), np.inf)
    counts = tuple(map(len, held))
    quantiles = []
    # For each level, the rank that a client sends and the one that the server takes
    for level in LEVELS.tolist():
        ranks, k = best_ranks(counts, level)
        sent = [one[rank - 1] if rank <= len(one) else np.inf for one, rank in zip(held, ranks, strict=True)]
        quantiles.append(np.sort(sent)[k - 1] if k else np.inf)
    return np.array(quantiles)


@cache  # all replicates usually have the same counts
def best_ranks(counts: tuple[int, ...], level: float) -> tuple[tuple[int, ...], int]:
    """Ranks l_j of K clients with these numbers of scores, and k, with the smallest coverage >= `level`.

    If no ranks reach the level, k is 0.
    """
    # Ranks around the level; few of them are enough
    held = np.array(counts)
    n = max(counts)
    middle = int(np.ceil(level * (n + 1)))
    most = min(MOST_RANKS, max(FEWEST_RANKS, PAIRS // len(counts)))
    first = max(1, min(middle - most // 2, n - most + 1))
    best, found = np.inf, (counts, 0)
    # Expected coverage of each k, and the smallest that is still enough
    for rank in range(first, min(n, first + most - 1) + 1):
        ranks = -(-rank * (held + 1) // (n + 1))
        coverage = expected_coverage(held, ranks)
        k = int(np.searchsorted(coverage, level - 1e-12))
        if k < len(coverage) and coverage[k] < best:
            best, found = coverage[k], (tuple(map(int, ranks)), k + 1)
    return found


def expected_coverage(counts: Integers, ranks: Integers) -> Array:
    """Expected coverage (K,) of the k-th smallest, for k = 1 to K, of the clients' scores with these ranks.

    If scores are uniform in [0, 1], rank l of n has the distribution Beta(l, n - l + 1), and a rank above n is 1. The
    k-th smallest exceeds t if fewer than k independent events with probabilities F_j(t) happen. The integral of this
    probability over t is the mean.
    """
    # Nodes of a quadrature over the coverage t in (0, 1)
    node, weight = np.polynomial.legendre.leggauss(NODES)
    t = ((np.arange(PANELS)[:, None] + (node + 1) / 2) / PANELS).ravel()
    # Clients with equal numbers and ranks are alike, and counted together
    pairs, size = np.unique(np.stack([counts, ranks]), axis=1, return_counts=True)
    below = []
    for (n, rank), clients in zip(pairs.T, size, strict=True):
        p = scipy.special.betainc(rank, n - rank + 1, t) if rank <= n else np.zeros_like(t)
        below.append(scipy.stats.binom.pmf(np.arange(clients + 1), clients, p[:, None]))
    # Distribution of how many clients are below; coverage of the k-th smallest is the mean of fewer than k
    happened = reduce(_convolve_sums, below)
    fewer = np.cumsum(happened, axis=1)[:, :-1]
    return np.tile(weight / (2 * PANELS), PANELS) @ fewer


def _convolve_sums(a: Array, b: Array) -> Array:
    """Distributions of sums (nodes, m + n + 1), from those of independent terms (nodes, m + 1) and (nodes, n + 1)."""
    a, b = (a, b) if a.shape[1] >= b.shape[1] else (b, a)
    total = np.zeros((len(a), a.shape[1] + b.shape[1] - 1))
    for place in range(b.shape[1]):
        total[:, place : place + a.shape[1]] += a * b[:, place, None]
    return total
