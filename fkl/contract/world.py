"""The protocol of methods, the parties' samples and common knowledge, a simulation's world, and outcomes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.random_streams import Streams
from fkl.kernels import BANKS, Dictionary, FeatureBank
from fkl.kernels.losses import LOSSES, ClassBank, Loss, Minimiser, OfNumbers, Rows, Space, rows_in
from fkl.network import Topology
from fkl.wire import Channel


@dataclass(frozen=True)
class BatchSamples:
    """The training samples of the agents that compute; each agent has its own.

    Parameters
    ----------
    rows : Rows
        Features in the space of the only kernel.
    loss : OfNumbers
    agents : int
        Number N of agents in the whole graph: each agent has a share of 1/N in terms about all agents together.

    Attributes
    ----------
    factored : dict
        Factors that `minimise_proximal` computed from the samples, kept for later calls; large, and not part of a
        state.
    """

    rows: Rows
    loss: OfNumbers
    agents: int
    factored: dict[bytes, Minimiser] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_samples(cls, bank: FeatureBank, x: Array, y: Array, loss: OfNumbers, agents: int) -> "BatchSamples":
        """Samples of one agent, x (n, d) and y (n,)."""
        return cls(Rows.from_samples(bank, x, y, np.array([len(y)]), loss.compressed), loss, agents)

    def gradient(self, theta: Array) -> Array:
        """Gradient of each agent's mean loss at theta (R, K, P)."""
        return self.loss.gradient(self.rows, theta)

    @property
    def gone_over(self) -> Any:
        """Arrays that every iteration reads: factors of the samples, or the samples themselves."""
        return self.factored or vars(self.rows).get("normal") or self.rows

    def minimise_proximal(self, c: NDArray[np.float64], v: Array, start: Array) -> Array:
        """Theta (R, K, P) that minimises each agent's (mean loss) + c_i |theta|^2 - v_i'theta.

        Parameters
        ----------
        c : (K,)
            Above 0. The samples are factored once for all calls with the same c.
        v : (R, K, P)
        start : (R, K, P)
            Start of the search, for a minimiser that has to search.
        """
        key: Any = c.tobytes()
        if key not in self.factored:
            self.factored.clear()
            self.factored[key] = self.loss.minimiser(self.rows, c)
        return self.factored[key](v, start)


@dataclass(frozen=True)
class OwnSamples:
    """The training samples of the agents that compute, for a method that makes its own features from them.

    Parameters
    ----------
    x : (K, n, d)
        Zero in rows beyond an agent's number of samples.
    y : (K, n)
        Also zero there.
    count : (K,) int64
    mean : float
        Mean number of samples of an agent, over the whole graph.

    Attributes
    ----------
    kept : dict
        Values that a method computed from the samples, kept for later iterations; large, and not part of a state.
    """

    x: Array
    y: NDArray[np.float64]
    count: NDArray[np.int64]
    mean: float
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_samples(cls, x: Array, y: NDArray[np.float64], count: NDArray[np.int64], mean: float) -> "OwnSamples":
        """Samples from x (n, d) and y (n,), agent after agent."""
        padded, targets = np.zeros((len(count), int(count.max()), x.shape[1])), np.zeros((len(count), int(count.max())))
        ends = np.cumsum(count)
        for k, (start, end) in enumerate(zip(ends - count, ends, strict=True)):
            padded[k, : end - start], targets[k, : end - start] = x[start:end], y[start:end]
        return cls(padded, targets, count, mean)

    @property
    def there(self) -> NDArray[np.bool_]:
        """Whether an entry is a sample and not padding, (K, n)."""
        return np.arange(self.y.shape[1]) < self.count[:, None]


class SampleCache:
    """Values computed from samples, by name, kept for later rounds; they are large, and not part of a state."""

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        self.values = {} if values is None else values


@dataclass(frozen=True)
class ClientRows:
    """The training samples of the clients that compute; each client has its own.

    Parameters
    ----------
    x : (n, d)
        Client after client.
    y : (n,) float64
    count : (K,) int
        Number of samples of each client.
    present : (K,) bool
        Whether a client takes part in this round.
    loss : Loss
    each : bool
        Whether the loss of each sample is needed; `Rows` must then not be compressed.
    cache : SampleCache
    """

    x: Array
    y: NDArray[np.float64]
    count: NDArray[np.int64]
    present: NDArray[np.bool_]
    loss: Loss
    each: bool = False
    cache: SampleCache = field(default_factory=SampleCache, repr=False, compare=False)

    @classmethod
    def of_client(cls, x: Array, y: NDArray[np.float64], loss: str) -> "ClientRows":
        """All samples of one client, which is present."""
        return cls(x, y, np.array([len(y)]), np.ones(1, np.bool_), LOSSES[loss])

    def rows(self, space: str, bank: Callable[[], Space | ClassBank]) -> Rows:
        """All samples in a feature space; they are mapped only once."""
        cached = self.cache.values
        if space not in cached:
            compressed = self.loss.compressed and not self.each
            cached[space] = rows_in(bank(), self.x, self.y, self.count, compressed)
        return cached[space]

    def flipped(self) -> "ClientRows":
        """Samples with the sign of every target changed, -y; made once and then kept."""
        cached = self.cache.values
        if "flipped" not in cached:
            cached["flipped"] = replace(self, y=-self.y, cache=SampleCache())
        return replace(cached["flipped"], present=self.present)


FEATURES = "random features"
"""Name of the space of the dictionary's only kernel, in which a batch is judged unless its method has another."""


@dataclass(frozen=True)
class Common:
    """Common knowledge of all parties of a method: kernels, horizon, and random numbers from the shared seed.

    Parameters
    ----------
    dictionary : Dictionary
    dimension : int
        Number d of features of a sample.
    rounds : int
        Horizon T.
    streams : Streams
    precision : {"float32", "float64"}
        Precision of features and of scalars on the wire.
    engine : {"numba", "numpy"}
        Library that computes the features.
    clients : int
        Number of clients or agents.
    outputs : int
        Number of functions in the same features: one per class, or 1.
    """

    dictionary: Dictionary
    dimension: int
    rounds: int
    streams: Streams
    precision: str
    engine: str = "numba"
    clients: int = 1
    outputs: int = 1

    @property
    def xp(self) -> Any:
        """The namespace of array functions of the engine's bank."""
        return BANKS[self.engine].xp

    @cached_property
    def features(self) -> FeatureBank:
        """The random features of all replicates, drawn at the first use."""
        return self.dictionary.bank(self.dimension, self.streams, self.precision, self.engine)

    @cached_property
    def bank(self) -> FeatureBank:
        """The random features, with a theta for each output."""
        return self.of_outputs(self.features)

    def of_outputs(self, features: FeatureBank) -> FeatureBank:
        """These features, or a `ClassBank` of them if there are several outputs."""
        return features if self.outputs == 1 else cast(FeatureBank, ClassBank(features, self.outputs))

    def replicate(self, r: int) -> Self:
        """Common knowledge in only the replicate at index r."""
        return replace(self, streams=self.streams.replicate(r))


@dataclass(frozen=True)
class World:
    """Environment of an algorithm: the clients' data, the kernels, the network and the random streams.

    Parameters
    ----------
    problem : Problem or Batch
        A Batch for a method on batches.
    dictionary : Dictionary
    channel : Channel
    streams : Streams
    precision : {"float32", "float64"}
        Precision of features and of scalars on the wire.
    topology : Topology or None
        The graph of a method without a server.
    engine : {"numba", "numpy"}
        Library that computes the features.
    metrics : dict of str to str
        The user's own metrics, for the judge: import paths of functions, by name.
    intervals : object or None
        Intervals around predictions, for the judge, see `fkl.tasks.intervals`.
    """

    problem: Any
    dictionary: Dictionary
    channel: Channel
    streams: Streams
    precision: str
    topology: Topology | None = None
    engine: str = "numba"
    metrics: Mapping[str, str] = field(default_factory=dict)
    intervals: Any = None

    def clients_present(self, t: int) -> int:
        """Number of clients that take part in round t."""
        return int(self.problem.clients_present[t])

    def present(self, t: int) -> NDArray[np.bool_]:
        """Whether each client, or agent, is present in round t, (K,)."""
        here: NDArray[np.bool_] = self.problem.present[t]
        return here

    @cached_property
    def common(self) -> Common:
        """Common knowledge of all parties."""
        horizon, drawn = self.problem.rounds, (self.streams, self.precision, self.engine)
        outputs = getattr(self.problem, "classes", 1)  # of a batch
        return Common(self.dictionary, self.problem.dimension, horizon, *drawn, self.problem.clients, outputs)

    @cached_property
    def bank(self) -> FeatureBank:
        """The random features of all replicates, drawn at the first use."""
        return self.common.bank

    @property
    def loss(self) -> Loss:
        """The objective of a method on batches."""
        return LOSSES[self.problem.loss]

    @cached_property
    def changes(self) -> bool:
        """Whether links of the graph can be down, or agents absent, in some round."""
        return self.channel.links is not None or not self.problem.present.all()

    @cached_property
    def training(self) -> Rows:
        """The clients' training samples in the feature space of the dictionary's only kernel."""
        return self.held.rows(FEATURES, lambda: self.bank)

    @cached_property
    def testing(self) -> Rows:
        """The clients' test samples in the feature space of the dictionary's only kernel."""
        return self.tested.rows(FEATURES, lambda: self.bank)

    @cached_property
    def samples(self) -> BatchSamples:
        """The clients' training samples for agents on a graph."""
        return BatchSamples(self.training, cast(OfNumbers, self.loss), self.problem.clients)

    @cached_property
    def own_samples(self) -> OwnSamples:
        """The training samples of agents that make their own features."""
        x, y, client = self.problem.part(True)
        count = np.bincount(client, minlength=self.problem.clients)
        return OwnSamples.from_samples(x, y, count, len(y) / len(count))

    @cached_property
    def held(self) -> ClientRows:
        """The clients' training samples, for methods with a server."""
        return self._part_of_samples(True)

    @cached_property
    def tested(self) -> ClientRows:
        """The clients' test samples."""
        return self._part_of_samples(False)

    def _part_of_samples(self, training: bool) -> ClientRows:
        x, y, client = self.problem.part(training)
        everyone = np.ones(self.problem.clients, np.bool_)
        needed = self.problem.row is not None or bool(self.metrics) or self.intervals is not None
        each = not training and needed
        return ClientRows(x, y, np.bincount(client, minlength=len(everyone)), everyone, self.loss, each)


@dataclass(frozen=True)
class Outcome:
    """The predictions of a round, made before any party learned from it; the round loop judges them.

    Parameters
    ----------
    y_hat : (R, K)
        Predictions.
    loss : (R, K, N) or None
        Loss of each kernel's own prediction; None for a method without kernels.
    squared_norm : callable returning (R, K)
        |f_hat|^2 of each client's predictor, called outside the clock.
    variance : (R, K) or None
        The variance of the target around its prediction, as the method states it; None for a method without one.
    log_density : (R, K) or None
        Log density of the target under the method's predictive distribution; None if this is N(y_hat, variance).
    value : (R, K) or None
        The loss of each prediction; None if it follows from y_hat, as for all but several classes.
    """

    y_hat: Array
    loss: Array | None
    squared_norm: Callable[[], Array]
    variance: Array | None = None
    log_density: Array | None = None
    value: Array | None = None


FEATURE_KEYS = ("kernels.D", "kernels.map", "kernels.draw", "kernels.shared")
"""Keys of random features, which have no effect on a method without random features."""


class Algorithm(Protocol):
    """One method. Implementations are frozen dataclasses: their fields are the keys under `algo`.

    A class may set ``idle: ClassVar = FEATURE_KEYS``, or other keys outside `algo` that change none of its numbers:
    runs that differ only in these keys are then the same run. If a state grows faster than the number of features, a
    method ``needs(dictionary, problem) -> int`` returns the least memory of a replicate in bytes, before the run
    starts. If keys have to fit the kernels, for example M at most N, ``require_fits(kernels)`` raises BadValue unless
    they do; it is called before data are read.

    A class may state facts from which engines infer whether they can run it: ``compiled_only: ClassVar = True`` if its
    loops exist only compiled, and ``not_traceable: ClassVar[str] = ""`` if JAX can trace its rounds, or else the
    reason. ``means_only: ClassVar = False`` says that a server needs more than means over clients, which secure sums
    and aggregators then refuse.

    A class may state identities from its proofs, which conformance then checks; see `fkl.conformance.identities`.

    A state is a dataclass of arrays whose first axis is the replicate; `step` may reuse its arrays.
    """

    label: ClassVar[str]
    """The method's name in its paper and in tables."""

    lam: float
    """The loss's regularisation weight lambda, which evaluation also needs."""

    def init(self, world: World) -> Any:
        """State before the first round. Raises BadValue for hyperparameters that do not fit the world."""
        ...

    def step(self, world: World, state: Any, t: int) -> tuple[Any, Any]:
        """Predict round t, see its targets, learn; a method on batches returns theta (R, K, P), not an `Outcome`."""
        ...


def innermost_method(method: Any) -> Any:
    """The method itself, without the conditions or the separate worlds around it."""
    return getattr(method, "innermost", method)


class Wrapped:
    """A method in a condition of `fkl.conditions`; attributes that the condition lacks come from the method."""

    method: Any
    condition: Any
    facts: ClassVar[tuple[str, ...]]
    """Attributes that the base class defines, but whose values the method decides."""

    def __post_init__(self) -> None:
        vars(self).update({name: getattr(self.method, name) for name in self.facts})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("method", "condition"):  # copying asks for these before the method is set
            raise AttributeError(name)
        return getattr(self.method, name)

    @property
    def innermost(self) -> Any:
        """The method itself, without its conditions."""
        return innermost_method(self.method)

    def columns(self, problem: Any) -> dict[str, NDArray[np.float64]]:
        """All conditions' columns of the rounds, (T,), by name."""
        told: dict[str, NDArray[np.float64]] = self.condition.columns(self.method, problem)
        return (self.method.columns(problem) if isinstance(self.method, Wrapped) else {}) | told

    def at_the_end(self, problem: Any, held: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What all conditions report at the end of a run, from the server's or the agents' state."""
        told, by_round = self.condition.at_the_end(self.method, problem, held.memory)
        if not isinstance(self.method, Wrapped):
            return told, by_round
        others = self.method.at_the_end(problem, held.method)
        return others[0] | told, others[1] | by_round

    @property
    def panels(self) -> Mapping[str, Any]:
        """Figures of all conditions."""
        others = self.method.panels if isinstance(self.method, Wrapped) else {}
        return {**others, **self.condition.panels}

    def warnings(self, summary: Any) -> tuple[str, ...]:
        """Warnings of all conditions."""
        said: tuple[str, ...] = self.condition.warnings(summary)
        return (self.method.warnings(summary) if isinstance(self.method, Wrapped) else ()) + said
