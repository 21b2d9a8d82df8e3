"""Messages as bytes: what a party on another machine would be sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.network.messages import Each, Payload, Shared, kinds

Array = NDArray[Any]


class Part(NamedTuple):
    """One payload as bytes: those of its chosen entries, and the bits that say which these are."""

    kind: type[Shared] | type[Each]
    shape: tuple[int, ...]
    dtype: str
    body: bytes
    bits: bytes


@dataclass(frozen=True)
class Packet:
    """A message on a wire, from or to one client.

    Parameters
    ----------
    kind : type
        Class of the message.
    parts : dict of str to (tuple of Part, bool)
        By field, and whether the field is a tuple.
    """

    kind: type
    parts: Mapping[str, tuple[tuple[Part, ...], bool]]

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        return sum(len(part.body) + len(part.bits) for parts, _ in self.parts.values() for part in parts)


def packed(message: Any, k: int, width: int) -> Packet | None:
    """The message of one replicate that client k, among those of its arrays, sends or receives; None for nothing."""
    if message is None:
        return None
    parts = {
        kind: (tuple(_part(payload, k, width) for payload in payloads), isinstance(getattr(message, kind), tuple))
        for kind, payloads in kinds(message)
    }
    return Packet(type(message), parts)


def unpacked(packets: list[Packet]) -> Any:
    """The message that these of several clients are, a client after another."""
    fields = {}
    for name, (parts, several) in packets[0].parts.items():
        joined = tuple(_joined([packet.parts[name][0][j] for packet in packets]) for j in range(len(parts)))
        fields[name] = joined if several else joined[0]
    return packets[0].kind(**fields)


def _part(payload: Payload, k: int, width: int) -> Part:
    dense = payload.dense()
    values = dense.values[0] if isinstance(dense, Shared) else dense.values[0, k]
    wire = values.astype(f"{_letter(values)}{width}")
    bits, chosen = b"", None if isinstance(dense, Shared) or dense.chosen is None else dense.chosen[0, k]
    if chosen is not None and not chosen.all():
        wire = wire[chosen if len(chosen) > 1 else np.zeros(len(wire), np.bool_)]
    if chosen is not None and len(chosen) > 1 and chosen.any():
        bits = np.packbits(chosen).tobytes()
    return Part(type(dense), values.shape, values.dtype.str, wire.tobytes(), bits)


def _joined(parts: list[Part]) -> Shared | Each:
    if parts[0].kind is Shared:
        return Shared(_values(parts[0])[None])
    return Each(np.stack([_values(part) for part in parts])[None])


def _values(part: Part) -> Array:
    """Array of a part, 0 where nothing travelled."""
    values = np.zeros(part.shape, part.dtype)
    entries = values.reshape(part.shape[0] if part.shape else 1, -1)
    chosen = np.full(len(entries), bool(part.body))
    if part.bits:
        chosen = np.unpackbits(np.frombuffer(part.bits, np.uint8), count=len(entries)).astype(np.bool_)
    if chosen.any():
        scalars = int(chosen.sum()) * entries.shape[1]
        body = np.frombuffer(part.body, f"{_letter(values)}{len(part.body) // scalars}")
        entries[chosen] = body.reshape(-1, entries.shape[1])
    return values


def _letter(values: Array) -> str:
    """Of the numbers that values travel as, whatever their width."""
    return "i" if values.dtype.kind in "iub" else "f"
