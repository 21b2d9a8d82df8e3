"""A graph with one-way links."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.network.topology import Awake, Neighbours, Topology


@dataclass(frozen=True)
class OneWay(Topology):
    """A graph of one-way links with a path from every agent to every other.

    An agent knows which agents it hears and how many hear it, but nothing about its neighbours, because it may have no
    link to ask them. The weights of averages, `metropolis`, are therefore 1 / (1 + d_i) for the d_i agents that agent i
    hears and for itself: rows sum to 1, but columns may not.

    Parameters
    ----------
    agents : int
    links : (E, 2) int
        [receiver, sender], by receiver, then by sender.
    """

    both_ways: ClassVar[bool] = False

    @property
    def edges(self) -> int:
        """E, the links."""
        return len(self.links)

    @property
    def listed(self) -> NDArray[np.int64]:
        """Every link, [sender, receiver]."""
        return self.links[:, ::-1]

    @cached_property
    def edge(self) -> NDArray[np.int64]:
        """Each link is a separate edge."""
        return np.arange(len(self.links))

    @cached_property
    def neighbours(self) -> Neighbours:
        """As in `Topology`, without the neighbours' degrees."""
        receiver, sender = self.links.T
        back = np.argsort(np.lexsort((receiver, sender)))
        return Neighbours(self.degree, receiver, sender, np.zeros(len(sender)), back, self.listeners)

    def awake(self, up: NDArray[np.bool_], before: NDArray[np.bool_]) -> Awake:
        """As in `Topology`, without the knowledge of others."""
        return replace(super().awake(up, before), theirs=np.zeros(up.shape))

    @cached_property
    def spectral_gap(self) -> float:
        """As in `Topology`, from all eigenvalues, because the matrix is not symmetric."""
        if self.agents == 1:
            return 1.0
        return float(1 - np.sort(np.abs(np.linalg.eigvals(self.metropolis.toarray())))[-2])
