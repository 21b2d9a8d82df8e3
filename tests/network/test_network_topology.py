"""Graphs of agents: the right edges, weights that average, and errors that name what to mend."""

import hashlib
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import linalg

from fkl.basics.errors import FklError
from fkl.network import graphs, topology
from fkl.network.topology import topology_of_graph


def rng(seed=0):
    return np.random.default_rng(seed)


def dense_edges(built):
    return {(int(i), int(j)) for i, j in built.links if i < j}


@st.composite
def any_graph(draw):
    """A connected graph: a random tree, random further edges, and its agents renumbered."""
    agents = draw(st.integers(1, 12))
    edges = {(draw(st.integers(0, i - 1)), i) for i in range(1, agents)}
    edges |= {(min(e), max(e)) for e in draw(st.sets(st.tuples(*[st.integers(0, agents - 1)] * 2))) if e[0] != e[1]}
    graph = nx.empty_graph(agents)
    graph.add_edges_from(edges)
    return nx.relabel_nodes(graph, dict(enumerate(draw(st.permutations(range(agents))))))


def two_products(monkeypatch, graph):
    """The same graph with dense and with sparse products."""
    monkeypatch.setattr(topology, "DENSE_AGENTS", 10**6)
    dense = topology_of_graph(graph)
    assert isinstance(dense._quick_adjacency, np.ndarray) and isinstance(dense._quick_metropolis, np.ndarray)
    monkeypatch.setattr(topology, "DENSE_AGENTS", 0)
    monkeypatch.setattr(topology, "DENSE_SHARE", 2.0)
    sparse = topology_of_graph(graph)
    assert not isinstance(sparse._quick_adjacency, np.ndarray) and not isinstance(sparse._quick_metropolis, np.ndarray)
    return dense, sparse


@given(any_graph())
def test_links_adjacency_and_degree_are_the_graph(graph):
    built = topology_of_graph(graph)
    agents = graph.number_of_nodes()
    wanted = [[i, j] for i in range(agents) for j in sorted(graph[i])]
    assert built.agents == agents
    assert built.links.tolist() == wanted
    assert built.links.shape == (2 * graph.number_of_edges(), 2)
    assert built.links.dtype == np.int64
    assert built.edges == graph.number_of_edges()
    assert built.adjacency.format == "csr"
    assert built.adjacency.dtype == built.degree.dtype == np.float64
    matrix = built.adjacency.toarray()
    assert np.array_equal(matrix, nx.to_numpy_array(graph, nodelist=range(agents)))
    assert np.array_equal(built.degree, matrix.sum(axis=1))


@given(any_graph())
def test_metropolis_averages(graph):
    """Symmetric, doubly stochastic, nonnegative, and each weight as its definition has it."""
    built = topology_of_graph(graph)
    weight = built.metropolis.toarray()
    assert np.array_equal(weight, weight.T)
    assert (weight >= 0).all()
    np.testing.assert_allclose(weight.sum(axis=0), 1, rtol=1e-14)
    for i, j in graph.edges:
        assert weight[i, j] == 1 / (1 + max(graph.degree[i], graph.degree[j]))
    assert np.count_nonzero(weight) == 2 * built.edges + built.agents
    assert 0 < built.spectral_gap <= 1


@given(any_graph(), st.integers(0, 2), st.integers(1, 3))
def test_products_are_loops(graph, replicates, width):
    """Sums and averages over neighbours as a loop over pairs of agents has them, dense and sparse."""
    with pytest.MonkeyPatch.context() as patch:
        for built in two_products(patch, graph):
            x = rng().standard_normal((replicates, built.agents, width))
            weight = built.metropolis.toarray()
            total, average = np.zeros_like(x), np.zeros_like(x)
            for i, j in np.ndindex(built.agents, built.agents):
                total[:, i] += x[:, j] * graph.has_edge(i, j)
                average[:, i] += x[:, j] * weight[i, j]
            np.testing.assert_allclose(built.neighbour_sum(x), total, rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(built.mix(x), average, rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(built.mix(x).mean(axis=1), x.mean(axis=1), atol=1e-14)


@pytest.mark.parametrize("agents", [1, 10, 150])
def test_replicates_alone_or_together_give_the_same_bytes(monkeypatch, agents):
    graph = nx.convert_node_labels_to_integers(nx.random_labeled_tree(agents, seed=0))
    x = rng().standard_normal((6, agents, 7))
    for built in two_products(monkeypatch, graph):
        for product in (built.neighbour_sum, built.mix):
            parts = [product(x[start : start + 4].copy()) for start in (0, 4)]
            assert np.concatenate(parts).tobytes() == product(x).tobytes()


@pytest.mark.parametrize("agents", [2, 3, 10, 600])
def test_spectral_gaps_in_closed_form(agents):
    """Weights of a ring are 1/3, of a complete graph 1/K, of a star those to its centre, of two halves 1/(n + 1)."""
    wanted = 1 - (1 + 2 * math.cos(2 * math.pi / agents)) / 3 if agents > 2 else 1.0
    assert graphs.Ring().build(agents, rng()).spectral_gap == pytest.approx(wanted, rel=1e-6)
    assert graphs.Complete().build(agents, rng()).spectral_gap == pytest.approx(1, abs=1e-12)
    if agents > 2:
        assert graphs.Star().build(agents, rng()).spectral_gap == pytest.approx(1 / agents, rel=1e-9)
        halves = topology_of_graph(nx.complete_bipartite_graph(agents, agents))  # of a negative eigenvalue
        assert halves.spectral_gap == pytest.approx(1 - (agents - 1) / (agents + 1), rel=1e-9)


@given(any_graph())
def test_spectral_gap_the_sparse_ways(graph):
    """Both ways of big graphs agree with all eigenvalues of a small one."""
    built = topology_of_graph(graph)
    if built.agents < 4:
        return
    with pytest.MonkeyPatch.context() as patch:
        wanted = built.spectral_gap
        for restarts in (1000, 0):
            patch.setattr(topology, "RESTARTS", restarts)
            if restarts == 0:
                patch.setattr(linalg, "eigsh", _fails_without_sigma(linalg.eigsh))
            assert 1 - topology._second_eigenvalue(built.metropolis) == pytest.approx(wanted, abs=1e-9)


def _fails_without_sigma(eigsh):
    def replacement(matrix, **options):
        if "sigma" not in options:
            raise linalg.ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))
        return eigsh(matrix, **options)

    return replacement


KINDS = [
    (graphs.ErdosRenyi(edges=15, resample=500), 10, 15),
    (graphs.ErdosRenyi(p=0.5, resample=50), 10, None),
    (graphs.WattsStrogatz(4, 0.3, resample=50), 20, 40),
    (graphs.Ring(), 2, 1),
    (graphs.Tree(3), 10, 9),
    (graphs.Grid(), 7, 6),
]


@pytest.mark.parametrize(("kind", "agents", "edges"), KINDS, ids=str)
def test_every_kind(kind, agents, edges):
    """So many agents and edges, all joined, the same graph from the same stream, another from another."""
    built = kind.build(agents, rng(1))
    assert built.agents == agents
    assert edges is None or built.edges == edges
    reached = np.linalg.matrix_power(built.adjacency.toarray() + np.eye(agents), agents)
    assert (reached > 0).all()
    assert np.array_equal(kind.build(agents, rng(1)).links, built.links)
    drawn = hasattr(kind, "resample") and agents > 1
    assert (dense_edges(kind.build(agents, rng(2))) != dense_edges(built)) == drawn


@pytest.mark.parametrize(
    ("kind", "edges"),
    [
        (graphs.Ring(), {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)}),
        (graphs.Star(), {(0, i) for i in range(1, 6)}),
        (graphs.Path(), {(i, i + 1) for i in range(5)}),
        (graphs.Grid(), {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}),
        (graphs.Tree(), {(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)}),
        (graphs.Complete(), set(itertools.combinations(range(6), 2))),
    ],
)
def test_shapes_by_hand(kind, edges):
    assert dense_edges(kind.build(6, rng())) == edges


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (
            lambda: topology_of_graph(nx.empty_graph(3)),
            "topology: the graph of 3 agents is not connected but has 3 parts; add edges",
        ),
        (lambda: graphs.ErdosRenyi(), "edges=None: must be given if p is null, and null if p is given"),
        (
            lambda: graphs.ErdosRenyi(edges=8).build(10, rng()),
            "edges=8: must be an integer from 9 to 45 to connect 10 agents",
        ),
        (lambda: graphs.Grid(4).build(10, rng()), "rows=4: must be a divisor of the 10 agents: 1, 2, 5, 10"),
        (
            lambda: graphs.WattsStrogatz(10).build(10, rng()),
            "neighbours=10: must be an even number >= 2, below the number of agents, 10",
        ),
    ],
)
def test_what_is_no_graph_is_refused_by_its_key(build, line):
    with pytest.raises(FklError) as caught:
        build()
    assert str(caught.value) == line


def edge_list(folder, content):
    file = folder / "edges.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return graphs.EdgeList(str(file))


@given(any_graph())
def test_edge_list(tmp_path_factory, graph):
    """A graph that was written is read, whatever its lines' ends and the order of an edge's agents."""
    folder = tmp_path_factory.mktemp("edges")
    lines = ["# a graph", "", *(f"{max(e)}\t {min(e)} " for e in graph.edges), " # the end"]
    file = edge_list(folder, "\r\n".join(lines))
    built = file.build(graph.number_of_nodes(), rng())
    assert np.array_equal(built.links, topology_of_graph(graph).links)
    assert file.fingerprint == hashlib.sha256((folder / "edges.txt").read_bytes()).hexdigest()
