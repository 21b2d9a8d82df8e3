"""FDSKL: Algorithms 1 to 3 of Gu et al., Federated Doubly Stochastic Kernel Learning for Vertically Partitioned Data.

`Fdskl` computes the same f as DSG (Lemma 1). `fdskl_worker` is one worker with its own features and the letters that it
receives, and `fdskl_counts` counts the letters that the workers would send.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.base import Scored, World
from fkl.algorithms.vertical.dsg import Dsg, State, cosine_features
from fkl.algorithms.vertical.fdskl_counts import CountedLearner, Traffic, seconds
from fkl.algorithms.vertical.fdskl_letters import SCALAR_BYTES
from fkl.algorithms.vertical.fdskl_worker import Holder, Worker
from fkl.algorithms.vertical.messages import SCALAR
from fkl.basics.errors import require
from fkl.basics.random_streams import Role
from fkl.contract.parties import Actor, Held, Own, Wire, book_letters
from fkl.contract.world import Common
from fkl.data.vertical import Vertical

Array = NDArray[np.float64]

MASKS = ("paper", "reduced", "fresh")


@dataclass(frozen=True)
class Fdskl(Dsg):
    """Doubly stochastic gradients of workers that hold different features of the same samples.

    As in `Dsg`, rows are drawn without replacement until all have been drawn; the paper's analysis has i.i.d. draws.
    Active workers take turns; in the paper they work in parallel.

    Parameters
    ----------
    masks : {"paper", "reduced", "fresh"}
        ``paper``: worker j hides its partial sums of feature s behind one number b^j(s) from [0, 2 pi], the same for
        all samples, so a receiver learns the differences between samples. ``reduced``: sums travel modulo 2 pi, so any
        single one is uniform, whatever the data. ``fresh``: in addition each number has its own mask, also at worker
        l', whose b stays on top; this needs one more message per sum. The messages to a worker that does not ask are
        then independent of the data, unless it colludes. With all three the asking worker has w'x + b of every sample,
        and from enough of these all features of all workers: docs/privacy.md reports attacks on all three.
    """

    label: ClassVar[str] = "FDSKL"
    pooled: ClassVar[bool] = False

    masks: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.masks in MASKS, "masks", self.masks, f"one of {', '.join(MASKS)}")

    def learner(self, common: Common, problem: Vertical) -> CountedLearner:
        """One replicate before its first iteration."""
        pooled = super().learner(common, problem)
        duties = self.duties(problem, common.streams)
        traffic = Traffic(self, problem.parties, len(problem.y), pooled.batches, duties)
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

    def dealt(self, common: Common, problem: Vertical) -> tuple[Held, list[Own]]:
        """All rows, with the same numbers at all workers; active workers know the training rows, and draw from them."""
        start, duties = Dsg.learner(self, common, problem), self.duties(problem, common.streams)
        learned_from = np.isin(np.arange(len(problem.y)), start.split.training)
        y = np.where(learned_from, problem.y, np.nan)
        [masks] = common.streams.generators(Role.MASKS)
        secrets = masks.spawn(problem.parties)
        holders: list[Own] = []
        for j, (features, secret) in enumerate(zip(problem.groups, secrets, strict=True)):
            active = j in problem.active
            own = (j, problem.x[:, features], y if active else None, problem.groups, problem.active, secret)
            batches = start.batches if active else None
            known = replace(common, streams=common.streams.own(range(j, j + 1), (Role.FEATURES,)))
            holders.append(Holder(*own, known, duties, batches))
        return Held(problem.x, y, problem.groups, problem.active), holders

    def party(self, own: Own, wire: Wire) -> Actor:
        """Algorithms 1 to 3 at one worker."""
        assert isinstance(own, Holder)
        return Worker(self, own, wire).play()

    def assembled(self, parts: list[Any], held: Held) -> "Function":
        """All workers' coefficients, with the phases of the workers whose mask stays."""
        features = {s: feature for part in parts for s, feature in part.features.items()}
        stays = {s: phases for part in parts for s, phases in part.stays.items()}
        w, alpha = zip(*features.values(), strict=True)
        return Function(np.concatenate(w), np.concatenate([stays[s] for s in features]), np.concatenate(alpha))


class Function(NamedTuple):
    """f(x) = sum_s alpha_s'phi_s(x)."""

    w: Array
    b: Array
    alpha: Array

    def decision(self, x: Any) -> Array:
        """Values f of samples (n, d), shape (n,)."""
        return cosine_features(x, self.w, self.b) @ self.alpha
