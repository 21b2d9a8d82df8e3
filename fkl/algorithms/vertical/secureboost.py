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

from fkl.algorithms.vertical.boosting_pooled import Boosting, Choice, Key, Left, Pooled, Statistics, Sums
from fkl.algorithms.vertical.boosting_trees import (
    FRACTION_BITS,
    LEAF,
    UNIT,
    Forest,
    Nodes,
    Tree,
    best_split,
    bin_features,
    coded_statistics,
    first_bins_of,
)
from fkl.algorithms.vertical.ciphers import Cipher, Operations, Paillier, Plain, Sorting, require_key_bits
from fkl.algorithms.vertical.messages import Array, Count, Integers
from fkl.algorithms.vertical.parties import Actor, Held, Learning, Own, Wire
from fkl.algorithms.vertical.sums import Part, values_of_letter
from fkl.basics.errors import FklError, require
from fkl.basics.memory import require_memory
from fkl.wire.letters import Letter

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
        self._early: dict[tuple[int, type[Letter], int], Letter] = {}

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

    def _awaited_letter(self, sender: int, kind: type[Letter], node: int) -> Part:
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
