"""POF-MKL in one file: clients of a server learn one function with many kernels, each with its own weights.

Ghari and Shen, "Personalized online federated learning with multiple kernels", NeurIPS 2022, arXiv:2311.05108.
Equation numbers are theirs. It needs numpy alone: python pof_mkl.py
"""

import numpy as np

# Settings
CLIENTS = 20
ROUNDS = 1000  # each client sees one sample a round, predicts its target, and then learns it
BANDWIDTHS = np.logspace(-1, 1, 11)  # sigma_i of the N Gaussian kernels exp(-|x - x'|^2 / (2 sigma_i^2))
D = 50  # random features of a kernel: it then has 2 D parameters
M = 1  # kernels of which a client sends parameters; it sends 1 / N of what it would send of all
XI = 1.0  # exploration rate: 1 draws these kernels uniformly, less prefers kernels with large weights
LAM = 1e-3  # regularisation lambda
ETA = 1 / np.sqrt(ROUNDS)  # step of the parameters, the order that Theorem 2 asks for
ETA_K = 1 / np.sqrt(ROUNDS)  # learning rate of a client's weights, as in Theorem 1


def features(omega, x):
    """z_i(x) of eq. (4) for each kernel, (N, 2 D), from the frequencies omega (N, D, d)."""
    angles = omega @ x
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1) / np.sqrt(omega.shape[1])


def draw_kernels(log_w, M, xi, u):
    """Algorithm 1: the kernels of the drawn bin, and its probability.

    Kernels are put into ceil(N / M) bins, in descending order of their weights. u, uniform on [0, 1), draws the bin.
    """
    order = np.argsort(-log_w, kind="stable") if xi < 1 else np.arange(len(log_w))
    bins = [order[first : first + M] for first in range(0, len(order), M)]
    w = np.exp(log_w - log_w.max())
    weight = np.array([w[members].sum() for members in bins])
    q = (1 - xi) * weight / weight.sum() + xi / len(bins)  # eq. (8)
    drawn = min(int(np.searchsorted(np.cumsum(q), u, side="right")), len(bins) - 1)
    return bins[drawn], q[drawn]


def pof_mkl(x, y, omega, uniform, M, xi, eta, eta_k, lam):
    """Algorithm 2: predictions (T, K), and at the end the parameters (N, 2 D) and the logarithms of weights (K, N).

    x is (T, K, d), y is (T, K), omega is (N, D, d), and uniform (T, K) has the numbers that draw bins.
    """
    T, K = y.shape
    N = len(omega)
    theta = np.zeros((N, 2 * omega.shape[1]))  # the server's
    log_w = np.zeros((K, N))  # each client's own
    predictions = np.zeros((T, K))
    for t in range(T):
        step = np.zeros_like(theta)
        for k in range(K):  # each client receives theta
            z = features(omega, x[t, k])
            f = (theta * z).sum(axis=1)  # of each kernel, eq. (5)
            w = np.exp(log_w[k] - log_w[k].max())
            predictions[t, k] = w @ f / w.sum()  # eq. (6)

            chosen, p = draw_kernels(log_w[k], M, xi, uniform[t, k])
            loss = (f - y[t, k]) ** 2 + lam * (theta**2).sum(axis=1)
            log_w[k] -= eta_k * loss  # eq. (7)

            # The client sends theta_ik = theta_i - eta gradient / p of the chosen kernels, eq. (9)
            gradient = 2 * (f - y[t, k])[chosen, None] * z[chosen] + 2 * lam * theta[chosen]
            step[chosen] += eta * gradient / p
        theta = theta - step / K  # the server's mean over clients, eq. (10)
    return predictions, theta, log_w


def make_data(rng):
    """One smooth function for all clients, and a shift of each client's own: x (T, K, 2) and y (T, K)."""
    x = rng.uniform(-1, 1, (ROUNDS, CLIENTS, 2)) / np.sqrt(2)
    shift = rng.normal(0, 0.1, CLIENTS)
    return x, 0.5 + 0.4 * np.sin(3 * x[..., 0]) * np.cos(2 * x[..., 1]) + shift + rng.normal(0, 0.05, x.shape[:2])


def main():
    """Compare with what each client would predict by its mean so far."""
    rng = np.random.default_rng(0)
    x, y = make_data(rng)
    omega = rng.standard_normal((len(BANDWIDTHS), D, x.shape[-1])) / BANDWIDTHS[:, None, None]
    predictions, _, log_w = pof_mkl(x, y, omega, rng.random(y.shape), M, XI, ETA, ETA_K, LAM)

    before = np.cumsum(y, axis=0) - y
    mean_so_far = before / np.maximum(np.arange(ROUNDS), 1)[:, None]
    print(f"mean squared error of POF-MKL                  {np.mean((predictions - y) ** 2):.5f}")
    print(f"... in the last 100 rounds                     {np.mean((predictions - y)[-100:] ** 2):.5f}")
    print(f"... of each client's mean target so far        {np.mean((mean_so_far - y) ** 2):.5f}")
    sent = 8 * ROUNDS * CLIENTS * M * 2 * D
    print(
        f"sent by all clients                            {sent / 1e6:.1f} MB, "
        f"{len(BANDWIDTHS) // M} times less than of all kernels"
    )
    best, times = np.unique(log_w.argmax(axis=1), return_counts=True)
    print(
        "clients whose weight is largest for sigma =    "
        + ", ".join(f"{BANDWIDTHS[i]:.2g}: {n}" for i, n in zip(best, times, strict=True))
    )


if __name__ == "__main__":
    main()
