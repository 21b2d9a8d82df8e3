"""SecureBoost: gradient boosted trees whose split statistics are sent encrypted.

Cheng, Fan, Jin, Liu, Chen and Yang, "SecureBoost: a lossless federated learning framework" (2019), Algorithms 1 and 2.
A round is one tree.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import astuple, dataclass, is_dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fkl.algorithms.vertical.ciphers import (
    MOST_KEY_BITS,
    Cipher,
    CountingCipher,
    KeyPair,
    Operations,
    Paillier,
    Sorting,
    require_key_bits,
)
from fkl.algorithms.vertical.parties import (
    Actor,
    Integers,
    LearningWithKeys,
    Letter,
    PartyData,
    PartyRows,
    Wire,
    are_signs,
    target_deviation,
)
from fkl.algorithms.vertical.sums import Part, values_of_letter
from fkl.basics.arrays import Array
from fkl.basics.errors import FklError, require
from fkl.basics.keys import key
from fkl.basics.memory import require_memory
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.functions import Trees

FRACTION_BITS = 40
UNIT = 2.0**-FRACTION_BITS
LEAF = -1


@dataclass(frozen=True)
class DecisionTree:
    """Nodes, the root first; a sample goes left if x[feature] <= threshold.

    Parameters
    ----------
    feature : (m,) int
        `LEAF` at a leaf.
    threshold : (m,)
        Known only to the owner of the feature.
    owner : (m,) int
        Party that holds the feature; `LEAF` at a leaf.
    left, right : (m,) int
        Numbers of the children; `LEAF` at a leaf.
    value : (m,)
        Value that a leaf adds to f; 0 at other nodes.
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
        Operations with the cipher in training.
    """

    trees: tuple[DecisionTree, ...]
    operations: Operations

    def decision(self, x: Array) -> Array:
        """Values f of samples (n, d), shape (n,): estimates, or above 0 for class 1."""
        f = np.zeros(len(x))
        for tree in self.trees:
            f += tree.decision(x)
        return f

    @property
    def function(self) -> Trees:
        """The model as arrays of a stored model, with the nodes of all trees in one array."""
        sizes = np.cumsum([0, *(len(tree.feature) for tree in self.trees)])
        columns = {
            name: np.concatenate([getattr(tree, name) for tree in self.trees])
            for name in ("feature", "threshold", "left", "right", "value")
        }
        inner, first = columns["feature"] != LEAF, np.repeat(sizes[:-1], np.diff(sizes))
        for side in ("left", "right"):
            columns[side] = np.where(inner, columns[side] + first, LEAF)
        return Trees(sizes[:-1], **columns)


class GrowingNodes:
    """Nodes of a tree while it grows."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, int, int, int, float]] = []

    def add(self) -> int:
        """Add a node and return its number."""
        self.rows.append((LEAF, 0.0, LEAF, LEAF, LEAF, 0.0))
        return len(self.rows) - 1

    def make_leaf(self, node: int, value: float) -> float:
        """Make a node a leaf with this value, which is returned."""
        self.rows[node] = (LEAF, 0.0, LEAF, LEAF, LEAF, value)
        return value

    def split(self, node: int, feature: int, threshold: float, owner: int) -> tuple[int, int]:
        """Split a node and return the numbers of its two children."""
        children = self.add(), self.add()
        self.rows[node] = (feature, threshold, owner, *children, 0.0)
        return children

    def tree(self) -> DecisionTree:
        """The finished tree."""
        feature, threshold, owner, left, right, value = zip(*self.rows, strict=True)
        whole = (np.array(column, np.int64) for column in (feature, owner, left, right))
        features, owners, lefts, rights = whole
        return DecisionTree(features, np.array(threshold), owners, lefts, rights, np.array(value))


def bin_features(x: Array, most: int) -> tuple[tuple[Array, ...], NDArray[np.uint8]]:
    """Edges between bins, and bins (d, n), of samples (n, d) with at most this many bins per feature.

    Edges are the upper ends of a feature's bins except the last. A bin holds samples above the previous edge and up to
    its own edge, inclusive.
    """
    edges: tuple[Array, ...] = ()
    # A feature with few values has an edge between every two of them; otherwise edges are quantiles
    for column in x.T:
        values = np.unique(column)
        if len(values) > most:  # edges are values in the data, so a party can name a split by one of them
            levels = np.arange(1, most) / most
            inner = np.unique(np.quantile(column, levels, method="inverted_cdf"))
            values = np.unique(np.append(inner, values[-1]))
        edges = (*edges, values[:-1])
    # The bin of each sample: the number of edges below its value
    columns = [np.searchsorted(own, column, side="left") for own, column in zip(edges, x.T, strict=True)]
    return edges, np.array(columns, np.uint8).reshape(len(edges), len(x))


def first_bins_of(edges: tuple[Array, ...]) -> NDArray[np.int64]:
    """Position of each feature's first bin in a histogram, and the total number of bins."""
    return np.concatenate([[0], np.cumsum([len(own) + 1 for own in edges])]).astype(np.int64)


def coded_statistics(y: Array, f: Array) -> NDArray[np.int64]:
    """Coded g and h (n, 2) of the logistic loss, or of (f - y)^2 / 2 in units of `target_deviation`."""
    if are_signs(y):
        p = expit(f)
        g, h = p - (y > 0), p * (1 - p)
    else:
        g, h = (f - y) / target_deviation(y), np.ones(len(y))
    return np.rint(np.stack([g, h], axis=1) / UNIT).astype(np.int64)


@njit_cached(nogil=True)
def best_split(
    histogram: NDArray[np.int64],
    starts: NDArray[np.int64],
    total: NDArray[np.int64],
    lam: float,
    gamma: float,
    min_child_weight: float,
) -> tuple[int, int]:
    """Feature and edge with the largest gain; the first one in a tie, (LEAF, LEAF) if no gain is above 0."""
    feature, edge, best = LEAF, LEAF, 0.0
    # Gain of a split, in units of the sums; `before` is that of the node without a split
    g, h = total[0] * UNIT, total[1] * UNIT
    before = g * g / (h + lam) if h + lam > 0 else 0.0
    for k in range(len(starts) - 1):
        # Move the edge from left to right: the sums of the left side grow
        left_g, left_h = 0, 0
        for place in range(starts[k], starts[k + 1] - 1):
            left_g += histogram[place, 0]
            left_h += histogram[place, 1]
            right_g, right_h = total[0] - left_g, total[1] - left_h
            least = min(left_h, right_h)
            # A side needs enough weight
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
        # Down the tree, left where the value is at most the threshold
        while feature[node] != LEAF:
            node = left[node] if x[rows[i], feature[node]] <= threshold[node] else right[node]
        leaves[i] = node
    return leaves


class CipherKey(Letter, kind="key", dtype="V"):
    """Public key to encrypt and to add ciphertexts; sent once, if the cipher has a public key."""


class EncryptedStatistics(Letter, kind="statistics", dtype="V"):
    """Encrypted g and h of all samples, (n, 2)."""


class EncryptedSums(Letter, kind="sums", dtype="V"):
    """Encrypted sums of g and h in a node over the bins of a party's features, and where each feature's bins begin."""


class SplitChoice(Letter, kind="split", dtype="i8"):
    """The receiver's feature and the number of its edge at which a node is split."""


class Left(Letter, kind="left", dtype="?"):
    """For each sample of a node, whether it goes left; one bit each."""


@dataclass(frozen=True)
class Booster:
    """A party's state between two trees.

    Parameters
    ----------
    edges : tuple of arrays
        Edges between the bins of the party's features.
    sorting : Sorting
        Sorting of all samples into these bins.
    keys : Keys
        Keys of the cipher; a passive party's keys can only add.
    f : (n,), or None
        Sum of the trees for each sample, at the active party.
    trees : tuple of Tree
        Trees, at the active party, with numbers of edges as thresholds.
    early : Letter or None
        The first letter about the next tree, if a passive party has received it.
    """

    edges: tuple[Array, ...]
    sorting: Sorting
    keys: KeyPair
    f: Array | None = None
    trees: tuple[DecisionTree, ...] = ()
    early: Letter | None = None


MOST_SAMPLES = 1 << (62 - FRACTION_BITS)
"""Sums of this many g, whose mean square is at most 1, are exact in 64 bits."""
MOST_RATE = 2
"""Up to this learning rate, no tree increases the squared error, so g of real targets stays small enough."""
TREE_BYTES = 700
"""Memory of a tree that is one leaf."""
CIPHERS: dict[str, Callable[[int], Cipher]] = {"plain": lambda _: CountingCipher(), "paillier": Paillier}


@dataclass(frozen=True)
class SecureBoost(LearningWithKeys):
    """Trees fitted to second-order statistics of a loss; only the active party can read the statistics.

    Two classes have the logistic loss. Real targets have the squared error: f starts from their mean, g is f - y in
    their standard deviations (so gamma is in units of their variance), and h is 1, but is sent too.

    For each tree, the active party sends the others g and h of all samples, encrypted. For each node, they return the
    encrypted sums over the bins of their features. The active party chooses the best split and sends it to the
    feature's owner, which answers with the samples that go left. g and h are coded as whole multiples of 2^-40, so sums
    are exact, and with every cipher the trees are those of the same booster on pooled data. Of equal splits, the one
    with the lowest feature number is taken.
    """

    label: ClassVar[str] = "SecureBoost"
    compiled_only: ClassVar[bool] = True

    trees: int = key(100, "Number of trees.", min=1, max=1_000_000)
    depth: int = key(5, "Maximum number of splits from a root to a leaf.", min=1, max=16)
    learning_rate: float = key(0.3, "Learning rate: factor of the leaves' values; at most 2 for real targets.", above=0)
    lam: float = key(1.0, "L2 regularisation lambda of the leaves.", min=0)
    gamma: float = key(
        0.0,
        "Minimum gain of a split, including the paper's factor 1/2: half of xgboost's gamma.",
        min=0,
    )
    min_child_weight: float = key(1.0, "Minimum sum of h on each side of a split.", min=0)
    bins: int = key(
        32,
        "Maximum number of bins of a feature, with about equal numbers of samples; one bin per value if there are at "
        "most this many values.",
        min=2,
        max=256,
    )
    cipher: Any = key(
        "plain",
        "``plain`` counts ciphertexts and operations and hides nothing; ``paillier`` hides them. Or a Cipher.",
        must="plain or paillier",
    )
    key_bits: int = key(
        1024, "Length of Paillier's modulus.", min=128, max=MOST_KEY_BITS, must="an even number from 128 to 16384"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        named = isinstance(self.cipher, str) and self.cipher in CIPHERS
        self.require(named or is_dataclass(self.cipher), "cipher")
        require_key_bits(self.key_bits)

    @property
    def rounds(self) -> int:
        """Number of rounds: one per tree."""
        return self.trees

    @property
    def cipher_in_use(self) -> Cipher:
        """The cipher as an object."""
        return CIPHERS[self.cipher](self.key_bits) if isinstance(self.cipher, str) else self.cipher

    def begin(self, held: PartyRows, rng: np.random.Generator) -> Any:
        """Start from f = 0; the first active party is "the active party" of the class.

        Raises
        ------
        fkl.basics.errors.FklError
            If there are too many samples or too large steps for exact sums, or the cipher's package is missing.
        """
        # Refuse what would diverge or overflow before a message is sent
        allowed = f"at most {MOST_RATE} for real targets, whose trees diverge"
        require(are_signs(held.y) or self.learning_rate <= MOST_RATE, "learning_rate", self.learning_rate, allowed)
        if len(held.x) > MOST_SAMPLES:
            raise FklError(f"SecureBoost's sums are exact for {MOST_SAMPLES} samples at most, not {len(held.x)}")
        require_memory(self.trees * TREE_BYTES, f"{self.trees} trees", "algo.trees")
        return super().begin(held, rng)

    def start(self, own: PartyData) -> Booster:
        """A party's bins and keys."""
        edges, bins = bin_features(own.x, self.bins)
        sorting = Sorting.from_bins(np.asfortranarray(bins), first_bins_of(edges))  # a sample's bins are read together
        if own.number == own.root:
            return Booster(edges, sorting, self.cipher_in_use.keys(), np.zeros(len(own.x)))
        return Booster(edges, sorting, self.cipher_in_use.keys_of(b""))

    def play(self, own: PartyData, memory: Booster, wire: Wire) -> Actor:
        """Grow one tree: one party's part."""
        return (self._grow_tree if own.number == own.root else self._passive_part)(own, memory, wire)

    def assembled(self, parts: list[Booster], held: PartyRows) -> Forest:
        """The active party's trees, with the thresholds that each party knows for its features."""
        # Edges of all features, from the parties that have them
        edges_of = {
            feature: edges
            for group, part in zip(held.groups, parts, strict=True)
            for feature, edges in zip(group.tolist(), part.edges, strict=True)
        }
        edges = [edges_of[feature] for feature in range(len(edges_of))]
        first = np.cumsum([0, *map(len, edges)])
        thresholds = np.concatenate([*edges, [0.0]])  # the last is a leaf's
        # Replace bin numbers in trees by thresholds
        trees = []
        for tree in parts[held.active[0]].trees:
            number = np.where(tree.feature == LEAF, -1, first[tree.feature] + tree.threshold.astype(np.int64))
            trees.append(replace(tree, threshold=thresholds[number]))
        operations = np.sum([astuple(part.keys.operations) for part in parts], axis=0)
        return Forest(tuple(trees), Operations(*operations.tolist()))

    def values(self, model: Forest, x: Array, rows: Integers, before: Any) -> tuple[Array, Any]:
        """Add only the new trees to the saved values, so a round does not evaluate all trees again."""
        done, f = before or (0, np.zeros(len(rows)))
        for tree in model.trees[done:]:
            f = f + tree.decision(x, rows)
        return f, (len(model.trees), f)

    def value_of_leaf(self, g: float, h: float) -> float:
        """Value of a leaf, -G / (H + lambda) times the learning rate."""
        return -self.learning_rate * g / (h + self.lam) if h + self.lam > 0 else 0.0

    def _grow_tree(self, own: PartyData, memory: Booster, wire: Wire) -> Actor:
        """The active party's part: only it sees statistics, and it sees the others' features only through sums."""
        # The public key goes to the passive parties once
        assert memory.f is not None
        keys, passive = memory.keys, [party for party in range(own.parties) if party != own.number]
        for party in passive if keys.public and not memory.trees else ():
            wire.send(party, CipherKey(np.array([keys.public], f"V{len(keys.public)}")))
        # g and h of each row, coded as integers; passive parties get them encrypted
        classes, gain = are_signs(own.labels), np.zeros(len(own.x))
        unit = 1.0 if classes else target_deviation(own.labels)
        start = 0.0 if classes or memory.trees else float(own.labels.mean())  # added to the first tree's leaves
        statistics = coded_statistics(own.labels, memory.f + start)
        sealed = keys.words(keys.encrypt(statistics)) if passive else np.zeros(0)
        for party in passive:
            wire.send(party, EncryptedStatistics(sealed))
        # Nodes in the order in which they were opened, level by level
        letters, nodes = NodeLetters(), GrowingNodes()
        waiting = deque([(nodes.add(), np.arange(len(own.x)), 0)])
        while waiting:
            node, rows, depth = waiting.popleft()
            total, feature, edge = statistics[rows].sum(axis=0), LEAF, LEAF
            # Sums over bins from all parties; only the active party can decrypt those of the others
            if depth < self.depth:  # Algorithm 2
                own_sums = memory.sorting.sums(statistics, rows)[0]
                histogram, starts = yield from _node_histogram(own, memory, own_sums, letters, node)
                feature, edge = best_split(histogram, starts, total, self.lam, self.gamma, self.min_child_weight)
            # No gain: a leaf with its weight
            if feature == LEAF:
                gain[rows] = nodes.make_leaf(node, start + unit * self.value_of_leaf(*total * UNIT))
                continue
            # Whose feature it is: split here, or ask its party for the rows on the left
            owner = next(party for party, group in enumerate(own.groups) if feature in group)
            local = int(np.flatnonzero(own.groups[owner] == feature)[0])
            if owner == own.number:
                left = memory.sorting.bins[local, rows] <= edge
            else:
                wire.send(owner, SplitChoice(np.array([local, edge]), (node,)))
                left = (yield from letters.letter_about(owner, Left, node)).values
            # Parties that sum for the children need the split as well
            for party in passive:
                if depth + 1 < self.depth and party != owner:
                    wire.send(party, Left(left, (node,)))
            children = nodes.split(node, feature, float(edge), owner)
            waiting.extend(zip(children, (rows[left], rows[~left]), (depth + 1, depth + 1), strict=True))
        return replace(memory, f=memory.f + gain, trees=(*memory.trees, nodes.tree()))

    def _passive_part(self, own: PartyData, memory: Booster, wire: Wire) -> Actor:
        """A passive party's part: sum ciphertexts over the bins of its features, and split nodes."""
        # Rows and depth of each open node, by its number
        keys, sorting = memory.keys, memory.sorting
        sealed: Any = None
        nodes: dict[int, tuple[Integers, int]] = {}
        opened = 0  # both parties number nodes in the order in which they open them
        letter = memory.early or (yield own.root)
        while letter is not None and not (
            opened and isinstance(letter, EncryptedStatistics)
        ):  # which begin the next tree
            new: list[tuple[Integers, int]] = []
            # A key, the statistics of a new tree, or a split of an open node
            if isinstance(letter, CipherKey):
                keys = self.cipher_in_use.keys_of(letter.values[0].tobytes())
            elif isinstance(letter, EncryptedStatistics):
                sealed, new = keys.of_words(letter.values), [(np.arange(len(own.x)), 0)]
            else:
                [node] = letter.about
                rows, depth = nodes.pop(node)
                # The split is by a feature of this party, which says which rows go left
                if isinstance(letter, SplitChoice):
                    feature, edge = letter.values
                    left = sorting.bins[feature, rows] <= edge
                    wire.send(own.root, Left(left, (node,)))
                else:
                    left = values_of_letter(letter, Left)
                if depth + 1 < self.depth:  # nodes are split in the order of their numbers
                    new = [(rows[left], depth + 1), (rows[~left], depth + 1)]
            # Sums of all new nodes, still encrypted
            for rows, depth in new:
                nodes[opened] = rows, depth
                sums = keys.words(keys.sums(sealed, rows, sorting))
                wire.send(own.root, EncryptedSums(sums, (opened, *sorting.starts.tolist())))
                opened += 1
            letter = yield own.root
        return replace(memory, keys=keys, early=letter)


class NodeLetters:
    """Messages about nodes, which may arrive before they are awaited."""

    def __init__(self) -> None:
        self._early: dict[tuple[int, type[Letter], int], Letter] = {}

    def letter_about(self, sender: int, kind: type[Letter], node: int) -> Part:
        """A party's message of this kind about a node."""
        while (sender, kind, node) not in self._early:
            letter = yield sender
            assert letter is not None, f"party {sender} ended early"
            self._early[sender, type(letter), letter.about[0]] = letter
        return self._early.pop((sender, kind, node))


def _node_histogram(
    own: PartyData, memory: Booster, own_sums: NDArray[np.int64], letters: NodeLetters, node: int
) -> Part:
    """A node's sums over the bins of all features, and the position at which each feature's bins begin."""
    # In the order of features, which any of the parties may have
    pieces: dict[int, NDArray[np.int64]] = {}
    for party, features in enumerate(own.groups):
        sums, starts = own_sums, memory.sorting.starts.tolist()
        if party != own.number:
            letter = yield from letters.letter_about(party, EncryptedSums, node)
            sums, starts = memory.keys.decrypt(memory.keys.of_words(letter.values)), letter.about[1:]
        for feature, (first, last) in zip(features.tolist(), pairwise(starts), strict=True):
            pieces[feature] = sums[first:last]
    in_order = [pieces[feature] for feature in range(len(pieces))]
    return np.concatenate(in_order), np.cumsum([0, *map(len, in_order)])
