"""The network: the channel data leaves a party by, the ledger behind it, graphs of agents, and what links cost."""

from fkl.network.channel import Channel, Network
from fkl.network.ledger import UNITS, Ledger
from fkl.network.neighbours import Heard
from fkl.network.topology import Topology

__all__ = ["UNITS", "Channel", "Heard", "Ledger", "Network", "Topology"]
