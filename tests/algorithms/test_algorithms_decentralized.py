"""CTA, DKLA and COKE: literal transcriptions, the closed form, theory's directions, limiting cases, lost messages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import decentralized as literal
from literal.worlds import assert_close
from numpy.typing import NDArray
from scipy.optimize import minimize

from fkl.algorithms.base import World
from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Consensus, Cta, Dkla
from fkl.basics.arrays import Array
from fkl.basics.errors import BadValue, BrokenPromiseError, FklError
from fkl.basics.random_streams import Streams
from fkl.conditions.compression import Uniform
from fkl.conditions.wrapped import Held, WrappedGraph, wrap
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject
from fkl.contract.graph import Agents
from fkl.data.problem import Batch, Problem
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.kernels.losses import LOSSES, Ridge, Rows
from fkl.network import Network, Topology
from fkl.network.topology import connected
from fkl.wire import Ledger
from fkl.wire.channel import BETWEEN_PEERS
from fkl.wire.coded_payloads import Quantised
from fkl.wire.payloads import PerClient, Size

K, SIZE, D, LAM = 5, 14, 3, 1e-2
P = 2 * D
GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
DICTIONARY = Dictionary(N=1, D=D, smallest=1.0, largest=1.0)


THREE_CLASSES = Problem(np.zeros((3, 1, 1)), np.arange(3.0)[:, None], np.ones((3, 1), np.bool_), np.zeros(1, np.int64))


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
    world, ledger = make_world(given, (0, 1))
    state = given.algorithm.init(world)
    history = []
    for t in range(given.problem.rounds):
        world.channel.open_round(t, given.problem.present[t])
        state, theta = given.algorithm.step(world, state, t)
        history.append(np.array(theta))
    return np.stack(history), world, ledger


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


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_coke_without_threshold_is_dkla_bit_for_bit(loss: str) -> None:
    """Algorithm 2 with h = 0 is Algorithm 1."""
    batch = make_batch(classes=loss == "logistic")
    dkla, _, of_dkla = play(experiment(Dkla(rho=0.05, loss=loss), batch))
    coke, _, of_coke = play(experiment(Coke(rho=0.05, loss=loss, v=0.0), batch))
    assert dkla.tobytes() == coke.tobytes()
    for direction in BETWEEN_PEERS:
        assert (of_dkla.tallies[direction].by_client == of_coke.tallies[direction].by_client).all()


def distances(algorithm: Consensus, graph: nx.Graph, iterations: int) -> NDArray[np.float64]:
    """Distance of all agents' theta from the closed form, (T,), first replicate."""
    theta, world, _ = play(experiment(algorithm, make_batch(len(graph), iterations=iterations), graph))
    optimum = world.loss.optimum(world.training, algorithm.lam)
    return np.linalg.norm(theta[:, 0] - optimum[0], axis=(1, 2))


def decline(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of the second half of a way down to rounding."""
    seen = distance[: int(np.argmax(distance < 1e-9)) or len(distance)]
    return np.log(seen[len(seen) // 2 :])


def rate(distance: NDArray[np.float64]) -> float:
    """Factor an iteration of a line fitted to the logarithm."""
    half = decline(distance)
    return float(np.exp(np.polyfit(np.arange(len(half)), half, 1)[0]))


@pytest.mark.parametrize("method", [Dkla(lam=LAM, rho=0.03), Coke(lam=LAM, rho=0.03, v=0.5, mu=0.9)])
def test_linear_convergence_to_the_closed_form(method: Dkla) -> None:
    """Theorems 1 and 2: the logarithm of the distance to eq. (26) falls along a line, down to rounding."""
    distance = distances(method, GRAPH, 1500)
    assert distance[-1] < 1e-7 * distance[0]
    half = decline(distance)
    line = np.polyval(np.polyfit(np.arange(len(half)), half, 1), np.arange(len(half)))
    assert np.square(half - line).sum() < 0.02 * np.square(half - half.mean()).sum()
    assert rate(distance) < 1


RHOS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


def rates(graph: nx.Graph, rhos: Sequence[float]) -> list[float]:
    """Rates of DKLA for some rho."""
    return [rate(distances(Dkla(lam=LAM, rho=rho), graph, 1500)) for rho in rhos]


def test_a_rho_in_between_converges_fastest() -> None:
    """The direction of Theorem 4, whose delta_d is 0 at both ends of rho."""
    by_rho = rates(GRAPH, RHOS)
    best = by_rho.index(min(by_rho))
    assert 0 < best < len(RHOS) - 1
    assert by_rho[: best + 1] == sorted(by_rho[: best + 1], reverse=True)
    assert by_rho[best:] == sorted(by_rho[best:])


@pytest.mark.slow
def test_better_connected_graphs_converge_faster_each_at_its_best_rho() -> None:
    """The direction of Theorem 4 in the singular values of the incidence matrices."""
    graphs = (nx.path_graph(8), nx.cycle_graph(8), nx.circulant_graph(8, [1, 2]), nx.complete_graph(8))
    fastest = [min(rates(graph, np.geomspace(3e-3, 0.3, 5).tolist())) for graph in graphs]
    assert fastest == sorted(fastest, reverse=True)


class Constants(NamedTuple):
    """What the theorems' conditions and rates are made of."""

    m: float
    """Least strong convexity of the agents' costs."""
    M: float
    """Largest Lipschitz constant of their gradients."""
    largest: float
    """Square of the largest singular value of the unsigned incidence matrix, of every edge in both directions."""
    least: float
    """Square of the least singular value above 0 of the signed one."""


def constants() -> Constants:
    """Those of `make_batch` on GRAPH."""
    _, world, _ = play(experiment(Dkla(lam=LAM), make_batch(iterations=1)))
    hessians = [2 * phi.T @ phi / len(phi) + 2 * LAM / K * np.eye(P) for phi in by_agent(world, 0)[0]]
    curvatures = np.linalg.eigvalsh(np.stack(hessians))
    edges = list(GRAPH.edges)
    unsigned, signed = np.zeros((2, 2 * len(edges), K))
    for number, (i, j) in enumerate([*edges, *[edge[::-1] for edge in edges]]):
        unsigned[number, [i, j]] = 1
        signed[number, [i, j]] = 1, -1
    largest = np.linalg.svd(unsigned, compute_uv=False)[0] ** 2
    least = np.linalg.svd(signed, compute_uv=False)[-2] ** 2
    return Constants(curvatures.min(), curvatures.max(), largest, least)


def dkla_s_bound(rho: float) -> float:
    """(1 + delta_d)^(-1/2), delta_d of Shi et al. (2014), Theorem 1, at its best nu.

    COKE's text multiplies by the least singular value of S_- where its source divides by it.
    """
    m, M, largest, least = constants()
    nu = 1 + np.geomspace(1e-6, 1e6, 1000)
    second = m / (rho / 4 * largest + nu / rho * M**2 / least)
    delta = np.minimum((nu - 1) * least / (nu * largest), second).max()
    assert delta > 0
    return float((1 + delta) ** -0.5)


@pytest.mark.parametrize("rho", RHOS)
def test_theorem_4_bounds_the_rate(rho: float) -> None:
    """R-linear, no slower than eq. (31)."""
    assert rate(distances(Dkla(lam=LAM, rho=rho), GRAPH, 1500)) <= dkla_s_bound(rho)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("mu", [0.8, 0.97])
def test_theorem_5_coke_converges_linearly(rho: float, mu: float) -> None:
    """Theorem 5 prints no rate. For the square loss it follows from Theorem 4's: it is the larger of that and mu.

    An iteration is linear, contracts in the norm of eq. (30) by (1 + delta_d)^(-1/2), and what is censored, below
    v mu^k, enters linearly. The margin is for a sum of k such terms.
    """
    distance = distances(Coke(lam=LAM, rho=rho, v=0.5, mu=mu), GRAPH, 1500)
    bound = max(dkla_s_bound(rho), mu)
    k = np.arange(1, len(distance) + 1)
    assert bound < 1
    assert rate(distance) <= bound + 1e-3
    assert (distance[distance > 1e-9] <= 3 * distance[0] * (k * bound**k)[distance > 1e-9] + distance[0]).all()


@pytest.mark.parametrize("rho", [*RHOS, 1e-6, 1e6])
def test_theorem_2_s_condition_excludes_no_rho(rho: float) -> None:
    """Its constants are arbitrary, and for any rho there are some with which eq. (23) holds; the text does not say so.

    With eta_3 half of what makes the third bracket 0, the second bound grows with nu without end; eta_1 and eta_2
    then take the first and the third one above any rho.
    """
    m, M, largest, least = constants()
    nu = 2 + rho * m * largest / M**2
    eta_3 = m * least / (2 * nu * M**2)
    eta_1, eta_2 = m / (2 * rho), m / (2 * rho * largest)
    first = 4 * m / eta_1
    second = (nu - 1) * least / (nu * eta_3 * largest)
    third = (m - eta_3 * nu * M**2 / least) / (eta_1 / 4 + eta_2 * largest / 8)
    assert 0 < rho < min(first, second, third)


def least_features(kernel: Array, lam: float, epsilon: float, delta: float) -> int:
    """What Theorem 3 asks of L, for a kernel matrix (T, T)."""
    degrees_of_freedom = np.trace(kernel @ np.linalg.inv(kernel + lam * len(kernel) * np.eye(len(kernel))))
    return int(np.ceil((1 / epsilon**2 + 2 / (3 * epsilon)) / lam * np.log(16 * degrees_of_freedom / delta)))


def furthest(kernel: Array, phi: Array, lam: float) -> float:
    """Eq. (42): sup over |f|_H <= 1 of inf over theta of |f - Phi theta|^2 / T + lam |theta|^2.

    f = K^(1/2) u with |u| <= 1, and the infimum is lam f'(Phi Phi' / T + lam I)^(-1) f / T, so this is an eigenvalue.
    """
    values, vectors = np.linalg.eigh(kernel / len(kernel))
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    middle = np.linalg.inv(phi @ phi.T / len(phi) + lam * np.eye(len(phi)))
    return float(lam * np.linalg.eigvalsh(root @ middle @ root)[-1])


def test_theorem_3_s_number_of_features_is_enough() -> None:
    """Eq. (42) holds with probability 1 - delta_p at that number, and not of a few features.

    By it the tables' 100 features of lambda = 1e-3 are too few for any data: it asks for at least 4600.
    """
    lam, delta, draws = 0.05, 0.2, 20
    x = np.random.default_rng(0).uniform(-2, 2, (120, 2))
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=-1) / 2)
    assert lam < np.linalg.eigvalsh(kernel)[-1] / len(x), "as the theorem has it"
    enough = least_features(kernel, lam, 0.9, delta)

    def share_too_far(features: int) -> float:
        bank = replace(DICTIONARY, D=features, bandwidth_convention="deviation").bank(
            2, Streams(0, tuple(range(draws))), "float64"
        )
        return float(np.mean([furthest(kernel, phi, lam) > 2 * lam for phi in bank.features(x)[:, 0]]))

    assert share_too_far(enough) <= delta
    assert share_too_far(2) > 0.5
    assert least_features(np.ones((2, 2)), 1e-3, 1 - 1e-12, 1 - 1e-12) > 4600


@pytest.mark.parametrize("method", [Cta(), Dkla(), Coke(v=0.2), few_bits(Coke(v=0.2), 6)])
@given(order=st.permutations(range(K)))
def test_relabelling_agents_permutes_the_result(method: Consensus, order: list[int]) -> None:
    batch = make_batch(iterations=12)
    place = np.argsort(order)  # agent order[i] becomes agent i
    by_new = np.argsort(place[batch.client], kind="stable")
    renamed = replace(
        batch,
        x=batch.x[by_new],
        y=batch.y[by_new],
        client=place[batch.client][by_new],
        training=batch.training[by_new],
    )
    graph = nx.relabel_nodes(GRAPH, dict(enumerate(place.tolist())))
    theta, _, _ = play(experiment(method, batch))
    permuted, _, _ = play(experiment(method, renamed, graph))
    assert_close(permuted, theta[:, :, order], 1e-9, "theta")


@pytest.mark.parametrize("method", [Cta(lam=LAM), Dkla(lam=LAM, rho=0.05), Coke(lam=LAM, rho=0.05, v=0.1)])
def test_lost_messages_are_counted_and_degrade_gracefully(method: Consensus) -> None:
    """The share p of what the links carry is lost; for it the error moves a little from where it was towards theta = 0.

    All agents' own training samples; how much is what was seen with these data, with a margin of a third.
    """
    batch = make_batch(iterations=400)
    errors = []
    for loss in (0.0, 0.05, 0.2):
        theta, world, ledger = play(experiment(method, batch, network=Network(loss=loss)))
        rows = world.training

        def error(theta: Array, rows: Rows = rows) -> float:
            return float(LOSSES["square"].measures(rows, rows.predict(theta[..., None]))["mse"].sum())

        errors.append(error(theta[-1]))
        sent = ledger.tallies["link"].by_client[..., 0].sum()
        assert sent == (ledger.tallies["broadcast"].by_client[..., 0] * world.topology.degree).sum()
        assert (ledger.tallies["lost"].by_client[..., 0].sum() if loss else 0) / sent == pytest.approx(loss, rel=0.15)
        assert np.abs(theta[-1] - theta[-20]).max() < 0.05 * np.abs(theta[-1]).max(), "settles"
    room = error(np.zeros_like(theta[-1])) - errors[0]
    assert errors == sorted(errors)
    assert errors[1] - errors[0] < 0.05 * room
    assert errors[2] - errors[0] < 0.1 * room


def test_messages_that_arrive_are_heard_as_on_a_perfect_network() -> None:
    """A network that could lose messages, but loses none, gives the same numbers."""
    batch = make_batch()
    for method in (Cta(), Dkla(), Coke(v=0.2)):
        perfect, _, _ = play(experiment(method, batch))
        lucky, _, ledger = play(experiment(method, batch, network=Network(loss=1e-12)))
        assert_close(lucky, perfect, 1e-12, method.label)
        assert ledger.tallies["lost"].by_client.sum() == 0


METHODS = (
    Cta(lam=LAM),
    Dkla(lam=LAM, rho=0.05),
    Coke(lam=LAM, rho=0.05, v=0.4, mu=0.9),
    few_bits(Coke(lam=LAM, rho=0.05, v=0.4, mu=0.9), 5),
)


@pytest.mark.parametrize("graph", [GRAPH, nx.empty_graph(1), nx.star_graph(3)], ids=["graph", "one agent", "star"])
@pytest.mark.parametrize("loss", [0.0, 0.3])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_agents_alone_do_what_all_at_once_do(method: Consensus, loss: float, graph: nx.Graph) -> None:
    """Each with its own samples, inbox and neighbours' degrees, to 1e-9; bytes on the wire are those in the ledger."""
    if isinstance(method, WrappedGraph) and loss:
        return  # is refused
    given = experiment(method, make_batch(len(graph)), graph, network=Network(loss=loss))
    require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)


@pytest.mark.parametrize("method", [Dkla(loss="logistic"), few_bits(Coke(loss="logistic", v=0.3), 3)], ids=str)
def test_agents_alone_find_the_same_logistic_minimum(method: Consensus) -> None:
    given = experiment(method, make_batch(classes=True))
    require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)


class ReadsOthers(Dkla):
    """An agent that looks at all agents' theta."""

    def receive(self, *held: Any) -> tuple[Any, Array]:
        """A little of their mean, for which no message is sent."""
        own, theta = super().receive(*held)
        return own, theta + 1e-3 * theta.mean(axis=1, keepdims=True)


class LooksBeyond(Cta):
    """An agent that knows the whole graph."""

    def receive(self, common: Any, own: Any, inbox: Any, *held: Any) -> tuple[Any, Array]:
        """A little of how many edges it has."""
        own, theta = super().receive(common, own, inbox, *held)
        return own, theta + 1e-3 * inbox.graph.edges


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
        (
            LooksBeyond(),
            "an agent, alone with messages, cannot receive: .*, line .*: AttributeError: .* no attribute 'edges'",
        ),
        (Understates(), f"broadcast of round 1: {8 * K} bytes are booked and {8 * K * P} sent"),
    ],
    ids=str,
)
def test_agents_who_cheat_are_refused(method: Consensus, said: str) -> None:
    given = experiment(method, make_batch())
    with pytest.raises(BrokenPromiseError, match=said):
        require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_state_is_vectors_and_nothing_that_can_be_derived(method: Consensus) -> None:
    """Theta, gamma, theta_hat and the inbox: one vector an agent each."""
    world, _ = make_world(experiment(method, make_batch()), (0, 1))
    state = method.init(world)
    world.channel.open_round(0, np.ones(K, np.bool_))
    state, _ = method.step(world, state, 0)
    assert isinstance(state, Agents)
    own, remembered = state.own, []
    if isinstance(own, Held):
        own, remembered = own.method, list(own.memory.held.values())
    held = [*vars(own).values(), *remembered, *state.held.values()]
    assert [vectors.shape for vectors in held] == [(2, K, P)] * len(held)


@given(st.integers(2, 16), st.integers(0, 2**32 - 1))
def test_quantization_is_within_half_a_step_and_keeps_the_range(bits: int, seed: int) -> None:
    xi = np.random.default_rng(seed).standard_normal((2, 3, 7))
    steps = 2 ** (bits - 1) - 1
    largest = np.abs(xi).max(axis=-1, keepdims=True)
    rounded = Quantised.nearest(xi, bits).values
    assert (np.abs(rounded - xi) <= largest / steps / 2 * (1 + 1e-9)).all()
    assert np.abs(rounded).max(axis=-1, keepdims=True) == pytest.approx(largest)
    assert all(len(np.unique(vector)) <= 2**bits - 1 for vector in rounded.reshape(-1, 7))
    assert (Quantised.nearest(np.zeros((1, 1, 4)), bits).values == 0).all()


@pytest.mark.parametrize("method", [Coke(lam=LAM, rho=0.03, v=0.0), Dkla(lam=LAM, rho=0.03)], ids=str)
def test_quantized_messages_converge_and_are_counted_in_bits(method: Consensus) -> None:
    """P scalars of b bits and one in full: the differences shrink, so even 4 bits lead to the optimum."""
    batch = make_batch(iterations=1500)
    method = few_bits(method, 4)
    theta, world, ledger = play(experiment(method, batch))
    optimum = world.loss.optimum(world.training, LAM)[:, None]
    assert np.abs(theta[-1] - optimum).max() < 1e-6
    sent = ledger.tallies["broadcast"].by_client[0, 0]
    assert sent.tolist() == [1500, 1500 * (P + 1), 1500 * (P * 4 // 8 + 8)]


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


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Dkla(rho=0.0), "rho"),
        (lambda: Dkla(lam=0.0), "lam"),
        (lambda: Dkla(iterations=0), "iterations"),
        (lambda: Dkla(test_share=1.0), "test_share"),
        (lambda: Dkla(fold=5), "fold"),
        (lambda: Dkla(loss="hinge"), "loss"),
        (lambda: Coke(v=-1.0), "v"),
        (lambda: Coke(mu=0.0), "mu"),
        (lambda: Coke(mu=1.1), "mu"),
        (lambda: Coke(censored="always"), "censored"),
        (lambda: Cta(eta=0.0), "eta"),
        (lambda: Network(loss=1.0), "loss"),
        (lambda: wrap(Coke(), {"compression": Uniform(bits=4)}, loss=0.1), "network.loss"),
        (lambda: play(experiment(Dkla(), make_batch(), dictionary=Dictionary(N=2, D=2))), "kernels.N"),
        (lambda: Dkla(loss="logistic").batch(THREE_CLASSES, np.random.default_rng(0)), "loss"),
    ],
)  # fmt: skip
def test_bad_values_are_named(make: Any, key: str) -> None:
    with pytest.raises(BadValue) as error:
        make()
    assert error.value.key == key


def test_a_client_with_nothing_to_learn_from_is_refused() -> None:
    stream = Problem(np.zeros((2, 2, 1)), np.zeros((2, 2)), np.array([[1, 1], [1, 0]], bool), np.zeros(2, np.int64))
    with pytest.raises(FklError, match="no sample to learn from"):
        Batch.from_problem(stream, 1, 0.6, None, np.random.default_rng(0))


def test_a_budget_holds_for_broadcasts() -> None:
    with pytest.raises(FklError, match=f"network.uplink_budget={P - 1}: DKLA sends {P} scalars"):
        play(experiment(Dkla(), make_batch(), network=Network(uplink_budget=P - 1)))


def test_topology_counts_links() -> None:
    topology: Topology = connected(GRAPH)
    _, _, ledger = play(experiment(Dkla(), make_batch(iterations=2)))
    per_agent = ledger.tallies["link"].by_client[0]
    assert per_agent[:, 0].tolist() == (2 * topology.degree).tolist()
    assert (per_agent[:, 1] == per_agent[:, 0] * P).all()
    assert (per_agent[:, 2] == per_agent[:, 1] * 8).all()
