"""Figures: mean over replicates with a band, for people."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fkl.results.records import Curves
    from fkl.tasks.task import Panel

Array = NDArray[Any]
# Okabe and Ito's palette, told apart by colour-blind readers
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SPREAD = "mean ± 1 sd over {} replicates"


def draw_run(folder: Path, curves: "Curves", summary: pd.DataFrame, title: str, panels: Mapping[str, "Panel"]) -> None:
    """Draw the figures of one run, .png and .pdf.

    Parameters
    ----------
    folder : Path
        Where the files go.
    curves : Curves
        Mean and spread by round.
    summary : DataFrame
        The last round of every replicate.
    title : str
    panels : mapping of str to Panel
        What to draw, by the names of the files.
    """
    for name, panel in panels.items():
        figure, (axes,) = canvas(1)
        for colour, (column, words) in enumerate(panel.curves.items()):
            if column not in curves.columns or summary[column].isna().all():
                continue
            mean, deviation = curves.of(column)
            if len(mean) > 1:
                _band(axes, np.arange(1, len(mean) + 1), mean, deviation, words, colour)
            else:
                points(axes, summary[column], words, colour)
        axes.set_ylabel(panel.label)
        axes.set_title(title)
        if panel.log:
            axes.set_yscale("log")
        for suffix, content in rendered(figure, curves.replicates).items():
            (folder / f"{name}{suffix}").write_bytes(content)


def canvas(panels: int) -> tuple[Figure, Sequence[Axes]]:
    """A row of panels with room for a legend below them."""
    figure = Figure(figsize=(1.4 + 4.2 * panels, 4.2), layout="constrained")  # not pyplot's, which is the user's own
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def band(axes: Axes, rounds: pd.DataFrame, column: str, label: str, colour: int) -> None:
    """Mean over replicates against the round, with one standard deviation on either side."""
    by_round = rounds.groupby("round")[column]
    mean, deviation = by_round.mean(), by_round.std(ddof=1).fillna(0)
    _band(axes, mean.index.to_numpy(), mean.to_numpy(), deviation.to_numpy(), label, colour)


def _band(axes: Axes, rounds: Array, mean: Array, deviation: Array, label: str, colour: int) -> None:
    shade = COLOURS[colour % len(COLOURS)]
    axes.plot(rounds, mean, color=shade, label=label)
    axes.fill_between(rounds, mean - deviation, mean + deviation, color=shade, alpha=0.2, linewidth=0)
    axes.set_xlabel("round")


def points(axes: Axes, values: "pd.Series[float]", label: str, colour: int) -> None:
    """Values of the one round, a point a replicate beside their mean and one standard deviation on either side."""
    axes.plot([colour] * len(values), values, "o", color=COLOURS[colour], alpha=0.3)
    axes.errorbar([colour + 0.2], [values.mean()], [values.std(ddof=1)], fmt="o", color=COLOURS[colour], label=label)
    axes.set_xlim(-0.5, colour + 0.7)
    axes.set_xticks([])


def rendered(figure: Figure, replicates: int | str) -> dict[str, bytes]:
    """A figure as PNG and PDF, by suffix, with one legend outside the data that says what line and band are.

    Parameters
    ----------
    figure : Figure
    replicates : int or str
        How many the mean and the band are over; or what is drawn, where it is something else.
    """
    handles: dict[str, Artist] = {}
    if not isinstance(replicates, str):
        replicates = SPREAD.format(replicates) if replicates > 1 else "one replicate"
    for axes in figure.axes:
        axes.grid(alpha=0.25)
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(len(handles), 6) if len(figure.axes) > 1 else 1,
        title=replicates,
        frameon=False,
    )
    png, pdf = BytesIO(), BytesIO()
    figure.savefig(png, format="png", dpi=150)
    figure.set_layout_engine(None)  # the PDF keeps the layout, which takes longer than the drawing
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    return {".png": png.getvalue(), ".pdf": pdf.getvalue()}
