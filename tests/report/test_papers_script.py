"""Tables of papers whose printed numbers were not at hand: every run beside what a script printed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up import finished, name_of

from fkl.papers import declared_paper, fed_poe, paper_module
from fkl.papers.jobs import experiment_jobs
from fkl.runs.finished_runs import FinishedRun

EXPERIMENTS = {"fed_poe": ("fed_poe/air", "1"), "fomd_oms": ("fomd_oms/kernels", "4")}


def runs(name: str) -> list[FinishedRun]:
    """A run of every job, of two replicates and three clients, with errors of its own."""
    errors = [
        0.001 * (number + np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])) for number in range(len(experiment_jobs(name)))
    ]
    return [
        finished(job.config, *name_of(job)[:2], summary={"mse": one.mean(axis=1)}, clients={"mse": one})
        for job, one in zip(experiment_jobs(name), errors, strict=True)
    ]


@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_every_run_has_its_row_and_every_number_of_a_script_one_of_ours(paper: str) -> None:
    name, number = EXPERIMENTS[paper]
    module, made = paper_module(paper), runs(name)
    assert {*declared_paper(paper)["tables"]} == {number}
    table = module.table(number, made)
    printed = pd.read_csv(Path(str(module.__file__)).with_name("script.csv"), keep_default_na=False)
    assert len(table) == len(made) * printed["metric"].nunique() and (table["n"] == 2).all()
    assert table["script"].notna().sum() == len(printed)
    assert not table.duplicated(["dataset", "algorithm", "setting", "metric"]).any()


def test_errors_and_how_much_clients_differ_are_those_of_the_tables() -> None:
    """The first job has 1.5 +- 0.7 x 1e-3 more than its number, and clients 1 x 1e-3 apart."""
    table = fed_poe.table("1", runs("fed_poe/air")[:1]).set_index("metric")
    found = [table.loc["mse", "ours"], table.loc["mse", "ours_sd"], table.loc["client_sd", "ours"]]
    assert found == pytest.approx([2.5, np.sqrt(0.5), np.sqrt(2 / 3)])
