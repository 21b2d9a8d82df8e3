"""RF-GP: the evidence of an ensemble of Gaussian processes, by the chain rule of probabilities."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fkl.algorithms.gaussian_processes import NormalPrediction, from_lower_triangle, lower_triangle
from fkl.basics.arrays import Array
from fkl.contract.world import World
from fkl.theory.base import Assumption, Theorem, derived_form, log_mean_exp, rounds_of


@dataclass(frozen=True)
class RfGpRecord:
    """Values of one replicate for its theorem.

    Parameters
    ----------
    method : RfGp
    mixture, best : (T, K)
        sum_t -ln sum_i w_i N(y; mu_i, v_i), and min_i sum_t -ln N(y; mu_i, v_i).
    N : int
        Number of kernels.
    """

    method: Any
    mixture: Array
    best: Array
    N: int


def theorems(record: RfGpRecord) -> Iterator[Theorem]:
    """The mixture's logarithmic loss exceeds that of the best kernel by at most ln N, whatever the kernels predict.

    The loss is that of the mixture density, as in the column `log_score_mixture`. The column `log_score` has the loss
    of a normal density with the mixture's mean and variance, for which this does not hold.
    """
    personal, M = record.method.personal, record.method.M
    assumptions = (
        Assumption("clients weight kernels by their own densities", "" if personal else "algo.personal=false"),
        Assumption("no kernel is dropped", "" if M is None else f"algo.M={M}"),
    )
    statement = "sum_t -ln sum_i w_i N(y; mu_i, v_i) <= min_i sum_t -ln N(y; mu_i, v_i) + ln N"
    forms = derived_form(statement, np.full(record.mixture.shape, np.log(record.N)), assumptions)
    left = record.mixture - record.best
    yield Theorem("Chain rule of probabilities", "Evidence", "client", left, forms, exponent=0.0)


def record_of(algorithm: Any, world: World) -> RfGpRecord:
    """Run one replicate, and compute every kernel's density from the server's state before the round."""
    # Sums of logarithmic losses, of the mixture and of each kernel
    problem, bank = world.problem, world.bank
    mixture = np.zeros((problem.rounds, problem.clients))
    best, kernels = mixture.copy(), np.zeros((problem.clients, world.dictionary.N))
    for t, before, _, _ in rounds_of(algorithm, world):
        # The posterior as clients receive it, in the precision of the wire
        (x, y, share), server = problem.round(t), before.server
        theta, noise, packed = (
            _on_the_wire(world, v) for v in (server.theta, server.noise, lower_triangle(server.root))
        )
        # Densities of the targets before the round
        mean, spread = bank.gaussian(x, theta, from_lower_triangle(packed))
        density = NormalPrediction(mean, noise[:, None] * (1 + spread)).log_density(y)[0]
        log_w = (before.client.log_w if algorithm.personal else server.evidence[:, None])[0]
        of_mixture = log_mean_exp(log_w + density) - log_mean_exp(log_w)
        here = share > 0
        kernels += here[:, None] * density
        mixture[t] = (mixture[t - 1] if t else 0) - here * of_mixture
        best[t] = -kernels.max(axis=-1)
    return RfGpRecord(algorithm, mixture, best, kernels.shape[1])


def _on_the_wire(world: World, values: Array) -> Array:
    """The values as clients receive them, in the wire's precision."""
    return values.astype(world.precision).astype(np.float64)
