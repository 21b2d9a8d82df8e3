"""SecureBoost's pooled path: all parties at once, and the letters that they would write counted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.boosting_letters import Choice, Key, Left, Statistics, Sums
from fkl.algorithms.vertical.boosting_trees import Binned, Tree
from fkl.algorithms.vertical.messages import Array, Count, Groups, Integers, uncounted
from fkl.network.ciphers import Cipher, Keys, Sorting


@dataclass(frozen=True)
class PooledParty:
    """What one party holds.

    number; sorting of its samples into bins; places (sorting.starts[-1],) of these in the histogram of all.
    """

    number: int
    sorting: Sorting
    places: NDArray[np.int64]


@dataclass(frozen=True)
class Pooled:
    """The parties and what they may tell one another.

    edges: of the bins of each feature; starts (d + 1,): where the bins of each begin in the histogram of all;
    owner (d,); the first party is the active one.
    """

    parties: tuple[PooledParty, ...]
    edges: tuple[Array, ...]
    starts: NDArray[np.int64]
    owner: NDArray[np.int64]
    local: NDArray[np.int64]
    keys: Keys
    count: Count = uncounted

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function that counts: a checkpoint holds data only."""
        return {name: value for name, value in vars(self).items() if name != "count"}

    @classmethod
    def of(cls, x: Array, groups: Groups, root: int, bins: int, cipher: Cipher) -> "Pooled":
        """Parties of samples (n, d), with the features of each, the active one, and the most bins a feature."""
        d, numbers = x.shape[1], (root, *(party for party in range(len(groups)) if party != root))
        binned = {number: Binned.of(x[:, groups[number]], bins) for number in numbers}
        edges: list[Array] = [np.zeros(0)] * d
        owner, local = np.zeros(d, np.int64), np.zeros(d, np.int64)
        for number, own in binned.items():
            mine = np.asarray(groups[number], np.int64)
            owner[mine], local[mine] = number, np.arange(len(mine))
            for k, of_feature in zip(mine, own.edges, strict=True):
                edges[k] = of_feature
        starts = np.concatenate([[0], np.cumsum([len(each) + 1 for each in edges])])
        parties = []
        for number, own in binned.items():
            places = [np.arange(starts[k], starts[k + 1]) for k in groups[number]]
            together = np.concatenate(places or [np.zeros(0)]).astype(np.int64)
            parties.append(PooledParty(number, own.sorting, together))
        return cls(tuple(parties), tuple(edges), starts, owner, local, cipher.keys())

    def send_key(self) -> None:
        """Tell the passive parties what it takes to add."""
        for party in self.passive if self.keys.public else ():
            Key.book(self.count, self.active.number, party.number, 1, width=len(self.keys.public))

    @property
    def active(self) -> PooledParty:
        """The one that has the labels and the keys."""
        return self.parties[0]

    @property
    def passive(self) -> tuple[PooledParty, ...]:
        """The others."""
        return self.parties[1:]

    def send_statistics(self, statistics: NDArray[np.int64]) -> Any:
        """Encrypt g and h (n, 2) for the passive parties; None where there are none."""
        if not self.passive:
            return None
        sealed, size = self.keys.encrypt(statistics), statistics.size
        for party in self.passive:
            Statistics.book(self.count, self.active.number, party.number, size, width=self.keys.width)
        return sealed

    def histogram(self, statistics: NDArray[np.int64], sealed: Any, rows: Integers) -> NDArray[np.int64]:
        """Sums of g and h over the bins of all features, as the active party holds them."""
        histogram = np.empty((int(self.starts[-1]), 2), np.int64)
        active = self.active
        histogram[active.places] = active.sorting.sums(statistics, rows)[0]
        for party in self.passive:
            answer = self.keys.sums(sealed, rows, party.sorting)
            Sums.book(self.count, party.number, active.number, answer.size, width=self.keys.width)
            histogram[party.places] = self.keys.decrypt(answer)
        return histogram

    def divide(self, rows: Integers, feature: int, edge: int, told: bool) -> NDArray[np.bool_]:
        """Which rows go left: the owner says so, and the other parties are told where children may be split.

        Samples are named by one bit each.
        """
        owner = next(party for party in self.parties if party.number == self.owner[feature])
        left = owner.sorting.bins[self.local[feature], rows] <= edge
        active = self.active.number
        if owner.number != active:
            Choice.book(self.count, active, owner.number, 2)
            Left.book(self.count, owner.number, active, len(rows))
        for party in self.passive:
            if told and party is not owner:
                Left.book(self.count, active, party.number, len(rows))
        return left


@dataclass(frozen=True)
class Boosting:
    """What is known between two trees.

    Parameters
    ----------
    world : Pooled
        The parties, whose sums nobody counts yet.
    f : (n,)
        Sum of the trees for each sample.
    trees : tuple of Tree
    """

    world: Pooled
    f: Array
    trees: tuple[Tree, ...]
