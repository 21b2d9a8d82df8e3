"""OMKL-GF in one file: one learner on a stream, who uses few of many kernels, drawn into a graph that follows losses.

Ghari and Shen, "Graph-aided online multi-kernel learning", JMLR 24 (2023), arXiv:2102.04690. Equation numbers are
theirs. It needs numpy alone: python graph_omkl.py
"""

import numpy as np

# Settings
ROUNDS = 2000  # in each, the learner predicts the target of one sample, and then learns it
BANDWIDTHS = np.logspace(-1, 1, 21)  # sigma_i of the N Gaussian kernels exp(-|x - x'|^2 / (2 sigma_i^2))
D = 50  # random features of a kernel: it then has 2 D parameters
M = 5  # kernels that a selective node draws, with replacement: at most so many are computed in a round
J = 1  # selective nodes
ETA = 1.0  # eta_t = ETA / sqrt(t) is the step, the weights' rate, and the exploration rate of round t
LAM = 1e-3  # regularisation lambda
EXPLORING = 300  # the graph is drawn anew in so many rounds, and stays as it is afterwards (section 5)


def features(omega, x):
    """z_i(x) of eq. (8) for each kernel, (N, 2 D), from the frequencies omega (N, D, d)."""
    angles = omega @ x
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1) / np.sqrt(omega.shape[1])


def log_sum(values):
    """log(sum(exp(values))) along the last axis, without overflow."""
    top = values.max(axis=-1, keepdims=True)
    return np.log(np.exp(values - top).sum(axis=-1)) + top[..., 0]


def drawn(pmf, u):
    """The place at which u, uniform on [0, 1), falls into a probability mass function."""
    return min(int(np.searchsorted(np.cumsum(pmf), u, side="right")), len(pmf) - 1)


def omkl_gf(x, y, omega, graph_draws, node_draws, eta, lam):
    """Algorithm 3: predictions (T,), and at the end parameters (N, 2 D) and logarithms of weights (N,).

    x is (T, d), y is (T,), omega is (N, D, d). graph_draws (G, J, M) and node_draws (T,), uniform on [0, 1), draw the
    kernels of each selective node in the first G rounds, and the node of each round.
    """
    T, N = len(y), len(omega)
    G, J, M = graph_draws.shape
    theta, log_w = np.zeros((N, 2 * omega.shape[1])), np.zeros(N)
    predictions = np.zeros(T)
    for t in range(T):
        rate = eta / np.sqrt(t + 1)
        if t < G:  # Algorithm 2: A[j, i] is the edge from selective node j to kernel i
            share = np.exp(log_w - log_sum(log_w))
            power = np.minimum(rate, 1.0) ** np.arange(1, J + 1)[:, None]
            pi = (1 - power) * share + power / N  # eq. (20)
            A = np.zeros((J, N), bool)
            for j in range(J):
                A[j, [drawn(pi[j], u) for u in graph_draws[t, j]]] = True
        log_u = log_sum(np.where(A, log_w, -np.inf))  # eq. (18)
        explore = min(rate, 1.0)
        p = (1 - explore) * np.exp(log_u - log_sum(log_u)) + explore / J  # eq. (19)
        S = np.flatnonzero(A[drawn(p, node_draws[t])])  # the kernels of the drawn node: only they are computed

        z = features(omega[S], x[t])
        f = (theta[S] * z).sum(axis=1)
        predictions[t] = np.exp(log_w[S] - log_sum(log_w[S])) @ f  # eq. (17)

        q = (p[:, None] * (1 - (1 - pi) ** M)).sum(axis=0)[S]  # eq. (21): the probability that kernel i is computed
        loss = (f - y[t]) ** 2 + lam * (theta[S] ** 2).sum(axis=1)
        gradient = 2 * (f - y[t])[:, None] * z + 2 * lam * theta[S]
        theta[S] -= rate * gradient / q[:, None]  # eq. (14)
        log_w[S] -= rate * loss / q  # eqs. (15) and (16)
    return predictions, theta, log_w


def make_data(rng):
    """A smooth function of two features with noise: x (T, 2) and y (T,)."""
    x = rng.uniform(-1, 1, (ROUNDS, 2)) / np.sqrt(2)
    return x, 0.5 + 0.4 * np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + rng.normal(0, 0.05, ROUNDS)


def main():
    """Compare with the mean so far."""
    rng = np.random.default_rng(0)
    x, y = make_data(rng)
    omega = rng.standard_normal((len(BANDWIDTHS), D, x.shape[-1])) / BANDWIDTHS[:, None, None]
    predictions, _, log_w = omkl_gf(x, y, omega, rng.random((EXPLORING, J, M)), rng.random(ROUNDS), ETA, LAM)

    mean_so_far = (np.cumsum(y) - y) / np.maximum(np.arange(ROUNDS), 1)
    print(f"mean squared error of OMKL-GF          {np.mean((predictions - y) ** 2):.5f}")
    print(f"... in the last 500 rounds             {np.mean((predictions - y)[-500:] ** 2):.5f}")
    print(f"... of the mean target so far          {np.mean((mean_so_far - y) ** 2):.5f}")
    print(f"kernels computed in a round            at most {M} of {len(BANDWIDTHS)}")
    print(f"sigma of the kernel of largest weight  {BANDWIDTHS[log_w.argmax()]:.2g}")


if __name__ == "__main__":
    main()
