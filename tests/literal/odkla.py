"""ODKLA, its censored form and DOMKL's kernels as they are written: one agent, one neighbour, one kernel at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from literal.common import Array, Near, gradient, loss, normalised


@dataclass
class Run:
    """What one replicate did: predictions (T, K), losses (T, K), theta (K, P) at the end, and messages a round (T,)."""

    y_hat: Array
    loss: Array
    theta: Array
    sent: list[int]
    log_w: Array = field(default_factory=lambda: np.zeros(0))


def odkla(
    z: Array,
    y: Array,
    neighbours: Near,
    lam: float,
    eta: float,
    rho: float,
    h: Callable[[int], float] = lambda _: 0.0,
    rounded: Callable[[Array], Array] = lambda change: change,
) -> Run:
    """Features z (T, K, P) and targets y (T, K); what is sent is a change, `rounded`, whose norm reaches h(t).

    theta_{t+1} = argmin over theta of
        grad L_t(theta_t)'theta + eta / 2 |theta - theta_t|^2 + gamma'theta
        + rho sum_n |theta - (theta_hat_i + theta_hat_n) / 2|^2,
    whose gradient is 0 where
        (eta + 2 rho d) theta = eta theta_t + rho sum_n (theta_hat_i + theta_hat_n) - gamma - grad.
    """
    T, K, P = z.shape
    theta, theta_hat, gamma = np.zeros((K, P)), np.zeros((K, P)), np.zeros((K, P))
    y_hat, losses, sent = np.zeros((T, K)), np.zeros((T, K)), []
    for t in range(T):
        new = np.zeros((K, P))
        for i in range(K):
            y_hat[t, i] = theta[i] @ z[t, i]
            losses[t, i] = loss(theta[i], z[t, i], y[t, i], lam)
            right = eta * theta[i] - gamma[i] - gradient(theta[i], z[t, i], y[t, i], lam)
            for n in neighbours[i]:
                right = right + rho * (theta_hat[i] + theta_hat[n])
            new[i] = right / (eta + 2 * rho * len(neighbours[i]))
        theta = new
        messages = 0
        for i in range(K):
            xi = theta_hat[i] - theta[i]
            if np.linalg.norm(xi) >= h(t + 1):
                theta_hat[i] = theta_hat[i] + rounded(theta[i] - theta_hat[i])
                messages += 1
        sent.append(messages)
        for i in range(K):
            for n in neighbours[i]:
                gamma[i] = gamma[i] + rho * (theta_hat[i] - theta_hat[n])
    return Run(y_hat, losses, theta, sent)


def domkl(z: Array, y: Array, neighbours: Near, lam: float, eta: float, rho: float, eta_k: float) -> Run:
    """Features z (T, K, N, P): every kernel's exact minimiser by a solve, and Hedge with a step of consensus."""
    T, K, N, P = z.shape
    theta, gamma, log_w = np.zeros((K, N, P)), np.zeros((K, N, P)), np.zeros((K, N))
    y_hat, losses, sent = np.zeros((T, K)), np.zeros((T, K, N)), []
    for t in range(T):
        new, told = np.zeros((K, N, P)), np.zeros((K, N))
        for i in range(K):
            weights = normalised(log_w[i])
            for p in range(N):
                y_hat[t, i] += weights[p] * (theta[i, p] @ z[t, i, p])
                losses[t, i, p] = loss(theta[i, p], z[t, i, p], y[t, i], lam)
                told[i, p] = log_w[i, p] - eta_k * losses[t, i, p]
                matrix = 2 * np.outer(z[t, i, p], z[t, i, p]) + (2 * lam + eta) * np.eye(P)
                right = 2 * y[t, i] * z[t, i, p] + eta * theta[i, p] - gamma[i, p]
                for n in neighbours[i]:
                    matrix += 2 * rho * np.eye(P)
                    right += rho * (theta[i, p] + theta[n, p])
                new[i, p] = np.linalg.solve(matrix, right)
        theta = new
        sent.append(K)
        for i in range(K):
            own = 1.0
            log_w[i] = 0
            for n in neighbours[i]:
                weight = 1 / (1 + max(len(neighbours[i]), len(neighbours[n])))
                log_w[i] += weight * told[n]
                own -= weight
                gamma[i] += rho * (theta[i] - theta[n])
            log_w[i] += own * told[i]
    return Run(y_hat, losses, theta, sent, log_w)
