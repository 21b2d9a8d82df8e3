"""Links that go one way: CTA's average is biased there, and push-sum's is not."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from literal.worlds import assert_close, make_batch, on_graph, play_experiment
from numpy.typing import NDArray

from fkl.algorithms.decentralized.consensus import Cta, PushCta
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject
from fkl.engines.base import Experiment, make_world
from fkl.network.graphs import Directed
from fkl.network.topology import Failing, Links

K, LAM = 6, 0.5
STILL = 1e-300
"""A step that moves nothing."""
DIGRAPH = Directed(p=0.3).build(K, np.random.default_rng(2))


def experiment(method: Cta, links: Links | None = None, T: int = 30) -> Experiment:
    """Two replicates of agents whose targets differ."""
    return on_graph(method, make_batch(K, iterations=T), DIGRAPH, links=links)


def begun(values: NDArray[np.float64]) -> Any:
    """Agents that begin with these values (K,), which those who hear them know already; of push-sum, nobody does."""

    def start(state: Any) -> Any:
        own = state.own
        theta = np.broadcast_to(values[:, None], own.theta.shape).copy()
        if not hasattr(own, "x"):
            return replace(state, own=replace(own, theta=theta))
        return replace(state, own=replace(own, theta=theta, x=np.concatenate([theta, own.x[..., -1:]], axis=-1)))

    return start


@pytest.mark.parametrize("agents", [1, 10])
def test_a_path_leads_from_everyone_to_everyone(agents: int) -> None:
    for p in (0.0, 0.3, 1.0):
        graph = Directed(p).build(agents, np.random.default_rng(1))
        found = nx.DiGraph()
        found.add_nodes_from(range(agents))
        found.add_edges_from(graph.listed.tolist())
        assert nx.is_strongly_connected(found)
        assert graph.links.tolist() == sorted(graph.links.tolist())
        assert graph.edges == found.number_of_edges() == len(graph.links)
        assert graph.degree.tolist() == [found.in_degree(k) for k in range(agents)]
        assert graph.listeners.tolist() == [found.out_degree(k) for k in range(agents)]
        assert graph.edges >= (0 if agents == 1 else agents)
        assert (p < 1) or graph.edges == agents * (agents - 1)
        assert_close(graph.metropolis.toarray().sum(axis=1), np.ones(agents), 1e-14, "rows")
        assert 0 < graph.spectral_gap <= 1 + 1e-12


def test_without_steps_push_sum_comes_to_the_mean_and_cta_to_another() -> None:
    """Both to what theory has: a mean of all alike, and one by the left eigenvector of the row weights."""
    values = np.eye(K)[1]
    pushed = play_experiment(experiment(PushCta(eta=STILL), T=300), begun(values)).theta
    assert_close(pushed[-1], np.full(pushed[-1].shape, values.mean()), 1e-12, "mean")
    mixed = play_experiment(experiment(Cta(eta=STILL), T=300), begun(values)).theta
    weights = np.linalg.matrix_power(DIGRAPH.metropolis.toarray(), 1000)[0]
    assert_close(mixed[-1], np.full(mixed[-1].shape, weights @ values), 1e-9, "weighted")
    assert abs(weights @ values / values.mean() - 1) > 0.1


def test_nothing_is_lost_in_the_sum_over_agents() -> None:
    """Of weights, and of x where nobody steps; also over links that are down, which senders know."""
    values = np.arange(1.0, K + 1)
    found = play_experiment(experiment(PushCta(eta=STILL), links=Failing(p=0.4), T=200), begun(values))
    assert_close(found.own.x.sum(axis=1)[:, -1], np.full(2, float(K)), 1e-12, "weights")
    assert_close(found.own.x.sum(axis=1)[:, 0], np.full(2, values.sum()), 1e-12, "x")
    assert_close(found.theta[-1], np.full(found.theta[-1].shape, values.mean()), 1e-6, "mean")


def test_one_way_moves_cta_s_fixed_point_and_not_that_of_push_sum() -> None:
    """Where a constant step leads to is linear in it when it is short; what is left of it at 0 is the bias."""
    bias = {}
    for kind in (Cta, PushCta):
        longer, shorter = (play_experiment(experiment(kind(lam=LAM, eta=eta), T=1000)) for eta in (0.04, 0.02))
        world = shorter.world
        at_zero = 2 * shorter.theta[-1] - longer.theta[-1]
        optimum = world.loss.optimum(world.training, LAM)[:, None]
        bias[kind] = np.linalg.norm(at_zero - optimum) / np.linalg.norm(np.broadcast_to(optimum, at_zero.shape))
    assert bias[Cta] > 0.05
    assert bias[PushCta] < 0.2 * bias[Cta]


@pytest.mark.parametrize(
    ("method", "links"), [(Cta(lam=LAM, eta=0.1), None), (PushCta(lam=LAM, eta=0.1), Failing(p=0.4))]
)
def test_agents_alone_do_what_all_at_once_do(method: Cta, links: Links | None) -> None:
    """And bytes that travel, the weight's among them, are those that are booked."""
    given = experiment(method, links=links, T=6)
    require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)
