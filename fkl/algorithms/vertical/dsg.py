"""DSG: doubly stochastic gradients on pooled data (Dai et al. 2014), the oracle that FDSKL is compared with."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fkl.algorithms.base import Scored, World
from fkl.algorithms.vertical.losses import LOSSES
from fkl.algorithms.vertical.parties import OverParties
from fkl.data.vertical import Split, Vertical
from fkl.errors import require
from fkl.kernels.threads import in_parts
from fkl.streams import Role, Streams

Array = NDArray[np.floating]

KERNELS = ("rbf", "laplacian")
RATES = ("constant", "diminishing")
BLOCK = 256
"""Features that are computed together: many iterations of few features, or one of many."""
TILE = 1024
"""Rows whose features are held at a time: 2 MB in float64."""


class Draw(NamedTuple):
    """What an iteration's seed gives.

    Parameters
    ----------
    w : (D, d)
        Directions of its features.
    b : (D,)
        Their phases, from [0, 2 pi).
    """

    w: NDArray[np.float64]
    b: NDArray[np.float64]


@dataclass
class Learner:
    """One replicate.

    Parameters
    ----------
    streams : Streams
        Of this replicate alone.
    split : Split
    batches : (T, B) int64
        Rows that each iteration learns from.
    t : int
        Iterations done.
    rows : (m,) int64
        Rows that are tested on, then those learned from, last needed first.
    needed : (m,) int64
        Last iteration that needs each of `rows`; T for those tested on.
    place : (n,) int64
        Where each row stands in `rows`.
    f : (m,) float64
        f of `rows` after t iterations; of those still needed.
    alpha : (T, D) float64
        Coefficients after t iterations.
    """

    streams: Streams
    split: Split
    batches: NDArray[np.int64]
    t: int
    rows: NDArray[np.int64]
    needed: NDArray[np.int64]
    place: NDArray[np.int64]
    f: NDArray[np.float64]
    alpha: NDArray[np.float64]

    @property
    def f_test(self) -> NDArray[np.float64]:
        """Values f of the rows that are tested on, in the order of `split.test`."""
        return self.f[: len(self.split.test)]


@dataclass
class State:
    """All replicates, and what the last step sent: one dictionary a replicate, empty for a pooled method."""

    learners: list[Any]
    sent: list[dict[str, NDArray[np.int64]]]


@dataclass(frozen=True)
class Dsg(OverParties):
    """f_t+1 = (1 - gamma_t lambda) f_t - gamma_t mean_{i, k} L'(f_t(x_i), y_i) phi_k(x_i) phi_k(.), FDSKL's eq. (7).

    The mean is over the B rows and D features of the iteration; 1 and 1 are the method as the papers write it. Rows
    come in random order, all before any comes again.

    Parameters
    ----------
    iterations : int
        T.
    marks : int
        Times at which f is asked for, evenly over the iterations.
    loss : {"square", "logistic", "smooth_hinge"}
        FDSKL's Table 1.
    kernel : {"rbf", "laplacian"}
        exp(-|x - x'|^2 / (2 sigma^2)), or exp(-|x - x'|_1 / sigma).
    sigma : float
    gamma : float
        Learning rate.
    rate : {"constant", "diminishing"}
        gamma_t = gamma, or gamma / t (Dai et al., Theorem 4).
    lam : float
        Regularisation lambda.
    batch, features : int
        B and D.

    Raises
    ------
    fkl.errors.BadValue
    """

    label: ClassVar[str] = "DSG"

    iterations: int = 500
    marks: int = 100
    loss: str = "logistic"
    kernel: str = "rbf"
    sigma: float = 1.0
    gamma: float = 1.0
    rate: str = "constant"
    lam: float = 1e-6
    batch: int = 1
    features: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("iterations", "marks", "batch", "features"):
            value = getattr(self, key)
            require(1 <= value <= 10**9, key, value, "a whole number from 1")
        require(self.loss in LOSSES, "loss", self.loss, f"one of {', '.join(LOSSES)}")
        require(self.kernel in KERNELS, "kernel", self.kernel, " or ".join(KERNELS))
        require(self.rate in RATES, "rate", self.rate, " or ".join(RATES))
        for key in ("sigma", "gamma"):
            value = getattr(self, key)
            require(0 < value < np.inf, key, value, "a number above 0")
        require(0 <= self.lam < np.inf, "lam", self.lam, "a number from 0")
        below = f"below 1 / lam = {1 / self.lam:g} (FDSKL, Theorem 4)" if self.lam else "any"
        require(self.rate != "constant" or self.gamma * self.lam < 1, "gamma", self.gamma, below)

    @property
    def rounds(self) -> int:
        """Steps: iterations from one mark to the next."""
        return min(self.marks, self.iterations)

    def until(self, t: int) -> int:
        """Iterations done after step t."""
        return round(self.iterations * (t + 1) / self.rounds)

    def init(self, world: World) -> State:
        """Start from f = 0."""
        streams = [Streams(world.streams.seed, (replicate,)) for replicate in world.streams.replicates]
        return State([self.learner(world.problem, one) for one in streams], [{} for _ in streams])

    def step(self, world: World, state: State, t: int) -> tuple[State, Scored]:
        """Iterations up to the next mark, and f of the rows that are tested on."""
        for learner in state.learners:
            self.advance(world.problem, learner, self.until(t), world.precision)
        f = tuple(learner.f_test.copy() for learner in state.learners)
        return state, Scored(f, tuple(learner.split.test for learner in state.learners), self.until(t))

    def learner(self, problem: Vertical, streams: Streams) -> Any:
        """One replicate before its first iteration.

        Raises
        ------
        fkl.errors.BadValue
            If a batch has more rows than there are to learn from, or the loss asks for two classes.
        """
        if LOSSES[self.loss].classes:
            problem.require_classes(self.loss)
        # spawned, since the first replicate's stream of this role also makes the data and its partition
        split = problem.rows(streams.generators(Role.DATA)[0].spawn(1)[0], self.fold)
        batches = self.batches(split.training, streams)
        needed = np.full(len(problem.y), -1)
        for t, rows in enumerate(batches):
            needed[rows] = t
        used = np.flatnonzero(needed >= 0)
        rows = np.concatenate([split.test, used[np.argsort(-needed[used], kind="stable")]])
        needed[split.test] = self.iterations
        place = np.full(len(problem.y), -1)
        place[rows] = np.arange(len(rows))
        alpha = np.zeros((self.iterations, self.features))
        return Learner(streams, split, batches, 0, rows, needed[rows], place, np.zeros(len(rows)), alpha)

    def batches(self, training: NDArray[np.int64], streams: Streams) -> NDArray[np.int64]:
        """Rows of each iteration, (T, B): whole batches of one random order after another."""
        size = len(training)
        require(self.batch <= size, "batch", self.batch, f"at most {size}, the rows to learn from")
        whole = size // self.batch
        orders = [
            streams.uniform(Role.SELECTION, epoch, size)[0].argsort()[: whole * self.batch]
            for epoch in range(-(-self.iterations // whole))
        ]
        return training[np.concatenate(orders).reshape(-1, self.batch)[: self.iterations]]

    def draw(self, streams: Streams, t: int, dimension: int) -> Draw:
        """Directions and phases of iteration t, a function of its seed alone (FDSKL, Theorem 1)."""
        size = self.features * dimension
        u = streams.uniform(Role.FEATURES, t, size + self.features)[0]
        inner = np.clip(u[:size], np.finfo(np.float64).tiny, None).reshape(self.features, dimension)
        w = ndtri(inner) if self.kernel == "rbf" else np.tan(np.pi * (inner - 0.5))
        return Draw(w / self.sigma, 2 * np.pi * u[size:])

    def gamma_at(self, t: int) -> float:
        """Learning rate of iteration t, from 0."""
        return self.gamma if self.rate == "constant" else self.gamma / (t + 1)

    def advance(self, problem: Vertical, learner: Learner, until: int, precision: str = "float64") -> None:
        """Iterate until so many iterations are done."""
        # Cauchy directions make angles whose fraction of a turn float32 does not hold.
        dtype = np.dtype(np.float64 if self.kernel == "laplacian" else precision)
        several = max(1, BLOCK // self.features)
        while learner.t < until:
            self._block(problem, learner, min(learner.t + several, until), dtype)

    def _block(self, problem: Vertical, learner: Learner, end: int, dtype: np.dtype[np.floating]) -> None:
        """Several iterations: their features are computed at once, and only those of their own rows before the end."""
        first, D = learner.t, self.features
        draws = [self.draw(learner.streams, t, problem.dimension) for t in range(first, end)]
        w = np.concatenate([draw.w for draw in draws]).astype(dtype)
        b = np.concatenate([draw.b for draw in draws]).astype(dtype)
        rows = learner.batches[first:end]
        phi = phi_of(problem.x[rows.ravel()], w, b).reshape(*rows.shape, -1)
        f, y = learner.f[learner.place[rows]], problem.y[rows]
        alpha, shrunk = np.zeros(len(b)), 1.0
        for k in range(end - first):
            gamma = self.gamma_at(first + k)
            before, own = slice(0, k * D), slice(k * D, (k + 1) * D)
            f_k = shrunk * f[k] + phi[k, :, before] @ alpha[before]
            slope = LOSSES[self.loss].derivative(f_k, y[k])
            alpha[own] = -gamma * (slope @ phi[k, :, own]) / (self.batch * D)
            alpha[before] *= 1 - gamma * self.lam
            shrunk *= 1 - gamma * self.lam
        learner.alpha[:first] *= shrunk
        learner.alpha[first:end] = alpha.reshape(-1, D)
        learner.t = end
        self._learn(problem, learner, w, b, alpha, shrunk)

    def _learn(self, problem: Vertical, learner: Learner, w: Array, b: Array, alpha: Array, shrunk: float) -> None:
        """Let f <- shrunk f + phi alpha on all rows that are needed again."""
        live = int(np.searchsorted(-learner.needed, -learner.t, side="right"))

        def tiles(begin: int, end: int) -> None:
            for start in range(begin * TILE, min(end * TILE, live), TILE):
                tile = slice(start, min(start + TILE, live))
                phi = phi_of(problem.x[learner.rows[tile]], w, b)
                learner.f[tile] = shrunk * learner.f[tile] + phi @ alpha.astype(phi.dtype)

        in_parts(tiles, -(-live // TILE), live * len(b))


def phi_of(x: Any, w: Array, b: Array) -> Array:
    """sqrt(2) cos(w'x + b) of x (n, d), w (D, d) and b (D,): (n, D), in the precision of w (FDSKL, Theorem 1)."""
    angle = x.astype(w.dtype, copy=False) @ w.T
    angle += b
    phi = np.cos(angle, out=angle)
    phi *= np.sqrt(np.array(2, w.dtype))
    return phi
