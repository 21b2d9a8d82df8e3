"""PF and PC: Peifer and Ribeiro, Federated Classification using Parsimonious Functions in RKHS.

Their Theorems 3 and 4 are not computed: with mu <= m / N^2 their right sides grow with the number N of samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fkl.algorithms.parsimonious.dual import Dual, Solution
from fkl.basics.arrays import Array
from fkl.conformance.identities import Identity
from fkl.contract.world import World
from fkl.theory.base import SURELY, Assumption, Form, Theorem, derived, rounds_of

PAPER = "Peifer and Ribeiro"
LARGEST_DIFFERENCE = 1e-9
"""Of alpha, relative to the largest, and of g, relative to g."""


@dataclass(frozen=True)
class Record:
    """What one replicate's theorems need, function by function. More than two classes have several.

    Parameters
    ----------
    final : tuple of Solution
        The server's.
    local : tuple of Solution
        The agents' own problems; empty for PC.
    together : tuple of Solution
        The problem of all samples, if agents solve their own.
    sums : tuple of DualSum
        The same.
    """

    final: tuple[Solution, ...]
    local: tuple[Solution, ...]
    together: tuple[Solution, ...]
    sums: tuple["DualSum", ...]


def theorems(record: Record) -> Iterator[Theorem]:
    """Duality, and what agents lose by solving their own problems if they do."""
    # Theorem 1: the problem and its dual have the same value if kernels have no point masses. The nodes of a quadrature
    # are point masses, so a gap may remain for gamma > 0. On a run the dual value is compared with the cost of a
    # function that meets all constraints, the one of eq. (8) times a number. Their ratio is 1 plus an upper bound of
    # the gap.
    statement = "g(lambda*) <= cost of alpha* times the least number with which it meets all constraints"
    forms = derived(statement, np.array([[feasible_cost(one.problem, one.alpha) for one in record.final]]))
    yield Theorem(PAPER, "Theorem 1", "function", np.array([[one.value[0] for one in record.final]]), forms)

    # Lemma 2: the dual functions of separate agents add up to that of all samples, up to their kernels' overlap. The
    # lemma is about the quadratic part of g, and needs agents' functions with disjoint supports, eq. (51). Its xi is
    # measured here, as the largest k(x_i, x_j; w) of samples of two agents that they send. The corrected form has the
    # largest entry of Q_ij, also of these samples, and adds what the threshold sqrt(2 gamma) changes. With z_i =
    # alpha_bar_i that is the integral of |sum_i min(z_i^2 / 2, gamma) - min((sum_i z_i)^2 / 2, gamma)|.
    if record.sums:
        left, printed, corrected, overlap, _ = np.array(record.sums).T
        shared = f"agents' supports overlap in {overlap.max():.3g} of all nodes" if overlap.max() > 0 else ""
        apart = "|g(lambda) - sum_i g_i(lambda_i)| <= "
        products = apart + "sum_(i < j) max |Q_ij| |mu_i|_1 |mu_j|_1 + [threshold]"
        disjoint = Assumption("disjoint supports, eq. (51)", shared)
        forms = (
            Form("printed", apart + "2 xi m L / N^2", SURELY, printed[None], (disjoint,)),
            Form("corrected", products, SURELY, corrected[None]),
        )
        yield Theorem(PAPER, "Lemma 2", "function", left[None], forms)

    # Lemma 3: if the server's function meets the constraints of all samples, its cost is that of all samples. Other
    # functions are scaled until they meet them, which bounds how much the samples that agents do not send matter.
    if record.local:
        pairs = list(zip(record.final, record.together, strict=True))
        costs = [feasible_cost(together.problem, final.alpha) for final, together in pairs]
        wrong = "" if np.isfinite(costs).all() else "a sample is on its wrong side"
        feasible = Assumption("a multiple of alpha_F meets all agents' constraints", wrong)
        statement = "g_C - g_F <= cost of alpha_F, scaled until it meets all agents' constraints, minus g_F"
        right = np.array([[cost - final.value[0] for cost, final in zip(costs, record.final, strict=True)]])
        left = np.array([[together.value[0] - final.value[0] for final, together in pairs]])
        yield Theorem(PAPER, "Lemma 3", "function", left, derived(statement, right, (feasible,)))


def feasible_cost(problem: Dual, alpha: Array) -> float:
    """Cost of alpha (1, M) times the least number, at least 1, with which it meets all constraints."""
    level = 1 - problem.eps
    least = float((level - problem.slack_of(alpha))[problem.present].min())
    return float(problem.cost(alpha * max(1.0, level / least))[0]) if least > 0 else np.inf


class DualSum(NamedTuple):
    """The dual function of all samples next to the sum of the agents' dual functions, at the agents' lambda.

    Attributes
    ----------
    left, printed, corrected : float
        Sides of Lemma 2.
    overlap : float
        Share of the nodes in the supports of several agents.
    off : float
        Difference between the left side and the integral of eq. (52), computed from kernel values, relative to g.
    """

    left: float
    printed: float
    corrected: float
    overlap: float
    off: float

    @classmethod
    def of(cls, local: Solution, together: Dual) -> "DualSum":
        """For one function's problems."""
        problem, mu = local.problem, local.mu
        quadrature, gamma, weights = problem.quadrature, problem.gamma, problem.quadrature.weights
        whole = float(together.value(mu[problem.present][None] * together.N)[0])
        apart = whole - float(local.value.sum())
        x = [of_agent[here] for of_agent, here in zip(problem.x, mu > 0, strict=True)]
        kernels = [kernel_values(quadrature, of_agent) for of_agent in x]
        z = np.array([(of * y)[of > 0] @ k for of, y, k in zip(mu, problem.y, kernels, strict=True)])
        sizes, active = mu.sum(axis=1), z**2 > 2 * gamma
        products = xi = pairs = 0.0
        for i, j in combinations(range(len(z)), 2):
            if len(x[i]) and len(x[j]):
                products += float(((kernels[i] * weights) @ kernels[j].T).max()) * sizes[i] * sizes[j]
                nearest = ((x[i][:, None] - x[j]) ** 2).sum(axis=-1).min()
                xi = max(xi, float(np.exp(-nearest / (2 * quadrature.width.max() ** 2))))
                pairs += 2 * sizes[i] * sizes[j]
        total = z.sum(axis=0)
        kept = np.minimum(z**2 / 2, gamma).sum(axis=0) - np.minimum(total**2 / 2, gamma)
        expected = -float(weights @ ((total**2 - (z**2).sum(axis=0)) / 2 + kept))
        printed = 2 * xi * float(weights @ active.any(axis=0)) * pairs
        overlap = float((active.sum(axis=0) > 1).mean())
        off = abs(apart - expected) / max(abs(whole), np.finfo(float).tiny)
        return cls(abs(apart), printed, products + float(weights @ np.abs(kept)), overlap, off)


def kernel_values(quadrature: Any, x: Array) -> Array:
    """k(x_n, s; w) at all nodes, (n, M), eq. (37)."""
    squared = np.stack([((quadrature.nodes - one) ** 2).sum(axis=1) for one in x]) if len(x) else np.empty((0, 1))
    return np.asarray(np.exp(-squared / (2 * quadrature.widths**2)))


def record_of(algorithm: Any, world: World) -> Record:
    """Play the round; agents' solutions and the server's are in the states of the last exchange."""
    states: list[Any] = []

    class Kept(type(algorithm)):  # type: ignore[misc]
        def told(self, server: Any, client: Any) -> Any:
            states.extend((server, client))
            return super().told(server, client)

    for _ in rounds_of(Kept(**vars(algorithm)), world):
        pass
    server, client = states
    final, local = server.final[0], client.local[0] if client.local else ()
    together = []
    for of_function in local:
        own = of_function.problem
        x, y = own.x[own.present], own.y[own.present]
        problem = Dual.single(own.quadrature, x, y, own.gamma, own.eps)
        together.append(algorithm.solution(problem))
    sums = (DualSum.of(own, all_samples.problem) for own, all_samples in zip(local, together, strict=True))
    return Record(final, local, tuple(together), tuple(sums))


def threshold(solution: Solution) -> float:
    """Largest difference between a model's alpha and eq. (8), relative to the largest, except next to the threshold."""
    problem, gamma = solution.problem, solution.problem.gamma
    here = problem.present[0] & (solution.lam[0] > 0)
    z = (solution.mu[0, here] * problem.y[0, here]) @ kernel_values(problem.quadrature, problem.x[0, here])
    model, found = solution.model(), np.zeros(problem.quadrature.size)
    found[model.active] = model.coefficients / problem.quadrature.weights[model.active]
    off = np.abs(found - np.where(z**2 > 2 * gamma, z, 0.0))
    clear = np.abs(z**2 - 2 * gamma) > 1e-9 * (1 + 2 * gamma)
    return float(off[clear].max(initial=0.0) / max(np.abs(z).max(initial=0.0), np.finfo(float).tiny))


def identities(record: Record) -> Iterator[Identity]:
    """Residuals of the server's model, and of the agents' dual functions."""
    statement = "alpha = alpha_bar where |alpha_bar| > sqrt(2 gamma), else 0 (Proposition 1, eqs. 8 and 9)"
    off = max(threshold(one) for one in record.final)
    yield Identity("threshold", statement, off, 0.0, LARGEST_DIFFERENCE)
    if record.sums:
        statement = (
            "g - sum_i g_i = -sum_(i < j) mu_i' Q_ij mu_j, plus what the threshold changes (eq. 52), as part of g"
        )
        off = max(one.off for one in record.sums)
        yield Identity("sum of duals", statement, off, 0.0, LARGEST_DIFFERENCE)
