"""DeKRR-DDRF as its equations have it: one node, one neighbour, one sample at a time."""

import numpy as np
from literal.common import Array, Arrays, Near


def feature(omega: Array, phase: Array, x: Array) -> Array:
    """z(x) = (2 / D)^1/2 cos(omega_i'x + b_i), i = 1 .. D, of omega (d, D)."""
    D = len(phase)
    return np.array([np.sqrt(2 / D) * np.cos(omega[:, i] @ x + phase[i]) for i in range(D)])


def chosen(omega: Array, phase: Array, x: Array, y: Array, D: int) -> Array:
    """The D frequencies with the largest |sum_n z_i(x_n) y_n| / N, largest first, of omega (d, D_0)."""
    score = np.zeros(len(phase))
    for row, target in zip(x, y, strict=True):
        score += feature(omega, phase, row) * target / len(y)
    order = sorted(range(len(score)), key=lambda i: -abs(score[i]))
    return omega[:, order[:D]]


def dekrr(
    x: Arrays,
    y: Arrays,
    neighbours: Near,
    omega: Arrays,
    phase: Arrays,
    lam: float,
    c: float,
    steps: int,
    penalty: str = "equal",
) -> list[Arrays]:
    """Theta of each node after each of so many Jacobi steps from 0."""
    J, D = len(x), len(phase[0])
    n = counts(y, penalty)
    weight = [c / len(near) if near else 0.0 for near in neighbours]

    def Z(features: int, samples: int) -> Array:  # Z_pj = Z_p(X_j), (D, N_j)
        return np.stack([feature(omega[features], phase[features], row) for row in x[samples]], axis=1)

    theta, history = [np.zeros(D) for _ in range(J)], []
    for _ in range(steps):
        new = []
        for j in range(J):
            own, near = Z(j, j), neighbours[j]
            M = (1 + weight[j] * len(near) + 5 * weight[j]) * own @ own.T + lam * n[j] * np.eye(D)
            right = own @ y[j] + 5 * weight[j] * own @ (own.T @ theta[j])
            for p in near:
                M = M + weight[p] * Z(j, p) @ Z(j, p).T
                right = right + weight[j] * own @ (Z(p, j).T @ theta[p])
                right = right + weight[p] * Z(j, p) @ (Z(p, p).T @ theta[p])
            new.append(np.linalg.solve(M, right))
        theta = new
        history.append(theta)
    return history


def counts(y: Arrays, penalty: str) -> list[float]:
    """N / J for every node, or each node's N_j."""
    own = [len(target) for target in y]
    return [sum(own) / len(own)] * len(own) if penalty == "equal" else own


def objective(
    theta: Arrays, x: Arrays, y: Arrays, neighbours: Near, omega: Arrays, phase: Arrays, lam: float, c: float
) -> float:
    """sum_j |Z_jj'theta_j - Y_j|^2 + lam N / J |theta_j|^2 + c / |N_j| sum_p |Z_jj'theta_j - Z_pj'theta_p|^2."""
    total = 0.0
    for j, near in enumerate(neighbours):
        total += lam * sum(map(len, y)) / len(y) * theta[j] @ theta[j]
        for row, target in zip(x[j], y[j], strict=True):
            f = theta[j] @ feature(omega[j], phase[j], row)
            total += (f - target) ** 2
            for p in near:
                total += c / len(near) * (f - theta[p] @ feature(omega[p], phase[p], row)) ** 2
    return float(total)
