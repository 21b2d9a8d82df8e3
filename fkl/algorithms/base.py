"""What algorithms are made of: the world around them, what they show, and a few sums that many of them need."""

import numpy as np

from fkl.contract.one_shot import Fitted
from fkl.contract.parties import Scored
from fkl.contract.world import Algorithm, Array, Outcome, World
from fkl.tasks.batch import Batched, Split

__all__ = [
    "Algorithm",
    "Array",
    "Batched",
    "Fitted",
    "Outcome",
    "Scored",
    "Split",
    "World",
    "mixture_norm",
    "softmax",
    "squared_norms",
]


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
