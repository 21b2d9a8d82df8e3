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
from scipy.integrate import quad

from fkl.algorithms.online.omkl_sfg import (
    divergence_ranks,
    dominating_set,
    farthest_first,
    log_inner_products,
    similarity_graph,
)
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


# --- Inner products of kernels in closed form: against quadrature; divergences in order: against exact arithmetic.

FAMILIES = st.sampled_from(["rbf", "laplacian"])
KERNELS = st.tuples(FAMILIES, st.floats(-2, 2).map(lambda power: 10.0**power))


def exponent(family: str, scale: float, rho: float) -> float:
    return -((scale * rho) ** 2) / 2 if family == "rbf" else -scale * rho


@given(KERNELS, KERNELS)
def test_inner_product_on_the_line_is_the_integral(one: tuple[str, float], other: tuple[str, float]) -> None:
    """Any two families and scales: quadrature over the half line, twice."""
    families, scales = zip(one, other, strict=True)
    log_inner = log_inner_products(families, np.array(scales), 1)
    assert (log_inner == log_inner.T).all()
    inner = float(np.exp(log_inner[0, 1]))
    ends = np.geomspace(1e-3 / max(scales), 50 / min(scales), 40)
    pieces = [
        quad(lambda rho: np.exp(exponent(*one, rho) + exponent(*other, rho)), a, b, epsabs=1e-13 * inner)[0]
        for a, b in zip([0, *ends[:-1]], ends, strict=True)
    ]
    assert inner == pytest.approx(2 * sum(pieces), rel=1e-9, abs=0)


@pytest.mark.parametrize("dimension", [1, 8, 17])
def test_totals_have_the_order_of_exact_arithmetic(dimension: int) -> None:
    """76 kernels, totals over random sets of them; sums of float64 do not: they tie from d = 8 on."""
    dictionary = Dictionary(N=76, laplacians=25, bandwidth_convention="variance")
    families, scales = dictionary.families, dictionary.scales
    delta = divergences(families, scales.tolist(), dimension, DIGITS)
    log_inner = log_inner_products(families, scales, dimension)
    rounded = np.array([[float(value) for value in row] for row in delta])
    random = np.random.default_rng(0)
    in_floats = []
    for members in (1, 2, 3, 9):
        S = random.choice(76, members, replace=False)
        exact = [sum(delta[m][j] for m in S) for j in range(76)]
        others = [j for j in range(76) if j not in S]
        sign, size = farthest_first(log_inner, np.logaddexp.reduce(log_inner[S], axis=0), members)
        in_order = sorted(others, key=lambda j: exact[j])
        assert sorted(others, key=lambda j: (sign[j], size[j])) == in_order
        in_floats.append(np.unique(rounded[S].sum(axis=0)[others]).size == len(others))
    assert all(in_floats) == (dimension < 8)
