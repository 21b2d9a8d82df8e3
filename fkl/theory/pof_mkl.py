"""POF-MKL: Ghari and Shen, Personalized Online Federated Learning with Multiple Kernels, NeurIPS 2022."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.algorithms.federated.pof_mkl import PofMkl, bins_of_kernels
from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.theory.base import EXPECTED, SURELY, Assumption, Form, Theorem, rounds_of
from fkl.theory.descent import DescentSums, best_in_features, everyone_present
from fkl.theory.weights import WeightSums

PAPER = "Ghari and Shen, NeurIPS 2022"


@dataclass(frozen=True)
class PofMklRecord:
    """Values of one replicate for its theorems.

    Parameters
    ----------
    method : PofMkl
    world : World
    weights, descent : WeightSums, DescentSums
    rate, rate_of_weights : float
        The declared step sizes of theta, step_factor eta, and of the weights, eta_k.
    u, best : (1, N, P), (T, N)
        Ridge fits in features, and their losses summed over clients.
    """

    method: PofMkl
    world: World
    weights: WeightSums
    descent: DescentSums
    rate: float
    rate_of_weights: float
    u: Array
    best: Array

    @property
    def at_zero(self) -> Array:
        """sum_t l(0, y) of each client, (K,)."""
        problem = self.world.problem
        return (problem.present * problem.loss.value(np.zeros_like(problem.y), problem.y)).sum(axis=0)

    @property
    def bounded(self) -> Assumption:
        """Assumption (as2) for the weights."""
        largest = self.weights.largest
        return Assumption("(as2) losses in [0, 1]", f"losses reach {largest:.3g}" if largest > 1 else "")

    @property
    def on_descent(self) -> tuple[Assumption, ...]:
        """Assumptions of all bounds on descent."""
        steps = self.method.local_steps
        return (
            everyone_present(self.world),
            Assumption("one gradient step a round", "" if steps == 1 else f"algo.local_steps={steps}"),
        )

    @property
    def weights_part(self) -> Array:
        """The weights' part of the bound: ln N / eta_k + (eta_k / 8) sum_t (max_i L_ik - min_i L_ik)^2, (T, K)."""
        return (np.log(self.world.dictionary.N) + self.weights.spread) / self.rate_of_weights

    @property
    def rounds_of_clients(self) -> Array:
        """Number of rounds so far in which each client took part, (T, K)."""
        return np.cumsum(self.world.problem.present, axis=0)

    @property
    def printed_weights_part(self) -> Array:
        """The weights' part of the printed bound: ln N / eta_k + eta_k T / 2, (T, K)."""
        N, eta_k = self.world.dictionary.N, self.rate_of_weights
        return np.log(N) / eta_k + eta_k * self.rounds_of_clients / 2

    @property
    def start(self) -> Array:
        """K |u_i|^2 / (2 eta), (N,)."""
        return self.world.problem.clients * (self.u**2).sum(axis=-1)[0] / (2 * self.rate)

    @property
    def drawn_part(self) -> Array:
        """(K eta / 2) sum_t E_t |G_i|^2, (T, N)."""
        return self.world.problem.clients * self.descent.squared / (2 * self.rate)

    @property
    def printed_drawn_part(self) -> Array:
        """(eta / 2) sum_t sum_k L^2 / p_ik, (T, N)."""
        return self.descent.lipschitz**2 * self.descent.inverse / 2

    @property
    def drawn(self) -> bool:
        """Whether clients draw what they send."""
        return self.method.M < self.world.dictionary.N


def theorems(record: PofMklRecord) -> Iterator[Theorem]:
    """Bounds of the weights against the best kernel, and of the descent against ridge fits u in a kernel's features."""
    eta_k, weights, convex = record.rate_of_weights, record.weights, Assumption("convex loss")
    kind = EXPECTED if record.drawn else SURELY
    # Theorem 1, eq. (13). The proof uses sum_i p_i L_i^2 <= 1. Hoeffding's lemma needs no bound of the losses, and
    # gives 1/8 instead of 1/2.
    regret = "sum_t L(f_hat) - min_i sum_t L_i <= ln N / eta_k + "
    printed, corrected = "eta_k T / 2", "(eta_k / 8) sum_t (max_i L_i - min_i L_i)^2"
    forms = (
        Form("printed", regret + printed, SURELY, record.printed_weights_part, (record.bounded, convex)),
        Form("corrected", regret + corrected, SURELY, record.weights_part, (convex,)),
    )
    trivial = record.at_zero - weights.best[-1] / eta_k
    yield Theorem(PAPER, "Theorem 1", "client", weights.regret / eta_k, forms, trivial, 0.5)

    # Lemma 3, eq. (23). Eq. (33) takes conditional expectations of a sum in which theta is random, and then adds them
    # like constants. The inequality therefore holds only in expectation over the draws. The corrected form has each
    # round's second moment instead of L^2 / p, and needs no Lipschitz constant.
    start = "sum_t sum_k (L_ik - L_ik(u)) <= K |u|^2 / (2 eta) + "
    printed, corrected = "(eta / 2) sum_t sum_k L^2 / p_ik", "(K eta / 2) E sum_t E_t |G_i|^2"
    of_descent = record.start + record.printed_drawn_part, record.start + record.drawn_part
    forms = (
        Form("printed", start + printed, kind, of_descent[0], record.on_descent),
        Form("corrected", "E " + start + corrected, kind, of_descent[1], record.on_descent),
    )
    left, trivial = record.descent.loss / record.rate - record.best, record.at_zero.sum() - record.best[-1]
    yield Theorem(PAPER, "Lemma 3", "kernel", left, forms, trivial, 0.5)

    # Theorem 2, eq. (14), against the best function, here in the features of one kernel. The printed form has C^2
    # instead of |u|^2, and a term eps L K T C for features that only approximate the kernel. Its C must be the sum of
    # absolute values of alpha*; the paper has the signed sum. A term lambda eps K T C^2 is missing. A comparator in the
    # features needs neither term, nor C, nor a probability, so both forms here use it.
    i = [int(record.best[-1].argmin())]
    start = "sum_t sum_k (L(f_hat) - L_ik(u)) <= K |u|^2 / (2 eta) + "
    without, last = ", without its term in eps", " + sum_k [Theorem 1]"
    right = [
        of_kernels[:, i] + of_weights.sum(axis=1, keepdims=True)
        for of_kernels, of_weights in zip(of_descent, (record.printed_weights_part, record.weights_part), strict=True)
    ]
    forms = (
        Form("printed", start + printed + last + without, kind, right[0], (record.bounded, *record.on_descent)),
        Form("corrected", "E " + start + corrected + last, kind, right[1], record.on_descent),
    )
    left = weights.mixture.sum(axis=1, keepdims=True) / eta_k - record.best[:, i]
    yield Theorem(PAPER, "Theorem 2", "all clients", left, forms, trivial[i], 0.5)


def record_of(algorithm: Any, world: World) -> PofMklRecord:
    """Run one replicate, and add up the values that the theorems need."""
    # Sums for the weights and for the descent
    rounds, clients, N = world.problem.rounds, world.problem.clients, world.dictionary.N
    rate = algorithm.step_factor * algorithm.rate(rounds)
    eta_k = rounds**-0.5 if algorithm.eta_k is None else algorithm.eta_k
    weights, descent = WeightSums.before_first_round(rounds, clients, N), DescentSums.before_first_round(rounds, N)
    for t, before, outcome, after in rounds_of(algorithm, world):
        # The mixture's loss, judged before the update
        y, present = world.problem.y[t], world.problem.present[t]
        of_mixture = (world.problem.loss.value(outcome.y_hat, y) + algorithm.lam * outcome.squared_norm())[0]
        weights.enter(t, outcome.loss[0], of_mixture, eta_k, present)
        # Probabilities of the bins, by which gradients are divided
        p = sending_odds(algorithm, before.client.log_w if algorithm.bins_by == "current" else after.client.log_w)
        loss = present[:, None] * outcome.loss[0]
        descent.enter(t, world, before.server.theta, loss, p, rate, algorithm.lam)
    u, best = best_in_features(world, np.ones(rounds), algorithm.lam)
    return PofMklRecord(algorithm, world, weights, descent, rate, eta_k, u, best)


def sending_odds(algorithm: PofMkl, log_w: Array) -> Array:
    """Probability with which each client sends each kernel's gradient, (K, N)."""
    if algorithm.xi == 1:
        return np.full(log_w.shape[1:], 1 / -(-log_w.shape[-1] // algorithm.M))
    bin_of, q = bins_of_kernels(log_w, algorithm.M, algorithm.xi)
    return np.take_along_axis(q, bin_of, axis=-1)[0]
