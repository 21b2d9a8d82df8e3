"""RFOMKR (Sahoo, Hoi and Li, 2019): OMKR on random features, no regulariser, weights discounted by 1/2."""

import numpy as np
from literal.common import Array, feature_vector, gradient, normalised
from literal.online import OnlineRun


def run(x: Array, y: Array, omega: list[Array], *, eta: float, normalise: bool = False) -> OnlineRun:
    """One replicate; other arguments as in `literal.raker.run`, losses without a regulariser.

    Parameters
    ----------
    normalise : bool
        Whether the weights of the prediction sum to one. In the published runs they do not.
    """
    N = len(omega)
    out = OnlineRun.empty(len(x), N)
    theta = [np.zeros(2 * omega[i].shape[1]) for i in range(N)]
    log_w = np.full(N, -np.log(N))
    for t in range(len(x)):
        eta_t = eta / np.sqrt(t + 1)
        z = [feature_vector(omega[i], x[t]) for i in range(N)]
        w = normalised(log_w) if normalise else np.exp(log_w)
        out.y_hat[t] = sum(w[i] * (theta[i] @ z[i]) for i in range(N))
        out.squared_norm[t] = sum(w[i] * (theta[i] @ theta[i]) for i in range(N))
        out.chosen.append(set(range(N)))
        for i in range(N):
            out.loss[t, i] = (theta[i] @ z[i] - y[t]) ** 2
            theta[i] = theta[i] - eta_t * gradient(theta[i], z[i], y[t], 0.0)
            log_w[i] -= np.log(2) * out.loss[t, i]
    out.theta, out.log_w = np.array(theta), log_w
    return out
