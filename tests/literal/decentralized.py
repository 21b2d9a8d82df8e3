"""CTA, DKLA and COKE as the paper writes them: one agent, one neighbour, one equation at a time, square loss."""

from collections.abc import Callable

import numpy as np
from literal.common import Array, Arrays, Near

Threshold = Callable[[int], float]


def dkla(phi: Arrays, y: Arrays, neighbours: Near, lam: float, rho: float, k: int) -> Arrays:
    """Algorithm 1: theta (N, P) after each of k iterations."""
    return coke(phi, y, neighbours, lam, rho, lambda _: -1.0, k)[0]


def coke(
    phi: Arrays,
    y: Arrays,
    neighbours: Near,
    lam: float,
    rho: float,
    h: Threshold,
    k: int,
    measure: Callable[[Array, Array], float] = lambda xi, theta_hat: float(np.linalg.norm(xi)),
) -> tuple[Arrays, list[int]]:
    """Algorithm 2: theta (N, P) and transmissions so far, after each of k iterations."""
    agents, P = len(phi), phi[0].shape[1]
    theta_hat, gamma = np.zeros((agents, P)), np.zeros((agents, P))
    history, transmissions, sent = [], [], 0
    for iteration in range(1, k + 1):
        theta = np.zeros((agents, P))
        for i in range(agents):
            degree, size = len(neighbours[i]), len(y[i])
            pull = gamma[i] - rho * sum((theta_hat[i] + theta_hat[n] for n in neighbours[i]), np.zeros(P))
            hessian = 2 * phi[i].T @ phi[i] / size + 2 * (lam / agents + rho * degree) * np.eye(P)
            theta[i] = np.linalg.solve(hessian, 2 * phi[i].T @ y[i] / size - pull)  # (21a)
        for i in range(agents):
            xi = theta_hat[i] - theta[i]  # (19)
            if measure(xi, theta_hat[i]) - h(iteration) >= 0:  # (20)
                theta_hat[i] = theta[i]
                sent += 1
        for i in range(agents):
            for n in neighbours[i]:
                gamma[i] += rho * (theta_hat[i] - theta_hat[n])  # (21b)
        history.append(theta)
        transmissions.append(sent)
    return history, transmissions


def cta(phi: Arrays, y: Arrays, neighbours: Near, lam: float, eta: float, k: int) -> Arrays:
    """Combine with Metropolis weights, then adapt: theta (N, P) after each of k iterations."""
    agents, P = len(phi), phi[0].shape[1]
    theta, history = np.zeros((agents, P)), []
    for _ in range(k):
        psi = np.zeros((agents, P))
        for i in range(agents):
            own = 1.0
            for n in neighbours[i]:
                weight = 1 / (1 + max(len(neighbours[i]), len(neighbours[n])))
                psi[i] += weight * theta[n]
                own -= weight
            psi[i] += own * theta[i]
        theta = np.zeros((agents, P))
        for i in range(agents):
            slope = 2 * lam / agents * psi[i]
            for row, target in zip(phi[i], y[i], strict=True):
                slope = slope + 2 / len(y[i]) * (row @ psi[i] - target) * row
            theta[i] = psi[i] - eta * slope
        history.append(theta)
    return history
