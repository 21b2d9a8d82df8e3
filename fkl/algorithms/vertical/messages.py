"""The small door by which a method over a vertical partition tells what its parties send to one another."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.integer]
Groups = tuple[Integers, ...]
"""Feature numbers of each party."""
SCALAR = 8
"""Bytes of a float64 or int64 on the wire."""


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
