"""Messages between parties, and the ledger that counts them.

`payloads` are the parts of a message and know their size, `letters` are sent from one party to another, `packets` are
the bytes of both. All data that leave a party pass through `channel.Channel`. Start with `payloads`.
"""

from fkl.wire.channel import UNITS, Channel, Inbox, Ledger

__all__ = ["UNITS", "Channel", "Inbox", "Ledger"]
