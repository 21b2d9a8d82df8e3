"""FOMD-OMS: Li, Wu, Xu and King, NeurIPS 2024. The text of their theorem was not available; the bounds are derived."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.algorithms.federated.fomd_oms import FomdOms
from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.theory.base import EXPECTED, SURELY, Assumption, Theorem, derived_form, rounds_of
from fkl.theory.descent import DescentSums, best_in_features, everyone_present

PAPER = "Li, Wu, Xu and King, NeurIPS 2024"


@dataclass(frozen=True)
class FomdOmsRecord:
    """Values of one replicate for its theorems; l = (f - y)^2 has no regulariser.

    Parameters
    ----------
    method : FomdOms
    world : World
    prediction : (T, 1)
        sum_t sum_k sum_j p_j l_jk: the mean loss of A_1, which is drawn with probabilities p.
    kernels, best : (T, N)
        sum_t sum_k l_ik of each kernel, and of its u_i.
    estimates : (T, 1)
        sum_t sum_j p_j E_t c_j^2, with K^2 E_t c_j^2 = (sum_k l_jk)^2 + sum_k l_jk^2 (1 / P_j - 1).
    squared : (T, N)
        E_t |G_t|^2 of each round.
    u : (N, P)
        Ridge fits in features with |u_i| <= U_i.
    """

    method: FomdOms
    world: World
    prediction: Array
    kernels: Array
    best: Array
    estimates: Array
    squared: Array
    u: Array

    @property
    def kind(self) -> str:
        """Kind of all claims; if J = N, only A_1 is drawn."""
        return SURELY if self.method.J == self.world.dictionary.N else EXPECTED

    @property
    def squared_targets(self) -> float:
        """sum_t sum_k y^2."""
        return float((self.world.problem.y**2).sum())

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions of the selection."""
        why_not = "" if self.method.norms is None else "algo.norms"
        squared = Assumption("l = (f - y)^2", "" if self.method.loss == "square" else f"algo.loss={self.method.loss}")
        return (everyone_present(self.world), squared, Assumption("balls of the same radius", why_not))

    @property
    def of_selection(self) -> Array:
        """Right-hand side of the bound Selection, (T, 1)."""
        clients, N, rounds = self.world.problem.clients, self.world.dictionary.N, self.world.problem.rounds
        rate = self.method.rate(N, rounds, clients) / self.method.largest_losses(N)[0]
        return clients * (np.log(N) / rate + rate / 2 * self.estimates)

    @property
    def of_descent(self) -> Array:
        """Right-hand side of the bound Descent, (T, N)."""
        clients, N, rounds = self.world.problem.clients, self.world.dictionary.N, self.world.problem.rounds
        steps = np.array([self.method.step_sizes(N, t, clients) for t in range(rounds)])
        start = (self.u**2).sum(axis=-1) / (2 * steps[0])
        later = 2 * self.method.bounds(N) ** 2 * (1 / steps - 1 / steps[0])
        return clients * (start + later + np.cumsum(steps * self.squared, axis=0) / 2)


def theorems(record: FomdOmsRecord) -> Iterator[Theorem]:
    """Bounds of the selected kernel, and of every kernel's descent against fits u in features with |u| <= U."""
    kind, assumptions, targets = record.kind, record.assumptions, record.squared_targets
    # The kernel that predicts is drawn with exponential weights of estimated losses
    statement = (
        "E sum_t sum_k (l(A_1) - l_ik) <= K [C ln N / eta + (eta / (2 C)) E sum_t sum_j p_j E_t c_j^2], C = (U + Y)^2"
    )
    forms = derived_form(statement, record.of_selection, assumptions, kind)
    left = record.prediction - record.kernels
    yield Theorem(PAPER, "Selection", "kernel", left, forms, targets - record.kernels[-1], 0.5)

    # |theta_t - u| is at most 2 U, and the steps lambda_t do not increase
    statement = (
        "E sum_t sum_k (l_ik - l_ik(u)) <= K [|u|^2 / (2 lambda_1) + 2 U^2 (1 / lambda_T - 1 / lambda_1)"
        " + (1/2) E sum_t lambda_t E_t |G_t|^2]"
    )
    forms = derived_form(statement, record.of_descent, assumptions[:2], kind)
    trivial = targets - record.best[-1]
    yield Theorem(PAPER, "Descent", "kernel", record.kernels - record.best, forms, trivial, 0.5)

    i = [int(record.best[-1].argmin())]
    statement = "E sum_t sum_k (l(A_1) - l_ik(u)) <= [Selection] + [Descent]"
    forms = derived_form(statement, record.of_selection + record.of_descent[:, i], assumptions, kind)
    yield Theorem(PAPER, "Regret", "all clients", record.prediction - record.best[:, i], forms, trivial[i], 0.5)


def record_of(method: Any, world: World) -> FomdOmsRecord:
    """Run one replicate, and add up the values that the theorems need."""
    # Sums of losses, of the prediction, and of estimated losses
    rounds, K, N = world.problem.rounds, world.problem.clients, world.dictionary.N
    descent, prediction, estimates = (
        DescentSums.before_first_round(rounds, N),
        np.zeros((rounds, 1)),
        np.zeros((rounds, 1)),
    )
    for t, before, _, _ in rounds_of(method, world):
        # Losses of all kernels before the round, also of those that were not drawn
        (x, y, _), theta, p = world.problem.round(t), before.server.theta, np.exp(before.server.log_p[0])
        loss = ((world.bank.predict(x, theta) - y[:, None]) ** 2)[0]
        P = np.ones(N) if method.J == N else ((N - method.J) * p + method.J - 1) / (N - 1)
        descent.enter(t, world, theta, loss, np.broadcast_to(P, loss.shape), 1.0, 0.0)
        prediction[t] = (loss @ p).sum()
        # The second moment of the estimated losses under p
        estimates[t] = p @ (loss.sum(axis=0) ** 2 + (loss**2).sum(axis=0) * (1 / P - 1)) / K**2
    u, best = best_in_features(world, np.ones(rounds), 0.0, method.bounds(N))
    of_predictions, of_estimates = prediction.cumsum(axis=0), estimates.cumsum(axis=0)
    squared = np.diff(descent.squared, axis=0, prepend=0)
    return FomdOmsRecord(method, world, of_predictions, descent.loss, best, of_estimates, squared, u[0])
