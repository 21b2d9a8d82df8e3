"""One run, from a checked configuration to a folder of records."""

from fkl.config import Run, engine
from fkl.results.folder import finished, forget_failed, is_locked, locked, provenance, recovered
from fkl.results.model import FILE as MODEL
from fkl.runs.finish import add_model
from fkl.runs.play import play


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
