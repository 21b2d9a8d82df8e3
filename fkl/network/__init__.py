"""Who hears whom and when: graphs of agents, links, participation, response times, and what links cost."""

from fkl.network.settings import Network
from fkl.network.topology import Topology

__all__ = ["Network", "Topology"]
