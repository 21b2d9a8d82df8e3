"""Fed-POE (Ghari and Shen, NeurIPS 2024), regression: a federated and a local multi-kernel learner, and their mixture.

Written from the paper's equations and the order of the authors' script.
"""

import numpy as np
from literal.common import Array, Arrays, Data, Run, feature_vector, gradient, loss, normalised


def run(
    data: Data, *, eta: float, eta_k: float, lam: float, step_factor: float, local_steps: int
) -> tuple[Run, Array, Array]:
    """One replicate, the clients' own theta (N, K, 2D), and log a and log b (K, 2); arguments as in `literal.pof_mkl`.

    `Run.loss` is of the server's kernels and then of the client's own.
    """
    x, y, *_ = data
    omega, out, theta = data.start(losses=2)
    N, K = len(omega), x.shape[1]
    own = [[np.zeros_like(theta[i]) for _ in range(K)] for i in range(N)]
    log_w, log_v, log_ab = np.zeros((K, N)), np.zeros((K, N)), np.zeros((K, 2))
    for t in range(len(x)):
        here = data.here(t)
        slopes: list[Arrays] = [[] for _ in range(N)]
        for k in here:
            w, v, (a, b) = normalised(log_w[k]), normalised(log_v[k]), normalised(log_ab[k])
            fed = loc = fed_norm = loc_norm = 0.0
            for i in range(N):
                z, mine = feature_vector(omega[i], x[t, k]), own[i][k]
                fed, fed_norm = fed + w[i] * (theta[i] @ z), fed_norm + w[i] * (theta[i] @ theta[i])
                loc, loc_norm = loc + v[i] * (mine @ z), loc_norm + v[i] * (mine @ mine)
                out.loss[t, k, i] = loss(theta[i], z, y[t, k], lam)
                out.loss[t, k, N + i] = loss(mine, z, y[t, k], lam)
                log_w[k, i] -= eta_k * out.loss[t, k, i]
                log_v[k, i] -= eta_k * out.loss[t, k, N + i]
                slopes[i].append(steps(theta[i], z, y[t, k], lam, step_factor * eta, local_steps))
                own[i][k] = mine - step_factor * eta * steps(mine, z, y[t, k], lam, step_factor * eta, local_steps)
                out.uplink[t, k] += z.size
                out.downlink[t, k] += z.size
            out.y_hat[t, k], out.squared_norm[t, k] = a * fed + b * loc, a * fed_norm + b * loc_norm
            log_ab[k] -= eta_k * np.array([(fed - y[t, k]) ** 2, (loc - y[t, k]) ** 2])
        if here:
            for i in range(N):
                theta[i] = theta[i] - step_factor * eta * sum(slopes[i]) / len(here)
    out.theta = np.array(theta)
    out.log_w = np.stack([log_w, log_v], axis=1)
    return out, np.array(own), log_ab


def steps(theta: Array, z: Array, y: float, lam: float, step: float, count: int) -> Array:
    """The sum of the gradients of so many steps."""
    total = np.zeros_like(theta)
    for _ in range(count):
        g = gradient(theta, z, y, lam)
        total, theta = total + g, theta - step * g
    return total
