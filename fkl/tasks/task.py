"""A task: one kind of data, with all that a run, its records and the conformance suite need to know about it.

A family of methods sets its task with ``task: ClassVar = BatchTask``; a method without a task learns from a stream.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from fkl.basics import memory
from fkl.basics.arrays import Array
from fkl.basics.errors import (
    BadValue,
    BrokenPromiseError,
    FklError,
    count_of,
    in_one_line,
    key_prefix,
    require,
    with_own_line,
)
from fkl.basics.memory import by_block, row_blocks
from fkl.basics.random_streams import Role, Streams, shared_generator
from fkl.config.loading import Run
from fkl.contract.world import Algorithm, World
from fkl.data.dealt_rows import is_judged
from fkl.data.encoder import WORDS_SHOWN, Encoder
from fkl.data.normalise import normalise_like, normalise_table
from fkl.data.problem import Scale, Table
from fkl.data.store import Store
from fkl.kernels import Dictionary
from fkl.network import Topology
from fkl.screen.messages import print_note
from fkl.wire.channel import BETWEEN_PEERS, WITH_A_SERVER, Direction


def losses_of(name: str, path: str, y: Array, y_hat: Array) -> Array:
    """Loss of each prediction by a user's metric.

    Parameters
    ----------
    name, path : str
        Name of the metric and path of its function, whose module is already imported. A judge does not hold the
        function, because checkpoints cannot store it.
    y : (n,)
    y_hat : (..., n)

    Returns
    -------
    (..., n) array
        Losses; all NaN if a prediction is not finite, which other code reports.
    """
    # A user's function must not change our arrays
    targets, predictions = np.broadcast_to(y, y_hat.shape).flatten(), y_hat.astype(np.float64).flatten()
    if not len(targets) or not np.isfinite(predictions).all():
        return np.full(y_hat.shape, np.nan)
    module, _, function = path.rpartition(".")
    # Call it, and check what it returns
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
"""A function from a replicate's number to its samples and its graph; None for the shared graph."""
Values = dict[str, NDArray[Any]]
LARGEST = 1e60
"""Bound of the entries of theta: with larger ones, errors or their spread over replicates may not be finite."""
LARGEST_ERROR = LARGEST**2
SHARE_OF_FREE = 1 / 2
"""Largest share of the free memory for replicates that run together."""


class RecordColumns(NamedTuple):
    """Columns of the records of replicates that ran together, by name, without traffic and time.

    Parameters
    ----------
    rounds : dict of str to (T, R)
    clients : dict of str to (R, K) or (K,)
    summary : dict of str to (R,)
        Columns of the whole run; the recorded summary also has the last round's columns.
    """

    rounds: Values
    clients: Values
    summary: Values


class RowLosses(NamedTuple):
    """The loss of each judged sample of a replicate; on a stream, its loss before the method learns from it.

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
    """Accumulates outcomes of replicates; write your own judge as a dataclass, which checkpoints can store."""

    def enter(self, t: int, outcome: Any) -> bool:
        """Record round t; return whether all numbers are finite."""
        ...

    def close(self) -> None:
        """Finish the records after the last round."""
        ...


class Books:
    """Base class of judges that fill their columns round by round.

    Attributes
    ----------
    booked : int
        Number of rounds whose columns loggers may read. A judge without this attribute is read only at the end.
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

    def record_values(self, name: str, rounds: int | slice, values: Any) -> None:
        """Record values of one round, (R,), or of several rounds, (B, R)."""
        self.by_round.setdefault(name, np.empty(self._shape))[rounds] = values
        self.booked = rounds.stop if isinstance(rounds, slice) else rounds + 1

    def book_own(self, rounds: int | slice, y: Sequence[Array], y_hat: Sequence[Array]) -> None:
        """Record the user's metrics of one or B rounds: for each replicate, y (n,) and y_hat (n,) or (B, n)."""
        for name, path in self.metrics.items():
            losses = [losses_of(name, path, *pair) for pair in zip(y, y_hat, strict=True)]
            means = np.array([each.sum(axis=-1) / (each.shape[-1] or np.nan) for each in losses])
            self.record_values(f"test_{name}", rounds, means.T)

    def end(self, t: int) -> None:
        """Remove the records of all rounds after the first t."""
        self.by_round = {name: values[:t] for name, values in self.by_round.items()}

    def close(self) -> None:
        """Finish the records after the last round; here there is nothing to do."""

    def columns(self) -> RecordColumns:
        """All columns."""
        return RecordColumns(dict(self.by_round), dict(self.by_client), dict(self.at_the_end))


class Panel(NamedTuple):
    """One figure of a run.

    Parameters
    ----------
    label : str
        Label of the axis.
    curves : dict of str to str
        Columns of the rounds and their names in the figure, in which {method} is the method's label; missing columns
        are omitted.
    log : bool
        Whether the axis is logarithmic.
    nominal : dict of str to float, or None
        Expected values of columns. The figure then compares each column's last value with them, instead of showing
        curves. A run without these columns has no such figure.
    between : tuple of two str, or None
        Two columns; the area between their curves is shaded.
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
    problem : like the task's problem
    why : str
        Description of the change.
    replicates : tuple of int or None
        Replicates with these data; None for all.
    rounds : int or None
        Number of first rounds that must not change; None for all.
    hidden : tuple of str
        Parts of the outcome that must not change in the next round either.
    """

    problem: Any
    why: str
    replicates: tuple[int, ...] | None = None
    rounds: int | None = None
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """One kind of data. Your own subclass overrides the defaults, which suit a stream.

    Parameters
    ----------
    problem : Any
        The data, `world.problem` in a method; with rounds, clients, dimension, site, site_names, present and
        rows_left_out as in `fkl.data.problem.Problem`.
    redraw : callable or None
        Set if every replicate has its own samples and graph, or its own participants. Such replicates run one at a
        time, so memory holds only one; `problem` is then that of replicate 0.
    """

    problem: Any
    redraw: Redraw | None = None

    of_features: ClassVar[bool] = False
    """Whether parties have different features of the same samples, as with partition=vertical."""
    of_rounds: ClassVar[bool] = False
    """Whether clients can miss rounds."""
    has_rows_at_clients: ClassVar[bool] = False
    """Whether clients have their own rows, so each could learn alone, or a single learner from all rows."""
    judged_as_it_learns: ClassVar[bool] = False
    """Whether the error in a round is over all predictions so far."""
    of_classes: ClassVar[bool] = False
    """Whether predictions are classes, whatever the loss."""
    judge_counts: ClassVar[bool] = True
    """Whether a rehearsal also measures the judge; False if the judge is slow and needs less memory than methods."""
    room: ClassVar[int] = 2**30
    """Memory limit, in bytes, for replicates that run together."""

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """Read, scale and partition the data; one generator makes all draws, so they follow from the seed."""
        generator = shared_generator(run.settings.seed, Role.DATA)
        given = split_table(run, read_table(run, generator), generator)
        return cls(in_precision(given, run))

    def describe_data(self) -> str:
        """A line that describes the data of a run."""
        problem = self.problem
        parts = [count_of(problem.clients, "client"), self.amount, count_of(problem.dimension, "feature")]
        left_out = [f"{count_of(problem.rows_left_out, 'row')} dropped"] if problem.rows_left_out else []
        return ", ".join([*parts, *left_out, *self.incomplete])

    @property
    def incomplete(self) -> list[str]:
        """Words about rows with missing cells, if any were dropped."""
        found = getattr(self.problem, "incomplete", None)
        return [str(found)] if found is not None and found.rows else []

    @property
    def amount(self) -> str:
        """Number of samples or rounds, with its unit."""
        return count_of(self.problem.rounds, "round")

    @property
    def targets(self) -> NDArray[Any]:
        """Target values of the predictions."""
        return self.problem.y

    @property
    def signs(self) -> bool:
        """Whether only the sign of a prediction matters, as a class of the target."""
        return False

    @property
    def class_by_class(self) -> bool:
        """Whether a method learns one function for each of three or more classes, see `OneAgainstRest`."""
        return False

    def sample_rows(self, count: int) -> NDArray[np.floating]:
        """Features of about `count` samples, (n, d), without test samples, for `fkl.kernels.dictionary`.

        They are the first samples of a stream: there, each sample is a test sample before a method learns from it.
        """
        return self.problem.x[self.problem.present][:count]

    # --- the loop

    def directions(self, topology: Topology | None) -> tuple[Direction, ...]:
        """The directions that the ledger counts."""
        return WITH_A_SERVER if topology is None else BETWEEN_PEERS

    def judge(self, world: World, method: Algorithm) -> Judge:
        """A judge for the replicates of a world."""
        raise NotImplementedError

    def replicates_at_once(self, rehearse: Callable[[], tuple[int, int]]) -> int:
        """Number of replicates that should run together.

        Parameters
        ----------
        rehearse : callable
            Runs one round of one replicate; returns approximately the bytes that it holds, and its peak.
        """
        kept, peak = rehearse()
        return max(1, min(self.room // kept, int(SHARE_OF_FREE * memory.available_bytes()) // peak))

    def for_few_clients(self, clients: int) -> Any:
        """The problem with at most this many clients, to compile code; unchanged if clients cost little."""
        return self.problem

    def encoder(self, replicate: int) -> Encoder | None:
        """The encoder that made features from a table's cells for this replicate."""
        first = getattr(self.problem, "encoder", None)
        learned = self.redraw is not None and first is not None and (first.words or first.fill)
        return self.redraw(replicate)[0].encoder if self.redraw is not None and learned else first

    def scales_of_replicates(self, world: World) -> tuple[Scale, ...]:
        """The scale of each replicate's samples."""
        return (getattr(world.problem, "scale", Scale()),) * len(world.streams.replicates)

    # --- the records

    def first_round(self) -> Any:
        """The smallest part of the problem with a complete summary."""
        raise NotImplementedError

    def hindsight_losses(self, method: Algorithm, dictionary: Dictionary, cache: Path | None) -> Any:
        """Reference results for `columns`, computed once per run, outside the clock.

        Parameters
        ----------
        method : Algorithm
        dictionary : Dictionary
        cache : Path or None
            Folder in which the results are stored for other runs.
        """
        return None

    def columns(self, judge: Any, elapsed: NDArray[np.float64], hindsight: Any = None) -> RecordColumns:
        """The columns of the records.

        Parameters
        ----------
        judge : Judge
            Judge of a finished run of this task.
        elapsed : (T, R)
            Seconds of each replicate up to the end of each round.
        hindsight : the result of `hindsight_losses`, or None for no references
        """
        return judge.columns()

    def by_round(self, judge: Any, elapsed: NDArray[np.float64], hindsight: Any = None) -> Values:
        """Only the columns of the rounds, also during a run; parameters as in `columns`."""
        return self.columns(judge, elapsed, hindsight).rounds

    def panels(self) -> Mapping[str, Panel]:
        """Figures of a run, by file name."""
        return {}

    # --- the conformance suite

    @classmethod
    def small_settings(cls, algorithm: type) -> tuple[str, ...]:
        """Overrides with which a method of this class runs quickly: its kind of data, and few rounds."""
        raise NotImplementedError

    def values_to_show(self, world: World, outcome: Any) -> dict[str, Any]:
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

    def other_samples(self, numbers: np.random.Generator) -> Any:
        """The problem with other samples, which `numbers` draws: the same number, for the same clients."""
        return replace(self.problem, x=other_values(self.problem.x, numbers), y=other_values(self.problem.y, numbers))

    def other_targets(self, outcome: Any, numbers: np.random.Generator) -> Iterator[Probe]:
        """Data with other targets, in places where a method must not know them.

        Parameters
        ----------
        outcome : Any
            Outcome of the last round, with all replicates.
        numbers : Generator
            Draws the places and the targets, so no method knows them.
        """
        raise NotImplementedError


def require_lam(algorithm: Any) -> None:
    """Raise FklError for a method without its regulariser's weight, on which regret and optimum depend."""
    if not hasattr(algorithm, "lam"):
        kind = type(algorithm).__name__
        raise FklError(f"algo: {kind} has no field lam, the weight of the regulariser; write lam: float = 0.0 for none")


def overrides_for_keys(algorithm: type, **most: int) -> tuple[str, ...]:
    """Overrides for these keys, if an algorithm's class has them."""
    keys = {field.name for field in fields(algorithm)} if is_dataclass(algorithm) else set()
    return tuple(f"++algo.{key}={value}" for key, value in most.items() if key in keys)


def other_values(values: NDArray[Any], numbers: np.random.Generator) -> NDArray[Any]:
    """Another number in each place, drawn from those of the array; with two classes, this is the other class."""
    known, place = np.unique(values, return_inverse=True)
    further = numbers.integers(1, max(len(known), 2), values.shape)
    return known[(place.reshape(values.shape) + further) % len(known)]


def drawn_rounds(rounds: int, most: int, numbers: np.random.Generator) -> list[int]:
    """At most so many rounds, drawn without replacement, in order; the first and the last are among them."""
    drawn = numbers.choice(rounds, min(most, rounds), replace=False)
    return sorted({0, rounds - 1, *drawn.tolist()})


def require_shape(name: str, values: Any, *shape: int | None) -> None:
    """Raise BrokenPromiseError if an array of an outcome has another shape; None allows any length."""
    found = np.shape(values)
    fits = len(found) == len(shape) and all(want in (None, size) for size, want in zip(found, shape, strict=True))
    if not fits:
        letters = ", ".join(["R", "K", *["any"] * len(shape)][: len(shape)])
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise BrokenPromiseError(f"{name} has shape {found}, must be ({letters}) = ({wanted})")


NOMINAL = {"coverage_50": 0.5, "coverage_80": 0.8, "coverage_95": 0.95}
"""Probability of each central interval, by the column with the share of targets in it."""
CALIBRATION: Panel = Panel(
    "share of targets in the interval",
    dict.fromkeys(NOMINAL, "observed, for the central interval around a client's prediction"),
    log=False,
    nominal=NOMINAL,
)


@dataclass
class Calibration:
    """Judges normal distributions N(y_hat, variance) of targets that the method has not seen.

    coverage_50, coverage_80, coverage_95
        Share of targets in the central interval with this probability; an overconfident method has a smaller share.
    log_score
        Mean log density of the targets, in nats (Good, 1952): larger is better, and on average it is largest for the
        true distribution.
    log_score_mixture
        The same under the method's own predictive distribution. If that is a mixture of normal distributions, N(y_hat,
        variance) has its mean and variance. Bounds of the evidence are about the mixture.

    Parameters
    ----------
    inside : (3, R, K)
        Number of targets so far in each interval.
    log_density, log_density_mixture : (R, K)
        Sums of log densities over the targets so far.
    rounds : (5, T, R)
        Shares and mean log densities over all clients' targets so far, NaN before the first target.
    """

    inside: Array
    log_density: Array
    log_density_mixture: Array
    rounds: Array

    columns: ClassVar[tuple[str, ...]] = (*NOMINAL, "log_score", "log_score_mixture")

    @classmethod
    def before_any_round(cls, rounds: int, replicates: int, clients: int) -> Self:
        """State before the first round."""
        shape, unknown = (replicates, clients), np.full((len(cls.columns), rounds, replicates), np.nan)
        return cls(np.zeros((len(NOMINAL), *shape)), np.zeros(shape), np.zeros(shape), unknown)

    def enter(
        self,
        t: int,
        error: Array,
        variance: Array,
        present: NDArray[np.bool_],
        samples: float,
        log_density: Array | None = None,
    ) -> None:
        """Record round t: errors and variances (R, K) of the present clients (K,), and the number of samples so far.

        `log_density` (R, K) is that under the method's own predictive distribution; None if this is normal.
        """
        # How many targets are inside each nominal interval
        for place, nominal in enumerate(NOMINAL.values()):
            self.inside[place] += present & (error**2 <= scipy.special.ndtri((1 + nominal) / 2) ** 2 * variance)
        # Log density of a normal distribution, and of the mixture if the method gives it
        normal = -0.5 * (np.log(2 * np.pi * variance) + error**2 / variance)
        self.log_density += np.where(present, normal, 0.0)
        self.log_density_mixture += np.where(present, normal if log_density is None else log_density, 0.0)
        self.rounds[:, t] = self._sums_of_scores().sum(axis=-1) / samples

    def by_round(self) -> Values:
        """Columns of the rounds, (T, R)."""
        return dict(zip(self.columns, self.rounds, strict=True))

    def by_client(self, samples: NDArray[np.int64]) -> Values:
        """Columns of the clients, (R, K), given their numbers of samples (K,)."""
        return dict(zip(self.columns, self._sums_of_scores() / np.maximum(samples, 1), strict=True))

    def _sums_of_scores(self) -> Array:
        return np.concatenate([self.inside, self.log_density[None], self.log_density_mixture[None]])


def worst_tenth(errors: Array) -> Array:
    """Mean error of the worst 10 % of clients (rounded down, at least one), (R,) from (R, K)."""
    worst = max(1, errors.shape[1] // 10)
    return _in_order(errors)[:, -worst:].mean(axis=1)


def gini_coefficient(errors: Array) -> Array:
    """Gini coefficient sum_ij |e_i - e_j| / (2 K sum_i e_i), (R,) from (R, K): 0 for equal errors, always below 1.

    For e_1 <= ... <= e_K it is 2 sum_i i e_i / (K sum_i e_i) - (K + 1) / K.
    """
    # Sort each replicate's errors, weight them by rank
    K = errors.shape[1]
    total, ordered = errors.sum(axis=1), _in_order(errors)
    equal = ordered[:, 0] == ordered[:, -1]
    for some in row_blocks(K):
        ordered[:, some] *= np.arange(some.start + 1.0, some.stop + 1.0)
    weighted = ordered.sum(axis=1)  # the bits of a matrix product would depend on R
    share = 2 * weighted / (K * np.where(total > 0, total, 1)) - (K + 1) / K
    return np.where((total == 0) | equal, 0.0, share)


def _in_order(errors: Array) -> Array:
    """The errors of each replicate, (R, K), in ascending order."""
    ordered = np.empty(errors.shape)
    ordered[...] = errors
    ordered.sort(axis=1)
    return ordered


def fairness_columns(name: str, sums: Array, count: NDArray[np.int64], site: NDArray[np.int64]) -> dict[str, Array]:
    """Columns of a summary: worst tenth and Gini coefficient over clients and, if there are several, over sites.

    Parameters
    ----------
    name : str
        Name of the error.
    sums : (R, K)
        Sums of errors over each client's samples.
    count : (K,)
        Number of samples of each client; clients without samples are left out.
    site : (K,)
        Site of each client.
    """
    # Over clients, and if there are several sites over these as well
    columns = _worst_and_gini(name, "", sums, count)
    if (site != site[0]).any():
        belongs = [site == one for one in np.unique(site)]
        by_site = np.stack([np.ascontiguousarray(sums[:, own]).sum(axis=1) for own in belongs], axis=1)
        columns |= _worst_and_gini(name, "_sites", by_site, np.array([count[own].sum() for own in belongs]))
    return columns


def _worst_and_gini(name: str, what: str, sums: Array, count: NDArray[np.int64]) -> dict[str, Array]:
    judged = count > 0
    if not judged.any():
        return {f"{name}_{figure}{what}": np.full(len(sums), np.nan) for figure in ("worst_tenth", "gini")}
    errors, every = np.empty((len(sums), int(judged.sum()))), judged.all()
    for of_one, sums_of_one in zip(errors, sums, strict=True):
        np.divide(sums_of_one if every else sums_of_one[judged], count if every else count[judged], out=of_one)
    return {f"{name}_worst_tenth{what}": worst_tenth(errors), f"{name}_gini{what}": gini_coefficient(errors)}


# ---- Samples and graph of a run, from data set, scaling, partition and topology, and the clients that take part


def differs_by_replicate(run: Run) -> bool:
    """Whether the clients that take part, or answer in time, differ between replicates."""
    return "participation" in run.conditions or getattr(run.network, "timed", False)


def present_in_replicate(run: Run, present: NDArray[np.bool_], replicate: int) -> NDArray[np.bool_]:
    """Whether each client is present and takes part in a replicate, (T, K).

    Raises
    ------
    fkl.basics.errors.FklError
        If no client takes part in any round.
    """
    # Participation draws for each replicate by itself
    participation = run.conditions.get("participation")
    if participation is None:
        return present
    [generator] = Streams(run.settings.seed, (replicate,)).generators(Role.PARTICIPATION)
    with key_prefix("participation"):
        taking_part: NDArray[np.bool_] = present & participation.present(present, generator)
    if not taking_part.any():
        raise FklError(f"participation: no client takes part in any round of replicate {replicate}")
    return taking_part


def require_rounds(run: Run, of_rounds: bool) -> None:
    """Raise BadValue for participation or deadlines with a method in which no client can miss a round.

    Parameters
    ----------
    run : Run
    of_rounds : bool
        Whether the method's task has rounds that clients can miss.
    """
    # Methods in which every client must take part, and what would let clients miss a round
    method = run.algo
    several = of_rounds and not (getattr(method, "alone", False) or getattr(method, "in_turn", False))
    allowed = f"null for {method.label}, whose rounds no client can miss"
    given = type(run.conditions.get("participation")).__name__
    require("participation" not in run.conditions or several, "participation", given, allowed)
    for key in ("compute_s", "link_spread", "deadline_s"):
        value = getattr(run.network, key, None)
        words = f"null or 0 for {method.label}, whose rounds do not wait for clients"
        require(not value or several, f"network.{key}", value, words)
    deadline, compute = (getattr(run.network, key, None) for key in ("deadline_s", "compute_s"))
    fits = deadline is None or compute is not None or not getattr(method, "on_a_graph", False)
    words = f"null without compute_s for {method.label}: on a graph, it limits the agents' compute time"
    require(fits, "network.deadline_s", deadline, words)


def read_table(run: Run, generator: np.random.Generator) -> Table:
    """The requested part of the data set's table, scaled."""
    table = whole_table(run, generator)
    if is_judged(run.settings.rows):
        table = replace(table, row=np.arange(len(table.y)))
    table = table.part(run.settings.rows)
    return scaled_by(run, table, ~table.tested if table.cells is not None and table.tested is not None else None)


def scaled_by(run: Run, table: Table, rows: NDArray[np.bool_] | None = None) -> Table:
    """The table, encoded and scaled according to the training rows, `rows` (n,); None for all rows.

    A published table is scaled according to all its rows, as in the papers.
    """
    if run.taken_over is not None:
        return normalise_like(table, *run.taken_over)
    with key_prefix("dataset"):
        if table.cells is None or rows is None:
            return normalise_table(table, run.settings.scaling)
        return normalise_table(table.learned_from(rows), run.settings.scaling, rows)


def note_new_words(table: Table, training: NDArray[np.bool_]) -> None:
    """Print a note if test rows of a user's table have words that no training row has."""
    if table.cells is not None and (words := table.cells.new_words(training)):
        print_note(f"{table.where}: {words}")


def require_number(run: Run, encoder: Encoder | None) -> None:
    """Raise BadValue for a target of several classes if the method would regress on their numbers."""
    name, several = run.dataset.name, getattr(run.dataset, "several_classes", False)
    learns = f"for {run.algo.label}; algo=fed3r, or algo.loss=logistic on a stream and softmax on batches, learns"
    require(not several, "dataset", name, f"one with a numeric target {learns} its classes")
    if encoder is not None and (count := len(encoder.labels)) > 2:
        labels = in_one_line(", ".join(encoder.labels[:WORDS_SHOWN]))
        raise BadValue(
            "dataset.target", run.dataset.target, f"numbers or two classes {learns} the {count} classes {labels}"
        )


def whole_table(run: Run, generator: np.random.Generator) -> Table:
    """The complete table of the data set."""
    with key_prefix("dataset"):
        store = Store(Path(run.paths.data), cache=Path(run.paths.cache).expanduser())
        table = run.dataset.load(store, generator)
        where = getattr(run.dataset, "path", run.dataset.name)
        return replace(table, where=where, encoder=table.encoder or Encoder(table.feature_names))


def split_table(run: Run, table: Table, generator: np.random.Generator) -> Any:
    """The partition of a table."""
    with key_prefix("partition"):
        return run.partition.split(table, generator)


def read_table_anew(run: Run, generator: np.random.Generator) -> Table:
    """A replicate's own table."""
    table = read_table(run, generator)
    if _is_simulated(run):
        return table
    return replace(table, site_names=tuple(f"drawn{number + 1}" for number in range(len(table.site_names))))


def in_precision(problem: Any, run: Run) -> Any:
    """Convert the features of a problem to the run's precision."""
    samples = problem.x.reshape(-1, problem.x.shape[-1])
    narrowed = by_block(lambda some: some.astype(run.settings.precision), samples)
    return replace(problem, x=narrowed.reshape(problem.x.shape))


def has_drawn_samples(run: Run) -> bool:
    """Whether a data set has other samples if it is loaded again."""
    return _is_simulated(run) or getattr(run.dataset, "drawn", False)


def _is_simulated(run: Run) -> bool:
    """Whether the samples are drawn, not read from files."""
    return not run.dataset.data_files and not hasattr(run.dataset, "fingerprint")


def require_topology(run: Run) -> None:
    """Raise BadValue unless decentralized methods, and only these, have a graph of agents."""
    decentralized = getattr(run.algo, "on_a_graph", False)
    if run.topology is None:
        require(not decentralized, "topology", None, "a graph of agents, for example topology=ring")
    else:
        given = type(run.topology).__name__
        require(decentralized, "topology", given, f"omitted: {run.algo.label} is not decentralized")


def topology_of_run(run: Run, agents: int, generator: np.random.Generator) -> Topology | None:
    """The graph of a decentralized method; None for other methods."""
    if run.topology is None:
        return None
    with key_prefix("topology"):
        topology: Topology = run.topology.build(agents, generator)
    fits = topology.both_ways or getattr(run.algo, "one_way", False)
    require(fits, "topology", type(run.topology).__name__, f"a graph with two-way links for {run.algo.label}")
    return topology
