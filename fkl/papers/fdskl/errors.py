"""Test errors of all systems on all data sets, and which are level with LIBSVM."""

import numpy as np
import pandas as pd

from fkl.algorithms.vertical.pp_svmv import PpSvmv
from fkl.errors import FklError
from fkl.papers.fdskl.chosen import DATASETS, FOLDERS, SHARE, Key, samples
from fkl.results.collect import FinishedRun

LEVEL = 1.5
"""Percentage points of test error within which FDSKL is called level with LIBSVM."""
QUANTILE = 1.96  # of a 95 % interval of a mean


def errors_table(by_key: dict[Key, FinishedRun]) -> pd.DataFrame:
    """One row for each data set, system and number of training samples, of all and of as many as LIBSVM had.

    Returns
    -------
    DataFrame
        Differences are to LIBSVM on the same splits, with the 95 % interval of their mean; where it ran on none of
        them, to its mean on the most samples.
    """
    rows = []
    for dataset in DATASETS:
        sizes = {SHARE, *(key[2] for key in by_key if key[:2] == (dataset, "LIBSVM"))}
        mine = {key: run for key, run in by_key.items() if key[0] == dataset and key[2] in sizes}
        for system in FOLDERS:
            found = [run for (_, name, _), run in sorted(mine.items(), key=lambda item: item[0][2]) if name == system]
            rows += [_row(run, _reference(run, mine)) for run in found]
            if system == "PP-SVMV" and (dataset, system, SHARE) not in mine and mine:
                rows += _refused(dataset, mine)
    return pd.DataFrame(rows)


def refusal(count: int) -> str | None:
    """What PP-SVMV says to so many training samples, None where it takes them."""
    try:
        PpSvmv().require_room(count)
    except FklError as error:
        return str(error)
    return None


def _row(run: FinishedRun, reference: FinishedRun | None) -> dict[str, object]:
    errors = 100 * run.summary["test_error"]
    row = _named(run.dataset, run.algorithm, samples(run))
    row |= {"n": len(errors), "test_error_percent": errors.mean(), "sd_points": errors.std(ddof=1)}
    return row | (_difference(run, reference) if reference is not None and reference is not run else _nothing())


def _named(dataset: str, system: str, count: int) -> dict[str, object]:
    return {"dataset": dataset, "system": system, "training_samples": count}


def _nothing() -> dict[str, object]:
    return {"above_libsvm_points": np.nan, "interval_95": "", "libsvm_samples": "", "statement": ""}


def _difference(run: FinishedRun, reference: FinishedRun) -> dict[str, object]:
    mine, other = 100 * run.summary["test_error"], 100 * reference.summary["test_error"]
    paired = samples(run) == samples(reference)
    count = min(len(mine), len(other))
    apart = mine[:count] - other[:count] if paired else pd.Series([mine.mean() - other.mean()])
    half = QUANTILE * apart.std(ddof=1) / np.sqrt(count) if paired and count > 1 else np.nan
    row = {"above_libsvm_points": round(apart.mean(), 4) + 0.0, "libsvm_samples": f"{samples(reference):,}"}
    row["interval_95"] = f"{apart.mean() - half:.2f} to {apart.mean() + half:.2f}" if np.isfinite(half) else ""
    return row | {"statement": _statement(run.algorithm, apart.mean(), paired)}


def _statement(system: str, apart: float, paired: bool) -> str:
    """Plain words about FDSKL."""
    if system != "FDSKL":
        return ""
    words = f"level, within {LEVEL:g} points" if abs(apart) <= LEVEL else f"not level, {apart:+.1f} points"
    return words if paired else f"{words}, though LIBSVM had fewer samples"


def _reference(run: FinishedRun, mine: dict[Key, FinishedRun]) -> FinishedRun | None:
    """LIBSVM on the same splits, else on the most samples."""
    machines = {key[2]: other for key, other in mine.items() if key[1] == "LIBSVM"}
    share = float(run.config["partition"]["test_share"])
    return machines.get(share) or (machines[min(machines)] if machines else None)


def _refused(dataset: str, mine: dict[Key, FinishedRun]) -> list[dict[str, object]]:
    """A row for the size that PP-SVMV refuses."""
    full = [samples(run) for key, run in mine.items() if key[2] == SHARE]
    words = refusal(max(full)) if full else None
    if words is None:
        return []
    row = _named(dataset, "PP-SVMV", max(full)) | {"n": 0, "test_error_percent": np.nan, "sd_points": np.nan}
    return [row | _nothing() | {"statement": f"refused: {words}"}]
