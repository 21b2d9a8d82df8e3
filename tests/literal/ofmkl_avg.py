"""OFMKL-Avg: Fed-OMD for each of the N kernels, prediction by their plain mean."""

import numpy as np
from literal.common import Arrays, Data, Run, feature_vector, gradient, loss


def run(data: Data, *, eta: float, lam: float, step_factor: float) -> Run:
    """One replicate; arguments as in `literal.pof_mkl.run`."""
    x, y, *_ = data
    omega, out, theta = data.start()
    N = len(omega)
    for t in range(len(x)):
        here = data.here(t)
        slopes: list[Arrays] = [[] for _ in range(N)]
        for k in here:
            f = []
            for i in range(N):
                z = feature_vector(omega[i], x[t, k])
                f.append(theta[i] @ z)
                out.loss[t, k, i] = loss(theta[i], z, y[t, k], lam)
                slopes[i].append(gradient(theta[i], z, y[t, k], lam))
                out.downlink[t, k] += theta[i].size
                out.uplink[t, k] += slopes[i][-1].size
            out.y_hat[t, k] = sum(f) / N
            out.squared_norm[t, k] = sum(theta_i @ theta_i for theta_i in theta) / N
        if here:
            theta = [theta[i] - step_factor * eta * sum(slopes[i]) / len(here) for i in range(N)]
    out.theta = np.array(theta)
    return out
