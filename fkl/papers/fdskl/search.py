"""The hyperparameter search: each candidate's error on fifths of the training samples, and the chosen one."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from fkl.config.experiments import experiments
from fkl.papers.fdskl.chosen import (
    BANK,
    DATASETS,
    FOLDERS,
    hyper_parameters,
    recorded,
    samples,
    share,
    system,
)
from fkl.papers.our_runs import Found, find
from fkl.results.finished_runs import FinishedRun

SEARCHED = {
    "FDSKL": ("sigma", "gamma", "lam", "batch", "features"),
    "LIBSVM": ("C", "gamma"),
    "FD-SVRG": ("eta", "lam"),
    "SecureBoost": ("depth", "learning_rate"),
    BANK: ("sigma", "gamma", "lam", "batch", "features", "bank"),
    "Nystroem": ("loss", "gamma", "lam", "landmarks"),
    "RFF ridge": ("gamma", "lam", "angles"),
}
"""Keys of algo, and sigma of kernels. DSG has those of FDSKL, with the same f, and PP-SVMV those of LIBSVM."""
LENGTH = {"FDSKL": "iterations", BANK: "iterations", "SecureBoost": "trees"}
"""Keys that set the length of a run: one run gives the results of all shorter ones."""
ENOUGH = 0.001
"""A shorter run is chosen if its error exceeds the lowest by at most this."""
WINDOW = 5
"""Errors of this many successive lengths are averaged, to avoid choosing one lucky length."""
CHOSEN, RECORDED = "chosen", "as recorded"

Candidate = tuple[str, str, str]
"""Data set, system, and its keys as words."""


def search_table(runs: Iterable[FinishedRun]) -> pd.DataFrame:
    """Every candidate of every system and data set.

    Returns
    -------
    DataFrame
        For each candidate: the length with the lowest mean error over the folds, the shortest one that is as good
        within `ENOUGH`, and whether its error is the lowest of all candidates tried on equally many samples. A later
        search on more samples overrules one on few. The last column compares the chosen candidate with the record in
        the paper's experiments.yaml.
    """
    folds: dict[tuple[Candidate, float], dict[int, Found]] = {}
    for one in find("fdskl", runs, *(name for name in experiments("fdskl") if name.startswith("fdskl_search/"))):
        name, run = system(one), one.run
        keys = hyper_parameters(run.config)
        values = {key: keys[key] for key in SEARCHED[name] if key in keys}
        words = "; ".join(
            f"{key}={value:g}" if isinstance(value, int | float) else f"{key}={value}" for key, value in values.items()
        )
        about = f"{words}; seed={run.config['seed']}" if run.config["seed"] else words  # another first split
        folds.setdefault(((run.dataset, name, about), share(one)), {})[keys["fold"]] = one
    rows = [_row(candidate, [by_fold[fold] for fold in sorted(by_fold)]) for (candidate, _), by_fold in folds.items()]
    if not rows:
        return pd.DataFrame()
    places = {"dataset": list(DATASETS), "system": list(FOLDERS)}
    table = pd.DataFrame(rows).sort_values(
        ["dataset", "system", "training_samples", "error_percent", "candidate"],  # the last among equal ones
        key=lambda column: column.map(places[str(column.name)].index) if column.name in places else column,
        ascending=[True, True, False, True, True],
        ignore_index=True,
    )
    chosen = ~table.duplicated(["dataset", "system"])
    table["choice"] = np.where(chosen, CHOSEN, "")
    table["conf_fdskl"] = np.where(chosen, table["conf_fdskl"], "")
    return table


def _row(candidate: Candidate, found: list[Found]) -> dict[str, Any]:
    dataset, name, words = candidate
    runs = [one.run for one in found]
    lengths, errors = _errors(runs, name in LENGTH)
    lowest = int(np.argmin(errors))
    shortest = int(np.argmax(errors <= errors[lowest] + ENOUGH))
    length = LENGTH.get(name)
    return {
        "dataset": dataset,
        "system": name,
        "candidate": words,
        "training_samples": samples(runs[0]),
        "folds": len(runs),
        "error_percent": 100 * errors[lowest],
        "fold_sd_points": 100
        * float(pd.Series([_errors([run], name in LENGTH)[1][lowest] for run in runs]).std(ddof=1)),
        "length_is": length or "",
        "length_of_lowest": lengths[lowest],
        "shortest_as_good": lengths[shortest],
        "conf_fdskl": _compared(found[0], {length: lengths[shortest]} if length else {}),
    }


def _errors(runs: list[FinishedRun], stops: bool) -> tuple[list[int], "np.ndarray[Any, np.dtype[np.float64]]"]:
    """Lengths, and the mean errors up to `WINDOW` lengths back; only the end for a method that cannot stop earlier."""
    rounds = pd.concat([run.rounds for run in runs]).groupby("round")[["iterations", "test_error"]].mean()
    if not stops:
        rounds = rounds.iloc[-1:]
    errors = rounds["test_error"].rolling(min(WINDOW, len(rounds))).mean()
    full = errors.notna()
    return rounds["iterations"][full].astype(int).tolist(), errors[full].to_numpy()


def _compared(one: Found, length: dict[str, int]) -> str:
    """Whether a candidate is the recorded one, or which of its keys differ."""
    name, tried = system(one), hyper_parameters(one.run.config)
    written = recorded(FOLDERS[name], one.run.dataset)
    keys = [key for key, value in written.items() if key in SEARCHED[name] and tried.get(key) != value]
    keys += [key for key, value in length.items() if written.get(key) != value]
    return f"not as recorded: {', '.join(keys)}" if keys else RECORDED
