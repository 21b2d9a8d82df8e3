"""Output during the rounds: tables, a progress bar, loggers and checkpoints."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fkl.config import Run
from fkl.engines.divergence import DivergedError
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import Chunk
from fkl.loggers.telling import following
from fkl.results.folder import DIVERGED, write_failed
from fkl.results.tables import Tables
from fkl.runs.progress import Progress


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


def title_of(run: Run) -> str:
    """Names of a run on a terminal, and in its figures."""
    return f"{run.algo.label} on {run.dataset.name}"


def about(run: Run) -> dict[str, Any]:
    """Name a run: its data set, its method, and the user's settings."""
    return {"dataset": run.dataset.name, "algorithm": run.algo.label, "words": [*run.words]}
