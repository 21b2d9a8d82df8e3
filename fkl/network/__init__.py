"""The network: which parties can exchange messages, and when.

`graphs` and `topology` have graphs of agents, `participation` says which clients take part in a round, `settings` has
the cost of links and the times of clients. Start with `settings.Network`.
"""

from fkl.network.settings import Network
from fkl.network.topology import Topology

__all__ = ["Network", "Topology"]
