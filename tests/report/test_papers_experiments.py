"""The papers' experiments.yaml: what they compose is what `fkl run` composes, and every published cell has a job."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import get_class

from fkl.config import experiments
from fkl.config.compose import compose
from fkl.config.digest import decisive, identity
from fkl.config.loading import instantiate, resolved
from fkl.papers import PAPERS
from fkl.papers import our_runs as found
from fkl.papers.cells import AS_STATED, published
from fkl.papers.jobs import Job, count, jobs
from fkl.papers.our_runs import find
from fkl.runs.finished_runs import FinishedRun

EXPERIMENTS = [name for paper in PAPERS for name, node in experiments.experiments(paper).items() if "sweep" in node]
UNOBTAINABLE = {"wec", "twitter_large", "houses"}


def as_run(config: dict[str, Any], **changes: Any) -> FinishedRun:
    """A run that was made with a configuration."""
    told = {"dataset": "any", "algorithm": "any"}
    return FinishedRun(Path("nowhere"), {**config, **changes}, told)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_job_has_the_configuration_that_a_run_has(name: str) -> None:
    """The last job of each, as that is furthest from the defaults; and there are as many as are counted."""
    all_of_them = jobs(name)
    assert len(all_of_them) == count(name) > 0
    job = all_of_them[-1]
    assert decisive(job.config) == decisive(resolved(compose(*job.words)))


def test_jobs_leave_each_other_alone() -> None:
    """What one choice says of its cell is not what the next one has."""
    told = [tuple(job.cell.get("untold", ())) for job in jobs("graph_omkl/exact")]
    assert told == [(), ("kernels.bandwidth_convention",), ("kernels.bandwidth_convention",)] * 4


@pytest.mark.parametrize("paper", PAPERS)
def test_variants_are_named(paper: str) -> None:
    """A reading that no list explains would be a slip of the pen."""
    known = {"", AS_STATED, *experiments.variants(paper)}
    choices = [node for options in experiments.of_paper(paper)["options"].values() for node in options.values()]
    cells = [node.get("cell", {}) for node in (*choices, *experiments.experiments(paper).values())]
    assert {cell.get("variant", "") for cell in cells} <= known


@pytest.mark.parametrize("paper", ["dekrr", "graph_omkl", "pof_mkl"])
def test_every_published_cell_has_a_job(paper: str) -> None:
    """As stated, and by data set, method and setting."""
    stated = [job for name in EXPERIMENTS if name.startswith(paper) for job in jobs(name)]
    known = {_key(job) for job in stated if job.cell.get("variant") == AS_STATED}
    assert {cell.key[:3] for cell in published(paper) if cell.dataset not in UNOBTAINABLE} == known


@pytest.mark.parametrize("paper", PAPERS)
def test_the_data_sets_of_a_papers_experiments_are_declared(paper: str) -> None:
    """A run on other data is none of the paper's, which is then not looked up."""
    nodes = [job.config["dataset"] for name in experiments.experiments(paper) for job in jobs(name)]
    each = {str(node): node for node in nodes}
    assert {instantiate(node, "dataset").name for node in each.values()} == {*experiments.datasets(paper)}


def _key(job: Job) -> tuple[str, str, str]:
    dataset = {key: value for key, value in job.config["dataset"].items()}
    label = get_class(job.config["algo"]["_target_"]).label
    return instantiate(dataset, "dataset").name, label, str(job.cell.get("setting", ""))


def test_a_run_is_found_whatever_decides_no_number_of_it() -> None:
    """Folders, threads and replicates; not its seed."""
    [name, *_] = ["graph_omkl/features"]
    config = jobs(name)[0].config
    for changes in ({}, {"threads": 3}, {"paths": {"outputs": "elsewhere"}}, {"replicates": 2}, {"out": "here"}):
        [one] = find("graph_omkl", [as_run(config, **changes)])
        assert (one.experiment, one.variant, one.replicates) == (name, AS_STATED, 20)
    assert find("graph_omkl", [as_run(config, seed=1)]) == []
    assert find("coke", [as_run(config)]) == []


def test_the_most_replicates_count_and_then_the_newest() -> None:
    config = jobs("graph_omkl/features")[0].config
    few, many, newest = (as_run(config, replicates=number) for number in (2, 5, 5))
    [one] = find("graph_omkl", [many, newest, few])
    assert one.run is newest


def test_a_number_is_the_same_with_and_without_a_point() -> None:
    assert identity({"algo": {"gamma": 0}}) == identity({"algo": {"gamma": 0.0}})
    assert identity({"algo": {"gamma": 0}}) != identity({"algo": {"gamma": False}})
    assert identity({"algo": {"gamma": 0}}) != identity({"algo": {"gamma": None}})
    assert identity({"algo": {"gamma": 1}}, ["algo.gamma"]) == identity({"algo": {}})
    assert identity({"seed": 0}) == identity({}), "its default"


def test_a_run_of_a_class_that_is_not_there_is_no_paper_s() -> None:
    """Neither are those of a user's own, which are not imported."""
    config = jobs("graph_omkl/features")[0].config
    for target in ("fkl.algorithms.online.gone.Gone", "fkl.algorithms.online.learners.Gone", "os.path.join", None):
        algo = {**config["algo"], "_target_": target}
        assert find("graph_omkl", [as_run(config, algo=algo)]) == []
    assert find("graph_omkl", [as_run(config, algo={})]) == []


def test_keys_that_a_method_has_no_use_for_do_not_matter() -> None:
    """OMKR draws no features."""
    config = next(job.config for job in jobs("graph_omkl/exact") if job.config["algo"]["_target_"].endswith("Omkr"))
    assert "kernels.D" in found._idle_keys(config["algo"]["_target_"])
    assert len(find("graph_omkl", [as_run(config, kernels={**config["kernels"], "D": 7})])) == 1
    assert find("graph_omkl", [as_run(config, kernels={**config["kernels"], "N": 7})]) == []


def test_a_folder_of_one_s_own_can_use_a_paper_s_choices(fkl: Callable, tmp_path: Path) -> None:
    """In its defaults, and with a choice of its own in a paper's group."""
    (tmp_path / "my_conf" / "dekrr" / "data").mkdir(parents=True)
    own = "# @package _global_\ndefaults:\n  - /graph_omkl/data: concrete\n  - override /algo: raker\n"
    (tmp_path / "my_conf" / "dekrr" / "data" / "mine.yaml").write_text(own)
    answer = fkl("run", "--cfg", "job", "--config-dir", "my_conf", "+dekrr/data=mine")
    assert answer.code == 0
    assert "decimals: 2" in answer.out and "learners.Raker" in answer.out
    assert "cell" not in answer.out
    answer = fkl("run", "--config-dir", "my_conf", "+dekrr/data=mien")
    assert answer.code == 2 and "did you mean mine?" in answer.err


@pytest.mark.parametrize("word", ["+graph_omkl/data=nope", "+experiment=graph_omkl/nope", "+as_published=nope"])
def test_a_choice_that_there_is_not_is_one_line(fkl: Callable, word: str) -> None:
    answer = fkl("run", word)
    assert answer.code == 2
    assert "no such choice" in answer.err.splitlines()[0]
