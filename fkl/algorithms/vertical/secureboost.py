"""SecureBoost: gradient boosted trees whose split statistics travel encrypted.

Cheng, Fan, Jin, Liu, Chen and Yang, "SecureBoost: a lossless federated learning framework" (2019), Algorithms 1 and 2.
`Active` and `Passive` are the method at a party; `SecureBoost` computes the same trees on pooled data.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fkl.algorithms.vertical.ciphers import Cipher, Keys, Operations, Paillier, Plain, Sorting, require_key_bits
from fkl.algorithms.vertical.parties import (
    Actor,
    Array,
    Count,
    Groups,
    Held,
    Integers,
    Learning,
    Letter,
    Own,
    Wire,
    uncounted,
)
from fkl.algorithms.vertical.sums import Part, values_of_letter
from fkl.basics.errors import FklError, require
from fkl.basics.memory import require_memory
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.functions import Trees
from fkl.wire import letters

FRACTION_BITS = 40
UNIT = 2.0**-FRACTION_BITS
LEAF = -1


@dataclass(frozen=True)
class Tree:
    """Nodes, the root first; a sample goes left where x[feature] <= threshold.

    Parameters
    ----------
    feature : (m,) int
        `LEAF` at a leaf.
    threshold : (m,)
        Known only to the owner of the feature.
    owner : (m,) int
        Party; `LEAF` at a leaf.
    left, right : (m,) int
        Nodes.
    value : (m,)
        Value that a leaf adds to f; 0 elsewhere.
    """

    feature: NDArray[np.int64]
    threshold: Array
    owner: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Array

    def decision(self, x: Array, rows: Integers | None = None) -> Array:
        """The tree's contribution to f for samples (n, d), shape (n,), or for some of their rows, (m,)."""
        rows = np.arange(len(x)) if rows is None else rows
        return self.value[_leaf_of_rows(x, rows, self.feature, self.threshold, self.left, self.right)]


@dataclass(frozen=True)
class Forest:
    """Sum of trees.

    Parameters
    ----------
    trees : tuple of Tree
    operations : Operations
        Operations of training with the cipher.
    """

    trees: tuple[Tree, ...]
    operations: Operations

    def decision(self, x: Array) -> Array:
        """Values f of samples (n, d), shape (n,); a sample is of class 1 where it is above 0."""
        f = np.zeros(len(x))
        for tree in self.trees:
            f += tree.decision(x)
        return f

    @property
    def function(self) -> Trees:
        """As arrays of a stored model, with the nodes of all trees in one array."""
        sizes = np.cumsum([0, *(len(tree.feature) for tree in self.trees)])
        columns = {
            name: np.concatenate([getattr(tree, name) for tree in self.trees])
            for name in ("feature", "threshold", "left", "right", "value")
        }
        inner, first = columns["feature"] != LEAF, np.repeat(sizes[:-1], np.diff(sizes))
        for side in ("left", "right"):
            columns[side] = np.where(inner, columns[side] + first, LEAF)
        return Trees(sizes[:-1], **columns)


class Nodes:
    """A tree that grows."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, int, int, int, float]] = []

    def add(self) -> int:
        """A new node's number."""
        self.rows.append((LEAF, 0.0, LEAF, LEAF, LEAF, 0.0))
        return len(self.rows) - 1

    def make_leaf(self, node: int, value: float) -> float:
        """Make it a leaf of this value."""
        self.rows[node] = (LEAF, 0.0, LEAF, LEAF, LEAF, value)
        return value

    def split(self, node: int, feature: int, threshold: float, owner: int) -> tuple[int, int]:
        """Numbers of its two children."""
        children = self.add(), self.add()
        self.rows[node] = (feature, threshold, owner, *children, 0.0)
        return children

    def tree(self) -> Tree:
        """The finished tree."""
        feature, threshold, owner, left, right, value = zip(*self.rows, strict=True)
        whole = (np.array(column, np.int64) for column in (feature, owner, left, right))
        features, owners, lefts, rights = whole
        return Tree(features, np.array(threshold), owners, lefts, rights, np.array(value))


def bin_features(x: Array, most: int) -> tuple[tuple[Array, ...], NDArray[np.uint8]]:
    """Edges between bins, and bins (d, n), of samples (n, d) with at most this many bins per feature.

    Edges are upper ends of all bins of a feature except the last. A bin holds the samples above the previous edge, up
    to and including its own.
    """
    edges: tuple[Array, ...] = ()
    for column in x.T:
        values = np.unique(column)
        if len(values) > most:  # edges are values in the data, so a party can name a split by one of them
            levels = np.arange(1, most) / most
            inner = np.unique(np.quantile(column, levels, method="inverted_cdf"))
            values = np.unique(np.append(inner, values[-1]))
        edges = (*edges, values[:-1])
    columns = [np.searchsorted(own, column, side="left") for own, column in zip(edges, x.T, strict=True)]
    return edges, np.array(columns, np.uint8).reshape(len(edges), len(x))


def first_bins_of(edges: tuple[Array, ...]) -> NDArray[np.int64]:
    """Where the bins of each feature begin in a histogram, and their number."""
    return np.concatenate([[0], np.cumsum([len(own) + 1 for own in edges])]).astype(np.int64)


def coded_statistics(y: Array, f: Array) -> NDArray[np.int64]:
    """Coded g and h (n, 2) of the logistic loss."""
    p = expit(f)
    return np.rint(np.stack([p - (y > 0), p * (1 - p)], axis=1) / UNIT).astype(np.int64)


@njit_cached(nogil=True)
def best_split(
    histogram: NDArray[np.int64],
    starts: NDArray[np.int64],
    total: NDArray[np.int64],
    lam: float,
    gamma: float,
    min_child_weight: float,
) -> tuple[int, int]:
    """Feature and edge with the largest gain; the first of ties, (LEAF, LEAF) if no gain is above 0."""
    feature, edge, best = LEAF, LEAF, 0.0
    g, h = total[0] * UNIT, total[1] * UNIT
    before = g * g / (h + lam) if h + lam > 0 else 0.0
    for k in range(len(starts) - 1):
        left_g, left_h = 0, 0
        for place in range(starts[k], starts[k + 1] - 1):
            left_g += histogram[place, 0]
            left_h += histogram[place, 1]
            right_g, right_h = total[0] - left_g, total[1] - left_h
            least = min(left_h, right_h)
            if least <= 0 or least * UNIT < min_child_weight:
                continue
            lg, lh, rg, rh = left_g * UNIT, left_h * UNIT, right_g * UNIT, right_h * UNIT
            gain = 0.5 * (lg * lg / (lh + lam) + rg * rg / (rh + lam) - before) - gamma
            if gain > best:
                feature, edge, best = k, place - starts[k], gain
    return feature, edge


@njit_cached(nogil=True)
def _leaf_of_rows(
    x: Array,
    rows: Integers,
    feature: NDArray[np.int64],
    threshold: Array,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Leaf (m,) of each of these rows of the samples."""
    leaves = np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        node = 0
        while feature[node] != LEAF:
            node = left[node] if x[rows[i], feature[node]] <= threshold[node] else right[node]
        leaves[i] = node
    return leaves


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


MOST_SAMPLES = 1 << (62 - FRACTION_BITS)
"""Sums of this many g, each at most 1 in magnitude, are exact in 64 bits."""
TREE_BYTES = 700
"""Splits of a tree that is one leaf."""
CIPHERS: dict[str, Callable[[int], Cipher]] = {"plain": lambda _: Plain(), "paillier": Paillier}


@dataclass(frozen=True)
class SecureBoost(Learning):
    """Trees fitted to second-order statistics of the logistic loss, which only the active party reads.

    For each tree it sends the other parties g and h of all samples, encrypted. For each node they return the encrypted
    sums over the bins of their features. The active party chooses the best split and sends it to the feature's owner,
    which answers with the samples that go left. g and h are coded as whole multiples of 2^-40, so sums are exact, and
    the trees are those of the same booster on pooled data whatever the cipher; among equal splits the one with the
    lowest feature number wins.

    Parameters
    ----------
    trees : int
        Number of trees.
    depth : int
        Maximum number of splits from a root to a leaf.
    learning_rate : float
        Factor of the leaves' values.
    lam : float
        lambda, l2 regularisation of the leaves.
    gamma : float
        Minimum gain of a split, with the factor 1/2 of the paper's gain; half of xgboost's gamma is equivalent.
    min_child_weight : float
        Minimum sum of h on each side of a split.
    bins : int
        Maximum number of bins of a feature, with about equal numbers of samples; one per value if there are at most
        this many values.
    cipher : {"plain", "paillier"}, or a Cipher
        ``plain`` counts ciphertexts and operations and hides nothing.
    key_bits : int
        Length of Paillier's modulus.
    """

    label: ClassVar[str] = "SecureBoost"
    compiled_only: ClassVar[bool] = True

    trees: int = 100
    depth: int = 5
    learning_rate: float = 0.3
    lam: float = 1.0
    gamma: float = 0.0
    min_child_weight: float = 1.0
    bins: int = 32
    cipher: Any = "plain"
    key_bits: int = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.trees <= 10**6, "trees", self.trees, "an integer from 1 to 1000000")
        require(1 <= self.depth <= 16, "depth", self.depth, "an integer from 1 to 16")
        require(0 < self.learning_rate < np.inf, "learning_rate", self.learning_rate, "a number > 0")
        for key in ("lam", "gamma", "min_child_weight"):
            require(0 <= getattr(self, key) < np.inf, key, getattr(self, key), "a number >= 0")
        require(2 <= self.bins <= 256, "bins", self.bins, "an integer from 2 to 256")
        named = isinstance(self.cipher, str) and self.cipher in CIPHERS
        require(named or is_dataclass(self.cipher), "cipher", self.cipher, " or ".join(CIPHERS))
        require_key_bits(self.key_bits)

    @property
    def rounds(self) -> int:
        """One round per tree."""
        return self.trees

    @property
    def cipher_in_use(self) -> Cipher:
        """The cipher as an object."""
        return CIPHERS[self.cipher](self.key_bits) if isinstance(self.cipher, str) else self.cipher

    def begin(self, held: Held, rng: np.random.Generator) -> Boosting:
        """Start from f = 0; `rng` is not used, and the first active party is the active party above.

        Raises
        ------
        fkl.basics.errors.FklError
            If there are too many samples for exact sums, or the cipher's package is missing.
        """
        if len(held.x) > MOST_SAMPLES:
            raise FklError(f"SecureBoost's sums are exact for {MOST_SAMPLES} samples at most, not {len(held.x)}")
        require_memory(self.trees * TREE_BYTES, f"{self.trees} trees", "algo.trees")
        world = Pooled.from_parties(held.x, held.groups, held.active[0], self.bins, self.cipher_in_use)
        return Boosting(world, np.zeros(len(held.x)), ())

    def advance(self, held: Held, learned: Boosting, count: Count) -> tuple[Boosting, Forest]:
        """One tree."""
        world = replace(learned.world, count=count)
        for party in world.passive if world.keys.public and not learned.trees else ():
            Key.book(count, world.active, party, 1, width=len(world.keys.public))
        tree, gain = self._grow_tree(world, held.y, learned.f)
        trees = (*learned.trees, tree)
        return Boosting(learned.world, learned.f + gain, trees), Forest(trees, replace(world.keys.operations))

    def values(self, model: Forest, x: Array, rows: Integers, before: Any) -> tuple[Array, Any]:
        """Adds new trees to the unchanged values of the earlier trees, so a round does not evaluate all trees again."""
        done, f = before or (0, np.zeros(len(rows)))
        for tree in model.trees[done:]:
            f = f + tree.decision(x, rows)
        return f, (len(model.trees), f)

    def party(self, own: Own, wire: Wire) -> Actor:
        """The active party's part, or a passive one's."""
        edges, bins = bin_features(own.x, self.bins)
        sorting = Sorting.from_bins(np.asfortranarray(bins), first_bins_of(edges))  # a sample's bins are read together
        return (Active if own.number == own.root else Passive)(self, own, wire, edges, sorting).play()

    def assembled(self, parts: list[Any], held: Held) -> Forest:
        """The active party's trees, with the thresholds that each party knows of its own features."""
        trees = []
        edges = [part if j != held.active[0] else part[1] for j, part in enumerate(parts)]
        for tree in parts[held.active[0]][0]:
            threshold = np.zeros(len(tree.feature))
            for node in np.flatnonzero(tree.feature != LEAF):
                owner = int(tree.owner[node])
                local = int(np.flatnonzero(held.groups[owner] == tree.feature[node])[0])
                threshold[node] = edges[owner][local][int(tree.threshold[node])]
            trees.append(replace(tree, threshold=threshold))
        return Forest(tuple(trees), Operations())

    def _grow_tree(self, world: Pooled, y: Array, f: Array) -> tuple[Tree, Array]:
        """A tree, and its value (n,) for each sample."""
        statistics = coded_statistics(y, f)
        sealed = world.send_statistics(statistics)
        nodes, gain = Nodes(), np.zeros(len(y))
        waiting = deque([(nodes.add(), np.arange(len(y)), 0, statistics.sum(axis=0))])
        while waiting:
            node, rows, depth, total = waiting.popleft()
            split = None
            if depth < self.depth:  # Algorithm 2
                split = self.best_split_of_node(world.histogram(statistics, sealed, rows), world.starts, total)
            if split is None:
                gain[rows] = nodes.make_leaf(node, self.value_of_leaf(*total * UNIT))
                continue
            left = world.divide_rows(rows, *split, told=depth + 1 < self.depth)
            feature, edge = split
            children = nodes.split(node, feature, float(world.edges[feature][edge]), int(world.owner[feature]))
            parts = rows[left], rows[~left]
            of_left = statistics[parts[0]].sum(axis=0)
            totals = of_left, total - of_left  # whole numbers, so the other sum is exact
            waiting.extend(zip(children, parts, (depth + 1, depth + 1), totals, strict=True))
        return nodes.tree(), gain

    def best_split_of_node(
        self, histogram: NDArray[np.int64], starts: NDArray[np.int64], total: NDArray[np.int64]
    ) -> tuple[int, int] | None:
        """Feature and edge of a node's best split, from sums over all bins and the node; None if no split gains."""
        feature, edge = best_split(histogram, starts, total, self.lam, self.gamma, self.min_child_weight)
        return None if feature == LEAF else (feature, edge)

    def value_of_leaf(self, g: float, h: float) -> float:
        """Value of a leaf, -G / (H + lambda) times the learning rate."""
        return -self.learning_rate * g / (h + self.lam) if h + self.lam > 0 else 0.0


class Active:
    """The active party: only it sees statistics, and it sees the others' features only as sums."""

    def __init__(self, method: SecureBoost, own: Own, wire: Wire, edges: tuple[Array, ...], sorting: Sorting) -> None:
        self._method, self._own, self._wire, self._edges, self._sorting = method, own, wire, edges, sorting
        self._passive = [party for party in range(own.parties) if party != own.number]
        self._keys = method.cipher_in_use.keys()
        self._early: dict[tuple[int, type[letters.Letter], int], letters.Letter] = {}

    def play(self) -> Actor:
        """All trees, with edges' numbers as thresholds, and its own edges."""
        trees, f, public = [], np.zeros(len(self._own.x)), self._keys.public
        for party in self._passive if public else ():
            self._wire.send(party, Key(np.array([public], f"V{len(public)}")))
        for _ in range(self._method.trees):
            tree, gain = yield from self._grow_tree(f)
            trees.append(tree)
            f = f + gain
        return trees, self._edges

    def _grow_tree(self, f: Array) -> Part:
        """A tree, whose thresholds are numbers of edges, and its value (n,) for each sample."""
        method, statistics = self._method, coded_statistics(self._own.labels, f)
        sealed = self._keys.words(self._keys.encrypt(statistics)) if self._passive else np.zeros(0)
        for party in self._passive:
            self._wire.send(party, Statistics(sealed))
        nodes, gain = Nodes(), np.zeros(len(f))
        waiting = deque([(nodes.add(), np.arange(len(f)), 0)])
        while waiting:
            node, rows, depth = waiting.popleft()
            total = statistics[rows].sum(axis=0)
            split = None
            if depth < method.depth:
                histogram, starts = yield from self._histogram(statistics, rows, node)
                split = method.best_split_of_node(histogram, starts, total)
            if split is None:
                gain[rows] = nodes.make_leaf(node, method.value_of_leaf(*total * UNIT))
                continue
            feature, edge = split
            owner = next(j for j, group in enumerate(self._own.groups) if feature in group)
            local = int(np.flatnonzero(self._own.groups[owner] == feature)[0])
            if owner == self._own.number:
                left = self._sorting.bins[local, rows] <= edge
            else:
                self._wire.send(owner, Choice(np.array([local, edge]), (node,)))
                letter = yield from self._awaited_letter(owner, Left, node)
                left = letter.values
            for party in self._passive:
                if depth + 1 < method.depth and party != owner:
                    self._wire.send(party, Left(left, (node,)))
            children = nodes.split(node, feature, float(edge), owner)
            waiting.extend(zip(children, (rows[left], rows[~left]), (depth + 1, depth + 1), strict=True))
        return nodes.tree(), gain

    def _histogram(self, statistics: NDArray[np.int64], rows: Integers, node: int) -> Part:
        """Sums over the bins of all features in their order, and where each feature's begin."""
        sorting = self._sorting
        own = sorting.sums(statistics, rows)[0]
        sums, begins = {self._own.number: own}, {self._own.number: sorting.starts}
        for party in self._passive:
            letter = yield from self._awaited_letter(party, Sums, node)
            sums[party], begins[party] = (
                self._keys.decrypt(self._keys.of_words(letter.values)),
                np.array(letter.about[1:]),
            )
        pieces: list[NDArray[np.int64]] = [np.zeros((0, 2), np.int64)] * sum(map(len, self._own.groups))
        for party, features in enumerate(self._own.groups):
            for number, feature in enumerate(features):
                pieces[feature] = sums[party][begins[party][number] : begins[party][number + 1]]
        return np.concatenate(pieces), np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])

    def _awaited_letter(self, sender: int, kind: type[letters.Letter], node: int) -> Part:
        """A party's letter of this kind about a node; stores other letters that arrive before it."""
        while (sender, kind, node) not in self._early:
            letter = yield sender
            assert letter is not None, f"party {sender} ended early"
            self._early[sender, type(letter), letter.about[0]] = letter
        return self._early.pop((sender, kind, node))


class Passive:
    """A party without labels: it sums ciphertexts over the bins of its features, and splits nodes."""

    def __init__(self, method: SecureBoost, own: Own, wire: Wire, edges: tuple[Array, ...], sorting: Sorting) -> None:
        self._method, self._own, self._wire, self._edges, self._sorting = method, own, wire, edges, sorting
        self._keys = method.cipher_in_use.keys_of(b"")
        self._sealed: Any = None
        self._nodes: dict[int, tuple[Integers, int]] = {}
        self._last = 0  # the newest node; both sides number nodes in the order in which these are opened

    def play(self) -> Actor:
        """Answer until the active party has ended; return its own edges."""
        while (letter := (yield self._own.root)) is not None:
            if isinstance(letter, Key):
                self._keys = self._method.cipher_in_use.keys_of(letter.values[0].tobytes())
                continue
            if isinstance(letter, Statistics):
                self._sealed, self._nodes, self._last = self._keys.of_words(letter.values), {}, -1
                self._send_sums_of_node(np.arange(len(self._own.x)), 0)
                continue
            [node] = letter.about
            rows, depth = self._nodes.pop(node)
            if isinstance(letter, Choice):
                feature, edge = letter.values
                left = self._sorting.bins[feature, rows] <= edge
                self._wire.send(self._own.root, Left(left, (node,)))
            else:
                left = values_of_letter(letter, Left)
            if depth + 1 < self._method.depth:  # nodes are split in the order of their numbers
                for child in (rows[left], rows[~left]):
                    self._send_sums_of_node(child, depth + 1)
        return self._edges

    def _send_sums_of_node(self, rows: Integers, depth: int) -> None:
        """Send the sums of a new node."""
        self._last += 1
        self._nodes[self._last] = rows, depth
        sums = self._keys.sums(self._sealed, rows, self._sorting)
        self._wire.send(self._own.root, Sums(self._keys.words(sums), (self._last, *self._sorting.starts.tolist())))
