"""Table of all systems' test errors on all data sets, with their traffic and a comparison with LIBSVM."""

import numpy as np
import pandas as pd

from fkl.algorithms.vertical.kernel_machines import PpSvmv
from fkl.basics.errors import FklError
from fkl.papers.fdskl.chosen import DATASETS, SHARE, SYSTEMS, Key, training_samples
from fkl.runs.finished_runs import FinishedRun
from fkl.statistics.intervals import student_interval

LEVEL = 10.0
"""Largest difference, in per cent of LIBSVM's error, of systems that are called level with LIBSVM."""
NO_DIFFERENCE = {
    "above_libsvm_points": np.nan,
    "above_libsvm_percent": np.nan,
    "interval_95_percent": "",
    "libsvm_samples": "",
    "statement": "",
}
"""Values of the columns for LIBSVM itself, and for systems that are not compared with it."""


def errors_table(by_key: dict[Key, FinishedRun]) -> pd.DataFrame:
    """One row for each data set, system and number of training samples: all of them, or as many as LIBSVM had.

    Returns
    -------
    DataFrame
        Differences from LIBSVM on the same splits are in points and in per cent of its mean error, with Student's 95 %
        interval. If LIBSVM did not run on them, differences are from its mean on the most samples, without interval.
        Scalars are those of one training, and their ratio is to FDSKL's with the same number of samples.
    """
    rows = []
    # Sizes: all samples, and as many as LIBSVM had
    for dataset in DATASETS:
        sizes = {SHARE, *(key[2] for key in by_key if key[:2] == (dataset, "LIBSVM"))}
        mine = {key: run for key, run in by_key.items() if key[0] == dataset and key[2] in sizes}
        machines = {share: run for (_, name, share), run in mine.items() if name == "LIBSVM"}
        of_fdskl = {training_samples(run): _scalars_sent(run) for (_, name, _), run in mine.items() if name == "FDSKL"}
        # A row for each run, with messages compared to FDSKL's
        for name in SYSTEMS:
            for (_, of, _), run in sorted(mine.items(), key=lambda item: item[0][2]):
                if of != name:
                    continue
                errors, sent, beside = (
                    100 * run.summary["test_error"],
                    _scalars_sent(run),
                    of_fdskl.get(training_samples(run)),
                )
                row = {
                    "dataset": run.dataset,
                    "system": name,
                    "training_samples": training_samples(run),
                    "n": len(errors),
                }
                row |= {"test_error_percent": errors.mean(), "sd_points": errors.std(ddof=1), "scalars_sent": sent}
                row |= {"scalars_to_fdskl": sent / beside if sent and beside is not None else np.nan}
                # LIBSVM on the same splits, or else on the most samples
                share = float(run.config["partition"]["test_share"])
                reference = machines.get(share) or (machines[min(machines)] if machines else run)
                rows.append(row | (NO_DIFFERENCE if reference is run else _difference_columns(run, reference)))
            # A size that PP-SVMV refuses has a row without numbers
            if name == "PP-SVMV" and (dataset, name, SHARE) not in mine:
                full = [training_samples(run) for key, run in mine.items() if key[2] == SHARE]
                why_refused = svmv_refusal(max(full)) if full else None
                if why_refused is not None:  # a row for a size that PP-SVMV refuses
                    row = {"dataset": dataset, "system": name, "training_samples": max(full), "n": 0}
                    row |= dict.fromkeys(
                        ("test_error_percent", "sd_points", "scalars_sent", "scalars_to_fdskl"), np.nan
                    )
                    rows.append(row | NO_DIFFERENCE | {"statement": f"refused: {why_refused}"})
    return pd.DataFrame(rows)


def svmv_refusal(count: int) -> str | None:
    """PP-SVMV's error message for this many training samples; None if it accepts them."""
    try:
        PpSvmv().require_room(count)
    except FklError as error:
        return str(error)
    return None


def difference_statement(percent: float, low: float, high: float) -> str:
    """Text for a mean difference in per cent of LIBSVM's error, and the ends of its interval."""
    # The interval decides: inside the band, outside, or undecided
    if np.isnan(low):
        return f"{percent:+.0f} % of LIBSVM's error, no interval"
    if low >= -LEVEL and high <= LEVEL:
        return f"level with LIBSVM, within {LEVEL:g} %"
    if low > LEVEL:
        return f"more than {LEVEL:g} % above LIBSVM"
    if high < -LEVEL:
        return f"more than {LEVEL:g} % below LIBSVM"
    side = "above" if low > 0 else "below" if high < 0 else "not significantly different from"
    return f"{side} LIBSVM, and whether within {LEVEL:g} % is open"


def _scalars_sent(run: FinishedRun) -> float:
    return float(run.summary["link_scalars"].mean())


def _difference_columns(run: FinishedRun, reference: FinishedRun) -> dict[str, object]:
    """Columns that compare a run with LIBSVM's run, paired by split if both had the same splits."""
    # Paired differences need the same splits
    mine, other = 100 * run.summary["test_error"], 100 * reference.summary["test_error"]
    paired = training_samples(run) == training_samples(reference) and run.config["seed"] == reference.config["seed"]
    count = min(len(mine), len(other))
    apart = mine[:count] - other[:count] if paired else pd.Series([mine.mean() - other.mean()])
    # In per cent of LIBSVM's error
    unit = (other[:count] if paired else other).mean() / 100  # a per cent of LIBSVM's error, in points
    percent, (low, high) = apart.mean() / unit, (end / unit for end in student_interval(apart.to_numpy(float)))
    row: dict[str, object] = {
        "above_libsvm_points": round(apart.mean(), 4) + 0.0,
        "above_libsvm_percent": round(percent, 2) + 0.0,
    }
    ends = f"{low:.1f} to {high:.1f}" if np.isfinite(low) else ""
    sentence = (
        difference_statement(percent, low, high) if paired else f"{percent:+.0f} %, though LIBSVM had other samples"
    )
    return row | {
        "interval_95_percent": ends,
        "libsvm_samples": f"{training_samples(reference):,}",
        "statement": sentence,
    }
