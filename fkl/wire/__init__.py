"""Messages between parties: payloads, letters and packets, the channel that passes them, and the ledger."""

from fkl.wire.channel import UNITS, Channel, Inbox, Ledger

__all__ = ["UNITS", "Channel", "Inbox", "Ledger"]
