"""Messages: values that know what they are on a wire.

A message is a frozen dataclass whose fields are payloads, or tuples of payloads that travel together; a field's name is
the kind that the ledger books. Nobody states a size: scalars and bytes are read off the arrays that would travel.
R replicates run at once, so payloads of all replicates, and of all K clients, are one array; what each client sends or
receives is its part of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, cached_property
from math import prod
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fkl.kernels import FeatureBank

Array = NDArray[np.floating]
Counts = NDArray[np.int64]


class Size(NamedTuple):
    """Scalars and bytes that each client sends or receives, (R, K) or (R, 1); nobody is sent a message of 0 bytes."""

    scalars: Counts
    size: Counts


@runtime_checkable
class Payload(Protocol):
    """What a field of a message holds."""

    def measured(self, width: int) -> Size:
        """Size on a wire whose scalars take `width` bytes."""
        ...

    def dense(self) -> "Dense":
        """The arrays that would travel."""
        ...


@dataclass(frozen=True)
class Shared:
    """The same for every client.

    Parameters
    ----------
    values : (R, ...)
    """

    values: NDArray[Any]

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        scalars = np.full((len(self.values), 1), self.values[0].size)
        return Size(scalars, scalars * width)

    def dense(self) -> "Shared":
        """Itself."""
        return self


@dataclass(frozen=True)
class Each:
    """Every client's own.

    Parameters
    ----------
    values : (R, K, ...)
    chosen : (R, K, n) bool, or None
        Which entries along the third axis travel, of n = 1 all or none; the others are 0. None for all. Of more than
        one, a bit each tells the receiver which.
    """

    values: NDArray[Any]
    chosen: NDArray[np.bool_] | None = None

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        if self.chosen is None:
            return _all(self.values.shape, width)
        return _of_entries(self.chosen, self.values[0, 0].size // self.chosen.shape[2], width)

    def dense(self) -> "Each":
        """Itself."""
        return self

    def mean(self, share: Array) -> NDArray[np.float64]:
        """Sum over clients, weighted by their share (K,), 0 of whoever is absent: (R, ...)."""
        R, K = self.values.shape[:2]
        flat = self.values.reshape(R, K, -1).astype(np.float64, copy=False)
        summed: NDArray[np.float64] = np.matmul(share, flat).reshape(R, *self.values.shape[2:])
        return summed

    def of(self, senders: NDArray[np.int64]) -> "Each":
        """That of some, in this order, one beside the other."""
        return Each(self.values[:, senders], None if self.chosen is None else self.chosen[:, senders])

    def upon(self, held: Array) -> Array:
        """What a receiver holds from now on, who held (R, K, ...): the message."""
        return self.values

    def squared_norm(self) -> NDArray[np.float64]:
        """Squared Euclidean norm of each client's, (R, K)."""
        flat = self.values.reshape(*self.values.shape[:2], -1).astype(np.float64, copy=False)
        return np.einsum("rkp,rkp->rk", flat, flat)

    def times(self, factor: Array) -> "Each":
        """Each client's multiplied by a number of its own, (R, K)."""
        return Each(self.values * _beside(factor, self.values), self.chosen)


@dataclass(frozen=True)
class Quantised:
    """Every client's array in few bits a scalar; a vector is what lies along the last axis, and has a unit of its own.

    Parameters
    ----------
    codes : (R, K, ..., P) int16
        Whole numbers from -(2^(bits - 1) - 1) to 2^(bits - 1) - 1; of one bit -1 and 1.
    unit : (R, K, ..., 1)
        What 1 stands for in each vector; in full precision.
    bits : int
        From 1 to 16.
    chosen : (R, K, n) bool, or None
        As in `Each`; a vector of which nothing travels has unit 0, which does not travel either.
    adds : bool
        Whether it is what is to be added to all that was sent before.
    """

    codes: NDArray[np.int16]
    unit: Array
    bits: int
    chosen: NDArray[np.bool_] | None = None
    adds: bool = False

    @classmethod
    def nearest(
        cls, values: Array, bits: int, chosen: NDArray[np.bool_] | None = None, adds: bool = False
    ) -> "Quantised":
        """Nearest of 2^bits - 1 even steps from -max |values| to max |values| of each vector, 0 among them."""
        unit, steps = _in_steps(values, bits)
        return cls(np.rint(steps).astype(np.int16), unit, bits, chosen, adds)

    @classmethod
    def stochastic(
        cls, values: Array, bits: int, uniform: Array, chosen: NDArray[np.bool_] | None = None, adds: bool = False
    ) -> "Quantised":
        """The step below or above, as `uniform` in [0, 1) has it: the nearer the likelier, without bias."""
        unit, steps = _in_steps(values, bits)
        below = np.floor(steps)
        codes = below + (uniform >= 1 - (steps - below))  # not floor(steps + uniform), which rounding may take too far
        return cls(codes.astype(np.int16), unit, bits, chosen, adds)

    @cached_property
    def values(self) -> Array:
        """The vectors (R, K, ..., P)."""
        return self.unit * self.codes

    def travels(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which codes (R, K, scalars), and which units (R, K, vectors)."""
        R, K, *rest = self.codes.shape
        chosen = np.ones((R, K, 1), np.bool_) if self.chosen is None else self.chosen
        every = np.broadcast_to(_wide(chosen, self.codes), self.codes.shape)
        return every.reshape(R, K, prod(rest)), every.any(axis=-1).reshape(R, K, prod(rest[:-1]))

    def measured(self, width: int) -> Size:
        """As `Payload.measured`: each vector's scale, the bits of each code, in whole bytes, and a mask as `Each`'s."""
        codes, units = (part.sum(axis=2) for part in self.travels())
        mask = 0 if self.chosen is None or self.chosen.shape[2] == 1 else -(-self.chosen.shape[2] // 8) * (codes > 0)
        return Size(codes + units, -(-codes * self.bits // 8) + units * width + mask)

    def dense(self) -> "Quantised":
        """Itself."""
        return self

    def mean(self, share: Array) -> NDArray[np.float64]:
        """As `Each.mean`."""
        return Each(self.values).mean(share)

    def of(self, senders: NDArray[np.int64]) -> "Quantised":
        """As `Each.of`."""
        chosen = None if self.chosen is None else self.chosen[:, senders]
        return Quantised(self.codes[:, senders], self.unit[:, senders], self.bits, chosen, self.adds)

    def upon(self, held: Array) -> Array:
        """What a receiver holds from now on, who held (R, K, ...): the message, or both together."""
        return held + self.values if self.adds else self.values


@dataclass(frozen=True)
class Few:
    """A few entries of every client's array; what tells which these are is a bit each, or numbers, whichever is less.

    Parameters
    ----------
    values : (R, K, ...)
        0 where not kept.
    kept : (R, K, ...) bool
    adds : bool
        As in `Quantised`.
    """

    values: Array
    kept: NDArray[np.bool_]
    adds: bool = False

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        R, K, *rest = self.kept.shape
        scalars = self.kept.reshape(R, K, -1).sum(axis=2)
        return Size(scalars, scalars * width + -(-position_bits(scalars, prod(rest)) // 8))

    def dense(self) -> "Few":
        """Itself."""
        return self

    def mean(self, share: Array) -> NDArray[np.float64]:
        """As `Each.mean`."""
        return Each(self.values).mean(share)

    def of(self, senders: NDArray[np.int64]) -> "Few":
        """As `Each.of`."""
        return Few(self.values[:, senders], self.kept[:, senders], self.adds)

    def upon(self, held: Array) -> Array:
        """As `Quantised.upon`."""
        return held + self.values if self.adds else self.values


def position_bits(kept: Counts, size: int) -> Counts:
    """Bits that tell which `kept` of so many entries travel: a mask, or a number of ceil(log2 size) bits for each."""
    return np.minimum(size * (kept > 0), kept * (size - 1).bit_length())


@dataclass(frozen=True)
class ForAll:
    """What `Shared` is to `Each`: one code for every client.

    Parameters
    ----------
    code : Quantised or Few
        Of one sender, K = 1.
    """

    code: Quantised | Few

    @property
    def values(self) -> Array:
        """What it stands for, (R, ...)."""
        return self.code.values[:, 0]

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        return self.code.measured(width)

    def dense(self) -> "ForAll":
        """Itself."""
        return self


@dataclass(frozen=True)
class OnLinks:
    """A vector from every agent to each of its neighbours, another one on each link; no other payload goes with it.

    Parameters
    ----------
    values : (R, links, P)
        By sender, then by receiver.
    """

    values: Array

    def measured(self, width: int) -> Size:
        """As `Payload.measured`, of one link."""
        return _all(self.values.shape, width)

    def dense(self) -> "OnLinks":
        """Itself."""
        return self

    def of(self, places: NDArray[np.int64]) -> "OnLinks":
        """That of some links, in this order."""
        return OnLinks(self.values[:, places])

    def upon(self, held: Array) -> Array:
        """What came in, to a receiver that held (R, links, P): the message."""
        return self.values


@dataclass(frozen=True)
class Ragged:
    """Arrays whose lengths differ: every client's own in every replicate, or one that all clients of a replicate get.

    Parameters
    ----------
    values : tuple of tuple of arrays
        Replicate by replicate, client by client; one entry a replicate where it is the same for all clients.
    """

    values: tuple[tuple[NDArray[Any], ...], ...]

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        scalars = np.array([[array.size for array in clients] for clients in self.values], np.int64)
        return Size(scalars, scalars * width)

    def dense(self) -> "Ragged":
        """Itself."""
        return self


@dataclass(frozen=True)
class Residues:
    """Every client's whole numbers modulo 2^bits.

    Parameters
    ----------
    values : (R, K, ...) uint64
    bits : int
        From 1 to 64.
    """

    values: NDArray[np.uint64]
    bits: int

    def measured(self, width: int) -> Size:
        """As `Payload.measured`: so many bits each, in whole bytes."""
        R, count = len(self.values), prod(self.values.shape[2:])
        return Size(np.full((R, 1), count), np.full((R, 1), -(-count * self.bits // 8)))

    def dense(self) -> "Residues":
        """Itself."""
        return self


@dataclass(frozen=True)
class Padding:
    """Bytes that a protocol needs beside what is said, the same number for every client; what they hold is its own.

    Parameters
    ----------
    replicates : int
    size : int
        Bytes; they count as the scalars that would take as many.
    """

    replicates: int
    size: int

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        size = np.full((self.replicates, 1), self.size)
        return Size(-(-size // width), size)

    def dense(self) -> "Padding":
        """Itself."""
        return self


@dataclass(frozen=True)
class FeatureGradients:
    """Every client's gradient of each kernel's parameters, c_ki z_i(x_k) + 2 lam w_ki theta_i, kept in these factors.

    On a wire it is dense. In a simulation the features of all clients never travel through memory.

    Parameters
    ----------
    bank : FeatureBank
    x : (K, d)
    coefficients : (R, K, N)
    theta : (R, N, P)
        What all clients received.
    lam : float
    weight : (R, K, N), or None
        None for 1.
    chosen : (R, K, N) bool, or (R, K, 1), or None
        As in `Each`; the coefficients of the others are 0.
    """

    bank: FeatureBank
    x: Array
    coefficients: Array
    theta: Array
    lam: float = 0.0
    weight: Array | None = None
    chosen: NDArray[np.bool_] | None = None

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        R, K, N = self.coefficients.shape
        P = self.theta.shape[-1]
        if self.chosen is None:
            return _all((R, K, N, P), width)
        return _of_entries(self.chosen, N * P // self.chosen.shape[2], width)

    def dense(self) -> Each:
        """The gradients themselves, (R, K, N, P)."""
        z = self.bank.features(self.x).swapaxes(1, 2)
        weight = 1.0 if self.weight is None else self.weight[..., None]
        gradients = self.coefficients[..., None] * z + 2 * self.lam * weight * self.theta[:, None]
        if self.chosen is not None:
            gradients *= self.chosen[..., None]
        return Each(gradients, self.chosen)

    def mean(self, share: Array) -> NDArray[np.float64]:
        """Sum over clients, weighted by their share (K,): (R, N, P)."""
        weight = share.sum() if self.weight is None else np.matmul(share, self.weight)[..., None]
        return self.bank.accumulate(self.x, self.coefficients, share) + 2 * self.lam * weight * self.theta

    def squared_norm(self) -> NDArray[np.float64]:
        """As `Each.squared_norm`, without the gradients.

        |c z + 2 lam w theta|^2 = c^2 |z|^2 + 4 lam w (c f + lam w |theta|^2), where f = theta'z is the kernel's
        prediction, and |z| = 1 of pairs; of the cosine map |z| is computed.
        """
        c, squared = self.coefficients, self.coefficients**2 * self.bank.squared_norms(self.x)
        if self.lam:
            w, f = 1.0 if self.weight is None else self.weight, self.bank.predict(self.x, self.theta)
            theta = np.einsum("rnp,rnp->rn", self.theta, self.theta)[:, None]
            squared = squared + 4 * self.lam * w * (c * f + self.lam * w * theta)
        if self.chosen is not None:
            squared = squared * self.chosen
        return np.maximum(squared.sum(axis=-1), 0)  # of a gradient near 0, rounding may leave a sum below it

    def times(self, factor: Array) -> "FeatureGradients":
        """As `Each.times`, in factors: the coefficients and the weight are multiplied."""
        by = factor[..., None]
        weight = np.broadcast_to(by, self.coefficients.shape) if self.weight is None else by * self.weight
        return replace(self, coefficients=by * self.coefficients, weight=weight)


@dataclass(frozen=True)
class RankOne:
    """Every client's matrix a b', kept as its two vectors; on a wire it is dense.

    Parameters
    ----------
    left : (R, K, m)
    right : (R, K, n)
    """

    left: Array
    right: Array

    def measured(self, width: int) -> Size:
        """As `Payload.measured`."""
        return _all((*self.left.shape, self.right.shape[2]), width)

    def dense(self) -> Each:
        """The matrices themselves, (R, K, m, n)."""
        return Each(self.left[..., None] * self.right[:, :, None])

    def mean(self, share: Array) -> Array:
        """Sum over clients, weighted by their share (K,): (R, m, n)."""
        return np.matmul((share[:, None] * self.left).swapaxes(1, 2), self.right)

    def squared_norm(self) -> NDArray[np.float64]:
        """As `Each.squared_norm`: |a b'|^2 = |a|^2 |b|^2."""
        return Each(self.left).squared_norm() * Each(self.right).squared_norm()

    def times(self, factor: Array) -> "RankOne":
        """As `Each.times`."""
        return RankOne(self.left * _beside(factor, self.left), self.right)


def kinds(message: Any) -> Iterator[tuple[str, tuple[Payload, ...]]]:
    """What a message holds, by kind; of one that holds another message, the other's kinds as well.

    Raises
    ------
    TypeError
        If a field is no payload: nothing travels that is not counted.
    """
    if message is None:
        return
    for name in _fields(message.__class__):
        value = getattr(message, name)
        if is_message(value):
            yield from kinds(value)
            continue
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if not _is_payload(part.__class__):
                raise TypeError(f"{type(message).__name__}.{name} is {type(part).__name__}, which is no payload")
        yield name, parts


def on_links(message: Any) -> bool:
    """Whether a message is another one on each link."""
    return any(isinstance(part, OnLinks) for _, parts in kinds(message) for part in parts)


def rebuilt(message: Any, payloads: Iterable[Payload]) -> Any:
    """A message of the same class whose payloads are others, in the order in which `kinds` has them."""
    others = iter(payloads)
    fields_of: dict[str, Any] = {}
    for name in _fields(message.__class__):
        value = getattr(message, name)
        if is_message(value):
            fields_of[name] = rebuilt(value, others)
        else:
            fields_of[name] = tuple(next(others) for _ in value) if isinstance(value, tuple) else next(others)
    return replace(message, **fields_of)


def is_message(value: Any) -> bool:
    """Whether it is a message, and no payload."""
    return is_dataclass(value) and not _is_payload(value.__class__)


def _beside(factor: Array, values: NDArray[Any]) -> Array:
    """A number a client (R, K), to multiply arrays (R, K, ...) of this type."""
    return factor.reshape(*factor.shape, *[1] * (values.ndim - 2)).astype(values.dtype, copy=False)


@cache  # asked in every round, and slow
def _is_payload(kind: Any) -> bool:
    return issubclass(kind, Payload)


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Names of a message's fields."""
    if _is_payload(kind) or not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is no message: a message is a dataclass of payloads")
    return tuple(field.name for field in fields(kind))


def measured(parts: tuple[Payload, ...], width: int) -> Size:
    """Size of payloads that travel together."""
    scalars, size = zip(*(part.measured(width) for part in parts), strict=True)
    return Size(sum(scalars[1:], scalars[0]), sum(size[1:], size[0]))


def _all(shape: tuple[int, ...], width: int) -> Size:
    """Of clients that send all of an array (R, K, ...)."""
    scalars = np.full((shape[0], 1), prod(shape[2:]))
    return Size(scalars, scalars * width)


def _of_entries(chosen: NDArray[np.bool_], length: int, width: int) -> Size:
    """Of clients that send some entries, of `length` scalars each."""
    scalars = chosen.sum(axis=2) * length
    n = chosen.shape[2]
    bits = -(-n // 8) * (scalars > 0) if n > 1 else 0
    return Size(scalars, scalars * width + bits)


def _in_steps(values: Array, bits: int) -> tuple[Array, Array]:
    """What a step is in each vector, and how many steps its scalars are."""
    largest, most = np.abs(values).max(axis=-1, keepdims=True), 2 ** (bits - 1) - 1
    unit = largest / most
    share = np.divide(values, largest, out=np.zeros_like(values), where=unit > 0)  # of the largest exactly 1
    return unit, share * most


def _wide(chosen: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[np.bool_]:
    """With as many axes as the values that it is chosen among."""
    return chosen.reshape(chosen.shape + (1,) * (values.ndim - 3))


Dense = Shared | Each | Quantised | Few | ForAll | Ragged | OnLinks | Residues | Padding
"""Payloads that are the arrays that travel."""
