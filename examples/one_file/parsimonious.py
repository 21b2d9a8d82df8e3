"""Federated classification with parsimonious functions in one file: agents send only the samples that matter.

Peifer and Ribeiro, "Federated classification using parsimonious functions in reproducing kernel Hilbert spaces",
arXiv:2009.03768. Equation and algorithm numbers are theirs. It needs numpy alone: python parsimonious.py
"""

import numpy as np

# Settings
AGENTS = 9  # each sees its own ninth of the space
SAMPLES = 180  # of all agents together, the second of the sizes in the paper's Figure 2
TEST = 1000
CENTRES = 24  # of kernels, along each axis of the box
WIDTHS = (1.0, 2.0, 4.0)  # of kernels: the function may use several
GAMMA = 25.0  # price of a kernel, as in the paper
EPS = 0.01  # slack of the constraints, as in the paper
STEPS = 1000  # the paper has 1000 with a step of 0.1, which hardly moves; here it is 1 / L

BOX = np.array([[-18.0, -8.0], [10.0, 20.0]])  # of the simulated space, as in section V
A = np.array([1.0, 0.25])
CENTRE, RADIUS = np.array([[3.0, 0.0], [-10.0, 6.0]]), np.array([9.0, 30.0])  # of its two ellipses


def nodes():
    """Centres (M, 2) and widths (M,) over which alpha(s, w) is a function; the measure of all is 1."""
    axes = [np.linspace(low, high, 2 * CENTRES + 1)[1::2] for low, high in BOX.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.tile(grid, (len(WIDTHS), 1)), np.repeat(WIDTHS, len(grid))


def kernel(s, w, x):
    """k(x, s; w) = exp(-|x - s|^2 / (2 w^2)) of nodes (M,) and samples (n, 2): (M, n)."""
    squares = np.square(s[:, None] - x).sum(axis=-1)
    return np.exp(-squares / (2 * w[:, None] ** 2))


def alpha_of(mu, y, k, gamma):
    """Eqs. (8) and (9): alpha (M,) from the multipliers mu = lambda / N."""
    bar = k @ (mu * y)
    return np.where(np.abs(bar) > np.sqrt(2 * gamma), bar, 0.0)


def dual_value(mu, y, k, gamma, eps):
    """g(lambda): the least of integral alpha^2 / 2 + gamma 1(alpha != 0) plus the priced constraints."""
    alpha = alpha_of(mu, y, k, gamma)
    return np.mean(np.where(alpha != 0, gamma - alpha**2 / 2, 0.0)) + (1 - eps) * mu.sum()


def ascend(mu, x, y, gamma, eps, steps):
    """Algorithms 2 and 3: gradient ascent on the dual of one problem (PC); mu stays at 0 or above."""
    s, w = nodes()
    k = kernel(s, w, x)
    step = 1 / np.linalg.norm(k.T @ k / len(s), 2)  # 1 / L of the smooth part
    for _ in range(steps):
        f = k.T @ alpha_of(mu, y, k, gamma) / len(s)  # f(x_n), eq. (11)
        mu = np.maximum(mu + step * (1 - eps - y * f), 0.0)
    return mu, alpha_of(mu, y, k, gamma)


def accuracy(alpha, x, y):
    """Share of samples whose class is the sign of f."""
    s, w = nodes()
    return np.mean(np.sign(kernel(s, w, x).T @ alpha) == y)


def federated(x, y, agent, gamma, eps, steps):
    """Algorithm 1: alpha of the server, and which samples the agents sent."""
    mu = np.zeros(len(y))
    for one in np.unique(agent):
        here = agent == one
        mu[here], _ = ascend(np.zeros(here.sum()), x[here], y[here], gamma, eps, steps)
    sent = mu > 0  # critical samples: the agent's function would be the same without the others (Proposition 2)
    _, alpha = ascend(mu[sent], x[sent], y[sent], gamma, eps, steps)
    return alpha, sent


def make_data(rng, size):
    """Points of the box with labels by two ellipses, seen with noise; the agent is the ninth of the box."""
    clean = rng.uniform(*BOX, (size, 2))
    inside = (np.square(clean[:, None] - CENTRE) @ A <= RADIUS).any(axis=1)
    cell = np.minimum(3 * (clean - BOX[0]) / (BOX[1] - BOX[0]), 2.999).astype(int)
    return clean + rng.normal(0, 0.2, clean.shape), np.where(inside, 1.0, -1.0), 3 * cell[:, 0] + cell[:, 1]


def main():
    """Compare with a learner that has all samples."""
    rng = np.random.default_rng(0)
    x, y, agent = make_data(rng, SAMPLES)
    x_test, y_test, _ = make_data(rng, TEST)
    alpha, sent = federated(x, y, agent, GAMMA, EPS, STEPS)
    _, pooled = ascend(np.zeros(SAMPLES), x, y, GAMMA, EPS, STEPS)

    print(f"accuracy of the federated learner            {100 * accuracy(alpha, x_test, y_test):.1f} %")
    print(f"... of the centralized learner               {100 * accuracy(pooled, x_test, y_test):.1f} %")
    print(
        f"... of the more frequent class               {100 * max((y_test == 1).mean(), (y_test == -1).mean()):.1f} %"
    )
    print(f"samples that agents sent                     {sent.sum()} of {SAMPLES}")
    print(
        "nodes with a kernel, federated, centralized  "
        f"{np.count_nonzero(alpha)}, {np.count_nonzero(pooled)} of {len(alpha)}"
    )


if __name__ == "__main__":
    main()
