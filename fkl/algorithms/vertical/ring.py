"""Sums of the parties' integers round a ring, under a mask that is removed exactly.

Yu, Vaidya and Jiang, "Privacy-preserving SVM classification on vertically partitioned data" (2006), Section 4.
"""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.messages import Array, Count, Groups, Letter
from fkl.kernels.cached_njit import njit_cached

FRACTION_BITS = 40
LARGEST = 2.0 ** (62 - FRACTION_BITS)
"""Larger sums do not fit into 64 bits."""

Words = NDArray[np.unsignedinteger]


def ring_order(groups: Groups, first: int) -> list[int]:
    """Parties in the order of the ring, which begins and ends with the same party."""
    return [first, *(party for party in range(len(groups)) if party != first)]


def masked_sum(parts: Iterable[Words], rng: np.random.Generator) -> Words:
    """Sum modulo 2^32 or 2^64, depending on the word length, of one array of each party.

    The first party adds a mask, uniform on all words, so the other parties receive uniform words, whatever the data.
    When the sum is back, the first party subtracts the mask. The two neighbours of a party in the ring can find its
    array if they exchange their messages.

    Parameters
    ----------
    parts : iterable of arrays of one shape, uint32 or uint64
        In the order of the ring; the first must be writable, and is overwritten.
    rng : numpy.random.Generator
        The first party's own.
    """
    parties = iter(parts)
    passed = next(parties)
    word = passed.dtype
    mask = rng.integers(0, np.iinfo(word).max, size=passed.shape, dtype=word, endpoint=True)
    passed += mask
    for part in parties:
        passed += part
    passed -= mask
    return passed


def book_ring(count: Count, kind: type[Letter], ring: list[int], scalars: int) -> None:
    """Count one letter of this many scalars on every link of the ring."""
    for sender, receiver in pairwise([*ring, ring[0]]):
        if sender != receiver:
            kind.book(count, sender, receiver, scalars)


def to_fixed_point(numbers: Array) -> NDArray[np.uint64]:
    """Whole multiples of 2^-40 modulo 2^64, which overwrite the numbers."""
    words = numbers.reshape(-1)
    _write_fixed_point(words, words.view(np.int64))
    return words.view(np.uint64).reshape(numbers.shape)


@njit_cached(nogil=True)
def _write_fixed_point(numbers: Array, words: NDArray[np.int64]) -> None:
    """One pass over the memory that both share."""
    for i in range(len(numbers)):
        words[i] = np.int64(np.rint(numbers[i] * 2.0**FRACTION_BITS))


def from_fixed_point(words: NDArray[np.uint64], out: Array | None = None) -> Array:
    """Inverse of `to_fixed_point`: numbers between -2^23 and 2^23."""
    return np.multiply(words.view(np.int64), 2.0**-FRACTION_BITS, out=out)
