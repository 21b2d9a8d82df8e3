"""Runs as cells of one table: a row is a method with its settings, a column is a data set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fkl.basics.errors import FklError, count_of, require
from fkl.data.baselines import CONSTANTS
from fkl.report.compare.labels import Flat, by_hand, flat_config, key_values, varying_keys
from fkl.runs.finished_runs import EndedRun, FinishedRun

PAIR = ["seed", "replicate"]
"""Keys for pairing values."""
OF_DATA = ("dataset", "partition", "scaling", "rows")
"""Groups whose keys identify a run's data."""
OF_A_PAIR = ("seed", "replicates")
ROUNDING = 1e-6
"""Relative difference of baselines that rounding explains."""


class CellPosition(NamedTuple):
    """A cell's position in the table."""

    method: str
    dataset: str


@dataclass(repr=False)
class ComparedCells:
    """All runs in their cells.

    Parameters
    ----------
    runs : dict of Cell to list of EndedRun
        Runs of one cell differ only in their seed.
    keys : list of str
        Keys that distinguish methods or data.
    set_in_all : list of str
        Words that the user set in all runs.
    notes : list of str
        Notes for the reader, in sentences.
    """

    runs: dict[CellPosition, list[EndedRun]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    set_in_all: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        methods, datasets = count_of(len(self.methods), "method"), count_of(len(self.datasets), "data set")
        return f"<{count_of(len(self.every), 'run')} of {methods} on {datasets}>"

    @property
    def methods(self) -> list[str]:
        """Rows of the table."""
        return [*dict.fromkeys(cell.method for cell in self.runs)]

    @property
    def datasets(self) -> list[str]:
        """Columns of the table."""
        return [*dict.fromkeys(cell.dataset for cell in self.runs)]

    @property
    def sources(self) -> dict[str, str]:
        """Data set of each column: columns that differ in a key, such as partition.alpha, are one data set."""
        source_of = {}
        for cell, runs in self.runs.items():
            path = (runs[0].config.get("dataset") or {}).get("path")
            source_of[cell.dataset] = runs[0].dataset + (f" ({path})" if path else "")
        return source_of

    @property
    def every(self) -> list[EndedRun]:
        """All runs, cell by cell."""
        return [run for runs in self.runs.values() for run in runs]

    def finished_runs(self, cell: CellPosition) -> list[FinishedRun]:
        """The finished runs of a cell, which have tables."""
        return [run for run in self.runs.get(cell, []) if isinstance(run, FinishedRun)]

    def values(self, metric: str, worst: float) -> dict[CellPosition, "pd.Series[float]"]:
        """A column of the summaries, indexed by `PAIR`, with `worst` for diverged replicates."""
        return {cell: _by_pair(runs, [run.values(metric, worst) for run in runs]) for cell, runs in self.runs.items()}

    def baseline_errors(self, metric: str) -> tuple[dict[CellPosition, "pd.Series[float]"], list[str]]:
        """Errors of baselines without learning, by name and data set, indexed by `PAIR`.

        Runs on the same data set have the same baselines, unless clients are absent in some of them. Then the data set
        has a note instead of baselines.
        """
        # Baselines hold for a data set only if all its runs have the same samples
        errors_of: dict[CellPosition, pd.Series[float]] = {}
        notes = {}
        for name, words in CONSTANTS.get(metric, {}).items():
            for dataset in self.datasets:
                on_data = [cell for cell in self.runs if cell.dataset == dataset]
                having = [run for cell in on_data for run in self.finished_runs(cell) if name in run.summary]
                if not having:
                    continue
                # Equal up to rounding in every pair of seed and replicate
                every = _by_pair(having, [run.summary[name].to_numpy(float) for run in having])
                ranges = every.groupby(level=PAIR).agg(["min", "max"])
                if (ranges["max"] > ranges["min"] * (1 + ROUNDING)).any():
                    differ = len({repr(_deciding_samples(run)) for run in having}) > 1
                    why = "the methods saw different samples" if differ else "baselines differ between the runs"
                    notes[dataset] = f"{dataset}: {why}, so no baseline holds for all of them."
                else:
                    errors_of[CellPosition(words, dataset)] = every[~every.index.duplicated()]
        return errors_of, [*notes.values()]

    def frame(self, shared: Mapping[str, "pd.Index[Any] | None"]) -> pd.DataFrame:
        """All summaries, one row for each run, replicate and metric.

        Parameters
        ----------
        shared : dict of str to Index
            Seeds and replicates that all methods on a data set share; None if they share none.

        Returns
        -------
        DataFrame
            run, method, dataset, algorithm, the keys that distinguish runs, seed, replicate, diverged, shared, metric,
            value. A diverged run without a summary has one row per replicate, without a metric.
        """
        # A row for each replicate of each run, with what distinguishes the run
        rows = []
        for cell, runs in self.runs.items():
            for run in runs:
                named = self._distinguishing_columns(cell, run)
                replicates = range(run.replicates)
                counted, seed = shared[cell.dataset], run.config["seed"]
                whose = {"shared": [counted is not None and (seed, one) in counted for one in replicates]}
                table = run.summary if isinstance(run, FinishedRun) else pd.DataFrame({"replicate": replicates})
                rows.append(table.assign(**named, diverged=run.diverged, **whose))
        # One row per metric; runs without any value keep a row, so they can be counted
        wide = pd.concat(rows, ignore_index=True)
        ids = [*named, "replicate", "diverged", "shared"]
        long = wide.melt(ids, var_name="metric", value_name="value").dropna(subset="value")
        lost = wide.loc[~wide["run"].isin(long["run"]), ids].assign(metric="", value=np.nan)
        return pd.concat([long, lost], ignore_index=True) if len(lost) else long.reset_index(drop=True)

    def rounds(self) -> pd.DataFrame:
        """The rounds of all finished runs, see `fkl.report.compare.rounds`."""
        # Rounds of one run after another, forgotten at once, because they may be large
        tables = []
        for cell in self.runs:
            for run in self.finished_runs(cell):
                table = run.rounds
                named = pd.DataFrame(self._distinguishing_columns(cell, run), index=table.index)
                tables.append(pd.concat([named, table], axis=1))
                run.forget_tables()
        if not tables:
            raise FklError("rounds: no run is finished")
        return pd.concat(tables, ignore_index=True)

    def _distinguishing_columns(self, cell: CellPosition, run: EndedRun) -> dict[str, Any]:
        """Columns that distinguish a run from the others."""
        config = flat_config(run.config)
        named = {"run": run.folder.name, **cell._asdict(), "algorithm": run.algorithm}
        values = {key: config.get(key) for key in self.keys}
        values = {key: str(value) if isinstance(value, list) else value for key, value in values.items()}
        return named | values | {"seed": run.config["seed"]}


def arrange_cells(runs: Iterable[EndedRun], by: Sequence[str] = ()) -> ComparedCells:
    """Put runs in cells.

    A method is an algorithm with the keys that were set by the user, or that differ between its runs on the same data.
    Runs that differ only in their seed share a cell.

    Parameters
    ----------
    runs : iterable of EndedRun
        Oldest first; among equal runs, the run with the most replicates counts, and among these the newest.
    by : sequence of str
        Keys whose values form columns, like data sets, instead of rows.

    Raises
    ------
    fkl.basics.errors.FklError
        If no run has a key in `by`.
    """
    # Keys by which runs are divided must exist
    placed = [(run, flat_config(run.config)) for run in runs]
    if not placed:
        raise FklError("compare: no run is left")
    for key in by:
        names = sorted({name for _, config in placed for name in config})
        require(key in names, "by", key, f"a key of the runs: {', '.join(names)}")
    # Keys that the user set, without those that are the same in all runs
    hands = [by_hand(run) for run, _ in placed]
    in_all = [word for word in hands[0].items() if all(word in hand.items() for hand in hands)]
    cells = ComparedCells(set_in_all=[f"{key}={value}" for key, value in in_all if key not in OF_A_PAIR])
    differences = [dict(word for word in hand.items() if word not in in_all) for hand in hands]
    # Columns are data sets, rows are methods with the keys in which their runs differ
    columns, of_data = _data_labels(placed, by)
    rows, of_methods = _method_labels(placed, differences, columns, by, cells.notes)
    cells.keys = [*dict.fromkeys([*of_methods, *of_data])]
    # Of runs with the same cell and seed, the one with the most replicates
    chosen: dict[tuple[CellPosition, int], EndedRun] = {}
    for (run, config), dataset, method in zip(placed, columns, rows, strict=True):
        at = CellPosition(method, dataset), config["seed"]
        if at not in chosen or run.replicates >= chosen[at].replicates:
            chosen[at] = run
    for (cell, _), run in sorted(chosen.items(), key=lambda item: (*item[0][0], item[0][1])):
        cells.runs.setdefault(cell, []).append(run)
    return cells


Placed = list[tuple[EndedRun, Flat]]


def _data_labels(placed: Placed, by: Sequence[str]) -> tuple[list[str], list[str]]:
    """Label of each run's data, and the keys in them."""
    groups: dict[str, list[Flat]] = {}
    for run, config in placed:
        groups.setdefault(run.dataset, []).append(_identifying_keys(config, True, by))
    keys = {name: varying_keys(configs) for name, configs in groups.items()}
    labels = [
        _label_with_keys(run.dataset, _identifying_keys(config, True, by), keys[run.dataset]) for run, config in placed
    ]
    return labels, [key for several in keys.values() for key in several]


def _method_labels(
    placed: Placed, own: list[Flat], columns: list[str], by: Sequence[str], notes: list[str]
) -> tuple[list[str], list[str]]:
    """Label of each run's method, and all keys that differ; a difference only between data sets becomes a note.

    `own` has those of the user's settings of each run that not all runs have.
    """
    # Configurations by method and data set
    groups: dict[str, dict[str, list[Flat]]] = {}
    handed: dict[str, list[str]] = {}
    for (run, config), hand, column in zip(placed, own, columns, strict=True):
        groups.setdefault(run.algorithm, {}).setdefault(column, []).append(_identifying_keys(config, False, by))
        handed.setdefault(run.algorithm, []).extend(_identifying_keys(hand, False, by))
    # Keys that vary within one data set distinguish methods; keys that vary only between data sets become a note
    keys, all_keys = {}, []
    for name, on_data in groups.items():
        keys[name] = [*dict.fromkeys(key for some in on_data.values() for key in varying_keys(some))]
        all_keys += (everywhere := varying_keys([one for some in on_data.values() for one in some]))
        if tuned := [key for key in everywhere if key not in keys[name]]:
            alike: dict[str, list[str]] = {}
            for column, some in on_data.items():
                alike.setdefault(key_values(some[0], tuned) or "none of these", []).append(column)
            values = "; ".join(f"{words} on {' and '.join(several)}" for words, several in alike.items())
            notes.append(f"{name} has different settings on different data: {values}.")
        # Keys that a user set by hand, unless they are shown already
        said = {key.partition(".")[0] for key in everywhere}
        alone = [key for key in dict.fromkeys(handed[name]) if key not in everywhere and key not in said]
        keys[name] += alone
        all_keys += alone
    labels = [
        _label_with_keys(run.algorithm, _identifying_keys(hand | config, False, by), keys[run.algorithm])
        for (run, config), hand in zip(placed, own, strict=True)
    ]
    return labels, all_keys


def _identifying_keys(config: Flat, data: bool, by: Sequence[str]) -> Flat:
    """Keys that identify a run's data, or the other keys."""
    return {
        key: value
        for key, value in config.items()
        if key not in OF_A_PAIR and (key in by or key.partition(".")[0] in OF_DATA) == data
    }


def _label_with_keys(name: str, config: Flat, keys: Sequence[str]) -> str:
    """A label such as ``POF-MKL (eta=1 M=5)``, without commas, because lists of labels have commas."""
    words = key_values(config, keys)
    return f"{name} ({words})" if words else name


def _deciding_samples(run: FinishedRun) -> tuple[Any, ...]:
    """Keys and facts that decide which samples of its data set a run predicts."""
    keys = ("learners", "participation", "network", "stop_when")
    return *(run.config.get(key) for key in keys), run.provenance.get("rounds"), run.provenance.get("clients")


def _by_pair(runs: Sequence[EndedRun], values: Sequence[NDArray[np.float64]]) -> "pd.Series[float]":
    """Values of the replicates of some runs."""
    pairs = [(run.config["seed"], replicate) for run in runs for replicate in range(run.replicates)]
    index = pd.MultiIndex.from_tuples(pairs, names=PAIR)
    return pd.Series(np.concatenate([*values]), index, dtype=np.float64).sort_index()
