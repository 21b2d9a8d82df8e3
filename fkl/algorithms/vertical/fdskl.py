"""FDSKL: Algorithms 1 to 3 of Gu et al., Federated Doubly Stochastic Kernel Learning for Vertically Partitioned Data.

`Fdskl` computes the same f as DSG (Lemma 1). `fdskl_worker` is one worker with its own features and the letters that it
receives, and `fdskl_counts` counts the letters that the workers would send.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Scored, World
from fkl.algorithms.vertical.dsg import Dsg, State, cosine_features
from fkl.algorithms.vertical.fdskl_counts import CountedLearner, SplitTraffic, Traffic, seconds
from fkl.algorithms.vertical.fdskl_letters import SCALAR_BYTES
from fkl.algorithms.vertical.fdskl_split import SplitWorker
from fkl.algorithms.vertical.fdskl_worker import Holder, Worker
from fkl.algorithms.vertical.messages import SCALAR
from fkl.basics.errors import require
from fkl.basics.random_streams import Role, Streams
from fkl.contract.parties import Actor, Held, Own, Wire, book_letters
from fkl.contract.world import Common
from fkl.data.vertical import Vertical

Array = NDArray[np.float64]

MASKS = ("paper", "reduced", "fresh", "split")


@dataclass(frozen=True)
class Fdskl(Dsg):
    """Doubly stochastic gradients of workers that hold different features of the same samples.

    As in `Dsg`, rows are drawn without replacement until all have been drawn; the paper's analysis has i.i.d. draws.
    Active workers take turns; in the paper they work in parallel.

    Parameters
    ----------
    masks : {"paper", "reduced", "fresh", "split"}
        ``paper``: worker j hides its partial sums of feature s behind one number b^j(s) from [0, 2 pi], the same for
        all samples, so a receiver learns the differences between samples. ``reduced``: sums travel modulo 2 pi, so any
        single one is uniform, whatever the data. ``fresh``: in addition each number has its own mask, also at worker
        l', whose b stays on top; this needs one more message per sum. The messages to a worker that does not ask are
        then independent of the data, unless it colludes. With all three the asking worker has w'x + b of every sample,
        and from enough of these all features of all workers. ``split`` (`fdskl_split`): no worker has it. `fkl audit
        fdskl` attacks all four, and docs/privacy.md reports the results.
    """

    label: ClassVar[str] = "FDSKL"
    pooled: ClassVar[bool] = False

    masks: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.masks in MASKS, "masks", self.masks, f"one of {', '.join(MASKS)}")
        split = self.bank is not None and self.masks == "split"
        require(not split, "bank", self.bank, "null with algo.masks=split, which saves no angles for later")

    def learner(self, common: Common, problem: Vertical) -> CountedLearner:
        """One replicate before its first iteration."""
        pooled = super().learner(common, problem)
        duties = self.duties(problem, common.streams)
        if self.masks == "split":  # l, l' and a dealer that is neither
            require(problem.parties >= 3, "masks", self.masks, f"another one with {problem.parties} parties")
            duties = np.column_stack([duties, self.dealers(problem, common.streams)])
        kind = SplitTraffic if self.masks == "split" else Traffic
        traffic = kind(self, problem.parties, len(problem.y), pooled.batches, duties)
        return CountedLearner(**vars(pooled), traffic=traffic)

    def step(self, world: World, state: State, t: int) -> tuple[State, Scored]:
        """Iterations up to the next mark; their messages are in `sent` of the state."""
        done, before = state.learners[0].t, state.learners[0].traffic.angles
        for r, learner in enumerate(state.learners):
            state.sent[r] = learner.sent(self.iterations_after(t))
        booked = [
            {kind: np.column_stack([sent, SCALAR_BYTES[kind] * sent[:, 1]]) for kind, sent in of_one.items()}
            for of_one in state.sent
        ]
        book_letters(world, booked, timed=False)
        cost = world.channel.network.cost
        if cost is not None:
            angles = state.learners[0].traffic.angles - before if self.bank else None
            world.channel.took(
                seconds(self, world.problem.parties, done, self.iterations_after(t), cost, SCALAR, angles)
            )
        return super().step(world, state, t)

    @property
    def tolerance(self) -> float:
        """Split angles travel as integers, of 24 binary places."""
        return 1e-5 if self.masks == "split" else super().tolerance

    def dealt(self, common: Common, problem: Vertical) -> tuple[Held, list[Own]]:
        """All rows, with the same numbers at all workers; active workers know the training rows, and draw from them."""
        start, duties = Dsg.learner(self, common, problem), self.duties(problem, common.streams)
        learned_from = np.isin(np.arange(len(problem.y)), start.split.training)
        y = np.where(learned_from, problem.y, np.nan)
        [masks] = common.streams.generators(Role.MASKS)
        secrets, q = masks.spawn(problem.parties), range(problem.parties)
        # Seeds of every pair, and of every dealer with its receivers as l and as l'.
        roles = (("mask", 0), ("l", 1), ("l'", 1))
        names = [(what, j, k) for what, both in roles for j in q for k in q if j < k or both]
        pairs = dict(zip(names, masks.spawn(len(names)), strict=True))
        dealers = self.dealers(problem, common.streams)
        holders: list[Own] = []
        for j, (features, secret) in enumerate(zip(problem.groups, secrets, strict=True)):
            active = j in problem.active
            own = (j, problem.x[:, features], y if active else None, problem.groups, problem.active, secret)
            batches = start.batches if active else None
            shared = {pair: deepcopy(seed) for pair, seed in pairs.items() if j in pair[1:]}
            known = replace(common, streams=common.streams.own(range(j, j + 1), (Role.FEATURES,)))
            holders.append(Holder(*own, known, duties, batches, dealers, shared))
        return Held(problem.x, y, problem.groups, problem.active), holders

    def party(self, own: Own, wire: Wire) -> Actor:
        """Algorithms 1 to 3 at one worker."""
        assert isinstance(own, Holder)
        return (SplitWorker if self.masks == "split" else Worker)(self, own, wire).play()

    def assembled(self, parts: list[Any], held: Held) -> "Function":
        """All workers' coefficients, with the phases of the workers whose mask stays."""
        features = {s: feature for part in parts for s, feature in part.features.items()}
        stays = {s: phases for part in parts for s, phases in part.stays.items()}
        w, alpha = zip(*features.values(), strict=True)
        return Function(np.concatenate(w), np.concatenate([stays[s] for s in features]), np.concatenate(alpha))

    def dealers(self, problem: Vertical, streams: Streams) -> NDArray[np.int64]:
        """For each iteration with ``split`` the worker after l' that is not l, (T,)."""
        asking, apart = self.duties(problem, streams).T
        after = (apart + 1) % problem.parties
        return np.where(after == asking, (apart + 2) % problem.parties, after)


class Function(NamedTuple):
    """f(x) = sum_s alpha_s'phi_s(x)."""

    w: Array
    b: Array
    alpha: Array

    def decision(self, x: Any) -> Array:
        """Values f of samples (n, d), shape (n,)."""
        return cosine_features(x, self.w, self.b) @ self.alpha
