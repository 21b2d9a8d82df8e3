"""Small random worlds, and running a method of fkl through all their rounds."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from literal.common import Array, Arrays, Data, Run

from fkl.algorithms.base import Algorithm, World
from fkl.algorithms.decentralized.consensus import Dkla
from fkl.basics.random_streams import Role, Streams
from fkl.data.problem import Batch, Problem
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.network.topology import topology_of_graph
from fkl.wire import Channel, Ledger

GRAPH = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)])
ONE_KERNEL = Dictionary(N=1, D=3, smallest=1.0, largest=1.0)


ONE_FILE = Path(__file__).resolve().parents[2] / "examples" / "one_file"


def script(name: str) -> Any:
    """A paper's method in one file, as a module."""
    spec = spec_from_file_location(f"one_file_{name}", ONE_FILE / f"{name}.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def neighbours(graph: nx.Graph = GRAPH) -> list[list[int]]:
    """Every agent's neighbours."""
    return [sorted(graph[k]) for k in range(len(graph))]


@dataclass(frozen=True)
class Size:
    """Shape of a small world."""

    R: int = 2
    K: int = 4
    N: int = 5
    D: int = 6
    T: int = 12
    d: int = 3


@dataclass(frozen=True)
class Trace:
    """What fkl did over all rounds: y_hat, squared_norm and variance (R, T, K), loss (R, T, K, N); or None."""

    y_hat: Array
    loss: Array | None
    squared_norm: Array
    state: Any
    ledger: Ledger
    world: World
    variance: Array | None = None

    def data(self, r: int) -> Data:
        """What replicate r was given."""
        problem, bank = self.world.problem, self.world.bank
        return Data(problem.x, problem.y, problem.present, bank.rho[r], bank.scale)

    def require_literal(self, literal: Run, r: int, tolerance: float) -> None:
        """Every round of the clients that were present: predictions, losses, norms, and scalars sent."""
        here = self.world.problem.present
        for name in ("y_hat", "squared_norm", "loss"):
            if getattr(self, name) is not None:
                assert_close(getattr(self, name)[r][here], getattr(literal, name)[here], tolerance, name)
        for direction, scalars in (("uplink", literal.uplink), ("downlink", literal.downlink)):
            tally = self.ledger.tallies[direction]
            np.testing.assert_array_equal(tally.by_client[r, :, 1], scalars.sum(axis=0))
            np.testing.assert_array_equal(tally.by_round[:, r, 1], scalars.sum(axis=1))


def make_problem(size: Size, seed: int, absent: float = 0.0, precision: str = "float64") -> Problem:
    """Make samples in the unit ball and labels in [0, 1] that depend on the client as well as on the sample.

    Each client misses each round with probability `absent`; where that is above 0, everybody misses the third.
    """
    random = np.random.default_rng(seed)
    x = random.standard_normal((size.T, size.K, size.d))
    x /= np.linalg.norm(x, axis=-1).max()
    slope = random.standard_normal((size.K, size.d))
    y = 1 / (1 + np.exp(-4 * (x * slope).sum(axis=-1) - random.standard_normal((size.T, size.K))))
    present = random.random((size.T, size.K)) >= absent
    present[2] &= absent == 0
    return Problem(x.astype(precision), y, present, np.zeros(size.K, np.int64))


def make_dictionary(size: Size, **options: Any) -> Dictionary:
    """Bandwidths from 0.1 to 10, or the one of 1."""
    ends = {"smallest": 0.1, "largest": 10.0} if size.N > 1 else {"smallest": 1.0, "largest": 1.0}
    return Dictionary(**{"N": size.N, "D": size.D, "bandwidth_convention": "variance", **ends, **options})


def make_batch(clients: int = 5, size: int = 14, iterations: int = 30, classes: bool = False) -> Batch:
    """Make samples whose targets depend on the agent as well as on the sample; a third of them only tested on."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (size, clients, 2))
    y = np.sin(3 * x[..., 0]) + random.standard_normal(clients) + 0.1 * random.standard_normal((size, clients))
    y = np.where(y > y.mean(), 1.0, 0.0) if classes else y
    stream = Problem(x, y, random.random((size, clients)) < 0.9, np.zeros(clients, np.int64))
    method = Dkla(iterations=iterations, test_share=1 / 3, loss="logistic" if classes else "square")
    return method.batch(stream, random)


def on_graph(
    method: Any, problem: Any, graph: Any = GRAPH, dictionary: Dictionary = ONE_KERNEL, **more: Any
) -> Experiment:
    """Two replicates of agents in float64."""
    topology = topology_of_graph(graph) if isinstance(graph, nx.Graph) else graph
    given = {"network": Network(), "seed": 0, "replicates": 2, "precision": "float64", "topology": topology, **more}
    return Experiment(problem=problem, dictionary=dictionary, algorithm=method, **given)


def by_agent(world: World, r: int) -> tuple[Arrays, Arrays]:
    """Each agent's own features and targets, straight from the bank."""
    x, y, client = world.problem.part(True)
    phi, mine = world.bank.features(x)[r, 0], [client == k for k in range(world.problem.clients)]
    return [phi[own] for own in mine], [y[own] for own in mine]


def run(
    algorithm: Algorithm,
    problem: Problem,
    dictionary: Dictionary,
    *,
    seed: int = 0,
    replicates: tuple[int, ...] = (0, 1),
    precision: str = "float64",
    network: Network | None = None,
) -> Trace:
    """Run a method of fkl over all rounds of a problem."""
    ledger = Ledger(problem.rounds, len(replicates), problem.clients)
    streams = Streams(seed, replicates)
    channel = Channel(network or Network(), ledger, np.dtype(precision), algorithm.label, streams)
    found = play(algorithm, World(problem, dictionary, channel, streams, precision), ledger)
    told = (found.stacked(name) for name in ("y_hat", "loss", "squared_norm"))
    return Trace(*told, found.states[-1], ledger, found.world, found.stacked("variance"))


class Played(NamedTuple):
    """All rounds' outcomes and states."""

    outcomes: list[Any]
    states: list[Any]
    world: World
    ledger: Ledger

    @property
    def theta(self) -> Array:
        """Theta of all agents after each iteration, (T, R, K, P)."""
        return np.stack([getattr(outcome, "theta", outcome) for outcome in self.outcomes])

    @property
    def own(self) -> Any:
        """States of all agents after the last iteration."""
        return self.states[-1].own

    def stacked(self, name: str, axis: int = 1) -> Any:
        """An outcome's arrays, of all rounds; None if the method has none."""
        arrays = [getattr(outcome, name) for outcome in self.outcomes]
        return None if arrays[0] is None else np.stack(arrays, axis=axis)


def play_experiment(given: Experiment, start: Callable[[Any], Any] = lambda state: state) -> Played:
    """All rounds of all replicates."""
    return play(given.algorithm, *make_world(given, tuple(range(given.replicates))), start)


def play(
    algorithm: Algorithm, world: World, ledger: Ledger, start: Callable[[Any], Any] = lambda state: state
) -> Played:
    """All rounds; `start` makes another state of the first."""
    state, found = start(algorithm.init(world)), Played([], [], world, ledger)
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        state, outcome = algorithm.step(world, state, t)
        found.outcomes.append(shown(outcome))
        found.states.append(state)
    return found


def shown(outcome: Any) -> Any:
    """What an outcome holds now, for a method may go on with its arrays."""
    if isinstance(outcome, np.ndarray):
        return np.array(outcome)
    values = {name: value() if callable(value) else value for name, value in vars(outcome).items()}
    return SimpleNamespace(**{name: None if value is None else np.array(value) for name, value in values.items()})


def draws(trace: Trace, r: int, size: int) -> Array:
    """Return the numbers (T, size) by which replicate r selects."""
    streams, rounds = trace.world.streams, trace.world.problem.rounds
    return np.stack([streams.uniform(Role.SELECTION, t, size)[r] for t in range(rounds)])


def assert_close(actual: Array, expected: Array, tolerance: float, what: str) -> None:
    """Largest difference within `tolerance` times the largest expected value (1e-3 at least); NaN in neither."""
    assert actual.shape == expected.shape, what
    error = np.abs(actual - expected).max(initial=0)
    assert error <= tolerance * max(np.abs(expected).max(initial=0), 1e-3), f"{what}: off by {error}"
