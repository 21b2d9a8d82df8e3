"""A batch: all samples of all clients at once; a method uses them in every round."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from fkl.basics.arrays import Array
from fkl.basics.errors import key_prefix, require
from fkl.basics.keys import Keys, key
from fkl.basics.random_streams import Role, Streams, shared_generator
from fkl.config.loading import Run
from fkl.contract.world import Algorithm, World
from fkl.data.baselines import best_constant_errors, in_units
from fkl.data.problem import FOLDS, Batch, Problem, Table
from fkl.kernels.losses import OF_CLASSES, Rows
from fkl.network import Topology
from fkl.screen.messages import show_messages
from fkl.tasks.stream import DIABETES
from fkl.tasks.task import (
    LARGEST,
    Books,
    Panel,
    Probe,
    RowLosses,
    Task,
    differs_by_replicate,
    fairness_columns,
    has_drawn_samples,
    in_precision,
    note_new_words,
    other_values,
    overrides_for_keys,
    present_in_replicate,
    read_table,
    read_table_anew,
    require_lam,
    require_number,
    require_shape,
    scaled_by,
    split_table,
    topology_of_run,
)

if TYPE_CHECKING:
    from fkl.tasks.intervals import SplitIntervals

PENDING_BYTES = 2**20
"""Bytes of one replicate's iterations that are judged together, in one product instead of many."""
DIGITS = ("dataset=digits", "partition.clients=4", "partition.rounds=60", "kernels.D=8")
"""A small part of a data set with ten classes."""
PARTS = (("train", True), ("test", False))
"""Parts of the samples, with True for training samples."""
SHARES = Panel("share of errors", {"train_error": "training samples", "test_error": "test samples"}, log=False)
SQUARES = Panel("mean squared error", {"train_mse": "training samples", "test_mse": "test samples"})
PANELS = {
    "distance": Panel(
        "root mean square distance",
        {
            "distance": "of theta from the optimum",
            "consensus_error": "of theta from the agents' mean",
            "functional_distance": "of f from the optimum, training samples",
            "functional_distance_worst": "the same, worst agent",
        },
    ),
    "transmissions": Panel("transmissions so far", {"transmissions": "all agents"}),
}


class BatchTask(Task):
    """Learning theta of one kernel from a `fkl.data.problem.Batch`, compared with the optimum of all clients."""

    of_rounds: ClassVar[bool] = True
    has_rows_at_clients: ClassVar[bool] = True
    judge_counts: ClassVar[bool] = False
    room: ClassVar[int] = 14 * 2**20
    """Bytes; iterations on the same matrices are several times faster if these fit in the processor's cache."""

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """Read the data, and split each client's samples into training and test samples."""
        # Read, split and narrow the data
        generator = shared_generator(run.settings.seed, Role.DATA)
        table = read_table(run, generator)
        batch = in_precision(drawn_batch(run, table, generator), run)
        if batch.classes == 1:
            require_number(run, batch.encoder)
        saves = run.settings.saves_model and not getattr(run.algo, "saves_classes", False)
        for name, asked, none in (("save_model", saves, "false"), ("metrics", run.settings.metrics, "null")):
            require(batch.classes == 1 or not asked, name, asked, f"{none} with several classes")
        # A method may draw a new split for each replicate; participation may differ as well
        if getattr(run.algo, "redraw", False):
            return cls(batch, partial(_redrawn_batch, run, None if has_drawn_samples(run) else table))
        return cls(batch, partial(_thinned_batch, run, batch) if differs_by_replicate(run) else None)

    @property
    def amount(self) -> str:
        """Numbers of training and test samples."""
        return sample_counts(self.problem)

    @property
    def signs(self) -> bool:
        """Whether the loss is for classes."""
        return bool(self.problem.loss != "square")

    def sample_rows(self, count: int) -> Array:
        """Evenly spaced training samples, at most `count`."""
        x = self.problem.part(True)[0]
        return x[:: -(-len(x) // count)]

    def judge(self, world: World, method: Algorithm) -> "BatchJudge":
        """A judge of errors and of distances from the optimum."""
        require_lam(method)
        own = getattr(method, "judged_in", lambda world: None)(world)
        return BatchJudge(world, method.lam, own)

    def replicates_at_once(self, rehearse: Any) -> int:
        """One if each replicate has its own samples; its memory is still rehearsed."""
        fitting = super().replicates_at_once(rehearse)
        return fitting if self.redraw is None else 1

    def first_round(self) -> Batch:
        """The problem, limited to one round."""
        return replace(self.problem, rounds=1)

    def panels(self) -> Mapping[str, Panel]:
        """Figures of errors, distances and transmissions."""
        errors = {"mse": SQUARES} if self.problem.loss == "square" else {"error": SHARES}
        return errors | PANELS

    @classmethod
    def small_settings(cls, algorithm: type) -> tuple[str, ...]:
        """Settings for 100 iterations of 4 clients."""
        return (*DIABETES, *overrides_for_keys(algorithm, iterations=100))

    def values_to_show(self, world: World, outcome: Any) -> dict[str, Any]:
        """Theta, whose first axes are replicates and clients."""
        require_shape("theta", outcome, len(world.streams.replicates), world.problem.clients, None)
        return {"theta": outcome}

    def other_targets(self, outcome: Any, numbers: np.random.Generator) -> Iterator[Probe]:
        """Other targets of test samples."""
        yield Probe(with_other_tests(self.problem, numbers), "other targets to be tested on")


class StarTask(BatchTask):
    """`BatchTask` for methods with a server, whose figures show no transmissions to neighbours."""

    def panels(self) -> Mapping[str, Panel]:
        """Figures of errors and distances."""
        return {name: panel for name, panel in super().panels().items() if name != "transmissions"}


class ClassTask(StarTask):
    """`StarTask` for methods that only learn classes."""

    @classmethod
    def small_settings(cls, algorithm: type) -> tuple[str, ...]:
        """Settings for 4 clients and ten classes."""
        return (*DIGITS, *overrides_for_keys(algorithm, iterations=100))


class TogetherTask(StarTask):
    """`StarTask` for methods that need all clients in every round."""

    of_rounds: ClassVar[bool] = False


def drawn_batch(run: Run, table: Table, generator: np.random.Generator) -> Batch:
    """All samples of a table, split by partition and method; a user's own cells are encoded from training rows.

    Raises
    ------
    fkl.basics.errors.FklError
        If no training row has one of the classes that the method learns.
    """
    batch = _encoded_batch(run, table, generator)
    if batch.loss != "square" or run.algo.task.of_classes:
        batch.require_learned_classes()
    return batch


def _encoded_batch(run: Run, table: Table, generator: np.random.Generator) -> Batch:
    # Published data are encoded already
    if table.cells is None:
        return _batch_of_stream(run, split_table(run, table, generator), generator)
    # A user's cells are encoded from the training rows, so split twice with the same draws
    numbered = replace(table, row=np.arange(len(table.y)))
    stream = split_table(run, numbered, generator)
    drawn = _batch_of_stream(run, stream, deepcopy(generator))
    assert drawn.row is not None
    training = np.isin(np.arange(len(table.y)), drawn.row[drawn.training])
    learned = scaled_by(run, numbered, training)
    note_new_words(table, training)
    batch = _batch_of_stream(run, stream.with_values_of(learned), generator)  # with the same draws
    return replace(batch, row=None if table.row is None else table.row[drawn.row])


def _batch_of_stream(run: Run, stream: Problem, generator: np.random.Generator) -> Batch:
    with key_prefix("algo"):
        return run.algo.batch(stream, generator)


def _redrawn_batch(run: Run, shared: Table | None, replicate: int) -> tuple[Batch, Topology]:
    """One replicate's split and graph; otherwise all replicates share those of replicate 0."""
    streams = Streams(run.settings.seed, (replicate,))
    [generator] = streams.generators(Role.DATA)
    with show_messages(results=False, notes=False):
        table = read_table_anew(run, generator) if shared is None else shared
        batch = drawn_batch(run, table, generator)
    topology = topology_of_run(run, batch.clients, streams.generators(Role.TOPOLOGY)[0])
    assert topology is not None
    batch, _ = _thinned_batch(run, in_precision(batch, run), replicate)
    return batch, topology


def _thinned_batch(run: Run, batch: Batch, replicate: int) -> tuple[Batch, None]:
    """The common batch of all replicates, with this replicate's participants."""
    return batch.thinned(present_in_replicate(run, batch.present, replicate)), None


def sample_counts(batch: Batch) -> str:
    """Numbers of training and test samples."""
    training = int(batch.training.sum())
    return f"{training} training and {len(batch.y) - training} test samples"


def with_other_tests(batch: Batch, numbers: np.random.Generator) -> Batch:
    """Replace the targets of test samples; training data do not change."""
    return replace(batch, y=np.where(batch.training, batch.y, other_values(batch.y, numbers)))


class TestedBooks(Books):
    """Records of clients with their own test samples; it judges the theta of several rounds together.

    In `judge_pending`, a subclass judges the `pending` rounds, from `first_pending` on. It stores the losses of the
    last round with the `numbers` of the test rows, if these are known.
    """

    def __init__(self, problem: Batch, replicates: int) -> None:
        super().__init__(problem.rounds, replicates)
        self.problem, self.classes = problem, problem.loss != "square"
        self.pending: list[Array] = []  # never more entries than rounds, because checkpoints store them
        self.first_pending = 0
        # Numbers of samples of each client, and errors of constants
        self.count = {}
        for part, training in PARTS:
            self.count[part] = np.bincount(problem.part(training)[2], minlength=problem.clients)
            name = "training_samples" if training else "test_samples"
            self.by_client[name] = np.tile(self.count[part], (replicates, 1))
        (_, learned, _), (_, tested, _) = problem.part(True), problem.part(False)
        self._variance = float(tested.var()) if len(tested) else np.nan
        self.numbers = None if problem.row is None else problem.row[~problem.training]
        self.intervals: SplitIntervals | None = None
        self.last: list[Array] = []
        """Predictions for the test samples after the last judged round, if there are intervals."""
        self.at_the_end = best_constant_errors([learned] * replicates, [tested] * replicates, self.classes)

    def enter_theta(self, t: int, theta: Array, width: int | None) -> bool:
        """Record theta (R, K, width) of iteration t + 1; return whether all its entries are below `LARGEST`."""
        if t == 0:
            require_shape("theta", theta, *self.by_client["training_samples"].shape, width)
        self.pending.append(theta.copy())
        if len(self.pending) >= max(1, PENDING_BYTES // (8 * theta[0].size)):
            self.judge_pending()
        return bool((np.abs(theta) < LARGEST).all())  # False for NaN

    def judge_pending(self) -> None:
        """Compute and record the columns of the pending rounds."""
        raise NotImplementedError

    def close(self) -> None:
        """Judge pending rounds, and compute the columns that exist only at the end."""
        # Rounds may wait to be judged together
        if self.pending:
            self.judge_pending()
        error = "test_error" if self.classes else "test_mse"
        # Intervals from the last predictions
        if self.intervals is not None:
            _, y, client = self.problem.part(False)
            R, K = self.by_client["test_samples"].shape
            summary, clients = self.intervals.columns(self.first_pending - 1, [y] * R, self.last, [client] * R, K)
            self.at_the_end, self.by_client = self.at_the_end | summary, self.by_client | clients
        # In the target's units, and fairness over clients
        if not self.classes:
            self.at_the_end |= in_units(self.by_round["test_mse"][-1], self._variance, self.problem.scale.y_unit)
        tested = self.count["test"]
        errors = np.where(tested, self.by_client[error], 0.0)
        self.at_the_end |= fairness_columns(error, errors * tested, tested, self.problem.site)


class BatchJudge(TestedBooks):
    """Judges every client's theta on its own training and test samples, and against the optimum of all clients.

    With f_i = theta_i'phi on all training samples of client i, and theta*, f* of the minimiser of the sum of the
    clients' mean losses + lam |theta|^2 (COKE, eq. 26):

    train_..., test_...
        Mean of the loss's measures over all samples of all clients, such as COKE's MSE(k).
    consensus_error
        Root mean square over clients of |theta_i - mean of theta_i|.
    distance
        Root mean square over clients of |theta_i - theta*|.
    functional_distance, functional_distance_worst
        Root mean square of f_i - f* over all training samples, and the largest value for a client over its own samples.
    test_mse_training_mean, test_error_majority
        At the end: error on the test samples of predicting the mean of all training targets, or the majority class.
    r2, rmse_in_units
        At the end, for a squared loss: 1 - test_mse / variance of the test targets; root of test_mse in the target's
        units.
    test_mse_worst_tenth, test_mse_gini, or test_error_...
        At the end: mean error of the worst 10 % of clients (at least one), each on its own test samples, and Gini
        coefficient of the clients' errors, which is 0 if all are equal.
    test_mse_worst_tenth_sites, test_mse_gini_sites, or test_error_...
        The same for sites, each with the error of all samples of its clients, if there are several.

    Parameters
    ----------
    world : World
        World with a Batch and a dictionary of one kernel.
    lam : float
    rows : (Rows, Rows) or None
        Training and test samples in the space of theta; None for the dictionary's random features.
    """

    def __init__(self, world: World, lam: float, rows: tuple[Rows, Rows] | None = None) -> None:
        self._loss = world.loss
        # The optimum of all samples together, with which every round is compared
        train, test = rows or (world.training, world.testing)
        self.parts = {"train": train, "test": test}
        self.optimum = self._loss.optimum(train, lam)  # (R, P)
        R, P = self.optimum.shape
        super().__init__(world.problem, R)
        everywhere = np.broadcast_to(self.optimum[:, None, :, None], (R, world.problem.clients, P, 1))
        self._best_f = train.predict(everywhere)
        # Its errors are columns of their own
        at_optimum = {
            f"{name}_at_optimum": _mean_over_samples(sums, rows)[:, 0]
            for part, rows in self.parts.items()
            for name, sums in self._measures_of_loss(part, rows, rows.predict(everywhere)).items()
        }
        self.at_the_end = at_optimum | self.at_the_end

    def enter(self, t: int, outcome: Array) -> bool:
        """Record theta (R, K, P) of iteration t + 1; return whether all its entries are below `LARGEST`."""
        return self.enter_theta(t, outcome, self.optimum.shape[1])

    def close(self) -> None:
        """Judge pending rounds, and release the samples."""
        super().close()
        self.parts, self._best_f = {}, np.empty(0)

    def judge_pending(self) -> None:
        """Compute and record errors, and distances from the optimum."""
        # All pending rounds at once, because a product with several thetas is faster
        theta = np.stack(self.pending, axis=-1)  # (R, K, P, B)
        rounds = slice(self.first_pending, self.first_pending + len(self.pending))
        f = {}
        # Errors by part, and of each client after the last round
        for part, rows in self.parts.items():
            f[part] = rows.predict(theta)
            for name, sums in self._measures_of_loss(part, rows, f[part]).items():
                self.record_values(name, rounds, _mean_over_samples(sums, rows).T)
                self.by_client[name] = sums[..., -1] / np.where(rows.count, rows.count, np.nan)
        # Test predictions for metrics and intervals
        test = self.parts["test"]
        there = np.arange(test.y.shape[2]) < test.count[:, None]
        if self.metrics:
            self.book_own(rounds, [y[there] for y in test.y], [f_test[there].T for f_test in f["test"]])
        if self.intervals is not None:
            self.last = [f_test[there][:, -1] for f_test in f["test"]]
        # Losses of single rows, if the run is judged by them
        if self.numbers is not None:
            losses = self._loss.of_each(test, f["test"][..., -1])
            self.row_losses = [RowLosses(self.numbers, of_replicate[there]) for of_replicate in losses]
        # Distances of the functions, of the agents from their mean, and of theta from the optimum
        train = self.parts["train"]
        off = f["train"] - self._best_f
        apart = np.einsum("rkib,rkib->rkb", off, off)
        self.record_values("functional_distance", rounds, np.sqrt(_mean_over_samples(apart, train)).T)
        self.record_values("functional_distance_worst", rounds, np.sqrt((apart / train.count[:, None]).max(axis=1)).T)
        self.record_values("consensus_error", rounds, _root_mean_square(theta - theta.mean(axis=1, keepdims=True)).T)
        self.record_values("distance", rounds, _root_mean_square(theta - self.optimum[:, None, :, None]).T)
        self.first_pending, self.pending = rounds.stop, []

    def _measures_of_loss(self, part: str, rows: Rows, f: Array) -> dict[str, Array]:
        return {f"{part}_{name}": sums for name, sums in self._loss.sums_of_errors(rows, f).items()}


def _mean_over_samples(sums: Array, rows: Rows) -> Array:
    """Mean over all clients' samples, (R, B), from each client's sums, (R, K, B); NaN without samples."""
    size = rows.count.sum()
    return sums.sum(axis=1) / (size if size else np.nan)


def _root_mean_square(apart: Array) -> Array:
    """Root mean square over clients, (R, B), of the norms |apart|, for apart (R, K, P, B)."""
    return np.sqrt(np.einsum("rkpb,rkpb->rb", apart, apart) / apart.shape[1])


@dataclass(frozen=True)
class OwnFunctions:
    """Functions f_k(x) = theta_k'(2/D)^1/2 cos(omega_k'x + phase_k) of all clients.

    Parameters
    ----------
    theta : (R, K, D)
    omega : (R, K, d, D)
    phase : (R, K, D)
    """

    theta: Array
    omega: Array
    phase: Array


class OwnFeaturesTask(BatchTask):
    """Learning a function per client from a `fkl.data.problem.Batch`, in features that the client chose itself."""

    of_rounds = False

    def judge(self, world: World, method: Algorithm) -> "OwnFeaturesJudge":  # type: ignore[override]
        """A judge of errors."""
        return OwnFeaturesJudge(world.problem, len(world.streams.replicates))

    def panels(self) -> Mapping[str, Panel]:
        """Figures of errors and transmissions."""
        return {"mse": SQUARES, "transmissions": PANELS["transmissions"]}

    def values_to_show(self, world: World, outcome: Any) -> dict[str, Any]:
        """Theta and its features, whose first axes are replicates and clients."""
        here = len(world.streams.replicates), world.problem.clients
        require_shape("theta", outcome.theta, *here, None)
        return {"theta": outcome.theta, "omega": outcome.omega, "phase": outcome.phase}


class OwnFeaturesJudge(TestedBooks):
    """Judges every client's function on its own training and test samples.

    train_mse, test_mse
        Mean squared error over all samples of all clients.
    test_mse_training_mean, r2, rmse_in_units, test_mse_worst_tenth, test_mse_gini
        At the end, as in `fkl.tasks.batch.BatchJudge`; 1 - r2 is the relative squared error.
    """

    def __init__(self, problem: Batch, replicates: int) -> None:
        super().__init__(problem, replicates)
        self._features: list[Array] = []

    def enter(self, t: int, outcome: OwnFunctions) -> bool:
        """Record the functions of iteration t + 1, with constant features; return whether theta is below `LARGEST`."""
        self._features = [outcome.omega, outcome.phase]
        return self.enter_theta(t, outcome.theta, None)

    def close(self) -> None:
        """Judge pending rounds, and release the features."""
        super().close()
        self._features = []

    def judge_pending(self) -> None:
        """Compute and record errors."""
        # Agents have their own features, so client by client
        theta, (omega, phase) = np.stack(self.pending, axis=-1), self._features  # (R, K, D, B)
        rounds = slice(self.first_pending, self.first_pending + len(self.pending))
        factor = np.sqrt(2 / phase.shape[-1])
        for part, training in PARTS:
            x, y, client = self.problem.part(training)
            has_own_columns = not training and (bool(self.metrics) or self.intervals is not None)
            predicted = np.zeros((len(theta), theta.shape[3], len(y) if has_own_columns else 0))
            sums, last = np.zeros((*theta.shape[:2], theta.shape[3])), np.zeros((len(theta), len(y)))
            # Residuals of all pending rounds at once
            for r, k in np.ndindex(*theta.shape[:2]):
                z = factor * np.cos(x[client == k] @ omega[r, k] + phase[r, k])
                f = z @ theta[r, k]
                if has_own_columns:
                    predicted[r][:, client == k] = f.T
                off = f - y[client == k, None]
                sums[r, k] = np.einsum("nb,nb->b", off, off)
                last[r, client == k] = off[:, -1] ** 2
            # Means over all samples, and of each client
            size = self.count[part]
            self.record_values(f"{part}_mse", rounds, (sums.sum(axis=1) / (size.sum() or np.nan)).T)
            self.by_client[f"{part}_mse"] = sums[..., -1] / np.where(size, size, np.nan)
            if has_own_columns:
                self.book_own(rounds, [y] * len(theta), [*predicted])
                self.last = [of_rounds[-1] for of_rounds in predicted]
            if not training and self.numbers is not None:
                self.row_losses = [RowLosses(self.numbers, losses) for losses in last]
        self.first_pending, self.pending = rounds.stop, []


# ---- Keys of methods that learn from a batch


@dataclass(frozen=True)
class HoldOut(Keys):
    """Keys of every method that learns from a training set and is tested on a test set."""

    task: ClassVar[type[Task]] = BatchTask

    test_share: float = key(
        0.3,
        "Share of each client's samples that are drawn as test samples. A method never learns from these. A data "
        "set with its own test set overrules this key.",
        min=0,
        below=1,
    )
    fold: int | None = key(
        None,
        "For cross-validation: set the test samples aside and test on this fifth of the other samples.",
        min=0,
        below=FOLDS,
    )
    test_on: str = key(
        "drawn",
        "Draw the test samples, or take those of each client's last rounds, which a method on the stream predicts "
        "last.",
        choices=("drawn", "last"),
    )

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return 1

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once, split according to the keys."""
        if self.test_on == "last" and problem.tested is None:
            problem = problem.testing_last(self.test_share)
        return Batch.from_problem(problem, self.rounds, self.test_share, self.fold, rng)


@dataclass(frozen=True)
class Batched(HoldOut):
    """Keys of every method that uses the same samples in each iteration."""

    losses: ClassVar[tuple[str, ...]] = ("square", "logistic")
    """Losses that the method can minimise."""

    iterations: int = key(2000, "Number of iterations k.", min=1, max=1_000_000_000)
    loss: str = key(
        "square",
        "(y - f)^2; log(1 + exp(-y f)) for a target of two classes; for more classes, the squared errors of one "
        "function for each class, or -log of the softmax. Only methods that descend at a server learn more than "
        "two classes.",
        choices=("square", "logistic", "one_vs_rest", "softmax"),
    )
    lam: float = key(1e-3, "Regularisation lambda of the sum over all clients.", above=0)

    def __post_init__(self) -> None:
        require(self.loss in self.losses, "loss", self.loss, " or ".join(self.losses))
        super().__post_init__()

    @property
    def rounds(self) -> int:
        """Number of rounds: one per iteration."""
        return self.iterations

    def batch(self, problem: Problem, rng: np.random.Generator) -> Batch:
        """All clients' samples at once; labels are -1 and 1 for the logistic loss, numbers for several classes."""
        batch = super().batch(problem, rng)
        if self.loss in OF_CLASSES:
            return batch.of_classes(self.loss, 3 if self.loss == "softmax" else 2)
        return batch if self.loss == "square" else batch.of_two_classes()
