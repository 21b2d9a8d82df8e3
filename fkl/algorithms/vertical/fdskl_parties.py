"""FDSKL's Algorithms 1 to 3 at one worker, which has its own features and what letters say."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.dsg import TURN, Dsg, phi_of
from fkl.algorithms.vertical.fdskl import (
    DealtProduct,
    Fdskl,
    FunctionPart,
    Index,
    MaskedFactor,
    MaskedShare,
    MaskedSum,
    MaskSum,
    Share,
    SharePart,
    Shrink,
)
from fkl.algorithms.vertical.fdskl_split import (
    Whole,
    drawn_words,
    first_factors,
    real,
    second_factors,
    summed_words,
    turns_of,
    whole_of,
)
from fkl.algorithms.vertical.sums import Part, gathered, received, told
from fkl.contract.parties import Actor, Held, Own, Wire
from fkl.data.vertical import Vertical
from fkl.losses import LOSSES
from fkl.network.trees import all_masks_tree, mask_trees, rooted
from fkl.streams import Role, Streams

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Pairs = dict[tuple[str, int, int], np.random.Generator]


@dataclass(frozen=True)
class Holder(Own):
    """What one worker holds, and what all know: the seed of directions and duties.

    Parameters
    ----------
    streams : Streams
        Of one replicate. Of the private streams a worker asks for its own alone.
    duties : (T, 2) int
        As of `Dsg.duties`.
    dimension : int
        d.
    batches : (T, B) int or None
        Rows of the iterations that a worker may ask in; None for one that is not active.
    dealers : (T,) int
        As of `Fdskl.dealers`.
    pairs : dict of (str, int, int) to numpy.random.Generator
        Of seeds that this worker and one other share.
    """

    streams: Streams
    duties: Rows
    dimension: int
    batches: Rows | None
    dealers: Rows
    pairs: Pairs


def dealt(method: Fdskl, problem: Vertical, streams: Streams) -> tuple[Held, list[Own]]:
    """What the workers hold of all rows, together and each."""
    start, duties = Dsg.learner(method, problem, streams), method.duties(problem, streams)
    learned_from = np.isin(np.arange(len(problem.y)), start.split.training)
    y = np.where(learned_from, problem.y, np.nan)
    [masks] = streams.generators(Role.MASKS)
    secrets, pairs = masks.spawn(problem.parties), seeds_of_pairs(masks, problem.parties)
    dealers = method.dealers(problem, streams)
    holders: list[Own] = []
    for j, (features, secret) in enumerate(zip(problem.groups, secrets, strict=True)):
        active = j in problem.active
        own = (j, problem.x[:, features], y if active else None, problem.groups, problem.active, secret)
        batches = start.batches if active else None
        shared = {pair: deepcopy(seed) for pair, seed in pairs.items() if j in pair[1:]}
        holders.append(Holder(*own, streams, duties, problem.dimension, batches, dealers, shared))
    return Held(problem.x, y, problem.groups, problem.active), holders


def seeds_of_pairs(rng: np.random.Generator, parties: int) -> Pairs:
    """Of every pair, and of every dealer with those whom it deals to as l and as l'."""
    roles = (("mask", 0), ("l", 1), ("l'", 1))
    names = [(what, j, k) for what, both in roles for j in range(parties) for k in range(parties) if j < k or both]
    return dict(zip(names, rng.spawn(len(names)), strict=True))


def party(method: Fdskl, own: Own, wire: Wire) -> Actor:
    """All iterations of one worker."""
    assert isinstance(own, Holder)
    return (SplitWorker if method.masks == "split" else Worker)(method, own, wire).play()


class Learned(NamedTuple):
    """What one worker knows in the end.

    Attributes
    ----------
    features : dict of int to ((D, d), (D,))
        Directions and coefficients of the features that it asked for.
    stays : dict of int to (D,)
        Its phases of those whose mask stays with it.
    """

    features: dict[int, tuple[Array, Array]]
    stays: dict[int, Array]


@dataclass
class Worker:
    """One worker at work.

    All know the rows of every batch, once they are told, so they know which angles are asked for again.
    """

    method: Fdskl
    own: Holder
    wire: Wire
    alpha: dict[int, Array] = field(default_factory=dict)
    """Coefficients (D,) of the features that were drawn where it asked, Lambda."""
    angles: dict[int, Any] = field(default_factory=dict)
    """Angles (rows, D) of these features, of the rows in `known`."""
    known: dict[int, Rows] = field(default_factory=dict)
    """Rows whose angles are saved, of the features of all workers."""

    def play(self) -> Actor:
        """All iterations; what it has learned."""
        for t in range(self.method.iterations):
            yield from self.iterate(t)
        drawn = range(self.method.draws)
        stays = {s: self.phases(s) for s in drawn if self.own.duties[s, 1] == self.own.number}
        return Learned({s: (self.directions(s), alpha) for s, alpha in self.alpha.items()}, stays)

    def iterate(self, t: int) -> Part:
        """Algorithm 1, one iteration: rows are sent as their numbers, followed by the seed."""
        method, own, s = self.method, self.own, t % self.method.draws
        root = int(own.duties[t, 0])
        tree, asks = rooted(own.parties, root), own.number == root
        index = np.array([*own.batches[t], t], np.float64) if asks and own.batches is not None else None
        told_rows = yield from told(tree, own, self.wire, Index, index)  # line 3
        rows = told_rows[:-1].astype(np.int64)
        before = sorted(self.known)  # features that have coefficients
        angle = yield from self.asked(s, rows)  # lines 4 and 5
        f = yield from self.f(before, rows, root)  # lines 6 and 7
        slope = LOSSES[method.loss].derivative(f, own.labels[rows]) if asks else None
        pull = yield from self.pull(s, angle, slope)  # line 8
        gamma = method.gamma_at(t)
        shrink = np.array([1 - gamma * method.lam]) if asks else None
        [factor] = yield from told(tree, own, self.wire, Shrink, shrink)  # line 10
        self.alpha = {number: factor * old for number, old in self.alpha.items()}
        if asks:
            self.alpha[s] = self.alpha.get(s, 0) - gamma * pull / (len(rows) * method.features)  # line 9

    def pull(self, s: int, angle: Array | None, slope: Array | None) -> Part:
        """Sum over the rows of L' phi, (D,), at the worker that asks, which alone has a slope."""
        yield from ()
        return None if slope is None or angle is None else slope @ (np.sqrt(2) * np.cos(angle))

    def f(self, before: list[int], rows: Rows, root: int) -> Part:
        """Sum over the workers of f^l, (rows,), as the root has it (Algorithm 1, lines 6 and 7)."""
        part = np.zeros(len(rows))
        for s in sorted(before, key=lambda number: (self.own.duties[number, 0], number)):
            angle = yield from self.asked(s, rows)
            if angle is not None:
                part += np.sqrt(2) * np.cos(angle) @ self.alpha[s]  # Algorithm 2
        total = yield from gathered(rooted(self.own.parties, root), self.own, self.wire, FunctionPart, part)
        return total

    def asked(self, s: int, rows: Rows) -> Part:
        """Angles (rows, D) of feature s at the worker that holds it: what is saved is not asked for again."""
        known = self.known.get(s, np.zeros(0, np.int64))
        new = ~np.isin(rows, known)
        found = None
        if new.any():
            found = yield from self.summed(s, rows[new])
        first = s not in self.known
        angle = self._together(s, rows, new, found) if found is not None or s in self.angles else None
        if first or self.method.bank:  # all angles of a bank are saved
            self.known[s] = np.concatenate([known, rows[new]])
            if found is not None:
                self.angles[s] = np.concatenate([self.angles[s], found]) if s in self.angles else found
        return angle

    def _together(self, s: int, rows: Rows, new: NDArray[np.bool_], found: Any) -> Any:
        """Saved and new angles in the order of the rows."""
        some = self.angles[s] if found is None else found
        angle = np.empty((len(rows), self.method.features), some.dtype)
        if found is not None:
            angle[new] = found
        if not new.all():
            order = np.argsort(self.known[s])
            angle[~new] = self.angles[s][order[np.searchsorted(self.known[s][order], rows[~new])]]
        return angle

    def summed(self, s: int, rows: Rows) -> Part:
        """Angles w'x + b of feature s, (rows, D), at the worker that holds it (Algorithm 3)."""
        own, fresh = self.own, self.method.masks == "fresh"
        w = self.directions(s)
        root, apart = own.duties[s].tolist()
        value = np.asarray(own.x[rows] @ w[:, own.features].T)
        b = self.mask(s, value.shape)  # line 2
        if fresh and own.number == apart:
            value = value + self.phases(s)  # in the other cases its b is not in T2, and so stays
        t1, t2 = mask_trees(own.parties, root, apart)
        t2 = all_masks_tree(own.parties, root, apart) if fresh else t2
        xi = yield from gathered(t1, own, self.wire, MaskedSum, self._travelling(value + b), (s,))  # lines 3 and 5
        masks = yield from gathered(t2, own, self.wire, MaskSum, self._travelling(b), (s,))
        return self._travelling(xi - masks) if own.number == root else None  # line 7

    def mask(self, s: int, shape: tuple[int, ...]) -> Array:
        """Uniform numbers from [0, 2 pi] (Algorithm 3, line 2): one a feature, or one a feature and row."""
        assert self.own.rng is not None
        return self.own.rng.uniform(0, TURN, shape) if self.method.masks == "fresh" else self._phases(s, shape)

    def directions(self, s: int) -> Array:
        """W of a feature, (D, d), of the seed that all know."""
        return self.method.directions(self.own.streams, s, self.own.dimension)

    def phases(self, s: int) -> Array:
        """Its own phases b^j(s), (D,)."""
        return self.method.phases(self.own.streams, s, self.own.number)

    def _phases(self, s: int, shape: tuple[int, ...]) -> Array:
        return np.array(np.broadcast_to(self.phases(s), shape))

    def _travelling(self, angle: Array) -> Array:
        return angle if self.method.masks == "paper" else angle % TURN


@dataclass
class SplitWorker(Worker):
    """The same with split angles (`fdskl_split`): l and l' have a share each, and neither has the angle.

    `angles` are shares, of the features where this worker is l or l'.
    """

    def f(self, before: list[int], rows: Rows, root: int) -> Part:
        """Sum of both shares over all features, (rows,): shares are summed behind masks of pairs, too."""
        part = self._mask_of_pairs((len(rows),))
        for s in sorted(before, key=lambda number: (self.own.duties[number, 0], number)):
            share = yield from self.asked(s, rows)
            factor = None
            if share is not None and self.asks(s):
                factor = np.concatenate([self.alpha[s] * one for one in first_factors(share)], axis=1)
            elif share is not None:
                factor = np.concatenate(second_factors(share), axis=1)
            product = yield from self.product(s, factor, (len(rows), 2 * self.method.features))
            part = part if product is None else part + product
        total = yield from gathered(rooted(self.own.parties, root), self.own, self.wire, SharePart, part)
        return None if total is None else real(total)

    def pull(self, s: int, angle: Whole | None, slope: Array | None) -> Part:  # type: ignore[override]
        """Sum over the rows of L' phi, (D,), at the worker that asks."""
        factor, (root, apart) = None, self.own.duties[s].tolist()
        if angle is not None and slope is not None:
            factor = np.concatenate([slope[:, None] * one for one in first_factors(angle)]).T
        elif angle is not None:
            factor = np.concatenate(second_factors(angle)).T
        product = yield from self.product(s, factor, (self.method.features, 2 * self.method.batch))
        if self.own.number == apart:
            self.wire.send(root, Share(product, (s,)))
        if self.own.number != root:
            return None
        return real(product + received((yield apart), Share))

    def asks(self, s: int) -> bool:
        """Whether it is l of this feature."""
        return bool(self.own.duties[s, 0] == self.own.number)

    def summed(self, s: int, rows: Rows) -> Part:
        """A share of w'x + b, (rows, D), at l and at l' (in place of Algorithm 3)."""
        own, w = self.own, self.directions(s)
        root, apart = own.duties[s].tolist()
        value = np.asarray(own.x[rows] @ w[:, own.features].T)
        part = turns_of(value) + self._mask_of_pairs(value.shape)
        tree = mask_trees(own.parties, root, apart)[1]
        if own.number == apart:
            return part + turns_of(self.phases(s))
        share = yield from gathered(tree, own, self.wire, MaskedShare, part, (s,))
        return share

    def product(self, s: int, factor: Array | None, shape: tuple[int, int]) -> Part:
        """Shares (m,) of the sums over the second axis of products, (m, n) each, at l and at l'; see `fdskl_split`."""
        own, wire, dealer = self.own, self.wire, int(self.own.dealers[s])
        root, apart = own.duties[s].tolist()
        if own.number == dealer:
            r, (p, split) = self._first_mask(dealer, root, shape), self._second_masks(dealer, apart, shape)
            wire.send(root, DealtProduct(summed_words(r * p) - split, (s,)))
        if factor is None:
            return None
        whole = whole_of(factor)
        if own.number == root:
            r = self._first_mask(dealer, root, shape)
            wire.send(apart, MaskedFactor(whole + r, (s,)))
            back = received((yield apart), MaskedFactor)
            return received((yield dealer), DealtProduct) - summed_words(r * back)
        p, split = self._second_masks(dealer, apart, shape)
        sent = received((yield root), MaskedFactor)
        wire.send(root, MaskedFactor(whole + p, (s,)))
        return summed_words(sent * whole) + split

    def _first_mask(self, dealer: int, root: int, shape: tuple[int, int]) -> Whole:
        return drawn_words(self.own.pairs["l", dealer, root], shape)

    def _second_masks(self, dealer: int, apart: int, shape: tuple[int, int]) -> tuple[Whole, Whole]:
        rng = self.own.pairs["l'", dealer, apart]
        return drawn_words(rng, shape), drawn_words(rng, shape[:1])

    def _mask_of_pairs(self, shape: tuple[int, ...]) -> Whole:
        """Of every pair one adds what the other subtracts."""
        mask, me = np.zeros(shape, np.uint64), self.own.number
        for other in range(self.own.parties):
            if other != me:
                drawn = drawn_words(self.own.pairs["mask", min(me, other), max(me, other)], shape)
                mask = mask + drawn if me > other else mask - drawn
        return mask


class Function(NamedTuple):
    """f(x) = sum_s alpha_s'phi_s(x)."""

    w: Array
    b: Array
    alpha: Array

    def decision(self, x: Any) -> Array:
        """Values f of samples (n, d), shape (n,)."""
        values: Array = phi_of(x, self.w, self.b) @ self.alpha
        return values


def assembled(parts: list[Learned]) -> Function:
    """The function whose coefficients and phases the workers hold."""
    features = {s: feature for part in parts for s, feature in part.features.items()}
    stays = {s: phases for part in parts for s, phases in part.stays.items()}
    w, alpha = zip(*features.values(), strict=True)
    return Function(np.concatenate(w), np.concatenate([stays[s] for s in features]), np.concatenate(alpha))
