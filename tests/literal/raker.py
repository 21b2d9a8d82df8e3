"""Raker (Shen, Chen and Giannakis, 2019): every kernel predicts and learns in every round."""

import numpy as np
from literal.common import Array, feature_vector, gradient, loss, normalised
from literal.online import OnlineRun


def run(x: Array, y: Array, omega: list[Array], *, eta: float, lam: float) -> OnlineRun:
    """One replicate.

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
    N = len(omega)
    out = OnlineRun.empty(len(x), N)
    theta = [np.zeros(2 * omega[i].shape[1]) for i in range(N)]
    log_w = np.zeros(N)
    for t in range(len(x)):
        eta_t = eta / np.sqrt(t + 1)
        z = [feature_vector(omega[i], x[t]) for i in range(N)]
        w = normalised(log_w)
        out.y_hat[t] = sum(w[i] * (theta[i] @ z[i]) for i in range(N))  # eq. (6)
        out.squared_norm[t] = sum(w[i] * (theta[i] @ theta[i]) for i in range(N))
        out.chosen.append(set(range(N)))
        for i in range(N):
            out.loss[t, i] = loss(theta[i], z[i], y[t], lam)
            theta[i] = theta[i] - eta_t * gradient(theta[i], z[i], y[t], lam)  # eq. (8)
            log_w[i] -= eta_t * out.loss[t, i]  # eq. (9)
    out.theta, out.log_w = np.array(theta), log_w
    return out
