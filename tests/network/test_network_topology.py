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

from fkl import conf_folder
from fkl.basics.errors import BadValue, FklError
from fkl.network import graphs, topology
from fkl.network.topology import Topology, connected


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
    dense = connected(graph)
    assert isinstance(dense._quick_adjacency, np.ndarray) and isinstance(dense._quick_metropolis, np.ndarray)
    monkeypatch.setattr(topology, "DENSE_AGENTS", 0)
    monkeypatch.setattr(topology, "DENSE_SHARE", 2.0)
    sparse = connected(graph)
    assert not isinstance(sparse._quick_adjacency, np.ndarray) and not isinstance(sparse._quick_metropolis, np.ndarray)
    return dense, sparse


@given(any_graph())
def test_links_adjacency_and_degree_are_the_graph(graph):
    built = connected(graph)
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
    built = connected(graph)
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


@given(any_graph(), st.randoms(use_true_random=False))
def test_renumbered_agents_get_the_same(graph, random):
    built = connected(graph)
    order = random.sample(range(built.agents), built.agents)
    renumbered = connected(nx.relabel_nodes(graph, dict(enumerate(order))))
    x = rng().standard_normal((2, built.agents, 3))
    y = np.empty_like(x)
    y[:, order] = x
    assert np.array_equal(renumbered.degree[order], built.degree)
    np.testing.assert_allclose(renumbered.neighbour_sum(y)[:, order], built.neighbour_sum(x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(renumbered.mix(y)[:, order], built.mix(x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(renumbered.spectral_gap, built.spectral_gap, rtol=1e-9)


@pytest.mark.parametrize("agents", [1, 2, 10, 23, 150])
@pytest.mark.parametrize("width", [1, 7, 40])
def test_replicates_alone_or_together_give_the_same_bytes(monkeypatch, agents, width):
    graph = nx.convert_node_labels_to_integers(nx.random_labeled_tree(agents, seed=0))
    x = rng().standard_normal((6, agents, width))
    for built in two_products(monkeypatch, graph):
        for product in (built.neighbour_sum, built.mix):
            together = product(x)
            for chunk in (1, 2, 4, 5):
                parts = [product(x[start : start + chunk].copy()) for start in range(0, 6, chunk)]
                assert np.concatenate(parts).tobytes() == together.tobytes()
                assert product(x[-chunk:]).tobytes() == together[-chunk:].tobytes()


@pytest.mark.parametrize("agents", [1, 2, 3, 4, 7, 10, 100, 600, 3000])
def test_spectral_gap_of_a_ring(agents):
    """From 3 agents on all weights are 1/3, so the second eigenvalue is (1 + 2 cos(2 pi / K)) / 3."""
    gap = graphs.Ring().build(agents, rng()).spectral_gap
    wanted = 1 - (1 + 2 * math.cos(2 * math.pi / agents)) / 3 if agents > 2 else 1.0
    assert gap == pytest.approx(wanted, rel=1e-6)
    assert graphs.Ring().build(agents, rng()).spectral_gap == gap


@pytest.mark.parametrize("agents", [1, 2, 3, 10, 60, 501])
def test_spectral_gap_of_a_complete_graph(agents):
    """All weights are 1/K: one round is enough."""
    assert graphs.Complete().build(agents, rng()).spectral_gap == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("agents", [3, 10, 502])
def test_spectral_gap_of_a_star(agents):
    """Weights to the centre are 1/K; differences among the others that sum to 0 keep 1 - 1/K of themselves."""
    assert graphs.Star().build(agents, rng()).spectral_gap == pytest.approx(1 / agents, rel=1e-9)


@pytest.mark.parametrize("half", [3, 260])
def test_spectral_gap_counts_negative_eigenvalues(half):
    """Two halves, all joined across: weights 1/(n + 1), eigenvalue -(n - 1)/(n + 1) of their difference."""
    built = connected(nx.complete_bipartite_graph(half, half))
    assert built.spectral_gap == pytest.approx(1 - (half - 1) / (half + 1), rel=1e-9)


@given(any_graph())
def test_spectral_gap_the_sparse_ways(graph):
    """Both ways of big graphs agree with all eigenvalues of a small one."""
    built = connected(graph)
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


def grid_edges(rows, columns):
    return rows * (columns - 1) + columns * (rows - 1)


KINDS = [
    (graphs.ErdosRenyi(edges=15, resample=500), 10, 15),
    (graphs.ErdosRenyi(edges=0), 1, 0),
    (graphs.ErdosRenyi(edges=45), 10, 45),
    (graphs.ErdosRenyi(p=1.0), 10, 45),
    (graphs.ErdosRenyi(p=0.5), 1, 0),
    (graphs.ErdosRenyi(p=0.5, resample=50), 10, None),
    (graphs.WattsStrogatz(4, 0.3, resample=50), 20, 40),
    (graphs.WattsStrogatz(2, 0.0), 3, 3),
    (graphs.WattsStrogatz(10, 1.0, resample=50), 11, 55),
    *[(graphs.Ring(), agents, {1: 0, 2: 1}.get(agents, agents)) for agents in (1, 2, 3, 10)],
    *[(kind, agents, agents - 1) for kind in (graphs.Star(), graphs.Path()) for agents in (1, 2, 3, 10)],
    *[(graphs.Tree(branching), agents, agents - 1) for branching in (1, 2, 3) for agents in (1, 2, 3, 10)],
    *[(graphs.Complete(), agents, agents * (agents - 1) // 2) for agents in (1, 2, 3, 10)],
    (graphs.Grid(), 1, 0),
    (graphs.Grid(), 12, grid_edges(3, 4)),
    (graphs.Grid(6), 12, grid_edges(6, 2)),
    (graphs.Grid(), 16, grid_edges(4, 4)),
    (graphs.Grid(), 7, 6),
]


@pytest.mark.parametrize(("kind", "agents", "edges"), KINDS, ids=str)
def test_every_kind(kind, agents, edges):
    """So many agents and edges, all joined, and the same graph from the same stream."""
    built = kind.build(agents, rng(1))
    assert isinstance(built, Topology)
    assert built.agents == agents
    if edges is not None:
        assert built.edges == edges
    reached = np.linalg.matrix_power(built.adjacency.toarray() + np.eye(agents), agents)
    assert (reached > 0).all()
    assert np.array_equal(kind.build(agents, rng(1)).links, built.links)


def test_shapes_by_hand():
    ring, star, path, grid, tree, complete = (
        dense_edges(kind.build(6, rng()))
        for kind in (
            graphs.Ring(),
            graphs.Star(),
            graphs.Path(),
            graphs.Grid(),
            graphs.Tree(),
            graphs.Complete(),
        )
    )
    assert ring == {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)}
    assert star == {(0, i) for i in range(1, 6)}
    assert path == {(i, i + 1) for i in range(5)}
    assert grid == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
    assert tree == {(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)}
    assert complete == set(itertools.combinations(range(6), 2))


@given(st.integers(1, 40), st.integers(1, 5))
def test_parents_of_a_tree(agents, branching):
    wanted = {((i - 1) // branching, i) for i in range(1, agents)}
    assert dense_edges(graphs.Tree(branching).build(agents, rng())) == wanted


@pytest.mark.parametrize("kind", [graphs.ErdosRenyi(edges=40), graphs.ErdosRenyi(p=0.8), graphs.WattsStrogatz(6, 0.5)])
def test_another_stream_is_another_graph(kind):
    assert dense_edges(kind.build(12, rng(0))) != dense_edges(kind.build(12, rng(1)))


def test_all_edges_are_alike():
    """Each of the 10 edges of 5 agents is in 7 of 10 connected draws of 7 edges."""
    stream = rng()
    share = sum(graphs.ErdosRenyi(edges=7, resample=99).build(5, stream).adjacency.toarray() for _ in range(600)) / 600
    np.testing.assert_allclose(share[~np.eye(5, dtype=bool)], 0.7, atol=0.08)


def test_graphs_in_pieces_are_drawn_anew():
    """A resampled graph is the first connected one of the same stream; too few draws are refused."""
    stream, draws = rng(4), 0
    while True:
        draws += 1
        try:
            first = graphs.ErdosRenyi(edges=11, resample=0).build(10, stream)
            break
        except FklError:
            continue
    assert draws > 2
    resampled = graphs.ErdosRenyi(edges=11, resample=draws - 1).build(10, rng(4))
    assert np.array_equal(resampled.links, first.links)
    with pytest.raises(FklError, match=rf"raise topology.edges=11 or topology.resample={draws - 2}"):
        graphs.ErdosRenyi(edges=11, resample=draws - 2).build(10, rng(4))


PIECES = "topology: the {} agents are in {} pieces that no edge joins; {}"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: connected(nx.empty_graph(3)), PIECES.format(3, 3, "add edges")),
        (
            lambda: graphs.ErdosRenyi(p=1e-9, resample=0).build(4, rng()),
            PIECES.format(4, 4, "raise topology.p=1e-09 or topology.resample=0"),
        ),
        (
            lambda: graphs.WattsStrogatz(2, 1.0, resample=1).build(200, rng()),
            r"topology: the 200 agents are in \d+ pieces that no edge joins; "
            "raise topology.neighbours=2 or topology.resample=1",
        ),
    ],
)
def test_graphs_in_pieces_are_refused(build, message):
    with pytest.raises(FklError, match=f"^{message}$"):
        build()


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: graphs.ErdosRenyi(p=0.0), "p=0.0: must be a number from 1e-12 to 1, or null"),
        (lambda: graphs.ErdosRenyi(p=1.1), "p=1.1: must be a number from 1e-12 to 1, or null"),
        (lambda: graphs.ErdosRenyi(p=math.nan), "p=nan: must be a number from 1e-12 to 1, or null"),
        (lambda: graphs.ErdosRenyi(edges=-1), "edges=-1: must be an integer >= 0, or null"),
        (lambda: graphs.ErdosRenyi(), "edges=None: must be given where p is null, and null where p is given"),
        (lambda: graphs.ErdosRenyi(0.5, 9), "edges=9: must be given where p is null, and null where p is given"),
        (lambda: graphs.ErdosRenyi(0.5, resample=-1), "resample=-1: must be an integer from 0 to 1000000"),
        (
            lambda: graphs.ErdosRenyi(edges=8).build(10, rng()),
            "edges=8: must be an integer from 9 to 45 to join 10 agents",
        ),
        (
            lambda: graphs.ErdosRenyi(edges=46).build(10, rng()),
            "edges=46: must be an integer from 9 to 45 to join 10 agents",
        ),
        (
            lambda: graphs.ErdosRenyi(edges=28).build(1, rng()),
            "edges=28: must be an integer from 0 to 0 to join 1 agents",
        ),
        (lambda: graphs.Grid(0), "rows=0: must be an integer >= 1, or null"),
        (lambda: graphs.Grid(4).build(10, rng()), "rows=4: must be a divisor of the 10 agents: 1, 2, 5, 10"),
        (lambda: graphs.Tree(0), "branching=0: must be an integer >= 1"),
        (lambda: graphs.WattsStrogatz(0), "neighbours=0: must be an even number from 2 up"),
        (lambda: graphs.WattsStrogatz(3), "neighbours=3: must be an even number from 2 up"),
        (lambda: graphs.WattsStrogatz(rewire=-0.1), "rewire=-0.1: must be a number from 0 to 1"),
        (lambda: graphs.WattsStrogatz(rewire=math.nan), "rewire=nan: must be a number from 0 to 1"),
        (lambda: graphs.WattsStrogatz(resample=-1), "resample=-1: must be an integer from 0 to 1000000"),
        (
            lambda: graphs.WattsStrogatz(10).build(10, rng()),
            "neighbours=10: must be an even number from 2, below the number of agents, 10",
        ),
    ],
)
def test_bad_values_are_named(make, line):
    with pytest.raises(BadValue) as caught:
        make()
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
    assert np.array_equal(built.links, connected(graph).links)
    assert file.fingerprint == hashlib.sha256((folder / "edges.txt").read_bytes()).hexdigest()


def test_edge_list_is_what_its_fingerprint_says(tmp_path):
    """A file that changes while a run goes on changes neither."""
    file = edge_list(tmp_path, "0 1\n")
    before = file.fingerprint
    other = edge_list(tmp_path, "0 1\n1 2\n")
    assert other.fingerprint != before == file.fingerprint
    assert file.build(2, rng()).edges == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n\n1\n", ", line 3: '1' is not an edge, which is two integers with a space between"),
        ("0 1 2\n", ", line 1: '0 1 2' is not an edge, which is two integers with a space between"),
        ("0,1\n", ", line 1: '0,1' is not an edge, which is two integers with a space between"),
        ("0 1.0\n", ", line 1: '0 1.0' is not an edge, which is two integers with a space between"),
        ("0 1_0\n", ", line 1: '0 1_0' is not an edge, which is two integers with a space between"),
        (
            "0 1\n" + "x" * 99,
            f", line 2: '{'x' * 60}...' is not an edge, which is two integers with a space between",
        ),
        ("# no\n0 3\n", ", line 2: there is no agent 3; must be from 0 to 2"),
        ("2 -1\n", ", line 1: there is no agent -1; must be from 0 to 2"),
        ("0 1\n1 1\n", ", line 2: joins agent 1 to itself"),
        ("0 1\n1 2\n1 0\n", ", line 3: edge 1 0 is in line 1 already"),
        (b"0 1\n1 \xff\n", ", line 2: byte 0xff is not text in UTF-8"),
    ],
)
def test_lines_that_are_no_edges_are_named(tmp_path, content, message):
    file = edge_list(tmp_path, content)
    with pytest.raises(FklError) as caught:
        file.build(3, rng())
    assert str(caught.value) == file.path + message


def test_edge_list_in_pieces(tmp_path):
    file = edge_list(tmp_path, "0 1\n")
    with pytest.raises(FklError) as caught:
        file.build(3, rng())
    assert str(caught.value) == PIECES.format(3, 2, f"add edges to {file.path}")


def test_edge_list_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        file = graphs.EdgeList(str(path))
        for use in (lambda file=file: file.fingerprint, lambda file=file: file.build(3, rng())):
            with pytest.raises(BadValue, match="must be a file that is there") as caught:
                use()
            assert caught.value.key == "path"


@pytest.mark.parametrize("path", sorted((conf_folder() / "topology").glob("*.yaml")), ids=lambda path: path.stem)
def test_configuration_files(path):
    """Each names its kind and all its keys, and says in its first line what it is."""
    first, target, *keys = path.read_text().splitlines()
    assert first.startswith("# ")
    kind = getattr(graphs, target.removeprefix("_target_: fkl.network.graphs."))
    assert [key.split(":")[0] for key in keys] == list(kind.__dataclass_fields__)
