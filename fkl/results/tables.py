"""A run as three tidy tables."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.basics.files import whole_file, write_arrays, writing
from fkl.conditions import Wrapped
from fkl.engines.divergence import DivergedError
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import Chunk, Learned, simulate
from fkl.tasks.task import Columns, RowLosses, Values
from fkl.wire import UNITS, Ledger

FLOATS = "%.10g"
ROWS_AT_A_TIME = 2**16
TABLES = ("rounds", "clients", "summary")
LOSSES = "losses.npz"
"""File with the loss of each judged row, see `fkl.data.dealt_rows`."""
TIMING_COLUMNS = ("runtime_s", "runtime_per_client_s")
"""The only columns that differ between two runs of one configuration."""


@dataclass(frozen=True)
class Records:
    """What a run leaves behind.

    Parameters
    ----------
    rounds : DataFrame
        One row a replicate and round: of a stream, mse of all clients so far and both regrets so far, means over
        clients, in units of squared error; of other methods, what their judges tell; cumulative traffic of all clients.
    clients : DataFrame
        One row a replicate and client, at the end of the run.
    summary : DataFrame
        One row a replicate. Traffic is that of all clients; runtime_s is the algorithm's own time, evaluation excluded.
    """

    rounds: pd.DataFrame
    clients: pd.DataFrame
    summary: pd.DataFrame


def make_records(experiment: Experiment, chunks: Iterable[Chunk], cache: Path | None = None) -> Records:
    """Turn what the loop brings back into tables; `cache` is where losses in hindsight are kept."""
    beside = find_comparison(experiment, cache)
    parts = [_records_of_chunk(experiment, chunk, beside) for chunk in chunks]
    tables = {name: pd.concat([getattr(part, name) for part in parts], ignore_index=True) for name in TABLES}
    return Records(**tables)


def summary_columns(experiment: Experiment) -> list[str]:
    """What the columns of a run's summary will be."""
    return [str(name) for name in _first_records(experiment).summary]


def summary_without_comparison(experiment: Experiment, chunk: Chunk) -> pd.DataFrame:
    """The summary of some replicates, without what the task would compare them with."""
    return _records_of_chunk(experiment, chunk, None).summary


def cells_written(experiment: Experiment) -> int:
    """How many cells the tables of a run will have."""
    first, R = _first_records(experiment), experiment.replicates
    rows = (experiment.problem.rounds, len(first.clients), 1)
    widths = (frame.shape[1] for frame in (first.rounds, first.clients, first.summary))
    return R * sum(row * width for row, width in zip(rows, widths, strict=True))


def _first_records(experiment: Experiment) -> Records:
    """The tables of the first round of one replicate."""
    short = replace(experiment, problem=experiment.task.first_round(), replicates=1, redraw=None)
    return _records_of_chunk(short, next(simulate(short, None, 1, lambda _: None)), None)


class Tables:
    """The three tables of a run as files that grow with each chunk of replicates, and what is summed up of them.

    Parameters
    ----------
    folder : Path
        Where the files go.
    whole : callable
        The experiment with all clients, asked for when first needed.
    cache : Path or None
        Where losses in hindsight are kept.
    """

    def __init__(self, folder: Path, whole: Callable[[], Experiment], cache: Path | None = None) -> None:
        self._folder, self._whole, self._cache = folder, whole, cache
        self._comparison: tuple[Any] | None = None
        nothing = {"curves": Curves(), "kinds": {}, "learned": (), "row_losses": ()}
        self.truncate_to({"sizes": dict.fromkeys(TABLES, 0), **nothing})

    @property
    def position(self) -> dict[str, Any]:
        """Where the tables end, for `truncate_to`."""
        kept = ("curves", "kinds", "learned", "row_losses")
        return {"sizes": dict(self._sizes)} | {name: getattr(self, name) for name in kept}

    def truncate_to(self, position: dict[str, Any]) -> None:
        """Forget the rows that came after this position."""
        self._sizes: dict[str, int] = dict(position["sizes"])
        self.curves: Curves = position["curves"]
        self.kinds: dict[str, int] = position["kinds"]
        self.learned: tuple[Learned, ...] = position["learned"]
        self.row_losses: tuple[RowLosses, ...] = position["row_losses"]

    def append(self, chunk: Chunk) -> None:
        """Write the rows of some more replicates."""
        records = self._records(chunk)
        for name in TABLES:
            self._append(name, getattr(records, name))
        self.curves.enter(records.rounds)
        self.learned += chunk.learned
        self.row_losses += tuple(getattr(chunk.judge, "row_losses", ()))  # a user's judge may have none
        for (direction, kind), scalars in chunk.ledger.kinds.items():
            name = f"{direction} {kind}"
            self.kinds[name] = self.kinds.get(name, 0) + scalars

    def write_row_losses(self, file: Path) -> None:
        """Write the loss of each judged row: arrays replicate, row and loss, of one length."""
        counts = [len(one.row) for one in self.row_losses]
        replicate = np.repeat(np.arange(len(counts)), counts)
        row, loss = (np.concatenate(arrays) for arrays in zip(*self.row_losses, strict=True))
        with whole_file(file) as stream:
            write_arrays(stream, {"replicate": replicate, "row": row, "loss": loss})

    def rounds_before(self, error: DivergedError) -> Path | None:
        """File of the rounds that were right when a method diverged; None where it diverged in its first round."""
        if error.t:
            with np.errstate(all="ignore"):  # of the round that is not kept
                error.failed.judge.close()
                rounds = self._records(error.failed).rounds
            self._append("rounds", rounds[rounds["round"] <= error.t])
        return self._file("rounds") if self._sizes["rounds"] else None

    @property
    def comparison(self) -> Any:
        """What the task compares the run with, found when it is first needed."""
        if self._comparison is None:
            self._comparison = (find_comparison(self._whole(), self._cache),)
        return self._comparison[0]

    def _records(self, chunk: Chunk) -> Records:
        return _records_of_chunk(self._whole(), chunk, self.comparison)

    def _append(self, name: str, table: pd.DataFrame) -> None:
        file, size = self._file(name), self._sizes[name]
        with writing(file), file.open("ab") as stream:
            stream.truncate(size)
            if size == 0:
                stream.write(table[:0].to_csv(index=False, lineterminator="\n").encode())
            for rows in csv_rows(table):
                stream.write(rows.encode())
            stream.flush()
            self._sizes[name] = stream.seek(0, os.SEEK_END)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.csv"


@dataclass
class Curves:
    """Mean and spread over replicates of every column of the rounds, by Welford's recursion, one replicate at a time.

    Parameters
    ----------
    columns : tuple of str
    replicates : int
        How many were entered.
    mean, squares : (columns, T)
        Mean so far, and sum of squared deviations from it.
    """

    columns: tuple[str, ...] = ()
    replicates: int = 0
    mean: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    squares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def enter(self, rounds: pd.DataFrame) -> None:
        """Take in some more replicates, rows in order."""
        self.columns = tuple(str(name) for name in rounds if name not in ("replicate", "round"))
        T = int(rounds["round"].max())
        values = rounds[list(self.columns)].to_numpy(np.float64).reshape(-1, T, len(self.columns)).swapaxes(1, 2)
        if not self.replicates:
            self.mean, self.squares = np.zeros(values.shape[1:]), np.zeros(values.shape[1:])
        for one in values:  # so that sums, and figures to the byte, are the same however many run together
            self.replicates += 1
            off = one - self.mean
            self.mean = self.mean + off / self.replicates
            self.squares = self.squares + off * (one - self.mean)

    def mean_and_deviation(self, column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation (T,), the latter 0 of one replicate."""
        place = self.columns.index(column)
        return self.mean[place], np.sqrt(self.squares[place] / max(1, self.replicates - 1))


def csv_rows(table: pd.DataFrame) -> Iterator[str]:
    """The rows that `to_csv` would write. Tables of numbers are written row by row, which takes a third of its time."""
    numbers = all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in table.dtypes)
    for start in range(0, len(table), ROWS_AT_A_TIME):
        some = table[start : start + ROWS_AT_A_TIME]
        if numbers:
            columns: list[list[Any]] = []
            formats = []
            for name in some:
                values = some[name].to_numpy()
                if values.dtype.kind != "f":
                    columns.append(values.tolist())
                    formats.append("%d")
                elif not np.isnan(values).any():
                    columns.append(values.tolist())
                    formats.append(FLOATS)
                else:  # numbers that are not there are empty, so all are texts
                    columns.append(["" if value != value else FLOATS % value for value in values.tolist()])
                    formats.append("%s")
            row = ",".join(formats) + "\n"
            yield "".join([row % cells for cells in zip(*columns, strict=True)])
        else:
            yield some.to_csv(index=False, header=False, float_format=FLOATS, lineterminator="\n")


def find_comparison(experiment: Experiment, cache: Path | None) -> Any:
    """What the task compares a run with."""
    return experiment.task.beside(experiment.algorithm, experiment.dictionary, cache)


def _records_of_chunk(experiment: Experiment, chunk: Chunk, beside: Any) -> Records:
    problem, R = experiment.problem, chunk.ledger.shape[0]
    T, K = len(chunk.elapsed), problem.clients
    replicates, elapsed = np.arange(chunk.first, chunk.first + R), chunk.seconds_per_replicate()
    told = experiment.task.columns(chunk.judge, elapsed, beside)
    sent = _traffic(chunk.ledger)
    by_round, by_client = told.rounds | _columns_of_conditions(experiment, R) | sent.rounds, told.clients | sent.clients
    by_round = {name: values[:T] for name, values in by_round.items()}

    rounds = {"replicate": np.repeat(replicates, T), "round": np.tile(np.arange(1, T + 1), R)}
    rounds |= {name: values.T.ravel() for name, values in by_round.items()}
    clients: Values = {"replicate": np.repeat(replicates, K), "client": np.tile(np.arange(K), R)}
    clients["site"] = np.tile(np.array(problem.site_names)[problem.site], R)
    clients |= {name: np.broadcast_to(values, (R, K)).ravel() for name, values in by_client.items()}
    summary: Values = {"replicate": replicates}
    summary |= {name: values[-1] for name, values in by_round.items()} | told.summary
    summary.pop("runtime_s", None)
    if chunk.stopped_at is not None:
        summary["stopped_at"] = np.full(R, chunk.stopped_at)
    summary["runtime_s"] = elapsed[-1]
    summary["runtime_per_client_s"] = elapsed[-1] / K
    return Records(pd.DataFrame(rounds), pd.DataFrame(clients), pd.DataFrame(summary))


def rounds_so_far(experiment: Experiment, chunk: Chunk, done: int, beside: Any) -> pd.DataFrame:
    """Columns of the first rounds of replicates that may be under way, their means, one row a round.

    Parameters
    ----------
    experiment : Experiment
    chunk : Chunk
    done : int
        Rounds that their judge has booked.
    beside : see `Tables.comparison`
    """
    columns = experiment.task.by_round(chunk.judge, chunk.seconds_per_replicate(), beside)
    columns |= _columns_of_conditions(experiment, chunk.ledger.shape[0]) | _traffic(chunk.ledger).rounds
    return pd.DataFrame({name: values[:done].mean(axis=1) for name, values in columns.items()})


def _columns_of_conditions(experiment: Experiment, replicates: int) -> Values:
    """What the network's conditions tell of every round, (T, R), the same of all replicates."""
    method = experiment.algorithm
    told = method.columns(experiment.problem) if isinstance(method, Wrapped) else {}
    return {name: np.repeat(values[:, None], replicates, axis=1) for name, values in told.items()}


def _traffic(ledger: Ledger) -> Columns:
    """What was sent so far, by round, and in all, by client."""
    sent = Columns({}, {}, {})
    for direction, tally in ledger.tallies.items():
        by_round = np.cumsum(tally.by_round, axis=0)
        for number, unit in enumerate(UNITS):
            name = "transmissions" if (direction, unit) == ("broadcast", "messages") else f"{direction}_{unit}"
            sent.rounds[name], sent.clients[name] = by_round[..., number], tally.by_client[..., number]
    if ledger.cost is not None:
        sent.rounds["communication_s"] = np.cumsum(ledger.seconds, axis=0)
    return sent
