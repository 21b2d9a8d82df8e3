"""What is written while rounds go on: tables, a bar of progress, loggers and checkpoints."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fkl.config import Run
from fkl.engines.checkpoint import Checkpoint
from fkl.engines.divergence import DivergedError
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import Chunk
from fkl.loggers.telling import following
from fkl.results.folder import DIVERGED, write_failed
from fkl.results.tables import Tables
from fkl.runs.progress import Progress


class Desk:
    """Writes down what the rounds of a run show, in the folder where the run is made.

    Parameters
    ----------
    run : Run
    experiment : Experiment
        What this process plays.
    folder : Path
    progress : bool
        Whether a bar shows the rounds.

    Attributes
    ----------
    tables : Tables
    checkpoint : Checkpoint
    progress : Progress
    loggers : Following
        The last two are there inside ``with Desk(...)``.
    """

    def __init__(self, run: Run, experiment: Experiment, folder: Path, progress: bool = True) -> None:
        self._run, self._experiment, self._shown = run, experiment, progress
        self.whole = partial(experiment.engine.with_all_clients, experiment)
        self.tables = Tables(folder, self.whole, Path(run.paths.cache).expanduser())
        self.checkpoint = checkpoint_of(run, experiment, folder, self.tables)

    def __enter__(self) -> Self:
        rounds = self._run.settings.replicates * self._experiment.problem.rounds
        with ExitStack() as opened:  # which closes the bar where a logger cannot begin
            self.progress = opened.enter_context(Progress(title_of(self._run), rounds, self._shown))
            self.loggers = opened.enter_context(following(self._run, self.whole, self.tables))
            self._open = opened.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.__exit__(kind, error, at)

    def write(self, chunk: Chunk) -> None:
        """Write down what some replicates showed, which have ended."""
        self.tables.append(chunk)
        self.loggers.tell(chunk, len(chunk.elapsed))

    def write_failed(self, error: DivergedError) -> None:
        """Write down the rounds before the one in which a method diverged."""
        run, rows = self._run, self.tables.rounds_before(error)
        notes = {**about(run), DIVERGED: True}
        error.folder = write_failed(run.failed_folder, run.resolved, str(error), run.digest, rows, notes)
        self.loggers.tell(error.failed, error.t)


def checkpoint_of(run: Run, experiment: Experiment, folder: Path, tables: Tables | None = None) -> Checkpoint:
    """The checkpoint of a run that is made in this folder, which its tables go back to."""
    digest = f"{run.digest}, functions kept" if run.settings.save_model else run.digest
    return experiment.engine.checkpoint(folder, run.settings.checkpoint_s, digest, tables)


def title_of(run: Run) -> str:
    """The words that a run is known by on a terminal, and in its figures."""
    return f"{run.algo.label} on {run.dataset.name}"


def about(run: Run) -> dict[str, Any]:
    """Name a run: its data set, its method, and what the user set."""
    return {"dataset": run.dataset.name, "algorithm": run.algo.label, "words": [*run.words]}
