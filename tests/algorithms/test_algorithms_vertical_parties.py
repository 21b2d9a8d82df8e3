"""Methods over parties as actors on a wire: the pooled path is the protocol's, and whoever cheats is found."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal.common import Array
from literal.parties import D, Split, partitions, real_targets, samples
from literal.toy_cipher import Toy

from fkl.algorithms.vertical.ciphers import Cipher, CountingCipher, Paillier
from fkl.algorithms.vertical.fd_svrg import FdSvrg, LinearModel, Slopes
from fkl.algorithms.vertical.kernel_machines import PpSvmv, VerticalNystroem
from fkl.algorithms.vertical.parties import Actor, Count, LearningWithKeys, PartyData, PartyRows, Wire
from fkl.algorithms.vertical.ridge import FeatureRidge
from fkl.algorithms.vertical.secureboost import SecureBoost
from fkl.basics.errors import BrokenPromiseError
from fkl.conformance.isolated import play_apart, require_parties_agree, require_sent
from fkl.conformance.party_process import PartyObject
from fkl.contract.parties import Booked, counting_into, deal_features
from fkl.data.problem import Table
from fkl.data.vertical import FeatureGroups
from fkl.engines.base import Experiment, make_world
from fkl.kernels import Dictionary
from fkl.network import Network
from fkl.wire.letters import Letter, post_letter, read_letter

ONE_KERNEL = Dictionary(N=1, smallest=1.0, largest=1.0, bandwidth_convention="deviation")
X, Y = samples(40)
REAL = real_targets(X)
SUMMED = [
    (FdSvrg(passes=3, batch=2), Y),
    (FdSvrg("square", passes=2, eta=0.02, inner=5, intercept=False), REAL),
    (PpSvmv(C=2.0), Y),
    (PpSvmv(kernel="linear"), REAL),
    (VerticalNystroem(landmarks=10), REAL),
    (VerticalNystroem(landmarks=12, loss="squared_hinge", lam=1e-3), Y),
    (FeatureRidge(angles=15), Y),
    (SecureBoost(trees=3, depth=3, min_child_weight=0.5, bins=8), REAL),
    (SecureBoost(trees=2, depth=1, min_child_weight=0.0), Y),
]


@settings(max_examples=10)
@given(partitions())
@pytest.mark.parametrize(
    ("method", "y"), SUMMED, ids=lambda one: getattr(one, "label", "real" if one is REAL else "classes")
)
def test_parties_with_their_own_features_are_the_pooled_path(
    method: LearningWithKeys, y: Array, partition: Split
) -> None:
    """In what they learn, and in what is counted, to the byte, by kind and sender."""
    groups, active = partition
    booked: Booked = {}
    pooled = method.fit(X, y, groups, active, np.random.default_rng(1), counting_into(booked, len(groups)))
    held = PartyRows(X, y, groups, active)
    parties = deal_features(held, method.generators(np.random.default_rng(1), len(groups), active[0]))
    parts, sent = play_apart(method, parties, PartyObject)
    require_sent(booked, sent)
    x = np.random.default_rng(2).uniform(0, 1, (60, D))
    found, expected = method.assembled(parts, held).decision(x), pooled.decision(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize(
    "cipher", [CountingCipher(32), Toy(), Paillier(key_bits=256)], ids=lambda cipher: type(cipher).__name__
)
def test_parties_send_ciphertexts_that_only_the_active_one_reads(cipher: Cipher) -> None:
    """As many, and as wide, as the pooled path counts; and Paillier's key, too."""
    if isinstance(cipher, Paillier):
        pytest.importorskip("phe")
    boost = SecureBoost(trees=2, depth=2, bins=4, min_child_weight=0.1, cipher=cipher)
    groups, x, y = (np.arange(2), np.arange(2, 3), np.arange(3, D)), X[:16], Y[:16]
    held, booked = PartyRows(x, y, groups, (0,)), {}
    pooled = boost.fit(x, y, groups, (0,), None, counting_into(booked, len(groups)))
    parts, sent = play_apart(boost, deal_features(held, [None] * len(groups)), PartyObject)
    require_sent(booked, sent)
    plain = replace(boost, cipher=CountingCipher()).fit(x, y, groups, (0,))
    for forest in (pooled, boost.assembled(parts, held)):
        assert np.array_equal(forest.decision(X), plain.decision(X))
    assert ("key" in sent) == isinstance(cipher, Paillier)
    if "key" in sent:
        assert sent["key"].tolist() == [[2, 2, 2 * 32], [0, 0, 0], [0, 0, 0]]
    assert sent["statistics"][0].tolist() == [2 * 2, 2 * 2 * 32, 2 * 2 * 32 * cipher.keys().width]


# --- letters


class Numbers(Letter, kind="numbers"):
    """Of 64 bits."""


class Flags(Letter, kind="flags", dtype="?"):
    """A bit each."""


@given(st.lists(st.booleans(), max_size=20))
def test_letters_arrive_as_they_were_sent_and_weigh_what_their_class_says(flags: list[bool]) -> None:
    for letter in (Flags(np.array(flags, np.bool_), (3,)), Numbers(np.array(flags, np.float64).reshape(-1, 1))):
        post = post_letter(letter)
        assert (post.scalars, len(post.body)) == (len(flags), letter.bytes)
        arrived = read_letter(post)
        assert type(arrived) is type(letter) and arrived.about == letter.about
        np.testing.assert_array_equal(arrived.values, letter.values if flags else np.zeros(0))


def test_a_letter_of_other_numbers_than_its_class_says_is_refused() -> None:
    with pytest.raises(TypeError, match="Flags holds float64, but its class says"):
        post_letter(Flags(np.ones(3)))


# --- whoever cheats is found


@dataclass(frozen=True)
class Honest(FdSvrg):
    """A method to be spoiled."""

    passes: int = 1
    inner: int | None = 3


@dataclass(frozen=True)
class CountsTooLittle(Honest):
    """Forgets a letter."""

    def advance(self, held: PartyRows, learned: Any, count: Count) -> Any:
        """The slopes of the last step are not counted."""
        found = super().advance(held, learned, count)
        Slopes.count_letters(count, held.active[0], 1 - held.active[0], -1, messages=-1)
        return found


@dataclass(frozen=True)
class SendsMore(Honest):
    """Sends its features to the active party, which nobody counts."""

    def party(self, own: PartyData, wire: Wire) -> Actor:
        """A letter ahead of the others."""
        if own.number != own.root:
            wire.send(own.root, Numbers(own.x))
        return super().party(own, wire)


@dataclass(frozen=True)
class KnowsLabels(Honest):
    """A party that is not active uses labels."""

    def party(self, own: PartyData, wire: Wire) -> Actor:
        """All parties look."""
        assert own.labels.any()
        return super().party(own, wire)


@dataclass(frozen=True)
class LearnsMorePooled(Honest):
    """The pooled path uses products of two parties' features, of which no letter tells."""

    def advance(self, held: PartyRows, learned: Any, count: Count) -> tuple[Any, LinearModel]:
        """A bias from both."""
        learned, model = super().advance(held, learned, count)
        return learned, replace(model, bias=model.bias + 1e-6 * float((held.x[:, 0] * held.x[:, -1]).sum()))


@dataclass(frozen=True)
class WaitsForEver(Honest):
    """All wait for the next one."""

    def party(self, own: PartyData, wire: Wire) -> Actor:
        """Nobody begins."""
        yield (own.number + 1) % own.parties


CHEATS = {
    CountsTooLittle: r"slopes of party 0: messages, scalars and bytes are booked as \[.*\], but \[.*\] were sent",
    SendsMore: "a party, in isolation, cannot work: AssertionError: Products was due, not Numbers",
    KnowsLabels: "a party, in isolation, cannot work: .*, line .*: AssertionError: party 1 has no labels",
    LearnsMorePooled: "f differs if parties are alone: the simulation is not the protocol",
    WaitsForEver: r"parties wait for one another forever: \{0: 1, 1: 0\}",
}


def apart(method: Any) -> None:
    """Two parties."""
    table = Table.of_one_site(X, Y, tuple("abcdefg"))
    problem = FeatureGroups(2, active=1).split(table, np.random.default_rng(1))
    given = Experiment(replace(problem, rounds=method.rounds), ONE_KERNEL, Network(), method, 0, 1, "float64")
    require_parties_agree(method, lambda: make_world(given, (0,))[0], PartyObject)


def test_an_honest_method_is_not_blamed() -> None:
    apart(Honest())


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.__name__)
def test_cheats_are_found(cheat: type) -> None:
    with pytest.raises(BrokenPromiseError, match=CHEATS[cheat]):
        apart(cheat())
