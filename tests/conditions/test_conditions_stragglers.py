"""Clients that take time: a deadline that nobody misses changes nothing, and who misses one counts for nothing."""

from dataclasses import make_dataclass

import numpy as np
import pytest

from fkl.basics.random_streams import Streams
from fkl.conformance import quick_run
from fkl.contract.world import World
from fkl.engines.base import Experiment, make_world
from fkl.network import Network
from fkl.network.settings import Times, around_one
from fkl.runs.prepare import prepare_run
from fkl.wire import Channel, Ledger
from fkl.wire.payloads import PerClient

SMALL = ("kernels.D=6", "partition.rounds=30", "kernels.N=5", "replicates=2", "precision=float64")
SLOW = ("network.compute_s=1", "network.compute_spread=0.5", "network.compute_jitter=0.7", "network.deadline_s=0.6")


def made(algo: str, *overrides: str) -> Experiment:
    return prepare_run(quick_run(f"algo={algo}", *SMALL, *overrides))


def test_the_mean_is_over_those_who_answered() -> None:
    """The server steps as if the late were not there: as a run whose trace takes them away, from the same theta."""
    given = made("vm_kofl", *SLOW)
    world, _ = make_world(given, (0,))
    times = world.channel.times
    assert times is not None
    in_time = times.compute <= times.deadline
    absent, _ = make_world(made("vm_kofl"), (0,))
    shared = absent.dictionary, absent.channel, absent.streams, absent.precision
    other = World(absent.problem.thinned(in_time), *shared)
    one, two = given.algorithm.init(world), given.algorithm.init(other)
    for t in range(world.problem.rounds):
        for some in (world, other):
            some.channel.open_round(t, some.problem.present[t])
        one, two = given.algorithm.step(world, one, t)[0], given.algorithm.step(other, two, t)[0]
        assert (one.server.theta == two.server.theta).all()
        assert (one.server.log_w == two.server.log_w).all()


def test_the_critical_path_of_links_in_closed_form() -> None:
    """Down and up each take latency + bytes / bandwidth of a client's own; the absent are not waited for."""
    times = Times(np.array([[1.0, 0.5, 9.0]]), np.array([0.1, 0.2, 0.3]), np.array([10.0, 20.0, 5.0]), 6.0)
    network = Network(compute_s=1.0)
    ledger = Ledger(1, 2, 3, network.cost)
    channel = Channel(network, ledger, np.dtype("float64"), "Some", Streams(0, (0, 1)), times=times)
    message = make_dataclass("Message", [("theta", PerClient)], frozen=True)(PerClient(np.zeros((2, 3, 2))))  # 16 bytes
    channel.open_round(0, np.array([True, True, False]))
    channel.down(message)
    channel.up(message)
    share = np.array([0.5, 0.5, 0.0])
    assert channel.shares_in_time(share) is share
    assert ledger.seconds[0] == pytest.approx([1 + 2 * (0.1 + 1.6)] * 2)  # 4.4; the other's 0.5 + 2 (0.2 + 0.8) = 2.5
    channel.open_round(0, np.array([True, True, True]))
    channel.up(message)  # 2.7, 1.5, and 9 + 0.3 + 3.2, which is late
    assert channel.shares_in_time(np.full(3, 1 / 3)).tolist() == [0.5, 0.5, 0.0]
    assert ledger.seconds[0] == pytest.approx([4.4 + 6.0] * 2)


def test_factors_have_the_mean_1_and_spreads_are_those_of_the_logarithm() -> None:
    normal = np.random.default_rng(0).standard_normal(200_000)
    for spread in (0.0, 0.3, 1.0):
        factors = around_one(spread, normal)
        assert factors.mean() == pytest.approx(1, abs=4 * max(factors.std(), 1e-9) / np.sqrt(len(factors)))
        assert np.log(factors).std() == pytest.approx(spread, rel=1e-2)
    drawn = Network(compute_s=2.0, compute_jitter=0.5).times(50_000, 2, np.random.default_rng(1))
    assert drawn.compute.mean(axis=0) == pytest.approx([2, 2], rel=0.02)
    assert np.isinf(drawn.bandwidth).all()
