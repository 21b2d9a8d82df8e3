"""The channel, the ledger behind it, and what links cost."""

from dataclasses import dataclass, make_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.errors import FklError
from fkl.basics.random_streams import Streams
from fkl.network import Network
from fkl.wire import UNITS, Channel, Ledger
from fkl.wire.payloads import Payload, Size

T, R, K = 4, 2, 3
MESSAGES, SCALARS, BYTES = (UNITS.index(unit) for unit in ("messages", "scalars", "bytes"))
Counts = np.ndarray[Any, np.dtype[np.int64]]

call = st.tuples(
    st.sampled_from(["uplink", "downlink"]),
    st.sampled_from(["theta", "losses"]),
    st.lists(st.integers(0, 50), min_size=R * K, max_size=R * K),
)
plan = st.lists(
    st.tuples(st.lists(st.booleans(), min_size=K, max_size=K), st.lists(call, max_size=4)), min_size=T, max_size=T
)


def open_channel(network: Network | None = None, precision: str = "float64", algorithm: str = "Some") -> Channel:
    network = network or Network()
    return Channel(network, Ledger(T, R, K, network.cost), np.dtype(precision), algorithm, Streams(0, tuple(range(R))))


@dataclass(frozen=True)
class Sized(Payload):
    """A payload of so many scalars, (R, K) or (R, 1)."""

    leading = {}  # noqa: RUF012
    scalars: Counts

    def wire_size(self, width: int) -> Size:
        """As many scalars as it says."""
        return Size(self.scalars, self.scalars * width)

    def dense(self) -> Any:
        """Never needed."""
        raise AssertionError("nobody asks for it")


def message(kind: str, scalars: Any) -> Any:
    """A message of one kind; a number, or one for each client."""
    of_all = np.broadcast_to(np.asarray(scalars), (R, 1) if np.ndim(scalars) == 0 else (R, K))
    return make_dataclass("Message", [kind])(Sized(of_all))


def everyone() -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.ones(K, bool)


def replay(channel: Channel, rounds: Any) -> tuple[dict[str, Counts], dict[str, Counts], dict[tuple[str, str], int]]:
    """Send a plan; count scalars and messages (T, R, K) of each direction, and scalars of each kind, by hand."""
    scalars = {way: np.zeros((T, R, K), np.int64) for way in ("uplink", "downlink")}
    messages = {way: np.zeros((T, R, K), np.int64) for way in scalars}
    kinds: dict[tuple[str, str], int] = {}
    for t, (present, calls) in enumerate(rounds):
        channel.open_round(t, np.array(present))
        for way, kind, numbers in calls:
            sent = np.array(numbers).reshape(R, K)
            if way == "uplink":
                up = message(kind, sent)
                assert channel.up(up) is up
            else:
                sent = np.full((R, K), numbers[0])
                down = message(kind, numbers[0])
                assert channel.down(down) is down
            for r, k in np.ndindex(R, K):
                if present[k] and sent[r, k] > 0:
                    scalars[way][t, r, k] += sent[r, k]
                    messages[way][t, r, k] += 1
                    kinds[way, kind] = kinds.get((way, kind), 0) + int(sent[r, k])
    return scalars, messages, kinds


@given(plan, st.sampled_from([("float32", 4), ("float64", 8)]))
def test_counts(rounds: Any, width: tuple[str, int]) -> None:
    """Rounds, clients and kinds add up to one count; absent clients are in none; bytes are scalars times width."""
    channel = open_channel(precision=width[0])
    scalars, messages, kinds = replay(channel, rounds)
    for way, tally in channel.ledger.tallies.items():
        np.testing.assert_array_equal(tally.by_round[..., SCALARS], scalars[way].sum(axis=2))
        np.testing.assert_array_equal(tally.by_client[..., SCALARS], scalars[way].sum(axis=0))
        np.testing.assert_array_equal(tally.by_round[..., MESSAGES], messages[way].sum(axis=2))
        np.testing.assert_array_equal(tally.by_client[..., MESSAGES], messages[way].sum(axis=0))
        np.testing.assert_array_equal(tally.by_round.sum(axis=0), tally.by_client.sum(axis=1))
        for counts in (tally.by_round, tally.by_client):
            np.testing.assert_array_equal(counts[..., BYTES], width[1] * counts[..., SCALARS])
    assert {key: count for key, count in channel.ledger.kinds.items() if count} == kinds


@given(plan, st.integers(1, 120))
def test_budget(rounds: Any, budget: int) -> None:
    """The budget stops exactly the plans in which a client sends more than it in one round, all kinds together."""
    scalars = replay(open_channel(), rounds)[0]["uplink"]
    channel = open_channel(Network(uplink_budget=budget))
    if scalars.max() <= budget:
        replay(channel, rounds)
        return
    first = int(np.flatnonzero(scalars.max(axis=(1, 2)) > budget)[0])
    with pytest.raises(FklError, match=rf"uplink_budget={budget}: Some sends .* round {first + 1};"):
        replay(channel, rounds)
    assert (channel.ledger.tallies["uplink"].by_round[first + 1 :] == 0).all()


def test_seconds_by_hand() -> None:
    """Latency 0.5 s, 100 bytes a second, float64: the slowest client of each replicate decides; directions add up."""
    channel = open_channel(Network(latency_s=0.5, bandwidth_bytes_per_s=100.0))
    channel.open_round(0, np.array([True, True, False]))
    channel.down(message("theta", 25))  # 0.5 + 200 / 100 = 2.5
    channel.up(message("theta", np.array([[5, 10, 900], [0, 0, 900]])))  # 0.5 + 80 / 100 = 1.3, and nobody
    channel.open_round(1, everyone())
    channel.up(message("theta", 1))  # 0.5 + 8 / 100 = 0.58
    channel.up(message("losses", 2))  # 0.5 + 16 / 100 = 0.66
    np.testing.assert_allclose(channel.ledger.seconds, [[3.8, 2.5], [1.24, 1.24], [0, 0], [0, 0]], rtol=1e-12)
