"""OMKL-GF as Algorithms 1 to 3 of Ghari and Shen (2023) print it: kernels are drawn into a bipartite graph."""

from collections.abc import Callable

import numpy as np
from literal.common import Array, Arrays, draw, feature_vector, gradient, loss, normalised
from literal.online import OnlineRun, log_sum


def run(
    x: Array,
    y: Array,
    omega: Arrays,
    graph_draws: Array,
    node_draws: Array,
    *,
    eta: float,
    lam: float,
    floor: float = 0.0,
    divide_by: str = "drawn",
    draw_kernel: Callable[[list[float], float], int] = draw,
) -> OnlineRun:
    """Algorithm 3, one replicate; other arguments as in `literal.raker.run`.

    Parameters
    ----------
    graph_draws : (G, J, M)
        The numbers in [0, 1) by which each of the J selective nodes draws in its M trials, in the rounds that generate
        the graph: the first G (300 in the paper).
    node_draws : (T,)
        The number by which the selective node is drawn.
    eta : float
        c / sqrt(t) is eta_e of the round as well.
    floor : float
        Of the probabilities q that divide losses and gradients.
    divide_by : {"drawn", "observed"}
        "observed": in the frozen graph q is the probability of a node that reaches the kernel.
    draw_kernel : callable
        `draw` or `draw_next`.
    """
    N = len(omega)
    G, J, M = graph_draws.shape
    out = OnlineRun.empty(len(x), N)
    theta = [np.zeros(2 * omega[i].shape[1]) for i in range(N)]
    log_w = np.zeros(N)
    for t in range(len(x)):
        eta_t = eta_e = eta / np.sqrt(t + 1)
        if t < G:  # afterwards both pi and the graph stay; with pi outside of the branch, it would follow the weights
            pi = trial_pmfs(log_w, J, eta_e)
            A = bipartite_graph(pi, graph_draws[t], draw_kernel)
        S_of = [[i for i in range(N) if A[i, j]] for j in range(J)]
        u = normalised(np.array([log_sum(log_w[S_of[j]]) for j in range(J)]))  # eq. (18), divided by U
        p = [(1 - eta_e) * u[j] + eta_e / J for j in range(J)]  # eq. (19)
        S = S_of[draw(p, node_draws[t])]
        z = {i: feature_vector(omega[i], x[t]) for i in S}
        w = dict(zip(S, normalised(log_w[S]), strict=True))
        out.y_hat[t] = sum(w[i] * (theta[i] @ z[i]) for i in S)  # eq. (17)
        out.squared_norm[t] = sum(w[i] * (theta[i] @ theta[i]) for i in S)
        for i in S:
            q = sum(p[j] * (1 - (1 - pi[j][i]) ** M) for j in range(J))  # eq. (21)
            if t >= G and divide_by == "observed":
                q = sum(p[j] for j in range(J) if A[i, j])
            q = max(floor, q)
            out.loss[t, i] = loss(theta[i], z[i], y[t], lam)
            theta[i] = theta[i] - eta_t * gradient(theta[i], z[i], y[t], lam) / q  # eq. (14)
            log_w[i] -= eta_t * out.loss[t, i] / q  # eqs. (15), (16)
    out.theta, out.log_w = np.array(theta), log_w
    return out


def trial_pmfs(log_w: Array, J: int, eta_e: float) -> list[list[float]]:
    """Eq. (20): pi[j][i], node j from 0, so that its power of eta_e is j + 1."""
    share, N = normalised(log_w), len(log_w)
    return [[(1 - eta_e ** (j + 1)) * share[i] + eta_e ** (j + 1) / N for i in range(N)] for j in range(J)]


def bipartite_graph(pi: list[list[float]], uniform: Array, draw_kernel: Callable[[list[float], float], int]) -> Array:
    """Algorithm 2: A (N, J), from the numbers (J, M) of a round."""
    A = np.zeros((len(pi[0]), len(pi)), bool)
    for j in range(len(pi)):
        for u in uniform[j]:
            A[draw_kernel(pi[j], u), j] = True
    return A
