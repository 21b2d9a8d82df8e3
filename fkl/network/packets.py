"""Messages as bytes: what a party on another machine would be sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.network.messages import (
    Each,
    OnLinks,
    Padding,
    Payload,
    Quantised,
    Ragged,
    Residues,
    Shared,
    is_message,
    kinds,
)

Array = NDArray[Any]


class Part(NamedTuple):
    """One payload as bytes: those of its chosen entries, and the bits that say which these are.

    Of a `Quantised` one the body is its unit; the bits are its codes, so many each.
    """

    kind: type[Shared] | type[Each] | type[Quantised] | type[Ragged] | type[Residues] | type[Padding] | type[OnLinks]
    shape: tuple[int, ...]
    dtype: str
    body: bytes
    bits: bytes
    each: int = 1


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
        By field, messages that this one holds.
    """

    kind: type
    parts: Mapping[str, tuple[tuple[Part, ...], bool]]
    within: Mapping[str, "Packet"] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        own = sum(len(part.body) + len(part.bits) for parts, _ in self.parts.values() for part in parts)
        return own + sum(packet.size for packet in self.within.values())


def packed(message: Any, k: int, width: int) -> Packet | None:
    """The message of one replicate that client k, among those of its arrays, sends or receives; None for nothing.

    Of a message that is another one on each link, k is the link's place.
    """
    if message is None:
        return None
    held = {one.name: getattr(message, one.name) for one in fields(message)}
    within = {name: packed(value, k, width) for name, value in held.items() if is_message(value)}
    parts = {
        kind: (tuple(_part(payload, k, width) for payload in payloads), isinstance(held[kind], tuple))
        for kind, payloads in kinds(message)
        if kind in held and kind not in within
    }
    return Packet(type(message), parts, {name: one for name, one in within.items() if one is not None})


def unpacked(packets: list[Packet]) -> Any:
    """The message that these of several clients are, a client after another."""
    made: dict[str, Any] = {name: unpacked([packet.within[name] for packet in packets]) for name in packets[0].within}
    for name, (parts, several) in packets[0].parts.items():
        joined = tuple(_joined([packet.parts[name][0][j] for packet in packets]) for j in range(len(parts)))
        made[name] = joined if several else joined[0]
    return packets[0].kind(**made)


def _part(payload: Payload, k: int, width: int) -> Part:
    dense = payload.dense()
    if isinstance(dense, Quantised):
        return _coded(dense, k, width)
    if isinstance(dense, Padding):
        return Part(Padding, (), "", bytes(dense.size), b"")
    if isinstance(dense, Residues):
        own = dense.values[0, k]
        return Part(Residues, own.shape, "", b"", to_bits(own.ravel(), dense.bits), dense.bits)
    if isinstance(dense, Ragged):
        of_clients = dense.values[0]
        values = of_clients[k if len(of_clients) > 1 else 0]
    else:
        values = dense.values[0] if isinstance(dense, Shared) else dense.values[0, k]
    wire = values.astype(f"{_letter(values)}{width}")
    bits, chosen = b"", None if not isinstance(dense, Each) or dense.chosen is None else dense.chosen[0, k]
    if chosen is not None and not chosen.all():
        wire = wire[chosen if len(chosen) > 1 else np.zeros(len(wire), np.bool_)]
    if chosen is not None and len(chosen) > 1 and chosen.any():
        bits = np.packbits(chosen).tobytes()
    return Part(type(dense), values.shape, values.dtype.str, wire.tobytes(), bits)


def _coded(dense: Quantised, k: int, width: int) -> Part:
    """Codes one after another, moved to integers from 0."""
    codes, unit = dense.codes[0, k], dense.unit[0, k]
    from_0 = (codes.astype(np.int64) + 2 ** (dense.bits - 1)).astype(">u2").view(np.uint8)
    bits = np.unpackbits(from_0.reshape(-1, 2), axis=1)[:, -dense.bits :]
    body = unit.astype(f"f{width}").tobytes()
    return Part(Quantised, codes.shape, unit.dtype.str, body, np.packbits(bits).tobytes(), dense.bits)


def _decoded(parts: list[Part]) -> Quantised:
    unit = np.stack([np.frombuffer(part.body, f"f{len(part.body)}").astype(part.dtype) for part in parts])
    length, each = parts[0].shape[0], parts[0].each
    bits = np.stack([np.unpackbits(np.frombuffer(part.bits, np.uint8), count=length * each) for part in parts])
    from_0 = bits.reshape(len(parts), length, each) @ 2 ** np.arange(each)[::-1]
    return Quantised((from_0 - 2 ** (each - 1)).astype(np.int16)[None], unit[None], each)


def to_bits(values: NDArray[np.uint64], bits: int) -> bytes:
    """Whole numbers (n,) modulo 2^bits, so many bits each, one after another."""
    each = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)[:, 64 - bits :]
    return np.packbits(each).tobytes()


def from_bits(packed: bytes, bits: int, count: int) -> NDArray[np.uint64]:
    """So many numbers that `to_bits` wrote."""
    each = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * bits).reshape(count, bits)
    whole = np.pad(each, ((0, 0), (64 - bits, 0)))
    return np.packbits(whole, axis=1).view(">u8").ravel().astype(np.uint64)


def _joined(parts: list[Part]) -> Shared | Each | Quantised | Ragged | Residues | Padding | OnLinks:
    if parts[0].kind is Padding:
        return Padding(1, len(parts[0].body))
    if parts[0].kind is Residues:
        each = [from_bits(part.bits, part.each, prod(part.shape)).reshape(part.shape) for part in parts]
        return Residues(np.stack(each)[None], parts[0].each)
    if parts[0].kind is Shared:
        return Shared(_values(parts[0])[None])
    if parts[0].kind is Quantised:
        return _decoded(parts)
    if parts[0].kind is Ragged:
        return Ragged((tuple(map(_values, parts)),))
    kind = OnLinks if parts[0].kind is OnLinks else Each
    return kind(np.stack([_values(part) for part in parts])[None])


def _values(part: Part) -> Array:
    """Array of a part, 0 where nothing travelled."""
    values = np.zeros(part.shape, part.dtype)
    if not part.body:
        return values
    entries = values.reshape(part.shape[0] if part.shape else 1, -1)
    chosen = np.ones(len(entries), np.bool_)
    if part.bits:
        chosen = np.unpackbits(np.frombuffer(part.bits, np.uint8), count=len(entries)).astype(np.bool_)
    scalars = int(chosen.sum()) * entries.shape[1]
    body = np.frombuffer(part.body, f"{_letter(values)}{len(part.body) // scalars}")
    entries[chosen] = body.reshape(-1, entries.shape[1])
    return values


def _letter(values: Array) -> str:
    """Of the numbers that values travel as, whatever their width."""
    return "i" if values.dtype.kind in "iub" else "f"
