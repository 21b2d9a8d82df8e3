"""OMKR (Sahoo, Hoi and Li, 2014): every sample becomes a support vector of every kernel.

RBF-1 is `run` with `[rbf(1)]`, POLY-2 with `[polynomial(2)]`.
"""

from collections.abc import Callable

import numpy as np
from literal.common import Array, normalised
from literal.online import OnlineRun

Kernel = Callable[[Array, Array], Array]
"""k(x, x'), (s,), of each of the samples x (s, d) with x' (d,)."""


def rbf(g: float) -> Kernel:
    """exp(-|x - x'|^2 / g)."""
    return lambda x, other: np.exp(-np.sum((x - other) ** 2, axis=1) / g)


def laplacian(g: float) -> Kernel:
    """exp(-|x - x'|_1 / g)."""
    return lambda x, other: np.exp(-np.sum(np.abs(x - other), axis=1) / g)


def polynomial(degree: int) -> Kernel:
    """(x'x)^degree."""
    return lambda x, other: (x @ other) ** degree


def run(x: Array, y: Array, kernels: list[Kernel], *, eta: float) -> OnlineRun:
    """One run on x (T, d) and y (T,); `eta` is c of the step c / sqrt(t), t from 1."""
    N = len(kernels)
    out = OnlineRun.empty(len(x), N)
    alpha = np.zeros((N, len(x)))
    log_w = np.zeros(N)
    for t in range(len(x)):
        f = [alpha[i, :t] @ kernels[i](x[:t], x[t]) for i in range(N)]
        w = normalised(log_w)
        out.y_hat[t] = sum(w[i] * f[i] for i in range(N))
        out.squared_norm[t] = 0
        for i in range(N):
            out.loss[t, i] = (f[i] - y[t]) ** 2
            alpha[i, t] = -eta / np.sqrt(t + 1) * (f[i] - y[t])
            log_w[i] -= np.log(2) * out.loss[t, i]
    out.theta, out.log_w = alpha, log_w
    return out
