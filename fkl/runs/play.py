"""The rounds of one run: played by its engine, and written to its folder."""

from fkl.basics.errors import key_prefix, require
from fkl.basics.memory import limited_to_free_memory
from fkl.config import Run
from fkl.engines.base import Engine
from fkl.engines.divergence import DivergedError
from fkl.engines.rounds import simulate
from fkl.results.folder import workspace
from fkl.results.tables import summary_columns
from fkl.runs.desk import Desk
from fkl.runs.finish import finish
from fkl.runs.prepare import prepare


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
