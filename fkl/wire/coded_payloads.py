"""Payloads that conditions put in for a method's payloads: few bits, residues, bytes of a protocol."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace
from fkl.wire.payloads import (
    Axes,
    Counts,
    Payload,
    PayloadPart,
    PerClient,
    Size,
    Summable,
    from_bits,
    known_mask,
    require_leading,
    to_bits,
    with_axes_of,
)


class CodedArrays(Summable):
    """Every client's array in a coded form; it may be a change to add to the sum of earlier messages."""

    def tile_sums(self: Any, share: Array) -> Array:
        """Weighted sums over the clients of each tile, (tiles, R, ...)."""
        return PerClient(self.values).tile_sums(share)

    def added_to(self: Any, held: Array) -> Array:
        """A receiver's new copy, given its old copy (R, K, ...): the message, or the sum of both."""
        sent: Array = held + self.values if self.adds else self.values
        return sent


@dataclass(frozen=True)
class Quantised(CodedArrays):
    """Every client's array with few bits per scalar; each vector along the last axis has its own unit.

    Parameters
    ----------
    codes : (R, K, ..., P) int16
        Integers from -(2^(bits - 1) - 1) to 2^(bits - 1) - 1; with one bit, -1 or 1.
    unit : (R, K, ..., 1)
        Value of code 1 in each vector, in full precision.
    bits : int
        From 1 to 16.
    chosen : (R, K, n) bool, or None
        As in `PerClient`; a vector without chosen entries has unit 0, and the unit is not sent either.
    adds : bool
        Whether it is a change to add to the sum of earlier messages.
    """

    leading = {"codes": "RK", "unit": "RK", "chosen": "RK"}  # noqa: RUF012

    codes: NDArray[np.int16]
    unit: Array
    bits: int
    chosen: NDArray[np.bool_] | None = None
    adds: bool = False

    @classmethod
    def round_to_nearest(
        cls, values: Array, bits: int, chosen: NDArray[np.bool_] | None = None, adds: bool = False
    ) -> "Quantised":
        """Round to the nearest of 2^bits - 1 even steps from -max |values| to max |values| of each vector."""
        unit, steps = _in_steps(values, bits)
        return cls(array_namespace(steps).rint(steps).astype(np.int16), unit, bits, chosen, adds)

    @classmethod
    def round_at_random(
        cls, values: Array, bits: int, uniform: Array, chosen: NDArray[np.bool_] | None = None, adds: bool = False
    ) -> "Quantised":
        """Round to the step below or above, chosen by `uniform` in [0, 1) without bias."""
        unit, steps = _in_steps(values, bits)
        below = array_namespace(steps).floor(steps)
        codes = below + (uniform >= 1 - (steps - below))  # floor(steps + uniform) may round up too far
        return cls(codes.astype(np.int16), unit, bits, chosen, adds)

    @cached_property
    def values(self) -> Array:
        """The vectors (R, K, ..., P)."""
        return self.unit * self.codes

    def sent_mask(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Masks of the codes (R, K, scalars) and units (R, K, vectors) that are sent."""
        R, K, *rest = self.codes.shape
        chosen = np.ones((R, K, 1), np.bool_) if self.chosen is None else self.chosen
        every = array_namespace(chosen).broadcast_to(with_axes_of(self.codes, chosen), self.codes.shape)
        return every.reshape(R, K, prod(rest)), every.any(axis=-1).reshape(R, K, prod(rest[:-1]))

    def wire_size(self, width: int) -> Size:
        """Size of the vectors' units, of the codes' bits in whole bytes, and of a mask as in `PerClient`."""
        codes, units = (part.sum(axis=2) for part in self.sent_mask())
        mask = 0 if self.chosen is None or self.chosen.shape[2] == 1 else -(-self.chosen.shape[2] // 8) * (codes > 0)
        return Size(codes + units, -(-codes * self.bits // 8) + units * width + mask)

    def packed(self, k: int, width: int) -> PayloadPart:
        """Client k's units as scalars; its bits are the mask of chosen entries, and the codes as integers from 0."""
        codes, unit = self.codes[0, k], self.unit[0, k]
        sent, scales = (part[0, k] for part in self.sent_mask())
        body = unit.reshape(-1)[scales].astype(f"f{width}").tobytes()
        numbers = codes.reshape(-1)[sent].astype(np.int64)
        bits = to_bits(numbers > 0 if self.bits == 1 else numbers + 2 ** (self.bits - 1), self.bits)
        masked = 0 if self.chosen is None or self.chosen.shape[2] == 1 else self.chosen.shape[2]
        mask = np.packbits(self.chosen[0, k]).tobytes() if self.chosen is not None and masked and sent.any() else b""
        return PayloadPart(Quantised, (codes.shape, unit.dtype.str, self.bits, masked, self.adds), body, mask + bits)

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "Quantised":
        """One payload from the parts of several clients; codes and units that were not sent are 0."""
        every_code, every_unit, travelled = [], [], []
        # Part by part: what was sent, its codes, and its units
        for part in parts:
            (shape, dtype, bits_each, masked, _), raw = part.known, np.frombuffer(part.bits, np.uint8)
            codes, unit = np.zeros(shape, np.int16), np.zeros((*shape[:-1], 1), dtype)
            chosen = np.full(max(masked, 1), bool(part.body))
            # The mask comes first, in whole bytes
            if part.body:
                mask = -(-masked // 8)
                chosen = np.unpackbits(raw[:mask], count=masked).astype(np.bool_) if mask else chosen
                sent = np.broadcast_to(chosen.reshape(-1, *(1,) * (len(shape) - 1)), shape)
                scales = sent.any(axis=-1)
                # Codes of a given number of bits, shifted to positive numbers on the wire
                numbers = from_bits(part.bits[mask:], bits_each, int(sent.sum())).astype(np.int64)
                codes[sent] = 2 * numbers - 1 if bits_each == 1 else numbers - 2 ** (bits_each - 1)
                unit[scales] = np.frombuffer(part.body, f"f{len(part.body) // int(scales.sum())}")[:, None]
            every_code.append(codes)
            every_unit.append(unit)
            travelled.append(chosen)
        *_, bits, _, adds = parts[0].known
        return cls(np.stack(every_code)[None], np.stack(every_unit)[None], bits, known_mask(travelled), adds)


@dataclass(frozen=True)
class Sparse(CodedArrays):
    """A few entries of every client's array, with their positions as a mask or as numbers, whichever is shorter.

    Parameters
    ----------
    values : (R, K, ...)
        Zero in entries that are not kept.
    kept : (R, K, ...) bool
    adds : bool
        As in `Quantised`.
    """

    leading = {"values": "RK", "kept": "RK"}  # noqa: RUF012

    values: Array
    kept: NDArray[np.bool_]
    adds: bool = False

    @property
    def chosen(self) -> NDArray[np.bool_]:
        """The entries that are sent, as in `PerClient`."""
        return self.kept

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives."""
        R, K, *rest = self.kept.shape
        scalars = self.kept.reshape(R, K, -1).sum(axis=2)
        return Size(scalars, scalars * width + -(-position_bits(scalars, prod(rest)) // 8))

    def packed(self, k: int, width: int) -> PayloadPart:
        """Client k's values in the order of their positions, and the positions as a mask or as numbers."""
        values, kept = self.values[0, k], self.kept[0, k].reshape(-1)
        body = values.reshape(-1)[kept].astype(f"f{width}").tobytes()
        by_mask, bits_each = _by_mask(int(kept.sum()), len(kept))
        places = np.packbits(kept).tobytes() if by_mask else to_bits(np.flatnonzero(kept), bits_each)
        return PayloadPart(
            Sparse, (values.shape, values.dtype.str, width, self.adds), body, places if kept.any() else b""
        )

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "Sparse":
        """One payload from the parts of several clients."""
        of_all, kept_by_all = [], []
        for part in parts:
            shape, dtype, width, _ = part.known
            # Places of the values that are not 0, as a mask or as numbers, whichever is shorter
            values, kept, count = np.zeros(shape, dtype), np.zeros(shape, np.bool_), len(part.body) // width
            by_mask, bits_each = _by_mask(count, kept.size)
            if count and by_mask:
                places = np.unpackbits(np.frombuffer(part.bits, np.uint8), count=kept.size)
                kept = places.astype(np.bool_).reshape(shape)
            elif count:
                kept.reshape(-1)[from_bits(part.bits, bits_each, count).astype(np.int64)] = True
            values[kept] = np.frombuffer(part.body, f"f{width}")
            of_all.append(values)
            kept_by_all.append(kept)
        return cls(np.stack(of_all)[None], np.stack(kept_by_all)[None], parts[0].known[-1])


@dataclass(frozen=True)
class OneCodeForAll(Payload):
    """One code for every client, as `SameForAll` is one array for every client.

    Parameters
    ----------
    code : Quantised or Sparse
        Code of one sender, K = 1.
    """

    one_for_all = True

    def as_received(self, axes: Axes, width: int) -> "OneCodeForAll":
        """The payload as it arrives, after a check of its axes."""
        code = self.code.as_received({**axes, "K": 1}, width)
        return self if code is self.code else OneCodeForAll(code)

    code: Quantised | Sparse

    @property
    def values(self) -> Array:
        """The decoded values, (R, ...)."""
        return self.code.values[:, 0]

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives."""
        return self.code.wire_size(width)

    def packed(self, k: int, width: int) -> PayloadPart:
        """The code as bytes; it is the same for every client."""
        part = self.code.packed(0, width)
        return part._replace(kind=OneCodeForAll, known=(part.kind, part.known))

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "OneCodeForAll":
        """The payload from the part of any client: every client received the same."""
        kind, known = parts[0].known
        return cls(kind.from_parts([parts[0]._replace(kind=kind, known=known)]))


@dataclass(frozen=True)
class Residues(Payload):
    """Every client's integers modulo 2^bits.

    Parameters
    ----------
    values : (R, K, ...) uint64
    bits : int
        From 1 to 64.
    """

    def as_received(self, axes: Axes, width: int) -> "Residues":
        """Check the axes (R, K), and reduce the values modulo 2^bits."""
        require_leading(self.values.shape, "RK", axes, "Residues")
        return Residues(self.values & np.uint64(2**self.bits - 1), self.bits)

    values: NDArray[np.uint64]
    bits: int

    def wire_size(self, width: int) -> Size:
        """Size of numbers with `bits` bits each, in whole bytes."""
        R, count = len(self.values), prod(self.values.shape[2:])
        return Size(np.full((R, 1), count), np.full((R, 1), -(-count * self.bits // 8)))

    def packed(self, k: int, width: int) -> PayloadPart:
        """Client k's part as bytes; there is only one replicate."""
        own = self.values[0, k]
        return PayloadPart(Residues, (own.shape, self.bits), b"", to_bits(own.ravel(), self.bits))

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "Residues":
        """One payload from the parts of several clients."""
        shape, bits = parts[0].known
        return cls(np.stack([from_bits(part.bits, bits, prod(shape)).reshape(shape) for part in parts])[None], bits)


@dataclass(frozen=True)
class Padding(Payload):
    """Additional bytes of a protocol, equally many for every client; their content is not simulated.

    Parameters
    ----------
    replicates : int
    size : int
        Number of bytes; they count as scalars of the same total size.
    """

    def as_received(self, axes: Axes, width: int) -> "Padding":
        """The payload as it arrives, after a check of its axes."""
        require_leading((self.replicates,), "R", axes, "Padding")
        return self

    replicates: int
    size: int

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives."""
        size = np.full((self.replicates, 1), self.size)
        return Size(-(-size // width), size)

    def packed(self, k: int, width: int) -> PayloadPart:
        """Client k's part as bytes; there is only one replicate."""
        return PayloadPart(Padding, (), bytes(self.size))

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "Padding":
        """One payload from the parts of several clients."""
        return cls(1, len(parts[0].body))


def position_bits(kept: Counts, size: int) -> Counts:
    """Number of bits for the positions of kept entries: a mask, or ceil(log2 size) bits for each, if that is less."""
    return array_namespace(kept).minimum(size * (kept > 0), kept * (size - 1).bit_length())


def _by_mask(kept: int, size: int) -> tuple[bool, int]:
    """Whether a mask is shorter than the numbers of kept entries, and the bits of a number; both ends know this."""
    return int(position_bits(np.array([kept]), size)[0]) == size, (size - 1).bit_length()


def _in_steps(values: Array, bits: int) -> tuple[Array, Array]:
    """The size of a step in each vector, and the values in units of steps."""
    xp, most = array_namespace(values), 2 ** (bits - 1) - 1
    largest = xp.abs(values).max(axis=-1, keepdims=True)
    unit = largest / most
    share = xp.where(unit > 0, values / xp.where(unit > 0, largest, 1), 0)  # exactly 1 for the largest
    return unit, share * most
