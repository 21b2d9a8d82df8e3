"""COKE in one file: agents on a graph agree on one function, and an agent is silent while it has little to say.

Xu, Wang, Chen and Tian, "COKE: communication-censored decentralized kernel learning", JMLR 22 (2021), arXiv:2001.10133.
Equation numbers are theirs. It needs numpy alone: python coke.py
"""

import numpy as np

# Settings
AGENTS = 20
SAMPLES = 50  # of each agent, all there from the beginning
LINKS = 2  # each agent talks to so many neighbours on each side of a ring
D = 100  # random features of the Gaussian kernel exp(-|x - x'|^2 / (2 SIGMA^2)): cosines with phases, eq. (4)
SIGMA = 0.5
LAM = 1e-4  # regularisation lambda
RHO = 1e-3  # penalty of ADMM: larger is a faster agreement and a slower fit
V, MU = 0.5, 0.97  # an agent is silent while its parameters moved by less than h(k) = V MU^k
ITERATIONS = 300


def features(x, omega, phase):
    """phi(x) of eq. (4) for samples (n, d): (n, D), from frequencies omega (d, D) and phases (D,)."""
    return np.sqrt(2 / omega.shape[1]) * np.cos(x @ omega + phase)


def coke(phi, y, neighbours, lam, rho, h, iterations):
    """Algorithm 2: parameters (iterations, N, D), and the number of transmissions so far (iterations,).

    phi and y have the features (n_i, D) and targets (n_i,) of each agent, neighbours its neighbours; h(k) is the
    threshold of iteration k, from 1. A threshold below 0 is DKLA, Algorithm 1, which is never silent.
    """
    N, P = len(phi), phi[0].shape[1]
    theta_hat = np.zeros((N, P))  # the parameters that agents sent last, and that their neighbours know
    gamma = np.zeros((N, P))  # dual variables
    theta, sent = np.zeros((iterations, N, P)), np.zeros(iterations, int)
    inverse, target = [], []
    for i in range(N):
        curvature = 2 * phi[i].T @ phi[i] / len(y[i])
        inverse.append(np.linalg.inv(curvature + 2 * (lam / N + rho * len(neighbours[i])) * np.eye(P)))
        target.append(2 * phi[i].T @ y[i] / len(y[i]))
    for k in range(iterations):
        for i in range(N):
            around = sum(theta_hat[i] + theta_hat[n] for n in neighbours[i])
            theta[k, i] = inverse[i] @ (target[i] - gamma[i] + rho * around)  # eq. (21a)
        moved = np.linalg.norm(theta_hat - theta[k], axis=1)  # |xi_i|, eq. (19)
        speaks = moved >= h(k + 1)  # eq. (20)
        theta_hat[speaks] = theta[k, speaks]
        for i in range(N):
            gamma[i] += rho * sum(theta_hat[i] - theta_hat[n] for n in neighbours[i])  # eq. (21b)
        sent[k] = speaks.sum()
    return theta, np.cumsum(sent)


def ring(agents, links):
    """Neighbours of each agent."""
    return [[(i + s * step) % agents for step in range(1, links + 1) for s in (-1, 1)] for i in range(agents)]


def make_data(rng):
    """Samples of one smooth function; each agent sees another part of the space: lists of (n, 2) and (n,)."""
    centres = rng.uniform(-1, 1, (AGENTS, 2))
    x = [centre + rng.normal(0, 0.3, (SAMPLES, 2)) for centre in centres]
    return x, [np.sin(2 * one[:, 0]) * np.cos(2 * one[:, 1]) + rng.normal(0, 0.1, SAMPLES) for one in x]


def main():
    """Compare COKE with DKLA, and both with one learner that has all samples."""
    rng = np.random.default_rng(0)
    x, y = make_data(rng)
    omega, phase = rng.standard_normal((2, D)) / SIGMA, rng.uniform(0, 2 * np.pi, D)
    phi, graph = [features(one, omega, phase) for one in x], ring(AGENTS, LINKS)

    # What one learner with all samples would find: the optimum of eq. (9)
    both = sum(one.T @ one / SAMPLES for one in phi) + LAM * np.eye(D)
    best = np.linalg.solve(both, sum(one.T @ target / SAMPLES for one, target in zip(phi, y, strict=True)))
    every, targets = np.concatenate(phi), np.concatenate(y)

    def error(theta):  # of agents' functions on all agents' samples
        return np.mean((every @ np.atleast_2d(theta).T - targets[:, None]) ** 2)

    print(f"mean squared error of the targets' mean   {np.var(targets):.5f}")
    print(f"... of one learner with all samples       {error(best):.5f}")
    for name, h in (("COKE", lambda k: V * MU**k), ("DKLA", lambda k: -1.0)):
        theta, sent = coke(phi, y, graph, LAM, RHO, h, ITERATIONS)
        errors = np.array([error(one) for one in theta])
        reached = int(np.argmax(errors <= 1.1 * error(best)))
        print(f"... of {name} after {ITERATIONS} iterations            {errors[-1]:.5f}, {sent[-1]} transmissions")
        print(
            f"    within 10 % of that learner           after {reached + 1} iterations, {sent[reached]} transmissions"
        )


if __name__ == "__main__":
    main()
