"""A task: one kind of data, with everything that a run, its records and the conformance suite need from it.

A family of methods names its task with ``task: ClassVar = BatchTask``; a method without one learns from a stream.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.arrays import Array
from fkl.basics.errors import BrokenPromiseError, FklError, plural, with_own_line
from fkl.basics.random_streams import Role, shared_generator
from fkl.config import Run
from fkl.contract.world import Algorithm, World
from fkl.data.encoder import Encoder
from fkl.data.scale import Scale
from fkl.kernels import Dictionary
from fkl.network import Topology
from fkl.tasks import run_samples as samples
from fkl.wire.ledger import BETWEEN_PEERS, WITH_A_SERVER, Direction


def losses_of(name: str, path: str, y: Array, y_hat: Array) -> Array:
    """Loss of each prediction.

    Parameters
    ----------
    name, path : str
        Name of the metric and path of its function; checking the configuration has imported its module. A judge holds
        no function, because checkpoints cannot store one.
    y : (n,)
    y_hat : (..., n)

    Returns
    -------
    (..., n) array
        NaN if a prediction is not finite, which other code reports.
    """
    targets, predictions = np.broadcast_to(y, y_hat.shape).flatten(), y_hat.astype(np.float64).flatten()
    if not len(targets) or not np.isfinite(predictions).all():
        return np.full(y_hat.shape, np.nan)
    module, _, function = path.rpartition(".")
    try:
        losses = np.asarray(getattr(sys.modules[module], function)(targets, predictions), dtype=np.float64)
    except Exception as error:  # any error in the user's own function is reported in one line
        raise FklError(f"metrics.{name}={path}: {with_own_line(error)}") from error
    if losses.shape != targets.shape or not np.isfinite(losses).all():
        what = f"array of shape {losses.shape}" if losses.shape != targets.shape else "loss that is not finite"
        raise FklError(
            f"metrics.{name}={path}: must return a finite loss for each of {len(targets)} samples, not {what}"
        )
    return losses.reshape(y_hat.shape)


Redraw = Callable[[int], tuple[Any, Topology | None]]
"""Samples and graph of a replicate by its number; None for the shared graph."""
Values = dict[str, NDArray[Any]]
LARGEST = 1e60
"""Bound of the entries of theta: errors of larger ones, or their spread over replicates, may not be finite."""
LARGEST_ERROR = LARGEST**2
SHARE_OF_FREE = 1 / 2
"""Largest share of the free memory for replicates that run together."""


class Columns(NamedTuple):
    """Columns of the records of some replicates, by name, without traffic and time.

    Parameters
    ----------
    rounds : dict of str to (T, R)
    clients : dict of str to (R, K) or (K,)
    summary : dict of str to (R,)
        Columns about the whole run; the summary also has the last round's columns.
    """

    rounds: Values
    clients: Values
    summary: Values


class RowLosses(NamedTuple):
    """The loss of each judged sample of a replicate; in a stream, the loss before learning from the sample.

    Parameters
    ----------
    row : (n,) int64
        Number of the sample's row in the whole data set.
    loss : (n,) float64
        Squared error, or 1 for a wrong class and 0 for the right one.
    """

    row: NDArray[np.int64]
    loss: NDArray[np.float64]


class Judge(Protocol):
    """Accumulates the outcomes of some replicates; write your own as a dataclass, which checkpoints can store."""

    def enter(self, t: int, outcome: Any) -> bool:
        """Record round t, and return whether all numbers are finite."""
        ...

    def close(self) -> None:
        """Finish the records after the last round."""
        ...


class Books:
    """A judge's columns, which it fills round by round.

    Attributes
    ----------
    booked : int
        Number of rounds with known columns, which loggers may read. A judge without it is read only at the end.
    row_losses : list of RowLosses
        Losses of each replicate after the last round, if the problem knows its rows' numbers.
    """

    def __init__(self, rounds: int, replicates: int) -> None:
        self._shape = rounds, replicates
        self.booked = 0
        self.row_losses: list[RowLosses] = []
        self.metrics: dict[str, str] = {}
        self.by_round: Values = {}
        self.by_client: Values = {}
        self.at_the_end: Values = {}

    def book(self, name: str, rounds: int | slice, values: Any) -> None:
        """Record values (R,) of one round, or (B, R) of several."""
        self.by_round.setdefault(name, np.empty(self._shape))[rounds] = values
        self.booked = rounds.stop if isinstance(rounds, slice) else rounds + 1

    def book_own(self, rounds: int | slice, y: Sequence[Array], y_hat: Sequence[Array]) -> None:
        """Record the user's metrics of one or B rounds: for each replicate, y (n,) and y_hat (n,) or (B, n)."""
        for name, path in self.metrics.items():
            losses = [losses_of(name, path, *pair) for pair in zip(y, y_hat, strict=True)]
            means = np.array([each.sum(axis=-1) / (each.shape[-1] or np.nan) for each in losses])
            self.book(f"test_{name}", rounds, means.T)

    def end(self, t: int) -> None:
        """Judge no round after round t, which is recorded."""
        self.by_round = {name: values[:t] for name, values in self.by_round.items()}

    def close(self) -> None:
        """Finish the records after the last round: here nothing is left."""

    def columns(self) -> Columns:
        """All columns."""
        return Columns(dict(self.by_round), dict(self.by_client), dict(self.at_the_end))


class Panel(NamedTuple):
    """One figure of a run.

    Parameters
    ----------
    label : str
        Label of the axis.
    curves : dict of str to str
        Columns of the rounds, and their names in the figure, where {method} is the method's label; missing columns are
        left out.
    log : bool
        Whether the axis is logarithmic.
    nominal : dict of str to float, or None
        Expected values of columns. The figure then shows each column's last value next to them, instead of curves. A
        run without these columns has no such figure.
    between : tuple of two str, or None
        Columns between which the figure is shaded.
    """

    label: str
    curves: Mapping[str, str]
    log: bool = True
    nominal: Mapping[str, float] | None = None
    between: tuple[str, str] | None = None


class Probe(NamedTuple):
    """Changed data with which a method must have the same outcome.

    Parameters
    ----------
    problem : as the task's
    why : str
        Description of the change.
    replicates : tuple of int or None
        Replicates with these data; None for all.
    rounds : int or None
        Number of first rounds without any difference; None for all.
    hidden : str or None
        Part of the outcome that must also be the same in the next round.
    """

    problem: Any
    why: str
    replicates: tuple[int, ...] | None = None
    rounds: int | None = None
    hidden: str | None = None


@dataclass(frozen=True)
class Task:
    """One kind of data. Your own subclass overrides the defaults, which are those of a stream.

    Parameters
    ----------
    problem : Any
        The data, `world.problem` in a method; with rounds, clients, dimension, site, site_names, present and
        rows_left_out as in `fkl.data.problem.Problem`.
    redraw : callable or None
        Given if every replicate has its own samples and graph, or its own participants. Such replicates run one at a
        time, so memory holds only one of them; `problem` is then that of replicate 0.
    """

    problem: Any
    redraw: Redraw | None = None

    of_features: ClassVar[bool] = False
    """Whether parties have different features of the same samples, as with partition=vertical."""
    of_rounds: ClassVar[bool] = False
    """Whether there are rounds that clients can miss."""
    has_rows_at_clients: ClassVar[bool] = False
    """Whether clients have their own rows, from which each could learn alone, or one learner from all."""
    judged_as_it_learns: ClassVar[bool] = False
    """Whether the error in a round is that of all predictions so far."""
    of_classes: ClassVar[bool] = False
    """Whether predictions are classes, whatever the loss."""
    judge_counts: ClassVar[bool] = True
    """Whether a rehearsal also measures the judge; False if the judge is slow and needs less memory than methods."""
    room: ClassVar[int] = 2**30
    """Memory limit in bytes of replicates that run together."""

    @classmethod
    def of(cls, run: Run) -> Self:
        """Read, scale and partition the data; one generator makes all draws, so they follow from the seed."""
        generator = shared_generator(run.settings.seed, Role.DATA)
        given = samples.split_table(run, samples.read_table(run, generator), generator)
        return cls(samples.in_precision(given, run))

    def describe(self) -> str:
        """A line about the data of a run."""
        problem = self.problem
        words = [plural(problem.clients, "client"), self.amount, plural(problem.dimension, "feature")]
        left_out = [f"{plural(problem.rows_left_out, 'row')} left out"] if problem.rows_left_out else []
        return ", ".join([*words, *left_out, *self.incomplete])

    @property
    def incomplete(self) -> list[str]:
        """Words about rows with missing cells, if any were left out."""
        found = getattr(self.problem, "incomplete", None)
        return [str(found)] if found is not None and found.rows else []

    @property
    def amount(self) -> str:
        """Number of samples, or rounds."""
        return plural(self.problem.rounds, "round")

    @property
    def targets(self) -> NDArray[Any]:
        """Target values of the predictions."""
        return self.problem.y

    @property
    def signs(self) -> bool:
        """Whether only the sign of a prediction matters, as a class of the target."""
        return False

    def sample_rows(self, count: int) -> NDArray[np.floating]:
        """Features of about this many samples, (n, d), for `fkl.kernels.dictionary`, without test samples.

        They are the first samples of a stream, in which all samples are predicted before learning from them.
        """
        return self.problem.x[self.problem.present][:count]

    # --- the loop

    def directions(self, topology: Topology | None) -> tuple[Direction, ...]:
        """The directions that the ledger counts."""
        return WITH_A_SERVER if topology is None else BETWEEN_PEERS

    def judge(self, world: World, method: Algorithm) -> Judge:
        """Judge of the replicates of a world."""
        raise NotImplementedError

    def replicates_at_once(self, rehearse: Callable[[], tuple[int, int]]) -> int:
        """Number of replicates that should run together.

        Parameters
        ----------
        rehearse : callable
            Plays one round of one replicate, and returns approximately the bytes that it keeps, and its peak.
        """
        kept, peak = rehearse()
        return max(1, min(self.room // kept, int(SHARE_OF_FREE * memory.available_bytes()) // peak))

    def for_few_clients(self, clients: int) -> Any:
        """The problem with at most this many clients, for compiling; unchanged if clients cost little."""
        return self.problem

    def encoder(self, replicate: int) -> Encoder | None:
        """What made features of a table's cells for this replicate."""
        first = getattr(self.problem, "encoder", None)
        learned = self.redraw is not None and first is not None and (first.words or first.fill)
        return self.redraw(replicate)[0].encoder if self.redraw is not None and learned else first

    def scales(self, world: World) -> tuple[Scale, ...]:
        """The scaling of each replicate's samples for the methods of a world."""
        return (getattr(world.problem, "scale", Scale()),) * len(world.streams.replicates)

    # --- the records

    def first_round(self) -> Any:
        """The smallest part of the problem with a complete summary."""
        raise NotImplementedError

    def beside(self, method: Algorithm, dictionary: Dictionary, cache: Path | None) -> Any:
        """Reference results for `columns`, computed once per run, outside the clock.

        Parameters
        ----------
        method : Algorithm
        dictionary : Dictionary
        cache : Path or None
            Folder in which they are stored for other runs.
        """
        return None

    def columns(self, judge: Any, elapsed: NDArray[np.float64], beside: Any = None) -> Columns:
        """The columns of the records.

        Parameters
        ----------
        judge : Judge
            Of a finished run of this task.
        elapsed : (T, R)
            Seconds of each replicate up to the end of each round.
        beside : the result of `beside`, or None for no references
        """
        return judge.columns()

    def by_round(self, judge: Any, elapsed: NDArray[np.float64], beside: Any = None) -> Values:
        """Only the columns of the rounds, also of a running run; parameters as for `columns`."""
        return self.columns(judge, elapsed, beside).rounds

    def panels(self) -> Mapping[str, Panel]:
        """A run's figures by the names of their files."""
        return {}

    # --- the conformance suite

    @classmethod
    def small(cls, algorithm: type) -> tuple[str, ...]:
        """Overrides with which an algorithm of this class runs quickly: its kind of data, and few rounds."""
        raise NotImplementedError

    def shown(self, world: World, outcome: Any) -> dict[str, Any]:
        """All parts of an outcome by name, with an entry for each replicate.

        Raises
        ------
        fkl.basics.errors.BrokenPromiseError
            If a shape is not the one that the judge expects.
        """
        raise NotImplementedError

    def in_doubles(self) -> Any:
        """The problem with features in float64."""
        return replace(self.problem, x=self.problem.x.astype(np.float64))

    def other_samples(self) -> Any:
        """The problem with other samples, equally many and of the same clients."""
        return replace(self.problem, x=mirrored(self.problem.x), y=mirrored(self.problem.y))

    def probes(self, outcome: Any) -> Iterator[Probe]:
        """Data with other labels where a method must not know them.

        Parameters
        ----------
        outcome : Any
            Outcome of the last round, with all replicates.
        """
        raise NotImplementedError


def require_lam(algorithm: Any) -> None:
    """Refuse a method without the weight of its regulariser, because regret and optimum depend on it."""
    if not hasattr(algorithm, "lam"):
        kind = type(algorithm).__name__
        raise FklError(f"algo: {kind} has no field lam, the weight of the regulariser; write lam: float = 0.0 for none")


def overrides_for_keys(algorithm: type, **most: int) -> tuple[str, ...]:
    """Overrides for these keys, if an algorithm's class has them."""
    keys = {field.name for field in fields(algorithm)} if is_dataclass(algorithm) else set()
    return tuple(f"++algo.{key}={value}" for key, value in most.items() if key in keys)


def mirrored(y: NDArray[Any]) -> NDArray[Any]:
    """Other numbers in the same range; with two classes, the other class."""
    return y.min() + y.max() - y


def require_shape(name: str, values: Any, *shape: int | None) -> None:
    """Refuse an array of an outcome with another shape; None allows any length."""
    found = np.shape(values)
    fits = len(found) == len(shape) and all(want in (None, size) for size, want in zip(found, shape, strict=True))
    if not fits:
        letters = ", ".join(["R", "K", *["any"] * len(shape)][: len(shape)])
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise BrokenPromiseError(f"{name} has shape {found}, must be ({letters}) = ({wanted})")
