"""A vertical partition: parties hold different features of the same samples."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import BrokenPromiseError, FklError, require
from fkl.basics.random_streams import Role, Streams, shared_generator
from fkl.config.loading import Run
from fkl.contract.parties import Scored, draw_split_and_generator
from fkl.contract.world import Algorithm, World
from fkl.data.baselines import best_constant_errors, in_units
from fkl.data.problem import Table
from fkl.data.vertical import Vertical
from fkl.network import Topology
from fkl.tasks.batch import SHARES, SQUARES
from fkl.tasks.intervals import SplitIntervals
from fkl.tasks.repeated import CLASSES, FEW
from fkl.tasks.task import (
    LARGEST_ERROR,
    Books,
    Panel,
    Probe,
    RecordColumns,
    RowLosses,
    Task,
    note_new_words,
    other_values,
    overrides_for_keys,
    read_table,
    require_number,
    scaled_by,
    split_table,
)
from fkl.wire.channel import BETWEEN_PARTIES, Direction

TWO_PARTIES = ("dataset.test_rows=0", "partition=vertical", "partition.parties=2")


class VerticalTask(Task):
    """Scoring test rows of a `fkl.data.vertical.Vertical`, with a random split in every replicate."""

    of_features: ClassVar[bool] = True
    judge_counts: ClassVar[bool] = False

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """The parties' features, for the method's number of rounds; each replicate draws its own split of rows."""
        # Groups by feature number need a fixed number of features
        generator = shared_generator(run.settings.seed, Role.DATA)
        table = read_table(run, generator)
        cells = table.cells
        fits = (
            cells is None
            or not cells.encoder.one_hot
            or {*cells.encoder.words} <= cells.listed
            or getattr(run.partition, "groups", None) is None
        )
        numbered = "lists of words, because partition.groups needs the numbers of their features"
        require(fits, "dataset.words", None, numbered)
        # A user's cells are encoded for each replicate by its own training rows
        learned = None if cells is None else partial(_learned_in_replicate, run, table, deepcopy(generator))
        given = split_table(run, table, generator)
        require_number(run, given.encoder)
        # Some methods cannot read sparse features
        if not isinstance(given.x, np.ndarray) and not getattr(run.algo, "takes_sparse", False):
            name, method = run.dataset.name, run.algo.label
            raise FklError(
                f"dataset={name}: its features are stored sparse, but {method} needs dense features; use algo=fdskl or "
                "algo=dsg, or a data set that is stored dense (dataset.table.format=libsvm in your own YAML file)"
            )
        if learned is None:
            return cls(replace(given, rounds=run.algo.rounds))
        return cls(learned(0, noted=True)[0], learned)

    def describe_data(self) -> str:
        """A line with the numbers of samples, features and parties."""
        problem: Vertical = self.problem
        tested = problem.test_rows
        groups = f"{problem.dimension} features of {problem.parties} parties, {len(problem.active)} of them active"
        return ", ".join([f"{len(problem.y) - tested} training and {tested} test samples, {groups}", *self.incomplete])

    @property
    def signs(self) -> bool:
        """Whether the target has two classes."""
        return bool(self.problem.two_classes)

    def directions(self, topology: Topology | None) -> tuple[Direction, ...]:
        """Direction of messages: from party to party."""
        return BETWEEN_PARTIES

    def judge(self, world: World, method: Algorithm) -> "ScoredJudge":
        """A judge of errors on the test rows."""
        return ScoredJudge(world.problem, len(world.streams.replicates), getattr(method, "fold", None))

    def replicates_at_once(self, rehearse: Callable[[], tuple[int, int]]) -> int:
        """One, because the products of a replicate are divided among the threads."""
        return 1

    def first_round(self) -> Vertical:
        """The problem, limited to one round."""
        return replace(self.problem, rounds=1)

    def columns(self, judge: Any, elapsed: NDArray[np.float64], hindsight: Any = None) -> RecordColumns:
        """Columns with the runtime, because these methods are compared by runtime."""
        columns = super().columns(judge, elapsed)
        columns.rounds["runtime_s"] = elapsed
        return columns

    def panels(self) -> Mapping[str, Panel]:
        """Figures of errors."""
        return {"error": SHARES} if self.problem.two_classes else {"mse": SQUARES}

    @classmethod
    def small_settings(cls, algorithm: type) -> tuple[str, ...]:
        """Settings for two parties and two classes."""
        draws = overrides_for_keys(algorithm, iterations=20)
        each = overrides_for_keys(algorithm, batch=8, features=4) if draws else ()
        return (*CLASSES, *TWO_PARTIES, *overrides_for_keys(algorithm, **FEW), *draws, *each)

    def values_to_show(self, world: World, outcome: Any) -> dict[str, Any]:
        """Values f of the test rows."""
        return {"f": [f() for f in outcome.f], "rows": outcome.rows}

    def other_targets(self, outcome: Any, numbers: np.random.Generator) -> Iterator[Probe]:
        """Other targets of a drawn replicate's test rows; replicates have different test rows."""
        drawn = int(numbers.integers(len(outcome.rows)))
        y, rows = self.problem.y.copy(), outcome.rows[drawn]
        y[rows] = other_values(self.problem.y, numbers)[rows]
        yield Probe(replace(self.problem, y=y), "other targets to be tested on", replicates=(drawn,))


def _learned_in_replicate(
    run: Run, table: Table, generator: np.random.Generator, replicate: int, noted: bool = False
) -> tuple[Vertical, None]:
    """A user's own table, encoded and scaled according to this replicate's training rows, with a note if `noted`."""
    # The split of this replicate decides which rows encode and scale
    given = split_table(run, table, deepcopy(generator))
    split, _ = draw_split_and_generator(
        given, Streams(run.settings.seed, (replicate,)), getattr(run.algo, "fold", None)
    )
    training = np.isin(np.arange(len(table.y)), split.training)
    learned = scaled_by(run, table, training)
    if noted:
        note_new_words(table, training)
    return replace(split_table(run, learned, deepcopy(generator)), rounds=run.algo.rounds), None


class ScoredJudge(Books):
    """Judges values f of test rows: by their sign for two classes, else by their squared error.

    At the end, it adds the error of a constant on the same rows: that of the majority class as `test_error_majority`,
    or that of the mean training target as `test_mse_training_mean`, then also `r2` and `rmse_in_units`.

    Parameters
    ----------
    problem : Vertical
    replicates : int
    fold : int or None
        Fold of a cross-validation.
    """

    def __init__(self, problem: Vertical, replicates: int, fold: int | None = None) -> None:
        super().__init__(problem.rounds, replicates)
        self._problem = problem
        self.intervals: SplitIntervals | None = None
        self.last: tuple[list[Any], list[Any]] = ([], [])
        self.by_round = {"iterations": np.zeros(self._shape, np.int64)}
        # Numbers of features and rows, equal in all replicates
        self.by_client = {"features": np.tile([len(group) for group in problem.groups], (replicates, 1))}
        split = problem.rows(np.random.default_rng(0), fold)  # every replicate has the same numbers of rows
        self.at_the_end = {
            "training_samples": np.full(replicates, len(split.training)),
            "test_samples": np.full(replicates, len(split.test)),
        }

    def enter(self, t: int, outcome: Scored) -> bool:
        """Record round t, and return whether all numbers are finite."""
        # Errors of the test rows after this round
        classes = self._problem.two_classes
        name = "test_error" if classes else "test_mse"
        predictions = [f() for f in outcome.f]
        for r, (f, rows) in enumerate(zip(predictions, outcome.rows, strict=True)):
            if np.shape(f) != rows.shape:
                raise BrokenPromiseError(
                    f"Scored.f of replicate {r} has shape {np.shape(f)}, must be (n,) = {rows.shape}"
                )
        losses = [
            np.sign(f) != self._problem.y[rows] if classes else np.square(f - self._problem.y[rows])
            for f, rows in zip(predictions, outcome.rows, strict=True)
        ]
        values = [each.mean() for each in losses]
        self.record_values("iterations", t, outcome.iterations)
        self.record_values(name, t, values)
        self.book_own(t, [self._problem.y[rows] for rows in outcome.rows], predictions)
        if self.intervals is not None:
            self.last = [self._problem.y[rows] for rows in outcome.rows], predictions
        # Columns for the end, because any round may be the last
        if (numbers := self._problem.row) is not None:
            pairs = zip(outcome.rows, losses, strict=True)
            self.row_losses = [RowLosses(numbers[rows], each.astype(np.float64)) for rows, each in pairs]
        # Errors of a constant on the test rows
        y, tested = self._problem.y, [self._problem.y[rows] for rows in outcome.rows]
        self.at_the_end |= best_constant_errors([np.delete(y, rows) for rows in outcome.rows], tested, classes)
        if not classes:
            variance = np.array([targets.var() for targets in tested])
            self.at_the_end |= in_units(np.array(values), variance, self._problem.scale.y_unit)
        return all(bool(np.isfinite(f).all()) for f in predictions) and all(value < LARGEST_ERROR for value in values)

    def close(self) -> None:
        """Judge the intervals, which the party with the targets calibrates."""
        if self.intervals is not None:
            holder = [np.zeros(len(y), np.int64) for y in self.last[0]]
            self.at_the_end |= self.intervals.columns(self.booked - 1, *self.last, holder, 1)[0]
