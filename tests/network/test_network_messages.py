"""Messages know what they are on a wire, and come through it as they were."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from literal.worlds import Size, make_dictionary

from fkl.basics.random_streams import Streams
from fkl.conditions.compression import Sign, TopK
from fkl.wire.coded_payloads import Quantised
from fkl.wire.packets import pack_message, unpack_messages
from fkl.wire.payloads import (
    FeatureGradients,
    OnLinks,
    Payload,
    PerClient,
    RankOne,
    SameForAll,
    Selected,
    narrow_numbers,
    payloads_by_kind,
    wire_size,
)

K = 4
RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class Message:
    """One of everything."""

    theta: Any
    index: SameForAll
    layers: tuple[Any, ...]


def gradients(chosen: np.ndarray[Any, Any] | None) -> FeatureGradients:
    """Of K clients and 5 kernels, one replicate."""
    bank = make_dictionary(Size()).bank(3, Streams(0, (0,)), "float64")
    coefficients = RANDOM.standard_normal((1, K, bank.kernels))
    theta = RANDOM.standard_normal((1, bank.kernels, bank.width))
    weight = None if chosen is None else 3.0 * chosen
    if chosen is not None:
        coefficients = coefficients * chosen
    return FeatureGradients(bank, RANDOM.standard_normal((K, 3)), coefficients, theta, 0.1, weight, chosen)


def some_of(n: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    chosen = RANDOM.random((1, K, n)) < 0.5
    chosen[0, 0] = False  # who sends nothing
    chosen[0, 1] = True
    return chosen


PAYLOADS: list[Payload] = [
    PerClient(RANDOM.standard_normal((1, K, 7))),
    PerClient((chosen := some_of(11)) * RANDOM.standard_normal((1, K, 11)), chosen),
    PerClient((silent := some_of(1)) * RANDOM.standard_normal((1, K, 6)), silent),
    RankOne(RANDOM.standard_normal((1, K, 2)), RANDOM.standard_normal((1, K, 3))),
    gradients(some_of(5)),
    *(Quantised.round_to_nearest(RANDOM.standard_normal((1, K, 5)), bits) for bits in (2, 3, 8, 11, 16)),
    Quantised.round_to_nearest((chosen := some_of(9))[..., None] * RANDOM.standard_normal((1, K, 9, 3)), 5, chosen),
    Quantised.round_at_random(RANDOM.standard_normal((1, K, 2, 3)), 4, RANDOM.random((1, K, 2, 3))),
    Sign().code((chosen := some_of(6))[..., None] * RANDOM.standard_normal((1, K, 6, 3)), chosen, False, list),
    Quantised.round_to_nearest(
        (chosen := np.arange(K)[None, :, None] > [0, 2])[..., None] * np.ones((1, K, 2, 1)), 5, chosen
    ),
    *(TopK(share=share).code(RANDOM.standard_normal((1, K, 6, 5)), None, True, list) for share in (0.04, 0.1, 0.9)),
    TopK(share=0.1).code(RANDOM.standard_normal((1, K, 16)), None, True, list),  # two numbers of 4 bits: a byte
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: f"{type(payload).__name__}")
def test_a_payload_comes_through_bytes_as_it_was(payload: Any) -> None:
    """Values, mean over clients, and bytes that are those that were announced, client by client."""
    layers = (SameForAll(RANDOM.standard_normal((1, 2, 3))), PerClient(RANDOM.standard_normal((1, K, 2))))
    message = Message(payload, SameForAll(np.array([3])), layers)
    packets = [pack_message(message, k, 8) for k in range(K)]
    arrived = unpack_messages([packet for packet in packets if packet is not None])
    np.testing.assert_allclose(arrived.theta.values, payload.dense().values, rtol=1e-14)
    assert getattr(arrived.theta, "adds", None) == getattr(payload.dense(), "adds", None)
    assert arrived.index.values.tolist() == [3]
    assert arrived.index.values.dtype == np.int64
    np.testing.assert_array_equal(arrived.layers[1].values, layers[1].values)
    share = np.array([0.2, 0.5, 0.0, 0.3])
    np.testing.assert_allclose(arrived.theta.mean(share), payload.mean(share), rtol=1e-12, atol=1e-14)
    sizes = [np.broadcast_to(wire_size(payloads, 8).size, (1, K)) for _, payloads in payloads_by_kind(message)]
    assert [packet.size for packet in packets if packet] == sum(sizes)[0].tolist()


def test_a_vector_for_each_link_comes_through_bytes_as_it_was() -> None:
    payload = OnLinks(RANDOM.standard_normal((1, 6, 5)))
    packets = [pack_message(Message(payload, SameForAll(np.array([3])), ()), link, 8) for link in range(6)]
    there = [packet for packet in packets if packet is not None]
    np.testing.assert_array_equal(unpack_messages(there).theta.values, payload.values)
    assert [packet.size - 8 for packet in there] == [40] * 6 == np.repeat(payload.wire_size(8).size, 6).tolist()


@pytest.mark.parametrize("n", [1, 2, 11])
def test_of_what_is_selected_a_client_is_sent_its_own_entries_and_nothing_else(n: int) -> None:
    """NaN is where nothing has travelled: whoever reads on would notice."""
    chosen, values = some_of(n), RANDOM.standard_normal((1, n, 3))
    payload = Selected(values, chosen)
    size = np.broadcast_to(payload.wire_size(8).size, (1, K))
    for k in range(K):
        packet = pack_message(Message(payload, SameForAll(np.array([3])), ()), k, 8)
        assert packet is not None
        assert (
            packet.size - 8
            == size[0, k]
            == 8 * 3 * chosen[0, k].sum() + (-(-n // 8) if n > 1 and chosen[0, k].any() else 0)
        )
        arrived = unpack_messages([packet]).theta
        np.testing.assert_array_equal(arrived.chosen, chosen[:, [k]])
        np.testing.assert_array_equal(arrived.values, np.where(chosen[0, k][:, None], values, np.nan))
    together = unpack_messages(
        [pack_message(Message(payload, SameForAll(np.array([3])), ()), k, 8) for k in (0, 2, 3)]
    ).theta
    some = chosen[0, [0, 2, 3]].any(axis=0)
    np.testing.assert_array_equal(together.values, np.where(some[:, None], values, np.nan))


def test_an_integer_arrives_as_it_was_or_is_refused() -> None:
    ends = np.array([2**31 - 1, -(2**31)])
    np.testing.assert_array_equal(narrow_numbers(ends, 4), ends)
    assert narrow_numbers(ends, 4).dtype == ends.dtype
    with pytest.raises(OverflowError, match=f"holds {2**31}, which does not fit in 4 bytes"):
        narrow_numbers(ends + 1, 4)
    assert narrow_numbers(ends, 8) is ends, "without a copy"


def test_only_payloads_travel() -> None:
    """A message with an array of its own, or an array as a message, is refused by name."""
    with pytest.raises(TypeError, match=r"Message\.theta is ndarray, which is not a payload"):
        list(payloads_by_kind(Message(np.zeros(3), SameForAll(np.zeros((1, 2))), ())))
    with pytest.raises(TypeError, match="ndarray is not a message"):
        list(payloads_by_kind(np.zeros(3)))
    with pytest.raises(TypeError, match="SameForAll is not a message"):
        list(payloads_by_kind(SameForAll(np.zeros((1, 2)))))
    assert not list(payloads_by_kind(None))
