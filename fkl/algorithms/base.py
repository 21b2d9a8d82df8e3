"""What an algorithm is: a dataclass of hyper-parameters with `init` and `step`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.data.problem import Problem
from fkl.kernels import Dictionary, FeatureBank
from fkl.network import Channel
from fkl.streams import Streams

Array = NDArray[np.floating]


@dataclass(frozen=True)
class World:
    """What surrounds an algorithm: the clients' data, the kernels, the network and the random streams.

    Parameters
    ----------
    problem : Problem
    dictionary : Dictionary
    channel : Channel
    streams : Streams
    precision : {"float32", "float64"}
        Of features and of scalars on the wire.
    """

    problem: Problem
    dictionary: Dictionary
    channel: Channel
    streams: Streams
    precision: str

    @cached_property
    def bank(self) -> FeatureBank:
        """The random features of all replicates, drawn when a method first asks for them."""
        return self.dictionary.bank(self.problem.dimension, self.streams, self.precision)


@dataclass(frozen=True)
class Outcome:
    """What one round showed before anyone learned from it; judging it is the round loop's business.

    Parameters
    ----------
    y_hat : (R, K)
        Predictions.
    loss : (R, K, N) or None
        Loss of each kernel's own prediction; None for a method without kernels.
    squared_norm : callable returning (R, K)
        |f_hat|^2 of each client's predictor, called outside the clock.
    """

    y_hat: Array
    loss: Array | None
    squared_norm: Callable[[], Array]


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

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Outcome]:
        """Predict round t, see its labels, learn."""
        ...


def softmax(log_weights: Array) -> Array:
    """exp(log_weights), normalised over the last axis."""
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def squared_norms(theta: Array) -> Array:
    """|theta_i|^2 of theta (R, N, P): shape (R, N)."""
    return np.einsum("rnp,rnp->rn", theta, theta)


def mixture_norm(weights: Array, theta: Array) -> Array:
    """|sum_i w_i theta_i|^2 of each client, for weights (R, K, N) and theta (R, N, P): shape (R, K)."""
    gram = np.matmul(theta, theta.swapaxes(1, 2))
    return (np.matmul(weights, gram) * weights).sum(axis=-1)


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
