"""D-RF-GP against its authors' code, their code of DOMKL, and D-RF-GP's limiting cases."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from literal.common import Array, frequencies, normalised
from literal.worlds import Size, assert_close, make_dictionary, make_problem
from literal.worlds import run as run_star

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.odkla import Domkl
from fkl.algorithms.decentralized.rf_gp import ConsensusRfGp, DRfGp
from fkl.algorithms.federated.rf_gp import RfGp
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.network.topology import connected

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "decentralized_online_gps.json").read_text())
SIZE, GRAPH = Size(R=1, K=5, N=3, D=4, T=10), nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (1, 3)])


def play(method: Any, graph: nx.Graph = GRAPH, size: Size = SIZE) -> tuple[dict[str, Array], Any, World]:
    """One replicate: y_hat (T, K), variance (T, K), losses (T, K, N), and the agents' last state."""
    given = make_problem(size, 0), make_dictionary(size), Network(), method, 0, 1, "float64", connected(graph)
    world, _ = make_world(Experiment(*given), (0,))
    state, told = method.init(world), {"y_hat": [], "variance": [], "loss": []}  # type: Any, dict[str, list[Any]]
    for t in range(size.T):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = method.step(world, state, t)
        for name, rows in told.items():
            value = getattr(outcome, name)
            rows.append(None if value is None else np.array(value[0]))
    return {name: np.array(rows) for name, rows in told.items()}, state.own, world


def test_it_predicts_what_its_authors_code_predicts() -> None:
    """Kernels, weights and variances, on a graph with unequal degrees."""
    found, _, world = play(DRfGp(noise=0.03, lam=0.0))
    omega = frequencies(world.bank.rho[0], world.bank.scale)
    assert_close(np.array([each.T for each in omega]), np.array(ORACLE["omega"]), 1e-12, "omega: run tests/oracles")
    mean, variance, log_w, y_hat = (
        np.array(ORACLE["d_rf_gp"][name]) for name in ("mean", "variance", "log_w", "y_hat")
    )
    assert_close(found["y_hat"], y_hat, 1e-10, "y_hat")
    assert_close(found["loss"], (mean - world.problem.y[..., None]) ** 2, 1e-10, "loss")
    w = np.apply_along_axis(normalised, -1, log_w)
    of_mixture = (w * (variance + (mean - y_hat[..., None]) ** 2)).sum(axis=-1)
    assert_close(found["variance"], of_mixture, 1e-10, "variance")


def test_domkl_predicts_what_their_domkl_predicts() -> None:
    """Their rho is twice ours, and their step sizes are the inverse of ours."""
    found, _, _ = play(Domkl(eta=1 / 1.5, rho=0.1, lam=0.0, eta_k=1 / 2.0, weights="added"))
    assert_close(found["y_hat"], np.array(ORACLE["domkl"]["y_hat"]), 1e-10, "y_hat")


@pytest.mark.parametrize("keys", [{}, {"flush": 3}, {"forget": 0.9}, {"noise": None}], ids=repr)
def test_on_a_complete_graph_every_agent_has_the_server_s_kernels(keys: dict[str, Any]) -> None:
    """So have agents of Consensus RF-GP; in the last round, which has an exchange."""
    size, keys = Size(R=1, K=5, T=12), {"noise": 0.01, **keys}
    star = run_star(RfGp(**keys), make_problem(size, 0), make_dictionary(size), replicates=(0,))
    for method in (DRfGp(**keys), ConsensusRfGp(**keys)):
        _, own, world = play(method, nx.complete_graph(5), size)
        z = world.bank.features(world.problem.x[0]).swapaxes(1, 2)  # (R, K, N, P)
        servers = (star.state.server.theta[:, None] * z).sum(axis=-1)
        assert_close((own.theta * z).sum(axis=-1), servers, 1e-12, f"{method.label}: kernel means")


def test_one_agent_with_one_kernel_is_one_client() -> None:
    size = Size(R=1, K=1, N=1, T=20)
    found, _, _ = play(DRfGp(), nx.empty_graph(1), size)
    star = run_star(RfGp(noise=0.01), make_problem(size, 0), make_dictionary(size), replicates=(0,))
    assert_close(found["y_hat"], star.y_hat[0], 1e-12, "y_hat")
