"""Consensus RF-GP: its literal transcription, its limiting cases, and what is conserved."""

from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from literal import rf_gp
from literal.worlds import Size, assert_close, make_dictionary, make_problem
from literal.worlds import run as run_star

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.rf_gp import ConsensusRfGp
from fkl.algorithms.federated.rf_gp import RfGp
from fkl.basics.arrays import Array
from fkl.data.problem import Problem
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.network.topology import connected
from fkl.wire import Ledger

SIZE = Size(K=5, T=20)
KEYS: dict[str, Any] = {"flush": 1, "noise": None, "forget": 1.0, "personal": False, "lam": 1e-3}
RING = nx.cycle_graph(5)
DICTIONARY = make_dictionary(SIZE, largest=3.0)  # of wider kernels S is singular but for rounding


class Played(NamedTuple):
    """What all rounds showed, (R, T, K) and (R, T, K, N), and where they ended."""

    y_hat: Array
    variance: Array
    loss: Array
    own: Any
    ledger: Ledger
    world: World


def play(method: ConsensusRfGp, graph: nx.Graph = RING, size: Size = SIZE, problem: Problem | None = None) -> Played:
    """Two replicates in float64."""
    problem = make_problem(size, 0) if problem is None else problem
    given = Experiment(
        problem, make_dictionary(size, largest=3.0), Network(), method, 0, 2, "float64", connected(graph)
    )
    world, ledger = make_world(given, (0, 1))
    state, outcomes = method.init(world), []
    for t in range(problem.rounds):
        world.channel.open_round(t, problem.present[t])
        state, outcome = method.step(world, state, t)
        outcomes.append(outcome)
    told = (np.stack([getattr(one, name) for one in outcomes], axis=1) for name in ("y_hat", "variance", "loss"))
    return Played(*told, state.own, ledger, world)


@pytest.mark.parametrize(
    "keys",
    [{}, {"noise": 0.03, "personal": True}, {"flush": 4, "forget": 0.8, "noise": 0.01}, {"flush": None, "lam": 0.0}],
    ids=repr,
)
def test_it_is_its_literal(keys: dict[str, Any]) -> None:
    """Predictions, variances, losses and theta."""
    graph = nx.path_graph(5)
    found = play(ConsensusRfGp(**keys), graph)
    problem, neighbours = found.world.problem, [sorted(graph[k]) for k in range(5)]
    for r in (0, 1):
        z = np.stack([found.world.bank.features(x)[r].swapaxes(0, 1) for x in problem.x])
        literal, more = rf_gp.consensus(z, problem.y, neighbours, **{**KEYS, **keys})
        assert_close(found.y_hat[r], literal.y_hat, 1e-9, "y_hat")
        assert_close(found.variance[r], more.variance, 1e-9, "variance")
        assert_close(found.loss[r], literal.loss, 1e-9, "loss")
        assert_close(found.own.theta[r], literal.theta, 1e-9, "theta")


@pytest.mark.parametrize("keys", [{}, {"forget": 0.9, "noise": 0.01}, {"personal": True}], ids=repr)
def test_on_a_complete_graph_every_agent_knows_what_the_server_knows(keys: dict[str, Any]) -> None:
    found = play(ConsensusRfGp(**keys), nx.complete_graph(5))
    star = run_star(RfGp(**keys), make_problem(SIZE, 0), DICTIONARY)
    assert_close(found.y_hat, star.y_hat, 1e-9, "y_hat")
    for k in range(5):
        assert_close(found.own.theta[:, k], star.state.server.theta, 1e-9, "theta")
        assert_close(found.own.evidence[:, k], star.state.server.evidence, 1e-9, "evidence")


@pytest.mark.parametrize("flush", [1, 3, None])
def test_shares_add_up_to_the_sums_of_all_samples(flush: int | None) -> None:
    """Whatever the graph; and after enough rounds without news every share is as large."""
    found = play(ConsensusRfGp(flush=flush))
    own, problem = found.own, found.world.problem
    totals = (own.totals + own.own_totals).sum(axis=1)
    np.testing.assert_allclose(totals, [[problem.y.size, (problem.y**2).sum()]] * 2)
    z = np.stack([found.world.bank.features(x) for x in problem.x])  # (T, R, N, K, P)
    pull = np.einsum("tk,trnkp->rnp", problem.y, z)
    P = z.shape[-1]
    assert_close((own.moments + own.own_moments).sum(axis=1)[..., -P:], pull, 1e-12, "b")


def test_one_agent_is_one_client() -> None:
    size = Size(K=1, T=20)
    found = play(ConsensusRfGp(), nx.empty_graph(1), size)
    star = run_star(RfGp(), make_problem(size, 0), make_dictionary(size, largest=3.0))
    assert_close(found.y_hat, star.y_hat, 1e-9, "y_hat")
    assert found.ledger.tallies["link"].by_round.sum() == 0


def test_what_is_booked_are_sums_of_every_kernel() -> None:
    """N (P (P + 1) / 2 + P) + 2 scalars a broadcast, in rounds 1, 2, 4, 8 and 16 of 20."""
    found = play(ConsensusRfGp(flush=None))
    P = 2 * SIZE.D
    sent = found.ledger.tallies["broadcast"].by_client[..., 1]
    assert (sent == 5 * (SIZE.N * (P * (P + 1) // 2 + P) + 2)).all()
