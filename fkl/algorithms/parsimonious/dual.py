"""The dual of the problem that the agents, the server and the centralized learner solve.

Peifer and Ribeiro, Federated Classification using Parsimonious Functions in Reproducing Kernel Hilbert Spaces; equation
numbers are theirs. (PC), (Pi) and (PF) are the same problem on different samples,

    min_alpha  integral alpha^2 / 2 + gamma 1(alpha != 0)   s.t.  (1/N) (1 - eps - y_n f(x_n)) <= 0  for every n,
    f(x) = integral alpha(s, w) k(x, s; w) ds dw,

and Algorithms 2 and 3 are the same ascent on its dual from different starting points. Here Newton's method solves the
dual, and needs no starting point. Integrals are sums of a `Quadrature`. Every solution has its duality gap: the
distance of g(lambda) below the cost of a function that meets the constraints.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.parsimonious.solver import ProblemSamples, Quadrature, solve_sparse_problem
from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, require

Flags = NDArray[np.bool_]


class NodesModel(NamedTuple):
    """A function f, as the sum of the kernels at its active nodes.

    Attributes
    ----------
    quadrature : Quadrature
    active : (m,) int
        Numbers of the active nodes.
    coefficients : (m,)
        Each node's alpha times its weight in the integral.
    """

    quadrature: Quadrature
    active: NDArray[np.int64]
    coefficients: Array

    def predict(self, x: Array) -> Array:
        """f(x), eq. (11); its sign is the class.

        Parameters
        ----------
        x : (N, d)

        Returns
        -------
        (N,)
        """
        coefficients = np.zeros(self.quadrature.size)
        coefficients[self.active] = self.coefficients
        return self.quadrature.function(coefficients, x)


@dataclass(frozen=True)
class Dual:
    """A number A of independent problems (PC), padded to the same number n of samples.

    Parameters
    ----------
    quadrature : Quadrature
    x : (A, n, d) float64
        Samples.
    y : (A, n) float64
        Labels, -1 and 1; a problem may have only one class.
    present : (A, n) bool
        False for padding, whose x must be finite and whose y is ignored.
    gamma : float
        Weight of the support's measure, at least 0.
    eps : float
        Slack of the constraints, below 1, because f = 0 would be feasible otherwise.

    Raises
    ------
    fkl.basics.errors.FklError
        If gamma or eps is out of range, or a label is neither -1 nor 1.
    """

    quadrature: Quadrature
    x: Array
    y: Array
    present: Flags
    gamma: float
    eps: float

    def __post_init__(self) -> None:
        require(0 <= self.gamma < np.inf, "gamma", self.gamma, "a finite number from 0 up")
        require(-np.inf < self.eps < 1, "eps", self.eps, "a number below 1")
        others = np.setdiff1d(self.y[self.present], (-1.0, 1.0))
        if len(others):
            raise FklError(f"labels must be -1 or 1, but one is {others[0]:g}")

    @classmethod
    def single_problem(cls, quadrature: Quadrature, x: Array, y: Array, gamma: float, eps: float) -> "Dual":
        """One problem with samples x (N, d) and labels y (N,), as for the server and the centralized learner."""
        return cls(quadrature, x[None], y[None], np.ones((1, len(y)), np.bool_), gamma, eps)

    @classmethod
    def of_agents(
        cls, quadrature: Quadrature, x: Array, y: Array, agent: NDArray[np.int64], gamma: float, eps: float
    ) -> "Dual":
        """A problem (Pi) for every agent.

        Parameters
        ----------
        quadrature : Quadrature
        x : (N, d)
        y : (N,)
        agent : (N,)
            Number of each sample's agent, from 0 to A - 1; an agent's samples keep their order.
        gamma, eps : float
        """
        # Agents have different numbers of samples, so arrays are padded to the largest number
        sizes = np.bincount(agent)
        present = np.arange(sizes.max()) < sizes[:, None]
        order = np.argsort(agent, kind="stable")
        samples, labels = np.zeros((*present.shape, x.shape[1])), np.zeros(present.shape)
        samples[present], labels[present] = x[order], y[order]
        return cls(quadrature, samples, labels, present, gamma, eps)

    @cached_property
    def N(self) -> Array:
        """Number of samples of each problem, (A, 1); at least 1, to avoid division by 0."""
        return np.maximum(self.present.sum(axis=1, keepdims=True), 1.0)

    @cached_property
    def sign(self) -> Array:
        """Labels (A, n), 0 for padding."""
        return np.where(self.present, self.y, 0.0)

    def alpha(self, lam: Array) -> Array:
        """Values of alpha at the nodes, (A, M), eqs. (8) and (9)."""
        alphas = [
            samples.alpha((one / N)[here], self.gamma).ravel()
            for samples, one, N, here in zip(self.samples, lam, self.N, self.present, strict=True)
        ]
        return np.stack(alphas)

    def constraint_slack(self, lam: Array) -> Array:
        """Constraints 1 - eps - y_n f(x_n) at the alpha of (8), (A, n); 0 for padding.

        Divided by N, they are the gradient, eqs. (10) and (15).
        """
        return self.slack_of(self.alpha(lam))

    def slack_of(self, alpha: Array) -> Array:
        """Constraints (A, n) at values alpha (A, M) of the nodes; 0 for padding."""
        slack = np.zeros(self.present.shape)
        for problem, here in enumerate(self.present):
            f = self.quadrature.function(alpha[problem] * self.quadrature.weights, self.x[problem, here])
            slack[problem, here] = 1 - self.eps - self.y[problem, here] * f
        return slack

    def value(self, lam: Array) -> Array:
        """Dual function g(lambda), (A,), eq. (5), at the alpha of eq. (8).

        Eqs. (21) and (41) are the same; (21), (26) and (46) omit the gamma before the support's measure, and (26) omits
        the 1 / N.
        """
        alpha = self.alpha(lam)
        support = np.where(alpha != 0, alpha**2 / 2 - self.gamma, 0.0)
        return (lam / self.N).sum(axis=1) * (1 - self.eps) - support @ self.quadrature.weights

    def primal_cost(self, alpha: Array) -> Array:
        """Objective of (PC) at alpha (A, M), (A,), eq. (3); if alpha is feasible, it is at least g of any lambda."""
        return (alpha**2 / 2 + self.gamma * (alpha != 0)) @ self.quadrature.weights

    @cached_property
    def samples(self) -> list[ProblemSamples]:
        """The samples of each problem."""
        return [
            ProblemSamples(self.quadrature, np.ascontiguousarray(x[here]), y[here])
            for x, y, here in zip(self.x, self.y, self.present, strict=True)
        ]


@dataclass(frozen=True)
class Solution:
    """A solver's result, its distance from the optimum, and its violation of the optimality conditions (13).

    Parameters
    ----------
    problem : Dual
    lam : (A, n)
        Dual variables lambda, 0 for padding.
    cost : (A,)
        Cost in the bidual of node values that meet all constraints; infinite if no such values are known.
    steps : (A,) int
        Number of linear systems solved for each problem.
    tolerance : float
    """

    problem: Dual
    lam: Array
    cost: Array
    steps: NDArray[np.int64]
    tolerance: float

    @cached_property
    def value(self) -> Array:
        """Dual function g(lambda), (A,)."""
        return self.problem.value(self.lam)

    @cached_property
    def alpha(self) -> Array:
        """Values of alpha at the nodes, (A, M), eq. (8): the solution of (PC) by Proposition 1."""
        return self.problem.alpha(self.lam)

    @cached_property
    def slack(self) -> Array:
        """Constraints 1 - eps - y_n f(x_n), (A, n); 0 for padding."""
        return self.problem.slack_of(self.alpha)

    @property
    def violation(self) -> Array:
        """Largest positive constraint, (A,), or 0."""
        return np.maximum(self.slack.max(axis=1, initial=0.0), 0.0)

    @property
    def slackness(self) -> Array:
        """Largest |1 - eps - y_n f(x_n)| of a sample with lambda_n > 0, (A,)."""
        return np.where(self.lam > 0, np.abs(self.slack), 0.0).max(axis=1, initial=0.0)

    @cached_property
    def gap(self) -> Array:
        """Duality gap in units of the cost, (A,); 1 if no function that meets the constraints is known.

        It is NaN if lambda has overflowed.
        """
        positive = (self.cost > 0) & (self.cost < np.inf)
        some = np.where(positive, self.cost, 1.0)
        gap: Array = np.where(positive, (some - self.value) / some, np.where(self.cost == 0, 0.0, 1.0))
        gap[~np.isfinite(self.value)] = np.nan
        return gap

    @property
    def finished(self) -> Flags:
        """Whether the gap is within the tolerance, (A,)."""
        return self.gap <= self.tolerance

    @property
    def mu(self) -> Array:
        """The ratio lambda / N, (A, n).

        It does not change if samples with lambda = 0 are dropped, which decreases N.
        """
        return self.lam / self.problem.N

    def model(self, problem: int = 0) -> NodesModel:
        """The function of one of the problems, without nodes with alpha = 0."""
        quadrature, alpha = self.problem.quadrature, self.alpha[problem]
        active = np.flatnonzero(alpha)
        return NodesModel(quadrature, active, alpha[active] * quadrature.weights[active])


def maximise_dual(problem: Dual, steps: int, tolerance: float = 1e-7) -> Solution:
    """Maximise the dual function until the duality gap is within the tolerance or the steps are used up.

    Parameters
    ----------
    problem : Dual
    steps : int
        Maximum number of Newton steps for each problem, see `fkl.algorithms.parsimonious.solver.solve_sparse_problem`.
        The linear systems at gamma = 0 before them count as steps, but are not limited.
    tolerance : float
        A problem stops when its duality gap is not larger than this, in units of the cost.
    """
    require(steps >= 0, "steps", steps, "an integer >= 0")
    # One problem per agent, solved one after another
    lam, cost = np.zeros(problem.present.shape), np.zeros(len(problem.x))
    taken = np.zeros(len(problem.x), np.int64)
    for number, (samples, here) in enumerate(zip(problem.samples, problem.present, strict=True)):
        solved = solve_sparse_problem(samples, 1 - float(problem.eps), float(problem.gamma), tolerance, steps)
        lam[number, here] = solved.mu * problem.N[number, 0]
        cost[number], taken[number] = solved.cost, solved.steps
    return Solution(problem, lam, cost, taken, tolerance)


class Representation(NamedTuple):
    """Size of a global model.

    Attributes
    ----------
    nodes : int
        Number of nodes with alpha != 0.
    regions : int
        Number of connected regions in which alpha is nonzero and has one sign.
    peaks : int
        Number of nonzero local maxima of |alpha|; a plateau counts once.
    """

    nodes: int
    regions: int
    peaks: int


def model_size(quadrature: Quadrature, alpha: Array) -> Representation:
    """The size of a model, as numbers of kernels.

    The paper counts "the number of kernels used in the resulting global model" and does not define how it follows from
    alpha. A function of few kernels has an alpha with few peaks, so `peaks` is that number; `regions` is a coarser
    count. Neighbours are nodes that differ by at most one place in every coordinate of a grid and in the list of
    widths. Drawn centres are neighbours if one is among the 2 d nearest of the other. In adjacent widths, the same
    centre and its neighbours are neighbours.

    Parameters
    ----------
    quadrature : Quadrature
    alpha : (M,)

    Returns
    -------
    Representation
    """
    # Neighbouring nodes with alpha of one sign belong to one region
    sign = np.sign(alpha)
    height = np.abs(alpha)
    node, neighbour = _grid_neighbours(quadrature.shape) if quadrature.shape else _drawn_neighbours(quadrature)
    active = sign != 0
    # Keep edges within regions; a node with a higher neighbour is no peak
    same = active[node] & (sign[node] == sign[neighbour])
    node, neighbour = node[same], neighbour[same]
    beaten = np.concatenate([node[height[node] < height[neighbour]], neighbour[height[neighbour] < height[node]]])
    # A plateau is a peak only if none of its nodes has a higher neighbour
    level = height[node] == height[neighbour]
    parts = _connected_parts(len(alpha), node[level], neighbour[level])
    peaks = np.setdiff1d(parts[active], parts[beaten])
    regions = np.unique(_connected_parts(len(alpha), node, neighbour)[active])
    return Representation(int(active.sum()), len(regions), len(peaks))


def _connected_parts(size: int, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int32]:
    """The number of each node's connected component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(size, size))
    return connected_components(graph, directed=False)[1]


@lru_cache(maxsize=2)
def _grid_neighbours(shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of nodes that are at most one place apart in every direction; each pair occurs once."""
    # In three dimensions, 13 of the 26 directions, so every pair occurs once
    number = np.arange(np.prod(shape)).reshape(shape)
    node, neighbour = [], []
    for offset in np.ndindex(*(3,) * len(shape)):
        move = np.array(offset) - 1
        if tuple(move) <= (0,) * len(shape):  # the opposite direction covers it
            continue
        from_ = tuple(slice(max(-step, 0), size - max(step, 0)) for step, size in zip(move, shape, strict=True))
        to = tuple(slice(max(step, 0), size - max(-step, 0)) for step, size in zip(move, shape, strict=True))
        node.append(number[from_].ravel())
        neighbour.append(number[to].ravel())
    return np.concatenate(node), np.concatenate(neighbour)


def _drawn_neighbours(quadrature: Quadrature) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of neighbouring nodes of drawn centres; some pairs occur twice."""
    from scipy.spatial import KDTree

    # Nearest centres by a tree, since all pairs would be too many
    W, _, H = quadrature.block
    nearest = min(2 * quadrature.dimension + 1, H)
    near = KDTree(quadrature.rest).query(quadrature.rest, k=[*range(1, nearest + 1)])[1]
    centre, neighbour = np.repeat(np.arange(H), nearest), near.ravel()  # the nearest is the centre itself
    # Neighbours at the same width, and at the next one
    one, other = [], []
    for w in range(W):
        for beside in range(w, min(w + 2, W)):
            for a, b in ((centre, neighbour), (neighbour, centre)):
                one.append(a + w * H)
                other.append(b + beside * H)
    return np.concatenate(one), np.concatenate(other)
