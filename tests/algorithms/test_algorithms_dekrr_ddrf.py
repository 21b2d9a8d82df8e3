"""DeKRR-DDRF: its literal, limiting cases, the joint optimum, what is chosen, and what crosses which link."""

from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from literal import dekrr as literal
from literal.worlds import assert_close, play_experiment
from scipy.stats import norm

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.dekrr_ddrf import DekrrDdrf
from fkl.basics.arrays import Array
from fkl.basics.errors import BadValue
from fkl.basics.random_streams import Role
from fkl.conformance import scenario
from fkl.data.problem import Batch, Problem
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.network.topology import connected
from fkl.runs.prepare import prepare
from fkl.wire import Ledger

K, SIZE, D, LAM, C = 5, 40, 4, 1e-2, 1.5
GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
DICTIONARY = Dictionary(N=1, D=D, smallest=0.5, largest=0.5, bandwidth_convention="deviation", map="cosine")


class Played(NamedTuple):
    """Theta (T, R, K, D) of all iterations, and what the last one left."""

    theta: Array
    own: Any
    world: World
    ledger: Ledger


def make_batch(clients: int = K, iterations: int = 25) -> Batch:
    """Make agents whose samples differ in where they lie, in what they say and in number."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (SIZE, clients, 3)) + 0.3 * np.arange(clients)[:, None]
    y = np.sin(2 * x[..., 0]) + 0.2 * random.standard_normal((SIZE, clients))
    stream = Problem(x, y, random.random((SIZE, clients)) < 0.8, np.zeros(clients, np.int64))
    return DekrrDdrf(iterations=iterations).batch(stream, random)


def play(method: DekrrDdrf, batch: Batch, graph: nx.Graph = GRAPH) -> Played:
    """Two replicates in float64."""
    found = play_experiment(Experiment(batch, DICTIONARY, Network(), method, 0, 2, "float64", connected(graph)))
    return Played(found.stacked("theta", 0), found.states[-1].own, found.world, found.ledger)


def by_agent(batch: Batch) -> tuple[list[Array], list[Array]]:
    """Each agent's own training samples."""
    x, y, client = batch.part(True)
    return [x[client == k] for k in range(batch.clients)], [y[client == k] for k in range(batch.clients)]


def neighbours(graph: nx.Graph) -> list[list[int]]:
    return [sorted(graph[k]) for k in range(len(graph))]


@pytest.mark.parametrize("penalty", ["equal", "by_samples"])
def test_it_is_its_literal(penalty: str) -> None:
    batch = make_batch()
    found = play(DekrrDdrf(lam=LAM, c=C, penalty=penalty), batch)
    x, y = by_agent(batch)
    assert len({len(target) for target in y}) > 1, "some agents are padded"
    for r in (0, 1):
        features = list(found.own.omega[r]), list(found.own.phase[r])
        expected = literal.dekrr(x, y, neighbours(GRAPH), *features, LAM, C, batch.rounds - 1, penalty)
        assert (found.theta[0, r] == 0).all()
        assert_close(found.theta[1:, r], np.array(expected), 1e-9, "theta")


def test_steps_descend_to_the_joint_minimum() -> None:
    """Every Jacobi step makes the sum less, and its end is where the gradient of all theta together is 0, to 1e-8."""
    batch = make_batch(iterations=3000)
    found = play(DekrrDdrf(lam=LAM, c=C), batch)
    x, y = by_agent(batch)
    features = list(found.own.omega[0]), list(found.own.phase[0])

    def value(theta: Array) -> float:
        return literal.objective(list(theta.reshape(K, D)), x, y, neighbours(GRAPH), *features, LAM, C)

    values = [value(found.theta[t, 0]) for t in (0, 1, 2, 3, 5, 10, 30, 100)]
    assert (np.diff(values) < 0).all()
    # Of a quadratic function, differences are exact: the Hessian, and the gradient at 0.
    unit, at_0 = np.eye(K * D), value(np.zeros(K * D))
    alone = np.array([value(e) for e in unit])
    pairs = np.array([[value(a + b) for b in unit] for a in unit])
    hessian = pairs - alone[:, None] - alone + at_0
    gradient = np.array([(value(e) - value(-e)) / 2 for e in unit])
    assert_close(found.theta[-1, 0].ravel(), np.linalg.solve(hessian, -gradient), 1e-8, "theta")


@pytest.mark.parametrize("how", ["alone", "c=0"])
def test_without_others_it_is_ridge_on_its_own_features(how: str) -> None:
    """In the first step."""
    graph = nx.empty_graph(1) if how == "alone" else GRAPH
    batch = make_batch(len(graph), 3)
    found = play(DekrrDdrf(lam=LAM, c=C if how == "alone" else 0.0), batch, graph)
    x, y = by_agent(batch)
    for r in (0, 1):
        for k in range(len(graph)):
            z = np.sqrt(2 / D) * np.cos(x[k] @ found.own.omega[r, k] + found.own.phase[r, k])
            ridge = np.linalg.solve(z.T @ z + LAM * np.mean([*map(len, y)]) * np.eye(D), z.T @ y[k])
            assert_close(found.theta[1:, r, k], np.tile(ridge, (2, 1)), 1e-10, "theta")


def test_what_is_kept_is_what_the_data_choose() -> None:
    """The literal's choice among the same candidates, in its order; where as many are drawn as kept, all of them."""
    batch = make_batch(iterations=1)
    x, y = by_agent(batch)
    for candidates in (1, 6):
        found = play(DekrrDdrf(candidates=candidates), batch)
        many, everyone = candidates * D, range(K)
        uniform = found.world.streams.vectors(Role.OWN_FEATURES, 0, everyone, 3 * many)
        trial = 2 * np.pi * found.world.streams.vectors(Role.OWN_FEATURES, 0, everyone, many, 1)
        for r, k in np.ndindex(2, K):
            drawn = norm.ppf(uniform[r, k]).reshape(3, many) / 0.5  # of standard deviation 1 / sigma
            assert_close(found.own.omega[r, k], literal.chosen(drawn, trial[r, k], x[k], y[k], D), 1e-9, "omega")


def test_features_and_gram_matrices_cross_every_link_once() -> None:
    """Frequencies and phases, two matrices a link, and theta from then on: scalars by iteration."""
    batch = make_batch(iterations=5)
    found = play(DekrrDdrf(), batch)
    links, once = 2 * GRAPH.number_of_edges(), D * (D + 1) // 2 + D * D
    of_links = found.ledger.tallies["link"].by_round[:, 0, 1]
    assert of_links.tolist() == [links * (3 * D + D), links * once, *[links * D] * 3]
    assert found.ledger.tallies["broadcast"].by_round[:, 0, 1].tolist() == [K * 4 * D, links * once, *[K * D] * 3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("network.loss=0.1",), "loss=0.1: must be 0 for DeKRR-DDRF"),
        (("participation=share",), "participation=Share: must be null for DeKRR-DDRF, whose rounds no client can miss"),
        (("privacy=local", "privacy.clip=1"), "privacy=Local: must be null for DeKRR-DDRF"),
        (("kernels.draw=orthogonal",), "draw=orthogonal: must be iid for DeKRR-DDRF"),
        (("kernels.map=pairs",), "kernels.map=pairs: must be cosine for DeKRR-DDRF"),
        (("topology=directed",), "both ways for DeKRR-DDRF"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadValue, match=said) as error:
        experiment = prepare(scenario("algo=dekrr_ddrf", *words))
        experiment.algorithm.init(make_world(experiment, (0,))[0])
    assert "\n" not in str(error.value)
