"""What the benchmarks share: clocks, and the floor of sine and cosine."""

import os
import time
from collections.abc import Callable

import numpy as np
from numba import njit, prange

from fkl.kernels.compiled import sincos
from fkl.simulation import Experiment, simulate

THREADS = os.cpu_count() or 1
BLOCK = 16384


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run_seconds(experiment: Experiment) -> float:
    """Time that a run spends in its algorithm."""
    return sum(chunk.seconds for chunk in simulate(experiment, None, None, lambda _: None))


def sincos_seconds(elements: int, precision: type[np.floating], width: int = 0) -> float:
    """Time of the compiled sine and cosine of so many angles of a precision, on all threads, in blocks in the cache.

    With a width, also of the inner products with theta of every so many of them, eq. (5) of POF-MKL's paper.
    """
    angle = (10 * np.random.default_rng(1).standard_normal((THREADS, BLOCK))).astype(precision)
    sine, cosine = np.empty((2, THREADS, BLOCK), np.float32)
    theta = np.ones(width, np.float32)
    _sincos_blocks(angle, precision(1), sine, cosine, theta, THREADS)
    return seconds(lambda: _sincos_blocks(angle, precision(1), sine, cosine, theta, elements // BLOCK))


@njit(parallel=True)
def _sincos_blocks(angle, scale, sine, cosine, theta, count):
    """Sine and cosine of `count` blocks, each thread over and over in its own cached one."""
    rows = BLOCK // max(theta.size, 1)
    shape = rows, theta.size
    for thread in prange(angle.shape[0]):
        f = np.empty(rows, np.float32)
        for _ in range(count // angle.shape[0]):
            sincos(angle[thread], scale, sine[thread], cosine[thread])
            if theta.size:
                for z in (sine[thread], cosine[thread]):
                    np.dot(z[: rows * theta.size].reshape(shape), theta, f)
