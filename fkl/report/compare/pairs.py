"""Pairs of methods on each data set, with the verdicts that studies use; and ranks over data sets."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from fkl.basics.errors import FklError, install_hint
from fkl.report.compare.cells import CellPosition
from fkl.report.compare.pivot import Pivot
from fkl.statistics.differences import from_seeds
from fkl.statistics.verdicts import PairVerdict, of_data_set

MOST_METHODS = 30
"""Maximum number of methods on a data set; with more pairs, hardly any would pass Holm's correction."""
FEWEST_DATASETS, FEWEST_METHODS = 5, 3
"""Minimum numbers of data sets and methods for a test over data sets, whose distribution is asymptotic."""


def pair_verdicts(pivot: Pivot) -> tuple[dict[str, list[PairVerdict]], list[str]]:
    """Compare every two methods on each data set, with the seeds or replicates that all its methods share.

    Returns
    -------
    verdicts : dict of str to list of Verdict
        By data set.
    notes : list of str
        Sentences on missing verdicts.
    """
    verdict_of, notes = {}, []
    # Tests compare errors, which are better if smaller
    if pivot.larger_is_better:
        return {}, [f"Methods are not compared in pairs: {pivot.metric} is not an error."]
    for dataset in pivot.datasets:
        unit = pivot.units[dataset]
        # Methods with values on this data set
        there = [method for method in pivot.methods if CellPosition(method, dataset) in pivot.judged]
        if len(there) < 2 or unit.shared is None:
            continue
        if len(there) > MOST_METHODS:
            notes.append(f"{dataset}: not compared in pairs: {len(there)} methods, but the maximum is {MOST_METHODS}.")
            continue
        # Each pair on the shared seeds; a zero has no logarithm
        values = {method: pivot.judged[CellPosition(method, dataset)] for method in there}
        pairs, why = {}, ""
        for a, b in combinations(there, 2):
            try:
                pairs[a, b] = from_seeds(values[a], values[b], unit.kind)
            except FklError as error:
                why = str(error)
        if why:
            which = f" with {' and '.join(without_ratio(pivot, dataset))}" if pairs else ""
            notes.append(f"{dataset}: not compared in pairs{which}: {why}.")
        if pairs:
            verdict_of[dataset] = of_data_set(pairs)
    return verdict_of, notes


def without_ratio(pivot: Pivot, dataset: str) -> list[str]:
    """Methods with an error that is not above 0 on this data set, which has no log ratio."""
    judged = {cell.method: values for cell, values in pivot.judged.items() if cell.dataset == dataset}
    return [method for method, values in judged.items() if (values <= 0).any()]


def average_ranks(pivot: Pivot, sources: Mapping[str, str] | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Rank the methods that were run on all data sets by their means on each.

    A data set with several columns counts once: its ranks are averaged over them, and ranked again.

    Parameters
    ----------
    pivot : Pivot
    sources : mapping of str to str, optional
        Data set of each column, see `fkl.report.compare.cells.Cells.sources`; by default the column itself.

    Returns
    -------
    ranks : DataFrame
        Indexed by data set, with one column per method, the best on average first; 1 is the best, and ties share their
        mean rank.
    notes : list of str
    """
    # Ranks need columns in which all methods have the same seeds
    ranked = [j for j, name in enumerate(pivot.datasets) if pivot.units[name].shared is not None]
    signed = (-pivot.means if pivot.larger_is_better else pivot.means)[:, ranked]
    everywhere = np.flatnonzero(~np.isnan(signed).any(axis=1))
    methods = [pivot.methods[i] for i in everywhere]
    columns = [pivot.datasets[j] for j in ranked]
    # Columns of one data set with several settings count once
    of_column = [(sources or {}).get(name, name) for name in columns]
    if len(ranked) < 2 or len(methods) < 2:
        return pd.DataFrame(), []
    if len(set(of_column)) < 2:
        return pd.DataFrame(), [f"No ranks over data sets: all columns are of one data set, {of_column[0]}."]
    names = columns if len(set(of_column)) == len(columns) else of_column
    # Rank within each column, then the mean by data set
    placed = pd.DataFrame(signed[everywhere].T, names, methods).rank(axis=1)
    placed = placed.groupby(level=0, sort=False).mean().rank(axis=1)
    left = len(pivot.methods) - len(methods)
    notes = [f"Ranks include the {len(methods)} methods that were run on all data, and omit {left}."] if left else []
    return placed[placed.mean().sort_values(kind="stable").index], notes


def why_no_diagram(placed: pd.DataFrame) -> str:
    """Sentence on why a critical-difference diagram of these ranks cannot be drawn; empty if it can be drawn."""
    # Few data sets or methods would give bars without meaning
    datasets, methods = placed.shape
    if datasets < FEWEST_DATASETS or methods < FEWEST_METHODS:
        return (
            f"No critical-difference diagram: it needs {FEWEST_METHODS} methods, each run on the same "
            f"{FEWEST_DATASETS} data sets or more."
        )
    try:
        import scikit_posthocs  # noqa: F401
    except ImportError:
        return f"No critical-difference diagram: it needs scikit-posthocs, which comes with {install_hint('compare')}."
    return ""


def nemenyi_test(placed: pd.DataFrame) -> pd.DataFrame:
    """P values of all pairs of methods over data sets, by Nemenyi's test after Friedman's, from their ranks."""
    from scikit_posthocs import posthoc_nemenyi_friedman

    return posthoc_nemenyi_friedman(placed)
