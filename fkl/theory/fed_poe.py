"""Fed-POE: Ghari and Shen, NeurIPS 2024. The text of their theorem was not available; the bounds are derived."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.algorithms.base import softmax
from fkl.algorithms.federated.fed_poe import FedPoe
from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.theory.base import Assumption, Theorem, derived_form, rounds_of
from fkl.theory.descent import DescentSums, best_in_features, everyone_present
from fkl.theory.weights import WeightSums

PAPER = "Ghari and Shen, NeurIPS 2024"


@dataclass(frozen=True)
class FedPoeRecord:
    """Values of one replicate for its theorems.

    Parameters
    ----------
    method : FedPoe
    world : World
    both : WeightSums
        Sums for a client's two mixtures, with losses (f - y)^2.
    common, own : WeightSums
        Sums for the server's kernels, and for a client's own kernels.
    largest : (T, K)
        Largest (f - y)^2 of both mixtures so far.
    descent : DescentSums
        Sums for the server's kernels.
    own_loss, own_squared : (T, N)
        sum_t sum_k L_ik and sum_t sum_k |g_ik|^2 for clients' own kernels.
    u, best : (N, P), (T, N)
        Ridge fits in features, and their losses summed over clients.
    """

    method: FedPoe
    world: World
    both: WeightSums
    common: WeightSums
    own: WeightSums
    largest: Array
    descent: DescentSums
    own_loss: Array
    own_squared: Array
    u: Array
    best: Array

    @property
    def rate(self) -> float:
        """The declared step size of theta."""
        return self.method.step_factor * self.method.rate(self.world.problem.rounds)

    @property
    def rate_of_weights(self) -> float:
        """The declared step size of the weights, eta_k."""
        return rate_of_weights(self.method, self.world)

    @property
    def at_zero(self) -> Array:
        """sum_t l(0, y) of each client, (K,)."""
        problem = self.world.problem
        return (problem.present * problem.loss.value(np.zeros_like(problem.y), problem.y)).sum(axis=0)

    @property
    def on_descent(self) -> tuple[Assumption, ...]:
        """Assumptions of all bounds on descent."""
        steps = self.method.local_steps
        one_step = Assumption("one gradient step a round", "" if steps == 1 else f"algo.local_steps={steps}")
        return (everyone_present(self.world), one_step)

    @property
    def of_both(self) -> Array:
        """Right-hand side of the bound Ensemble, (T, K)."""
        concave = 2 * self.rate_of_weights * self.largest <= 1
        return (np.log(2) + np.where(concave, 0.0, self.both.spread)) / self.rate_of_weights

    def of_kernels(self, weights: WeightSums) -> Array:
        """Right-hand side of the bound Weights, (T, K)."""
        return (np.log(self.world.dictionary.N) + weights.spread) / self.rate_of_weights

    @property
    def start(self) -> Array:
        """K |u_i|^2 / (2 eta), (N,)."""
        told: Array = self.world.problem.clients * (self.u**2).sum(axis=-1) / (2 * self.rate)
        return told

    @property
    def of_descent(self) -> Array:
        """Right-hand side of the bound Common descent, (T, N)."""
        return self.start + self.world.problem.clients * self.descent.squared / (2 * self.rate)


def theorems(record: FedPoeRecord) -> Iterator[Theorem]:
    """Bounds of mixtures against their best component, and of descents against ridge fits u in a kernel's features."""
    eta_k, targets = record.rate_of_weights, record.at_zero
    # Every client's prediction, against the better of its two mixtures. (f - y)^2 is exp-concave with the rate eta_k if
    # eta_k <= 1 / (2 B), where B is the largest loss of both; then ln 2 / eta_k is enough. For a larger rate,
    # Hoeffding's lemma adds a term.
    statement = (
        "sum_t (f_hat - y)^2 <= min(sum_t (f_fed - y)^2, sum_t (f_loc - y)^2) + ln 2 / eta_k"
        " [+ (eta_k / 8) sum_t range^2 if eta_k > 1 / (2 B)]"
    )
    forms, trivial = derived_form(statement, record.of_both), targets - record.both.best[-1] / eta_k
    yield Theorem(PAPER, "Ensemble", "client", record.both.regret / eta_k, forms, trivial, 0.5)

    # Both mixtures of every client, against the best of their kernels
    mixtures = (record.common, record.own)
    statement = "sum_t L(f) - min_i sum_t L_i <= ln N / eta_k + (eta_k / 8) sum_t (max_i L_i - min_i L_i)^2"
    forms = derived_form(statement, np.hstack([record.of_kernels(one) for one in mixtures]))
    left = np.hstack([one.regret / eta_k for one in mixtures])
    trivial = np.hstack([targets - one.best[-1] / eta_k for one in mixtures])
    yield Theorem(PAPER, "Weights", "client's mixture", left, forms, trivial, 0.5)

    # The descent of every kernel of the server
    statement = "sum_t sum_k (L_ik - L_ik(u)) <= K |u|^2 / (2 eta) + (K eta / 2) sum_t |mean_k g_ik|^2"
    forms = derived_form(statement, record.of_descent, record.on_descent)
    left, trivial = record.descent.loss / record.rate - record.best, targets.sum() - record.best[-1]
    yield Theorem(PAPER, "Common descent", "kernel", left, forms, trivial, 0.5)

    # The descent of every kernel at the clients; u is fitted to the samples of all clients
    statement = "sum_t sum_k (L_ik - L_ik(u)) <= K |u|^2 / (2 eta) + (eta / 2) sum_t sum_k |g_ik|^2"
    forms = derived_form(statement, record.start + record.rate * record.own_squared / 2, record.on_descent)
    yield Theorem(PAPER, "Own descent", "kernel", record.own_loss - record.best, forms, trivial, 0.5)

    # All clients' predictions, against the best kernel
    i = [int(record.best[-1].argmin())]
    statement = "sum_t sum_k ((f_hat - y)^2 - L_ik(u)) <= sum_k ([Ensemble] + [Weights]) + [Common descent]"
    of_weights = (record.of_both + record.of_kernels(record.common)).sum(axis=1, keepdims=True)
    forms = derived_form(statement, of_weights + record.of_descent[:, i], record.on_descent)
    left = record.both.mixture.sum(axis=1, keepdims=True) / eta_k - record.best[:, i]
    yield Theorem(PAPER, "Regret", "all clients", left, forms, trivial[i], 0.5)


def rate_of_weights(method: Any, world: World) -> float:
    """The declared step size of the weights, eta_k."""
    return float(world.problem.rounds**-0.5 if method.eta_k is None else method.eta_k)


def record_of(method: Any, world: World) -> FedPoeRecord:
    """Run one replicate, and add up the values that the theorems need."""
    # Sums that the theorems need, for both mixtures and all descents
    problem, bank, lam = world.problem, world.bank, method.lam
    rounds, K, N = problem.rounds, problem.clients, world.dictionary.N
    rate, eta_k = method.step_factor * method.rate(rounds), rate_of_weights(method, world)
    both_sums, common_sums, own_sums = (WeightSums.before_first_round(rounds, K, experts) for experts in (2, N, N))
    descent, largest = DescentSums.before_first_round(rounds, N), np.zeros((rounds, K))
    own_loss, own_squared = np.zeros((rounds, N)), np.zeros((rounds, N))
    for t, before, _, _ in rounds_of(method, world):
        # Predictions by the server's theta and by the clients' own
        (x, y, _), here, theta = problem.round(t), problem.present[t], before.server.theta
        own_theta = before.client.theta[0].astype(np.float64)
        alone = (bank.features(x)[0] * own_theta).sum(axis=-1).T
        f = np.stack([bank.predict(x, theta)[0], alone], axis=1)  # (K, 2, N)
        own_norm = (own_theta**2).sum(axis=-1).T
        norms = np.stack([np.broadcast_to((theta[0] ** 2).sum(axis=-1), own_norm.shape), own_norm], axis=1)
        # Losses with regulariser, of kernels and of mixtures
        loss = problem.loss.value(f, y[:, None, None]) + lam * norms
        w, ab = softmax(before.client.log_w[0]), softmax(before.client.log_ab[0])
        mixed = (w * f).sum(axis=-1)
        errors = problem.loss.value(mixed, y[:, None])
        of_mixtures = errors + lam * (w * norms).sum(axis=-1)
        # Add the round to all sums
        both_sums.enter(t, errors, problem.loss.value((ab * mixed).sum(axis=-1), y), eta_k, here)
        common_sums.enter(t, loss[:, 0], of_mixtures[:, 0], eta_k, here)
        own_sums.enter(t, loss[:, 1], of_mixtures[:, 1], eta_k, here)
        descent.enter(t, world, theta, loss[:, 0], np.ones((K, N)), rate, lam)
        # Squared gradients of the clients' own descent
        slope = problem.loss.derivative(alone, y[:, None])
        g = slope**2 * bank.squared_norms(x)[0] + 4 * lam * (slope * alone + lam * own_norm)
        own_loss[t], own_squared[t] = loss[:, 1].sum(axis=0), g.sum(axis=0)
        largest[t] = here * errors.max(axis=1)
    # The best fit in each kernel's features
    u, best = best_in_features(world, np.ones(rounds), lam)
    so_far = np.maximum.accumulate(largest, axis=0)
    sums = (own_loss.cumsum(axis=0), own_squared.cumsum(axis=0))
    return FedPoeRecord(method, world, both_sums, common_sums, own_sums, so_far, descent, *sums, u[0], best)
