"""Which finished runs answer the paper: those with the hyper-parameters that conf/fdskl records."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from fkl.composing import experiments
from fkl.papers.beside import following, newest
from fkl.results.collect import FinishedRun

DATASETS = ("phishing", "a9a", "ijcnn1", "cod_rna", "w8a", "default_credit", "give_me_credit")
BANK = "FDSKL, bank"
"""FDSKL whose features are used again."""
FOLDERS = {
    "FDSKL": "kernel",
    "DSG": "kernel",
    "LIBSVM": "svm",
    "PP-SVMV": "svm",
    "FD-SVRG": "linear",
    "SecureBoost": "trees",
    BANK: "bank",
    "Nystroem": "nystroem",
    "RFF ridge": "ridge",
}
"""The paper's six systems and three of ours, and where under conf/fdskl their hyper-parameters stand."""
SHARE = 0.25
"""Of the rows, tested on; a larger share leaves fewer to learn from."""

Key = tuple[str, str, float]
"""Data set, system, share of the rows that is tested on."""


def answering(runs: Iterable[FinishedRun]) -> dict[Key, FinishedRun]:
    """One run for each data set, system and share; of those alike the one with the most replicates, then the newest."""
    chosen = newest(following(runs, _follows), lambda run: (run.dataset, system(run), ""), _share_words)
    return {(*names[:2], float(share)): run for (names, share), run in chosen.items()}


def is_vertical(run: FinishedRun) -> bool:
    """Whether a run is of one of the systems, on features from 0 to 1 of one of the data sets."""
    return run.algorithm in FOLDERS and run.dataset in DATASETS and run.config["scaling"] == "unit_box"


def system(run: FinishedRun) -> str:
    """One of `FOLDERS`."""
    return BANK if run.algorithm == "FDSKL" and run.config["algo"].get("bank") else run.algorithm


@cache
def recorded(folder: str, dataset: str) -> dict[str, Any]:
    """Hyper-parameters of a kind of system on a data set, by their key under algo; none where it was not searched."""
    node = experiments.choice(f"fdskl/{folder}/{dataset}") or {}
    return dict(node.get("algo", {}))


def differing(run: FinishedRun) -> list[str]:
    """Keys of algo that are not as recorded."""
    algo = run.config["algo"]
    return [key for key, value in recorded(FOLDERS[system(run)], run.dataset).items() if algo.get(key) != value]


def share(run: FinishedRun) -> float:
    """Share of the rows that each replicate tests on."""
    return float(run.config["partition"]["test_share"])


def samples(run: FinishedRun) -> int:
    """Training samples of a replicate."""
    return int(run.summary["training_samples"].iloc[0])


def _follows(run: FinishedRun) -> bool:
    known = is_vertical(run) and recorded(FOLDERS[system(run)], run.dataset)
    return bool(known) and run.config["algo"]["fold"] is None and not differing(run)


def _share_words(run: FinishedRun) -> str:
    return str(share(run))
