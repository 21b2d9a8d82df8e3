"""Trees of boosting, and the parts that grow them: bins of features, coded statistics, the best split."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fkl.algorithms.vertical.ciphers import Operations
from fkl.algorithms.vertical.messages import Array, Integers
from fkl.kernels.cached_njit import njit_cached
from fkl.kernels.functions import Trees

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
