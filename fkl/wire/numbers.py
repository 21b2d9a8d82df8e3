"""Numbers as bytes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LARGEST = 8
"""Largest size of one number in memory."""


class Part(NamedTuple):
    """One payload as bytes.

    Parameters
    ----------
    kind : type
        Class of the payload, which restores it from parts.
    known : tuple
        Facts that both ends know before anything is sent, such as shape and type.
    body : bytes
        Scalars.
    bits : bytes
        Numbers with fewer bits than a scalar, and masks with the positions of scalars.
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
    """The argument of `of_array`; 0 if nothing has travelled."""
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
    """Numbers as they arrive over a wire with `width` bytes per scalar: the same type, but at most this width.

    Raises
    ------
    TypeError
        If it is not a plain array of numbers in the machine's byte order; its type would carry information.
    OverflowError
        For integers that do not fit in `width` bytes.
    """
    dtype = getattr(values, "dtype", np.dtype(object))
    numbers = dtype.kind in "biuf" and dtype.isnative and dtype.itemsize <= LARGEST
    if not numbers or (isinstance(values, np.ndarray) and type(values) is not np.ndarray):
        allowed = f"an array of numbers in native byte order, of at most {LARGEST} bytes each"
        raise TypeError(f"is {type(values).__name__} of {dtype.str}, must be {allowed}")
    if dtype.itemsize <= width:
        return values
    with np.errstate(over="ignore"):  # diverging numbers become infinite earlier
        arrives = values.astype(f"{_kind_of_number(dtype)}{width}").astype(dtype)
    if dtype.kind != "f" and isinstance(values, np.ndarray) and (arrives != values).any():
        raise OverflowError(f"holds {values.flat[(arrives != values).argmax()]}, which {width} bytes do not")
    return arrives


def _kind_of_number(dtype: np.dtype[Any]) -> str:
    """Letter in numpy for integers or floats, by which values of this type travel."""
    return "i" if dtype.kind in "iub" else "f"
