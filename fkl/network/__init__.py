"""The network: graphs of agents, links, participation, response times, and costs of links."""

from fkl.network.settings import Network
from fkl.network.topology import Topology

__all__ = ["Network", "Topology"]
