"""FDSKL's Algorithms 1 to 3 at one worker, which has its own features and what letters say."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.dsg import TURN, Dsg, phi_of
from fkl.algorithms.vertical.fdskl import Fdskl, FunctionPart, Index, MaskedSum, MaskSum, Shrink
from fkl.algorithms.vertical.losses import LOSSES
from fkl.algorithms.vertical.sums import Part, gathered, told
from fkl.contract.parties import Actor, Held, Own, Wire
from fkl.data.vertical import Vertical
from fkl.network.trees import all_masks_tree, mask_trees, rooted
from fkl.streams import Role, Streams

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


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
    """

    streams: Streams
    duties: Rows
    dimension: int
    batches: Rows | None


def dealt(method: Fdskl, problem: Vertical, streams: Streams) -> tuple[Held, list[Own]]:
    """What the workers hold of all rows, together and each."""
    start, duties = Dsg.learner(method, problem, streams), method.duties(problem, streams)
    learned_from = np.isin(np.arange(len(problem.y)), start.split.training)
    y = np.where(learned_from, problem.y, np.nan)
    secrets = streams.generators(Role.MASKS)[0].spawn(problem.parties)
    holders: list[Own] = []
    for j, (features, secret) in enumerate(zip(problem.groups, secrets, strict=True)):
        active = j in problem.active
        own = (j, problem.x[:, features], y if active else None, problem.groups, problem.active, secret)
        batches = start.batches if active else None
        holders.append(Holder(*own, streams, duties, problem.dimension, batches))
    return Held(problem.x, y, problem.groups, problem.active), holders


def party(method: Fdskl, own: Own, wire: Wire) -> Actor:
    """All iterations of one worker."""
    assert isinstance(own, Holder)
    return Worker(method, own, wire).play()


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
    angles: dict[int, Array] = field(default_factory=dict)
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
        gamma, shrink = method.gamma_at(t), None
        if asks:
            slope = LOSSES[method.loss].derivative(f, own.labels[rows])
            alpha = -gamma * (slope @ (np.sqrt(2) * np.cos(angle))) / (len(rows) * method.features)  # lines 8 and 9
            shrink = np.array([1 - gamma * method.lam])
        [factor] = yield from told(tree, own, self.wire, Shrink, shrink)  # line 10
        self.alpha = {number: factor * old for number, old in self.alpha.items()}
        if asks:
            self.alpha[s] = self.alpha.get(s, 0) + alpha

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
        angle = self._together(s, rows, new, found) if self.own.duties[s, 0] == self.own.number else None
        if first or self.method.bank:  # all angles of a bank are saved
            self.known[s] = np.concatenate([known, rows[new]])
            if found is not None:
                self.angles[s] = np.concatenate([self.angles[s], found]) if s in self.angles else found
        return angle

    def _together(self, s: int, rows: Rows, new: NDArray[np.bool_], found: Array | None) -> Array:
        """Saved and new angles in the order of the rows."""
        angle = np.empty((len(rows), self.method.features))
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
