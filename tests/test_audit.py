"""The audit: whatever can be chosen has a scenario whose numbers are known, and a data set is in a test.

A new YAML in `conf/algo`, `conf/dataset` or `conf/topology` fails here until a table names it. Numbers that change are
either a mistake, or a change of the method that belongs into a new version: then write down the new ones.
"""

import re
from pathlib import Path

import pytest
from conftest import LOCAL_BATCHES, words_of
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from fkl import conf_folder
from fkl.basics.random_streams import Role, shared_generator
from fkl.config.loading import instantiate
from fkl.conformance import scenario
from fkl.engines.rounds import simulate
from fkl.runs.prepare import prepare
from fkl.runs.tables import make_records

ALGORITHMS: dict[str, dict[str, float]] = {
    "ada_raker": {"mse": 0.06478788, "regret_hindsight": 5.8243843},
    "cascade_svm": {"test_error": 0.1792, "support_vectors": 49.8, "sent_samples": 68.4},
    "coke": {"test_mse": 0.028480369, "distance": 0.46474585, "transmissions": 74},
    "consensus_rf_gp": {"mse": 0.038647211, "log_score": 0.22125295, "broadcast_scalars": 1240640},
    "cta": {"test_mse": 0.03107083, "distance": 1.4081144, "transmissions": 400},
    "d_rf_gp": {"mse": 0.043903525, "log_score": -0.16142714, "broadcast_scalars": 1248800},
    "dekrr_ddrf": {"train_mse": 0.039683132, "test_mse": 0.035335013, "link_scalars": 7776},
    "dkla": {"test_mse": 0.028436395, "distance": 0.095063928, "transmissions": 400},
    "link_dkla": {"test_mse": 0.028436395, "distance": 0.095063928, "transmissions": 800},
    "domkl": {"mse": 0.082787367, "regret_best_kernel": 0.80465415, "broadcast_scalars": 138720},
    "dsg": {"test_error": 0.36363636, "link_scalars": 0},
    "em_kofl": {"mse": 0.10406909, "regret_hindsight": 3.596003, "uplink_scalars": 10720},
    "fd_svrg": {"test_error": 0.33636364, "link_scalars": 5440},
    "fdskl": {"test_error": 0.36363636, "link_scalars": 6596},
    "fed3r": {"train_error": 0.24523810, "test_error": 0.34444444, "test_loss": 0.62840851, "uplink_scalars": 1184},
    "fed_poe": {"mse": 0.078079532, "regret_hindsight": 2.5576236, "uplink_scalars": 130560},
    "fedavg": {"mse": 0.075895843, "regret_hindsight": 2.4744343, "uplink_scalars": 130560},
    "fedavg_batches": {"test_mse": 0.029045643, "distance": 1.0423773, "uplink_scalars": 6400},
    "fedavgm": {"mse": 0.10325839, "regret_hindsight": 3.6679378, "uplink_scalars": 130560},
    "fedavgm_batches": {"test_mse": 0.028365159, "distance": 0.079367172, "uplink_scalars": 6400},
    "fedadagrad": {"mse": 0.072178685, "regret_hindsight": 2.3312067, "uplink_scalars": 130560},
    "fedadagrad_batches": {"test_mse": 0.028368652, "distance": 0.85889264, "uplink_scalars": 6400},
    "fedadam": {"mse": 0.074915495, "regret_hindsight": 2.4836841, "uplink_scalars": 130560},
    "fedadam_batches": {"test_mse": 0.028212952, "distance": 0.22679342, "uplink_scalars": 6400},
    "fedyogi": {"mse": 0.074726962, "regret_hindsight": 2.4751032, "uplink_scalars": 130560},
    "fedyogi_batches": {"test_mse": 0.028229354, "distance": 0.27607419, "uplink_scalars": 6400},
    "fedprox": {"mse": 0.076032702, "regret_hindsight": 2.4796461, "uplink_scalars": 130560},
    "fedprox_batches": {"test_mse": 0.029136843, "distance": 1.0872201, "uplink_scalars": 6400},
    "scaffold": {"mse": 0.075747755, "regret_hindsight": 2.4685812, "uplink_scalars": 261120},
    "scaffold_batches": {"test_mse": 0.028951952, "distance": 1.0387298, "uplink_scalars": 12800},
    "q_fedavg": {"mse": 0.081633501, "regret_hindsight": 2.6984317, "uplink_scalars": 138720},
    "q_fedavg_batches": {"test_mse": 0.029071416, "distance": 1.0881739, "uplink_scalars": 6800},
    "ditto": {"mse": 0.082381996, "regret_hindsight": 2.7349889, "uplink_scalars": 130560},
    "ditto_batches": {"test_mse": 0.029372307, "distance": 1.0454034, "uplink_scalars": 6400},
    "pfedme": {"mse": 0.088010128, "regret_hindsight": 2.9569821, "uplink_scalars": 130560},
    "pfedme_batches": {"test_mse": 0.029706179, "distance": 1.0949613, "uplink_scalars": 6400},
    "fomd_oms": {"mse": 0.19987503, "regret_hindsight": 7.422226, "uplink_scalars": 5440},
    "libsvm": {"test_error": 0.22727273, "link_scalars": 0},
    "odkla": {"mse": 0.065146838, "regret_hindsight": 1.535527, "transmissions": 160},
    "ofmkl_avg": {"mse": 0.083587477, "regret_hindsight": 2.7764189, "uplink_scalars": 130560},
    "ofskl": {"mse": 0.064802651, "regret_hindsight": 0.78114144, "uplink_scalars": 2560},
    "omkl_gf": {"mse": 0.092499121, "regret_hindsight": 8.5523379},
    "omkl_sfg": {"mse": 0.17230595, "regret_hindsight": 16.522296},
    "omkl_sfg_r": {"mse": 0.17161923, "regret_hindsight": 16.453846},
    "omkr": {"mse": 0.088092744},
    "nco_oms": {"mse": 0.20193452, "regret_hindsight": 7.5046038, "uplink_scalars": 0},
    "dkrr_ny_cm": {"test_mse": 0.02494239, "train_mse": 0.027802482, "uplink_scalars": 32240},
    "falkon": {"test_mse": 0.02494239, "train_mse": 0.027802482, "uplink_scalars": 16400},
    "one_shot_ridge": {"test_mse": 0.028302495, "train_mse": 0.029580411, "uplink_scalars": 608},
    "parsimonious_centralized": {"dual_value": 10382.995, "sent_samples": 90, "test_error": 0.1122},
    "parsimonious_federated": {"dual_value": 9388.9522, "sent_samples": 51.2, "test_error": 0.1114},
    "perfedavg": {"mse": 0.074959615, "regret_hindsight": 2.4256041, "uplink_scalars": 105760},
    "pof_mkl": {"mse": 0.10880202, "regret_hindsight": 3.855338, "uplink_scalars": 2560},
    "poly_2": {"mse": 0.20858302},
    "pooled_ada_raker": {"mse": 0.054966232, "regret_hindsight": 1.8409571, "uplink_scalars": 1760},
    "pooled_omkl_gf": {"mse": 0.084135927, "regret_hindsight": 2.9893499, "uplink_scalars": 1760},
    "pooled_svm": {"test_error": 0.1788, "support_vectors": 54.8, "sent_samples": 90},
    "pooled_raker": {"mse": 0.078783318, "regret_hindsight": 2.7725178, "uplink_scalars": 1760},
    "pp_svmv": {"test_error": 0.22727273, "link_scalars": 4692},
    "push_cta": {"test_mse": 0.038862562, "distance": 1.9291235, "transmissions": 400},
    "qc_odkla": {"mse": 0.065257565, "transmissions": 67.4, "broadcast_bytes": 1617.6},
    "raker": {"mse": 0.084013288, "regret_hindsight": 7.696318},
    "rbf_1": {"mse": 0.088912329},
    "rf_gp": {"mse": 0.038709777, "coverage_95": 0.97125, "log_score": 0.20243108, "uplink_scalars": 1240640},
    "rfomkr": {"mse": 0.069422117},
    "secureboost": {"test_error": 0.11818182, "link_scalars": 17333.8},
    "vertical_nystroem": {"test_error": 0.20909091, "link_scalars": 9316},
    "vertical_ridge": {"test_error": 0.18181818, "link_scalars": 68000},
    "vm_kofl": {"mse": 0.076558365, "regret_hindsight": 2.4955329, "uplink_scalars": 138720},
}
"""Means over 5 replicates of columns of the summary, in the small scenario of `fkl.conformance` and in doubles."""

SWITCHES = {"fd_svrg": ("algo.eta=0.01",)}
"""With its usual 0.1 its descent is chaotic here: the last digits, which differ by processor, decide its errors."""

AGENTS = 12
TOPOLOGIES: dict[str, tuple[int, float]] = {
    "complete": (66, 1),
    "directed": (35, 0.47139107),
    "erdos_renyi": (37, 0.27810633),
    "gnm": (28, 0.21118461),
    "grid": (17, 0.13641733),
    "path": (11, 0.022716116),
    "ring": (12, 0.089316397),
    "star": (11, 0.083333333),
    "tree": (11, 0.03367868),
    "watts_strogatz": (60, 0.8030303),
}
"""Edges and spectral gap of each graph of 12 agents that seed 0 gives."""


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
    run = scenario(*words_of(algo), "precision=float64", *SWITCHES.get(algo, ()))
    experiment = prepare(run)
    chunks = simulate(experiment, None, None, lambda _: None)
    found = make_records(experiment, chunks, Path(run.paths.cache).expanduser()).summary.mean()
    assert found[list(known)].to_dict() == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_graph_is_what_it_was(topology: str) -> None:
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        node = OmegaConf.to_container(compose("config", [f"topology={topology}"]).topology)
    graph = instantiate(node, "topology").build(AGENTS, shared_generator(0, Role.TOPOLOGY))  # type: ignore[arg-type]
    assert (graph.edges, graph.spectral_gap) == pytest.approx(TOPOLOGIES[topology], rel=1e-5)
