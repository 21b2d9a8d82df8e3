"""POF-MKL as Algorithms 1 and 2 of Ghari and Shen (NeurIPS 2022) print it; equation numbers are theirs."""

import numpy as np
from literal.common import Array, Arrays, Data, Near, Run, draw, feature_vector, gradient, loss, normalised


def select_subset(log_w: Array, M: int, xi: float, u: float) -> tuple[list[int], list[float]]:
    """Algorithm 1: the kernels of the drawn bin, and p_i of every kernel."""
    bins, q = bins_and_pmf(log_w, M, xi)
    p = [q[next(j for j, members in enumerate(bins) if i in members)] for i in range(len(log_w))]
    return bins[draw(q, u)], p


def bins_and_pmf(log_w: Array, M: int, xi: float) -> tuple[Near, list[float]]:
    """Bins in descending order of weight (in order of index where xi = 1) and eq. (8)."""
    kernels = list(range(len(log_w)))
    if xi < 1:
        kernels.sort(key=lambda i: -log_w[i])
    bins: Near = [[]]
    for i in kernels:
        if len(bins[-1]) == M:
            bins.append([])
        bins[-1].append(i)
    w = np.exp(log_w - max(log_w))
    u = [sum(w[i] for i in members) for members in bins]
    return bins, [(1 - xi) * u_j / sum(u) + xi / len(bins) for u_j in u]


def run(
    data: Data, uniform: Array, *, M: int, xi: float, eta: float, eta_k: float, lam: float, step_factor: float,
    bins_by: str = "current",
) -> Run:  # fmt: skip
    """Algorithm 2, one replicate.

    Parameters
    ----------
    data : Data
    uniform : (T, K)
        The number in [0, 1) by which each client draws its bin.
    M, xi, eta, eta_k, lam
        As in the paper.
    step_factor : float
        Multiplies eta in eq. (9).
    bins_by : {"current", "updated"}
        Whether Algorithm 1 is given w_t, as it is printed, or the w_{t+1} that eq. (7) has just made.
    """
    x, y, *_ = data
    omega, out, theta = data.start()
    N, K = len(omega), x.shape[1]
    log_w = np.zeros((K, N))
    for t in range(len(x)):
        here = data.here(t)
        received: dict[tuple[int, int], Array] = {}
        for k in here:
            out.downlink[t, k] = sum(theta_i.size for theta_i in theta)
            z = [feature_vector(omega[i], x[t, k]) for i in range(N)]
            w = normalised(log_w[k])
            out.y_hat[t, k] = sum(w[i] * (theta[i] @ z[i]) for i in range(N))  # eq. (6)
            out.squared_norm[t, k] = sum(w[i] * (theta[i] @ theta[i]) for i in range(N))
            before = log_w[k].copy()
            for i in range(N):
                out.loss[t, k, i] = loss(theta[i], z[i], y[t, k], lam)
                log_w[k, i] -= eta_k * out.loss[t, k, i]  # eq. (7)
            subset, p = select_subset(before if bins_by == "current" else log_w[k], M, xi, uniform[t, k])
            for i in subset:
                step = step_factor * eta * gradient(theta[i], z[i], y[t, k], lam) / p[i]
                received[i, k] = theta[i] - step  # eq. (9)
                out.uplink[t, k] += received[i, k].size
        theta = [average(theta[i], [received[i, k] for k in here if (i, k) in received], len(here)) for i in range(N)]
    out.theta, out.log_w = np.array(theta), log_w
    return out


def average(theta: Array, received: Arrays, clients: int) -> Array:
    """Eq. (10)."""
    if not received:
        return theta
    return theta - sum(theta - theta_k for theta_k in received) / clients
