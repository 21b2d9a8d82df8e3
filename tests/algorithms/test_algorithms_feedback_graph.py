"""Feedback graphs and the greedy set cover: against one-node-at-a-time transcriptions and brute force."""

from collections.abc import Iterator
from decimal import localcontext
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import feedback_graph as literal
from literal.divergence import divergences
from numpy.typing import NDArray

from fkl.algorithms.online.omkl_sfg import divergence_ranks, dominating_set, log_inner_products, similarity_graph
from fkl.kernels import Dictionary

DIGITS = 250


@pytest.fixture(autouse=True, scope="module")
def _many_digits() -> Iterator[None]:
    """Sums of divergences are exact."""
    with localcontext() as context:
        context.prec = DIGITS
        yield


@st.composite
def graphs(draw: st.DrawFn, most: int = 20) -> NDArray[np.bool_]:
    """A random directed graph in which every node points to itself."""
    N, seed = draw(st.integers(1, most)), draw(st.integers(0, 2**32 - 1))
    density = draw(st.sampled_from([0.0, 0.1, 0.3, 0.8]))
    return (np.random.default_rng(seed).random((N, N)) < density) | np.eye(N, dtype=bool)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32 - 1), st.data())
def test_similarity_graph_is_its_literal(N: int, dimension: int, seed: int, data: st.DataObject) -> None:
    """M out-neighbours each, itself among them, whatever the kernels; two that are alike go by their index.

    Two pairs of them would tie in another way, too: beside {a, b} the copies of a and of b are equally far, of which
    logarithms know nothing.
    """
    M = data.draw(st.integers(1, N))
    random = np.random.default_rng(seed)
    families = random.choice(["rbf", "laplacian"], N).tolist()
    scales = np.exp(random.uniform(-2, 2, N))
    families[N // 2], scales[N // 2] = families[0], scales[0]
    adjacency = similarity_graph(log_inner_products(families, scales, dimension), M)
    exact = divergences(families, scales.tolist(), dimension, 60)
    delta = np.array([[round(value, 40) for value in row] for row in exact])
    np.testing.assert_array_equal(adjacency, literal.similarity_graph(delta, M))
    assert (adjacency.sum(axis=1) == M).all() and adjacency.diagonal().all()


@pytest.mark.parametrize("dimension", [1, 8])
def test_the_paper_s_dictionary(dimension: int) -> None:
    """76 kernels, 10 out-neighbours: the literal graph in exact arithmetic, and the order of every two divergences.

    Divergences as float64 give another graph where d is 8 (concrete) or 17 (naval): 525 of its 760 edges.
    """
    dictionary = Dictionary(N=76, laplacians=25, bandwidth_convention="variance")
    log_inner = log_inner_products(dictionary.families, dictionary.scales, dimension)
    delta = divergences(dictionary.families, dictionary.scales.tolist(), dimension, DIGITS)
    adjacency = similarity_graph(log_inner, 10)
    np.testing.assert_array_equal(adjacency, literal.similarity_graph(np.array(delta), 10))
    assert adjacency[dominating_set(adjacency)].any(axis=0).all()
    rounded = literal.similarity_graph(np.array(delta).astype(float), 10)
    assert (adjacency & ~rounded).sum() == (525 if dimension >= 8 else 0)
    ranks = divergence_ranks(log_inner)
    for i in range(76):
        assert sorted(range(76), key=lambda j: ranks[i, j]) == sorted(range(76), key=lambda j: delta[i][j])


@given(graphs())
def test_the_greedy_cover_dominates_and_is_its_literal(adjacency: NDArray[np.bool_]) -> None:
    """Every node is reached, and each one chosen reached something new."""
    chosen = dominating_set(adjacency)
    assert adjacency[chosen].any(axis=0).all()
    in_order = literal.dominating_set(adjacency)
    assert sorted(in_order) == chosen.tolist()
    covered = np.zeros(len(adjacency), bool)
    for node in in_order:
        assert (adjacency[node] & ~covered).any()
        covered |= adjacency[node]


@given(graphs(most=8))
def test_the_greedy_cover_is_within_chvatal_s_factor(adjacency: NDArray[np.bool_]) -> None:
    """At most H(largest out-degree) times the least that will do, found by brute force."""
    N = len(adjacency)
    least = next(
        size for size in range(1, N + 1)
        if any(adjacency[list(nodes)].any(axis=0).all() for nodes in combinations(range(N), size))
    )  # fmt: skip
    harmonic = sum(1 / k for k in range(1, int(adjacency.sum(axis=1).max()) + 1))
    assert len(dominating_set(adjacency)) <= harmonic * least + 1e-9
