"""Numbers as bytes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LARGEST = 8
"""Most bytes of one number in memory."""


class Part(NamedTuple):
    """One payload as bytes.

    Parameters
    ----------
    kind : type
        Of payload, which makes it of parts again.
    known : tuple
        What both ends know before anything is sent, such as shape and type.
    body : bytes
        Scalars.
    bits : bytes
        Numbers of less than a scalar's bits; masks that say which scalars these are.
    """

    kind: type[Any]
    known: tuple[Any, ...]
    body: bytes
    bits: bytes = b""


def of_array(kind: type[Any], values: Array, width: int) -> Part:
    """A whole array as bytes, with `width` bytes for each scalar."""
    return Part(
        kind, (values.shape, values.dtype.str), values.astype(f"{_kind_of_number(values.dtype)}{width}").tobytes()
    )


def array_of(part: Part) -> Array:
    """As it went into `of_array`; 0 if nothing has travelled."""
    shape, dtype = part.known
    values = np.zeros(shape, dtype)
    if part.body:
        width = len(part.body) // values.size
        values[...] = np.frombuffer(part.body, f"{_kind_of_number(values.dtype)}{width}").reshape(shape)
    return values


def to_bits(values: Array, bits: int) -> bytes:
    """Whole numbers (n,) modulo 2^bits as bytes, `bits` bits for each, one after another."""
    each = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)[:, 64 - bits :]
    return np.packbits(each).tobytes()


def from_bits(packed: bytes, bits: int, count: int) -> NDArray[np.uint64]:
    """The numbers that `to_bits` wrote, `count` of them."""
    each = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * bits).reshape(count, bits)
    whole = np.pad(each, ((0, 0), (64 - bits, 0)))
    return np.packbits(whole, axis=1).view(">u8").ravel().astype(np.uint64)


def narrowed(values: Array, width: int) -> Array:
    """As they arrive, where a scalar takes `width` bytes on the wire: of the same type, and no number wider.

    Raises
    ------
    TypeError
        If it is no plain array of numbers in the machine's byte order, whose type would say something by itself.
    OverflowError
        For whole numbers that `width` bytes cannot hold.
    """
    dtype = getattr(values, "dtype", np.dtype(object))
    numbers = dtype.kind in "biuf" and dtype.isnative and dtype.itemsize <= LARGEST
    if not numbers or (isinstance(values, np.ndarray) and type(values) is not np.ndarray):
        allowed = f"an array of numbers in native byte order, of at most {LARGEST} bytes each"
        raise TypeError(f"is {type(values).__name__} of {dtype.str}, must be {allowed}")
    if dtype.itemsize <= width:
        return values
    with np.errstate(over="ignore"):  # what diverges is infinite sooner
        arrives = values.astype(f"{_kind_of_number(dtype)}{width}").astype(dtype)
    if dtype.kind != "f" and isinstance(values, np.ndarray) and (arrives != values).any():
        raise OverflowError(f"holds {values.flat[(arrives != values).argmax()]}, which {width} bytes do not")
    return arrives


def _kind_of_number(dtype: np.dtype[Any]) -> str:
    """Letter of numpy for integers or floats, as which values of this type travel."""
    return "i" if dtype.kind in "iub" else "f"
