"""Small random worlds, and running a method of fkl through all their rounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from literal.common import Array

from fkl.algorithms.base import Algorithm, World
from fkl.basics.random_streams import Role, Streams
from fkl.data.problem import Problem
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.wire import Channel, Ledger


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
    """What fkl did over all rounds: y_hat, squared_norm and log_density (R, T, K), loss (R, T, K, N); or None."""

    y_hat: Array
    loss: Array | None
    squared_norm: Array
    state: Any
    ledger: Ledger
    world: World
    log_density: Array | None = None


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
    world = World(problem, dictionary, channel, streams, precision)
    state = algorithm.init(world)
    y_hat, loss, squared_norm, log_density = [], [], [], []
    for t in range(problem.rounds):
        channel.open_round(t, problem.present[t])
        state, outcome = algorithm.step(world, state, t)
        y_hat.append(np.array(outcome.y_hat))
        loss.append(None if outcome.loss is None else np.array(outcome.loss))
        squared_norm.append(outcome.squared_norm())
        log_density.append(outcome.log_density)
    losses = None if loss[0] is None else np.stack(loss, axis=1)
    densities = None if log_density[0] is None else np.stack(log_density, axis=1)
    return Trace(np.stack(y_hat, axis=1), losses, np.stack(squared_norm, axis=1), state, ledger, world, densities)


def draws(trace: Trace, r: int, size: int) -> Array:
    """Return the numbers (T, size) by which replicate r selects."""
    streams, rounds = trace.world.streams, trace.world.problem.rounds
    return np.stack([streams.uniform(Role.SELECTION, t, size)[r] for t in range(rounds)])


def assert_close(actual: Array, expected: Array, tolerance: float, what: str) -> None:
    """Largest difference within `tolerance` times the largest expected value (1e-3 at least); NaN in neither."""
    assert actual.shape == expected.shape, what
    error = np.abs(actual - expected).max(initial=0)
    assert error <= tolerance * max(np.abs(expected).max(initial=0), 1e-3), f"{what}: off by {error}"
