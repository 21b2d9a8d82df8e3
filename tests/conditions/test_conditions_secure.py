"""A secure sum is the sum, shows nothing else, and takes the bytes that are counted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.worlds import play_experiment
from scipy.stats import chisquare

from fkl.basics.errors import BadValue, FklError
from fkl.conditions.secure import SHARE, Pairwise, SumAlone, count_neighbours, decode_sum, secure_overhead
from fkl.conformance import quick_run
from fkl.runs.prepare import prepare_run
from fkl.wire.payloads import PerClient, from_bits

pytest.importorskip("cryptography")
from fkl.conditions import secure_protocol as secure_sum
from fkl.conditions.secure_protocol import (
    ForwardingServer,
    MaskingClient,
    neighbour_ring,
    recovered_secret,
    run_protocol,
    shamir_shares,
)

# --- the protocol, message by message


class Unmasked(MaskingClient):
    """A client that forgets to hide its vector."""

    def mask_of_vector(self, size: int) -> Any:
        """Nothing."""
        return np.zeros(size, np.uint64)


class OnlyPairs(MaskingClient):
    """A client with masks of pairs alone, without the one that its seed b makes."""

    def mask_of_vector(self, size: int) -> Any:
        """As a client's, without PRG(b)."""
        return super().mask_of_vector(size) - secure_sum.pseudorandom_words(self._seed, size)


def seeded(seed: int) -> Callable[[int], bytes]:
    """Random bytes that come again."""
    return np.random.default_rng(seed).bytes


def parties(
    K: int,
    size: int,
    seed: int,
    neighbours: int | None = None,
    bits: int = 32,
    kind: type[MaskingClient] = MaskingClient,
) -> tuple[list[MaskingClient], ForwardingServer]:
    """So many clients, and their server; two shares make a secret."""
    clients = [kind(k, bits, 2, seeded(1000 * seed + k)) for k in range(K)]
    return clients, ForwardingServer(
        neighbour_ring(np.random.default_rng(seed).permutation(K).tolist(), neighbours), bits, 2, size
    )


def vectors(K: int, size: int, seed: int) -> list[Any]:
    """Of whole numbers on both sides of 0."""
    rng = np.random.default_rng(seed)
    return list(rng.integers(-(2**20), 2**20, (K, size)).view(np.uint64))


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 6), st.sampled_from([None, 2, 4]), st.sampled_from([24, 32, 61]), st.integers(0, 99), st.data())
def test_the_sum_is_exact_whoever_is_gone(K: int, neighbours: int | None, bits: int, seed: int, data: Any) -> None:
    """Of all who sent a masked vector, modulo 2^k, as long as two neighbours of each are there to the end."""
    leaves = data.draw(st.dictionaries(st.integers(0, K - 1), st.integers(1, 3), max_size=K - 3), label="gone")
    clients, server = parties(K, 7, seed, neighbours, bits)
    there = [k for k in range(K) if leaves.get(k, 4) > 3]
    graph = server.graph
    enough = all(len(set(graph[k]) & set(there)) >= 2 for k in range(K))
    own = vectors(K, 7, seed)
    if not enough:
        with pytest.raises(FklError):
            run_protocol(clients, server, own, leaves)
            raise FklError("enough after all")  # who is gone before round 1 has no secret to be recovered
        return
    total, _ = run_protocol(clients, server, own, leaves)
    expected = sum((own[k] for k in range(K) if leaves.get(k, 4) > 2), np.zeros(7, np.uint64))
    assert np.array_equal(total, expected & np.uint64(2**bits - 1))


def test_shares_below_the_threshold_make_no_secret() -> None:
    """Any 3 of 5 make the secret."""
    secret = bytes(range(32))
    shares = shamir_shares(secret, range(1, 6), 3, seeded(1))
    for some in ((1, 2, 3), (5, 1, 4)):
        assert recovered_secret({x: shares[x] for x in some}, 3) == secret
    with pytest.raises(FklError):
        recovered_secret({x: shares[x] for x in (1, 2)}, 3)


@pytest.mark.parametrize("kind", [MaskingClient, Unmasked])
def test_what_the_server_sees_of_one_client_is_uniform_or_it_does_not_mask(kind: type[MaskingClient]) -> None:
    """Client 1 of 3, whose vector is one number, in 60 runs: the four low and the four high bits of its words."""
    seen = []
    for seed in range(60):
        clients, server = parties(3, 16, seed, kind=kind)
        down = server.forward_keys({one.number: one.advertise_keys() for one in clients})
        down = server.forward_messages({one: clients[one].share(down[one]) for one in down})
        seen.append(from_bits(clients[1].send_masked(down[1], np.full(16, 3 * 2**16 + 1, np.uint64)), 32, 16))
    for shift in (0, 28):
        digits = (np.array(seen) >> np.uint64(shift)) & np.uint64(15)
        p = chisquare(np.bincount(digits.ravel().astype(int), minlength=16)).pvalue
        assert p > 1e-3 if kind is MaskingClient else p < 1e-12


@pytest.mark.parametrize(("kind", "hidden"), [(MaskingClient, True), (OnlyPairs, False)])
def test_a_vector_that_comes_late_stays_hidden(kind: type[MaskingClient], hidden: bool) -> None:
    """Client 1 is taken for gone, its key is recovered, and then its vector comes: b hides it, which pairs do not."""
    clients, server = parties(3, 500, 9, kind=kind)
    own = vectors(3, 500, 9)
    down = server.forward_keys({one.number: one.advertise_keys() for one in clients})
    down = server.forward_messages({one: clients[one].share(down[one]) for one in down})
    late = from_bits(clients[1].send_masked(down[1], own[1]), 32, 500)
    server.forward_survivors({k: clients[k].send_masked(down[k], own[k]) for k in (0, 2)})
    told = server.forward_survivors({k: clients[k].send_masked(down[k], own[k]) for k in (0, 2)})
    unmasking = {k: clients[k].send_unmasking_shares(told[k]) for k in (0, 2)}
    key = secure_sum.X25519PrivateKey.from_private_bytes(recovered_secret(server._shares_of_secret(1, unmasking), 2))
    pairs = sum(
        secure_sum.signed_mask(
            secure_sum.pseudorandom_words(secure_sum.agreed_seed(key, server._public[k][32:], b"mask"), 500), 1, k
        )
        for k in (0, 2)
    )
    found = (late - pairs) & np.uint64(2**32 - 1)
    assert np.array_equal(found, own[1] & np.uint64(2**32 - 1)) != hidden
    if hidden:
        assert chisquare(np.bincount((found & np.uint64(15)).astype(int), minlength=16)).pvalue > 1e-3


@pytest.mark.parametrize(("K", "neighbours"), [(3, None), (6, 2), (10, 4)])
def test_bytes_are_counted_as_they_are_played(K: int, neighbours: int | None) -> None:
    """Every kind of message, of every client."""
    clients, server = parties(K, 9, K, neighbours, 20)
    _, sizes = run_protocol(clients, server, vectors(K, 9, K))
    counted = {name.replace("_", " "): size for name, size in secure_overhead(K, neighbours)._asdict().items()}
    assert sizes.pop("masked up") == dict.fromkeys(range(K), -(-9 * 20 // 8))
    assert sizes == {kind: dict.fromkeys(range(K), size) for kind, size in counted.items()}
    assert secure_overhead(3, None) == (
        64,
        2 * (4 + 64),
        *[2 * (4 + 2 * 33 + 16)] * 2,
        1,
        2 * 33,
    )  # numbers have 4 bytes
    assert -(-secure_sum.PRIME.bit_length() // 8) == SHARE, "no longer than a share has to be"


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.sampled_from([None, 2, 4, 10]), st.integers(0, 99))
def test_graphs_are_regular_and_know_each_other(K: int, neighbours: int | None, seed: int) -> None:
    """Each has as many neighbours as are counted, none of them itself."""
    graph = neighbour_ring(np.random.default_rng(seed).permutation(K).tolist(), neighbours)
    assert all(len(near) == len(set(near)) == count_neighbours(K, neighbours) for near in graph.values())
    assert all(one in graph[other] and one != other for one, near in graph.items() for other in near)


# --- the condition


def sums(secure: Pairwise, values: Any, share: Any) -> Any:
    """What the server makes of it."""
    return SumAlone(secure.encode_values(values, share > 0, int((share > 0).sum())), secure.fraction).mean(share)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.integers(0, 20), st.sampled_from([1, 2, 4]))
def test_what_fixed_point_holds_has_the_plain_mean_bit_for_bit(seed: int, fraction: int, present: int) -> None:
    """Multiples of 2^-fraction, of a number of clients that halves exactly; absent ones send nothing."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-1000, 1000, (2, 4, 3, 5)) / 2.0**fraction
    share = np.where(np.arange(4) < present, 1 / present, 0.0)
    assert np.array_equal(sums(Pairwise(bits=40, fraction=fraction), values, share), PerClient(values).mean(share))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.integers(4, 24))
def test_rounding_is_half_a_step_at_most(seed: int, fraction: int) -> None:
    """And so is that of a mean."""
    values, share = np.random.default_rng(seed).normal(size=(2, 3, 7)), np.full(3, 1 / 3)
    off = np.abs(sums(Pairwise(bits=40, fraction=fraction), values, share) - PerClient(values).mean(share))
    assert off.max() <= 2.0 ** -(fraction + 1) + 1e-12


def test_the_condition_sums_as_the_protocol_does() -> None:
    """Bit for bit, in the same fixed point."""
    secure, values = Pairwise(bits=32, fraction=12), np.random.default_rng(2).normal(size=(1, 4, 11))
    codes = secure.encode_values(values, np.ones(4, np.bool_), 4).values[0]
    total, _ = run_protocol(*parties(4, 11, 4), list(codes))
    assert np.array_equal(decode_sum(total, 32, 12) / 4, sums(secure, values, np.full(4, 0.25))[0])


def test_a_sum_that_would_overflow_is_refused() -> None:
    """Just before it does, and of what is no number; absent clients send nothing."""
    secure, all_of_them = Pairwise(bits=16, fraction=4), np.ones(4, np.bool_)
    values = np.full((1, 4, 1), 511.9375)
    assert sums(secure, values, np.full(4, 0.25)) == 511.9375
    for bad in (values + 0.0625, -values - 0.0625, values * np.nan):
        with pytest.raises(FklError, match=r"secure\.bits=16.*raise bits or lower fraction"):
            secure.encode_values(bad, all_of_them, 4)
    assert secure.encode_values(values * [[[1], [1], [1], [9]]], all_of_them & [1, 1, 1, 0], 3).values[0, 3, 0] == 0


def test_nothing_but_an_even_mean_is_told() -> None:
    """No client's values, and no mean that weighs them differently."""
    one = SumAlone(Pairwise().encode_values(np.ones((1, 2, 3)), np.ones(2, np.bool_), 2), 16)
    with pytest.raises(BadValue, match="secure=Pairwise: must be null if clients have different weights"):
        one.mean(np.array([0.3, 0.7]))
    with pytest.raises(BadValue, match="reads what each client sent"):
        _ = one.values


def test_the_ledger_has_the_protocols_bytes() -> None:
    """Beside all entries, also those of bins that POF-MKL would not send."""
    overrides = ("algo=pof_mkl", "algo.M=2", "kernels.N=6", "kernels.D=4", "partition.rounds=3", "replicates=1")
    booked = {}
    for secure in ((), ("secure=pairwise", "secure.bits=40")):
        found = play_experiment(prepare_run(quick_run(*overrides, *secure)))
        booked[bool(secure)] = {way: tally.by_round[0, 0, 2] for way, tally in found.ledger.tallies.items()}
    K, own = 4, secure_overhead(4, None)
    assert booked[False]["uplink"] == K * (2 * 8 * 4 + 1)
    assert booked[True]["uplink"] == K * (6 * 8 * 5 + own.keys_up + own.shares_up + own.unmasking_up)
    more = K * (own.keys_down + own.shares_down + own.survivors_down)
    assert booked[True]["downlink"] == booked[False]["downlink"] + more
