"""Loggers that follow a run: their interface, loggers that write files, and code that calls them at little cost."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import yaml

from fkl.basics.errors import FklError, requires_extra, with_own_line
from fkl.basics.files import CannotWriteError, report_write_errors
from fkl.basics.keys import Keys, key
from fkl.config.digest import decisive_part
from fkl.config.loading import Run
from fkl.data.baselines import summary_means
from fkl.engines.base import Experiment
from fkl.engines.rounds import Chunk
from fkl.runs.folder import read_summary
from fkl.runs.tables import Tables, rounds_so_far
from fkl.screen.messages import show_warning


class Logger(Protocol):
    """Interface of a logger: a dataclass whose fields are the keys of its node.

    An exception in a logger is reported in one line and does not stop the run; this logger is not called again. A
    `CannotWriteError` of `fkl.basics.files.report_write_errors` ends the run, which resumes from its checkpoint when it
    is started again.
    """

    def begin(self, run: Run) -> None:
        """A run begins, or resumes from its checkpoint."""
        ...

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """Round t has ended; metrics are columns of rounds.csv, as means over the replicates that run together.

        Empty columns are omitted. The rounds of a group of replicates come in order; after an interruption they come
        again from the first, with the same numbers.
        """
        ...

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """The run is finished; the arguments are its folder and the means of summary.csv over all replicates."""
        ...

    def fail(self, why: str) -> None:
        """The run ended with an error, or was interrupted."""
        ...


@contextmanager
def requires_library(name: str) -> Iterator[None]:
    """Report how to install a logger's library that an import in this block does not find. fkl has no extra for it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise FklError(f"logger={name}: needs {error.name}", help=[f"pip install {name}"]) from None


def group_name(replicates: Sequence[int], run: Run) -> str:
    """Name of a group of replicates; empty if the group has all of the run's replicates."""
    if len(replicates) == run.settings.replicates:
        return ""
    ends = dict.fromkeys((replicates[0], replicates[-1]))
    return f"replicate{'s' * (len(ends) - 1)} {'-'.join(map(str, ends))}"


@dataclass
class JsonLines(Keys):
    """One JSON object per line: one for the run, one per round, one for the end.

    A resumed run continues its file; a repeated run starts a new file. If the file cannot be written, for example on a
    full disk, the run ends; the same command continues both. If only the last line cannot be written, the run is
    finished, and the line stays missing.
    """

    file: str | None = key(None, "Path; None for a file in the folder ``logs`` of the outputs, named after the run.")

    def begin(self, run: Run) -> None:
        """Open the file, which may already have the first part of this run."""
        # A file of the user's, or one named after the run
        path = Path(run.paths.outputs) / "logs" / f"{run.folder.name}.jsonl" if self.file is None else Path(self.file)
        begun = {"event": "begin", "run": run.digest, "config": decisive_part(run.resolved)}
        self._path = path
        with report_write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # It may have lines of this run from before an interruption; a cut line is removed
            with path.open("ab+") as stream:
                stream.seek(0)
                lines = stream.read().splitlines(keepends=True)
                if lines and not _event_line(begun).startswith(lines[0]):  # the first line may be cut, too
                    raise FklError(f"{path}: not a log of this run")
                whole = [line for line in lines if line.endswith(b"\n")]  # all except one that was truncated
                records = [json.loads(line) for line in whole]
                if records and records[-1]["event"] == "end":
                    whole, records = [], []
                stream.truncate(sum(map(len, whole)))
            self._stream = path.open("ab")
        # Rounds that are in the file already are not written again
        self._known = {(*event["replicates"], event["round"]) for event in records if event["event"] == "round"}
        if not whole:
            self._write_event(begun)

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """Write a line, unless the file has it already."""
        ends = [replicates[0], replicates[-1]]
        if (*ends, t) not in self._known:
            self._write_event({"event": "round", "replicates": ends, "round": t, "metrics": metrics})

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """Write the last line."""
        self._write_event({"event": "end", "folder": folder.name, "summary": summary})
        self._stream.close()

    def fail(self, why: str) -> None:
        """Write the reason, and close."""
        self._write_event({"event": "fail", "why": why})
        self._stream.close()

    def _write_event(self, event: dict[str, Any]) -> None:
        with report_write_errors(self._path):
            self._stream.write(_event_line(event))
            self._stream.flush()


def _event_line(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"


@dataclass
class TensorBoard(Keys):
    """Curves of the rounds, the run's figures, and the means of its summary: ``tensorboard --logdir FOLDER``.

    If not all replicates run together, each group of them has its own curve, in its own folder.
    """

    folder: str | None = key(None, "Parent of the run's folder; None for ``tensorboard`` in the outputs.")

    def __post_init__(self) -> None:
        super().__post_init__()
        with requires_extra("tensorboard", "logger=tensorboard"):
            import tensorboardX  # noqa: F401

    def begin(self, run: Run) -> None:
        """Write the configuration."""
        parent = Path(run.paths.outputs) / "tensorboard" if self.folder is None else Path(self.folder)
        self._run, self._place = run, parent / run.folder.name
        self._writers: dict[str, Any] = {}
        self._writer_of_folder("").add_text(
            "config", f"```\n{yaml.safe_dump(decisive_part(run.resolved), sort_keys=False)}```"
        )

    def round(self, t: int, replicates: Sequence[int], metrics: dict[str, float]) -> None:
        """Add one point to every curve."""
        writer = self._writer_of_folder(group_name(replicates, self._run))
        for name, value in metrics.items():
            writer.add_scalar(name, value, t)

    def end(self, folder: Path, summary: dict[str, float]) -> None:
        """Write the summary and the figures."""
        from matplotlib.image import imread

        for name, value in summary.items():
            self._writer_of_folder("").add_scalar(f"summary/{name}", value, 0)
        for file in sorted(folder.glob("*.png")):
            self._writer_of_folder("").add_image(file.stem, imread(file), 0, dataformats="HWC")
        self._close_writers()

    def fail(self, why: str) -> None:
        """Write the reason."""
        self._writer_of_folder("").add_text("error", why)
        self._close_writers()

    def _writer_of_folder(self, name: str) -> Any:
        """The writer of a folder.

        TensorBoard hides the rounds of an interrupted run, because they are written again.
        """
        from tensorboardX import SummaryWriter

        if name not in self._writers:
            self._writers[name] = SummaryWriter(str(self._place / name), purge_step=0)
        return self._writers[name]

    def _close_writers(self) -> None:
        for writer in self._writers.values():
            writer.close()


EVERY_S = 2.0
"""Minimum pause between two calls of the loggers, and the maximum share of a run's time that they may take."""
SHARE = 0.1
LIMIT_S = {"begin": 60.0, "round": 60.0, "end": 600.0, "fail": 600.0}
"""Maximum seconds of a call of a logger, which may send all files at the end."""


class Loggers:
    """The loggers of a run: each is called when the run begins, after its rounds, and when it ends.

    A logger that raises an error is not called again.

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
        self._run, self._first, self._logged = run, -1, 0
        self._next = monotonic() + EVERY_S

    def __enter__(self) -> Self:
        self._call_each("begin", self._run)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            with suppress(CannotWriteError):  # the error that ended the run is reported
                self._call_each("fail", str(error) or type(error).__name__)

    def watch_rounds(self, chunk: Chunk, done: int) -> None:
        """Log the finished rounds of running replicates, as far as their judge has recorded them."""
        if self._loggers and monotonic() >= self._next:
            self.log(chunk, min(done, getattr(chunk.judge, "booked", 0)))

    def log(self, chunk: Chunk, done: int) -> None:
        """Log everything new in the first rounds of some replicates."""
        # Only rounds that have not been logged yet
        if chunk.first != self._first:
            self._first, self._logged = chunk.first, 0
        start = monotonic()
        if self._loggers and done > self._logged:
            replicates = range(chunk.first, chunk.first + chunk.ledger.shape[0])
            # Means over the replicates so far, without NaN and infinity, which loggers refuse
            with np.errstate(all="ignore"):  # from rounds that are not finished
                table = rounds_so_far(self._experiment, chunk, done, self._tables.comparison)
            for t in range(self._logged + 1, done + 1):
                row = {name: float(values[t - 1]) for name, values in table.items()}
                metrics = {name: value for name, value in row.items() if math.isfinite(value)}
                self._call_each("round", t, replicates, metrics)
            self._logged = done
        # The next logging comes later the longer this one took, so it never takes more than its share
        end = monotonic()
        self._next = end + max(EVERY_S, (end - start) / SHARE)

    def end(self, folder: Path) -> None:
        """Log the files of the finished run."""
        if self._loggers:
            mean = summary_means(read_summary(folder)).items()
            finite = {name: value for name, value in mean if name != "replicate" and math.isfinite(value)}
            self._call_each("end", folder, finite)

    def _call_each(self, method: str, *arguments: Any) -> None:
        """Call a method of every logger."""
        for name, logger in list(self._loggers.items()):
            try:
                getattr(logger, method)(*arguments)
            except CannotWriteError:  # otherwise no one would notice the gap
                del self._loggers[name]
                raise
            except Exception as error:  # any error: the run is more important than a log
                show_warning(f"logger.{name} is not called again: {with_own_line(error)}")
                del self._loggers[name]


class _InThread:
    """A logger that is called in its own thread; the run waits for it no longer than `LIMIT_S`."""

    def __init__(self, logger: Any) -> None:
        self._logger, self._works = logger, True
        self._calls: SimpleQueue[tuple[str, tuple[Any, ...]] | None] = SimpleQueue()
        self._answers: SimpleQueue[BaseException | None] = SimpleQueue()
        Thread(target=copy_context().run, args=(self._work_through,), daemon=True).start()

    def __getattr__(self, method: str) -> Callable[..., None]:
        return partial(self._call_in_thread, method)

    def _call_in_thread(self, method: str, *arguments: Any) -> None:
        if not self._works:  # the run was interrupted while it waited for the logger
            return
        # While a call is in progress, an interruption must not start another one
        self._works = False
        self._calls.put((method, arguments))
        try:
            error = self._answers.get(timeout=LIMIT_S[method])
        except Empty:
            error = TimeoutError(f"no answer in {LIMIT_S[method]:g} s")
        # After an error or the end, the logger's thread ends
        self._works = error is None and method not in ("end", "fail")
        if not self._works:
            self._calls.put(None)
        if error is not None:
            raise error

    def _work_through(self) -> None:
        while call := self._calls.get():
            method, arguments = call
            try:
                getattr(self._logger, method)(*arguments)
                self._answers.put(None)
            except BaseException as error:  # raised where the logger was called
                self._answers.put(error)
