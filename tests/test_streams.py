"""Streams of random numbers: what is drawn together is what is drawn alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.basics.random_streams import NotYoursError, Role, Streams

rounds = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=6)


@given(rounds=rounds, size=st.integers(1, 9), replicates=st.integers(1, 3))
def test_rounds_may_be_drawn_together(rounds: list[int], size: int, replicates: int) -> None:
    """In any order, more than once, of any size."""
    streams = Streams(3, tuple(range(replicates)))
    together = streams.uniform_of_rounds(Role.FEATURES, rounds, size)
    assert together.tolist() == [streams.uniform(Role.FEATURES, t, size).tolist() for t in rounds]
    own = streams.private_of_rounds(Role.PHASES, 2, rounds, size)
    assert own.tolist() == [streams.uniform_of_secret(Role.PHASES, 2, t, size).tolist() for t in rounds]


def test_a_party_draws_rounds_of_its_own_and_of_what_all_share() -> None:
    everybody = Streams(0, (0,))
    party = everybody.own(range(1, 2))
    for mine, all_of_them in (
        (party.uniform_of_rounds(Role.FEATURES, [5], 2), everybody.uniform_of_rounds(Role.FEATURES, [5], 2)),
        (party.private_of_rounds(Role.PHASES, 1, [5], 2), everybody.private_of_rounds(Role.PHASES, 1, [5], 2)),
    ):
        assert np.array_equal(mine, all_of_them)
    with pytest.raises(NotYoursError, match="draws party 2's numbers of PHASES"):
        party.private_of_rounds(Role.PHASES, 2, [5], 2)
    with pytest.raises(NotYoursError, match="from the stream LOSS, which parties do not share"):
        party.uniform_of_rounds(Role.LOSS, [5], 2)
