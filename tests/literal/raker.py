"""Raker (Shen, Chen and Giannakis, 2019) and RFOMKR (Sahoo, Hoi and Li, 2019): all kernels learn in every round."""

from typing import Any

import numpy as np
from literal.common import Array, Arrays, feature_vector, gradient, loss, normalised
from literal.online import OnlineRun


def run(x: Array, y: Array, omega: Arrays, *, eta: float, lam: float) -> OnlineRun:
    """Raker, one replicate.

    Parameters
    ----------
    x : (T, d)
    y : (T,)
    omega : list of (d, D)
        Frequencies of each kernel.
    eta : float
        c of the step c / sqrt(t), t from 1.
    lam : float
        Of the regulariser.
    """
    return _run(x, y, omega, eta, lam, np.zeros(len(omega)), None, normalised)


def rfomkr(x: Array, y: Array, omega: Arrays, *, eta: float, normalise: bool = False) -> OnlineRun:
    """RFOMKR: without a regulariser, and weights discounted by 1/2; in the published runs they do not sum to one."""
    N = len(omega)
    return _run(x, y, omega, eta, 0.0, np.full(N, -np.log(N)), np.log(2), normalised if normalise else np.exp)


def _run(
    x: Array, y: Array, omega: Arrays, eta: float, lam: float, log_w: Array, discount: float | None, weights: Any
) -> OnlineRun:
    N = len(omega)
    out = OnlineRun.empty(len(x), N)
    theta = [np.zeros(2 * omega[i].shape[1]) for i in range(N)]
    for t in range(len(x)):
        eta_t = eta / np.sqrt(t + 1)
        z = [feature_vector(omega[i], x[t]) for i in range(N)]
        w = weights(log_w)
        out.y_hat[t] = sum(w[i] * (theta[i] @ z[i]) for i in range(N))  # Raker, eq. (6)
        out.squared_norm[t] = sum(w[i] * (theta[i] @ theta[i]) for i in range(N))
        for i in range(N):
            out.loss[t, i] = loss(theta[i], z[i], y[t], lam)
            theta[i] = theta[i] - eta_t * gradient(theta[i], z[i], y[t], lam)  # eq. (8)
            log_w[i] -= (eta_t if discount is None else discount) * out.loss[t, i]  # eq. (9)
    out.theta, out.log_w = np.array(theta), log_w
    return out
