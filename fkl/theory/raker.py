"""Raker: Shen, Chen and Giannakis, JMLR 20 (2019), Lemma 1 and Theorem 1. Their text was not available.

The bounds are derived here, and weighted by eta_t, because eta_t = eta / sqrt(t) falls in fkl's Raker.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.theory.base import Assumption, Theorem, derived_form, rounds_of
from fkl.theory.descent import DescentSums, best_in_features
from fkl.theory.weights import WeightSums

PAPER = "Shen, Chen and Giannakis, JMLR 2019"
UNKNOWN = Assumption("the paper's own constants", unknown=True)


@dataclass(frozen=True)
class RakerRecord:
    """Values of one replicate for its theorems; all sums are weighted by eta_t.

    Parameters
    ----------
    weights, descent : WeightSums, DescentSums
    u, best : (1, N, P), (T, N)
        Ridge fits in features, and their losses.
    at_zero : float
        sum_t eta_t l(0, y).
    """

    weights: WeightSums
    descent: DescentSums
    u: Array
    best: Array
    at_zero: float

    @property
    def descent_part(self) -> Array:
        """|u_i|^2 / 2 + (1/2) sum_t eta_t^2 |g_ti|^2, (T, N)."""
        return ((self.u**2).sum(axis=-1)[0] + self.descent.squared) / 2

    @property
    def weights_part(self) -> Array:
        """The weights' part of the bound: ln N + (1/8) sum_t eta_t^2 (max_i L_i - min_i L_i)^2, (T, 1)."""
        return np.log(self.descent.loss.shape[1]) + self.weights.spread


def theorems(record: RakerRecord) -> Iterator[Theorem]:
    """Bounds of the descent and of the mixture, against ridge fits u in a kernel's features."""
    left, trivial = record.descent.loss - record.best, record.at_zero - record.best[-1]
    statement = "sum_t eta_t (L_i - L_i(u)) <= |u|^2 / 2 + (1/2) sum_t eta_t^2 |g_i|^2"
    of_kernels = derived_form(statement, record.descent_part, (UNKNOWN,))
    yield Theorem(PAPER, "Lemma 1", "kernel", left, of_kernels, trivial, 0.0)

    i = [int(record.best[-1].argmin())]
    statement = "sum_t eta_t (L(f_hat) - L_i(u)) <= [Lemma 1] + ln N + (1/8) sum_t eta_t^2 (max_i L_i - min_i L_i)^2"
    of_mixture = derived_form(statement, record.weights_part + record.descent_part[:, i], (UNKNOWN,))
    left = record.weights.mixture - record.best[:, i]
    yield Theorem(PAPER, "Theorem 1", "the learner", left, of_mixture, trivial[i], 0.0)


def record_of(algorithm: Any, world: World) -> RakerRecord:
    """Run one replicate, and add up the values that the theorems need."""
    # Rates fall, so losses are weighted by them
    problem, rounds, N, lam = world.problem, world.problem.rounds, world.dictionary.N, algorithm.lam
    rates = algorithm.rates(slice(0, rounds))
    weights, descent = WeightSums.before_first_round(rounds, 1, N), DescentSums.before_first_round(rounds, N)
    everyone, nothing_drawn = np.ones(1, bool), np.ones((1, N))
    for t, before, outcome, _ in rounds_of(algorithm.round_by_round(), world):
        # The mixture and all kernels in this round
        loss = outcome.loss[0]
        of_mixture = (problem.loss.value(outcome.y_hat, problem.y[t]) + lam * outcome.squared_norm())[0]
        weights.enter(t, loss, of_mixture, rates[t], everyone)
        descent.enter(t, world, before.theta, loss, nothing_drawn, rates[t], lam)
    u, best = best_in_features(world, rates, lam)
    at_zero = float(rates @ problem.loss.value(np.zeros(rounds), problem.y[:, 0]))
    return RakerRecord(weights, descent, u, best, at_zero)
