"""FDSKL: Algorithms 1 to 3 of Gu et al., Federated Doubly Stochastic Kernel Learning for Vertically Partitioned Data.

q workers hold different features of the same n samples, and learn f(x) = sum_s alpha_s'phi_s(x). In iteration t, worker
l draws B rows and D new random features, and asks the others for their parts of w'x, which masks b hide. For example,
with q = 3, B = 2 and D = 1, an iteration that draws rows 1 and 2 sends each of the two others the row numbers and the
seed (3 scalars), and each of them sends back 2 masked sums, 2 sums of masks (except for worker l', whose
mask is never subtracted), and 2 parts of f.

`Fdskl` is the method: in a simulation, it computes the same f as DSG (Lemma 1) in one process, and `ProtocolTraffic`
counts the messages that the workers would send. At real sites, `Fdskl.dealt` gives each worker its features, `Worker`
runs the three algorithms with only these and the messages that it receives, and `Fdskl.assembled` joins the results.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import World
from fkl.algorithms.vertical.dsg import TURN, Dsg, DsgState, ReplicateLearner, cosine_features
from fkl.algorithms.vertical.parties import SCALAR, Letter
from fkl.algorithms.vertical.sums import (
    Part,
    SumTree,
    all_masks_tree,
    gather_at_root,
    mask_trees,
    pass_down_tree,
    tree_rooted_at,
)
from fkl.basics.arrays import Array
from fkl.basics.keys import key
from fkl.basics.pointwise import pointwise_loss
from fkl.basics.random_streams import Role
from fkl.contract.parties import Actor, PartyData, PartyRows, Scored, Wire, book_letters
from fkl.contract.world import Common
from fkl.data.vertical import Vertical
from fkl.network.settings import CostModel


class Index(Letter, kind="index"):
    """Numbers of an iteration's rows, and its seed, sent to all workers."""


class MaskedSum(Letter, kind="masked sum"):
    """Partial sums of some rows under their masks, sent towards the requesting worker."""


class MaskSum(Letter, kind="mask sum"):
    """Sums of these masks, sent towards the requesting worker."""


class FunctionPart(Letter, kind="function part"):
    """Parts of f of some rows, sent towards the root."""


class Shrink(Letter, kind="shrink"):
    """The factor by which coefficients shrink, sent to all workers."""


LETTERS = (Index, MaskedSum, MaskSum, FunctionPart, Shrink)
INDEX, MASKED, MASK, PART, SHRINK = (letter.kind for letter in LETTERS)
SCALAR_BYTES = {letter.kind: np.dtype(letter.dtype).itemsize for letter in LETTERS}


Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Holder(PartyData):
    """Data of one worker, and the seed of directions and duties, which all workers know.

    Parameters
    ----------
    common : Common
        `Common` of one replicate, with streams that give this worker only its own phases.
    duties : (T, 2) int
        Workers l and l' of each iteration (`Dsg.duties`).
    batches : (T, B) int or None
        Rows of the iterations in which the worker may request angles; None for a worker that is not active.
    """

    common: Common
    duties: Rows
    batches: Rows | None


class WorkerKnowledge(NamedTuple):
    """Final knowledge of one worker.

    Attributes
    ----------
    features : dict of int to ((D, d), (D,))
        Directions and coefficients of the features that it requested.
    stays : dict of int to (D,)
        Phases of the features whose mask it never subtracts.
    """

    features: dict[int, tuple[Array, Array]]
    stays: dict[int, Array]


@dataclass
class Worker:
    """One worker.

    All workers receive the rows of every batch and remember them, so they know which angles are not requested again.
    """

    method: Any  # fdskl.Fdskl
    own: Holder
    wire: Wire
    alpha: dict[int, Array] = field(default_factory=dict)
    """Coefficients (D,) of the features that this worker requested, Lambda."""
    angles: dict[int, Array] = field(default_factory=dict)
    """Angles (rows, D) of these features, for the rows in `known`."""
    known: dict[int, Rows] = field(default_factory=dict)
    """Rows whose angles are saved, for each feature of any worker."""

    def play(self) -> Actor:
        """Run all iterations and return the result."""
        for t in range(self.method.iterations):
            yield from self.run_iteration(t)
        # Predictions need the coefficients, and the phases of the features whose mask this worker never subtracts
        drawn = range(self.method.draws)
        stays = {s: self.phases(s) for s in drawn if self.own.duties[s, 1] == self.own.number}
        return WorkerKnowledge(
            {s: (self.method.directions(self.own.common, s), alpha) for s, alpha in self.alpha.items()}, stays
        )

    def run_iteration(self, t: int) -> Part:
        """One iteration of Algorithm 1: rows are sent as their numbers, followed by the seed."""
        method, own, s = self.method, self.own, t % self.method.draws
        root = int(own.duties[t, 0])
        tree, asks = tree_rooted_at(own.parties, root), own.number == root
        # The requesting worker sends the row numbers and the iteration's number, which is the seed
        index = np.array([*own.batches[t], t], np.float64) if asks and own.batches is not None else None
        told_rows = yield from pass_down_tree(tree, own, self.wire, Index, index)  # line 3
        rows = told_rows[:-1].astype(np.int64)
        before = sorted(self.known)  # features with coefficients
        # All angles of the new feature, and f from the earlier features, are at the requesting worker only
        angle = yield from self.angles_of_feature(s, rows)  # lines 4 and 5
        f = yield from self.f(before, rows, root)  # lines 6 and 7
        # It computes the slope there, and all workers shrink their coefficients by one factor
        slope = pointwise_loss(method.loss).derivative(f, own.labels[rows]) if asks else None
        gamma = method.gamma_at(t)
        shrink = np.array([1 - gamma * method.lam]) if asks else None
        [factor] = yield from pass_down_tree(tree, own, self.wire, Shrink, shrink)  # line 10
        self.alpha = {number: factor * old for number, old in self.alpha.items()}
        if slope is not None and angle is not None:  # the requesting worker
            pull = slope @ (np.sqrt(2) * np.cos(angle))  # line 8, summed over the rows
            self.alpha[s] = self.alpha.get(s, 0) - gamma * pull / (len(rows) * method.features)  # line 9

    def f(self, before: list[int], rows: Rows, root: int) -> Part:
        """Sum over the workers of f^l, (rows,), at the root; None elsewhere (Algorithm 1, lines 6 and 7)."""
        part = np.zeros(len(rows))
        # Every worker goes through the features in one order, because each of them is a sum over all workers
        for s in sorted(before, key=lambda number: (self.own.duties[number, 0], number)):
            angle = yield from self.angles_of_feature(s, rows)
            if angle is not None:
                # Only the worker that holds feature s has its angles and coefficients
                part += np.sqrt(2) * np.cos(angle) @ self.alpha[s]  # Algorithm 2
        total = yield from gather_at_root(
            tree_rooted_at(self.own.parties, root), self.own, self.wire, FunctionPart, part
        )
        return total

    def angles_of_feature(self, s: int, rows: Rows) -> Part:
        """Angles (rows, D) of feature s at the worker that holds it: saved angles are not requested again."""
        # Which rows have no angle of feature s yet
        rows_known = self.known.get(s, np.zeros(0, np.int64))
        new = ~np.isin(rows, rows_known)
        new_angles = None
        if new.any():
            new_angles = yield from self.sum_angles(s, rows[new])
        # Only the holder of feature s has angles; the other workers return None
        first = s not in self.known
        angle: Any = None
        if new_angles is not None or s in self.angles:
            # Saved and new angles in the order of the rows.
            some = self.angles[s] if new_angles is None else new_angles
            angle = np.empty((len(rows), self.method.features), some.dtype)
            if new_angles is not None:
                angle[new] = new_angles
            if not new.all():
                order = np.argsort(rows_known)
                angle[~new] = self.angles[s][order[np.searchsorted(rows_known[order], rows[~new])]]
        # Remember the rows at all workers: they must agree on which angles are not requested again
        if first or self.method.bank:  # all angles of a bank are saved
            self.known[s] = np.concatenate([rows_known, rows[new]])
            if new_angles is not None:
                self.angles[s] = np.concatenate([self.angles[s], new_angles]) if s in self.angles else new_angles
        return angle

    def sum_angles(self, s: int, rows: Rows) -> Part:
        """Angles w'x + b of feature s, (rows, D), at the worker that holds it (Algorithm 3)."""
        own, fresh = self.own, self.method.masks == "fresh"
        (root, apart), about = own.duties[s].tolist(), (s, *rows.tolist())
        # This worker's part of w'x, and its mask b
        value = self.partial_products(s, rows)
        b = self.draw_mask(s, value.shape)  # line 2
        if fresh and own.number == apart:
            value = value + self.phases(s)  # otherwise its b is not in T2, so it stays
        # The two sums travel over totally different trees, so no worker receives both a masked sum and its mask
        t1, t2 = self.sum_trees(root, apart)
        xi = yield from gather_at_root(
            t1, own, self.wire, MaskedSum, self._angles_to_send(value + b), about
        )  # lines 3 and 5
        masks = yield from gather_at_root(t2, own, self.wire, MaskSum, self._angles_to_send(b), about)
        return self._angles_to_send(xi - masks) if own.number == root else None  # line 7

    def partial_products(self, s: int, rows: Rows) -> Array:
        """Products (w)_G'(x)_G of this worker's features for these rows, (rows, D) (Algorithm 3, line 2)."""
        return np.asarray(self.own.x[rows] @ self.method.directions(self.own.common, s)[:, self.own.features].T)

    def draw_mask(self, s: int, shape: tuple[int, ...]) -> Array:
        """Uniform numbers from [0, 2 pi] (Algorithm 3, line 2): one per feature, or one per feature and row."""
        assert self.own.rng is not None
        fresh = self.method.masks == "fresh"
        return self.own.rng.uniform(0, TURN, shape) if fresh else np.array(np.broadcast_to(self.phases(s), shape))

    def phases(self, s: int) -> Array:
        """Phases b^j(s) of this worker, (D,)."""
        return self.method.phases(self.own.common, s, self.own.number)

    def sum_trees(self, root: int, apart: int) -> tuple[SumTree, SumTree]:
        """T1 and T2 of Algorithm 3, which all workers know."""
        t1, t2 = mask_trees(self.own.parties, root, apart)
        return t1, all_masks_tree(self.own.parties, root, apart) if self.method.masks == "fresh" else t2

    def _angles_to_send(self, angle: Array) -> Array:
        return angle if self.method.masks == "paper" else angle % TURN


Counts = dict[str, NDArray[np.int64]]
"""Messages and scalars that each worker sent, (q, 2), by kind of letter."""


@dataclass
class ProtocolTraffic:
    """Messages of the protocol, computed from counts.

    The worker that holds an earlier feature s requests it for the rows of a batch that were not in the feature's own
    batch (Algorithm 2, line 4). All others send once along T1, and once along T2, except for the worker whose mask
    is never subtracted. So we count, for each worker, only the features that it holds and the masks that it keeps, in
    total and for each row. Features of a bank are requested once per row: their holder saves all angles.

    For example, with D = 1 and batches {1, 2}, {2, 3} and {1, 2}, the third iteration requests feature 3, which is new,
    for 2 rows, feature 2 for row 1 only, because the angle of row 2 is saved, and feature 1 for no row: 2 calls with 3
    scalars on each link. Counters give the same: of the 2 earlier iterations, 1 had exactly these rows, so 2 - 1 + 1 =
    2 calls; row 1 was in 1 of them and row 2 in 2, so 2 * 2 - (1 + 2) + 2 = 3 scalars.
    """

    method: Any  # fdskl.Fdskl
    workers: int
    samples: int
    batches: NDArray[np.int64]
    """Rows of each iteration, (T, B)."""
    duties: NDArray[np.int64]
    """Workers l and l' of each iteration, (T, 2)."""
    asked: NDArray[np.int32] = field(init=False)
    """(2, q, 1): number of iterations in which the worker was l, or was l'."""
    saved: NDArray[np.int32] = field(init=False)
    """(2, q, n): number of these iterations with the row in their batch."""
    repeated: NDArray[np.int32] = field(init=False)
    """(2, q, distinct batches): number of these iterations with exactly the rows of a batch."""
    same: NDArray[np.int64] = field(init=False)
    """(T,): number of the batch; iterations with the same rows in their batch share it."""
    children: NDArray[np.int64] = field(init=False)
    """(q, q): messages of each worker (second axis) when a root (first axis) sends to all."""
    known: NDArray[np.bool_] = field(init=False)
    """(bank / D, n): rows whose angles of a bank are saved."""
    angles: int = 0
    """Number of angles requested so far."""

    def __post_init__(self) -> None:
        # Batches with the same rows, in any order, share a number
        self.same = np.unique(np.sort(self.batches, axis=1), axis=0, return_inverse=True)[1]
        # Counters start at 0: iterations, iterations with a row, and iterations with exactly these rows
        counted = (1, self.samples, self.same.max() + 1)
        self.asked, self.saved, self.repeated = (np.zeros((2, self.workers, items), np.int32) for items in counted)
        self.known = np.zeros((self.method.draws if self.method.bank else 0, self.samples), np.bool_)
        # A tree rooted at each worker: how many links leave each worker when the root sends to all
        receivers = [[to for _, to in tree_rooted_at(self.workers, root).links] for root in range(self.workers)]
        self.children = np.stack([np.bincount(to, minlength=self.workers) for to in receivers])

    def count_iterations(self, first: int, until: int) -> Counts:
        """Messages of the iterations from `first` to `until` - 1; call in the order of the iterations."""
        T, size = until - first, self.batches.shape[1]
        duties = self.duties[first:until]
        sums = self._sums_of_bank(first, until) if self.method.bank else self._sums_of_new_features(first, until)
        self.angles += int(sums[0, :, 1].sum())
        # Calls of Algorithm 3 and scalars, by the worker l that requests and by l', whose mask is never subtracted
        asked_by = np.bincount(duties[:, 0], minlength=self.workers)
        by_asking, by_apart = sums
        # The requesting worker receives and does not send, so each worker sends all sums except its own
        senders = by_asking.sum(axis=0) - by_asking
        # Rows, seed and factors go down a tree from the requesting worker; parts of f come back, one per worker
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
        block, D, size = slice(first, until), self.method.features, self.batches.shape[1]
        duties = self.duties[block]
        # All earlier features would be requested for all B rows ...
        asked = _count_meetings(self.asked, duties, np.zeros((until - first, 1), np.int64))
        # ... except features whose batch had the same rows, which need no call at all ...
        calls = asked - _count_meetings(self.repeated, duties, self.same[block, None])
        # ... and rows of the feature's own batch, whose angles are saved
        scalars = D * (size * asked - _count_meetings(self.saved, duties, self.batches[block]))
        # Each iteration also begins one new feature, which is requested for all rows
        begun = np.stack([np.bincount(workers, minlength=self.workers) for workers in duties.T])
        return np.stack([calls + begun, scalars + size * D * begun], axis=2)  # Algorithm 1, line 5, begins a feature

    def _sums_of_bank(self, first: int, until: int) -> NDArray[np.int64]:
        """Calls and scalars for a bank: all features so far that are not saved for some row of the batch."""
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
    """Number of times that earlier iterations had the same item, (2, q), by their l and l'.

    Parameters
    ----------
    before : (2, q, items) int32
        Number of earlier iterations with an item, by their l and l'; these iterations are added.
    duties : (T, 2)
        l and l' of these iterations.
    items : (T, m)
        Items of each iteration, without duplicates.
    """
    # Items of earlier blocks of iterations
    flat = items.ravel()
    which, times = np.unique(flat, return_counts=True)
    met = before[:, :, which] @ times
    # Items within this block: sort by item, and count how often each occurs again further down
    order = np.argsort(flat, kind="stable")
    later = np.empty(len(flat), np.int64)  # number of later iterations among these with the same item
    later[order] = np.searchsorted(flat[order], flat[order], side="right") - 1 - np.arange(len(flat))
    # An iteration's l and l' gain a meeting for each later occurrence; then add these iterations to the counters
    for role, workers in enumerate(np.repeat(duties, items.shape[1], axis=0).T):
        np.add.at(met[role], workers, later)
        np.add.at(before[role], (workers, flat), 1)
    return met


@dataclass
class CountedLearner(ReplicateLearner):
    """One replicate, with counts of its workers' messages."""

    traffic: ProtocolTraffic

    def sent(self, until: int) -> Counts:
        """Messages and scalars of each worker in the iterations from t to `until`; call before `advance`."""
        return self.traffic.count_iterations(self.t, until)


def communication_seconds(
    method: Any, workers: int, begin: int, end: int, cost: CostModel, width: int = 8, angles: int | None = None
) -> float:
    """Simulated communication time of iterations begin to end, on their critical path.

    Rows and seed are sent down T0, sums of all features so far over T1 and then T2, parts of f over T0, and the factor
    down T0. Workers know at once which features are requested, so all sums of an iteration are sent together, level by
    level: a level takes the latency once and (features) (rows) `width` bytes on a link. The few sums that are saved and
    not requested again are included, unless `angles` gives the number of requests.
    """
    t0, (t1, t2) = tree_rooted_at(workers, 0), mask_trees(workers, 0, 1)
    t2 = all_masks_tree(workers, 0, 1) if method.masks == "fresh" else t2
    # the mean over iterations, which is enough because times are linear
    asked = (begin + 1 + end) / 2 * method.features * method.batch if angles is None else angles / max(1, end - begin)
    downwards = t0.seconds((method.batch + 1) * width, cost) + t0.seconds(width, cost)
    parts = t0.seconds(method.batch * width, cost)
    return (end - begin) * (downwards + sum(tree.seconds(asked * width, cost) for tree in (t1, t2)) + parts)


MASKS = ("paper", "reduced", "fresh")


@dataclass(frozen=True)
class Fdskl(Dsg):
    """Doubly stochastic gradients computed by workers that hold different features of the same samples.

    As in `Dsg`, rows are drawn without replacement until all have been drawn; the paper's analysis assumes i.i.d. draws
    (`rows`). Active workers take turns; in the paper they work in parallel.
    """

    label: ClassVar[str] = "FDSKL"
    pooled: ClassVar[bool] = False

    masks: str = key(
        "paper",
        "``paper``: worker j hides its partial sums of feature s behind one number b^j(s) from [0, 2 pi], the "
        "same for all samples, so a receiver learns the differences between samples. ``reduced``: sums are sent "
        "modulo 2 pi, so any single sum is uniform for any data. ``fresh``: in addition, each number has its "
        "own mask, also at worker l', whose b stays on top; this needs one more message per sum. The messages to "
        "a worker that did not request the sum are then independent of the data, unless it colludes. In all three, "
        "the requesting worker has w'x + b of every sample, and from enough of these all features of all workers: "
        "docs/findings/masks.md reports attacks on all three.",
        choices=MASKS,
    )

    def first_learner(self, common: Common, problem: Vertical) -> CountedLearner:
        """One replicate before its first iteration."""
        pooled = super().first_learner(common, problem)
        duties = self.workers_on_duty(problem, common.streams)
        traffic = ProtocolTraffic(self, problem.parties, len(problem.y), pooled.batches, duties)
        return CountedLearner(**vars(pooled), traffic=traffic)

    def step(self, world: World, state: DsgState, t: int) -> tuple[DsgState, Scored]:
        """Run the iterations up to the next mark; their messages are in `sent` of the state."""
        # Count the messages first: the counts need the iteration at which the learners are now
        done, before = state.learners[0].t, state.learners[0].traffic.angles
        for r, learner in enumerate(state.learners):
            state.sent[r] = learner.sent(self.iterations_after(t))
        # Ledgers need messages, scalars and bytes for each worker and kind
        booked = [
            {kind: np.column_stack([sent, SCALAR_BYTES[kind] * sent[:, 1]]) for kind, sent in of_one.items()}
            for of_one in state.sent
        ]
        book_letters(world, booked, timed=False)
        # The simulated time, if links have a cost; the first replicate stands for all
        cost = world.channel.network.cost
        if cost is not None:
            angles = state.learners[0].traffic.angles - before if self.bank else None
            world.channel.add_seconds(
                communication_seconds(self, world.problem.parties, done, self.iterations_after(t), cost, SCALAR, angles)
            )
        return super().step(world, state, t)

    def dealt(self, common: Common, problem: Vertical) -> tuple[PartyRows, list[PartyData]]:
        """All rows, numbered equally at all workers; active workers know and draw from the training rows."""
        # The common plan: batches, and who requests and whose mask is never subtracted, as in the simulation
        start, duties = Dsg.first_learner(self, common, problem), self.workers_on_duty(problem, common.streams)
        learned_from = np.isin(np.arange(len(problem.y)), start.split.training)
        y = np.where(learned_from, problem.y, np.nan)
        # Each worker gets a seed of its own for masks that no other worker can draw
        [masks] = common.streams.generators(Role.MASKS)
        secrets = masks.spawn(problem.parties)
        holders: list[PartyData] = []
        # A worker has its own features; only an active one has targets and batches
        for j, (features, secret) in enumerate(zip(problem.groups, secrets, strict=True)):
            active = j in problem.active
            data = (j, problem.x[:, features], y if active else None, problem.groups, problem.active, secret)
            batches = start.batches if active else None
            own_common = replace(common, streams=common.streams.own(range(j, j + 1), (Role.FEATURES,)))
            holders.append(Holder(*data, own_common, duties, batches))
        return PartyRows(problem.x, y, problem.groups, problem.active), holders

    def party(self, own: PartyData, wire: Wire) -> Actor:
        """Algorithms 1 to 3 at one worker."""
        assert isinstance(own, Holder)
        return Worker(self, own, wire).play()

    def assembled(self, parts: list[Any], held: PartyRows) -> "DoublyStochasticFunction":
        """The function from all coefficients, with the phases of the workers whose mask is never subtracted."""
        features = {s: feature for part in parts for s, feature in part.features.items()}
        stays = {s: phases for part in parts for s, phases in part.stays.items()}
        w, alpha = zip(*features.values(), strict=True)
        return DoublyStochasticFunction(
            np.concatenate(w), np.concatenate([stays[s] for s in features]), np.concatenate(alpha)
        )


class DoublyStochasticFunction(NamedTuple):
    """f(x) = sum_s alpha_s'phi_s(x)."""

    w: Array
    b: Array
    alpha: Array

    def decision(self, x: Any) -> Array:
        """Values f of samples (n, d), shape (n,)."""
        return cosine_features(x, self.w, self.b) @ self.alpha
