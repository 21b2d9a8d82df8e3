"""Agents on a graph that learn from streams: literals, limiting cases, what is conserved, the contract."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from literal import odkla as literal
from literal.worlds import Size, assert_close, make_dictionary, make_problem
from recount import ledger_books_every_message

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.odkla import Domkl, Odkla, QcOdkla
from fkl.basics.arrays import Array
from fkl.basics.errors import BadValue, BrokenPromiseError
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import wrap
from fkl.conformance import Conformance, scenario
from fkl.conformance.party_process import PartyObject
from fkl.data.problem import Problem
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.network.topology import connected
from fkl.runs.prepare import prepare
from fkl.wire import Ledger
from fkl.wire.channel import Inbox
from fkl.wire.coded_payloads import Quantised

SIZE = Size(K=5, N=1, T=40)
GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
NEIGHBOURS = [sorted(GRAPH[k]) for k in range(len(GRAPH))]
LAM, ETA, RHO = 0.02, 0.3, 0.1
FULL = {"odkla": (), "domkl": (), "qc_odkla": ("compression.bits=32",)}
"""Where a difference may be lost, all bits have to travel."""
ABSENT = ("partition=quantity_skew", "partition.clients=5", "partition.rounds=60", "precision=float64")
LOSSY = ("network.loss=0.3", "topology=erdos_renyi", "topology.p=0.9")


class Played(NamedTuple):
    """What all rounds showed: y_hat (T, R, K), losses (T, R, K, N) and states."""

    y_hat: Array
    loss: Array
    states: list[Any]
    world: World
    ledger: Ledger


def play(
    method: Any,
    problem: Problem | None = None,
    size: Size = SIZE,
    graph: nx.Graph = GRAPH,
    network: Network | None = None,
) -> Played:
    """Two replicates in float64."""
    problem = make_problem(size, 0) if problem is None else problem
    given = Experiment(problem, make_dictionary(size), network or Network(), method, 0, 2, "float64", connected(graph))
    world, ledger = make_world(given, (0, 1))
    state, y_hat, loss, states = method.init(world), [], [], []
    for t in range(problem.rounds):
        world.channel.open_round(t, problem.present[t])
        state, outcome = method.step(world, state, t)
        y_hat.append(np.array(outcome.y_hat))
        loss.append(np.array(outcome.loss))
        states.append(state)
    return Played(np.stack(y_hat), np.stack(loss), states, world, ledger)


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
        assert_close(found.y_hat[:, r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.loss[:, r, :, 0], expected.loss, 1e-9, "loss")
        own = found.states[-1].own
        assert_close(getattr(own, "method", own).theta[r, :, 0], expected.theta, 1e-9, "theta")
        assert found.ledger.tallies["broadcast"].by_round[:, r, 0].tolist() == expected.sent
        assert how == "odkla" or 0 < sum(expected.sent) < SIZE.K * SIZE.T, "some are censored and not all"


def test_without_threshold_and_with_all_bits_qc_odkla_is_odkla_bit_for_bit() -> None:
    plain, quiet = play(Odkla(ETA, RHO, LAM)), play(QcOdkla(ETA, RHO, LAM, v=0.0))
    assert np.array_equal(plain.y_hat, quiet.y_hat)
    assert np.array_equal(plain.states[-1].own.gamma, quiet.states[-1].own.gamma)


def test_domkl_alone_takes_proximal_steps_and_hedges() -> None:
    """Without neighbours: theta = argmin L_t + |theta - theta_t|^2 / (2 eta), w = exp(-eta_k sum of losses)."""
    size, graph = replace(SIZE, K=1, N=3), nx.empty_graph(1)
    found = play(Domkl(ETA, RHO, LAM, 0.7), size=size, graph=graph)
    expected = literal.domkl(features(found.world, 0), found.world.problem.y, [[]], LAM, 1 / ETA, RHO, 0.7)
    assert_close(found.y_hat[:, 0], expected.y_hat, 1e-9, "y_hat")
    hedge = centred(-0.7 * found.loss[:, 0, 0].sum(axis=0))
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


def test_regret_grows_as_the_square_root_of_rounds_at_most() -> None:
    """With eta = rho = 1 / sqrt(T): against the best theta of all, R(4 T) is at most twice R(T), about."""
    whole, regrets = make_problem(replace(SIZE, T=3200), 1), []
    for rounds in (200, 800, 3200):
        first = {name: getattr(whole, name)[:rounds] for name in ("x", "y", "present")}
        found = play(Odkla(None, 1 / np.sqrt(rounds), LAM), replace(whole, **first))
        z, y = features(found.world, 0)[:, :, 0], found.world.problem.y
        rows, targets = z.reshape(-1, z.shape[-1]), y.ravel()
        best = np.linalg.solve(rows.T @ rows + len(rows) * LAM * np.eye(rows.shape[1]), rows.T @ targets)
        least = ((rows @ best - targets) ** 2).sum() + len(rows) * LAM * best @ best
        regrets.append(found.loss[:, 0, :, 0].sum() - least)
    assert 0 < regrets[1] < 2.2 * regrets[0]
    assert 0 < regrets[2] < 2.2 * regrets[1]


def centred(log_w: Array) -> Array:
    """Logarithms of weights that sum to 1: what is added to all of an agent's does nothing."""
    return np.log(np.exp(log_w) / np.exp(log_w).sum(axis=-1, keepdims=True))


def test_domkl_is_its_literal() -> None:
    size = replace(SIZE, N=3)
    found = play(Domkl(ETA, RHO, LAM, eta_k=0.7), size=size)
    for r in (0, 1):
        z = features(found.world, r)
        expected = literal.domkl(z, found.world.problem.y, NEIGHBOURS, LAM, 1 / ETA, RHO, 0.7)
        assert_close(found.y_hat[:, r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.loss[:, r], expected.loss, 1e-9, "loss")
        own = found.states[-1].own
        assert_close(own.theta[r], expected.theta, 1e-9, "theta")
        assert_close(centred(own.log_w[r]), centred(expected.log_w), 1e-9, "log w")
    scalars = SIZE.K * (3 * 2 * size.D + 3)
    assert (found.ledger.tallies["broadcast"].by_round[..., 1] == scalars).all()


def test_domkl_with_small_steps_is_odkla_of_each_kernel() -> None:
    """A loss and its tangent are the same to the first order: steps of 1e-5 differ by squares of such."""
    size = replace(SIZE, N=1)
    exact, tangent = play(Domkl(1e-5, RHO, LAM), size=size), play(Odkla(1e-5, RHO, LAM), size=size)
    theta, expected = exact.states[-1].own.theta, tangent.states[-1].own.theta
    assert np.abs(theta - expected).max() < 1e-3 * np.abs(expected).max()


def test_hedge_s_bound_where_everybody_hears_everybody() -> None:
    """Weights are of mean losses: sum_kt L(f_hat) <= min_i sum_kt L_ik + K (ln N / eta_k + eta_k T B^2 / 8)."""
    size, eta_k = replace(SIZE, N=4, T=300), 0.5
    found = play(Domkl(ETA, RHO, LAM, eta_k), make_problem(size, 2), size, nx.complete_graph(SIZE.K))
    for r in (0, 1):
        log_w = centred(found.states[-1].own.log_w[r])
        assert_close(
            log_w, np.tile(centred(-eta_k * found.loss[:, r].mean(axis=1).sum(axis=0)), (size.K, 1)), 1e-9, "w"
        )
        mixed = ((found.y_hat[:, r] - found.world.problem.y) ** 2).sum()
        most = found.loss[:, r].mean(axis=1).max()
        slack = size.K * (np.log(size.N) / eta_k + eta_k * size.T * most**2 / 8)
        assert mixed <= found.loss[:, r].sum(axis=(0, 1)).min() + slack


@pytest.mark.parametrize("algo", ["odkla", "qc_odkla", "domkl"])
@pytest.mark.parametrize("words", [ABSENT, LOSSY, ("links=failing", "links.p=0.4")])
def test_promises_are_kept_where_agents_are_absent_and_messages_are_lost(algo: str, words: tuple[str, ...]) -> None:
    """Streams whose clients differ in length, lost messages, links that fail; agents as objects."""
    suite = Conformance.from_overrides(f"algo={algo}", "kernels.D=4", "partition.rounds=20", *FULL[algo], *words)
    suite.parties_see_what_they_hold_alone()
    ledger_books_every_message(suite)
    suite.state_survives_save_and_load()
    suite.labels_are_not_known_before_they_are_shown()


def test_a_graph_sums_and_mixes_several_kernels_as_one_after_another() -> None:
    """Arrays (R, K, N, P) in the inbox, held once an agent or once a link."""
    topology = connected(GRAPH)
    own = np.random.default_rng(0).standard_normal((2, SIZE.K, 3, 4))
    for graph in (topology, topology.neighbours):
        held = own if graph is topology else own[:, topology.links[:, 1]]
        together = Inbox(graph, {"theta": held})
        for i in range(3):
            one = Inbox(graph, {"theta": np.ascontiguousarray(held[:, :, i])})
            assert_close(together.sum("theta")[:, :, i], one.sum("theta"), 1e-12, "sum")
            mixed = one.mix("theta", np.ascontiguousarray(own[:, :, i]))
            assert_close(together.mix("theta", own)[:, :, i], mixed, 1e-12, "mix")


@dataclass(frozen=True)
class Knows(Odkla):
    """Adds of the target to its prediction."""

    def learn(self, common: Any, own: Any, inbox: Any, samples: Any, turn: Any) -> Any:
        """As it says."""
        state, outcome = super().learn(common, own, inbox, samples, turn)
        return state, replace(outcome, y_hat=outcome.y_hat + 1e-3 * samples.y)


@dataclass(frozen=True)
class Sees(Odkla):
    """Learns from what the others see."""

    def hear(self, common: Any, own: Any, inbox: Any, samples: Any, turn: Any) -> Any:
        """As it says."""
        state = super().hear(common, own, inbox, samples, turn)
        return replace(state, theta=state.theta + 1e-3 * samples.y.mean())


def test_who_looks_at_a_target_before_predicting_it_is_found() -> None:
    """Also through the samples of a round: `learn` is given both, and the check asks what it shows."""
    suite = Conformance.from_overrides("algo=odkla", "kernels.D=4", "partition.rounds=12")
    with pytest.raises(BrokenPromiseError, match="targets of that round"):
        replace(
            suite, experiment=replace(suite.experiment, algorithm=Knows())
        ).labels_are_not_known_before_they_are_shown()
    seen = replace(suite, experiment=replace(suite.experiment, algorithm=Sees()))
    with pytest.raises(BrokenPromiseError, match="y_hat of agent"):
        seen.require_parties_agree(PartyObject)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("algo=odkla", "kernels=rbf"), "kernels.N=51: must be 1: ODKLA learns one kernel"),
        (("algo=odkla", "~topology"), "a graph of agents, for example topology=ring"),
        (("algo=odkla", "topology=directed"), "both ways for ODKLA"),
        (("algo=odkla", "late=labels"), "late=LateLabels: must be null for ODKLA"),
        (("algo=odkla", "privacy=central", "privacy.clip=1"), "null for ODKLA"),
        (("algo=odkla", "secure=pairwise"), "null for ODKLA"),
        (("algo=odkla", "algo.rho=0"), "rho=0.0: must be a number > 0"),
        (("algo=odkla", "algo.eta=0"), "eta=0.0: must be a number > 0, or null"),
        (("algo=domkl", "algo.eta_k=0"), "eta_k=0.0: must be a number > 0, or null"),
        (("algo=qc_odkla", "algo.mu=2"), "mu=2.0: must be a number > 0, at most 1"),
        (("algo=qc_odkla", "network.loss=0.1"), "a difference that is lost is never made up"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadValue, match=said.replace("(", r"\(")) as error:
        experiment = prepare(scenario(*words))
        experiment.algorithm.init(make_world(experiment, (0,))[0])
    assert "\n" not in str(error.value)
