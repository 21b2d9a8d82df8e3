"""Runs as cells of one table: a method, with what is its own, on data that are the same for all of its column."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from fkl.comparison.labels import Flat, flat, told, varying
from fkl.errors import FklError, require
from fkl.results.collect import FinishedRun

PAIR = ["seed", "replicate"]
"""What a value is paired by."""
OF_DATA = ("dataset", "partition", "scaling")
"""Groups whose keys say which data a run is on."""
OF_A_PAIR = ("seed", "replicates")


class Cell(NamedTuple):
    """Where a run stands."""

    method: str
    dataset: str


@dataclass
class Cells:
    """All runs in their cells.

    Parameters
    ----------
    runs : dict of Cell to list of FinishedRun
        Those of one cell differ in their seed alone.
    keys : list of str
        By which methods or data are told apart.
    notes : list of str
        What a reader must know, in sentences.
    """

    runs: dict[Cell, list[FinishedRun]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        """Rows of the table."""
        return [*dict.fromkeys(cell.method for cell in self.runs)]

    @property
    def datasets(self) -> list[str]:
        """Columns of the table."""
        return [*dict.fromkeys(cell.dataset for cell in self.runs)]

    def values(self, metric: str) -> dict[Cell, "pd.Series[float]"]:
        """A column of the summaries, indexed by `PAIR`; of cells that have it in all of their runs."""
        having = {cell: runs for cell, runs in self.runs.items() if all(metric in run.summary for run in runs)}
        return {cell: _paired(runs, metric) for cell, runs in having.items()}

    def frame(self) -> pd.DataFrame:
        """All summaries, one row for each run, replicate and metric.

        Returns
        -------
        DataFrame
            run, method, dataset, algorithm, the keys that tell runs apart, seed, replicate, metric, value.
        """
        rows = []
        for cell, runs in self.runs.items():
            for run in runs:
                config = flat(run.config)
                named = {"run": run.folder.name, **cell._asdict(), "algorithm": run.algorithm}
                rows.append(named | {key: config.get(key) for key in self.keys} | {"seed": run.config["seed"]})
        every = [run for runs in self.runs.values() for run in runs]
        names = pd.DataFrame(rows)
        wide = names.loc[np.repeat(names.index, [len(run.summary) for run in every])].reset_index(drop=True)
        wide = pd.concat([wide, pd.concat([run.summary for run in every], ignore_index=True)], axis=1)
        ids = [*dict.fromkeys([*names, "replicate"])]
        return wide.melt(ids, var_name="metric", value_name="value").dropna(subset="value", ignore_index=True)


def arrange(runs: Iterable[FinishedRun], by: Sequence[str] = ()) -> Cells:
    """Put runs in cells.

    A method is an algorithm with the keys of its own that are not the same in all of its runs on the same data. Runs
    that differ in their seed alone are one cell's.

    Parameters
    ----------
    runs : iterable of FinishedRun
        Oldest first; of those that differ in nothing else, one with the most replicates counts, and then the newest.
    by : sequence of str
        Keys whose values make columns, as data do, in place of rows.

    Raises
    ------
    fkl.errors.FklError
        If there is a key in `by` that no run has.
    """
    placed = [(run, flat(run.config)) for run in runs]
    if not placed:
        raise FklError("compare: no run is left")
    for key in by:
        known = sorted({name for _, config in placed for name in config})
        require(key in known, "by", key, f"a key of the runs: {', '.join(known)}")
    cells = Cells()
    columns, of_data = _columns(placed, by)
    rows, of_methods = _rows(placed, columns, by, cells.notes)
    cells.keys = [*dict.fromkeys([*of_methods, *of_data])]
    chosen: dict[tuple[Cell, int], FinishedRun] = {}
    for (run, config), dataset, method in zip(placed, columns, rows, strict=True):
        at = Cell(method, dataset), config["seed"]
        if at not in chosen or run.replicates >= chosen[at].replicates:
            chosen[at] = run
    for (cell, _), run in sorted(chosen.items(), key=lambda item: (*item[0][0], item[0][1])):
        cells.runs.setdefault(cell, []).append(run)
    return cells


Placed = list[tuple[FinishedRun, Flat]]


def _columns(placed: Placed, by: Sequence[str]) -> tuple[list[str], list[str]]:
    """Label of each run's data, and the keys in them."""
    groups: dict[str, list[Flat]] = {}
    for run, config in placed:
        groups.setdefault(run.dataset, []).append(_only(config, True, by))
    keys = {name: varying(configs) for name, configs in groups.items()}
    labels = [_label(run.dataset, _only(config, True, by), keys[run.dataset]) for run, config in placed]
    return labels, [key for several in keys.values() for key in several]


def _rows(placed: Placed, columns: list[str], by: Sequence[str], notes: list[str]) -> tuple[list[str], list[str]]:
    """Label of each run's method, and all keys that differ; what only does between data sets is a note."""
    groups: dict[str, dict[str, list[Flat]]] = {}
    for (run, config), column in zip(placed, columns, strict=True):
        groups.setdefault(run.algorithm, {}).setdefault(column, []).append(_only(config, False, by))
    keys, all_keys = {}, []
    for name, on_data in groups.items():
        keys[name] = [*dict.fromkeys(key for some in on_data.values() for key in varying(some))]
        all_keys += (everywhere := varying([one for some in on_data.values() for one in some]))
        if tuned := [key for key in everywhere if key not in keys[name]]:
            alike: dict[str, list[str]] = {}
            for column, some in on_data.items():
                alike.setdefault(told(some[0], tuned), []).append(column)
            values = "; ".join(f"{words} on {' and '.join(several)}" for words, several in alike.items())
            notes.append(f"{name} is not set alike on all data: {values}.")
    labels = [_label(run.algorithm, _only(config, False, by), keys[run.algorithm]) for run, config in placed]
    return labels, all_keys


def _only(config: Flat, data: bool, by: Sequence[str]) -> Flat:
    """Keys that say on which data a run is, or the others."""
    return {
        key: value
        for key, value in config.items()
        if key not in OF_A_PAIR and (key in by or key.partition(".")[0] in OF_DATA) == data
    }


def _label(name: str, config: Flat, keys: Sequence[str]) -> str:
    return ", ".join(word for word in (name, told(config, keys)) if word)


def _paired(runs: Sequence[FinishedRun], metric: str) -> "pd.Series[float]":
    """A column of the summaries of runs that differ in their seed alone."""
    columns = {name: np.concatenate([run.summary[name].to_numpy() for run in runs]) for name in ("replicate", metric)}
    seeds = np.repeat([run.config["seed"] for run in runs], [len(run.summary) for run in runs])
    return pd.DataFrame({**columns, "seed": seeds}).set_index(PAIR)[metric].sort_index()
