"""FDSKL: Algorithms 1 to 3 of Gu et al., Federated Doubly Stochastic Kernel Learning for Vertically Partitioned Data.

`Protocol` is the method message by message: each number that one worker has of another came over the `Wire`.
`Fdskl` computes the same f as DSG does, which is Lemma 1, and `Traffic` counts what the protocol would have sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Scored, World
from fkl.algorithms.vertical.dsg import TURN, Dsg, Learner, State
from fkl.algorithms.vertical.messages import SCALAR
from fkl.contract.parties import Actor, Held, Own, book
from fkl.contract.parties import Wire as End
from fkl.data.vertical import Vertical
from fkl.errors import require
from fkl.losses import LOSSES
from fkl.network.ledger import CostModel
from fkl.network.letters import Letter
from fkl.network.trees import Tree, all_masks_tree, mask_trees, rooted, tell, total
from fkl.network.wire import Counts, Wire
from fkl.streams import Role, Streams

Array = NDArray[np.float64]

MASKS = ("paper", "reduced", "fresh", "split")


class Index(Letter):
    """Numbers of an iteration's rows, and its seed, on the way to all."""

    kind = "index"


class MaskedSum(Letter):
    """Partial sums of some rows under their masks, on the way to the worker that asks."""

    kind = "masked sum"


class MaskSum(Letter):
    """Their masks."""

    kind = "mask sum"


class FunctionPart(Letter):
    """Parts of f of some rows, on the way to the root."""

    kind = "function part"


class Shrink(Letter):
    """What coefficients shrink by, on the way to all."""

    kind = "shrink"


class MaskedShare(Letter):
    """With split angles, shares of an angle under masks of pairs."""

    kind = "masked sum"
    dtype = "u8"


class SharePart(Letter):
    """With split angles, shares of f under masks of pairs."""

    kind = "function part"
    dtype = "u8"


class MaskedFactor(Letter):
    """A factor of products under a dealer's mask."""

    kind = "masked factor"
    dtype = "u8"


class DealtProduct(Letter):
    """What a dealer has to say of the product of its masks."""

    kind = "dealt product"
    dtype = "u8"


class Share(Letter):
    """The other share of a sum of products."""

    kind = "share"
    dtype = "u8"


LETTERS = (Index, MaskedSum, MaskSum, FunctionPart, Shrink, MaskedFactor, DealtProduct, Share)
INDEX, MASKED, MASK, PART, SHRINK, FACTOR, DEALT, SHARE = (letter.kind for letter in LETTERS)
SCALAR_BYTES = {letter.kind: letter.size(1) for letter in LETTERS}


@dataclass(frozen=True)
class Fdskl(Dsg):
    """Doubly stochastic gradients of workers that hold different features of the same samples.

    Parameters
    ----------
    masks : {"paper", "reduced", "fresh", "split"}
        ``paper``: worker j hides its partial sums of feature s behind one number b^j(s) from [0, 2 pi], the same for
        all samples, so whoever receives them has the differences between samples. ``reduced``: sums travel modulo
        2 pi, so that any single one is uniform whatever it hides. ``fresh``: besides, each number has a mask of its
        own, also that of worker l', whose b stays on top; one message more a sum. Then what a worker that does not
        ask receives is independent of the data, unless it colludes. With all three the asking worker has w'x + b of
        every sample, and from enough of these all features of all workers. ``split`` (`fdskl_split`): nobody has it.
        `fkl audit fdskl` attacks all four, and docs/privacy.md tells what comes out.
    """

    label: ClassVar[str] = "FDSKL"
    pooled: ClassVar[bool] = False

    masks: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.masks in MASKS, "masks", self.masks, f"one of {', '.join(MASKS)}")
        split = self.bank is not None and self.masks == "split"
        require(not split, "bank", self.bank, "null with algo.masks=split, which saves no angles for later")

    def learner(self, problem: Vertical, streams: Streams) -> "CountedLearner":
        """One replicate before its first iteration."""
        pooled = super().learner(problem, streams)
        duties = self.duties(problem, streams)
        if self.masks == "split":
            require(problem.parties >= 3, "masks", self.masks, f"another one with {problem.parties} parties")
            duties = np.column_stack([duties, self.dealers(problem, streams)])
        kind = SplitTraffic if self.masks == "split" else Traffic
        traffic = kind(self, problem.parties, len(problem.y), duties)
        return CountedLearner(**vars(pooled), traffic=traffic)

    def step(self, world: World, state: State, t: int) -> tuple[State, Scored]:
        """Iterations up to the next mark; `sent` of the state has what they sent."""
        done, before = state.learners[0].t, state.learners[0].traffic.angles
        for r, learner in enumerate(state.learners):
            state.sent[r] = learner.sent(self.until(t))
        booked = [
            {kind: np.column_stack([sent, SCALAR_BYTES[kind] * sent[:, 1]]) for kind, sent in of_one.items()}
            for of_one in state.sent
        ]
        book(world, booked, timed=False)
        cost = world.channel.network.cost
        if cost is not None:
            angles = state.learners[0].traffic.angles - before if self.bank else None
            world.channel.took(self.seconds(world.problem.parties, done, self.until(t), cost, SCALAR, angles))
        return super().step(world, state, t)

    @property
    def tolerance(self) -> float:
        """Split angles travel as integers, of 24 binary places."""
        return 1e-5 if self.masks == "split" else super().tolerance

    def dealt(self, problem: Vertical, streams: Streams) -> tuple[Held, list[Own]]:
        """All rows, which have the same numbers at all workers; active ones know which are learned from, and draw."""
        from fkl.algorithms.vertical.fdskl_parties import dealt

        return dealt(self, problem, streams)

    def party(self, own: Own, wire: End) -> Actor:
        """Algorithms 1 to 3 at one worker."""
        from fkl.algorithms.vertical.fdskl_parties import party

        return party(self, own, wire)

    def assembled(self, parts: list[Any], held: Held) -> Any:
        """All workers' coefficients, with the phases of those whose mask stays."""
        from fkl.algorithms.vertical.fdskl_parties import assembled

        return assembled(parts)

    def dealers(self, problem: Vertical, streams: Streams) -> NDArray[np.int64]:
        """Of each iteration with ``split`` the worker after l' that is not l, (T,)."""
        asking, apart = self.duties(problem, streams).T
        after = (apart + 1) % problem.parties
        return np.where(after == asking, (apart + 2) % problem.parties, after)

    def seconds(
        self, workers: int, begin: int, end: int, cost: CostModel, width: int = 8, angles: int | None = None
    ) -> float:
        """Simulated communication time of iterations begin to end, on their critical path.

        Rows and seed down T0, the sums of all features so far over T1 and then T2, the parts of f over T0, and the
        order to shrink down T0. Workers know at once for which features they are asked, so all sums of an iteration
        go level by level as one: a level takes the latency once and (features) (rows) `width` bytes on a link. The
        few sums that are saved and not asked for again are counted in, but where `angles` says how many are asked for.
        """
        t0, (t1, t2) = rooted(workers, 0), mask_trees(workers, 0, 1)
        t2 = all_masks_tree(workers, 0, 1) if self.masks == "fresh" else t2
        # the mean of an iteration, which is enough as times are linear
        asked = (begin + 1 + end) / 2 * self.features * self.batch if angles is None else angles / max(1, end - begin)
        told = t0.seconds((self.batch + 1) * width, cost) + t0.seconds(width, cost)
        parts = t0.seconds(self.batch * width, cost)
        if self.masks == "split":
            # at worst one worker has asked for all features, and receives the factors of all of them
            back = cost.latency_s + 2 * asked * width / cost.bandwidth_bytes_per_s
            return (end - begin) * (told + t2.seconds(asked * width, cost) + 2 * back + parts)
        return (end - begin) * (told + sum(tree.seconds(asked * width, cost) for tree in (t1, t2)) + parts)


@dataclass
class Traffic:
    """What the protocol sends, from counts alone.

    A feature s of the past is asked for the rows of a batch that were not in its own batch (Algorithm 2, line 4), by
    the worker that holds it; all others send once along T1, and along T2 all but the one whose mask stays. So it is
    enough to know how many features are held by, and how many masks stay with, each worker, in all and for each row.
    Features of a bank are asked for a row once: whoever holds them saves all angles.
    """

    method: Fdskl
    workers: int
    samples: int
    duties: NDArray[np.int64]
    """(T, 2), or with dealers (T, 3)."""
    asked: NDArray[np.int64] = field(init=False)
    """(2, q): iterations whose asking worker, whose worker apart, this was."""
    saved: NDArray[np.int32] = field(init=False)
    """(2, q, n): of these, how many had the row in their batch."""
    repeated: dict[bytes, NDArray[np.int64]] = field(init=False)
    """(2, q): of these, how many had all rows of a batch; by batch."""
    children: NDArray[np.int64] = field(init=False)
    """(q, q): messages of each worker, second axis, when the first tells all."""
    known: NDArray[np.bool_] = field(init=False)
    """(bank / D, n): rows whose angles are saved, of a bank."""
    angles: int = 0
    """Asked for so far."""

    def __post_init__(self) -> None:
        self.asked = np.zeros((2, self.workers), np.int64)
        self.saved = np.zeros((2, self.workers, self.samples), np.int32)
        self.repeated = {}
        self.known = np.zeros((self.method.draws if self.method.bank else 0, self.samples), np.bool_)
        receivers = [[to for _, to in rooted(self.workers, root).links] for root in range(self.workers)]
        self.children = np.stack([np.bincount(to, minlength=self.workers) for to in receivers])

    def iterate(self, batches: NDArray[np.int64], first: int) -> Counts:
        """What the workers send in the iterations from this one on with these batches (T, B); to be asked in order."""
        T, size = batches.shape
        duties, sums = self.duties[first : first + T, :2], np.zeros((2, self.workers, 2), np.int64)
        for t, (batch, pair) in enumerate(zip(batches, duties, strict=True), start=first):
            sums += self._sums_of_bank(batch, t) if self.method.bank else self._sums(batch, pair)
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

    def _sums(self, batch: NDArray[np.int64], pair: NDArray[np.int64]) -> NDArray[np.int64]:
        """Calls of Algorithm 3 in one iteration and scalars of each link in them, (2, q, 2), by l and by l'."""
        D, mine = self.method.features, ([0, 1], pair)
        same = self.repeated.setdefault(np.sort(batch).tobytes(), np.zeros_like(self.asked))
        scalars = D * (len(batch) * self.asked - self.saved[:, :, batch].sum(axis=2))
        sums = np.stack([self.asked - same, scalars], axis=-1)
        sums[mine] += 1, len(batch) * D  # Algorithm 1, line 5
        self.asked[mine] += 1
        same[mine] += 1
        for role, worker in enumerate(pair):
            self.saved[role, worker, batch] += 1
        return sums

    def _sums_of_bank(self, batch: NDArray[np.int64], t: int) -> NDArray[np.int64]:
        """As `_sums`, of all features drawn so far that are not saved for some row of the batch."""
        drawn = min(t + 1, self.method.draws)
        missing = np.count_nonzero(~self.known[:drawn, batch], axis=1)
        self.known[:drawn, batch] = True
        sums = np.zeros((2, self.workers, 2), np.int64)
        for role in (0, 1):
            np.add.at(sums[role, :, 0], self.duties[:drawn, role], missing > 0)
            np.add.at(sums[role, :, 1], self.duties[:drawn, role], self.method.features * missing)
        return sums


@dataclass
class SplitTraffic(Traffic):
    """What the protocol of split angles sends: sums along T2 alone, and then factors of products.

    Every feature of the past takes a product of 2 D numbers a row, and a feature of the iteration's own one of 2 B.
    """

    def iterate(self, batches: NDArray[np.int64], first: int) -> Counts:
        """As of `Traffic`."""
        counts = super().iterate(batches, first)
        if not len(batches):
            return counts
        counts[MASKED] = counts.pop(MASK)
        (T, B), D = batches.shape, self.method.features
        done = np.zeros((3, self.workers), np.int64)  # products of the iterations before these, by l, l' and dealer
        now = np.zeros((3, self.workers), np.int64)
        for role in range(3):
            done[role] = np.bincount(self.duties[:first, role], minlength=self.workers) * T
            np.add.at(now[role], self.duties[first : first + T, role], 1)
            np.add.at(done[role], self.duties[first : first + T, role], np.arange(T)[::-1])
        factors, dealt = (done + now)[:2].sum(axis=0), done[2] + now[2]
        counts[FACTOR] = np.column_stack([factors, 2 * B * D * factors])
        counts[DEALT] = np.column_stack([dealt, B * done[2] + D * now[2]])
        counts[SHARE] = now[1][:, None] * (1, D)
        return counts


@dataclass
class CountedLearner(Learner):
    """A replicate with the count of what its workers send."""

    traffic: Traffic

    def sent(self, until: int) -> Counts:
        """Messages and scalars that each worker sends from the iterations done up to so many; ask before advancing."""
        return self.traffic.iterate(self.batches[self.t : until], self.t)


@dataclass
class Worker:
    """What one party holds.

    Parameters
    ----------
    number : int
    x : (n, d_j)
        Its own features of all samples.
    features : (d_j,) int64
    phases : callable
        Its own phases b^j(s), (D,), of an iteration s.
    secret : Generator
        Its own randomness besides.
    """

    number: int
    x: Array
    features: NDArray[np.int64]
    phases: Callable[[int], Array]
    secret: np.random.Generator
    alpha: dict[int, Array] = field(default_factory=dict)
    """Coefficients (D,) of the features that were drawn where it was the active worker, Lambda."""
    saved: dict[int, tuple[NDArray[np.int64], Array]] = field(default_factory=dict)
    """Rows and angles (rows, D) of these features."""

    def partial(self, w: Array, rows: NDArray[np.int64]) -> Array:
        """Return (w)_G'(x)_G of these rows, (rows, D) (Algorithm 3, line 2)."""
        return np.asarray(self.x[rows] @ w[:, self.features].T)

    def mask(self, s: int, shape: tuple[int, int], fresh: bool) -> Array:
        """Uniform numbers from [0, 2 pi] (Algorithm 3, line 2): one a feature, or one a feature and row."""
        return self.secret.uniform(0, TURN, shape) if fresh else np.broadcast_to(self.phases(s), shape)


class Protocol:
    """FDSKL message by message.

    Parameters
    ----------
    method : Fdskl
    problem : Vertical
    streams : Streams
        Of one replicate.
    wire : Wire
    """

    def __init__(self, method: Fdskl, problem: Vertical, streams: Streams, wire: Wire) -> None:
        self.method, self.problem, self.streams, self.wire = method, problem, streams, wire
        secrets = streams.generators(Role.MASKS)[0].spawn(problem.parties)
        self.workers = [
            Worker(number, problem.x[:, features], features, partial(method.phases, streams, holder=number), secret)
            for number, (features, secret) in enumerate(zip(problem.groups, secrets, strict=True))
        ]
        start = Dsg.learner(method, problem, streams)
        self.split, self.batches, self.duties = start.split, start.batches, method.duties(problem, streams)

    def iterate(self, t: int) -> None:
        """Algorithm 1, one iteration: rows are sent as their numbers, followed by the seed."""
        method, rows, s = self.method, self.batches[t], t % self.method.draws
        number = int(self.duties[t, 0])
        asking, tree = self.workers[number], rooted(len(self.workers), number)
        tell(tree, np.array([*rows, t]), self.wire, INDEX)  # line 3
        self.ask(t, rows)  # lines 4 and 5
        f = self.f(rows, number)  # lines 6 and 7
        slope = LOSSES[method.loss].derivative(f, self.problem.y[rows])
        gamma = method.gamma_at(t)
        pull = self.pull(t, rows, slope)  # line 8
        alpha = -gamma * pull / (len(rows) * method.features)  # line 9
        tell(tree, np.array([1 - gamma * method.lam]), self.wire, SHRINK)  # line 10
        for worker in self.workers:
            worker.alpha = {number: (1 - gamma * method.lam) * old for number, old in worker.alpha.items()}
        asking.alpha[s] = asking.alpha.get(s, 0) + alpha

    def ask(self, t: int, rows: NDArray[np.int64]) -> None:
        """Lines 4 and 5."""
        worker, s = self.workers[self.duties[t, 0]], t % self.method.draws
        if s in worker.saved:
            self._saved_or_asked(worker, s, rows)  # which saves them
        else:
            worker.saved[s] = rows, self.angles(s, rows)

    def pull(self, t: int, rows: NDArray[np.int64], slope: Array) -> Array:
        """Sum over the rows of L' phi, (D,)."""
        angle = self._saved_or_asked(self.workers[self.duties[t, 0]], t % self.method.draws, rows)
        return np.asarray(slope @ (np.sqrt(2) * np.cos(angle)))

    def f(self, rows: NDArray[np.int64], root: int) -> Array:
        """Sum over the workers of f^l, (rows,), as the root has it (Algorithm 1, lines 6 and 7)."""
        parts = {worker.number: self.part(worker, rows) for worker in self.workers}
        return total(rooted(len(self.workers), root), parts, self.wire, PART)

    def part(self, worker: Worker, rows: NDArray[np.int64]) -> Array:
        """f^l of these rows, (rows,) (Algorithm 2)."""
        f = np.zeros(len(rows))
        for s, alpha in worker.alpha.items():
            f += np.sqrt(2) * np.cos(self._saved_or_asked(worker, s, rows)) @ alpha
        return f

    def angles(self, s: int, rows: NDArray[np.int64]) -> Array:
        """Angles w'x + b of feature s, (rows, D), at the worker that holds it (Algorithm 3)."""
        w = self.method.directions(self.streams, s, self.problem.dimension)
        root, apart = self.duties[s].tolist()
        fresh, shape, about = self.method.masks == "fresh", (len(rows), len(w)), (s, tuple(rows.tolist()))
        masked, masks = {}, {}
        for worker in self.workers:
            value, b = worker.partial(w, rows), worker.mask(s, shape, fresh)
            if fresh and worker.number == apart:
                value = value + worker.phases(s)  # in the other cases its b is not in T2, and so stays
            masked[worker.number], masks[worker.number] = value + b, b  # line 3
        t1, t2 = self.trees(root, apart)
        xi = self._sum(t1, masked, MASKED, about)  # line 5
        return self._travelling(xi - self._sum(t2, masks, MASK, about))  # line 7

    def _saved_or_asked(self, worker: Worker, s: int, rows: NDArray[np.int64]) -> Array:
        """Algorithm 2, line 4: what is locally saved is not asked for again; all of a bank is saved."""
        saved, angle = worker.saved[s]
        known = np.isin(rows, saved)
        both = np.empty((len(rows), angle.shape[1]))
        order = np.argsort(saved)
        both[known] = angle[order[np.searchsorted(saved[order], rows[known])]]
        both[~known] = self.angles(s, rows[~known])
        if self.method.bank:
            worker.saved[s] = np.concatenate([saved, rows[~known]]), np.concatenate([angle, both[~known]])
        return both

    def _sum(self, tree: Tree, parts: dict[int, Array], kind: str, about: tuple[object, ...]) -> Array:
        return total(tree, {j: self._travelling(part) for j, part in parts.items()}, self.wire, kind, about)

    def _travelling(self, angle: Array) -> Array:
        return angle if self.method.masks == "paper" else angle % TURN

    def trees(self, root: int, apart: int) -> tuple[Tree, Tree]:
        """T1 and T2 of Algorithm 3, which all workers know."""
        t1, t2 = mask_trees(len(self.workers), root, apart)
        return t1, all_masks_tree(len(self.workers), root, apart) if self.method.masks == "fresh" else t2
