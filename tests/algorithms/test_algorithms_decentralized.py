"""CTA, DKLA and COKE: literal transcriptions, the closed form, limiting cases, cheats, and samples of a batch."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from literal import decentralized as literal
from literal import dekrr, odkla
from literal.worlds import (
    GRAPH,
    ONE_KERNEL,
    Played,
    Size,
    assert_close,
    by_agent,
    make_batch,
    make_dictionary,
    make_problem,
    neighbours,
    on_graph,
    play_experiment,
    script,
)
from scipy.optimize import minimize
from scipy.stats import norm

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Consensus, Cta, Dkla
from fkl.algorithms.decentralized.dekrr_ddrf import DekrrDdrf
from fkl.algorithms.decentralized.odkla import Domkl, Odkla, QcOdkla
from fkl.basics.arrays import Array
from fkl.basics.errors import BrokenPromiseError, FklError
from fkl.basics.random_streams import Role
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import WrappedGraph, wrap_method
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject
from fkl.data.problem import Batch, Problem
from fkl.engines.base import make_world
from fkl.kernels import Dictionary
from fkl.tasks.batch import BatchJudge
from fkl.wire.coded_payloads import Quantised
from fkl.wire.payloads import PerClient
from fkl.wire.payloads import Size as Booked

K, LAM = 5, 1e-2
P = 2 * ONE_KERNEL.D


def few_bits(method: Consensus, bits: int) -> Any:
    """The method whose agents send differences in so many bits."""
    return wrap_method(method, {"compression": Uniform(bits=bits, rounding="nearest")})


# Few features and so many rows that they are compressed; many features, so that Woodbury's formula serves.
@pytest.mark.parametrize(("features", "size"), [(3, 42), (40, 14)])
def test_cta_dkla_and_coke_are_their_literals(features: int, size: int) -> None:
    dictionary, batch = replace(ONE_KERNEL, D=features), make_batch(size=size)
    for always, plain in ((Dkla(lam=LAM, rho=0.05), literal.dkla), (Cta(lam=LAM, eta=0.05), literal.cta)):
        found = play_experiment(on_graph(always, batch, dictionary=dictionary))
        for r in (0, 1):
            expected = plain(*by_agent(found.world, r), neighbours(), LAM, 0.05, batch.rounds)
            assert_close(found.theta[:, r], np.stack(expected), 1e-9, "theta")
        assert (found.ledger.tallies["broadcast"].by_round[..., 0] == K).all()
    for censored, measure in {
        "norm": lambda xi, _: np.linalg.norm(xi),
        "squared_norm": lambda xi, _: xi @ xi,
        "relative_norm": lambda xi, hat: np.linalg.norm(xi) / max(np.linalg.norm(hat), 1e-300),
    }.items():
        method = Coke(lam=LAM, rho=0.05, v=0.4, mu=0.9, censored=censored)
        found = play_experiment(on_graph(method, batch, dictionary=dictionary))
        for r in (0, 1):
            given = *by_agent(found.world, r), neighbours(), LAM, 0.05, lambda k: 0.4 * 0.9**k, batch.rounds
            expected, sent = literal.coke(*given, measure)
            assert_close(found.theta[:, r], np.stack(expected), 1e-9, f"theta, {censored}")
            assert np.cumsum(found.ledger.tallies["broadcast"].by_round[:, r, 0]).tolist() == sent
            if censored == "norm":
                in_one_file, sent_there = script("coke").coke(*given)
                assert_close(in_one_file, np.stack(expected), 1e-9, "theta of the script")
                assert sent_there.tolist() == sent
            assert 0 < sent[-1] < K * batch.rounds, "the threshold censors some and not all"


@pytest.mark.parametrize(
    "method",
    [Dkla(lam=LAM, rho=0.03), Coke(lam=LAM, rho=0.03, v=0.5, mu=0.9), few_bits(Coke(lam=LAM, rho=0.03, v=0.0), 4)],
    ids=str,
)
def test_all_agents_converge_to_the_closed_form(method: Any) -> None:
    """Theorems 1 and 2, eq. (26); by differences of 4 bits too, which shrink: P of them, and one number in full."""
    found = play_experiment(on_graph(method, make_batch(iterations=1500)))
    optimum = found.world.loss.optimum(found.world.training, LAM)[:, None]
    assert np.abs(found.theta[-1] - optimum).max() < 1e-6
    judge = BatchJudge(found.world, LAM)
    judge.enter(0, theta := found.theta[0])
    judge.judge_pending()
    for name, middle in (("consensus_error", theta.mean(axis=1, keepdims=True)), ("distance", optimum)):
        assert judge.by_round[name][0] == pytest.approx(np.linalg.norm(theta - middle, axis=(1, 2)) / np.sqrt(K))
    if isinstance(method, WrappedGraph):
        sent = found.ledger.tallies["broadcast"].by_client[0, 0]
        assert sent.tolist() == [1500, 1500 * (P + 1), 1500 * (P * 4 // 8 + 8)]


class ReadsOthers(Dkla):
    """An agent that looks at all agents' theta."""

    def receive(self, *held: Any) -> tuple[Any, Array]:
        """A little of their mean, for which no message is sent."""
        own, theta = super().receive(*held)
        return own, theta + 1e-3 * theta.mean(axis=1, keepdims=True)


class Understated(PerClient):
    """A payload that says it is one number."""

    def wire_size(self, width: int) -> Booked:
        """Whatever it holds."""
        one = np.ones((len(self.values), 1), np.int64)
        return Booked(one, one * width)


class Understates(Cta):
    """An agent whose message is larger than it says."""

    def send(self, *held: Any) -> tuple[Any, Any, Any]:
        """The same, understated."""
        own, message, sends = super().send(*held)
        return own, replace(message, theta=Understated(message.theta.values)), sends


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (ReadsOthers(), "theta of agent 0 in round 1 differs if parties are alone: a party sees more than"),
        (Understates(), f"broadcast of round 1: {8 * K} bytes are booked, but {8 * K * P} were sent"),
    ],
    ids=str,
)
def test_agents_who_cheat_are_refused(method: Consensus, said: str) -> None:
    given = on_graph(method, make_batch())
    with pytest.raises(BrokenPromiseError, match=said):
        require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)


def test_logistic_steps_minimise_what_they_should() -> None:
    """Against scipy's minimiser of the first local problem, and the optimum of all against its own gradient."""
    batch = make_batch(classes=True, iterations=1)
    found = play_experiment(on_graph(Dkla(lam=LAM, rho=0.05, loss="logistic"), batch))
    theta, world = found.theta, found.world
    phi, y = by_agent(world, 0)
    degree = world.topology.degree
    for k in range(K):
        c = LAM / K + 0.05 * degree[k]

        def cost(theta: Array, k: int = k, c: float = c) -> float:
            return float(np.logaddexp(0, -y[k] * (phi[k] @ theta)).mean() + c * theta @ theta)

        assert theta[0, 0, k] == pytest.approx(minimize(cost, np.zeros(P), tol=1e-12).x, abs=1e-5)
    optimum = world.loss.optimum(world.training, LAM)
    everywhere = np.broadcast_to(optimum[:, None], (2, K, P))
    slope = world.loss.gradient(world.training, everywhere).sum(axis=1) + 2 * LAM * optimum
    assert np.abs(slope).max() < 1e-6


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.9))
def test_every_client_keeps_its_share_to_be_tested_on(seed: int, share: float) -> None:
    """Samples are disjoint, all are there, and cross-validation never touches what is to be tested on."""
    random = np.random.default_rng(seed)
    present = random.random((30, 3)) < 0.8
    size = present.sum(axis=0)
    assume((size - np.rint(share * size) > 1).all())  # a fold leaves a sample to learn from
    stream = Problem(np.arange(90.0).reshape(30, 3, 1), np.zeros((30, 3)), present, np.zeros(3, np.int64))

    def split(fold: int | None) -> Batch:
        return Batch.from_problem(stream, 1, share, fold, np.random.default_rng(seed))

    whole = split(None)
    assert sorted(whole.x[:, 0]) == sorted(stream.x[present][:, 0])
    assert (whole.x[:, 0] % 3 == whole.client).all()
    assert np.bincount(whole.part(False)[2], minlength=3).tolist() == np.rint(share * size).tolist()
    folds = [split(fold) for fold in range(5)]
    learned = set(whole.part(True)[0][:, 0])
    for fold in folds:
        assert set(fold.x[:, 0]) == learned
    validated = np.concatenate([fold.part(False)[0][:, 0] for fold in folds])
    assert sorted(validated) == sorted(learned)


def test_a_client_with_nothing_to_learn_from_is_refused() -> None:
    stream = Problem(np.zeros((2, 2, 1)), np.zeros((2, 2)), np.array([[1, 1], [1, 0]], bool), np.zeros(2, np.int64))
    with pytest.raises(FklError, match="no training sample"):
        Batch.from_problem(stream, 1, 0.6, None, np.random.default_rng(0))


# --- Agents on a graph that learn from streams: literals, limiting cases, what is conserved, the contract.

STREAM = Size(K=5, N=1, T=40)
OF_SAMPLE, ETA, RHO = 0.02, 0.3, 0.1


def on_streams(method: Any, size: Size = STREAM, graph: nx.Graph = GRAPH, absent: float = 0.0) -> Played:
    """Two replicates in float64."""
    return play_experiment(on_graph(method, make_problem(size, 0, absent), graph, make_dictionary(size)))


def features(world: World, r: int) -> Array:
    """Of one replicate's samples, (T, K, N, P), straight from the bank."""
    return np.stack([world.bank.features(x)[r].swapaxes(0, 1) for x in world.problem.x])


def rounded(change: Array) -> Array:
    """To the nearest of 15 steps over the vector's range, as four bits have them."""
    return Quantised.round_to_nearest(change[None, None], 4).values[0, 0]


CENSORED = QcOdkla(ETA, RHO, OF_SAMPLE, v=0.3, mu=0.97)


@pytest.mark.parametrize("how", ["odkla", "censored", "censored and few bits"])
def test_odkla_and_qc_odkla_are_their_literals(how: str) -> None:
    method: Any = Odkla(ETA, RHO, OF_SAMPLE) if how == "odkla" else CENSORED
    options: dict[str, Any] = {} if how == "odkla" else {"h": lambda t: 0.3 * 0.97**t}
    if "bits" in how:
        options["rounded"] = rounded
        method = wrap_method(method, {"compression": Uniform(bits=4, rounding="nearest")})
    found = on_streams(method)
    for r in (0, 1):
        samples = features(found.world, r)[:, :, 0], found.world.problem.y
        expected = odkla.odkla(*samples, neighbours(), OF_SAMPLE, 1 / ETA, RHO, **options)
        assert_close(found.stacked("y_hat")[r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.stacked("loss")[r, :, :, 0], expected.loss, 1e-9, "loss")
        own = found.own
        assert_close(getattr(own, "method", own).theta[r, :, 0], expected.theta, 1e-9, "theta")
        assert found.ledger.tallies["broadcast"].by_round[:, r, 0].tolist() == expected.sent
        assert how == "odkla" or 0 < sum(expected.sent) < STREAM.K * STREAM.T, "some are censored and not all"


def test_duals_sum_to_zero_and_silence_costs_no_more_than_the_threshold() -> None:
    """Over agents, in every round: also where some keep silent, send few bits, are absent, or links are down."""
    for method in (Odkla(ETA, RHO, OF_SAMPLE), CENSORED, wrap_method(CENSORED, {"compression": Uniform(bits=3)})):
        found = on_streams(method)
        for t, state in enumerate(found.states):
            own = getattr(state.own, "method", state.own)
            assert np.abs(own.gamma.sum(axis=1)).max() < 1e-12
            if method is CENSORED:
                assert np.linalg.norm(own.theta_hat - own.theta, axis=-1).max() <= 0.3 * 0.97 ** (t + 1)
    found = on_streams(Odkla(ETA, RHO, OF_SAMPLE), absent=0.3)
    assert max(np.abs(state.own.gamma.sum(axis=1)).max() for state in found.states) < 1e-12


def centred(log_w: Array) -> Array:
    """Logarithms of weights that sum to 1: what is added to all of an agent's does nothing."""
    return np.log(np.exp(log_w) / np.exp(log_w).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("graph", [GRAPH, nx.empty_graph(1)], ids=["agents", "alone"])
def test_domkl_is_its_literal(graph: nx.Graph) -> None:
    """Alone, it takes proximal steps, weighs kernels by their losses and says nothing."""
    size = replace(STREAM, N=3, K=len(graph))
    found = on_streams(Domkl(ETA, RHO, OF_SAMPLE, eta_k=0.7), size, graph)
    own = found.own
    for r in (0, 1):
        samples = features(found.world, r), found.world.problem.y
        expected = odkla.domkl(*samples, neighbours(graph), OF_SAMPLE, 1 / ETA, RHO, 0.7)
        assert_close(found.stacked("y_hat")[r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.stacked("loss")[r], expected.loss, 1e-9, "loss")
        assert_close(own.theta[r], expected.theta, 1e-9, "theta")
        assert_close(centred(own.log_w[r]), centred(expected.log_w), 1e-9, "log w")
    assert (found.ledger.tallies["broadcast"].by_round[..., 1] == size.K * (3 * 2 * size.D + 3)).all()
    assert found.ledger.tallies["link"].by_round.any() == (size.K > 1)


# --- DeKRR-DDRF: its literal, limiting cases, the joint optimum, what is chosen, and what crosses which link.

MANY, WIDTH, C = 40, 4, 1.5
COSINES = Dictionary(N=1, D=WIDTH, smallest=0.5, largest=0.5, bandwidth_convention="deviation", map="cosine")


def unlike_agents(clients: int = K, iterations: int = 25) -> Batch:
    """Make agents whose samples differ in where they lie, in what they say and in number."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (MANY, clients, 3)) + 0.3 * np.arange(clients)[:, None]
    y = np.sin(2 * x[..., 0]) + 0.2 * random.standard_normal((MANY, clients))
    stream = Problem(x, y, random.random((MANY, clients)) < 0.8, np.zeros(clients, np.int64))
    return DekrrDdrf(iterations=iterations).batch(stream, random)


def play_nodes(method: DekrrDdrf, batch: Batch, graph: nx.Graph = GRAPH) -> Played:
    """Two replicates in float64."""
    return play_experiment(on_graph(method, batch, graph, COSINES))


def samples_of(batch: Batch) -> tuple[list[Array], list[Array]]:
    """Each agent's own training samples."""
    x, y, client = batch.part(True)
    return [x[client == k] for k in range(batch.clients)], [y[client == k] for k in range(batch.clients)]


@pytest.mark.parametrize("penalty", ["equal", "by_samples"])
def test_dekrr_is_its_literal(penalty: str) -> None:
    batch = unlike_agents()
    found = play_nodes(DekrrDdrf(lam=LAM, c=C, penalty=penalty), batch)
    x, y = samples_of(batch)
    assert len({len(target) for target in y}) > 1, "some agents are padded"
    for r in (0, 1):
        features = list(found.own.omega[r]), list(found.own.phase[r])
        expected = dekrr.dekrr(x, y, neighbours(), *features, LAM, C, batch.rounds - 1, penalty)
        assert (found.theta[0, r] == 0).all()
        assert_close(found.theta[1:, r], np.array(expected), 1e-9, "theta")


def test_steps_descend_to_the_joint_minimum() -> None:
    """Every Jacobi step makes the sum less, and its end is where the gradient of all theta together is 0, to 1e-8."""
    batch = unlike_agents(iterations=3000)
    found = play_nodes(DekrrDdrf(lam=LAM, c=C), batch)
    x, y = samples_of(batch)
    features = list(found.own.omega[0]), list(found.own.phase[0])

    def value(theta: Array) -> float:
        return dekrr.objective(list(theta.reshape(K, WIDTH)), x, y, neighbours(), *features, LAM, C)

    values = [value(found.theta[t, 0]) for t in (0, 1, 2, 3, 5, 10, 30, 100)]
    assert (np.diff(values) < 0).all()
    # Of a quadratic function, differences are exact: the Hessian, and the gradient at 0.
    unit, at_0 = np.eye(K * WIDTH), value(np.zeros(K * WIDTH))
    alone = np.array([value(e) for e in unit])
    pairs = np.array([[value(a + b) for b in unit] for a in unit])
    hessian = pairs - alone[:, None] - alone + at_0
    gradient = np.array([(value(e) - value(-e)) / 2 for e in unit])
    assert_close(found.theta[-1, 0].ravel(), np.linalg.solve(hessian, -gradient), 1e-8, "theta")


@pytest.mark.parametrize("how", ["alone", "c=0"])
def test_without_others_it_is_ridge_on_its_own_features(how: str) -> None:
    """In the first step."""
    graph = nx.empty_graph(1) if how == "alone" else GRAPH
    batch = unlike_agents(len(graph), 3)
    found = play_nodes(DekrrDdrf(lam=LAM, c=C if how == "alone" else 0.0), batch, graph)
    x, y = samples_of(batch)
    for r in (0, 1):
        for k in range(len(graph)):
            z = np.sqrt(2 / WIDTH) * np.cos(x[k] @ found.own.omega[r, k] + found.own.phase[r, k])
            ridge = np.linalg.solve(z.T @ z + LAM * np.mean([*map(len, y)]) * np.eye(WIDTH), z.T @ y[k])
            assert_close(found.theta[1:, r, k], np.tile(ridge, (2, 1)), 1e-10, "theta")


def test_what_is_kept_is_what_the_data_choose() -> None:
    """The dekrr's choice among the same candidates, in its order; where as many are drawn as kept, all of them."""
    batch = unlike_agents(iterations=1)
    x, y = samples_of(batch)
    for candidates in (1, 6):
        found = play_nodes(DekrrDdrf(candidates=candidates), batch)
        many, everyone = candidates * WIDTH, range(K)
        uniform = found.world.streams.vectors(Role.OWN_FEATURES, 0, everyone, 3 * many)
        trial = 2 * np.pi * found.world.streams.vectors(Role.OWN_FEATURES, 0, everyone, many, 1)
        for r, k in np.ndindex(2, K):
            drawn = norm.ppf(uniform[r, k]).reshape(3, many) / 0.5  # of standard deviation 1 / sigma
            assert_close(found.own.omega[r, k], dekrr.chosen(drawn, trial[r, k], x[k], y[k], WIDTH), 1e-9, "omega")


def test_features_and_gram_matrices_cross_every_link_once() -> None:
    """Frequencies and phases, two matrices a link, and theta from then on: scalars by iteration."""
    batch = unlike_agents(iterations=5)
    found = play_nodes(DekrrDdrf(), batch)
    links, once = 2 * GRAPH.number_of_edges(), WIDTH * (WIDTH + 1) // 2 + WIDTH * WIDTH
    of_links = found.ledger.tallies["link"].by_round[:, 0, 1]
    assert of_links.tolist() == [links * (3 * WIDTH + WIDTH), links * once, *[links * WIDTH] * 3]
    assert found.ledger.tallies["broadcast"].by_round[:, 0, 1].tolist() == [
        K * 4 * WIDTH,
        links * once,
        *[K * WIDTH] * 3,
    ]
