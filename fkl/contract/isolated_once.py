"""Parties of a one-shot star on their own, as `fkl.contract.isolated` has them: each client with all its samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.contract.isolated import Apart, ClientAlone, Played, Shown, alone, require_equal, together
from fkl.contract.one_shot import OneShot, Owned, common_of, owned
from fkl.contract.world import World
from fkl.network.messages import Ragged


class ClientOnce(ClientAlone):
    """One client, made of its samples, `Owned`, and points (n, d) where it shows what it predicts."""

    def _of_round(self, t: int) -> Owned:
        samples, _ = self._samples
        return samples

    def _shown(self, outcome: Any) -> Shown:
        _, points = self._samples
        return {"predictions": outcome[0](points)[None]}


def require_alone(method: OneShot, world: Callable[[], World], party: Apart) -> None:
    """As `fkl.contract.isolated.require_alone`; all clients predict the same."""
    here = world()

    def read(fitted: Any) -> Shown:
        return {"predictions": np.tile(fitted.predict[0](_points(here)), (here.problem.clients, 1))}

    def play() -> Played:
        samples, points = owned(here), _points(here)
        own = [
            (Owned(*(Ragged(((part.values[0][k],),)) for part in samples)), points) for k in range(here.problem.clients)
        ]
        return alone(method, here, party, common_of(here), ClientOnce, own)

    require_equal(together(method, world(), read), play, here, party)


def _points(world: World) -> NDArray[np.float64]:
    """What the replicate is tested on."""
    x: NDArray[np.float64] = world.problem.batches[world.streams.replicates[0]].part(False)[0]
    return x
