"""Messages between parties, and the ledger that counts them.

`payloads` are the parts of a message and know their size, `letters` go from one party to another, `packets` are the
bytes of both. Everything that leaves a party passes `channel.Channel`. Begin with `payloads`.
"""

from fkl.wire.channel import UNITS, Channel, Inbox, Ledger

__all__ = ["UNITS", "Channel", "Inbox", "Ledger"]
