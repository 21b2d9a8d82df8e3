"""Clients that take time: a deadline that nobody misses changes nothing, and who misses one counts for nothing."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from recount import ledger_books_every_message

from fkl.basics.errors import BadValue
from fkl.basics.random_streams import Streams
from fkl.config.compose import compose
from fkl.config.loading import load
from fkl.conformance import Conformance, scenario
from fkl.engines.base import Experiment, make_world
from fkl.engines.rounds import simulate
from fkl.network import Network
from fkl.network.settings import Times, around_one
from fkl.runs.prepare import prepare
from fkl.runs.tables import TIMING_COLUMNS, make_records
from fkl.wire import Channel, Ledger
from fkl.wire.payloads import PerClient

SMALL = ("kernels.D=6", "partition.rounds=30", "kernels.N=5", "replicates=2", "precision=float64")
SLOW = ("network.compute_s=1", "network.compute_spread=0.5", "network.compute_jitter=0.7", "network.deadline_s=0.6")


def made(algo: str, *overrides: str) -> Experiment:
    return prepare(scenario(f"algo={algo}", *SMALL, *overrides))


def tables(given: Experiment) -> dict[str, pd.DataFrame]:
    records = make_records(given, simulate(given, 1, None, lambda _: None))
    return {name: table.drop(columns=list(TIMING_COLUMNS), errors="ignore") for name, table in vars(records).items()}


@pytest.mark.parametrize("algo", ["pof_mkl", "em_kofl"])
def test_a_deadline_that_nobody_misses_changes_no_bit(algo: str) -> None:
    """But that seconds are counted, which the plain run has none of."""
    plain = tables(made(algo))
    timed = tables(made(algo, *SLOW[:-1], "network.deadline_s=1e6"))
    for name, table in timed.items():
        seconds = table.pop("communication_s") if "communication_s" in table else None
        assert (seconds is not None) == (name != "clients")
        pd.testing.assert_frame_equal(table, plain[name], check_exact=True)


@pytest.mark.parametrize("algo", ["em_kofl", "pof_mkl"])
def test_parties_on_their_own_are_late_alike(algo: str) -> None:
    """Of 4 clients about half are late, at times all of them; the server is told the shares of those who were not."""
    words = ("network.latency_s=0.1", "network.bandwidth_bytes_per_s=10000", "network.link_spread=0.5")
    suite = Conformance.from_overrides(f"algo={algo}", *SMALL, *SLOW, *words)
    suite.parties_see_what_they_hold_alone()
    ledger_books_every_message(suite)


def rounds_of(given: Experiment) -> Any:
    """Of each round of replicate 1: who is in time by the times alone, the server before and after, the ledger."""
    world, ledger = make_world(given, (1,))
    times = world.channel.times
    assert times is not None
    state = given.algorithm.init(world)
    for t in range(world.problem.rounds):
        world.channel.open_round(t, world.problem.present[t])
        before = repr(state.server)
        state, outcome = given.algorithm.step(world, state, t)
        answer = times.answer(t, *(np.zeros(world.problem.clients, np.int64),) * 2)
        yield t, answer <= times.deadline, before, repr(state.server), outcome, ledger, answer


def test_who_is_late_sends_for_nothing_and_seconds_are_the_critical_path() -> None:
    """Without links, times are the computing alone: the slowest of all, and the deadline where somebody is late."""
    none, some = 0, 0
    for t, in_time, before, after, outcome, ledger, answer in rounds_of(
        made("pof_mkl", *SLOW[:-1], "network.deadline_s=0.4")
    ):
        assert (before == after) == (not in_time.any()), "all are late: nothing is learned"
        assert np.isfinite(outcome.y_hat).all(), "and yet all have predicted"
        assert (ledger.tallies["uplink"].by_round[t, 0, 0], ledger.tallies["downlink"].by_round[t, 0, 0]) == (4, 4)
        assert ledger.seconds[t, 0] == pytest.approx(min(answer.max(), 0.4), rel=1e-12)
        none, some = none + (not in_time.any()), some + (0 < in_time.sum() < 4)
    assert none > 0
    assert some > 10


def test_the_mean_is_over_those_who_answered() -> None:
    """The server steps as if the late were not there: as a run whose trace takes them away, from the same theta."""
    given = made("vm_kofl", *SLOW)
    world, _ = make_world(given, (0,))
    times = world.channel.times
    assert times is not None
    in_time = times.compute <= times.deadline
    absent, _ = make_world(made("vm_kofl"), (0,))
    other = type(absent)(absent.problem.thinned(in_time), *[getattr(absent, f) for f in ("dictionary", "channel")],
                         absent.streams, absent.precision)  # fmt: skip
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
    from dataclasses import make_dataclass

    message = make_dataclass("Message", [("theta", PerClient)], frozen=True)(PerClient(np.zeros((2, 3, 2))))  # 16 bytes
    channel.open_round(0, np.array([True, True, False]))
    channel.down(message)
    channel.up(message)
    share = np.array([0.5, 0.5, 0.0])
    assert channel.answered(share) is share
    assert ledger.seconds[0] == pytest.approx([1 + 2 * (0.1 + 1.6)] * 2)  # 4.4; the other's 0.5 + 2 (0.2 + 0.8) = 2.5
    channel.open_round(0, np.array([True, True, True]))
    channel.up(message)  # 2.7, 1.5, and 9 + 0.3 + 3.2, which is late
    assert channel.answered(np.full(3, 1 / 3)).tolist() == [0.5, 0.5, 0.0]
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


@pytest.mark.parametrize("algo", ["raker", "pooled_raker", "libsvm", "pooled_svm"])
def test_methods_whose_rounds_wait_for_no_client_refuse(algo: str) -> None:
    with pytest.raises(BadValue, match=r"network\.compute_s=1.0: must be null or 0 for"):
        prepare(load(compose(f"algo={algo}", "network.compute_s=1")))
