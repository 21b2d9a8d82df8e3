"""Few bits: full precision changes no bit, rounding has no bias, nothing that is left out is forgotten, bits count."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fkl.basics.errors import BrokenPromiseError
from fkl.basics.random_streams import Role, Streams
from fkl.conditions.compression import Compression, CompressionMemory, Sign, TopK, Uniform
from fkl.contract.star import Samples, Turn
from fkl.wire.coded_payloads import OneCodeForAll, Quantised, Sparse, position_bits
from fkl.wire.payloads import PerClient, SameForAll, received_message

R, K, N, P = 2, 3, 4, 5
COMMON: Any = SimpleNamespace(precision="float64")


@pytest.mark.parametrize("bits", [2, 8])
def test_random_rounding_has_no_bias_and_qsgds_variance(bits: int) -> None:
    """The mean of many draws is within 4 standard errors; their variance is below Lemma 3.1's bounds, and as it is.

    A scalar between two steps is Bernoulli's, so its variance is p (1 - p) unit^2.
    """
    draws, n, s = 4000, 24, 2 ** (bits - 1) - 1
    v = np.random.default_rng(0).standard_normal((1, 1, n))
    unit = np.abs(v).max() / s
    uniform = np.random.default_rng(1).random((draws, 1, n))
    q = np.concatenate([Quantised.round_at_random(v, bits, u[None]).values[0] for u in uniform])
    p = v[0, 0] / unit - np.floor(v[0, 0] / unit)
    exact = p * (1 - p) * unit**2
    assert (np.abs(q.mean(axis=0) - v[0, 0]) <= 4 * np.sqrt(exact / draws) + 1e-12).all()
    variance = ((q - v[0]) ** 2).sum(axis=1).mean()
    assert variance == pytest.approx(exact.sum(), rel=0.05)
    assert exact.sum() <= min(n / s**2, np.sqrt(n) / s) * (v**2).sum()
    assert exact.sum() <= n * unit**2 / 4
    biased = Quantised.round_to_nearest(v, bits).values[0, 0]
    assert not (np.abs(biased - v[0, 0]) <= 4 * np.sqrt(exact / draws)).all(), "the test sees a bias"


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1.0))
def test_top_k_keeps_the_largest_and_sign_contracts(seed: int, share: float) -> None:
    """No entry kept is smaller than one left out; |p - C(p)|^2 = |p|^2 - |p|_1^2 / d of each vector p, signed."""
    p = np.random.default_rng(seed).standard_normal((R, K, N, P))
    few = TopK(share=share).code(p, None, False, lambda: p)
    assert not TopK(share=share).code(p, p[..., 0] > 0, False, lambda: p).kept[p[..., 0] <= 0].any()
    assert (few.kept.sum(axis=(2, 3)) == np.ceil(share * N * P - 1e-9)).all()
    for kept, values in zip(few.kept.reshape(-1, N * P), np.abs(p).reshape(-1, N * P), strict=True):
        assert kept.all() or values[kept].min() >= values[~kept].max()
    sign = Sign().code(p, None, False, lambda: p).values
    left = (p**2).sum(axis=-1) - np.abs(p).sum(axis=-1) ** 2 / P
    np.testing.assert_allclose(((p - sign) ** 2).sum(axis=-1), left, rtol=1e-9, atol=1e-12)


@dataclass(frozen=True)
class Message:
    """Of two kinds, one a tuple; whole numbers and single scalars too."""

    theta: Any
    layers: tuple[Any, ...]
    index: Any
    one: Any


def message(random: np.random.Generator, chosen: bool) -> Message:
    """Of K clients."""
    mask = random.random((R, K, N)) < 0.5 if chosen else None
    theta = random.standard_normal((R, K, N, P)) * (1 if mask is None else mask[..., None])
    layers = (PerClient(random.standard_normal((R, K, 7))), PerClient(random.standard_normal((R, K, 2, 3))))
    return Message(PerClient(theta, mask), layers, PerClient(np.ones((R, K, 1), np.int64)), PerClient(np.ones((R, K))))


def turn(t: int, exchange: int = 0, clients: int = K, streams: Streams | None = None) -> Turn:
    """Of round t."""
    return Turn(t, exchange, streams or Streams(0, tuple(range(R))), range(clients))


BIASED = (TopK(share=0.3), Sign(), Uniform(bits=2, rounding="nearest"))


@pytest.mark.parametrize("condition", BIASED, ids=str)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), chosen=st.booleans())
def test_what_was_sent_and_what_is_left_come_to_all_messages(condition: Compression, seed: int, chosen: bool) -> None:
    """Error feedback telescopes, client by client; of who is absent, nothing was sent and nothing changes."""
    random, memory = np.random.default_rng(seed), None
    true, sent = np.zeros((R, K, N, P)), np.zeros((R, K, N, P))
    for t in range(6):
        given_, present = message(random, chosen), random.random(K) < 0.7
        samples = Samples(np.zeros((K, 1)), np.zeros(K), present)
        before = memory
        memory, short = condition.client_sends(COMMON, memory, given_, samples, turn(t))  # type: ignore[arg-type]
        here = present[:, None, None]
        true, sent = true + here * given_.theta.values, sent + here * short.theta.values
        assert short.index is given_.index
        assert short.one is given_.one
        held: CompressionMemory = memory
        for name, left in held.held.items():
            was = 0 if before is None else before.held[name][:, ~present]
            assert (left[:, ~present] == was).all()
        if chosen:
            assert (short.theta.values[~given_.theta.chosen] == 0).all()
    np.testing.assert_allclose(sent + held.held["0 theta 0"], true, rtol=1e-12, atol=1e-12)


class Recording(Streams):
    """Writes down all numbers that are drawn."""

    def __init__(self) -> None:
        super().__init__(0, (0, 1))
        vars(self)["seen"] = []

    def vectors(self, role: Role, t: int, clients: range, size: int, draw: int = 0) -> Any:
        """As they are."""
        numbers = super().vectors(role, t, clients, size, draw)
        vars(self)["seen"].append(numbers.reshape(-1))
        return numbers


def test_no_two_payloads_share_random_numbers() -> None:
    """Of kinds, places in a tuple, exchanges, directions and rounds."""
    streams, condition = Recording(), Uniform(bits=4, down=True)
    up, samples = message(np.random.default_rng(0), False), Samples(np.zeros((K, 1)), np.zeros(K), np.ones(K, bool))
    down = Message(
        SameForAll(up.theta.values[:, 0]),
        (SameForAll(np.ones((R, 7))),),
        SameForAll(np.ones(R)),
        SameForAll(np.ones(R)),
    )
    for t in range(2):
        for exchange in range(2):
            condition.client_sends(COMMON, None, up, samples, turn(t, exchange, streams=streams))  # type: ignore[arg-type]
            condition.server_sends(COMMON, None, down, turn(t, exchange, 1, streams))  # type: ignore[arg-type]
    numbers = np.concatenate(vars(streams)["seen"])
    assert len(numbers) == 2 * 2 * R * (K * (N * P + 7 + 6) + N * P + 7)
    assert len(np.unique(numbers)) == len(numbers)


def test_positions_take_a_mask_or_numbers_whichever_is_less() -> None:
    """Of 100 entries, 14 numbers of 7 bits are less than 100 bits and 15 are not; none is told of nothing."""
    assert position_bits(np.array([0, 1, 14, 15, 100]), 100).tolist() == [0, 7, 98, 100, 100]
    kept = np.zeros((1, 1, 100), bool)
    kept[..., :14] = True
    scalars, size = Sparse(np.zeros((1, 1, 100)), kept).wire_size(4)
    assert (scalars.item(), size.item()) == (14, 14 * 4 + 13)


@pytest.mark.parametrize("condition", [Uniform(bits=4), TopK(share=0.5), Sign()])
def test_a_code_of_one_sender_arrives_and_is_not_one_for_all(condition: Compression) -> None:
    values = np.random.default_rng(0).standard_normal((1, 1, 6))
    code = condition.code(values, None, False, lambda: np.zeros(values.shape))
    np.testing.assert_array_equal(type(code).from_parts([code.packed(0, 8)]).dense().values, code.dense().values)
    with pytest.raises(BrokenPromiseError, match="is OneCodeForAll, one array for all"):
        received_message(
            Message(*[OneCodeForAll(code), (), *[PerClient(values)] * 2]), {"R": 1, "K": 1}, 8, of_clients=True
        )
