"""The network: who can exchange messages, and when.

`graphs` and `topology` are graphs of agents, `participation` says which clients take part in a round, `settings` has
the cost of links and the times of clients. Begin with `settings.Network`.
"""

from fkl.network.settings import Network
from fkl.network.topology import Topology

__all__ = ["Network", "Topology"]
