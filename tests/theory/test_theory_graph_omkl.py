"""Bounds of the graph-aided methods: sure ones hold, faults exceed them, and slips of the proofs are shown by hand."""

from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from literal.worlds import Size, make_dictionary, make_problem
from sklearn.kernel_ridge import KernelRidge
from theory.test_theory import of_one_x, opposed_to

from fkl.algorithms.online.omkl_gf import OmklGf
from fkl.algorithms.online.omkl_sfg import OmklSfg, OmklSfgR, log_inner_products
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.theory import graph_omkl, similarity
from fkl.theory.graph_omkl import of_bipartite_graph, record_of

SETTLED = {"exploring": 1, "settle": "first", "p_floor": 0.2}


def world_of(method, problem, dictionary, replicates=(0,)):
    """A world without conditions, in doubles."""
    experiment = Experiment(problem, dictionary, Network(), method, 0, len(replicates), "float64")
    return make_world(experiment, replicates)[0]


def theorems(method, world):
    """All about the method."""
    return list(graph_omkl.theorems(record_of(method, world)))


@settings(max_examples=20)
@given(
    st.sampled_from(
        [
            OmklSfg(M=4, settle="never"),  # every kernel is observed in every round
            OmklSfg(M=2, **SETTLED),
            OmklSfg(M=2, divide_by="observed", **SETTLED),
            OmklSfg(M=2, q_floor=0.5, draw="next", **SETTLED),
            OmklSfgR(M=1, rank=2, **SETTLED),
            OmklGf(M=2, J=1, exploring=1),
            OmklGf(M=2, J=1, exploring=1, divide_by="observed", q_floor=0.7),
        ]
    ),
    st.floats(0.01, 0.6),
    arrays(float, 20, elements=st.sampled_from([-1.0, 1.0, 2.0])),
    st.integers(0, 2**31),
)
def test_no_stream_exceeds_a_corrected_bound_where_nothing_is_drawn(method, eta, y, seed) -> None:
    """Nothing is learned from the target 0 of the first round, and no node is drawn after it."""
    size = Size(K=1, N=4, D=3, T=20)
    y[0] = 0.0
    problem, dictionary = replace(make_problem(size, seed), y=y[:, None]), make_dictionary(size)
    method = replace(method, eta=eta)
    with np.errstate(all="ignore"):  # some streams diverge
        told = theorems(method, world_of(method, problem, dictionary))
    for theorem in told:
        if method.exploring == 1 or theorem.name in ("Lemma 7", "Lemma 11"):
            right = theorem.forms[1].right
            assume(np.isfinite(right).all())
            assert (theorem.left <= right + 1e-9 * (1 + np.abs(right))).all(), theorem.name


@pytest.mark.parametrize(
    "method",
    [
        OmklSfg(M=1, q_floor=0.6, p_floor=0.6),
        OmklSfg(M=2, exploring=8, divide_by="observed", settle="first"),
        OmklSfgR(M=1, rank=2),
        OmklGf(M=2, J=3),
        OmklGf(M=1, J=2, exploring=8, divide_by="observed"),
    ],
    ids=repr,
)
def test_means_over_the_draw_of_a_node_are_those_that_are_played(method) -> None:
    """Many copies of one replicate play all rounds but the last alike, and take all nodes in the last."""
    size, copies = Size(K=1, N=5, D=4, T=12), 4000
    problem, dictionary, last = make_problem(size, 2), make_dictionary(size, laplacians=2), 11
    method = replace(method, eta=0.3).round_by_round()
    record = record_of(method, world_of(method, problem, dictionary))
    world = world_of(method, problem, dictionary, (0,) * copies)
    state = method.init(world)
    for t in range(size.T):
        if t == last:
            state.node_draws[:, t] = (np.arange(copies) + 0.5) / copies
            before = state.log_w[0].copy(), getattr(state, "log_u", state.log_w)[0].copy()
        state, outcome = method.step(world, state, t)
    eta, y = record.rates[last, 0], problem.y[last, 0]
    falls = (before[0] - state.log_w).mean(axis=0) / eta
    np.testing.assert_allclose(falls, record.a[last] * record.loss[last], rtol=2e-2, atol=1e-6)
    squares = (((before[0] - state.log_w) / eta) ** 2).mean(axis=0) @ record.w[last]  # of the estimates, in Lemma 8
    apart = (record.used - record.a * record.w)[last] @ record.loss[last] - ((1 - record.a) * record.loss)[last]
    np.testing.assert_allclose(np.diff(record.of_weights, axis=0)[-1], eta * (eta / 2 * squares + apart), rtol=2e-2)
    mixture = ((outcome.y_hat[:, 0] - y) ** 2 + method.lam * outcome.squared_norm()[:, 0]).mean()
    np.testing.assert_allclose(mixture, record.mixture[last, 0], rtol=2e-2)
    if record.nodes is not None:
        falls = (before[1] - state.log_u).mean(axis=0) / eta
        nodes = record.nodes
        np.testing.assert_allclose(falls, (nodes.a * nodes.loss)[last], rtol=2e-2, atol=1e-6)
        squares = (((before[1] - state.log_u) / eta) ** 2).mean(axis=0) @ nodes.u[last]  # the same in Lemma 10
        apart = (nodes.drawn - nodes.a * nodes.u)[last] @ nodes.loss[last] - ((1 - nodes.a) * nodes.loss)[last]
        found = np.diff(nodes.of_draw(record), axis=0)[-1]
        np.testing.assert_allclose(found, eta * (eta / 2 * squares + apart), rtol=2e-2)


def test_targets_against_the_sign_are_close_to_lemma_7() -> None:
    size = Size(K=1, N=1, D=3, T=2000)
    kind = opposed_to(OmklSfg, lambda state: state.theta)
    method = kind(M=1, lam=0.0, eta=size.T**-0.5, rate="constant", settle="never")
    theorem, *_ = theorems(method, world_of(method, of_one_x(size), make_dictionary(size)))
    assert 1 <= theorem.forms[1].right[-1, 0] / theorem.left[-1, 0] <= 1.03


def drawn_graphs(w, eta_e, M, J=2) -> Any:
    """All graphs of OMKL-GF with their chances, and what follows from each."""
    w = np.array(w)
    pi = np.array([(1 - eta_e ** (j + 1)) * w + eta_e ** (j + 1) / len(w) for j in range(J)])
    for kernels in product(range(len(w)), repeat=J * M):
        of_nodes = np.reshape(kernels, (J, M))
        chance = np.prod([pi[j, of_nodes[j]] for j in range(J)])
        A = np.array([np.isin(np.arange(len(w)), row) for row in of_nodes])
        method, after = OmklGf(M=M, J=J), SimpleNamespace(pi=pi[None], A=A[None])
        yield chance, pi, of_bipartite_graph(method, after, np.log(w), eta_e, 0)


def test_the_estimates_of_omkl_gf_have_a_bias_by_hand() -> None:
    """Eq. (75a): the mean of 1[i in S] / q_i should be 1. Two nodes draw one of two kernels each; all four graphs."""
    graphs = list(drawn_graphs((0.9, 0.1), 0.3, M=1))
    assert sum(chance for chance, *_ in graphs) == pytest.approx(1)
    mean = sum(chance * (one.drawn @ one.A) / one.q for chance, _, one in graphs)
    np.testing.assert_allclose(mean, (1.099, 0.555), atol=1e-3)
    [alone] = [sum(c * (one.drawn @ one.A) / one.q for c, _, one in drawn_graphs((0.9, 0.1), 0.3, M=1, J=1))]
    np.testing.assert_allclose(alone, 1)


def lemmas(method, world) -> dict[str, Any]:
    """Lemmas 3 and 4, by form."""
    return {f"{one.name}, {form.name}": (one, form) for one in similarity.theorems(method, world) for form in one.forms}


def test_lemma_4_by_scikit_learn() -> None:
    """Functions and coefficients of kernel ridge regression; the integral over a disc by a grid; its volume is pi."""
    size = Size(K=1, N=3, d=2, T=30)
    problem, dictionary, method = make_problem(size, 0), make_dictionary(size, laplacians=1), OmklSfg(M=2, lam=0.1)
    problem = replace(problem, x=problem.x / np.linalg.norm(problem.x, axis=-1).max())
    found = lemmas(method, world_of(method, problem, dictionary))
    lemma, printed = found["Lemma 4, printed"]
    x, y = problem.x[:, 0], problem.y[:, 0]
    side = np.linspace(-1, 1, 201)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    grid = grid[np.linalg.norm(grid, axis=1) <= 1]
    alpha, f = [], []
    for i in range(3):
        model = KernelRidge(alpha=30 * 0.1, kernel="precomputed").fit(dictionary.gram(i, x, x), y)
        alpha.append(model.dual_coef_)
        f.append(model.predict(dictionary.gram(i, grid, x)))
    C_m = max((one**2).sum() for one in alpha)
    inner = np.exp(log_inner_products(dictionary.families, dictionary.scales, 2))
    for at, (i, j) in enumerate(combinations(range(3), 2)):
        delta, apart = inner[i, i] + inner[j, j] - 2 * inner[i, j], ((alpha[i] - alpha[j]) ** 2).sum()
        assert lemma.left[0, at] == pytest.approx(((f[i] - f[j]) ** 2).mean(), rel=0.2)  # 256 points
        assert printed.right[0, at] == pytest.approx(2 * C_m * 30 * (delta / np.pi + 2))
        corrected = found["Lemma 4, corrected"][1].right[0, at]
        assert corrected == pytest.approx(60 * (C_m * delta / np.pi + apart))
        assert lemma.left[0, at] <= min(corrected, lemma.trivial[at])
    assert (lemma.trivial <= printed.right).all(), "vacuous"
    assert printed.unmet == ()


def test_points_are_uniform_in_the_ball() -> None:
    """A ball of radius r has the share r^d of the volume of the unit ball in R^d."""
    for d in (1, 2, 17):
        radius = np.linalg.norm(similarity.points_of_ball(d, 4000), axis=1)
        assert (radius**d).mean() == pytest.approx(0.5, abs=0.02)
        assert radius.max() <= 1
    assert [np.exp(similarity.log_ball(d)) for d in (1, 2, 3)] == pytest.approx([2, np.pi, 4 * np.pi / 3])
