"""Links that lose messages, fail, wake up in pairs or come and go; agents that are away; the duals that bear it."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.lossy_admm import relaxed_admm
from literal.worlds import assert_close, by_agent, make_batch, neighbours, on_graph, play_experiment
from numpy.typing import NDArray

from fkl.algorithms.decentralized.coke import Coke
from fkl.algorithms.decentralized.consensus import Consensus, Cta, Dkla, LinkDkla
from fkl.basics.arrays import Array
from fkl.basics.random_streams import Role, Streams
from fkl.conformance.isolated import require_parties_agree
from fkl.conformance.party_process import PartyObject
from fkl.conformance.promises import require_same, trace_rounds
from fkl.engines.base import Experiment, make_world
from fkl.network import Network, Topology
from fkl.network.participation import Share
from fkl.network.topology import Failing, Gossip, Links, Mobility, topology_of_graph

K, LAM, RHO = 5, 1e-2, 0.05
NEVER = 1e-300
"""A probability that makes everything be drawn, and nothing happen."""


def experiment(
    method: Consensus,
    links: Links | None = None,
    loss: float = 0.0,
    iterations: int = 30,
    share: float | None = None,
    **times: float,
) -> Experiment:
    """Each agent takes part in an iteration with a probability of `share`."""
    batch = make_batch(iterations=iterations)
    if share is not None:
        batch = batch.thinned(Share(share).present(batch.present, np.random.default_rng(1)))
    return on_graph(method, batch, network=Network(loss=loss, **times), links=links)  # type: ignore[arg-type]


def from_optimum(
    method: Consensus, loss: float, iterations: int, links: Links | None = None, share: float | None = None
) -> Array:
    """Root mean square distance of the agents' theta from the optimum of all, over that of 0: (T, R)."""
    found = play_experiment(experiment(method, links, loss, iterations, share=share))
    optimum = found.world.loss.optimum(found.world.training, LAM)[:, None]
    distance: Array = np.sqrt(np.square(found.theta - optimum).sum(axis=-1).mean(axis=-1))
    return distance / np.linalg.norm(optimum[:, 0], axis=-1)


# --- duals on links


def test_without_loss_duals_on_links_are_dkla() -> None:
    """Whatever the degrees: theta of every iteration to 1e-9; twice DKLA's link messages of nothing, and as many."""
    dkla, links = (play_experiment(experiment(kind(lam=LAM, rho=RHO), iterations=60)) for kind in (Dkla, LinkDkla))
    assert_close(links.theta, dkla.theta, 1e-9, "theta")
    assert (links.ledger.tallies["link"].by_client == dkla.ledger.tallies["link"].by_client).all()
    one_each = dkla.ledger.tallies["broadcast"].by_client * dkla.world.topology.degree[:, None]
    of_links = links.ledger.tallies["broadcast"].by_client
    assert (of_links == one_each).all(), "a message of one link is no broadcast"


@pytest.mark.parametrize("links", [None, Failing(p=0.3)], ids=["lossy", "lossy and failing"])
def test_with_loss_it_is_the_literal(links: Links | None) -> None:
    loss, T = 0.3, 25
    found = play_experiment(experiment(LinkDkla(lam=LAM, rho=RHO), links, loss, T))
    world = found.world
    for r in (0, 1):
        passes = []
        for t in range(T):
            arrives = np.zeros((K, K), np.bool_)
            drawn = world.streams.uniform(Role.LOSS, t, len(world.topology.links))[r] >= loss
            up = np.ones_like(drawn) if links is None else links.links_up(world.streams, t, world.topology)[r]
            arrives[tuple(world.topology.links.T)] = drawn & up
            passes.append(arrives)
        expected = relaxed_admm(*by_agent(world, r), neighbours(), LAM, 2 * RHO, passes)
        assert_close(found.theta[:, r], np.stack(expected), 1e-9, "theta")


def test_loss_moves_the_fixed_point_of_dkla_and_not_that_of_duals_on_links() -> None:
    """Before: theta settles away from the optimum, the farther the more is lost. After: it goes there."""
    T = 600
    limits = [from_optimum(Dkla(lam=LAM, rho=RHO), loss, T) for loss in (0.0, 0.1, 0.4)]
    ends = [distance[-1].mean() for distance in limits]
    assert ends[0] < 1e-5
    assert 0.1 < ends[1] < ends[2]
    assert all(np.allclose(one[-1], one[-100], rtol=1e-6) for one in limits[1:]), "settled"
    mended = from_optimum(LinkDkla(lam=LAM, rho=RHO), 0.4, T)
    assert_falls(mended)
    assert mended[-1].max() < 1e-3 * ends[2]


def assert_falls(distance: Array) -> None:
    """By as much in the last third as in the one before, on a logarithmic scale: there is no floor in sight."""
    third = len(distance) // 3
    earlier, later = (np.log(distance[n * third] / distance[(n + 1) * third - 1]) for n in (1, 2))
    assert (later > 0.6 * earlier).all()
    assert (later > 0.7).all()


@pytest.mark.parametrize(
    ("method", "links"), [(LinkDkla(lam=LAM, rho=RHO), Gossip()), (Dkla(lam=LAM, rho=RHO), Failing(p=0.4))]
)
def test_links_that_fail_or_sleep_do_not_move_it_either(method: Consensus, links: Links) -> None:
    """Nor DKLA's, as both ends know that a link is down. Gossip is slower, as most agents sleep."""
    assert_falls(from_optimum(method, 0.0, 600, links))


# --- links that are not always up

METHODS = (Cta(lam=LAM), Dkla(lam=LAM, rho=RHO), Coke(lam=LAM, rho=RHO, v=0.3, mu=0.9), LinkDkla(lam=LAM, rho=RHO))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.label)
def test_limiting_cases_are_the_plain_run_bit_for_bit(method: Consensus) -> None:
    """Edges that never fail, a radius of the diagonal, agents always there and in time; also drawn link by link."""
    times = {"compute_s": 1.0, "compute_jitter": 0.5, "deadline_s": 1e6}
    others = [experiment(method, Failing(p=0.0)), experiment(method, Mobility(radius=2**0.5))]
    others += [experiment(method, share=1.0), experiment(method, **times)]  # type: ignore[arg-type]
    pairs = [(experiment(method), other) for other in others]
    pairs.append((experiment(method, loss=NEVER), experiment(method, Failing(p=NEVER), loss=NEVER)))
    for plain, other in pairs:
        require_same(trace_rounds(plain, (0, 1)), trace_rounds(other, (0, 1)), "in a limiting case")


@pytest.mark.parametrize(
    ("method", "links", "loss", "share"),
    [
        (METHODS[0], Failing(p=0.4), 0.2, None),
        (METHODS[1], Gossip(), 0.0, None),
        (METHODS[2], Mobility(radius=0.4, speed=0.1), 0.0, 0.7),
        (METHODS[3], None, 0.3, None),
        (METHODS[3], None, 0.0, 0.4),
    ],
)
def test_agents_alone_do_what_all_at_once_do(
    method: Consensus, links: Links | None, loss: float, share: float | None
) -> None:
    """Also what they hold of links that were down; and bytes that travel are bytes that are booked."""
    given = experiment(method, links, loss, iterations=8, share=share)
    require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)


STREAMS = Streams(3, (0, 1, 2))


def edges(topology: Topology, up: NDArray[np.bool_]) -> list[set[tuple[int, ...]]]:
    """The edges that are up, replicate by replicate; both directions must be."""
    found = []
    for one in up:
        both = {tuple(map(int, link)) for link in topology.links[one]}
        assert {(j, i) for i, j in both} == both
        found.append({tuple(sorted(edge)) for edge in both})
    return found


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 9), st.integers(0, 99), st.sampled_from((Failing(0.5), Gossip(), Gossip("edge"), Mobility(0.4, 0.1)))
)
def test_weights_of_the_links_that_are_up_are_doubly_stochastic(agents: int, t: int, links: Links) -> None:
    """Symmetric, not below 0, rows of sum 1, 0 between agents whose link is down; both ends agree what is up."""
    topology = topology_of_graph(nx.fast_gnp_random_graph(agents, 1.0 if agents < 4 else 0.8, seed=1))
    up = links.links_up(STREAMS, t, topology)
    awake = topology.knowledge_when_awake(up, up)
    found = edges(topology, awake.up)
    known = topology.neighbours
    own = np.broadcast_to(np.eye(agents), (3, agents, agents))
    matrix = known.mix(own[:, topology.links[:, 1]], own, awake)  # of unit vectors, the weights themselves
    for r, weights in enumerate(matrix):
        assert_close(weights, weights.T, 1e-15, "weights")
        assert_close(weights.sum(axis=1), np.ones(agents), 1e-14, "sums")
        assert weights.min() >= -1e-15
        graph = nx.empty_graph(agents)
        graph.add_edges_from(found[r])
        for i, j in nx.complete_graph(agents).edges:
            expected = 1 / (1 + max(graph.degree[i], graph.degree[j])) if graph.has_edge(i, j) else 0.0
            assert weights[i, j] == pytest.approx(expected, abs=1e-15)


def test_walkers_stay_in_the_square_and_go_on_straight() -> None:
    walk, agents = Mobility(radius=0.3, speed=0.03), 6
    places = np.stack([walk.agent_positions(STREAMS, t, agents) for t in range(200)])
    assert places.min() >= 0
    assert places.max() <= 1
    steps = np.linalg.norm(np.diff(places, axis=0), axis=-1)
    inside = (np.abs(places[:-1] - 0.5) < 0.46).all(axis=-1)
    assert_close(steps[inside], np.full(inside.sum(), 0.03), 1e-12, "a step")
    assert steps.max() <= 0.03 + 1e-12, "at a wall they turn"
    topology = topology_of_graph(nx.complete_graph(agents))
    up = walk.links_up(STREAMS, 7, topology)
    for r, one in enumerate(edges(topology, up)):
        near = {
            (i, j) for i in range(agents) for j in range(i) if np.linalg.norm(places[7, r, i] - places[7, r, j]) <= 0.3
        }
        assert one == {(j, i) for i, j in near}


def test_links_that_are_down_are_not_paid_for_and_lost_messages_are() -> None:
    """Messages on links that are up; a broadcast whoever hears it, unless nobody can; and the lost ones among these."""
    links, T = Gossip(awake="edge"), 20
    found = play_experiment(experiment(Dkla(lam=LAM, rho=RHO), links, 0.5, T))
    counts = {name: tally.by_round[..., 0] for name, tally in found.ledger.tallies.items()}
    assert (counts["link"] == 2).all()
    assert (counts["broadcast"] == 2).all()
    assert 0 < counts["lost"].sum() < counts["link"].sum()
    found = play_experiment(experiment(LinkDkla(lam=LAM, rho=RHO), Failing(p=0.5), 0.0, T))
    up = np.stack([Failing(p=0.5).links_up(found.world.streams, t, found.world.topology).sum(axis=1) for t in range(T)])
    of_links = found.ledger.tallies["link"].by_round
    assert (of_links[..., 0] == up).all()
    assert (of_links[..., 1] == up * 6).all()  # P = 6


# --- agents that are not there


@pytest.mark.parametrize(("method", "links"), [(METHODS[1], Failing(p=0.3)), (METHODS[2], Gossip())])
def test_duals_sum_to_zero_whoever_is_there(method: Consensus, links: Links | None) -> None:
    """After every iteration: both ends of a link move against each other, or neither does."""
    given = experiment(method, links, share=0.5, iterations=40)
    for state in play_experiment(given).states:
        gamma = state.own.gamma
        assert np.abs(gamma.sum(axis=1)).max() <= 1e-14 * max(np.abs(gamma).max(), 1.0)
    assert np.abs(gamma).max() > 1e-3


@pytest.mark.parametrize("method", METHODS[2:], ids=lambda method: method.label)
def test_absence_does_not_move_the_fixed_point(method: Consensus) -> None:
    """It goes on to the optimum of all, also of those who are away."""
    assert_falls(from_optimum(method, 0.0, 900, share=0.5))


def test_who_computes_too_long_is_not_there_and_seconds_are_the_critical_path() -> None:
    """The slowest of those who take part, or the deadline; then the slowest agent's messages, one after another."""
    times = {"compute_s": 1.0, "compute_jitter": 0.8, "latency_s": 0.1, "bandwidth_bytes_per_s": 480.0}
    given = experiment(Dkla(lam=LAM, rho=RHO), share=0.7, **times, deadline_s=1.2)  # type: ignore[arg-type]
    found = play_experiment(given)
    world, ledger = found.world, found.ledger
    drawn = given.network.times(30, K, Streams(0, (0,)).generators(Role.TIMES)[0]).compute
    taking = given.problem.present
    assert (world.problem.present == (taking & (drawn <= 1.2))).all()
    assert 0 < (taking & (drawn > 1.2)).sum() < taking.sum() / 2
    for t in range(30):
        links = world.topology.links[world.problem.present[t][world.topology.links].all(axis=1)]
        most = np.bincount(links[:, 1], minlength=K).max()
        computing = min(np.where(taking[t], drawn[t], 0).max(), 1.2)
        assert ledger.seconds[t] == pytest.approx([computing + most * (0.1 + 48 / 480.0)] * 2, rel=1e-12)
