"""Tests of pairs of methods: over seeds or replicates on each data set, and over data sets."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from fkl.basics.errors import install_hint
from fkl.report.compare.cells import Cell
from fkl.report.compare.pivot import Pivot
from fkl.report.compare.statistics import LEVEL, holm, ranks, signed_ranks, student_interval

MOST_METHODS = 30
"""Maximum number of methods on one data set; more pairs would take minutes, and hardly one would pass Holm's
correction."""
FEWEST_DATASETS, FEWEST_METHODS = 5, 3
"""Minimum number of data sets for a test over data sets, whose distribution is asymptotic."""
COLUMNS = ["dataset", "better", "worse", "difference", "low", "high", "scale", "p", "p_holm", "n", "unit", "verdict"]
BETTER, CANNOT_TELL, NOT_TESTED = "better", "cannot tell", "not tested"


def paired_tests(pivot: Pivot) -> tuple[pd.DataFrame, list[str]]:
    """Compare every two methods on each data set, with the seeds or replicates that all its methods share.

    Returns
    -------
    tests : DataFrame
        `COLUMNS`. The signed ranks of the differences decide the better method. The difference is the mean log ratio of
        the worse to the better error, in %, with Student's interval. If not all values are positive, it is the
        difference of the values, in the metric. p is that of Wilcoxon's signed-rank test, in which a diverged value has
        the worst rank, and p_holm is adjusted for all pairs on the data set.
    notes : list of str
        Missing tests, in sentences.
    """
    rows: list[dict[str, Any]] = []
    notes = []
    for dataset in pivot.datasets:
        unit = pivot.units[dataset]
        there = [method for method in pivot.methods if Cell(method, dataset) in pivot.judged]
        pairs = len(there) * (len(there) - 1) // 2
        if not pairs or unit.shared is None:
            continue
        if len(there) > MOST_METHODS:
            many = f"{len(there)} methods are too many to compare in pairs, which are at most {MOST_METHODS}"
            notes.append(f"{dataset}: {NOT_TESTED}: {many}.")
            continue
        tested = [_of_a_pair(pivot, dataset, *names) for names in combinations(there, 2)]
        chance = sum(not np.isnan(row["p"]) for row in tested)
        needed = math.ceil(1 + math.log2(max(chance, 1) / (1 - LEVEL)))
        if unit.n < needed:  # the smallest p, 2 / 2^n, cannot pass the first step of Holm's correction
            notes.append(f"{dataset}: {NOT_TESTED} ({unit.words}, {needed} needed).")
            tested = [row | {"p": np.nan} for row in tested]
        elif chance < pairs:
            notes.append(
                f"{dataset}: {pairs - chance} of {pairs} pairs are {NOT_TESTED}: their differences do not vary."
            )
        corrected = holm(np.array([row["p"] for row in tested], float))
        rows += [row | {"p_holm": p, "verdict": _verdict(p)} for row, p in zip(tested, corrected, strict=True)]
    return pd.DataFrame(rows, columns=COLUMNS), notes


def _verdict(p: float) -> str:
    return NOT_TESTED if np.isnan(p) else BETTER if p < 1 - LEVEL else CANNOT_TELL


def _of_a_pair(pivot: Pivot, dataset: str, one: str, other: str) -> dict[str, Any]:
    a, b = (pivot.judged[Cell(method, dataset)] for method in (one, other))
    finite = bool(np.isfinite(a).all() and np.isfinite(b).all())
    ratio = bool((a > 0).all() and (b > 0).all())
    with np.errstate(invalid="ignore"):  # both diverged, which is a tie
        apart = np.nan_to_num(np.log(b) - np.log(a) if ratio else b - a, nan=0.0, posinf=np.inf, neginf=-np.inf)
    if pivot.larger_is_better:
        apart = -apart
    favour, p = signed_ranks(apart)
    if favour < 0 or (favour == 0 and apart.mean() < 0):
        one, other, apart = other, one, -apart
    mean, (low, high) = (float(apart.mean()), student_interval(apart)) if finite else (np.nan, (np.nan, np.nan))
    if ratio:
        mean, low, high = (100 * math.expm1(value) for value in (mean, low, high))
    unit = pivot.units[dataset]
    row = {"dataset": dataset, "better": one, "worse": other, "difference": mean, "low": low, "high": high}
    return row | {"scale": "%" if ratio else pivot.metric, "p": p, "n": unit.n, "unit": unit.kind}


def average_ranks(pivot: Pivot) -> tuple[pd.DataFrame, list[str]]:
    """Rank the methods that were run on all data sets by their means on each.

    Returns
    -------
    ranks : DataFrame
        Indexed by data set, with one column per method, the best on average first; 1 is the best, and ties share their
        mean rank.
    notes : list of str
    """
    ranked = [j for j, name in enumerate(pivot.datasets) if pivot.units[name].shared is not None]
    signed = (-pivot.means if pivot.larger_is_better else pivot.means)[:, ranked]
    everywhere = np.flatnonzero(~np.isnan(signed).any(axis=1))
    methods = [pivot.methods[i] for i in everywhere]
    if len(ranked) < 2 or len(methods) < 2:
        return pd.DataFrame(), []
    placed = pd.DataFrame(ranks(signed[everywhere].T), [pivot.datasets[j] for j in ranked], methods)
    left = len(pivot.methods) - len(methods)
    notes = (
        [f"Ranks are of the {len(methods)} methods that were run on all data, and leave out {left}."] if left else []
    )
    return placed[placed.mean().sort_values(kind="stable").index], notes


def why_no_diagram(placed: pd.DataFrame) -> str:
    """Reason why there is no critical-difference diagram of these ranks, in a sentence; empty if it can be drawn."""
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


def summed_up(pivot: Pivot, tests: pd.DataFrame) -> list[str]:
    """One line for each data set: the methods that the one with the smallest mean error beats, and the others."""
    lines = []
    for dataset, some in tests[tests["verdict"] != NOT_TESTED].groupby("dataset", sort=False):
        j = pivot.datasets.index(str(dataset))
        best = next(pivot.methods[i] for i in np.argsort(pivot.places[:, j], kind="stable"))
        told = some["verdict"] == BETTER
        said = {
            "better than": [
                f"{row['worse']} ({_gain(row)})" for row in some[told & (some["better"] == best)].to_dict("records")
            ],
            "not better than": some.loc[told & (some["worse"] == best), "better"].tolist(),
            "cannot tell from": [
                name
                for pair in some.loc[~told, ["better", "worse"]].to_numpy()
                if best in pair
                for name in pair
                if name != best
            ],
        }
        words = "; ".join(f"{how} {', '.join(names)}" for how, names in said.items() if names)
        lines.append(f"{dataset}: {best}: {words}")
    return lines


def _gain(row: dict[Any, Any]) -> str:
    """Size of a method's advantage over another."""
    if np.isnan(row["difference"]):
        return "which diverged"
    number, ends = f"{row['difference']:.3g}", f"[{row['low']:.3g}, {row['high']:.3g}]"
    return (
        f"whose error is {number} % higher {ends}" if row["scale"] == "%" else f"by {number} of {row['scale']} {ends}"
    )
