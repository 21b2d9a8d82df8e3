"""Tables of data sets, and the samples of clients that partitions make from them."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fkl.basics.errors import FklError, count_of, require
from fkl.basics.pointwise import SQUARED, PointwiseLoss
from fkl.data.dealt_rows import BLOCK, in_part
from fkl.data.encoder import Encoder, UserRows, require_learned_classes

FOLDS = 5
"""Number of parts in a cross-validation."""
MOST_CLASSES = 100
ALIKE, FEWEST_PAIRS = 0.3, 20
"""Correlation from which neighbouring rows are alike, and the number of pairs from which it is computed."""


@dataclass(frozen=True)
class Scale:
    """A linear map of every feature and of the target, ``(raw - low) / unit``; the default changes nothing.

    Parameters
    ----------
    x_low, x_unit : (d,) float64
        Values for each feature; with shape () for all features together.
    y_low, y_unit : float
        Values for the target: in its own units a squared error is `y_unit` squared times as large.
    """

    x_low: NDArray[np.float64] = field(default_factory=lambda: np.zeros(()))
    x_unit: NDArray[np.float64] = field(default_factory=lambda: np.ones(()))
    y_low: float = 0.0
    y_unit: float = 1.0

    def x(self, raw: NDArray[np.floating]) -> NDArray[np.float64]:
        """Features (n, d) as methods see them."""
        scaled: NDArray[np.float64] = np.subtract(raw, self.x_low, dtype=np.float64)
        scaled /= self.x_unit
        return scaled

    def y(self, raw: NDArray[np.floating]) -> NDArray[np.float64]:
        """Targets as methods see them."""
        scaled: NDArray[np.float64] = (np.asarray(raw, np.float64) - self.y_low) / self.y_unit
        return scaled

    def y_back(self, scaled: NDArray[np.floating]) -> NDArray[np.float64]:
        """Predictions in the target's own units."""
        raw: NDArray[np.float64] = np.asarray(scaled, np.float64) * self.y_unit + self.y_low
        return raw

    def label(self, scaled: float) -> str:
        """A class as a message shows it, in the target's own units."""
        return f"{float(self.y_back(np.array(scaled))):.12g}"

    def after(self, first: "Scale") -> "Scale":
        """Both scalings as one; the other one is applied first."""
        return Scale(
            first.x_low + first.x_unit * self.x_low,
            first.x_unit * self.x_unit,
            first.y_low + first.y_unit * self.y_low,
            first.y_unit * self.y_unit,
        )

    def to_signs(self, low: float, high: float) -> "Scale":
        """Extend this scaling by one that maps these two values of the target to -1 and 1."""
        return Scale(y_low=(low + high) / 2, y_unit=(high - low) / 2).after(self)


class Incomplete(NamedTuple):
    """Rows of a file that were dropped because cells are missing.

    Parameters
    ----------
    rows, of : int
        Number of dropped rows, and of all rows.
    column : str
        The column with most of the missing cells.
    always : bool
        Whether its cell is missing in all dropped rows.
    """

    rows: int = 0
    of: int = 0
    column: str = ""
    always: bool = False

    def __str__(self) -> str:
        return (
            f"{self.rows} of {count_of(self.of, 'row')} dropped, {'all' if self.always else 'most'} lack {self.column}"
        )


COMPLETE = Incomplete()


@dataclass(frozen=True)
class Table:
    """One data set as in its files, before any partition.

    Parameters
    ----------
    x : (n, d) float64
        Features, one row per sample, in the order of the file; for real_sim a csr_array, which most partitions do not
        accept.
    y : (n,) float64
        Target.
    site : (n,) int64
        Index into `site_names` of the place of measurement of each row; all 0 if there is only one.
    feature_names, site_names : tuple of str
    tested : (n,) bool or None
        Test rows of the data set itself; None if a split selects them.
    where : str
        File or data set for messages about the values.
    scale : Scale
        Scaling of x and y since they were read.
    encoder : Encoder or None
        Encoder from a file's cells to numbers; None if all columns except the target are numbers.
    expected : (n,) float64 or None
        Expectation of the target, given the features and the time: only known for generated data.
    row : (n,) int64 or None
        Number of each row in the whole data set, if the loss of each row is stored.
    incomplete : Incomplete
        Rows that were dropped before.
    cells : Cells or None
        Source of x and y if they depend on the training rows; None if they are as published.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    site: NDArray[np.int64]
    feature_names: tuple[str, ...]
    site_names: tuple[str, ...] = ("all",)
    tested: NDArray[np.bool_] | None = None
    where: str = "the data set"
    scale: Scale = field(default_factory=Scale)
    encoder: Encoder | None = None
    expected: NDArray[np.float64] | None = None
    row: NDArray[np.int64] | None = None
    incomplete: Incomplete = COMPLETE
    cells: UserRows | None = None

    @classmethod
    def of_one_site(
        cls, x: NDArray[np.float64], y: NDArray[np.float64], feature_names: tuple[str, ...], where: str = "the data set"
    ) -> "Table":
        """Table with all rows from one place."""
        return cls(x, y, np.zeros(len(y), np.int64), feature_names, where=where)

    @property
    def group(self) -> NDArray[np.int64]:
        """(n,) Group of each row: its site, and whether it is a test row."""
        return self.site if self.tested is None else 2 * self.site + self.tested

    def part(self, rows: str) -> "Table":
        """The rows of a part, see `fkl.data.dealt_rows.in_part`; words, means and classes are those of the part, too.

        Raises
        ------
        fkl.basics.errors.BadValue
            If the part has no rows.
        """
        # Rows of the part, with all arrays that have a row per row
        if rows == "all":
            return self
        chosen = in_part(rows, self.group)
        require(bool(chosen.any()), "rows", rows, f"all or even: {self.where} has too few rows, in blocks of {BLOCK}")
        arrays = {name: getattr(self, name) for name in ("x", "y", "site", "tested", "expected", "row")}
        cells = None if self.cells is None else self.cells.of_rows(chosen)
        part = replace(
            self, cells=cells, **{name: array[chosen] for name, array in arrays.items() if array is not None}
        )
        # Words and means of the whole table would leak from the other parts
        return part.learned_from(np.ones(len(part.y), np.bool_))

    def learned_from(self, rows: NDArray[np.bool_]) -> "Table":
        """An unscaled copy with the words and means of these rows (n,) only; the table itself if `cells` is None."""
        if self.cells is None:
            return self
        encoder, x = self.cells.learned(rows, self.where)
        y, names = self.cells.y, encoder.feature_names
        return replace(self, x=x, y=y, encoder=encoder, feature_names=names, scale=Scale())


class OfClients:
    """Base class of problems of clients that are present in some rounds."""

    @cached_property
    def clients_present(self: Any) -> NDArray[np.int64]:
        """Number of clients present in each round, (T,)."""
        return np.sum(self.present, axis=1, dtype=np.int64)

    def reached(self: Any, rounds: slice) -> NDArray[np.bool_]:
        """Whether each client takes part in any of some rounds, (K,)."""
        return np.any(self.present[rounds], axis=0)


def row_order(problem: "Problem") -> str:
    """How alike the neighbouring rows of each client are, and how far clients differ; empty if rows seem in no order.

    It is asked of streams whose clients see rows in file order. Then a client learns from the row before, and others
    cannot help it, so a comparison of clients alone with federated ones depends on the order.
    """
    # Neighbouring targets of the same client
    present, y = problem.present, np.where(problem.present, problem.y, 0.0)
    both = present[1:] & present[:-1]
    spread = y[present].std()
    if problem.clients < 2 or both.sum() < FEWEST_PAIRS or spread == 0:
        return ""
    # Their correlation, and how far the clients' means differ in units of the deviation
    before, after = y[:-1][both], y[1:][both]
    alike = float(np.corrcoef(before, after)[0, 1]) if min(before.std(), after.std()) > 0 else 1.0
    seen = present.sum(axis=0)
    means = y.sum(axis=0)[seen > 0] / seen[seen > 0]
    if alike < ALIKE:
        return ""
    apart = f"clients differ by {means.std() / spread:.2g} sd in their means"
    return f"rows are in file order: neighbouring targets correlate {alike:.2f}, {apart}"


@dataclass(frozen=True)
class Problem(OfClients):
    """The streams of all clients: in round t client k sees x[t, k], predicts, then sees y[t, k].

    Parameters
    ----------
    x : (T, K, d)
    y : (T, K) float64
    present : (T, K) bool
        False where client k has no sample in round t (its rows are used up), or does not take part.
    site : (K,) int64
        The site of most of the client's rows.
    site_names : tuple of str
    rows_left_out : int
        Rows of the table that no client received.
    tested : (T, K) bool or None
        Test samples of the data set itself.
    scale : Scale
        Scaling that made x and y from raw numbers.
    encoder : Encoder or None
        As in `Table`: from a table's cells to raw numbers.
    expected : (T, K) float64 or None
        As in `Table`: the best prediction that is possible.
    sampled : (T, K) bool or None
        Entries with samples, including rounds in which a client does not take part; None if all always take part.
    row : (T, K) int64 or None
        As in `Table`.
    incomplete : Incomplete
        As in `Table`.
    loss : PointwiseLoss
        Loss of a prediction; for one of classes y is as in `of_classes`.
    """

    x: NDArray[np.floating]
    y: NDArray[np.float64]
    present: NDArray[np.bool_]
    site: NDArray[np.int64]
    site_names: tuple[str, ...] = ("all",)
    rows_left_out: int = 0
    tested: NDArray[np.bool_] | None = None
    scale: Scale = field(default_factory=Scale)
    encoder: Encoder | None = None
    expected: NDArray[np.float64] | None = None
    sampled: NDArray[np.bool_] | None = None
    row: NDArray[np.int64] | None = None
    incomplete: Incomplete = COMPLETE
    loss: PointwiseLoss = SQUARED
    rounds: int = field(init=False)
    clients: int = field(init=False)
    dimension: int = field(init=False)

    def __post_init__(self) -> None:
        for name, size in zip(("rounds", "clients", "dimension"), self.x.shape, strict=True):
            object.__setattr__(self, name, size)

    def round(self, t: int) -> tuple[NDArray[np.floating], NDArray[np.float64], NDArray[np.float64]]:
        """Samples of round t, and each client's share in an average over the clients present.

        Returns
        -------
        x : (K, d)
        y : (K,) float64
        share : (K,) float64
            1 / (clients present) for a client that is present, 0 for one that is not.
        """
        return self.x[t], self.y[t], self.present[t] / max(int(self.clients_present[t]), 1)

    def thinned(self, present: NDArray[np.bool_]) -> "Problem":
        """A copy in which only these clients (T, K) take part; predictors fitted in hindsight still see all samples."""
        return replace(self, present=present, sampled=self.everywhere)

    @property
    def everywhere(self) -> NDArray[np.bool_]:
        """Entries with samples, (T, K)."""
        return self.present if self.sampled is None else self.sampled

    def block(self, rounds: slice) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
        """The first client's x (B, d) and y (B,) in some rounds."""
        return self.x[rounds, 0], self.y[rounds, 0]

    def of_client(self, k: int) -> "Problem":
        """A problem with the stream of client k only."""
        return self.of_clients(slice(k, k + 1))

    def of_clients(self, which: slice) -> "Problem":
        """The streams of some clients, without the others."""
        names = ("x", "y", "present", "tested", "expected", "sampled", "row")
        arrays = {name: array[:, which].copy() for name in names if (array := getattr(self, name)) is not None}
        return replace(self, **arrays, site=self.site[which])

    def pooled(self) -> "Problem":
        """All samples as one client's stream, round by round and in each round client by client."""
        names = ("x", "y", "tested", "expected", "row")
        arrays = {name: array[self.present][:, None] for name in names if (array := getattr(self, name)) is not None}
        present = np.ones((len(arrays["y"]), 1), np.bool_)
        return replace(self, **arrays, present=present, sampled=None, site=np.zeros(1, np.int64), site_names=("all",))

    def with_values_of(self, table: Table) -> "Problem":
        """Take x and y of all samples from a table whose rows are numbered by `row`."""
        x = np.where(self.present[..., None], table.x[self.row], 0.0)
        y = np.where(self.present, table.y[self.row], 0.0)
        return replace(self, x=x, y=y, scale=table.scale, encoder=table.encoder)

    def first_rounds(self, rounds: int) -> "Problem":
        """A copy with only the first `rounds` rounds."""
        names = ("x", "y", "present", "tested", "expected", "sampled", "row")
        return replace(self, **{name: array[:rounds] for name in names if (array := getattr(self, name)) is not None})

    def of_classes(self, name: str, loss: PointwiseLoss) -> "Problem":
        """Prepare for a loss of classes with this name: targets -(C - 1), -(C - 3), ..., C - 1 in order of the values.

        Raises
        ------
        fkl.basics.errors.BadValue
            If the number of values is not from 2 to `MOST_CLASSES`.
        """
        # Class numbers as odd or even integers around 0, so the middle is 0
        values = np.unique(self.y[self.everywhere])
        C = len(values)
        allowed = f"square: the target has {C} values, not 2 to {MOST_CLASSES} classes"
        require(2 <= C <= MOST_CLASSES, "loss", name, allowed)
        y = np.where(self.everywhere, 2.0 * np.searchsorted(values, self.y) - (C - 1), 0.0)
        scale = self.scale.to_signs(*values) if C == 2 else self.scale
        return replace(self, y=y, expected=None, scale=scale, loss=loss._replace(several=C if C > 2 else 0))

    def testing_last(self, share: float) -> "Problem":
        """A copy in which the last samples of each client, this share of them (rounded), are test samples."""
        count = self.present.sum(axis=0)
        after = count - np.cumsum(self.present, axis=0)
        return replace(self, tested=self.present & (after < np.rint(share * count)))


def two_classes(y: NDArray[np.float64], loss: str) -> list[float]:
    """Both values of a target; a loss of two classes refuses any other number of values."""
    values: list[float] = np.unique(y).tolist()
    require(len(values) == 2, "loss", loss, f"square: the target has {len(values)} values, not two classes")
    return values


@dataclass(frozen=True)
class Batch(OfClients):
    """All samples of all clients at once, for methods that go over the same samples in every round.

    Parameters
    ----------
    x : (n, d)
    y : (n,) float64
    client : (n,) int64
        Owner of each sample, ascending.
    training : (n,) bool
        False for a test sample.
    rounds : int
        Iterations of the method.
    loss : {"square", "logistic", "one_vs_rest", "softmax"}
        Loss to minimise; ``logistic`` for a target of -1 and 1, the last two for targets of `of_classes`.
    site, site_names, rows_left_out, scale, encoder
        As in `Problem`.
    taking_part : (T, K) bool, or None
        Whether a client takes part in a round; None if all clients take part in all rounds.
    row : (n,) int64 or None
        As in `Table`.
    incomplete : Incomplete
        As in `Table`.
    classes : int
        Number of classes if each has its own theta, or 1.
    class_values : tuple of float
        The target's value in each of these classes, ascending.
    """

    x: NDArray[np.floating]
    y: NDArray[np.float64]
    client: NDArray[np.int64]
    training: NDArray[np.bool_]
    rounds: int
    site: NDArray[np.int64]
    site_names: tuple[str, ...] = ("all",)
    rows_left_out: int = 0
    loss: str = "square"
    scale: Scale = field(default_factory=Scale)
    encoder: Encoder | None = None
    taking_part: NDArray[np.bool_] | None = None
    row: NDArray[np.int64] | None = None
    incomplete: Incomplete = COMPLETE
    classes: int = 1
    class_values: tuple[float, ...] = ()

    @classmethod
    def from_problem(
        cls, problem: Problem, rounds: int, test_share: float, fold: int | None, rng: np.random.Generator
    ) -> "Batch":
        """Every client's samples of all rounds, with some drawn as test samples.

        Parameters
        ----------
        problem : Problem
        rounds : int
        test_share : float
            Share of test samples of each client, rounded; it has no effect if the data set itself has test samples.
        fold : int or None
            Fold of a cross-validation: leave out the test samples, and test on this fold of the others.
        rng : Generator

        Raises
        ------
        fkl.basics.errors.FklError
            If a client has no training samples.
        """
        # Client of each sample, in the order of clients
        here = problem.present.T
        client = np.repeat(np.arange(problem.clients), here.sum(axis=1))
        apart = None if problem.tested is None else problem.tested.T[here]
        # Place of each sample in a random order of its client's samples, the data set's test samples before the others
        behind = np.zeros(len(client), np.bool_) if apart is None else ~apart
        order = np.lexsort((rng.random(len(client)), behind, client))
        rank = np.empty(len(client), np.int64)
        rank[order] = np.arange(len(client)) - np.searchsorted(client, client)[order]
        # Number of test samples of each client
        size = np.bincount(client, apart, problem.clients) if apart is not None else test_share * np.bincount(client)
        tested = np.rint(size).astype(np.int64)
        kept, training = np.ones(len(client), np.bool_), rank >= tested[client]
        # With a fold, validation samples come from the training samples, and test samples are left out
        if fold is not None:
            kept = training
            training = (rank - tested[client]) % FOLDS != fold
        # The batch without the rounds
        x, y = problem.x.swapaxes(0, 1)[here], problem.y.T[here]
        batch = cls(
            x=x[kept],
            y=y[kept],
            client=client[kept],
            training=training[kept],
            rounds=rounds,
            site=problem.site,
            site_names=problem.site_names,
            rows_left_out=problem.rows_left_out,
            scale=problem.scale,
            encoder=problem.encoder,
            incomplete=problem.incomplete,
            row=None if problem.row is None else problem.row.T[here][kept],
        )
        # A client without training samples has no loss to minimise
        fewest = int(np.bincount(batch.client[batch.training], minlength=batch.clients).min())
        if fewest == 0:
            raise FklError("partition: a client has no training sample: choose fewer clients or a smaller test_share")
        return batch

    def require_learned_classes(self) -> None:
        """Refuse a class that no training sample has."""
        require_learned_classes(self.y, self.training, self.scale.label)

    def of_two_classes(self) -> "Batch":
        """A copy for the logistic loss, with labels -1 and 1 for the lower and the higher value of the target.

        Raises
        ------
        fkl.basics.errors.FklError
            If the number of values is not two.
        """
        # A third class that only test samples have cannot be learned
        if len(np.unique(self.y[self.training])) == 2 < len(np.unique(self.y)):
            self.require_learned_classes()
        values = two_classes(self.y, "logistic")
        signs = np.where(self.y == values[0], -1.0, 1.0)
        return replace(self, y=signs, loss="logistic", scale=self.scale.to_signs(*values))

    def of_classes(self, loss: str, fewest: int) -> "Batch":
        """A copy for a loss of C classes, with targets -(C - 1), -(C - 3), ..., C - 1 in the order of the values.

        Raises
        ------
        fkl.basics.errors.FklError
            If the number of values is not from `fewest` to `MOST_CLASSES`, or a class has no training sample.
        """
        # As above: every class needs a training sample
        if 2 <= len(np.unique(self.y[self.training])) <= MOST_CLASSES:
            self.require_learned_classes()
        values, number = np.unique(self.y, return_inverse=True)
        wrong = f"{len(values)} values, where {loss} needs {fewest} to {MOST_CLASSES} classes"
        if not fewest <= len(values) <= MOST_CLASSES:
            raise FklError(f"the target has {wrong}")
        y = (2 * number - (len(values) - 1)).astype(np.float64)
        return replace(self, y=y, loss=loss, classes=len(values), class_values=tuple(values.tolist()))

    @property
    def clients(self) -> int:
        """K."""
        return len(self.site)

    @property
    def dimension(self) -> int:
        """Length d of a sample."""
        return self.x.shape[1]

    @property
    def present(self) -> NDArray[np.bool_]:
        """Whether a client takes part in a round, (T, K)."""
        if self.taking_part is None:
            return np.broadcast_to(np.True_, (self.rounds, self.clients))
        return self.taking_part[: self.rounds]

    def thinned(self, present: NDArray[np.bool_]) -> "Batch":
        """A copy in which only these clients (T, K) take part."""
        return replace(self, taking_part=present)

    def of_client(self, k: int) -> "Batch":
        """A batch with the samples of client k only."""
        mine = self.client == k
        names = ("x", "y", "training", "row")
        arrays = {name: array[mine] for name in names if (array := getattr(self, name)) is not None}
        taking_part = None if self.taking_part is None else self.taking_part[:, [k]]
        return replace(self, **arrays, client=self.client[mine] - k, site=self.site[[k]], taking_part=taking_part)

    def pooled(self) -> "Batch":
        """All samples at one client."""
        client, site = np.zeros_like(self.client), np.zeros(1, np.int64)
        return replace(self, client=client, site=site, site_names=("all",), taking_part=None)

    def part(self, training: bool) -> tuple[NDArray[np.floating], NDArray[np.float64], NDArray[np.int64]]:
        """Samples, targets and clients of the training or of the test part."""
        chosen = self.training == training
        return self.x[chosen], self.y[chosen], self.client[chosen]


@dataclass(frozen=True)
class PerReplicate:
    """A batch for every replicate: each has its own split, and its own samples if the data are simulated.

    Parameters
    ----------
    batches : tuple of Batch
        One for each replicate, all with the same numbers of clients and rounds.
    """

    batches: tuple[Batch, ...]

    def __getattr__(self, name: str) -> Any:
        """Common facts, such as clients, rounds and site names, are those of the first."""
        if name.startswith("_") or name == "batches":
            raise AttributeError(name)
        return getattr(self.batches[0], name)
