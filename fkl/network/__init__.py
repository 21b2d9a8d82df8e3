"""The network: the channel data leaves a party by, the ledger behind it, graphs of agents, and what links cost."""

from fkl.network.channel import Channel, Network
from fkl.network.inbox import Inbox
from fkl.network.ledger import UNITS, Ledger
from fkl.network.topology import Topology

__all__ = ["UNITS", "Channel", "Inbox", "Ledger", "Network", "Topology"]
