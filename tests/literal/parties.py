"""Samples whose features parties share, partitions of them, and a count of what parties send."""

from collections import Counter

import numpy as np
from hypothesis import strategies as st
from literal.common import Array

from fkl.algorithms.vertical.parties import Groups

D = 7
Split = tuple[Groups, tuple[int, ...]]
"""Each party's features, and the active parties."""
POOLED: Split = ((np.arange(D),), (0,))
THREE: Split = ((np.array([1, 4]), np.array([6, 0]), np.array([2, 3, 5])), (1, 2))
FOUR: Split = ((np.array([1, 4]), np.array([6, 0]), np.array([], np.int64), np.array([2, 3, 5])), (1, 3))


def samples(n: int) -> tuple[Array, Array]:
    """Features of which some have few values, one none but 0 and two are alike, and labels that are no plane's."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, D)) / 2
    x[:, 1] = np.round(2 * x[:, 1]) / 2
    x[:, 4] = 0
    x[:, 5] = x[:, 2]
    return x, np.where(x[:, 0] * x[:, 1] + 0.25 * x[:, 2] + 0.08 * rng.normal(size=n) > 0, 1.0, -1.0)


def real_targets(x: Array) -> Array:
    """Of a curved function with noise, in units and from a level that no method has for a default."""
    noise = np.random.default_rng(9).normal(size=len(x))
    return 1000 + 50 * (np.sin(4 * x[:, 0]) + 4 * x[:, 1] * x[:, 2] + 0.1 * noise)


@st.composite
def partitions(draw: st.DrawFn) -> Split:
    """Parties, some of which may hold no feature, and one or two active ones."""
    parties = draw(st.integers(1, 5))
    owner = np.array(draw(st.lists(st.integers(0, parties - 1), min_size=D, max_size=D)))
    active = draw(st.lists(st.integers(0, parties - 1), min_size=1, max_size=2, unique=True))
    return tuple(np.flatnonzero(owner == party) for party in range(parties)), tuple(active)


class Counts:
    """A `Count` that remembers sums by kind, sender and receiver."""

    def __init__(self) -> None:
        self.messages: Counter[tuple[str, int, int]] = Counter()
        self.items: Counter[tuple[str, int, int]] = Counter()
        self.bytes: Counter[tuple[str, int, int]] = Counter()

    def __call__(self, kind: str, sender: int, receiver: int, messages: int, items: int, size: int) -> None:
        """Add to the sums."""
        assert sender != receiver
        self.messages[kind, sender, receiver] += messages
        self.items[kind, sender, receiver] += items
        self.bytes[kind, sender, receiver] += size
