"""Runs of classes of a user's own that have the data sets and labels of a paper: they belong to none of its tables."""

from contextlib import suppress
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from fkl.basics.errors import FklError
from fkl.config.settings import NODES
from fkl.papers import PAPERS, declared, paper_module
from fkl.papers.fdskl.chosen import DATASETS, SYSTEMS
from fkl.runs.finished_runs import FinishedRun

OTHERS = {
    "fdskl": (DATASETS, SYSTEMS),
    "fomd_oms": (("toms_hardware", "twitter"), ("FOMD-OMS", "POF-MKL")),
    "fed_poe": (("air", "wec"), ("Fed-POE", "POF-MKL")),
}
"""Data sets and systems of papers whose tables are not of published cells alone."""
ROUNDS = {"naval": 500, "airfoil": 1503, "concrete": 1030, "energy": 500}
CLIENTS = {"pof_mkl": {"naval": 23, "uji": 42, "air": 240, "wec": 560}, "graph_omkl": dict.fromkeys(ROUNDS, 1)}


def strangers(paper: str) -> list[FinishedRun]:
    """A run of each data set and label, none of whose nodes has a key but `_target_`."""
    datasets, labels = OTHERS.get(paper, ((), ()))
    file = Path(str(paper_module(paper).__file__)).with_name("published.csv")
    if file.exists():
        cells = pd.read_csv(file, keep_default_na=False)
        datasets, labels = {*datasets, *cells["dataset"], "ellipses"}, {*labels, *cells["algorithm"], "PF", "PC"}
    found = []
    for dataset, label in product(sorted(datasets), sorted(labels)):
        nodes = {name: {"_target_": "mine.Own"} for name in NODES} | {"partition": {"_target_": "fkl.data.Iid"}}
        config = {**nodes, "seed": 0, "replicates": 1, "precision": "float32", "scaling": "none", "topology": None}
        told = {"dataset": dataset, "algorithm": label, "features": 1, "rows_left_out": 0}
        told |= {"rounds": ROUNDS.get(dataset, 1), "clients": CLIENTS.get(paper, {}).get(dataset, 10)}
        run = FinishedRun(Path("nowhere"), config, told)
        run.__dict__["summary"] = pd.DataFrame({"replicate": [0], "mse": [0.5], "test_mse": [0.5]})
        found.append(run)
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_runs_of_classes_of_one_s_own_belong_to_no_paper(paper: str) -> None:
    """As if nothing had been run, instead of an error about a key that they never had."""
    module, runs = paper_module(paper), strangers(paper)
    assert len(runs) > 3
    for make in ("table", "figure"):
        for number in declared(paper)[f"{make}s"]:
            with suppress(FklError):
                getattr(module, make)(number, runs)
                assert (paper, number) == ("parsimonious", "1"), "which is drawn of no run"
