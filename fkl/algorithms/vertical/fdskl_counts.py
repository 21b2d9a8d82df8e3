"""Messages of FDSKL's workers, and their time, computed from counts; `fdskl_worker` is the protocol itself."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.dsg import Learner
from fkl.algorithms.vertical.fdskl_letters import INDEX, MASK, MASKED, PART, SHRINK
from fkl.algorithms.vertical.sum_trees import all_masks_tree, mask_trees, tree_rooted_at
from fkl.network.settings import CostModel

Counts = dict[str, NDArray[np.int64]]
"""Messages and scalars that each worker sent, (q, 2), by kind of letter."""


@dataclass
class Traffic:
    """Messages of the protocol, computed from counts.

    The worker that holds an earlier feature s requests it for the rows of a batch that were not in the feature's own
    batch (Algorithm 2, line 4). All others send once along T1, and once along T2, except for the worker whose mask
    stays. It is therefore enough to count for each worker the features that it holds and the masks that stay with it,
    in total and for each row. Features of a bank are requested once per row: their holder saves all angles.
    """

    method: Any  # fdskl.Fdskl
    workers: int
    samples: int
    batches: NDArray[np.int64]
    """Rows of each iteration, (T, B)."""
    duties: NDArray[np.int64]
    """(T, 2)."""
    asked: NDArray[np.int32] = field(init=False)
    """(2, q, 1): iterations in which the worker asked, or was the one apart."""
    saved: NDArray[np.int32] = field(init=False)
    """(2, q, n): number of these with the row in their batch."""
    repeated: NDArray[np.int32] = field(init=False)
    """(2, q, distinct batches): number of these with exactly the rows of a batch."""
    same: NDArray[np.int64] = field(init=False)
    """(T,): number of the batch; iterations with the same rows in their batch share it."""
    children: NDArray[np.int64] = field(init=False)
    """(q, q): messages of each worker, second axis, when the first sends to all."""
    known: NDArray[np.bool_] = field(init=False)
    """(bank / D, n): rows whose angles of a bank are saved."""
    angles: int = 0
    """Asked for so far."""

    def __post_init__(self) -> None:
        self.same = np.unique(np.sort(self.batches, axis=1), axis=0, return_inverse=True)[1]
        counted = (1, self.samples, self.same.max() + 1)
        self.asked, self.saved, self.repeated = (np.zeros((2, self.workers, items), np.int32) for items in counted)
        self.known = np.zeros((self.method.draws if self.method.bank else 0, self.samples), np.bool_)
        receivers = [[to for _, to in tree_rooted_at(self.workers, root).links] for root in range(self.workers)]
        self.children = np.stack([np.bincount(to, minlength=self.workers) for to in receivers])

    def iterate(self, first: int, until: int) -> Counts:
        """Messages of the iterations from `first` to before `until`; call in this order."""
        T, size = until - first, self.batches.shape[1]
        duties = self.duties[first:until]
        sums = self._sums_of_bank(first, until) if self.method.bank else self._sums_of_new_features(first, until)
        self.angles += int(sums[0, :, 1].sum())
        asked_by = np.bincount(duties[:, 0], minlength=self.workers)
        by_asking, by_apart = sums
        senders = by_asking.sum(axis=0) - by_asking
        down = (asked_by @ self.children)[:, None]
        counts = {
            INDEX: down * (1, size + 1),
            MASKED: senders,
            MASK: senders if self.method.masks == "fresh" else senders - by_apart,
            PART: (T - asked_by)[:, None] * (1, size),
            SHRINK: down * (1, 1),
        }
        return {kind: count for kind, count in counts.items() if count.any()}

    def _sums_of_new_features(self, first: int, until: int) -> NDArray[np.int64]:
        """Calls of Algorithm 3 in these iterations and scalars of each link in them, (2, q, 2), by l and by l'.

        A feature is requested for the rows that were not in its own batch, and not at all if its batch had the same
        rows.
        """
        own, D, size = slice(first, until), self.method.features, self.batches.shape[1]
        duties = self.duties[own]
        asked = _count_meetings(self.asked, duties, np.zeros((until - first, 1), np.int64))
        calls = asked - _count_meetings(self.repeated, duties, self.same[own, None])
        scalars = D * (size * asked - _count_meetings(self.saved, duties, self.batches[own]))
        begun = np.stack([np.bincount(workers, minlength=self.workers) for workers in duties.T])
        return np.stack([calls + begun, scalars + size * D * begun], axis=2)  # Algorithm 1, line 5, begins a feature

    def _sums_of_bank(self, first: int, until: int) -> NDArray[np.int64]:
        """The same calls and scalars for a bank: all features so far that are not saved for some row of the batch."""
        sums = np.zeros((2, self.workers, 2), np.int64)
        for t, batch in enumerate(self.batches[first:until], start=first):
            drawn = min(t + 1, self.method.draws)
            missing = np.count_nonzero(~self.known[:drawn, batch], axis=1)
            self.known[:drawn, batch] = True
            for role in (0, 1):
                np.add.at(sums[role, :, 0], self.duties[:drawn, role], missing > 0)
                np.add.at(sums[role, :, 1], self.duties[:drawn, role], self.method.features * missing)
        return sums


def _count_meetings(
    before: NDArray[np.int32], duties: NDArray[np.int64], items: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How often earlier iterations had the same item, (2, q), by the earlier one's l and l'.

    Parameters
    ----------
    before : (2, q, items) int32
        Number of earlier iterations with an item, by their l and l'; these iterations are added.
    duties : (T, 2)
        l and l' of these iterations.
    items : (T, m)
        Items of each iteration, without duplicates.
    """
    flat = items.ravel()
    which, times = np.unique(flat, return_counts=True)
    met = before[:, :, which] @ times
    order = np.argsort(flat, kind="stable")
    later = np.empty(len(flat), np.int64)  # how many of these have the same item afterwards
    later[order] = np.searchsorted(flat[order], flat[order], side="right") - 1 - np.arange(len(flat))
    for role, workers in enumerate(np.repeat(duties, items.shape[1], axis=0).T):
        np.add.at(met[role], workers, later)
        np.add.at(before[role], (workers, flat), 1)
    return met


@dataclass
class CountedLearner(Learner):
    """A replicate with the count of its workers' messages."""

    traffic: Traffic

    def sent(self, until: int) -> Counts:
        """Messages and scalars of each worker from the iterations already done up to `until`; call before advancing."""
        return self.traffic.iterate(self.t, until)


def seconds(
    method: Any, workers: int, begin: int, end: int, cost: CostModel, width: int = 8, angles: int | None = None
) -> float:
    """Simulated communication time of iterations begin to end, on their critical path.

    Rows and seed down T0, the sums of all features so far over T1 and then T2, the parts of f over T0, and the
    order to shrink down T0. Workers know at once which features are requested, so all sums of an iteration go together,
    level by level: a level takes the latency once and (features) (rows) `width` bytes on a link. The few sums that are
    saved and not requested again are included, unless `angles` gives the number of requests.
    """
    t0, (t1, t2) = tree_rooted_at(workers, 0), mask_trees(workers, 0, 1)
    t2 = all_masks_tree(workers, 0, 1) if method.masks == "fresh" else t2
    # the mean over iterations, which is enough because times are linear
    asked = (begin + 1 + end) / 2 * method.features * method.batch if angles is None else angles / max(1, end - begin)
    told = t0.seconds((method.batch + 1) * width, cost) + t0.seconds(width, cost)
    parts = t0.seconds(method.batch * width, cost)
    return (end - begin) * (told + sum(tree.seconds(asked * width, cost) for tree in (t1, t2)) + parts)
