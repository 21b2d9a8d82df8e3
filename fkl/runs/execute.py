"""One run, from a checked configuration to a folder of records."""

from fkl.config import Run, engine
from fkl.results.folder import FINISHED, finished, locked, provenance, read_summary, recovered
from fkl.results.model import FILE as MODEL
from fkl.runs.desk import title_of
from fkl.runs.finish import add_model, closing_table
from fkl.runs.play import play, play_along


def execute(run: Run) -> bool:
    """Do the run unless it is done, print its closing table, and tell whether there was anything to do.

    Raises
    ------
    fkl.basics.errors.FklError
        Whatever the user can mend; nothing is written then, but for the rows before a divergence.
    """
    with engine(run.settings.engine).opened() as player:
        if not player.speaks:
            return play_along(run, player)
        done = finished(run)
        if not done:
            with locked(run.folder):
                done = finished(run) or recovered(run)  # by the process waited for, or one that was killed at the end
                if not done:
                    play(run, player)
        if done:
            player.broadcast(FINISHED)
            print(f"{run.folder} is finished already")
        if run.settings.save_model and MODEL not in provenance(run.folder)["files"]:
            with locked(run.folder):
                add_model(run)
        print(closing_table(title_of(run), read_summary(run.folder)))
        print(f"files: {run.folder}")
        plots = sorted(run.folder.glob("*.png"))  # of a task without panels there is none
        print(f"plots: {', '.join([*map(str, plots[:1]), *(plot.name for plot in plots[1:])])}\n" if plots else "")
        return not done
