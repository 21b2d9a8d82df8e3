"""OMKL-SFG and OMKL-SFG-R as Algorithms 5 and 6 of Ghari and Shen (2023) print them: a drawn node of a graph learns."""

from collections.abc import Callable

import numpy as np
from literal.common import Array, Arrays, draw, feature_vector, gradient, loss, normalised
from literal.online import OnlineRun
from numpy.typing import NDArray


def run(
    x: Array,
    y: Array,
    omega: Arrays,
    node_draws: Array,
    adjacency: NDArray[np.bool_],
    dominating: list[int] | None = None,
    *,
    eta: float,
    lam: float,
    delta: Array | None = None,
    rank: int = 10,
    explore_rounds: int = 300,
    q_floor: float = 0.0,
    p_floor: float = 0.0,
    divide_by: str = "drawn",
    draw_node: Callable[[list[float], float], int] = draw,
    settle: str = "best",
) -> OnlineRun:
    """Algorithm 5, or, given `delta`, Algorithm 6; one replicate; other arguments as in `literal.raker.run`.

    Parameters
    ----------
    node_draws : (T,)
        The numbers in [0, 1) by which the node is drawn; those after `explore_rounds` are not used.
    adjacency : (N, N) bool
        [i, j] for the edge i -> j, self-loops included.
    dominating : list of nodes
        Of that graph. Algorithm 6 finds its own.
    eta : float
        c / sqrt(t) is xi of the round as well.
    delta : (N, N)
        Divergences of the kernels, by which every round refines the graph.
    rank : int
        beta of the refinement is the `rank`-th largest u.
    explore_rounds : int
        In later rounds the node of the largest u is taken.
    q_floor, p_floor : float
        Of the probabilities that divide the losses of kernels and of the node.
    divide_by : {"drawn", "observed"}
        "observed": where a node is taken and not drawn, it has probability 1.
    draw_node, settle :
        The switches of fkl's methods: `draw` or `draw_next`; after `explore_rounds` the best node, the first, or
        never.
    """
    N = len(omega)
    out = OnlineRun.empty(len(x), N)
    theta = [np.zeros(2 * omega[i].shape[1]) for i in range(N)]
    log_w, log_u = np.zeros(N), np.zeros(N)
    for t in range(len(x)):
        eta_t = xi = eta / np.sqrt(t + 1)
        u = normalised(log_u)
        graph, D = (adjacency, dominating) if delta is None else refine(adjacency, delta, u, rank)
        p = [(1 - xi) * u[i] + (xi / len(D) if i in D else 0.0) for i in range(N)]  # eq. (33), (46)
        if t < explore_rounds or settle == "never":
            node = draw_node(p, node_draws[t])
        else:
            node = int(np.argmax(log_u)) if settle == "best" else 0
            if divide_by == "observed":
                p = [float(i == node) for i in range(N)]
        S = [i for i in range(N) if graph[node, i]]
        z = {i: feature_vector(omega[i], x[t]) for i in S}
        w = dict(zip(S, normalised(log_w[S]), strict=True))
        out.y_hat[t] = sum(w[i] * (theta[i] @ z[i]) for i in S)  # eq. (34), (47)
        out.squared_norm[t] = sum(w[i] * (theta[i] @ theta[i]) for i in S)
        for i in S:
            q = max(q_floor, sum(p[j] for j in range(N) if graph[j, i]))  # eq. (36)
            out.loss[t, i] = loss(theta[i], z[i], y[t], lam)
            theta[i] = theta[i] - eta_t * gradient(theta[i], z[i], y[t], lam) / q  # eq. (38)
            log_w[i] -= eta_t * out.loss[t, i] / q  # eqs. (35), (39a)
        loss_of_node = (out.y_hat[t] - y[t]) ** 2 + lam * out.squared_norm[t]
        log_u[node] -= eta_t * loss_of_node / max(p_floor, p[node])  # eqs. (37), (39b)
    out.theta, out.log_w, out.log_u = np.array(theta), log_w, log_u
    return out


def refine(adjacency: NDArray[np.bool_], delta: Array, u: Array, rank: int) -> tuple[NDArray[np.bool_], list[int]]:
    """Eqs. (44), (45): the graph in which D'_t dominates, and D'_t.

    With beta = (1 - xi) (`rank`-th largest u / U) + xi / N, the threshold of eq. (44) is that u / U itself.
    """
    N = len(adjacency)
    threshold = sorted(u, reverse=True)[rank - 1]
    D = [i for i in range(N) if u[i] >= threshold]
    refined = adjacency.copy()
    for i in range(N):
        if not any(adjacency[j, i] for j in D):
            refined[max(D, key=lambda j: delta[i, j]), i] = True
    return refined, D
