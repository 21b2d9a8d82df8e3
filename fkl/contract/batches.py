"""Methods with a server whose clients have all samples from the start, judged on held-out samples."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.contract.held_samples import Held
from fkl.contract.star import Federated
from fkl.contract.world import World


class OnBatches(Federated):
    """Base class of methods with a server whose clients have all their samples from the start.

    You write `label`, `lam`, `start`, `broadcast`, `client` and `server` as for `Federated`, except that `client` gets
    `Held` samples (all samples of a client: x (n, d), y (n,), count (K,)), and returns theta (R, K, P), once per round,
    as its outcome. You may write `judged_in` (if theta belongs to other features than the random ones) and
    `exchanges_up`.

    Its task is `fkl.tasks.batch.BatchTask`, which judges it in the same columns as agents on a graph.
    """

    exchanges_up: ClassVar[int | None] = None
    """Exchanges of a round in which clients send something; None for all."""
    not_traceable: ClassVar[str] = "its equations are factored on the host, by what clients have sent so far"

    def given(self, world: World, t: int) -> tuple[Held, NDArray[np.float64]]:
        """All samples in every round, and an equal share for each present client."""
        here = world.present(t)
        return replace(world.held, present=here), here / world.common.xp.maximum(here.sum(), 1)

    def judged_in(self, world: World) -> tuple[Any, Any] | None:
        """The training and the test samples as `Rows` in the space of theta; None for random features."""
        return None
