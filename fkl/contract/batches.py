"""Methods of a star whose clients have all their samples from the start, and which are judged on held-out ones."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fkl.contract.held_samples import Held
from fkl.contract.star import Federated
from fkl.contract.world import World


class OnBatches(Federated):
    """As `Federated`, but that `client` is given `Held` samples, and shows theta (R, K, P) once a round.

    Its task is `fkl.tasks.batch.BatchTask`: it is judged as agents on a graph are, in the same columns.
    """

    exchanges_up: ClassVar[int | None] = None
    """In how many exchanges of a round clients send something; None for all."""
    not_traceable: ClassVar[str] = "its equations are factored on the host, by what clients have sent so far"

    def given(self, world: World, t: int) -> tuple[Held, NDArray[np.float64]]:
        """All samples in every round, and an equal share for each client that is present."""
        here = world.problem.present[t]
        return replace(world.held, present=here), here / max(int(here.sum()), 1)

    def judged_in(self, world: World) -> tuple[Any, Any] | None:
        """The training and the test samples as `Rows` of the space that theta is of; None: random features."""
        return None
