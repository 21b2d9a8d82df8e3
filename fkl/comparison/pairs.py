"""Who is better than whom: over replicates on each data set, and over data sets."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from fkl.comparison.cells import Cell
from fkl.comparison.pivot import Pivot
from fkl.comparison.statistics import LEVEL, holm, paired_p, ranks, student_interval
from fkl.errors import install_hint

MOST_METHODS = 30
"""On one data set; pairs of more would take minutes, and hardly one of them would pass Holm's correction."""
FEWEST_DATASETS, FEWEST_METHODS = 5, 3
"""For a test over data sets, whose distribution is known for many of them."""
COLUMNS = ["dataset", "better", "worse", "difference", "low", "high", "p", "p_holm", "n"]


def paired_tests(pivot: Pivot) -> tuple[pd.DataFrame, list[str]]:
    """Compare each two methods on each data set, replicate by replicate.

    Parameters
    ----------
    pivot : Pivot

    Returns
    -------
    tests : DataFrame
        `COLUMNS`: the mean of the paired differences with Student's interval, Wilcoxon's p value, and the same after
        Holm's correction for all pairs on the data set.
    notes : list of str
        What was not compared, in sentences.
    """
    rows, notes = [], []
    for j, dataset in enumerate(pivot.datasets):
        there = [
            i for i in np.argsort(pivot.places[:, j], kind="stable") if Cell(pivot.methods[i], dataset) in pivot.values
        ]
        if len(there) > MOST_METHODS:
            notes.append(
                f"{dataset}: {len(there)} methods are too many to compare in pairs, which are at most {MOST_METHODS}."
            )
            continue
        tested = [_of_a_pair(pivot, dataset, pivot.methods[a], pivot.methods[b]) for a, b in combinations(there, 2)]
        apart = sum(not row["n"] for row in tested)
        if apart:
            notes.append(
                f"{dataset}: {apart} of {len(tested)} pairs of methods share no seed and replicate: not compared."
            )
        corrected = holm(np.array([row["p"] for row in tested], float))
        counted = [row["n"] for row in tested if not np.isnan(row["p"])]
        needed = math.ceil(1 + math.log2(max(len(counted), 1) / (1 - LEVEL)))
        if few := sum(n < needed for n in counted):
            notes.append(
                f"{dataset}: {few} of {len(counted)} pairs share fewer than the {needed} replicates that the first "
                "step of Holm's correction takes."
            )
        rows += [row | {"p_holm": p} for row, p in zip(tested, corrected, strict=True) if row["n"]]
    return pd.DataFrame(rows, columns=COLUMNS), notes


def _of_a_pair(pivot: Pivot, dataset: str, better: str, worse: str) -> dict[str, Any]:
    one, other = (pivot.values[Cell(method, dataset)] for method in (better, worse))
    shared = one.index.intersection(other.index)
    difference = (other.loc[shared] - one.loc[shared]).to_numpy(float)
    low, high = student_interval(difference) if len(shared) else (np.nan, np.nan)
    row = {"dataset": dataset, "better": better, "worse": worse, "n": len(shared)}
    mean = difference.mean() if len(shared) else np.nan
    return row | {"difference": mean, "low": low, "high": high, "p": paired_p(difference)}


def average_ranks(pivot: Pivot) -> tuple[pd.DataFrame, list[str]]:
    """Rank methods by their means on each data set, those that were run on all of them.

    Returns
    -------
    ranks : DataFrame
        Indexed by data set, a column a method, the best on average first; 1 is the best, and those that tie share the
        mean of their places.
    notes : list of str
    """
    everywhere = np.flatnonzero(np.isfinite(pivot.means).all(axis=1))
    methods = [pivot.methods[i] for i in everywhere]
    if len(pivot.datasets) < 2 or len(methods) < 2:
        return pd.DataFrame(), []
    signed = -pivot.means if pivot.larger_is_better else pivot.means
    placed = pd.DataFrame(ranks(signed[everywhere].T), pivot.datasets, methods)
    left = len(pivot.methods) - len(methods)
    notes = (
        [f"Ranks are of the {len(methods)} methods that were run on all data, and leave out {left}."] if left else []
    )
    return placed[placed.mean().sort_values(kind="stable").index], notes


def why_no_diagram(placed: pd.DataFrame) -> str:
    """What a critical-difference diagram of these ranks lacks, in a sentence; nothing where it can be drawn."""
    datasets, methods = placed.shape
    if datasets < FEWEST_DATASETS or methods < FEWEST_METHODS:
        return (
            f"No critical-difference diagram: it wants {FEWEST_METHODS} methods, each run on the same "
            f"{FEWEST_DATASETS} data sets or more."
        )
    try:
        import scikit_posthocs  # noqa: F401
    except ImportError:
        return f"No critical-difference diagram: it wants scikit-posthocs, which comes with {install_hint('compare')}."
    return ""


def nemenyi(placed: pd.DataFrame) -> pd.DataFrame:
    """P values of all pairs of methods over data sets, Nemenyi's test after Friedman's, from their ranks."""
    from scikit_posthocs import posthoc_nemenyi_friedman

    return posthoc_nemenyi_friedman(placed)


def summed_up(tests: pd.DataFrame) -> list[str]:
    """For each data set, who is told apart from the best and who is not, in a line."""
    lines = []
    for dataset, some in tests.groupby("dataset", sort=False):
        best = some["better"].iloc[0]
        against = some[some["better"] == best]
        level = against[~(against["p_holm"] < 1 - LEVEL)]["worse"].tolist()
        words = ", ".join(level) if level else "none"
        lines.append(f"{dataset}: {best} is best; not told apart from it: {words}")
    return lines
