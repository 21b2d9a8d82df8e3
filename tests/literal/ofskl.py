"""OFSKL: Fed-OMD with one kernel, theta <- theta - eta (1/K) sum_k grad L_k."""

import numpy as np
from literal.common import Array, Run, feature_vector, frequencies, gradient, loss


def run(
    x: Array, y: Array, present: Array, rho: Array, scale: Array, *, eta: float, lam: float, step_factor: float
) -> Run:
    """One replicate; arguments as in `literal.pof_mkl.run`, with one kernel."""
    (omega,) = frequencies(rho, scale)
    out = Run.empty(len(x), x.shape[1], 1)
    theta = np.zeros(2 * omega.shape[1])
    for t in range(len(x)):
        slopes = []
        for k in range(x.shape[1]):
            if not present[t, k]:
                continue
            z = feature_vector(omega, x[t, k])
            out.y_hat[t, k] = theta @ z
            out.loss[t, k, 0] = loss(theta, z, y[t, k], lam)
            out.squared_norm[t, k] = theta @ theta
            slopes.append(gradient(theta, z, y[t, k], lam))
            out.downlink[t, k], out.uplink[t, k] = theta.size, slopes[-1].size
        if slopes:
            theta = theta - step_factor * eta * sum(slopes) / len(slopes)
    out.theta = theta[None]
    return out
