"""vM-KOFL (Hong and Chae): Fed-OMD for each kernel, one vector of weights at the server."""

import numpy as np
from literal.common import Arrays, Data, Run, feature_vector, gradient, loss, normalised


def run(data: Data, *, eta: float, lam: float, step_factor: float) -> Run:
    """One replicate; arguments as in `literal.pof_mkl.run`."""
    x, y, *_ = data
    omega, out, theta = data.start()
    N = len(omega)
    log_w = np.zeros(N)
    for t in range(len(x)):
        here = data.here(t)
        w = normalised(log_w)
        slopes: list[Arrays] = [[] for _ in range(N)]
        for k in here:
            out.downlink[t, k] = w.size + sum(theta_i.size for theta_i in theta)
            z = [feature_vector(omega[i], x[t, k]) for i in range(N)]
            out.y_hat[t, k] = sum(w[i] * (theta[i] @ z[i]) for i in range(N))
            out.squared_norm[t, k] = sum(w[i] * (theta[i] @ theta[i]) for i in range(N))
            for i in range(N):
                out.loss[t, k, i] = loss(theta[i], z[i], y[t, k], lam)
                slopes[i].append(gradient(theta[i], z[i], y[t, k], lam))
                out.uplink[t, k] += 1 + slopes[i][-1].size
        if here:
            for i in range(N):
                theta[i] = theta[i] - step_factor * eta * sum(slopes[i]) / len(here)
                log_w[i] -= eta * sum(out.loss[t, k, i] for k in here) / len(here)
    out.theta, out.log_w = np.array(theta), log_w
    return out
