"""Methods with a server that learn in one round from clients with all samples from the start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError
from fkl.contract.star import Federated, Turn
from fkl.contract.world import Common, World
from fkl.data.problem import MOST_CLASSES
from fkl.kernels.threads import in_parts
from fkl.wire.payloads import Ragged

Array = NDArray[np.float64]
Predictors = tuple[Callable[[NDArray[Any]], NDArray[Any]], ...]
"""One per replicate: from samples (n, d) to targets (n,), NaN if undecided; plain data, for checkpoints."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Fitted:
    """Results of a method that learns once, with an entry for each replicate.

    Parameters
    ----------
    predict : tuple of callables
        From samples (n, d) to targets (n,); NaN if the method is undecided.
    figures : mapping of str to (R,)
        Figures that the run records in addition to errors.
    of_clients : mapping of str to (R, K)
    """

    predict: Predictors
    figures: Mapping[str, NDArray[Any]]
    of_clients: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class CommonOfClasses(Common):
    """Common knowledge of all parties for classification: also the names of classes.

    Parameters
    ----------
    classes : tuple of (C,)
        Values of the target in each replicate, ascending.
    """

    classes: tuple[Array, ...] = ()


class Owned(NamedTuple):
    """All samples of the clients in this process, replicate by replicate and client by client.

    Parameters
    ----------
    x : Ragged of (n, d) float64
    y : Ragged of (n,) float64
    """

    x: Ragged
    y: Ragged

    def replicate(self, r: int) -> tuple[Array, Array, NDArray[np.int64]]:
        """One replicate's samples, client after client, and the index of each sample's client among those here."""
        x, y = self.x.values[r], self.y.values[r]
        return np.concatenate(x), np.concatenate(y), np.repeat(np.arange(len(y)), [len(one) for one in y])


class OneShot(Federated):
    """Base class of methods with a server that learn in one round of a few exchanges.

    You write `label`, `exchanges`, `lam`, `start`, `broadcast`, `client` and `server` as for `Federated`, except that

    - `common` is a `CommonOfClasses`, which has the classes of each replicate;
    - `client` gets `Owned` samples, and returns `Predictors`, one per replicate, as its outcome in the last exchange;
    - `server` gets shares of 0, because it does not learn from a mean over clients;

    and ``told(server, client) -> (figures, of_clients)``: what the run records in addition to errors, arrays (R,) and
    (R, K) by name. You may set `uses_kernels` and `several_classes`.
    """

    not_traceable: ClassVar[str] = "it learns in one round: there is nothing to scan"
    uses_kernels: ClassVar[bool] = False
    """Whether the kernels are those of the node `kernels`."""
    several_classes: ClassVar[bool] = True
    """Whether it can learn more than two classes."""

    def told(self, server: Any, client: Any) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """Figures that a run records about the states after the last exchange: (R,), and per client (R, K)."""
        raise NotImplementedError

    def init(self, world: World) -> Predictors:  # type: ignore[override]
        """Initial states."""
        return ()

    def step(self, world: World, state: Predictors, t: int) -> tuple[Predictors, Fitted]:  # type: ignore[override]
        """All exchanges of all parties, whose messages pass the channel; the predictors are the stored state."""
        common, samples, channel = common_with_classes(world), owned_samples(world), world.channel
        clients = world.problem.clients
        server, client = self.start(common, clients)
        shown: Any = None
        for exchange in range(self.exchanges):
            alone, everyone = (Turn(t, exchange, world.streams, range(size)) for size in (1, clients))
            down = channel.down(self.broadcast(common, server, alone))
            client, up, shown = self.client(common, client, down, samples, everyone)  # type: ignore[arg-type]
            server = self.server(common, server, channel.up(up), np.zeros(clients), alone)
        assert shown is not None, f"{type(self).__name__}: the last exchange shows no predictors"
        return shown, Fitted(shown, *self.told(server, client))


def common_with_classes(world: World) -> CommonOfClasses:
    """Common knowledge of all parties of a world.

    Raises
    ------
    fkl.basics.errors.FklError
        If a replicate's target has one value, or too many values for classes.
    """
    classes = tuple(np.unique(world.problem.batches[r].part(True)[1]) for r in world.streams.replicates)
    for found in classes:
        if not 2 <= len(found) <= MOST_CLASSES:
            raise FklError(f"the target has {len(found)} values, where classes are learned: 2 to {MOST_CLASSES}")
    known = world.common
    both = {field.name: getattr(known, field.name) for field in fields(known)}
    return CommonOfClasses(**both, classes=classes)


def owned_samples(world: World) -> Owned:
    """Training samples of all clients, in float64 whatever the run's precision."""
    x, y = [], []
    for r in world.streams.replicates:
        features, target, client = world.problem.batches[r].part(True)
        # Samples are stored client after client.
        begins = np.searchsorted(client, np.arange(1, world.problem.clients))
        x.append(tuple(np.split(features.astype(np.float64), begins)))
        y.append(tuple(np.split(target, begins)))
    return Owned(Ragged(tuple(x)), Ragged(tuple(y)))


def by_replicate(work: Callable[[int], Item], replicates: int) -> list[Item]:
    """The result of `work` for each replicate's number, several at a time, since replicates share nothing."""
    made: list[Any] = [None] * replicates

    def some(begin: int, end: int) -> None:
        for r in range(begin, end):
            made[r] = work(r)

    in_parts(some, replicates)
    return made
