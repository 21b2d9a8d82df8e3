"""Figures: mean over replicates with a band, for people."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullLocator, ScalarFormatter
from numpy.typing import NDArray

from fkl.basics.errors import in_one_line
from fkl.screen.messages import warning

if TYPE_CHECKING:
    from fkl.results.tables import Curves
    from fkl.tasks.task import Panel

Array = NDArray[Any]
# Okabe and Ito's palette, told apart by colour-blind readers
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
ON_DARK = dict(zip(COLOURS, ("#2F95D0", "#EE8442", "#2CB795", "#DF9DC4", "#E69F00", "#8FD0F5", "#FFFFFF"), strict=True))
"""The same, where the background is dark."""
DARK: dict[str, Any] = {
    "text.color": "#E4E6E8", "axes.labelcolor": "#E4E6E8", "axes.edgecolor": "#A2A9B1", "xtick.color": "#E4E6E8",
    "ytick.color": "#E4E6E8", "grid.color": "#A2A9B1", "figure.facecolor": "#16181B", "axes.facecolor": "#16181B",
}  # fmt: skip
STYLES = ("-", "--", ":", "-.")
MOST_POINTS = 2000
"""Of a curve, more than a panel is pixels wide; of more rounds so many are drawn, evenly spread, the last one too."""
SPREAD = "mean ± 1 sd over {} replicates"
MOST_DECADES = 3
"""Of a logarithmic axis whose ticks are plain numbers; one that spans more has powers of ten."""
PLAIN = 1e-2, 1e5
"""Ends of the numbers that ticks show as they are; others have a power of ten in common, at the end of the axis."""
LONGEST_LABEL = 48
"""Letters in one line of a legend."""
INCHES_A_LETTER, INCHES_A_HANDLE = 0.085, 0.6
"""About, of a legend's letters, and of the line before them with the space around it."""


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
        if panel.nominal is not None and not set(panel.nominal) & set(curves.columns):
            continue
        figure, (axes,) = canvas(1)
        if panel.nominal is not None:
            against_nominal(axes, summary, panel, panel.nominal)
            axes.set_title(title)
            save(folder, name, figure, curves.replicates)
            continue
        for colour, (column, words) in enumerate(panel.curves.items()):
            if column not in curves.columns or summary[column].isna().all():
                continue
            mean, deviation = curves.mean_and_deviation(column)
            if len(mean) > 1:
                shaded(axes, np.arange(1, len(mean) + 1), mean, deviation, words, shade(colour))
                axes.set_xlabel("round")
            else:
                points(axes, summary[column], words, colour)
        axes.set_ylabel(panel.label)
        axes.set_title(title)
        if panel.log:
            axes.set_yscale("log")
        save(folder, name, figure, curves.replicates)


def save(folder: Path, name: str, figure: Figure, replicates: int) -> None:
    """Write a figure, .png and .pdf."""
    for suffix, content in rendered(figure, replicates).items():
        (folder / f"{name}{suffix}").write_bytes(content)


def against_nominal(axes: Axes, summary: pd.DataFrame, panel: "Panel", nominal: Mapping[str, float]) -> None:
    """What shares are at the end, and what they should be: mean and spread over replicates, and the diagonal."""
    shares = summary[list(nominal)]
    x, mean, deviation = list(nominal.values()), shares.mean(), shares.std(ddof=1).fillna(0)
    axes.plot([0, 1], [0, 1], STYLES[1], color=shade(6)[0], linewidth=1, label="as many as there should be")
    words = next(iter(panel.curves.values()))
    axes.errorbar(x, mean, deviation, fmt="o-", color=shade(0)[0], capsize=3, label=words)
    for place, value in zip(x, mean, strict=True):
        beside = ((-6, 6), "right") if value >= place else ((6, -13), "left")  # away from the diagonal
        axes.annotate(f"{value:.3g}", (place, value), textcoords="offset points", xytext=beside[0], ha=beside[1])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel("probability of the interval")
    axes.set_ylabel(panel.label)


def canvas(panels: int, across: int | None = None) -> tuple[Figure, Sequence[Axes]]:
    """A row of panels with room for a legend below them, or rows of at most so many."""
    columns = min(panels, across or panels)
    rows = -(-panels // columns)
    size = 1.4 + 4.2 * columns, 4.2 if rows == 1 else 1.0 + 3.2 * rows
    figure = Figure(figsize=size, layout="constrained")  # not pyplot's, which is the user's own
    return figure, [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]


def shade(number: int) -> tuple[str, str]:
    """Colour and style of line of the curve with this number, so that 28 are told apart."""
    colour = COLOURS[number % len(COLOURS)]
    dark = matplotlib.rcParams["figure.facecolor"] == DARK["figure.facecolor"]
    return ON_DARK[colour] if dark else colour, STYLES[number // len(COLOURS) % len(STYLES)]


def band(axes: Axes, rounds: pd.DataFrame, column: str, label: str, colour: int) -> None:
    """Mean over replicates against the round, with one standard deviation on either side."""
    by_round = rounds.groupby("round")[column]
    mean, deviation = by_round.mean(), by_round.std(ddof=1).fillna(0)
    shaded(axes, mean.index.to_numpy(), mean.to_numpy(), deviation.to_numpy(), label, shade(colour))
    axes.set_xlabel("round")


def shaded(axes: Axes, x: Array, mean: Array, deviation: Array, label: str, look: tuple[str, str]) -> None:
    """A curve with a band of one standard deviation on either side; `look` is its colour and style."""
    colour, style = look
    seen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).astype(np.int64))
    x, mean, deviation = x[seen], mean[seen], deviation[seen]
    axes.plot(x, mean, style, color=colour, linewidth=1.4, label=label)
    axes.fill_between(x, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)


def points(axes: Axes, values: "pd.Series[float]", label: str, colour: int) -> None:
    """Values of the one round, a point a replicate beside their mean and one standard deviation on either side."""
    axes.plot([colour] * len(values), values, "o", color=COLOURS[colour], alpha=0.3)
    axes.errorbar([colour + 0.2], [values.mean()], [values.std(ddof=1)], fmt="o", color=COLOURS[colour], label=label)
    axes.set_xlim(-0.5, colour + 0.7)
    axes.set_xticks([])


def rendered(figure: Figure, replicates: int | str) -> dict[str, bytes]:
    """A figure as PNG and PDF, by suffix, with one legend outside the data that says what line and band are.

    A figure that cannot be drawn is said to be missing, and is nothing: whatever it is of is worth keeping.

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
        plain_ticks(axes)
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    labels = [textwrap.fill(words, LONGEST_LABEL) for words in handles]
    figure.legend(
        list(handles.values()),
        labels,
        loc="outside lower center",
        ncols=_columns(figure, labels),
        title=replicates,
        frameon=False,
    )
    for text in words_of(figure):
        text.set_parse_math(False)  # a label may hold anything, such as dollars
    png, pdf = BytesIO(), BytesIO()
    try:
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)  # or it would be found twice more, which takes longer than the drawing
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    except OSError:
        raise
    except Exception as error:  # of a font, a size, a number: matplotlib's are many
        names = ", ".join(filter(None, (axes.get_title() for axes in figure.axes)))
        warning(f"no figure of {in_one_line(names)}: {type(error).__name__}: {in_one_line(error)}")
        return {}
    return {".png": png.getvalue(), ".pdf": pdf.getvalue()}


def words_of(figure: Figure) -> Iterator[Text]:
    """All text of a figure but ticks."""
    yield from figure.texts
    for axes in figure.axes:
        yield from (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)
    for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes)):
        if legend is not None:
            yield from (legend.get_title(), *legend.get_texts())


def spread_over(replicates: Iterable[int]) -> int | str:
    """What `rendered` says of curves that are over so many replicates each."""
    counts = {*replicates}
    return counts.pop() if len(counts) == 1 else SPREAD.format(f"{min(counts)} to {max(counts)}")


def plain_ticks(axes: Axes) -> None:
    """Ticks of both axes as plain numbers, where they are not words or span too much for that."""
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(Plain())
        elif axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            if 0 < low < high and (decades := np.log10(high / low)) <= MOST_DECADES:
                few = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])  # of less than a decade, which may have none of 1, 2, 5
                axis.set_major_locator(few if decades < 1 else LogLocator(subs=(1, 2, 5) if decades < 2 else (1, 3)))
                axis.set_major_formatter(Plain())
            axis.set_minor_locator(NullLocator())


class Plain(Formatter):
    """Numbers as people write them; very small and very large ones have a power of ten in common."""

    power = 0

    def set_locs(self, locs: Any) -> None:
        """Choose the power."""
        largest = max((abs(one) for one in locs), default=0.0)
        low, high = PLAIN
        self.power = 3 * math.floor(math.log10(largest) / 3) if largest and not low <= largest < high else 0

    def __call__(self, x: float, pos: int | None = None) -> str:
        """One tick."""
        return f"{x / 10.0**self.power:.6g}".replace("-", "\N{MINUS SIGN}")

    def get_offset(self) -> str:
        """What stands at the end of the axis."""
        return rf"$\times10^{{{self.power}}}$" if self.power else ""


def _columns(figure: Figure, labels: Sequence[str]) -> int:
    """Columns of a legend that are not wider than the figure; one below a single panel."""
    if len(figure.axes) == 1 or not labels:
        return 1
    longest = max(len(line) for words in labels for line in words.split("\n"))
    return max(1, min(len(labels), int(figure.get_figwidth() / (INCHES_A_LETTER * longest + INCHES_A_HANDLE))))
