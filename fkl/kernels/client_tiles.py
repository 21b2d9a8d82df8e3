"""Sums over clients, tile by tile in a fixed order: the bytes do not depend on which process has which tiles."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fkl.basics.arrays import Array, array_namespace, is_traced

CLIENT_TILE = 256
"""Clients that one BLAS product adds up, in an order that other code cannot reproduce."""
WIDE = 128
"""Smallest number of features for which samples are checked for a value that nearly all their features have."""


def client_tiles(clients: int) -> Iterator[slice]:
    """Tiles of this many clients; the last one may be shorter."""
    return (slice(start, start + CLIENT_TILE) for start in range(0, clients, CLIENT_TILE))


def row_blocks(rows: int, values: int, most: int) -> Iterator[slice]:
    """Blocks of rows with at most `most` values each, but at least one row; a row has `values` values."""
    several = max(1, most // max(1, values))
    return (slice(start, min(start + several, rows)) for start in range(0, rows, several))


def tile_sums(values: Array) -> Array:
    """Sums over the tiles of clients of an array (..., K): (tiles, ...)."""
    return by_tile(lambda tile: tile.sum(axis=-1), (values, -1))


def by_tile(work: Callable[..., Array], *values: tuple[Array, int]) -> Array:
    """The result of `work` for each tile of clients, (tiles, ...); clients whose values are 0 must add nothing to it.

    Parameters
    ----------
    work : callable
    values : (array, int)
        An array of all clients, and the axis of the clients.
    """
    first, along = values[0]
    if any(is_traced(array) for array, _ in values):  # JAX would unroll a Python loop over the tiles
        from jax import lax

        return lax.map(lambda one: work(*one), tuple(in_tiles(array, axis) for array, axis in values))
    # One tile: no copy is needed
    if first.shape[along] <= CLIENT_TILE:
        return work(*(array for array, _ in values))[None]
    # Several tiles: cut every array along its axis of clients, and stack the results
    cut = [
        [array[(slice(None),) * (axis % array.ndim) + (tile,)] for array, axis in values]
        for tile in client_tiles(first.shape[along])
    ]
    return np.stack([work(*one) for one in cut])


def in_tiles(values: Any, axis: int) -> Any:
    """The tiles of clients along a new first axis, the last one padded with 0."""
    xp, axis, clients = array_namespace(values), axis % values.ndim, values.shape[axis]
    count = -(-clients // CLIENT_TILE)
    size = clients if count == 1 else CLIENT_TILE
    more = [(0, count * size - clients if one == axis else 0) for one in range(values.ndim)]
    cut = xp.pad(values, more).reshape(*values.shape[:axis], count, size, *values.shape[axis + 1 :])
    return xp.moveaxis(cut, axis, 0)


def sums_in_order(terms: Sequence[Array]) -> list[Array]:
    """The sum over the tiles of each term (tiles, ...), one tile after another."""
    return [sum_in_order(one) for one in terms]


def sum_in_order(terms: Array) -> Array:
    """The sum over the first axis, one term after another."""
    if is_traced(terms):  # in the fixed order of the compiled program
        return terms.sum(axis=0)
    total: Array = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
