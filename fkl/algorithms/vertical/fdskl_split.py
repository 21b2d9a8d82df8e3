"""FDSKL with angles split between two workers (`algo.masks=split`): no worker has an angle, not even the asking one.

In Algorithm 3 the asking worker l learns w'x + b of every row, and a system of such equations gives it all features of
all workers, whatever masks the sums had. Two changes prevent that.

1. Masks belong to pairs of workers, which draw the same integers from a seed that only they know. One adds them and the
   other subtracts them (Bonawitz et al. 2017, without their treatment of workers that drop out). They cancel in the sum
   of all, so T2 is not needed. The sum goes over all workers except l', and l' sends nothing. Then l has one share of
   the angle and l' the other. Each share is uniform, whatever the data are.
2. By cos(a + c) = cos a cos c - sin a sin c, results computed with cos(one share + the other) are sums of products of a
   number of l with one of l'. A third worker deals random numbers for these (Beaver 1991; Du and Zhan 2002), and learns
   nothing.

So l learns f of its batch and its own alpha, the purpose of Algorithm 1. No two of l, l' and the dealer may collude.
All messages are integers modulo 2^64; angles are fractions of a turn, other numbers have 24 binary places.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.dsg import TURN
from fkl.algorithms.vertical.fdskl_letters import DealtProduct, MaskedFactor, MaskedShare, Share, SharePart
from fkl.algorithms.vertical.fdskl_worker import Rows, Worker
from fkl.algorithms.vertical.sum_trees import mask_trees, tree_rooted_at
from fkl.algorithms.vertical.sums import Part, gather_at_root, values_of_letter

Array = NDArray[np.float64]
Whole = NDArray[np.uint64]

PLACES = 24
"""Binary places: a sum of products up to 2^15 fits, with an error of about 1e-7 per product."""


@dataclass
class SplitWorker(Worker):
    """A worker with split angles (`fdskl_split`): l and l' have one share each, and neither has the angle.

    `angles` are shares, for features with this worker as l or l'.
    """

    def f(self, before: list[int], rows: Rows, root: int) -> Part:
        """Sum of both shares over all features, (rows,): shares are also summed under masks of pairs."""
        part = self._mask_of_pairs((len(rows),))
        for s in sorted(before, key=lambda number: (self.own.duties[number, 0], number)):
            share = yield from self.asked(s, rows)
            factor = factors_of(share, self.alpha[s] if self.own.duties[s, 0] == self.own.number else None, 1)
            product = yield from self.product(s, factor, (len(rows), 2 * self.method.features))
            part = part if product is None else part + product
        total = yield from gather_at_root(tree_rooted_at(self.own.parties, root), self.own, self.wire, SharePart, part)
        return None if total is None else real(total)

    def pull(self, s: int, angle: Whole | None, slope: Array | None) -> Part:  # type: ignore[override]
        """Sum over the rows of L' phi, (D,), at the worker that asks."""
        root, apart = self.own.duties[s].tolist()
        factor = factors_of(angle, None if slope is None else slope[:, None], 0)
        factor = None if factor is None else factor.T
        product = yield from self.product(s, factor, (self.method.features, 2 * self.method.batch))
        if self.own.number == apart:
            self.wire.send(root, Share(product, (s,)))
        if self.own.number != root:
            return None
        return real(product + values_of_letter((yield apart), Share))

    def summed(self, s: int, rows: Rows) -> Part:
        """A share of w'x + b, (rows, D), at l and at l' (instead of Algorithm 3)."""
        own, (root, apart) = self.own, self.own.duties[s].tolist()
        value = self.partial(s, rows)
        part = turns_of(value) + self._mask_of_pairs(value.shape)
        tree = mask_trees(own.parties, root, apart)[1]
        if own.number == apart:
            return part + turns_of(self.phases(s))
        share = yield from gather_at_root(tree, own, self.wire, MaskedShare, part, (s, *rows.tolist()))
        return share

    def product(self, s: int, factor: Array | None, shape: tuple[int, int]) -> Part:
        """Shares (m,) of the sums over the second axis of products u v, (m, n) each, at l and at l'.

        u'v = (u + r)'v - r'(v + p) + r'p: l has u and r, l' has v and p, both from the dealer's seeds, and the dealer
        splits r'p.
        """
        own, wire, dealer = self.own, self.wire, int(self.own.dealers[s])
        root, apart = own.duties[s].tolist()
        if own.number == dealer:
            r, (p, split) = self.first_mask(s, shape), self.second_masks(s, shape)
            wire.send(root, DealtProduct(summed_words(r * p) - split, (s,)))
        if factor is None:
            return None
        # l and l' send each other factors under the dealer's masks, and obtain shares whose sum is u'v.
        whole = np.round(factor * 2.0**PLACES).astype(np.int64).view(np.uint64)
        if own.number == root:
            r = self.first_mask(s, shape)
            wire.send(apart, MaskedFactor(whole + r, (s,)))
            back = values_of_letter((yield apart), MaskedFactor)
            return values_of_letter((yield dealer), DealtProduct) - summed_words(r * back)
        p, split = self.second_masks(s, shape)
        sent = values_of_letter((yield root), MaskedFactor)
        wire.send(root, MaskedFactor(whole + p, (s,)))
        return summed_words(sent * whole) + split

    def first_mask(self, s: int, shape: tuple[int, int]) -> Whole:
        """The mask r, at the dealer and at l."""
        return drawn_words(self.own.pairs["l", int(self.own.dealers[s]), int(self.own.duties[s, 0])], shape)

    def second_masks(self, s: int, shape: tuple[int, int]) -> tuple[Whole, Whole]:
        """The mask p, and the part of r'p that is not in the letter, at the dealer and at l'."""
        rng = self.own.pairs["l'", int(self.own.dealers[s]), int(self.own.duties[s, 1])]
        return drawn_words(rng, shape), drawn_words(rng, shape[:1])

    def _mask_of_pairs(self, shape: tuple[int, ...]) -> Whole:
        """In every pair one worker adds the mask that the other subtracts."""
        mask, me = np.zeros(shape, np.uint64), self.own.number
        for other in range(self.own.parties):
            if other != me:
                drawn = drawn_words(self.own.pairs["mask", min(me, other), max(me, other)], shape)
                mask = mask + drawn if me > other else mask - drawn
        return mask


def drawn_words(generator: np.random.Generator, shape: tuple[int, ...]) -> Whole:
    """Uniform on all words."""
    return generator.integers(0, 2**64, shape, np.uint64)


def summed_words(products: Whole) -> Whole:
    """Sums over the last axis, modulo 2^64."""
    return products.sum(axis=-1, dtype=np.uint64)


def turns_of(angle: Array) -> Whole:
    """Fraction of a turn in 53 bits; 2^64 is a whole turn."""
    return ((angle / TURN % 1.0) * 2.0**53).astype(np.uint64) << np.uint64(11)


def factor_of(whole: Whole) -> Array:
    """Factors that these integers stand for."""
    return whole.view(np.int64) / 2.0**PLACES


def real(products: Whole) -> Array:
    """Sum of products that these integers stand for."""
    return products.view(np.int64) / 2.0 ** (2 * PLACES)


def angle_of(share: Whole) -> Array:
    """Angle of a share, from 0 to 2 pi."""
    return share.astype(np.float64) * (TURN / 2.0**64)


def factors_of(share: Whole | None, weight: Array | None, axis: int) -> Array | None:
    """Both factors of the products that add up to weight sqrt(2) cos(a + c), concatenated along an axis.

    For the share a of l, which has a weight, they are weight sqrt(2) (cos a, -sin a); for c of l', (cos c, sin c).
    """
    if share is None:
        return None
    angle = angle_of(share)
    if weight is None:
        return np.concatenate([np.cos(angle), np.sin(angle)], axis)
    return np.concatenate([weight * (np.sqrt(2) * np.cos(angle)), weight * (-np.sqrt(2) * np.sin(angle))], axis)
