"""FDSKL with angles that stay split between two workers (`algo.masks=split`): nobody, the asking worker too, has any.

In Algorithm 3 the asking worker l learns w'x + b of every row, and a system of such equations gives it all features of
all workers, whatever masks the way there had. Two changes keep them from it.

1. Masks are of pairs of workers, who draw the same integers from a seed that only they know; one adds them, the
   other subtracts them (Bonawitz et al. 2017, without their care for workers that drop out). They cancel in the sum of
   all, so T2 is not needed. The sum goes over all workers but l', and l' sends nothing: l is left with one share of
   the angle and l' with the other, each of which is uniform, whatever the data are.
2. What is computed with cos(one share + the other) are sums of products of a number of l with one of l', by
   cos(a + c) = cos a cos c - sin a sin c. A third worker deals random numbers for these (Beaver 1991; Du and Zhan
   2002), and is not told anything.

So l learns f of its batch and its own alpha, which Algorithm 1 is for; and no two of l, l' and the dealer may collude.
All that travels are integers modulo 2^64; angles are fractions of a turn, other numbers have 24 binary places.
"""

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.dsg import TURN
from fkl.algorithms.vertical.fdskl import DEALT, FACTOR, MASKED, PART, SHARE, Fdskl, Protocol
from fkl.data.vertical import Vertical
from fkl.network.trees import Tree, mask_trees, rooted, total
from fkl.network.wire import Wire
from fkl.streams import Role, Streams

Array = NDArray[np.float64]
Whole = NDArray[np.uint64]

PLACES = 24
"""Binary places: a sum of products up to 2^15 fits, with an error of about 1e-7 a product."""


class SplitProtocol(Protocol):
    """FDSKL message by message, every angle split between l and l'.

    Parameters
    ----------
    method, problem, streams, wire :
        As of `Protocol`.
    """

    def __init__(self, method: Fdskl, problem: Vertical, streams: Streams, wire: Wire) -> None:
        super().__init__(method, problem, streams, wire)
        seeds = iter(streams.generators(Role.MASKS)[0].spawn(problem.parties**2))
        q = problem.parties
        self.between = {(j, k): next(seeds) for j in range(q) for k in range(q)}
        """Generators of pairs j < k, and at (j, j) of j as dealer, of which others have what they need."""
        self.dealers = method.dealers(problem, streams)
        self.shares: dict[int, tuple[NDArray[np.int64], Whole, Whole]] = {}
        """Rows, share at l and share at l' (rows, D) of an iteration's angles."""

    def ask(self, t: int, rows: NDArray[np.int64]) -> None:
        """Lines 4 and 5 of Algorithm 1; each of the two saves its share."""
        self.shares[t] = rows, *self.split_angles(t, rows)

    def pull(self, t: int, rows: NDArray[np.int64], slope: Array) -> Array:
        """Sum over the rows of L' phi, (D,) (Algorithm 1, lines 8 and 9), to the asking worker alone."""
        _, mine, others = self.shares[t]
        left = np.concatenate([slope[:, None] * part for part in first_factors(mine)]).T
        one, other = self._product(t, left, np.concatenate(second_factors(others)).T)
        root, apart = self.duties[t].tolist()
        return real(one + self.wire.send(apart, root, SHARE, other, (t,)))

    def f(self, rows: NDArray[np.int64], root: int) -> Array:
        """Sum of both shares over all features, (rows,): shares are summed behind masks of pairs, too."""
        parts = self._masks((len(rows),))
        for s, alpha in self._coefficients().items():
            mine, others = self._saved_or_split(s, rows)
            left = np.concatenate([alpha * part for part in first_factors(mine)], axis=1)
            shares = self._product(s, left, np.concatenate(second_factors(others), axis=1))
            for worker, share in zip(self.duties[s].tolist(), shares, strict=True):
                parts[worker] = parts[worker] + share
        return real(total(rooted(len(self.workers), root), parts, self.wire, PART))

    def split_angles(self, s: int, rows: NDArray[np.int64]) -> tuple[Whole, Whole]:
        """The two shares of w'x + b, (rows, D) each (instead of Algorithm 3)."""
        w = self.method.directions(self.streams, s, self.problem.dimension)
        root, apart = self.duties[s].tolist()
        masks, about = self._masks((len(rows), len(w))), (s, tuple(rows.tolist()))
        parts = {worker.number: turns_of(worker.partial(w, rows)) + masks[worker.number] for worker in self.workers}
        mine = total(self.split_tree(root, apart), parts, self.wire, MASKED, about)
        return mine, parts[apart] + turns_of(self.workers[apart].phases(s))

    def deal(self, s: int, shape: tuple[int, ...]) -> tuple[Whole, Whole, Whole]:
        """Random numbers from the dealer's seeds: r that l has too, and p and the split that l' has too."""
        secret = self.between[int(self.dealers[s]), int(self.dealers[s])]
        return drawn_words(secret, shape), drawn_words(secret, shape), drawn_words(secret, shape[:1])

    def split_tree(self, root: int, apart: int) -> Tree:
        """All workers but l'."""
        return mask_trees(len(self.workers), root, apart)[1]

    def _coefficients(self) -> dict[int, Array]:
        return {s: alpha for worker in self.workers for s, alpha in worker.alpha.items()}

    def _saved_or_split(self, s: int, rows: NDArray[np.int64]) -> tuple[Whole, Whole]:
        """Algorithm 2, line 4, for both shares."""
        saved, *shares = self.shares[s]
        known, order = np.isin(rows, saved), np.argsort(saved)
        place = order[np.searchsorted(saved[order], rows[known])]
        asked = self.split_angles(s, rows[~known])
        both = []
        for old, new in zip(shares, asked, strict=True):
            share = np.empty((len(rows), old.shape[1]), np.uint64)
            share[known], share[~known] = old[place], new
            both.append(share)
        return both[0], both[1]

    def _masks(self, shape: tuple[int, ...]) -> dict[int, Whole]:
        """Masks of all workers, that add up to nothing: of every pair one adds what the other subtracts."""
        masks = {worker.number: np.zeros(shape, np.uint64) for worker in self.workers}
        for j in masks:
            for k in range(j):
                drawn = drawn_words(self.between[k, j], shape)
                masks[j], masks[k] = masks[j] + drawn, masks[k] - drawn
        return masks

    def _product(self, s: int, left: Array, right: Array) -> tuple[Whole, Whole]:
        """Shares (m,) of the sums over the second axis of left right, (m, n) each, of l and of l'.

        u'v = (u + r)'v - r'(v + p) + r'p: l has u and r, l' has v and p, both from the dealer's seeds, and r'p is
        split by the dealer.
        """
        (root, apart), dealer = self.duties[s].tolist(), int(self.dealers[s])
        u, v = whole_of(left), whole_of(right)
        r, p, split = self.deal(s, u.shape)
        sent = self.wire.send(root, apart, FACTOR, u + r, (s,))
        back = self.wire.send(apart, root, FACTOR, v + p, (s,))
        dealt = self.wire.send(dealer, root, DEALT, summed_words(r * p) - split, (s,))
        return dealt - summed_words(r * back), summed_words(sent * v) + split


def protocol_of(method: Fdskl, problem: Vertical, streams: Streams, wire: Wire) -> Protocol:
    """The protocol of these masks."""
    return (SplitProtocol if method.masks == "split" else Protocol)(method, problem, streams, wire)


def drawn_words(generator: np.random.Generator, shape: tuple[int, ...]) -> Whole:
    """Uniform on all words."""
    return generator.integers(0, 2**64, shape, np.uint64)


def summed_words(products: Whole) -> Whole:
    """Sums over the last axis, modulo 2^64."""
    return products.sum(axis=-1, dtype=np.uint64)


def turns_of(angle: Array) -> Whole:
    """Fraction of a turn in 53 bits, so that 2^64 is a whole turn."""
    return ((angle / TURN % 1.0) * 2.0**53).astype(np.uint64) << np.uint64(11)


def whole_of(values: Array) -> Whole:
    """Factors as integers, of `PLACES` binary places."""
    return np.round(values * 2.0**PLACES).astype(np.int64).view(np.uint64)


def factor_of(whole: Whole) -> Array:
    """Factors that these integers stand for."""
    return whole.view(np.int64) / 2.0**PLACES


def real(products: Whole) -> Array:
    """Sum of products that these integers stand for."""
    return products.view(np.int64) / 2.0 ** (2 * PLACES)


def angle_of(share: Whole) -> Array:
    """Angle of a share, from 0 to 2 pi."""
    return share.astype(np.float64) * (TURN / 2.0**64)


def first_factors(share: Whole) -> tuple[Array, Array]:
    """sqrt(2) cos a and -sqrt(2) sin a, so that with `second_factors` the products add up to sqrt(2) cos(a + c)."""
    return np.sqrt(2) * np.cos(angle_of(share)), -np.sqrt(2) * np.sin(angle_of(share))


def second_factors(share: Whole) -> tuple[Array, Array]:
    """See `first_factors`."""
    return np.cos(angle_of(share)), np.sin(angle_of(share))
