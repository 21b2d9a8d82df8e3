"""Kinds of graphs of agents."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

import networkx as nx
import numpy as np

from fkl.basics.errors import FklError, cut_text, require
from fkl.basics.keys import Keys, key
from fkl.basics.memory import require_memory
from fkl.data.own_file import OfAFile
from fkl.network.topology import OneWay, Topology, topology_of_graph

WHOLE = re.compile(r"-?[0-9]{1,18}")
LETTERS_SHOWN = 60
MOST_DRAWS = 1_000_000
LEAST_PROBABILITY = 1e-12  # networkx divides by the logarithm of 1 - p
EDGE_BYTES = 120
"""Least memory of an edge in a networkx graph."""


@dataclass(frozen=True)
class ErdosRenyi(Keys):
    """A random graph in which all edges are equally likely; Erdős and Rényi, "On random graphs" (1959)."""

    p: float | None = key(None, "Probability of each edge, independently of the others.", min=LEAST_PROBABILITY, max=1)
    edges: int | None = key(
        None,
        "Number of edges; all graphs with this number are equally likely. Set exactly one of p and edges.",
        min=0,
    )
    resample: int = key(100, "Number of further draws if graphs are not connected.", min=0, max=MOST_DRAWS)

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = "given if p is null, and null if p is given"
        require((self.p is None) != (self.edges is None), "edges", self.edges, allowed)

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Draw the graph.

        Raises
        ------
        BadValue
            If these agents cannot form a connected graph with this many edges.
        FklError
            If no drawn graph is connected.
        """
        if self.edges is None:
            _require_room(round(self.p * agents * (agents - 1) / 2), "topology.p or partition.clients")  # type: ignore[operator]
            mend = f"raise topology.p={self.p} or topology.resample={self.resample}"
            return _first_connected(lambda: nx.fast_gnp_random_graph(agents, self.p, seed=rng), self.resample, mend)
        least, most = agents - 1, agents * (agents - 1) // 2
        allowed = f"an integer from {least} to {most} to connect {agents} agents"
        require(least <= self.edges <= most, "edges", self.edges, allowed)
        _require_room(self.edges, "topology.edges or partition.clients")
        mend = f"raise topology.edges={self.edges} or topology.resample={self.resample}"
        return _first_connected(lambda: nx.gnm_random_graph(agents, self.edges, seed=rng), self.resample, mend)


@dataclass(frozen=True)
class Ring:
    """A ring: each agent has two neighbours; with only two agents, one edge."""

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Make the graph; `rng` is not used."""
        return topology_of_graph(nx.cycle_graph(agents) if agents > 2 else nx.path_graph(agents))


@dataclass(frozen=True)
class Star:
    """A star: agent 0 is joined to all others."""

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Make the graph; `rng` is not used."""
        return topology_of_graph(nx.star_graph(agents - 1))


@dataclass(frozen=True)
class Path:
    """A path: each agent is joined to the agents before and after it."""

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Make the graph; `rng` is not used."""
        return topology_of_graph(nx.path_graph(agents))


@dataclass(frozen=True)
class Grid(Keys):
    """A grid of agents, numbered along the rows; each is joined to the agents left, right, above and below it."""

    rows: int | None = key(
        None, "A divisor of the number of agents; None for the divisor nearest to its square root.", min=1
    )

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Make the graph; `rng` is not used.

        Raises
        ------
        BadValue
            If rows cannot have equal lengths.
        """
        divisors = [rows for rows in range(1, agents + 1) if agents % rows == 0]
        # Of two divisors with product K, the smaller is nearer to the square root
        rows = max(rows for rows in divisors if rows <= isqrt(agents)) if self.rows is None else self.rows
        allowed = f"a divisor of the {agents} agents: {', '.join(map(str, divisors))}"
        require(rows in divisors, "rows", rows, allowed)
        return topology_of_graph(nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, agents // rows)))


@dataclass(frozen=True)
class Complete:
    """The complete graph: every agent is joined to every other."""

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Make the graph; `rng` is not used."""
        _require_room(agents * (agents - 1) // 2, "partition.clients, or choose a graph other than complete")
        return topology_of_graph(nx.complete_graph(agents))


@dataclass(frozen=True)
class Tree(Keys):
    """A tree: agent 0 is the root, and agent i > 0 is a child of agent (i - 1) // branching."""

    branching: int = key(2, "Children of each agent; only the last agent with children may have fewer.", min=1)

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Make the graph; `rng` is not used."""
        return topology_of_graph(nx.full_rary_tree(self.branching, agents))


@dataclass(frozen=True)
class WattsStrogatz(Keys):
    """A ring in which each agent is joined to its nearest agents, and far ends of some edges are moved at random.

    Watts and Strogatz, "Collective dynamics of 'small-world' networks" (1998).
    """

    neighbours: int = key(
        10, "Number of neighbours of each agent in the ring, half on each side.", min=2, must="an even number >= 2"
    )
    rewire: float = key(
        0.1, "Probability that an edge's far end is moved to an agent that is not yet a neighbour.", min=0, max=1
    )
    resample: int = key(100, "Number of further draws if graphs are not connected.", min=0, max=MOST_DRAWS)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.neighbours % 2 == 0, "neighbours")

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Draw the graph.

        Raises
        ------
        BadValue
            If the number of agents is not larger than the number of neighbours.
        FklError
            If no drawn graph is connected.
        """
        allowed = f"an even number >= 2, below the number of agents, {agents}"
        require(self.neighbours < agents, "neighbours", self.neighbours, allowed)
        _require_room(agents * self.neighbours // 2, "topology.neighbours or partition.clients")
        mend = f"raise topology.neighbours={self.neighbours} or topology.resample={self.resample}"
        return _first_connected(
            lambda: nx.watts_strogatz_graph(agents, self.neighbours, self.rewire, seed=rng), self.resample, mend
        )


@dataclass(frozen=True)
class Directed(Keys):
    """One-way links: a cycle through all agents in order, and random links between all others.

    The cycle connects every agent to every other, whatever links are drawn.
    """

    p: float = key(0.2, "Probability of each link that is not in the cycle, independently of the others.", min=0, max=1)

    def build(self, agents: int, rng: np.random.Generator) -> OneWay:
        """Draw the graph."""
        _require_room(agents**2, "partition.clients")
        hears = rng.random((agents, agents)) < self.p
        hears[np.arange(agents), np.arange(agents) - 1] = True
        np.fill_diagonal(hears, False)
        return OneWay(agents, np.argwhere(hears))


@dataclass(frozen=True)
class EdgeList(OfAFile):
    """The user's own graph: a UTF-8 text file with one edge ``i j`` per line, each edge once.

    Agents are numbered from 0. Blank lines and lines that start with # are skipped.
    """

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Read the graph; `rng` is not used.

        Raises
        ------
        FklError
            For any error in the file; the message names the file and, if possible, the line.
        """
        lines: dict[tuple[int, ...], int] = {}
        for number, line in enumerate(io.StringIO(self.words, newline=None), 1):
            where, words = f"{self.path}, line {number}", line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or not all(WHOLE.fullmatch(word) for word in words):
                shown = cut_text(" ".join(words), LETTERS_SHOWN)
                raise FklError(f"{where}: {shown!r} is not an edge; write two integers with a space between")
            low, high = edge = tuple(sorted(map(int, words)))
            if low < 0 or high >= agents:
                missing = low if low < 0 else high
                raise FklError(f"{where}: there is no agent {missing}; must be from 0 to {agents - 1}")
            if low == high:
                raise FklError(f"{where}: the edge joins agent {low} to itself; remove it")
            if edge in lines:
                raise FklError(f"{where}: edge {words[0]} {words[1]} is already in line {lines[edge]}")
            lines[edge] = number
        graph = nx.empty_graph(agents)
        graph.add_edges_from(lines)
        return topology_of_graph(graph, f"add edges to {self.path}")


def _first_connected(draw: Callable[[], nx.Graph], resample: int, mend: str) -> Topology:
    """The first drawn graph that is connected."""
    graph = draw()
    for _ in range(resample):
        if nx.is_connected(graph):
            break
        graph = draw()
    return topology_of_graph(graph, mend)


def _require_room(edges: int, keys: str) -> None:
    require_memory(edges * EDGE_BYTES, f"a graph of {edges} edges", keys)
