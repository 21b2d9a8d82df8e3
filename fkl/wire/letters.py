"""Letters: messages from one party to another; each is an array, and its class defines its form on a wire.

A pooled computation counts letters of the same classes that a party's actor sends, so kinds and sizes agree. The
envelope of a letter has its shape and its subject, such as a node of a tree, and is not counted.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray


class Count(Protocol):
    """A function that counts messages."""

    def __call__(self, kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        """Count messages of one kind from one party to another.

        Parameters
        ----------
        kind : str
        sender, receiver : int
            Parties.
        messages, items, size : int
            Number of messages, and their total numbers of scalars (or ciphertexts, or bits) and of bytes.
        """
        ...


def uncounted_letter(kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
    """A `Count` that stores nothing."""


@dataclass(frozen=True)
class Letter:
    """An array that one party sends to another; each kind has its own class: ``class Angles(Letter, kind="angles")``.

    Parameters
    ----------
    values : array
    about : tuple
        Subject of the letter, such as the node of a tree.
    """

    kind: ClassVar[str]
    """Name of the letter in the ledger."""
    dtype: ClassVar[str]
    """Type of the numbers on the wire: ``?`` for bits, ``V`` for words of any width, such as ciphertexts."""

    values: NDArray[Any]
    about: tuple[int, ...] = ()

    def __init_subclass__(cls, kind: str, dtype: str = "f8") -> None:
        cls.kind, cls.dtype = kind, dtype

    @property
    def bytes(self) -> int:
        """Size on the wire, where eight bits take one byte."""
        return -(-self.values.size // 8) if self.values.dtype == np.bool_ else self.values.nbytes

    @classmethod
    def count_letters(cls, count: Count, sender: int, receiver: int, scalars: int, messages: int = 1) -> None:
        """Count letters with this many scalars in all, which a pooled computation does not have to send."""
        count(cls.kind, sender, receiver, messages, scalars, scalars * np.dtype(cls.dtype).itemsize)


class Posted(NamedTuple):
    """A letter as bytes, with its envelope."""

    kind: type[Letter]
    shape: tuple[int, ...]
    about: tuple[int, ...]
    body: bytes

    @property
    def scalars(self) -> int:
        """Number of entries of the letter."""
        return int(np.prod(self.shape))


Read = TypeVar("Read", bound=Letter)


def post_letter(letter: Letter) -> Posted:
    """A letter in transit; an empty letter arrives with shape (0,), because other shapes would carry information.

    Raises
    ------
    TypeError
        If its numbers do not have the type that its class states, since other numbers would arrive.
    """
    # Check the type, since the receiver takes it from the class
    values, dtype = np.asarray(letter.values), np.dtype(letter.dtype)
    if values.dtype.kind != "V" if dtype.kind == "V" else values.dtype != dtype:
        raise TypeError(f"{type(letter).__name__} holds {values.dtype}, but its class says {letter.dtype}")
    body = np.packbits(values).tobytes() if values.dtype == np.bool_ else values.tobytes()
    return Posted(type(letter), values.shape if values.size else (0,), letter.about, body)


def read_letter(post: Posted) -> Letter:
    """The letter that arrives."""
    raw, dtype = np.frombuffer(post.body, np.uint8), np.dtype(post.kind.dtype)
    if dtype.kind == "V":
        dtype = np.dtype(f"V{len(post.body) // max(1, post.scalars) or 1}")
    bits = dtype == np.bool_
    values: NDArray[Any] = np.unpackbits(raw, count=post.scalars).astype(np.bool_) if bits else raw.view(dtype).copy()
    return post.kind(values.reshape(post.shape), post.about)
