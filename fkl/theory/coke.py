"""COKE and DKLA: Xu et al., COKE: Communication-Censored Decentralized Kernel Learning, JMLR 22 (2021)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from fkl.basics.arrays import Array
from fkl.conformance.identities import Identity
from fkl.contract.world import World
from fkl.theory.base import SURELY, Assumption, Form, Theorem, derived_form, rounds_of

PAPER = "Xu et al., JMLR 2021"
ROUNDED = {"float32": 1e-12, "float64": 0.0}
"""Part of the first bound that rounding of messages may leave as distance; 1e-13 was observed."""
CURVATURE = {"square": (2.0, 2.0), "logistic": (0.0, 0.25)}
"""Smallest and largest second derivative of a loss with respect to f."""
NU = 1 + np.geomspace(1e-8, 1e8, 20001)
"""Values of nu > 1; the theorem's rate uses the best of them."""
ROWS = 100
"""Number of training samples at which functions are compared."""
LARGEST_RESIDUAL = 1e-7
"""Largest residual of both identities, relative to the largest dual variable or gradient; rounding leaves 1e-13."""


@dataclass(frozen=True)
class CokeRecord:
    """Values of one replicate for its theorems. Theta and gamma are (K, P), and Theta* has K equal rows.

    Parameters
    ----------
    method : Dkla
    world : World
    distance, functions : (T, 1)
        |Theta^k - Theta*|_F^2, and the largest |f^k(x) - f*(x)|_2 over samples x, where f(x) has an entry per agent.
    V, printed_V : (T + 1,)
        rho |z^k - z*|^2 + |beta^k - beta*|^2 / rho with z = S_+'Theta / 2, and the same with Theta instead of z.
    most : float
        Largest |f*(x)|_2.
    features : float
        Largest |phi(x)|.
    optimum : float
        |Theta*|_F^2.
    m, M : float
        Smallest and largest eigenvalue of the Hessians of the agents' costs.
    smin, smax : float
        Squares of the smallest non-zero singular value of S_-, and of the largest of S_+.
    duals, stationary : float
        Residuals of the identities.
    """

    method: Any
    world: World
    distance: Array
    functions: Array
    V: Array
    printed_V: Array
    most: float
    features: float
    optimum: float
    m: float
    M: float
    smin: float
    smax: float
    duals: float
    stationary: float

    def contraction_factor(self, power: int) -> float:
        """1 / (1 + delta), by which V falls in each iteration. `power` is the exponent of sigma_min^2 next to M_R^2."""
        rho = self.method.rho
        first = (NU - 1) * self.smin / (NU * self.smax)
        second = self.m / (rho / 4 * self.smax + NU / rho * self.M**2 * self.smin**power)
        return float(1 / (1 + np.minimum(first, second).max()))

    @property
    def common(self) -> tuple[Assumption, ...]:
        """Assumptions of all bounds."""
        return (
            Assumption("Assumption 1: the graph is connected"),
            Assumption("Assumption 2: the agents' costs are strongly convex", "" if self.m > 0 else "m_R = 0"),
            Assumption(
                "all agents and links are always up",
                "agents miss iterations, or links are down" if self.world.changes else "",
            ),
        )

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions of the bounds about DKLA."""
        v = getattr(self.method, "v", 0.0)
        return *self.common, Assumption(
            "all agents send in all iterations", f"algo.v={v:g} censors messages" if v else ""
        )

    @property
    def censored(self) -> Array:
        """Bounds of COKE's sqrt(V) before each iteration, (T, 1), where V has theta_hat instead of theta.

        An iteration is an iteration of DKLA, which multiplies sqrt(V) by at most (1 + delta)^(-1/2). Then e_i =
        theta_hat_i - theta_i moves theta by e_i and beta by rho S_-'e / 2. In the norm sqrt(V), this is sqrt(rho sum_i
        d_i |e_i|^2) with degrees d_i, since S_+ S_+' + S_- S_-' is 4 times the degrees. Censoring ensures |e_i| <= h(k)
        = v mu^k, or its square root.
        """
        # The threshold of each iteration, in the norm of V
        assert self.world.topology is not None
        method, degrees = self.method, self.world.topology.degree.sum()
        h = method.v * method.mu ** np.arange(1.0, len(self.distance) + 1)
        moved = np.sqrt(method.rho * degrees) * (np.sqrt(h) if method.censored == "squared_norm" else h)
        # Each iteration shrinks the root by the rate, and censoring adds at most `moved`
        rate = np.sqrt(self.contraction_factor(-1))
        roots = accumulate(moved[:-1], lambda root, more: rate * root + more, initial=np.sqrt(self.V[0]))
        return np.array([*roots])[:, None]

    @property
    def balanced(self) -> Assumption:
        """Assumption 3; the proof does not use it."""
        count = self.world.training.count
        apart = float((count.max() - count.min()) / count.min())
        text = "Assumption 3: (max T_i - min T_i) / min T_i < 10"
        return Assumption(text, f"it is {apart:.3g}" if apart >= 10 else "")


def theorems(record: CokeRecord) -> Iterator[Theorem]:
    """Linear convergence of all agents' theta and functions to the optimum; COKE's rate is derived here."""
    # Theorem 4, eqs. (29) and (30). Two slips of the printed form are corrected: sigma_min^2(S_-) next to M_R^2 must be
    # sigma_min^-2, as in Theorem 5, and V must have z = S_+'Theta / 2 instead of Theta. m_R and M_R are eigenvalues of
    # the Hessians, (2 / T_i) Phi Phi' + (2 lam / N) I. Remark 3 has their squares, and 1 / T_i.
    k, rounded = np.arange(len(record.distance))[:, None], ROUNDED[record.world.precision]
    statement, on_all = "|Theta^k - Theta*|_F^2 <= V_0 / (m_R (1 + delta)^(k - 1))", record.assumptions
    changed = ", with sigma_min^-2 in delta and S_+'Theta / 2 in V"
    printed = record.printed_V[0] / record.m * (record.contraction_factor(1) ** k + rounded)
    corrected = record.V[0] / record.m * (record.contraction_factor(-1) ** k + rounded)
    forms = (
        Form("printed", statement, SURELY, printed, on_all),
        Form("corrected", statement + changed, SURELY, corrected, on_all),
    )
    yield Theorem(PAPER, "Theorem 4", "all agents", record.distance, forms, np.array([record.optimum]))

    # Theorem 1 by eq. (34), which lacks a square root. It also assumes |phi(x)| <= 1, which holds for pairs of sine and
    # cosine, but not for cosines with phases. V goes to 0 by Theorem 4, so the corrected form implies the limit, eq.
    # (22).
    too_long = f"|phi(x)| reaches {record.features:.3g}" if record.features > 1 + 1e-6 else ""
    on_printed = (*on_all, record.balanced, Assumption("|phi(x)| <= 1", too_long))
    statement, root = "|f^k(x) - f*(x)|_2 <= V_(k - 1) / m_R", "|phi(x)| sqrt(V_(k - 1) / m_R)"
    printed, corrected = record.printed_V[:-1, None] / record.m, np.sqrt(record.V[:-1, None] / record.m)
    forms = (
        Form("printed", statement, SURELY, printed, on_printed),
        Form("corrected", f"|f^k(x) - f*(x)|_2 <= {root}", SURELY, record.features * corrected, on_all),
    )
    yield Theorem(PAPER, "Theorem 1, eq. (34)", "all agents", record.functions, forms, np.array([record.most]))

    # Theorems 5 and 2 are about COKE and give no rate. This rate follows from that of Theorem 4 and the triangle
    # inequality: it is the larger of (1 + delta)^(-1/2) and mu, and needs no condition on rho.
    if hasattr(record.method, "censored"):
        relative = "algo.censored=relative_norm" if record.method.censored == "relative_norm" else ""
        below = (*record.common, Assumption("agents that do not send are within h(k) of what they sent", relative))
        squared = (record.censored**2 + rounded * record.V[0]) / record.m
        root = (
            "(1 + delta)^(-(k - 1) / 2) sqrt(V_0) + sqrt(rho sum_i d_i) sum_(s < k) (1 + delta)^(-(k - 1 - s) / 2) h(s)"
        )
        of_theta = derived_form(f"sqrt(m_R) |Theta^k - Theta*|_F <= {root}", squared, below)
        yield Theorem(PAPER, "Theorem 5", "all agents", record.distance, of_theta, np.array([record.optimum]))
        statement = f"sqrt(m_R) |f^k(x) - f*(x)|_2 <= |phi(x)| ({root})"
        of_f = derived_form(statement, record.features * np.sqrt(squared), below)
        yield Theorem(PAPER, "Theorem 2, eq. (33)", "all agents", record.functions, of_f, np.array([record.most]))


def record_of(algorithm: Any, world: World) -> CokeRecord:
    """Run one replicate, and compare it with the optimum.

    The state does not have the paper's beta. But gamma = S_- beta and beta = S_-'B for some B, so |beta|^2 = gamma'L^+
    gamma / 2 with the Laplacian L = S_- S_-' / 2, where S_- has each edge twice.
    """
    # The graph's matrices
    problem, samples, topology = world.problem, world.samples, world.topology
    assert topology is not None
    adjacency = topology.adjacency.toarray()
    degree, K = np.diag(topology.degree), problem.clients
    laplacian, rho, ridge = degree - adjacency, algorithm.rho, 2 * algorithm.lam / problem.clients
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    # The optimum of all samples, and the dual variables that belong to it
    best = np.repeat(world.loss.optimum(world.training, algorithm.lam), K, axis=0)  # (K, P)

    def slope(theta: Array) -> Array:
        return samples.gradient(theta[None])[0] + ridge * theta

    gamma_best = -slope(best)
    # Features of some samples, for the distance of functions
    x = problem.part(True)[0]
    phi = world.bank.features(x[:: -(-len(x) // ROWS)])[0, 0]

    def lyapunov(theta: Array, gamma: Array) -> tuple[float, float]:
        off, duals = theta - best, gamma - gamma_best
        of_duals = (duals * (inverse @ duals)).sum() / (2 * rho)
        return rho * (off * ((degree + adjacency) @ off)).sum() / 2 + of_duals, rho * (off**2).sum() + of_duals

    # V before the first iteration, with theta = 0 and gamma = 0
    V = [lyapunov(np.zeros_like(best), np.zeros_like(best))]
    distance, functions = np.empty((2, problem.rounds, 1))
    declared, stationary = np.zeros_like(best), 0.0
    for t, before, _, after in rounds_of(algorithm, world):
        # Theta, gamma and the sent theta after each iteration
        theta, gamma, hat, before_own = after.own.theta[0], after.own.gamma[0], after.own.theta_hat[0], before.own
        # Whether theta solves eq. (21a), up to rounding
        pull = rho * ((degree + adjacency) @ before_own.theta_hat[0]) - before_own.gamma[0]
        residual = slope(theta) + 2 * rho * (degree @ theta) - pull
        stationary = max(stationary, float(np.abs(residual).max() / np.abs(slope(np.zeros_like(best))).max()))
        # Gamma must be the sum of all sent differences
        declared += rho * (laplacian @ hat)
        V.append(lyapunov(theta, gamma))
        distance[t] = ((theta - best) ** 2).sum()
        functions[t] = np.linalg.norm(phi @ (theta - best).T, axis=1).max()
    off = float(np.abs(gamma - declared).max() / max(np.abs(declared).max(), np.finfo(float).tiny))
    of_z, printed = np.array(V).T
    # Extreme eigenvalues of the Hessians and of the graph, which the rates need
    least, largest = CURVATURE[problem.loss]
    eigenvalues = [np.linalg.eigvalsh(world.training.gram(k)[0] / world.training.count[k])[[0, -1]] for k in range(K)]
    m, M = least * np.min(eigenvalues) + ridge, largest * np.max(eigenvalues) + ridge
    smin, smax = np.inf, 0.0  # for a single agent
    if K > 1:
        smin, smax = 2 * np.linalg.eigvalsh(laplacian)[1], 2 * np.linalg.eigvalsh(degree + adjacency)[-1]
    most, longest = np.linalg.norm(phi @ best.T, axis=1).max(), np.linalg.norm(phi, axis=1).max()
    of_run = algorithm, world, distance, functions, of_z, printed, float(most), float(longest)
    return CokeRecord(*of_run, float((best**2).sum()), float(m), float(M), float(smin), float(smax), off, stationary)


def identities(record: CokeRecord) -> Iterator[Identity]:
    """Residuals of both steps of the iterations, if no agent or link is missing."""
    if record.world.changes:
        return
    duals = "gamma^k = rho sum_s (D - A) theta_hat^s, with degrees D and adjacency A"
    minimum = "grad R_i(theta^k) + 2 rho D theta^k = rho (D + A) theta_hat^(k - 1) - gamma^(k - 1)"
    yield Identity("dual step", duals, record.duals, 0.0, LARGEST_RESIDUAL)
    yield Identity("local minimum", minimum, record.stationary, 0.0, LARGEST_RESIDUAL)
