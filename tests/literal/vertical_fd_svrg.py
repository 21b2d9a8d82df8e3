"""FD-SVRG, message by message: parties that hold their own features, a tree, one number after another."""

from collections import Counter
from math import exp

import numpy as np
from literal.common import Array, Arrays, Near

SLOPES = {
    "square": lambda f, y: 2 * (f - y),
    "logistic": lambda f, y: -y / (1 + exp(y * f)),
    "smooth_hinge": lambda f, y: -y * (1 if y * f <= 0 else 1 - y * f if y * f < 1 else 0),
}


class Post:
    """Carries messages along a tree, whose links (child, parent) stand in the order of a sum, and counts them."""

    def __init__(self, links: list[tuple[int, int]]) -> None:
        self.links = links
        self.messages: Counter[tuple[str, int, int]] = Counter()
        self.scalars: Counter[tuple[str, int, int]] = Counter()

    def _send(self, kind: str, sender: int, receiver: int, message: list[float]) -> list[float]:
        self.messages[kind, sender, receiver] += 1
        self.scalars[kind, sender, receiver] += len(message)
        return message

    def summed(self, parts: list[list[float]], root: int) -> list[float]:
        """What the root holds when all have reported."""
        held = list(parts)
        for child, parent in self.links:
            report = self._send("products", child, parent, held[child])
            held[parent] = [a + b for a, b in zip(held[parent], report, strict=True)]
        return held[root]

    def tell(self, message: list[float]) -> None:
        """Pass the root's message on to all."""
        for child, parent in reversed(self.links):
            self._send("slopes", parent, child, message)


def fd_svrg(
    x: Arrays, y: Array, root: int, links: list[tuple[int, int]], loss: str, lam: float, eta: float, indices: list[Near]
) -> tuple[Arrays, Post]:
    """Each party's w, for its own features x[party] (N, d_party); indices[t][m] are the samples of a step."""
    parties, slope = range(len(x)), SLOPES[loss]
    post = Post(links)
    w = [np.zeros(part.shape[1]) for part in x]
    for steps in indices:
        products = post.summed([[float(row @ w[party]) for row in x[party]] for party in parties], root)
        slopes = [slope(f, target) for f, target in zip(products, y, strict=True)]
        post.tell(slopes)
        mean = [sum(c * row for c, row in zip(slopes, x[party], strict=True)) / len(y) for party in parties]
        for batch in steps:
            products = post.summed([[float(x[party][i] @ w[party]) for i in batch] for party in parties], root)
            change = [slope(f, y[i]) - slopes[i] for f, i in zip(products, batch, strict=True)]
            post.tell(change)
            for party in parties:
                noise = sum(c * x[party][i] for c, i in zip(change, batch, strict=True)) / len(batch)
                w[party] = w[party] - eta * (noise + mean[party] + lam * w[party])
    return w, post
