"""Ridge regression from the clients' sums, and Nystroem methods with communications, as their papers have them.

Every client's samples are lists of rows; sums are written out sample by sample.
"""

from collections.abc import Callable

import numpy as np
from literal.common import Array, Arrays


def ridge(phi: Arrays, y: Arrays, lam: float) -> Array:
    """Minimiser of sum_k mean (y - phi theta)^2 + lam |theta|^2, from outer products of every single sample."""
    P = phi[0].shape[1]
    gram, pull = lam * np.eye(P), np.zeros(P)
    for of_client, targets in zip(phi, y, strict=True):
        for z, target in zip(of_client, targets, strict=True):
            for p in range(P):
                pull[p] += z[p] * target / len(targets)
                for q in range(P):
                    gram[p, q] += z[p] * z[q] / len(targets)
    return np.linalg.solve(gram, pull)


def nystroem(
    k: Callable[[Array, Array], float], x: Arrays, y: Arrays, centres: Array, lam: float, points: Array
) -> Array:
    """At points, f = sum_i a_i k(c_i, .) with the least sum_k mean (y - f(x))^2 + lam |f|^2, in its coefficients."""
    m = len(centres)
    gram = np.array([[k(a, b) for b in centres] for a in centres])
    left, right = lam * gram, np.zeros(m)
    for of_client, targets in zip(x, y, strict=True):
        for sample, target in zip(of_client, targets, strict=True):
            row = np.array([k(c, sample) for c in centres])
            left = left + np.outer(row, row) / len(targets)
            right = right + row * target / len(targets)
    a = np.linalg.solve(left, right)
    return np.array([sum(a[i] * k(centres[i], point) for i in range(m)) for point in points])


def falkon(
    k: Callable[[Array, Array], float], x: Arrays, y: Arrays, centres: Array, lam: float, steps: int, points: Array
) -> Array:
    """Algorithm 1 of Rudi et al. after so many steps, at points: conjugate gradients on B'HB b = B'z.

    H = K_nm'K_nm / n + lam K_mm, B = T^-1 A^-1 with T'T = K_mm and A'A = T T' / m + lam I, where a mean over samples
    stands for each client's, and they are added up: so T T' / m K.
    """
    m, clients = len(centres), len(x)
    gram = np.array([[k(a, b) for b in centres] for a in centres])
    rows = [np.array([[k(c, sample) for c in centres] for sample in own]) for own in x]
    T = np.linalg.cholesky(gram).T
    A = np.linalg.cholesky(clients * T @ T.T / m + lam * np.eye(m)).T
    B = np.linalg.inv(T) @ np.linalg.inv(A)

    def times(v: Array) -> Array:
        """B'H B v, from what each client makes of B v."""
        a = B @ v
        return B.T @ (sum(own.T @ (own @ a) / len(own) for own in rows) + lam * gram @ a)

    r = B.T @ sum(own.T @ targets / len(own) for own, targets in zip(rows, y, strict=True))
    b, p = np.zeros(m), r.copy()
    for _ in range(steps):
        along = times(p)
        step = (r @ r) / (p @ along)
        b, new = b + step * p, r - step * along
        p, r = new + (new @ new) / (r @ r) * p, new
    return np.array([sum((B @ b)[i] * k(centres[i], point) for i in range(m)) for point in points])


def dkrr_ny_cm(
    k: Callable[[Array, Array], float],
    x: Arrays,
    y: Arrays,
    centres: Array,
    lam: float,
    communications: int,
    points: Array,
) -> Array:
    """f^0 the mean of the clients' own solutions, f^l = f^(l-1) - mean (P C_k P + lam)^-1 (gradient), in the a's.

    `lam` is that of each client's own problem, mean (y - f)^2 + lam |f|^2. In coefficients, (P C_k P + lam)^-1 of a
    function with coefficients g has those of (K_k'K_k / n + lam K_mm)^-1 K_mm g.
    """
    gram = np.array([[k(a, b) for b in centres] for a in centres])
    rows = [np.array([[k(c, sample) for c in centres] for sample in own]) for own in x]
    left = [own.T @ own / len(own) + lam * gram for own in rows]
    pulls = [own.T @ targets / len(own) for own, targets in zip(rows, y, strict=True)]
    a = np.mean([np.linalg.solve(one, pull) for one, pull in zip(left, pulls, strict=True)], axis=0)
    for _ in range(communications):
        gradient = np.mean([own.T @ (own @ a) / len(own) - pull for own, pull in zip(rows, pulls, strict=True)], axis=0)
        gradient = gradient + lam * gram @ a
        a = a - np.mean([np.linalg.solve(one, gradient) for one in left], axis=0)
    return np.array([sum(a[i] * k(centres[i], point) for i in range(len(centres))) for point in points])
