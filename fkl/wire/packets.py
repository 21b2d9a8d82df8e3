"""Messages as bytes, as sent to a party on another machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fkl.wire.numbers import Part
from fkl.wire.payloads import is_message, kinds


@dataclass(frozen=True)
class Packet:
    """A message on a wire, from or to one client.

    Parameters
    ----------
    kind : type
        Class of the message.
    parts : dict of str to (tuple of Part, bool)
        By field, and whether the field is a tuple.
    within : dict of str to Packet
        Nested messages, by field.
    """

    kind: type
    parts: Mapping[str, tuple[tuple[Part, ...], bool]]
    within: Mapping[str, "Packet"] = field(default_factory=dict)

    @property
    def form(self) -> Any:
        """Everything except the bytes: both ends know it before anything is sent."""
        own = {
            name: ([(part.kind, part.known) for part in parts], several)
            for name, (parts, several) in self.parts.items()
        }
        return self.kind, own, {name: packet.form for name, packet in self.within.items()}

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        own = sum(len(part.body) + len(part.bits) for parts, _ in self.parts.values() for part in parts)
        return own + sum(packet.size for packet in self.within.values())


def packed(message: Any, k: int, width: int) -> Packet | None:
    """The message of one replicate that client k, an index into its arrays, sends or receives; None for nothing.

    For a message with one array per link, k is the link's index.
    """
    if message is None:
        return None
    held = {one.name: getattr(message, one.name) for one in fields(message)}
    within = {name: packed(value, k, width) for name, value in held.items() if is_message(value)}
    parts = {
        kind: (tuple(payload.dense().packed(k, width) for payload in payloads), isinstance(held[kind], tuple))
        for kind, payloads in kinds(message)
        if kind in held and kind not in within
    }
    return Packet(type(message), parts, {name: one for name, one in within.items() if one is not None})


def unpacked(packets: list[Packet]) -> Any:
    """One message from those of several clients, client after client."""
    made: dict[str, Any] = {name: unpacked([packet.within[name] for packet in packets]) for name in packets[0].within}
    for name, (parts, several) in packets[0].parts.items():
        joined = tuple(
            part.kind.from_parts([packet.parts[name][0][j] for packet in packets]) for j, part in enumerate(parts)
        )
        made[name] = joined if several else joined[0]
    return packets[0].kind(**made)
