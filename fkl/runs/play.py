"""One run, from a checked configuration to a folder of records: prepare, play, finish."""

import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from numba.core import event
from tqdm import tqdm

from fkl.basics.errors import key_prefix, require
from fkl.basics.memory import limited_to_free_memory
from fkl.config import Run, engine
from fkl.engines.base import Engine
from fkl.engines.divergence import DivergedError
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import Chunk, simulate
from fkl.runs.finish import about, finish, of_clients_gone, title_of
from fkl.runs.folder import (
    DIVERGED,
    add_file,
    finished,
    forget_failed,
    is_locked,
    locked,
    provenance,
    recovered,
    workspace,
    write_failed,
)
from fkl.runs.loggers import following
from fkl.runs.model import FILE as MODEL
from fkl.runs.model import Model
from fkl.runs.prepare import prepare
from fkl.runs.tables import Tables, summary_columns
from fkl.screen.messages import say, warning


def execute(run: Run, progress: bool = True) -> bool:
    """Do the run unless it is finished, and return whether there was anything to do.

    Parameters
    ----------
    run : Run
    progress : bool
        Whether a bar on stderr shows the rounds.

    Raises
    ------
    fkl.basics.errors.FklError
        For any error that the user can correct; nothing is then written, except for the rows before a divergence.
    """
    with engine(run.settings.engine).opened() as player:
        done = finished(run)
        if not done or is_locked(run.folder):
            with locked(run.folder):
                done = finished(run) or recovered(run)  # by another process, maybe a killed one
                if not done:
                    play(run, player, progress)
        forget_failed(run.failed_folder, run.digest)
        if run.settings.save_model and MODEL not in provenance(run.folder)["files"]:
            with locked(run.folder):
                add_model(run, progress)
        return not done


def play(run: Run, engine: Engine, progress: bool = True) -> None:
    """Play a run that has not been played, into its folder; a bar on stderr shows its progress."""
    with limited_to_free_memory():
        experiment = prepare(run)
    wanted = run.settings.objective
    if wanted is not None:
        with key_prefix("algo"):
            columns = summary_columns(experiment)[1:]
        require(wanted in columns, "objective", wanted, f"one of {', '.join(columns)}")
    engine.announce()
    threads = run.settings.threads or experiment.engine.threads
    with workspace(run) as folder:
        with Desk(run, experiment, folder, progress) as desk:
            watch = desk.loggers.watch if run.loggers else None
            how = threads, run.settings.chunk, desk.progress.advance, desk.checkpoint, watch, run.settings.save_model
            try:
                with key_prefix("algo"):
                    for chunk in simulate(experiment, *how):
                        desk.write(chunk)
            except DivergedError as error:
                desk.write_failed(error)
                raise
        finish(run, experiment, desk.tables, folder)
    desk.loggers.end(run.folder)


def add_model(run: Run, progress: bool = True) -> None:
    """Play a finished run again, only for its model: its digest guarantees that it learns the same."""
    say(f"{run.folder} has no {MODEL}: it is played again for it")
    settings = run.settings
    with limited_to_free_memory():
        experiment = prepare(run)
    title, rounds = title_of(run), settings.replicates * experiment.problem.rounds
    with Progress(title, rounds, progress) as bar, key_prefix("algo"):
        how = settings.threads, settings.chunk, bar.advance
        chunks = simulate(experiment, *how, keep_functions=True)
        learned = [one for chunk in chunks for one in chunk.learned]
    if len(learned) == settings.replicates:
        model = Model.from_experiment(experiment, run.dataset, learned)
        add_file(run, MODEL, model.save)
        for text in of_clients_gone(experiment, model):
            warning(f"{title}: {text}")


class Desk:
    """Writes the results of a run's rounds to the folder in which the run is made.

    Parameters
    ----------
    run : Run
    experiment : Experiment
        The part of this process.
    folder : Path
    progress : bool
        Whether a bar shows the rounds.

    Attributes
    ----------
    tables : Tables
    checkpoint : Checkpoint
    progress : Progress
    loggers : Following
        The last two exist inside ``with Desk(...)``.
    """

    def __init__(self, run: Run, experiment: Experiment, folder: Path, progress: bool = True) -> None:
        self._run, self._experiment, self._shown = run, experiment, progress
        self.tables = Tables(folder, experiment, Path(run.paths.cache).expanduser())
        digest = f"{run.digest}, functions kept" if run.settings.save_model else run.digest
        self.checkpoint = experiment.engine.checkpoint(folder, run.settings.checkpoint_s, digest, self.tables)

    def __enter__(self) -> Self:
        rounds = self._run.settings.replicates * self._experiment.problem.rounds
        with ExitStack() as opened:  # closes the bar if a logger cannot begin
            self.progress = opened.enter_context(Progress(title_of(self._run), rounds, self._shown))
            self.loggers = opened.enter_context(following(self._run, self._experiment, self.tables))
            self._open = opened.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.__exit__(kind, error, at)

    def write(self, chunk: Chunk) -> None:
        """Write the results of some replicates that have ended."""
        self.tables.append(chunk)
        self.loggers.tell(chunk, len(chunk.elapsed))

    def write_failed(self, error: DivergedError) -> None:
        """Write the rounds before the one in which a method diverged."""
        run, rows = self._run, self.tables.rounds_before(error)
        notes = {**about(run), DIVERGED: True}
        error.folder = write_failed(run.failed_folder, run.resolved, str(error), run.digest, rows, notes)
        self.loggers.tell(error.failed, error.t)


class Progress(event.Listener):  # type: ignore[misc]
    """A bar of rounds, on stderr, that erases itself.

    Compiled code is stored for later runs, and its time does not belong to the rounds: the bar's clock restarts after
    it.

    Parameters
    ----------
    title : str
    rounds : int
        Total over all replicates.
    shown : bool
        Whether there is a bar at all.
    """

    def __init__(self, title: str, rounds: int, shown: bool = True) -> None:
        pause = 0.2 if sys.stderr.isatty() else 10.0  # a log needs fewer lines than a terminal
        self.title = title
        self.compiling = False
        self.bar: tqdm[NoReturn] = tqdm(
            total=rounds, desc=title, unit="round", leave=False, file=sys.stderr, mininterval=pause, disable=not shown
        )

    def __enter__(self) -> Self:
        event.register("numba:compile", self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        event.unregister("numba:compile", self)
        self.bar.close()

    def on_start(self, _: Any) -> None:
        """Report compilation, which happens once per machine."""
        if not self.compiling:
            self.compiling = True
            self.bar.set_description(f"{self.title}, compiling (once)")

    def on_end(self, _: Any) -> None:
        """Print nothing: more may be compiled before the next round ends."""

    def advance(self, rounds: int) -> None:
        """Advance the bar by this number of rounds."""
        if self.compiling:
            self.compiling = False
            self.bar.set_description(self.title, refresh=False)
            self.bar.unpause()
        self.bar.update(rounds)
