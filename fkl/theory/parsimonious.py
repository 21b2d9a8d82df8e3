"""PF and PC: Peifer and Ribeiro, Federated Classification using Parsimonious Functions in RKHS."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ks_2samp

from fkl.algorithms.parsimonious.dual import Dual, Solution
from fkl.basics.arrays import Array
from fkl.conformance.identities import Identity
from fkl.contract.world import World
from fkl.theory.base import SURELY, Assumption, Form, Theorem, derived_form, rounds_of

PAPER = "Peifer and Ribeiro"
LARGEST_DIFFERENCE = 1e-9
"""Largest difference in alpha, relative to the largest alpha, and in g, relative to g."""
BERRY_ESSEEN = 0.4748
"""The smallest known constant c (Shevtsova, 2011)."""
SAME = 0.01
"""Two agents' samples count as differently distributed if a test of all their features has a smaller p-value."""


@dataclass(frozen=True)
class ParsimoniousRecord:
    """Values of one replicate for its theorems, function by function. More than two classes need several functions.

    Parameters
    ----------
    final : tuple of Solution
        Solutions of the server.
    local : tuple of Solution
        Solutions of the agents' own problems; empty for PC.
    joint : tuple of Solution
        Solutions of the problem of all samples, if agents solve their own.
    sums : tuple of DualSum
        Sums of the agents' dual functions, at the agents' lambda.
    joint_sums : tuple of DualSum
        The same sums at the lambda of the problem of all samples.
    """

    final: tuple[Solution, ...]
    local: tuple[Solution, ...]
    joint: tuple[Solution, ...]
    sums: tuple["DualSum", ...]
    joint_sums: tuple["DualSum", ...] = ()


def theorems(record: ParsimoniousRecord) -> Iterator[Theorem]:
    """Duality, and the loss from agents that solve their own problems, if they do."""
    # Theorem 1: the problem and its dual have the same value if kernels have no point masses. The nodes of a quadrature
    # are point masses, so a gap may remain for gamma > 0. On a run, the dual value is compared with the cost of a
    # function that meets all constraints: the function of eq. (8) times a number. Their ratio is 1 plus an upper bound
    # of the gap.
    statement = "g(lambda*) <= cost of alpha* times the least number with which it meets all constraints"
    forms = derived_form(statement, np.array([[feasible_cost(one.problem, one.alpha) for one in record.final]]))
    yield Theorem(PAPER, "Theorem 1", "function", np.array([[one.value[0] for one in record.final]]), forms)

    # Lemma 2: the dual functions of separate agents sum to that of all samples, up to their kernels' overlap. The lemma
    # is about the quadratic part of g, and assumes agents' functions with disjoint supports, eq. (51). Its xi is
    # measured here, as the largest k(x_i, x_j; w) over samples that two agents send. The corrected form has the largest
    # entry of Q_ij, over the same samples, and adds the change by the threshold sqrt(2 gamma). With z_i = alpha_bar_i,
    # the change is the integral of |sum_i min(z_i^2 / 2, gamma) - min((sum_i z_i)^2 / 2, gamma)|.
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
        yield from third_theorem(record, disjoint)
        if len(record.local[0].alpha) > 1:
            yield fourth_theorem(record)

    # Lemma 3: if the server's function meets the constraints of all samples, its cost is that of all samples. Other
    # functions are scaled until they meet the constraints, which bounds the effect of samples that agents do not send.
    if record.local:
        pairs = list(zip(record.final, record.joint, strict=True))
        costs = [feasible_cost(joint.problem, final.alpha) for final, joint in pairs]
        wrong = "" if np.isfinite(costs).all() else "a sample is on its wrong side"
        feasible = Assumption("a multiple of alpha_F meets all agents' constraints", wrong)
        statement = "g_C - g_F <= cost of alpha_F, scaled until it meets all agents' constraints, minus g_F"
        right = np.array([[cost - final.value[0] for cost, final in zip(costs, record.final, strict=True)]])
        left = np.array([[joint.value[0] - final.value[0] for final, joint in pairs]])
        yield Theorem(PAPER, "Lemma 3", "function", left, derived_form(statement, right, (feasible,)))


def third_theorem(record: ParsimoniousRecord, disjoint: Assumption) -> Iterator[Theorem]:
    """Theorem 3: the alpha of all samples is close to the sum of separate agents' alphas."""
    # The printed form has alpha_bar instead of alpha, and its mu, the smallest eigenvalue of Q, is at most m / N^2. The
    # corrected form needs no mu. A node subtracts (z^2 / 2 - gamma)_+ from g, where z = alpha_bar. This is convex, and
    # above its tangent at z_C by at least (e(z) - e(z_C))^2 / 2, where e(z) is the part of z beyond sqrt(2 gamma). So
    # the integral of (e(z) - e(z_C))^2 is at most 2 (g(lambda_C) - g(lambda)), which Lemma 2 bounds at both lambdas.
    # The terms `unsolved` are the gaps of both solutions.
    sides, rich = [], True
    for agents, whole, *sums in zip(record.local, record.joint, record.sums, record.joint_sums, strict=True):
        weights, beyond = whole.problem.quadrature.weights, np.sqrt(2 * whole.problem.gamma)
        mu, positive = least_eigenvalue(whole, 0)
        rich = rich and positive
        left = np.abs(whole.alpha[0] - agents.alpha.sum(axis=0)).max()
        right = 2 * np.sqrt(max(one.printed for one in sums) / (mu * whole.problem.N[0, 0]))
        z = [replace(one.problem, gamma=0.0).alpha(one.lam).sum(axis=0) for one in (agents, whole)]
        e, e_whole = (np.sign(one) * np.maximum(np.abs(one) - beyond, 0) for one in z)
        unsolved = [max(float((one.cost - one.value).sum()), 0.0) for one in (agents, whole)]
        bound = np.sqrt(2 * unsolved[1]) + np.sqrt(2 * (sum(one.corrected for one in sums) + sum(unsolved)))
        mean = [np.sqrt(weights @ one**2) for one in (e - e_whole, e_whole)]
        sides.append([left, right, np.abs(whole.alpha[0]).max(), mean[0], bound, mean[1]])
    left, right, alone, apart, bound, size = np.array(sides).T
    statement = "|alpha_C - sum_i alpha_i| <= 2 sqrt(2 xi m L / (mu N)) / N"
    forms = (Form("printed", statement, SURELY, right[None], (disjoint, second_hypothesis(rich))),)
    yield Theorem(PAPER, "Theorem 3", "function", left[None], forms, alone)
    statement = "integral of (e(alpha_bar_C) - e(sum_i alpha_bar_i))^2 <= 2 (right sides of Lemma 2 at both lambdas)"
    forms = (Form("corrected", f"root of the {statement}", SURELY, bound[None]),)
    yield Theorem(PAPER, "Theorem 3, root mean square", "function", apart[None], forms, size)


def fourth_theorem(record: ParsimoniousRecord) -> Theorem:
    """Theorem 4: agents with the same distribution have nearly the same alpha; compared where two differ most."""
    sides, rich, least = [], True, 1.0
    for agents in record.local:
        problem, alpha, weights = agents.problem, agents.alpha, agents.problem.quadrature.weights
        x = [of_agent[here] for of_agent, here in zip(problem.x, problem.present, strict=True)]
        products = [  # |lambda(x) y k(x, s; w)|
            lam[here][:, None] * kernel_values(problem.quadrature, of_agent)
            for lam, here, of_agent in zip(agents.lam, problem.present, x, strict=True)
        ]
        mus, positive = zip(*(least_eigenvalue(agents, agent) for agent in range(len(x))), strict=True)
        rich = rich and all(positive)
        for i, j in combinations(range(len(x)), 2):
            node = np.abs(alpha[i] - alpha[j]).argmax()
            values = np.concatenate([products[i][:, node], products[j][:, node]])
            N, M = min(len(x[i]), len(x[j])), max(weights @ alpha[i] ** 2, weights @ alpha[j] ** 2)
            skew = np.mean(values**3) / max(np.mean(values**2) ** 1.5, np.finfo(float).tiny)
            right = 2 * (2 * np.sqrt(M / (min(mus[i], mus[j]) * N**1.5)) + BERRY_ESSEEN * skew / np.sqrt(N))
            sides.append([np.abs(alpha[i] - alpha[j])[node], right, np.abs(alpha[[i, j]]).max()])
            least = min(least, *(ks_2samp(one, other).pvalue for one, other in zip(x[i].T, x[j].T, strict=True)))
    left, right, alone = np.array(sides).T
    p = min(1.0, least * len(sides) * problem.x.shape[-1])
    text, differ = "agents observe the same distribution", f"features differ between two agents (p = {p:.2g})"
    same = Assumption(text, differ) if p < SAME else Assumption(text, unknown=True)
    statement = "|alpha_i - alpha_j| <= 2 (2 sqrt(M / (mu N^1.5)) + c rho / (sigma^3 sqrt(N)))"
    forms = (Form("printed", statement, SURELY, right[None], (same, second_hypothesis(rich))),)
    return Theorem(PAPER, "Theorem 4", "two agents", left[None], forms, alone)


def least_eigenvalue(solution: Solution, number: int) -> tuple[float, bool]:
    """The mu of eq. (24) of one problem, at least the rounding error, and whether it is above the rounding error."""
    problem, active = solution.problem, solution.alpha[number] != 0
    k = kernel_values(problem.quadrature, problem.x[number, problem.present[number]])[:, active]
    values = np.linalg.eigvalsh((k * problem.quadrature.weights[active]) @ k.T) / len(k) ** 2
    rounding = max(len(k) * np.finfo(float).eps * values[-1], np.finfo(float).tiny)
    return max(float(values[0]), rounding), bool(values[0] > rounding)


def second_hypothesis(rich: bool) -> Assumption:
    """Hypothesis 2, which holds if `rich`."""
    return Assumption("Hypothesis 2: the least eigenvalue mu of Q is above 0", "" if rich else "it is 0 up to rounding")


def feasible_cost(problem: Dual, alpha: Array) -> float:
    """Cost of alpha (1, M), scaled by the least factor >= 1 with which it meets all constraints."""
    level = 1 - problem.eps
    least = float((level - problem.slack_of(alpha))[problem.present].min())
    return float(problem.primal_cost(alpha * max(1.0, level / least))[0]) if least > 0 else np.inf


class DualSum(NamedTuple):
    """The dual function of all samples compared with the sum of the agents' dual functions, at the same lambda.

    Attributes
    ----------
    left, printed, corrected : float
        Sides of Lemma 2.
    overlap : float
        Share of nodes that are in the supports of several agents.
    off : float
        Difference between the left side and the integral of eq. (52), computed from kernel values, relative to g.
    """

    left: float
    printed: float
    corrected: float
    overlap: float
    off: float

    @classmethod
    def compare_problems(cls, problem: Dual, mu: Array, joint: Dual) -> "DualSum":
        """Compare one function's problems at the agents' lambda = N mu."""
        # The dual functions of the agents, and that of all samples together
        quadrature, gamma, weights = problem.quadrature, problem.gamma, problem.quadrature.weights
        whole = float(joint.value(mu[problem.present][None] * joint.N)[0])
        apart = whole - float(problem.value(mu * problem.N).sum())
        # Only samples with mu > 0 matter
        x = [of_agent[here] for of_agent, here in zip(problem.x, mu > 0, strict=True)]
        kernels = [kernel_values(quadrature, of_agent) for of_agent in x]
        z = np.array([(of * y)[of > 0] @ k for of, y, k in zip(mu, problem.y, kernels, strict=True)])
        sizes, active = mu.sum(axis=1), z**2 > 2 * gamma
        products = xi = pairs = 0.0
        # Largest overlap of two agents' kernels
        for i, j in combinations(range(len(z)), 2):
            if len(x[i]) and len(x[j]):
                products += float(((kernels[i] * weights) @ kernels[j].T).max()) * sizes[i] * sizes[j]
                nearest = ((x[i][:, None] - x[j]) ** 2).sum(axis=-1).min()
                xi = max(xi, float(np.exp(-nearest / (2 * quadrature.width.max() ** 2))))
                pairs += 2 * sizes[i] * sizes[j]
        # The change by the threshold, and its expected sum
        total = z.sum(axis=0)
        kept = np.minimum(z**2 / 2, gamma).sum(axis=0) - np.minimum(total**2 / 2, gamma)
        expected = -float(weights @ ((total**2 - (z**2).sum(axis=0)) / 2 + kept))
        printed = 2 * xi * float(weights @ active.any(axis=0)) * pairs
        overlap = float((active.sum(axis=0) > 1).mean())
        off = abs(apart - expected) / max(abs(whole), np.finfo(float).tiny)
        return cls(abs(apart), printed, products + float(weights @ np.abs(kept)), overlap, off)


def kernel_values(quadrature: Any, x: Array) -> Array:
    """Kernel values k(x_n, s; w) at all nodes, (n, M), eq. (37)."""
    squared = np.stack([((quadrature.nodes - one) ** 2).sum(axis=1) for one in x]) if len(x) else np.empty((0, 1))
    return np.asarray(np.exp(-squared / (2 * quadrature.widths**2)))


def record_of(algorithm: Any, world: World) -> ParsimoniousRecord:
    """Run the round; the solutions of agents and server are in the states of the last exchange."""
    # The method's own function gets the states, which a run does not return
    states: list[Any] = []

    class Kept(type(algorithm)):  # type: ignore[misc]
        def told(self, server: Any, client: Any) -> Any:
            states.extend((server, client))
            return super().told(server, client)

    for _ in rounds_of(Kept(**vars(algorithm)), world):
        pass
    server, client = states
    final, local = server.final[0], client.local[0] if client.local else ()
    # Solve with all agents' samples together
    joint = []
    for of_function in local:
        agents = of_function.problem
        x, y = agents.x[agents.present], agents.y[agents.present]
        problem = Dual.single_problem(agents.quadrature, x, y, agents.gamma, agents.eps)
        joint.append(algorithm.solution(problem))
    # Compare both, at the agents' multipliers and at those of all samples
    sums, joint_sums = [], []
    for agents, whole in zip(local, joint, strict=True):
        mu = np.zeros_like(agents.mu)
        mu[agents.problem.present] = whole.mu[0]
        sums.append(DualSum.compare_problems(agents.problem, agents.mu, whole.problem))
        joint_sums.append(DualSum.compare_problems(agents.problem, mu, whole.problem))
    return ParsimoniousRecord(final, local, tuple(joint), tuple(sums), tuple(joint_sums))


def threshold_difference(solution: Solution) -> float:
    """Largest difference between a model's alpha and eq. (8), relative to alpha, except close to the threshold."""
    problem, gamma = solution.problem, solution.problem.gamma
    here = problem.present[0] & (solution.lam[0] > 0)
    z = (solution.mu[0, here] * problem.y[0, here]) @ kernel_values(problem.quadrature, problem.x[0, here])
    model, alpha = solution.model(), np.zeros(problem.quadrature.size)
    alpha[model.active] = model.coefficients / problem.quadrature.weights[model.active]
    off = np.abs(alpha - np.where(z**2 > 2 * gamma, z, 0.0))
    clear = np.abs(z**2 - 2 * gamma) > 1e-9 * (1 + 2 * gamma)
    return float(off[clear].max(initial=0.0) / max(np.abs(z).max(initial=0.0), np.finfo(float).tiny))


def identities(record: ParsimoniousRecord) -> Iterator[Identity]:
    """Identities about the server's model, and about the agents' dual functions."""
    statement = "alpha = alpha_bar where |alpha_bar| > sqrt(2 gamma), else 0 (Proposition 1, eqs. 8 and 9)"
    off = max(threshold_difference(one) for one in record.final)
    yield Identity("threshold", statement, off, 0.0, LARGEST_DIFFERENCE)
    if record.sums:
        statement = (
            "g - sum_i g_i = -sum_(i < j) mu_i' Q_ij mu_j, plus the change by the threshold (eq. 52), relative to g"
        )
        off = max(one.off for one in record.sums)
        yield Identity("sum of duals", statement, off, 0.0, LARGEST_DIFFERENCE)
