"""Sums over the parties along a tree, a ring or a star: links, time, and one party's part.

The masked ring follows Yu, Vaidya and Jiang, "Privacy-preserving SVM classification on vertically partitioned data"
(2006), Section 4: a sum of integers under a mask, which is removed exactly.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, require
from fkl.contract.parties import PartyData, Wire
from fkl.kernels.cached_njit import njit_cached
from fkl.network.settings import CostModel
from fkl.wire.letters import Letter

Link = tuple[int, int]
"""Sender and receiver."""


@dataclass(frozen=True)
class SumTree:
    """Links of a sum: level by level, senders send their partial sums, and receivers add them to their own.

    Parameters
    ----------
    root : int
        Worker that obtains the sum.
    levels : tuple of tuples of (sender, receiver)
        Links of a level are used at the same time. Every worker except the root sends once, after it has received.
    """

    root: int
    levels: tuple[tuple[Link, ...], ...] = ()

    @property
    def links(self) -> tuple[Link, ...]:
        """All links in the order in which they are used."""
        return tuple(link for level in self.levels for link in level)

    @cached_property
    def workers(self) -> frozenset[int]:
        """All workers: the leaves of the tree."""
        return frozenset({self.root, *(sender for sender, _ in self.links)})

    @cached_property
    def sent(self) -> tuple[frozenset[int], ...]:
        """Workers whose values each link carries, in the order of `links`."""
        gathered = {worker: frozenset({worker}) for worker in self.workers}
        under = []
        for sender, receiver in self.links:
            under.append(gathered[sender])
            gathered[receiver] |= gathered[sender]
        return tuple(under)

    def seconds(self, size: float, cost: CostModel) -> float:
        """Time of a sum of `size` bytes on the critical path.

        Levels follow one another; in a level all receivers work in parallel, each with one link: latency + (messages it
        receives) size / bandwidth.
        """
        total = 0.0
        for level in self.levels:
            busiest = max(np.unique([receiver for _, receiver in level], return_counts=True)[1])
            total += cost.latency_s + float(busiest) * size / cost.bandwidth_bytes_per_s
        return total


def binary_tree(workers: list[int]) -> SumTree:
    """Binary tree: neighbours pair up, and the first of a pair adds the second's value, until one remains.

    FDSKL, Section 2.3.1 and Figure 2 (a): with four workers, 1 adds the value of 2 while 3 adds that of 4; then 1 adds
    the value of 3. Depth ceil(log2(workers)).
    """
    levels, left = [], list(workers)
    while len(left) > 1:
        levels.append(tuple(zip(left[1::2], left[::2], strict=False)))
        left = left[::2]
    return SumTree(workers[0], tuple(levels))


def ring_tree(workers: list[int]) -> SumTree:
    """The last worker sends to the one before it, and so on to the first (Yu et al. 2006): one link per level."""
    order = workers[::-1]
    return SumTree(workers[0], tuple((link,) for link in pairwise(order)))


def star_tree(workers: list[int]) -> SumTree:
    """All workers send to the first worker at once (Wan et al. 2007)."""
    level = tuple((worker, workers[0]) for worker in workers[1:])
    return SumTree(workers[0], (level,) if level else ())


STRUCTURES = {"tree": binary_tree, "ring": ring_tree, "star": star_tree}
"""The structures of Figure 4, each a function of the list of workers, root first."""


def seconds_of_sum(structure: str, workers: int, size: float, cost: CostModel) -> float:
    """Seconds for a sum of `size` bytes over this many workers (Figure 4).

    Raises
    ------
    fkl.basics.errors.BadValue
        If there is no such structure.
    """
    require(structure in STRUCTURES, "structure", structure, f"one of {', '.join(STRUCTURES)}")
    return STRUCTURES[structure](list(range(workers))).seconds(size, cost)


def tree_rooted_at(workers: int, root: int) -> SumTree:
    """Tree T0 of an iteration: the binary tree over all workers with this root."""
    return binary_tree([(root + step) % workers for step in range(workers)])


def mask_trees(workers: int, root: int, apart: int) -> tuple[SumTree, SumTree]:
    """Totally different: T1 over all, T2 over all but the one whose mask is never subtracted (FDSKL, Algorithm 3).

    T1 pairs up the workers except the root, `apart` first; T2 pairs up the same row from its second worker on; both
    send the sum to the root. Every subtree of T1 then starts at an even place of the row and every subtree of T2 at an
    odd one, so none belongs to both (Definition 2). A worker that adds in T1 only sends in T2, except for the root,
    which receives one message in each. So no worker has both a masked sum and its mask. Definition 2 alone does not
    guarantee this: the pairing of Figure 2 (a), ((1, 2), (3, 4)), and ((1, 3), 2) share no subtree, but worker 2 sends
    its masked value in the first and its bare mask in the second to worker 1. The tests search for such workers.

    With two workers T1 is one link and T2 is only the root, whose own mask is the only one to remove. With three
    workers the other two are added in T1, so the mask that the root receives along T2 does not unmask a single value.
    In both cases the root obtains the sum of all partial sums and the mask that stays, and learns no more than with
    many workers. With two workers, however, this is the other worker's partial sum under a single mask.

    Parameters
    ----------
    workers : int
        q, at least 2.
    root : int
        The active worker that requests the sum.
    apart : int
        l', another worker.
    """
    # The root of T1 must not be the worker whose mask is never subtracted
    if root == apart or workers < 2:
        raise FklError(f"worker {root} of {workers} needs another worker whose mask is never subtracted")
    # All others in a ring order that begins with that worker
    row = [(apart + step) % workers for step in range(workers)]
    row.remove(root)
    return _pairs_before_root(row, root), _pairs_before_root(row[1:], root)


def all_masks_tree(workers: int, root: int, apart: int) -> SumTree:
    """Tree T2 over all workers, including `apart`, for the case that every mask is subtracted.

    It is T2 of `mask_trees` with `apart` at the end of the row, where it never adds. Again only the root receives in
    both trees. The only subtree that both share is that of all others, whose sum the root should learn.
    """
    row = [(apart + step) % workers for step in range(workers)]
    row.remove(root)
    return _pairs_before_root([*row[1:], row[0]], root)


def _pairs_before_root(row: list[int], root: int) -> SumTree:
    """Pairs of workers; the first worker sends the sum to the root."""
    if not row:
        return SumTree(root)
    return SumTree(root, (*binary_tree(row).levels, ((row[0], root),)))


FRACTION_BITS = 40
LARGEST = 2.0 ** (62 - FRACTION_BITS)
"""Larger sums do not fit into 64 bits."""

Words = NDArray[np.unsignedinteger]


def to_fixed_point(numbers: Array) -> NDArray[np.uint64]:
    """Numbers as whole multiples of 2^-40 modulo 2^64; overwrites the numbers."""
    words = numbers.reshape(-1)
    _write_fixed_point(words, words.view(np.int64))
    return words.view(np.uint64).reshape(numbers.shape)


@njit_cached(nogil=True)
def _write_fixed_point(numbers: Array, words: NDArray[np.int64]) -> None:
    """Convert in one pass over the memory that both arrays share."""
    for i in range(len(numbers)):
        words[i] = np.int64(np.rint(numbers[i] * 2.0**FRACTION_BITS))


def from_fixed_point(words: NDArray[np.uint64], out: Array | None = None) -> Array:
    """Inverse of `to_fixed_point`: numbers between -2^23 and 2^23."""
    return np.multiply(words.view(np.int64), 2.0**-FRACTION_BITS, out=out)


Part = Generator[int, Letter | None, Any]


def gather_at_root(
    tree: SumTree, own: PartyData, wire: Wire, kind: type[Letter], values: NDArray[Any], about: tuple[int, ...] = ()
) -> Part:
    """Sum of all parties' arrays at the root; None at any other party."""
    for sender, receiver in tree.links:
        if receiver == own.number:
            values = values + values_of_letter((yield sender), kind)
        elif sender == own.number:
            wire.send(receiver, kind(values, about))
            return None
    return values if own.number == tree.root else None


def pass_down_tree(tree: SumTree, own: PartyData, wire: Wire, kind: type[Letter], values: NDArray[Any] | None) -> Part:
    """The root's array at every party; it is sent down the tree."""
    for child, parent in reversed(tree.links):
        if child == own.number:
            values = values_of_letter((yield parent), kind)
        elif parent == own.number:
            assert values is not None
            wire.send(child, kind(values))
    return values


def round_the_ring(
    own: PartyData, wire: Wire, kind: type[Letter], shape: tuple[int, ...], shares: Iterable[tuple[slice, Words]]
) -> Part:
    """Sum modulo 2^32 or 2^64 of all parties' words, at the first active party; None at any other party.

    The first active party adds a mask, uniform on all words, so the other parties receive uniform words for any data.
    When the sum returns, it subtracts the mask. The two neighbours of a party in the ring can compute its words if they
    share their messages.

    Parameters
    ----------
    own : Own
    wire : Wire
    kind : type of Letter
        Kind of the messages; its numbers are unsigned.
    shape : tuple of int
        Shape of the sum.
    shares : iterable of (slice, words)
        Words of this party, one block of the sum after another.
    """
    # The ring: the root, then the others in their order
    others = [party for party in range(own.parties) if party != own.root]
    # A worker adds its share to what it receives, and passes the sum on
    if own.number != own.root:
        place = others.index(own.number)
        words = values_of_letter((yield [own.root, *others][place]), kind)
        for block, share in shares:
            words[block] += share
        wire.send([*others, own.root][place + 1], kind(words))
        return None
    # The root starts with its share under a mask, so the first worker sees only uniform words
    words = np.empty(shape, kind.dtype)
    for block, share in shares:
        words[block] = share
    if not others:
        return words
    assert own.rng is not None
    mask = own.rng.integers(0, np.iinfo(words.dtype).max, size=shape, dtype=words.dtype, endpoint=True)
    words += mask
    wire.send(others[0], kind(words))
    # The sum comes back; without the mask it is exact
    words = values_of_letter((yield others[-1]), kind)
    words -= mask
    return words


def values_of_letter(letter: Letter | None, kind: type[Letter]) -> NDArray[Any]:
    """Content of a message, which must be of this kind."""
    assert isinstance(letter, kind), f"{kind.__name__} was due, not {type(letter).__name__}"
    return letter.values
