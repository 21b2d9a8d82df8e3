"""Claims about other rows, beside learners that are equal by symmetry (row 3 of section 8 of comparing.md).

x in R^4, y = g(x1, x2) + g(x3, x4) + noise. Methods A and B are learners with random features that differ by exchanging
(x1, x2) and (x3, x4): their expected errors are the same, exactly and with any number of rows. g, the noise and the
step are not told there, so that rates of wrong ways are bounds here.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fkl.statistics.differences import Difference, from_rows, from_seeds

Array = NDArray[np.float64]
Random = np.random.Generator
ALIKE, UNLIKE = 1.3, 4.0
"""Ratio of the bandwidths of the two halves of x."""
BANDWIDTH = 0.5
CLIENTS = 20
NOISE = 1.0
STEP = 1.0
"""Close to the best one of these streams."""
SEEDS = 10
pytestmark = pytest.mark.slow


def drawn(random: Random, n: int) -> tuple[Array, Array]:
    """Rows of a source: (n, 4) and (n,)."""
    x = random.uniform(-1, 1, (n, 4))
    signal = np.sin(3 * x[:, [0, 2]]) * np.cos(2 * x[:, [1, 3]])
    return x, signal.sum(axis=1) + random.normal(0, NOISE, n)


def frequencies(random: Random, runs: int, count: int, ratio: float) -> tuple[Array, Array]:
    """Those of A and of B, (runs, 4, count) each."""
    base = random.normal(0, 1 / BANDWIDTH, (runs, 4, count))
    halves = np.array([ratio**0.5, ratio**0.5, ratio**-0.5, ratio**-0.5])[:, None]
    return base * halves, base / halves


def mapped(x: Array, frequency: Array) -> Array:
    """Random features of norm 1, (runs, n, 2 count)."""
    phase = x @ frequency
    return np.concatenate([np.cos(phase), np.sin(phase)], axis=-1) / np.sqrt(frequency.shape[-1])


def streamed(random: Random, x: Array, y: Array, ratio: float, runs: int) -> list[Array]:
    """Losses of A and B, (runs, n): rows and clients are dealt anew in each run; predicted once, then learned from."""
    order = np.argsort(random.random((runs, len(y))), axis=1)
    losses = []
    for frequency in frequencies(random, runs, 50, ratio):
        features, weights, played = mapped(x[order], frequency), np.zeros((runs, 100)), np.empty(order.shape)
        for start in range(0, len(y), CLIENTS):
            now = slice(start, start + CLIENTS)
            error = np.einsum("rkf,rf->rk", features[:, now], weights) - y[order[:, now]]
            weights -= 2 * STEP * np.einsum("rkf,rk->rf", features[:, now], error) / error.shape[1]
            played[:, now] = error**2
        of_row = np.empty(order.shape)
        np.put_along_axis(of_row, order, played, axis=1)
        losses.append(of_row)
    return losses


def over_seeds(losses: list[Array]) -> Difference:
    """What the naive test makes of them."""
    return from_seeds(*(np.nanmean(one, axis=1) for one in losses))


def rates(make: Callable[[Random], list[Difference]], times: int) -> Array:
    """Share of data sets in which each way calls the one method better."""
    return np.mean([[one.p < 0.05 for one in make(np.random.default_rng([7, j]))] for j in range(times)], axis=0)


@pytest.mark.parametrize(("ratio", "naive_is"), [(ALIKE, 0.2), (UNLIKE, 0.4)])
def test_streams_that_share_rows(ratio: float, naive_is: float) -> None:
    """Row 3: crossed, 500 rows."""

    def make(random: Random) -> list[Difference]:
        losses = streamed(random, *drawn(random, 500), ratio, SEEDS)
        return [from_rows(*losses, np.arange(500)), over_seeds(losses)]

    by_rows, naive = rates(make, 800)
    assert by_rows <= 0.05 + 0.023
    assert naive >= naive_is
