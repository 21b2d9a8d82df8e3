"""SecureBoost's pooled path: all parties at once, with a count of the letters that they would send."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.boosting_trees import Tree, bin_features, first_bins_of
from fkl.algorithms.vertical.ciphers import Cipher, Keys, Sorting
from fkl.algorithms.vertical.messages import Array, Count, Groups, Integers, Letter, uncounted


class Key(Letter, kind="key", dtype="V"):
    """Public key, to encrypt and to add ciphertexts; sent once, if the cipher has such a key."""


class Statistics(Letter, kind="statistics", dtype="V"):
    """Encrypted g and h of all samples, (n, 2)."""


class Sums(Letter, kind="sums", dtype="V"):
    """Encrypted sums of g and h in a node over the bins of a party's features, and where each feature's bins begin."""


class Choice(Letter, kind="split", dtype="i8"):
    """The receiver's feature, and its edge, at which a node is split."""


class Left(Letter, kind="left", dtype="?"):
    """Which samples of a node go left, one bit each."""


@dataclass(frozen=True)
class Summed:
    """Features whose sums are computed together.

    sorting of all samples into their bins; places (sorting.starts[-1],) of these in the histogram of all features.
    """

    sorting: Sorting
    places: NDArray[np.int64]

    @classmethod
    def from_bins(cls, bins: Integers, starts: NDArray[np.int64], some: NDArray[np.bool_]) -> "Summed":
        """Some features (d,) of those with these bins (d, n), which begin at `starts` in the histogram of all."""
        widths = np.diff(starts)
        begins = np.concatenate([[0], np.cumsum(widths[some])])
        sorting = Sorting.from_bins(np.asfortranarray(bins[some]), begins)  # a sample's bins are read together
        return cls(sorting, np.flatnonzero(np.repeat(some, widths)))


@dataclass(frozen=True)
class Pooled:
    """The parties and the information that they may exchange.

    numbers of the parties, the first of them the active one; edges: of the bins of each feature; starts (d + 1,): where
    the bins of each begin in the histogram of all; owner (d,); bins (d, n) of all samples; own, of the active party,
    and others, of all passive ones; sizes: how many sums each passive party answers with.
    """

    numbers: tuple[int, ...]
    edges: tuple[Array, ...]
    starts: NDArray[np.int64]
    owner: NDArray[np.int64]
    bins: Integers
    own: Summed
    others: Summed
    sizes: tuple[int, ...]
    keys: Keys
    count: Count = uncounted

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function that counts: a checkpoint holds data only."""
        return {name: value for name, value in vars(self).items() if name != "count"}

    @classmethod
    def from_parties(cls, x: Array, groups: Groups, root: int, bins: int, cipher: Cipher) -> "Pooled":
        """Parties of samples (n, d), with the features of each, the active one, and the most bins a feature."""
        numbers = (root, *(party for party in range(len(groups)) if party != root))
        owner = np.zeros(x.shape[1], np.int64)
        for party, features in enumerate(groups):
            owner[features] = party
        edges, sorted_in = bin_features(x, bins)
        starts = first_bins_of(edges)
        own, others = (Summed.from_bins(sorted_in, starts, some) for some in (owner == root, owner != root))
        sizes = tuple(2 * int(np.diff(starts)[groups[party]].sum()) for party in numbers[1:])
        return cls(numbers, edges, starts, owner, sorted_in, own, others, sizes, cipher.keys())

    @property
    def active(self) -> int:
        """The party with the labels and the keys."""
        return self.numbers[0]

    @property
    def passive(self) -> tuple[int, ...]:
        """The parties without labels."""
        return self.numbers[1:]

    def send_statistics(self, statistics: NDArray[np.int64]) -> Any:
        """Encrypt g and h (n, 2) for the passive parties; None if there are none."""
        if not self.passive:
            return None
        sealed, size = self.keys.encrypt(statistics), statistics.size
        for party in self.passive:
            Statistics.book(self.count, self.active, party, size, width=self.keys.width)
        return sealed

    def histogram(self, statistics: NDArray[np.int64], sealed: Any, rows: Integers) -> NDArray[np.int64]:
        """Sums of g and h over the bins of all features, as the active party holds them.

        The sums of all passive parties are computed at once, so a sample is read once instead of once per party.
        """
        histogram = np.empty((int(self.starts[-1]), 2), np.int64)
        histogram[self.own.places] = self.own.sorting.sums(statistics, rows)[0]
        for party, size in zip(self.passive, self.sizes, strict=True):
            Sums.book(self.count, party, self.active, size, width=self.keys.width)
        if self.passive:
            histogram[self.others.places] = self.keys.decrypt(self.keys.sums(sealed, rows, self.others.sorting))
        return histogram

    def divide_rows(self, rows: Integers, feature: int, edge: int, told: bool) -> NDArray[np.bool_]:
        """Rows that go left: the owner sends them, and the other parties learn which children may be split.

        The letter has one bit per sample.
        """
        owner, active = int(self.owner[feature]), self.active
        left: NDArray[np.bool_] = self.bins[feature, rows] <= edge
        if owner != active:
            Choice.book(self.count, active, owner, 2)
            Left.book(self.count, owner, active, len(rows))
        for party in self.passive:
            if told and party != owner:
                Left.book(self.count, active, party, len(rows))
        return left


@dataclass(frozen=True)
class Boosting:
    """State between two trees.

    Parameters
    ----------
    world : Pooled
        The parties, without a counter of sums.
    f : (n,)
        Sum of the trees for each sample.
    trees : tuple of Tree
    """

    world: Pooled
    f: Array
    trees: tuple[Tree, ...]
