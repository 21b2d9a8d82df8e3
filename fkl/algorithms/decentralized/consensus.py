"""What decentralized methods share: agents on a graph that learn one theta of one kernel."""

from dataclasses import dataclass
from typing import ClassVar

from fkl.algorithms.base import Batched, World
from fkl.errors import require
from fkl.network import Topology


@dataclass(frozen=True)
class Consensus(Batched):
    """min over theta of sum_i R_i(theta), R_i(theta) = mean loss of agent i + lam / N |theta|^2 (COKE, eqs. 15, 16).

    N agents are the K clients, L features the D of the one kernel.

    Parameters
    ----------
    redraw : bool
        Draw the split and the graph anew in every replicate, and simulated samples too, as the features are: the
        spread over replicates is then that of everything drawn. Otherwise all replicates share one split and one graph.
    """

    label: ClassVar[str]
    on_a_graph: ClassVar[bool] = True

    redraw: bool = False

    def graph(self, world: World) -> Topology:
        """The agents' graph, once it is clear that the world suits a decentralized method.

        Raises
        ------
        fkl.errors.BadValue
        """
        require(world.dictionary.N == 1, "kernels.N", world.dictionary.N, f"1: {self.label} learns one kernel")
        assert world.topology is not None  # the configuration gives every decentralized method a graph
        return world.topology
