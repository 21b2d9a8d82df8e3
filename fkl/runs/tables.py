"""A run as three tidy tables."""

import csv
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fkl.basics.files import report_write_errors, whole_file, write_arrays
from fkl.basics.memory import row_blocks
from fkl.contract.world import Wrapped
from fkl.engines.base import DivergedError, Experiment
from fkl.engines.rounds import Chunk, LearnedFunction, simulate_run, with_features
from fkl.runs.metrics import with_accuracies
from fkl.tasks.task import RecordColumns, RowLosses, Values
from fkl.wire import UNITS, Ledger

if TYPE_CHECKING:
    import pandas as pd

FLOATS = "%.10g"
ROWS_AT_A_TIME = 2**16
TABLES = ("rounds", "clients", "summary")
LOSSES = "losses.npz"
"""File with the loss of each judged row, see `fkl.data.dealt_rows`."""
TIMING_COLUMNS = ("runtime_s", "runtime_per_client_s")
"""The only columns that differ between two runs of the same configuration."""


@dataclass(frozen=True)
class Records:
    """Tables of a run.

    Parameters
    ----------
    rounds : DataFrame
        One row per replicate and round. For a stream, mse and both regrets so far, as means over clients, in units of
        squared error; for other methods, their judge's columns. Also cumulative traffic of all clients.
    clients : DataFrame
        One row per replicate and client, at the end of the run.
    summary : DataFrame
        One row per replicate. Traffic is that of all clients; runtime_s is the algorithm's own time, without
        evaluation.
    """

    rounds: "pd.DataFrame"
    clients: "pd.DataFrame"
    summary: "pd.DataFrame"


def make_records(experiment: Experiment, chunks: Iterable[Chunk], cache: Path | None = None) -> Records:
    """Turn the results of the rounds into tables; `cache` is the folder for losses in hindsight."""
    import pandas as pd

    hindsight = find_comparison(experiment, cache)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for chunk in chunks:
        for name, tables in _tables_of_chunk(experiment, chunk, hindsight).items():
            parts[name] += map(pd.DataFrame, tables)
    return Records(**{name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()})


def summary_columns(experiment: Experiment) -> list[str]:
    """Columns of a future run's summary."""
    [summary] = _first_tables(experiment)["summary"]
    return [*summary]


def summary_without_comparison(experiment: Experiment, chunk: Chunk) -> Values:
    """The summary of some replicates, without the task's reference results."""
    [summary] = _tables_of_chunk(experiment, chunk, None)["summary"]
    return summary


def cells_written(experiment: Experiment) -> int:
    """Number of cells in the tables of a future run."""
    first, R = _first_tables(experiment), experiment.replicates
    cells = {name: sum(len(table) * rows_of(table) for table in tables) for name, tables in first.items()}
    return R * (cells["rounds"] * experiment.problem.rounds + cells["clients"] + cells["summary"])


def _first_tables(experiment: Experiment) -> dict[str, Iterable[Values]]:
    """The tables of the first round of one replicate."""
    short = replace(experiment, problem=experiment.task.first_round(), replicates=1, redraw=None)
    short = with_features(short, 2)  # the number of features does not change a table's size
    return _tables_of_chunk(short, next(simulate_run(short, None, 1, lambda _: None)), None)


class Tables:
    """The three tables of a run as files that grow with each chunk of replicates, and their summary.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    experiment : Experiment
    cache : Path or None
        Folder for losses in hindsight.
    """

    def __init__(self, folder: Path, experiment: Experiment, cache: Path | None = None) -> None:
        self._folder, self._experiment, self._cache = folder, experiment, cache
        self._comparison: tuple[Any] | None = None
        nothing = {"curves": Curves(), "kinds": {}, "learned": (), "row_losses": ()}
        self.truncate_to({"sizes": dict.fromkeys(TABLES, 0), **nothing})

    @property
    def position(self) -> dict[str, Any]:
        """Position of the tables' ends, for `truncate_to`."""
        kept = ("curves", "kinds", "learned", "row_losses")
        return {"sizes": dict(self._sizes)} | {name: getattr(self, name) for name in kept}

    def truncate_to(self, position: dict[str, Any]) -> None:
        """Remove the rows after this position."""
        self._sizes: dict[str, int] = dict(position["sizes"])
        self.curves: Curves = position["curves"]
        self.kinds: dict[str, int] = position["kinds"]
        self.learned: tuple[LearnedFunction, ...] = position["learned"]
        self.row_losses: tuple[RowLosses, ...] = position["row_losses"]

    def append(self, chunk: Chunk) -> None:
        """Write the rows of further replicates."""
        # Append rows as they are made; only the sums for figures stay in memory
        for name, tables in self._tables_of_chunk(chunk).items():
            for table in tables:
                self._append_rows(name, table)
                if name == "rounds":
                    self.curves.enter(table)
        self.learned += chunk.learned
        # Facts of all chunks together: models, losses of rows, and bytes by kind
        self.row_losses += tuple(getattr(chunk.judge, "row_losses", ()))  # a user's judge may not have any
        for (direction, kind), scalars in chunk.ledger.kinds.items():
            name = f"{direction} {kind}"
            self.kinds[name] = self.kinds.get(name, 0) + scalars

    def write_row_losses(self, file: Path) -> None:
        """Write the loss of each judged row: arrays replicate, row and loss, with equal lengths."""
        counts = [len(one.row) for one in self.row_losses]
        replicate = np.repeat(np.arange(len(counts)), counts)
        row, loss = (np.concatenate(arrays) for arrays in zip(*self.row_losses, strict=True))
        with whole_file(file) as stream:
            write_arrays(stream, {"replicate": replicate, "row": row, "loss": loss})

    def rounds_before(self, error: DivergedError) -> Path | None:
        """File of the valid rounds before a method diverged; None if it diverged in its first round."""
        if error.t:
            with np.errstate(all="ignore"):  # from the round that is discarded
                error.failed.judge.close()
                [rounds] = self._tables_of_chunk(error.failed)["rounds"]
            valid = rounds["round"] <= error.t
            self._append_rows("rounds", {name: values[valid] for name, values in rounds.items()})
        return self._file_of_table("rounds") if self._sizes["rounds"] else None

    @property
    def comparison(self) -> Any:
        """The task's reference results for the run, computed at the first use."""
        if self._comparison is None:
            self._comparison = (find_comparison(self._experiment, self._cache),)
        return self._comparison[0]

    def _tables_of_chunk(self, chunk: Chunk) -> dict[str, Iterable[Values]]:
        return _tables_of_chunk(self._experiment, chunk, self.comparison)

    def _append_rows(self, name: str, table: Values) -> None:
        file, size = self._file_of_table(name), self._sizes[name]
        with report_write_errors(file), file.open("ab") as stream:
            stream.truncate(size)
            if size == 0:
                stream.write(_csv_lines([[*table]]).encode())
            for rows in csv_rows(table):
                stream.write(rows.encode())
            stream.flush()
            self._sizes[name] = stream.seek(0, os.SEEK_END)

    def _file_of_table(self, name: str) -> Path:
        return self._folder / f"{name}.csv"


@dataclass
class Curves:
    """Mean and spread over replicates of every column of the rounds, by Welford's recursion, one replicate at a time.

    Parameters
    ----------
    columns : tuple of str
    replicates : int
        Number of replicates so far.
    mean, squares : (columns, T)
        Mean so far, and sum of squared deviations from it.
    """

    columns: tuple[str, ...] = ()
    replicates: int = 0
    mean: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    squares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def enter(self, rounds: Values) -> None:
        """Add further replicates, with rows in order."""
        self.columns = tuple(name for name in rounds if name not in ("replicate", "round"))
        T = int(rounds["round"].max())
        # Welford's update of mean and squared deviations
        values = np.stack([rounds[name].reshape(-1, T) for name in self.columns], axis=1, dtype=np.float64)
        if not self.replicates:
            self.mean, self.squares = np.zeros(values.shape[1:]), np.zeros(values.shape[1:])
        for replicate_values in values:  # one at a time, so sums, and figures, do not depend on how many run together
            self.replicates += 1
            off = replicate_values - self.mean
            self.mean = self.mean + off / self.replicates
            self.squares = self.squares + off * (replicate_values - self.mean)

    def mean_and_deviation(self, column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation (T,) of a column; the latter is 0 for one replicate."""
        place = self.columns.index(column)
        return self.mean[place], np.sqrt(self.squares[place] / max(1, self.replicates - 1))


def rows_of(table: Values) -> int:
    """Number of rows of a table."""
    return len(next(iter(table.values())))


def csv_rows(table: Values) -> Iterator[str]:
    """The rows of a table as text; missing numbers are empty."""
    # Some rows at a time, each column with the format of its type
    for start in range(0, rows_of(table), ROWS_AT_A_TIME):
        columns, formats = [], []
        for every in table.values():
            values = every[start : start + ROWS_AT_A_TIME]
            cells: list[Any] = values.tolist()
            if values.dtype.kind in "iu":
                formats.append("%d")
            elif values.dtype.kind == "f" and not np.isnan(values).any():
                formats.append(FLOATS)
            elif values.dtype.kind == "f":
                cells = ["" if cell != cell else FLOATS % cell for cell in cells]
                formats.append("%s")
            else:
                quoted = {word: _csv_lines([[word, ""]])[:-2] for word in {*cells}}
                cells = [quoted[word] for word in cells]
                formats.append("%s")
            columns.append(cells)
        row = ",".join(formats) + "\n"
        yield "".join([row % cells for cells in zip(*columns, strict=True)])


def _csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Rows of words as lines of a CSV file."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def find_comparison(experiment: Experiment, cache: Path | None) -> Any:
    """The task's reference results for a run."""
    return experiment.task.hindsight_losses(experiment.algorithm, experiment.dictionary, cache)


def _tables_of_chunk(experiment: Experiment, chunk: Chunk, hindsight: Any) -> dict[str, Iterable[Values]]:
    """The tables by name, each in parts; the table of clients has some rows per part."""
    # Columns from the judge, the ledger and the conditions, by round and by client
    problem, R = experiment.problem, chunk.ledger.shape[0]
    T, K = len(chunk.elapsed), problem.clients
    replicates, elapsed = np.arange(chunk.first, chunk.first + R), chunk.seconds_per_replicate()
    task_columns = experiment.task.columns(chunk.judge, elapsed, hindsight)
    sent = _traffic_columns(chunk.ledger)
    by_round = task_columns.rounds | _columns_of_conditions(experiment, R) | dict(chunk.round_columns) | sent.rounds
    by_client = with_accuracies(task_columns.clients) | sent.clients
    by_round = with_accuracies({name: values[:T] for name, values in by_round.items()})

    # rounds.csv has all rounds of the first replicate, then those of the next
    rounds = {"replicate": np.repeat(replicates, T), "round": np.tile(np.arange(1, T + 1), R)}
    rounds |= {name: values.T.ravel() for name, values in by_round.items()}
    # The summary has the last round, and columns that exist only at the end
    summary: Values = {"replicate": replicates}
    summary |= (
        {name: values[-1] for name, values in by_round.items()} | task_columns.summary | dict(chunk.summary_columns)
    )
    summary.pop("runtime_s", None)
    if chunk.stopped_at is not None:
        summary["stopped_at"] = np.full(R, chunk.stopped_at)
    summary["runtime_s"] = elapsed[-1]
    summary["runtime_per_client_s"] = elapsed[-1] / K

    # clients.csv in parts, because a million clients would not fit as text
    def clients() -> Iterator[Values]:
        sites = np.array(problem.site_names)
        for r, replicate in enumerate(replicates):
            for some in row_blocks(K):
                columns = {"replicate": np.full(some.stop - some.start, replicate)}
                columns["client"] = np.arange(some.start, some.stop)
                columns["site"] = sites[problem.site[some]]
                values_here = {name: np.broadcast_to(values, (R, K))[r, some] for name, values in by_client.items()}
                yield columns | values_here

    return {"rounds": [rounds], "clients": clients(), "summary": [summary]}


def rounds_so_far(experiment: Experiment, chunk: Chunk, done: int, hindsight: Any) -> Values:
    """Columns of the first rounds as means over replicates, which may still be running; one row per round.

    Parameters
    ----------
    experiment : Experiment
    chunk : Chunk
    done : int
        Number of rounds that their judge has recorded.
    hindsight : see `Tables.comparison`
    """
    # The same columns, but only so far and as means
    columns = experiment.task.by_round(chunk.judge, chunk.seconds_per_replicate(), hindsight)
    columns |= _columns_of_conditions(experiment, chunk.ledger.shape[0]) | _traffic_columns(chunk.ledger).rounds
    return {name: values[:done].mean(axis=1) for name, values in with_accuracies(columns).items()}


def _columns_of_conditions(experiment: Experiment, replicates: int) -> Values:
    """Columns of network conditions about every round, (T, R), the same for all replicates."""
    method = experiment.algorithm
    told = method.columns(experiment.problem) if isinstance(method, Wrapped) else {}
    return {name: np.repeat(values[:, None], replicates, axis=1) for name, values in told.items()}


def _traffic_columns(ledger: Ledger) -> RecordColumns:
    """Traffic so far by round, and total traffic by client."""
    sent = RecordColumns({}, {}, {})
    for direction, tally in ledger.tallies.items():
        by_round = np.cumsum(tally.by_round, axis=0)
        for number, unit in enumerate(UNITS):
            name = "transmissions" if (direction, unit) == ("broadcast", "messages") else f"{direction}_{unit}"
            sent.rounds[name], sent.clients[name] = by_round[..., number], tally.by_client[..., number]
    if ledger.cost is not None:
        sent.rounds["communication_s"] = np.cumsum(ledger.seconds, axis=0)
    return sent
