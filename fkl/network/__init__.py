"""The network: the channel data leaves a party by, the ledger behind it, and what links cost."""

from fkl.network.channel import Channel, Network
from fkl.network.ledger import UNITS, Ledger

__all__ = ["UNITS", "Channel", "Ledger", "Network"]
