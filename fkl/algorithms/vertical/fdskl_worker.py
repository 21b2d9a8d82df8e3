"""One worker of FDSKL: Algorithms 1 to 3 of the paper as letters that it sends and receives."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.dsg import TURN
from fkl.algorithms.vertical.fdskl_letters import FunctionPart, Index, MaskedSum, MaskSum, Shrink
from fkl.algorithms.vertical.sum_trees import Tree, all_masks_tree, mask_trees, tree_rooted_at
from fkl.algorithms.vertical.sums import Part, gather_at_root, pass_down_tree
from fkl.contract.parties import Actor, Own, Wire
from fkl.contract.world import Common
from fkl.kernels.pointwise_losses import LOSSES

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Holder(Own):
    """Data of one worker, and the seed of directions and duties, which all know.

    Parameters
    ----------
    common : Common
        `Common` of one replicate, with streams that give it only its own phases.
    duties : (T, 2) int
        Workers l and l' of each iteration, `Dsg.duties`.
    batches : (T, B) int or None
        Rows of the iterations in which a worker may ask; None for one that is not active.
    """

    common: Common
    duties: Rows
    batches: Rows | None


class Learned(NamedTuple):
    """Final knowledge of one worker.

    Attributes
    ----------
    features : dict of int to ((D, d), (D,))
        Directions and coefficients of the features that it requested.
    stays : dict of int to (D,)
        Its phases of the features whose mask stays with it.
    """

    features: dict[int, tuple[Array, Array]]
    stays: dict[int, Array]


@dataclass
class Worker:
    """One worker.

    All workers know the rows of every batch once they have received them, so they know which angles are requested
    again.
    """

    method: Any  # fdskl.Fdskl
    own: Holder
    wire: Wire
    alpha: dict[int, Array] = field(default_factory=dict)
    """Coefficients (D,) of the features of its own requests, Lambda."""
    angles: dict[int, Array] = field(default_factory=dict)
    """Angles (rows, D) of these features, for the rows in `known`."""
    known: dict[int, Rows] = field(default_factory=dict)
    """Rows whose angles are saved, for the features of all workers."""

    def play(self) -> Actor:
        """Run all iterations and return the result."""
        for t in range(self.method.iterations):
            yield from self.iterate(t)
        drawn = range(self.method.draws)
        stays = {s: self.phases(s) for s in drawn if self.own.duties[s, 1] == self.own.number}
        return Learned(
            {s: (self.method.directions(self.own.common, s), alpha) for s, alpha in self.alpha.items()}, stays
        )

    def iterate(self, t: int) -> Part:
        """Algorithm 1, one iteration: rows are sent as their numbers, followed by the seed."""
        method, own, s = self.method, self.own, t % self.method.draws
        root = int(own.duties[t, 0])
        tree, asks = tree_rooted_at(own.parties, root), own.number == root
        index = np.array([*own.batches[t], t], np.float64) if asks and own.batches is not None else None
        told_rows = yield from pass_down_tree(tree, own, self.wire, Index, index)  # line 3
        rows = told_rows[:-1].astype(np.int64)
        before = sorted(self.known)  # features with coefficients
        angle = yield from self.asked(s, rows)  # lines 4 and 5
        f = yield from self.f(before, rows, root)  # lines 6 and 7
        slope = LOSSES[method.loss].derivative(f, own.labels[rows]) if asks else None
        gamma = method.gamma_at(t)
        shrink = np.array([1 - gamma * method.lam]) if asks else None
        [factor] = yield from pass_down_tree(tree, own, self.wire, Shrink, shrink)  # line 10
        self.alpha = {number: factor * old for number, old in self.alpha.items()}
        if slope is not None and angle is not None:  # it asks
            pull = slope @ (np.sqrt(2) * np.cos(angle))  # line 8, summed over the rows
            self.alpha[s] = self.alpha.get(s, 0) - gamma * pull / (len(rows) * method.features)  # line 9

    def f(self, before: list[int], rows: Rows, root: int) -> Part:
        """Sum over the workers of f^l, (rows,), at the root; None elsewhere (Algorithm 1, lines 6 and 7)."""
        part = np.zeros(len(rows))
        for s in sorted(before, key=lambda number: (self.own.duties[number, 0], number)):
            angle = yield from self.asked(s, rows)
            if angle is not None:
                part += np.sqrt(2) * np.cos(angle) @ self.alpha[s]  # Algorithm 2
        total = yield from gather_at_root(
            tree_rooted_at(self.own.parties, root), self.own, self.wire, FunctionPart, part
        )
        return total

    def asked(self, s: int, rows: Rows) -> Part:
        """Angles (rows, D) of feature s at the worker that holds it: saved angles are not requested again."""
        known = self.known.get(s, np.zeros(0, np.int64))
        new = ~np.isin(rows, known)
        found = None
        if new.any():
            found = yield from self.summed(s, rows[new])
        first = s not in self.known
        angle: Any = None
        if found is not None or s in self.angles:
            # Saved and new angles in the order of the rows.
            some = self.angles[s] if found is None else found
            angle = np.empty((len(rows), self.method.features), some.dtype)
            if found is not None:
                angle[new] = found
            if not new.all():
                order = np.argsort(known)
                angle[~new] = self.angles[s][order[np.searchsorted(known[order], rows[~new])]]
        if first or self.method.bank:  # all angles of a bank are saved
            self.known[s] = np.concatenate([known, rows[new]])
            if found is not None:
                self.angles[s] = np.concatenate([self.angles[s], found]) if s in self.angles else found
        return angle

    def summed(self, s: int, rows: Rows) -> Part:
        """Angles w'x + b of feature s, (rows, D), at the worker that holds it (Algorithm 3)."""
        own, fresh = self.own, self.method.masks == "fresh"
        (root, apart), about = own.duties[s].tolist(), (s, *rows.tolist())
        value = self.partial(s, rows)
        b = self.mask(s, value.shape)  # line 2
        if fresh and own.number == apart:
            value = value + self.phases(s)  # in the other cases its b is not in T2, so it stays
        t1, t2 = self.trees(root, apart)
        xi = yield from gather_at_root(
            t1, own, self.wire, MaskedSum, self._travelling(value + b), about
        )  # lines 3 and 5
        masks = yield from gather_at_root(t2, own, self.wire, MaskSum, self._travelling(b), about)
        return self._travelling(xi - masks) if own.number == root else None  # line 7

    def partial(self, s: int, rows: Rows) -> Array:
        """Products (w)_G'(x)_G of its own features of these rows, (rows, D) (Algorithm 3, line 2)."""
        return np.asarray(self.own.x[rows] @ self.method.directions(self.own.common, s)[:, self.own.features].T)

    def mask(self, s: int, shape: tuple[int, ...]) -> Array:
        """Uniform numbers from [0, 2 pi] (Algorithm 3, line 2): one per feature, or one per feature and row."""
        assert self.own.rng is not None
        fresh = self.method.masks == "fresh"
        return self.own.rng.uniform(0, TURN, shape) if fresh else np.array(np.broadcast_to(self.phases(s), shape))

    def phases(self, s: int) -> Array:
        """Its own phases b^j(s), (D,)."""
        return self.method.phases(self.own.common, s, self.own.number)

    def trees(self, root: int, apart: int) -> tuple[Tree, Tree]:
        """T1 and T2 of Algorithm 3, which all workers know."""
        t1, t2 = mask_trees(self.own.parties, root, apart)
        return t1, all_masks_tree(self.own.parties, root, apart) if self.method.masks == "fresh" else t2

    def _travelling(self, angle: Array) -> Array:
        return angle if self.method.masks == "paper" else angle % TURN
