"""Finished runs by data set, system and number of samples."""

from collections.abc import Iterable

from fkl.config.experiments import paper_experiments
from fkl.papers.our_runs import PaperRun, find_paper_runs
from fkl.runs.finished_runs import FinishedRun

DATASETS = ("phishing", "a9a", "ijcnn1", "cod_rna", "w8a", "default_credit", "give_me_credit")
AS_STATED = ", as stated"
"""Suffix of a system that runs as the paper's text says, if without it the name means a variant."""
SYSTEMS = (
    "FDSKL",
    "DSG",
    "LIBSVM",
    "PP-SVMV",
    "FD-SVRG",
    "SecureBoost",
    f"FDSKL{AS_STATED}",
    "FDSKL, bank",
    "Nystroem",
    "RFF ridge",
)
"""The paper's six systems, FDSKL as the text says, and three systems of ours."""
SHARE = 0.25
"""Share of test rows in full runs; other runs have a larger share, and so fewer training rows."""

Key = tuple[str, str, float]
"""Data set, system, share of test rows."""


def answering_runs(runs: Iterable[FinishedRun]) -> dict[Key, PaperRun]:
    """One run for each data set, system and share: the one with the most replicates, or the newest of several."""
    best: dict[Key, PaperRun] = {}
    for our_run in find_paper_runs("fdskl", runs, *paper_experiments("fdskl")):
        key = our_run.run.dataset, system_name(our_run), test_share(our_run)
        if key not in best or our_run.run.replicates >= best[key].run.replicates:
            best[key] = our_run
    return best


def system_name(one: PaperRun) -> str:
    """Name of a run's system, one of `SYSTEMS`."""
    return str(one.job.cell.get("system", one.run.algorithm))


def test_share(one: PaperRun) -> float:
    """Share of test rows in each replicate."""
    return float(one.run.config["partition"]["test_share"])


def training_samples(run: FinishedRun) -> int:
    """Number of training samples in a replicate."""
    return int(run.summary["training_samples"].iloc[0])
