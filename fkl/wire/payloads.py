"""Messages: values that know their form on a wire.

A message is a frozen dataclass whose fields are payloads, or tuples of payloads that are sent together; the ledger
records a field under its name. No method states a size: scalars and bytes follow from the arrays that would be sent. R
replicates run at once, so the payloads of all replicates and all K clients are one array; each client sends or receives
its part.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from math import prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array, array_namespace, is_traced
from fkl.basics.errors import BrokenPromiseError
from fkl.kernels import FeatureBank
from fkl.kernels.bank import read_only
from fkl.kernels.client_tiles import by_tile, sum_in_order, tile_sums

Counts = NDArray[np.int64]
LARGEST = 8
"""Largest size of a number in memory, in bytes."""


class PayloadPart(NamedTuple):
    """One payload as bytes.

    Parameters
    ----------
    kind : type
        Class of the payload, which restores the payload from parts.
    known : tuple
        Facts that both ends know before anything is sent, such as shape and type.
    body : bytes
        The scalars.
    bits : bytes
        Numbers with fewer bits than a scalar, and masks with the positions of scalars.
    """

    kind: type[Any]
    known: tuple[Any, ...]
    body: bytes
    bits: bytes = b""


class Size(NamedTuple):
    """Numbers of scalars and bytes that each client sends or receives, (R, K) or (R, 1); 0 bytes are no message."""

    scalars: Counts
    size: Counts


Axes = Mapping[str, int]
"""Lengths of the leading axes of payloads: R replicates, K clients, L links of a graph."""


class Payload:
    """A field of a message: its arrays, their leading axes, and their form on a wire."""

    leading: ClassVar[Mapping[str, str]]
    """Letters of the leading axes of each array, such as RK; the array itself may be None."""
    factors: ClassVar[frozenset[str]] = frozenset()
    """Fields that are not sent themselves, but from which the arrays that are sent are computed."""
    one_for_all: ClassVar[bool] = False
    """Whether the payload is one array for all clients, which only the server can send."""

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives on a wire with `width` bytes per scalar."""
        raise NotImplementedError

    def packed(self, k: int, width: int) -> PayloadPart:
        """Client k's part as bytes, or link k's for a payload of links; there is only one replicate."""
        raise NotImplementedError

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> Any:
        """One payload from the parts of several clients."""
        raise NotImplementedError

    def dense(self) -> Any:
        """The arrays that would be sent, for `packed`: the payload itself, unless it stores factors of them."""
        return self

    def as_received(self, axes: Axes, width: int) -> Self:
        """The payload as it arrives over a wire with `width` bytes per scalar.

        Raises
        ------
        TypeError, OverflowError
            As in `narrow_numbers`.
        ValueError
            For an array with other leading axes, or without entries: its shape would carry information.
        """
        arrived: dict[str, Any] = {}
        # Check the leading axes, then narrow floats to the width of the wire
        for name, letters in self.leading.items():
            values = getattr(self, name)
            if values is None:
                continue
            require_leading(np.shape(values), letters, axes, type(self).__name__)
            if name == "chosen" and letters == "RK":
                main, of_main = next(iter(self.leading.items()))
                require_mask(values, np.shape(getattr(self, main))[len(of_main) :])
            if name not in self.factors and (narrow := narrow_numbers(values, width)) is not values:
                arrived[name] = narrow
        return replace(self, **arrived) if arrived else self  # type: ignore[type-var]

    def select_entries(self, places: NDArray[np.int64]) -> Self:
        """The payload of only these clients or links, in the given order."""
        arrays = {name: getattr(self, name) for name, letters in self.leading.items() if len(letters) > 1}
        chosen = {name: array[:, places] for name, array in arrays.items() if array is not None}
        return replace(self, **chosen)  # type: ignore[type-var]


def require_leading(shape: tuple[int, ...], letters: str, axes: Axes, kind: str) -> None:
    """Raise ValueError for a shape that does not begin with these axes, or has no entries."""
    wanted = tuple(axes[letter] for letter in letters)
    if shape[: len(wanted)] != wanted:
        named = f"({', '.join(letters)}{',' * (len(letters) == 1)})"
        raise ValueError(f"has shape {shape}; the first axes of {kind} must be {named} = {wanted}")
    if 0 in shape[len(wanted) :]:
        raise ValueError(f"has shape {shape}: the shape of an array without entries carries information; leave it out")


def require_mask(chosen: Any, entries: tuple[int, ...]) -> None:
    """Raise ValueError for a mask that does not say for each entry, or for all together, whether it is sent."""
    shape, dtype = np.shape(chosen), getattr(chosen, "dtype", type(chosen).__name__)
    lengths = sorted({1, *entries[:1]})
    if not entries or len(shape) != 3 or shape[2] not in lengths or dtype != np.bool_:
        allowed = " or ".join(f"(R, K, {n})" for n in lengths)
        raise ValueError(
            f"has a mask `chosen` of {dtype} and shape {shape}; must be bool, {allowed}, for (R, K, n, ...)"
        )


def mask_of_payload(payload: Any) -> Any:
    """The mask of a payload's entries that are sent; None if all are."""
    return getattr(payload, "chosen", None)


def received_message(message: Any, axes: Axes, width: int, of_clients: bool = False) -> Any:
    """A message as it arrives over a wire with `width` bytes per scalar.

    Raises
    ------
    fkl.basics.errors.BrokenPromiseError
        If a payload's shape or type differs from the one that both ends know, or if it is one array for all clients in
        a message `of_clients`; the error names the payload.
    """
    if message is None:
        return None
    # Payloads of all fields, each checked and narrowed
    sent, arrived = [], []
    try:
        held = [*payloads_by_kind(message)]
    except TypeError as error:
        raise BrokenPromiseError(str(error)) from error
    # A client's message must not hold one array for all
    for name, payloads in held:
        for payload in payloads:
            where = f"{type(message).__name__}.{name}"
            if of_clients and payload.one_for_all:
                kind = type(payload).__name__
                raise BrokenPromiseError(f"{where} is {kind}, one array for all; each client sends its own, PerClient")
            try:
                arrived.append(payload.as_received(axes, width))
            except (TypeError, ValueError, OverflowError) as error:
                raise BrokenPromiseError(f"{where} {error}") from error
            sent.append(payload)
    # A mask of one bit costs nothing: the message arrives or not. Several such masks would carry free information.
    masks = [mask for mask in map(mask_of_payload, sent) if mask is not None and np.shape(mask)[2:] == (1,)]
    if any(mask is not masks[0] and not is_traced(mask) and not np.array_equal(mask, masks[0]) for mask in masks[1:]):
        said = "its masks would carry information without bytes; send all payloads or none, or use the mask of one"
        raise BrokenPromiseError(f"{type(message).__name__}: {said}")
    changed = any(one is not other for one, other in zip(sent, arrived, strict=True))
    return rebuild_message(message, arrived) if changed else message


class Summable(Payload):
    """A payload from which the server can form a weighted sum over clients. Tiles of clients are added up in order."""

    def tile_sums(self, share: Array) -> Array:
        """Sum over the clients of each tile, (tiles, R, ...); share (K,) is as in `mean`."""
        raise NotImplementedError

    def mean(self, share: Array) -> Array:
        """Sum over clients, weighted by their share (K,), which is 0 for absent clients: (R, ...)."""
        return sum_in_order(self.tile_sums(share))


class Values(Payload):
    """A payload of one array, `values`, and perhaps a mask `chosen` (R, K, n) of the entries that are sent.

    With n > 1, the mask is sent, too, one bit per entry.
    """

    values: NDArray[Any]

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives, or that each link carries."""
        scalars, chosen = prod(self.values.shape[len(self.leading["values"]) :]), mask_of_payload(self)
        if chosen is None:
            return _size_of_arrays(len(self.values), scalars, width)
        return _size_of_entries(chosen, scalars // chosen.shape[2], width)

    def packed(self, k: int, width: int) -> PayloadPart:
        """Client k's chosen entries and the bits of their mask, or those of link k for a payload of links."""
        values, masks = self.values[0] if self.one_for_all else self.values[0, k], mask_of_payload(self)
        if masks is None:
            return of_array(type(self), values, width)
        chosen = masks[0, k]
        mask = np.packbits(chosen).tobytes() if len(chosen) > 1 and chosen.any() else b""
        sent = of_array(type(self), values[np.broadcast_to(chosen, len(values))], width)
        return sent._replace(known=(values.shape, values.dtype.str), bits=mask)

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> Any:
        """One payload from the parts of several clients; entries that were not sent are 0."""
        arrays, travelled = zip(*map(_received_entries, parts), strict=True)
        values, mask = np.stack(arrays)[None], known_mask(travelled)
        return cls(values) if mask is None else cls(values, mask)  # type: ignore[call-arg]

    def added_to(self, held: Array) -> Array:
        """A receiver's new copy, given its old copy (R, K, ...) or (R, links, ...): here the message."""
        return self.values


@dataclass(frozen=True)
class SameForAll(Values):
    """One array that is the same for every client.

    Parameters
    ----------
    values : (R, ...)
    """

    one_for_all = True
    leading = {"values": "R"}  # noqa: RUF012

    values: NDArray[Any]

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "SameForAll":
        """The payload from the part of any client: every client received the same."""
        return cls(array_of(parts[0])[None])


@dataclass(frozen=True)
class PerClient(Values, Summable):
    """Every client's own array.

    Parameters
    ----------
    values : (R, K, ...)
    chosen : (R, K, n) bool, or None
        Entries along the third axis that are sent; all or none if n = 1. The others are 0.
    """

    leading = {"values": "RK", "chosen": "RK"}  # noqa: RUF012

    values: NDArray[Any]
    chosen: NDArray[np.bool_] | None = None

    def tile_sums(self, share: Array) -> Array:
        """Weighted sums over the clients of each tile, (tiles, R, ...)."""
        R, K = self.values.shape[:2]
        flat = self.values.reshape(R, K, -1).astype(np.float64, copy=False)
        terms = by_tile(array_namespace(flat).matmul, (share, 0), (flat, 1))
        return terms.reshape(-1, R, *self.values.shape[2:])

    def squared_norm(self) -> NDArray[np.float64]:
        """Squared Euclidean norm of each client's array, (R, K)."""
        flat = self.values.reshape(*self.values.shape[:2], -1).astype(np.float64, copy=False)
        return array_namespace(flat).einsum("rkp,rkp->rk", flat, flat)

    def times(self, factor: Array) -> "PerClient":
        """Each client's array times its own number, (R, K)."""
        by = with_axes_of(self.values, factor).astype(self.values.dtype, copy=False)
        return PerClient(self.values * by, self.chosen)


@dataclass(frozen=True)
class Selected(Values):
    """Entries of an array that is the same for all clients; each client receives its own selection.

    Parameters
    ----------
    values : (R, n, ...)
        The sender's array; at a receiver, NaN in entries that were not sent.
    chosen : (R, K, n) bool
        Entries that each client receives.
    """

    one_for_all = True
    leading = {"values": "R", "chosen": "RK"}  # noqa: RUF012

    values: Array
    chosen: NDArray[np.bool_]

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "Selected":
        """One payload with the entries that any of these clients received."""
        shape, dtype = parts[0].known
        values, travelled = np.full(shape, np.nan, dtype), []
        for array, there in map(_received_entries, parts):
            values[there] = array[there]
            travelled.append(there)
        return cls(values[None], np.stack(travelled)[None])


@dataclass(frozen=True)
class OnLinks(Values):
    """A separate vector for each link from an agent to a neighbour; it is the only payload of its message.

    Parameters
    ----------
    values : (R, links, P)
        By sender, then by receiver.
    """

    leading = {"values": "RL"}  # noqa: RUF012

    values: Array


@dataclass(frozen=True)
class Ragged(Payload):
    """Arrays of different lengths: one for each client in each replicate, or one for all clients of a replicate.

    Parameters
    ----------
    values : tuple of tuple of arrays
        Replicate by replicate, client by client; one entry per replicate if it is the same for all clients.
    """

    values: tuple[tuple[NDArray[Any], ...], ...]

    def as_received(self, axes: Axes, width: int) -> "Ragged":
        """Check arrays whose rows have one shape, and narrow them; the number of rows follows from the bytes."""
        require_leading((len(self.values),), "R", axes, "Ragged")
        arrived = []
        for of_clients in self.values:
            # A single client may stand for all
            if len(of_clients) != 1:
                require_leading((len(self.values), len(of_clients)), "RK", axes, "Ragged")
            # All rows must have one shape, so their number follows from the bytes
            rows = {np.shape(array)[1:] for array in of_clients}
            if len(rows) > 1 or any(0 in row for row in rows) or min(map(np.ndim, of_clients)) == 0:
                raise ValueError(f"has rows of shapes {sorted(rows)}: all rows must have one shape, with entries")
            arrived.append(tuple(narrow_numbers(array, width) for array in of_clients))
        return Ragged(tuple(arrived))

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives."""
        scalars = np.array([[array.size for array in clients] for clients in self.values], np.int64)
        return Size(scalars, scalars * width)

    def packed(self, k: int, width: int) -> PayloadPart:
        """Client k's part, of the only replicate, as bytes."""
        [of_clients] = self.values
        array = of_clients[k if len(of_clients) > 1 else 0]
        return of_array(Ragged, array, width)._replace(known=(array.shape[1:], array.dtype.str, width))

    @classmethod
    def from_parts(cls, parts: Sequence[PayloadPart]) -> "Ragged":
        """One payload from the parts of several clients; the number of rows follows from the bytes."""
        arrays = []
        for part in parts:
            row, dtype, width = part.known
            rows = len(part.body) // (prod(row) * width)
            arrays.append(array_of(part._replace(known=((rows, *row), dtype))))
        return cls((tuple(arrays),))


@dataclass(frozen=True)
class FeatureGradients(Summable):
    """Every client's gradient of each kernel's parameters, c_ki z_i(x_k) + 2 lam w_ki theta_i, stored as factors.

    On a wire it is dense. In a simulation, the features of all clients are never in memory together.

    Parameters
    ----------
    bank : FeatureBank
    x : (K, d)
    coefficients : (R, K, N)
    theta : (R, N, P)
        Parameters that all clients received.
    lam : float
    weight : (R, K, N), or None
        None for 1.
    chosen : (R, K, N) bool, or (R, K, 1), or None
        As in `PerClient`; the other coefficients are 0.
    """

    leading = {"coefficients": "RK", "theta": "R", "weight": "RK", "chosen": "RK"}  # noqa: RUF012
    factors = frozenset({"coefficients", "theta", "weight"})

    bank: FeatureBank
    x: Array
    coefficients: Array
    theta: Array
    lam: float = 0.0
    weight: Array | None = None
    chosen: NDArray[np.bool_] | None = None

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives."""
        R, _, N = self.coefficients.shape
        P = self.theta.shape[-1]
        if self.chosen is None:
            return _size_of_arrays(R, N * P, width)
        return _size_of_entries(self.chosen, N * P // self.chosen.shape[2], width)

    def dense(self) -> PerClient:
        """The gradients themselves, (R, K, N, P)."""
        z = self.bank.features(self.x).swapaxes(1, 2)
        weight = 1.0 if self.weight is None else self.weight[..., None]
        gradients = self.coefficients[..., None] * z + 2 * self.lam * weight * self.theta[:, None]
        if self.chosen is not None:
            gradients *= self.chosen[..., None]
        return PerClient(gradients, self.chosen)

    def mean(self, share: Array) -> Array:
        """The weighted sum over clients, (R, N, P); the bank iterates over the tiles itself."""
        pulled = self.bank.accumulate(self.x, self.coefficients, share)
        weights = tile_sums(share) if self.weight is None else PerClient(self.weight).tile_sums(share)[..., None]
        return pulled + 2 * self.lam * sum_in_order(weights) * self.theta

    def squared_norm(self) -> NDArray[np.float64]:
        """Squared norms of the gradients, computed without the gradients.

        |c z + 2 lam w theta|^2 = c^2 |z|^2 + 4 lam w (c f + lam w |theta|^2), where f = theta'z is the kernel's
        prediction. |z| = 1 for pairs; for the cosine map, |z| is computed.
        """
        # By the formula above
        c, squared = self.coefficients, self.coefficients**2 * self.bank.squared_norms(self.x)
        if self.lam:
            w, f = 1.0 if self.weight is None else self.weight, self.bank.predict(self.x, self.theta)
            theta = array_namespace(self.theta).einsum("rnp,rnp->rn", self.theta, self.theta)[:, None]
            squared = squared + 4 * self.lam * w * (c * f + self.lam * w * theta)
        if self.chosen is not None:
            squared = squared * self.chosen
        # For a gradient near 0, rounding may make the sum negative
        return array_namespace(squared).maximum(squared.sum(axis=-1), 0)

    def times(self, factor: Array) -> "FeatureGradients":
        """Multiply each client's gradients by a factor: its coefficients and its weight."""
        by = factor[..., None]
        shape = self.coefficients.shape
        weight = array_namespace(by).broadcast_to(by, shape) if self.weight is None else by * self.weight
        return replace(self, coefficients=by * self.coefficients, weight=weight)


@dataclass(frozen=True)
class RankOne(Summable):
    """Every client's matrix a b', stored as its two vectors; on a wire it is dense.

    Parameters
    ----------
    left : (R, K, m)
    right : (R, K, n)
    """

    leading = {"left": "RK", "right": "RK"}  # noqa: RUF012
    factors = frozenset({"left", "right"})

    left: Array
    right: Array

    def wire_size(self, width: int) -> Size:
        """Scalars and bytes that each client sends or receives."""
        return _size_of_arrays(len(self.left), self.left.shape[2] * self.right.shape[2], width)

    def dense(self) -> PerClient:
        """The matrices themselves, (R, K, m, n)."""
        return PerClient(self.left[..., None] * self.right[:, :, None])

    def tile_sums(self, share: Array) -> Array:
        """Weighted sums of the matrices over the clients of each tile, (tiles, R, m, n)."""
        left, matmul = share[:, None] * self.left, array_namespace(self.left).matmul
        return by_tile(lambda left, right: matmul(left.swapaxes(1, 2), right), (left, 1), (self.right, 1))

    def squared_norm(self) -> NDArray[np.float64]:
        """Squared norm of each client's product: |a b'|^2 = |a|^2 |b|^2."""
        return PerClient(self.left).squared_norm() * PerClient(self.right).squared_norm()

    def times(self, factor: Array) -> "RankOne":
        """Each client's array times its own number, (R, K)."""
        return RankOne(self.left * with_axes_of(self.left, factor).astype(self.left.dtype, copy=False), self.right)


def payloads_by_kind(message: Any) -> Iterator[tuple[str, tuple[Payload, ...]]]:
    """Payloads of a message, by kind, including those of nested messages.

    Raises
    ------
    TypeError
        If a field is not a payload: only data that are counted may be sent.
    """
    if message is None:
        return
    # Fields of the message, and of messages inside it
    for name in _field_names(message.__class__):
        value = getattr(message, name)
        if is_message(value):
            yield from payloads_by_kind(value)
            continue
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if not isinstance(part, Payload):
                kind = type(part).__name__
                raise TypeError(f"{type(message).__name__}.{name} is {kind}, which is not a payload")
        yield name, parts


def payloads_of(message: Any) -> list[Any]:
    """All payloads of a message, in the order of `payloads_by_kind`."""
    return [payload for _, payloads in payloads_by_kind(message) for payload in payloads]


def on_links(message: Any) -> bool:
    """Whether a message has a separate payload for each link."""
    return any(isinstance(payload, OnLinks) for payload in payloads_of(message))


def rebuild_message(message: Any, payloads: Iterable[Payload]) -> Any:
    """Replace the payloads of a message, in the order of `payloads_of`."""
    others = iter(payloads)
    fields_of: dict[str, Any] = {}
    for name in _field_names(message.__class__):
        value = getattr(message, name)
        if is_message(value):
            fields_of[name] = rebuild_message(value, others)
        else:
            fields_of[name] = tuple(next(others) for _ in value) if isinstance(value, tuple) else next(others)
    return replace(message, **fields_of)


def is_message(value: Any) -> bool:
    """Whether an object is a message, rather than a payload."""
    return is_dataclass(value) and not isinstance(value, Payload)


def with_axes_of(values: NDArray[Any], array: NDArray[Any]) -> Any:
    """The array, over the first axes of `values` such as (R, K), reshaped to as many axes as `values`."""
    return array.reshape(array.shape + (1,) * (values.ndim - array.ndim))


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Names of a message's fields."""
    if issubclass(kind, Payload) or not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is not a message: a message is a dataclass of payloads")
    return tuple(field.name for field in fields(kind))


def wire_size(parts: tuple[Payload, ...], width: int) -> Size:
    """Size of payloads that are sent together."""
    scalars, size = zip(*(part.wire_size(width) for part in parts), strict=True)
    return Size(sum(scalars[1:], scalars[0]), sum(size[1:], size[0]))


def known_mask(travelled: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_] | None:
    """The mask (1, K, n) of the entries that a receiver knows were sent; None for all."""
    return None if all(map(np.all, travelled)) else np.stack(travelled)[None]


def _received_entries(part: PayloadPart) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """An array that was sent completely or in part, and the mask of its entries; without a mask, all or none."""
    shape, dtype = part.known
    entries = shape[0] if shape else 1
    if not part.bits:
        return array_of(part), np.full(entries, bool(part.body))
    there = np.unpackbits(np.frombuffer(part.bits, np.uint8), count=entries).astype(np.bool_)
    values = np.zeros(shape, dtype)
    values[there] = array_of(part._replace(known=((int(there.sum()), *shape[1:]), dtype)))
    return values, there


@cache
def _size_of_arrays(replicates: int, scalars: int, width: int) -> Size:
    """Size of arrays with this many scalars, sent completely; cached, because every round needs it."""
    each = np.full((replicates, 1), scalars)
    return Size(read_only(each), read_only(each * width))


def _size_of_entries(chosen: NDArray[np.bool_], length: int, width: int) -> Size:
    """Size of the chosen entries, with `length` scalars each."""
    scalars = chosen.sum(axis=2) * length
    n = chosen.shape[2]
    bits = -(-n // 8) * (scalars > 0) if n > 1 else 0
    return Size(scalars, scalars * width + bits)


def of_array(kind: type[Any], values: NDArray[Any], width: int) -> PayloadPart:
    """A whole array as bytes, with `width` bytes for each scalar."""
    return PayloadPart(
        kind, (values.shape, values.dtype.str), values.astype(f"{_kind_of_number(values.dtype)}{width}").tobytes()
    )


def array_of(part: PayloadPart) -> NDArray[Any]:
    """The array that `of_array` was given; zeros if nothing was sent."""
    shape, dtype = part.known
    values = np.zeros(shape, dtype)
    if part.body:
        width = len(part.body) // values.size
        values[...] = np.frombuffer(part.body, f"{_kind_of_number(values.dtype)}{width}").reshape(shape)
    return values


def to_bits(values: NDArray[Any], bits: int) -> bytes:
    """Integers (n,) modulo 2^bits as bytes, one after another with `bits` bits each."""
    each = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)[:, 64 - bits :]
    return np.packbits(each).tobytes()


def from_bits(packed: bytes, bits: int, count: int) -> NDArray[np.uint64]:
    """The `count` numbers that `to_bits` wrote."""
    each = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * bits).reshape(count, bits)
    whole = np.pad(each, ((0, 0), (64 - bits, 0)))
    return np.packbits(whole, axis=1).view(">u8").ravel().astype(np.uint64)


def narrow_numbers(values: NDArray[Any], width: int) -> NDArray[Any]:
    """Numbers as they arrive over a wire with `width` bytes per scalar: the same type, but at most this width.

    Raises
    ------
    TypeError
        If this is not a plain array of numbers in the machine's byte order: its type would carry information.
    OverflowError
        For integers that do not fit in `width` bytes.
    """
    # Only plain numbers have a width on the wire
    dtype = getattr(values, "dtype", np.dtype(object))
    numbers = dtype.kind in "biuf" and dtype.isnative and dtype.itemsize <= LARGEST
    if not numbers or (isinstance(values, np.ndarray) and type(values) is not np.ndarray):
        allowed = f"an array of numbers in native byte order, of at most {LARGEST} bytes each"
        raise TypeError(f"is {type(values).__name__} of {dtype.str}, must be {allowed}")
    # Narrow and widen again, so the receiver computes with what arrived
    if dtype.itemsize <= width:
        return values
    with np.errstate(over="ignore"):  # diverging numbers become infinite earlier than in double
        arrives = values.astype(f"{_kind_of_number(dtype)}{width}").astype(dtype)
    if dtype.kind != "f" and isinstance(values, np.ndarray) and (arrives != values).any():
        raise OverflowError(f"holds {values.flat[(arrives != values).argmax()]}, which does not fit in {width} bytes")
    return arrives


def _kind_of_number(dtype: np.dtype[Any]) -> str:
    """Numpy's letter, i or f, for the type as which such values are sent."""
    return "i" if dtype.kind in "iub" else "f"
