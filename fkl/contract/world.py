"""The protocol of methods, what all parties know, the world of a simulation, and the outcome of a round."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics.random_streams import Streams
from fkl.contract.held_samples import BatchSamples, Held, OwnSamples
from fkl.kernels import BANKS, Dictionary, FeatureBank
from fkl.kernels.client_tiles import as_they_are, sums_in_order
from fkl.kernels.feature_rows import Rows
from fkl.kernels.losses import LOSSES, Loss
from fkl.network import Topology
from fkl.wire import Channel

Array = NDArray[np.floating]
FEATURES = "random features"
"""Of the one kernel of the dictionary: the space in which a batch is judged, unless its method has another."""


@dataclass(frozen=True)
class Common:
    """What all parties of a method know: the kernels, how long it goes on, and random numbers of the shared seed.

    Parameters
    ----------
    dictionary : Dictionary
    dimension : int
        Features d of a sample.
    rounds : int
        Horizon T.
    streams : Streams
    precision : {"float32", "float64"}
        Of features and of scalars on the wire.
    engine : {"numba", "numpy"}
        What the features are computed with.
    clients : int
        How many there are of them, or of agents.
    """

    dictionary: Dictionary
    dimension: int
    rounds: int
    streams: Streams
    precision: str
    engine: str = "numba"
    clients: int = 1

    @property
    def xp(self) -> Any:
        """The namespace of array functions, that of the engine's bank."""
        return BANKS[self.engine].xp

    @cached_property
    def bank(self) -> FeatureBank:
        """The random features of all replicates, drawn when a method first asks for them."""
        return self.dictionary.bank(self.dimension, self.streams, self.precision, self.engine)

    def replicate(self, r: int) -> Self:
        """What the parties of the replicate at place r know."""
        return replace(self, streams=self.streams.replicate(r))


@dataclass(frozen=True)
class World:
    """What surrounds an algorithm: the clients' data, the kernels, the network and the random streams.

    Parameters
    ----------
    problem : Problem or Batch
        A Batch for a `Batched` method.
    dictionary : Dictionary
    channel : Channel
    streams : Streams
    precision : {"float32", "float64"}
        Of features and of scalars on the wire.
    topology : Topology or None
        The graph of a method without a server.
    engine : {"numba", "numpy"}
        What the features are computed with.
    added : callable
        Adds up terms (tiles, ...) over all clients, of whom other processes may have some, tile after tile.
    of_all_clients : callable
        Returns the values (R, K, ...) of all clients in the process that speaks, given those of this process.
    metrics : dict of str to str
        The user's own, for the judge: names, and import paths of functions.
    """

    problem: Any
    dictionary: Dictionary
    channel: Channel
    streams: Streams
    precision: str
    topology: Topology | None = None
    engine: str = "numba"
    added: Callable[[Sequence[Array]], list[Array]] = sums_in_order
    of_all_clients: Callable[[Array], Array] = as_they_are
    metrics: Mapping[str, str] = field(default_factory=dict)

    def together(self, t: int) -> int:
        """How many clients of all processes take part in round t."""
        return int(self.problem.together[t])

    def present(self, t: int) -> NDArray[np.bool_]:
        """Which clients of this process, or agents, are present in round t, (K,)."""
        here: NDArray[np.bool_] = self.problem.present[t]
        return here

    @cached_property
    def common(self) -> Common:
        """What all parties know."""
        horizon, drawn = self.problem.rounds, (self.streams, self.precision, self.engine)
        clients = getattr(self.problem, "everyone", self.problem.clients)  # a kind of data that is never cut has none
        return Common(self.dictionary, self.problem.dimension, horizon, *drawn, clients)

    @cached_property
    def bank(self) -> FeatureBank:
        """The random features of all replicates, drawn when a method first asks for them."""
        return self.common.bank

    @property
    def loss(self) -> Loss:
        """What a `Batched` method minimises."""
        return LOSSES[self.problem.loss]

    @cached_property
    def changes(self) -> bool:
        """Whether some links of a graph are not always up, or some agents are not always present."""
        return self.channel.links is not None or not self.problem.present.all()

    @cached_property
    def training(self) -> Rows:
        """The clients' training samples in the feature space of the dictionary's one kernel."""
        return self.held.rows(FEATURES, lambda: self.bank)

    @cached_property
    def testing(self) -> Rows:
        """The clients' test samples in that space."""
        return self.tested.rows(FEATURES, lambda: self.bank)

    @cached_property
    def samples(self) -> BatchSamples:
        """The clients' training samples, as agents on a graph hold them."""
        return BatchSamples(self.training, self.loss, self.problem.clients)

    @cached_property
    def own_samples(self) -> OwnSamples:
        """The training samples of agents that make features of their own."""
        x, y, client = self.problem.part(True)
        return OwnSamples.from_samples(x, y, np.bincount(client, minlength=self.problem.clients))

    @cached_property
    def held(self) -> Held:
        """The clients' training samples, as clients of a star hold them."""
        return self._part_of_samples(True)

    @cached_property
    def tested(self) -> Held:
        """The samples that clients are tested on."""
        return self._part_of_samples(False)

    def _part_of_samples(self, training: bool) -> Held:
        x, y, client = self.problem.part(training)
        everyone = np.ones(self.problem.clients, np.bool_)
        each = not training and (self.problem.row is not None or bool(self.metrics))
        return Held(x, y, np.bincount(client, minlength=len(everyone)), everyone, self.loss, each)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a round, from before any party learned from it; the round loop judges it.

    Parameters
    ----------
    y_hat : (R, K)
        Predictions.
    loss : (R, K, N) or None
        Loss of each kernel's own prediction; None for a method without kernels.
    squared_norm : callable returning (R, K)
        |f_hat|^2 of each client's predictor, called outside the clock.
    variance : (R, K) or None
        Of the target around its prediction, as the method believes; None for a method that does not say.
    """

    y_hat: Array
    loss: Array | None
    squared_norm: Callable[[], Array]
    variance: Array | None = None


FEATURE_KEYS = ("kernels.D", "kernels.map", "kernels.draw", "kernels.shared")
"""Keys of random features, which do nothing for a method that has none."""


class Algorithm(Protocol):
    """One method. Implementations are frozen dataclasses: their fields are the keys under `algo`.

    A class may say ``idle: ClassVar = FEATURE_KEYS``, or which other keys outside `algo` change none of its numbers:
    runs that differ in nothing else are then one. Where a state grows faster than the number of features, a method
    ``needs(dictionary, problem) -> int`` says how many bytes a replicate takes at least, before anything is played.
    Where keys have to fit the kernels, as M has to be at most N, ``require_fits(kernels)`` raises BadValue unless they
    do; it is called before data are read.

    Engines tell from facts that a class may state if they can play it: ``compiled_only: ClassVar = True`` where its
    loops exist only compiled, ``not_traceable: ClassVar[str] = ""`` where JAX can trace its rounds, or why not, and
    ``means_only: ClassVar = False`` where a server asks for more than means over clients.

    A state is a dataclass of arrays whose first axis is the replicate; `step` may reuse its arrays.
    """

    label: ClassVar[str]
    """The method's name in the paper, as tables print it."""

    lam: float
    """Regularisation lambda of the loss, which evaluation needs too."""

    def init(self, world: World) -> Any:
        """State before the first round. Raises BadValue for hyper-parameters that do not fit the world."""
        ...

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Any]:
        """Predict round t, see its labels, learn; a `Batched` method returns theta (R, K, P), no `Outcome`."""
        ...
