"""What agents on a graph last heard from each other."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fkl.network.topology import Topology

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Heard:
    """The last message of every agent that its neighbours received.

    Parameters
    ----------
    topology : Topology
    copies : (R, K, P), or (R, links, P)
        One copy of each agent's message where all its neighbours hold the same, else one a directed link.
    by_link : bool
        Which of these.
    """

    topology: Topology
    copies: Array
    by_link: bool

    def sum(self) -> Array:
        """Sum over each agent's neighbours, (R, K, P)."""
        if not self.by_link:
            return self.topology.neighbour_sum(self.copies)
        return self._sum_by_receiver(self.copies)

    def mix(self, own: Array) -> Array:
        """Metropolis average of what an agent has itself, own (R, K, P), and what it heard: (R, K, P)."""
        if not self.by_link:
            return self.topology.mix(self.copies)  # an agent's neighbours hold what it has
        degree, links = self.topology.degree, self.topology.links
        between = 1 / (1 + degree[links].max(axis=1, initial=0))[:, None]
        return self.topology.metropolis.diagonal()[:, None] * own + self._sum_by_receiver(between * self.copies)

    def updated(self, message: Array, arrived: NDArray[np.bool_]) -> "Heard":
        """Take in messages (R, K, P) where they arrived, (R, K) or (R, links)."""
        sent = message[:, self.topology.links[:, 1]] if self.by_link else message
        return replace(self, copies=np.where(arrived[..., None], sent, self.copies))

    def _sum_by_receiver(self, by_link: Array) -> Array:
        if by_link.shape[1] == 0:
            return np.zeros((len(by_link), self.topology.agents, by_link.shape[2]))
        first = np.searchsorted(self.topology.links[:, 0], np.arange(self.topology.agents))
        return np.add.reduceat(by_link, first, axis=1)
