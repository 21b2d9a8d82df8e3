"""Figures: means over replicates with a band, for a screen or for a paper."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, Formatter, MaxNLocator, NullLocator, ScalarFormatter
from numpy.typing import NDArray

from fkl.basics.arrays import Array
from fkl.basics.errors import in_one_line
from fkl.data.baselines import CONSTANTS
from fkl.report.colours import COLOURS, DARK_BACKGROUND, DASHES, MethodLook, baseline_colour, colour_of, look_of
from fkl.screen.messages import show_warning
from fkl.screen.units import BYTES

if TYPE_CHECKING:
    import pandas as pd

    from fkl.config.loading import Run
    from fkl.engines.base import Experiment
    from fkl.runs.finished_runs import FinishedRun
    from fkl.runs.tables import Curves
    from fkl.tasks.task import Panel

DARK: dict[str, Any] = {
    "text.color": "#E4E6E8", "axes.labelcolor": "#E4E6E8", "axes.edgecolor": "#A2A9B1", "xtick.color": "#E4E6E8",
    "ytick.color": "#E4E6E8", "grid.color": "#A2A9B1", "figure.facecolor": DARK_BACKGROUND,
    "axes.facecolor": DARK_BACKGROUND,
}  # fmt: skip
COLUMN_WIDTH, PAGE_WIDTH = 240 / 72, 500 / 72
"""Width in inches of a paper's column and of its page."""
STYLES: dict[str, dict[str, Any]] = {
    "screen": {},
    "paper": {
        "figure.figsize": (PAGE_WIDTH, 2.0), "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
        "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "legend.title_fontsize": 8,
        "lines.linewidth": 1, "lines.markersize": 3.5, "axes.linewidth": 0.6, "grid.linewidth": 0.5,
    },
}  # fmt: skip
STYLES["column"] = STYLES["paper"] | {"figure.figsize": (COLUMN_WIDTH, 2.0)}
"""For a screen; for a page of a paper, where a single panel is as wide as a column; or for a column, with panels below
each other. The caption of a paper's figure is in a separate file."""
DOTS = {"screen": 150, "paper": 300}
"""Dots per inch of a PNG."""
MOST_POINTS = 2000
"""Maximum number of points of a curve, more than a panel has pixels; of more rounds, this many are drawn, evenly spread
and including the last."""
LOW, HIGH = 0.1, 0.9
"""Quantiles of the replicates that bound a band."""
SPREAD = f"mean, and from {LOW:.0%} to {HIGH:.0%} of".replace("%", " %") + " {} replicates"
MOST_IN_BAND = 1000
"""Maximum number of replicates in a run's band; the first ones are used."""
MOST_DECADES = 3
"""Maximum decades of a logarithmic axis with plain numbers as ticks; longer axes have powers of ten."""
STEPS: tuple[tuple[float, ...], ...] = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9))
"""Ticks per decade of a logarithmic axis: the first option with enough ticks."""
ENOUGH_TICKS, MOST_TICKS = 3, 8
PLAIN = 1e-2, 1e5
"""Range of plain numbers on ticks; others have a common power of ten, at the end of the axis."""
PUBLISHED = ", published"
"""End of the label of a paper's printed values, which are drawn as crosses."""
LONGEST_LABEL = 48
"""Maximum length of a line in a legend."""
LETTERS_AN_INCH = 12
"""Approximate number of letters per inch of a legend, with letters of 10 points."""
LETTERS_HIGH = 26
"""Maximum length of a line of a y label, next to a panel for a paper."""
LETTER = 0.68
"""Width of a title's letter, over its height, with a margin."""
INCHES_A_HANDLE = 0.6
"""Width of a legend's line with the space around it."""


@contextmanager
def style_figures(style: str = "screen", dark: bool = False) -> Iterator[None]:
    """Draw figures in this block for a screen or for a paper, with a dark background if wanted."""
    with matplotlib.rc_context(STYLES[style] | (DARK if dark else {})):  # type: ignore[arg-type]  # of its own names
        yield


def is_for_paper() -> bool:
    """Whether figures are currently drawn for a paper."""
    return bool(matplotlib.rcParams["font.size"] == STYLES["paper"]["font.size"])


def draw_run(
    tables: Path,
    folder: Path,
    curves: "Curves",
    summary: Mapping[str, Array],
    method: str,
    title: str,
    panels: Mapping[str, "Panel"],
    pdf: bool,
) -> None:
    """Draw the figures of one run.

    Parameters
    ----------
    tables, folder : Path
        Folder with the run's rounds.csv, and folder for the figures.
    curves : Curves
        Means over replicates in every round.
    summary : mapping of str to (R,)
        The last round of every replicate.
    method : str
        Label of the method.
    title : str
    panels : mapping of str to Panel
        Panels to draw, by file name.
    pdf : bool
        Whether each figure is also written as PDF, which takes as long as the PNG.
    """
    # Looks and names of what the panels may show
    look, baselines = look_of(method), {name: label for of in CONSTANTS.values() for name, label in of.items()}
    for name, panel in panels.items():
        if panel.nominal is not None and not set(panel.nominal) & set(curves.columns):
            continue
        figure, (axes,) = panel_row(1)
        # Shares inside intervals are drawn against their nominal values
        if panel.nominal is not None:
            against_nominal(axes, summary, panel, panel.nominal, look)
            axes.set_title(title)
            save_figure(folder, name, figure, curves.replicates, pdf)
            continue
        # Columns that this run has
        shown = {
            column: label.format(method=method)
            for column, label in panel.curves.items()
            if column in curves.columns and not np.isnan(summary[column]).all()
        }
        bands = _quantile_bands(tables, [*shown], curves) if len(curves.mean) and curves.mean.shape[1] > 1 else {}
        for number, (column, label) in enumerate(shown.items()):
            mean, _ = curves.mean_and_deviation(column)
            dash = DASHES[number % len(DASHES)]
            # A single round gives points, baselines and methods give curves
            if len(mean) == 1:
                draw_points(axes, summary[column], label, number, look.colour)
            elif column in baselines:
                x = np.arange(1, len(mean) + 1)
                draw_curve(axes, x, mean, None, label, (baseline_colour(number - 1), DASHES[1]))
            else:
                draw_curve(axes, np.arange(1, len(mean) + 1), mean, bands.get(column), label, (look.colour, dash))
                axes.set_xlabel("round")
            # Baselines that are known only at the end
            for place, (of, predicted) in enumerate(CONSTANTS.get(column, {}).items()):
                if of in summary and of not in curves.columns:
                    draw_baseline(axes, summary[of].mean(), predicted, place)
        # The area between two bounds
        if panel.between is not None and set(panel.between) <= set(shown):
            low, high = (curves.mean_and_deviation(column)[0] for column in panel.between)
            axes.fill_between(np.arange(1, len(low) + 1), low, high, color=look.colour, alpha=0.1, linewidth=0)
        axes.set_ylabel(panel.label)
        axes.set_title(title)
        if panel.log:
            axes.set_yscale("log")
        save_figure(folder, name, figure, curves.replicates, pdf)


def draw_finished(
    run: "Run",
    experiment: "Experiment",
    curves: "Curves",
    summary: Mapping[str, Array],
    tables: Path,
    folder: Path | None = None,
    style: str = "",
) -> None:
    """Draw the figures of a run whose tables are complete.

    Parameters
    ----------
    run, experiment, curves, summary
        The run, what it played, and its means over replicates and last rounds.
    tables, folder : Path
        Folder with the run's tables, and folder for the figures, by default the same.
    style : str
        One of `STYLES`, also as PDF; by default as the key figures says.
    """
    from fkl.contract.world import Wrapped  # here, because figures of papers need no methods
    from fkl.runs.play import title_of

    of_conditions = experiment.algorithm.panels if isinstance(experiment.algorithm, Wrapped) else {}
    panels = {**experiment.task.panels(), **of_conditions}
    style = style or "paper" * (run.settings.figures == "paper")
    with style_figures(style or "screen"):
        draw_run(tables, folder or tables, curves, summary, run.algo.label, title_of(run), panels, bool(style))


def draw_again(finished: "FinishedRun", outputs: Path, style: str) -> Path:
    """Draw the figures of a finished run from its tables, as PNG and PDF; return their folder."""
    from fkl.runs.folder import read_summary
    from fkl.runs.prepare import prepare_run, to_play_again
    from fkl.runs.tables import Curves

    run, curves = to_play_again(finished, str(outputs)), Curves()
    curves.enter({str(name): values.to_numpy() for name, values in finished.rounds.items()})
    folder = outputs / "figures" / finished.folder.name
    folder.mkdir(parents=True, exist_ok=True)
    draw_finished(run, prepare_run(run), curves, read_summary(finished.folder), finished.folder, folder, style)
    return folder


def _quantile_bands(folder: Path, columns: Sequence[str], curves: "Curves") -> dict[str, tuple[Array, Array]]:
    """Quantiles over replicates of a run's columns in each round; none for a single replicate."""
    # A band needs several replicates
    rounds, replicates = curves.mean.shape[1], min(curves.replicates, MOST_IN_BAND)
    if replicates < 2 or not columns:
        return {}
    # Only rounds that the picture can show, which saves reading most lines
    seen = _points_drawn(rounds)
    values = np.empty((replicates, len(seen), len(columns)))
    with (folder / "rounds.csv").open(encoding="utf-8") as stream:  # rows of numbers, a replicate after the other
        header, drawn = next(stream).rstrip("\n").split(","), np.isin(np.arange(rounds), seen)
        places = [header.index(column) for column in columns]
        # Replicate after replicate, as the file has them
        for of_replicate in values:
            for row, line in enumerate(compress(islice(stream, rounds), drawn)):
                cells = line.rstrip("\n").split(",")
                of_replicate[row] = [float(cells[place] or "nan") for place in places]
    # Quantiles over replicates, interpolated to all rounds
    ends = np.quantile(values, (LOW, HIGH), axis=0)  # (2, seen, columns)
    made = np.apply_along_axis(lambda end: np.interp(np.arange(rounds), seen, end), 1, ends)
    return {column: (made[0, :, place], made[1, :, place]) for place, column in enumerate(columns)}


def _points_drawn(points: int) -> NDArray[np.int64]:
    """Indices of the points of a curve that are drawn."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).astype(np.int64))


def save_figure(folder: Path, name: str, figure: Figure, replicates: int, pdf: bool = True) -> None:
    """Write a figure, .png and .pdf."""
    for suffix, content in render_figure(figure, replicates, pdf=pdf).items():
        (folder / f"{name}{suffix}").write_bytes(content)


def against_nominal(
    axes: Axes,
    summary: Mapping[str, Array],
    panel: "Panel",
    nominal: Mapping[str, float],
    look: MethodLook | None = None,
) -> None:
    """Draw final shares against nominal shares, with mean and spread over replicates, and the diagonal."""
    # Mean and spread of the final shares
    shares = np.array([summary[name] for name in nominal])
    x, mean, (low, high) = list(nominal.values()), shares.mean(axis=1), np.quantile(shares, (LOW, HIGH), axis=1)
    # The diagonal, on which a share would be exactly its nominal value
    axes.plot([0, 1], [0, 1], DASHES[1], color=baseline_colour(0), linewidth=1, label="nominal share")
    label, colour = next(iter(panel.curves.values())), shade_of_curve(0)[0] if look is None else look.colour
    error = np.maximum([mean - low, high - mean], 0)
    axes.errorbar(x, mean, error, fmt="o-", color=colour, capsize=3, label=label)
    # Numbers beside the points, away from the diagonal
    for place, value in zip(x, mean, strict=True):
        beside = ((-6, 6), "right") if value >= place else ((6, -13), "left")  # away from the diagonal
        axes.annotate(f"{value:.3g}", (place, value), textcoords="offset points", xytext=beside[0], ha=beside[1])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel("probability of the interval")
    axes.set_ylabel(panel.label)


def panel_row(panels: int, across: int | None = None) -> tuple[Figure, Sequence[Axes]]:
    """A row of panels with space for a legend below them, or rows of at most this many."""
    # Columns by the width of a page or of a column
    columns = min(panels, across or panels)
    if is_for_paper():
        columns = min(columns, 2 if panels in (2, 4) else 3)
        width = PAGE_WIDTH if columns > 1 else COLUMN_WIDTH
        if matplotlib.rcParams["figure.figsize"][0] == COLUMN_WIDTH:
            width, columns = COLUMN_WIDTH, 1 if panels < 4 else 2
    # Size by number of panels
    rows = -(-panels // columns)
    if is_for_paper():
        size = width, 0.3 + (2.0 if width / columns > 2.5 else 1.7) * rows
    else:
        size = 1.4 + 4.2 * columns, 0.4 + 3.1 * rows
    figure = Figure(figsize=size, layout="constrained")  # not pyplot's, which belongs to the user
    return figure, [figure.add_subplot(rows, columns, number + 1) for number in range(panels)]


def shade_of_curve(number: int) -> tuple[str, str]:
    """Colour and line style of a curve that is not a method's, by number; 28 are distinct."""
    return colour_of(number), DASHES[number // len(COLOURS) % len(DASHES)]


def draw_band(axes: Axes, rounds: "pd.DataFrame", column: str, label: str, look: MethodLook | tuple[str, str]) -> None:
    """Draw the mean over replicates against the round, with a band."""
    every = np.sort(rounds["round"].unique())
    by_round = rounds[rounds["round"].isin(every[_points_drawn(len(every))])].groupby("round")[column]
    draw_groups(axes, by_round, label, look)
    axes.set_xlabel("round")


def draw_groups(
    axes: Axes, grouped: Any, label: str, look: MethodLook | tuple[str, str], x: Array | None = None
) -> None:
    """Draw the mean of each group of replicates, with a band between quantiles, over the groups' keys or over `x`."""
    mean = grouped.mean()
    ends = (grouped.quantile(LOW).to_numpy(), grouped.quantile(HIGH).to_numpy()) if grouped.size().max() > 1 else None
    at = mean.index.to_numpy() if x is None else x
    draw_curve(axes, at, mean.to_numpy(), ends, label, look)


def draw_curve(
    axes: Axes,
    x: NDArray[Any],
    mean: Array,
    ends: tuple[Array, Array] | None,
    label: str,
    look: MethodLook | tuple[str, str],
) -> None:
    """Draw a curve, with a band if its ends are given; a method's curve has some markers."""
    # A path with too many points would only be slower
    seen = _points_drawn(len(x))
    colour, dash = (look.colour, look.dash) if isinstance(look, MethodLook) else look
    marked: dict[str, Any] = {}
    # Markers on a method's curve, since colours alone do not distinguish
    if isinstance(look, MethodLook):
        marked = {"marker": look.marker, "fillstyle": look.fill, "markevery": 1 if len(seen) < 12 else 0.18}
        marked["clip_on"] = False  # so a marker at the end is complete
    axes.plot(x[seen], mean[seen], dash, color=colour, linewidth=_line_width(), label=label, markersize=4, **marked)
    if ends is not None:
        axes.fill_between(x[seen], ends[0][seen], ends[1][seen], color=colour, alpha=0.2, linewidth=0)


def draw_sweep(axes: Axes, values: "Mapping[float, pd.Series[float]]", label: str, look: MethodLook) -> None:
    """Draw one point per run, the mean of its replicates, over the key in which runs differ, with a line and a band."""
    x = sorted(values)
    ends = tuple(np.array([values[at].quantile(one) for at in x]) for one in (LOW, HIGH))
    draw_curve(axes, np.array(x), np.array([values[at].mean() for at in x]), (ends[0], ends[1]), label, look)


def draw_crosses(axes: Axes, points: Sequence[tuple[float, float]], label: str, look: MethodLook) -> None:
    """Draw a paper's printed values as crosses."""
    if points:
        size = 1.6 * matplotlib.rcParams["lines.markersize"]
        marked: dict[str, Any] = {"markersize": size, "label": f"{label}{PUBLISHED}", "clip_on": False, "zorder": 4}
        axes.plot(*zip(*points, strict=True), "x", color=look.colour, **marked)


def mean_and_spread(values: "pd.Series[float] | Array") -> tuple[float, NDArray[np.float64]]:
    """Mean over replicates, and its distances from the lower and the upper quantile, as `errorbar` needs them."""
    array = np.asarray(values, np.float64)
    low, high = np.quantile(array, (LOW, HIGH))
    return float(array.mean()), np.maximum([[array.mean() - low], [high - array.mean()]], 0)


def draw_baseline(axes: Axes, value: float, words: str, number: int) -> None:
    """Draw a dashed grey line at the error of a baseline without learning."""
    short = words.removeprefix("the ").removeprefix("each client's ")
    colour = baseline_colour(number)
    axes.axhline(value, color=colour, linestyle=DASHES[1], linewidth=1, label=short, zorder=0)


def draw_points(axes: Axes, values: "pd.Series[float] | Array", label: str, place: int, colour: str) -> None:
    """Draw the values of a single round, one point per replicate, next to their mean and quantiles."""
    axes.plot([place] * len(values), values, "o", color=colour, alpha=0.3)
    mean, ends = mean_and_spread(values)
    axes.errorbar([place + 0.2], [mean], ends, fmt="o", color=colour, label=label)
    axes.set_xlim(-0.5, place + 0.7)
    axes.set_xticks([])


def render_figure(figure: Figure, replicates: int | str, claim: str = "", pdf: bool = True) -> dict[str, bytes]:
    """A figure as PNG and PDF, by suffix, with a legend and a note about lines and bands below its panels.

    For a paper, it also has a .txt with the caption.

    If a figure cannot be drawn, the result is empty, with a warning instead of an error, so its data are not lost.

    Parameters
    ----------
    figure : Figure
    replicates : int or str
        Number of replicates in mean and band, or a note about other content.
    claim : str
        A paper's claim about its figure and our result, if the figure has no published values.
    pdf : bool
        Whether to make the PDF.
    """
    # Legend entries of all panels, each once
    handles: dict[str, Artist] = {}
    if not isinstance(replicates, str):
        replicates = SPREAD.format(replicates) if replicates > 1 else "one replicate"
    for axes in figure.axes:
        axes.grid(alpha=0.25)
        plain_ticks(axes)
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    caption = f"{replicates}\n{claim}".rstrip("\n")
    # For papers, the note is a caption in a file of its own
    texts = {}
    if is_for_paper():
        titles = [axes.get_title() for axes in figure.axes]
        texts[".txt"] = _paper_caption(figure, caption).encode()
        for axes, title in zip(figure.axes, titles, strict=True):
            axes.set_title(title.replace("_", " ") if len(titles) > 1 else "")
            axes.set_ylabel("\n".join(_caption_lines(" ".join(axes.get_ylabel().split()), LETTERS_HIGH)))
    _wrap_titles(figure)
    # Legend and note below the panels, as wide as the figure allows
    rest = _in_legend(handles)
    labels = [textwrap.fill(words, LONGEST_LABEL) for words in rest]
    letters = LETTERS_AN_INCH * 10 / matplotlib.rcParams["font.size"]
    note = "" if is_for_paper() else "\n".join(_caption_lines(caption, int(letters * figure.get_figwidth())))
    columns = _legend_columns(figure, labels, letters)
    # They make the figure higher, so panels keep their size
    if labels or note:
        lines = sum(1 + label.count("\n") for label in labels) / columns + note.count("\n") + bool(note)
        inches = 1.6 * matplotlib.rcParams["font.size"] / 72
        figure.set_figheight(figure.get_figheight() + inches * lines + bool(figure.get_suptitle()) * inches)
        figure.legend(
            list(rest.values()), labels, loc="outside lower center", ncols=columns, title=note or None, frameon=False,
            alignment="left" if claim else "center",
        )  # fmt: skip
    for text in words_of(figure):
        text.set_parse_math(False)  # a label may contain anything, such as dollars
    # Lay out once, and draw both formats
    png, made = BytesIO(), {}
    try:
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)  # computing it twice again would take longer than drawing
        with matplotlib.rc_context({"pdf.fonttype": 42}):  # TrueType fonts, because many venues refuse type 3
            figure.savefig(png, format="png", dpi=DOTS["paper" if is_for_paper() else "screen"])
            if pdf:
                figure.savefig(vector := BytesIO(), format="pdf", metadata={"CreationDate": None})
                made[".pdf"] = vector.getvalue()
    except OSError:
        raise
    except Exception as error:  # about a font, a size, a number: matplotlib raises many kinds
        names = ", ".join(filter(None, (axes.get_title() for axes in figure.axes)))
        show_warning(
            f"the figure of {in_one_line(names)} cannot be drawn: {type(error).__name__}: {in_one_line(error)}"
        )
        return {}
    return {".png": png.getvalue(), **made, **texts}


def _wrap_titles(figure: Figure) -> None:
    """Break titles that are wider than their panels, and make room for the further lines."""
    # A title may be as long as a name of the user's
    tallest, more = 1, 0.0
    for axes in figure.axes:
        if (place := axes.get_subplotspec()) is None:
            continue
        size = float(axes.title.get_fontsize())
        letters = int(figure.get_figwidth() / place.get_gridspec().ncols * 72 / size / LETTER)
        lines = (textwrap.wrap(line, letters, break_on_hyphens=False) for line in axes.get_title().splitlines())
        axes.title.set_text(title := "\n".join(part for line in lines for part in line))  # set_title resets the size
        # The tallest title decides, since panels of a row must stay aligned
        tallest = max(tallest, 1 + title.count("\n"))
        more = (tallest - 1) * 1.3 * size / 72 * place.get_gridspec().nrows
    figure.set_figheight(figure.get_figheight() + more)


def _paper_caption(figure: Figure, told: str) -> str:
    """Caption of a paper's figure, in sentences."""
    titles = [title for axes in figure.axes if (title := " ".join(axes.get_title().split()))]
    shown = {axes.get_ylabel(): axes.get_xlabel() for axes in figure.axes if axes.get_ylabel()}
    lines = [
        f"{' '.join(y.split())} over {' '.join(x.split())}" if x else " ".join(y.split()) for y, x in shown.items()
    ]
    said = [f"{'; '.join(lines)}: {', '.join(dict.fromkeys(titles))}.", *told.splitlines()]
    return " ".join(line[:1].upper() + line[1:].rstrip(".") + "." for line in said if line.strip(" :.")) + "\n"


def _caption_lines(told: str, width: int) -> Iterator[str]:
    for line in told.splitlines():
        yield from textwrap.wrap(line.replace(" %", "\N{NO-BREAK SPACE}%"), width)


def _in_legend(handles: dict[str, Artist]) -> dict[str, Artist]:
    """Entries of the legend, with one for all crosses."""
    rest = {words: handle for words, handle in handles.items() if not words.endswith(PUBLISHED)}
    if rest and len(rest) < len(handles):
        rest["published"] = Line2D([], [], color=baseline_colour(0), marker="x", linestyle="none")
    return rest


def words_of(figure: Figure) -> Iterator[Text]:
    """All text of a figure except ticks."""
    yield from figure.texts
    for axes in figure.axes:
        yield from (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)
    for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes)):
        if legend is not None:
            yield from (legend.get_title(), *legend.get_texts())


def spread_over(replicates: Iterable[int]) -> int | str:
    """The note of `render_figure` about curves over this many replicates."""
    counts = {*replicates}
    return counts.pop() if len(counts) == 1 else SPREAD.format(f"{min(counts)} to {max(counts)}")


def plain_ticks(axes: Axes) -> None:
    """Show ticks of both axes as plain numbers, unless they are words or span too many decades."""
    for axis in (axes.xaxis, axes.yaxis):
        # Words as ticks stay; numbers become plain
        ours = isinstance(axis.get_major_formatter(), PlainNumbers)
        if isinstance(axis.get_major_locator(), FixedLocator):
            axis.set_minor_locator(NullLocator())
        elif isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(PlainNumbers())
        # A logarithmic axis over few decades gets ticks at plain numbers
        elif axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            if 0 < low < high and (ours or np.log10(high / low) <= MOST_DECADES):
                axis.set_major_locator(
                    _log_ticks(low, high, _labels_across(axes) if axis is axes.xaxis else MOST_TICKS)
                )
                if not ours:
                    axis.set_major_formatter(PlainNumbers())
            axis.set_minor_locator(NullLocator())


def _log_ticks(low: float, high: float, most: int) -> FixedLocator | MaxNLocator:
    """Ticks of a logarithmic axis: powers of ten, and as many between them as needed, as far as they have space."""
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps in STEPS:
        ticks = np.multiply.outer(10.0**decades, steps).ravel()
        seen = ticks[(low <= ticks) & (ticks <= high)]
        if len(seen) >= ENOUGH_TICKS:
            return FixedLocator(_drop_close_ticks(seen, math.log(high / low) / most))
    return MaxNLocator(min(4, most), steps=[1, 2, 2.5, 5, 10])


def _drop_close_ticks(ticks: Array, least: float) -> list[float]:
    """Drop ticks, from the left, that are too close on the log axis: their logarithms differ by at most `least`."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or math.log(tick / kept[-1]) > least:
            kept.append(float(tick))
    return kept


def _labels_across(axes: Axes) -> int:
    """Number of ticks with a label such as "100 kB" that fit below a panel."""
    place = axes.get_subplotspec()
    inches = axes.figure.get_figwidth() / (place.get_gridspec().ncols if place else 1)  # type: ignore[union-attr]
    return max(2, min(MOST_TICKS, int(inches * 72 / (5 * matplotlib.rcParams["font.size"]))))


class PlainNumbers(Formatter):
    """Plain numbers; very small and very large numbers have a common power of ten."""

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


class Bytes(PlainNumbers):
    """Amounts of bytes with their unit."""

    def set_locs(self, locs: Any) -> None:
        """Do nothing, because amounts of bytes have no common factor."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """One tick."""
        power = min(int(math.log10(x) / 3 + 1e-9), len(BYTES) - 1) if x >= 1 else 0
        return f"{x / 1000.0**power:.4g} {BYTES[power]}"


def share_costs(panels: Iterable[Axes], costs: Iterable[float] = ()) -> None:
    """Give panels with a logarithmic cost axis the same ends, to make them comparable.

    If some costs are 0, the axis begins with 0, and is broken between 0 and the power of ten below the other costs.
    """
    # Panels with logarithmic costs
    panels = [axes for axes in panels if axes.get_xscale() == "log" and axes.has_data()]
    costs = [*costs]
    positive = [cost for cost in costs if cost > 0]
    # A method that sends nothing has cost 0, which a logarithmic axis lacks: linear up to the smallest cost
    if len(positive) < len(costs) and positive:
        first = 10.0 ** math.floor(math.log10(min(positive)))
        decades = math.log10(max(positive) / first)
        for axes in panels:
            formatter = axes.xaxis.get_major_formatter()
            most = _labels_across(axes)
            axes.set_xscale("symlog", linthresh=first, linscale=max(0.25, 1.25 * decades / most))
            axes.set_xlim(-0.3 * first, 10 ** (0.06 * decades) * max(positive))
            axes.xaxis.set_major_locator(FixedLocator([0, *_powers_of_ten(first, max(positive), most - 1)]))
            axes.xaxis.set_major_formatter(formatter)  # set_xscale replaces it
            cut: dict[str, Any] = {
                "marker": [(-0.6, -1), (0.6, 1)],
                "linestyle": "none",
                "clip_on": False,
                "markersize": 7,
            }
            # Two strokes show the break of the axis
            for height in (0, 1):
                axes.plot(
                    [0.45 * first, 0.55 * first], [height] * 2, color=matplotlib.rcParams["axes.edgecolor"],
                    transform=axes.get_xaxis_transform(), zorder=5, **cut,
                )  # fmt: skip
        return
    # Otherwise the same ends in all panels
    ends = [axes.get_xlim() for axes in panels]
    for axes in panels:
        axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))


def _powers_of_ten(first: float, last: float, most: int) -> list[float]:
    """Powers of ten from the first one to the last number, evenly spaced."""
    count = int(math.log10(last / first) + 1e-9) + 1
    return [first * 10.0**power for power in range(0, count, -(-count // most))]


def _line_width() -> float:
    return 1.0 if is_for_paper() else 1.4


def _legend_columns(figure: Figure, labels: Sequence[str], letters: float) -> int:
    """Number of legend columns that fit in the figure's width."""
    if not labels:
        return 1
    longest = max(len(line) for words in labels for line in words.split("\n"))
    return max(1, min(len(labels), int(figure.get_figwidth() / (longest / letters + INCHES_A_HANDLE))))
