"""CTA, DKLA and COKE: literal transcriptions, the closed form, limiting cases, cheats, and samples of a batch."""

from dataclasses import replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import decentralized as literal
from literal import dekrr, odkla
from literal.worlds import Played, Size, assert_close, make_dictionary, make_problem, play_experiment
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Consensus, Cta, Dkla
from fkl.algorithms.decentralized.dekrr_ddrf import DekrrDdrf
from fkl.algorithms.decentralized.odkla import Domkl, Odkla, QcOdkla
from fkl.basics.arrays import Array
from fkl.basics.errors import BadValue, BrokenPromiseError, FklError
from fkl.basics.random_streams import Role
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import WrappedGraph, wrap
from fkl.conformance import scenario
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject
from fkl.data.problem import Batch, Problem
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.kernels.losses import LOSSES, Rows
from fkl.network import Network
from fkl.network.topology import connected
from fkl.runs.prepare import prepare
from fkl.wire import Ledger
from fkl.wire.coded_payloads import Quantised
from fkl.wire.payloads import PerClient
from fkl.wire.payloads import Size as Booked

K, SIZE, D, LAM = 5, 14, 3, 1e-2
P = 2 * D
GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
DICTIONARY = Dictionary(N=1, D=D, smallest=1.0, largest=1.0)


def make_batch(clients: int = K, size: int = SIZE, iterations: int = 30, seed: int = 0, classes: bool = False) -> Batch:
    """Make samples whose targets depend on the client as well as on the sample; a third of them only tested on."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (size, clients, 2))
    y = np.sin(3 * x[..., 0]) + random.standard_normal(clients) + 0.1 * random.standard_normal((size, clients))
    present = random.random((size, clients)) < 0.9
    stream = Problem(x, np.where(y > y.mean(), 1.0, 0.0) if classes else y, present, np.zeros(clients, np.int64))
    method = Dkla(iterations=iterations, test_share=1 / 3, loss="logistic" if classes else "square")
    return method.batch(stream, random)


def experiment(
    algorithm: Consensus,
    batch: Batch,
    graph: nx.Graph = GRAPH,
    dictionary: Dictionary = DICTIONARY,
    network: Network | None = None,
) -> Experiment:
    """Two replicates in float64."""
    return Experiment(batch, dictionary, network or Network(), algorithm, 0, 2, "float64", connected(graph))


def few_bits(method: Consensus, bits: int) -> Any:
    """The method whose agents send differences in so many bits."""
    return wrap(method, {"compression": Uniform(bits=bits, rounding="nearest")})


def play(given: Experiment) -> tuple[NDArray[np.float64], World, Ledger]:
    """Run all iterations: theta (T, R, K, P)."""
    found = play_experiment(given)
    return np.stack(found.outcomes), found.world, found.ledger


def by_agent(world: World, r: int) -> tuple[list[Array], list[Array]]:
    """Each agent's own features and targets, straight from the bank."""
    x, y, client = world.problem.part(True)
    phi = world.bank.features(x)[r, 0]
    return [phi[client == k] for k in range(world.problem.clients)], [
        y[client == k] for k in range(world.problem.clients)
    ]


def neighbours(graph: nx.Graph) -> list[list[int]]:
    """List every agent's neighbours."""
    return [sorted(graph[k]) for k in range(len(graph))]


# Few features and so many rows that they are compressed; many features, so that Woodbury's formula serves.
@pytest.mark.parametrize("features", [D, 40])
def test_dkla_and_coke_are_their_literals(features: int) -> None:
    dictionary = replace(DICTIONARY, D=features)
    batch = make_batch(size=SIZE * 3 if features == D else SIZE)
    dkla, world, ledger = play(experiment(Dkla(lam=LAM, rho=0.05), batch, dictionary=dictionary))
    for r in (0, 1):
        expected = literal.dkla(*by_agent(world, r), neighbours(GRAPH), LAM, 0.05, batch.rounds)
        assert_close(dkla[:, r], np.stack(expected), 1e-9, "theta")
    assert (ledger.tallies["broadcast"].by_round[..., 0] == K).all()
    for censored, measure in {
        "norm": lambda xi, _: np.linalg.norm(xi),
        "squared_norm": lambda xi, _: xi @ xi,
        "relative_norm": lambda xi, hat: np.linalg.norm(xi) / max(np.linalg.norm(hat), 1e-300),
    }.items():
        method = Coke(lam=LAM, rho=0.05, v=0.4, mu=0.9, censored=censored)
        coke, world, ledger = play(experiment(method, batch, dictionary=dictionary))
        for r in (0, 1):
            phi, y = by_agent(world, r)
            expected, sent = literal.coke(
                phi, y, neighbours(GRAPH), LAM, 0.05, lambda k: 0.4 * 0.9**k, batch.rounds, measure
            )
            assert_close(coke[:, r], np.stack(expected), 1e-9, f"theta, {censored}")
            assert np.cumsum(ledger.tallies["broadcast"].by_round[:, r, 0]).tolist() == sent
            assert 0 < sent[-1] < K * batch.rounds, "the threshold censors some and not all"


def test_cta_is_its_literal() -> None:
    batch = make_batch()
    theta, world, ledger = play(experiment(Cta(lam=LAM, eta=0.5), batch))
    for r in (0, 1):
        expected = literal.cta(*by_agent(world, r), neighbours(GRAPH), LAM, 0.5, batch.rounds)
        assert_close(theta[:, r], np.stack(expected), 1e-9, "theta")
    assert (ledger.tallies["broadcast"].by_round[..., 0] == K).all()


@pytest.mark.parametrize(
    "method",
    [Dkla(lam=LAM, rho=0.03), Coke(lam=LAM, rho=0.03, v=0.5, mu=0.9), few_bits(Coke(lam=LAM, rho=0.03, v=0.0), 4)],
    ids=str,
)
def test_all_agents_converge_to_the_closed_form(method: Any) -> None:
    """Theorems 1 and 2, eq. (26); by differences of 4 bits too, which shrink: P of them, and one number in full."""
    theta, world, ledger = play(experiment(method, make_batch(iterations=1500)))
    optimum = world.loss.optimum(world.training, LAM)[:, None]
    assert np.abs(theta[-1] - optimum).max() < 1e-6
    if isinstance(method, WrappedGraph):
        sent = ledger.tallies["broadcast"].by_client[0, 0]
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
        (ReadsOthers(), "theta of agent 0 in round 1 is another alone: a party sees more than"),
        (Understates(), f"broadcast of round 1: {8 * K} bytes are booked and {8 * K * P} sent"),
    ],
    ids=str,
)
def test_agents_who_cheat_are_refused(method: Consensus, said: str) -> None:
    given = experiment(method, make_batch())
    with pytest.raises(BrokenPromiseError, match=said):
        require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)


def test_logistic_steps_minimise_what_they_should() -> None:
    """Against scipy's minimiser of the first local problem, and the optimum of all against its own gradient."""
    batch = make_batch(classes=True, iterations=1)
    theta, world, _ = play(experiment(Dkla(lam=LAM, rho=0.05, loss="logistic"), batch))
    phi, y = by_agent(world, 0)
    degree = world.topology.degree
    for k in range(K):
        c = LAM / K + 0.05 * degree[k]

        def cost(theta: Array, k: int = k, c: float = c) -> float:
            return float(np.logaddexp(0, -y[k] * (phi[k] @ theta)).mean() + c * theta @ theta)

        found = minimize(cost, np.zeros(P), tol=1e-12)
        assert theta[0, 0, k] == pytest.approx(found.x, abs=1e-5)
    optimum = world.loss.optimum(world.training, LAM)
    everywhere = np.broadcast_to(optimum[:, None], (2, K, P))
    slope = world.loss.gradient(world.training, everywhere).sum(axis=1) + 2 * LAM * optimum
    assert np.abs(slope).max() < 1e-6


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_compressed_rows_lose_nothing_of_a_squared_error(size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y, count = random.standard_normal((size + 2, 2)), random.standard_normal(size + 2), np.array([size, 2])
    world, _ = make_world(experiment(Dkla(), make_batch()), (0, 1))
    full, less = (Rows.from_samples(world.bank, x, y, count, compressed) for compressed in (False, True))
    assert less.phi.shape[2] <= P
    theta = random.standard_normal((2, 2, P, 3))
    square = LOSSES["square"]
    expected = square.measures(full, full.predict(theta))["mse"]
    assert square.measures(less, less.predict(theta))["mse"] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert square.gradient(less, theta[..., 0]) == pytest.approx(square.gradient(full, theta[..., 0]), abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.9))
def test_every_client_keeps_its_share_to_be_tested_on(seed: int, share: float) -> None:
    """Samples are disjoint, all are there, and cross-validation never touches what is to be tested on."""
    random = np.random.default_rng(seed)
    present = random.random((30, 3)) < 0.8
    stream = Problem(np.arange(90.0).reshape(30, 3, 1), np.zeros((30, 3)), present, np.zeros(3, np.int64))

    def split(fold: int | None) -> Batch:
        return Batch.from_problem(stream, 1, share, fold, np.random.default_rng(seed))

    whole = split(None)
    assert sorted(whole.x[:, 0]) == sorted(stream.x[present][:, 0])
    assert (whole.x[:, 0] % 3 == whole.client).all()
    size = present.sum(axis=0)
    assert np.bincount(whole.part(False)[2], minlength=3).tolist() == np.rint(share * size).tolist()
    folds = [split(fold) for fold in range(5)]
    learned = set(whole.part(True)[0][:, 0])
    for fold in folds:
        assert set(fold.x[:, 0]) == learned
    validated = np.concatenate([fold.part(False)[0][:, 0] for fold in folds])
    assert sorted(validated) == sorted(learned)


def test_a_client_with_nothing_to_learn_from_is_refused() -> None:
    stream = Problem(np.zeros((2, 2, 1)), np.zeros((2, 2)), np.array([[1, 1], [1, 0]], bool), np.zeros(2, np.int64))
    with pytest.raises(FklError, match="no sample to learn from"):
        Batch.from_problem(stream, 1, 0.6, None, np.random.default_rng(0))


# --- Agents on a graph that learn from streams: literals, limiting cases, what is conserved, the contract.

STREAM = Size(K=5, N=1, T=40)
NEIGHBOURS = [sorted(GRAPH[k]) for k in range(len(GRAPH))]
OF_SAMPLE, ETA, RHO = 0.02, 0.3, 0.1


def on_streams(method: Any, problem: Problem | None = None, size: Size = STREAM, graph: nx.Graph = GRAPH) -> Played:
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


CENSORED = QcOdkla(ETA, RHO, OF_SAMPLE, v=0.3, mu=0.97)


@pytest.mark.parametrize("how", ["odkla", "censored", "censored and few bits"])
def test_odkla_and_qc_odkla_are_their_literals(how: str) -> None:
    method: Any = Odkla(ETA, RHO, OF_SAMPLE) if how == "odkla" else CENSORED
    options: dict[str, Any] = {} if how == "odkla" else {"h": lambda t: 0.3 * 0.97**t}
    if "bits" in how:
        options["rounded"] = rounded
        method = wrap(method, {"compression": Uniform(bits=4, rounding="nearest")})
    found = on_streams(method)
    for r in (0, 1):
        expected = odkla.odkla(
            features(found.world, r)[:, :, 0], found.world.problem.y, NEIGHBOURS, OF_SAMPLE, 1 / ETA, RHO, **options
        )
        assert_close(found.stacked("y_hat")[r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.stacked("loss")[r, :, :, 0], expected.loss, 1e-9, "loss")
        own = found.states[-1].own
        assert_close(getattr(own, "method", own).theta[r, :, 0], expected.theta, 1e-9, "theta")
        assert found.ledger.tallies["broadcast"].by_round[:, r, 0].tolist() == expected.sent
        assert how == "odkla" or 0 < sum(expected.sent) < STREAM.K * STREAM.T, "some are censored and not all"


def test_domkl_alone_takes_proximal_steps_and_hedges() -> None:
    """Without neighbours: theta = argmin L_t + |theta - theta_t|^2 / (2 eta), w = exp(-eta_k sum of losses)."""
    size, graph = replace(STREAM, K=1, N=3), nx.empty_graph(1)
    found = on_streams(Domkl(ETA, RHO, OF_SAMPLE, 0.7), size=size, graph=graph)
    expected = odkla.domkl(features(found.world, 0), found.world.problem.y, [[]], OF_SAMPLE, 1 / ETA, RHO, 0.7)
    assert_close(found.stacked("y_hat")[0], expected.y_hat, 1e-9, "y_hat")
    hedge = centred(-0.7 * found.stacked("loss")[0, :, 0].sum(axis=0))
    assert_close(centred(found.states[-1].own.log_w[0, 0]), hedge, 1e-9, "log w")
    assert found.ledger.tallies["link"].by_round.sum() == 0


def test_duals_sum_to_zero_and_silence_costs_no_more_than_the_threshold() -> None:
    """Over agents, in every round: also where some keep silent, send few bits, are absent, or links are down."""
    for method in (Odkla(ETA, RHO, OF_SAMPLE), CENSORED, wrap(CENSORED, {"compression": Uniform(bits=3)})):
        found = on_streams(method)
        for t, state in enumerate(found.states):
            own = getattr(state.own, "method", state.own)
            assert np.abs(own.gamma.sum(axis=1)).max() < 1e-12
            if method is CENSORED:
                assert np.linalg.norm(own.theta_hat - own.theta, axis=-1).max() <= 0.3 * 0.97 ** (t + 1)
    found = on_streams(Odkla(ETA, RHO, OF_SAMPLE), make_problem(STREAM, 0, absent=0.3))
    assert max(np.abs(state.own.gamma.sum(axis=1)).max() for state in found.states) < 1e-12


def centred(log_w: Array) -> Array:
    """Logarithms of weights that sum to 1: what is added to all of an agent's does nothing."""
    return np.log(np.exp(log_w) / np.exp(log_w).sum(axis=-1, keepdims=True))


def test_domkl_is_its_literal() -> None:
    size = replace(STREAM, N=3)
    found = on_streams(Domkl(ETA, RHO, OF_SAMPLE, eta_k=0.7), size=size)
    for r in (0, 1):
        z = features(found.world, r)
        expected = odkla.domkl(z, found.world.problem.y, NEIGHBOURS, OF_SAMPLE, 1 / ETA, RHO, 0.7)
        assert_close(found.stacked("y_hat")[r], expected.y_hat, 1e-9, "y_hat")
        assert_close(found.stacked("loss")[r], expected.loss, 1e-9, "loss")
        own = found.states[-1].own
        assert_close(own.theta[r], expected.theta, 1e-9, "theta")
        assert_close(centred(own.log_w[r]), centred(expected.log_w), 1e-9, "log w")
    scalars = STREAM.K * (3 * 2 * size.D + 3)
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
def test_what_agents_on_streams_cannot_do_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadValue, match=said.replace("(", r"\(")) as error:
        experiment = prepare(scenario(*words))
        experiment.algorithm.init(make_world(experiment, (0,))[0])
    assert "\n" not in str(error.value)


# --- DeKRR-DDRF: its literal, limiting cases, the joint optimum, what is chosen, and what crosses which link.

MANY, WIDTH, C = 40, 4, 1.5
COSINES = Dictionary(N=1, D=WIDTH, smallest=0.5, largest=0.5, bandwidth_convention="deviation", map="cosine")


class Nodes(NamedTuple):
    """Theta (T, R, K, WIDTH) of all iterations, and what the last one left."""

    theta: Array
    own: Any
    world: World
    ledger: Ledger


def unlike_agents(clients: int = K, iterations: int = 25) -> Batch:
    """Make agents whose samples differ in where they lie, in what they say and in number."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (MANY, clients, 3)) + 0.3 * np.arange(clients)[:, None]
    y = np.sin(2 * x[..., 0]) + 0.2 * random.standard_normal((MANY, clients))
    stream = Problem(x, y, random.random((MANY, clients)) < 0.8, np.zeros(clients, np.int64))
    return DekrrDdrf(iterations=iterations).batch(stream, random)


def play_nodes(method: DekrrDdrf, batch: Batch, graph: nx.Graph = GRAPH) -> Nodes:
    """Two replicates in float64."""
    found = play_experiment(Experiment(batch, COSINES, Network(), method, 0, 2, "float64", connected(graph)))
    return Nodes(found.stacked("theta", 0), found.states[-1].own, found.world, found.ledger)


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
        expected = dekrr.dekrr(x, y, neighbours(GRAPH), *features, LAM, C, batch.rounds - 1, penalty)
        assert (found.theta[0, r] == 0).all()
        assert_close(found.theta[1:, r], np.array(expected), 1e-9, "theta")


def test_steps_descend_to_the_joint_minimum() -> None:
    """Every Jacobi step makes the sum less, and its end is where the gradient of all theta together is 0, to 1e-8."""
    batch = unlike_agents(iterations=3000)
    found = play_nodes(DekrrDdrf(lam=LAM, c=C), batch)
    x, y = samples_of(batch)
    features = list(found.own.omega[0]), list(found.own.phase[0])

    def value(theta: Array) -> float:
        return dekrr.objective(list(theta.reshape(K, WIDTH)), x, y, neighbours(GRAPH), *features, LAM, C)

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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("network.loss=0.1",), "loss=0.1: must be 0 for DeKRR-DDRF"),
        (("participation=share",), "participation=Share: must be null for DeKRR-DDRF, whose rounds no client can miss"),
        (("privacy=local", "privacy.clip=1"), "privacy=Local: must be null for DeKRR-DDRF"),
        (("kernels.draw=orthogonal",), "draw=orthogonal: must be iid for DeKRR-DDRF"),
        (("kernels.map=pairs",), "kernels.map=pairs: must be cosine for DeKRR-DDRF"),
        (("topology=directed",), "both ways for DeKRR-DDRF"),
    ],
    ids=str,
)
def test_what_dekrr_cannot_do_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadValue, match=said) as error:
        experiment = prepare(scenario("algo=dekrr_ddrf", *words))
        experiment.algorithm.init(make_world(experiment, (0,))[0])
    assert "\n" not in str(error.value)
