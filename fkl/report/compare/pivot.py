"""A table of methods by data sets: means with their intervals, and the best method on each data set."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.report.compare.cells import CellPosition
from fkl.report.compare.units import ONE_SPLIT, Unit
from fkl.screen.messages import print_lines
from fkl.screen.sheet import BEST, SECOND, Sheet, SheetColumn
from fkl.screen.sheet import SheetCell as Shown
from fkl.screen.units import RAISED
from fkl.statistics.intervals import CONFIDENCE, half_width

Value = TypeVar("Value")
BEATEN = "▲"
"""Mark of a method that does not beat every baseline."""
DIGITS = 4
"""Significant digits of the smallest mean in a column; all numbers of a column have the same decimals."""
SMALL, LARGE = 0.1, 1e5
"""A column whose smallest mean is outside these limits has a common power of ten."""


@dataclass(frozen=True, repr=False)
class Pivot:
    """A metric by method and data set.

    Parameters
    ----------
    metric : str
    values : dict of Cell to Series
        Indexed by seed and replicate; infinite, in the worse direction, for a diverged replicate.
    methods, datasets : list of str
        Rows and columns.
    larger_is_better : bool
    baselines : dict of Cell to Series
        Errors of baselines without learning, by name and data set, with the same index.
    setup : list of str
        The user's settings that all runs share.
    """

    metric: str
    values: dict[CellPosition, "pd.Series[float]"]
    methods: list[str]
    datasets: list[str]
    larger_is_better: bool = False
    baselines: dict[CellPosition, "pd.Series[float]"] = field(default_factory=dict)
    setup: list[str] = field(default_factory=list)

    @cached_property
    def units(self) -> dict[str, Unit]:
        """Unit of replication on each data set."""
        return {
            name: Unit.from_values(_entries_on(name, self.values), _entries_on(name, self.baselines))
            for name in self.datasets
        }

    @cached_property
    def judged(self) -> dict[CellPosition, NDArray[np.float64]]:
        """The values per unit, one per seed or replicate."""
        return {cell: self.units[cell.dataset].values(series) for cell, series in self.values.items()}

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of each cell, (methods, data sets): NaN without runs, infinite if a value diverged."""
        return self._of_each(lambda values: float(values.mean()))

    @cached_property
    def halves(self) -> NDArray[np.float64]:
        """Half of the interval of each mean; NaN for a single value, and if a value diverged."""
        return self._of_each(half_width)

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """Rank of each mean in its column, 1 for the best; ties have the same rank. NaN if no unit is shared."""
        signed = -self.means if self.larger_is_better else self.means
        ranked = np.array([self.units[name].shared is not None for name in self.datasets])
        return pd.DataFrame(np.where(ranked, signed, np.nan)).rank(method="dense").to_numpy()

    @cached_property
    def baseline_means(self) -> dict[CellPosition, float]:
        """Error of each baseline on each data set."""
        return {cell: float(self.units[cell.dataset].values(series).mean()) for cell, series in self.baselines.items()}

    def count_diverged(self, method: str, dataset: str) -> tuple[int, int]:
        """Number of a cell's diverged values, and of all its values."""
        values = self.judged[CellPosition(method, dataset)]
        return int(np.isinf(values).sum()), len(values)

    def fails_baseline(self, i: int, j: int) -> bool:
        """Whether a method fails to beat some baseline."""
        return bool(
            self.means[i, j] >= min(_entries_on(self.datasets[j], self.baseline_means).values(), default=np.inf)
        )

    @property
    def several(self) -> bool:
        """Whether means have more than one value."""
        return any(unit.n > 1 for unit in self.units.values())

    @property
    def over(self) -> str:
        """Unit over which means are taken, by data set if it differs between them."""
        by_words: dict[str, list[str]] = {}
        for name, unit in self.units.items():
            by_words.setdefault(unit.words, []).append(name)
        return "; ".join(words + f" ({', '.join(names)})" * (len(by_words) > 1) for words, names in by_words.items())

    @property
    def caption(self) -> str:
        """Description of the numbers, in one or two sentences."""
        spread = f" and half of its {CONFIDENCE:.0%} interval (Student's t)".replace("%", " %") if self.several else ""
        better = "larger" if self.larger_is_better else "smaller"
        said = [f"{self.metric}: mean{spread} over {self.over}; {better} is better."]
        if one := [name for name, unit in self.units.items() if unit.one_split]:
            said.append(f"{ONE_SPLIT} ({', '.join(one)})." if len(one) < len(self.units) else f"{ONE_SPLIT}.")
        if self.setup:
            said.append(f"Set in all runs: {', '.join(self.setup)}.")
        return " ".join(said)

    @cached_property
    def conclusions(self) -> list[str]:
        """Sentences on facts in the table that a reader could overlook."""
        said = []
        for j, name in enumerate(self.datasets):
            said += self.units[name].left_out(name, _entries_on(name, self.values))
            means = self.means[np.isfinite(self.means[:, j]), j]
            for baseline, mean in _entries_on(name, self.baseline_means).items():
                if len(means) and (means >= mean).all():
                    said.append(f"No method beats {baseline.method} on {name}.")
        return said

    def frame(self) -> pd.DataFrame:
        """A table for programs: one row per method and data set with runs, and per baseline and data set."""
        rows = []
        # A row per method and data set
        for j, dataset in enumerate(self.datasets):
            unit = self.units[dataset]
            about = {"dataset": dataset, "metric": self.metric, "unit": unit.kind}
            for i, method in enumerate(self.methods):
                if CellPosition(method, dataset) in self.values:
                    failed, n = self.count_diverged(method, dataset)
                    spread = (
                        np.std(self.judged[CellPosition(method, dataset)], ddof=1) if n > 1 and not failed else np.nan
                    )
                    row = {"method": method, "kind": "method", **about, "mean": np.nan if failed else self.means[i, j]}
                    row |= {"half_of_interval": self.halves[i, j], "sd": spread, "n": n, "diverged": failed}
                    rows.append(row | {"place": self.places[i, j], "beats_baselines": not self.fails_baseline(i, j)})
            # Baselines below, without a place
            for baseline, mean in _entries_on(dataset, self.baseline_means).items():
                rows.append({"method": baseline.method, "kind": "baseline", **about, "mean": mean, "n": unit.n})
        return pd.DataFrame(rows).astype({"place": "Int64", "diverged": "Int64"})

    def table_sheet(self, order: Sequence[int] | None = None, conclusions: Sequence[str] = ()) -> Sheet:
        """The table with these rows, and the baselines below them."""
        order = range(len(self.methods)) if order is None else order
        # One power of ten per column, so decimals can be compared
        powers = self._powers_of_columns()
        rows = [
            [Shown(self.methods[i]), *(self._cell_with_interval(i, j, power) for j, power in enumerate(powers))]
            for i in order
        ]
        # Baselines under a rule
        for name in dict.fromkeys(cell.method for cell in self.baselines):
            means = [self.baseline_means.get(CellPosition(name, dataset), np.nan) for dataset in self.datasets]
            rows.append(
                [Shown(name), *(Shown(self._number_in_column(mean, j, powers[j])) for j, mean in enumerate(means))]
            )
        used = any(cell.mark for row in rows for cell in row)
        return Sheet(
            columns=[SheetColumn(self.metric), *(SheetColumn(heading, number=True) for heading in self.headings)],
            rows=rows,
            title=self.metric,
            caption=self.caption + f" {BEATEN}: does not beat every baseline." * used,
            notes="\n".join(f"- {line}" for line in conclusions),
            label=self.metric.replace("_", "-"),
            ruled=(len(order),),
            frame=self.frame(),
        )

    def _repr_html_(self) -> str:
        return self.table_sheet(self.best_first)._repr_html_()

    def __repr__(self) -> str:
        return repr(self.table_sheet(self.best_first))

    def print_table(self, most: int | None = None, format: str = "table", order: Sequence[str] = ()) -> None:
        """Print the table with at most this many methods, in this order or best first."""
        places = ([self.methods.index(name) for name in order] or self.best_first)[:most]
        sheet = self.table_sheet(places)
        sheet.print_sheet(format)
        if format != "table":
            return
        if left := len(self.methods) - len(places):
            print_lines(f"... and {left} methods more")
        print_lines(sheet.about)

    def _of_each(self, number: Callable[[NDArray[np.float64]], float]) -> NDArray[np.float64]:
        made = np.full((len(self.methods), len(self.datasets)), np.nan)
        for i, method in enumerate(self.methods):
            for j, dataset in enumerate(self.datasets):
                if (values := self.judged.get(CellPosition(method, dataset))) is not None:
                    made[i, j] = number(values)
        return made

    @property
    def best_first(self) -> list[int]:
        """Rows in the order of their mean rank over the data sets that they have."""
        return [int(i) for i in pd.DataFrame(self.places).mean(axis=1).argsort(kind="stable")]

    def _powers_of_columns(self) -> list[int]:
        """Power of ten above each column."""
        smallest = [self._smallest_mean(j) for j in range(len(self.datasets))]
        return [3 * math.floor(math.log10(one) / 3) if one and not SMALL <= one < LARGE else 0 for one in smallest]

    def _smallest_mean(self, j: int) -> float:
        """Smallest finite magnitude of a mean in a column; that of a baseline if all methods diverged."""
        known = self.means[np.isfinite(self.means[:, j]), j]
        others = _entries_on(self.datasets[j], self.baseline_means).values()
        return float(np.min(np.abs(known))) if len(known) else min(others, default=0.0)

    @property
    def headings(self) -> list[str]:
        """Data sets, with the common power of ten of each column."""
        powers = (f" ×10{str(power).translate(RAISED)}" if power else "" for power in self._powers_of_columns())
        return [dataset + power for dataset, power in zip(self.datasets, powers, strict=True)]

    def _number_in_column(self, value: float, j: int, power: int) -> str:
        """A number with the decimals of its column; empty for NaN."""
        smallest = self._smallest_mean(j) / 10.0**power
        decimals = max(0, DIGITS - 1 - math.floor(math.log10(smallest))) if smallest else DIGITS - 1
        return "" if np.isnan(value) else f"{value / 10.0**power:.{decimals}f}"

    def _cell_with_interval(self, i: int, j: int, power: int) -> Shown:
        """A mean with its interval, or the number of diverged values."""
        mean = self.means[i, j]
        if np.isinf(mean):
            failed, of = self.count_diverged(self.methods[i], self.datasets[j])
            return Shown(f"{failed} of {of} diverged")
        if np.isnan(mean):
            return Shown("")
        weight = {1.0: BEST, 2.0: SECOND}.get(self.places[i, j], "")
        half = self._number_in_column(self.halves[i, j], j, power)
        return Shown(self._number_in_column(mean, j, power), weight, BEATEN * self.fails_baseline(i, j), half)


def _entries_on(dataset: str, found: dict[CellPosition, Value]) -> dict[CellPosition, Value]:
    """Entries of one data set."""
    return {cell: value for cell, value in found.items() if cell.dataset == dataset}
