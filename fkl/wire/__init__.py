"""Messages between parties: payloads, letters and packets, the channel that passes them, and the ledger."""

from fkl.wire.channel import Channel
from fkl.wire.inbox import Inbox
from fkl.wire.ledger import UNITS, Ledger

__all__ = ["UNITS", "Channel", "Inbox", "Ledger"]
