"""Base classes, keys and sums that many algorithms share."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fkl.basics.arrays import Array, namespace
from fkl.basics.errors import require
from fkl.basics.keys import Keys, key
from fkl.contract.parties import Scored
from fkl.contract.star import Fitted
from fkl.contract.world import Algorithm, Outcome, World
from fkl.data.problem import FOLDS, Batch, Problem
from fkl.kernels.losses import OF_CLASSES
from fkl.tasks.batch import BatchTask
from fkl.tasks.task import Task

__all__ = [
    "Algorithm",
    "Array",
    "Batched",
    "Fitted",
    "HoldOut",
    "Outcome",
    "Scored",
    "World",
    "mixture_norm",
    "namespace",
    "softmax",
    "squared_norms",
]


@dataclass(frozen=True)
class HoldOut(Keys):
    """Keys of every method that learns from a training set and is tested on a test set."""

    task: ClassVar[type[Task]] = BatchTask

    test_share: float = key(
        0.3,
        "Share of each client's samples that is drawn as test samples. A method never learns from these. A data "
        "set with a test set of its own overrules this key.",
        least=0,
        below=1,
    )
    fold: int | None = key(
        None,
        "For cross-validation: leave the test samples aside and test on this fifth of the others.",
        least=0,
        below=FOLDS,
    )
    test_on: str = key(
        "drawn",
        "Draw the test samples, or take those of each client's last rounds, which a method on the stream predicts "
        "last.",
        among=("drawn", "last"),
    )

    @property
    def rounds(self) -> int:
        """Rounds of the loop."""
        return 1

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once, split as the keys say."""
        if self.test_on == "last" and problem.tested is None:
            problem = problem.testing_last(self.test_share)
        return Batch.from_problem(problem, self.rounds, self.test_share, self.fold, rng)


@dataclass(frozen=True)
class Batched(HoldOut):
    """Keys of every method that uses the same samples in each iteration."""

    losses: ClassVar[tuple[str, ...]] = ("square", "logistic")
    """Losses that it can minimise."""

    iterations: int = key(2000, "Iterations k of the method.", least=1, most=1_000_000_000)
    loss: str = key(
        "square",
        "(y - f)^2; log(1 + exp(-y f)) for a target of two classes; for more classes, the squared errors of one "
        "function for each class, or -log of the softmax. Only methods that descend at a server learn more than "
        "two classes.",
        among=("square", "logistic", "one_vs_rest", "softmax"),
    )
    lam: float = key(1e-3, "Regularisation lambda of the sum over all clients.", above=0)

    def __post_init__(self) -> None:
        require(self.loss in self.losses, "loss", self.loss, " or ".join(self.losses))
        super().__post_init__()

    @property
    def rounds(self) -> int:
        """One round per iteration."""
        return self.iterations

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once; labels are -1 and 1 for the logistic loss, and numbers of several classes."""
        batch = super().batch(problem, rng)
        if self.loss in OF_CLASSES:
            return batch.of_classes(self.loss, 3 if self.loss == "softmax" else 2)
        return batch if self.loss == "square" else batch.of_two_classes()


def softmax(log_weights: Array) -> Array:
    """exp(log_weights), normalised over the last axis."""
    xp = namespace(log_weights)
    weights = xp.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def squared_norms(theta: Array) -> Array:
    """|theta_i|^2 of theta (R, N, P): shape (R, N)."""
    return namespace(theta).einsum("rnp,rnp->rn", theta, theta)


def mixture_norm(weights: Array, theta: Array) -> Array:
    """|f|^2 of each client's f = sum_i w_i theta_i'z_i as a function of the combined kernel sum_i w_i kappa_i.

    That kernel's features are sqrt(w_i) z_i, so f has parameters sqrt(w_i) theta_i and |f|^2 = sum_i w_i |theta_i|^2.
    The sum |sum_i w_i theta_i|^2 of coordinates of different feature spaces is not a norm of f: it changes with the
    order in which a kernel's features are numbered.

    Parameters
    ----------
    weights : (R, K, N) or (R, 1, N)
        Each client's weights, with sum 1.
    theta : (R, N, P)

    Returns
    -------
    (R, K) or (R, 1)
    """
    return namespace(weights).einsum("rkn,rn->rk", weights, squared_norms(theta))
