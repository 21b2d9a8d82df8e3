"""The wire between workers: every array that one sends to another passes here, and is booked and kept for an audit."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = dict[str, NDArray[np.int64]]
"""By kind of message: messages and scalars that each worker sent, (q, 2)."""


class Message(NamedTuple):
    """One message as the receiver sees it; `about` says what both ends know of it, for example iteration and rows."""

    sender: int
    receiver: int
    kind: str
    payload: NDArray[Any]
    about: tuple[object, ...]


@dataclass
class Wire:
    """The one door between workers.

    Parameters
    ----------
    workers : int
        q.
    kept : bool
        Whether messages are kept in `messages`.
    """

    workers: int
    kept: bool = False
    messages: list[Message] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)

    def send(
        self, sender: int, receiver: int, kind: str, payload: NDArray[Any], about: tuple[object, ...] = ()
    ) -> NDArray[Any]:
        """Pass a copy of the payload on, integers modulo 2^64 as such; one that is empty is not sent."""
        payload = np.array(payload, np.uint64 if payload.dtype == np.uint64 else np.float64)
        if payload.size:
            self.counts.setdefault(kind, np.zeros((self.workers, 2), np.int64))[sender] += 1, payload.size
            if self.kept:
                self.messages.append(Message(sender, receiver, kind, payload, about))
        return payload
