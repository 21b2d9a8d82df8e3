"""Figures: means over replicates with a band, on a screen, or for a paper."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator, Formatter, LogLocator, MaxNLocator, NullLocator, ScalarFormatter
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import in_one_line
from fkl.data.baselines import CONSTANTS
from fkl.report.colours import DARK_BACKGROUND, DASHES, Look, baseline_colour, is_dark, look_of
from fkl.screen.messages import warning
from fkl.screen.units import BYTES

if TYPE_CHECKING:
    from fkl.runs.tables import Curves
    from fkl.tasks.task import Panel

# Okabe and Ito's palette, which colour-blind readers can distinguish
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of items other than methods; methods have theirs in `fkl.report.colours`."""
ON_DARK = dict(zip(COLOURS, ("#2F95D0", "#EE8442", "#2CB795", "#DF9DC4", "#E69F00", "#8FD0F5", "#FFFFFF"), strict=True))
"""The same, for a dark background."""
DARK: dict[str, Any] = {
    "text.color": "#E4E6E8", "axes.labelcolor": "#E4E6E8", "axes.edgecolor": "#A2A9B1", "xtick.color": "#E4E6E8",
    "ytick.color": "#E4E6E8", "grid.color": "#A2A9B1", "figure.facecolor": DARK_BACKGROUND,
    "axes.facecolor": DARK_BACKGROUND,
}  # fmt: skip
STYLES: dict[str, dict[str, Any]] = {
    "screen": {},
    "paper": {
        "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 8, "ytick.labelsize": 8,
        "legend.fontsize": 8, "legend.title_fontsize": 8, "lines.linewidth": 1, "lines.markersize": 3.5,
        "axes.linewidth": 0.6, "grid.linewidth": 0.5,
    },
}  # fmt: skip
"""On a screen, or for a paper: in the width of its column or page, with the caption in a separate file."""
COLUMN_WIDTH, PAGE_WIDTH = 3.3, 6.9
"""Width in inches of a figure with one panel and with several, for a paper."""
DOTS = {"screen": 150, "paper": 300}
"""Dots per inch of a PNG."""
MOST_POINTS = 2000
"""Maximum number of points of a curve, more than the pixels of a panel; with more rounds this many are drawn, evenly
spread, including the last."""
LOW, HIGH = 0.1, 0.9
"""Quantiles of the replicates at the ends of a band."""
SPREAD = f"mean, and from {LOW:.0%} to {HIGH:.0%} of".replace("%", " %") + " {} replicates"
MOST_IN_BAND = 1000
"""Maximum number of replicates in a run's band, the first ones."""
MOST_DIRECT = 5
"""Maximum number of lines that are named at their end, instead of in a legend."""
BESIDE, AT_POINT, IN_LEGEND, NAMED = "beside", "at point", "in legend", "named"
"""Ids of lines: not counted among the `MOST_DIRECT`; always named at the end; named only in the legend; and never
named, because ticks do that."""
LONGEST_DIRECT, LONGEST_IN_COLUMN = 30, 18
"""Maximum length of such a name with several panels, and for a paper, where it would take half of a panel."""
BESIDE_POINTS = 7
"""Distance from the end of a line to its name."""
MOST_DECADES = 3
"""Maximum decades of a logarithmic axis with plain numbers as ticks; a longer one has powers of ten."""
STEPS: tuple[tuple[float, ...], ...] = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9))
"""Ticks per decade of a logarithmic axis: the first option with enough ticks."""
ENOUGH_TICKS = 3
PLAIN = 1e-2, 1e5
"""Range of plain numbers on ticks; others have a common power of ten, at the end of the axis."""
PUBLISHED = ", published"
"""End of the label of a paper's printed values, which are crosses."""
LONGEST_LABEL = 48
"""Maximum length of a line in a legend."""
LETTERS_AN_INCH = 12
"""Approximate number of entries of a legend on a screen; with more they are smaller."""
LETTERS_HIGH = 26
"""Maximum length of a y label, in one line next to a panel for a paper."""
INCHES_A_HANDLE = 0.6
"""Width of a legend's line with the space around it."""


@contextmanager
def styled(style: str = "screen", dark: bool = False) -> Iterator[None]:
    """Draw figures for a screen or for a paper, and perhaps on a dark background."""
    with matplotlib.rc_context(STYLES[style] | (DARK if dark else {})):  # type: ignore[arg-type]  # of its own names
        yield


def is_for_paper() -> bool:
    """Whether figures are currently drawn for a paper."""
    return bool(matplotlib.rcParams["font.size"] == STYLES["paper"]["font.size"])


def draw_run(
    folder: Path, curves: "Curves", summary: pd.DataFrame, method: str, title: str, panels: Mapping[str, "Panel"]
) -> None:
    """Draw the figures of one run, .png and .pdf.

    Parameters
    ----------
    folder : Path
        Folder with the run's rounds.csv, and for the files.
    curves : Curves
        Mean of every round.
    summary : DataFrame
        The last round of every replicate.
    method : str
        Label of the method.
    title : str
    panels : mapping of str to Panel
        Panels to draw, by file name.
    """
    look, baselines = look_of(method), {name: words for of in CONSTANTS.values() for name, words in of.items()}
    for name, panel in panels.items():
        if panel.nominal is not None and not set(panel.nominal) & set(curves.columns):
            continue
        figure, (axes,) = canvas(1)
        if panel.nominal is not None:
            against_nominal(axes, summary, panel, panel.nominal, look)
            axes.set_title(title)
            save(folder, name, figure, curves.replicates)
            continue
        shown = {
            column: words.format(method=method)
            for column, words in panel.curves.items()
            if column in curves.columns and not summary[column].isna().all()
        }
        bands = _bands(folder, [*shown], curves) if len(curves.mean) and curves.mean.shape[1] > 1 else {}
        for number, (column, words) in enumerate(shown.items()):
            mean, _ = curves.mean_and_deviation(column)
            dash = DASHES[number % len(DASHES)]
            if len(mean) == 1:
                points(axes, summary[column], words, number, look.colour)
            elif column in baselines:
                x = np.arange(1, len(mean) + 1)
                curve(axes, x, mean, None, words, (baseline_colour(number - 1), DASHES[1]))
            else:
                curve(axes, np.arange(1, len(mean) + 1), mean, bands.get(column), words, (look.colour, dash))
                axes.set_xlabel("round")
            for place, (of, predicted) in enumerate(CONSTANTS.get(column, {}).items()):
                if of in summary and of not in curves.columns:
                    baseline(axes, summary[of].mean(), predicted, place)
        if panel.between is not None and set(panel.between) <= set(shown):
            low, high = (curves.mean_and_deviation(column)[0] for column in panel.between)
            axes.fill_between(np.arange(1, len(low) + 1), low, high, color=look.colour, alpha=0.1, linewidth=0)
        axes.set_ylabel(panel.label)
        axes.set_title(title)
        if panel.log:
            axes.set_yscale("log")
        save(folder, name, figure, curves.replicates)


def _bands(folder: Path, columns: Sequence[str], curves: "Curves") -> dict[str, tuple[Array, Array]]:
    """Quantiles over replicates of a run's columns in each round; none for a single replicate."""
    rounds, replicates = curves.mean.shape[1], min(curves.replicates, MOST_IN_BAND)
    if replicates < 2 or not columns:
        return {}
    seen = _seen(rounds)
    kept = [
        part.loc[np.isin(part["round"], seen + 1)]
        for part in pd.read_csv(
            folder / "rounds.csv", usecols=["round", *columns], nrows=replicates * rounds, chunksize=2**18
        )
    ]
    values = pd.concat(kept)
    made = {}
    for column in columns:
        low, high = np.quantile(values[column].to_numpy().reshape(replicates, len(seen)), (LOW, HIGH), axis=0)
        made[column] = np.interp(np.arange(rounds), seen, low), np.interp(np.arange(rounds), seen, high)
    return made


def _seen(points: int) -> NDArray[np.int64]:
    """Indices of the drawn points among this many of a curve."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).astype(np.int64))


def save(folder: Path, name: str, figure: Figure, replicates: int) -> None:
    """Write a figure, .png and .pdf."""
    for suffix, content in rendered(figure, replicates).items():
        (folder / f"{name}{suffix}").write_bytes(content)


def against_nominal(
    axes: Axes, summary: pd.DataFrame, panel: "Panel", nominal: Mapping[str, float], look: Look | None = None
) -> None:
    """Final shares against nominal ones: mean and spread over replicates, and the diagonal."""
    shares = summary[list(nominal)]
    x, mean, ends = list(nominal.values()), shares.mean(), shares.quantile([LOW, HIGH])
    axes.plot([0, 1], [0, 1], DASHES[1], color=baseline_colour(0), linewidth=1, label="as many as there should be")
    words, colour = next(iter(panel.curves.values())), shade(0)[0] if look is None else look.colour
    error = np.maximum([mean - ends.loc[LOW], ends.loc[HIGH] - mean], 0)
    axes.errorbar(x, mean, error, fmt="o-", color=colour, capsize=3, label=words)
    for place, value in zip(x, mean, strict=True):
        beside = ((-6, 6), "right") if value >= place else ((6, -13), "left")  # away from the diagonal
        axes.annotate(f"{value:.3g}", (place, value), textcoords="offset points", xytext=beside[0], ha=beside[1])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel("probability of the interval")
    axes.set_ylabel(panel.label)


def canvas(panels: int, across: int | None = None) -> tuple[Figure, Sequence[Axes]]:
    """A row of panels with space for a legend below them, or rows of at most this many."""
    columns = min(panels, across or panels)
    if is_for_paper():
        columns = min(columns, 2 if panels in (2, 4) else 3)
    rows = -(-panels // columns)
    if is_for_paper():
        size = COLUMN_WIDTH if columns == 1 else PAGE_WIDTH, 0.3 + (2.0 if columns < 3 else 1.7) * rows
    else:
        size = 1.4 + 4.2 * columns, 0.4 + 3.1 * rows
    figure = Figure(figsize=size, layout="constrained")  # not pyplot's, which belongs to the user
    return figure, [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]


def shade(number: int) -> tuple[str, str]:
    """Colour and line style of a curve that is not a method's, by number; 28 are distinct."""
    colour = COLOURS[number % len(COLOURS)]
    return ON_DARK[colour] if is_dark() else colour, DASHES[number // len(COLOURS) % len(DASHES)]


def band(axes: Axes, rounds: pd.DataFrame, column: str, label: str, look: Look | tuple[str, str]) -> None:
    """Mean over replicates against the round, with a band."""
    every = np.sort(rounds["round"].unique())
    by_round = rounds[rounds["round"].isin(every[_seen(len(every))])].groupby("round")[column]
    over(axes, by_round, label, look)
    axes.set_xlabel("round")


def over(axes: Axes, grouped: Any, label: str, look: Look | tuple[str, str], x: Array | None = None) -> None:
    """Mean of each group of replicates with a band from quantile to quantile, over the groups' keys or over `x`."""
    mean = grouped.mean()
    ends = (grouped.quantile(LOW).to_numpy(), grouped.quantile(HIGH).to_numpy()) if grouped.size().max() > 1 else None
    at = mean.index.to_numpy() if x is None else x
    curve(axes, at, mean.to_numpy(), ends, label, look)


def curve(
    axes: Axes, x: NDArray[Any], mean: Array, ends: tuple[Array, Array] | None, label: str, look: Look | tuple[str, str]
) -> None:
    """A curve, with a band if there is one; a method's curve has some markers."""
    seen = _seen(len(x))
    colour, dash = (look.colour, look.dash) if isinstance(look, Look) else look
    marked: dict[str, Any] = {}
    if isinstance(look, Look):
        marked = {"marker": look.marker, "fillstyle": look.fill, "markevery": 1 if len(seen) < 12 else 0.18}
        marked["clip_on"] = False  # a marker at the end is complete
    axes.plot(x[seen], mean[seen], dash, color=colour, linewidth=_line_width(), label=label, markersize=4, **marked)
    if ends is not None:
        axes.fill_between(x[seen], ends[0][seen], ends[1][seen], color=colour, alpha=0.2, linewidth=0)


def sweep(axes: Axes, values: "Mapping[float, pd.Series[float]]", label: str, look: Look) -> None:
    """One point per run over the key in which runs differ: mean of its replicates, joined by a line, with a band."""
    x = sorted(values)
    ends = tuple(np.array([values[at].quantile(one) for at in x]) for one in (LOW, HIGH))
    curve(axes, np.array(x), np.array([values[at].mean() for at in x]), (ends[0], ends[1]), label, look)


def crosses(axes: Axes, points: Sequence[tuple[float, float]], label: str, look: Look) -> None:
    """A paper's printed values."""
    if points:
        size = 1.6 * matplotlib.rcParams["lines.markersize"]
        marked: dict[str, Any] = {"markersize": size, "label": f"{label}{PUBLISHED}", "clip_on": False, "zorder": 4}
        axes.plot(*zip(*points, strict=True), "x", color=look.colour, **marked)


def spread(values: "pd.Series[float] | Array") -> tuple[float, NDArray[np.float64]]:
    """Mean of some replicates, and the distances of the quantiles below and above it, as for `errorbar`."""
    array = np.asarray(values, np.float64)
    low, high = np.quantile(array, (LOW, HIGH))
    return float(array.mean()), np.maximum([[array.mean() - low], [high - array.mean()]], 0)


def baseline(axes: Axes, value: float, words: str, number: int) -> None:
    """A dashed grey line at the error of a baseline without learning."""
    short = words.removeprefix("the ").removeprefix("each client's ")
    colour = baseline_colour(number)
    axes.axhline(value, color=colour, linestyle=DASHES[1], linewidth=1, label=short, zorder=0, gid=BESIDE)


def points(axes: Axes, values: "pd.Series[float]", label: str, place: int, colour: str) -> None:
    """Values of a single round, one point per replicate next to their mean and quantiles."""
    axes.plot([place] * len(values), values, "o", color=colour, alpha=0.3)
    mean, ends = spread(values)
    axes.errorbar([place + 0.2], [mean], ends, fmt="o", color=colour, label=label)
    axes.set_xlim(-0.5, place + 0.7)
    axes.set_xticks([])


def rendered(figure: Figure, replicates: int | str, claim: str = "") -> dict[str, bytes]:
    """A figure as PNG and PDF, by suffix, with each line named, and with a note about line and band below it.

    At most `MOST_DIRECT` lines are named at their end, more in a legend outside the data. For a paper there is also a
    .txt with the rest of the caption.

    A figure that cannot be drawn is reported as missing, and the result is empty, because its data are worth keeping.

    Parameters
    ----------
    figure : Figure
    replicates : int or str
        Number of replicates in the mean and the band, or a description of other content.
    claim : str
        A paper's claim about its figure, and our result, if the figure has no published values.
    """
    handles: dict[str, Artist] = {}
    if not isinstance(replicates, str):
        replicates = SPREAD.format(replicates) if replicates > 1 else "one replicate"
    for axes in figure.axes:
        axes.grid(alpha=0.25)
        plain_ticks(axes)
        found = zip(*reversed(axes.get_legend_handles_labels()), strict=True)
        handles |= {words: handle for words, handle in found if _kind(handle) != NAMED}
    told = f"{replicates}\n{claim}".rstrip("\n")
    texts = {}
    if is_for_paper():
        titles = [axes.get_title() for axes in figure.axes]
        texts[".txt"] = _caption(figure, told).encode()
        for axes, title in zip(figure.axes, titles, strict=True):
            axes.set_title(title.replace("_", " ") if len(titles) > 1 else "")
            axes.set_ylabel("\n".join(_lines(" ".join(axes.get_ylabel().split()), LETTERS_HIGH)))
    named = [] if (suptitle := figure.get_suptitle()) else _name_directly(figure, handles)
    rest = _in_legend(handles, [*{text.get_text() for _, text, _ in named}] if named else [])
    labels = [textwrap.fill(words, LONGEST_LABEL) for words in rest]
    letters = LETTERS_AN_INCH * 10 / matplotlib.rcParams["font.size"]
    note = "" if is_for_paper() else "\n".join(_lines(told, int(letters * figure.get_figwidth())))
    columns = _columns(figure, labels, letters)
    if labels or note:
        lines = sum(1 + label.count("\n") for label in labels) / columns + note.count("\n") + bool(note)
        inches = 1.6 * matplotlib.rcParams["font.size"] / 72
        figure.set_figheight(figure.get_figheight() + inches * lines + bool(suptitle) * inches)
        figure.legend(
            list(rest.values()), labels, loc="outside lower center", ncols=columns, title=note or None, frameon=False,
            alignment="left" if claim else "center",
        )  # fmt: skip
    for text in words_of(figure):
        text.set_parse_math(False)  # a label may contain anything, such as dollars
    png, pdf = BytesIO(), BytesIO()
    try:
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)  # computing it twice more would take longer than drawing
        _move_apart(named)
        with matplotlib.rc_context({"pdf.fonttype": 42}):  # TrueType; many venues refuse type 3
            figure.savefig(png, format="png", dpi=DOTS["paper" if is_for_paper() else "screen"])
            figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    except OSError:
        raise
    except Exception as error:  # of a font, a size, a number: matplotlib has many
        names = ", ".join(filter(None, (axes.get_title() for axes in figure.axes)))
        warning(f"no figure of {in_one_line(names)}: {type(error).__name__}: {in_one_line(error)}")
        return {}
    return {".png": png.getvalue(), ".pdf": pdf.getvalue(), **texts}


def _caption(figure: Figure, told: str) -> str:
    """Notes for readers of a paper's figure, in sentences."""
    titles = [title for axes in figure.axes if (title := " ".join(axes.get_title().split()))]
    shown = {axes.get_ylabel(): axes.get_xlabel() for axes in figure.axes if axes.get_ylabel()}
    words = [
        f"{' '.join(y.split())} over {' '.join(x.split())}" if x else " ".join(y.split()) for y, x in shown.items()
    ]
    said = [f"{'; '.join(words)}: {', '.join(dict.fromkeys(titles))}.", *told.splitlines()]
    return " ".join(line[:1].upper() + line[1:].rstrip(".") + "." for line in said if line.strip(" :.")) + "\n"


def _lines(told: str, width: int) -> Iterator[str]:
    for line in told.splitlines():
        yield from textwrap.wrap(line.replace(" %", "\N{NO-BREAK SPACE}%"), width)


def _in_legend(handles: dict[str, Artist], named: Sequence[str]) -> dict[str, Artist]:
    """Entries of a legend: lines that are not named at their end, and one for crosses."""
    rest = {words: handle for words, handle in handles.items() if not words.endswith(PUBLISHED)}
    if named:
        rest = {words: handle for words, handle in rest.items() if _folded(words) not in named}
    if len(rest) + len(named) and len(handles) > len(rest) and any(words.endswith(PUBLISHED) for words in handles):
        rest["published"] = Line2D([], [], color=baseline_colour(0), marker="x", linestyle="none")
    return rest


Named = tuple[Axes, Annotation, tuple[float, float]]


def _folded(words: str) -> str:
    """A name, wrapped into short lines."""
    return textwrap.fill(words, 24)


def _name_directly(figure: Figure, handles: dict[str, Any]) -> list[Named]:
    """Write the name of each line at its end, if there are few lines."""
    lines = {words: _line(handle) for words, handle in handles.items() if not words.endswith(PUBLISHED)}
    kinds = {words: _kind(handle) for words, handle in handles.items() if words in lines}
    direct = [words for words, kind in kinds.items() if kind != IN_LEGEND]
    few = 0 < sum(kinds[words] != BESIDE for words in direct) <= MOST_DIRECT
    longest = max(map(len, direct), default=0)
    short = len(figure.axes) == 1 or longest <= LONGEST_DIRECT
    grid = figure.axes[0].get_gridspec()
    narrow = is_for_paper() and (longest > LONGEST_IN_COLUMN or (grid is not None and grid.ncols > 2))
    if AT_POINT in kinds.values():
        direct = [words for words, kind in kinds.items() if kind in (AT_POINT, BESIDE)]
    elif None in lines.values() or not few or not short or narrow:
        return []
    _end_at_last_point(figure.axes)
    named = []
    for axes in figure.axes:
        for handle, words in zip(*axes.get_legend_handles_labels(), strict=True):
            hidden = _kind(handle) in (NAMED, IN_LEGEND)
            if words in direct and not hidden and (found := _named_at_end(axes, handle, words)) is not None:
                named.append(found)
    return named


def _end_at_last_point(panels: Sequence[Axes]) -> None:
    """End the x axis with the curves; names are then next to the panel. Panels with equal ends keep them equal."""
    last = {}
    for axes in panels:
        lines = [line for line in axes.lines if line.get_transform() == axes.transData and len(line.get_xydata())]  # type: ignore[arg-type]
        if any(line.get_linestyle() != "None" and line.get_gid() != IN_LEGEND for line in lines):
            last[axes] = max(float(np.asarray(line.get_xdata(), np.float64).max()) for line in lines)
    alike = len({axes.get_xlim()[1] for axes in last}) == 1
    for axes, end in last.items():
        axes.set_xlim(right=max(last.values()) if alike else end)


def _kind(handle: Any) -> str | None:
    """The id of a line; None of other things."""
    line = _line(handle)
    return None if line is None else line.get_gid()


def _line(handle: Any) -> Line2D | None:
    """The line of a legend entry; None if it has none."""
    line = handle[0] if isinstance(handle, ErrorbarContainer) else handle
    return line if isinstance(line, Line2D) else None


def _named_at_end(axes: Axes, handle: Any, words: str) -> Named | None:
    line = _line(handle)
    places = np.zeros((0, 2)) if line is None else np.asarray(line.get_xydata(), np.float64)
    places = places[np.isfinite(places).all(axis=1)]
    if line is None or not len(places):
        return None
    end = places[-1]
    above = 0 if line.get_linestyle() != "None" else 6  # next to a point, not on a line through it
    text = axes.annotate(
        _folded(words), (float(end[0]), float(end[1])), xycoords=line.get_transform(), xytext=(BESIDE_POINTS, above),
        textcoords="offset points", va="center", ha="left", fontsize=0.9 * matplotlib.rcParams["font.size"],
        color=legible(str(line.get_color())), annotation_clip=False, linespacing=1.0,
        path_effects=[withStroke(linewidth=2, foreground=matplotlib.rcParams["axes.facecolor"])],
    )  # fmt: skip
    return axes, text, (float(end[0]), float(end[1]))


def _move_apart(named: Sequence[Named]) -> None:
    """Move names up or down to avoid overlaps."""
    for axes in dict.fromkeys(axes for axes, _, _ in named):
        texts = [text for of, text, _ in named if of is axes]
        boxes = [text.get_window_extent() for text in texts]
        middle = np.array([(box.y0 + box.y1) / 2 for box in boxes])
        half = np.array([box.height / 2 + 1 for box in boxes])
        order = np.argsort(middle, kind="stable")
        moved = middle.copy()
        for _ in range(50):
            for lower, upper in combinations(order, 2):
                apart = half[lower] + half[upper] - (moved[upper] - moved[lower])
                if apart > 0 and boxes[lower].x0 < boxes[upper].x1 and boxes[upper].x0 < boxes[lower].x1:
                    moved[lower] -= apart / 2
                    moved[upper] += apart / 2
        for text, by in zip(texts, moved - middle, strict=True):
            figure = axes.get_figure()
            text.xyann = BESIDE_POINTS, text.xyann[1] + by * 72 / (figure.dpi if figure is not None else 72)


def legible(colour: str) -> tuple[float, ...]:
    """A colour for letters: darker if it is light on a light background, and vice versa."""
    rgb = np.array(to_rgb(colour))
    light = float(rgb @ (0.299, 0.587, 0.114))
    toward = 1.0 if is_dark() else 0.0
    return tuple(rgb + (toward - rgb) * (0.35 if abs(light - toward) > 0.5 else 0.0))


def words_of(figure: Figure) -> Iterator[Text]:
    """All text of a figure except ticks."""
    yield from figure.texts
    for axes in figure.axes:
        yield from (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)
    for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes)):
        if legend is not None:
            yield from (legend.get_title(), *legend.get_texts())


def spread_over(replicates: Iterable[int]) -> int | str:
    """The note of `rendered` about curves over this many replicates."""
    counts = {*replicates}
    return counts.pop() if len(counts) == 1 else SPREAD.format(f"{min(counts)} to {max(counts)}")


def plain_ticks(axes: Axes) -> None:
    """Ticks of both axes as plain numbers, unless they are words or span too much."""
    for axis in (axes.xaxis, axes.yaxis):
        ours = isinstance(axis.get_major_formatter(), Plain)
        if isinstance(axis.get_major_locator(), FixedLocator):
            axis.set_minor_locator(NullLocator())
        elif isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(Plain())
        elif axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            if 0 < low < high and (ours or np.log10(high / low) <= MOST_DECADES):
                axis.set_major_locator(_ticks(low, high))
                if not ours:
                    axis.set_major_formatter(Plain())
            axis.set_minor_locator(NullLocator())


def _ticks(low: float, high: float) -> LogLocator | MaxNLocator:
    """Ticks of a logarithmic axis: powers of ten, and as many between them as needed."""
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps in STEPS:
        ticks = np.multiply.outer(10.0**decades, steps)
        if ((low <= ticks) & (ticks <= high)).sum() >= ENOUGH_TICKS:
            return LogLocator(subs=steps, numticks=8)
    return MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])


class Plain(Formatter):
    """Plain numbers; very small and very large ones have a common power of ten."""

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
        """Text at the end of the axis."""
        return rf"$\times10^{{{self.power}}}$" if self.power else ""


class Bytes(Plain):
    """Amounts of bytes with their unit."""

    def set_locs(self, locs: Any) -> None:
        """There is no common factor."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """One tick."""
        power = min(int(math.log10(x) / 3 + 1e-9), len(BYTES) - 1) if x >= 1 else 0
        return f"{x / 1000.0**power:.4g} {BYTES[power]}"


def share_costs(panels: Iterable[Axes]) -> None:
    """Give panels with a logarithmic cost axis the same ends, to make them comparable."""
    panels = [axes for axes in panels if axes.get_xscale() in ("log", "symlog") and axes.has_data()]
    ends = [axes.get_xlim() for axes in panels]
    for axes in panels:
        axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))


def _line_width() -> float:
    return 1.0 if is_for_paper() else 1.4


def _columns(figure: Figure, labels: Sequence[str], letters: float) -> int:
    """Number of legend columns that fit in the figure's width."""
    if not labels:
        return 1
    longest = max(len(line) for words in labels for line in words.split("\n"))
    return max(1, min(len(labels), int(figure.get_figwidth() / (longest / letters + INCHES_A_HANDLE))))
