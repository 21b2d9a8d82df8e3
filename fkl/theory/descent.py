"""Gradient descent with drawn gradients: the sums over rounds from which its bounds and its identity follow."""

from dataclasses import dataclass

import numpy as np

from fkl.contract.world import Array, World
from fkl.data.problem import Problem
from fkl.theory.base import Identity

LARGEST_Z = 5
"""The largest of 51 normal numbers with variance 1 exceeds this once in 34,000 runs."""


@dataclass
class DescentSums:
    """Sums by round of theta_{t+1} = theta_t - rate_t G_t for each kernel; G_t is drawn with mean gbar = sum_k g_k / K.

    Parameters
    ----------
    loss : (T, N)
        sum_t rate_t sum_k L_ik.
    squared : (T, N)
        sum_t rate_t^2 E_t |G_t|^2, with K^2 E_t |G_t|^2 = |sum_k g_k|^2 + sum_k |g_k|^2 (1 / p_k - 1).
    inverse : (T, N)
        sum_t rate_t sum_k 1 / p_k.
    lipschitz : float
        Largest |g_k|.
    off, chance, declared : (N,)
        sum_t of X_t = (theta_t - theta_{t+1} - rate gbar)'gbar, its variance given the past, and sum_t rate |gbar|^2.
    """

    loss: Array
    squared: Array
    inverse: Array
    off: Array
    chance: Array
    declared: Array
    lipschitz: float = 0.0

    @classmethod
    def of(cls, rounds: int, kernels: int) -> "DescentSums":
        """No round yet."""
        return cls(*np.zeros((3, rounds, kernels)), *np.zeros((3, kernels)))

    def enter(
        self, t: int, world: World, theta: Array, after: Array, loss: Array, p: Array, rate: float, lam: float
    ) -> None:
        """Add round t of the first replicate.

        Parameters
        ----------
        theta, after : (1, N, P)
            Before and after the round.
        loss, p : (K, N)
            Losses, and each client's probability of sending each kernel's gradient.
        rate, lam : float
        """
        x, y, _ = world.problem.round(t)
        bank, K = world.bank, len(y)
        f = bank.predict(x, theta)
        residual = f - y[:, None]
        norms = (theta**2).sum(axis=-1)
        g = 4 * (residual**2 * bank.squared_norms(x) + 2 * lam * residual * f + lam**2 * norms[:, None])[0]
        mean = bank.accumulate(x, 2 * residual) / K + 2 * lam * theta  # gbar, (1, N, P)
        along = 2 * residual * bank.predict(x, mean) + 2 * lam * (theta * mean).sum(axis=-1)[:, None]  # g_k'gbar
        length = (mean**2).sum(axis=-1)[0]
        terms = (
            (self.loss, rate * loss.sum(axis=0)),
            (self.squared, rate**2 * (length + (g * (1 / p - 1)).sum(axis=0) / K**2)),
            (self.inverse, rate * (1 / p).sum(axis=0)),
        )
        for sums, term in terms:
            sums[t] = (sums[t - 1] if t else 0) + term
        self.lipschitz = max(self.lipschitz, float(np.sqrt(max(g.max(), 0))))
        self.off += ((theta - after - rate * mean) * mean).sum(axis=-1)[0]
        self.chance += (rate / K) ** 2 * (along[0] ** 2 * (1 / p - 1)).sum(axis=0)
        self.declared += rate * length

    def step(self) -> Identity:
        """The effective step over the declared one, 1 except for chance."""
        drawn = self.chance > 0
        allowed = LARGEST_Z * np.sqrt(self.chance) + 1e-3 * self.declared  # the wire rounds theta
        off = float((np.abs(self.off) / np.where(allowed > 0, allowed, np.inf)).max())
        value = float(1 + self.off.sum() / self.declared.sum())
        how = "the draws are unbiased" if drawn.any() else "nothing is drawn"
        statement = f"effective / declared step is 1: {how}, and the step is the declared one"
        return Identity("step", statement, value, 1.0, off)


def best_in_features(world: World, rates: Array, lam: float) -> tuple[Array, Array]:
    """The ridge fit in each kernel's features, weighted by `rates` (T,).

    Returns
    -------
    u : (1, N, P)
    loss : (T, N)
        sum_t rate_t sum_k of its regularised loss.
    """
    problem: Problem = world.problem
    bank = world.bank
    gram = np.zeros((1, bank.kernels, bank.width, bank.width))
    pull = np.zeros(gram.shape[:3])
    for t, rate in enumerate(rates):
        x, y, _ = problem.round(t)
        of_round = bank.moments(x[None], y[None], np.full((1, len(y)), rate))
        gram += of_round[0]
        pull += of_round[1]
    ridge = np.full(pull.shape[:2], max(lam, 1e-9) * rates.sum() * problem.clients)
    u = bank.posterior(gram, pull, ridge)[1]
    norm = lam * (u**2).sum(axis=-1)
    loss = np.empty((len(rates), bank.kernels))
    for t, rate in enumerate(rates):
        x, y, _ = problem.round(t)
        loss[t] = rate * ((bank.predict(x, u) - y[:, None]) ** 2 + norm[:, None])[0].sum(axis=0)
    return u, np.cumsum(loss, axis=0)
