"""Checks whether step sizes were searched; without a search, defaults decide which method is best."""

import numpy as np

from fkl.config.choices import Choices
from fkl.engines.base import STEP_SIZES
from fkl.report.compare.cells import ComparedCells
from fkl.report.compare.labels import CLASS, flat_config
from fkl.report.compare.pivot import Pivot

Steps = dict[str, dict[str, dict[str, float | None]]]
"""Step sizes by algorithm, data set and row of the table; None for a method's default."""


def about_steps(cells: ComparedCells, pivot: Pivot) -> list[str]:
    """Sentences on methods without a searched step size, or whose best step size is at the end of the range."""
    # Which methods were run with one step size only, and whose best one is at an end
    keys, steps = _step_sizes(cells)
    at_end = _at_the_end(keys, steps, pivot)
    alone = [name for name, on in steps.items() if all(len({*some.values()}) == 1 for some in on.values())]
    if not alone or len(pivot.methods) < 2:
        return at_end
    return [
        f"No step size was searched for {', '.join(alone)}: defaults may decide the order, and have made "
        f"errors up to 26 times as large. Sweep {' and '.join(dict.fromkeys(keys[name] for name in alone))}.",
        *_published_rates(cells, {name for name in alone if _of_default(steps[name])}),
        *at_end,
    ]


def _published_rates(cells: ComparedCells, methods: set[str]) -> list[str]:
    """Sentences on methods that ran with the rates of theory, although their authors used others."""
    # Rates that the authors' script sets, which differ from those of theory
    modules = {run.algorithm: run.config["algo"][CLASS].split(".")[-2] for run, *_ in cells.runs.values()}
    choices = Choices()
    changed = {
        name: choices.read(f"as_published/{name}").config.get("algo", {}) for name in choices.names("as_published")
    }
    return [
        f"{name} ran with the rates of theory; +as_published={modules[name]} sets those of its authors' script."
        for name in sorted(methods)
        if set(STEP_SIZES) & set(changed.get(modules[name], ()))
    ]


def _of_default(on: dict[str, dict[str, float | None]]) -> bool:
    """Whether an algorithm ran with its default step size."""
    return any(step is None for some in on.values() for step in some.values())


def _step_sizes(cells: ComparedCells) -> tuple[dict[str, str], Steps]:
    """Each algorithm's key for the step size, and its values."""
    keys: dict[str, str] = {}
    steps: Steps = {}
    for cell, (run, *_) in cells.runs.items():
        config = flat_config(run.config)
        key = next((f"algo.{name}" for name in STEP_SIZES if f"algo.{name}" in config), None)
        if key is not None:
            keys[run.algorithm] = key
            steps.setdefault(run.algorithm, {}).setdefault(cell.dataset, {})[cell.method] = config[key]
    return keys, steps


def _at_the_end(keys: dict[str, str], steps: Steps, pivot: Pivot) -> list[str]:
    """Sentences on best step sizes at the end of the range that was run."""
    ends_of: dict[str, list[str]] = {}
    # For each data set and method with several step sizes
    for j, dataset in enumerate(pivot.datasets):
        for name, on in steps.items():
            some = on.get(dataset, {})
            known = sorted({step for step in some.values() if step is not None})
            finite = [i for i, name in enumerate(pivot.methods) if name in some and np.isfinite(pivot.means[i, j])]
            # Where the best place is, among finite results
            order = np.argsort(pivot.places[:, j], kind="stable")
            best = next((i for i in order if i in finite), None)
            if len(known) < 2 or len(finite) < 2 or best is None or np.isnan(pivot.places[best, j]):
                continue
            # At an end, a better step size may lie beyond
            step = some[pivot.methods[best]]
            for end, most, more in ((known[0], "smallest", "smaller"), (known[-1], "largest", "larger")):
                if step == end:
                    words = f"the best {keys[name]} of {name}, {step:g}, is the {most} that was run: try {more} values."
                    ends_of.setdefault(words, []).append(dataset)
    return [f"{' and '.join(datasets)}: {words}" for words, datasets in ends_of.items()]
