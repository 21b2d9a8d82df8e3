"""A task: one kind of data, and all that a run, its records and the conformance suite need to know of it.

A family of methods names its own with ``task: ClassVar = BatchTask``; a method that names none learns from a stream.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.errors import BrokenPromiseError, FklError, plural
from fkl.basics.random_streams import Role, shared_generator
from fkl.config import Run
from fkl.contract.world import Algorithm, World
from fkl.data.scale import Scale
from fkl.kernels import Dictionary
from fkl.network import Topology
from fkl.tasks import run_samples as samples
from fkl.wire.ledger import BETWEEN_PEERS, WITH_A_SERVER, Direction

Redraw = Callable[[int], tuple[Any, Topology | None]]
"""Samples and graph of a replicate by its number; None for the graph that all share."""
Values = dict[str, NDArray[Any]]
LARGEST = 1e60
"""Entry of a theta that is still one: from here on its errors, or their spread over replicates, may be none."""
LARGEST_ERROR = LARGEST**2
SHARE_OF_FREE = 1 / 2
"""Most of the free memory that replicates which run together may be chosen to take."""


class Columns(NamedTuple):
    """What the records tell of some replicates besides traffic and time, by name of the column.

    Parameters
    ----------
    rounds : dict of str to (T, R)
    clients : dict of str to (R, K) or (K,)
    summary : dict of str to (R,)
        Of the whole run; the last round's columns are in the summary anyway.
    """

    rounds: Values
    clients: Values
    summary: Values


class Judge(Protocol):
    """Accumulates what the rounds of some replicates showed; one of your own is a dataclass, for checkpoints."""

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
        Rounds whose columns are known; loggers may be told of these. A judge without it is asked at the end only.
    """

    def __init__(self, rounds: int, replicates: int) -> None:
        self._shape = rounds, replicates
        self.booked = 0
        self.by_round: Values = {}
        self.by_client: Values = {}
        self.at_the_end: Values = {}

    def book(self, name: str, rounds: int | slice, values: Any) -> None:
        """Enter values (R,) of a round, or (B, R) of some."""
        self.by_round.setdefault(name, np.empty(self._shape))[rounds] = values
        self.booked = rounds.stop if isinstance(rounds, slice) else rounds + 1

    def close(self) -> None:
        """Nothing is left to do."""

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
        Columns of the rounds, and what the figure calls them, {method} being the method's label; those that a run has
        not are left out.
    log : bool
        Whether the axis is logarithmic.
    nominal : dict of str to float, or None
        Where each column's last value is drawn, beside the line on which it is what it should be, if there is no curve
        of rounds to draw; a run that has none of the columns has no such figure.
    """

    label: str
    curves: Mapping[str, str]
    log: bool = True
    nominal: Mapping[str, float] | None = None


class Probe(NamedTuple):
    """Other data, of which a method must show nothing.

    Parameters
    ----------
    problem : as the task's
    why : str
        What is other about it.
    replicates : tuple of int or None
        Whose data these are; None for all.
    rounds : int or None
        First rounds in which nothing may differ; None for all.
    hidden : str or None
        What may not differ in the round after these either.
    """

    problem: Any
    why: str
    replicates: tuple[int, ...] | None = None
    rounds: int | None = None
    hidden: str | None = None


@dataclass(frozen=True)
class Task:
    """One kind of data. A kind of your own says what differs from the stream that these methods are made for.

    Parameters
    ----------
    problem : Any
        The data, `world.problem` to a method; with rounds, clients, dimension, site, site_names, present and
        rows_left_out as `fkl.data.problem.Problem` has them.
    redraw : callable or None
        Where every replicate has samples and a graph of its own, or other clients that take part. Such replicates run
        one at a time, so that the memory holds one of them; `problem` is then that of replicate 0, of whoever is there.
    """

    problem: Any
    redraw: Redraw | None = None

    of_features: ClassVar[bool] = False
    """Whether parties have different features of the same samples, as partition=vertical gives them."""
    of_rounds: ClassVar[bool] = False
    """Whether there are rounds that clients can miss."""
    judge_counts: ClassVar[bool] = True
    """Whether a rehearsal has to measure the judge too; not where it holds less than methods do, and takes its time."""
    room: ClassVar[int] = 2**30
    """Bytes that replicates which run together should not pass."""

    @classmethod
    def of(cls, run: Run) -> Self:
        """Read, scale and partition the data; one generator serves all of it, so that it follows from the seed."""
        generator = shared_generator(run.settings.seed, Role.DATA)
        given = samples.split_table(run, samples.read_table(run, generator), generator)
        return cls(samples.in_precision(given, run))

    def describe(self) -> str:
        """A line about the data that a run is about to see."""
        problem = self.problem
        words = [plural(problem.clients, "client"), self.amount, plural(problem.dimension, "feature")]
        return ", ".join([*words, f"{plural(problem.rows_left_out, 'row')} left out"])

    @property
    def amount(self) -> str:
        """How many samples, or rounds."""
        return plural(self.problem.rounds, "round")

    @property
    def targets(self) -> NDArray[Any]:
        """Values that are predicted."""
        y: NDArray[Any] = self.problem.y
        return y

    @property
    def signs(self) -> bool:
        """Whether a prediction's sign is a class of the target, and its size is not."""
        return False

    def sample_rows(self, count: int) -> NDArray[np.floating]:
        """Features of about so many samples, (n, d), for `fkl.kernels.around_median`: none that is tested on later.

        Of a stream, whose samples are all predicted before they are learned from, the first.
        """
        x: NDArray[np.floating] = self.problem.x[self.problem.present][:count]
        return x

    # --- the loop

    def directions(self, topology: Topology | None) -> tuple[Direction, ...]:
        """What the ledger counts."""
        return WITH_A_SERVER if topology is None else BETWEEN_PEERS

    def judge(self, world: World, method: Algorithm) -> Judge:
        """Judge of the replicates of a world."""
        raise NotImplementedError

    def replicates_at_once(self, rehearse: Callable[[], tuple[int, int]]) -> int:
        """How many replicates should run together.

        Parameters
        ----------
        rehearse : callable
            Plays one round of one replicate, and tells how many bytes it keeps, about, and needs at most.
        """
        kept, peak = rehearse()
        return max(1, min(self.room // kept, int(SHARE_OF_FREE * memory.available_bytes()) // peak))

    def for_few_clients(self, clients: int) -> Any:
        """The problem with at most so many clients, to compile with; the same where clients cost little."""
        return self.problem

    def scales(self, world: World) -> tuple[Scale, ...]:
        """What each replicate's samples went through before the methods of a world see them."""
        return (getattr(world.problem, "scale", Scale()),) * len(world.streams.replicates)

    # --- the records

    def first_round(self) -> Any:
        """The problem with as little as has all the columns of the summary."""
        raise NotImplementedError

    def beside(self, method: Algorithm, dictionary: Dictionary, cache: Path | None) -> Any:
        """What `columns` compares with, found once a run and outside the clock.

        Parameters
        ----------
        method : Algorithm
        dictionary : Dictionary
        cache : Path or None
            Folder to keep it in for other runs.
        """
        return None

    def columns(self, judge: Any, elapsed: NDArray[np.float64], beside: Any = None) -> Columns:
        """What the records tell.

        Parameters
        ----------
        judge : Judge
            Of one of this task's runs that has ended.
        elapsed : (T, R)
            Seconds of each replicate up to the end of each round.
        beside : as `beside` returned it, or None for nothing to compare with
        """
        columns: Columns = judge.columns()
        return columns

    def panels(self) -> Mapping[str, Panel]:
        """A run's figures by the names of their files."""
        return {}

    # --- the conformance suite

    @classmethod
    def small(cls, algorithm: type) -> tuple[str, ...]:
        """Overrides under which an algorithm of this class runs in a moment: its kind of data, and few rounds."""
        raise NotImplementedError

    def shown(self, world: World, outcome: Any) -> dict[str, Any]:
        """Everything that an outcome tells, by name, an entry a replicate.

        Raises
        ------
        fkl.basics.errors.BrokenPromiseError
            If it has not the shape that the judge expects.
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
    """Refuse a method without the weight of its regulariser, which regret and optimum are of."""
    if not hasattr(algorithm, "lam"):
        kind = type(algorithm).__name__
        raise FklError(f"algo: {kind} has no field lam, the weight of the regulariser; write lam: float = 0.0 for none")


def overrides_for_keys(algorithm: type, **most: int) -> tuple[str, ...]:
    """Overrides for those of these keys that an algorithm's class has."""
    keys = {field.name for field in fields(algorithm)} if is_dataclass(algorithm) else set()
    return tuple(f"++algo.{key}={value}" for key, value in most.items() if key in keys)


def mirrored(y: NDArray[Any]) -> NDArray[Any]:
    """Other numbers between the same ends; the other class, where there are two."""
    return y.min() + y.max() - y


def require_shape(name: str, values: Any, *shape: int | None) -> None:
    """Refuse an array of an outcome whose shape is another; None for any length."""
    found = np.shape(values)
    fits = len(found) == len(shape) and all(want in (None, size) for size, want in zip(found, shape, strict=True))
    if not fits:
        letters = ", ".join(["R", "K", *["any"] * len(shape)][: len(shape)])
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise BrokenPromiseError(f"{name} has shape {found}, must be ({letters}) = ({wanted})")
