"""Code that figures of several papers share: a panel for each data set."""

from collections.abc import Collection, Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fkl.papers.our_runs import require_found
from fkl.report.figures import canvas


def dataset_panels(
    known: Iterable[str], found: Collection[str], first: str = "", across: int | None = None
) -> tuple[Figure, dict[str, Axes]]:
    """A figure with a panel for each known data set with runs, by name.

    Parameters
    ----------
    known : iterable of str
        In the order of the panels.
    found : collection of str
        Data sets of the runs.
    first : str
        The experiment to run first if there are no runs; see `require_found`.
    across : int, optional
        Panels in a row.
    """
    shown = [name for name in known if name in found]
    require_found(shown, "figure", first)
    figure, panels = canvas(len(shown), across)
    for axes, name in zip(panels, shown, strict=True):
        axes.set_title(name)
    return figure, dict(zip(shown, panels, strict=True))
