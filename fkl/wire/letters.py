"""Letters: messages from one party to another, each an array whose class says what it is on a wire.

What a pooled computation counts and what a party's actor sends are of the same classes, so both have one kind and one
size. As shapes are, so is what a letter is about, such as a node of a tree, on its envelope, and not counted.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray


class Count(Protocol):
    """Who counts messages."""

    def __call__(self, kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        """Book messages of one kind from one party to another.

        Parameters
        ----------
        kind : str
        sender, receiver : int
            Parties.
        messages, items, size : int
            How many messages, and in all of them together: scalars (or ciphertexts, or bits), and bytes.
        """
        ...


def uncounted(kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
    """A `Count` that forgets."""


@dataclass(frozen=True)
class Letter:
    """An array that one party sends to another; a class of its own for each kind.

    Parameters
    ----------
    values : array
    about : tuple
        What it is about.
    """

    kind: ClassVar[str]
    """Name in the ledger."""
    dtype: ClassVar[str] = "f8"
    """Type of the numbers on the wire; ``?`` for bits, ``V`` for words of any width, such as ciphertexts."""

    values: NDArray[Any]
    about: tuple[int, ...] = ()

    @classmethod
    def size(cls, scalars: int) -> int:
        """Bytes of this number of scalars."""
        dtype = np.dtype(cls.dtype)
        return -(-scalars // 8) if dtype == np.bool_ else scalars * dtype.itemsize

    @classmethod
    def book(
        cls, count: Count, sender: int, receiver: int, scalars: int, messages: int = 1, width: int | None = None
    ) -> None:
        """Count letters that a pooled computation need not write.

        Parameters
        ----------
        count : Count
        sender, receiver : int
        scalars : int
            Of all these letters together.
        messages : int
        width : int or None
            Bytes of a ciphertext; None for what is no ciphertext.
        """
        count(cls.kind, sender, receiver, messages, scalars, cls.size(scalars) if width is None else width * scalars)


class Posted(NamedTuple):
    """A letter as bytes, and its envelope."""

    receiver: int
    kind: type[Letter]
    shape: tuple[int, ...]
    about: tuple[int, ...]
    body: bytes

    @property
    def scalars(self) -> int:
        """Numbers in it."""
        return int(np.prod(self.shape))


Read = TypeVar("Read", bound=Letter)


def posted(letter: Letter, receiver: int) -> Posted:
    """A letter on its way; one without entries arrives with shape (0,), since no other shape is paid for.

    Raises
    ------
    TypeError
        If its numbers are not of the type that its class says, so that they would not be what arrives.
    """
    values, dtype = np.asarray(letter.values), np.dtype(letter.dtype)
    if values.dtype.kind != "V" if dtype.kind == "V" else values.dtype != dtype:
        raise TypeError(f"{type(letter).__name__} holds {values.dtype}, where its class says {letter.dtype}")
    body = np.packbits(values).tobytes() if values.dtype == np.bool_ else values.tobytes()
    return Posted(receiver, type(letter), values.shape if values.size else (0,), letter.about, body)


def read(post: Posted) -> Letter:
    """The letter that arrives."""
    raw, dtype = np.frombuffer(post.body, np.uint8), np.dtype(post.kind.dtype)
    if dtype.kind == "V":
        dtype = np.dtype(f"V{len(post.body) // max(1, post.scalars) or 1}")
    bits = dtype == np.bool_
    values: NDArray[Any] = np.unpackbits(raw, count=post.scalars).astype(np.bool_) if bits else raw.view(dtype).copy()
    return post.kind(values.reshape(post.shape), post.about)
