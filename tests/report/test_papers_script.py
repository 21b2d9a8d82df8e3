"""Tables of papers whose printed numbers were not at hand: every run beside what a script printed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fkl.basics.errors import FklError
from fkl.papers import declared, fed_poe, fomd_oms, paper_module
from fkl.papers.jobs import jobs
from fkl.runs.finished_runs import FinishedRun

EXPERIMENTS = {"fed_poe": ("fed_poe/air", "1"), "fomd_oms": ("fomd_oms/kernels", "4")}


def finished(name: str) -> list[FinishedRun]:
    """A run of every job, of two replicates and three clients, with errors of its own."""
    found = []
    for number, job in enumerate(jobs(name)):
        label = job.config["algo"]["_target_"].rpartition(".")[2]
        told = {
            "dataset": job.config["dataset"]["table"]["name"],
            "algorithm": {"FomdOms": "FOMD-OMS", "EmKofl": "eM-KOFL", "FedPoe": "Fed-POE", "PofMkl": "POF-MKL"}.get(
                label, label
            ),
        }
        run = FinishedRun(Path("nowhere"), {**job.config, "replicates": 2}, told)
        errors = 0.001 * (number + np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]))
        run.__dict__["summary"] = pd.DataFrame({"replicate": [0, 1], "mse": errors.mean(axis=1)})
        index = pd.MultiIndex.from_product([[0, 1], [0, 1, 2]], names=["replicate", "client"])
        run.__dict__["clients"] = pd.DataFrame({"mse": errors.ravel()}, index).reset_index()
        found.append(run)
    return found


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_every_run_has_its_row_and_every_number_of_a_script_one_of_ours(paper: str) -> None:
    name, number = EXPERIMENTS[paper]
    module, runs = paper_module(paper), finished(name)
    assert {*declared(paper)["tables"]} == {number}
    table = module.table(number, runs)
    printed = pd.read_csv(Path(str(module.__file__)).with_name("script.csv"), keep_default_na=False)
    assert len(table) == len(runs) * printed["metric"].nunique()
    assert table["script"].notna().sum() == len(printed)
    assert (table["n"] == 2).all()
    assert not table.duplicated(["dataset", "algorithm", "setting", "metric"]).any()


def test_errors_and_how_much_clients_differ_are_those_of_the_tables() -> None:
    """The first job has 1.5 +- 0.7 x 1e-3 more than its number, and clients 1 x 1e-3 apart."""
    table = fed_poe.table("1", finished("fed_poe/air")[:1]).set_index("metric")
    assert table.loc["mse", "ours"] == pytest.approx(2.5)
    assert table.loc["mse", "ours_sd"] == pytest.approx(np.sqrt(0.5))
    assert table.loc["client_sd", "ours"] == pytest.approx(np.sqrt(2 / 3))


def test_without_a_run_the_experiment_is_named() -> None:
    for module, name in ((fed_poe, "fed_poe/air"), (fomd_oms, "fomd_oms/kernels")):
        with pytest.raises(FklError, match=rf"first fkl run -m \+experiment={name}"):
            module.table("1", [])
