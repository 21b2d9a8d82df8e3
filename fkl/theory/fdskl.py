"""FDSKL and DSG: Gu et al., Federated Doubly Stochastic Kernel Learning for Vertically Partitioned Data, KDD 2020."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fkl.algorithms.vertical.dsg import Dsg, cosine_features
from fkl.basics.arrays import Array
from fkl.basics.pointwise import PointwiseLoss, pointwise_loss
from fkl.conformance.identities import Identity
from fkl.conformance.isolated import play_apart
from fkl.conformance.party_process import PartyObject
from fkl.contract.world import World
from fkl.theory.base import EXPECTED, Assumption, Form, Theorem, rounds_of

PAPER = "Gu et al., KDD 2020"
LIPSCHITZ = {"logistic": 0.25, "smooth_hinge": 1.0, "square": 2.0}
"""Lipschitz constant of a loss's derivative with respect to f."""
MOST_ROWS = 3000
"""Largest number of training rows for which the best function f* is computed."""
WORK = 2 * 10**6
"""Largest number of features for a check of an iteration's coefficients; later iterations are not checked."""
STEPS = 100
"""Maximum number of Newton steps to f*."""
PLAYED = {"iterations": 10, "batch": 8, "features": 4, "marks": 1}
"""Largest sizes for which the workers' protocol is run."""
LARGEST_DIFFERENCE = 1e-3
"""Largest difference of coefficients, relative to the largest coefficient; single precision leaves 1e-5."""
KAPPA, PHI = 1.0, 2.0
"""Bounds of kernel values, and of products of two features sqrt(2) cos(w'x + b)."""


@dataclass(frozen=True)
class FdsklRecord:
    """Values of one replicate for its theorem.

    Parameters
    ----------
    method : Dsg
    world : World
    iterations : (T,)
        Number of iterations up to each evaluation.
    distance : (T, 1) or None
        Mean of |f_t(x) - f*(x)|^2 over test rows x; None if f* is not computed.
    zero, norm : float
        The same distance for f = 0, and |f*|^2 in the kernel's space.
    slope : float
        Largest |L'| in the checked iterations.
    coefficients : float
        Largest difference between the coefficients and those of the declared step.
    """

    method: Dsg
    world: World
    iterations: Array
    distance: Array | None
    zero: float
    norm: float
    slope: float
    coefficients: float

    @property
    def M(self) -> float:
        """Bound of |L'|."""
        return 1.0 if pointwise_loss(self.method.loss).classes else self.slope

    def right_side(self, lipschitz: float) -> Array:
        """Right-hand side of eq. (9) with (10) and (18) after each evaluation, (T, 1), with this constant in G_2."""
        gamma, lam = self.method.gamma, self.method.lam
        features = self.M**2 * (np.sqrt(KAPPA) + np.sqrt(PHI)) ** 2 * gamma / lam  # C^2
        samples = (1 - gamma * lam) ** self.iterations * self.norm + gamma * self.B(lipschitz)
        return (2 * features + 2 * KAPPA * samples)[:, None]

    def B(self, lipschitz: float) -> float:
        """The paper's B; gamma B is the limit of recursion (14)."""
        lam = self.method.lam
        G_1 = 2 * KAPPA * self.M**2 / lam
        G_2 = lipschitz * np.sqrt(KAPPA) * self.M * (np.sqrt(KAPPA) + np.sqrt(PHI)) / (2 * lam**1.5)
        return float((np.sqrt(G_2**2 + G_1) + G_2) ** 2)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions of both forms."""
        method = self.method
        bounded = f"(f - y)^2 has no M; |L'| reaches {self.slope:.3g}"
        return (
            Assumption("constant gamma", "" if method.rate == "constant" else f"algo.rate={method.rate}"),
            Assumption("new features in every iteration", "" if method.bank is None else f"algo.bank={method.bank}"),
            Assumption("|L'| <= M", "" if pointwise_loss(method.loss).classes else bounded),
            Assumption("independent draws of samples", "" if method.rows == "iid" else f"algo.rows={method.rows}"),
        )


def theorems(record: FdsklRecord) -> Iterator[Theorem]:
    """Theorem 4 (Theorem 2 of the appendix), if f* is known: f_t(x) approaches the best function f*.

    The theorem requires gamma and t such that the right side is at most eps. This is the right side itself, for the
    run's gamma and t: eq. (9) with eqs. (10) and (18). The printed G_2 lacks the Lipschitz constant l of L', which
    beta_3 in eq. (14) has. The printed bound is therefore too large for the logistic loss, with l = 1/4, and too small
    for the square loss, with l = 2.
    """
    if record.distance is None:
        return
    statement = "E |f_t(x) - f*(x)|^2 <= 2 C^2 + 2 ((1 - gamma lam)^t |f*|^2 + gamma B)"
    corrected = record.right_side(LIPSCHITZ[record.method.loss])
    forms = (
        Form("printed", statement, EXPECTED, record.right_side(1.0), record.assumptions),
        Form("corrected", f"{statement}, with l in G_2", EXPECTED, corrected, record.assumptions),
    )
    yield Theorem(PAPER, "Theorem 4", "mean over test rows", record.distance, forms, np.array([record.zero]))


def best_function(gram: Array, y: Array, loss: PointwiseLoss, lam: float) -> Array:
    """Coefficients a (n,) of f* = sum_i a_i k(x_i, .), which minimises mean L(f(x), y) + lam |f|^2 / 2.

    It solves lam n a + L'(Ka, y) = 0 by Newton's method with backtracking.
    """
    # Newton's method with a step that is halved until the cost falls
    n, a = len(y), np.zeros(len(y))

    def cost(a: Array) -> float:
        f = gram @ a
        return float(loss.value(f, y).mean() + lam * (a @ f) / 2)

    for _ in range(STEPS):
        f, h = gram @ a, 1e-5
        slope = lam * n * a + loss.derivative(f, y)
        curvature = (loss.derivative(f + h, y) - loss.derivative(f - h, y)) / (2 * h)
        step = np.linalg.solve(lam * n * np.eye(n) + curvature[:, None] * gram, slope)
        share, before = 1.0, cost(a)
        while cost(a - share * step) > before and share > 1e-10:
            share /= 2
        if share <= 1e-10 or np.abs(slope).max() < 1e-9:
            break
        a = a - share * step
    return a


def record_of(algorithm: Any, world: World) -> FdsklRecord:
    """Run one replicate, check its coefficients, and compare f with the best function."""
    # Everything that the theorem compares, filled round by round
    problem, common, rounds = world.problem, world.common.replicate(0), world.problem.rounds
    loss, lam = pointwise_loss(algorithm.loss), algorithm.lam
    distance, best, norm = np.empty((rounds, 1)), None, np.nan
    iterations = np.array([algorithm.iterations_after(t) for t in range(rounds)])
    off, steepest, alpha, done = 0.0, 0.0, np.zeros((algorithm.iterations, algorithm.features)), 0
    phases: list[Array] = []
    for t, _, outcome, after in rounds_of(algorithm, world):
        learner, until = after.learners[0], int(iterations[t])
        x, training = problem.x, learner.split.training
        # The best function is known if the data are small enough
        if t == 0 and isinstance(x, np.ndarray) and len(training) <= MOST_ROWS and lam > 0:
            gram = common.dictionary.gram(0, x[training], x[training])
            a = best_function(gram, problem.y[training], loss, lam)
            best, norm = common.dictionary.gram(0, x[learner.split.test], x[training]) @ a, float(a @ gram @ a)
        if best is not None:
            distance[t] = ((outcome.f[0]() - best) ** 2).mean()
        # Check coefficients of the first iteration since the last evaluation, and earlier ones
        shrunk = 1 - lam * np.array([algorithm.gamma_at(s) for s in range(done, until)])
        expected, rows = alpha[:done] * shrunk.prod(), learner.batches[done]
        coefficients = learner.alpha[:done]
        # The first new coefficient, from all features so far
        if (done + 1) * len(rows) * algorithm.features <= WORK:
            phi = _all_features(algorithm, common, learner, problem.quick_x[rows], done + 1, phases)
            slope = loss.derivative(phi[:, : done * algorithm.features] @ alpha[:done].ravel(), problem.y[rows])
            new = -algorithm.gamma_at(done) * shrunk[1:].prod() * (slope @ phi[:, done * algorithm.features :])
            expected = np.concatenate([expected, new[None] / (len(rows) * algorithm.features)])
            coefficients, steepest = learner.alpha[: done + 1], max(steepest, float(np.abs(slope).max()))
        if len(expected) and expected.any():
            off = max(off, float(np.abs(coefficients - expected).max() / np.abs(expected).max()))
        alpha, done = learner.alpha.copy(), until
    zero = np.nan if best is None else float((best**2).mean())
    return FdsklRecord(algorithm, world, iterations, None if best is None else distance, zero, norm, steepest, off)


def _all_features(algorithm: Dsg, common: Any, learner: Any, x: Any, until: int, phases: list[Array]) -> Array:
    """Features of all iterations before `until` at samples x, (n, until * D); appends to the known phases."""
    draws = [t % algorithm.draws for t in range(until)]
    phases += [algorithm.phases(common, draws[t], learner.holders[t]) for t in range(len(phases), until)]
    return cosine_features(x, algorithm.directions(common, *draws), np.concatenate(phases[:until]))


def protocol_difference(algorithm: Any, world: World) -> float:
    """Largest difference between f of workers that send letters and DSG's after few iterations, relative to f."""
    few = replace(algorithm, **{key: min(most, getattr(algorithm, key)) for key, most in PLAYED.items()}, bank=None)
    common, problem = replace(world.common.replicate(0), precision="float64"), world.problem
    held, parties = few.dealt(common, problem)
    parts, _ = play_apart(few, parties, PartyObject)
    learner = Dsg.first_learner(few, common, problem)
    few.advance(common, problem, learner, few.iterations)
    pooled = few.values_on_tests(common, problem, learner)
    f = few.assembled(parts, held).decision(problem.x[learner.split.test])
    return float(np.abs(f - pooled).max() / np.abs(pooled).max())


def identities(record: FdsklRecord) -> Iterator[Identity]:
    """Identities about the coefficients and about the protocol."""
    method = record.method
    statement = "alpha_s(t) = -gamma mean(L'_s phi_s) (1 - gamma lam)^(t - s), at the iterations after each evaluation"
    yield Identity("coefficients", statement, record.coefficients, 0.0, LARGEST_DIFFERENCE)
    if not method.pooled:
        statement = "workers that mask their sums still find w'x + b, so f of FDSKL and of DSG are equal (Lemma 1)"
        yield Identity("protocol", statement, protocol_difference(method, record.world), 0.0, 1e3 * method.tolerance)
