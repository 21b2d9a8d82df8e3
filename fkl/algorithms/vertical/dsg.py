"""DSG: doubly stochastic gradients on pooled data (Dai et al. 2014), the oracle for FDSKL."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fkl.algorithms.base import World
from fkl.algorithms.vertical.parties import VerticalMethodWithKeys
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.memory import require_memory
from fkl.basics.pointwise import OF_PARTIES, pointwise_loss
from fkl.basics.random_streams import Role, Streams
from fkl.contract.parties import Scored
from fkl.contract.world import FEATURE_KEYS, Common
from fkl.data.vertical import RowSplit, Vertical
from fkl.kernels import FeatureBank
from fkl.kernels.cosine_sums import add_cosines, add_sparse_cosines
from fkl.kernels.dictionary import Dictionary
from fkl.kernels.functions import OnFeatures
from fkl.kernels.threads import in_parts

FAMILIES = ("rbf", "laplacian")
RATES = ("constant", "diminishing")
ROWS = ("shuffled", "iid")
TURN = 2 * np.pi
BLOCK = 256
"""Number of features that are computed together: many iterations of few features, or one iteration of many."""
DIRECTIONS_HELD = 4
"""Arrays as large as a block's directions that exist while these are drawn: uniform, clipped, normal, over sigma."""
TILE = 1024
"""Number of rows whose features are in memory at a time: 2 MB in float64."""


@dataclass
class ReplicateLearner:
    """One replicate.

    Parameters
    ----------
    split : Split
    batches : (T, B) int64
        Rows of each iteration.
    holders : (T,) int64
        Worker whose private seed gives the phases of each iteration.
    t : int
        Iterations done.
    rows : (m,) int64
        Distinct training rows, sorted by when they are last needed, latest first.
    needed : (m,) int64
        Last iteration that needs each of `rows`.
    place : (n,) int64
        Position of each row, or of its duplicate, in `rows`.
    f : (m,) float64
        f of `rows` after t iterations, valid for rows that are still needed.
    alpha : (T, D) float64
        Coefficients after t iterations.
    tested_rows : (u,) int64
        Distinct test rows.
    tested_place : (n_test,) int64
        Position of each row of `split.test` in `tested_rows`.
    f_test : (u,) float64
        f of `tested_rows` after `tested` iterations.
    tested : int
    shrunk : float
        Factor by which the coefficients of these iterations have shrunk since.
    """

    split: RowSplit
    batches: NDArray[np.int64]
    holders: NDArray[np.int64]
    t: int
    rows: NDArray[np.int64]
    needed: NDArray[np.int64]
    place: NDArray[np.int64]
    f: NDArray[np.float64]
    alpha: NDArray[np.float64]
    tested_rows: NDArray[np.int64]
    tested_place: NDArray[np.int64]
    f_test: NDArray[np.float64]
    tested: int
    shrunk: float

    def still_needed(self, t: int) -> int:
        """Number of leading `rows` that iteration t or a later one needs."""
        return int(np.searchsorted(-self.needed, -t, side="right"))


@dataclass
class DsgState:
    """All replicates, and the messages of the last step: one dictionary per replicate, empty for a pooled method."""

    learners: list[Any]
    sent: list[dict[str, NDArray[np.int64]]]


@dataclass(frozen=True)
class Dsg(VerticalMethodWithKeys):
    """f_t+1 = (1 - gamma_t lambda) f_t - gamma_t mean_{i, k} L'(f_t(x_i), y_i) phi_k(x_i) phi_k(.), FDSKL's eq. (7).

    The mean is over the B rows and D features of the iteration; in the papers, B = D = 1. By default, rows
    are drawn without replacement until all have been drawn, while the analysis assumes i.i.d. draws (`rows`). `kernels`
    gives the kernel. Its features are drawn during learning, D at a time, so the keys of `kernels` about a bank of
    features, such as its D, have no effect here.
    """

    label: ClassVar[str] = "DSG"
    pooled: ClassVar[bool] = True
    uses_kernels: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True
    idle: ClassVar[tuple[str, ...]] = FEATURE_KEYS
    compiled_only: ClassVar[bool] = True

    iterations: int = key(20000, "Number T of iterations.", min=1, max=1_000_000_000)
    marks: int = key(100, "Number of evaluations of f, evenly spaced over the iterations.", min=1, max=1_000_000_000)
    loss: str = key("logistic", "Loss, as in FDSKL's Table 1.", choices=OF_PARTIES)
    gamma: float = key(0.1, "Learning rate.", above=0)
    rate: str = key("constant", "gamma_t = gamma, or gamma / t (Dai et al., Theorem 4).", choices=RATES)
    lam: float = key(1e-6, "Regularisation lambda.", min=0)
    batch: int = key(1, "Number B of samples per iteration.", min=1, max=1_000_000_000)
    rows: str = key(
        "shuffled",
        "``shuffled``: all rows in a random order, before any is drawn again. ``iid``: each iteration draws its B rows "
        "from all rows, independently of earlier draws, as in the papers' analysis; no row is twice in a batch.",
        choices=ROWS,
    )
    features: int = key(1, "Number D of features per iteration.", min=1, max=1_000_000_000)
    bank: int | None = key(
        None,
        "Total number of features, a multiple of D: iteration t uses block t modulo bank / D of D features. None "
        "draws new features in every iteration, as in the papers.",
        must="a multiple of algo.features from 1 to 1000000000, or null",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = self.bank is None or (0 < self.bank <= 10**9 and self.bank % self.features == 0)
        require(whole, "bank", self.bank, f"a multiple of algo.features={self.features} from 1 to 1000000000, or null")
        below = f"below 1 / lam = {1 / self.lam:g} (FDSKL, Theorem 4)" if self.lam else "any"
        require(self.rate != "constant" or self.gamma * self.lam < 1, "gamma", self.gamma, below)

    @property
    def rounds(self) -> int:
        """Number of steps; a step is the iterations from one mark to the next."""
        return min(self.marks, self.iterations)

    def iterations_after(self, t: int) -> int:
        """Iterations done after step t."""
        return round(self.iterations * (t + 1) / self.rounds)

    @property
    def draws(self) -> int:
        """Number of draws of D features."""
        return self.iterations if self.bank is None else min(self.iterations, self.bank // self.features)

    def init(self, world: World) -> DsgState:
        """Start from f = 0."""
        replicates = range(len(world.streams.replicates))
        return DsgState(
            [self.first_learner(world.common.replicate(r), world.problem) for r in replicates], [{} for _ in replicates]
        )

    def step(self, world: World, state: DsgState, t: int) -> tuple[DsgState, Scored]:
        """Run the iterations up to the next mark, and evaluate f there."""
        common = [world.common.replicate(r) for r in range(len(state.learners))]
        for replicate, learner in zip(common, state.learners, strict=True):
            self.advance(replicate, world.problem, learner, self.iterations_after(t))
        each = zip(common, state.learners, strict=True)
        f = tuple(partial(self.values_on_tests, replicate, world.problem, learner) for replicate, learner in each)
        return state, Scored(f, tuple(learner.split.test for learner in state.learners), self.iterations_after(t))

    def require_fits(self, kernels: Dictionary) -> None:
        """Refuse more than one kernel, and families without such features."""
        require(
            kernels.N == 1, "kernels.N", kernels.N, f"1: {self.label} learns one kernel, for example kernels=rbf_single"
        )
        require(kernels.families[0] in FAMILIES, "kernels.family", kernels.family, " or ".join(FAMILIES))

    def first_learner(self, common: Common, problem: Vertical) -> Any:
        """One replicate before its first iteration.

        Raises
        ------
        fkl.basics.errors.BadValue
            If a batch has more rows than the training set, the loss needs two classes, or there is more than one kernel
            or a family without such features.
        """
        # Check that the kernel, the loss and the memory fit
        kernels, streams = common.dictionary, common.streams
        self.require_fits(kernels)
        if pointwise_loss(self.loss).classes:
            problem.require_classes(self.loss)
        drawn, used = self.features * problem.dimension, problem.used_x.shape[1]
        of_block = self._iterations_at_once * self.features * used
        room = 8 * (self.iterations * (2 * self.batch + self.features) + drawn + DIRECTIONS_HELD * of_block)
        what = f"batches, coefficients and directions of {self.iterations} iterations in {used} features"
        require_memory(room, what, "algo.iterations, algo.features or algo.batch")
        # spawned, because the first replicate's stream of this role also draws the data and its partition
        # Rows of all iterations, drawn at once
        split = problem.rows(streams.generators(Role.DATA)[0].spawn(1)[0], self.fold)
        # For each row, the last iteration that needs its f; alike rows share one f
        batches = self.batches(split.training, streams)
        needed = np.full(len(problem.y), -1)
        for t, rows in enumerate(batches):
            needed[problem.alike[rows]] = t
        # Rows in the order in which they are no longer needed, so the rows still needed are always the first ones
        used = np.flatnonzero(needed >= 0)
        rows = used[np.argsort(-needed[used], kind="stable")]
        place = np.full(len(problem.y), -1)
        place[rows] = np.arange(len(rows))
        learned_from = rows, needed[rows], place[problem.alike], np.zeros(len(rows))
        # Coefficients of all iterations, and the f of test rows, which are updated when they are scored
        alpha = np.zeros((self.iterations, self.features))
        tested_rows, tested_place = np.unique(problem.alike[split.test], return_inverse=True)
        tested = tested_rows, tested_place, np.zeros(len(tested_rows))
        holders = self.workers_on_duty(problem, streams)[:, 1]
        return ReplicateLearner(split, batches, holders, 0, *learned_from, alpha, *tested, 0, 1.0)

    def batches(self, training: NDArray[np.int64], streams: Streams) -> NDArray[np.int64]:
        """Rows of each iteration, (T, B): full batches from one random order after another, or independent subsets."""
        size = len(training)
        require(self.batch <= size, "batch", self.batch, f"at most {size}, the rows to learn from")
        # Independent subsets, if the analysis of the paper is to hold
        if self.rows == "iid":
            u = streams.uniform(Role.SELECTION, 0, self.iterations * self.batch)[0].reshape(-1, self.batch)
            return training[random_subsets(u, size)]
        # One random order after another, without the rest that fills no batch
        whole = size // self.batch
        orders = [
            streams.uniform(Role.SELECTION, epoch, size)[0].argsort()[: whole * self.batch]
            for epoch in range(-(-self.iterations // whole))
        ]
        return training[np.concatenate(orders).reshape(-1, self.batch)[: self.iterations]]

    def workers_on_duty(self, problem: Vertical, streams: Streams) -> NDArray[np.int64]:
        """Workers l, active ones in turn, and l', whose mask is never subtracted (FDSKL, Algorithm 3, line 6).

        Features that are used again stay with the l that first requested them. A feature's l' is the same for all
        samples, because its mask is the feature's b. Pooled data need no workers, but with them DSG has the same phases
        as FDSKL.

        Returns
        -------
        (T, 2)
        """
        # Active workers in turn; for the other one, draw among the q - 1 remaining ones and skip l
        asking = np.resize(np.array(problem.active), self.draws)
        u = streams.uniform(Role.TOPOLOGY, 0, self.iterations)[0][: self.draws]
        other = (u * (problem.parties - 1)).astype(np.int64)
        # With a bank, iterations t and t + draws have the same features, so they have the same workers
        once = np.stack([asking, other + (other >= asking)], axis=1)
        return once[np.arange(self.iterations) % self.draws]

    def directions(self, common: Common, *draws: int, used: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Directions w of some iterations, D rows (d,) each, which depend only on their seeds (FDSKL, Theorem 1).

        `used` selects columns; many others may be 0. All columns are then in memory for one iteration only.
        """
        # Uniform numbers by the seed of each draw, so any worker can repeat them
        size, streams = self.features * common.dimension, common.streams
        if used is None:
            u = streams.uniform_of_rounds(Role.FEATURES, draws, size).reshape(-1, common.dimension)
        else:
            uniforms = (streams.uniform_of_rounds(Role.FEATURES, [draw], size) for draw in draws)
            u = np.concatenate([one.reshape(-1, common.dimension)[:, used] for one in uniforms])
        # Gaussian directions for rbf, Cauchy directions for Laplacian kernels, by the inverse distribution function
        inner = np.clip(u, np.finfo(np.float64).tiny, None)
        standard = ndtri(inner) if common.dictionary.families[0] == "rbf" else np.tan(np.pi * (inner - 0.5))
        sigma: float = 1 / common.dictionary.scales[0]
        return standard / sigma

    def phases(self, common: Common, t: int, holder: int) -> NDArray[np.float64]:
        """Phases b of iteration t, (D,), from a worker's private seed (FDSKL, Algorithm 3, line 2)."""
        return self._phases_of_iterations(common, [t], np.array([holder])).ravel()

    def _phases_of_iterations(
        self, common: Common, draws: list[int], holders: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Phases of several iterations, (T, D), each from the private seed of the iteration's worker."""
        phases = np.empty((len(draws), self.features))
        for holder in np.unique(holders).tolist():
            [its] = np.nonzero(holders == holder)
            own = [draws[t] for t in its]
            phases[its] = TURN * common.streams.private_of_rounds(Role.PHASES, holder, own, self.features)[:, 0]
        return phases

    def gamma_at(self, t: int) -> float:
        """Learning rate of iteration t, from 0."""
        return self.gamma if self.rate == "constant" else self.gamma / (t + 1)

    def advance(self, common: Common, problem: Vertical, learner: ReplicateLearner, until: int) -> None:
        """Iterate up to this number of iterations."""
        # Only rows that a later iteration draws
        D, slope_of = self.features, pointwise_loss(self.loss).derivative
        x = problem.used_x[learner.rows[: learner.still_needed(learner.t)]].astype(self._angle_precision(common))
        while learner.t < until:
            # Features of several iterations are computed at once: first only for the rows of these iterations.
            first, end = learner.t, min(learner.t + self._iterations_at_once, until)
            w, b = self._drawn_features(common, learner, first, end, problem.used)
            rows = learner.batches[first:end]
            phi = cosine_features(problem.used_x[rows.ravel()], w, b).reshape(*rows.shape, -1)
            f, y = learner.f[learner.place[rows]], problem.y[rows]
            alpha, shrunk = np.zeros(len(b)), 1.0
            # Coefficients of earlier blocks shrink by one factor, which is applied at the end of this block.
            for k in range(end - first):
                gamma = self.gamma_at(first + k)
                before, new = slice(0, k * D), slice(k * D, (k + 1) * D)
                # f of the batch: from earlier blocks, and from features of this block
                f_k = shrunk * f[k] + phi[k, :, before] @ alpha[before]
                slope = slope_of(f_k, y[k])
                # The new coefficients, and the shrinking of the earlier ones by 1 - gamma lam
                alpha[new] = -gamma * (slope @ phi[k, :, new]) / (self.batch * D)
                alpha[before] *= 1 - gamma * self.lam
                shrunk *= 1 - gamma * self.lam
            learner.alpha[:first] *= shrunk
            learner.alpha[first:end] = alpha.reshape(-1, D)
            learner.t = end
            learner.shrunk *= shrunk
            # Rows that no later iteration draws are not updated.
            again = learner.still_needed(end)
            _add_features(x[:again], learner.f[:again], shrunk, w, b, alpha)

    def values_on_tests(self, common: Common, problem: Vertical, learner: ReplicateLearner) -> NDArray[np.float64]:
        """Values f of the test rows; adds the features drawn since the last evaluation."""
        learner.f_test *= learner.shrunk
        learner.shrunk = 1.0
        x = problem.used_x[learner.tested_rows].astype(self._angle_precision(common))
        for first in range(learner.tested, learner.t, self._iterations_at_once):
            end = min(first + self._iterations_at_once, learner.t)
            w, b = self._drawn_features(common, learner, first, end, problem.used)
            _add_features(x, learner.f_test, 1.0, w, b, learner.alpha[first:end].ravel())
        learner.tested = learner.t
        return learner.f_test[learner.tested_place]

    def functions(self, world: World, state: DsgState, t: int) -> tuple[OnFeatures, ...]:
        """All features drawn so far, each with the sum of its coefficients."""
        # A model for each replicate
        learned = []
        for r, learner in enumerate(state.learners):
            drawn = min(learner.t, self.draws)
            size = drawn * self.features
            require_memory(16 * size * world.problem.dimension, f"a model of {size} features", "algo.iterations")
            # Draw its features once more, because they are not stored
            w, b = self._drawn_features(world.common.replicate(r), learner, 0, drawn)
            # With a bank, several iterations change the coefficients of one feature
            alpha = np.zeros((drawn, self.features))
            np.add.at(alpha, np.arange(learner.t) % self.draws, learner.alpha[: learner.t])
            bank = FeatureBank(w.T[None, None], np.ones(1, w.dtype), b[None, None], precision=w.dtype)
            theta = np.sqrt(2) / bank.norm * alpha.reshape(1, 1, -1)
            learned.append(OnFeatures.from_bank(bank, 0, theta, np.ones((1, 1))))
        return tuple(learned)

    @property
    def _iterations_at_once(self) -> int:
        """Number of iterations that are computed together."""
        return max(1, BLOCK // self.features)

    def _drawn_features(
        self, common: Common, learner: ReplicateLearner, first: int, end: int, used: NDArray[np.int64] | None = None
    ) -> tuple[Array, Array]:
        """All directions, one per row, and phases of some iterations; `used` as in `directions`."""
        draws = [t % self.draws for t in range(first, end)]
        phases = self._phases_of_iterations(common, draws, learner.holders[first:end])
        dtype = self._angle_precision(common)
        return self.directions(common, *draws, used=used).astype(dtype), phases.ravel().astype(dtype)

    def _angle_precision(self, common: Common) -> np.dtype[np.floating]:
        """Precision of angles: float64 for Cauchy directions, as float32 cannot resolve fractions of a turn."""
        return np.dtype(np.float64 if common.dictionary.families[0] == "laplacian" else common.precision)


def random_subsets(u: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Subsets of `range(size)`, one from each row of u (numbers in [0, 1)), by Floyd's algorithm (Bentley 1987)."""
    chosen = np.empty(u.shape, np.int64)
    for k, top in enumerate(range(size - u.shape[1], size)):
        drawn = (u[:, k] * (top + 1)).astype(np.int64)
        chosen[:, k] = np.where((chosen[:, :k] == drawn[:, None]).any(axis=1), top, drawn)
    return chosen


def _add_features(x: Any, f: NDArray[np.float64], shrunk: float, w: Array, b: Array, alpha: Array) -> None:
    """Set f to shrunk f + phi alpha on rows x, in place; in float32 by the compiled loop, which does not store phi."""
    # sqrt(2) is part of the features, and here of the coefficients
    scaled = (np.sqrt(2) * alpha).astype(w.dtype)
    compiled, sparse = w.dtype == np.float32, not isinstance(x, np.ndarray)
    # Sparse rows in the types of the compiled loop
    if sparse:
        ends, numbers, across = x.indptr.astype(np.int64), x.indices.astype(np.int32), np.ascontiguousarray(w.T)

    # A tile of rows at a time, so angles stay in the cache
    def tiles(begin: int, end: int) -> None:
        for start in range(begin * TILE, min(end * TILE, len(f)), TILE):
            tile = slice(start, min(start + TILE, len(f)))
            if sparse and compiled:
                its = ends[start : tile.stop + 1]
                add_sparse_cosines(x.data, numbers, its, across, b, scaled, shrunk, f[tile])
            elif compiled:
                add_cosines(_project_samples(x[tile], w), b, scaled, shrunk, f[tile])
            else:
                f[tile] = shrunk * f[tile] + cosine_features(x[tile], w, b) @ alpha

    if len(f):
        in_parts(tiles, -(-len(f) // TILE), len(f) * len(b))


def _project_samples(x: Any, w: Array) -> Array:
    """Products w'x of x (n, d) and w (D, d): (n, D), in the precision of w."""
    return np.asarray(x.astype(w.dtype, copy=False) @ w.T)


def cosine_features(x: Any, w: Array, b: Array) -> Array:
    """sqrt(2) cos(w'x + b) of x (n, d), w (D, d) and b (D,): (n, D), in the precision of w (FDSKL, Theorem 1)."""
    angle = _project_samples(x, w)
    angle += b
    phi = np.cos(angle, out=angle)
    phi *= np.sqrt(np.array(2, w.dtype))
    return phi
