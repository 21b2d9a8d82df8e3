"""Messages from neighbours that agents on a graph store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, known_everywhere, namespace
from fkl.network.topology import Awake, Neighbours, Topology
from fkl.wire.payloads import OnLinks, kinds, with_axes_of


@dataclass(frozen=True)
class Inbox:
    """Each agent's copy of its neighbours' messages, by kind: the last message, or the sum of all sent changes.

    Parameters
    ----------
    graph : Neighbours or Topology
        The agents' knowledge of the graph. If no message is lost, it is the graph itself for all agents at once,
        because all neighbours of an agent then hold the same copy.
    held : mapping of str to array
        For each kind (R, links, ...), a copy for each link; or (R, K, ...), a copy for each agent. Only this changes.
    awake : Awake or None
        Links that are up in this iteration; None if all always are.
    """

    graph: Neighbours | Topology
    held: Mapping[str, Array]
    awake: Awake | None = None

    @classmethod
    def before(cls, graph: Neighbours | Topology, known: Any) -> "Inbox":
        """The inbox before the first round, when agents hold the same message of `SameForAll` for every neighbour."""
        shared: dict[str, Any] = {kind: payload for kind, (payload,) in kinds(known)}
        return cls(graph, {kind: np.repeat(shared[kind].values[:, None], graph.copies, axis=1) for kind in shared})

    @property
    def degree(self) -> NDArray[np.float64]:
        """Number of neighbours of each agent, (K,)."""
        return self.graph.degree

    def sum(self, kind: str) -> Array:
        """Sum over each agent's neighbours, (R, K, ...)."""
        return self._summed(self.held[kind])

    @property
    def listeners(self) -> NDArray[np.float64]:
        """Number of agents that hear each agent in this iteration, (K,) or (R, K)."""
        return self.graph.listeners if self.awake is None else self.awake.listeners

    def heard(self, kind: str) -> Array:
        """As `sum`, over neighbours whose links are up in this iteration."""
        if self.awake is None:
            return self.sum(kind)
        held = self.held[kind]
        return self._summed(namespace(held).where(with_axes_of(held, self.awake.up), held, 0.0))

    def mix(self, kind: str, own: Array) -> Array:
        """Average by Metropolis weights of agents' own arrays, own (R, K, ...), and their copies of neighbours."""
        mixed: Array = self.graph.mix(_with_one_axis(self.held[kind]), _with_one_axis(own), self.awake)  # type: ignore[arg-type]
        return mixed.reshape(own.shape)

    def _summed(self, held: Array) -> Array:
        """Sums over each agent's neighbours; arrays with several axes are flattened for this."""
        summed = self.graph.neighbour_sum(_with_one_axis(held))
        return summed.reshape(*summed.shape[:2], *held.shape[2:])

    def on_links(self, own: Array) -> Array:
        """Agents' own arrays, own (R, K, ...), repeated for each of their links, (R, links, ...)."""
        assert isinstance(self.graph, Neighbours)  # for a method with `on_links`, see fkl.contract.graph
        return own[:, self.graph.receiver]

    def after(self, message: Any, arrived: NDArray[np.bool_], keep: Callable[[Array, Array], Array]) -> "Inbox":
        """The inbox after the messages that arrived, (R, links) or (R, K); other copies do not change.

        The method decides which copy to store: `fkl.contract.graph.Decentralized.keep`.
        """
        held, everywhere = dict(self.held), known_everywhere(arrived)
        for kind, (payload,) in kinds(message):
            new = keep(held[kind], self.graph.incoming(payload, isinstance(payload, OnLinks)).added_to(held[kind]))
            held[kind] = new if everywhere else namespace(new).where(with_axes_of(new, arrived), new, held[kind])
        return replace(self, held=held)


def _with_one_axis(held: Array) -> Array:
    """The same array with one axis for all entries of an agent, (R, K, P), for sums and averages on graphs."""
    return held if held.ndim == 3 else held.reshape(*held.shape[:2], prod(held.shape[2:]))
