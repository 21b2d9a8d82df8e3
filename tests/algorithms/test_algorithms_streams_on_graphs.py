"""Agents on a graph that learn from streams: literals, limiting cases, what is conserved, the contract."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from literal import odkla as literal
from literal.worlds import Played, Size, assert_close, make_dictionary, make_problem, play_experiment

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.odkla import Domkl, Odkla, QcOdkla
from fkl.basics.arrays import Array
from fkl.basics.errors import BadValue
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import wrap
from fkl.conformance import scenario
from fkl.data.problem import Problem
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.network.topology import connected
from fkl.runs.prepare import prepare
from fkl.wire.coded_payloads import Quantised

SIZE = Size(K=5, N=1, T=40)
GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
NEIGHBOURS = [sorted(GRAPH[k]) for k in range(len(GRAPH))]
LAM, ETA, RHO = 0.02, 0.3, 0.1


def play(method: Any, problem: Problem | None = None, size: Size = SIZE, graph: nx.Graph = GRAPH) -> Played:
    """Two replicates in float64."""
    problem = make_problem(size, 0) if problem is None else problem
    given = problem, make_dictionary(size), Network(), method, 0, 2, "float64", connected(graph)
    return play_experiment(Experiment(*given))


def features(world: World, r: int) -> Array:
    """Of one replicate's samples, (T, K, N, P), straight from the bank."""
    return np.stack([world.bank.features(x)[r].swapaxes(0, 1) for x in world.problem.x])


def rounded(change: Array) -> Array:
    """To the nearest of 15 steps over the vector's range, as four bits have them."""
    return Quantised.nearest(change[None, None], 4).values[0, 0]


CENSORED = QcOdkla(ETA, RHO, LAM, v=0.3, mu=0.97)


@pytest.mark.parametrize("how", ["odkla", "censored", "censored and few bits"])
def test_odkla_and_qc_odkla_are_their_literals(how: str) -> None:
    method: Any = Odkla(ETA, RHO, LAM) if how == "odkla" else CENSORED
    options: dict[str, Any] = {} if how == "odkla" else {"h": lambda t: 0.3 * 0.97**t}
    if "bits" in how:
        options["rounded"] = rounded
        method = wrap(method, {"compression": Uniform(bits=4, rounding="nearest")})
    found = play(method)
    for r in (0, 1):
        expected = literal.odkla(
            features(found.world, r)[:, :, 0], found.world.problem.y, NEIGHBOURS, LAM, 1 / ETA, RHO, **options
        )
        assert_close(found.stacked("y_hat")[r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.stacked("loss")[r, :, :, 0], expected.loss, 1e-9, "loss")
        own = found.states[-1].own
        assert_close(getattr(own, "method", own).theta[r, :, 0], expected.theta, 1e-9, "theta")
        assert found.ledger.tallies["broadcast"].by_round[:, r, 0].tolist() == expected.sent
        assert how == "odkla" or 0 < sum(expected.sent) < SIZE.K * SIZE.T, "some are censored and not all"


def test_domkl_alone_takes_proximal_steps_and_hedges() -> None:
    """Without neighbours: theta = argmin L_t + |theta - theta_t|^2 / (2 eta), w = exp(-eta_k sum of losses)."""
    size, graph = replace(SIZE, K=1, N=3), nx.empty_graph(1)
    found = play(Domkl(ETA, RHO, LAM, 0.7), size=size, graph=graph)
    expected = literal.domkl(features(found.world, 0), found.world.problem.y, [[]], LAM, 1 / ETA, RHO, 0.7)
    assert_close(found.stacked("y_hat")[0], expected.y_hat, 1e-9, "y_hat")
    hedge = centred(-0.7 * found.stacked("loss")[0, :, 0].sum(axis=0))
    assert_close(centred(found.states[-1].own.log_w[0, 0]), hedge, 1e-9, "log w")
    assert found.ledger.tallies["link"].by_round.sum() == 0


def test_duals_sum_to_zero_and_silence_costs_no_more_than_the_threshold() -> None:
    """Over agents, in every round: also where some keep silent, send few bits, are absent, or links are down."""
    for method in (Odkla(ETA, RHO, LAM), CENSORED, wrap(CENSORED, {"compression": Uniform(bits=3)})):
        found = play(method)
        for t, state in enumerate(found.states):
            own = getattr(state.own, "method", state.own)
            assert np.abs(own.gamma.sum(axis=1)).max() < 1e-12
            if method is CENSORED:
                assert np.linalg.norm(own.theta_hat - own.theta, axis=-1).max() <= 0.3 * 0.97 ** (t + 1)
    found = play(Odkla(ETA, RHO, LAM), make_problem(SIZE, 0, absent=0.3))
    assert max(np.abs(state.own.gamma.sum(axis=1)).max() for state in found.states) < 1e-12


def test_many_passes_over_one_sample_each_come_to_the_pooled_ridge() -> None:
    """Streams that repeat themselves are batches: all agents agree on the minimiser of the sum of their losses."""
    size = replace(SIZE, T=6000)
    one = make_problem(replace(size, T=12), 3)
    many = replace(
        one,
        x=np.tile(one.x[:1], (size.T, 1, 1)),
        y=np.tile(one.y[:1], (size.T, 1)),
        present=np.ones((size.T, size.K), np.bool_),
    )
    found = play(Odkla(0.5, 0.3, LAM), many, size)
    theta = found.states[-1].own.theta[:, :, 0]
    for r in (0, 1):
        z = features(found.world, r)[0, :, 0]
        ridge = np.linalg.solve(z.T @ z + size.K * LAM * np.eye(z.shape[1]), z.T @ many.y[0])
        assert_close(theta[r], np.tile(ridge, (size.K, 1)), 1e-8, "theta")


def centred(log_w: Array) -> Array:
    """Logarithms of weights that sum to 1: what is added to all of an agent's does nothing."""
    return np.log(np.exp(log_w) / np.exp(log_w).sum(axis=-1, keepdims=True))


def test_domkl_is_its_literal() -> None:
    size = replace(SIZE, N=3)
    found = play(Domkl(ETA, RHO, LAM, eta_k=0.7), size=size)
    for r in (0, 1):
        z = features(found.world, r)
        expected = literal.domkl(z, found.world.problem.y, NEIGHBOURS, LAM, 1 / ETA, RHO, 0.7)
        assert_close(found.stacked("y_hat")[r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.stacked("loss")[r], expected.loss, 1e-9, "loss")
        own = found.states[-1].own
        assert_close(own.theta[r], expected.theta, 1e-9, "theta")
        assert_close(centred(own.log_w[r]), centred(expected.log_w), 1e-9, "log w")
    scalars = SIZE.K * (3 * 2 * size.D + 3)
    assert (found.ledger.tallies["broadcast"].by_round[..., 1] == scalars).all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("algo=odkla", "kernels=rbf"), "kernels.N=51: must be 1: ODKLA learns one kernel"),
        (("algo=odkla", "~topology"), "a graph of agents, for example topology=ring"),
        (("algo=qc_odkla", "network.loss=0.1"), "a difference that is lost is never made up"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadValue, match=said.replace("(", r"\(")) as error:
        experiment = prepare(scenario(*words))
        experiment.algorithm.init(make_world(experiment, (0,))[0])
    assert "\n" not in str(error.value)
