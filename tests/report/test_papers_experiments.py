"""The papers' experiments.yaml: what they compose is what `fkl run` composes, and every published cell has a job."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up import name_of

from fkl.config import experiments
from fkl.config.compose import compose_config
from fkl.config.digest import config_identity, decisive_part
from fkl.config.loading import make_object, resolve_config
from fkl.config.settings import NODES
from fkl.papers import PAPERS
from fkl.papers.cells import AS_STATED, published_cells
from fkl.papers.jobs import count_jobs, experiment_jobs
from fkl.papers.our_runs import find_paper_runs
from fkl.runs.finished_runs import FinishedRun

EXPERIMENTS = [
    name for paper in PAPERS for name, node in experiments.paper_experiments(paper).items() if "sweep" in node
]
UNOBTAINABLE = {"wec", "twitter_large", "houses"}


def as_run(config: dict[str, Any], **changes: Any) -> FinishedRun:
    """A run that was made with a configuration."""
    return FinishedRun(Path("nowhere"), {**config, **changes}, {"dataset": "any", "algorithm": "any"})


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_job_has_the_configuration_that_a_run_has(name: str) -> None:
    """The last job of each, as that is furthest from the defaults; and there are as many as are counted."""
    all_of_them = experiment_jobs(name)
    assert len(all_of_them) == count_jobs(name) > 0
    assert decisive_part(all_of_them[-1].config) == decisive_part(
        resolve_config(compose_config(*all_of_them[-1].words))
    )


@pytest.mark.parametrize("paper", PAPERS)
def test_variants_and_data_sets_are_declared_and_every_published_cell_has_a_job(paper: str) -> None:
    """A reading that no list explains would be a slip of the pen; a run on other data is none of the paper's."""
    known = {"", AS_STATED, *experiments.paper_variants(paper)}
    choices = [node for options in experiments.of_paper(paper)["options"].values() for node in options.values()]
    cells = [node.get("cell", {}) for node in (*choices, *experiments.paper_experiments(paper).values())]
    assert {cell.get("variant", "") for cell in cells} <= known
    every = [job for name in experiments.paper_experiments(paper) for job in experiment_jobs(name)]
    nodes = {str(job.config["dataset"]): job.config["dataset"] for job in every}
    assert {make_object(node, "dataset").name for node in nodes.values()} == {*experiments.paper_datasets(paper)}
    own = {name: {"_target_": "mine.Own"} for name in NODES}  # a user's classes have none of the keys
    assert (
        find_paper_runs(paper, [as_run({**own, "seed": 0, "replicates": 1, "precision": "float32", "scaling": "none"})])
        == []
    )
    if paper in ("dekrr", "graph_omkl", "pof_mkl"):
        stated = [job for name in EXPERIMENTS if name.startswith(paper) for job in experiment_jobs(name)]
        told = {name_of(job) for job in stated if job.cell.get("variant") == AS_STATED}
        assert {cell.key[:3] for cell in published_cells(paper) if cell.dataset not in UNOBTAINABLE} == told


def test_a_run_is_found_whatever_decides_no_number_of_it_and_by_nothing_else() -> None:
    """Folders, threads and replicates; the most replicates count, and then the newest."""
    config = experiment_jobs("graph_omkl/features")[0].config
    for changes in ({}, {"threads": 3}, {"paths": {"outputs": "elsewhere"}}, {"replicates": 2}, {"out": "here"}):
        [one] = find_paper_runs("graph_omkl", [as_run(config, **changes)])
        assert (one.experiment, one.variant, one.replicates) == ("graph_omkl/features", AS_STATED, 20)
    few, many, newest = (as_run(config, replicates=number) for number in (2, 5, 5))
    [one] = find_paper_runs("graph_omkl", [many, newest, few])
    assert one.run is newest
    for group, key, value in (
        ("algo", "eta", 0.2), ("kernels", "D", 100), ("kernels", "laplacians", 24), ("partition", "clients", 2),
        ("partition", "rounds", 100), ("dataset", "rows", 99),
    ):  # fmt: skip
        assert find_paper_runs("graph_omkl", [as_run(config, **{group: config[group] | {key: value}})]) == [], key
    for changes in ({"seed": 1}, {"scaling": "none"}, {"precision": "float64"}):
        assert find_paper_runs("graph_omkl", [as_run(config, **changes)]) == []
    for target in ("fkl.algorithms.online.gone.Gone", "os.path.join", None):
        assert find_paper_runs("graph_omkl", [as_run(config, algo={**config["algo"], "_target_": target})]) == []
    same, other = ({"algo": {"gamma": value}} for value in (0.0, False))
    assert config_identity({"algo": {"gamma": 0}}) == config_identity(same) != config_identity(other)
    config = next(
        job.config for job in experiment_jobs("graph_omkl/exact") if job.config["algo"]["_target_"].endswith("Omkr")
    )
    assert len(find_paper_runs("graph_omkl", [as_run(config, kernels={**config["kernels"], "D": 7})])) == 1, (
        "OMKR draws no features"
    )
    assert find_paper_runs("graph_omkl", [as_run(config, algo={})]) == find_paper_runs("coke", [as_run(config)]) == []


def test_a_folder_of_one_s_own_can_use_a_paper_s_choices(fkl: Callable, tmp_path: Path) -> None:
    """In its defaults, and with a choice of its own in a paper's group."""
    (tmp_path / "my_conf" / "dekrr" / "data").mkdir(parents=True)
    own = "# @package _global_\ndefaults:\n  - /graph_omkl/data: concrete\n  - override /algo: raker\n"
    (tmp_path / "my_conf" / "dekrr" / "data" / "mine.yaml").write_text(own)
    answer = fkl("run", "--cfg", "job", "--config-dir", "my_conf", "+dekrr/data=mine")
    assert "decimals: 2" in answer.out and "learners.Raker" in answer.out and "cell" not in answer.out
