"""The loss, weights and norms that many algorithms share."""

from dataclasses import dataclass

from fkl.basics.arrays import Array, array_namespace
from fkl.basics.errors import require
from fkl.basics.keys import Keys, key
from fkl.basics.pointwise import ON_STREAMS, PointwiseLoss, pointwise_loss
from fkl.contract.star import Fitted
from fkl.contract.world import Algorithm, Outcome, World

__all__ = [
    "Algorithm",
    "Array",
    "Fitted",
    "Outcome",
    "WithLoss",
    "World",
    "array_namespace",
    "mean_norm",
    "mixture_norm",
    "softmax",
    "squared_norms",
]


OLD_DELTA = 1.0
"""Default of `WithLoss.delta` in older runs, whose configurations name it although their loss does not use it."""


@dataclass(frozen=True, kw_only=True)
class WithLoss(Keys):
    """Keys of a method of streams that learns by gradients: the loss l(f, y) of a prediction f."""

    loss: str = key(
        "square",
        "l(f, y): square (f - y)^2; huber, the same up to |f - y| = delta and linear beyond; quantile, the pinball "
        "loss at `level`; of two classes, -1 and 1, logistic log(1 + exp(-y f)), hinge max(0, 1 - y f), or "
        "least_squares (f - y)^2. With more classes, one function learns each class against the rest.",
        choices=ON_STREAMS,
    )
    level: float = key(0.5, "Level of the quantile that loss=quantile predicts.", above=0, below=1)
    delta: float = key(
        0.1,
        "Largest |f - y|, of the scaled target, with a squared error in loss=huber. A tenth of a target scaled to "
        "[0, 1]: 1 would exceed all errors, so that the loss would be the squared error.",
        above=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, loss in (("level", "quantile"), ("delta", "huber")):
            unused = getattr(WithLoss, name), *({"delta": (OLD_DELTA,)}.get(name, ()))
            used = self.loss == loss or getattr(self, name) in unused
            require(used, name, getattr(self, name), f"{getattr(WithLoss, name)} unless algo.loss={loss}")

    @property
    def pointwise(self) -> PointwiseLoss:
        """The loss of one prediction, from the keys loss, level and delta."""
        return pointwise_loss(self.loss, self.level, self.delta)


def softmax(log_weights: Array) -> Array:
    """Weights exp(log_weights), normalised over the last axis."""
    xp = array_namespace(log_weights)
    weights = xp.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def squared_norms(theta: Array) -> Array:
    """|theta_i|^2 of theta (R, N, P): shape (R, N)."""
    return array_namespace(theta).einsum("rnp,rnp->rn", theta, theta)


def mixture_norm(weights: Array, theta: Array) -> Array:
    """|f|^2 of each client's f = sum_i w_i theta_i'z_i as a function of the combined kernel sum_i w_i kappa_i.

    That kernel's features are sqrt(w_i) z_i, so f has parameters sqrt(w_i) theta_i and |f|^2 = sum_i w_i |theta_i|^2.
    |sum_i w_i theta_i|^2 adds coordinates of different feature spaces and is not a norm of f: it depends on the order
    of a kernel's features.

    Parameters
    ----------
    weights : (R, K, N) or (R, 1, N)
        Each client's weights, which sum to 1.
    theta : (R, N, P)

    Returns
    -------
    (R, K) or (R, 1)
    """
    return mean_norm(weights, squared_norms(theta))


def mean_norm(weights: Array, norms: Array) -> Array:
    """`mixture_norm` from norms |theta_i|^2 (R, N)."""
    return array_namespace(weights).einsum("rkn,rn->rk", weights, norms)
