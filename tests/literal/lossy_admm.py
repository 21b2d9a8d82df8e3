"""Relaxed ADMM of Bastianello et al. (2021) with alpha = 1/2: one agent, one link at a time, square loss."""

import numpy as np
from literal.common import Arrays, Near


def relaxed_admm(phi: Arrays, y: Arrays, neighbours: Near, lam: float, rho: float, passes: Arrays) -> Arrays:
    """Theta (N, P) after each iteration; passes[k][i, j] says whether what j sends to i in iteration k arrives.

    `rho` is theirs: the penalty of their augmented Lagrangian.
    """
    agents, P = len(phi), phi[0].shape[1]
    z = {(i, j): np.zeros(P) for i in range(agents) for j in neighbours[i]}
    history = []
    for arrives in passes:
        x = np.zeros((agents, P))
        for i in range(agents):
            # argmin of mean (phi x - y)^2 + lam / N |x|^2 + rho d_i / 2 |x|^2 - (sum_j z_ij)'x
            hessian = 2 * phi[i].T @ phi[i] / len(y[i]) + (2 * lam / agents + rho * len(neighbours[i])) * np.eye(P)
            pull = sum((z[i, j] for j in neighbours[i]), np.zeros(P))
            x[i] = np.linalg.solve(hessian, 2 * phi[i].T @ y[i] / len(y[i]) + pull)
        q = {(i, j): -z[i, j] + 2 * rho * x[i] for i, j in z}
        for i, j in z:
            if arrives[i, j]:
                z[i, j] = z[i, j] / 2 + q[j, i] / 2
        history.append(x)
    return history
