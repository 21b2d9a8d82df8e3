"""Parties of a star of batches on their own, as `fkl.contract.isolated` has them: each client with all its samples."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fkl.contract.isolated import Apart, ClientAlone, Played, Shown, alone, require_equal, together
from fkl.contract.samples import Held
from fkl.contract.star import Federated
from fkl.contract.world import World
from fkl.kernels.losses import LOSSES


class ClientOfBatch(ClientAlone):
    """One client, made of its samples x (n, d) and y (n,), and of the name of the loss."""

    def _of_round(self, t: int) -> Held:
        if len(self._samples) > 1:
            x, y, loss = self._samples
            self._samples = (Held(x, y, np.array([len(y)]), np.ones(1, np.bool_), LOSSES[loss]),)
        held: Held = self._samples[0]
        return held

    def _shown(self, outcome: Any) -> Shown:
        return {"theta": outcome[0]}


def require_alone(method: Federated, world: Callable[[], World], party: Apart) -> None:
    """As `fkl.contract.isolated.require_alone`."""
    here = world()

    def play() -> Played:  # of features that are not drawn already
        x, y, _ = here.problem.part(True)
        ends = np.cumsum(here.held.count)[:-1]
        own = [(*mine, here.problem.loss) for mine in zip(np.split(x, ends), np.split(y, ends), strict=True)]
        return alone(method, here, party, replace(here.common), ClientOfBatch, own)

    require_equal(together(method, world(), lambda theta: {"theta": theta[0]}), play, here, party)
