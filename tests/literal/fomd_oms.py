"""FOMD-OMS (Li, Wu, Xu and King, NeurIPS 2024): J kernels go down to a client and J up; p by bisection.

Written from the paper's equations and the order of the authors' scripts; K are clients here, and N kernels.
"""

from math import exp, log, sqrt

import numpy as np
from literal.common import Array, Data, Run, draw, feature_vector

Keys = dict[str, float | None]
"""eta and step, None for theory's, and Y."""


def run(data: Data, uniform: Array, *, J: int, U: list[float], lam: float, **keys: float | None) -> Run:
    """One replicate; other arguments as in `literal.pof_mkl.run`.

    Parameters
    ----------
    uniform : (T, K, 1 + N)
        The numbers in [0, 1) by which kernels are drawn for each client.
    U : list of float
        Most norm of each kernel's theta.
    lam : float
        Of the loss that is reported, and of nothing else.
    """
    x, y, *_ = data
    omega, out, theta = data.start()
    N, K, T = len(omega), x.shape[1], len(x)
    p = first(U, T)
    for t in range(T):
        here = data.here(t)
        P = chances(p, J)
        c, g = [0.0] * N, [np.zeros_like(one) for one in theta]
        for k in here:
            chosen = choose(p, J, uniform[t, k])
            for i in range(N):
                z = feature_vector(omega[i], x[t, k])
                f = theta[i] @ z
                out.loss[t, k, i] = (f - y[t, k]) ** 2 + lam * (theta[i] @ theta[i])
                if i == chosen[0]:
                    out.y_hat[t, k], out.squared_norm[t, k] = f, theta[i] @ theta[i]
                if i in chosen:
                    c[i] += (f - y[t, k]) ** 2 / P[i] / len(here)
                    g[i] += 2 * (f - y[t, k]) * z / P[i] / len(here)
                    out.downlink[t, k] += theta[i].size
                    out.uplink[t, k] += 1 + z.size
            out.downlink[t, k] += 1  # which of them predicts
        if here:
            for i in range(N):
                theta[i] = on_the_ball(theta[i] - rate_of_theta(U[i], N, J, K, t + 1, **keys) * g[i], U[i])
            p = weighed(p, c, rate_of_p(N, J, K, T, **keys), [(one + keys["Y"]) ** 2 for one in U])
    out.theta, out.log_w = np.array(theta), np.log(p)
    return out


def first(U: list[float], T: int) -> list[float]:
    """Even where all spaces are as large; else 1 / sqrt(N T), and the rest on the smallest."""
    N = len(U)
    if min(U) == max(U):
        return [1 / N] * N
    small = min(1 / sqrt(N * T), 1 / N)
    return [1 - (N - 1) * small if i == U.index(min(U)) else small for i in range(N)]


def chances(p: list[float], J: int) -> list[float]:
    """P[i is looked at]: it is A_1, or it is not and is one of J - 1 of the N - 1 others."""
    N = len(p)
    return [p_i + (1 - p_i) * ((J - 1) / (N - 1) if N > 1 else 0) for p_i in p] if N > J else [1.0] * N


def choose(p: list[float], J: int, u: Array) -> list[int]:
    """A_1 ~ p, and those J - 1 others whose numbers are least."""
    one = draw(p, u[0])
    others = sorted((i for i in range(len(p)) if i != one), key=lambda i: u[1 + i])
    return [one, *others[: J - 1]]


def rate_of_theta(U: float, N: int, J: int, K: int, t: int, *, step_size: float | None, Y: float, **_: object) -> float:
    """lambda_{t,i} = U_i / (2 G_i sqrt(1 + (N-J)/((J-1) K)) sqrt(max((N-J)^2/(J-1)^2, t)))."""
    if step_size is not None:
        return step_size
    a = (N - J) / (J - 1) if N > J else 0.0
    return U / (2 * 2 * (U + Y) * sqrt(1 + a / K) * sqrt(max(a * a, t)))


def rate_of_p(N: int, J: int, K: int, T: int, *, eta: float | None, **_: object) -> float:
    """Eta = min(sqrt(ln(N T)) / (2 sqrt(T (1 + (N-J)/((J-1) K)))), (J-1)/(2 (N-J)))."""
    if eta is not None:
        return eta
    a = (N - J) / (J - 1) if N > J else 0.0
    first_one = sqrt(log(N * T)) / (2 * sqrt(T * (1 + a / K)))
    return min(first_one, (J - 1) / (2 * (N - J))) if N > J else first_one


def on_the_ball(theta: Array, U: float) -> Array:
    """The nearest point of norm up to U."""
    norm = sqrt(theta @ theta)
    return theta * U / norm if norm > U else theta


def weighed(p: list[float], c: list[float], eta: float, C: list[float]) -> list[float]:
    """p_i exp(-eta (c_i + mu) / C_i), mu in [-max c, 0] by bisection such that the sum is 1."""
    low, high = -max(c), 0.0
    for _ in range(200):
        mu = (low + high) / 2
        total = sum(p_i * exp(-eta * (c_i + mu) / C_i) for p_i, c_i, C_i in zip(p, c, C, strict=True))
        low, high = (mu, high) if total > 1 else (low, mu)
    new = [p_i * exp(-eta * (c_i + mu) / C_i) for p_i, c_i, C_i in zip(p, c, C, strict=True)]
    return [p_i / sum(new) for p_i in new]
