"""Bytes of the secure sum of `fkl.conditions.secure_protocol` in addition to the vectors, without playing it."""

from typing import NamedTuple

KEY = 32
"""A key of X25519, or a seed."""
NUMBER = 4
"""A client's number."""
SHARE = 33
"""A share of a secret of 32 bytes: a number below a prime that is just above 2^256."""
CIPHERTEXT = 2 * SHARE + 16
"""Two encrypted shares, and their authentication tag."""


class Overhead(NamedTuple):
    """Bytes that one client sends and receives, by kind, if no client drops out."""

    keys_up: int
    keys_down: int
    shares_up: int
    shares_down: int
    survivors_down: int
    unmasking_up: int


def degree(clients: int, neighbours: int | None) -> int:
    """Number of neighbours of each of this many clients: all others, or the number for SecAgg+."""
    others = max(clients - 1, 0)
    return others if neighbours is None else min(neighbours, others)


def overhead(clients: int, neighbours: int | None) -> Overhead:
    """Bytes of each client, with this number of clients."""
    d = degree(clients, neighbours)
    letters = d * (NUMBER + CIPHERTEXT)
    return Overhead(2 * KEY, d * (NUMBER + 2 * KEY), letters, letters, -(-d // 8), d * SHARE)
