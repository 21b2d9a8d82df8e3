"""SecureBoost's Algorithms 1 and 2 at the active party, and at one of the others."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fkl.algorithms.vertical.messages import Array, Integers, Letter
from fkl.algorithms.vertical.secureboost import (
    UNIT,
    Binned,
    Choice,
    Left,
    Nodes,
    SecureBoost,
    Statistics,
    Sums,
    coded_statistics,
)
from fkl.algorithms.vertical.sums import Part, received
from fkl.contract.parties import Actor, Own, Wire
from fkl.network.ciphers import binned_sums


class Active:
    """The active party at work: it alone sees statistics, and all that it knows of the others' features are sums."""

    def __init__(self, method: SecureBoost, own: Own, wire: Wire, binned: Binned) -> None:
        self._method, self._own, self._wire, self._binned = method, own, wire, binned
        self._passive = [party for party in range(own.parties) if party != own.number]
        self._keys = method.lock.keys()
        self._early: dict[tuple[int, type[Letter], int], Letter] = {}

    def play(self) -> Actor:
        """All trees, with edges' numbers for thresholds, and the own edges."""
        trees, f = [], np.zeros(len(self._own.x))
        for _ in range(self._method.trees):
            tree, gain = yield from self._grow(f)
            trees.append(tree)
            f = f + gain
        return trees, self._binned.edges

    def _grow(self, f: Array) -> Part:
        """As `SecureBoost._grow`."""
        method, statistics = self._method, coded_statistics(self._own.labels, f)
        for party in self._passive:
            self._wire.send(party, Statistics(self._keys.encrypt(statistics)))
        nodes, gain = Nodes(), np.zeros(len(f))
        waiting = deque([(nodes.add(), np.arange(len(f)), 0)])
        while waiting:
            node, rows, depth = waiting.popleft()
            total = statistics[rows].sum(axis=0)
            split = None
            if depth < method.depth:
                histogram, starts = yield from self._histogram(statistics, rows, node)
                split = method.best(histogram, starts, total)
            if split is None:
                gain[rows] = nodes.close(node, method.leaf(*total * UNIT))
                continue
            feature, edge = split
            owner = next(j for j, group in enumerate(self._own.groups) if feature in group)
            left = yield from self._divide(rows, node, feature, edge, owner)
            for party in self._passive:
                if depth + 1 < method.depth and party != owner:
                    self._wire.send(party, Left(left, (node,)))
            children = nodes.split(node, feature, float(edge), owner)
            waiting.extend(zip(children, (rows[left], rows[~left]), (depth + 1, depth + 1), strict=True))
        return nodes.tree(), gain

    def _histogram(self, statistics: NDArray[np.int64], rows: Integers, node: int) -> Part:
        """Sums over the bins of all features in their order, and where each feature's begin."""
        own = binned_sums(statistics, rows, self._binned.bins, self._binned.starts)[0]
        sums, begins = {self._own.number: own}, {self._own.number: self._binned.starts}
        for party in self._passive:
            letter = yield from self._letter(party, Sums, node)
            sums[party], begins[party] = self._keys.decrypt(letter.values), np.array(letter.about[1:])
        pieces: list[NDArray[np.int64]] = [np.zeros((0, 2), np.int64)] * sum(map(len, self._own.groups))
        for party, features in enumerate(self._own.groups):
            for number, feature in enumerate(features):
                pieces[feature] = sums[party][begins[party][number] : begins[party][number + 1]]
        return np.concatenate(pieces), np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])

    def _divide(self, rows: Integers, node: int, feature: int, edge: int, owner: int) -> Part:
        """Which rows go left, as the feature's owner says."""
        local = int(np.flatnonzero(self._own.groups[owner] == feature)[0])
        if owner == self._own.number:
            return self._binned.bins[local, rows] <= edge
        self._wire.send(owner, Choice(np.array([local, edge]), (node,)))
        letter = yield from self._letter(owner, Left, node)
        return letter.values

    def _letter(self, sender: int, kind: type[Letter], node: int) -> Part:
        """A party's letter of this kind about a node; others that come before it are kept."""
        while (sender, kind, node) not in self._early:
            letter = yield sender
            assert letter is not None, f"party {sender} ended early"
            self._early[sender, type(letter), letter.about[0]] = letter
        return self._early.pop((sender, kind, node))


class Passive:
    """A party without labels at work: it sums what it is sent over the bins of its features, and divides nodes."""

    def __init__(self, method: SecureBoost, own: Own, wire: Wire, binned: Binned) -> None:
        self._method, self._own, self._wire, self._binned = method, own, wire, binned
        self._keys = method.lock.keys()
        self._sealed: Any = None
        self._nodes: dict[int, tuple[Integers, int]] = {}
        self._last = 0

    def play(self) -> Actor:
        """Answer until the active party has ended; the own edges."""
        while (letter := (yield self._own.root)) is not None:
            if isinstance(letter, Statistics):
                self._sealed, self._nodes, self._last = letter.values, {}, -1
                self._open(np.arange(len(self._own.x)), 0)
                continue
            [node] = letter.about
            rows, depth = self._nodes.pop(node)
            left = self._left(letter, rows, node) if isinstance(letter, Choice) else received(letter, Left)
            if depth + 1 < self._method.depth:  # nodes are split in the order of their numbers
                for child in (rows[left], rows[~left]):
                    self._open(child, depth + 1)
        return self._binned.edges

    def _open(self, rows: Integers, depth: int) -> None:
        """Send the sums of a new node."""
        self._last += 1
        self._nodes[self._last] = rows, depth
        sums = self._keys.sums(self._sealed, rows, self._binned.bins, self._binned.starts)
        self._wire.send(self._own.root, Sums(sums, (self._last, *self._binned.starts.tolist())))

    def _left(self, letter: Letter, rows: Integers, node: int) -> NDArray[np.bool_]:
        """Say which rows go left."""
        feature, edge = letter.values
        left: NDArray[np.bool_] = self._binned.bins[feature, rows] <= edge
        self._wire.send(self._own.root, Left(left, (node,)))
        return left
