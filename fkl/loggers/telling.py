"""Calls the loggers of a run, as often as possible at little cost."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any

import numpy as np

from fkl.basics.errors import with_own_line
from fkl.basics.files import CannotWriteError
from fkl.config import Run
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import Chunk
from fkl.loggers.jsonl import JsonLines
from fkl.loggers.tensorboard import TensorBoard
from fkl.results.folder import read_summary
from fkl.results.tables import Tables, rounds_so_far
from fkl.screen.messages import warning

EVERY_S = 2.0
"""Minimum pause between two calls of the loggers, and the maximum share of a run's time that they may take."""
SHARE = 0.1
LIMIT_S = {"begin": 60.0, "round": 60.0, "end": 600.0, "fail": 600.0}
"""Maximum duration of a call of a logger; at the end it may send all files."""


class Following:
    """The loggers of a run; one that raises is not called again.

    Parameters
    ----------
    run : Run
    experiment : Experiment
    tables : Tables
        Tables of the run.
    """

    def __init__(self, run: Run, experiment: Experiment, tables: Tables) -> None:
        local = JsonLines, TensorBoard  # write files as the run does
        self._loggers: dict[str, Any] = {
            name: logger if isinstance(logger, local) else _InThread(logger) for name, logger in run.loggers.items()
        }
        self._experiment, self._tables = experiment, tables
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
                table = rounds_so_far(self._experiment, chunk, done, self._tables.comparison)
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


class _InThread:
    """A logger that is called in a thread of its own, for which the run waits no longer than `LIMIT_S`."""

    def __init__(self, logger: Any) -> None:
        self._logger, self._works = logger, True
        self._told: SimpleQueue[tuple[str, tuple[Any, ...]] | None] = SimpleQueue()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        Thread(target=copy_context().run, args=(self._follow,), daemon=True).start()

    def __getattr__(self, method: str) -> Callable[..., None]:
        return partial(self._call, method)

    def _call(self, method: str, *told: Any) -> None:
        if not self._works:  # an interruption has come while the run waited for it
            return
        self._works = False
        self._told.put((method, told))
        try:
            error = self._ended.get(timeout=LIMIT_S[method])
        except Empty:
            error = TimeoutError(f"no answer in {LIMIT_S[method]:g} s")
        self._works = error is None and method not in ("end", "fail")
        if not self._works:
            self._told.put(None)
        if error is not None:
            raise error

    def _follow(self) -> None:
        while call := self._told.get():
            method, told = call
            try:
                getattr(self._logger, method)(*told)
                self._ended.put(None)
            except BaseException as error:  # raised where the logger was called
                self._ended.put(error)


@contextmanager
def following(run: Run, experiment: Experiment, tables: Tables) -> Iterator[Following]:
    """Inform a run's loggers that it begins, and how it ended if the block raises."""
    loggers = Following(run, experiment, tables)
    loggers.each("begin", run)
    try:
        yield loggers
    except BaseException as error:
        with suppress(CannotWriteError):  # the error that ended the run is reported
            loggers.each("fail", str(error) or type(error).__name__)
        raise
