"""Methods of different families on the same data, the same ledger and the same replicates: no paper has this."""

from itertools import count

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fkl.comparison.figures import front
from fkl.comparison.statistics import LEVEL, interval, pareto_front, ranks
from fkl.errors import FklError
from fkl.papers.frontier.entries import FAMILIES, OWN, POOLED_BATCH, Entry, at_the_end, course, entries_of, paired
from fkl.report.figures import COLOURS, canvas, shaded
from fkl.results.collect import FinishedRun

TITLE = "Frontier"
TABLES = {
    "1": "error against scalars sent, and who is beaten by none",
    "2": "each method against the one of least error, replicate by replicate",
    "3": "ranks by error",
}
FIGURES = {
    "1": "error against scalars on all links",
    "2": "error over the scalars on all links so far",
    "3": "error against scalars that clients send themselves",
}
UNIT, SCALE = "1e-3", 1e-3
SHAPES = dict(
    zip((*FAMILIES.values(), POOLED_BATCH, OWN), zip("soDPv", (":", "-", "--", "", "-."), strict=True), strict=True)
)
"""Marker and style of line of each family."""
FEW = 100
"""Scalars below which the axis is linear."""
AXES = {
    "1": ("scalars", "scalars a client, on all links in all directions"),
    "2": ("scalars", "scalars a client so far, on all links in all directions"),
    "3": ("sent", "scalars that a client sends itself"),
}
LOW, HIGH = f"low_{LEVEL:.0%}".rstrip("%"), f"high_{LEVEL:.0%}".rstrip("%")


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """What the finished runs tell, each data set by itself.

    Parameters
    ----------
    number : {"1", "2", "3"}
    runs : list of FinishedRun

    Returns
    -------
    DataFrame
        n: replicates; in tables 2 and 3 those that all methods compared have.
    """
    found = entries_of(runs)
    if number == "3":
        return _ranked(found)
    make = {"1": _frontier, "2": _against_the_best}[number]
    return pd.concat([make(of_dataset) for of_dataset in found.values()], ignore_index=True)


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, int]:
    """Draw a figure, one panel a data set.

    Parameters
    ----------
    number : {"1", "2", "3"}
    runs : list of FinishedRun

    Returns
    -------
    figure : Figure
    replicates : int
        The most that a point or curve is over.
    """
    found = entries_of(runs)
    column, words = AXES[number]
    figure, panels = canvas(len(found))
    shades = _shades(found)
    for axes, (dataset, of_dataset) in zip(panels, found.items(), strict=True):
        if number == "2":
            _courses(axes, of_dataset, shades)
        else:
            _points(axes, of_dataset, column, shades)
        axes.set(title=dataset, xlabel=words, yscale="log")
        axes.set_xscale("symlog", linthresh=FEW)  # who sends nothing is shown, too
        axes.set_xlim(-0.1 * FEW, 2 * _means(of_dataset)[column].max() + FEW)
    _tell_families(panels[0], found, lines=number == "2")
    panels[0].set_ylabel(f"mean squared error of samples\nnot learned from ({UNIT})")
    return figure, max(len(entry.values) for of_dataset in found.values() for entry in of_dataset)


def _frontier(found: list[Entry]) -> pd.DataFrame:
    """Table 1 of one data set, from few scalars to many."""
    means = _means(found)
    everywhere, own = (pareto_front(means[column], means["error"]) for column in ("scalars", "sent"))
    rows = [
        {
            **_named(entry),
            "unit": UNIT,
            "error": means["error"][i] / SCALE,
            "spread": entry.values["error"].std(ddof=1) / SCALE,
            "n": len(entry.values),
            "scalars": round(means["scalars"][i]),
            "on_front": "yes" if everywhere[i] else "no",
            "sent_by_client": round(means["sent"][i]),
            "on_front_by_client": "yes" if own[i] else "no",
        }
        for i, entry in enumerate(found)
    ]
    return pd.DataFrame(rows).sort_values("scalars", kind="stable")


def _against_the_best(found: list[Entry]) -> pd.DataFrame:
    """Table 2 of one data set, from the smallest difference to the largest."""
    compared = at_the_end(found)
    [errors] = _same_pairs([compared])
    best = int(errors.mean(axis=0).argmin())
    rows = []
    for i, entry in enumerate(compared):
        difference = errors[:, i] - errors[:, best]
        low, high = interval(difference)
        if i != best:
            rows.append({
                **_named(entry),
                "against": f"{compared[best].algorithm} {compared[best].full_setting}".strip(),
                "unit": UNIT,
                "difference": difference.mean() / SCALE,
                LOW: low / SCALE,
                HIGH: high / SCALE,
                "worse_in": int((difference > 0).sum()),
                "n": len(difference),
            })  # fmt: skip
    return pd.DataFrame(rows).sort_values("difference", kind="stable") if rows else pd.DataFrame()


def _ranked(found: dict[str, list[Entry]]) -> pd.DataFrame:
    """Table 3: ranks among the methods that were run on every data set."""
    by_method = [{entry.method: entry for entry in at_the_end(of_dataset)} for of_dataset in found.values()]
    everywhere = [method for method in by_method[0] if all(method in methods for methods in by_method)]
    if not everywhere:
        raise FklError("table: no method was run on every data set; first fkl run -m +experiment=frontier")
    compared = [[methods[method] for method in everywhere] for methods in by_method]
    placed = np.stack([ranks(errors) for errors in _same_pairs(compared)])  # (data sets, replicates, methods)
    rows = []
    for i, entry in enumerate(compared[0]):
        low, high = interval(placed[:, :, i].mean(axis=0))
        of_dataset = {f"on_{dataset}": placed[s, :, i].mean() for s, dataset in enumerate(found)}
        named = {key: value for key, value in _named(entry).items() if key != "dataset"}
        rows.append({**named, "rank": placed[:, :, i].mean(), LOW: low, HIGH: high, **of_dataset, "n": placed.shape[1]})
    return pd.DataFrame(rows).sort_values("rank", kind="stable", ignore_index=True)


def _named(entry: Entry) -> dict[str, str]:
    return {
        "dataset": entry.dataset,
        "algorithm": entry.algorithm,
        "setting": entry.full_setting,
        "family": entry.family,
    }


def _means(found: list[Entry]) -> dict[str, NDArray[np.float64]]:
    """Error, scalars and sent of each entry, in the mean of its replicates."""
    return {name: np.array([entry.values[name].mean() for entry in found]) for name in ("error", "scalars", "sent")}


def _same_pairs(compared: list[list[Entry]]) -> list[NDArray[np.float64]]:
    """Errors (replicates, entries) of each data set, of the replicates that all entries of all data sets have.

    Raises
    ------
    fkl.errors.FklError
        If there is none.
    """
    errors = [paired(entries) for entries in compared]
    shared = errors[0].index
    for one in errors[1:]:
        shared = shared.intersection(one.index)
    if shared.empty:
        raise FklError("table: the methods have no replicate of the same seed in common")
    return [one.loc[shared].to_numpy() for one in errors]


Shade = tuple[str, str, str]
"""Colour, marker and style of line."""


def _shades(found: dict[str, list[Entry]]) -> dict[tuple[str, str], Shade]:
    """How each method looks, in all panels alike: the shape is its family, the colour is its own within it."""
    number = {family: count() for family in SHAPES}
    family_of = {entry.method: entry.family for of_dataset in found.values() for entry in of_dataset}
    methods = sorted(family_of, key=lambda method: list(SHAPES).index(family_of[method]))
    return {
        method: (COLOURS[next(number[family_of[method]]) % len(COLOURS)], *SHAPES[family_of[method]])
        for method in methods
    }


def _of_methods(found: list[Entry], shades: dict[tuple[str, str], Shade]) -> list[tuple[Shade, list[Entry]]]:
    """Entries of each method, a method after the other as the legend has them."""
    mine = {method: [entry for entry in found if entry.method == method] for method in shades}
    return [(shades[method], some) for method, some in mine.items() if some]


def _points(axes: Axes, found: list[Entry], column: str, shades: dict[tuple[str, str], Shade]) -> None:
    """A point an entry, those of one method joined, and the front as stairs."""
    means = _means(found)
    front(axes, means[column], means["error"] / SCALE)
    for (colour, marker, _), mine in _of_methods(found, shades):
        of_mine = _means(mine)
        x, y = of_mine[column], of_mine["error"] / SCALE
        spread = [np.nan_to_num(entry.values["error"].std(ddof=1)) / SCALE for entry in mine]
        axes.plot(x, y, color=colour, marker=marker, linewidth=0.8, alpha=0.9, label=mine[0].name)
        axes.errorbar(x, y, spread, fmt="none", ecolor=colour, elinewidth=1)
        for entry, point in zip(mine, zip(x, y, strict=True), strict=True):
            if entry.iterations is not None:
                words = f"k={entry.iterations}"
                axes.annotate(words, point, xytext=(3, 3), textcoords="offset points", fontsize=6, color="0.3")


def _courses(axes: Axes, found: list[Entry], shades: dict[tuple[str, str], Shade]) -> None:
    """A curve a method, in the mean of its replicates, with one standard deviation on either side."""
    for (colour, marker, style), (entry, *_) in _of_methods(at_the_end(found), shades):
        if not entry.runs:
            means = _means([entry])
            axes.plot(means["scalars"], means["error"] / SCALE, marker, color=colour, label=entry.name)
            continue
        by_round = pd.concat([course(run) for run in entry.runs]).groupby("round")
        x, mean, deviation = by_round["scalars"].mean(), by_round["error"].mean(), by_round["error"].std(ddof=1)
        spread = deviation.fillna(0).to_numpy() / SCALE
        shaded(axes, x.to_numpy(), mean.to_numpy() / SCALE, spread, entry.name, (colour, style))


def _tell_families(axes: Axes, found: dict[str, list[Entry]], lines: bool) -> None:
    """Name the shapes in the legend."""
    there = {entry.family for of_dataset in found.values() for entry in of_dataset if entry.runs or not lines}
    for family, (marker, style) in SHAPES.items():
        if family in there:
            axes.plot([], [], style if lines else marker, color="0.5", label=family)
