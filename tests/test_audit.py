"""The audit: whatever can be chosen has a scenario whose numbers are known, and a data set is in a test.

A new YAML in `conf/algo`, `conf/dataset` or `conf/topology` fails here until audit.yaml names it. Numbers that change
are either a mistake, or a change of the method that belongs into a new version: then write down the new ones.
"""

import re
from pathlib import Path

import pytest
import yaml
from conftest import LOCAL_BATCHES, words_of
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from fkl import conf_folder
from fkl.basics.random_streams import Role, shared_generator
from fkl.config.loading import make_object
from fkl.conformance import quick_run
from fkl.engines.rounds import simulate_run
from fkl.runs.prepare import prepare_run
from fkl.runs.tables import make_records

KNOWN = yaml.safe_load(Path(__file__).with_name("audit.yaml").read_text())
ALGORITHMS: dict[str, dict[str, float]] = KNOWN["algorithms"]
SWITCHES = {"fd_svrg": ("algo.eta=0.01",)}
"""With its usual 0.1 its descent is chaotic here: the last digits, which differ by processor, decide its errors."""

AGENTS = 12
TOPOLOGIES: dict[str, list[float]] = KNOWN["topologies"]


def choices(group: str) -> list[str]:
    """Names of everything that can be chosen."""
    return sorted(path.stem for path in (conf_folder() / group).glob("*.yaml"))


def test_everything_that_can_be_chosen_has_a_scenario() -> None:
    """And nothing in a table is gone. A user's list of edges is whatever it says; a data set is in a test's file."""
    assert sorted(set(ALGORITHMS) - {*LOCAL_BATCHES}) == choices("algo")
    assert sorted([*TOPOLOGIES, "edge_list"]) == choices("topology")
    of_data = "".join(file.read_text() for file in (Path(__file__).parent / "data").glob("*.*"))
    assert [name for name in choices("dataset") if not re.search(rf"\b{name}\b", of_data)] == []


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_an_algorithm_s_numbers_are_what_they_were(algo: str) -> None:
    known = ALGORITHMS[algo]
    run = quick_run(*words_of(algo), "precision=float64", *SWITCHES.get(algo, ()))
    experiment = prepare_run(run)
    chunks = simulate_run(experiment, None, None, lambda _: None)
    found = make_records(experiment, chunks, Path(run.paths.cache).expanduser()).summary.mean()
    assert found[list(known)].to_dict() == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_graph_is_what_it_was(topology: str) -> None:
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        node = OmegaConf.to_container(compose("config", [f"topology={topology}"]).topology)
    graph = make_object(node, "topology").build(AGENTS, shared_generator(0, Role.TOPOLOGY))  # type: ignore[arg-type]
    assert (graph.edges, graph.spectral_gap) == pytest.approx(TOPOLOGIES[topology], rel=1e-5)
