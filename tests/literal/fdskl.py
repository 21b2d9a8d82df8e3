"""FDSKL as the paper writes it: one worker, one sample and one feature at a time, all values in dictionaries."""

from collections.abc import Callable
from math import cos, sqrt

import numpy as np
from literal.common import Array

Slope = Callable[[float, float], float]


def logistic(f: float, y: float) -> float:
    """Derivative by f of log(1 + exp(-y f))."""
    return -y / (1 + float(np.exp(y * f)))


def square(f: float, y: float) -> float:
    """Derivative by f of (f - y)^2."""
    return 2 * (f - y)


def smooth_hinge(f: float, y: float) -> float:
    """Derivative by f of the smooth hinge loss of Table 1."""
    z = y * f
    if z <= 0:
        return -y
    return -(1 - z) * y if z < 1 else 0.0


SLOPES: dict[str, Slope] = {"logistic": logistic, "square": square, "smooth_hinge": smooth_hinge}


def fdskl(
    x: Array,
    y: Array,
    groups: list[list[int]],
    asking: list[int],
    apart: list[int],
    batches: list[list[int]],
    w: Array,
    b: Array,
    slope: Slope,
    gamma: list[float],
    lam: float,
    draws: int | None = None,
) -> tuple[Array, list[int]]:
    """Algorithm 1 for workers l of `asking` in turn: alpha (T, D) in the end, and scalars sent in each iteration.

    w is (T, D, d) and b is (T, D, q), the masks of all workers; the algorithm of the paper has D = 1 and one row a
    batch. Of a bank of `draws` times D features iteration t has number t modulo `draws`, and all angles are saved.
    """
    T, D, q = b.shape
    draws, banked = draws or T, draws is not None
    alpha: dict[int, list[float]] = {}
    saved: dict[tuple[int, int, int], float] = {}
    sent = [0] * T

    def algorithm_3(s: int, k: int, i: int, t: int) -> float:
        xi = 0.0
        for j in range(q):
            xi += sum(w[s, k, feature] * x[i, feature] for feature in groups[j]) + b[s, k, j]
        sent[t] += q - 1  # T1
        b_bar = sum(b[s, k, j] for j in range(q) if j != apart[s])
        sent[t] += q - 2  # T2
        return xi - b_bar

    def algorithm_2(worker: int, i: int, t: int) -> float:
        f = 0.0
        for s in alpha:
            if asking[s] != worker:
                continue
            for k in range(D):
                angle = saved[s % draws, k, i] if (s % draws, k, i) in saved else algorithm_3(s, k, i, t)
                if banked:
                    saved[s % draws, k, i] = angle
                f += alpha[s][k] * sqrt(2) * cos(angle)
        return f

    for t in range(T):
        batch = batches[t]
        sent[t] += (q - 1) * (len(batch) + 1)  # line 3: rows and seed, T0 in reverse order
        for i in batch:
            for k in range(D):
                if (t % draws, k, i) not in saved:
                    saved[t % draws, k, i] = algorithm_3(t, k, i, t)  # lines 4 and 5
        f = {}
        for i in batch:
            f[i] = sum(algorithm_2(worker, i, t) for worker in range(q))  # lines 6 and 7
            sent[t] += q - 1
        new = []
        for k in range(D):
            pull = sum(slope(f[i], y[i]) * sqrt(2) * cos(saved[t % draws, k, i]) for i in batch)  # line 8
            new.append(-gamma[t] * pull / (len(batch) * D))  # line 9
        for s in alpha:  # line 10
            alpha[s] = [(1 - gamma[t] * lam) * old for old in alpha[s]]
        sent[t] += q - 1
        alpha[t] = new
    return np.array([alpha[t] for t in range(T)]), sent
