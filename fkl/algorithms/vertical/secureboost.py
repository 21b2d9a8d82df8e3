"""SecureBoost: gradient boosted trees whose split statistics travel encrypted.

Cheng, Fan, Jin, Liu, Chen and Yang, "SecureBoost: a lossless federated learning framework" (2019), Algorithms 1 and 2.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

from fkl.algorithms.vertical.messages import SCALAR, Array, Count, Groups, Integers, Letter, uncounted
from fkl.algorithms.vertical.parties import Actor, Held, Learning, Own, Wire
from fkl.errors import FklError, require
from fkl.kernels.functions import Trees
from fkl.memory import require_memory
from fkl.network.ciphers import Cipher, Keys, Operations, Paillier, Plain, binned_sums, require_key_bits

FRACTION_BITS = 40
UNIT = 2.0**-FRACTION_BITS
MOST_SAMPLES = 1 << (62 - FRACTION_BITS)
"""Sums of so many g, each at most 1 in magnitude, are exact in 64 bits."""
TREE_BYTES = 700
"""Of a tree that is one leaf."""
LEAF = -1


class Statistics(Letter):
    """Encrypted g and h of all samples, (n, 2)."""

    kind = "statistics"
    dtype = "i8"


class Sums(Letter):
    """Encrypted sums of g and h over the bins of a party's features, about a node and where each feature's begin."""

    kind = "sums"
    dtype = "i8"


class Choice(Letter):
    """Which of the receiver's features, and which of its edges, a node is split at."""

    kind = "split"
    dtype = "i8"


class Left(Letter):
    """Which samples of a node go left, one bit each."""

    kind = "left"
    dtype = "?"


@dataclass(frozen=True)
class Tree:
    """Nodes, the root first; a sample goes left where x[feature] <= threshold.

    Parameters
    ----------
    feature : (m,) int
        `LEAF` at a leaf.
    threshold : (m,)
        Known to the owner of the feature alone.
    owner : (m,) int
        Party; `LEAF` at a leaf.
    left, right : (m,) int
        Nodes.
    value : (m,)
        What a leaf adds to f; 0 elsewhere.
    """

    feature: NDArray[np.int64]
    threshold: Array
    owner: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Array

    def decision(self, x: Array) -> Array:
        """What the tree adds to f of samples (n, d), shape (n,)."""
        return self.value[_leaves(x, self.feature, self.threshold, self.left, self.right)]


@dataclass(frozen=True)
class Forest:
    """Sum of trees.

    Parameters
    ----------
    trees : tuple of Tree
    operations : Operations
        What training did with the cipher.
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
        """As arrays that a model keeps; it needs no more features than it asks for."""
        sizes = np.cumsum([0, *(len(tree.feature) for tree in self.trees)])
        columns = {
            name: np.concatenate([getattr(tree, name) for tree in self.trees])
            for name in ("feature", "threshold", "left", "right", "value")
        }
        inner = columns["feature"] != LEAF
        first = np.repeat(sizes[:-1], np.diff(sizes))
        for side in ("left", "right"):
            columns[side] = np.where(inner, columns[side] + first, LEAF)
        return Trees(sizes[:-1], **columns)


CIPHERS: dict[str, Callable[[int], Cipher]] = {"plain": lambda _: Plain(), "paillier": Paillier}


@dataclass(frozen=True)
class SecureBoost(Learning):
    """Trees fitted to second-order statistics of the logistic loss; only the active party reads them.

    For each tree it sends the other parties g and h of all samples, encrypted. For each node they return the encrypted
    sums over the bins of their features; it takes the best split of all and tells the feature's owner, who answers with
    the samples that go left. g and h are coded as whole multiples of 2^-40, so sums are exact, and the trees are those
    of the same booster on pooled data whatever the cipher; of equal splits the one of the lowest feature number wins.

    Parameters
    ----------
    trees : int
    depth : int
        Splits from a root to a leaf, at most.
    learning_rate : float
        Factor of the leaves' values.
    lam : float
        lambda, l2 regularisation of the leaves.
    gamma : float
        Least gain of a split.
    min_child_weight : float
        Least sum of h on each side of a split.
    bins : int
        Most bins of a feature, of about equal numbers of samples; one for each value where those are no more.
    cipher : {"plain", "paillier"}, or a Cipher
        ``plain`` counts ciphertexts and operations and hides nothing.
    key_bits : int
        Of Paillier's modulus.

    Raises
    ------
    fkl.errors.BadValue
    """

    label: ClassVar[str] = "SecureBoost"
    engines = ("numba",)

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
        """One a tree."""
        return self.trees

    @property
    def lock(self) -> Cipher:
        """The cipher as an object."""
        return CIPHERS[self.cipher](self.key_bits) if isinstance(self.cipher, str) else self.cipher

    def begin(self, held: Held, rng: np.random.Generator) -> "Boosting":
        """Start from f = 0; `rng` is not used, and the first active party is the one called active above.

        Raises
        ------
        fkl.errors.FklError
            If there are more samples than sums are exact for, or the cipher's package is missing.
        """
        if len(held.x) > MOST_SAMPLES:
            raise FklError(f"SecureBoost's sums are exact for {MOST_SAMPLES} samples at most, not {len(held.x)}")
        require_memory(self.trees * TREE_BYTES, f"{self.trees} trees", "algo.trees")
        world = _World.of(held.x, held.groups, held.active[0], self.bins, self.lock)
        return Boosting(world, np.zeros(len(held.x)), ())

    def advance(self, held: Held, learned: "Boosting", count: Count) -> tuple["Boosting", Forest]:
        """One tree."""
        world = replace(learned.world, count=count)
        tree, gain = self._grow(world, held.y, learned.f)
        trees = (*learned.trees, tree)
        return Boosting(learned.world, learned.f + gain, trees), Forest(trees, replace(world.keys.operations))

    def generators(self, rng: np.random.Generator, parties: int, root: int) -> list[np.random.Generator | None]:
        """Nobody draws anything."""
        return [None] * parties

    def party(self, own: Own, wire: Wire) -> Actor:
        """The active party's part, or a passive one's; see `fkl.algorithms.vertical.boosting_parties`.

        Raises
        ------
        fkl.errors.FklError
            For a cipher whose ciphertexts are no numbers of 64 bits: letters do not carry these yet.
        """
        if not (isinstance(self.lock, Plain) and self.lock.width == SCALAR):
            raise FklError("SecureBoost's parties send plain numbers: algo.cipher=plain")
        from fkl.algorithms.vertical.boosting_parties import Active, Passive

        return (Active if own.number == own.root else Passive)(self, own, wire, Binned.of(own.x, self.bins)).play()

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

    def _grow(self, world: "_World", y: Array, f: Array) -> tuple[Tree, Array]:
        """A tree, and its value (n,) for each sample."""
        statistics = coded_statistics(y, f)
        sealed = world.send_statistics(statistics)
        nodes, gain = Nodes(), np.zeros(len(y))
        waiting = deque([(nodes.add(), np.arange(len(y)), 0)])
        while waiting:
            node, rows, depth = waiting.popleft()
            total = statistics[rows].sum(axis=0)
            split = self._split(world, statistics, sealed, rows, total) if depth < self.depth else None
            if split is None:
                gain[rows] = nodes.close(node, self.leaf(*total * UNIT))
                continue
            left = world.divide(rows, *split, told=depth + 1 < self.depth)
            feature, edge = split
            children = nodes.split(node, feature, float(world.edges[feature][edge]), int(world.owner[feature]))
            waiting.extend(zip(children, (rows[left], rows[~left]), (depth + 1, depth + 1), strict=True))
        return nodes.tree(), gain

    def _split(
        self, world: "_World", statistics: NDArray[np.int64], sealed: Any, rows: Integers, total: NDArray[np.int64]
    ) -> tuple[int, int] | None:
        """Algorithm 2: feature and edge of the best split of a node; None where none gains."""
        return self.best(world.histogram(statistics, sealed, rows), world.starts, total)

    def best(
        self, histogram: NDArray[np.int64], starts: NDArray[np.int64], total: NDArray[np.int64]
    ) -> tuple[int, int] | None:
        """From sums over the bins of all features, which begin at `starts`, and over the node."""
        feature, edge = _best_split(histogram, starts, total, self.lam, self.gamma, self.min_child_weight)
        return None if feature == LEAF else (feature, edge)

    def leaf(self, g: float, h: float) -> float:
        """Value of a leaf, -G / (H + lambda) times the learning rate."""
        return -self.learning_rate * g / (h + self.lam) if h + self.lam > 0 else 0.0


class Binned(NamedTuple):
    """A party's own features, sorted into bins.

    Attributes
    ----------
    edges : tuple of arrays
        Upper ends of all bins of each feature but the last.
    bins : (d_j, n)
        Of its samples; a bin holds those above the edge before it, up to its own edge and with it.
    starts : (d_j + 1,)
        Where the bins of each feature begin in the party's histogram.
    """

    edges: tuple[Array, ...]
    bins: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, x: Array, most: int) -> "Binned":
        """Of samples (n, d_j), in at most so many bins a feature."""
        edges = tuple(_edges(column, most) for column in x.T)
        columns = [np.searchsorted(own, column, side="left") for own, column in zip(edges, x.T, strict=True)]
        starts = np.concatenate([[0], np.cumsum([len(own) + 1 for own in edges])]).astype(np.int64)
        return cls(edges, np.array(columns, np.uint8).reshape(len(edges), len(x)), starts)


@dataclass(frozen=True)
class _Party:
    """What one party holds.

    number; bins (d_j, n) of its samples; starts (d_j + 1,) of its features' bins in its own histogram;
    places (starts[-1],) of those in the histogram of all.
    """

    number: int
    bins: NDArray[np.uint8]
    starts: NDArray[np.int64]
    places: NDArray[np.int64]


@dataclass(frozen=True)
class _World:
    """The parties and what they may tell one another.

    edges: of the bins of each feature; starts (d + 1,): where the bins of each begin in the histogram of all;
    owner (d,); the first party is the active one.
    """

    parties: tuple[_Party, ...]
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
    def of(cls, x: Array, groups: Groups, root: int, bins: int, cipher: Cipher) -> "_World":
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
            parties.append(_Party(number, own.bins, own.starts, together))
        return cls(tuple(parties), tuple(edges), starts, owner, local, cipher.keys())

    @property
    def active(self) -> _Party:
        return self.parties[0]

    @property
    def passive(self) -> tuple[_Party, ...]:
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
        histogram[active.places] = binned_sums(statistics, rows, active.bins, active.starts)[0]
        for party in self.passive:
            answer = self.keys.sums(sealed, rows, party.bins, party.starts)
            Sums.book(self.count, party.number, active.number, answer.size, width=self.keys.width)
            histogram[party.places] = self.keys.decrypt(answer)
        return histogram

    def divide(self, rows: Integers, feature: int, edge: int, told: bool) -> NDArray[np.bool_]:
        """Which rows go left: the owner says so, and the other parties are told where children may be split.

        Samples are named by one bit each.
        """
        owner = next(party for party in self.parties if party.number == self.owner[feature])
        left = owner.bins[self.local[feature], rows] <= edge
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
    world : _World
        The parties, whose sums nobody counts yet.
    f : (n,)
        Sum of the trees for each sample.
    trees : tuple of Tree
    """

    world: _World
    f: Array
    trees: tuple[Tree, ...]


class Nodes:
    """A tree that grows."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, int, int, int, float]] = []

    def add(self) -> int:
        """A new node's number."""
        self.rows.append((LEAF, 0.0, LEAF, LEAF, LEAF, 0.0))
        return len(self.rows) - 1

    def close(self, node: int, value: float) -> float:
        """Make it a leaf of this value."""
        self.rows[node] = (LEAF, 0.0, LEAF, LEAF, LEAF, value)
        return value

    def split(self, node: int, feature: int, threshold: float, owner: int) -> tuple[int, int]:
        """Numbers of its two children."""
        children = self.add(), self.add()
        self.rows[node] = (feature, threshold, owner, *children, 0.0)
        return children

    def tree(self) -> Tree:
        """As it has grown."""
        feature, threshold, owner, left, right, value = zip(*self.rows, strict=True)
        whole = (np.array(column, np.int64) for column in (feature, owner, left, right))
        features, owners, lefts, rights = whole
        return Tree(features, np.array(threshold), owners, lefts, rights, np.array(value))


def coded_statistics(y: Array, f: Array) -> NDArray[np.int64]:
    """Coded g and h (n, 2) of the logistic loss."""
    p = expit(f)
    return np.rint(np.stack([p - (y > 0), p * (1 - p)], axis=1) / UNIT).astype(np.int64)


def _edges(column: Array, bins: int) -> Array:
    """Upper ends of all bins of a feature but the last: values that occur."""
    values = np.unique(column)
    if len(values) > bins:
        levels = np.arange(1, bins) / bins
        values = np.append(np.unique(np.quantile(column, levels, method="inverted_cdf")), values[-1])
        values = np.unique(values)
    return values[:-1]


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _best_split(
    histogram: NDArray[np.int64],
    starts: NDArray[np.int64],
    total: NDArray[np.int64],
    lam: float,
    gamma: float,
    min_child_weight: float,
) -> tuple[int, int]:
    """Feature and edge with the largest gain; the first of equals, (LEAF, LEAF) if no gain is above 0."""
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


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _leaves(
    x: Array, feature: NDArray[np.int64], threshold: Array, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Leaf (n,) that each sample falls into."""
    leaves = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        node = 0
        while feature[node] != LEAF:
            node = left[node] if x[i, feature[node]] <= threshold[node] else right[node]
        leaves[i] = node
    return leaves
