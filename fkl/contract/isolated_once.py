"""Parties of a one-shot star on their own, as `fkl.contract.isolated` has them: each client with all its samples."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.contract.isolated import (
    ClientAlone,
    Elsewhere,
    Here,
    Played,
    ServerAlone,
    Shown,
    Star,
    require_equal,
    together,
)
from fkl.contract.one_shot import CommonOfClasses, OneShot, Owned, common_of, owned
from fkl.contract.star import Turn
from fkl.contract.world import World
from fkl.network.messages import Ragged
from fkl.network.packets import Packet, packed, unpacked


class ClientOnce(ClientAlone):
    """One client.

    Parameters
    ----------
    method : OneShot
    common : CommonOfClasses
        Of one replicate.
    number : int
    samples : Owned
        Its own.
    points : (n, d)
        Where it shows what it predicts.
    """

    def __init__(
        self, method: OneShot, common: CommonOfClasses, number: int, samples: Owned, points: NDArray[np.float64]
    ) -> None:
        self._method, self._common, self._number = method, common, number
        self._samples, self._points = samples, points
        _, self._state = method.start(common, 1)

    def play(self, t: int, exchange: int, down: Packet | None) -> tuple[Packet | None, Shown | None]:
        """As `ClientAlone.play`."""
        turn = Turn(t, exchange, self._common.streams, range(self._number, self._number + 1))
        message = None if down is None else unpacked([down])
        played: Any = self._method.client(self._common, self._state, message, self._samples, turn)  # type: ignore[arg-type]
        self._state, up, predictors = played
        shown = None if predictors is None else {"predictions": predictors[0](self._points)[None]}
        return packed(up, 0, np.dtype(self._common.precision).itemsize), shown


def alone(method: OneShot, world: World, party: type[Here] | type[Elsewhere]) -> Played:
    """Every party on its own; what one tells another goes through bytes."""
    problem, common, samples = world.problem, common_of(world), owned(world)
    with ExitStack() as ends:
        server = ends.enter_context(closing(party(ServerAlone, method, common, problem.clients)))
        clients = []
        for k in range(problem.clients):
            own = Owned(*(Ragged(((part.values[0][k],),)) for part in samples))
            clients.append(ends.enter_context(closing(party(ClientOnce, method, common, k, own, _points(world)))))
        network = Star(method, problem, server, clients)
        return Played([network.round(0)], network.by_round, network.by_client)


def require_alone(method: OneShot, world: Callable[[], World], party: type[Here] | type[Elsewhere]) -> None:
    """As `fkl.contract.isolated.require_alone`; all clients predict the same."""
    here = world()

    def read(fitted: Any) -> Shown:
        return {"predictions": np.tile(fitted.predict[0](_points(here)), (here.problem.clients, 1))}

    expected = together(method, here, read)
    require_equal(expected, lambda: alone(method, world(), party), here.problem.present, party)


def _points(world: World) -> NDArray[np.float64]:
    """What the replicate is tested on."""
    x: NDArray[np.float64] = world.problem.batches[world.streams.replicates[0]].part(False)[0]
    return x
