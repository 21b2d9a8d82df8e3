"""Gradient descent with randomly drawn gradients: sums over rounds from which its bounds are computed."""

from dataclasses import dataclass

import numpy as np

from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.data.problem import Problem
from fkl.theory.base import Assumption


@dataclass
class DescentSums:
    """Sums so far for theta_{t+1} = theta_t - rate_t G_t of each kernel; G_t is drawn with mean gbar = sum_k g_k / K.

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
    """

    loss: Array
    squared: Array
    inverse: Array
    lipschitz: float = 0.0

    @classmethod
    def before_first_round(cls, rounds: int, kernels: int) -> "DescentSums":
        """Sums before the first round."""
        return cls(*np.zeros((3, rounds, kernels)))

    def enter(self, t: int, world: World, theta: Array, loss: Array, p: Array, rate: float, lam: float) -> None:
        """Add round t of the first replicate.

        Parameters
        ----------
        theta : (1, N, P)
            Parameters before the round.
        loss, p : (K, N)
            Losses, and each client's probability of sending each kernel's gradient.
        rate, lam : float
        """
        # Predictions, slopes and squared norms of this round
        x, y, _ = world.problem.round(t)
        bank, K = world.bank, len(y)
        f = bank.predict(x, theta)
        slope, norms = world.problem.loss.derivative(f, y[:, None]), (theta**2).sum(axis=-1)
        # |g|^2 of each client and kernel, without storing the gradients
        g = (slope**2 * bank.squared_norms(x) + 4 * lam * (slope * f + lam * norms[:, None]))[0]
        # The squared length of the mean gradient, and its second moment if kernels are drawn with probability p
        mean = bank.accumulate(x, slope) / K + 2 * lam * theta  # gbar, (1, N, P)
        length = (mean**2).sum(axis=-1)[0]
        terms = (
            (self.loss, rate * loss.sum(axis=0)),
            (self.squared, rate**2 * (length + (g * (1 / p - 1)).sum(axis=0) / K**2)),
            (self.inverse, rate * (1 / p).sum(axis=0)),
        )
        for sums, term in terms:
            sums[t] = (sums[t - 1] if t else 0) + term
        self.lipschitz = max(self.lipschitz, float(np.sqrt(max(g.max(), 0))))


def everyone_present(world: World) -> Assumption:
    """The assumption that no client misses a round."""
    why_not = "" if world.problem.present.all() else "clients miss rounds"
    return Assumption("every client is present in every round", why_not)


def best_in_features(world: World, rates: Array, lam: float, radius: Array | float = np.inf) -> tuple[Array, Array]:
    """The ridge fit u_i in each kernel's features, weighted by `rates` (T,), and its loss; u_i may be any function.

    The ridge parameter is doubled until |u_i| is at most `radius`, (N,) or one number for all.

    Returns
    -------
    u : (1, N, P)
    loss : (T, N)
        sum_t rate_t sum_k of the fit's regularised loss.
    """
    # Sums of rate z z' and rate y z over all rounds
    problem: Problem = world.problem
    bank = world.bank
    gram = np.zeros((1, bank.kernels, bank.width, bank.width))
    pull = np.zeros(gram.shape[:3])
    for t, rate in enumerate(rates):
        x, y, _ = problem.round(t)
        of_round = bank.moments(x[None], y[None], np.full((1, len(y)), rate))
        gram += of_round[0]
        pull += of_round[1]
    # At least a little regularisation, and more until the fit is inside the radius
    ridge = np.full(pull.shape[:2], max(lam, 1e-9) * rates.sum() * problem.clients)
    u = bank.posterior(gram, pull, ridge)[1]
    while (longer := (u**2).sum(axis=-1) > np.square(radius)).any():
        ridge = np.where(longer, 2 * ridge, ridge)
        u = bank.posterior(gram, pull, ridge)[1]
    # Its loss in every round, with the same rates
    norm = lam * (u**2).sum(axis=-1)
    loss = np.empty((len(rates), bank.kernels))
    for t, rate in enumerate(rates):
        x, y, _ = problem.round(t)
        loss[t] = rate * (problem.loss.value(bank.predict(x, u), y[:, None]) + norm[:, None])[0].sum(axis=0)
    return u, np.cumsum(loss, axis=0)
