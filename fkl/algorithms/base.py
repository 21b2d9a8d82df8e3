"""What an algorithm is: a dataclass of hyper-parameters with `init` and `step`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.contract.one_shot import Fitted
from fkl.contract.world import Array, Common, Outcome, World
from fkl.data.problem import FOLDS, Batch, Problem
from fkl.errors import require
from fkl.kernels import FeatureBank
from fkl.kernels.losses import LOSSES

__all__ = ["Array", "Common", "Fitted", "Outcome", "World"]


class Algorithm(Protocol):
    """One method. Implementations are frozen dataclasses: their fields are the keys under `algo`.

    A state is a dataclass of arrays whose first axis is the replicate; `step` may reuse its arrays.
    """

    label: ClassVar[str]
    """The method's name in the paper, as tables print it."""

    lam: float
    """Regularisation lambda of the loss, which evaluation needs too."""

    def init(self, world: World) -> Any:
        """State before the first round. Raises BadValue for hyper-parameters that do not fit the world."""
        ...

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Any]:
        """Predict round t, see its labels, learn; a `Batched` method returns theta (R, K, P), no `Outcome`."""
        ...


@dataclass(frozen=True)
class Split:
    """Keys of every method that learns from some of the samples and is tested on others.

    Parameters
    ----------
    test_share : float
        Share of each client's samples that are drawn to be tested on and never learned from; data sets that set
        samples apart themselves overrule it.
    fold : int or None
        For cross-validation: leave the samples to be tested on aside and test on this fifth of the others.

    Raises
    ------
    fkl.errors.BadValue
    """

    repeated: ClassVar[bool] = False
    """Whether every replicate has a split, and simulated data, of its own: a `Repeated` in place of a `Batch`."""

    test_share: float = 0.3
    fold: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.test_share < 1, "test_share", self.test_share, "a share from 0, below 1")
        folds = f"a whole number from 0 to {FOLDS - 1}, or null"
        require(self.fold is None or 0 <= self.fold < FOLDS, "fold", self.fold, folds)

    @property
    def rounds(self) -> int:
        """Rounds of the loop."""
        return 1

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once, split as the keys say."""
        return Batch.of(problem, self.rounds, self.test_share, self.fold, rng)


@dataclass(frozen=True)
class Scored:
    """What a method over a vertical partition makes of each replicate's test rows so far.

    Parameters
    ----------
    f : tuple of callable
        Return values (n_r,) whose sign is the class, or that estimate the target; called before the next step, outside
        the clock.
    rows : tuple of (n_r,) int
        Rows that they are of.
    iterations : int
        Done so far: draws of features, passes or trees.
    """

    f: tuple[Callable[[], NDArray[np.float64]], ...]
    rows: tuple[NDArray[np.int64], ...]
    iterations: int


@dataclass(frozen=True)
class Batched(Split):
    """Keys of every method that goes over the same samples in each iteration.

    Parameters
    ----------
    iterations : int
        Iterations k of the method.
    loss : {"square", "logistic"}
        (y - f)^2, or log(1 + exp(-y f)) for a target of two classes.
    lam : float
        Regularisation lambda of all clients together.
    test_on : {"drawn", "last"}
        Draw the samples to be tested on, or take those of each client's last rounds, which are what a method on the
        stream predicts last.

    Raises
    ------
    fkl.errors.BadValue
    """

    iterations: int = 2000
    loss: str = "square"
    lam: float = 1e-3
    test_on: str = "drawn"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.iterations <= 10**9, "iterations", self.iterations, "a whole number from 1")
        require(self.loss in LOSSES, "loss", self.loss, " or ".join(LOSSES))
        require(0 < self.lam < np.inf, "lam", self.lam, "a number above 0")
        require(self.test_on in ("drawn", "last"), "test_on", self.test_on, "drawn or last")

    @property
    def rounds(self) -> int:
        """One an iteration."""
        return self.iterations

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """As `Split.batch`, with labels -1 and 1 for the logistic loss."""
        if self.test_on == "last" and problem.tested is None:
            problem = problem.testing_last(self.test_share)
        batch = super().batch(problem, rng)
        return batch if self.loss == "square" else batch.of_two_classes()


def softmax(log_weights: Array) -> Array:
    """exp(log_weights), normalised over the last axis."""
    weights = log_weights - log_weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def squared_norms(theta: Array) -> Array:
    """|theta_i|^2 of theta (R, N, P): shape (R, N)."""
    return np.einsum("rnp,rnp->rn", theta, theta)


def mixture_norm(weights: Array, theta: Array) -> Array:
    """|f|^2 of each client's f = sum_i w_i theta_i'z_i as a function of the combined kernel sum_i w_i kappa_i.

    That kernel's features are sqrt(w_i) z_i, so f has parameters sqrt(w_i) theta_i and |f|^2 = sum_i w_i |theta_i|^2.
    The sum |sum_i w_i theta_i|^2 of coordinates of different feature spaces says nothing of f: it changes with the
    order in which a kernel's features are numbered.

    Parameters
    ----------
    weights : (R, K, N) or (R, 1, N)
        Each client's, with sum 1.
    theta : (R, N, P)

    Returns
    -------
    (R, K) or (R, 1)
    """
    return np.einsum("rkn,rn->rk", weights, squared_norms(theta))


def mean_gradient(bank: FeatureBank, x: Array, pull: Array, weight: Array, theta: Array, lam: float) -> Array:
    """Weighted sum over clients of grad [(theta_i'z_i(x_k) - y_k)^2 + lam |theta_i|^2].

    Parameters
    ----------
    bank : FeatureBank
    x : (K, d)
    pull : (R, K, N)
        2 (f - y) times the weight.
    weight : (R, K, N) or (1, K, 1)
        Each client's weight in the sum.
    theta : (R, N, P)
    lam : float
    """
    return bank.accumulate(x, pull) + 2 * lam * weight.sum(axis=1)[..., None] * theta
