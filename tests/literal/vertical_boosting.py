"""Gradient boosted trees on pooled data: one node, one feature, one sample after another."""

from typing import Any

import numpy as np
from literal.common import Array
from scipy.special import expit

Node = tuple[Any, ...]
"""(value,) of a leaf; (feature, threshold, left, right) of a split."""


def edges(column: Array, bins: int) -> list[float]:
    """Values that may divide a feature: all but the largest, or those at so many levels of its order."""
    ordered = sorted(column)
    values = sorted(set(ordered))
    if len(values) > bins:
        n = len(ordered)
        values = sorted({ordered[-(-level * n // bins) - 1] for level in range(1, bins)})
    return [value for value in values if value < ordered[-1]]


def boosted(
    x: Array, y: Array, trees: int, depth: int, rate: float, lam: float, gamma: float, least: float, bins: int
) -> tuple[list[Node], Array]:
    """The trees, and f (n,) after all of them; the squared error's where y has other values than -1 and 1."""
    divisions = [edges(x[:, k], bins) for k in range(x.shape[1])]
    unit = 2.0**-40
    real = not set(y) <= {-1.0, 1.0}
    mean, deviation = (np.mean(y), np.std(y)) if real else (0.0, 1.0)
    f, forest = np.full(len(y), mean), []

    for t in range(trees):
        p = expit(f)
        slopes = (f - y) / deviation if real else p - (y > 0)
        curvatures = np.ones(len(y)) if real else p * (1 - p)
        g = [round(float(slope) / unit) for slope in slopes]
        h = [round(float(curvature) / unit) for curvature in curvatures]
        start = mean if t == 0 else 0.0

        def grow(rows: list[int], left_to_split: int, g: list[int] = g, h: list[int] = h, start: float = start) -> Node:
            G, H = sum(g[i] for i in rows), sum(h[i] for i in rows)
            best, choice = 0.0, None
            for k in range(x.shape[1]) if left_to_split else ():
                for threshold in divisions[k]:
                    below = [i for i in rows if x[i, k] <= threshold]
                    gl, hl = sum(g[i] for i in below), sum(h[i] for i in below)
                    gr, hr = G - gl, H - hl
                    if min(hl, hr) <= 0 or min(hl, hr) * unit < least:
                        continue
                    score = 0.0
                    for a, b in ((gl, hl), (gr, hr)):
                        score += (a * unit) * (a * unit) / (b * unit + lam)
                    gain = 0.5 * (score - (G * unit) * (G * unit) / (H * unit + lam)) - gamma
                    if gain > best:
                        best, choice = gain, (k, threshold)
            if choice is None:
                value = deviation * (-rate * (G * unit) / (H * unit + lam))
                f[rows] += value
                return (start + value,)
            k, threshold = choice
            below = [i for i in rows if x[i, k] <= threshold]
            above = [i for i in rows if x[i, k] > threshold]
            return k, threshold, grow(below, left_to_split - 1), grow(above, left_to_split - 1)

        forest.append(grow(list(range(len(y))), depth))
    return forest, f
