"""The graph of agents, with two-way or one-way links, and computations on it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, is_traced
from fkl.basics.errors import FklError
from fkl.basics.keys import Keys, key
from fkl.basics.random_streams import Role, Streams

if TYPE_CHECKING:  # imported lazily: methods without a graph do not need these
    import networkx as nx
    from scipy.sparse import csr_array


DENSE_AGENTS = 20
DENSE_SHARE = 1 / 6
"""A dense product is faster up to this number of agents, or from this share of non-zeros in the adjacency matrix."""
DENSE_EIGENVALUES = 500
RESTARTS = 100
BESIDE = 1e-6


@dataclass(frozen=True)
class Neighbours:
    """Agents' knowledge of the graph: their own degrees, and those of their neighbours.

    Parameters
    ----------
    degree : (K,) float64
        Degrees of the agents.
    receiver, sender : (links,) int
        For each link, the receiving agent, by which links are sorted, and the sender, as an index into all messages.
    theirs : (links,) float64
        Degree of each link's sender.
    back : (links,) int
        For each link, the index of its message if there is a message per link.
    listeners : (K,) float64
        Number of agents that hear each agent; equal to its degree if links are two-way.
    """

    degree: NDArray[np.float64]
    receiver: NDArray[np.int64]
    sender: NDArray[np.int64]
    theirs: NDArray[np.float64]
    back: NDArray[np.int64]
    listeners: NDArray[np.float64]

    @cached_property
    def between(self) -> NDArray[np.float64]:
        """Metropolis weight of each link, 1 / (1 + max(d_i, d_j)) between neighbours of degrees d_i and d_j, (links,).

        Xiao, Boyd and Lall, "A scheme for robust distributed sensor fusion based on average consensus" (2005).
        """
        return _metropolis_weight(self.degree[self.receiver], self.theirs)

    @cached_property
    def own(self) -> NDArray[np.float64]:
        """The remaining weight, which each agent gives itself, (K,)."""
        return 1 - self._by_receiver(self.between)

    @property
    def copies(self) -> int:
        """Number of copies of neighbours' messages that agents hold: one for each link."""
        return len(self.receiver)

    def messages_on_links(self, payload: Any, one_a_link: bool) -> Any:
        """The message on each link, from a payload of all senders, which may have one message per link."""
        return payload.select_entries(self.back if one_a_link else self.sender)

    def mix(self, by_link: Array, own: Array, awake: "Awake | None" = None) -> Array:
        """Averages (R, K, P) of own (R, K, P) and the received messages, with Metropolis weights.

        If `knowledge_when_awake` gives the links that are up, the weights are those of the graph of these links, and
        messages on other links do not count.
        """
        if awake is None:
            return self.own[:, None] * own + self.neighbour_sum(self.between[:, None] * by_link)
        # Metropolis weights in the graph of links that are up, 0 for links that are down
        xp = array_namespace(awake.up)
        degree = xp.stack([self._by_receiver(up.astype(np.float64)) for up in awake.up])
        between = xp.where(awake.up, _metropolis_weight(degree[:, self.receiver], awake.theirs), 0.0)
        left = 1 - xp.stack([self._by_receiver(weights) for weights in between])
        return left[..., None] * own + self.neighbour_sum(between[..., None] * by_link)

    def _by_receiver(self, on_links: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums (K,) of numbers (links,) over each receiver's links."""
        if is_traced(on_links):
            return self.neighbour_sum(on_links[None, :, None])[0, :, 0]  # type: ignore[return-value]
        return np.bincount(self.receiver, weights=on_links, minlength=len(self.degree)).astype(np.float64)

    def neighbour_sum(self, by_link: Array) -> Array:
        """Sums (R, K, P) of values (R, links, P) over each agent's links; agents without neighbours get 0."""
        if by_link.shape[1] == 0:
            return np.zeros((len(by_link), len(self.degree), by_link.shape[2]))
        first = np.searchsorted(self.receiver, np.arange(len(self.degree)))
        if is_traced(by_link):
            ends = np.append(first, len(self.receiver))
            return _gather_neighbours(ends, np.arange(len(self.receiver)), np.ones(len(self.receiver)), by_link)
        return np.add.reduceat(by_link, first, axis=1)


@dataclass(frozen=True)
class Awake:
    """Links that are up in an iteration; the agents at both ends know this when the iteration begins.

    Parameters
    ----------
    up : (R, links) bool
    theirs : (R, links) float64
        Number of links that are up at each link's sender.
    listeners : (R, K) float64
        Number of agents that hear each agent.
    returned : (R, K) bool
        Whether an agent is heard by some agent that did not hear it in the previous iteration.
    """

    up: NDArray[np.bool_]
    theirs: NDArray[np.float64]
    listeners: NDArray[np.float64]
    returned: NDArray[np.bool_]


@dataclass(frozen=True)
class Topology:
    """A connected undirected graph without self-loops; `topology_of_graph` makes one from a networkx graph.

    Parameters
    ----------
    agents : int
        Number K of agents, which are numbered from 0.
    links : (2 E, 2) int
        Every edge once in each direction, [receiver, sender], sorted by receiver, then by sender.
    """

    agents: int
    links: NDArray[np.int64]
    both_ways: ClassVar[bool] = True
    """Whether links are two-way."""

    @property
    def edges(self) -> int:
        """Number E of undirected edges."""
        return len(self.links) // 2

    @property
    def listed(self) -> NDArray[np.int64]:
        """Every edge once, (E, 2)."""
        return self.links[self.links[:, 0] < self.links[:, 1]]

    @cached_property
    def degree(self) -> NDArray[np.float64]:
        """Number of neighbours that each agent hears, (K,)."""
        return np.bincount(self.links[:, 0], minlength=self.agents).astype(np.float64)

    @cached_property
    def listeners(self) -> NDArray[np.float64]:
        """Number of neighbours that hear each agent, (K,)."""
        return np.bincount(self.links[:, 1], minlength=self.agents).astype(np.float64)

    @cached_property
    def neighbours(self) -> Neighbours:
        """All agents' knowledge of the graph."""
        receiver, sender = self.links.T
        back = np.lexsort((receiver, sender))
        return Neighbours(self.degree, receiver, sender, self.degree[sender], back, self.listeners)

    def neighbours_of(self, agent: int) -> Neighbours:
        """One agent's knowledge of the graph; it receives its messages in the order of their senders."""
        mine = self.links[:, 0] == agent
        place = np.arange(mine.sum())
        theirs, listeners = self.neighbours.theirs[mine], self.listeners[[agent]]
        return Neighbours(self.degree[[agent]], np.zeros_like(place), place, theirs, place, listeners)

    @cached_property
    def edge(self) -> NDArray[np.int64]:
        """Number of each link's edge, from 0 to E - 1, the same for both directions, (links,)."""
        one_way = self.links[:, 0] < self.links[:, 1]
        number = np.cumsum(one_way) - 1
        return np.where(one_way, number, number[self.neighbours.back])

    def knowledge_when_awake(self, up: NDArray[np.bool_], before: NDArray[np.bool_]) -> Awake:
        """Agents' knowledge of an iteration with links `up` (R, links), after an iteration with links `before`."""
        listeners = self.sent_by(up).astype(np.float64)
        return Awake(up, listeners[:, self.links[:, 1]], listeners, self.sent_by(up & ~before) > 0)

    def sent_by(self, passing: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Number (R, K) of the messages on links, `passing` (R, links), that each agent sends."""
        return np.stack([np.bincount(self.links[one, 1], minlength=self.agents) for one in passing])

    @cached_property
    def adjacency(self) -> "csr_array":
        """Symmetric matrix (K, K) of float64: 1 between neighbours, else 0."""
        return self._weights_matrix(self.links, np.ones(len(self.links)))

    @cached_property
    def metropolis(self) -> "csr_array":
        """Metropolis weights (K, K) of `Neighbours`: symmetric, nonnegative, rows sum to 1."""
        known = self.neighbours
        self_loops = np.repeat(np.arange(self.agents), 2).reshape(-1, 2)
        return self._weights_matrix(
            np.concatenate([self.links, self_loops]), np.concatenate([known.between, known.own])
        )

    @cached_property
    def spectral_gap(self) -> float:
        """1 minus the second largest absolute eigenvalue of the Metropolis matrix; 1 for a single agent.

        The disagreement of agents that only average shrinks by the factor 1 minus this gap per round.
        """
        if self.agents == 1:
            return 1.0
        if self.agents <= DENSE_EIGENVALUES:
            return float(1 - np.sort(np.abs(np.linalg.eigvalsh(self.metropolis.toarray())))[-2])
        return 1 - _second_eigenvalue(self.metropolis)

    def neighbour_sum(self, x: Array) -> Array:
        """Sums (R, K, P) of x (R, K, P) over each agent's neighbours; agents without neighbours get 0."""
        return _matrix_product(self._quick_adjacency, x)

    def mix(self, x: Array, own: Array | None = None, awake: None = None) -> Array:
        """Averages (R, K, P) of x (R, K, P) with Metropolis weights; `own` replaces each agent's own x."""
        mixed = _matrix_product(self._quick_metropolis, x)
        return mixed if own is None or own is x else mixed + self.neighbours.own[:, None] * (own - x)

    @property
    def copies(self) -> int:
        """Number of stored messages: one per agent, because all its neighbours hold the same message."""
        return self.agents

    def messages_on_links(self, payload: Any, one_a_link: bool) -> Any:
        """The payload, unchanged."""
        return payload

    @cached_property
    def _quick_adjacency(self) -> "csr_array | NDArray[np.float64]":
        return self._is_dense_quicker(self.adjacency)

    @cached_property
    def _quick_metropolis(self) -> "csr_array | NDArray[np.float64]":
        return self._is_dense_quicker(self.metropolis)

    def _is_dense_quicker(self, matrix: "csr_array") -> "csr_array | NDArray[np.float64]":
        dense = self.agents <= DENSE_AGENTS or len(self.links) >= DENSE_SHARE * self.agents**2
        return matrix.toarray() if dense else matrix

    def _weights_matrix(self, places: NDArray[np.int64], values: NDArray[np.float64]) -> "csr_array":
        from scipy.sparse import coo_array

        return coo_array((values, (places[:, 0], places[:, 1])), shape=(self.agents, self.agents)).tocsr()


def _metropolis_weight(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Metropolis weights between agents of these degrees."""
    weight: NDArray[np.float64] = 1 / (1 + array_namespace(other).maximum(one, other))
    return weight


def topology_of_graph(graph: "nx.Graph", mend: str = "add edges") -> Topology:
    """Make a topology from a graph.

    Parameters
    ----------
    graph : networkx.Graph
        Graph with nodes 0 to K - 1, K at least 1, without self-loops.
    mend : str
        Advice to the user if the graph is not connected, for example ``"raise topology.p"``.

    Raises
    ------
    FklError
        If some agents are not joined by a path.
    """
    import networkx as nx

    agents, pieces = graph.number_of_nodes(), nx.number_connected_components(graph)
    if pieces > 1:
        raise FklError(f"topology: the graph of {agents} agents is not connected but has {pieces} parts; {mend}")
    edges = np.array(list(graph.edges), np.int64).reshape(-1, 2)
    links = np.concatenate([edges, edges[:, ::-1]])
    return Topology(agents, links[np.lexsort((links[:, 1], links[:, 0]))])


def _matrix_product(matrix: "csr_array | NDArray[np.float64]", x: Array) -> Array:
    """Matrix (K, K) times x (R, K, P), for each replicate separately, so no bit depends on other replicates."""
    if isinstance(matrix, np.ndarray):
        return matrix @ x
    if is_traced(x):
        return _gather_neighbours(matrix.indptr, matrix.indices, matrix.data, x)
    if len(x) == 1:  # no copy into another large array: 1 ms instead of 6
        return (matrix @ x[0])[None]
    product = np.empty(x.shape)
    for vector, result in zip(x, product, strict=True):
        result[:] = matrix @ vector
    return product


def _gather_neighbours(ends: NDArray[Any], places: NDArray[Any], weights: NDArray[Any], x: Array) -> Array:
    """Weighted sums (R, K, P) of x (R, n, P); agent k has the entries from ends[k] to ends[k + 1].

    Rows are padded to the longest row with weights of 0, because a scatter has no fixed order of additions.
    """
    lengths = np.diff(ends)
    there = np.arange(lengths.max(initial=0)) < lengths[:, None]
    index, weight = np.zeros(there.shape, np.int64), np.zeros(there.shape)
    index[there], weight[there] = places, weights
    return (weight[..., None] * x[:, index]).sum(axis=2)  # type: ignore[no-any-return]


def _second_eigenvalue(matrix: "csr_array") -> float:
    """Second largest absolute eigenvalue of a large sparse Metropolis matrix; its fixed start makes it reproducible."""
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    try:
        eigenvalues = eigsh(matrix, k=2, v0=start, maxiter=RESTARTS, return_eigenvectors=False)
        return float(np.abs(eigenvalues).min())
    except ArpackNoConvergence:
        # Long thin graphs have close eigenvalues, but cheap factors, so search near both ends of the spectrum
        columns = matrix.tocsc()
        upper = float(eigsh(columns, k=2, sigma=1 + BESIDE, v0=start, return_eigenvectors=False).min())
        if upper >= 1 - 2 * matrix.diagonal().min():  # by Gershgorin's circles, no negative eigenvalue is larger
            return upper
        lower = float(eigsh(columns, k=1, sigma=-1 - BESIDE, v0=start, return_eigenvectors=False).min())
        return max(upper, -lower)


@dataclass(frozen=True)
class OneWay(Topology):
    """A graph of one-way links with a path from every agent to every other.

    An agent knows which agents it hears and how many agents hear it. It does not know its neighbours' degrees, because
    it may have no link to ask them. The averaging weights, `metropolis`, are therefore 1 / (1 + d_i) for the d_i agents
    that agent i hears and for itself: rows sum to 1, but columns may not.

    Parameters
    ----------
    agents : int
    links : (E, 2) int
        [receiver, sender], sorted by receiver, then by sender.
    """

    both_ways: ClassVar[bool] = False

    @property
    def edges(self) -> int:
        """Number E of links."""
        return len(self.links)

    @property
    def listed(self) -> NDArray[np.int64]:
        """Every link, [sender, receiver]."""
        return self.links[:, ::-1]

    @cached_property
    def edge(self) -> NDArray[np.int64]:
        """Number of each link's edge: every link is its own edge."""
        return np.arange(len(self.links))

    @cached_property
    def neighbours(self) -> Neighbours:
        """All agents' knowledge of the graph; they do not know their neighbours' degrees."""
        receiver, sender = self.links.T
        back = np.argsort(np.lexsort((receiver, sender)))
        return Neighbours(self.degree, receiver, sender, np.zeros(len(sender)), back, self.listeners)

    def knowledge_when_awake(self, up: NDArray[np.bool_], before: NDArray[np.bool_]) -> Awake:
        """Agents' knowledge of an iteration; they do not know their neighbours' degrees."""
        return replace(super().knowledge_when_awake(up, before), theirs=np.zeros(up.shape))

    @cached_property
    def spectral_gap(self) -> float:
        """1 minus the second largest modulus of all eigenvalues, because the matrix is not symmetric."""
        if self.agents == 1:
            return 1.0
        return float(1 - np.sort(np.abs(np.linalg.eigvals(self.metropolis.toarray())))[-2])


Up = NDArray[np.bool_]
AWAKE = ("edge", "matching")
DIAGONAL = 2**0.5


class Links(Protocol):
    """Links of a graph that are up, as a function of the seed, the replicate and the iteration."""

    always_up: bool
    """Whether all links are always up, so nothing is drawn."""

    def links_up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        ...


@dataclass(frozen=True)
class Failing(Keys):
    """Every edge is down in an iteration with the same probability, independently of other edges and iterations."""

    p: float = key(0.1, "Probability that an edge is down, in both directions together.", min=0, below=1)

    @property
    def always_up(self) -> bool:
        """Whether p is 0."""
        return self.p == 0

    def idle(self, problem: Any) -> str:
        """A message if no edge is ever down, else empty."""
        return "links.p=0: no edge is down" if self.always_up else ""

    def links_up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        drawn = streams.uniform(Role.LINKS, t, topology.edges)
        return np.asarray(drawn >= self.p)[:, topology.edge]


@dataclass(frozen=True)
class Gossip(Keys):
    """Agents wake up in pairs; Boyd, Ghosh, Prabhakar and Shah, "Randomized gossip algorithms" (2006)."""

    awake: str = key(
        "matching",
        "``edge`` is one random edge. ``matching`` is edges without common agents: each edge draws a number, and "
        "an edge is up if its number is the smallest among all edges of both its agents (Luby, 1986). Agents then "
        "only need to ask their neighbours.",
        choices=AWAKE,
    )
    always_up: ClassVar[bool] = False
    in_pairs: ClassVar[bool] = True
    """Whether the two agents of an edge have to hear each other."""

    def links_up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        number = streams.uniform(Role.LINKS, t, topology.edges)[:, topology.edge]  # (R, links)
        if topology.edges == 0:
            return np.zeros(number.shape, np.bool_)
        if self.awake == "edge":
            return np.asarray(number == number.min(axis=1, keepdims=True))
        first = np.searchsorted(topology.links[:, 0], np.arange(topology.agents))  # all agents have links
        least = np.minimum.reduceat(number, first, axis=1)
        return np.asarray((number == least[:, topology.links[:, 0]]) & (number == least[:, topology.links[:, 1]]))


@dataclass(frozen=True)
class Mobility(Keys):
    """Agents move in straight lines in a unit square and are reflected at its walls; links are up within a radius.

    Camp, Boleng and Davies, "A survey of mobility models for ad hoc network research" (2002), with random directions.
    The start and direction of each agent are drawn once, so its position depends only on the iteration.
    """

    radius: float = key(
        0.5,
        "Distance within which two agents hear each other, in sides of the square; from the diagonal on, all "
        "links are up.",
        above=0,
        must="a number > 0, in sides of the square",
    )
    speed: float = key(
        0.01,
        "Speed of agents, in sides of the square per iteration.",
        min=0,
        must="a number >= 0, in sides of the square an iteration",
    )

    @property
    def always_up(self) -> bool:
        """Whether the radius is at least the diagonal of the square."""
        return self.radius >= DIAGONAL

    def idle(self, problem: Any) -> str:
        """A message if all agents always hear each other, else empty."""
        return f"links.radius={self.radius:g}: no edge is down" if self.always_up else ""

    def agent_positions(self, streams: Streams, t: int, agents: int) -> NDArray[np.float64]:
        """Positions of the agents in iteration t + 1, (R, K, 2)."""
        drawn = streams.vectors(Role.LINKS, 0, range(agents), 3)
        angle = 2 * np.pi * drawn[..., 2:]
        straight = drawn[..., :2] + self.speed * t * np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)
        return 1 - np.abs(straight % 2 - 1)  # reflects positions at the walls

    def links_up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        places = self.agent_positions(streams, t, topology.agents)
        senders, receivers = topology.links.T
        apart = np.linalg.norm(places[:, senders] - places[:, receivers], axis=-1)
        return np.asarray(apart <= self.radius)
