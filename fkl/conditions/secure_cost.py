"""How many bytes the secure sum of `fkl.conditions.secure_protocol` takes beside the vectors, without playing it."""

from typing import NamedTuple

KEY = 32
"""A key of X25519, or a seed."""
NUMBER = 4
"""A client's number."""
SHARE = 33
"""A share of a secret of 32 bytes: a number below a prime that is just above 2^256."""
CIPHERTEXT = 2 * SHARE + 16
"""Two shares, encrypted, and what tells if they were changed."""


class Overhead(NamedTuple):
    """Bytes that one client sends and is sent, by kind, when all that began are there to the end."""

    keys_up: int
    keys_down: int
    shares_up: int
    shares_down: int
    survivors_down: int
    unmasking_up: int


def degree(clients: int, neighbours: int | None) -> int:
    """Neighbours that each of so many clients has: all others, or as many as SecAgg+ is given."""
    others = max(clients - 1, 0)
    return others if neighbours is None else min(neighbours, others)


def overhead(clients: int, neighbours: int | None) -> Overhead:
    """Bytes of each client, with this number of clients."""
    d = degree(clients, neighbours)
    letters = d * (NUMBER + CIPHERTEXT)
    return Overhead(2 * KEY, d * (NUMBER + 2 * KEY), letters, letters, -(-d // 8), d * SHARE)
