"""The ensemble of random-feature Gaussian processes with a server, written from its equations, one client at a time.

With S = sum z z', b = sum z y, n = sum 1 and q = sum y^2 of each kernel, A = S + s2 I, mu = A^-1 b,
v(x) = s2 (1 + z'A^-1 z), and log evidence -1/2 [n log(2 pi s2) + log det(A / s2) + (q - b'mu) / s2].
"""

from dataclasses import dataclass, field

import numpy as np
from literal.common import Array, Data, Near, Run, feature_vector, normalised

LEVELS = [10 ** (-6 + j / 4) for j in range(25)]


@dataclass
class Sums:
    """Of one kernel."""

    S: Array
    b: Array
    n: float = 0.0
    q: float = 0.0

    @classmethod
    def none(cls, P: int) -> "Sums":
        """Of no samples."""
        return cls(np.zeros((P, P)), np.zeros(P))

    def add(self, z: Array, y: float, weight: float) -> None:
        """One sample more."""
        self.S, self.b = self.S + weight * np.outer(z, z), self.b + weight * y * z
        self.n, self.q = self.n + weight, self.q + weight * y**2

    def add_summary(self, rows: Array, targets: list[float], weights: list[float], rank: int) -> None:
        """Samples in no more than so many, by a singular value decomposition; n and q as they are."""
        a = np.sqrt(weights)[:, None] * np.column_stack([rows, targets])
        _, lengths, directions = np.linalg.svd(a, full_matrices=False)
        for length, direction in list(zip(lengths, directions, strict=True))[:rank]:
            z, y = length * direction[:-1], length * direction[-1]
            self.S, self.b = self.S + np.outer(z, z), self.b + y * z
        self.n, self.q = self.n + sum(weights), self.q + float(np.array(weights) @ np.array(targets) ** 2)

    def fade(self, factor: float) -> None:
        """Forget some of it."""
        self.S, self.b, self.n, self.q = factor * self.S, factor * self.b, factor * self.n, factor * self.q

    def evidence(self, s2: float) -> float:
        """Its logarithm."""
        A = self.S + s2 * np.eye(len(self.b))
        rest = self.q - self.b @ np.linalg.solve(A, self.b)
        return float(-0.5 * (self.n * np.log(2 * np.pi * s2) + np.linalg.slogdet(A / s2)[1] + rest / s2))

    def level(self) -> float:
        """The level of noise of most evidence; the smallest of those that have as much."""
        return max(LEVELS, key=lambda s2: (round(self.evidence(s2), 6), -s2))


@dataclass
class Trace:
    """What one replicate did besides."""

    variance: Array
    noise: list[float] = field(default_factory=list)
    active: list[bool] = field(default_factory=list)


def run(
    data: Data, *, flush: int | None, M: int | None, rank: int | None, noise: float | None, forget: float,
    personal: bool, lam: float,
) -> tuple[Run, Trace]:  # fmt: skip
    """One replicate; arguments as in `literal.pof_mkl`."""
    x, y, *_ = data
    omega, out, theta = data.start()
    N, K, P, trace = len(omega), x.shape[1], len(theta[0]), Trace(np.full(y.shape, np.nan))
    known = [Sums.none(P) for _ in range(N)]
    s2 = [1e-2 if noise is None else noise] * N
    mu, A = [np.zeros(P)] * N, [s2[i] * np.eye(P) for i in range(N)]
    log_w, own_log_w = [0.0] * N, np.zeros((K, N))
    active, untold = [True] * N, [[] for _ in range(K)]  # type: list[bool], list[list[int]]
    heard, decided = -1, -1
    for t in range(len(x)):
        here = data.here(t)
        going = [i for i in range(N) if active[i]]
        for k in here:
            w = np.zeros(N)
            w[going] = normalised((own_log_w[k] if personal else np.array(log_w))[going])
            f, v = np.zeros(N), np.zeros(N)
            for i in range(N):
                z = feature_vector(omega[i], x[t, k])
                f[i], v[i] = mu[i] @ z, s2[i] * (1 + z @ np.linalg.solve(A[i], z))
                out.loss[t, k, i] = (f[i] - y[t, k]) ** 2 + lam * (mu[i] @ mu[i])
                if active[i]:
                    own_log_w[k, i] -= 0.5 * (np.log(2 * np.pi * v[i]) + (y[t, k] - f[i]) ** 2 / v[i])
            out.y_hat[t, k] = w @ f
            trace.variance[t, k] = w @ (v + f**2) - (w @ f) ** 2
            out.squared_norm[t, k] = sum(w[i] * (mu[i] @ mu[i]) for i in range(N))
            out.downlink[t, k] = len(going) * (P + P * (P + 1) // 2 + 2)
            untold[k].append(t)
        is_told = t + 1 in [2**j for j in range(30)] if flush is None else (t + 1) % flush == 0
        if not is_told or not here:
            continue
        for i in range(N):
            known[i].fade(forget ** (t - heard))
            for k in here:
                if rank is not None and active[i]:
                    rows = np.array([feature_vector(omega[i], x[s, k]) for s in untold[k]])
                    known[i].add_summary(rows, y[untold[k], k], [forget ** (t - s) for s in untold[k]], rank)
                    continue
                for s in untold[k]:
                    known[i].add(feature_vector(omega[i], x[s, k]), y[s, k], forget ** (t - s) if active[i] else 0)
        for k in here:
            untold[k] = []
            each = P * (P + 1) // 2 + P if rank is None else min(rank, t + 1) * (P + 1)
            out.uplink[t, k] = len(going) * each + 2
        decides = t + 1 >= 1.5 * (decided + 1) or (forget < 1 and t - decided >= 1 / (1 - forget))
        if decides and noise is None:
            s2 = [known[i].level() if active[i] and known[i].n > P else s2[i] for i in range(N)]
        A = [known[i].S + s2[i] * np.eye(P) for i in range(N)]
        mu = [np.linalg.solve(A[i], known[i].b) for i in range(N)]
        log_w = [known[i].evidence(s2[i]) for i in range(N)]
        if decides and M is not None:
            keep = max(M, (len(going) + 1) // 2)
            best = sorted(going, key=lambda i: (-round(log_w[i], 6), i))[:keep]
            active = [i in best for i in range(N)]
        heard, decided = t, t if decides else decided
    out.theta, out.log_w = np.array(mu), own_log_w if personal else np.array(log_w)
    trace.noise, trace.active = s2, active
    return out, trace


def consensus(
    z: Array, y: Array, neighbours: Near, *, flush: int | None, noise: float | None, forget: float, personal: bool,
    lam: float,
) -> tuple[Run, Trace]:  # fmt: skip
    """Agents on a graph with features z (T, K, N, P): M_k <- sum_j W_kj (M_j + F_j), and K M_k + F_k for all sums."""
    T, K, N, P = z.shape
    out, trace = Run.empty(T, K, N), Trace(np.full((T, K), np.nan))
    share, own = ([[Sums.none(P) for _ in range(N)] for _ in range(K)] for _ in range(2))
    s2 = [[1e-2 if noise is None else noise] * N for _ in range(K)]
    known = [[Sums.none(P) for _ in range(N)] for _ in range(K)]
    own_log_w, decided = np.zeros((K, N)), -1
    for t in range(T):
        for k in range(K):
            f, v, mu = np.zeros(N), np.zeros(N), np.zeros((N, P))
            for i in range(N):
                A = known[k][i].S + s2[k][i] * np.eye(P)
                mu[i] = np.linalg.solve(A, known[k][i].b)
                f[i] = mu[i] @ z[t, k, i]
                v[i] = s2[k][i] * (1 + z[t, k, i] @ np.linalg.solve(A, z[t, k, i]))
                out.loss[t, k, i] = (f[i] - y[t, k]) ** 2 + lam * (mu[i] @ mu[i])
            log_w = own_log_w[k] if personal else np.array([known[k][i].evidence(s2[k][i]) for i in range(N)])
            w = normalised(log_w)
            own_log_w[k] -= 0.5 * (np.log(2 * np.pi * v) + (y[t, k] - f) ** 2 / v)
            out.y_hat[t, k], out.squared_norm[t, k] = w @ f, w @ (mu**2).sum(axis=1)
            trace.variance[t, k] = w @ (v + f**2) - (w @ f) ** 2
            for i in range(N):
                share[k][i].fade(forget)
                own[k][i].fade(forget)
                own[k][i].add(z[t, k, i], y[t, k], 1.0)
        told = t + 1 in [2**j for j in range(30)] if flush is None else (t + 1) % flush == 0
        if told:
            both = [[plus(share[k][i], own[k][i], 1.0) for i in range(N)] for k in range(K)]
            for k in range(K):
                degree = [len(neighbours[k])] + [max(len(neighbours[k]), len(neighbours[j])) for j in neighbours[k]]
                weights = [1 / (1 + most) for most in degree[1:]]
                for i in range(N):
                    share[k][i] = plus(Sums.none(P), both[k][i], 1 - sum(weights))
                    for j, weight in zip(neighbours[k], weights, strict=True):
                        share[k][i] = plus(share[k][i], both[j][i], weight)
                    own[k][i] = Sums.none(P)
        for k in range(K):
            known[k] = [plus(own[k][i], share[k][i], K) for i in range(N)]
        decides = t + 1 >= 1.5 * (decided + 1) or (forget < 1 and t - decided >= 1 / (1 - forget))
        if told and decides:
            decided = t
            if noise is None:
                s2 = [[known[k][i].level() if known[k][i].n > P else 1e-2 for i in range(N)] for k in range(K)]
    mu = [[np.linalg.solve(known[k][i].S + s2[k][i] * np.eye(P), known[k][i].b) for i in range(N)] for k in range(K)]
    out.theta = np.array(mu)
    return out, trace


def plus(first: Sums, second: Sums, weight: float) -> Sums:
    """The one, and so many times the other."""
    return Sums(
        first.S + weight * second.S, first.b + weight * second.b, first.n + weight * second.n,
        first.q + weight * second.q,
    )  # fmt: skip
