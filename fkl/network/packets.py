"""Messages as bytes: what a party on another machine would be sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.network.messages import (
    Dense,
    Each,
    Few,
    ForAll,
    OnLinks,
    Padding,
    Payload,
    Quantised,
    Ragged,
    Residues,
    Shared,
    is_message,
    kinds,
    position_bits,
)  # fmt: skip

Array = NDArray[Any]


class Part(NamedTuple):
    """One payload as bytes: those of its chosen entries, and the bits that say which these are.

    Of a `Quantised` one the body is its units; the bits are a mask of `masked` entries and then its codes, so many bits
    each. What is beside body and bits is known to both ends before anything is sent.
    """

    kind: type[Dense]
    shape: tuple[int, ...]
    dtype: str
    body: bytes
    bits: bytes
    each: int = 1
    masked: int = 0
    adds: bool = False
    for_all: bool = False


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
    if isinstance(dense, ForAll):
        return _part(dense.code, 0, width)._replace(for_all=True)
    if isinstance(dense, Quantised):
        return _coded(dense, k, width)
    if isinstance(dense, Padding):
        return Part(Padding, (), "", bytes(dense.size), b"")
    if isinstance(dense, Residues):
        own = dense.values[0, k]
        return Part(Residues, own.shape, "", b"", to_bits(own.ravel(), dense.bits), dense.bits)
    if isinstance(dense, Few):
        return _few(dense, k, width)
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
    sent, scales = (part[0, k] for part in dense.travels())
    body = unit.reshape(-1)[scales].astype(f"f{width}").tobytes()
    numbers = codes.reshape(-1)[sent].astype(np.int64)
    bits = _bits(numbers > 0 if dense.bits == 1 else numbers + 2 ** (dense.bits - 1), dense.bits)
    masked = 0 if dense.chosen is None else dense.chosen.shape[2]
    mask = np.packbits(dense.chosen[0, k]).tobytes() if dense.chosen is not None and masked > 1 and sent.any() else b""
    return Part(Quantised, codes.shape, unit.dtype.str, body, mask + bits, dense.bits, masked, dense.adds)


def _decoded(part: Part) -> Quantised:
    """Of one sender; codes and units are 0 where nothing travelled."""
    shape, each, raw = part.shape, part.each, np.frombuffer(part.bits, np.uint8)
    codes, unit = np.zeros(shape, np.int16), np.zeros((*shape[:-1], 1), part.dtype)
    if part.body:
        chosen, mask = np.ones(1, np.bool_), -(-part.masked // 8) if part.masked > 1 else 0
        if mask:
            chosen = np.unpackbits(raw[:mask], count=part.masked).astype(np.bool_)
        sent = np.broadcast_to(chosen.reshape(-1, *(1,) * (len(shape) - 1)), shape)
        scales = sent.any(axis=-1)
        numbers = _numbers(raw[mask:], int(sent.sum()), each)
        codes[sent] = 2 * numbers - 1 if each == 1 else numbers - 2 ** (each - 1)
        unit[scales] = np.frombuffer(part.body, f"f{len(part.body) // int(scales.sum())}")[:, None]
    return Quantised(codes[None, None], unit[None, None], each, None, part.adds)


def to_bits(values: NDArray[np.uint64], bits: int) -> bytes:
    """Whole numbers (n,) modulo 2^bits, so many bits each, one after another."""
    each = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)[:, 64 - bits :]
    return np.packbits(each).tobytes()


def from_bits(packed: bytes, bits: int, count: int) -> NDArray[np.uint64]:
    """So many numbers that `to_bits` wrote."""
    each = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * bits).reshape(count, bits)
    whole = np.pad(each, ((0, 0), (64 - bits, 0)))
    return np.packbits(whole, axis=1).view(">u8").ravel().astype(np.uint64)


def _few(dense: Few, k: int, width: int) -> Part:
    """Values in the order of their places; a bit for every place, or the places' numbers."""
    values, kept = dense.values[0, k], dense.kept[0, k].reshape(-1)
    body = values.reshape(-1)[kept].astype(f"f{width}").tobytes()
    by_mask, each = _by_mask(int(kept.sum()), len(kept))
    places = np.packbits(kept).tobytes() if by_mask else _bits(np.flatnonzero(kept), each)
    return Part(Few, values.shape, values.dtype.str, body, places if kept.any() else b"", width, adds=dense.adds)


def _filled(part: Part) -> Few:
    """Of one sender."""
    kept, raw = np.zeros(part.shape, np.bool_), np.frombuffer(part.bits, np.uint8)
    values, found = np.zeros(part.shape, part.dtype), len(part.body) // part.each
    by_mask, each = _by_mask(found, kept.size)
    if found and by_mask:
        kept = np.unpackbits(raw, count=kept.size).astype(np.bool_).reshape(part.shape)
    elif found:
        kept.reshape(-1)[_numbers(raw, found, each)] = True
    values[kept] = np.frombuffer(part.body, f"f{part.each}")
    return Few(values[None, None], kept[None, None], part.adds)


def _by_mask(kept: int, size: int) -> tuple[bool, int]:
    """Whether a mask is less than numbers for those that are kept, and bits of a number; both ends know it alike."""
    return int(position_bits(np.array([kept]), size)[0]) == size, (size - 1).bit_length()


def _bits(numbers: Array, each: int) -> bytes:
    """Whole numbers from 0, so many bits each, in whole bytes."""
    wide = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)
    return np.packbits(np.unpackbits(wide, axis=1)[:, 64 - each :]).tobytes()


def _numbers(raw: NDArray[np.uint8], count: int, each: int) -> NDArray[np.int64]:
    """As they went into `_bits`."""
    bits = np.unpackbits(raw, count=count * each).reshape(count, each).astype(np.int64)
    return bits @ (2 ** np.arange(each)[::-1])


def _joined(parts: list[Part]) -> Dense:
    if parts[0].kind is Padding:
        return Padding(1, len(parts[0].body))
    if parts[0].kind is Residues:
        each = [from_bits(part.bits, part.each, prod(part.shape)).reshape(part.shape) for part in parts]
        return Residues(np.stack(each)[None], parts[0].each)
    if parts[0].kind is Shared:
        return Shared(_values(parts[0])[None])
    if parts[0].kind is Quantised:
        return _of_senders([_decoded(part) for part in parts], parts[0].for_all)
    if parts[0].kind is Few:
        return _of_senders([_filled(part) for part in parts], parts[0].for_all)
    if parts[0].kind is Ragged:
        return Ragged((tuple(map(_values, parts)),))
    kind = OnLinks if parts[0].kind is OnLinks else Each
    return kind(np.stack([_values(part) for part in parts])[None])


def _of_senders(codes: list[Any], for_all: bool) -> Dense:
    """One payload of several, a sender beside the other; of what is for all there is one."""
    if for_all:
        return ForAll(codes[0])
    names = ("codes", "unit") if isinstance(codes[0], Quantised) else ("values", "kept")
    joined = {name: np.concatenate([getattr(one, name) for one in codes], axis=1) for name in names}
    together: Dense = replace(codes[0], **joined)
    return together


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
