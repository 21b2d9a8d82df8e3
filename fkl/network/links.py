"""Links between agents that are not always up."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fkl.basics.keys import Keys, key
from fkl.basics.random_streams import Role, Streams
from fkl.network.topology import Topology

Up = NDArray[np.bool_]
AWAKE = ("edge", "matching")
DIAGONAL = 2**0.5


class Links(Protocol):
    """Links of a graph that are up, as a function of the seed, the replicate and the iteration."""

    always_up: bool
    """Whether all links are always up; nothing is then drawn."""

    def up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        ...


@dataclass(frozen=True)
class Failing(Keys):
    """Every edge is down in an iteration with the same probability, independently of other edges and iterations."""

    p: float = key(0.1, "Probability that an edge is down, in both directions together.", least=0, below=1)

    @property
    def always_up(self) -> bool:
        """Whether p is 0."""
        return self.p == 0

    def up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        drawn = streams.uniform(Role.LINKS, t, topology.edges)
        return np.asarray(drawn >= self.p)[:, topology.edge]


@dataclass(frozen=True)
class Gossip(Keys):
    """Agents wake up in pairs; Boyd, Ghosh, Prabhakar and Shah, "Randomized gossip algorithms" (2006)."""

    awake: str = key(
        "matching",
        "``edge`` is one random edge. ``matching`` has edges without common agents: each edge draws a number, and "
        "an edge is up if its number is the smallest among all edges of both its agents (Luby, 1986). Agents then "
        "only need to ask their neighbours.",
        among=AWAKE,
    )
    always_up: ClassVar[bool] = False
    in_pairs: ClassVar[bool] = True
    """Whether the agents of an edge have to hear each other."""

    def up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        number = streams.uniform(Role.LINKS, t, topology.edges)[:, topology.edge]  # (R, links)
        if topology.edges == 0:
            return np.zeros(number.shape, np.bool_)
        if self.awake == "edge":
            return np.asarray(number == number.min(axis=1, keepdims=True))
        first = np.searchsorted(topology.links[:, 0], np.arange(topology.agents))  # a connected graph: all have links
        least = np.minimum.reduceat(number, first, axis=1)
        return np.asarray((number == least[:, topology.links[:, 0]]) & (number == least[:, topology.links[:, 1]]))


@dataclass(frozen=True)
class Mobility(Keys):
    """Agents move straight in a square of side 1 and are reflected at its walls; a link is up within a radius.

    Camp, Boleng and Davies, "A survey of mobility models for ad hoc network research" (2002), random directions.
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
        0.01, "Sides of the square per iteration.", least=0, must="a number >= 0, in sides of the square an iteration"
    )

    @property
    def always_up(self) -> bool:
        """Whether the radius is at least the diagonal of the square."""
        return self.radius >= DIAGONAL

    def places(self, streams: Streams, t: int, agents: int) -> NDArray[np.float64]:
        """Positions of the agents in iteration t + 1, (R, K, 2)."""
        drawn = streams.vectors(Role.LINKS, 0, range(agents), 3)
        angle = 2 * np.pi * drawn[..., 2:]
        straight = drawn[..., :2] + self.speed * t * np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)
        return 1 - np.abs(straight % 2 - 1)  # there and back again

    def up(self, streams: Streams, t: int, topology: Topology) -> Up:
        """Links that are up in iteration t + 1, (R, links), the two directions of an edge together."""
        places = self.places(streams, t, topology.agents)
        one, other = topology.links.T
        apart = np.linalg.norm(places[:, one] - places[:, other], axis=-1)
        return np.asarray(apart <= self.radius)
