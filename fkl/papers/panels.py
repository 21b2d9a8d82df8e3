"""Make a figure with a panel for each data set, as several papers need."""

from collections.abc import Collection, Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.papers.our_runs import require_found
from fkl.report.figures import panel_row


def dataset_panels(
    known: Iterable[str], found: Collection[str], first: str = "", across: int | None = None
) -> tuple[Figure, dict[str, Axes]]:
    """Make a figure with one panel for each known data set that has runs; return it, and its panels by name.

    Parameters
    ----------
    known : iterable of str
        Names of data sets, in the order of the panels.
    found : collection of str
        Data sets of the runs.
    first : str
        The experiment to run first if there are no runs; see `require_found`.
    across : int, optional
        Number of panels in a row.
    """
    shown = [name for name in known if name in found]
    require_found(shown, "figure", first)
    figure, panels = panel_row(len(shown), across)
    for axes, name in zip(panels, shown, strict=True):
        axes.set_title(name)
    return figure, dict(zip(shown, panels, strict=True))
