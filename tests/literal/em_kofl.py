"""eM-KOFL (Hong and Chae): the server announces one drawn kernel; only its parameters are averaged."""

import numpy as np
from literal.common import Array, Run, draw, feature_vector, frequencies, gradient, loss, normalised


def run(
    x: Array,
    y: Array,
    present: Array,
    rho: Array,
    scale: Array,
    uniform: Array,
    *,
    eta: float,
    lam: float,
    step_factor: float,
    losses: str,
) -> Run:
    """One replicate; other arguments as in `literal.pof_mkl.run`.

    Parameters
    ----------
    uniform : (T,)
        The number in [0, 1) by which the server draws the kernel.
    losses : {"mean", "sum"}
        Over the clients present, in the update of the server's weights.
    """
    omega = frequencies(rho, scale)
    N, K = len(omega), x.shape[1]
    out = Run.empty(len(x), K, N)
    theta = [[np.zeros(2 * omega[i].shape[1]) for _ in range(K)] for i in range(N)]
    log_w = np.zeros(N)
    for t in range(len(x)):
        here = [k for k in range(K) if present[t, k]]
        drawn = draw(list(normalised(log_w)), uniform[t])
        for k in here:
            for i in range(N):
                z = feature_vector(omega[i], x[t, k])
                if i == drawn:
                    out.y_hat[t, k] = theta[i][k] @ z
                    out.squared_norm[t, k] = theta[i][k] @ theta[i][k]
                out.loss[t, k, i] = loss(theta[i][k], z, y[t, k], lam)
                theta[i][k] = theta[i][k] - step_factor * eta * gradient(theta[i][k], z, y[t, k], lam)
            out.uplink[t, k] = theta[drawn][k].size + N  # what it learned, and its losses
        if here:
            together = sum(theta[drawn][k] for k in here) / len(here)
            for k in here:
                theta[drawn][k] = together.copy()
                out.downlink[t, k] = 1 + together.size  # the index, and the average
            for i in range(N):
                total = sum(out.loss[t, k, i] for k in here)
                log_w[i] -= eta * (total if losses == "sum" else total / len(here))
    out.theta, out.log_w = np.array(theta), log_w
    return out
