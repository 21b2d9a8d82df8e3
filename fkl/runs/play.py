"""The rounds of one run: played by its engine, and written to its folder."""

from fkl.basics.errors import key_prefix, require
from fkl.basics.memory import limited_to_free_memory
from fkl.config import Run
from fkl.engines.base import Engine
from fkl.engines.divergence import DivergedError
from fkl.engines.experiment import Experiment
from fkl.engines.rounds import simulate
from fkl.results.folder import FINISHED, workspace
from fkl.results.tables import summary_columns
from fkl.runs.desk import Desk, checkpoint_of
from fkl.runs.finish import finish
from fkl.runs.prepare import prepare


def play(run: Run, engine: Engine, progress: bool = True) -> None:
    """Play a run that has not been played, into its folder; a bar on stderr shows its progress."""
    engine.broadcast()  # informs other processes that there is something to play
    experiment = _own_part(run, engine)
    assert experiment is not None
    threads = run.settings.threads or experiment.engine.threads
    with workspace(run) as folder:
        with Desk(run, experiment, folder, progress) as desk:
            experiment.engine.broadcast(folder)
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


def play_along(run: Run, engine: Engine) -> bool:
    """The work of a process other than the first: its part of the rounds; return whether there were any."""
    if engine.broadcast() == FINISHED:
        return False
    experiment = _own_part(run, engine)
    if experiment is not None:
        folder = experiment.engine.broadcast()
        threads = run.settings.threads or experiment.engine.threads
        checkpoint = checkpoint_of(run, experiment, folder)
        with key_prefix("algo"):
            how = threads, run.settings.chunk, id, checkpoint, None, run.settings.save_model
            for _ in simulate(experiment, *how):
                pass
    return True


def _own_part(run: Run, engine: Engine) -> Experiment | None:
    """Part of a run for this process; None for nothing."""
    with limited_to_free_memory():
        whole = prepare(run)
        own: Experiment | None = engine.own_part(whole, lambda: prepare(run))
    wanted = run.settings.objective
    if wanted is not None and engine.speaks:
        with key_prefix("algo"):
            columns = summary_columns(whole)[1:]
        require(wanted in columns, "objective", wanted, f"one of {', '.join(columns)}")
    return own
