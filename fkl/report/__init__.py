"""Tables and figures for readers.

`figures` draws a run, `compare` compares finished runs, and `api` is fkl from Python. `colours` gives each method the
same look in all figures. Begin with `figures.draw_run`.
"""

import logging
from typing import Any

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # otherwise it warns if it has no folder for its cache


def draw_figures(*run_and_tables: Any) -> None:
    """Draw the figures of a run whose tables are complete into its folder; see `fkl.runs.play.Drawing`."""
    from fkl.report.figures import draw_finished  # imports matplotlib, a third of the time of a small run

    draw_finished(*run_and_tables)
