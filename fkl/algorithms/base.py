"""Weights and norms that many algorithms share."""

from fkl.basics.arrays import Array, namespace
from fkl.contract.star import Fitted
from fkl.contract.world import Algorithm, Outcome, World

__all__ = [
    "Algorithm",
    "Array",
    "Fitted",
    "Outcome",
    "World",
    "mixture_norm",
    "namespace",
    "softmax",
    "squared_norms",
]


def softmax(log_weights: Array) -> Array:
    """Weights exp(log_weights), normalised over the last axis."""
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
    return namespace(weights).einsum("rkn,rn->rk", weights, squared_norms(theta))
