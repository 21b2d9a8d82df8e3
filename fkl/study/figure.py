"""The figures of a study, drawn from its tables of numbers: error against the bytes sent, and differences of pairs."""

import math
import textwrap
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fkl.report.colours import MethodLook, baseline_colour, looks_of
from fkl.report.figures import Bytes, PlainNumbers, draw_baseline, panel_row, render_figure, share_costs, style_figures
from fkl.screen.units import bytes_of

ACROSS = 3
"""Panels per row."""
TALL = 9
"""Number of data sets, including two for the panel's text, that fill the height of a panel."""
LONGEST_NAME = 18
"""Letters per line of the name of a data set."""
MOST_POINTS = 12
"""Maximum number of methods in a panel of error against bytes; if there are more, each has a row."""
LEAST = 0.42
"""Share of a panel's height that its text and one data set need."""


class MoreError(PlainNumbers):
    """A ratio of errors as a difference in percent."""

    def set_locs(self, locs: Any) -> None:
        """Do nothing, because the ticks have no common factor."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """One tick."""
        percent = 100 * (x - 1)
        words = f"{percent:+,.0f} %" if percent >= 1000 else f"{percent:+.3g} %"
        return words.replace("-", "\N{MINUS SIGN}").replace("+0 %", "0")


def draw_differences(frame: pd.DataFrame, methods: list[str], margin: float, style: str = "screen") -> dict[str, bytes]:
    """Draw the percentage by which the first method of a pair has a larger error, with intervals; one panel per pair.

    Parameters
    ----------
    frame : DataFrame
        The content of differences.csv. Pairs that ranks decide have no percentage, and no point.
    methods : list of str
        All methods of the study, so they look the same in its other figure.
    margin : float
        Relative difference below which a difference does not matter.
    style : {"screen", "paper", "column"}

    Returns
    -------
    dict of str to bytes
        PNG and PDF, and for a paper the caption, by suffix; empty if there is no pair.
    """
    # Pairs with a known interval
    rows = frame.dropna(subset=["percent", "low", "high"]).to_dict("records")
    if not rows:
        return {}
    names, looks = [*dict.fromkeys(row["data set"] for row in rows)], looks_of(methods)
    pairs = [*dict.fromkeys((row["a"], row["b"]) for row in rows)]
    # One panel per pair, one row per data set
    with style_figures(style):
        figure, panels = panel_row(len(pairs), ACROSS)
        lines = 2 + (style == "column") + len(names)  # panels in a column are lower
        figure.set_figheight(figure.get_figheight() * min(1, max(LEAST, lines / TALL)))
        for axes, (a, b) in zip(panels, pairs, strict=True):
            look = looks[a]
            for row in rows:
                if (row["a"], row["b"]) != (a, b):
                    continue
                # The point and its interval, as ratios of errors on a logarithmic axis
                place = names.index(row["data set"])
                middle, *ends = (1 + row[key] / 100 for key in ("percent", "low", "high"))
                axes.plot(ends, [place, place], color=look.colour)
                axes.plot([middle], [place], look.marker, color=look.colour, fillstyle=look.fill)
            # The band of practical equality, and the line of equal errors
            axes.axvspan(1 / (1 + margin), 1 + margin, color="0.5", alpha=0.25, linewidth=0)
            axes.axvline(1, color="0.5", linestyle="--", linewidth=1)
            first = axes.get_subplotspec().is_first_col()  # type: ignore[union-attr]
            axes.set_yticks(range(len(names)), [textwrap.fill(name, LONGEST_NAME) if first else "" for name in names])
            axes.set_ylim(len(names) - 0.5, -0.5)
            axes.set_xscale("log")
            axes.set_xticks(_few_ratios(*axes.get_xlim()))
            axes.xaxis.set_major_formatter(MoreError())
            axes.set_title(f"{a} against {b}")
            axes.set_xlabel(f"error of {a}")
        return render_figure(
            figure,
            f"difference of errors with its {100 * (1 - rows[0]['level']):g} % interval, not adjusted for the"
            f" number of pairs; left of 0: the first method is better; band: differences below {100 * margin:g} %",
        )


def _few_ratios(low: float, high: float) -> list[float]:
    """A few ratios in this range, far from each other and from 1, with one digit in percent if possible."""
    apart = math.log(high / low) / 4
    ticks = [1.0] if low < 1 < high else []
    for digits in (1, 2):
        for x in np.exp(np.linspace(math.log(low), math.log(high), 9)[1:-1]):
            tick = 1 + float(f"{x - 1:.{digits - 1}e}")
            if low <= tick <= high and all(abs(math.log(tick / other)) > apart for other in ticks):
                ticks.append(tick)
    return sorted(ticks)


def draw_error_over_bytes(frame: pd.DataFrame, label: str = "error", style: str = "screen") -> dict[str, bytes]:
    """Draw the error against the bytes sent by all clients, with 95 % intervals over seeds; one panel per data set.

    A method without messages is at 0, on an axis that is broken there. More than `MOST_POINTS` methods each have a row,
    in the order of their bytes. Methods with failed seeds are omitted, because their finished seeds are not comparable
    with those of others.

    Parameters
    ----------
    frame : DataFrame
        The content of results.csv.
    label : str
        Label of the error.
    style : {"screen", "paper", "column"}

    Returns
    -------
    dict of str to bytes
        PNG and PDF, and for a paper the caption, by suffix; empty for rows of methods in a column, which is too narrow.
    """
    # Few methods are points over bytes; many are rows, sorted by bytes
    looks, names = looks_of(frame["method"]), [*frame["data set"].unique()]
    frame = frame.fillna({"uplink_bytes": 0.0})
    ended = frame[frame["failed"] == 0]
    by_bytes = [*ended.groupby("method")["uplink_bytes"].mean().sort_values(kind="stable").index]
    if (in_rows := len(by_bytes) > MOST_POINTS) and style == "column":
        return {}
    with style_figures(style):
        figure, panels = panel_row(len(names), ACROSS)
        if in_rows:
            height = 2 * matplotlib.rcParams["font.size"] / 72 * len(by_bytes) / 1.4
            figure.set_figheight(-(-len(names) // ACROSS) * (0.7 + height))
        # A panel for each data set, with the error of the mean target as a line
        for axes, name in zip(panels, names, strict=True):
            same = frame[frame["data set"] == name]
            rows = same[same["failed"] == 0].to_dict("records")
            mean_error = same.loc[same["mean_error"] > 0, "mean_error"].head(1)
            axes.set_title(name)
            # Rows: names left, bytes right
            if in_rows:
                _draw_rows(axes, rows, looks, by_bytes, {*same["method"]})
                axes.set_xlabel(label)
                for value in mean_error:
                    axes.axvline(value, color=baseline_colour(0), linestyle="--", linewidth=1, label="mean target")
            # Points: bytes below, error at the side
            else:
                _draw_points(axes, rows, looks)
                if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
                    axes.set_ylabel(label)
                for value in mean_error:
                    draw_baseline(axes, value, "mean target", 0)
        if not in_rows:
            share_costs(panels, ended["uplink_bytes"])
        seeds = " or ".join(map(str, sorted(frame["of"].unique())))
        caption = f"mean, and its 95 % interval, of {seeds} seeds, each with its own search"
        return render_figure(figure, caption + "; right: sent by all clients" * in_rows)


def _draw_points(axes: Axes, rows: list[dict[str, Any]], looks: dict[str, MethodLook]) -> None:
    """Draw errors over bytes, with a legend."""
    for row in rows:
        axes.errorbar(row["uplink_bytes"], row["error"], row["half"], label=row["method"], **_marker_style(looks, row))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("sent by all clients")
    axes.xaxis.set_major_formatter(Bytes())


def _draw_rows(
    axes: Axes, rows: list[dict[str, Any]], looks: dict[str, MethodLook], order: list[str], judged: set[str]
) -> None:
    """Draw a row per method, from few to many bytes: its name to the left of the first panel, its bytes to the right.

    A judged method without a point failed; the row of a method that was not judged is empty.
    """
    # The interval of each method in its row
    for row in rows:
        axes.errorbar(row["error"], order.index(row["method"]), xerr=row["half"], **_marker_style(looks, row))
    # Bytes at the right, or that the method has failed
    sent = {row["method"]: bytes_of(row["uplink_bytes"]) for row in rows}
    first = axes.get_subplotspec().is_first_col()  # type: ignore[union-attr]
    axes.set_yticks(range(len(order)), order if first else [""] * len(order))
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xscale("log")
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(order)), [sent.get(name, "failed" if name in judged else "") for name in order])


def _marker_style(looks: dict[str, MethodLook], row: dict[str, Any]) -> dict[str, Any]:
    look = looks[row["method"]]
    return {"color": look.colour, "fillstyle": look.fill, "fmt": look.marker, "capsize": 2}
