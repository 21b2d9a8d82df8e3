"""A task: one kind of data, with all that a run, its records and the conformance suite need to know about it.

A family of methods names its own with ``task: ClassVar = BatchTask``; a method that names none learns from a stream.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.errors import BrokenPromiseError, FklError, plural
from fkl.basics.random_streams import Role, shared_generator
from fkl.config import Run
from fkl.contract.world import Algorithm, Array, World
from fkl.data.scale import Scale
from fkl.kernels import Dictionary
from fkl.network import Topology
from fkl.tasks import run_samples as samples
from fkl.tasks.own_metrics import losses_of
from fkl.wire.ledger import BETWEEN_PEERS, WITH_A_SERVER, Direction

Redraw = Callable[[int], tuple[Any, Topology | None]]
"""Samples and graph of a replicate by its number; None for the graph that all share."""
Values = dict[str, NDArray[Any]]
LARGEST = 1e60
"""Entries of theta have to be smaller: errors of larger ones, or their spread over replicates, may not be finite."""
LARGEST_ERROR = LARGEST**2
SHARE_OF_FREE = 1 / 2
"""Most of the free memory that replicates which run together may be chosen to take."""


class Columns(NamedTuple):
    """Columns of the records of some replicates besides traffic and time, by name.

    Parameters
    ----------
    rounds : dict of str to (T, R)
    clients : dict of str to (R, K) or (K,)
    summary : dict of str to (R,)
        Of the whole run; the summary has the last round's columns as well.
    """

    rounds: Values
    clients: Values
    summary: Values


class RowLosses(NamedTuple):
    """The loss of each sample that a replicate is judged on: of a stream, before it is learned from.

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
    """Accumulates the outcomes of some replicates; write your own as a dataclass, so that checkpoints can keep it."""

    def enter(self, t: int, outcome: Any) -> bool:
        """Book round t, and tell whether all is finite."""
        ...

    def close(self) -> None:
        """Finish the books after the last round."""
        ...


class Books:
    """A judge's columns, which it fills as rounds come in.

    Attributes
    ----------
    booked : int
        Rounds whose columns are known, and may go to loggers. A judge without it is asked at the end only.
    row_losses : list of RowLosses
        Of each replicate after the last round, where the problem knows its rows' numbers.
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
        """Enter values (R,) of a round, or (B, R) of some."""
        self.by_round.setdefault(name, np.empty(self._shape))[rounds] = values
        self.booked = rounds.stop if isinstance(rounds, slice) else rounds + 1

    def book_own(self, rounds: int | slice, y: Sequence[Array], y_hat: Sequence[Array]) -> None:
        """Enter the user's metrics of a round, or of B rounds: of each replicate, y (n,) and y_hat (n,) or (B, n)."""
        for name, path in self.metrics.items():
            losses = [losses_of(name, path, *pair) for pair in zip(y, y_hat, strict=True)]
            means = np.array([each.sum(axis=-1) / (each.shape[-1] or np.nan) for each in losses])
            self.book(f"test_{name}", rounds, means.T)

    def end(self, t: int) -> None:
        """Judge no round after round t, which is booked."""
        self.by_round = {name: values[:t] for name, values in self.by_round.items()}

    def close(self) -> None:
        """Finish the books after the last round: here they are finished."""

    def columns(self) -> Columns:
        """All of them."""
        return Columns(dict(self.by_round), dict(self.by_client), dict(self.at_the_end))


class Panel(NamedTuple):
    """One figure of a run.

    Parameters
    ----------
    label : str
        Of the axis.
    curves : dict of str to str
        Columns of the rounds, and their names in the figure, where {method} is the method's label; columns that a run
        does not have are left out.
    log : bool
        Whether the axis is logarithmic.
    nominal : dict of str to float, or None
        The values that columns should have. Each column's last value is then drawn beside them, instead of curves. A
        run that has none of the columns has no such figure.
    """

    label: str
    curves: Mapping[str, str]
    log: bool = True
    nominal: Mapping[str, float] | None = None


class Probe(NamedTuple):
    """Data with a change that must not change a method's outcome.

    Parameters
    ----------
    problem : as the task's
    why : str
        What was changed.
    replicates : tuple of int or None
        Replicates with these data; None for all.
    rounds : int or None
        First rounds, in which nothing may differ; None for all.
    hidden : str or None
        Part of the outcome that may not differ in the next round either.
    """

    problem: Any
    why: str
    replicates: tuple[int, ...] | None = None
    rounds: int | None = None
    hidden: str | None = None


@dataclass(frozen=True)
class Task:
    """One kind of data. A subclass of your own overrides what differs from the defaults, which are those of a stream.

    Parameters
    ----------
    problem : Any
        The data, `world.problem` to a method; with rounds, clients, dimension, site, site_names, present and
        rows_left_out as `fkl.data.problem.Problem` has them.
    redraw : callable or None
        Given where every replicate has its own samples and graph, or where other clients take part in each. Such
        replicates run one at a time, so that memory holds one of them; `problem` is then that of replicate 0.
    """

    problem: Any
    redraw: Redraw | None = None

    of_features: ClassVar[bool] = False
    """Whether parties have different features of the same samples, as partition=vertical gives them."""
    of_rounds: ClassVar[bool] = False
    """Whether there are rounds that clients can miss."""
    has_rows_at_clients: ClassVar[bool] = False
    """Whether clients have rows of their own, which each could learn from alone, or one learner from all."""
    judged_as_it_learns: ClassVar[bool] = False
    """Whether the error so far is that of predictions that were made so far."""
    judge_counts: ClassVar[bool] = True
    """Whether a rehearsal measures the judge too; False where a judge is slow, and holds less than methods do."""
    room: ClassVar[int] = 2**30
    """Bytes that replicates which run together should not pass."""

    @classmethod
    def of(cls, run: Run) -> Self:
        """Read, scale and partition the data; one generator serves all of it, so that it follows from the seed."""
        generator = shared_generator(run.settings.seed, Role.DATA)
        given = samples.split_table(run, samples.read_table(run, generator), generator)
        return cls(samples.in_precision(given, run))

    def describe(self) -> str:
        """A line about the data of a run."""
        problem = self.problem
        words = [plural(problem.clients, "client"), self.amount, plural(problem.dimension, "feature")]
        left_out = [f"{plural(problem.rows_left_out, 'row')} left out"] if problem.rows_left_out else []
        return ", ".join([*words, *left_out])

    @property
    def amount(self) -> str:
        """How many samples, or rounds."""
        return plural(self.problem.rounds, "round")

    @property
    def targets(self) -> NDArray[Any]:
        """Values that are predicted."""
        return self.problem.y

    @property
    def signs(self) -> bool:
        """Whether a prediction's sign is a class of the target, and its size is not."""
        return False

    def sample_rows(self, count: int) -> NDArray[np.floating]:
        """Features of about so many samples, (n, d), for `fkl.kernels.around_median`, none of them test samples.

        They are the first samples of a stream, where all samples are predicted before they are learned from.
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
        """How many replicates should run together.

        Parameters
        ----------
        rehearse : callable
            Plays one round of one replicate, and returns about how many bytes it keeps, and how many it needs at most.
        """
        kept, peak = rehearse()
        return max(1, min(self.room // kept, int(SHARE_OF_FREE * memory.available_bytes()) // peak))

    def for_few_clients(self, clients: int) -> Any:
        """The problem with at most so many clients, to compile with; the same where clients cost little."""
        return self.problem

    def scales(self, world: World) -> tuple[Scale, ...]:
        """The scaling of each replicate's samples before the methods of a world see them."""
        return (getattr(world.problem, "scale", Scale()),) * len(world.streams.replicates)

    # --- the records

    def first_round(self) -> Any:
        """The smallest part of the problem whose summary has all columns."""
        raise NotImplementedError

    def beside(self, method: Algorithm, dictionary: Dictionary, cache: Path | None) -> Any:
        """Results that `columns` compares with, found once a run, outside the clock.

        Parameters
        ----------
        method : Algorithm
        dictionary : Dictionary
        cache : Path or None
            Folder to keep it in for other runs.
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
        beside : as `beside` returned it, or None for nothing to compare with
        """
        return judge.columns()

    def by_round(self, judge: Any, elapsed: NDArray[np.float64], beside: Any = None) -> Values:
        """The columns of the rounds alone, of a run that may be under way; parameters as for `columns`."""
        return self.columns(judge, elapsed, beside).rounds

    def panels(self) -> Mapping[str, Panel]:
        """A run's figures by the names of their files."""
        return {}

    # --- the conformance suite

    @classmethod
    def small(cls, algorithm: type) -> tuple[str, ...]:
        """Overrides with which an algorithm of this class runs in a moment: its kind of data, and few rounds."""
        raise NotImplementedError

    def shown(self, world: World, outcome: Any) -> dict[str, Any]:
        """All parts of an outcome by name, with an entry for each replicate.

        Raises
        ------
        fkl.basics.errors.BrokenPromiseError
            If its shape is not the one that the judge expects.
        """
        raise NotImplementedError

    def in_doubles(self) -> Any:
        """The problem with features in float64."""
        return replace(self.problem, x=self.problem.x.astype(np.float64))

    def other_samples(self) -> Any:
        """The problem with other samples, as many and of the same clients."""
        return replace(self.problem, x=mirrored(self.problem.x), y=mirrored(self.problem.y))

    def probes(self, outcome: Any) -> Iterator[Probe]:
        """Data whose labels differ where a method must not know them.

        Parameters
        ----------
        outcome : Any
            Of the last round, all replicates together.
        """
        raise NotImplementedError


def require_lam(algorithm: Any) -> None:
    """Refuse a method without the weight of its regulariser, which regret and optimum depend on."""
    if not hasattr(algorithm, "lam"):
        kind = type(algorithm).__name__
        raise FklError(f"algo: {kind} has no field lam, the weight of the regulariser; write lam: float = 0.0 for none")


def overrides_for_keys(algorithm: type, **most: int) -> tuple[str, ...]:
    """Overrides for those of these keys that an algorithm's class has."""
    keys = {field.name for field in fields(algorithm)} if is_dataclass(algorithm) else set()
    return tuple(f"++algo.{key}={value}" for key, value in most.items() if key in keys)


def mirrored(y: NDArray[Any]) -> NDArray[Any]:
    """Other numbers in the same range; of two classes, the other class."""
    return y.min() + y.max() - y


def require_shape(name: str, values: Any, *shape: int | None) -> None:
    """Refuse an array of an outcome whose shape is another; None for any length."""
    found = np.shape(values)
    fits = len(found) == len(shape) and all(want in (None, size) for size, want in zip(found, shape, strict=True))
    if not fits:
        letters = ", ".join(["R", "K", *["any"] * len(shape)][: len(shape)])
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise BrokenPromiseError(f"{name} has shape {found}, must be ({letters}) = ({wanted})")
