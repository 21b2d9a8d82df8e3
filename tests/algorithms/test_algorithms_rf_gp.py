"""RF-GP of a star and of graphs: transcriptions, authors' code, and limits that are known otherwise."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import rf_gp
from literal.common import frequencies, normalised
from literal.worlds import (
    Played,
    Size,
    Trace,
    assert_close,
    make_dictionary,
    make_problem,
    neighbours,
    on_graph,
    play_experiment,
    run,
)
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel

from fkl.algorithms.decentralized.odkla import Domkl
from fkl.algorithms.decentralized.rf_gp import ConsensusRfGp, DRfGp
from fkl.algorithms.federated.rf_gp import RfGp
from fkl.algorithms.gaussian_processes import (
    LEVELS,
    Moments,
    lower_triangle,
    most_evident,
    symmetric_matrix,
)
from fkl.basics.random_streams import Streams
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.wire.payloads import PerClient

KEYS: dict[str, Any] = {
    "flush": 1,
    "M": None,
    "rank": None,
    "noise": None,
    "forget": 1.0,
    "personal": False,
    "lam": 1e-3,
}
TOLERANCE = 1e-9


@pytest.mark.parametrize(
    ("keys", "size", "absent"),
    [
        ({}, Size(R=3), 0.0),
        ({"noise": 0.03, "personal": True}, Size(N=7, T=20), 0.3),
        ({"flush": 4, "forget": 0.8}, Size(K=6, T=20), 0.3),
        ({"flush": None, "M": 2, "lam": 0.0}, Size(T=20), 0.3),
        ({"M": 1, "personal": True, "forget": 0.9}, Size(T=20), 0.3),
        ({"flush": None, "rank": 3, "M": 2, "forget": 0.9}, Size(T=20), 0.0),
    ],
    ids=repr,
)
def test_it_is_its_literal(keys: dict[str, Any], size: Size, absent: float) -> None:
    """Predictions and their variances, losses, norms, traffic, theta, weights, levels of noise."""
    problem, own = make_problem(size, seed=3, absent=absent), RfGp(**keys)
    dictionary = make_dictionary(size, largest=3.0 if size.N > 1 else 1.0)
    trace = run(own, problem, dictionary, seed=5, replicates=tuple(range(size.R)))
    here = problem.present
    for r in range(size.R):
        literal, more = rf_gp.run(trace.data(r), **{**KEYS, **keys})
        server = trace.state.server
        np.testing.assert_allclose(server.noise[r], more.noise, rtol=1e-12)
        np.testing.assert_array_equal(server.active[r], more.active)
        trace.require_literal(literal, r, TOLERANCE)
        assert_close(trace.variance[r][here], more.variance[here], TOLERANCE, "variance")
        assert_close(server.theta[r], literal.theta, TOLERANCE, "theta")
        log_w = trace.state.client.log_w[r] if own.personal else server.evidence[r]
        known = server.active[r]  # of those that were dropped the evidence is of no use
        assert_close(log_w[..., known], literal.log_w[..., known], TOLERANCE, "log w")


def pooled(trace: Trace, problem: Problem, rounds: int, i: int = 0) -> tuple[Any, Any]:
    """Features (n, P) of a kernel of the first replicate, and targets, of all samples up to a round."""
    here = problem.present[:rounds]
    return trace.world.bank.features(problem.x[:rounds][here])[0, i], problem.y[:rounds][here]


SIZE = Size(R=1, K=3, N=1, D=5, T=10)


@pytest.mark.parametrize("noise", [1e-3, 0.1])
def test_its_mean_variance_and_evidence_are_a_gaussian_process_s(noise: float) -> None:
    """Those of scikit-learn, with the kernel z'z and white noise."""
    problem, method = make_problem(SIZE, seed=1), RfGp(noise=noise)
    trace = run(method, problem, make_dictionary(SIZE), replicates=(0,))
    z, y = pooled(trace, problem, SIZE.T - 1)
    process = GaussianProcessRegressor(DotProduct(0.0, "fixed") + WhiteKernel(noise, "fixed"), alpha=0.0).fit(z, y)
    mean, sd = process.predict(trace.world.bank.features(problem.x[-1])[0, 0], return_std=True)
    assert_close(trace.y_hat[0, -1], mean, 1e-8, "mean")
    assert_close(trace.variance[0, -1], sd**2, 1e-8, "variance")
    z, y = pooled(trace, problem, SIZE.T)
    process = GaussianProcessRegressor(DotProduct(0.0, "fixed") + WhiteKernel(noise, "fixed"), alpha=0.0).fit(z, y)
    assert trace.state.server.evidence[0, 0] == pytest.approx(process.log_marginal_likelihood_value_, rel=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 99), st.floats(1e-5, 0.3))
def test_the_level_of_noise_is_the_one_of_most_evidence(seed: int, noise: float) -> None:
    """The evidence is the density of all targets at once."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((30, 4))
    y = z @ rng.standard_normal(4) + np.sqrt(noise) * rng.standard_normal(30)
    totals = np.array([[len(y), y @ y]])
    found = most_evident((z.T @ z)[None, None], (z.T @ y)[None, None], totals)
    densities = [multivariate_normal.logpdf(y, np.zeros(30), z @ z.T + level * np.eye(30)) for level in LEVELS]
    assert found[0, 0] == LEVELS[int(np.argmax(densities))]
    if noise > 1e-4:
        assert noise / 5 < found[0, 0] < 5 * noise


def test_sums_that_noise_has_changed_are_not_believed_beyond_it() -> None:
    """S with an eigenvalue below 0, and more of q explained than there is: the levels at which that shows are out."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((300, 4))
    y = z @ rng.standard_normal(4)
    gram, pull, totals = (z.T @ z)[None, None], (z.T @ y)[None, None], np.array([[300.0, y @ y]])
    gram = gram - (np.linalg.eigvalsh(gram)[..., 0] + 0.05) * np.eye(4)
    assert most_evident(gram, pull, totals)[0, 0] >= 0.05
    assert most_evident(gram - 10 * np.eye(4), pull, totals)[0, 0] >= 20.0
    assert most_evident(gram - 10 * np.eye(4), pull, np.array([[3.0, 1.0]]))[0, 0] >= 20.0  # of few samples, too


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["pairs", "cosine"]), st.booleans(), st.booleans(), st.integers(0, 9))
def test_moments_are_those_of_their_samples(feature_map: str, shared: bool, some: bool, seed: int) -> None:
    """Of both engines; with norms, factors and means as entry by entry."""
    rng = np.random.default_rng(seed)
    R, K, N, B = 2, 3, 4, 5
    x, y, weight = rng.normal(size=(1, K, B, 2)), rng.normal(size=(1, K, B)), rng.random((1, K, B)).round(1)
    chosen, share = (rng.random((R, N)) < 0.5 if some else None), np.array([0.5, 0.0, 0.25])
    dictionary = Dictionary(N=N, D=3, map=feature_map, shared=shared)
    for engine in ("numpy", "numba"):
        bank = dictionary.bank(2, Streams(seed, (0, 1)), "float64", engine)
        payload, z = Moments(bank, x, y, weight, chosen), bank.features(x.reshape(-1, 2)).reshape(R, N, K, B, -1)
        gram = np.einsum("kb,rnkbp,rnkbq->rknpq", weight[0], z, z)
        pull = np.einsum("kb,kb,rnkbp->rknp", weight[0], y[0], z)
        expected = np.concatenate([lower_triangle(gram), pull], axis=-1)
        if chosen is not None:
            expected *= chosen[:, None, :, None]
        plain = PerClient(expected)
        np.testing.assert_allclose(payload.dense().values, expected, atol=1e-13)
        np.testing.assert_allclose(payload.mean(share), plain.mean(share), atol=1e-13)
        np.testing.assert_allclose(payload.squared_norm(), plain.squared_norm(), rtol=1e-11, atol=1e-13)
        factor = rng.random((R, K))
        np.testing.assert_allclose(payload.times(factor).dense().values, plain.times(factor).values, atol=1e-13)
        np.testing.assert_allclose(symmetric_matrix(lower_triangle(gram)), gram, atol=1e-13)
        assert payload.wire_size(8).scalars.tolist() == payload.dense().wire_size(8).scalars.tolist()


@pytest.mark.parametrize("negative", [False, True])
def test_both_engines_solve_alike(negative: bool) -> None:
    """Also where noise has made eigenvalues negative, which are taken for 0."""
    rng = np.random.default_rng(3)
    gram = rng.normal(size=(2, 3, 6, 9))
    gram = gram @ gram.swapaxes(2, 3) - 4 * negative * np.eye(6)
    pull, noise = rng.normal(size=(2, 3, 6)), np.full((2, 3), 0.1)
    banks = [Dictionary(N=3, D=3).bank(2, Streams(0, (0, 1)), "float64", engine) for engine in ("numpy", "numba")]
    values, vectors = np.linalg.eigh(gram)
    assert (values < 0).any() == negative
    A = (vectors * np.maximum(values, 0)[..., None, :]) @ vectors.swapaxes(2, 3) + 0.1 * np.eye(6)
    for bank in banks:
        root, theta, logdet = bank.posterior(gram, pull, noise)
        assert_close(root.swapaxes(2, 3) @ root, np.linalg.inv(A), 1e-10, "A^-1")
        assert_close(theta, np.linalg.solve(A, pull[..., None])[..., 0], 1e-10, "theta")
        assert_close(logdet, np.linalg.slogdet(A)[1], 1e-10, "log det A")


def with_a_low_eigenvalue(least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A gram with the eigenvalues 1 and `least` noise, its pull, and the solution."""
    gram, pull = np.full((2, 2), 0.5) + 0.05 * least * np.array([[1, -1], [-1, 1]]), np.array([1.0, 3.0])
    A = gram + 0.1 * np.eye(2)
    if np.linalg.det(A) / A[0, 0] < 0.05:  # the second pivot
        A = np.full((2, 2), 0.5) + 0.1 * np.eye(2)
    return gram, pull, np.linalg.solve(A, pull)


@pytest.mark.parametrize("least", [-0.4, -0.6, -0.9, -1.5])
def test_engines_count_the_same_eigenvalues_as_0(least: float) -> None:
    """Those that leave a pivot below noise / 2: at -0.6 noise none is, and at -0.9 noise one is."""
    gram, pull, expected = with_a_low_eigenvalue(least)
    for engine in ("numpy", "numba"):
        bank = Dictionary(N=1, D=1, largest=0.01).bank(2, Streams(0, (0,)), "float64", engine)
        _, theta, _ = bank.posterior(gram[None, None], pull[None, None], np.full((1, 1), 0.1))
        assert_close(theta[0, 0], expected, 1e-10, f"theta with {engine}")


# --- on a graph

AGENTS = Size(K=5, T=20)
OF_AGENTS: dict[str, Any] = {"flush": 1, "noise": None, "forget": 1.0, "personal": False, "lam": 1e-3}
DICTIONARY = make_dictionary(AGENTS, largest=3.0)  # of wider kernels S is singular but for rounding
PATH = nx.path_graph(5)


def on_a_graph(method: Any, graph: nx.Graph = PATH, size: Size = AGENTS, dictionary: Dictionary = DICTIONARY) -> Played:
    """Two replicates, or one of one kernel, in float64."""
    return play_experiment(on_graph(method, make_problem(size, 0), graph, dictionary, replicates=size.R))


@pytest.mark.parametrize(
    "keys",
    [{}, {"noise": 0.03, "personal": True}, {"flush": 4, "forget": 0.8, "noise": 0.01}, {"flush": None, "lam": 0.0}],
    ids=repr,
)
def test_consensus_rf_gp_is_its_literal(keys: dict[str, Any]) -> None:
    """Predictions, variances, losses and theta."""
    found = on_a_graph(ConsensusRfGp(**keys))
    problem = found.world.problem
    for r in (0, 1):
        z = np.stack([found.world.bank.features(x)[r].swapaxes(0, 1) for x in problem.x])
        literal, more = rf_gp.consensus(z, problem.y, neighbours(PATH), **{**OF_AGENTS, **keys})
        assert_close(found.stacked("y_hat")[r], literal.y_hat, 1e-9, "y_hat")
        assert_close(found.stacked("variance")[r], more.variance, 1e-9, "variance")
        assert_close(found.stacked("loss")[r], literal.loss, 1e-9, "loss")
        assert_close(found.states[-1].own.theta[r], literal.theta, 1e-9, "theta")


@pytest.mark.parametrize("keys", [{"forget": 0.9, "noise": 0.01}, {"personal": True}], ids=repr)
def test_on_a_complete_graph_every_agent_knows_what_the_server_knows(keys: dict[str, Any]) -> None:
    found = on_a_graph(ConsensusRfGp(**keys), nx.complete_graph(5))
    star = run(RfGp(**keys), make_problem(AGENTS, 0), DICTIONARY)
    assert_close(found.stacked("y_hat"), star.y_hat, 1e-9, "y_hat")
    own, server = found.states[-1].own, star.state.server
    for k in range(5):
        assert_close(own.theta[:, k], server.theta, 1e-9, "theta")
        assert_close(own.evidence[:, k], server.evidence, 1e-9, "evidence")


def test_one_agent_is_one_client() -> None:
    size = Size(R=1, K=1, N=1, T=20)
    for method, client in ((ConsensusRfGp(), RfGp()), (DRfGp(), RfGp(noise=0.01))):
        found = on_a_graph(method, nx.empty_graph(1), size, make_dictionary(size))
        star = run(client, make_problem(size, 0), make_dictionary(size), replicates=(0,))
        assert_close(found.stacked("y_hat"), star.y_hat, 1e-9, "y_hat")
        assert found.ledger.tallies["link"].by_round.sum() == 0


ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "decentralized_online_gps.json").read_text())
THEIRS, GRAPH = Size(R=1, K=5, N=3, D=4, T=10), nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (1, 3)])


def test_d_rf_gp_predicts_what_its_authors_code_predicts() -> None:
    """Kernels, weights and variances, on a graph with unequal degrees."""
    found = on_a_graph(DRfGp(noise=0.03, lam=0.0), GRAPH, THEIRS, make_dictionary(THEIRS))
    world = found.world
    omega = frequencies(world.bank.rho[0], world.bank.scale)
    assert_close(np.array([each.T for each in omega]), np.array(ORACLE["omega"]), 1e-12, "omega: run tests/oracles")
    mean, variance, log_w, y_hat = (
        np.array(ORACLE["d_rf_gp"][name]) for name in ("mean", "variance", "log_w", "y_hat")
    )
    assert_close(found.stacked("y_hat")[0], y_hat, 1e-10, "y_hat")
    assert_close(found.stacked("loss")[0], (mean - world.problem.y[..., None]) ** 2, 1e-10, "loss")
    w = np.apply_along_axis(normalised, -1, log_w)
    of_mixture = (w * (variance + (mean - y_hat[..., None]) ** 2)).sum(axis=-1)
    assert_close(found.stacked("variance")[0], of_mixture, 1e-10, "variance")


def test_domkl_predicts_what_their_domkl_predicts() -> None:
    """Their rho is twice ours, and their step sizes are the inverse of ours."""
    method = Domkl(eta=1 / 1.5, rho=0.1, lam=0.0, eta_k=1 / 2.0, weights="added")
    found = on_a_graph(method, GRAPH, THEIRS, make_dictionary(THEIRS))
    assert_close(found.stacked("y_hat")[0], np.array(ORACLE["domkl"]["y_hat"]), 1e-10, "y_hat")
