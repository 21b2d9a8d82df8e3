"""One party's part of sums along a tree and round a ring; `sum_trees` and `ring` have the pooled sums."""

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.ring import Words
from fkl.algorithms.vertical.sum_trees import Tree
from fkl.contract.parties import Own, Wire
from fkl.wire.letters import Letter

Part = Generator[int, Letter | None, Any]


def gather_at_root(
    tree: Tree, own: Own, wire: Wire, kind: type[Letter], values: NDArray[Any], about: tuple[int, ...] = ()
) -> Part:
    """Sum of all parties' arrays at the root; None at any other party."""
    for sender, receiver in tree.links:
        if receiver == own.number:
            values = values + values_of_letter((yield sender), kind)
        elif sender == own.number:
            wire.send(receiver, kind(values, about))
            return None
    return values if own.number == tree.root else None


def pass_down_tree(tree: Tree, own: Own, wire: Wire, kind: type[Letter], values: NDArray[Any] | None) -> Part:
    """The root's array, which passes down the tree."""
    for child, parent in reversed(tree.links):
        if child == own.number:
            values = values_of_letter((yield parent), kind)
        elif parent == own.number:
            assert values is not None
            wire.send(child, kind(values))
    return values


def round_the_ring(order: list[int], own: Own, wire: Wire, kind: type[Letter], words: Words) -> Part:
    """Sum modulo 2^32 or 2^64 of all parties' words, at the first of the ring; None at any other party.

    The first party's mask, uniform on all words, is removed when the sum is back (see `ring.masked_sum`).
    """
    place = order.index(own.number)
    before, after = order[place - 1], order[(place + 1) % len(order)]
    if place > 0:
        wire.send(after, kind(values_of_letter((yield before), kind) + words))
        return None
    if len(order) == 1:
        return words
    assert own.rng is not None
    mask = own.rng.integers(0, np.iinfo(words.dtype).max, size=words.shape, dtype=words.dtype, endpoint=True)
    wire.send(after, kind(words + mask))
    return values_of_letter((yield before), kind) - mask


def values_of_letter(letter: Letter | None, kind: type[Letter]) -> NDArray[Any]:
    """Content of a letter of this kind."""
    assert isinstance(letter, kind), f"{kind.__name__} was due, not {type(letter).__name__}"
    return letter.values
