"""Sums over clients, tile by tile in a fixed order: the same bytes wherever the tiles are."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
CLIENT_TILE = 256
"""Clients that are added up at once: one product of BLAS, whose order of additions nobody else can have."""


def tiles(clients: int) -> Iterator[slice]:
    """So many clients cut into tiles, the last one shorter."""
    return (slice(start, start + CLIENT_TILE) for start in range(0, clients, CLIENT_TILE))


def tile_sums(values: Array) -> Array:
    """Sums over the tiles of clients of an array (..., K): (tiles, ...)."""
    return np.stack([values[..., tile].sum(axis=-1) for tile in tiles(values.shape[-1])])


def folded(terms: Array) -> Array:
    """The sum over the first axis, one term after another."""
    total: Array = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
