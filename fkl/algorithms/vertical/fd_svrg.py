"""FD-SVRG: feature-distributed stochastic variance reduced gradient, a linear model.

Zhang, Zhao, Gao and Li, "Feature-distributed SVRG for high-dimensional linear classification" (2018), Algorithm 1.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.algorithms.vertical.parties import Actor, Count, Integers, LearningWithKeys, Letter, PartyData, PartyRows, Wire
from fkl.algorithms.vertical.sums import gather_at_root, pass_down_tree, tree_rooted_at
from fkl.basics.arrays import Array
from fkl.basics.errors import require
from fkl.basics.keys import key
from fkl.basics.memory import require_memory
from fkl.basics.pointwise import OF_PARTIES, PointwiseLoss, pointwise_loss
from fkl.kernels import functions
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.compiled_losses import slope_of_one


class Products(Letter, kind="products"):
    """Parts of w'x of some samples, sent towards the root."""


class Slopes(Letter, kind="slopes"):
    """L' of some samples, sent to all parties."""


@dataclass(frozen=True)
class LinearModel:
    """f(x) = w'x + bias.

    Parameters
    ----------
    w : (d,)
        Each party holds the entries for its own features.
    bias : float
        Held by the party with the labels.
    """

    w: Array
    bias: float

    def decision(self, x: Array) -> Array:
        """Values f of samples (n, d), shape (n,): estimates, or above 0 for class 1."""
        return x @ self.w + self.bias

    @property
    def function(self) -> functions.Linear:
        """The model as arrays of a stored model."""
        return functions.Linear(self.w, np.array(self.bias))


@dataclass
class DescentState:
    """State between two outer iterations.

    Parameters
    ----------
    w : (d + 1,)
        Weights of the features, then of the feature that is always 1.
    rng : numpy.random.Generator
        Generator of the common seed.
    """

    w: Array
    rng: np.random.Generator


@dataclass(frozen=True)
class FdSvrg(LearningWithKeys):
    """Minimise (1/N) sum_i L(w'x_i, y_i) + lam/2 |w|^2; each party stores and updates the w of its own features.

    Partial inner products are summed along a tree to the active party. Only this party knows y, and it sends L' down
    the tree, unmasked as in the paper: from the first L', at w = 0, every party learns all targets. (In the paper all
    workers hold the labels and receive the sums instead, the same number of scalars.) All parties draw the same samples
    from a common seed, without a message.
    """

    label: ClassVar[str] = "FD-SVRG"
    compiled_only: ClassVar[bool] = True

    loss: str = key(
        "logistic", "Loss L, as in FDSKL's Table 1; ``square`` also learns real targets.", choices=OF_PARTIES
    )
    lam: float = key(1e-5, "Regularisation; the bias is regularised too.", min=0)
    eta: float = key(0.1, "Step size.", above=0)
    passes: int = key(20, "Number of outer iterations, each with one full gradient.", min=1, max=1_000_000_000)
    inner: int | None = key(
        None, "Number M of steps between two full gradients; None for N / batch.", min=1, max=1_000_000_000
    )
    batch: int = key(1, "Number u of samples per step.", min=1)
    intercept: bool = key(True, "Whether the active party holds one more feature, which is always 1.")

    @property
    def loss_of_classes(self) -> str | None:
        """Name of a loss that needs two classes; None for the squared loss."""
        return None if self.loss == "square" else self.loss

    @property
    def rounds(self) -> int:
        """Number of rounds: one per pass."""
        return self.passes

    def inner_steps(self, samples: int) -> int:
        """Number M of steps with N samples."""
        return self.inner or max(1, samples // self.batch)

    def begin(self, held: PartyRows, rng: np.random.Generator) -> DescentState:
        """Start from w = 0; `rng` has the common seed.

        Raises
        ------
        fkl.basics.errors.BadValue
            If a step has more samples than the training set.
        """
        # Check the batch and the memory for the drawn rows
        size = len(held.x)
        require(self.batch <= size, "batch", self.batch, f"at most {size}, the rows to learn from")
        drawn = 8 * self.inner_steps(size) * self.batch
        require_memory(drawn, f"the rows of {self.inner_steps(size)} steps", "algo.inner or algo.batch")
        return DescentState(np.zeros(held.x.shape[1] + 1), rng)

    def advance(self, held: PartyRows, learned: DescentState, count: Count) -> tuple[DescentState, LinearModel]:
        """Run one outer iteration.

        The sum of the parties' w_G'x_G over the tree is w'x, so the pooled w is updated at once and messages are only
        counted. The first active party is the root of the tree.
        """
        # Draw the rows of all steps, as the parties would
        x, y, w = np.ascontiguousarray(held.x, np.float64), held.y, learned.w
        loss, one = pointwise_loss(self.loss), float(self.intercept)
        samples, d = x.shape
        steps = self.inner_steps(samples)
        index = learned.rng.integers(samples, size=(steps, self.batch))
        # Slopes of all samples at w_0, and their mean gradient
        slopes = _slopes_of_loss(x @ w[:d] + one * w[d], y, loss)
        mean = np.append(slopes @ x, one * slopes.sum()) / samples
        # M steps from w_0, each corrected by the mean gradient
        _descend_compiled(x, y, one, index, slopes, mean, w, loss, self.lam, self.eta)
        # Messages: one sum of N partial products and M sums of u each, and as many slopes back.
        scalars = samples + steps * self.batch
        for child, parent in tree_rooted_at(len(held.groups), held.active[0]).links:
            Products.count_letters(count, child, parent, scalars, 1 + steps)
            Slopes.count_letters(count, parent, child, scalars, 1 + steps)
        return learned, LinearModel(w[:d].copy(), float(w[d]))

    def generators(self, rng: np.random.Generator, parties: int, root: int) -> list[np.random.Generator | None]:
        """Generator of the common seed: all parties draw the same samples."""
        return [deepcopy(rng) for _ in range(parties)]

    def party(self, own: PartyData, wire: Wire) -> Actor:
        """Algorithm 1 at one party, which holds w of its own features; the root has one more feature, always 1."""
        assert own.rng is not None
        # The party's own features; the root has the intercept as well
        root, tree, samples = own.number == own.root, tree_rooted_at(own.parties, own.root), len(own.x)
        x = np.column_stack([own.x, np.full(samples, float(self.intercept))]) if root else own.x
        loss, steps, w = pointwise_loss(self.loss), self.inner_steps(samples), np.zeros(x.shape[1])
        # One outer iteration: the full gradient, then M steps
        for _ in range(self.passes):
            index = own.rng.integers(samples, size=(steps, self.batch))
            f = yield from gather_at_root(tree, own, wire, Products, x @ w)
            slopes = _slopes_of_loss(f, own.labels, loss) if root else None
            slopes = yield from pass_down_tree(tree, own, wire, Slopes, slopes)
            mean = slopes @ x / samples
            # A step needs f of the batch, hence a sum along the tree, and the slopes back
            for rows in index:
                f = yield from gather_at_root(tree, own, wire, Products, x[rows] @ w)
                change = _slopes_of_loss(f, own.labels[rows], loss) - slopes[rows] if root else None
                change = yield from pass_down_tree(tree, own, wire, Slopes, change)
                w -= self.eta * (change @ x[rows] / self.batch + mean + self.lam * w)
        return w

    def assembled(self, parts: list[Array], held: PartyRows) -> LinearModel:
        """The model from all parties' w."""
        w, bias = np.empty(held.x.shape[1]), 0.0
        for j, (features, part) in enumerate(zip(held.groups, parts, strict=True)):
            w[features] = part[: len(features)]
            bias = float(part[-1]) if j == held.active[0] else bias
        return LinearModel(w, bias)


@njit_cached(nogil=True)
def _slopes_of_loss(f: Array, y: Array, loss: PointwiseLoss) -> Array:
    slopes = np.empty(len(f))
    for i in range(len(f)):
        slopes[i] = slope_of_one(loss, f[i], y[i])
    return slopes


@njit_cached(nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _descend_compiled(
    x: Array,
    y: Array,
    one: float,
    index: Integers,
    slopes: Array,
    mean: Array,
    w: Array,
    loss: PointwiseLoss,
    lam: float,
    eta: float,
) -> None:
    """Move w (d + 1,) by M steps: w -= eta (mean over the batch of (L'(w'x_i) - L'(w_0'x_i)) x_i + mean + lam w)."""
    steps, batch = index.shape
    d = x.shape[1]
    change = np.empty(batch)
    # A step: f of the batch, from which its change of the slopes follows
    for m in range(steps):
        for b in range(batch):
            i = index[m, b]
            f = one * w[d]
            for k in range(d):
                f += x[i, k] * w[k]
            change[b] = eta / batch * (slope_of_one(loss, f, y[i]) - slopes[i])
        # Full gradient and regulariser, for all features
        for k in range(d + 1):
            w[k] -= eta * (mean[k] + lam * w[k])
        # Then the batch's correction
        for b in range(batch):
            i = index[m, b]
            for k in range(d):
                w[k] -= change[b] * x[i, k]
            w[d] -= change[b] * one


# Compiled with parts of other modules: cb6b2b81, see tests/test_compiled.py
