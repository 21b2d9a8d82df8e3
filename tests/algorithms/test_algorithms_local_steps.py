"""Local steps in closed form are those taken one by one, and a client that is alone with the server takes them all."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.worlds import Size, make_dictionary, make_problem, run

from fkl.algorithms.federated.descent import OfmklAvg
from fkl.algorithms.federated.perfedavg import PerFedAvg
from fkl.basics.random_streams import Streams
from fkl.conformance import scenario
from fkl.contract.star import Samples
from fkl.contract.world import Common
from fkl.data.problem import Problem
from fkl.engines.base import make_world
from fkl.runs.prepare import prepare

SIZE = Size(R=1, K=3, N=4, D=5, T=6)


def common_of(size: Size, feature_map: str, engine: str = "numpy") -> Common:
    """What the parties of a small world know."""
    dictionary = make_dictionary(size, map=feature_map)
    return Common(dictionary, size.d, size.T, Streams(3, tuple(range(size.R))), "float64", engine)


@settings(max_examples=30)
@given(
    steps=st.integers(1, 9),
    feature_map=st.sampled_from(["pairs", "cosine"]),
    lam=st.sampled_from([0.0, 1e-3, 0.7]),
    eta=st.floats(0.01, 0.45),
    seed=st.integers(0, 99),
    weighed=st.booleans(),
)
def test_the_sum_of_local_gradients_is_that_of_a_loop(
    steps: int, feature_map: str, lam: float, eta: float, seed: int, weighed: bool
) -> None:
    """Dense steps, one after another, of every client and kernel: to 1e-12."""
    common, random = common_of(SIZE, feature_map), np.random.default_rng(seed)
    method = OfmklAvg(eta=eta, step_factor=1.5, lam=lam, local_steps=steps)
    x, y = random.uniform(-1, 1, (SIZE.K, SIZE.d)), random.uniform(0, 1, SIZE.K)
    theta = random.standard_normal((SIZE.R, SIZE.N, common.bank.width))
    weight = random.uniform(0, 3, (SIZE.R, SIZE.K, SIZE.N)) if weighed else None
    residual = common.bank.predict(x, theta) - y[:, None]
    samples = Samples(x, y, np.ones(SIZE.K, np.bool_))
    told = method.gradients(common, samples, theta, residual, weight)

    z = common.bank.features(x)
    expected = np.zeros((SIZE.R, SIZE.K, SIZE.N, common.bank.width))
    for k in range(SIZE.K):
        for i in range(SIZE.N):
            own = theta[0, i].copy()
            for _ in range(steps):
                gradient = 2 * (own @ z[0, i, k] - y[k]) * z[0, i, k] + 2 * lam * own
                expected[0, k, i] += gradient * (1.0 if weight is None else weight[0, k, i])
                own -= 1.5 * eta * gradient
    scale = np.abs(expected).max()
    np.testing.assert_allclose(told.dense().values, expected, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(told.mean(np.full(3, 1 / 3)), expected.mean(axis=1), rtol=0, atol=1e-12 * scale)


def repeated(problem: Problem, times: int) -> Problem:
    """Every sample so many times, one after another."""
    x, y, present = (np.repeat(part, times, axis=0) for part in (problem.x, problem.y, problem.present))
    return Problem(x, y, present, problem.site)


@pytest.mark.parametrize("feature_map", ["pairs", "cosine"])
def test_a_lone_client_takes_all_steps(feature_map: str) -> None:
    """Five local steps are five rounds on the same sample, of which the first predicts."""
    size = replace(SIZE, R=2, K=1, T=8)
    problem, dictionary = make_problem(size, 5), make_dictionary(size, map=feature_map)
    local = run(OfmklAvg(eta=0.2, lam=0.01, local_steps=5), problem, dictionary)
    rounds = run(OfmklAvg(eta=0.2, lam=0.01), repeated(problem, 5), dictionary)
    np.testing.assert_allclose(local.y_hat, rounds.y_hat[:, ::5], rtol=0, atol=1e-12)
    np.testing.assert_allclose(local.state.server.theta, rounds.state.server.theta, rtol=0, atol=1e-12)


def test_a_lone_client_of_perfedavg_takes_all_steps() -> None:
    """As above; and of several clients, the server steps by the mean of what each would have come to by itself."""
    size, method = replace(SIZE, R=2, K=1, T=8), PerFedAvg(eta=0.05, alpha=0.02, parameters=40)
    problem, dictionary = make_problem(size, 5), make_dictionary(size)
    local = run(replace(method, local_steps=5), problem, dictionary)
    rounds = run(method, repeated(problem, 5), dictionary)
    np.testing.assert_allclose(local.y_hat, rounds.y_hat[:, ::5], rtol=0, atol=1e-12)

    whole = make_problem(replace(size, K=3), 5)

    def first_round(clients: list[int]) -> Problem:
        streams = (part[:1, clients] for part in (whole.x, whole.y, whole.present))
        return Problem(*streams, whole.site[clients])

    steps = replace(method, local_steps=4)
    together = run(steps, first_round([0, 1, 2]), dictionary).state.server.layers
    alone = [run(steps, first_round([k]), dictionary) for k in range(3)]
    for number, layer in enumerate(together):
        mean = np.mean([one.state.server.layers[number] for one in alone], axis=0)
        np.testing.assert_allclose(layer, mean, rtol=0, atol=1e-13)


def test_an_agent_of_cta_descends_from_what_it_combined() -> None:
    """In the first iteration from theta = 0, steps of plain descent on R_i."""
    experiment = prepare(
        scenario("algo=cta", "algo.local_steps=3", "algo.eta=0.5", "precision=float64", "replicates=1")
    )
    world, _ = make_world(experiment, (0,))
    method, samples = experiment.algorithm, world.samples
    world.channel.open_round(0, world.problem.present[0])
    _, theta = method.step(world, method.init(world), 0)
    expected = np.zeros_like(theta)
    for _ in range(3):
        expected = expected - 0.5 * (samples.gradient(expected) + 2 * method.lam / samples.agents * expected)
    np.testing.assert_array_equal(theta, expected)
