"""Methods of all families, each tuned by as many trials on other rows and judged once: no paper has this."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fkl.basics.errors import FklError
from fkl.papers.frontier.entries import ALONE, POOLED, Entry, by_seed, difference, entries_of, not_worse, unit_of
from fkl.papers.frontier.questions import answers
from fkl.papers.frontier.trials import EPSILONS
from fkl.report.colours import Look, baseline_colour, looks_of
from fkl.report.compare.figures import front
from fkl.report.compare.statistics import half_width, pareto_front
from fkl.report.figures import AT_POINT, IN_LEGEND, NAMED, Bytes, baseline, canvas, share_costs
from fkl.results.finished_runs import FinishedRun

TITLE = "Frontier"
TABLES = {
    "1": "what to run for a budget of bytes",
    "2": "what to run for an epsilon",
    "3": "every method, as it was tuned and judged",
    "4": "what one idea is worth: pairs of methods",
}
NO_CELLS = "no paper's numbers, but a study of our own: what to run for a budget."
"""Why there is no number to compare."""
FIGURES = {
    "1": "error against bytes on all links",
    "2": "error against bytes that a client sends itself",
    "3": "error against simulated seconds",
    "4": "error against epsilon",
}
BUDGETS = {"1 kB": 1e3, "10 kB": 1e4, "100 kB": 1e5, "1 MB": 1e6, "any": np.inf}
"""Budgets of a client over the whole run."""
ON_LINKS = {"bytes": "all links", "sent": "sent by a client"}
AXES = {
    "1": ("bytes", "sent on all links, per client"),
    "2": ("sent", "sent by a client itself"),
    "3": ("seconds", "simulated seconds"),
}
TRUST = {"central": ("central", "local"), "local": ("local",)}
"""Which noise satisfies each trust model. Who trusts the server may also let clients add their own noise."""
LEAST = {"bytes": 100.0, "sent": 100.0, "seconds": 0.1}
"""Left ends of the logarithmic axes, where methods that send nothing are drawn."""


def table(number: str, runs: list[FinishedRun]) -> pd.DataFrame:
    """A table of the finished runs, for each data set separately."""
    found = entries_of(runs)
    make = {"1": _for_bytes, "2": _for_epsilon, "3": _all_methods, "4": answers}[number]
    rows = [row for of_dataset in found.values() for row in make(of_dataset)]
    if not rows:
        raise FklError(
            f"table: no finished run is of the frontier's table {number}; first fkl run -m +experiment=frontier/judged"
        )
    return pd.DataFrame(rows)


def figure(number: str, runs: list[FinishedRun]) -> tuple[Figure, str]:
    """Draw a figure, one panel a data set.

    Returns
    -------
    figure : Figure
    what : str
        What points and bars are.
    """
    found = entries_of(runs)
    if number == "4":
        return _against_epsilon(found)
    column, words = AXES[number]
    figure, panels = canvas(len(found), across=2)
    looks = _looks(found)
    for axes, (dataset, of_dataset) in zip(panels, found.items(), strict=True):
        plain = [entry for entry in of_dataset if not entry.privacy]
        at = {entry: max(entry.mean(column), LEAST[column]) for entry in plain}
        open_to_all = [entry for entry in plain if entry.kind != POOLED]
        on_front: set[Entry] = set()
        if open_to_all:
            cost, error = np.array([at[one] for one in open_to_all]), np.array([_error(one) for one in open_to_all])
            front(axes, cost, error)
            on_front = {one for one, there in zip(open_to_all, pareto_front(cost, error), strict=True) if there}
        for entry in plain:
            if entry in on_front:
                shown: dict[str, Any] = _drawn(looks[entry.name]) | {"linestyle": "none", "gid": AT_POINT}
                axes.errorbar(at[entry], _error(entry), _half_width(entry), elinewidth=1, label=entry.name, **shown)
            elif entry.kind != POOLED:
                grey: dict[str, Any] = {"color": baseline_colour(1), "markersize": 4, "zorder": 1, "gid": NAMED}
                axes.plot(at[entry], _error(entry), "o", label=entry.name, **grey)
        axes.plot([], [], "o", color=baseline_colour(1), markersize=4, label="other methods", gid=IN_LEGEND)
        for entry in _anchors(of_dataset, POOLED)[:1]:
            baseline(axes, _error(entry), entry.name, 0)
        axes.set(title=dataset, xlabel=words, xscale="log", yscale="log", ylabel=f"error ({unit_of(dataset)[0]})")
        if column in ON_LINKS:
            axes.xaxis.set_major_formatter(Bytes())
    share_costs(panels)
    return figure, _caption(found)


def _against_epsilon(found: dict[str, list[Entry]]) -> tuple[Figure, str]:
    """Draw a panel for each data set and trust model; a method has the same colour in all of them."""
    private = {dataset: some for dataset, of in found.items() if (some := [entry for entry in of if entry.privacy])}
    if not private:
        raise FklError(
            "figure: no finished run of the frontier has noise; first fkl run -m +experiment=frontier/judged"
        )
    figure, panels = canvas(2 * len(private), across=2)
    looks = _looks(private)
    places = [(dataset, trust) for dataset in private for trust in TRUST]
    for axes, (dataset, trust) in zip(panels, places, strict=True):
        of_method: dict[str, list[Entry]] = {}
        for entry in private[dataset]:
            if entry.privacy == trust:
                of_method.setdefault(entry.name, []).append(entry)
        for name, several in of_method.items():
            several.sort(key=lambda entry: entry.mean("epsilon"))
            x = [entry.mean("epsilon") for entry in several]
            y, half = ([of(entry) for entry in several] for of in (_error, _half_width))
            axes.errorbar(x, y, half, elinewidth=1, label=name, **_drawn(looks[name]))
        for kind, style in ((ALONE, ":"), (POOLED, "--")):
            for entry in _anchors(found[dataset], kind)[:1]:
                label = f"{entry.name}, no noise"
                axes.axhline(_error(entry), color=baseline_colour(0), linestyle=style, label=label)
        axes.set(title=f"{dataset}, {trust}", xscale="log", yscale="log")
        axes.set(xlabel="epsilon of a sample, delta = 1e-5", ylabel=f"error ({unit_of(dataset)[0]})")
    return figure, _caption(private)


def _for_bytes(found: list[Entry]) -> Iterator[dict[str, Any]]:
    """Table 1 of one data set."""
    everybody = [entry for entry in _on_all_seeds(found) if not entry.privacy and entry.kind != POOLED]
    asked = {"all": everybody, "streams": [entry for entry in everybody if entry.stream]}
    for (column, where), (who, candidates), (words, budget) in product(
        ON_LINKS.items(), asked.items(), BUDGETS.items()
    ):
        within = [entry for entry in candidates if entry.mean(column) <= budget]
        if within:
            about = {"dataset": found[0].dataset, "counted": where, "among": who, "budget": words}
            yield about | _answer(within, found)


def _for_epsilon(found: list[Entry]) -> Iterator[dict[str, Any]]:
    """Table 2 of one data set."""
    for trust, enough in TRUST.items():
        for epsilon in EPSILONS:
            candidates = [entry for entry in _on_all_seeds(found) if entry.privacy in enough]
            private = [entry for entry in candidates if entry.mean("epsilon") <= epsilon]
            if private:
                yield {"dataset": found[0].dataset, "noise": trust, "epsilon": epsilon, **_answer(private, found)}


def _on_all_seeds(found: list[Entry]) -> list[Entry]:
    """Entries that finished on all seeds: the mean over the others would flatter one that diverged on some."""
    most = max(len(entry.values) for entry in found)
    return [entry for entry in found if len(entry.values) == most]


def _answer(within: list[Entry], found: list[Entry]) -> dict[str, Any]:
    """The entry of least error, those that are not worse by their interval, and the anchors beside."""
    best = min(within, key=lambda entry: entry.mean("error"))
    unit, scale = unit_of(best.dataset)
    anchors = {}
    for kind in (ALONE, POOLED):
        others = [entry for entry in _anchors(found, kind) if entry is not best]
        for entry in others[:1]:
            apart, low, high = (value / scale for value in difference(entry, best))
            anchors[kind] = f"{entry.name}: {apart:+.3g} [{low:+.3g}, {high:+.3g}]"
    return {
        "run": best.name,
        "unit": unit,
        "error": _error(best),
        "half_95": _half_width(best),
        "bytes": round(best.mean("bytes")),
        "not_worse": ", ".join(dict.fromkeys(entry.name for entry in not_worse(within, best))) or "-",
        "candidates": len(within),
        "alone_minus_run": anchors.get(ALONE, "-"),
        "pooled_minus_run": anchors.get(POOLED, "-"),
        "seeds": len(by_seed(best.values["error"])),
        "n": len(best.values),
    }


def _all_methods(found: list[Entry]) -> Iterator[dict[str, Any]]:
    """Table 3 of one data set, from few bytes to many; those with noise last."""
    unit, scale = unit_of(found[0].dataset)
    for entry in sorted(found, key=lambda one: (one.privacy, one.budget or 0, one.mean("bytes"))):
        yield {
            "dataset": entry.dataset,
            "method": entry.name,
            "kind": entry.kind,
            "noise": entry.privacy or "-",
            "epsilon": entry.mean("epsilon"),
            "unit": unit,
            "error": _error(entry),
            "half_95": _half_width(entry),
            "searched": entry.searched / scale,
            "bytes": round(entry.mean("bytes")),
            "sent": round(entry.mean("sent")),
            "seconds": entry.mean("seconds"),
            "tuned": entry.tuned,
            "n": len(entry.values),
        }


def _anchors(found: Iterable[Entry], kind: str) -> list[Entry]:
    """Entries of a kind without noise, least error first."""
    return sorted((one for one in found if one.kind == kind and not one.privacy), key=lambda one: one.mean("error"))


def _error(entry: Entry) -> float:
    return entry.mean("error") / unit_of(entry.dataset)[1]


def _half_width(entry: Entry) -> float:
    """Half of the interval over seeds."""
    return half_width(by_seed(entry.values["error"])) / unit_of(entry.dataset)[1]


def _looks(found: dict[str, list[Entry]]) -> dict[str, Look]:
    """How each method looks, in all panels alike."""
    return looks_of(entry.name for of_dataset in found.values() for entry in of_dataset)


def _drawn(look: Look) -> dict[str, Any]:
    """A look as matplotlib has it."""
    marker = {"marker": look.marker, "fillstyle": look.fill, "markersize": 5}
    return {"color": look.colour, "linestyle": look.dash, **marker}


def _caption(found: dict[str, list[Entry]]) -> str:
    seeds = {len(by_seed(entry.values["error"])) for of_dataset in found.values() for entry in of_dataset}
    return f"mean over {max(seeds)} seeds of data, bars: 95 % interval over seeds"
