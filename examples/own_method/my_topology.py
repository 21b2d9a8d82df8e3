"""A graph of my own: two crowds who know each other well, and a chain of agents between them."""

from dataclasses import dataclass

import networkx as nx
import numpy as np

from fkl.basics.errors import require
from fkl.network import Topology
from fkl.network.topology import topology_of_graph


@dataclass(frozen=True)
class Barbell:
    """Two complete graphs of `crowd` agents each; all other agents are the chain that joins them.

    Parameters
    ----------
    crowd : int
    """

    crowd: int = 4

    def __post_init__(self) -> None:
        require(self.crowd >= 3, "crowd", self.crowd, "an integer >= 3")

    def build(self, agents: int, rng: np.random.Generator) -> Topology:
        """Make the graph; `rng` is for graphs that are drawn."""
        require(2 * self.crowd <= agents, "crowd", self.crowd, f"at most {agents // 2}, half of the {agents} agents")
        return topology_of_graph(nx.barbell_graph(self.crowd, agents - 2 * self.crowd))
