"""Calls the loggers of a run, as often as possible at little cost."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from fkl.basics.errors import with_own_line
from fkl.basics.files import CannotWriteError
from fkl.config import Run
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import Chunk
from fkl.results.folder import read_summary
from fkl.results.tables import Tables, rounds_so_far
from fkl.screen.messages import warning

EVERY_S = 2.0
"""Minimum pause between two calls of the loggers, and the maximum share of a run's time that they may take."""
SHARE = 0.1


class Following:
    """The loggers of a run; one that raises is not called again.

    Parameters
    ----------
    run : Run
    whole : callable
        As in `Tables`.
    tables : Tables
        Tables of the run.
    """

    def __init__(self, run: Run, whole: Callable[[], Experiment], tables: Tables) -> None:
        self._loggers: dict[str, Any] = dict(run.loggers)
        self._whole, self._tables = whole, tables
        self._first, self._told = -1, 0
        self._next = monotonic() + EVERY_S

    def watch(self, chunk: Chunk, done: int) -> None:
        """Log the finished rounds of running replicates; their judge knows how many are booked."""
        if self._loggers and monotonic() >= self._next:
            self.tell(chunk, min(done, getattr(chunk.judge, "booked", 0)))

    def tell(self, chunk: Chunk, done: int) -> None:
        """Log everything new in the first rounds of some replicates."""
        if chunk.first != self._first:
            self._first, self._told = chunk.first, 0
        start = monotonic()
        if self._loggers and done > self._told:
            replicates = range(chunk.first, chunk.first + chunk.ledger.shape[0])
            with np.errstate(all="ignore"):  # of rounds that are not finished
                table = rounds_so_far(self._whole(), chunk, done, self._tables.comparison)
            for t, row in enumerate(table[self._told :].to_dict("records"), start=self._told + 1):
                metrics = {str(name): float(value) for name, value in row.items() if math.isfinite(value)}
                self.each("round", t, replicates, metrics)
            self._told = done
        end = monotonic()
        self._next = end + max(EVERY_S, (end - start) / SHARE)

    def end(self, folder: Path) -> None:
        """Log the files of the finished run."""
        if self._loggers:
            means = read_summary(folder).drop(columns="replicate").mean()
            self.each("end", folder, {str(name): float(value) for name, value in means.items() if math.isfinite(value)})

    def each(self, method: str, *told: Any) -> None:
        """Call a method of every logger."""
        for name, logger in list(self._loggers.items()):
            try:
                getattr(logger, method)(*told)
            except CannotWriteError:  # a gap that no one would notice
                del self._loggers[name]
                raise
            except Exception as error:  # any error: the run is more important than a log
                warning(f"logger.{name} gets no more of this run: {with_own_line(error)}")
                del self._loggers[name]


@contextmanager
def following(run: Run, whole: Callable[[], Experiment], tables: Tables) -> Iterator[Following]:
    """Inform a run's loggers that it begins, and how it ended if the block raises."""
    loggers = Following(run, whole, tables)
    loggers.each("begin", run)
    try:
        yield loggers
    except BaseException as error:
        with suppress(CannotWriteError):  # the error that ended the run is reported
            loggers.each("fail", str(error) or type(error).__name__)
        raise
