"""CTA, DKLA and COKE: literal transcriptions, the closed form, limiting cases, cheats, and samples of a batch."""

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import decentralized as literal
from literal.worlds import assert_close, play_experiment
from numpy.typing import NDArray
from scipy.optimize import minimize

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Consensus, Cta, Dkla
from fkl.basics.arrays import Array
from fkl.basics.errors import BrokenPromiseError, FklError
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import WrappedGraph, wrap
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject
from fkl.data.problem import Batch, Problem
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.kernels.losses import LOSSES, Ridge, Rows
from fkl.network import Network
from fkl.network.topology import connected
from fkl.wire import Ledger
from fkl.wire.payloads import PerClient, Size

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

    def wire_size(self, width: int) -> Size:
        """Whatever it holds."""
        one = np.ones((len(self.values), 1), np.int64)
        return Size(one, one * width)


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


@given(st.integers(1, 30), st.floats(1e-3, 10), st.integers(0, 2**32 - 1))
def test_ridge_inverts_its_matrix(size: int, c: float, seed: int) -> None:
    """Both forms, the inverse and Woodbury's."""
    random = np.random.default_rng(seed)
    phi, v = random.standard_normal((2, 1, size, 12)), random.standard_normal((2, 1, 12))
    rows = Rows(phi, np.zeros((2, 1, size)), np.zeros((2, 1)), np.array([float(size)]))
    solved = Ridge.from_rows(rows, 2.0, np.array([c])).solve(v)
    back = 2 / size * np.einsum("rktp,rktq,rkq->rkp", phi, phi, solved) + 2 * c * solved
    assert back == pytest.approx(v, abs=1e-7)


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
